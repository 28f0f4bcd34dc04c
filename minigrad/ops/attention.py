"""Scaled dot-product attention."""

import math

import numpy as np

from minigrad.errors import ArgumentError, DTypeError, ShapeError
from minigrad.graph.variable import Variable
from minigrad.kernels.expression import call
from minigrad.ops.operands import constant
from minigrad.ops.rows import SoftmaxRow
from minigrad.ops.shape import swap_last

FAR = -1e30  # of a score that must not count: its exponential is 0, and no NaN can come of it


def scaled_dot_product_attention(q, k, v, mask=None, is_causal=False):
    """softmax(q k^T / sqrt(d)) v (Vaswani et al. 2017).

    (..., m, d), (..., n, d), (..., n, e) -> (..., m, e).

    Args:
        q: queries.
        k: keys.
        v: values.
        mask: what broadcasts to (..., m, n). Bool: True where a query may look; one that may look
            nowhere gets zeros. Float: added to the scores.
        is_causal: query i sees keys 0 to i only. Not together with a mask.
    """
    q, k, v = (x if isinstance(x, Variable) else constant(x, "attention") for x in (q, k, v))
    if min(q.ndim, k.ndim, v.ndim) < 2 or q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ShapeError(
            "scaled_dot_product_attention: wanted q (..., m, d), k (..., n, d), v (..., n, e)",
            f"{q.shape}, {k.shape} and {v.shape}",
        )
    if not q.dtype.is_float:
        raise DTypeError("scaled_dot_product_attention: wanted floats", q.describe())
    if is_causal and mask is not None:
        raise ArgumentError(
            "scaled_dot_product_attention: wanted a mask or is_causal=True, not both",
            fix="combine them in the mask: mask & mg.tril(mg.ones((m, n), 'bool'))",
        )
    scores = call("matmul", q * (1.0 / math.sqrt(q.shape[-1])), swap_last(k))
    if is_causal:
        seen = constant(np.tri(q.shape[-2], k.shape[-2], dtype=bool))
        return call("matmul", SoftmaxRow.apply(call("where", seen, scores, FAR)), v)
    if mask is None:
        return call("matmul", SoftmaxRow.apply(scores), v)
    mask = mask if isinstance(mask, Variable) else constant(mask, "attention")
    if mask.dtype.is_float:
        return call("matmul", SoftmaxRow.apply(scores + mask.to(scores.dtype)), v)
    if mask.dtype.kind != "b":
        raise DTypeError(
            "scaled_dot_product_attention: wanted a mask of bools or floats", mask.describe()
        )
    weights = SoftmaxRow.apply(call("where", mask, scores, FAR))
    sees = call("any", mask, -1, True)
    return call("where", sees, call("matmul", weights, v), 0.0)


functions = (scaled_dot_product_attention,)
