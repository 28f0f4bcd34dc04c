"""Runs learners' CUDA kernels for operations along rows, with one block per row."""

import inspect
from collections import Counter

from minigrad.array.layout import contiguous_strides
from minigrad.course.seam_parts import Part
from minigrad.cuda.jit import Kernel
from minigrad.devices.backend import device_of
from minigrad.errors import SeamError
from minigrad.tape.variable import Variable

THREADS = 128  # per block
# The operation that each kernel of `mg.use(kernels={...})` replaces.
KERNELS = {"softmax": "softmax_row"}
DEVICES = ("simt", "cuda")


class OnGpus:
    """Wraps a kernel that leaves other devices and dtypes to the engine instead of raising."""

    def __init__(self, kernel):
        self.kernel = kernel


class RowKernels:
    """kernels={'softmax': f}: launches f(x, out), float32 (rows, n), with one block per row.

    Attributes:
        launches: how often each kernel ran.
    """

    def __init__(self, parts: dict[str, Part], lenient: frozenset):
        self.parts = {KERNELS[name]: (name, part) for name, part in parts.items()}
        self.kernels = {op: Kernel(part.function) for op, (_, part) in self.parts.items()}
        self.lenient = lenient  # names of the kernels that leave other cases to the engine
        self.launches: Counter = Counter()

    def __call__(self, op, operands):
        """Return the output Array of an operation along rows, None to leave it to the engine."""
        if op not in self.parts:
            return None
        name, part = self.parts[op]
        [x] = operands
        if name in self.lenient and (x.device not in DEVICES or x.dtype.name != "float32"):
            return None
        if x.device not in DEVICES:
            raise SeamError(
                f"mg.use({part.seam}={part.name}): a kernel runs on {' and '.join(DEVICES)}",
                f"values on {x.device}",
                f"move them there: x.to({DEVICES[0]!r})",
                where=part.where,
            )
        if x.dtype.name != "float32":
            part.refuse("rows of float32", f"{x.dtype}", "x.astype('float32')")
        device, shape = device_of(x), (x.size // x.shape[-1], x.shape[-1])
        out = device.empty(x.shape, x.dtype)
        device.fill(out, float("nan"))  # exposes entries that the kernel does not write
        strides = contiguous_strides(shape)
        rows = [Variable(a.view(shape, strides)) for a in (device.contiguous(x), out)]
        try:
            self.kernels[op][shape[0], THREADS](*rows)
        except Exception as error:
            error.add_note(f"(raised by {part.name}, which runs in the engine as {part.seam})")
            raise
        self.launches[name] += 1
        return out


def row_kernels(name, table):
    """Return the RowKernels of mg.use(kernels=table); raise SeamError for a wrong table."""
    if not isinstance(table, dict):
        raise SeamError(
            f"mg.use({name}=...): wanted a dict", type(table).__name__, "kernels={'softmax': f}"
        )
    parts, lenient = {}, frozenset(k for k, f in table.items() if isinstance(f, OnGpus))
    for key, kernel in table.items():
        kernel = getattr(kernel, "kernel", kernel)
        function = inspect.unwrap(getattr(kernel, "py_func", kernel))
        if key not in KERNELS:
            raise SeamError(
                f"mg.use({name}=...): wanted kernels", f"{key!r}", f"one of {', '.join(KERNELS)}"
            )
        if not inspect.isfunction(function) or len(inspect.signature(function).parameters) != 2:
            raise SeamError(
                f"mg.use({name}={{{key!r}: ...}}): wanted a kernel of two arguments: x and out",
                f"{function!r:.60}",
            )
        parts[key] = Part(f"{name}[{key!r}]", function)
    return RowKernels(parts, lenient)
