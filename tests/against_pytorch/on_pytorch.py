"""What the names of random programs mean in PyTorch; draws programs, whose values it must know."""

import numpy as np
import torch
from torch.nn import functional

from tests.against_pytorch import programs
from tests.against_pytorch.programs import weights_of


def reduced(function, **more):
    """A reduction whose axis None means all."""

    def apply(x, axis, keepdims):
        dims = tuple(range(x.ndim)) if axis is None else axis
        return function(x, dim=dims, keepdim=keepdims, **more)

    return apply


def sum_of_nothing(function):
    """sum and mean take an empty tuple of axes for all; of a number there are no axes."""
    return lambda x, axis, keepdims: (
        function(x) if not x.ndim else reduced(function)(x, axis, keepdims)
    )


def turned(x):
    return x.permute(tuple(range(x.ndim)[::-1]))


def product(x, axis, keepdims):
    if not x.ndim:
        return x.prod()  # a new value: without axes the loop below would give x itself
    axes = range(x.ndim) if axis is None else np.atleast_1d(axis)
    for a in sorted((int(a) % x.ndim for a in axes), reverse=True):
        x = x.prod(dim=a, keepdim=keepdims)
    return x


def norm(x, axis, keepdims):
    return torch.linalg.vector_norm(x + 0.25, dim=axis, keepdim=keepdims)


def set_item(x, index, number):
    x[index] = number
    return x


def of_number(function):
    """For functions of an axis, of which a number has none."""
    return lambda x, axis: function(x, dim=axis)


def joined_again(x, axis):
    return torch.cat(torch.tensor_split(x, 2, axis)[::-1], axis)


def pad(x, widths, value):
    return functional.pad(x, [n for pair in widths[::-1] for n in pair], value=value)


OPS = {
    "neg": lambda x: -x,
    "abs": abs,
    "square": torch.square,
    "sqrt_of_positive": lambda x: torch.sqrt(x * x + 0.1),
    "exp": lambda x: torch.exp(x * 0.5),
    "log_of_positive": lambda x: torch.log(abs(x) + 0.5),
    "sin": torch.sin,
    "cos": torch.cos,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "erf": torch.erf,
    "relu": torch.relu,
    "gelu": functional.gelu,
    "silu": functional.silu,
    "softplus": lambda x: functional.softplus(x, threshold=1e9),
    "elu": functional.elu,
    "leaky_relu": functional.leaky_relu,
    "reciprocal_of_positive": lambda x: torch.reciprocal(abs(x) + 0.5),
    "log1p_of_positive": lambda x: torch.log1p(x * x),
    "expm1": lambda x: torch.expm1(x * 0.5),
    "rsqrt_of_positive": lambda x: torch.rsqrt(x * x + 0.5),
    "sign": torch.sign,
    "floor": torch.floor,
    "detach": lambda x: x.detach(),
    "clone": lambda x: x.clone(),
    "transpose": lambda x: turned(x),
    "contiguous_of_transposed": lambda x: turned((turned(x) * 1.0).contiguous()),
    "unsqueeze": lambda x: x.unsqueeze(-1),
    "flatten": lambda x: torch.flatten(x),
    "cast_twice": lambda x: x.to(torch.float64).to(x.dtype),
    "where_positive": lambda x: torch.where(x > 0.0, x, x * 0.1),
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div_by_positive": lambda a, b: a / (b * b + 0.5),
    "pow_of_positive": lambda a, b: (abs(a) + 0.5) ** torch.tanh(b),
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "where": lambda a, b, c: torch.where(a > 0.1, b, c),
    "sum": sum_of_nothing(torch.sum),
    "mean": sum_of_nothing(torch.mean),
    "amax": reduced(torch.amax),
    "amin": reduced(torch.amin),
    "logsumexp": reduced(torch.logsumexp),
    "norm": norm,
    "prod": product,
    "var": reduced(torch.var, correction=0),
    "std": reduced(torch.std, correction=0),
    "softmax": of_number(torch.softmax),
    "log_softmax": of_number(torch.log_softmax),
    "cumsum": of_number(torch.cumsum),
    "squeeze_axis": lambda x, axis: x.squeeze(axis) if x.shape[axis] == 1 else x + 0.5,
    "split": joined_again,
    "reshape": lambda x, shape: x.reshape(shape),
    "permute": lambda x, axes: x.permute(axes),
    "expand": lambda x, shape: x.expand(shape),
    "slice": lambda x, index: x[index],
    "take": lambda x, axis, index: x[(slice(None),) * axis + (torch.tensor(index),)],
    "pairs": lambda x, i, j: x[torch.tensor(i), torch.tensor(j)],
    "concatenate": lambda a, b, axis: torch.cat([a, b], axis),
    "stack": lambda a, b, axis: torch.stack([a, b], axis),
    "matmul": lambda a, b, swap: a @ (b.transpose(-1, -2) if swap else b),
    "layer_norm": lambda x: functional.layer_norm(x, x.shape[-1:]),
    "cross_entropy": lambda x, labels, reduction: functional.cross_entropy(
        x, torch.tensor(labels), reduction=reduction
    ),
    "conv2d": lambda x, w, stride, padding: functional.conv2d(x, w, stride=stride, padding=padding),
    "max_pool2d": lambda x, size: functional.max_pool2d(x, size),
    "avg_pool2d": lambda x, size: functional.avg_pool2d(x, size),
    "pad": pad,
    "flip": lambda x, axis: x.flip(axis),
    "times": lambda x, number: number * x,
    "plus": lambda x, number: x + number,
    "power": lambda x, number: (abs(x) + 0.5) ** number,
    "clip": lambda x, low, high: torch.clamp(x, low, high),
    "add_": lambda a, b: a.add_(b),
    "sub_": lambda a, b: a.sub_(b),
    "mul_": lambda a, b: a.mul_(b),
    "copy_": lambda a, b: a.copy_(b),
    "fill_": lambda a, number: a.fill_(number),
    "setitem": set_item,
    "add_to_itself_": lambda x: x.add_(x),
    "mul_by_itself_": lambda x: x.mul_(x),
}


