"""Clipping of gradients and of parameters, in place."""

import math
from array import array as integers

import numpy as np

from minigrad.arguments import flag, number
from minigrad.array.array import Array
from minigrad.devices.backend import device_named, device_of, set_values, values
from minigrad.devices.loader import CODE, source_kernel
from minigrad.errors import ArgumentError, ArgumentTypeError, NonFiniteError
from minigrad.memory.interrupts import uninterrupted
from minigrad.nn import Module
from minigrad.ops.table import functions
from minigrad.optim import traced_clipping
from minigrad.seams import seams
from minigrad.tape.modes import no_grad
from minigrad.tape.node import user_place
from minigrad.tape.variable import Variable


def clip_grad_norm_(parameters, max_norm, error_if_nonfinite=True):
    """Scales all gradients by one factor so that their total norm is at most max_norm.

    The norm is the square root of the sum of all squares; the direction of the step stays the same.
    Gradients do not change if their norm is below max_norm.

    Args:
        parameters: a Module, a Parameter or several; those without a gradient are ignored.
        max_norm: at least 0.
        error_if_nonfinite: raise if the norm is NaN or infinite; otherwise the factor turns every
            gradient into NaN or 0.

    Returns:
        The norm before clipping, a float; 0.0 if there is no gradient.

    Raises:
        NonFiniteError: names the parameters; no gradient was changed.

    >>> import minigrad as mg
    >>> p = mg.nn.Parameter([0.0, 0.0])
    >>> p.grad = mg.variable([3.0, 4.0])
    >>> mg.optim.clip_grad_norm_([p], 1.0), p.grad.tolist()
    (5.0, [0.6000000238418579, 0.800000011920929])
    """
    found = _with_gradients("clip_grad_norm_", parameters)
    max_norm = _limit("clip_grad_norm_", "max_norm", max_norm)
    error_if_nonfinite = flag("clip_grad_norm_", "error_if_nonfinite", error_if_nonfinite)
    if seams.clip_grad_norm_ is not None:
        return _by_hook(found, max_norm, seams.clip_grad_norm_)
    if seams.effects.is_tracing and found:
        return traced_clipping.clip("clip_grad_norm_", found, max_norm, error_if_nonfinite, True)
    norms = _norms([g for _, g in found])
    total = _together(norms)
    if not math.isfinite(total) and error_if_nonfinite:
        _raise_nonfinite("clip_grad_norm_", found, norms)
    if not total <= max_norm:
        _scale(found, [max_norm / total] * len(found))
    return total


def clip_grad_norm_per_param_(parameters, max_norm, error_if_nonfinite=True):
    """Scales each gradient separately so that its norm is at most max_norm.

    Unlike `clip_grad_norm_`, whose arguments it takes, this changes the direction of the step.

    Returns:
        The norms before clipping: a list of floats, one for each parameter that has a gradient.
    """
    found = _with_gradients("clip_grad_norm_per_param_", parameters)
    max_norm = _limit("clip_grad_norm_per_param_", "max_norm", max_norm)
    error_if_nonfinite = flag("clip_grad_norm_per_param_", "error_if_nonfinite", error_if_nonfinite)
    if seams.effects.is_tracing and found:
        name = "clip_grad_norm_per_param_"
        return traced_clipping.clip(name, found, max_norm, error_if_nonfinite, False)
    norms = _norms([g for _, g in found])
    if error_if_nonfinite and not all(map(math.isfinite, norms)):
        _raise_nonfinite("clip_grad_norm_per_param_", found, norms)
    above = [k for k, norm in enumerate(norms) if not norm <= max_norm]
    _scale([found[k] for k in above], [max_norm / norms[k] for k in above])
    return norms


def clip_grad_value_(parameters, max_value):
    """Limits every element of the gradients to [-max_value, max_value]; NaN stays NaN."""
    found = _with_gradients("clip_grad_value_", parameters)
    max_value = _limit("clip_grad_value_", "max_value", max_value)
    _cut([g for _, g in found], -max_value, max_value)


def clip_params_(parameters, low, high):
    """Limits every element of the parameters to [low, high].

    The parameters stay the same objects with the same ids, so optimizers keep their state.

    Args:
        parameters: a Module, a Parameter or several.
        low, high: numbers, or None for no limit.
    """
    low, high = (
        v if v is None else number("clip_params_", name, v)
        for name, v in (("low", low), ("high", high))
    )
    if low is not None and high is not None and not low <= high:
        raise ArgumentError("clip_params_: wanted low <= high", f"{low} and {high}")
    _cut(_listed("clip_params_", parameters), low, high)


@uninterrupted
def _cut(targets, low, high):
    with no_grad():
        for x in targets:
            x.copy_(functions["clip"](x.detach(), low, high))


