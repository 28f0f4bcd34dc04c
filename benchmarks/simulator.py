"""Our simulator beside Numba's: `python -m benchmarks.simulator` writes results/simulator.md.

The same kernels on the same numbers, in one run: Numba's simulator in a process of its own, since
it must be switched on before Numba is imported. Results are compared before times are.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from numba import cuda

from benchmarks.machine import describe, in_words
from benchmarks.tables import publish

RESULTS = Path(__file__).with_name("results") / "simulator.md"
TILE, BLOCK = 16, 128
f4 = np.float32


@cuda.jit
def matmul(a, b, out):
    """The product of two matrices, by tiles in shared memory."""
    tile_a = cuda.shared.array((TILE, TILE), f4)
    tile_b = cuda.shared.array((TILE, TILE), f4)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    column = cuda.blockIdx.x * TILE + x
    row = cuda.blockIdx.y * TILE + y
    total = f4(0)
    for first in range(0, a.shape[1], TILE):
        tile_a[y, x] = f4(0)
        tile_b[y, x] = f4(0)
        if row < a.shape[0] and first + x < a.shape[1]:
            tile_a[y, x] = a[row, first + x]
        if first + y < b.shape[0] and column < b.shape[1]:
            tile_b[y, x] = b[first + y, column]
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[y, k] * tile_b[k, x]
        cuda.syncthreads()
    if row < out.shape[0] and column < out.shape[1]:
        out[row, column] = total


@cuda.jit
def block_sum(x, out):
    """A sum: each block halves its part in shared memory, then adds to the total."""
    part = cuda.shared.array(BLOCK, f4)
    i, here = cuda.grid(1), cuda.threadIdx.x
    part[here] = x[i] if i < x.size else f4(0)
    cuda.syncthreads()
    half = BLOCK // 2
    while half > 0:
        if here < half:
            part[here] += part[here + half]
        cuda.syncthreads()
        half //= 2
    if here == 0:
        cuda.atomic.add(out, 0, part[0])


@cuda.jit
def scale_add(x, y, out):
    """One element a thread."""
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] * f4(2) + y[i]


def cases():
    """name -> (kernel, blocks, threads, arguments); the last argument is the result."""
    draw = np.random.default_rng(0)

    def floats(*shape):
        return draw.normal(size=shape).astype(f4)

    def product(m, k, n):
        blocks = -(-n // TILE), -(-m // TILE)
        return matmul, blocks, (TILE, TILE), (floats(m, k), floats(k, n), np.zeros((m, n), f4))

    many = 10_000
    return {
        "tiled matmul 64 x 67 x 64, blocks of 16 x 16": product(64, 67, 64),
        "tiled matmul 32 x 35 x 32, blocks of 16 x 16": product(32, 35, 32),
        "block reduction, 1,000 elements, 8 blocks of 128": (
            block_sum, 8, BLOCK, (floats(1000), np.zeros(1, f4)),
        ),
        "elementwise, 10,000 threads": (
            scale_add, -(-many // 256), 256, (floats(many), floats(many), np.zeros(many, f4)),
        ),
    }  # fmt: skip


def measured(run, rounds):
    """{name: (median seconds, [numbers of the result])} of a way to run cases."""
    found = {}
    for name, (kernel, blocks, threads, arguments) in cases().items():
        times = []
        for _ in range(rounds):
            arguments[-1][...] = 0
            started = time.perf_counter()
            run(kernel, blocks, threads, arguments)
            times.append(time.perf_counter() - started)
        found[name] = statistics.median(times), arguments[-1].ravel().tolist()
    return found


def by_numba(kernel, blocks, threads, arguments):
    """A launch as Numba does it: by its simulator, in the process where that is switched on."""
    kernel[blocks, threads](*arguments)


def ours(watch):
    """A launch by minigrad's simulator."""
    from minigrad import simt  # not in the other process: it measures Numba alone

    def run(kernel, blocks, threads, arguments):
        simt.launch(kernel, blocks, threads, arguments, watch=watch)

    run(*cases()["elementwise, 10,000 threads"])  # what the first launch alone must do
    return run


def numba_simulator(rounds):
    """The measurements of Numba's simulator, from a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.simulator", "--numba", "--rounds", str(rounds)],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def table(rounds, slow_rounds):
    """The rows: name, seconds watching, not watching, of Numba's simulator."""
    watching, plain = measured(ours(True), rounds), measured(ours(False), rounds)
    numba = numba_simulator(slow_rounds)
    rows = []
    for name, (seconds, result) in watching.items():
        np.testing.assert_allclose(result, numba[name][1], rtol=2e-4, atol=1e-5)
        np.testing.assert_array_equal(result, plain[name][1])
        rows.append((name, seconds, plain[name][0], numba[name][0]))
    return rows


def main() -> int:
    """Measure, write the table, print it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--slow-rounds", type=int, default=3)
    parser.add_argument("--numba", action="store_true", help="measure Numba's simulator alone")
    options = parser.parse_args()
    if options.numba:
        print(json.dumps(measured(by_numba, options.rounds)))
        return 0
    machine = describe()  # before the load is ours
    rows = table(options.rounds, options.slow_rounds)
    lines = [
        "| kernel | watching | not watching | Numba's simulator | ratio, watching | ratio |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {name} | {watching * 1e3:.1f} ms | {plain * 1e3:.1f} ms | {numba * 1e3:,.0f} ms "
        f"| {numba / watching:,.0f} × | {numba / plain:,.0f} × |"
        for name, watching, plain, numba in rows
    ]
    note = (
        f"{in_words(machine)}; numba {machine['versions'].get('numba')}. "
        f"Medians of {options.rounds} launches, of {options.slow_rounds} for Numba's "
        "simulator, in one run; the goal is 30 × with watching. Watching looks for data races and "
        "uninitialised reads. "
        "Made by `python -m benchmarks.simulator`."
    )
    publish(RESULTS, lines, note)
    return 0


if __name__ == "__main__":
    sys.exit(main())
