"""Lesson 04: a gradient is a sum, and somebody has to add it up.

A value that is used in several places gets a gradient from each of them,
and its own gradient is their sum. Here you write the sums. Python and NumPy
are enough.
"""

import numpy as np

from minigrad.course.objects import Node


def unbroadcast(g, shape):
    """Sum a gradient back into the shape of an operand that was broadcast.

    NumPy stretched an operand of shape `shape` to g's shape: it put new
    axes in front, and copied along axes of length 1. `g` is the gradient
    with respect to the stretched operand.

    Args:
        g: float array, of any shape to which `shape` broadcasts; axes of
            length 0 occur. It is left as it is.
        shape: tuple of ints, the operand's own shape; () for a single
            number.

    Returns:
        An array of exactly this shape: for each entry of the operand the
        sum over all places to which it was copied, 0 where it was copied
        nowhere.
    """
    ### BEGIN SOLUTION
    n_new = g.ndim - len(shape)
    stretched = [
        n_new + axis for axis, length in enumerate(shape) if length == 1
    ]
    return g.sum(axis=(*range(n_new), *stretched), keepdims=True).reshape(
        shape
    )
    ### END SOLUTION


def accumulate(grads, key, g):
    """Add a gradient that has just arrived to the sum in grads[key].

    The first gradient for a key: grads[key] becomes an array of its own
    with the values of g, which shares no memory with g. Every later one: it
    is added into this very array, in place.

    Args:
        grads: dict, per key the sum so far; a key that was not reached yet
            is missing.
        key: what the gradient belongs to.
        g: float array. Others hold the same array, and it may be read-only:
            never write to it. All gradients for one key have the same
            shape.

    Returns:
        None: grads is what changes.
    """
    ### BEGIN SOLUTION
    if key in grads:
        grads[key] += g
    else:
        grads[key] = np.array(g)
    ### END SOLUTION


def microbatch_step(w, batches, mean_gradient, learning_rate):
    """Take one step of gradient descent on data that comes in pieces.

    The loss is the mean over the rows of all batches together. The step is
    to be the one that a single large batch would give.

    Args:
        w: float array, the parameters. It is left as it is.
        batches: list of pairs (x, y), at least one. The rows of x and y are
            examples; the batches may have different numbers of rows, at
            least one each.
        mean_gradient: function (w, x, y) -> array of w's shape, the
            gradient of the mean loss over the rows of x and y alone. Call
            it once for each batch, always with the w that was given, and
            do not write to what it returns.
        learning_rate: float.

    Returns:
        A new array: w minus learning_rate times the gradient of the loss.
    """
    ### BEGIN SOLUTION
    n_rows = sum(len(x) for x, _ in batches)
    grads = {}
    for x, y in batches:
        accumulate(grads, "w", mean_gradient(w, x, y) * (len(x) / n_rows))
    return w - learning_rate * grads["w"]
    ### END SOLUTION


# --- Who coordinates: a small machine for your GradManager ----------------
# A Box holds a value. Each operation on boxes makes a Node and writes it to
# every tape in TAPES. A tape is a list of Nodes, oldest first: so it is
# sorted already.

TAPES = []


class Box:
    """A value that a program computes with.

    Attributes:
        data: array of floats.
        grad: its gradient, an array of data's shape, or None.
        node: the Node that stands for it, `Node("leaf")` where no recorded
            operation made it.
    """

    def __init__(self, data, node=None):
        self.data = np.asarray(data, dtype=float)
        self.grad = None
        self.node = node or Node("leaf")


def recorded(op, value, boxes, saved):
    """Return the result of an operation as a Box, noted on every tape."""
    if not TAPES:
        return Box(value)
    node = Node(op, tuple(box.node for box in boxes), saved)
    for tape in TAPES:
        tape.append(node)
    return Box(value, node)


def add(a, b):
    """Return a + b, two boxes of one shape."""
    return recorded("add", a.data + b.data, (a, b), ())


def mul(a, b):
    """Return a * b, two boxes of one shape."""
    return recorded("mul", a.data * b.data, (a, b), (a.data, b.data))


def total(a):
    """Return the sum of all entries, as a Box with one number."""
    return recorded("total", a.data.sum(), (a,), (a.data.shape,))


# Per op the backward function: rule(dy, *node.saved) gives a gradient per
# input.
RULES = {
    "add": lambda dy: (dy, dy),
    "mul": lambda dy, a, b: (dy * b, dy * a),
    "total": lambda dy, shape: (np.broadcast_to(dy, shape),),
}


def stop(tape):
    """Take this very list out of TAPES; list.remove takes an equal one."""
    TAPES[:] = [other for other in TAPES if other is not tape]


