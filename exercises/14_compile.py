"""Lesson 14: from a tape to a program, few kernels and little memory.

An `Op` says what is computed from which values; a `Program` is a list of
them. Your functions read and make such lists; they compute no numbers.
Python is enough, up to the bug hunt.
"""

import numpy as np

from minigrad.course.objects import Op, Program, result_shape


class TracedBranchError(TypeError):
    """Python asked for the truth of a value that has no numbers yet."""


class Tracer:
    """Stands for a matrix in a trace: with a name and a shape, no numbers.

    Attributes:
        tape: list of the Ops so far; all Tracers of one trace share it.
        shapes: dict, per value its shape; they share it, too.
        name: the value that this one stands for.
    """

    def __init__(self, tape, shapes, name):
        self.tape = tape
        self.shapes = shapes
        self.name = name

    def record(self, op, *operands):
        """Write an operation on the tape; return a Tracer for its result.

        The result gets a name that no other value has ("t0", "t1" and so on
        are free), and its shape goes into `shapes`: result_shape(op,
        *shapes of the operands).

        Args:
            op: the operation's name, such as "add".
            operands: Tracers and plain numbers, in this order. In the Op
                stand the names of the Tracers, and the numbers as they are;
                a number has the shape (1, 1).
        """
        raise NotImplementedError("record is yours to write")

    def __bool__(self):
        """Refuse: `if`, `while`, `and` and `not` ask for numbers.

        Raises:
            TracedBranchError: always; its text contains the name of the
                value.
        """
        raise NotImplementedError("__bool__ is yours to write")

    def __add__(self, other):
        return self.record("add", self, other)

    def __radd__(self, other):
        return self.record("add", other, self)

    def __sub__(self, other):
        return self.record("sub", self, other)

    def __rsub__(self, other):
        return self.record("sub", other, self)

    def __mul__(self, other):
        return self.record("mul", self, other)

    def __rmul__(self, other):
        return self.record("mul", other, self)

    def __truediv__(self, other):
        return self.record("div", self, other)

    def __rtruediv__(self, other):
        return self.record("div", other, self)

    def __gt__(self, other):
        return self.record("greater", self, other)

    def __lt__(self, other):
        return self.record("greater", other, self)

    def __neg__(self):
        return self.record("neg", self)

    def __matmul__(self, other):
        return self.record("matmul", self, other)

    @property
    def T(self):
        """The transpose."""
        return self.record("transpose", self)

    def tanh(self):
        """The hyperbolic tangent of each entry."""
        return self.record("tanh", self)

    def exp(self):
        """The exponential of each entry."""
        return self.record("exp", self)

    def sum(self):
        """The sum of all entries, of shape (1, 1)."""
        return self.record("sum", self)

    def sum_rows(self):
        """The sum of each column over all rows, of shape (1, n)."""
        return self.record("sum_rows", self)


def trace(f, inputs):
    """Run a function once on Tracers, and return what it did as a Program.

    Write `Tracer.record` and `Tracer.__bool__` first: they belong to this
    exercise.

    Args:
        f: function of matrices, to be called once, with a Tracer for each
            input. It returns a Tracer, or a tuple of Tracers.
        inputs: dict, per input its name and its shape (rows, columns), in
            the order of f's arguments. No input is called "t" and a number.
            It is left as it is.

    Returns:
        A Program: its ops are all that f did, in this order, also what f
        does not return; its inputs are the names in `inputs`, its outputs
        those of what f returned; its shapes are those of all values.
    """
    raise NotImplementedError("trace is yours to write")


def eliminate_dead(program):
    """Leave out the operations on which no output depends, near or far.

    Args:
        program: a Program. It is left as it is.

    Returns:
        A Program with those of its ops that some output needs, in the same
        order. Inputs and outputs are those of `program`, also an input that
        nobody reads any more: callers pass it.
    """
    raise NotImplementedError("eliminate_dead is yours to write")


def fuse(program):
    """Put operations into groups, one kernel each: one loop over entries.

    Groups run one after the other. In a turn of its loop, a kernel computes
    one entry of each of its operations, in their order. So an operation may
    read

    - inputs of the program, numbers, and whatever an earlier group made;
    - what an earlier operation of its own group made, if that one is
      elementwise: then just this entry has been computed in the same turn.
      (A sum is not complete before its loop ends.)

    All operations of a group have the same loop (`program.loop(op)`), which
    is not None; those whose loop is None are each a group of their own.

    Take the ops in their order. Each joins the *last* of the groups that
    make one of its inputs, where these rules allow it. Otherwise, or where
    it reads only inputs of the program and numbers, it begins a new group,
    which runs after all the others so far.

    Args:
        program: a Program. It is left as it is.

    Returns:
        A list of groups, in the order in which they run; each is a list of
        Ops.
    """
    raise NotImplementedError("fuse is yours to write")


