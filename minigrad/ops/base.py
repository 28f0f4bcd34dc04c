"""Base classes of operations: Elementwise, RowWise, Structural. They make plans and kernels."""

import inspect
import itertools
import sys

from minigrad.array.array import Array, View
from minigrad.array.dtypes import bool_, float32, float64, int64, promote
from minigrad.array.layout import broadcast_shapes, check_rank
from minigrad.devices.backend import device_of
from minigrad.errors import ShapeError
from minigrad.formulas.expression import Program, symbol
from minigrad.ops.fast import fast_path
from minigrad.ops.gradient_plan import ElementwisePlan, NumberPlan, RowPlan
from minigrad.ops.observers import announced, of_view
from minigrad.ops.operands import (
    check_operands,
    constant,
    first_variable,
    fitting_numbers,
    operand,
    storable,
)
from minigrad.ops.routes import by_route
from minigrad.ops.structural_plan import StructuralPlan
from minigrad.seams import seams
from minigrad.tape.function import Function
from minigrad.tape.modes import ANNOUNCED, SPAN, note, state
from minigrad.tape.node import Node
from minigrad.tape.saved import protected
from minigrad.tape.variable import Variable

registry = {}  # every op by its name
SHAPES = {  # {number of inputs: shapes} to test elementwise ops with that state no samples
    1: [((3, 4),), ((),), ((0,),), ((1,),)],
    2: [
        ((3, 4), (3, 4)), ((3, 4), (4,)), ((2, 1, 3), (4, 1)), ((), (2,)), ((0, 4), (4,)),
        ((1,), (1,)),
    ],
}  # fmt: skip


class Operation(Function):
    """An op of the table. Defining a subclass without docstring, gradients or samples raises."""

    samples: list = []  # tuples of input shapes for tests
    numbers: tuple = ()  # test values for the last inputs, if these are numbers
    inputs: tuple = ()
    routes_ints = True  # False if forward looks at the values of ints, or converts them first
    kinds: tuple = ()  # for each input, what it may be: "x" a Variable, "n" a number; () for "x"s
    takes_numbers = is_plain = commutes = takes_list = False
    stores_numbers = False  # True if a number is the result somewhere: the dtype must hold it
    is_view = False  # whether the output shares the input's memory
    attributes: tuple = ()  # names of the arguments after the inputs
    defaults: tuple = ()  # defaults of the last attributes

    def __init_subclass__(cls, abstract=False, **kwargs):
        super().__init_subclass__(**kwargs)
        if abstract:
            return
        if "->" not in (cls.__doc__ or "") and sys.flags.optimize < 2:  # -OO has no docstrings
            raise TypeError(
                f"op {cls.__name__}: wanted a docstring that gives shapes: (...) -> (...)"
            )
        cls.name = cls.__dict__.get("name") or _snake(cls.__name__)
        cls.calls = {}
        cls.prepare()
        if "apply" not in vars(cls):
            cls.apply = staticmethod(fast_path(cls, cls.otherwise))
        if not cls.samples:
            raise TypeError(f"op {cls.__name__}: wanted samples, a list of tuples of input shapes")
        registry[cls.name] = cls

    @classmethod
    def prepare(cls):
        """Sets attributes of the class from its body."""
        raise NotImplementedError

    @classmethod
    def plan(cls, mask, *count):
        """Returns the plan for the gradients of inputs in `mask`. count: the length of a list."""
        plan = cls.plans.get((mask, *count))
        if plan is None:
            plan = cls.plans[mask, *count] = cls.plan_type(cls, mask, *count)
        return plan

    @classmethod
    def otherwise(cls, *args):
        """Does what `apply` does where no fast path is known."""
        count = len(args) - len(cls.attributes)
        y = by_route(cls, args[:count], args[count:])
        return cls.slow_path(*args) if y is None else y

    @classmethod
    def observed(cls, args, variables, attributes=()):
        """Runs the op, and tells those who observe it."""
        if state.path in ANNOUNCED:
            return announced(cls, args, variables, attributes)
        y = cls.run(args, variables, attributes)
        if state.path == SPAN and y.node is not None:
            note(y.node)
        return y

    @classmethod
    def run(cls, args, variables, attributes=()):
        """forward and record. args: Variables, or numbers if elementwise; variables: the former."""
        if len(variables) > 1 or type(variables[0].array) is View:
            check_operands(cls.name, variables)
        operands, mask, bit = [], 0, 1
        for a in args:
            if isinstance(a, Variable):
                operands.append(a.array)
                if a._requires_grad:
                    mask |= bit
            else:
                operands.append(a)
            bit += bit
        out = cls.forward(*operands, *attributes)
        if not mask or not state.recording or not out.dtype.is_float or not cls.has_gradients:
            return of_view(variables[0], out) if cls.is_view else Variable(out)
        if type(out) is View:
            out.made_at = out.version
        return cls.record(args, operands, out, mask, attributes)

    @classmethod
    def record(cls, args, operands, out, mask, attributes=()):
        """A Variable whose node keeps what the gradients need."""
        replaced = None
        if seams.gradient_plan and cls.takes_numbers:
            replaced = seams.gradient_plan(cls, mask)
        plan = replaced or cls.plan(mask, *[len(args)] * cls.takes_list)
        kept = tuple(
            [
                protected(x) if isinstance(x, Array) else x
                for x in [out if i < 0 else operands[i] for i in plan.saved_index]
            ]
        )
        wanted = tuple([(x.shape, x.dtype) if isinstance(x, Array) else None for x in operands])
        if cls.takes_numbers and {*wanted} == {(out.shape, out.dtype)}:
            wanted = None
        edges = tuple([(a.node or a) if mask >> k & 1 else None for k, a in enumerate(args)])
        versions = tuple([x.version if isinstance(x, Array) else None for x in kept])
        return Variable(out, Node(plan, edges, kept, versions, wanted, attributes), True)


