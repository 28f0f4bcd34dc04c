"""The arrays that checks hand out have every shape, dtype and layout that they promise."""

import numpy as np
import pytest

from minigrad.grader.samples import (
    COPIED,
    DTYPES,
    SHAPES,
    arrays,
    attempt_for,
    numbers,
    odd_input,
    tolerance,
    views,
)


def test_every_shape_comes_and_the_plainest_first():
    found = list(arrays(np.random.default_rng(0)))
    assert [x.shape for x in found[: len(SHAPES)]] == list(SHAPES)
    assert {x.ndim for x in found} == {0, 1, 2, 3}
    assert {str(x.dtype) for x in found} == set(DTYPES)
    plain = [x.flags.c_contiguous for x in found]
    assert plain == sorted(plain, reverse=True), "layouts come last"
    assert plain.count(False) == 3


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("dtype", [*DTYPES, "int64"])
def test_numbers_stay_in_their_range_and_are_never_zero(seed, dtype):
    random = np.random.default_rng(seed)
    for low, high in ((-2, 2), (1, 3), (-3, -1), (0, 1)):
        x = numbers(random, (40,), dtype, low, high)
        assert x.dtype == dtype
        assert x.min() >= low
        assert x.max() <= high
        assert np.all(x != 0)


def test_views_hold_the_same_numbers_in_another_order_of_memory():
    x = np.arange(6.0).reshape(2, 3)
    found = list(views(x))
    assert all(np.array_equal(view, x) for view in found)
    assert len({view.strides for view in found} | {x.strides}) == 4
    assert list(views(np.array(3.0))) == []


def test_what_stays_as_it_was_in_its_layout_alone_was_copied():
    x = np.arange(6.0).reshape(2, 3)
    for view in views(x):
        assert attempt_for(view, view.copy(), "else") == COPIED
        assert attempt_for(view, view + 1, "else") == "else"
    assert attempt_for(x, x.copy(), "else") == "else"


def test_layouts_can_be_left_out():
    assert all(x.flags.c_contiguous for x in arrays(np.random.default_rng(0), layouts=False))


def test_a_dtype_has_its_own_tolerance():
    assert tolerance("float32") > np.finfo("float32").eps > tolerance("float64")


def test_what_is_odd_about_an_input():
    vector, number = np.ones(2), np.ones(())
    assert "no axes" in odd_input([number, {"b": number}])
    assert "empty" in odd_input([vector, np.ones((0, 3))])
    assert odd_input([vector, number, 2.0]) == odd_input([2.0]) == ""
