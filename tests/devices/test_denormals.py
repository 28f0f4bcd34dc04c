"""Subnormal numbers: eager, compiled and every thread compute in the mode of the caller."""

import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad.devices import denormals
from minigrad.devices.threads import Threads

TINY = np.float32(1e-40)
only_where_known = pytest.mark.skipif(not denormals.IS_KNOWN, reason="this processor has no mode")


def in_a_thread(function):
    """What function returns, called in a thread of its own: its mode is nobody else's."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def products(function, n=5):
    """What a function makes of n subnormal numbers without the mode, with it, and without."""

    def run():
        x, found = mg.full((n,), float(TINY)), []
        for mode in (False, True, False):
            assert mg.set_flush_denormal(mode) == denormals.IS_KNOWN
            y = function(x)
            mg.set_flush_denormal(False)
            found.append(set(y.numpy().tolist()))
        return found

    return in_a_thread(run)


@only_where_known
def test_an_eager_operation_follows_the_mode():
    assert products(lambda x: x * 2.0) == [{float(TINY + TINY)}, {0.0}, {float(TINY + TINY)}]


@only_where_known
@pytest.mark.parametrize("n", [5, 1 << 21])
def test_a_compiled_step_follows_the_mode_in_all_its_threads(n):
    step = mg.compile(lambda x: mg.where(x > 2.0, mg.tanh(mg.exp(x)), x * 0.5 + x * 1.5))
    in_a_thread(lambda: [step(mg.full((n,), float(TINY))) for _ in range(3)] and None)
    assert products(step, n) == [{float(TINY + TINY)}, {0.0}, {float(TINY + TINY)}]


@only_where_known
def test_workers_take_over_the_mode_of_whoever_they_work_for():
    pool = Threads(3)

    def modes(found):
        pool.run(lambda k: found.append(denormals.get_mode()), [(0,), (1,), (2,)])
        pool.together(lambda k: found.append(denormals.get_mode()), [(0,), (1,), (2,)], [])
        return set(found)

    def one():
        mg.set_flush_denormal(True)
        return modes([])

    assert modes([]) == {denormals.get_mode()}
    assert in_a_thread(one) == {denormals.FLUSH}
    assert modes([]) == {denormals.get_mode()}


@only_where_known
def test_the_mode_changes_two_bits_of_the_calling_thread_alone():
    before = denormals.get_mode()
    assert in_a_thread(lambda: (mg.set_flush_denormal(True), denormals.get_mode())[1]) == (
        denormals.FLUSH
    )
    assert denormals.get_mode() == before


def test_an_unknown_processor_is_said_and_nothing_changes(monkeypatch):
    monkeypatch.setattr(denormals, "IS_KNOWN", False)
    assert mg.set_flush_denormal(True) is False
    assert denormals.get_mode() == 0
    assert (mg.full((2,), float(TINY)) * 2.0).numpy().any()
