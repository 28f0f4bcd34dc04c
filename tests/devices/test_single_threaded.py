"""Blocks in which BLAS uses one thread: whatever happens, it has all of them again afterwards."""

import os
import warnings

import pytest

from minigrad.devices.cpu import blas
from tests.holding import held_elsewhere
from tests.interrupts import interrupted


@pytest.fixture
def count(monkeypatch):
    """[how many threads a BLAS of the test's own uses]: eight."""
    found = [8]
    functions = {"get": lambda: found[0], "set": lambda n: found.__setitem__(0, n)}
    monkeypatch.setattr(blas, "_counts", functions.__getitem__)
    return found


def test_one_thread_while_any_block_lasts(count):
    single = blas.SingleThreaded()
    with held_elsewhere(single):
        with single:
            assert count == [1]
        assert count == [1], "the other thread is still inside"
    assert count == [8]


def test_a_block_within_a_block_of_the_same_thread_does_nothing(count):
    single = blas.SingleThreaded()
    with single.unless_inside():
        with single.unless_inside():
            assert count == [1]
        assert count == [1]
        with held_elsewhere(single):
            assert count == [1]
    assert count == [8]


def test_after_an_interrupt_at_any_call_the_next_block_puts_it_right(count):
    single, k = blas.SingleThreaded(), 0

    def block():
        with single:
            pass

    block()
    while interrupted(k, blas.__file__, block):
        block()
        assert count == [8]
        with single:
            assert count == [1]
        assert count == [8]
        k += 1
    assert k > 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_has_all_threads_although_another_was_inside(count):
    with held_elsewhere(blas.single_threaded), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that there are threads is the point
        child = os.fork()
        if child == 0:
            os._exit(0 if count == [8] else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert count == [8]
