"""Runs learners' kernels in the place of the engine's: CUDA kernels on GPUs, Numba's on the CPU."""

import inspect
from collections import Counter

from numba.core.registry import CPUDispatcher

from minigrad.array.layout import contiguous_strides
from minigrad.course.seam_parts import Part, read_only
from minigrad.cuda.jit import Kernel
from minigrad.devices.backend import device_of
from minigrad.devices.backend import values as values_of
from minigrad.errors import SeamError
from minigrad.tape.variable import Variable

THREADS = 128  # per block
# For each kernel of `mg.use(kernels={...})` the operation that it replaces, and its arguments.
KERNELS = {
    "softmax": ("softmax_row", ("x", "out")),
    "sigmoid": ("sigmoid", ("x", "out")),
    "matmul": ("matmul", ("a", "b", "c")),
}
GPUS = ("simt", "cuda")
ON_A_GPU = " on a GPU"  # ends the label of a CUDA kernel
ON_GPUS = ("softmax",)  # those that may be CUDA kernels
DTYPES = {"cpu": ("float32", "float64"), "simt": ("float32",), "cuda": ("float32",)}


class Lenient:
    """Wraps a kernel that leaves other devices and dtypes to the engine instead of raising."""

    def __init__(self, kernel):
        self.kernel = kernel


class LearnersKernels:
    """kernels={'softmax': f}: launches f(x, out), float32 (rows, n), with one block per row.

    Numba's kernels for the CPU are called with the arrays instead.

    Attributes:
        launches: how often each kernel ran.
    """

    def __init__(self, parts: dict[str, dict[str, Part]], lenient: set):
        self.parts = {KERNELS[name][0]: (name, kinds) for name, kinds in parts.items()}
        self.kernels = {
            op: Kernel(kinds["gpu"].function)
            for op, (_, kinds) in self.parts.items()
            if "gpu" in kinds
        }
        self.lenient = lenient  # names of the kernels that leave other cases to the engine
        self.launches: Counter = Counter()

    def __call__(self, op, operands, out=None):
        """Return the output Array of an operation, None to leave it to the engine."""
        if op not in self.parts:
            return None
        name, kinds = self.parts[op]
        x = operands[0]
        kind = "gpu" if x.device in GPUS else "cpu"
        dtypes = {o.dtype.name for o in operands}
        fits = kind in kinds and x.device in DTYPES and dtypes <= {*DTYPES[x.device]}
        if name == "matmul" and any(len(o.shape) != 2 for o in operands):
            return None
        if not fits:
            if name in self.lenient:
                return None
            self.refuse(kinds, kind, x, dtypes)
        out = self.output(op, operands, out)
        part = kinds[kind]
        if kind == "cpu":
            arrays = [x if name == "matmul" else device_of(x).contiguous(x), *operands[1:]]
            views = [read_only(a) for a in arrays]
            target = values_of(out)
            if name != "matmul":  # rows of a softmax; one row of all elements else
                shape = (-1, x.shape[-1]) if name == "softmax" else (-1,)
                views, target = [view.reshape(shape) for view in views], target.reshape(shape)
            part(*views, target)
        else:
            self.launch(op, part, x, out)
        self.launches[name] += 1
        return out

    def refuse(self, kinds, kind, x, dtypes):
        """Raise the SeamError for values that no kernel takes."""
        part = kinds.get(kind) or next(iter(kinds.values()))
        if kind not in kinds or x.device not in DTYPES:
            where = ("cpu",) if "cpu" in kinds else GPUS
            raise SeamError(
                f"mg.use({part.seam}={part.name}): a kernel runs on {' and '.join(where)}",
                f"values on {x.device}",
                f"move them there: x.to({where[0]!r})",
                where=part.where,
            )
        wanted = " or ".join(DTYPES[x.device])
        part.refuse(f"values of {wanted}", f"{', '.join(sorted(dtypes))}", "x.astype('float32')")

    def output(self, op, operands, out):
        """Return an Array for the result, full of nan: that shows entries that nobody writes."""
        x = operands[0]
        shape = (x.shape[0], operands[1].shape[1]) if op == "matmul" else x.shape
        device = device_of(x)
        if out is None or out.shape != shape:
            out = device.empty(shape, x.dtype)
        device.fill(out, float("nan"))
        return out

    def launch(self, op, part, x, out):
        """Launch a CUDA kernel over the rows of x, with a block for each."""
        shape = (x.size // x.shape[-1], x.shape[-1])
        strides = contiguous_strides(shape)
        rows = [Variable(a.view(shape, strides)) for a in (device_of(x).contiguous(x), out)]
        part.run(self.kernels[op][shape[0], THREADS], *rows)


def kernels(name, table):
    """Return the LearnersKernels of mg.use(kernels=table); raise SeamError for a wrong table."""
    if not isinstance(table, dict):
        raise SeamError(
            f"mg.use({name}=...): wanted a dict", type(table).__name__, "kernels={'softmax': f}"
        )
    parts: dict[str, dict[str, Part]] = {}
    lenient = set()
    for key, given in table.items():
        if key not in KERNELS:
            raise SeamError(
                f"mg.use({name}=...): wanted kernels", f"{key!r}", f"one of {', '.join(KERNELS)}"
            )
        for kernel in given if isinstance(given, tuple) else (given,):
            if isinstance(kernel, Lenient):
                lenient.add(key)
                kernel = kernel.kernel
            function = inspect.unwrap(getattr(kernel, "py_func", kernel))
            _check_signature(name, key, function)
            is_for_cpu = isinstance(kernel, CPUDispatcher)
            if not is_for_cpu and key not in ON_GPUS:
                raise SeamError(
                    f"mg.use({name}={{{key!r}: ...}}): wanted a kernel for the CPU",
                    f"{function.__name__}, which Numba has not compiled",
                    "put @njit above it",
                )
            part = Part(f"{name}[{key!r}]", kernel if is_for_cpu else function)
            if not is_for_cpu:
                part.label += ON_A_GPU
            parts.setdefault(key, {})["cpu" if is_for_cpu else "gpu"] = part
    return LearnersKernels(parts, lenient)


def _check_signature(name, key, function):
    arguments = KERNELS[key][1]
    if inspect.isfunction(function):
        parameters = inspect.signature(function).parameters.values()
        needed = sum(p.default is p.empty for p in parameters)
        if needed <= len(arguments) <= len(parameters):
            return
    count = {2: "two", 3: "three"}[len(arguments)]
    listed = f"{', '.join(arguments[:-1])} and {arguments[-1]}"
    raise SeamError(
        f"mg.use({name}={{{key!r}: ...}}): wanted a kernel of {count} arguments: {listed}",
        f"{function!r:.60}",
    )
