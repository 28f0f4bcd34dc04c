"""Reductions of every dtype, along columns, rows and everything, in generated kernels."""

import numpy as np
import pytest

import minigrad as mg
from tests.compiler.twins import check

FLOATS = "sum", "mean", "prod", "max", "min", "any", "all"
INTS = "sum", "prod", "max", "min", "any", "all"
AXES = 0, 2, None


def data(dtype):
    """Numbers of one sign, then of the other, so that no result is what a reduction begins with."""
    rng = np.random.default_rng(0)
    above = rng.integers(1, 100, (3, 5, 2))
    if dtype == "bool":
        return [above > 50, above > 200, above > 0]
    if dtype == "uint8":
        return [above, above + 150]
    return [above, -above]


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "float64", "int32", "int64", "uint8", "bool"]
)
def test_reductions(dtype):
    names = FLOATS if "float" in dtype else INTS

    def step(x):
        return [getattr(x, how)(axis=axis) for how in names for axis in AXES]

    calls = [(mg.variable(x, dtype),) for x in data(dtype)]
    check(lambda wrap: (wrap(step), [], calls), 4)
