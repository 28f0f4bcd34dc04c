"""Whether two layouts meet: exact to two axes, sure beyond."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from minigrad.array import overlap
from minigrad.array.overlap import overlaps, span


def layouts(most_axes):
    """(shape, strides, offset); axes of size 1 and of stride 0 among them."""
    axis = st.tuples(st.integers(0, 5), st.integers(-7, 7))
    return st.tuples(st.lists(axis, max_size=most_axes), st.integers(0, 30)).map(
        lambda x: (tuple(n for n, _ in x[0]), tuple(s for _, s in x[0]), 90 + x[1])
    )


def elements(layout):
    shape, strides, offset = layout
    return {offset + int(np.dot(i, strides)) for i in np.ndindex(*shape)}


@settings(deadline=None, max_examples=500)
@given(layouts(2), layouts(2))
def test_exact_to_two_axes(a, b):
    assert overlaps(a, b) == bool(elements(a) & elements(b))


@settings(deadline=None, max_examples=500)
@given(layouts(4), layouts(4))
def test_sure_beyond(a, b):
    if not overlaps(a, b):
        assert not elements(a) & elements(b)


@settings(deadline=None, max_examples=300)
@given(layouts(4))
def test_span(layout):
    shape, strides, _ = layout
    low, high, is_dense = span(shape, strides)
    shown = elements((shape, strides, 0))
    assert (low, high) == ((min(shown), max(shown) + 1) if shown else (0, 0))
    assert not is_dense or len(shown) == high - low


def test_parts_of_three_axes():
    heads = [((2, 5, 4), (60, 12, 1), 4 * k) for k in range(3)]
    assert not overlaps(heads[0], heads[1])
    assert overlaps(heads[1], ((2, 5, 5), (60, 12, 1), 0))


def test_too_many_lines_to_compare_count_as_meeting(monkeypatch):
    a, b = ((3, 4), (12, 5), 3), ((5, 4), (10, 5), 9)
    assert not elements(a) & elements(b)
    assert not overlaps(a, b)
    overlap._meet.cache_clear()
    monkeypatch.setattr(overlap, "MOST_PAIRS", 5)
    assert overlaps(a, b)
    overlap._meet.cache_clear()


def test_layouts_of_which_one_shows_multiples_of_3_and_the_other_none():
    a, b = ((5000, 4000), (15003, 3), 1), ((5000, 4000), (14997, 3), 0)
    assert not overlaps(a, b)


def test_large_layouts_take_no_time():
    rows, columns = ((3000, 2000), (8000, 2), 0), ((3000, 2000), (8000, 2), 1)
    assert not overlaps(rows, columns)
    assert overlaps(rows, ((3000, 2000), (8000, 3), 4001))
