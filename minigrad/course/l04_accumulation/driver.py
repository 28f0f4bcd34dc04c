"""Runs beside the learner's code of lesson 04: small programs, and a model to differentiate."""

import numpy as np


def run(mine, program, wanted, arrays=()):
    """Run a program on the names of the learner's file.

    Args:
        mine: the learner's module.
        program: list of lines; their names are those of the file, np, and g and h.
        wanted: list of expressions.
        arrays: the values of g and h.

    Returns:
        Each expression's value after the program.
    """
    getattr(mine, "TAPES", []).clear()
    names = {**vars(mine), "np": np, **dict(zip("gh", arrays, strict=False))}
    exec("\n".join(program), names)
    return [eval(expression, names) for expression in wanted]


def failing(mine, program, last, wanted=()):
    """Run a program, then a last line that must raise; return what it raised.

    Returns:
        (names of the error's classes or None, its text, the values of `wanted`).
    """
    getattr(mine, "TAPES", []).clear()
    names = {**vars(mine), "np": np}
    exec("\n".join(program), names)
    kinds, text = None, ""
    try:
        exec(last, names)
    except (Exception, KeyboardInterrupt) as error:
        kinds, text = [kind.__name__ for kind in type(error).__mro__], str(error)
        if "NotImplementedError" in kinds:
            raise
    return kinds, text, [eval(expression, names) for expression in wanted]


def microbatches(mine, w, batches, learning_rate):
    """Take the step on the loss of a linear model, the mean over rows of |x @ w - y| ** 2.

    Returns:
        (the new w; w after the call; the new w once w is overwritten; for each call of
        mean_gradient the number of rows and its w; each call's result, and that after all calls).
    """
    calls, given = [], []

    def mean_gradient(w, x, y):
        calls.append((len(x), np.array(w, dtype=float)))
        error = np.tensordot(x, w, x.ndim - 1) - y
        g = np.tensordot(x, error, (0, 0)) * (2 / len(x))
        given.append((g.copy(), g))
        return g

    new = mine.microbatch_step(w, batches, mean_gradient, learning_rate)
    then, after = (one.copy() if isinstance(one, np.ndarray) else one for one in (new, w))
    w[...] = w == 0  # changes every entry, which shows in all that share its memory
    return then, after, new, calls, given
