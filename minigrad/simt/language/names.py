"""What a name in a kernel stands for: a local variable, a constant, a function, an intrinsic."""

import ast
import builtins
import sys
import types

import numpy as np

from minigrad.errors import is_generated
from minigrad.simt.language.language import PATHS, Intrinsic

_CUDA_MODULES = ("numba.cuda", "numba_cuda.numba.cuda", "numba_cuda_mlir.cuda")
_TYPE_NAMES = {
    **{name: np.dtype(name) for name in ("int8", "int16", "int32", "int64")},
    **{name: np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64")},
    **{name: np.dtype(name) for name in ("float16", "float32", "float64")},
    "bool": np.dtype(bool),
    "boolean": np.dtype(bool),
}


def is_cuda_module(value):
    """Return whether a value is Numba's cuda module, compiled or simulated."""
    return isinstance(value, types.ModuleType) and value.__name__.startswith(_CUDA_MODULES)


def is_pythons(value):
    """Return whether a value is a number type of Python itself, not a dtype equal to one."""
    return any(value is kind for kind in (int, float, bool))


def as_dtype(value):
    """Return the dtype of a NumPy or Numba type, a dtype or its name; None for anything else."""
    if isinstance(value, np.dtype):
        return value
    if isinstance(value, type):
        known = issubclass(value, np.generic) or value in (int, float, bool)
        return np.dtype(value) if known else None
    if isinstance(value, str):
        return _TYPE_NAMES.get(value)
    if type(value).__module__.startswith(("numba.", "numba_cuda", "minigrad.")):
        return _TYPE_NAMES.get(str(value).removeprefix("minigrad."))
    return None


def device_function(value):
    """Return the Python function of a device function; None if Numba would not accept the value.

    Accepted are dispatchers (`cuda.jit`, `numba.njit`: anything with `py_func`), functions with an
    attribute `is_device`, and those of minigrad's own kernel files.
    """
    inner = getattr(value, "py_func", None)
    if isinstance(inner, types.FunctionType):
        return inner
    if not isinstance(value, types.FunctionType):
        return None
    marked = getattr(value, "is_device", False) or is_generated(value.__code__.co_filename)
    return value if marked else None


def constant(value):
    """Convert a Python value's numbers to NumPy scalars; return None if it is no constant."""
    if isinstance(value, bool):
        return np.bool_(value)
    if isinstance(value, int):
        for kind in (np.int64, np.uint64):
            if np.iinfo(kind).min <= value <= np.iinfo(kind).max:
                return kind(value)
        return None
    if isinstance(value, float):
        return np.float64(value)
    if isinstance(value, np.generic):
        return value if value.dtype.kind in "biuf" else None
    if isinstance(value, tuple):
        parts = tuple(constant(part) for part in value)
        return None if any(part is None for part in parts) else parts
    return value if isinstance(value, str) else None


def intrinsic_path(value):
    """Return the path of a stub of Numba's module (`from numba.cuda import grid`), or None."""
    if isinstance(value, Intrinsic):
        return value.path
    if not (getattr(value, "__module__", None) or "").startswith(_CUDA_MODULES):
        return None
    for name in _CUDA_MODULES:
        for path in {p.split(".")[0] for p in PATHS}:
            if path and getattr(sys.modules.get(name), path, None) is value:
                return path
    return None


MISSING = object()


class Scope:
    """The names of one function.

    Attributes:
        slots: local variable -> its number.
        used: values (the scope that looked up a name, the name, its value), to detect changes.
    """

    def __init__(self, source):
        tree, function = source.tree, source.function
        names = [a.arg for a in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs)]
        names += [
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        ]
        self.slots = {name: k for k, name in enumerate(dict.fromkeys(names))}
        self._cells = dict(
            zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        )
        self._globals = function.__globals__
        self.used = {}

    def outer(self, name):
        """Return the value of a name that is not local, or MISSING; note that it was used."""
        value = self.now(name)
        self.used[id(self), name] = self, name, value
        return value

    def now(self, name):
        """Return the same as `outer`, without noting the use."""
        if name in self._cells:
            try:
                return self._cells[name].cell_contents
            except ValueError:
                return MISSING
        return self._globals.get(name, getattr(builtins, name, MISSING))

    def static(self, node):
        """Return what `name` or `module.name` means outside the kernel; MISSING if it is a value.

        Intrinsics, including those of Numba's module, are returned as `Intrinsic`s.
        """
        if isinstance(node, ast.Name):
            if node.id in self.slots:
                return MISSING
            value = self.outer(node.id)
            path = None if value is MISSING else intrinsic_path(value)
            return value if path is None else Intrinsic(path)
        if not isinstance(node, ast.Attribute):
            return MISSING
        base = self.static(node.value)
        if base is MISSING:
            return MISSING
        if is_cuda_module(base):
            return Intrinsic(node.attr)
        if isinstance(base, Intrinsic):
            return Intrinsic(f"{base.path}.{node.attr}" if base.path else node.attr)
        value = getattr(base, node.attr, MISSING)
        if value is MISSING and getattr(base, "__name__", "") == "minigrad.cuda":
            return Intrinsic(node.attr)  # refused as unknown, with the nearest known name
        if isinstance(base, types.ModuleType) and value is not MISSING:
            path = intrinsic_path(value)
            return value if path is None else Intrinsic(path)
        return value
