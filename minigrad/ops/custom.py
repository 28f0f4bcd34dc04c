"""`mg.kernel`: makes a differentiable operation from a function that Numba compiles."""

import ast
import functools
import inspect
import textwrap

import numpy as np

from minigrad.arguments import function as function_given
from minigrad.arguments import short, shown
from minigrad.array.array import Array, ndarray
from minigrad.devices.backend import device_of
from minigrad.devices.narrow import narrowed, wide_of, widened
from minigrad.devices.numba_errors import explained
from minigrad.errors import (
    ArgumentError,
    ArgumentTypeError,
    DeviceError,
    DTypeError,
    KernelError,
    ShapeError,
    describe_line,
)
from minigrad.hints import refuse_unknown_arguments, teaching
from minigrad.ops.operands import constant, first_variable
from minigrad.parsing import tree_of
from minigrad.seams import seams
from minigrad.tape.function import Function, once_differentiable
from minigrad.tape.variable import Variable, filled


class Kernel:
    """A compiled function over arrays that acts on Variables; made by `mg.kernel`.

    Its decorator `gradient` registers the function that computes the gradient.
    """

    def __init__(self, function, shape=None):
        self.function, self.shape = function, shape
        parameters = inspect.signature(function).parameters.values()
        self.inputs = tuple(p.name for p in parameters)[:-1]
        if not self.inputs or any(p.kind > p.POSITIONAL_OR_KEYWORD for p in parameters):
            raise ArgumentError(
                f"kernel {function.__name__}: wanted inputs and then an output to write to",
                f"def {function.__name__}{inspect.signature(function)}",
                "def kernel(x, out): ...",
            )
        self._gradient = None
        functools.update_wrapper(self, function)
        self.apply = _function_of(self).apply

    @teaching
    def gradient(self, function):
        """Registers a function as the kernel of the gradient.

        It takes dy, the inputs, and an array to fill for each input, of the input's shape. Numbers
        take no gradient.
        """
        _python_function(f"the gradient of {self.__name__}", function)
        wanted = 1 + 2 * len(self.inputs)
        got = len(inspect.signature(function).parameters)
        if got != wanted:
            names = ", ".join(["dy", *self.inputs, *(f"d{n}" for n in self.inputs)])
            raise ArgumentError(
                f"the gradient of {self.__name__}: wanted {wanted} arguments, ({names})",
                f"{got}: {function.__name__}{inspect.signature(function)}",
            )
        self._gradient = function
        return function

    def __call__(self, *inputs, **named):
        if named or len(inputs) != len(self.inputs):
            raise ArgumentTypeError(
                f"kernel {self.__name__}: wanted {len(self.inputs)} inputs by place, "
                f"({', '.join(self.inputs)})",
                ", ".join([f"{len(inputs)}", *(f"{name}=" for name in named)]),
                "the output is made for you",
            )
        near, plain = first_variable(inputs), (Variable, int, float)
        return self.apply(
            *(x if isinstance(x, plain) else constant(x, self.__name__, near) for x in inputs)
        )

    def run(self, inputs):
        """Runs the kernel on Variables and numbers, without recording; returns the output."""
        self._refuse_trace()
        first = first_variable(inputs)
        if first is None:
            raise ArgumentTypeError(f"kernel {self.__name__}: wanted a Variable among its inputs")
        for x in inputs:
            if isinstance(x, Variable) and x.device != "cpu":
                raise DeviceError(
                    f"kernel {self.__name__}: wanted arrays on cpu, for which Numba compiles it",
                    f"{x.describe()} on {x.device}",
                    "x.to('cpu'), or write it as a CUDA kernel with @mg.cuda.jit",
                )
        shape = first.shape if self.shape is None else self.shape(*(_shape(x) for x in inputs))
        if not isinstance(shape, tuple):
            raise ShapeError(f"kernel {self.__name__}: wanted shape= to give a tuple", short(shape))
        device = device_of(first.array)
        out = device.empty(shape, wide_of(first.dtype))
        held = list(map(_in_order, inputs))  # their memory must not be used again meanwhile
        arrays = list(map(_shown, held))
        _refuse_writes(self.function, arrays)
        call(compiled(self.function), (*arrays, ndarray(out)), self.function)
        return Variable(narrowed(device, out, first.dtype))

    def run_gradient(self, dy, inputs):
        """Computes the gradients of the inputs; None for numbers."""
        self._refuse_trace()
        if self._gradient is None:
            raise KernelError(
                f"kernel {self.__name__} has no gradient",
                fix=f"write one and decorate it with @{self.__name__}.gradient",
            )
        outs = [
            filled(x.array, 0.0, x.shape, wide_of(x.dtype)) if isinstance(x, Variable) else None
            for x in inputs
        ]
        held = [_in_order(dy), *map(_in_order, inputs)]
        arguments = list(map(_shown, held))
        _refuse_writes(self._gradient, arguments)
        arguments += [0.0 if out is None else ndarray(out) for out in outs]
        call(compiled(self._gradient), arguments, self._gradient)
        return tuple(
            None if out is None else Variable(narrowed(device_of(out), out, x.dtype))
            for x, out in zip(inputs, outs, strict=True)
        )

    def _refuse_trace(self):
        seams.effects.refuse(
            f"kernel {self.__name__}: machine code from Numba cannot be part of a compiled step",
            "call it outside the step, or write it with functions of minigrad",
        )


