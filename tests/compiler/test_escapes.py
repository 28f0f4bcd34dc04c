"""Values that a traced step makes and somebody keeps: found by weak references, named by line."""

import copy

import pytest

import minigrad as mg
from minigrad.compiler.trace.capture import capture
from minigrad.errors import TraceError


def test_a_value_that_escapes_is_named():
    kept = []

    def step(x):
        y = x * 2.0
        kept.append(y.exp())
        return y

    captured = capture(step, (mg.variable([1.0]),))
    error = captured.escaped()
    assert isinstance(error, TraceError)
    assert "kept.append(y.exp())" in error.where
    assert "self.h.copy_(new)" in error.fix
    assert ("made by", "exp") in error.details
    for use in (
        lambda y: y + 1.0, lambda y: y.numpy(), lambda y: str(y), lambda y: y.item(),
        lambda y: copy.deepcopy(y), lambda y: y.sum(), lambda y: y.exp(), lambda y: y.clone(),
    ):  # fmt: skip
        with pytest.raises(TraceError, match="has no memory"):
            use(kept[0])
    with pytest.raises(TraceError, match="has no memory"):
        capture(lambda: kept[0] * 2.0)
    kept.clear()
    assert captured.escaped() is None


def test_a_returned_value_that_is_also_kept_has_escaped():
    kept = []

    def step(x):
        kept.append(x * 2.0)
        return kept[0]

    assert capture(step, (mg.ones((1,)),)).escaped() is not None


def test_a_circle_of_garbage_has_not_escaped():
    def step(x):
        circle = [x * 2.0]
        circle.append(circle)
        return x + 1.0

    assert capture(step, (mg.ones((1,)),)).escaped() is None


def test_memory_of_an_earlier_trace_is_no_operand_of_a_write():
    kept = []
    capture(lambda x: kept.append(x * 2.0), (mg.ones((2,)),))
    h = mg.zeros((2,))
    with pytest.raises(TraceError, match="has no memory"):
        h.copy_(kept[0])
    assert h.tolist() == [0.0, 0.0]
    assert "minigrad" not in str(kept[0].array)
    kept.clear()  # a buffer without memory goes nowhere
