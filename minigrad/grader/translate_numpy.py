"""Turns NumPy's errors, matched on their English texts, into one sentence and one thing to try."""

from __future__ import annotations

import re

LOOK = "Print the shapes on this line: one is not what you think."
ROWS: tuple[tuple[str, str, str], ...] = (
    # What NumPy says, what a learner reads, what to try. Groups fill the braces.
    (
        r"operands could not be broadcast together with shapes (\(.*?\)) (\(.*?\))",
        "arrays of shapes {} and {} were combined entry by entry, and do not fit",
        "Sizes are compared from the right: each two are equal, or one of them is 1.",
    ),
    (
        r"matmul: Input operand 1 has a mismatch.*\(size (\d+) is different from (\d+)\)",
        "a matrix product whose inner sizes differ: {1} on the left, {0} on the right",
        "In a @ b, the last axis of a is summed with the last but one of b. Which is transposed?",
    ),
    (
        r"shapes (\([^()]{0,99}\)) and (\([^()]{0,99}\)) not aligned",
        "a product of shapes {} and {}, whose inner sizes differ",
        "The last axis of the left is summed with the last but one of the right.",
    ),
    (
        r"The truth value of an array with more than one element",
        "an array of several entries was asked whether it is true",
        "An if, and, or, not wants one answer: np.where, (…).any() and (…).all() take arrays.",
    ),
    (
        r"index (-?\d+) is out of bounds for axis (\d+) with size 0",
        "index {} along axis {}, which has no entries",
        "For which inputs is nothing there, and what is the answer then?",
    ),
    (
        r"index (-?\d+) is out of bounds for axis (\d+) with size (\d+)",
        "index {} along axis {}, which has only {} entries",
        "The first entry has index 0, the last one index size - 1.",
    ),
    (
        r"too many indices for array: array is 0-dimensional",
        "an index into an array of shape (), which has no axes",
        "Did it arrive so, or did a sum or an index remove its axes? x[:] needs one, x[...] none.",
    ),
    (
        r"too many indices for array: array is (\d+)-dimensional, but (\d+) were indexed",
        "{1} indices for an array of {0} dimension(s)",
        "One index per axis. Has a sum or an index removed an axis before?",
    ),
    (
        r"only integers, slices .* are valid indices",
        "an index that is no integer",
        "Which number here is a float? n / 2 is one; n // 2 is an integer.",
    ),
    (
        r"cannot reshape array of size (\d+) into shape (\(.*?\))",
        "{} entries were to be laid out in shape {}",
        "The sizes of a shape, multiplied, give the number of entries; -1 stands for the rest.",
    ),
    (
        r"axis (-?\d+) is out of bounds for array of dimension (\d+)",
        "axis {} of an array of {} dimension(s)",
        "From the front axes are 0, 1, …, from the back -1, -2, …. Which one did you mean? Or has "
        "a step before removed an axis?",
    ),
    (
        r"could not broadcast input array from shape (\([^()]{0,99}\)) into shape "
        r"(\([^()]{0,99}\))",
        "values of shape {} were written into a place of shape {}",
        LOOK,
    ),
    (
        r"(?:assignment|output array|destination) (?:destination )?is read-only",
        "a write into an array that may only be read",
        "Others read these values too: work on a copy, or make a new array.",
    ),
    (
        r"cannot set WRITEABLE flag to True of this array",
        "a view of locked memory cannot be unlocked",
        "A view can be locked alone: its flags are its own. Which array is locked, and for whom?",
    ),
    (
        r"'numpy\.\w+' object does not support item assignment",
        "a write into a NumPy number, as if it were an array",
        "Arithmetic with an array of shape () gives a number, no array. Which line made this one?",
    ),
    (
        r"zero-size array to reduction operation (\w+) which has no identity",
        "the {} of an array without entries",
        "For which inputs is it empty, and what is the answer then?",
    ),
    (
        r"The requested array has an inhomogeneous shape",
        "an array was made of rows of different lengths",
        "Print the lengths of the rows; or keep them in a list.",
    ),
    (
        r"all the input array dimensions except for the concatenation axis must match",
        "arrays were joined whose other sizes differ",
        LOOK,
    ),
    (
        r"all the input arrays must have same number of dimensions",
        "arrays with different numbers of dimensions were joined",
        LOOK,
    ),
    (
        r"Cannot cast ufunc '(\w+)' output from dtype\('(\w+)'\) to dtype\('(\w+)'\)",
        "an in-place {} whose result is {}, into an array of {}",
        "In place, the array keeps its dtype. Make the array float, or write a = a + b.",
    ),
    (
        r"only 0-dimensional arrays can be converted|only (?:length-1|size-1) arrays can be",
        "an array of several entries where one number is needed",
        "Which of its entries, or which sum of them, do you mean?",
    ),
    (
        r"'numpy\.\w+' object has no attribute '(\w+)'",
        "NumPy's arrays have nothing called {}",
        "Is it a function, np.name(x), rather than a part of x? Or is x not what you think?",
    ),
    (
        r"module 'numpy' has no attribute '(\w+)'",
        "NumPy has nothing called np.{}",
        "Compare the spelling with NumPy's documentation.",
    ),
)


def explain_numpy(text: str) -> tuple[str, str] | None:
    """Return (what happened, what to try) for the text of an error, None if it is not NumPy's."""
    for pattern, said, attempt in ROWS:
        if match := re.search(pattern, text):
            return said.format(*match.groups()), attempt
    return None
