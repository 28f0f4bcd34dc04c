"""Lesson 00: the run loop, and a derivative from function calls alone.

Edit this file, save it, and grade it: `check("00")` in the notebook, or
`minigrad check 00` in a terminal. Both run this saved file in a process of
its own. Python is enough; you may import NumPy.
"""


def hello():
    """Return the text `hello, gradients`.

    This one is already written, with a small mistake in it. Run the check
    first and read what it says: every check of this course has the same
    five parts. Then repair it.

    Returns:
        str: `hello, gradients`, exactly.
    """
    ### BEGIN SOLUTION
    return "hello, gradients"
    ### STARTS AS
    # return "hello, gardients"
    ### END SOLUTION


def central_difference(f, x, eps):
    """Estimate the derivative of f at x from its values on both sides of x.

    Args:
        f: a function of one argument that works elementwise on arrays.
        x: where to estimate; a float, a NumPy scalar or an array.
        eps: a float, how far from x to evaluate f, on either side;
            positive.

    Returns:
        The slope of the line through the two points, of x's shape and
        dtype.

    Call f exactly twice: on a real model each call is a whole forward pass.
    """
    ### BEGIN SOLUTION
    return (f(x + eps) - f(x - eps)) / (2 * eps)
    ### END SOLUTION


# --- Bug hunt -------------------------------------------------------------
# `slope` below is used to check derivatives, and it is right for every x
# that its author tried. For some other x it is badly wrong. Find one such
# x: the relative error for f(x) = x * x must exceed 10 %, while x * x
# itself is an ordinary finite number. Write it into BUG, then repair slope.

### BEGIN SOLUTION
BUG = ("x", 1e10)
### STARTS AS
# BUG = ("x", None)
### END SOLUTION


def slope(f, x):
    """Estimate the derivative of f at the float x, with a step of its own.

    Args:
        f: a function of one float.
        x: a finite float of any size, 0 included.

    Returns:
        float: the derivative, with a relative error below 0.1 % for f(x) =
        x**2 and x**3 wherever 0.01 <= |x| <= 1e12, and a finite number
        where x is nearer to 0, or is 0.
    """
    ### BEGIN SOLUTION
    # The gap between neighbouring floats grows with x, so the step must
    # too.
    eps = 1e-5 * max(1.0, abs(x))
    ### STARTS AS
    # eps = 1e-6
    ### END SOLUTION
    return (f(x + eps) - f(x - eps)) / (2 * eps)
