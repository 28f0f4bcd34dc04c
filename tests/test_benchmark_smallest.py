"""The benchmarks of smallest and of large calls: rows are the registry's, and each runs."""

import numpy as np
import pytest

import minigrad as mg
from benchmarks import alternate, large, programs, smallest
from minigrad.ops.base import Elementwise, registry
from tests.slow import slow_path


def test_every_elementwise_operation_has_a_row():
    rows = smallest.rows()
    for name, op in registry.items():
        ours = op.__module__.startswith("minigrad.") and name in smallest.operations.functions
        if ours and issubclass(op, Elementwise) and len(op.inputs) == 1:
            assert f"lib.{name}(u)" in rows
            assert f"lib.{name}(x)" in large.rows()


@pytest.mark.parametrize("text", smallest.rows())
def test_every_row_runs(text):
    function = eval(f"lambda: {text}", smallest.of_minigrad())
    for _ in range(3):
        assert function() is not None


@pytest.mark.parametrize("text", large.rows())
def test_every_row_of_large_arrays_runs(text):
    assert eval(text, large.operands(mg.variable, mg, 50)) is not None


def test_a_row_that_a_library_lacks_has_no_figure():
    assert smallest.call_of("lib.no_such_name(a)", smallest.of_minigrad()) is None
    assert alternate.medians([None], 1) == [None]
    assert alternate.line("a | b", 1e6, None, 2e-6) == ["a \\| b", "–", "2.0", "–"]
    assert alternate.compared([("a", [None, None])], 1e6, 1) == ([["a", "–", "–", "–"]], [])
    lines, (ratio,) = alternate.compared([("a", [lambda: 1, lambda: 2])], 1e6, 3)
    assert (lines[0][0], lines[0][3]) == ("a", f"{ratio:.2f}")
    assert alternate.line("a", 1e6, 3e-6, 2e-6) == ["a", "3.0", "2.0", "1.50"]
    text = alternate.summary({"versions": {"torch": "2.13"}}, [0.75, 1.25])
    assert "PyTorch 2.13. Median of the 2 ratios: 1.00, the largest 1.25; 1 are at most 1" in text


def test_programs_whose_gradients_differ_are_not_measured():
    def made(factor):
        return lambda: [np.full(2, factor)]

    assert len(programs.agreeing(made, [1.0, 1.00001])) == 2
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        programs.agreeing(made, [1.0, 1.1])


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_programs_give_what_they_gave(name):
    program = programs.PROGRAMS[name](programs.of_minigrad())
    first = [g.numpy() for g in program()]
    for _ in range(3):
        for g, before in zip(program(), first, strict=True):
            assert np.isfinite(before).all()
            np.testing.assert_array_equal(g.numpy(), before)
    with slow_path():
        for g, before in zip(program(), first, strict=True):
            np.testing.assert_allclose(g.numpy(), before, rtol=1e-5, atol=1e-6)
