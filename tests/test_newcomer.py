"""What newcomers try first: it works as in NumPy and PyTorch, or the error says how it is here."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import GradientError, ShapeError

# -- shapes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "target", "wanted"),
    [
        ((3, 1), (3, -1), (3, 1)),
        ((3, 1), (-1, 4), (3, 4)),
        ((3, 1), (2, -1, 4), (2, 3, 4)),
        ((0, 1), (-1, 4), (0, 4)),
        ((), (), ()),
    ],
)
def test_expand_with_minus_one_keeps_the_size(shape, target, wanted):
    x = mg.ones(shape, requires_grad=True)
    y = x.expand(target)
    assert y.shape == wanted
    assert y.sum().item() == np.prod(wanted)
    y.sum().backward()
    copies = np.prod(wanted) / np.prod(shape) if np.prod(shape) else 0.0
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), np.full(shape, copies, "f4"))


@pytest.mark.parametrize("target", [(3, -2), (-1, 3, 4), (-1,), (-3, 1)])
def test_expand_to_a_negative_size_is_refused(target):
    with pytest.raises(ShapeError):
        mg.ones((3, 1)).expand(target)


# -- attributes ------------------------------------------------------------------------------------


def test_requires_grad_with_underscore_sets_and_returns_the_leaf():
    x = mg.ones((2,))
    assert x.requires_grad_() is x
    assert x.requires_grad
    assert not x.requires_grad_(False).requires_grad
    with pytest.raises(GradientError):
        (mg.ones((2,), requires_grad=True) * 2.0).requires_grad_(False)
