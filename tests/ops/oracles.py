"""What each operation of the registry should give: NumPy formulas that know nothing of the engine.

Floats come as float64, ints as int64, bools as bool; attributes follow the inputs.
"""

import math

import numpy as np

erf = np.vectorize(math.erf, otypes=[float])


def sigmoid(x):
    """1 / (1 + e^-x)."""
    return np.where(
        x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x)))
    )


def softmax(x):
    """Along the last axis."""
    exponential = np.exp(x - x.max(-1, keepdims=True))
    return exponential / exponential.sum(-1, keepdims=True)


def log_softmax(x):
    """Along the last axis."""
    centred = x - x.max(-1, keepdims=True)
    return centred - np.log(np.exp(centred).sum(-1, keepdims=True))


def cross_entropy(x, label, smoothing):
    """A loss per row, (n, 1)."""
    k = x.shape[-1]
    target = np.eye(k)[label[..., 0]] * (1 - smoothing) + smoothing / k
    return -(target * log_softmax(x)).sum(-1, keepdims=True)


def attention(q, k, v, scale, mask):
    """softmax(scale q k^T) v, causal or not."""
    scores = scale * (q @ np.swapaxes(k, -1, -2))
    if mask == "causal":
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    return softmax(scores) @ v


def least_squares(a, b):
    """By the pseudo-inverse."""
    return np.linalg.pinv(a) @ b if a.size else np.zeros((len(a), a.shape[2], b.shape[2]))


def norm_of_row(x, eps):
    """x with mean 0 and variance 1 along the last axis."""
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)


def log_sum_exp(x):
    """Along the last axis, kept."""
    m = x.max(-1, keepdims=True)
    m = np.where(np.isfinite(m), m, 0)
    return m + np.log(np.exp(x - m).sum(-1, keepdims=True))


def sum_to(x, shape):
    """The sum over broadcast axes."""
    pad = x.ndim - len(shape)
    x = x.sum(tuple(range(pad)))
    axes = tuple(d for d, n in enumerate(shape) if n == 1)
    return x.sum(axes, keepdims=True).reshape(shape)


def indexed(spec):
    """A NumPy index from the spec of a slice."""
    items = []
    for item in spec:
        if isinstance(item, tuple):
            start, step, count = item
            stop = start + step * count
            item = slice(start, None if stop < 0 else stop, step)
        items.append(item)
    return tuple(items)


def placed(x, shape, index):
    """Zeros with x at an index."""
    out = np.zeros(shape)
    out[index] = x
    return out


def take_adjoint(x, index, shape, axis):
    """Sums along an axis to where the index says."""
    out = np.zeros(shape)
    if axis is None:
        np.add.at(out.reshape(-1), index, x)
    else:
        np.add.at(out, (*(slice(None),) * axis, index), x)
    return out


def with_item(x, y, place):
    """x with y at a basic index."""
    out = x.copy()
    out[indexed(place.spec)] = y
    return out


def padded(x, window):
    """Images with the window's border of zeros."""
    (p, q) = window.padding
    return np.pad(x, ((0, 0), (0, 0), (p, p), (q, q)))


def windows_at(window, size):
    """Per element of a window, its index in the padded image: (ki, kj, rows, columns)."""
    (kh, kw), (sh, sw), _, (dh, dw) = window
    oh, ow = window.counts(size)
    for ki in range(kh):
        for kj in range(kw):
            rows = slice(ki * dh, ki * dh + (oh - 1) * sh + 1, sh)
            columns = slice(kj * dw, kj * dw + (ow - 1) * sw + 1, sw)
            yield ki, kj, rows, columns


def unfold(x, window):
    """(b, c * kh * kw, oh * ow)."""
    wide = padded(x, window)
    parts = [wide[:, :, r, c] for _, _, r, c in windows_at(window, x.shape[2:])]
    stacked = np.stack(parts, 2)  # b, c, elements, oh, ow
    b, c, n, oh, ow = stacked.shape
    return stacked.reshape(b, c * n, oh * ow)