def draw(seed):
    """A program, by PyTorch's forward: steps that fail or grow beyond bounds are not taken."""
    rng = np.random.default_rng(seed)
    program = programs.draw_leaves(rng)
    values = [torch.tensor(x, requires_grad=True) for x in program.leaves]
    wanted = int(rng.integers(2, 12))
    attempts, is_leaf = 0, [True] * len(values)
    while len(program.steps) < wanted and attempts < 400:
        attempts += 1
        shapes = [tuple(v.shape) for v in values]
        step = programs.draw_step(rng, shapes, [k for k in range(len(values)) if not is_leaf[k]])
        if step is None:
            continue
        name, operands, parameters = step
        if name in programs.WRITES and any(
            values[operands[0]].untyped_storage().data_ptr() == v.untyped_storage().data_ptr()
            for v in values[: len(program.leaves)]
        ):
            continue  # a write to a leaf
        try:
            y = OPS[name](*[values[i] for i in operands], **parameters)
        except RuntimeError:
            if name in programs.WRITES:
                return None  # it may have written a part
            continue
        is_bounded = bool(torch.isfinite(y).all()) and (
            not y.numel() or float(y.detach().abs().max()) < programs.BOUND
        )
        if y.numel() > programs.LARGEST or y.ndim > 5 or not is_bounded:
            if name in programs.WRITES:
                return None
            continue
        program.steps.append((name, operands, parameters))
        values.append(y)
        is_leaf.append(any(y is v for v in values[: len(program.leaves)]))
    last = len(values) - 1
    program.roots = sorted(
        {last, *[int(k) for k in rng.integers(len(program.leaves), last + 1, 2)]}
    )
    program.order = 2 if rng.random() < 0.4 else 1
    return program


OUT_OF_PLACE = {
    "add_": lambda a, b: a + b,
    "sub_": lambda a, b: a - b,
    "mul_": lambda a, b: a * b,
    "copy_": lambda a, b: b.expand(a.shape).clone(),
    "fill_": lambda a, number: torch.full_like(a, number),
    "setitem": lambda a, index, number: set_item(a.clone(), index, number),
    "add_to_itself_": lambda x: x + x,
    "mul_by_itself_": lambda x: x * x,
}


class AliasError(Exception):
    """A write has no out-of-place form here: another value shows the same bytes."""


def written_out_of_place(name, target, others, parameters, values):
    """A new value in the place of `target`, wherever that stands in `values`."""
    place = target.untyped_storage().data_ptr()
    if any(v is not target and v.untyped_storage().data_ptr() == place for v in values):
        raise AliasError(name)
    new = OUT_OF_PLACE[name](target, *others, **parameters)
    values[:] = [new if v is target else v for v in values]
    return new


def run(program, in_place=True):
    """Arrays as `on_minigrad.run` returns them.

    in_place: as PyTorch does it, which raises where a saved value is written. Otherwise each write
    is a new value, whose gradients are right by themselves.
    """
    leaves = [torch.tensor(x, requires_grad=True) for x in program.leaves]
    values = list(leaves)
    for name, operands, parameters in program.steps:
        inputs = [values[i] for i in operands]
        if name in programs.WRITES and not in_place:
            y = written_out_of_place(name, inputs[0], inputs[1:], parameters, values)
        else:
            y = OPS[name](*inputs, **parameters)
        values.append(y)
    roots = [values[k] for k in program.roots]
    loss = 0.0
    for k, x in zip(program.roots, roots, strict=True):
        loss = loss + (x * torch.tensor(weights_of(tuple(x.shape), k), dtype=x.dtype)).sum()
    second = program.order == 2
    found = [x.detach().clone() for x in roots]
    grads = [None] * len(leaves)
    if in_place or loss.requires_grad:  # out of place, what overwrites a value cuts the graph
        grads = torch.autograd.grad(loss, leaves, create_graph=second, allow_unused=True)
    found += grads
    if second:
        squares = sum((g * g).sum() for g in grads if g is not None and g.requires_grad)
        none = [None] * len(leaves)
        found += (
            none
            if isinstance(squares, int)
            else torch.autograd.grad(squares, leaves, allow_unused=True)
        )
    # copied, since numpy() of PyTorch's tensors of zeros without memory ends the process
    copies = [None if g is None else torch.empty_like(g).copy_(g.detach()) for g in found]
    return [None if g is None else g.numpy() for g in copies]
