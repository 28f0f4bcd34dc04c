"""Matrix products: our kernel beside cuBLAS, in float32 without tensor cores."""

import minigrad as mg
from benchmarks.gpu.timing import Row, seconds_on_gpu
from minigrad.devices.gpu.driver import matmul as cuda_matmul

SHAPES = ((512, 512, 512), (1024, 1024, 1024), (4096, 4096, 4096), (128, 784, 512), (64, 8192, 64))


def rows(device):
    """Two rows a shape where the library is installed, else one."""
    before = cuda_matmul.choice()
    try:
        with mg.device("cuda"), mg.no_grad():
            for m, k, n in SHAPES:
                yield from _shape(device, m, k, n)
    finally:
        cuda_matmul.choose(before)


def _shape(device, m, k, n):
    a, b = mg.randn((m, k)), mg.randn((k, n))
    rates = {}
    for which in ("library", "own") if cuda_matmul.is_installed() else ("own",):
        cuda_matmul.choose(which)
        rates[which] = 2 * m * k * n / seconds_on_gpu(device, lambda: a @ b)
    what, library = f"({m}, {k}) @ ({k}, {n})", rates.get("library")
    if library is not None:
        yield Row(f"{what}, cuBLAS", library / 1e12, "Tflop/s")
    goal = 0.5 if library and min(m, k, n) >= 1024 else None
    share = rates["own"] / library if library else None
    yield Row(f"{what}, our kernel", rates["own"] / 1e12, "Tflop/s", share, goal if share else None)
