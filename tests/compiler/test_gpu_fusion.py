"""What a program for a GPU computes together, and what it must not."""

import pytest

import minigrad as mg
from minigrad.array.array import Array
from tests.compiler import test_equality as cases
from tests.compiler.quick_gpu import QUICK
from tests.compiler.twins import check, numbers, same


def test_float64_is_for_the_numbers_of_a_step_alone():
    """Steps taken and the factors of Adam: one launch, over arrays of one number each."""
    with mg.device("simt"):
        (step,) = check(cases.CASES["Adam, zeroed first"], 3)
    launches = [x for region in step.traces[0].plan.bound.launches for x in region]
    sizes = [
        {x.size for x in launch.operands if isinstance(x, Array)}
        for launch in launches
        if "f8" in launch.kernel.signature
    ]
    assert sizes == [{1}]


FLOAT64_WITHIN = {
    "elements": lambda x: ((x.to("float64") + 1.0) - 1.0).to("float32"),
    "rows": lambda x: _centred(x.to("float64") + 1.0).to("float32"),
    "one a row": lambda x: ((x.to("float64") + 1.0).sum(axis=-1) - x.shape[-1]).to("float32"),
    "columns": lambda x: ((x.to("float64") + 1.0).sum(axis=0) - x.shape[0]).to("float32"),
    "all": lambda x: ((x.to("float64") + 1.0).mean() - 1.0).to("float32"),
    "a bundle": lambda x: [((v.to("float64") + 1.0) - 1.0).to("float32") for v in (x, x[0] * 3.0)],
    "ints": lambda x: ((x * 1e10).to("int64").to("float64") + 2.0**40).to("int64"),
}


def _centred(x):
    return x - x.mean(axis=-1, keepdims=True)


@pytest.mark.parametrize("device", ["simt", QUICK.name])
@pytest.mark.parametrize("name", FLOAT64_WITHIN)
def test_float64_that_no_array_holds(name, device):
    """Between float32 arrays a kernel computes in float64 where the step does."""
    function = FLOAT64_WITHIN[name]
    with mg.device(device):
        step, x = mg.compile(function), mg.variable([[1e-10, 3e-10, 9e-10], [2e-10, 5e-10, 7e-10]])
        for _ in range(3):
            same(numbers(function(x)), numbers(step(x)), 1e-13, name)


def texts(function, *arguments):
    """What the calls of a compiled function's program say of themselves; called three times."""
    step = mg.compile(function)
    for _ in range(3):
        same(numbers(function(*arguments)), numbers(step(*arguments)), 1e-6, "result")
    return [call.table.text for (call,) in step.traces[0].plan.regions]


def test_the_largest_of_computed_values_is_not_compared_where_it_is_found():
    """A kernel may compute a value anew in a second pass, and round it otherwise there."""

    def largest(y):
        return y == y.max(axis=-1, keepdims=True)

    with mg.device(QUICK.name):
        x = mg.randn((4, 5))
        first, second = texts(lambda x: largest(x * 0.1 + 1.0), x)
        assert "row_max" not in first
        assert "equal(f0, row_max(f0))" in second  # what memory holds is the same in each pass


def test_loops_of_two_types_of_reals_share_no_launch():
    def step(*xs):
        return [x * float(k + 2) for k, x in enumerate(xs)]

    with mg.device("simt"):
        plain = [mg.ones((20 + k,)) for k in range(3)]
        double = [mg.ones((30 + k,), dtype="float64") for k in range(3)]
        found = texts(step, *plain, *double)
    assert len(found) == 2
    for text in found:
        assert text.startswith("bundle ")
        assert ("F4" in text) != ("F8" in text)
