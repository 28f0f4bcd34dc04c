"""Each pass: what it does, what it must not touch; and all of them on random recordings."""

import numpy as np
from hypothesis import given, settings

from minigrad.compiler.passes import simplify
from tests.compiler.interpreter import execute
from tests.compiler.random_recordings import recordings


def outcome(recording, data, dead=()):
    """Results, then captured memory, but for dead slices, after a run in NumPy."""
    memory = {value: values.copy() for value, values in data.items()}
    results = execute(recording, memory)
    for value, offset, size in dead:
        memory[value][offset : offset + size] = 0
    return [*results, *(memory[value] for value in data)]


def same(before, after):
    """Whether two outcomes agree, NaN for NaN."""
    return all(
        a.dtype == b.dtype
        and a.shape == b.shape
        and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        for a, b in zip(before, after, strict=True)
    )


class TestAll:
    @settings(max_examples=300, deadline=None)
    @given(recordings(most=20))
    def test_random_recordings_mean_the_same(self, made):
        recording, data = made
        after, _ = simplify(recording)
        assert same(outcome(recording, data), outcome(after, data))
