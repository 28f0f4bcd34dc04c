"""What the names of random programs mean in minigrad."""

import numpy as np

import minigrad as mg
from tests.against_pytorch.programs import weights_of


def written(method, *parameters):
    """An in-place method, called with further operands and numbers."""
    return lambda x, *others, **more: getattr(x, method)(*others, *[more[p] for p in parameters])


def set_item(x, index, number):
    x[index] = number
    return x


def layer_norm(x):
    n = x.shape[-1:]
    return mg.layer_norm(x, mg.ones(n, dtype=x.dtype), mg.zeros(n, dtype=x.dtype))


def joined_again(x, axis):
    return mg.concatenate(mg.split(x, sections=2, axis=axis)[::-1], axis=axis)


OPS = {
    "neg": lambda x: -x,
    "abs": abs,
    "square": mg.square,
    "sqrt_of_positive": lambda x: mg.sqrt(x * x + 0.1),
    "exp": lambda x: mg.exp(x * 0.5),
    "log_of_positive": lambda x: mg.log(abs(x) + 0.5),
    "sin": mg.sin,
    "cos": mg.cos,
    "tanh": mg.tanh,
    "sigmoid": mg.sigmoid,
    "erf": mg.erf,
    "relu": mg.relu,
    "gelu": mg.gelu,
    "silu": mg.silu,
    "softplus": mg.softplus,
    "elu": mg.elu,
    "leaky_relu": mg.leaky_relu,
    "reciprocal_of_positive": lambda x: mg.reciprocal(abs(x) + 0.5),
    "log1p_of_positive": lambda x: mg.log1p(x * x),
    "expm1": lambda x: mg.expm1(x * 0.5),
    "rsqrt_of_positive": lambda x: mg.rsqrt(x * x + 0.5),
    "sign": mg.sign,
    "floor": mg.floor,
    "detach": lambda x: x.detach(),
    "clone": lambda x: x.clone(),
    "transpose": lambda x: mg.transpose(x),
    "contiguous_of_transposed": lambda x: mg.transpose(mg.transpose(x) * 1.0),
    "unsqueeze": lambda x: mg.unsqueeze(x, -1),
    "flatten": mg.flatten,
    "cast_twice": lambda x: x.to("float64").to(x.dtype),
    "where_positive": lambda x: mg.where(x > 0.0, x, x * 0.1),
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div_by_positive": lambda a, b: a / (b * b + 0.5),
    "pow_of_positive": lambda a, b: (abs(a) + 0.5) ** mg.tanh(b),
    "maximum": mg.maximum,
    "minimum": mg.minimum,
    "where": lambda a, b, c: mg.where(a > 0.1, b, c),
    "sum": mg.sum,
    "mean": mg.mean,
    "amax": mg.max,
    "amin": mg.min,
    "logsumexp": mg.logsumexp,
    "norm": lambda x, axis, keepdims: mg.norm(x + 0.25, axis=axis, keepdims=keepdims),
    "prod": mg.prod,
    "var": lambda x, axis, keepdims: mg.var(x, axis, ddof=0, keepdims=keepdims),
    "std": lambda x, axis, keepdims: mg.std(x, axis, ddof=0, keepdims=keepdims),
    "softmax": mg.softmax,
    "log_softmax": mg.log_softmax,
    "cumsum": mg.cumsum,
    "squeeze_axis": lambda x, axis: x.squeeze(axis) if x.shape[axis] == 1 else x + 0.5,
    "split": joined_again,
    "reshape": lambda x, shape: x.reshape(shape),
    "permute": lambda x, axes: mg.permute(x, axes),
    "expand": lambda x, shape: mg.expand(x, shape),
    "slice": lambda x, index: x[index],
    "take": lambda x, axis, index: x[(slice(None),) * axis + (np.array(index),)],
    "pairs": lambda x, i, j: x[np.array(i), np.array(j)],
    "concatenate": lambda a, b, axis: mg.concatenate([a, b], axis=axis),
    "stack": lambda a, b, axis: mg.stack([a, b], axis=axis),
    "matmul": lambda a, b, swap: (
        a @ (mg.permute(b, (*range(b.ndim - 2), b.ndim - 1, b.ndim - 2)) if swap else b)
    ),
    "layer_norm": layer_norm,
    "cross_entropy": lambda x, labels, reduction: mg.cross_entropy(
        x, mg.variable(np.array(labels)), reduction=reduction
    ),
    "conv2d": lambda x, w, stride, padding: mg.conv2d(x, w, stride=stride, padding=padding),
    "max_pool2d": lambda x, size: mg.max_pool2d(x, size),
    "avg_pool2d": lambda x, size: mg.avg_pool2d(x, size),
    "pad": lambda x, widths, value: mg.pad(x, widths, value=value),
    "flip": lambda x, axis: mg.flip(x, axis).clone(),  # a view here, a copy in PyTorch
    "times": lambda x, number: number * x,
    "plus": lambda x, number: x + number,
    "power": lambda x, number: (abs(x) + 0.5) ** number,
    "clip": lambda x, low, high: mg.clip(x, low, high),
    "add_": written("add_"),
    "sub_": written("sub_"),
    "mul_": written("mul_"),
    "copy_": written("copy_"),
    "fill_": written("fill_", "number"),
    "setitem": set_item,
    "add_to_itself_": lambda x: x.add_(x),
    "mul_by_itself_": lambda x: x.mul_(x),
}


def forward(program, leaves):
    """The values that the loss sums, and the loss."""
    values = list(leaves)
    for name, operands, parameters in program.steps:
        values.append(OPS[name](*[values[i] for i in operands], **parameters))
    roots = [values[k] for k in program.roots]
    loss = 0.0
    for k, x in zip(program.roots, roots, strict=True):
        loss = loss + (x * mg.variable(weights_of(x.shape, k), dtype=x.dtype)).sum()
    return roots, loss


def detached(gradient):
    """Without its graph; None stays None."""
    return None if gradient is None else gradient.detach()


def outcome(program, leaves):
    """Per root its value, per leaf its gradient, and those of second order if wanted: Variables."""
    roots, loss = forward(program, leaves)
    second = program.order == 2
    grads = mg.gradients(loss, list(leaves), create_graph=second)
    found = [*[x.detach().clone() for x in roots], *map(detached, grads)]
    if second:
        squares = sum((g * g).sum() for g in grads if g is not None and g.requires_grad)
        none = [None] * len(leaves)
        found += (
            none if isinstance(squares, int) else map(detached, mg.gradients(squares, list(leaves)))
        )
    return found


def run(program, compiled=False):
    """Arrays of `outcome`, None for gradients that there are not; compiled: those of a third call.

    A leaf that nothing reaches has the gradient None.
    """
    leaves = [mg.variable(x, requires_grad=True) for x in program.leaves]
    if compiled:

        def present(*leaves):
            found = outcome(program, leaves)
            present.missing = [g is None for g in found]
            return [g for g in found if g is not None]

        step = mg.compile(present)
        for _ in range(3):
            found = step(*leaves)
        rest = iter(found)
        found = [None if missing else next(rest) for missing in present.missing]
    else:
        found = outcome(program, leaves)
    return [None if g is None else np.array(g.numpy()) for g in found]
