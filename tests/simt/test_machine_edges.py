"""The edges of types, of ranges and of arguments: what Numba's code does there."""

import numpy as np
import pytest

from minigrad import simt
from minigrad.errors import OutOfBoundsError, SimulationError
from tests.simt.programs import define


def run(body, *arguments, threads=4, helpers="", **names):
    """One block; the arguments are called a, b, c."""
    text = f"{helpers}\n\ndef kernel({', '.join('abc'[: len(arguments)])}):\n    i = cuda.grid(1)\n"
    text += "".join(f"    {line}\n" for line in body.split("\n"))
    simt.launch(define(text, **names)["kernel"], 1, threads, arguments)


@pytest.mark.parametrize("index", ["np.uint32(i) - np.uint32(1)", "np.uint64(0) - np.uint64(1)"])
def test_unsigned_indices_do_not_count_from_the_end(index):
    for place in (f"b[i] = a[{index}]", f"b[{index}] = 1", f"b[i] = a[0:3][{index}]"):
        with pytest.raises(OutOfBoundsError) as caught:
            run(place, np.arange(4.0), np.zeros(4))
        assert "index 18446744073709551615 along axis 0" in caught.value.got
        assert caught.value.thread == (0, 0, 0)
    out = np.zeros(4)
    run("if i > 0:\n    b[i] = a[np.uint32(i) - np.uint32(1)]", np.arange(4.0), out)
    assert out.tolist() == [0, 0, 1, 2]


def test_positions_as_a_whole_in_branches():
    out = np.zeros(4, np.int64)
    body = "t = cuda.threadIdx\nif i > 1:\n    t = cuda.blockDim\na[i] = t.x * 10 + t.y"
    run(body, out)
    assert out.tolist() == [0, 10, 41, 41]
