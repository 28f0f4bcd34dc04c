"""Small steps as people write them: each compiles, and does what it does uncompiled."""

import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import RetraceWarning
from tests.compiler.everyday import STEPS
from tests.compiler.twins import check

COMPILED = (  # by Numba, too; the programs of the others are interpreted
    "negative_log_likelihood_by_arange",
    "bandit_counts_of_the_action_taken",
    "mixup_with_a_permutation",
    "moving_average_with_bias_correction",
)
SIMULATED = (*COMPILED, "moves_of_rows_by_a_table", "causal_attention_by_writing_where_a_mask_says")


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


def programs_of(name):
    """One, and one more if a Python number changes: the first program has its first value."""
    *_, calls = STEPS[name](np.random.default_rng(7))
    numbers = {repr([x for x in call if not isinstance(x, np.ndarray)]) for call in calls}
    return min(len(numbers), 2)


def check_step(name, calls=7):
    """Eager and compiled, with a RetraceWarning as an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RetraceWarning)
        check(twin(name), calls, programs=programs_of(name))


@pytest.mark.parametrize("name", STEPS)
def test_step_equals_eager(name, interpreted_plans):
    check_step(name)


@pytest.mark.parametrize("name", [*STEPS][::4])
def test_step_equals_eager_on_a_gpu(name, on_quick):
    check_step(name, 5)


@pytest.mark.parametrize("name", COMPILED)
def test_step_equals_eager_as_machine_code(name):
    check_step(name)


@pytest.mark.parametrize("name", SIMULATED)
def test_step_equals_eager_in_the_simulator(name):
    with mg.device("simt"):
        check_step(name, 4)