def may_alias(program, i, o):
    """Say whether output o may be written into the memory of input i.

    The operations run one after the other, each a kernel of its own. While
    one runs, it writes an entry of its output as soon as it has computed
    it, in whatever order it likes. An elementwise operation reads an entry
    of its inputs just before it writes that very entry; a matmul, a sum or
    a transpose still needs, at that time, entries elsewhere.

    Args:
        program: a Program.
        i: the name of an input; its memory is given away by the caller.
        o: the name of an output that an operation of the program makes.

    Returns:
        True, if both have the same number of bytes, and nobody reads i once
        its bytes are overwritten: no operation, and not the caller, who
        gets what `program.outputs` names. False otherwise.
    """
    raise NotImplementedError("may_alias is yours to write")


# Why a donated input is not used: one of these three.
NO_SIZE = "no output has its size"
STILL_READ = "it is still needed when the outputs of its size are written"
TAKEN = "other donated inputs have the outputs that could take it"


def donate(program, donated):
    """Give outputs the memory of donated inputs.

    Each donated input, in this order, goes to the first of
    `program.outputs` that may alias it (see `may_alias`) and has got none
    yet. One that goes to none is refused, with a reason: TAKEN, if an
    output could have taken it and has got another one; otherwise
    STILL_READ, if an output has its size; otherwise NO_SIZE.

    Args:
        program: a Program; an operation makes each of its outputs.
        donated: list of names of inputs that the caller will not use again.

    Returns:
        (taken, refused): dicts. taken: per output that takes over memory,
        the input whose memory that is. refused: per input that is not used,
        one of the three reasons.

    Raises:
        ValueError: a name is donated twice, or is not an input; the text
            contains the name.
    """
    raise NotImplementedError("donate is yours to write")


# --- Bug hunt -------------------------------------------------------------
# Somebody has written a training step by hand as a compiler would plan it:
# each line a kernel, and what is donated (w1, w2, v1, v2) gets its new
# values in its own memory. With a small learning rate it trains. But one
# line reads a donated value whose memory an earlier line has overwritten.
#   value:   the donated argument that is read too late, such as "w1";
#   written: the letter of the line that overwrites it;
#   read:    the letter of the line that reads it afterwards.
# Write them into BUG, two different letters, then mend the step.

BUG = {"value": None, "written": None, "read": None}


def step_in_place(x, t, w1, w2, v1, v2, learning_rate):
    """Take a step of gradient descent with momentum, in what is donated.

    The network is tanh(x @ w1) @ w2, the loss the mean over the rows of the
    sum of squares of its difference to t. With dw the gradient of the loss:
    v becomes 0.9 * v + dw, and w becomes w - learning_rate * v.

    Args:
        x, t: float64 arrays (n, 64) and (n, 10): images and targets. They
            are left as they are.
        w1, w2: float64 arrays (64, h) and (h, 10), the weights. Donated.
        v1, v2: float64 arrays of the same shapes, the velocities. Donated.
        learning_rate: float.

    Returns:
        (w1, w2, v1, v2, loss): the new values, each in the memory of the
        donated array of its name, and the loss before the step. No more
        than one array as large as a weight is allocated at a time.
    """
    w2_turned = w2.T  # A: w2 as the backward pass needs it
    h = x @ w1  # B
    np.tanh(h, out=h)  # C: over what it reads
    d = h @ w2  # D
    np.subtract(d, t, out=d)  # E: over the network's answer
    loss = float((d * d).sum() / len(x))  # F
    d *= 2 / len(x)  # G: from the difference to the gradient
    v2 *= 0.9  # H
    v2 += h.T @ d  # I
    w2 -= learning_rate * v2  # J: the new w2
    dh = d @ w2_turned  # K: back through the second layer
    np.multiply(h, h, out=h)  # L: over h, which is not needed any more
    dh *= 1 - h  # M: back through tanh
    v1 *= 0.9  # N
    v1 += x.T @ dh  # O
    w1 -= learning_rate * v1  # P: the new w1
    return w1, w2, v1, v2, loss
