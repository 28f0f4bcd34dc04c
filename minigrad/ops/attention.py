"""Scaled dot-product attention, as one operation that does not save the probabilities.

There is one probability per pair of query and key, so they would be the largest saved value. The
operation saves only q, k and v. Backward recomputes the probabilities, like FlashAttention (Dao et
al. 2022).
"""

import functools
import math

import numpy as np

from minigrad.arguments import flag
from minigrad.array.array import Array
from minigrad.array.dtypes import bool_
from minigrad.devices.backend import device_named, device_of
from minigrad.errors import ArgumentError, DTypeError, ShapeError
from minigrad.formulas import expression as e
from minigrad.formulas.expression import Program, call, symbol
from minigrad.ops.base import Structural
from minigrad.ops.gradient_plan import sum_to
from minigrad.ops.linear import matmul_arrays, swapped
from minigrad.ops.operands import check_floats, check_operands, variables
from minigrad.ops.routes import gradients
from minigrad.ops.rows import SoftmaxRow
from minigrad.ops.shape import swap_last
from minigrad.ops.structural_plan import StructuralPlan
from minigrad.seams import seams
from minigrad.tape.variable import Variable

CAUSAL = "causal"


def _masked(x, scale, other, far):
    """Scales scores, and replaces them with `far` where a mask of bools hides a key."""
    return e.where(other, x * scale, far)


def _shifted(x, scale, other, far):
    """Scales scores and adds a mask of floats. `far` replaces them where it is -inf."""
    return e.where(e.equal(other, -math.inf), far, x * scale + other)


_NAMES = ("x", "scale", "other", "far")
_x, _scale, _p = map(symbol, ("x", "scale", "p"))
SCALED = Program(["x", "scale"], [_x * _scale])
SOFTMAX = Program(["x", "scale"], [SoftmaxRow.formula(_x * _scale)])
MASKED, SHIFTED = (Program(_NAMES, [f(*map(symbol, _NAMES))]) for f in (_masked, _shifted))
# computes the gradient of the scores from x, the gradient of the probabilities p
SCORES = Program(["x", "p", "scale"], [_scale * _p * (_x - e.row_sum(_x * _p))])


@functools.lru_cache(maxsize=64)
def lower_triangle(rows, columns, device):
    """Makes the causal mask on a named device: an Array (rows, columns) of bools.

    True is where a query may see a key.
    """
    with seams.effects.paused():  # the result is cached, so a trace must not record it
        return device_named(device).from_numpy(np.tri(rows, columns, dtype=bool), bool_)


def _far(scores):
    """Returns the value of a masked score. Its exponential is 0; unlike -inf it gives no NaN."""
    return scores.dtype.limits[0]


def probabilities(q, k, scale, mask):
    """Computes softmax(scale q k^T), masked: a new Array (..., m, n).

    q: (..., m, d). k: (..., n, d). mask: None, 'causal', or an Array that broadcasts to the scores:
    bools that keep or mask a score, or floats to add to it.
    """
    if q.dtype.is_narrow:  # which may not hold the scores before they are scaled
        scaled = device_of(q).empty(q.shape, q.dtype)
        device_of(q).elementwise(SCALED, (q, scale), (scaled,))
        q, scale = scaled, 1.0
    scores = matmul_arrays(q, swapped(k))  # (..., m, n)
    if not scores.size:
        return scores
    device = device_of(scores)
    if isinstance(mask, str):
        mask = lower_triangle(*scores.shape[-2:], scores.device)
    if mask is not None:
        program = MASKED if mask.dtype.kind == "b" else SHIFTED
        device.elementwise(program, (scores, scale, mask, _far(scores)), (scores,))
        scale = 1.0
    device.rows(SOFTMAX, ("store",), (scores, scale), (scores,), scores.shape)
    return scores


def weights(q, k, scale, mask):
    """Computes the probabilities (..., m, n) of Variables, by differentiable ops."""
    if q.dtype.is_narrow:
        q, scale = q * scale, 1.0
    scores = call("matmul", q, swap_last(k))  # (..., m, n)
    if mask is None:
        return SoftmaxRow.apply(scores * scale)
    if isinstance(mask, str):
        mask = lower_triangle(*scores.shape[-2:], scores.device)
    other = mask if isinstance(mask, Variable) else Variable(mask)
    fitted = _masked if other.dtype.kind == "b" else _shifted
    return SoftmaxRow.apply(fitted(scores, scale, other, _far(scores)))


def score_gradient(dy, q, k, v, scale, mask):
    """Computes the gradient (..., m, n) of q k^T, by differentiable ops. dy: (..., m, e)."""
    p = weights(q, k, scale, mask)  # (..., m, n)
    dp = call("matmul", dy, swap_last(v))  # (..., m, n)
    return p * (dp - call("sum", dp * p, -1, True)) * scale


