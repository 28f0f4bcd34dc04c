"""Runs beside the learner's code for the checks of lesson 09: many steps, one call, one stage."""

import contextlib

import numpy as np


@contextlib.contextmanager
def naming_keys(names=()):
    """Make a KeyError inside the block describe its key; `names` are the parameters'."""
    try:
        yield
    except KeyError as error:
        key = error.args[0] if error.args else None
        if key in ("first_moment", "second_moment", "step"):
            error.add_note("before the first step of a parameter, its state is {}")
        elif isinstance(key, str) and key in names:
            error.add_note(f"{key} is a parameter; before its first step it has no entry in states")
        raise


def walk(mine, starts, gradients, begins, hyper):
    """Step several parameters in turn with adam_step; return their paths, (k, n, size).

    Parameter k rests until round begins[k]. A result that is no pair ends the walk and is returned.
    """
    learning_rate, betas, eps = hyper
    places, states = [p.copy() for p in starts], [{} for _ in starts]
    path = []
    for i in range(gradients.shape[1]):
        for k, begin in enumerate(begins):
            if i < begin:
                continue
            g = gradients[k, i].copy()
            with naming_keys():
                answer = mine.adam_step(places[k], g, states[k], learning_rate, tuple(betas), eps)
            if not (isinstance(answer, tuple | list) and len(answer) == 2):
                return answer
            if np.shape(answer[0]) != np.shape(starts[k]) or not isinstance(answer[1], dict):
                return answer
            places[k], states[k] = answer
        path.append([np.array(p, float) for p in places])
    return np.array(path).swapaxes(0, 1)


def step(mine, name, arguments):
    """Call a function for one step; return its answer, and its arguments afterwards."""
    given = [tuple(one) if isinstance(one, list) else one for one in arguments]
    with naming_keys():
        answer = getattr(mine, name)(*given)
    return {"answer": answer, "after": given[:3]}


def step_all(mine, parameters, gradients, states, hyper):
    """Call step_all; return its answer, its dicts afterwards, and whether it returned one of them.

    `hyper` is [learning_rate, betas, eps], or [] for the defaults.
    """
    hyper = [tuple(one) if isinstance(one, list | tuple) else one for one in hyper]
    with naming_keys([*parameters]):
        answer = mine.step_all(parameters, gradients, states, *hyper)
    parts = answer if isinstance(answer, tuple | list) else ()
    handed_out = any(part is one for part in parts for one in (parameters, states))
    after = {"parameters": parameters, "states": states}
    return {"answer": answer, "after": after, "handed_out": handed_out}


def stage(mine, k, s, g):
    """Run one stage of lean_adam alone; return s afterwards."""
    mine.STAGES[k](s, g)
    return s
