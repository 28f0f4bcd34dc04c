"""Calls of one kernel that a thread leads, and of which threads on standby make some."""

import itertools
import struct
from typing import Any, cast

import numpy as np
import pytest

import minigrad as mg
from minigrad.devices import loader
from minigrad.devices.threads import (
    CALLS,
    FLOATS,
    INTEGERS,
    MIXED,
    Cut,
    Threads,
    _form,
    _led,
    threads,
)

FORMS = [
    (floats, n)
    for n in (1, 2, 3, 5, MIXED, MIXED + 1, INTEGERS, INTEGERS + 1)
    for floats in itertools.chain.from_iterable(
        itertools.combinations(range(min(n - 1, FLOATS + 1)), k) for k in range(3)
    )
]


def kernel_of(floats, n):
    """Return a kernel of n numbers that adds what it got, weighted, to the address in the last."""
    names = [f"x{k}" for k in range(n)]
    kinds = ["f8" if k in floats else "i8" for k in range(n)]
    total = " + ".join([f"{k + 1} * {x}" for k, x in enumerate(names[:-1])] or ["7"])
    text = f'@jit("void({", ".join(kinds)})")\ndef kernel({", ".join(names)}):\n'
    return loader.entry(loader.load(text + f"    f8_at({names[-1]})[0] += {total}\n").kernel)


@pytest.mark.parametrize(("floats", "n"), FORMS)
def test_each_call_is_made_once_with_its_own_arguments(floats, n):
    kernel, pool = kernel_of(floats, n), Threads(2)
    for count in (2, 5, CALLS, CALLS + 1):
        out = np.zeros(count)
        given = np.arange(1, count * (n - 1) + 1).reshape(count, n - 1) * [
            (0.37 if k in floats else 3) for k in range(n - 1)
        ]
        calls = [
            (
                *(float(x) if k in floats else int(x) for k, x in enumerate(row)),
                out[t:].ctypes.data,
            )
            for t, row in enumerate(given)
        ]
        pool.run(kernel, calls)
        want = given @ np.arange(1, n) if n > 1 else np.full(count, 7.0)
        np.testing.assert_allclose(out, want, rtol=1e-14)


def test_kernels_with_few_numbers_are_called_without_the_interpreter():
    assert _form(kernel_of((), INTEGERS))[2] == "q" * INTEGERS
    assert _form(kernel_of((0, 2), 4))[2] == "dqdq"
    assert _form(kernel_of((), INTEGERS + 1)) is None
    assert _form(kernel_of((FLOATS,), MIXED)) is None
    assert _form(kernel_of((0,), MIXED + 1)) is None
    assert _form(loader.source_kernel("denormals", "get_mode")) is None, "it returns a value"
    assert _form(print) is None


@pytest.mark.parametrize(("floats", "n"), [((), 4), ((0,), 4), ((0, 1), 3), ((), INTEGERS + 1)])
def test_what_differs_between_parts_is_added_to_their_operands(floats, n):
    kernel, pool, count = kernel_of(floats, n), Threads(2), 5
    out, given = np.zeros(count), [0.25 if k in floats else 10 * k for k in range(n - 1)]
    rows = [
        ([0 if k in floats else k + t for k in range(n - 1)], (out[t:].ctypes.data,))
        for t in range(count)
    ]
    cut = Cut(kernel, rows)
    assert (cut.words is None) == (n > INTEGERS), "else by the interpreter"
    for _ in range(3):
        pool.share(cut, given)
    wanted = [3 * sum((k + 1) * (x + d) for k, (x, d) in enumerate(zip(given, more, strict=True)))
              for more, _ in rows]  # fmt: skip
    np.testing.assert_allclose(out, wanted, rtol=1e-14)


TURN, INSIDE, WORDS, TAKEN = 0, 8, 16, 24  # places on the board of led_calls.py, in words


def test_a_thread_on_standby_makes_the_calls_that_are_left_beginning_with_its_own():
    lead, serve = cast("Any", _led)()
    text = (
        '@jit("void(i8,i8)")\ndef kernel(t, at):\n    x = i8_at(at)\n'
        "    x[x[0] + 1] = t\n    x[0] += 1\n"
    )
    address, form, kinds = _form(loader.entry(loader.load(text).kernel))
    made, board = np.zeros(9, np.int64), np.zeros(64, np.int64)
    calls = [number for t in range(6) for number in (t, made.ctypes.data)]
    words = np.frombuffer(struct.pack(kinds * 6, *calls), np.int64)
    at = board.ctypes.data
    lead(at, 6, 3, address, form, words.ctypes.data, 0, 0)
    assert made.tolist() == [6, 0, 1, 2, 3, 4, 5, 0, 0]
    assert board[TURN] == 2
    made[:] = 0
    serve(at)  # nobody opens the board: it returns
    assert made[0] == 0
    board[TAKEN : TAKEN + 6], board[TURN] = (1, 0, 0, 1, 0, 0), 3  # opened; two calls are taken
    serve(at)
    assert made.tolist() == [4, 2, 4, 5, 1, 0, 0, 0, 0], (
        "the first of three threads after the leader"
    )
    assert board[INSIDE] == 0


@pytest.mark.parametrize("count", [1, 2])
def test_a_number_keeps_the_sign_of_its_zero_in_every_part(count, monkeypatch):
    monkeypatch.setattr(threads, "count", count)
    x = mg.ones((300_000,))
    assert np.signbit((x * -0.0).numpy()).all()
    assert np.signbit(mg.where(x > 2.0, x, -0.0).numpy()).all()