def _listed(name, parameters):
    if isinstance(parameters, Module):
        return list(parameters.parameters())
    if isinstance(parameters, Variable):
        return [parameters]
    try:
        found = list(parameters)
    except TypeError:
        raise ArgumentTypeError(
            f"{name}: wanted a Module or Parameters", f"{type(parameters).__name__}"
        ) from None
    for p in found:
        if not isinstance(p, Variable):
            raise ArgumentTypeError(
                f"{name}: wanted a Module or Parameters",
                f"{type(p).__name__} among them",
                "give it the parameters, not their gradients' arrays: model.parameters()",
            )
    return found


def _with_gradients(name, parameters):
    """(parameter, gradient) for each parameter that has one, once, with contiguous gradients."""
    found = {}
    for p in _listed(name, parameters):
        seams.effects.grad(p)
        g = p._grad
        if g is not None:
            if type(g.array) is not Array and not g.array.is_contiguous:
                g = p._grad = Variable(device_of(g.array).contiguous(g.array))
            found[p] = g
    return list(found.items())


def _limit(name, what, value):
    return number(name, what, value, 0.0, None)


def _call(which, gradients, numbers):
    """Runs `squares` or `scale` once per dtype; numbers: one per gradient, in and out."""
    rows, elsewhere = {}, {}
    for k, g in enumerate(gradients):
        a = g.array
        buffer = a.buffer
        if buffer.pool.device != "cpu":
            elsewhere.setdefault((a.dtype, a.device), []).append(k)
            continue
        row = rows.get(a.dtype)
        if row is None:
            row = rows[a.dtype] = [], []
        row[0].append(k)
        row[1].append(buffer.address if type(a) is Array else a.address)
        row[1].append(a.size)
    for dtype, (ks, addresses) in rows.items():
        table, some = integers("q", addresses), integers("d", [numbers[k] for k in ks])
        kernel = source_kernel("clipping", which, CODE[dtype.name])
        kernel(table.buffer_info()[0], len(ks), some.buffer_info()[0])
        if len(ks) == len(numbers):
            numbers[:] = some
        else:
            for k, value in zip(ks, some, strict=True):
                numbers[k] = value
    for (_, name), ks in elsewhere.items():
        arrays, device = [gradients[k].array for k in ks], device_named(name)
        if which == "squares":
            for k, value in zip(ks, device.squares(arrays), strict=True):
                numbers[k] = value
        else:
            device.scale(arrays, [numbers[k] for k in ks])


def _norms(gradients):
    """The Euclidean norm of each gradient, in float64 on the CPU, elsewhere in its own dtype."""
    sums = [0.0] * len(gradients)
    _call("squares", gradients, sums)
    norms = [math.sqrt(s) if s >= 0 else math.nan for s in sums]
    for k, norm in enumerate(norms):
        if norm == math.inf:  # the sum of squares overflows its dtype, or is truly infinite
            sizes = np.abs(values(gradients[k].array)).astype(np.float64)
            most = float(sizes.max())
            if math.isfinite(most):
                norms[k] = most * math.sqrt(float(np.sum(np.square(sizes / most))))
    return norms


def _together(norms):
    most = max(norms, default=0.0)
    if not math.isfinite(most) or most < 1e150:
        return math.sqrt(sum(n * n for n in norms))
    return most * math.sqrt(sum((n / most) ** 2 for n in norms))


@uninterrupted
def _scale(found, factors):
    place = user_place()
    for _, g in found:
        a = g.array
        if type(a) is Array and a.buffer.owners == 1:  # as prepare_write does
            a.version += 1
            a.written_at = place
        else:
            device_of(a).prepare_write(a, place)
    _call("scale", [g for _, g in found], list(factors))


def _raise_nonfinite(name, found, norms):
    wrong = [
        f"'{p.name or p.describe()}'"
        for (p, _), norm in zip(found, norms, strict=True)
        if not math.isfinite(norm)
    ]
    raise NonFiniteError(
        f"{name}: wanted finite gradients",
        f"NaN or infinity in the gradient of {', '.join(wrong) or 'several, together'}",
        "leave this step out (optimizer.zero_grad()), or look for its source: "
        "with mg.debug.detect_anomaly(): ...",
    )


def _by_hook(found, max_norm, function):
    copies = [values(g.array).flatten() for _, g in found]
    norm = function(copies, max_norm)
    _write(found, copies, user_place())
    return float(norm)


@uninterrupted
def _write(found, copies, place):
    for (_, g), clipped in zip(found, copies, strict=True):
        if not np.array_equal(values(g.array).reshape(-1), clipped, equal_nan=True):
            device_of(g.array).prepare_write(g.array, place)
            set_values(g.array, clipped.reshape(g.shape))
