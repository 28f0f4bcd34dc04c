"""Draws from distributions that Variables give."""

from minigrad.array.dtypes import float32, float64
from minigrad.array.layout import normalize_axis
from minigrad.formulas import expression as e
from minigrad.formulas.expression import call
from minigrad.hints import missing, teaching
from minigrad.ops import creation
from minigrad.ops.operands import as_variable, demand

__all__ = ["categorical"]


@teaching
def categorical(logits, shape=(), axis=-1, generator=None):
    """Draws classes with the probabilities softmax(logits).  (..., k, ...) -> (*shape, ..., ...).

    It takes the index of the largest logit plus noise -log(-log(u)), with u uniform (Gumbel 1954).
    For probabilities p pass mg.log(p); p need not add up to 1. The draws have no gradient.

    Args:
        logits: a Variable. A class with -inf is never drawn.
        shape: the shape of independent draws for each row of logits; () for one draw.
        axis: the axis of the k classes.
        generator: an mg.Generator; None for the default generator (mg.manual_seed).

    Returns:
        int64 from 0 to k - 1.

    Raises:
        ArgumentError: a row has NaN or inf, or no class with a probability above 0.
        ShapeError: the axis does not exist.

    >>> import minigrad as mg
    >>> logits = mg.log(mg.variable([0.0, 1.0]))
    >>> mg.random.categorical(logits).item(), mg.random.categorical(logits, (3,)).tolist()
    (1, [1, 1, 1])
    """
    x, shape = as_variable(logits, "categorical").detach(), creation.sizes_of("categorical", shape)
    axis = normalize_axis("categorical", axis, x.ndim)
    x = call("permute", x, [*(d for d in range(x.ndim) if d != axis), axis])
    x = x if x.dtype.is_float else x.to(float32)
    best = call("max", x, -1, False)
    demand(
        call("isfinite", best).array,
        "categorical: wanted in each row a finite logit, and neither NaN nor inf",
        x.describe(),
        "-inf is for a class that is never drawn; mg.log(p) are the logits of probabilities p",
    )
    u = creation.rand((*shape, *x.shape), float64, generator, x.device)
    return call("argmax", x.to(float64) - e.log(-e.log(u)), -1, False)


def __getattr__(name):
    raise missing("mg.random", name, "mg.random has no", known=__all__)
