"""Compiled training on a GPU is eager training on it: the cases of the CPU, on other devices.

`quick` runs the CPU's functions as kernels, so that many steps and all cases fit into seconds;
`simt` simulates the kernels that a GPU runs.
"""

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

import minigrad as mg
from minigrad import nn, optim
from tests.compiler import test_equality as cases
from tests.compiler.networks import rows
from tests.compiler.quick_gpu import QUICK
from tests.compiler.random_programs import programs
from tests.compiler.twins import check, elements, run


@pytest.mark.parametrize("name", cases.CASES)
def test_training(name):
    with mg.device(QUICK.name):
        (step,) = check(cases.CASES[name], 9, programs=cases.programs_of(name))
    assert step.traces[0].plan.device == QUICK.name


OTHERS = [
    cases.test_groups_schedule_and_a_moving_average,
    cases.test_frozen_and_unreached_parameters_with_empty_gradients,
    cases.test_two_backwards_of_views_in_float64,
    cases.test_gradients_in_one_program_and_the_update_in_another,
    cases.test_leaves_without_a_manager,
]


@pytest.mark.parametrize("case", OTHERS)
def test_other_ways_to_write_a_step(case):
    with mg.device(QUICK.name):
        case()


@pytest.mark.filterwarnings("ignore:the compiled step:minigrad.errors.RetraceWarning")
def test_training_and_evaluation_in_turn():
    with mg.device(QUICK.name):
        cases.test_training_and_evaluation_and_a_shorter_last_batch()


@pytest.mark.parametrize("device", ["simt"])
def test_random_programs(device):
    @seed(1)
    @settings(
        max_examples=5,
        deadline=None,
        database=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    @given(programs())
    def agree(program):
        with mg.device(device):
            check(program.make, 3, 2e-4, None)

    agree()


# -- simulated kernels -----------------------------------------------------------------------------


@pytest.fixture
def watched(monkeypatch):
    """The simulator searches for data races, and whatever else a kernel may do wrong."""
    from minigrad.devices.backend import device_named

    monkeypatch.setattr(device_named("simt"), "watch", True)


def small(data=rows):
    """A network with normalised rows, dropout and Adam."""
    return cases.training(
        lambda: nn.Sequential(
            nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU(), nn.Dropout(0.3), nn.Linear(8, 4)
        ),
        lambda m: optim.Adam(m, 0.01),
        data,
        more=lambda net: optim.clip_grad_norm_(net, 0.5),
    )


def test_simulated_kernels(watched):
    with mg.device("simt"):
        (step,) = check(small(), 4)
    plan = step.traces[0].plan
    assert plan.device == "simt"
    assert plan.bound.launches


def test_simulated_convolutions(watched):
    with mg.device("simt"):
        check(cases.CASES["CNN, momentum"], 2)


def test_parameters_of_one_element(watched):
    """Their updates share a launch: only the threads that write them may read them."""

    def make(wrap):
        parts = [nn.Parameter(mg.full((1,), float(k))) for k in range(6)]
        optimizer = optim.Adam(parts, 0.1)

        @wrap
        def step(x):
            for p in parts:
                p.grad = None
            loss = sum((p * x).sum() ** 2 for p in parts)
            loss.backward()
            optimizer.step()
            return loss

        return step, [optimizer, *parts], [(mg.ones((3,)),)]

    with mg.device("simt"):
        (step,) = check(make, 4)
    names = [call.table.name for (call,) in step.traces[0].plan.regions]
    assert names.count("bundle") == 2, names  # steps counted in float64, updates in float32


def test_the_cpu_agrees():
    wanted, before = run(small(), 4, lambda function: function, {4})
    with mg.device("simt"):
        got, after = run(small(), 4, mg.compile, {4})
    for k in range(4):
        assert abs(wanted[k]["loss"] - got[k]["loss"]) < 1e-4
    for name, x in before[4].items():
        if hasattr(x, "shape"):
            assert abs(x - after[4][name]).max() < 1e-4, name
        else:
            assert x == after[4][name] or abs(x - after[4][name]) < 1e-6, name


def test_fewer_launches_than_eager_steps_need():
    counts = {}
    for is_compiled in (False, True):
        with mg.device(QUICK.name):
            case = cases.CASES["Adam, zeroed first"]
            step, _, arguments = case(mg.compile if is_compiled else lambda f: f)
            for k in range(4):
                before = QUICK.launches
                elements(step(*arguments[k % 3])["loss"])
                counts[is_compiled] = QUICK.launches - before
    assert counts[True] < 0.8 * counts[False], counts
