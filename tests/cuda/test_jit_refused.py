"""Kernels of one's own beside gradients and compiled steps: refused, with what to do instead."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import ArgumentTypeError, GradientError, InPlaceError, TraceError
from tests.cuda.kernels import half, halve

f4 = np.float32


@pytest.fixture
def x():
    return np.arange(10, dtype=f4)


def test_gradients_are_not_recorded(x):
    w = mg.variable(x, device="simt", requires_grad=True)
    with pytest.raises(GradientError, match=r"x\.detach\(\)"):
        halve[1, 32](w, mg.zeros(10, device="simt"))
    with mg.no_grad(), pytest.raises(GradientError, match=r"x\.detach\(\)"):
        halve[1, 32](w, mg.zeros(10, device="simt"))
    halve[1, 32](w.detach(), mg.zeros(10, device="simt"))


def test_the_forward_of_a_function_gives_values_to_a_kernel(x):
    class Half(mg.Function):
        @staticmethod
        def forward(ctx, a, detached):
            out = mg.zeros_like(a)
            halve[1, 32](a.detach() if detached else a, out)
            return out

        @staticmethod
        def backward(ctx, dy):
            dx = mg.zeros_like(dy)
            halve[1, 32](dy, dx)
            return dx, None

    w = mg.variable(x, device="simt", requires_grad=True)
    Half.apply(w, True).sum().backward()
    assert w.grad.tolist() == [0.5] * 10
    with pytest.raises(GradientError, match=r"x\.detach\(\)") as caught:
        Half.apply(w, False)
    assert "launch the kernel" not in caught.value.fix  # it is in the forward of one already
    assert "forward" in caught.value.fix
    assert "halve[1, 32]" in caught.value.where


def test_a_leaf_is_not_written_behind_autograd(x):
    w = mg.variable(x, device="simt", requires_grad=True)
    view = w.detach()
    (w * w).sum()
    with pytest.raises((InPlaceError, GradientError)):
        halve[1, 32](mg.ones(10, device="simt"), w)
    assert view.version == 0


@pytest.mark.parametrize("kind", ["argument", "outside", "NumPy"])
def test_a_traced_step_refuses_kernels(kind, x):
    given, out = mg.variable(x, device="simt"), mg.zeros(10, device="simt")
    outside = mg.ones(10, device="simt")

    @mg.compile
    def step(v):
        y = v + 1.0
        if kind == "argument":
            halve[1, 32](y, out)
        elif kind == "outside":
            halve[1, 32](outside, out)
        else:
            halve[1, 32](x, np.zeros_like(x))
        return y

    step(given)
    before = out.version
    with pytest.raises(TraceError, match="a kernel of your own, halve, cannot be part") as caught:
        step(given)
    assert "before or after the step" in caught.value.fix
    assert "halve[1, 32]" in caught.value.where
    assert out.version == before


def test_a_kernel_is_no_step():
    for made in (halve, half, halve[1, 32]):
        with pytest.raises(ArgumentTypeError, match=r"got: a CUDA kernel") as caught:
            mg.compile(made)
        assert "leave out mg.compile" in caught.value.fix
