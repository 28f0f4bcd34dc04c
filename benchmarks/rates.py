"""What the machine itself can do: `python -m benchmarks.rates THREADS` prints it as JSON.

Copy bandwidth counts the bytes read and those written; it depends on which cache holds the arrays,
so it is measured for several sizes, to another array and from an array to itself (as an optimizer
works), and the faster one counts. The BLAS rate is that of NumPy's float32 product of square
matrices, which is as good as it gets.
"""

import json
import sys
import threading
import time

import numpy as np

SIZES = [2**k for k in (20, 22, 24, 26, 28)]  # bytes moved by a copy: half of them read
PRODUCTS = [256, 512, 1024]
SECONDS = 0.25


def best(work, seconds):
    """The shortest time of `work()` among as many as fit into `seconds`, at least five."""
    found, end = [], time.perf_counter() + seconds
    while len(found) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def to_another(source, target):
    """A copy."""
    np.copyto(target, source)


def to_itself(source, target):
    """Reads and writes the same array: no cache line is fetched only to be overwritten."""
    np.negative(source, out=source)


def copy_bandwidth(copy, nbytes, threads, seconds=SECONDS):
    """Bytes per second of copies by all threads at once, that together move `nbytes` each time."""
    rates, barrier = [0.0] * threads, threading.Barrier(threads)

    def run(k):
        source = np.ones(max(1, nbytes // threads // 8), np.float32)
        target = np.zeros_like(source)
        # Small copies are repeated within a measurement, so that the clock does not count.
        times = max(1, 2**20 // source.nbytes)

        def work():
            for _ in range(times):
                copy(source, target)

        work()
        barrier.wait()
        rates[k] = 2 * source.nbytes * times / best(work, seconds)

    workers = [threading.Thread(target=run, args=(k,)) for k in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(rates)


def blas_rate(seconds=SECONDS):
    """Floating-point operations per second, with BLAS's own threads."""
    rates = []
    for n in PRODUCTS:
        a, b = np.ones((n, n), np.float32), np.ones((n, n), np.float32)
        out = np.empty_like(a)
        rates.append(2 * n**3 / best(lambda a=a, b=b, out=out: np.matmul(a, b, out=out), seconds))
    return max(rates)


def measured(threads):
    """{"copy": [[bytes, bytes per second], ...], "blas": operations per second}."""
    copies = [
        [nbytes, max(copy_bandwidth(copy, nbytes, threads) for copy in (to_another, to_itself))]
        for nbytes in SIZES
    ]
    return {"copy": copies, "blas": blas_rate()}


if __name__ == "__main__":
    print(json.dumps(measured(int(sys.argv[1]))))
