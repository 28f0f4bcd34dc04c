"""Lesson 11: loops that Numba compiles, and what they cost.

A kernel here is a function with `@njit` above it: Numba compiles it, for
each combination of argument types at its first call. It runs in one thread:
no `parallel=True`. Each kernel writes into the last of its arrays, which
holds anything before, and leaves the others as they are. Arrays may be
empty; they may be views with any strides: every second column, reversed,
transposed; and they may hold nan and inf, which mean what they mean in
NumPy. Their dtype is float64 or float32; what is computed in between may be
float64 for both. No array is made in a kernel (`x[i]`, `out[:] = 0` and
`x[i].sum()` make none), and NumPy multiplies no matrices there. Compiled
code divides like Python: x / 0 is an error, where NumPy gives inf or nan.

Checks count what a kernel costs: the elements that it reads and writes,
and the lines that it fetches. Each x[i] that runs counts: where x[i] is
larger, `if x[i] > top: top = x[i]` reads twice. Memory hands out lines of
64 bytes; the model of a cache that counts them holds 64 lines, and drops
the one that was used least recently.
"""

import math

import numpy as np
from numba import njit


@njit
def k_sum_axis(x, axis, out):
    """Write the sum of x along an axis into out.

    It goes through x in the order in which x lies in memory, forwards or
    backwards, whichever the axis is and however x is strided: no line of x
    is fetched twice because the loops walk across the lines. `x.strides`
    has the bytes from one element to the next along each axis; they may be
    negative.

    Args:
        x: array (n, m).
        axis: 0 or 1. A sum along 0 has m elements, along 1 it has n.
        out: array of that many elements, of x's dtype.
    """
    ### BEGIN SOLUTION
    n, m = x.shape
    for k in range(out.size):
        out[k] = 0
    if abs(x.strides[0]) >= abs(x.strides[1]):
        for i in range(n):
            for j in range(m):
                out[i if axis == 1 else j] += x[i, j]
    else:
        for j in range(m):
            for i in range(n):
                out[i if axis == 1 else j] += x[i, j]
    ### END SOLUTION


@njit
def k_softmax_fused(x, out):
    """Write each row's softmax, exp(x - max) / sum(exp(x - max)), into out.

    Without any array of its own: if it must remember something of an
    element, it writes it into out. It makes 5 accesses for each element at
    most, on average, reads of x and of out and writes to out together.

    Args:
        x, out: arrays (n, m) of one dtype.
    """
    ### BEGIN SOLUTION
    n, m = x.shape
    for i in range(n):
        largest = -math.inf
        for j in range(m):
            largest = max(largest, x[i, j])
        total = 0.0
        for j in range(m):
            e = math.exp(x[i, j] - largest)
            out[i, j] = e
            total += e
        for j in range(m):
            out[i, j] /= total
    ### END SOLUTION


@njit
def k_matmul_blocked(a, b, c, block=64):
    """Write the matrix product a @ b into c, block by block.

    Three plain loops come back to an element of b when it has long left the
    cache. Loops over blocks of `block` along n, m and k do all that there
    is to do with three blocks, one of each matrix, while these are in the
    cache.

    With block 8, two float64 matrices (32, 32) fetch 1,600 lines at most,
    of a, b and c together, where three plain loops fetch 4,352. Matrices
    (4, 128) and (128, 32) fetch 1,000 at most.

    Args:
        a, b, c: arrays (n, k), (k, m) and (n, m) of one dtype. No size need
            be a multiple of block.
        block: an int, 1 or more.
    """
    ### BEGIN SOLUTION
    n, inner = a.shape
    m = b.shape[1]
    for i in range(n):
        for j in range(m):
            c[i, j] = 0
    for top in range(0, n, block):
        for left in range(0, m, block):
            for start in range(0, inner, block):
                for i in range(top, min(top + block, n)):
                    row = c[
                        i, left : left + block
                    ]  # a view: see the lesson
                    for k in range(start, min(start + block, inner)):
                        factor = a[i, k]
                        other = b[k, left : left + block]
                        for j in range(row.size):
                            row[j] += factor * other[j]
    ### END SOLUTION


