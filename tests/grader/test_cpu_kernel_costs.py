"""What the driver of lesson 11 counts: accesses, lines fetched, arrays made."""

import math
from math import exp
from types import SimpleNamespace

import numpy as np
import pytest
from numba import jit, njit

from minigrad.course.l11_cpu_kernels import driver
from minigrad.course.l11_cpu_kernels.driver import launched, like, temporaries, watched


@njit
def doubled(value):
    """Return twice a value."""
    return value * 2


@njit
def scale(x, out):
    """Double each element, by another compiled function."""
    for i in range(x.size):
        out[i] = doubled(x[i])


@njit
def through_an_array(x, out):
    """Double each element, through an array of its own."""
    y = x * 2
    for i in range(x.size):
        out[i] = y[i]


@njit
def down(x, out):
    """Copy a matrix, one column after the other."""
    for j in range(x.shape[1]):
        for i in range(x.shape[0]):
            out[i, j] = x[i, j]


@njit
def by_rows(x, out):
    """Copy a matrix, row by row, by views."""
    for i in range(x.shape[0]):
        row = x[i]
        for j in range(row.size):
            out[i, j] = row[j]


def test_each_access_is_counted_also_in_functions_that_a_kernel_calls():
    memory = watched(scale, ("x", "out"), (np.ones(10), np.zeros(10)))
    assert memory.reads == {"x": 10, "out": 0}
    assert memory.writes == {"x": 0, "out": 10}
    assert memory.fetched == {"x": 2, "out": 2}  # 80 bytes each
    assert isinstance(scale.py_func.__globals__["doubled"], type(scale))  # put back


def test_whole_arrays_are_counted_element_by_element():
    memory = watched(through_an_array, ("x", "out"), (np.ones(10), np.zeros(10)))
    assert memory.reads == {"x": 10, "out": 0, "temporary": 10}
    assert memory.writes == {"x": 0, "out": 10, "temporary": 10}


def test_lines_are_fetched_again_where_a_kernel_walks_across_them():
    x = np.zeros((100, 8))  # a line a row, and more rows than the cache has lines
    across = watched(down, ("x", "out"), (x, x.copy())).fetched
    assert across == {"x": 800, "out": 800}
    along = watched(by_rows, ("x", "out"), (x, x.copy())).fetched
    assert along == {"x": 100, "out": 100}


def test_views_and_reversed_arrays_lie_where_they_lay():
    base = np.arange(64.0).reshape(8, 8)
    for view in (base[::-1], base[:, ::-2], base.T, base[2:5, 1:]):
        copy = like(view)
        assert copy.strides == view.strides
        np.testing.assert_array_equal(copy, view)
    reversed_rows = np.zeros((4, 8))[::-1]
    assert watched(by_rows, ("x", "out"), (reversed_rows, np.zeros((4, 8)))).fetched["x"] == 4


def test_the_allocator_counts_what_a_compiled_kernel_asks_for():
    assert temporaries(scale, (np.ones(10), np.zeros(10))) == 0
    assert temporaries(through_an_array, (np.ones(10), np.zeros(10))) == 1
    assert temporaries(by_rows, (np.ones((3, 4)), np.zeros((3, 4)))) == 0  # views are no arrays


@njit
def beyond(x, out):
    """Write behind the end."""
    for i in range(x.size + 1):
        out[i] = x[i]


@jit(forceobj=True)
def in_object_mode(x, out):
    """Copy, in object mode."""
    for i in range(x.size):
        out[i] = x[i]


def test_an_index_out_of_bounds_raises_before_compiled_code_writes_there():
    with pytest.raises(IndexError, match="out of bounds"):
        launched(SimpleNamespace(k=beyond), "k", ("x", "out"), [np.ones(3), np.ones(3)])


def test_what_numba_has_not_compiled_is_no_kernel():
    arguments = [np.ones(3), np.ones(3)]
    for one in (scale.py_func, in_object_mode, 3):
        found = launched(SimpleNamespace(k=one), "k", ("x", "out"), arguments)
        assert "not_compiled" in found, one


