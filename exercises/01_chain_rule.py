"""Lesson 01: local derivative times what arrives.

Every backward function here takes `dy`, the gradient of some final number
with respect to its own output, and what its forward pass kept. It returns
the gradient with respect to its inputs. All arrays of one call have the
same shape. Python and NumPy are enough.
"""

import numpy as np

from minigrad.course.objects import Node

HIDDEN = 16


def mul_backward(dy, a, b):
    """Backward pass of y = a * b, elementwise.

    Args:
        dy: array, the gradient with respect to y.
        a, b: arrays of dy's shape, the two factors. Zeros occur, and both
            may be one and the same array: da and db stay two gradients.

    Returns:
        (da, db): the gradients with respect to a and to b, of the same
        shape, in memory that no later call writes to.
    """
    raise NotImplementedError("mul_backward is yours to write")


def tanh_backward(dy, y):
    """Backward pass of y = tanh(x), elementwise; x itself was not kept.

    Args:
        dy: array, the gradient with respect to y.
        y: array, tanh(x); far from 0 it is 1.0 or -1.0.

    Returns:
        dx: array, the gradient with respect to x.
    """
    raise NotImplementedError("tanh_backward is yours to write")


def pow_backward(dy, x, n):
    """Backward pass of y = x ** n, elementwise.

    Args:
        dy: array, the gradient with respect to y.
        x: array; zeros and negative numbers occur.
        n: int, 0 or more.

    Returns:
        dx: array, the gradient with respect to x.
    """
    raise NotImplementedError("pow_backward is yours to write")


def chain(fs, dfs, x):
    """Differentiate a chain: x goes into fs[0], its value into fs[1], ...

    Args:
        fs: list of 1 to 12 functions of one number; the same one may stand
            in it several times.
        dfs: list of their derivatives, in the same order.
        x: float, what goes into fs[0].

    Returns:
        The derivative of the whole chain at x.

    Call no function of fs more than once.
    """
    raise NotImplementedError("chain is yours to write")


def count_mults(n_in, n_out, mode):
    """Count the multiplications that the Jacobian of a small network costs.

    The network is y = W2 @ tanh(W1 @ x), with n_in inputs, HIDDEN hidden
    values and n_out outputs.

    mode="forward" pushes one unit vector of length n_in at a time through
    W1, then through tanh (one multiplication for each hidden value), then
    through W2: a pass gives a column of the Jacobian. mode="reverse" pulls
    one unit vector of length n_out at a time back through W2, tanh and W1:
    a pass gives a row.

    The product of an (m, n) matrix and a vector costs m * n
    multiplications; those by zero count.

    Args:
        n_in: int, the number of inputs.
        n_out: int, the number of outputs.
        mode: "forward" or "reverse"; anything else raises ValueError.

    Returns:
        int: the number of multiplications for all passes together.
    """
    raise NotImplementedError("count_mults is yours to write")


# --- Bug hunt -------------------------------------------------------------
# Five operations in a row, and the gradient of the whole is wrong. Each of
# the five backward functions was tested alone, by its author, with dy = 1,
# and passed. Find the node that breaks the gradient, write its place in the
# list (0 to 4) into BUG, then repair its function.

BUG = ("node", None)


def exp_backward(dy, y):
    """Backward pass of y = exp(x); gets the output y."""
    return dy * y


def sqrt_backward(dy, y):
    """Backward pass of y = sqrt(x); gets the output y."""
    return dy / (2 * y)


def softplus_backward(dy, x):
    """Backward pass of y = log(1 + exp(x)); gets the input x."""
    return 1 / (1 + np.exp(-x))


def square_backward(dy, x):
    """Backward pass of y = x * x; gets the input x."""
    return 2 * x * dy


def log_backward(dy, x):
    """Backward pass of y = log(x); gets the input x."""
    return dy / x


RULES = {
    "exp": exp_backward,
    "sqrt": sqrt_backward,
    "softplus": softplus_backward,
    "square": square_backward,
    "log": log_backward,
}


def pipeline(x):
    """Compute log(softplus(sqrt(exp(x))) ** 2), with a node for each op.

    Returns:
        (y, nodes): the output, an array of x's shape, and the five Nodes.
    """
    a = np.exp(x)
    b = np.sqrt(a)
    c = np.log1p(np.exp(b))
    d = c * c
    y = np.log(d)
    saved = {"exp": a, "sqrt": b, "softplus": b, "square": c, "log": d}
    nodes = []
    for op, kept in saved.items():
        nodes.append(
            Node(op, inputs=tuple(nodes[-1:]) or (None,), saved=(kept,))
        )
    return y, nodes


def pipeline_gradient(x, dy):
    """Return the gradient of pipeline with respect to x, given dy."""
    _, nodes = pipeline(x)
    for node in reversed(nodes):
        dy = RULES[node.op](dy, *node.saved)
    return dy
