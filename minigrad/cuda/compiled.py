"""Compiles custom kernels for a GPU: translates their names to those of Numba.

A kernel uses `minigrad.cuda`, but Numba knows `numba.cuda`. So Numba gets the same source, line for
line, with its own names. It compiles a kernel once for each combination of argument types.
"""

import ast
import copy

import numpy as np

from minigrad.array.array import Array
from minigrad.array.dtypes import DType
from minigrad.devices import backend, loader
from minigrad.devices.gpu import compiler
from minigrad.errors import NotInCudaError
from minigrad.simt.language.language import Intrinsic
from minigrad.simt.language.names import MISSING, Scope
from minigrad.simt.language.source import Source

AS_THEY_ARE = np.float32, np.float16, np.uint64  # passed as they are: Python has no such numbers

_translated: dict = {}
_loaded: dict = {}


def launch(configured, values):
    """Launches a kernel on the GPU. values: Arrays on "cuda", NumPy scalars, Python numbers."""
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
    """Returns Numba's type of an argument."""
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
    """Returns the words that a launch passes for an argument; an array takes several."""
    if not isinstance(value, Array):
        plain = value.item() if isinstance(value, np.generic) else value
        is_itself = type(value) in AS_THEY_ARE
        return [value if is_itself else float(plain) if isinstance(plain, float) else int(plain)]
    size = value.dtype.itemsize
    strides = [s * size for s in value.strides]
    return [0, 0, value.size, size, value.address, *value.shape, *strides]


def translated(function, callers=()):
    """Returns a copy of the function that Numba can compile, with the names of `numba.cuda`.

    callers: functions under translation that call this one; a recursion raises.
    """
    translation = _translated.get(function)
    if translation is None:
        translation = _translated[function] = _Names(
            Source(function), (*callers, function)
        ).function()
    return translation


class _Names(ast.NodeTransformer):
    """Replaces names of minigrad in a kernel's tree with Numba's. Other names stay the same."""

    def __init__(self, source, callers):
        self.source, self.scope, self.callers = source, Scope(source), callers
        self.cuda = compiler.names()["cuda"]
        code, given = source.function.__code__, source.function.__globals__
        self.names = {name: given[name] for name in code.co_names if name in given}
        for name, cell in zip(code.co_freevars, source.function.__closure__ or (), strict=True):
            self.names[name] = cell.cell_contents
        self.names["__name__"] = given.get("__name__", "kernels")

    def function(self):
        """Returns the new function, with the line numbers of the old one."""
        tree = copy.deepcopy(self.source.tree)
        # drop what Python evaluates at the `def`: decorators, annotations and defaults
        tree.decorator_list, tree.returns = [], None
        for argument in ast.walk(tree.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        tree.args.defaults = [ast.Constant(None) for _ in tree.args.defaults]
        tree.body = [self.visit(statement) for statement in tree.body]
        module = ast.fix_missing_locations(ast.Module([tree], []))
        made = dict(self.names)
        exec(compile(module, self.source.file, "exec"), made)
        made[tree.name].__defaults__ = self.source.function.__defaults__
        return made[tree.name]

    def visit_Attribute(self, node):
        return self._named(node) or self.generic_visit(node)

    def visit_Name(self, node):
        return self._named(node) or node

    def _named(self, node):
        """Returns the replacement of a name such as `cuda.grid`, or None."""
        named = self.scope.static(node) if isinstance(node.ctx, ast.Load) else MISSING
        if isinstance(named, Intrinsic) and named.path:
            return self._intrinsic(named.path, node)
        function = getattr(named, "py_func", None)
        if getattr(named, "is_device", False) and function is not None:
            if function in self.callers:
                raise self.source.recursion(node, function)
            value = self.cuda.jit(device=True)(translated(function, self.callers))
        elif isinstance(named, DType):
            if named.is_coded:
                raise NotInCudaError(
                    f"kernels of your own have no {named}", fix="compute in mg.float32"
                )
            value = named.numpy.type
        else:
            return None
        return self._global(f"_minigrad_{len(self.names)}", value, node)

    def _global(self, name, value, node):
        self.names[name] = value
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def _intrinsic(self, path, node):
        first, *rest = path.split(".")
        if not hasattr(self.cuda, first):  # minigrad's own, such as load4
            own = loader.load("kernel = None\n", ("gpu_tensor",), "gpu_cuda")
            return self._global(f"_minigrad_{first}", getattr(own, first), node)
        out = self._global("_minigrad_cuda", self.cuda, node)
        for part in (first, *rest):
            out = ast.copy_location(ast.Attribute(out, part, ast.Load()), node)
        return out
