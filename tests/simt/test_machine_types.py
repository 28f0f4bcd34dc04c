"""Types of results: those that Numba's CUDA target gives, asked of Numba itself."""

import math
import operator

import numpy as np
import pytest
from numba import types
from numba.cuda.descriptor import cuda_target

from minigrad.simt.language.functions import PLAIN
from minigrad.simt.machine.promotion import BINARY, UNARY, result_dtype
from tests.simt.programs import define, simt

KINDS = (
    *("bool", "int8", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
)
NUMBA = {name: types.boolean if name == "bool" else getattr(types, name) for name in KINDS}
SIGNS = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "Div": operator.truediv,
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
    "Pow": operator.pow,
    "LShift": operator.lshift,
    "RShift": operator.rshift,
    "BitAnd": operator.and_,
    "BitOr": operator.or_,
    "BitXor": operator.xor,
    "Lt": operator.lt,
    "Eq": operator.eq,
}


@pytest.fixture(scope="module")
def numba_type():
    context = cuda_target.typing_context
    context.refresh()

    def ask(function, *names):
        try:
            found = context.resolve_function_type(function, [NUMBA[n] for n in names], {})
        except Exception:  # Numba's own, of many kinds: there is no such operation
            return None
        return None if found is None else str(found.return_type)

    return ask


def _pairs():
    return [(a, b) for a in KINDS for b in KINDS if a == b or "bool" not in (a, b)]


@pytest.mark.parametrize("name", SIGNS)
def test_operators(name, numba_type):
    for a, b in _pairs():
        wanted = numba_type(SIGNS[name], a, b)
        got = result_dtype(name, np.dtype(a), np.dtype(b))
        assert (got and str(got)) == wanted, (name, a, b)
        if got is not None:
            values = np.array([1, 2], a), np.array([1, 1], b)
            assert BINARY[name](*values).dtype == got
            assert BINARY[name](values[0][0], values[1]).dtype == got
            assert BINARY[name](values[0][0], values[1][0]).dtype == got


@pytest.mark.parametrize(
    ("function", "mine"),
    [
        (operator.neg, UNARY["USub"]),
        (operator.pos, UNARY["UAdd"]),
        (operator.invert, UNARY["Invert"]),
        (abs, PLAIN[abs]),
        (float, PLAIN[float]),
        (round, PLAIN[round]),
        *[
            (f, PLAIN[f])
            for f in (math.exp, math.sqrt, math.sin, math.floor, math.ceil, math.fabs, math.log)
        ],
        *[(f, PLAIN[f]) for f in (math.isnan, math.erf, math.tanh, math.log1p)],
    ],
)
def test_functions_of_one_number(function, mine, numba_type):
    for name in KINDS:
        wanted = numba_type(function, name)
        if wanted is None or name == "bool":
            continue
        if (function, name) == (operator.pos, "float16"):
            continue  # numba-cuda keeps it, Numba's older CUDA target made float32 of it
        with np.errstate(over="ignore"):
            assert str(mine(np.ones(2, name)).dtype) == wanted, (function, name)
            assert str(mine(np.ones(2, name)[0]).dtype) == wanted


@pytest.mark.parametrize("function", [math.atan2, math.copysign, math.fmod, math.hypot, math.pow])
def test_functions_of_two_numbers(function, numba_type):
    names = ("int64", "uint16", "uint32", "float16", "float32", "float64")
    for a, b in [(a, b) for a in names for b in names]:
        if function is math.pow and np.dtype(a).kind == "f" and b == "uint16":
            continue  # Numba takes it for an int32, for which it has a function of its own
        got = PLAIN[function](np.ones(2, a), np.ones(2, b)).dtype
        assert str(got) == numba_type(function, a, b), (a, b)


@pytest.mark.parametrize("function", [min, max])
def test_extrema(function, numba_type):
    for a, b in _pairs():
        wanted = numba_type(function, a, b)
        if wanted is not None:
            assert str(PLAIN[function](np.ones(2, a), np.ones(2, b)).dtype) == wanted


def test_range():
    text = """
def kernel(n, start, out):
    for k in range(n):
        out[0] = (k * 65536) * 65536 != 0
    for k in range(start, n):
        out[1] = np.int32(k) == k
"""
    out = np.zeros(2, np.int64)
    simt.launch(define(text)["kernel"], 1, 1, (np.int32(2), np.int64(0), out))
    assert out.tolist() == [1, 1]


def test_literals_widen():
    """A float literal makes float64 of float32, and an int literal int64 of int32."""
    text = """
def kernel(x, n, out):
    i = cuda.grid(1)
    out[i, 0] = x[i] * 0.1
    out[i, 1] = x[i] * np.float32(0.1)
    out[i, 2] = (n[i] + 1) // 2
    out[i, 3] = n[i] + n[i]
"""
    x, n = np.array([1.5, 3.3], np.float32), np.array([2**31 - 1, 5], np.int32)
    out = np.zeros((2, 4))
    simt.launch(define(text)["kernel"], 1, 2, (x, n, out))
    wide = x.astype(float) * 0.1
    assert (out[:, 0] == wide).all()
    assert (out[:, 1] == (x * np.float32(0.1)).astype(float)).all()
    assert (out[:, 1] != wide).all()
    assert (out[:, 2] == [2**30, 3]).all()
    assert (out[:, 3] == [2**32 - 2, 10]).all()
