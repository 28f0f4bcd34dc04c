"""Passes where intervals, numbers and layouts end: one element more would be too many."""

import numpy as np
import pytest

from minigrad.array.dtypes import int32, int64
from minigrad.compiler.passes.constants import fold_constants
from minigrad.compiler.passes.dead import eliminate_dead
from minigrad.compiler.passes.helpers.arithmetic import result, stored
from minigrad.compiler.passes.helpers.regions import through
from minigrad.compiler.program.sketch import Sketch, view
from minigrad.formulas.expression import maximum, minimum, symbol
from tests.compiler.outcomes import stays


def test_a_store_with_gaps_stays_if_what_follows_covers_a_part_of_it():
    s = Sketch()
    t = s.temporary((6,))
    evens = view(t, (3,), (2,))
    s.exp(s.argument((3,)), out=evens)
    s.fill(0.0, out=view(t, (3,)))  # but not the last of them
    stays(eliminate_dead, s, [s.neg(evens)])


@pytest.mark.parametrize("place", [1, 2])
def test_the_first_and_the_last_element_of_a_write_are_no_constants(place):
    s = Sketch()
    t = s.fill(1.0, (4,))
    s.exp(s.argument((2,)), out=view(t, (2,), offset=1))
    stays(fold_constants, s, [s.neg(view(t, (1,), offset=place))])


@pytest.mark.parametrize("span", [(0, 5), (1, 4)])
def test_a_read_that_reaches_beyond_what_was_filled_is_no_constant(span):
    s = Sketch()
    (low, size), w = span, s.captured("w", (6,))
    s.fill(1.0, out=view(w, (4,)))
    stays(fold_constants, s, [s.neg(view(w, (size,), offset=low))])


@pytest.mark.parametrize(("dtype", "power"), [(int32, 31), (int64, 63)])
def test_the_first_float_beyond_an_integer_type_is_left_to_kernels(dtype, power):
    assert stored(np.float32(2.0**power), dtype) is None
    assert stored(np.float64(2.0**power), dtype) is None
    below = np.nextafter(np.float32(2.0**power), np.float32(0))
    assert stored(below, dtype) == int(below)


@pytest.mark.parametrize("choose", [maximum, minimum])
def test_not_a_number_is_the_largest_and_the_smallest_on_either_side(choose):
    a, b = symbol("a"), symbol("b")
    nan = float("nan")
    for numbers in ({"a": nan, "b": 1.0}, {"a": 1.0, "b": nan}):
        assert np.isnan(result(choose(a, b), numbers, np.float32))


def test_a_view_that_goes_back_over_the_end_of_a_row_is_no_view_of_the_source():
    s = Sketch()
    base, x = s.argument((3, 4)), s.argument((200,))
    other = view(x, (3, 4), (1, 3), 100)
    last_row = through(view(base, (4,), (-1,), 7), base, other)
    assert last_row == view(x, (4,), (-3,), 110)
    assert through(view(base, (2,), (-1,), 4), base, other) is None
    assert through(view(base, (2,), (1,), 3), base, other) is None
