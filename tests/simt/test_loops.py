"""Loops over prange run as plain Python: races of their rounds are found, reductions are none."""

import numba
import numpy as np
import pytest
from numba import njit, prange

from minigrad.errors import DataRaceError
from minigrad.simt.watch.loops import run_rounds

X = np.arange(12.0).reshape(6, 2)


def one_element(x, out):
    for i in prange(len(x)):
        out[0] += x[i, 0]


def one_row(x, out):
    for i in prange(len(x)):
        out[:2] += x[i]


def by_a_method(x, out):
    for _ in prange(len(x)):
        out.fill(1.0)


def by_another_name(x, out):
    row = out[1:]
    for i in prange(len(x)):
        row[0] = x[i, 0]


def made_inside(x, out):
    partial = np.zeros(3)
    for i in prange(len(x)):
        partial[i % 3] += x[i, 0]
    out[0] = partial.sum()


def reads_a_neighbour(x, out):
    for i in prange(1, len(x)):
        out[i] = out[i - 1] + x[i, 0]


def sums_while_others_write(x, out):
    for i in prange(len(x)):
        out[i] = out.sum() + x[i, 0]


def transposed(x, out):
    turned = x.T
    for i in prange(len(x)):
        turned[0, i // 2] = out[i]


@njit
def put(out, value):
    out[0] += value


def in_a_helper(x, out):
    for i in prange(len(x)):
        put(out, x[i, 0])


def of_the_package(x, out):
    for i in numba.prange(x.shape[0]):
        out[i // 4] = x[i, 1]


RACES = {
    f.__name__: f
    for f in (
        one_element, one_row, by_a_method, by_another_name, made_inside, reads_a_neighbour,
        sums_while_others_write, transposed, in_a_helper, of_the_package,
    )
}  # fmt: skip


def a_variable(x, out):
    total = 0.0
    for i in prange(len(x)):
        total += x[i, 0]
    out[0] = total


def a_whole_array(x, out):
    total = np.zeros(2)
    for i in prange(len(x)):
        total += x[i]
    out[:2] = total


def own_elements(x, out):
    for i in prange(len(x)):
        own = np.zeros(2)
        own[0] += x[i].sum()
        out[i] = own[0] + np.sqrt(x[i, 1])


def two_loops(x, out):
    for i in prange(len(x)):
        out[i] = x[i, 0]
    for i in prange(len(x)):
        out[len(x) - 1 - i] += x[i, 1]


def a_thread_each(x, out):
    partial = np.zeros(numba.get_num_threads())
    for i in prange(len(x)):
        partial[numba.get_thread_id()] += x[i, 0]
    out[0] = partial.sum()


def one_in_another(x, out):
    for i in prange(len(x)):
        for j in prange(2):
            out[i] += x[i, j]


def a_plain_loop(x, out):
    for i in range(len(x)):
        out[0] += x[i, 0]


def masks(x, out):
    for i in prange(len(x)):
        out[i] = x[i][x[i] > 2.0].sum()


SOUND = {
    f.__name__: f
    for f in (
        a_variable, a_whole_array, own_elements, two_loops, a_thread_each, one_in_another,
        a_plain_loop, masks,
    )
}  # fmt: skip


@pytest.mark.parametrize("name", RACES)
def test_race_of_rounds_is_found_with_its_line(name):
    x, out = X.copy(), np.zeros(6)
    with pytest.raises(DataRaceError, match="two rounds of the loop") as caught:
        run_rounds(RACES[name], x, out)
    assert np.array_equal(x, X)
    assert not out.any(), "it works on copies"
    assert "test_loops.py:" in caught.value.where
    assert caught.value.thread != caught.value.other_thread
    assert caught.value.other_line > 0
    words = str(caught.value)
    assert "barrier" not in words
    assert "syncthreads" not in words


@pytest.mark.parametrize("name", SOUND)
def test_loop_without_a_race_gives_what_numba_gives(name):
    function, out = SOUND[name], np.zeros(6)
    _, (_, found), rounds = run_rounds(function, X, np.zeros(6))
    njit(function)(X, out)
    assert np.allclose(found, out)
    assert rounds == (0 if name == "a_plain_loop" else 6)


def test_message_names_both_rounds_and_the_element():
    with pytest.raises(DataRaceError) as caught:
        run_rounds(one_element, X, np.zeros(6))
    assert str(caught.value).splitlines()[:4] == [
        "out[0] += x[i, 0]: two rounds of the loop use one element, and nothing says who is first",
        "  got: element 0 of out",
        "  round: 1 reads it",
        "  other: 0 has written it",
    ]


def test_element_of_two_dimensions_is_named_by_its_indices():
    def corner(x, out):
        for i in prange(len(x)):
            out[1, 0] = x[i, 0]

    with pytest.raises(DataRaceError, match=r"element \(1, 0\) of out"):
        run_rounds(corner, X, np.zeros((2, 2)))


def test_compiled_function_arrays_of_any_layout_and_a_result():
    compiled = njit(parallel=True)(a_variable)
    _, (_, out), rounds = run_rounds(compiled, X[::-2, ::-1], np.zeros(1))
    assert (out[0], rounds) == (X[::-2, 1].sum(), 3)


def test_arguments_without_a_name():
    def starred(*arrays):
        for i in prange(len(arrays[0])):
            arrays[1][0] = i

    with pytest.raises(DataRaceError, match="element 0 of argument 1"):
        run_rounds(starred, X, np.zeros(2))


def test_loop_without_rounds():
    result, _, rounds = run_rounds(a_variable, X[:0], np.zeros(1))
    assert (result, rounds) == (None, 0)
