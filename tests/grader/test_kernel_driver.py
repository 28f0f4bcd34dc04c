"""What the driver of lesson 13 hands back: lines of the kernel, and none of another file."""

from types import SimpleNamespace

import numpy as np

from minigrad.course.l13_cuda_kernels.driver import launched, told
from minigrad.errors import KernelError
from minigrad.simt.language import cuda

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
