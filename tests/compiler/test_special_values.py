"""Compiled equals eager at 0, infinities, NaN, subnormal numbers: every operation, two orders."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.ops.base import Elementwise
from tests.ops import special

TOLERANCE = {"float32": 1e-5, "float64": 4e-14}
BATCHES = 8  # steps a dtype: a step of many operations compiles faster than many steps
OPS = special.public_ops()
NAMES = [n for n in OPS if n not in special.LEFT_OUT]
ELEMENTWISE = [n for n in NAMES if issubclass(OPS[n], Elementwise)]


def agree(eager, compiled):
    """Whether each element is the same: NaN, infinity, signed zero, or a number up to rounding.

    A fused multiply-add may leave what eager cancels to 0; a subnormal number may not become 0.
    """
    a, b = eager, compiled
    if a.dtype.kind != "f":
        return a == b
    error = TOLERANCE[a.dtype.name]
    with np.errstate(all="ignore"):
        same = (a == b) & ((np.signbit(a) == np.signbit(b)) | (a != 0))
        size = np.abs(a) + 4 * float(np.finfo(a.dtype).smallest_subnormal) / error
        size = np.where((np.abs(a) > 1e-20) | (np.abs(b) > 1e-20), size + 1, size)
        close = (np.abs(a - b) <= error * size) & np.isfinite(a - b) & ((a != 0) | (b != 0))
        return same | close | (np.isnan(a) & np.isnan(b))


@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.parametrize("dtype", special.DTYPES)
def test_every_operation_compiled_equals_eager_to_second_order(dtype, batch):
    names = NAMES if dtype == "float32" else ELEMENTWISE  # the others' kernels have the same text
    problems = list(special.problems(dtype, names[batch::BATCHES]))

    def step(*inputs):
        rest, found = list(inputs), []
        for p in problems:
            mine = [rest.pop(0) for _ in p.arrays]
            found.append(special.run(p, mine))
        return found

    inputs = [x for p in problems for x in special.inputs_of(p)]
    compiled = mg.compile(step)
    eager = compiled(*inputs)
    wrong = []
    for p, a, b in zip(problems, eager, compiled(*inputs), strict=True):
        for what in a:
            x, y = a[what].numpy(), b[what].numpy()
            is_zero_of_choice = p.op.name in ("max", "min") and what == "value 0"
            fine = agree(x, y) | (is_zero_of_choice & (x == y))
            wrong += [f"{p.op.name}, {what}: {x[i]}, compiled {y[i]}" for i in
                      map(tuple, np.argwhere(~fine)[:3])]  # fmt: skip
    assert not wrong, "\n".join(wrong)


def test_the_comparison_sees_what_it_should():
    x = np.array([0.0, -0.0, 1e-40, np.nan, np.inf, 1.0], np.float32)
    for wrong in (-0.0, 0.0, 1.0, np.nan, np.inf, 1.1):
        y = np.full_like(x, wrong)
        assert not agree(x, y).all()
    assert agree(x, x).all()
    y = np.array([-0.0, 0.0, 0.0, 1.0, -np.inf, 1.0001], np.float32)
    assert not agree(x, y).any()


@pytest.mark.parametrize("dtype", special.DTYPES)
def test_gradients_by_fused_kernels_equal_those_through_a_graph(dtype):
    for p in special.problems(dtype):
        if p.op.name == "batch_norm":  # through a graph the mean and variance given are x's own
            continue
        found = {what: v.numpy() for what, v in special.run(p, special.inputs_of(p)).items()}
        for what in found:
            if what.startswith("gradient in"):
                fused = found[what.replace(" in a graph", "")]
                assert agree(fused, found[what]).all(), (p.op.name, what)
