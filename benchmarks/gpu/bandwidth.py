"""Work that is bound by memory, beside a copy by the driver in the same run."""

import minigrad as mg
from benchmarks.gpu.timing import Row, seconds_on_gpu

ELEMENTS = 1 << 26  # 256 MB of float32: far beyond any cache


def copy_rate(device):
    """Bytes a second of the driver's own copy within the GPU, read and written."""
    source, target = (device.pool.take(4 * ELEMENTS) for _ in range(2))
    try:
        spent = seconds_on_gpu(
            device,
            lambda: device.driver.between(target.address, source.address, 4 * ELEMENTS),
        )
    finally:
        for buffer in (source, target):
            buffer.owners = 0
            device.pool.release(buffer)
    return 8 * ELEMENTS / spent


def rows(device):
    """The rows of the table; the first is the copy that the others are compared with."""
    rate = copy_rate(device)
    yield Row("copy by the driver", rate / 1e9, "GB/s")
    with mg.device("cuda"), mg.no_grad():
        x, y = mg.rand((ELEMENTS,)), mg.rand((ELEMENTS,))
        for what, function, words in (
            ("x + y", lambda: x + y, 3),
            ("relu(x)", lambda: mg.relu(x), 2),
            ("exp(x)", lambda: mg.exp(x), 2),
            ("copy by our kernel", lambda: x * 1.0, 2),
        ):
            yield _row(device, rate, what, function, 4 * words * ELEMENTS, 0.85)
        tall = x.reshape((ELEMENTS // 1024, 1024))
        wide = x.reshape((1024, ELEMENTS // 1024))
        for what, function in (
            ("sum of all", lambda: mg.sum(x)),
            ("sum of rows of 1024", lambda: mg.sum(tall, axis=1)),
            ("sum of columns of 65,536", lambda: mg.sum(tall, axis=0)),
            ("largest of rows of 65,536", lambda: mg.max(wide, axis=1)),
        ):
            yield _row(device, rate, what, function, 4 * ELEMENTS, 0.85)
        scale, shift = mg.rand((1024,)), mg.rand((1024,))
        long = x.reshape((ELEMENTS // 16384, 16384))
        for what, function in (
            ("softmax of rows of 1024", lambda: mg.softmax(tall, axis=-1)),
            ("softmax of rows of 16,384", lambda: mg.softmax(long, axis=-1)),
            ("layer norm of rows of 1024", lambda: mg.layer_norm(tall, scale, shift)),
        ):
            yield _row(device, rate, what, function, 8 * ELEMENTS, 0.75)


def _row(device, rate, what, function, nbytes, goal):
    found = nbytes / seconds_on_gpu(device, function)
    return Row(what, found / 1e9, "GB/s", found / rate, goal)
