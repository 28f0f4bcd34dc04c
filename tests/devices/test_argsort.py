"""The CPU's sort: by the digits of keys, and by merging where keys are equal or rows are short."""

import numpy as np
import pytest

import minigrad as mg

FEW = 48  # as in source/argsort.py
SIZES = (2, FEW - 1, FEW, FEW + 1, 300, 5000)
RNG = np.random.default_rng(1)
FLOATS = {
    "normal": lambda n, t: RNG.normal(size=n),
    "special": lambda n, t: RNG.choice(
        [np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf, t(5e-324), -np.finfo(t).tiny, 3.0], n
    ),
    "of any bits": lambda n, t: RNG.integers(0, 256, n * t().itemsize, np.uint8).view(t),
    "apart in the last bit": lambda n, t: 1 + RNG.integers(0, 7, n) * np.finfo(t).eps,
    "far apart": lambda n, t: np.where(
        RNG.random(n) < 0.02, np.finfo(t).max, RNG.integers(0, 9, n) * np.finfo(t).tiny
    ),
    "equal": lambda n, t: np.full(n, 2.5),
    "NaN": lambda n, t: np.full(n, np.nan),
}
INTS = {
    "few": lambda n: RNG.integers(-2, 3, n),
    "two digits": lambda n: RNG.integers(-400, 400, n),
    "33 bits": lambda n: RNG.integers(0, 2**33, n),
    "all": lambda n: RNG.integers(-(2**63), 2**63 - 1, n, endpoint=True),
    "limits": lambda n: RNG.choice([-(2**63), 2**63 - 1, 0], n),
    "far apart": lambda n: np.where(RNG.random(n) < 0.02, 2**62, RNG.integers(0, 90, n)),
    "sorted": np.arange,
    "reversed": lambda n: np.arange(n)[::-1],
}


def check(x):
    """Compare argsort, up and down, with NumPy's stable one by classes of equal elements."""
    unique = np.unique(x, equal_nan=True)  # NaN last, one for both zeros
    ranks = np.searchsorted(unique, x)
    found = mg.variable(x)
    for descending in (False, True):
        wanted = np.argsort(-ranks if descending else ranks, -1, kind="stable")
        got = mg.argsort(found, descending=descending).numpy()
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", FLOATS)
def test_floats(kind, dtype, n):
    check(np.stack([FLOATS[kind](n, dtype).astype(dtype) for _ in range(3)]))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", INTS)
def test_ints(kind, n):
    check(np.stack([INTS[kind](n).astype(np.int64) for _ in range(3)]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves(dtype):
    x = mg.variable(RNG.normal(size=(2, 500)).astype("f4")).to(dtype)
    wanted = np.argsort(x.to("float32").numpy(), -1, kind="stable")
    np.testing.assert_array_equal(mg.argsort(x).numpy(), wanted)


def test_many_rows_on_several_threads():
    check(RNG.integers(0, 50, (700, 400)))