def fuse(ops):
    """Return one kernel for a chain of operations: kernel(x, out).

    Each operation is a text, an expression in x: `["x * x", "math.exp(x)"]`
    is the chain exp(x * x). The first takes the element of x, each other
    one the result of the one before it. The kernel goes through x once: it
    reads each element once, computes each operation once, writes each
    element of out once, and makes no array in between.

    A chain that was asked for before, the same texts in the same order,
    gives the same object again: compiling takes a thousand times as long as
    a call.

    Args:
        ops: a list of texts, expressions of Python; they use x, numbers,
            and what math has, as math.exp. An empty list copies.

    Returns:
        A function that Numba compiles, kernel(x, out), for arrays (n,).
    """
    ### BEGIN SOLUTION
    key = tuple(ops)
    if key not in KERNELS:
        KERNELS[key] = new_kernel(key)
    return KERNELS[key]


KERNELS = {}  # the kernel of each chain


def new_kernel(ops):
    """Return the kernel of a chain; Numba compiles it at its first call."""
    lines = ["def kernel(values, out):"]
    lines += ["    for i in range(values.size):"]
    lines += ["        x = values[i]"]
    lines += [f"        x = {op}" for op in ops]
    lines += ["        out[i] = x"]
    names = {"math": math}
    exec("\n".join(lines), names)
    return njit(names["kernel"])
    ### END SOLUTION


def pick_kernel(n, measured):
    """Return the name of the kernel that takes the least time at size n.

    Times are read off a drawing whose axes are both logarithmic: between
    two measured sizes that are neighbours, a straight line joins the two
    points. Beyond the smallest and the largest measured size, the line of
    the two points there goes on.

    Args:
        n: the size, an int from 1 to 10**18.
        measured: {name: [(size, seconds), ...]}, at least two sizes for
            each kernel, in any order, each once. All seconds, measured ones
            and those at n, lie between 1e-100 and 1e100. Not all kernels
            have the same sizes.

    Returns:
        One of the names, any of the quickest.
    """
    ### BEGIN SOLUTION

    def seconds(name):
        points = sorted(measured[name])
        k = 1
        while k < len(points) - 1 and points[k][0] < n:
            k += 1
        low, before, high, after = map(math.log, points[k - 1] + points[k])
        share = (math.log(n) - low) / (high - low)
        return before + share * (after - before)

    return min(measured, key=seconds)
    ### END SOLUTION


# --- Bug hunt -------------------------------------------------------------
# Somebody smooths many short signals. The results are right, but most calls
# take a thousand times as long as others: they wait for the compiler.
#   line:    the letter of the line that creates the argument of k_smooth
#            whose type is another one in each of these calls;
#   differs: what makes its type another one: its "dtype", "layout",
#            "length" or "value".
# Write them into BUG, then mend smooth_all: k_smooth is compiled once at
# most for each way in which the signals lie in memory, whatever the weights
# are.

### BEGIN SOLUTION
BUG = {"line": "F", "differs": "length"}
### STARTS AS
# BUG = {"line": None, "differs": None}
### END SOLUTION


@njit
def k_smooth(x, weights, out):
    """Write the weighted mean of each element and those before it."""
    for i in range(x.size):
        total = 0.0
        used = 0.0
        for k in range(min(len(weights), i + 1)):
            total += weights[k] * x[i - k]
            used += weights[k]
        out[i] = total / used


def smooth_all(signals, weights):
    """Smooth each signal with weights of its own.

    Args:
        signals: a list of arrays (n,), float32 or float64, any strides.
        weights: for each signal a list of numbers above 0, int or float, at
            least one; they may be as large as a float can be, the largest
            1e200 times the smallest, no more. The first one belongs to the
            element itself, the second to the element before it, and so on.

    Returns:
        A list of float64 arrays (n,).
    """
    results = []  # A
    for signal, given in zip(signals, weights, strict=True):  # B
        x = np.asarray(signal, np.float64)  # C
        out = np.empty(x.size)  # D
        largest = max(given)  # E
        ### BEGIN SOLUTION
        w = np.array([weight / largest for weight in given])
        ### STARTS AS
        # w = tuple(weight / largest for weight in given)  # F
        ### END SOLUTION
        k_smooth(x, w, out)  # G
        results.append(out)  # H
    return results  # I
