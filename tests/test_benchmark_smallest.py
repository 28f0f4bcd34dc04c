"""The benchmark of the smallest calls: its rows are the registry's, and each runs."""

import pytest

from benchmarks import smallest
from minigrad.ops.base import Elementwise, registry


def test_every_elementwise_operation_has_a_row():
    rows = smallest.rows()
    for name, op in registry.items():
        ours = op.__module__.startswith("minigrad.") and name in smallest.operations.functions
        if ours and issubclass(op, Elementwise) and len(op.inputs) == 1:
            assert f"lib.{name}(u)" in rows


@pytest.mark.parametrize("text", smallest.rows())
def test_every_row_runs(text):
    function = eval(f"lambda: {text}", smallest.of_minigrad())
    for _ in range(3):
        assert function() is not None


def test_a_row_that_a_library_lacks_has_no_figure():
    assert smallest.measured("lib.no_such_name(a)", [smallest.of_minigrad()], 1) == [None]
    assert smallest.line("a | b", None, 2e-6) == ["`a \\| b`", "–", "2.0", "–"]
    assert smallest.line("a", 3e-6, 2e-6) == ["`a`", "3.0", "2.0", "1.50"]
