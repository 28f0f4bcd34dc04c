"""Small steps as people write them: each compiles, and does what it does uncompiled."""

import warnings

import numpy as np
import pytest

import minigrad as mg
from tests.compiler.everyday import STEPS
from tests.compiler.twins import check

COMPILED = ()  # by Numba too; the others' programs are interpreted


def twin(name):
    """The step as `twins.check` wants it: its arguments are Variables."""

    def make(wrap):
        step, things, calls = STEPS[name](np.random.default_rng(7))
        made = [
            tuple(mg.variable(x) if isinstance(x, (np.ndarray, np.float32)) else x for x in call)
            for call in calls
        ]
        return wrap(step), things, made

    return make


def check_steps(name, programs=1):
    """Eager and compiled, with a RetraceWarning as an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", mg.errors.RetraceWarning)
        check(twin(name), calls=7, programs=programs)


@pytest.mark.parametrize("name", STEPS)
def test_step_equals_eager(name, interpreted_plans):
    check_steps(name)
