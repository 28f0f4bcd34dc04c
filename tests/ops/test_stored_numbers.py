"""A Python number in memory of another dtype: NumPy's result, by every way that writes one."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad.array.dtypes import DTYPES
from minigrad.errors import DTypeError

WAYS = {
    "full": lambda v, d: mg.full((2,), v, dtype=d),
    "full_like": lambda v, d: mg.full_like(mg.zeros((2,), dtype=d), v),
    "fill_": lambda v, d: mg.zeros((2,), dtype=d).fill_(v),
    "copy_": lambda v, d: mg.zeros((2,), dtype=d).copy_(v),
    "slice": lambda v, d: _written(slice(None), v, d),
    "indices": lambda v, d: _written([0, 1], v, d),
    "mask": lambda v, d: _written(mg.variable([True, True]), v, d),
    "pad": lambda v, d: mg.pad(mg.zeros((0,), dtype=d), 1, value=v),
    "masked_fill": lambda v, d: mg.masked_fill(mg.zeros((2,), dtype=d), [True, True], v),
}
NUMBERS = [  # no float32 is 16777217 or 1e12 + 1, nor near 1e-50
    (16777217.0, "int32"), (-16777217.0, "int64"), (1e12 + 1, "int64"), (2**62 + 1, "int64"),
    (np.float64(1e12 + 1), "int64"), (np.float32(7), "uint8"), (np.int64(2**62 + 1), "int64"),
    (1e-50, "bool"), (0.0, "bool"), (1e-50, "float64"), (16777217.0, "float64"),
]  # fmt: skip


def _written(index, value, dtype):
    x = mg.zeros((2,), dtype=dtype)
    x[index] = value
    return x


@pytest.mark.parametrize("device", ["cpu", "numpy", "simt"])
@pytest.mark.parametrize("way", WAYS)
def test_a_number_is_stored_as_numpy_stores_it(way, device):
    with mg.device(device):
        for value, dtype in NUMBERS:
            if way == "pad" and (value, dtype) == (1e-50, "bool"):
                continue  # which is refused
            got = WAYS[way](value, dtype)
            np.testing.assert_array_equal(
                got.to("cpu").numpy(), np.full(2, value, dtype), f"{value!r} {dtype}"
            )


@pytest.mark.parametrize("way", WAYS)
def test_a_number_that_changes_is_stored_as_numpy_stores_it(way):
    for dtype in ("int64", "bool", "float64"):
        step = mg.compile(lambda v, d=dtype: WAYS[way](v, d))
        for value in (1.0, 0.0, 1e12 + 1, 16777217.0, 1.0):
            if way != "pad" or dtype != "bool" or value in (0, 1):
                np.testing.assert_array_equal(step(value).numpy(), np.full(2, value, dtype))


@pytest.mark.filterwarnings("ignore::minigrad.errors.RetraceWarning")
@pytest.mark.parametrize(
    "make", [lambda v: mg.full((), v, dtype="int32"), lambda v: mg.variable(v, dtype="int32")]
)
def test_a_fraction_that_a_compiled_step_receives_is_refused_as_in_eager_mode(make):
    step = mg.compile(make)
    for value in (1.0, 2.0, 3.0, 2.5, 4.0, -0.5):
        if value % 1:
            with pytest.raises(mg.errors.DTypeError, match="wanted whole numbers for int32"):
                step(value)
        else:
            assert step(value).item() == value


CHOICES = {
    "where": lambda x, v: mg.where([True, False], v, x),
    "where, last": lambda x, v: mg.where([False, True], x, v),
    "masked_fill": lambda x, v: mg.masked_fill(x, [True, False], v),
}
HALVES = [d.name for d in DTYPES if d.is_narrow]


@pytest.mark.parametrize("wrap", [lambda f: f, mg.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", [*HALVES, "float32"])
@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_refuses_a_number_that_the_dtype_does_not_hold(name, dtype, wrap):
    x, choose = mg.variable([1.0, 2.0], dtype), wrap(CHOICES[name])
    most = x.dtype.limits[1]
    for value in (3.0, 4.0, 5.0, -most, most, -math.inf, math.inf):  # the second makes a route
        assert choose(x, value)[0].item() == value
    assert math.isnan(choose(x, math.nan)[0].item())
    for value in (-x.dtype.overflow, x.dtype.overflow, -1e300):
        with pytest.raises(DTypeError, match=f"wanted numbers that {dtype} holds"):
            choose(x, value)
    assert choose(x, 3.0)[0].item() == 3.0
