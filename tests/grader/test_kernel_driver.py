"""What the driver of lesson 13 hands back: lines of the kernel, and none of another file."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from minigrad.course.l13_cuda_kernels.driver import launched, told
from minigrad.course.l13_cuda_kernels.launching import Counted, one_line, plain
from minigrad.errors import KernelError
from minigrad.simt.language.language import cuda

f4 = np.float32


def four_at_once(x, out):
    i = cuda.grid(1) * 4
    if i + 3 < x.size:
        a, b, c, d = cuda.load4(x, i)
        cuda.store4(out, i, a, b, c, d)
    else:
        for k in range(i, x.size):
            out[k] = x[k]


def test_the_line_that_wrote_an_element_is_known_after_wide_stores():
    x, out = np.arange(14, dtype=f4), np.zeros(20, f4)
    found = launched(SimpleNamespace(k=four_at_once), "k", 1, 32, [x, out])
    first = four_at_once.__code__.co_firstlineno
    assert found["arguments"][1].tolist() == [*range(14), *[0] * 6]
    assert found["lines"][0] is None
    assert found["lines"][1].tolist() == [first + 4] * 12 + [first + 7] * 2 + [0] * 6


def test_a_fault_has_a_line_of_the_kernel_or_none():
    place = "test_kernel_driver.py:7  out[i] = x[i]"
    for where, line, text in (
        (place, 7, "out[i] = x[i]"),
        ("runpy.py:88  run()", 0, ""),
        ("", 0, ""),
    ):
        found = told(KernelError("no", where=where), four_at_once)
        assert (found["line"], found["text"]) == (line, text)


def half_of_them(x, out):
    i = cuda.grid(1)
    if i < 16:
        out[i] = x[i]


def all_into_one(x, out):
    out[0] = x[cuda.grid(1)]


def two_into_one(x, out):
    i = cuda.grid(1)
    if i == 0:
        out[0] = x[0]
    if i == 1:
        out[0] = x[1]


def found_in(kernel):
    """What the driver finds in a launch of 32 threads."""
    return launched(SimpleNamespace(k=kernel), "k", 1, 32, [np.ones(32, f4), np.zeros(32, f4)])


def test_the_only_line_that_writes_is_named_also_where_it_leaves_elements_out():
    t: Any = SimpleNamespace(runner=SimpleNamespace(line_of=lambda name: "exercises/k.py:1"))
    counted = Counted(("x", "out"), found_in(half_of_them))
    place = f"exercises/k.py:{half_of_them.__code__.co_firstlineno + 3}\n  out[i] = x[i]"
    assert counted.writer(t, "out") == counted.writer(t, "out", at=15) == place
    assert counted.writer(t, "out", at=20) is None
    assert counted.writer(t, "x") is None


def test_a_race_of_one_line_is_told_from_one_of_two():
    assert found_in(all_into_one)["raised"] == found_in(two_into_one)["raised"] == "DataRaceError"
    assert one_line(found_in(all_into_one))
    assert not one_line(found_in(two_into_one))


def test_threads_are_called_by_as_many_numbers_as_their_launch_has():
    assert plain("block (2, 0, 0), thread (5, 0, 0)") == "thread 5 of block 2"
    assert plain("block (2, 0, 0), thread (5, 1, 0)") == "thread (5, 1) of block (2, 0)"