def fold(columns, shape, window):
    """The adjoint of unfold."""
    b, c, h, w = shape
    p, q = window.padding
    oh, ow = window.counts((h, w))
    out = np.zeros((b, c, h + 2 * p, w + 2 * q))
    parts = columns.reshape(b, c, -1, oh, ow)
    for k, (_, _, rows, cols) in enumerate(windows_at(window, (h, w))):
        out[:, :, rows, cols] += parts[:, :, k]
    return out[:, :, p : p + h, q : q + w]


def largest(x, window):
    """Flat places of the first largest elements."""
    p, q = window.padding
    wide = np.full((*x.shape[:2], x.shape[2] + 2 * p, x.shape[3] + 2 * q), -np.inf)
    wide[:, :, p : p + x.shape[2], q : q + x.shape[3]] = x
    places = np.full(wide.shape, -1)
    places[:, :, p : p + x.shape[2], q : q + x.shape[3]] = np.arange(x.size).reshape(x.shape)
    at = list(windows_at(window, x.shape[2:]))
    values = np.stack([wide[:, :, r, c] for _, _, r, c in at])
    chosen = np.stack([places[:, :, r, c] for _, _, r, c in at])
    return np.take_along_axis(chosen, values.argmax(0)[None], 0)[0]


def conv(x, w, bias, window, groups):
    """Cross-correlation by its definition."""
    wide = padded(x, window)
    n, o = x.shape[0], w.shape[0]
    out = np.zeros((n, o, *window.counts(x.shape[2:])))
    per_in, per_out = w.shape[1], o // groups
    for group in range(groups):
        mine = slice(group * per_out, (group + 1) * per_out)
        seen = wide[:, group * per_in : (group + 1) * per_in]
        for ki, kj, rows, columns in windows_at(window, x.shape[2:]):
            out[:, mine] += np.einsum(
                "bchw,oc->bohw", seen[:, :, rows, columns], w[mine, :, ki, kj]
            )
    return out + bias.reshape(1, -1, 1, 1)


def conv_input(g, w, shape, window, groups):
    """The adjoint of conv in x, through an explicit matrix."""
    return adjoint(lambda x: conv(x, w, np.zeros(w.shape[0]), window, groups), shape, g)


def conv_weight(g, x, shape, window, groups):
    """The adjoint of conv in w."""
    return adjoint(lambda w: conv(x, w, np.zeros(shape[0]), window, groups), shape, g)


def adjoint(linear, shape, g):
    """The adjoint of a linear function at g: its inner products with the images of unit arrays."""
    out = np.zeros(math.prod(shape))
    for k in range(out.size):
        unit = np.zeros(out.size)
        unit[k] = 1.0
        out[k] = (linear(unit.reshape(shape)) * g).sum()
    return out.reshape(shape)


def batch_norm(x, w, b, mean, var, eps):
    """With given statistics."""
    shape = (1, -1, *(1,) * (x.ndim - 2))
    mean, var, w, b = (v.reshape(shape) for v in (mean, var, w, b))
    return (x - mean) / np.sqrt(var + eps) * w + b


def huber(x, t, delta):
    """Per element."""
    d = np.abs(x - t)
    return np.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta))


def diagonal_adjoint(x, shape, a, b):
    """The adjoint of np.diagonal."""
    out = np.zeros(shape)
    n = x.shape[-1]
    moved = np.moveaxis(out, (a, b), (-2, -1))
    moved[..., np.arange(n), np.arange(n)] = x
    return out


