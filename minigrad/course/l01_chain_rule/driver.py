"""Runs in the learner's process, where an array of an earlier call can be passed again."""

import numpy as np


def called_again(mine, name, arrays, others):
    """Call a function with arrays, overwrite these, and call it with them again.

    Return both results, the first as it was before the arrays changed.
    """
    function = getattr(mine, name)
    first = [np.array(part) for part in function(*arrays)]
    for array, values in zip(arrays, others, strict=True):
        array[...] = values
    return first, function(*arrays)