@njit
def overflowing(x, out):
    """Write exp and log, where they are inf and nan."""
    for i in range(x.size):
        out[i] = math.exp(x[i]) + math.log(-x[i])


def test_functions_of_math_overflow_as_in_compiled_code():
    found = launched(
        SimpleNamespace(k=overflowing), "k", ("x", "out"), [np.array([1000.0]), np.ones(1)]
    )
    assert math.isnan(found["arguments"][1][0])
    assert overflowing.py_func.__globals__["math"] is math


@njit
def one_over(x, out):
    """Write 1 / x."""
    for i in range(x.size):
        out[i] = 1 / x[i]


def test_where_compiled_code_divides_by_zero_plain_python_says_what_numpy_gives():
    arguments = [np.array([2.0, 0.0]), np.full(2, 7.0)]
    found = launched(SimpleNamespace(k=one_over), "k", ("x", "out"), arguments)
    assert found["divided"]
    np.testing.assert_array_equal(found["arguments"][1], [0.5, math.inf])
    found = launched(SimpleNamespace(k=one_over), "k", ("x", "out"), [np.ones(2), np.zeros(2)])
    assert not found["divided"]
    np.testing.assert_array_equal(found["in_python"][1], found["arguments"][1])


def test_a_kernel_in_several_threads_is_refused_before_it_is_compiled():
    kernel = njit(parallel=True)(one_over.py_func)
    found = launched(SimpleNamespace(k=kernel), "k", ("x", "out"), [np.ones(2), np.zeros(2)])
    assert found == {"parallel": True}
    assert not kernel.signatures


def test_a_product_of_whole_arrays_is_refused():
    @njit
    def by_matmul(a, b, c):
        c[:] = a @ b

    @njit
    def by_dot(a, b, c):
        c[0, 0] = np.dot(a[0], b[:, 0])

    @njit
    def by_method(a, b, c):
        c[0, 0] = a[0].dot(b[:, 0])

    for kernel in (by_matmul, by_dot, by_method):
        found = launched(SimpleNamespace(k=kernel), "k", ("a", "b", "c"), [*np.ones((3, 2, 2))])
        assert found == {"product": True}


def test_elements_that_an_iterator_yields_are_counted():
    @njit
    def by_flat(x, out):
        for i in range(x.shape[0]):
            for j, value in enumerate(x[i].flat):
                out[i, j] = value

    @njit
    def by_enumeration(x, out):
        for place, value in np.ndenumerate(x):
            out[place] = value

    x = np.arange(800.0).reshape(8, 100).T  # a line has 8 elements of a column
    for kernel in (by_flat, by_enumeration):
        memory = watched(kernel, ("x", "out"), (x, np.zeros((100, 8))))
        assert memory.reads == {"x": 800, "out": 0}
        np.testing.assert_array_equal(memory.left[1], x)


@njit
def halved_exponent(value):
    """Return the square root of exp."""
    return exp(value / 2)


@njit
def by_names_of_math(x, out):
    """Write exp, by a name of math, where it overflows; log, in a lambda, at its pole and below."""
    for i in range(x.size):
        out[i] = halved_exponent(x[i]) if x[i] > 0 else (lambda v: math.log(v))(x[i])


def test_functions_of_math_by_name_and_in_a_lambda_give_what_compiled_code_gives():
    x, right = np.array([2000.0, 0, -1]), [np.inf, -np.inf, np.nan]
    memory = watched(by_names_of_math, ("x", "out"), (x, np.ones(3)))
    np.testing.assert_array_equal(memory.left[1], right)
    by_names_of_math(x, out := np.ones(3))
    np.testing.assert_array_equal(out, right)


def test_the_lines_in_the_text_of_the_lesson_are_those_of_three_plain_loops():
    def on_paper(a, b, c):
        for i in range(32):
            for j in range(32):
                total = 0.0
                for k in range(32):
                    total += a[i, k] * b[k, j]
                c[i, j] = total

    memory = driver.watched(njit(on_paper), ("a", "b", "c"), tuple(np.ones((3, 32, 32))))
    assert sum(memory.fetched.values()) == 4352