SQRT_2_OVER_PI = math.sqrt(2 / math.pi)
ORACLES = {
    "neg": lambda x: -x,
    "abs": np.abs,
    "sign": np.sign,
    "square": lambda x: x * x,
    "sqrt": np.sqrt,
    "root_of_squares": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "sigmoid": sigmoid,
    "erf": erf,
    "relu": lambda x: np.maximum(x, 0),
    "leaky_relu": lambda x, slope: np.where(x > 0, x, slope * x),
    "elu": lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),
    "gelu": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(SQRT_2_OVER_PI * (x + 0.044715 * x**3))),
    "silu": lambda x: x * sigmoid(x),
    "softplus": lambda x: np.logaddexp(x, 0.0),
    "round": np.round,
    "floor": np.floor,
    "ceil": np.ceil,
    "logical_not": np.logical_not,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "atan2": np.arctan2,
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
    "pow": lambda a, b: a**b,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "where": lambda c, a, b: np.where(c != 0, a, b),
    "clip": np.clip,
    "copy_of": lambda a, b: np.broadcast_to(b, np.broadcast_shapes(a.shape, b.shape)),
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "softmax_row": softmax,
    "log_softmax_row": log_softmax,
    "cross_entropy_row": cross_entropy,
    "cross_entropy": lambda x, label, s: cross_entropy(x, label[:, None], s).mean(),
    "layer_norm_row": lambda x, w, b, eps: norm_of_row(x, eps) * w + b,
    "rms_norm_row": lambda x, w, eps: x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w,
    "log_sum_exp_row": log_sum_exp,
    "bce_with_logits": lambda x, t: np.maximum(x, 0) - x * t + np.log1p(np.exp(-np.abs(x))),
    "huber_element": huber,
    "sum": lambda x, axis, keep: x.sum(axis, keepdims=keep),
    "mean": lambda x, axis, keep: x.mean(axis, keepdims=keep),
    "prod": lambda x, axis, keep: x.prod(axis, keepdims=keep),
    "max": lambda x, axis, keep: x.max(axis, keepdims=keep),
    "min": lambda x, axis, keep: x.min(axis, keepdims=keep),
    "any": lambda x, axis, keep: x.any(axis, keepdims=keep),
    "all": lambda x, axis, keep: x.all(axis, keepdims=keep),
    "var": lambda x, axis, keep: x.var(axis, keepdims=keep),
    "norm": lambda x, axis, keep: np.sqrt((x * x).sum(axis, keepdims=keep)),
    "sum_to": sum_to,
    "cumsum": lambda x, axis: np.cumsum(x, axis),
    "order_of_rows": lambda x, size, down: (
        x.shape[-1] - 1 - np.argsort(x[..., ::-1], -1, kind="stable")[..., ::-1]
        if down
        else np.argsort(x, -1, kind="stable")
    )[..., :size],
    "least_squares": least_squares,
    "cholesky_factor": lambda a: np.linalg.cholesky((a + np.swapaxes(a, 1, 2)) / 2),
    "argmax": lambda x, axis, keep: np.argmax(x, axis, keepdims=keep),
    "argmin": lambda x, axis, keep: np.argmin(x, axis, keepdims=keep),
    "reshape": lambda x, shape: x.reshape(shape),
    "permute": lambda x, axes: x.transpose(axes),
    "expand": lambda x, shape: np.broadcast_to(x, shape),
    "cast": lambda x, dtype: x.astype(str(dtype)),
    "clone": lambda x: x,
    "move": lambda x, *devices: x,
    "slice": lambda x, spec: x[indexed(spec)],
    "slice_adjoint": lambda x, shape, spec: placed(x, shape, indexed(spec)),
    "take": lambda x, index, axis: np.take(x, index, axis),
    "take_adjoint": take_adjoint,
    "setitem": with_item,
    "concatenate": lambda *xs: np.concatenate(xs[:-1], xs[-1]),
    "pad": lambda x, widths, value: np.pad(x, widths, constant_values=value),
    "matmul": np.matmul,
    "attention": attention,
    "linear": lambda x, w, b: x @ w.T + b,
    "diagonal": lambda x, a, b: np.diagonal(x, 0, a, b),
    "diagonal_adjoint": diagonal_adjoint,
    "unfold": unfold,
    "fold": fold,
    "largest": largest,
    "conv2d": conv,
    "conv_input": conv_input,
    "conv_weight": conv_weight,
    "batch_norm": batch_norm,
}
