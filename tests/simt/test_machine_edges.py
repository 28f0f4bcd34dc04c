"""The edges of types, of ranges and of arguments: what Numba's code does there."""

import itertools

import numpy as np
import pytest

from minigrad import simt
from minigrad.errors import NotInCudaError, OutOfBoundsError, SimulationError
from tests.simt.programs import both, define


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


def test_integer_powers_of_negative_exponents():
    """Numba's loop gives 0, but of 1 and -1 their powers, and of 0 the least number."""
    bases, exponents = (-3, -1, 0, 1, 2), (-2, -1, 0, 1, 3)
    pairs = list(itertools.product(bases, exponents))
    x, y = (np.array(column) for column in zip(*pairs, strict=True))
    out = np.zeros(len(pairs), np.int64)
    run("c[i] = a[i] ** b[i]", x, y, out, threads=len(pairs))
    least = -(2**63)
    assert out.reshape(5, 5).tolist() == [
        [0, 0, 1, -3, -27],
        [1, -1, 1, -1, -1],
        [least, least, 1, 0, 0],
        [1, 1, 1, 1, 1],
        [0, 0, 1, 2, 8],
    ]
    out = np.zeros(4, np.int64)
    run("if i > 1:\n    a[i] = 3 ** (i - 2)", out)  # the exponents of the others are negative
    assert out.tolist() == [0, 0, 1, 3]


@pytest.mark.parametrize("line", ["a[i] = 7 // N", "a[i] = 7 % N", "q, r = divmod(7, i - 2)"])
def test_division_by_zero_is_seen_in_constants_and_in_divmod(line):
    with pytest.raises(SimulationError, match="divided by zero"):
        run(line, np.zeros(4), N=0)


def test_divmod_where_the_divisor_of_others_is_zero():
    out = np.zeros((4, 2), np.int64)
    run("if i > 0:\n    a[i, 0], a[i, 1] = divmod(-7, i)", out)
    assert out.tolist() == [[0, 0], [-7, 0], [-4, 1], [-3, 2]]


@pytest.mark.parametrize("step", [3, -3])
def test_ranges_end_at_the_ends_of_their_type(step):
    edge = np.iinfo(np.int32).max if step > 0 else np.iinfo(np.int32).min
    starts = (edge - np.sign(step) * np.array([7, 6, 3, 0])).astype(np.int32)
    out = np.zeros(4, np.int64)
    body = f"for k in range(a[i], np.int32({edge}), np.int32({step})):\n    b[i] += 1"
    body += "\n    if b[i] > 9:\n        break"
    run(body, starts, out)
    assert out.tolist() == [3, 2, 1, 0]


def test_ranges_of_unsigned_numbers():
    out = np.zeros(4, np.int64)
    run("for k in range(a[i], np.uint64(5), a[i] + np.uint64(1)):\n    b[i] += 10 + k",
        np.array([0, 1, 4, 9], np.uint64), out)  # fmt: skip
    assert out.tolist() == [60, 24, 14, 0]


def test_a_range_takes_the_whole_part_of_a_float_as_in_numba():
    out = np.zeros(4, np.int64)
    run("for k in range(0.9, math.ceil(i / 2) + 0.7, 1.9):\n    a[i] += 1 + k", out)
    assert out.tolist() == [0, 1, 1, 3]


@pytest.mark.parametrize("bound", ["None", "(1, 2)", "cuda.threadIdx", "i > 2"])
def test_a_range_takes_numbers(bound):
    with pytest.raises(SimulationError, match="a bound of a range must be an integer"):
        run(f"for k in range({bound}):\n    pass")


def test_enumerate_and_zip_over_ranges_of_each_threads_own_length():
    text = """
def kernel(out):
    i = cuda.grid(1)
    s = 0
    for k, v in enumerate(range(i, 0, -2)):
        s += 1 + k * v
    for k, v in enumerate((5, 6), i):
        s += k * v
    for p, q in zip(range(i), range(3, 10 - i)):
        s = s * 3 + p * q
        if s % 5 == 0:
            continue
        s += 1
    else:
        s += 1000
    for k, (p, q) in enumerate(zip(range(9 - i), range(2 * i, 0, -1)), start):
        s += k + p * q
    out[i] = s
"""
    both(text, 1, 9, [np.zeros(9, np.int64)], start=3)


def test_not_of_a_tuple_and_of_arrays():
    out = np.zeros(4, np.int64)
    run("a[i] = (not ()) + 2 * (not (0,)) + 4 * (not i)", out)
    assert out.tolist() == [5, 1, 1, 1]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("t = (1, 2)\nb = t[1.0]", "an index must be an integer"),
        ("b = abs((1, 2))", "a tuple of 2"),
        ("b = np.maximum(a, 1)", "an array"),
        ("b = math.isnan((1, 2))", "a tuple of 2"),
    ],
)
def test_functions_of_numbers_take_numbers(body, words):
    with pytest.raises(SimulationError, match=words):
        run(body, np.zeros(4), threads=2)


def test_an_array_as_a_default_is_refused():
    with pytest.raises(NotInCudaError, match="t of helper has a default"):
        run("a[i] = helper(i)", np.zeros(4), helpers="def helper(i, t=T):\n    return t[i]",
            T=np.arange(4))  # fmt: skip


def test_positions_as_a_whole_in_branches():
    out = np.zeros(4, np.int64)
    body = "t = cuda.threadIdx\nif i > 1:\n    t = cuda.blockDim\na[i] = t.x * 10 + t.y"
    run(body, out)
    assert out.tolist() == [0, 10, 41, 41]


def test_print_of_tuples_and_positions(capsys):
    run("print('at', (i, (a[i], 2)), cuda.threadIdx)", np.arange(2.0), threads=2)
    assert capsys.readouterr().out == "at (0, (0.0, 2)) (0, 0, 0)\nat (1, (1.0, 2)) (1, 0, 0)\n"
    with pytest.raises(SimulationError, match="an array cannot be printed"):
        run("print(a)", np.arange(2.0))


def test_arrays_without_elements():
    out = np.zeros(4)
    for empty in (np.zeros((0, 4)), np.zeros((3, 4))[3:, ::2], out[4:].reshape(0, 1)):
        run("for k in range(a.shape[0]):\n    b[i] = a[k, 0]\nb[i] += a.size + 1", empty, out)
        with pytest.raises(OutOfBoundsError, match="outside of its array"):
            run("b[i] = a[0, 0]", empty, out)
    assert out.tolist() == [3] * 4


def test_memory_that_one_argument_may_write_and_another_may_not():
    for reads_first in (True, False):
        x = np.arange(8.0)
        fixed = x[4:] if reads_first else x
        fixed = fixed.view()
        fixed.flags.writeable = False
        first, second = (fixed, x) if reads_first else (x, fixed[4:])
        run(f"{'b' if reads_first else 'a'}[i] = {'a' if reads_first else 'b'}[i]", first, second)
        assert x.tolist() == [4, 5, 6, 7, 4, 5, 6, 7]
