"""Writes Recordings by hand: for examples, lessons and tests."""

from minigrad.array.dtypes import as_dtype
from minigrad.array.layout import broadcast_shapes, contiguous_strides, size_of
from minigrad.compiler.program.program import (
    ARGUMENT,
    CAPTURED,
    TEMPORARY,
    Instruction,
    Recording,
    Ref,
    Value,
    whole,
)
from minigrad.formulas.expression import IDENTITY, Program, call, symbol


class Sketch:
    """Collects instructions; every method that computes returns the Ref of its result.

    Each formula operation is a method: `s.add(x, 1.0)`. With out= it writes there, and returns
    nothing.
    """

    def __init__(self):
        self.instructions, self.arguments = [], []

    def argument(self, shape, dtype="float32"):
        """Add an array that is passed in."""
        value = Value(ARGUMENT, as_dtype(dtype), size_of(shape), index=len(self.arguments))
        self.arguments.append(value)
        return whole(value, shape)

    def captured(self, name, shape, dtype="float32"):
        """Return an array that exists outside the step."""
        return whole(Value(CAPTURED, as_dtype(dtype), size_of(shape), name=name), shape)

    def temporary(self, shape, dtype="float32"):
        """Return new memory of the step, to be written."""
        return whole(Value(TEMPORARY, as_dtype(dtype), size_of(shape)), shape)

    def instruct(self, op, inputs, out, line="", **attributes):
        """Add an instruction; out: a Ref to write, or (shape, dtype) to create one."""
        given = isinstance(out, Ref)
        target = out if given else self.temporary(*out)
        self.instructions.append(Instruction(op, tuple(inputs), (target,), attributes, "", line))
        return None if given else target

    def elementwise(self, program, inputs, out=None, shape=None, dtype=None, line=""):
        """Add an instruction that computes a Program of one formula."""
        refs = [x for x in inputs if isinstance(x, Ref)]
        if out is None:
            if shape is None:
                shape = broadcast_shapes("a sketch", *(x.shape for x in refs))
            out = (shape, dtype or (refs[0].dtype if refs else "float32"))
        return self.instruct("elementwise", inputs, out, line, program=program)

    def __getattr__(self, name):
        def method(*inputs, **more):
            letters = "abcdef"[: len(inputs)]
            program = Program(letters, [call(name, *map(symbol, letters))])
            return self.elementwise(program, inputs, **more)

        if name.startswith("_"):
            raise AttributeError(name)
        return method

    def copy(self, x, out=None, **more):
        """Copy x to out, or to a new contiguous array."""
        return self.elementwise(IDENTITY, (x,), out, **more)

    def fill(self, number, shape=None, out=None, dtype="float32"):
        """Fill out, or a new array, with a number."""
        return self.elementwise(IDENTITY, (number,), out, shape, dtype)

    def reduce(self, how, x, axes, out=None, dtype=None, program=IDENTITY, line=""):
        """Reduce x over axes; how: 'sum', 'max', ..."""
        kept = tuple(n for k, n in enumerate(x.shape) if k not in axes)
        out = out or (kept, dtype or x.dtype)
        return self.instruct(
            "reduce", (x,), out, line, program=program, how=how, shape=x.shape, axes=tuple(axes)
        )

    def matmul(self, a, b, out=None, accumulate=False, line=""):
        """Multiply two matrices: a @ b."""
        out = out or ((a.shape[0], b.shape[1]), a.dtype)
        return self.instruct("matmul", (a, b), out, line, accumulate=accumulate)

    def check(self, x, what="finite", low=0, high=0):
        """Add a check that stops the step if it fails."""
        attributes = {"what": what, "low": low, "high": high}
        self.instructions.append(Instruction("check", (x,), (), attributes))

    def recording(self, *results):
        """Return the Recording; results: Refs."""
        return Recording(self.instructions, self.arguments, list(results))


def view(ref, shape, strides=None, offset=0):
    """Return another layout over a Ref's memory; `offset` counts from the Ref's start."""
    strides = contiguous_strides(shape) if strides is None else strides
    return Ref(ref.value, shape, strides, ref.offset + offset)


def transposed(ref):
    """Return a Ref with its axes reversed."""
    return Ref(ref.value, ref.shape[::-1], ref.strides[::-1], ref.offset)
