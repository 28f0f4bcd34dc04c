"""Checks where a backward pass begins: at which Variable, and with which gradient."""

from minigrad.errors import ArgumentTypeError, DeviceError, DTypeError, GradientError, ShapeError
from minigrad.tape.variable import Variable, filled


def upstream(root, dy):
    """Checks a root and its dy; returns dy, or ones for a root of one element."""
    if not isinstance(root, Variable):
        raise ArgumentTypeError("backward: wanted a Variable", f"{type(root).__name__}")
    if not root.requires_grad:
        raise GradientError(
            "backward: this Variable requires no gradient, so there is no graph to go back through",
            root.describe(),
            "set requires_grad=True on a leaf it depends on, and compute it outside no_grad()",
        )
    if dy is None:
        if root.size != 1:
            raise GradientError(
                "backward: wanted one element, or an upstream gradient dy",
                f"shape {root.shape}",
                "reduce first (y.sum() or y.mean()), or pass dy of this shape",
            )
        return Variable(filled(root.array, 1.0))
    if not isinstance(dy, Variable):
        raise ArgumentTypeError(
            "backward: wanted a Variable for dy", f"{type(dy).__name__}", "mg.variable(dy)"
        )
    if dy.shape != root.shape:
        raise ShapeError(f"backward: wanted dy of shape {root.shape}", f"{dy.shape}")
    if dy.dtype is not root.dtype:
        raise DTypeError(f"backward: wanted dy of dtype {root.dtype}", f"{dy.dtype}")
    if dy.array.device != root.array.device:
        raise DeviceError(
            f"backward: wanted dy on {root.device}, like the Variable",
            dy.device,
            f"move it: dy.to({root.device!r})",
        )
    return dy
