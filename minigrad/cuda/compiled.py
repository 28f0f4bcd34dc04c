"""Kernels of one's own on a GPU: the same Python function, with Numba's names in it.

A kernel speaks of `minigrad.cuda`; Numba knows `numba.cuda`. So it is given a copy of the function
whose global names stand for Numba's. It is compiled once per types of arguments.
"""

import types

import numpy as np

from minigrad.array.array import Array
from minigrad.array.dtypes import DType
from minigrad.errors import NotInCudaError
from minigrad.kernels import backend, loader
from minigrad.kernels.gpu import compiler
from minigrad.simt.language import Intrinsic

DTYPES = ("float32", "float64", "int32", "int64", "uint8", "bool_")

_translated: dict = {}
_loaded: dict = {}


def launch(configured, values):
    """Asks the GPU for a launch; values: Arrays on "cuda", NumPy scalars, Python numbers."""
    device = backend.device_named("cuda")
    function = configured.kernel.py_func
    key = (function, device.capability, *map(_kind, values))
    kernel = _loaded.get(key)
    if kernel is None:
        argument_types = [_type(v) for v in values]
        given = translated(function), argument_types, [device.capability]
        (cubin,) = compiler.compile_function(*given)
        kernel = _loaded[key] = device.driver.load(cubin)
    words = [word for v in values for word in _words(v)]
    device.driver.launch(
        kernel, configured.blocks, configured.threads, int(configured.shared), words
    )


def _kind(value):
    if isinstance(value, tuple):
        return tuple(map(_kind, value))
    if isinstance(value, Array):
        return value.dtype.numpy, len(value.shape), value.is_contiguous
    return value.dtype if isinstance(value, np.generic) else type(value)


def _type(value):
    """Numba's type of an argument."""
    if isinstance(value, tuple):
        raise NotInCudaError(
            "tuples of arguments run in the simulator only", fix="pass the parts one by one"
        )
    if isinstance(value, Array):
        return compiler.array_type(value.dtype.numpy, len(value.shape), value.is_contiguous)
    known = compiler.names()["types"]
    if isinstance(value, np.generic):
        return getattr(known, value.dtype.name if value.dtype.name != "bool" else "boolean")
    return {bool: known.boolean, int: known.int64, float: known.float64}[type(value)]


def _words(value):
    """What a launch passes for an argument: of an array what Numba's kernels unpack."""
    if not isinstance(value, Array):
        plain = value.item() if isinstance(value, np.generic) else value
        is_single = isinstance(value, np.float32)
        return [value if is_single else float(plain) if isinstance(plain, float) else int(plain)]
    size = value.dtype.itemsize
    strides = [s * size for s in value.strides]
    return [0, 0, value.size, size, value.address, *value.shape, *strides]


def translated(function):
    """A copy of a function of `minigrad.cuda`, with the names of `numba.cuda`."""
    found = _translated.get(function)
    if found is None:
        given = function.__globals__
        names = {name: _numba(given[name]) for name in function.__code__.co_names if name in given}
        names["__name__"] = given.get("__name__", "kernels")
        cells = tuple(types.CellType(_numba(c.cell_contents)) for c in function.__closure__ or ())
        found = types.FunctionType(
            function.__code__, names, function.__name__, function.__defaults__, cells
        )
        _translated[function] = found
    return found


def _numba(value):
    """What stands for a global name of a kernel when Numba compiles it."""
    cuda = compiler.names()["cuda"]
    if isinstance(value, Intrinsic):
        return _intrinsic(value.path, cuda)
    if getattr(value, "is_device", False) and hasattr(value, "py_func"):
        return cuda.jit(device=True)(translated(value.py_func))
    if isinstance(value, DType):
        return value.numpy.type
    if isinstance(value, types.ModuleType):
        if value.__name__ == "minigrad.cuda":
            return cuda
        if value.__name__ == "minigrad":
            package = types.ModuleType("minigrad")
            known = {name: getattr(value, name) for name in DTYPES}
            vars(package).update({n: _numba(v) for n, v in known.items()}, cuda=cuda)
            return package
    return value


def _intrinsic(path, cuda):
    first, *rest = path.split(".") if path else [""]
    if not first:
        return cuda
    if not hasattr(cuda, first):  # load4 and its like: minigrad's own
        return getattr(loader.load("kernel = None\n", (), "gpu_cuda"), first)
    for part in (first, *rest):
        cuda = getattr(cuda, part)
    return cuda