def _snake(name):
    out = name[0].lower()
    for before, c in itertools.pairwise(name):
        out += f"_{c.lower()}" if c.isupper() and not before.isupper() else c.lower()
    return out


class Elementwise(Operation, abstract=True):
    """An op that works element by element: formula(x, ...) and gradient(dy, names...).

    The parameters of gradient name the values to save: inputs, and `y` for the output. gradient
    returns one formula for each of the first inputs; the remaining ones take no gradient. result:
    'promote' (the common dtype of the inputs), 'real' (ints become float32) or 'bool'.
    """

    result = "promote"
    gradient_formulas: tuple = ()
    promotes: slice = slice(None)  # which inputs decide the dtype
    takes_bool = takes_numbers = True

    @classmethod
    def prepare(cls):
        cls.inputs = tuple(inspect.signature(cls.formula).parameters)
        cls.kinds = ("xn",) * len(cls.inputs)
        cls.samples = cls.samples or SHAPES.get(len(cls.inputs) - len(cls.numbers), [])
        if not hasattr(cls, "gradient"):
            raise TypeError(f"op {cls.__name__}: wanted gradient(dy, ...), or gradient = None")
        y = cls.formula(*map(symbol, cls.inputs))
        cls.program = Program(cls.inputs, [y])
        cls.plans, cls.plan_type = {}, ElementwisePlan
        cls.is_plain = (
            cls.forward.__func__ is Elementwise.forward.__func__
        )  # nothing to check first
        if cls.gradient is not None:
            asked = list(inspect.signature(cls.gradient).parameters)[1:]
            formulas = cls.gradient(symbol("dy"), *map(symbol, asked))
            cls.gradient_formulas = formulas if isinstance(formulas, tuple) else (formulas,)
        cls.has_gradients = bool(cls.gradient_formulas)

    @classmethod
    def number_plan(cls, mask):
        """Returns the plan for an Array and a number. mask: 1 if the Array is first, else 2."""
        return NumberPlan(cls, mask)

    @classmethod
    def result_dtype(cls, operands):
        """Returns the dtype of the output. Numbers never change a dtype within its kind."""
        if cls.result == "bool":
            return bool_
        dtype, number = None, None
        for x in operands[cls.promotes]:
            if isinstance(x, Array):
                dtype = x.dtype if dtype is None else promote(dtype, x.dtype)
            elif isinstance(x, float):
                number = float32
            elif number is None and not isinstance(x, bool):
                number = int64
        if dtype is None:
            dtype = number or bool_
        elif number is not None and (dtype.kind == "b" or (number.is_float and dtype.kind == "i")):
            dtype = number
        if cls.result == "real" and not dtype.is_float:
            return float32
        if not cls.takes_bool and dtype.kind == "b":
            return int64
        return dtype

    @classmethod
    def forward(cls, *operands):
        """Computes the output Array from Arrays and numbers."""
        arrays = [x for x in operands if isinstance(x, Array)]
        first = arrays[0]
        shape = first.shape
        if len(arrays) > 1:
            shape = broadcast_shapes(cls.name, *[x.shape for x in arrays])
        check_rank(cls.name, len(shape))
        dtype = cls.result_dtype(operands)
        if len(arrays) < len(operands):
            operands = fitting_numbers(cls.name, operands, dtype)
            if cls.stores_numbers and dtype.is_float:
                for x in operands[cls.promotes]:
                    if not isinstance(x, Array):
                        storable(cls.name, x, dtype)
        if seams.kernel and first.size:
            replaced = seams.kernel(cls.name, operands)
            if replaced is not None:
                return replaced
        device = device_of(first)
        out = device.empty_beside(operands, shape, dtype)
        device.elementwise(cls.program, operands, (out,))
        return out

    @classmethod
    def slow_path(cls, *args):
        """Runs the op on Variables and numbers, and records it if an input requires gradients."""
        args = [
            a if isinstance(a, (Variable, float, int)) else operand(a, cls.name, args) for a in args
        ]
        variables = [a for a in args if isinstance(a, Variable)]
        if not variables:
            args[0] = constant(args[0], cls.name)
            variables = [args[0]]
        return cls.observed(args, variables)