class GradManager:
    """Holds the boxes to differentiate, begins and ends a recording.

    gm = GradManager()
    gm.attach([w])
    with gm:                        # record() here, release() at the end
        loss = total(mul(w, w))
        gm.backward(loss)           # now w.grad is 2 * w

    Args:
        keep_empty_grad: what attached boxes get if a loss does not depend
            on them: zeros (True), or nothing (False).

    Attributes:
        attached: list of the boxes to differentiate.
        tape: list of Nodes while it records, otherwise None.
    """

    def __init__(self, keep_empty_grad=False):
        self.keep_empty_grad = keep_empty_grad
        self.attached = []
        self.tape = None

    def attach(self, boxes):
        """Add the boxes of a list to `attached`, each at most once."""
        ### BEGIN SOLUTION
        for box in boxes:
            if box not in self.attached:
                self.attached.append(box)
        ### END SOLUTION

    def record(self):
        """Begin to record: `tape` becomes an empty list, and joins TAPES.

        Raises:
            RuntimeError: it records already.
        """
        ### BEGIN SOLUTION
        if self.tape is not None:
            raise RuntimeError("this GradManager records already")
        self.tape = []
        TAPES.append(self.tape)
        ### END SOLUTION

    def release(self):
        """End the recording, if there is one, and let go of what it kept.

        The tape leaves TAPES (`stop`), every node on it gets `saved = ()`,
        and `tape` is None again. All `.grad` stay as they are.
        """
        ### BEGIN SOLUTION
        if self.tape is not None:
            stop(self.tape)
            for node in self.tape:
                node.saved = ()
            self.tape = None
        ### END SOLUTION

    def backward(self, loss):
        """Add the gradients of `loss` to the boxes' `.grad`, then release.

        Begin with an array of ones for `loss.node`, in the shape of
        loss.data. Walk the tape from its end; for a node that was reached,
        RULES[node.op] gives the gradients of its inputs, and your
        `accumulate` adds them up, with nodes as keys.

        Only attached boxes get a `.grad`. One that is None is set;
        otherwise the new gradient is added to it. Attached boxes that were
        not reached: with keep_empty_grad, a `.grad` of None becomes zeros;
        all others stay as they are. Write no `.grad` before the walk is
        over.

        The recording ends in any case, also when a rule raises an error.

        Raises:
            RuntimeError: it does not record.
            ValueError: `loss` has not exactly one element. In shape () or
                (1,) it has one.
        """
        ### BEGIN SOLUTION
        if self.tape is None:
            raise RuntimeError("this GradManager does not record")
        try:
            if loss.data.size != 1:
                raise ValueError(
                    "a loss is one number, not an array of shape "
                    f"{loss.data.shape}"
                )
            grads = {loss.node: np.ones_like(loss.data)}
            for node in reversed(self.tape):
                if node in grads:
                    found = RULES[node.op](grads[node], *node.saved)
                    for source, g in zip(node.inputs, found, strict=True):
                        accumulate(grads, source, g)
            for box in self.attached:
                if box.node in grads:
                    g = grads[box.node]
                    box.grad = g if box.grad is None else box.grad + g
                elif self.keep_empty_grad and box.grad is None:
                    box.grad = np.zeros_like(box.data)
        finally:
            self.release()
        ### END SOLUTION

    def __enter__(self):
        self.record()
        return self

    def __exit__(self, *error):
        self.release()


# --- Bug hunt -------------------------------------------------------------
# A critic learns to predict y from x. An actor learns to please the critic.
# Each has its own loss, its own step, and clears its own gradient after its
# own step. In the log of train_both one of the two soon moves by a gradient
# that is not the gradient of its loss. Whose is it, "critic" or "actor",
# and in which round first? Rounds count from 0. Write both into BUG, then
# repair train_both.

### BEGIN SOLUTION
BUG = ("critic", 1)
### STARTS AS
# BUG = (None, None)
### END SOLUTION


def critic_backward(critic, x, y):
    """Backward pass of the critic's loss, (critic * x - y) ** 2."""
    critic.grad += 2 * (critic.data * x - y) * x


def actor_backward(actor, critic):
    """Backward pass of the actor's loss, actor ** 2 / 2 - critic * actor.

    It passes through both, so it adds to the gradients of both.
    """
    actor.grad += actor.data - critic.data
    critic.grad += -actor.data


def train_both(critic, actor, xs, ys, learning_rate):
    """Train a critic and an actor, one step each per round.

    Args:
        critic: float, the value that the critic begins with.
        actor: float, the same for the actor.
        xs, ys: arrays of n numbers, n >= 0: in round i the critic sees
            xs[i] and ys[i].
        learning_rate: float.

    Returns:
        Array of shape (n, 2), per round the gradients by which the two
        moved: in column 0 the critic's, in column 1 the actor's. In each
        round the critic moves first, and the actor meets the critic as it
        is then. Each moves by the gradient of its own loss, on this round's
        values alone.
    """
    critic, actor = Box(critic), Box(actor)
    critic.grad, actor.grad = 0.0, 0.0
    log = []
    for x, y in zip(xs, ys, strict=True):
        critic_backward(critic, x, y)
        critic_moved_by = critic.grad
        critic.data = critic.data - learning_rate * critic.grad
        critic.grad = 0.0

        actor_backward(actor, critic)
        actor_moved_by = actor.grad
        actor.data = actor.data - learning_rate * actor.grad
        ### BEGIN SOLUTION
        critic.grad, actor.grad = 0.0, 0.0
        ### STARTS AS
        # actor.grad = 0.0
        ### END SOLUTION

        log.append((critic_moved_by, actor_moved_by))
    return np.array(log).reshape(len(log), 2)