class AttentionPlan(StructuralPlan):
    """For first-order gradients, computes the probabilities once for all three of them."""

    def general(self, node, dy):
        if seams.in_backward:
            return super().general(node, dy)
        return gradients(self, node, dy, lambda *given: self._at_once(node, *given))

    backward = general

    def _at_once(self, node, dy, q, k, v):
        scale, mask = node.attributes
        p, results = probabilities(q, k, scale, mask), [None, None, None]  # p: (..., m, n)
        if self.mask & 4:
            results[2] = matmul_arrays(swapped(p), dy)  # (..., n, e)
        if self.mask & 3:
            dp = matmul_arrays(dy, swapped(v))  # (..., m, n)
            if dp.shape != p.shape:  # v has batch axes that q and k lack
                p = _as_wide(p, dp.shape)
            if dp.size:
                device_of(dp).rows(SCORES, ("store",), (dp, p, scale), (dp,), dp.shape)
            results[0] = matmul_arrays(dp, k) if self.mask & 1 else None
            results[1] = matmul_arrays(swapped(dp), q) if self.mask & 2 else None
        return [
            None if g is None else sum_to(g, shape)
            for g, (shape, _) in zip(results, node.wanted, strict=True)
        ]


def _as_wide(p, shape):
    """Copies p, broadcast to a shape."""
    device = device_of(p)
    out = device.empty(shape, p.dtype)
    device.copy(p, out)
    return out


class Attention(Structural):
    """softmax(scale q k^T) v, masked.

    (..., m, d), (..., n, d), (..., n, e), number, mask -> (..., m, e).
    """

    samples = [
        ((2, 3, 4), (2, 5, 4), (2, 5, 3), 0.5, None),
        ((3, 4), (3, 4), (3, 2), 0.7, CAUSAL),
        ((2, 2, 3), (4, 3), (4, 2), 1.0, None),
    ]

    def forward(q, k, v, scale, mask):
        return matmul_arrays(probabilities(q, k, scale, mask), v)

    gradients = (
        lambda dy, q, k, v, scale, mask: call(
            "matmul", score_gradient(dy, q, k, v, scale, mask), k
        ),
        lambda dy, q, k, v, scale, mask: call(
            "matmul", swap_last(score_gradient(dy, q, k, v, scale, mask)), q
        ),
        lambda dy, q, k, v, scale, mask: call("matmul", swap_last(weights(q, k, scale, mask)), dy),
    )


Attention.plan_type = AttentionPlan


def scaled_dot_product_attention(q, k, v, mask=None, is_causal=False):
    """Computes softmax(q k^T / sqrt(d)) v (Vaswani et al. 2017).

    (..., m, d), (..., n, d), (..., n, e) -> (..., m, e).

    Args:
        q: queries, of floats.
        k: keys.
        v: values.
        mask: broadcasts to (..., m, n). Bool: True where a query may see a key. Float: added to
            the scores; -inf hides a key. A query that sees no key gets zeros.
        is_causal: let query i see only keys 0 to i. Excludes a mask.

    Raises:
        ShapeError: the shapes of q, k, v or the mask do not fit together.
        DTypeError: q has no floats, or the mask has neither bools nor floats.
        ArgumentError: both a mask and is_causal=True were given.
    """
    q, k, v = variables("attention", q, k, v)
    is_causal = flag("scaled_dot_product_attention", "is_causal", is_causal)
    if min(q.ndim, k.ndim, v.ndim) < 2 or q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ShapeError(
            "scaled_dot_product_attention: wanted q (..., m, d), k (..., n, d), v (..., n, e)",
            f"{q.shape}, {k.shape} and {v.shape}",
        )
    check_floats("scaled_dot_product_attention", q)
    if is_causal and mask is not None:
        raise ArgumentError(
            "scaled_dot_product_attention: wanted a mask or is_causal=True, not both",
            fix="combine them in the mask: mask & mg.tril(mg.ones((m, n), 'bool'))",
        )
    scale = 1.0 / math.sqrt(q.shape[-1])
    if is_causal or mask is None:
        return Attention.apply(q, k, v, scale, CAUSAL if is_causal else None)
    mask = variables("attention", q, mask)[1]
    check_operands("attention", (q, k, v, mask))
    if not mask.ndim:
        mask = call("reshape", mask, (1,))  # () -> (1,)
    if mask.dtype.is_float:
        mask = mask.to(q.dtype)
        sees = call("not_equal", mask, -math.inf)
    elif mask.dtype.kind == "b":
        sees = mask
    else:
        raise DTypeError(
            "scaled_dot_product_attention: wanted a mask of bools or floats", mask.describe()
        )
    if mask.requires_grad:  # for a learned bias: only the composition of ops has its gradient
        y = call("matmul", weights(q, k, scale, mask), v)
    else:
        y = Attention.apply(q, k, v, scale, _fitting(mask, q, k))
    return call("where", call("any", sees, -1, True), y, 0.0)


def _fitting(mask, q, k) -> Array:
    """Checks that the mask broadcasts to the shape of the scores; returns a copy of its Array."""
    scores = (*np.broadcast_shapes(q.shape[:-2], k.shape[:-2]), q.shape[-2], k.shape[-2])
    try:
        fits = np.broadcast_shapes(mask.shape, scores) == scores
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(
            f"scaled_dot_product_attention: wanted a mask that broadcasts to {scores}",
            f"{mask.shape}",
        )
    return device_of(mask.array).convert(mask.array, mask.dtype)  # the user may write to the mask


functions = (scaled_dot_product_attention,)