def _python_function(where, function):
    """Raises if this is not a function that Numba compiles."""
    if not inspect.isfunction(function):
        raise ArgumentTypeError(
            f"{where}: wanted a Python function",
            shown(function),
            "write it with def; types are found at the call",
        )


def _shape(x):
    return x.shape if isinstance(x, Variable) else ()


def _in_order(x):
    """Returns an Array in C order of a Variable's values, or the number itself.

    Numba has no narrow types: their values are in the type in which kernels compute.
    """
    if not isinstance(x, Variable):
        return x
    device = device_of(x.array)
    return device.contiguous(widened(device, x.array))


def _shown(x):
    """Returns a read-only NumPy array over an Array, which must live as long, or the number itself.

    The version counter would miss a write to it. Numba compiles no writes to a read-only array.
    """
    if not isinstance(x, Array):
        return x
    values = ndarray(x)
    values.flags.writeable = False
    return values


def _refuse_writes(function, inputs):
    """Raises if a kernel stores into one of its inputs, which other nodes may have saved."""
    names = tuple(inspect.signature(function).parameters)
    for name, value in zip(names, inputs, strict=False):
        if isinstance(value, np.ndarray) and name in stored_names(function):
            raise KernelError(
                f"kernel {function.__name__}: wanted inputs that are only read",
                f"a write to {name}, which the version counter would miss",
                f"write to {names[-1]}, or to a copy: {name}_copy = {name}.copy()",
                where=describe_line(function.__code__.co_filename, stored_names(function)[name]),
            )


@functools.cache
def stored_names(function):
    """Returns {parameter: source line where the function stores through it}.

    Numba compiles `x.flat[0] = y` and `x += y` even for read-only arrays. Parameters that are
    assigned another value are left to Numba's check.
    """
    try:
        tree = tree_of(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):  # no source: made by exec, or typed at a prompt
        return {}
    stored, bound = {}, set()
    for node in ast.walk(tree):
        targets = [node.target] if isinstance(node, (ast.AugAssign, ast.AnnAssign)) else []
        targets += node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            root = target
            while isinstance(root, (ast.Subscript, ast.Attribute)):
                root = root.value
            if not isinstance(root, ast.Name):
                continue
            if root is target and not isinstance(node, ast.AugAssign):
                bound.add(root.id)
            else:
                line = function.__code__.co_firstlineno + node.lineno - 1
                stored.setdefault(root.id, line)
    return {name: line for name, line in stored.items() if name not in bound}


def _function_of(kernel):
    """Makes the Function that records a kernel."""

    class FromKernel(Function):
        @staticmethod
        def forward(ctx, *inputs):
            ctx.numbers = [None if isinstance(x, Variable) else x for x in inputs]
            ctx.save_for_backward(*(x for x in inputs if isinstance(x, Variable)))
            for x, needs in zip(inputs, ctx.needs_input_grad, strict=True):
                if needs and not x.dtype.is_float:
                    raise DTypeError(f"kernel {kernel.__name__}: wanted floats", x.describe())
            return kernel.run(inputs)

        @staticmethod
        @once_differentiable
        def backward(ctx, dy):
            saved = iter(ctx.saved)
            inputs = [next(saved) if n is None else n for n in ctx.numbers]
            return kernel.run_gradient(dy, inputs)

    FromKernel.__name__ = FromKernel.__qualname__ = kernel.__name__
    return FromKernel


@functools.cache
def compiled(function):
    """Compiles the function with Numba, for each combination of argument types at its first call.

    It is not cached on disk, because Numba would miss a change in functions that this one calls.
    """
    import numba  # here, so that importing minigrad stays fast

    return numba.njit(nogil=True, error_model="numpy")(function)


def call(dispatcher, arguments, function):
    """Runs a compiled function. An error of Numba becomes a KernelError."""
    from numba.core.errors import NumbaError  # here for the same reason

    try:
        dispatcher(*arguments)
    except NumbaError as error:
        types = [
            f"{a.dtype}[{a.ndim}-D]" if hasattr(a, "ndim") else type(a).__name__ for a in arguments
        ]
        fix = (
            "loops over elements, numbers and arrays compile; lists of mixed types, dicts and most "
            "libraries do not"
        )
        raise explained(error, function, types, fix) from None


@teaching
def kernel(function=None, *, shape=None, **options):
    """Makes an operation from a function over arrays, which Numba compiles.

    Its `gradient` makes it differentiable.

    Args:
        function: function(inputs..., out) gets NumPy arrays in C order or numbers, and fills out.
        shape: a function from the inputs' shapes to the output's shape. By default the output has
            the shape of the first input.

    >>> import minigrad as mg
    >>> @mg.kernel
    ... def cube(x, out):
    ...     for i in range(x.size):
    ...         out.flat[i] = x.flat[i] ** 3
    >>> @cube.gradient
    ... def cube_gradient(dy, x, dx):
    ...     for i in range(x.size):
    ...         dx.flat[i] = dy.flat[i] * 3 * x.flat[i] ** 2
    >>> x = mg.variable([1.0, 2.0], requires_grad=True)
    >>> cube(x).sum().backward()
    >>> x.grad.tolist()
    [3.0, 12.0]
    """
    refuse_unknown_arguments("kernel", ("shape",), options, "kernel")
    if shape is not None:
        function_given("kernel", "shape", shape, "shape=lambda x: (x[0],), of the inputs' shapes")
    if function is None:
        return functools.partial(kernel, shape=shape)
    _python_function("kernel", function)
    return Kernel(function, shape)
