"""Compiled functions called from several threads, and in a forked child."""

import os
import threading
import time
import warnings

import pytest

import minigrad as mg
from minigrad import nn

pytestmark = pytest.mark.usefixtures("interpreted_plans")


def test_take_turns():
    total = mg.zeros((1,))
    step = mg.compile(lambda x: total.add_(x))
    errors = []

    def work():
        try:
            for _ in range(30):
                step(mg.ones((1,)))
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not errors
    assert total.tolist() == [120.0]


def test_modes_are_those_of_the_thread():
    w = nn.Parameter([2.0])
    step = mg.compile(lambda: (w * 2.0).sum())
    found = []

    def work():
        with mg.no_grad():
            found.extend(step().item() for _ in range(4))

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    assert found == [4.0] * 4
    assert step().requires_grad


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_forked_child_goes_on_although_a_thread_was_inside():
    inside, go_on = threading.Event(), threading.Event()

    @mg.compile
    def step(x, wait):
        if wait:
            inside.set()
            go_on.wait(20)
        return x * 2.0

    for _ in range(3):
        step(mg.ones((1,)), False)
    other = threading.Thread(target=step, args=(mg.ones((1,)), True))
    other.start()
    inside.wait(20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        status = 3
        try:
            status = 0 if step(mg.ones((1,)), False).tolist() == [2.0] else 4
        finally:
            os._exit(status)
    go_on.set()
    other.join()
    for _ in range(2000):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.01)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    assert os.waitstatus_to_exitcode(status) == 0
