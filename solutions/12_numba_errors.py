"""Lesson 12: what Numba says, and what it does without a word.

The first six functions do not compile. Each has one mistake. Call it in
the lesson, read what Numba says, and repair it: the docstring is right,
`@njit` stays and compiles the whole of it, and a call leaves its
arguments as they were.
"""

import math

import numpy as np
from numba import njit, prange


@njit
def sum_rows(x):
    """Add up the rows of x: one sum for each column.

    Args:
        x: float64 array (n, m). n may be 0: then all sums are 0.

    Returns:
        A new float64 array (m,).
    """
    ### BEGIN SOLUTION
    total = np.zeros(x.shape[1])
    ### STARTS AS
    # total = 0
    ### END SOLUTION
    for i in range(x.shape[0]):
        total = total + x[i]
    return total


@njit
def median_sorted(x):
    """Return the median: the middle one, or the mean of the middle two.

    Args:
        x: float64 array (n,), sorted, with one element at least. inf may
            be in it.

    Returns:
        A float.
    """
    n = len(x)
    ### BEGIN SOLUTION
    k = n // 2
    ### STARTS AS
    # k = n / 2
    ### END SOLUTION
    if n % 2 == 1:
        return x[k]
    return (x[k - 1] + x[k]) / 2.0


@njit
def center_rows(x):
    """Subtract from each row of x the mean of this row.

    Args:
        x: float64 array (n, m), m at least 1. It stays as it is.

    Returns:
        A new float64 array (n, m), in which each row adds up to 0.
    """
    ### BEGIN SOLUTION
    out = np.empty(x.shape)
    for i in range(x.shape[0]):
        mean = x[i].sum() / x.shape[1]
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] - mean
    return out
    ### STARTS AS
    # return x - x.sum(axis=1, keepdims=True) / x.shape[1]
    ### END SOLUTION


### BEGIN SOLUTION
@njit
### STARTS AS
### END SOLUTION
def normal_share(z):
    """Return the share of a normal distribution that lies below z."""
    return 0.5 * (1.0 + math.erf(z / math.sqrt(2.0)))


@njit
def gelu(x):
    """Return x * normal_share(x), element by element.

    Args:
        x: float64 array (n,).

    Returns:
        A new array like x.
    """
    out = np.empty_like(x)
    for i in range(len(x)):
        out[i] = x[i] * normal_share(x[i])
    return out


@njit
def moving_mean(x, width):
    """Return the mean of each `width` neighbours.

    Args:
        x: float64 array (n,).
        width: an int, at least 1.

    Returns:
        A new float64 array (n - width + 1,): the mean of
        x[k : k + width] at k. If n < width there are no means, and the
        array has no element.
    """
    ### BEGIN SOLUTION
    if len(x) < width:
        return np.empty(0)
    ### STARTS AS
    # if len(x) < width:
    #     return 0.0
    ### END SOLUTION
    out = np.empty(len(x) - width + 1)
    for k in range(len(out)):
        out[k] = x[k : k + width].mean()
    return out


@njit
def ratios(a, b):
    """Divide a by b, element by element; where b is 0, the result is 0.

    Args:
        a, b: float64 arrays (n,), without nan. inf may be in them, and
            -0.0, which is 0 as well.

    Returns:
        A new array like a.
    """
    out = np.empty_like(a)
    for i in range(len(a)):
        ### BEGIN SOLUTION
        if b[i] == 0.0:
            out[i] = 0.0
        else:
            out[i] = a[i] / b[i]
        ### STARTS AS
        # try:
        #     out[i] = a[i] / b[i]
        # except ZeroDivisionError:
        #     out[i] = 0.0
        ### END SOLUTION
    return out


# --- What compiled code remembers -----------------------------------------


def leaky(x, slope):
    """Return the leaky ReLU: x where x > 0, and slope * x elsewhere.

    The loop over x runs in compiled code: here, or in a function that you
    write beside this one. Each call uses its own slope. Nothing is compiled
    after the first call, not for another slope either.

    Args:
        x: float64 array (n,). It stays as it is.
        slope: a float.

    Returns:
        A new float64 array (n,).
    """
    ### BEGIN SOLUTION
    out = np.empty(len(x))
    fill_leaky(x, slope, out)
    return out


@njit
def fill_leaky(x, slope, out):
    """Write the leaky ReLU of x into out."""
    for i in range(len(x)):
        out[i] = x[i] if x[i] > 0.0 else slope * x[i]
    ### END SOLUTION


# --- Bug hunt -------------------------------------------------------------
# Three sums over images, in a loop whose rounds run in several threads. It
# was tested with four images, and was right each time. One line is a race.
# Write into BUG the letters of three lines, such as "A":
#   race:      two rounds of the loop in D may write the same element;
#   reduction: adds up over all rounds as well, and is no race;
#   private:   adds up within one round alone.
# Then repair it: the loop over images stays a prange, with a round for each
# image, and runs in several threads.

### BEGIN SOLUTION
BUG = {"race": "J", "reduction": "I", "private": "G"}
### STARTS AS
# BUG = {"race": None, "reduction": None, "private": None}
### END SOLUTION


@njit(parallel=True)
def ink_of_digits(x, label, of_image, ink):
    """Add up the pixels of images: of each, of each digit, and of all.

    Args:
        x: float64 array (n, m): n images of m pixels.
        label: int64 array (n,): which digit an image shows, 0 to 9.
        of_image: float64 array (n,), to write to: the sum of each image.
        ink: float64 array (10,), to write to: the sum of all images that
            show a digit. What stood in it before is overwritten.

    Returns:
        A float: the sum of all pixels.
    """
    for d in range(10):  # A
        ink[d] = 0.0  # B
    total = 0.0  # C
    for i in prange(len(x)):  # D
        own = 0.0  # E
        for j in range(x.shape[1]):  # F
            own += x[i, j]  # G
        of_image[i] = own  # H
        total += own  # I
        ### BEGIN SOLUTION
        ### STARTS AS
        # ink[label[i]] += own  # J
        ### END SOLUTION
    ### BEGIN SOLUTION
    for k in range(len(x)):
        ink[label[k]] += of_image[k]
    ### STARTS AS
    ### END SOLUTION
    return total
