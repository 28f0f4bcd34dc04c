"""Calls with arguments that a function does not have: what it takes, and what they are called here.

Only a call that fails pays for it.
"""

import functools
import inspect

from minigrad.errors import ArgumentTypeError

KNOWN_AS = {  # keywords that people bring from PyTorch and NumPy
    "a_max": "high", "a_min": "low", "dim": "axis", "dims": "axes", "end": "stop",
    "end_dim": "end_axis", "fill_value": "value", "grad_outputs": "dy", "gradient": "dy",
    "input": "x", "keepdim": "keepdims", "label": "target", "labels": "target", "max": "high",
    "min": "low", "negative_slope": "slope", "num": "count", "num_classes": "classes",
    "rtol": "relative", "atol": "absolute", "size": "shape", "start_dim": "start_axis",
    "steps": "count", "weights": "weight",
}  # fmt: skip

MASKS = {  # of PyTorch's attention layer
    "attn_mask": "mask=~attn_mask for bools: here True is where attention is allowed",
    "key_padding_mask": "mask=~padding[:, None, None, :] for bools: here True is where attention "
    "is allowed",
}
ADVICE = {  # by function
    "transpose": "x.permute(1, 0) puts the axes in an order; x.T reverses them",
    "norm": "mg.norm(x, axis=1) is the Euclidean norm along an axis; others are written out, such "
    "as x.abs().sum(axis=1)",
    "max": "x.max(axis=1) for the values alone, x.argmax(axis=1) for their places; "
    "mg.maximum(a, b) for the larger of two",
    "min": "x.min(axis=1) for the values alone, x.argmin(axis=1) for their places; "
    "mg.minimum(a, b) for the smaller of two",
    "split": "mg.split(x, sections=3) makes 3 parts, as np.split, and mg.split(x, sizes=3) parts "
    "of 3, as torch.split",
    "repeat": "mg.repeat(x, 2, axis=0) repeats each element, as np.repeat; "
    "mg.concatenate([x] * 2, axis=0) repeats the whole, as torch.Tensor.repeat",
    "diagonal": "axes have names: mg.diagonal(x, axis1=0, axis2=1)",
    "batch_norm": "all but x by name, as others have them in another order: mg.batch_norm(x, "
    "weight=w, bias=b, running_mean=m, running_var=v, training=True)",
    "gradients": "by name, as PyTorch has them in another order: create_graph=, retain_graph=",
    "gradcheck": "by name, as PyTorch has them in another order: eps=, rtol=, atol=",
    "gradgradcheck": "by name, as PyTorch has them in another order: eps=, rtol=, atol=",
    "cross_entropy": "after the weight by name: ignore_index=, label_smoothing=, reduction=, axis=",
}
for _name in ("var", "std"):
    ADVICE[_name] = (
        f"x.{_name}(axis=1, ddof=0) divides by n, x.{_name}(axis=1, ddof=1) by n - 1; all but the "
        "axis by name"
    )
for _name in ("zeros", "ones", "rand", "randn"):
    ADVICE[_name] = f"the shape is one tuple: {_name}((2, 3))"
ADVICE["full"] = "the shape is one tuple: full((2, 3), 0.5)"


def fails_at_the_call(error):
    """Whether a TypeError, caught where a function is called, is about its arguments."""
    return error.__traceback__.tb_next is None


def explained(function, error, keywords=(), name=None):
    """The error for a call whose arguments do not fit the function's signature.

    name: what was called, if not the function by its own name.
    """
    signature = inspect.signature(function)
    known, name = signature.parameters, name or function.__name__
    fix = None
    for keyword in keywords:
        if keyword in MASKS and keyword not in known and "mask" in known:
            fix = MASKS[keyword]
            break
        ours = KNOWN_AS.get(keyword)
        if keyword == "requires_grad" and keyword not in known:
            fix = f"{name}(...).requires_grad_()"
            break
        if keyword not in known and ours in known:
            fix = f"{ours}=, as it is called here"
            break
    got = str(error).partition("() ")[2].removeprefix("got ")
    return ArgumentTypeError(f"{name}: wanted {name}{signature}", got, fix or ADVICE.get(name))


def teaching(function):
    """The function, whose wrong calls raise ArgumentTypeError with its signature."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            if not fails_at_the_call(error):
                raise
            raise explained(function, error, kwargs) from None

    return wrapper


def check_count(name, names, args):
    """Raises unless there is one operand a name."""
    if len(args) != len(names):
        raise ArgumentTypeError(
            f"{name}: wanted {len(names)} operand{'s' * (len(names) != 1)}, {', '.join(names)}",
            f"{len(args)}",
            f"mg.{name}({', '.join(names)})",
        )
