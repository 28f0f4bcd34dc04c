"""Where a compiled step's time goes: `python -m benchmarks.anatomy` writes results/anatomy.md.

Each kernel of a step is timed alone, on one thread and in a warm cache. Beside their sum stand the
whole program, which runs them one after another, and the call from Python.
"""

import argparse
import sys
import time
from array import array
from pathlib import Path

import numpy as np

from benchmarks import denormals
from benchmarks.machine import describe
from benchmarks.peers.minigrad_cases import builders
from benchmarks.process import limit_processors
from benchmarks.rows import chosen
from benchmarks.tables import quantity, table
from minigrad.array.array import Array, ndarray
from minigrad.compiler.call.compiled import compile as compiled
from minigrad.compiler.cpu.step_text import StepText
from minigrad.compiler.program.labels import label
from minigrad.devices import loader
from minigrad.devices.cpu.blas import single_threaded

RESULTS = Path(__file__).with_name("results") / "anatomy.md"
STEPS = ("mlp-64-32-10", "recurrent-step", "cnn-step", "transformer-step")
SHORTEST = 1e-4  # seconds of one measurement
ROUNDS = 15
WARM = 70  # calls before the first measurement; the next that compares itself is number 129
SHOWN = 12  # lines of a table


def seconds(work):
    """The median over some rounds of the time of one call."""
    began = time.perf_counter()
    work()
    count = max(1, int(SHORTEST / max(time.perf_counter() - began, 1e-7)))
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(count):
            work()
        times.append((time.perf_counter() - began) / count)
    return sorted(times)[ROUNDS // 2]


def contents(value):
    """What a Value holds: ndarray. Arguments are random, labels 0: a plan does not keep them."""
    if isinstance(value.storage, Array):
        return ndarray(value.storage)
    if value.storage is not None:
        return np.asarray(value.storage)
    if value.dtype.numpy.kind == "f":
        return np.random.default_rng(0).standard_normal(value.size).astype(value.dtype.numpy)
    return np.zeros(value.size, value.dtype.numpy)


def name_of(call):
    """What a line of the table is called: products by their shape."""
    if call.kind != "product":
        return label(call.item)
    m, n = call.item.out.shape[-2:]
    return f"{label(call.item)}: {m} × {call.item.a.shape[-1]} × {n}"


class Program:
    """A plan on memory of its own; what a step found there, it finds here too."""

    def __init__(self, plan):
        self.plan, self.memory = plan, {}
        self.results = {r.value: k for k, r in reversed(list(enumerate(plan.results)))}

    def address(self, what, *which):
        """Where a slot of the table lies, on a boundary of 64 bytes."""
        if (what, *which) not in self.memory:
            self.memory[what, *which] = self.filled(what, *which)
        return -(-self.memory[what, *which].ctypes.data // 64) * 64

    def filled(self, what, *which):
        """Memory for a slot, with 64 bytes to spare."""
        if what == "arena":
            return np.zeros(which[0] + 64, np.uint8)
        if what == "result":
            return np.zeros(self.plan.results[which[0]].value.nbytes + 64, np.uint8)
        if what in ("sync", "seed", "counter"):
            return np.zeros(256, np.uint8)
        data = contents(which[0])
        memory = np.zeros(data.nbytes + 64, np.uint8)
        start = -memory.ctypes.data % 64
        memory[start : start + data.nbytes] = np.ravel(data).view(np.uint8)
        return memory

    def whole(self):
        """Seconds of the program, run by one thread."""
        table = array("q", [self.address(*slot) for slot in self.plan.slots])
        at, (step, more) = table.buffer_info()[0], self.plan.machine_code
        return seconds(lambda: step(0, 1, at, *more))

    def kernels(self):
        """{label: [calls, seconds of all of them, operations of their products]}."""
        times, found = {}, {}
        for call in (call for region in self.plan.regions for call in region):
            text = StepText([[call]], self.plan.arena, 1, self.results, self.plan.owner)
            if text.text not in times:
                times[text.text] = self.alone(text)
            line = found.setdefault(name_of(call), [0, 0.0, 0])
            line[0] += 1
            line[1] += times[text.text]
            line[2] += call.item.flops if call.kind == "product" else 0
        return found

    def alone(self, text):
        """Seconds of a text of one call."""
        function = loader.entry(loader.load(text.text, text.ordered_includes()).step)
        table = array("q", [self.address(*slot) for slot in text.slots])
        at = table.buffer_info()[0]
        return seconds(lambda: function(0, 1, at, text.code.buffer_info()[0]))


def anatomy(row):
    """Lines about one row, compiled."""
    steps = []

    def wrap(function):
        steps.append(compiled(function))
        return steps[-1]

    case = builders(wrap)[row.kind](**row.settings)
    for _ in range(WARM):
        case.step()
    plan = steps[-1].traces[0].plan
    program = Program(plan)
    call = seconds(case.step)
    with single_threaded:  # BLAS would wake threads of its own
        whole, kernels = program.whole(), program.kernels()
    total = sum(time for _, time, _ in kernels.values())
    lines = []
    for name, (calls, time_, flops) in sorted(kernels.items(), key=lambda x: -x[1][1])[:SHOWN]:
        rate = f"{flops / time_ / 1e9:.0f} Gflop/s" if flops else "–"
        share = f"{100 * time_ / total:.0f} %"
        lines.append([name, str(calls), quantity(time_ / calls, "s"), share, rate])
    return [
        f"## {row.title}",
        "",
        f"A call from Python: {quantity(call, 's')} on {plan.threads} of the threads. The program "
        f"alone: {quantity(whole, 's')} on one thread; its kernels one by one: "
        f"{quantity(total, 's')}, products {rate_of(kernels)}.",
        "",
        *table(["kernel", "calls", "each", "share", "rate"], lines),
        "",
    ]


def rate_of(kernels):
    """The share and the rate of all products."""
    total = sum(time for _, time, _ in kernels.values())
    products = [(time, flops) for _, time, flops in kernels.values() if flops]
    spent, flops = (sum(x) for x in zip(*products, strict=True)) if products else (0.0, 0)
    rate = f" at {flops / spent / 1e9:.0f} Gflop/s" if spent else ""
    return f"{100 * spent / total:.0f} % of it{rate}"


def main():
    """Measures the steps named, or those whose goals need an explanation, and writes the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("steps", nargs="*", metavar="ROW", default=STEPS)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    limit_processors(options.threads)
    denormals.flush()
    lines = ["# Where the time of a compiled step goes", ""]
    for row in chosen(options.steps, False):
        print(f"{row.name} ...", file=sys.stderr, flush=True)
        lines += anatomy(row)
    machine = describe()
    lines.append(
        f"{machine['machine']['processor']}, {options.threads} threads, {machine['date']}. Each "
        f"kernel alone, on one thread and on memory in the cache, medians of {ROUNDS}; its time "
        "includes about 0.1 µs to get there. Products are m × k × n. Made by "
        "`python -m benchmarks.anatomy`."
    )
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