class RowWise(Elementwise, abstract=True):
    """A formula along the last axis, with row_sum, row_max, row_mean and column_of.

    keeps_row: whether the output has the elements of the row, or one element per row (size 1).
    Operands broadcast to the first input.
    """

    keeps_row = True
    routes_ints = False
    result = "real"
    promotes = slice(0, 1)

    @classmethod
    def prepare(cls):
        super().prepare()
        cls.plan_type = RowPlan

    @classmethod
    def run(cls, args, variables, attributes=()):
        """forward and record. Rows of ints are computed in float64: their squares may overflow."""
        x = args[0]
        if x.dtype.is_float:
            return super().run(args, variables)
        return cls.apply(x.to(float64), *args[1:]).to(float32)

    @classmethod
    def forward(cls, *operands):
        """Computes the output Array."""
        x = operands[0]
        if seams.kernel and x.size:
            replaced = seams.kernel(cls.name, operands)
            if replaced is not None:
                return replaced
        dtype = cls.result_dtype(operands)
        device = device_of(x)
        shape = x.shape
        for o in operands[1:]:
            fits = not isinstance(o, Array) or o.shape == shape[-1:]
            if not fits and broadcast_shapes(cls.name, shape, o.shape) != shape:
                raise ShapeError(
                    f"{cls.name}: wanted operands that broadcast to the first",
                    f"{o.shape} and {shape}",
                )
        if cls.keeps_row:
            mode, out = ("store",), device.empty_rows(operands, shape, dtype)
        else:
            mode, out = ("row",), device.empty((*shape[:-1], 1), dtype)
        if x.size:
            device.rows(cls.program, mode, operands, (out,), shape)
        elif out.size:
            device.fill(out, cls.of_empty_row)
        return out

    of_empty_row = 0.0


class Structural(Operation, abstract=True):
    """An op with forward(*inputs, *attributes) over Arrays, and one gradient function per input.

    A gradient function takes dy and, by name, inputs, `y`, attributes, or `x_shape` if it needs
    only the shape of input x. It runs on Variables, so it is differentiable itself. If the last
    inputs are `numbers`, forward only passes them on to the device.
    """

    gradients: tuple | None = ()
    array_gradients: tuple | str | None = None  # the same over Arrays: a fast path, first order

    @classmethod
    def prepare(cls):
        if "gradients" not in cls.__dict__:
            raise TypeError(f"op {cls.__name__}: wanted gradients, or gradients = None")
        names = list(inspect.signature(cls.forward).parameters)
        count = cls.n_inputs = len(cls.gradients) if cls.gradients is not None else cls.n_inputs
        cls.inputs, cls.attributes = tuple(names[:count]), tuple(names[count:])
        cls.kinds = ("x",) * (count - len(cls.numbers)) + ("n",) * len(cls.numbers)
        cls.takes_numbers, cls.has_gradients = bool(cls.numbers), cls.gradients is not None
        if cls.array_gradients == "same":  # these apply one op to dy, which may be an Array
            cls.array_gradients = cls.gradients
        cls.plans, cls.plan_type = {}, StructuralPlan
        cls.defaults = cls.forward.__defaults__ or ()

    n_inputs = 1

    @classmethod
    def slow_path(cls, *args):
        """Runs the op on Variables (then attributes) and records it if needed."""
        end = len(args) - len(cls.attributes)
        count, variables = end - len(cls.numbers), []
        for a in args[:count]:
            if not isinstance(a, Variable):
                if isinstance(a, Array):  # the dy of a first-order gradient
                    return cls.forward(*args)
                a = constant(a, cls.name, first_variable(args[:count]))
            variables.append(a)
        return cls.observed([*variables, *args[count:end]], variables, args[end:])
