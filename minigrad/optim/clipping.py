"""Clips gradients and parameters, in place.

While a step is traced, clipping by norms is recorded as formulas. Each run of the program computes
the norms.
"""

import functools
import math
from array import array as integers

import numpy as np

from minigrad.arguments import flag, number, several
from minigrad.array.array import Array
from minigrad.array.dtypes import float32, float64
from minigrad.devices.backend import default_device, device_named, device_of, values
from minigrad.devices.loader import source_kernel
from minigrad.errors import ArgumentError, ArgumentTypeError, NonFiniteError
from minigrad.formulas.expression import Program, call, symbol, where
from minigrad.memory.interrupts import uninterrupted
from minigrad.nn import Module
from minigrad.ops.reduction import ROOT, SQUARE
from minigrad.ops.table import functions
from minigrad.optim.hooked import write
from minigrad.optim.scaled import called, refuse_marked
from minigrad.seams import seams
from minigrad.tape.modes import no_grad
from minigrad.tape.node import place_line, user_place
from minigrad.tape.probe import run_as
from minigrad.tape.variable import Variable

MOST = 16  # numbers that one formula of a traced step may add
x_, f_, t_, most_ = map(symbol, ("x", "f", "t", "most"))
SCALED = Program(["x", "f"], [x_ * f_])
FACTOR = Program(["t", "most"], [where(call("less_equal", t_, most_), 1.0, most_ / t_)])


def clip_grad_norm_(parameters, max_norm, error_if_nonfinite=True):
    """Scales all gradients by one factor so that their total norm is at most max_norm.

    The norm is the square root of the sum of all squares. The direction of the step stays the same.
    Gradients do not change if their norm is at most max_norm.

    Args:
        parameters: a Module, a Parameter or several; those without a gradient are ignored.
        max_norm: a number of at least 0. With infinity the function only computes the norm.
        error_if_nonfinite: raise if the norm is NaN or infinite. With False every gradient becomes
            NaN or 0.

    Returns:
        The norm before clipping, a float; 0.0 if there is no gradient. In a compiled step it is a
        float after the run.

    Raises:
        NonFiniteError: the norm is not finite. The error names the parameters; no gradient was
            changed. With a GradScaler pass error_if_nonfinite=False: it leaves such a step out.
        StateError: a gradient is still scaled: GradScaler.unscale_ comes first.

    >>> import minigrad as mg
    >>> p = mg.nn.Parameter([0.0, 0.0])
    >>> p.grad = mg.variable([3.0, 4.0])
    >>> mg.optim.clip_grad_norm_([p], 1.0), p.grad.tolist()
    (5.0, [0.6000000238418579, 0.800000011920929])
    """
    name = "clip_grad_norm_"
    pairs, max_norm, strict = _checked(name, parameters, max_norm, error_if_nonfinite)
    if seams.clip_grad_norm_ is not None:
        return _by_hook(pairs, max_norm, seams.clip_grad_norm_)
    if seams.effects.is_tracing and pairs:
        return run_as(name, _traced, name, pairs, max_norm, strict, True)
    norms = norms_of([g for _, g in pairs])
    total = _together(norms)
    if not math.isfinite(total) and strict:
        _raise_nonfinite(name, pairs, norms)
    if not total <= max_norm:
        scale_gradients(pairs, [max_norm / total] * len(pairs))
    return total


def clip_grad_norm_per_param_(parameters, max_norm, error_if_nonfinite=True):
    """Scales each gradient separately so that its norm is at most max_norm.

    It takes the arguments of `clip_grad_norm_`, but it changes the direction of the step.

    Returns:
        The norms before clipping: a list of floats, one for each parameter that has a gradient.

    Raises:
        NonFiniteError: a norm is not finite. The error names the parameters; no gradient was
            changed.
    """
    name = "clip_grad_norm_per_param_"
    pairs, max_norm, strict = _checked(name, parameters, max_norm, error_if_nonfinite)
    if seams.effects.is_tracing and pairs:
        return run_as(name, _traced, name, pairs, max_norm, strict, False)
    norms = norms_of([g for _, g in pairs])
    if strict and not all(map(math.isfinite, norms)):
        _raise_nonfinite(name, pairs, norms)
    above = [k for k, norm in enumerate(norms) if not norm <= max_norm]
    scale_gradients([pairs[k] for k in above], [max_norm / norms[k] for k in above])
    return norms


def clip_grad_value_(parameters, max_value):
    """Limits every element of the gradients to [-max_value, max_value]; NaN stays NaN.

    Args:
        parameters: a Module, a Parameter or several; those without a gradient are ignored.
        max_value: a number of at least 0.
    """
    pairs = _unscaled("clip_grad_value_", parameters)
    max_value = number("clip_grad_value_", "max_value", max_value, 0.0, None)
    _cut([g for _, g in pairs], -max_value, max_value)


def clip_params_(parameters, low, high):
    """Limits every element of the parameters to [low, high].

    The parameters keep their ids, so optimizers keep their state.

    Args:
        parameters: a Module, a Parameter or several.
        low, high: numbers; None means no limit.

    Raises:
        ArgumentError: low is above high, or both are None.
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
    fix = "give it the model, or list(model.parameters()); a generator can be used only once"
    listed = several(name, "a Module or Parameters", parameters, fix)
    for p in listed:
        if not isinstance(p, Variable):
            raise ArgumentTypeError(
                f"{name}: wanted a Module or Parameters",
                f"{type(p).__name__} among them",
                "give it the parameters, not their gradients' arrays: model.parameters()",
            )
    return listed


def with_gradients(name, parameters):
    """Returns (parameter, gradient) of each parameter with a gradient, which is contiguous."""
    grads = {}
    for p in _listed(name, parameters):
        seams.effects.grad(p)
        g = p._grad
        if g is not None:
            if type(g.array) is not Array and not g.array.is_contiguous:
                mark = g.mark
                g = p._grad = Variable(device_of(g.array).contiguous(g.array))
                g.mark = mark
            grads[p] = g
    return list(grads.items())


def _unscaled(name, parameters):
    """Returns what `with_gradients` does; raises if a GradScaler has yet to unscale a gradient."""
    pairs = with_gradients(name, parameters)
    refuse_marked(
        name,
        [p for p, _ in pairs],
        "call scaler.unscale_(optimizer) before: a scaled norm is far too large",
    )
    return pairs


def _checked(name, parameters, max_norm, error_if_nonfinite):
    """Checks arguments; returns (parameters with gradients, max_norm, error_if_nonfinite)."""
    pairs = _unscaled(name, parameters)
    max_norm = number(name, "max_norm", max_norm, 0.0, None)
    return pairs, max_norm, flag(name, "error_if_nonfinite", error_if_nonfinite)


def _call(which, gradients, numbers):
    """Runs `squares` or `scale` once per dtype. numbers: one per gradient, read and written."""
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
        kernel = source_kernel("clipping", which, dtype.code)
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


def norms_of(gradients):
    """Returns each gradient's Euclidean norm, computed in float64 on the CPU, else in its dtype."""
    sums = [0.0] * len(gradients)
    _call("squares", gradients, sums)
    norms = [math.sqrt(s) if s >= 0 else math.nan for s in sums]
    for k, norm in enumerate(norms):
        if norm == math.inf:  # the sum of squares may overflow, unlike the norm
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
def scale_gradients(pairs, factors):
    """Multiplies each gradient by its factor, in place. pairs: (parameter, gradient)."""
    place = user_place()
    for _, g in pairs:
        a = g.array
        if type(a) is Array and a.buffer.owners == 1:  # prepare_write would do the same
            a.version += 1
            a.written_at = place
        else:
            device_of(a).prepare_write(a, place)
    _call("scale", [g for _, g in pairs], list(factors))


def _raise_nonfinite(name, entries, norms):
    pairs = zip(entries, norms, strict=True)
    wrong = [p for (p, _), norm in pairs if not math.isfinite(norm)]
    raise _nonfinite(name, called(wrong) or "several, together")


def _nonfinite(name, whose, where=None):
    return NonFiniteError(
        f"{name}: wanted finite gradients",
        f"NaN or infinity in the gradient of {whose}",
        "with a GradScaler, error_if_nonfinite=False: scaler.step() leaves the step out; else "
        "optimizer.zero_grad(), or look for its source: with mg.debug.detect_anomaly(): ...",
        where=where,
    )


def _by_hook(entries, max_norm, function):
    copies = [values(g.array).flatten() for _, g in entries]
    norm = function(copies, max_norm)
    pairs = [(g.array, new) for (_, g), new in zip(entries, copies, strict=True)]
    write([(a, new) for a, new in pairs if not _are_equal(values(a), new)], user_place())
    return float(norm)


def _are_equal(before, after):
    return np.array_equal(before.reshape(-1), after, equal_nan=True)


# -- in a traced step ------------------------------------------------------------------------------


class TracedNumber(Variable):
    """A number that the step computes, of shape (). After the step has run it is a Python float.

    It calculates like a float: with numbers the result is another TracedNumber, with Variables it
    keeps their dtype.
    """

    __slots__ = ()
    is_number = True


def _arithmetic(name):
    plain = getattr(Variable, name)

    def method(self, *other):
        if other and isinstance(other[0], Variable) and not isinstance(other[0], TracedNumber):
            dtype = other[0].dtype if other[0].dtype.is_float else float32
            return plain(Variable(self.array).to(dtype), *other)
        return TracedNumber(plain(self, *other).array)

    setattr(TracedNumber, name, method)


for _name in ("add", "sub", "mul", "truediv", "pow"):
    _arithmetic(f"__{_name}__")
    _arithmetic(f"__r{_name}__")
_arithmetic("__neg__")


@functools.cache
def _sum_of(count):
    names = [f"x{k}" for k in range(count)]
    return Program(names, [functools.reduce(lambda a, b: a + b, map(symbol, names))])


def _traced(name, pairs, max_norm, error_if_nonfinite, together):
    """Scales gradients by one common factor, or by one factor each.

    pairs: (parameter, gradient). Returns the norms before: a TracedNumber or a list of them.
    """
    device, place = default_device(), user_place()
    line = place_line(place)
    sums = [_squares(device, g.array) for _, g in pairs]
    if error_if_nonfinite:
        for (p, _), x in zip(pairs, sums, strict=True):
            error = functools.partial(_nonfinite, name, called([p]), line)
            seams.effects.check_finite(x, error)
    if together:
        norms = [apply_formula(device, ROOT, total_of(device, sums))] * len(pairs)
    else:
        norms = [apply_formula(device, ROOT, x) for x in sums]
    factors = {}
    for (_, g), norm in zip(pairs, norms, strict=True):
        real = g.dtype.arithmetic
        key = id(norm), real
        if key not in factors:
            factor = apply_formula(device, FACTOR, norm, float(max_norm))
            factors[key] = device.convert(factor, real) if real is not float64 else factor
        device.prepare_write(g.array, place)
        device.elementwise(SCALED, (g.array, factors[key]), (g.array,))
    return TracedNumber(norms[0]) if together else list(map(TracedNumber, norms))


def apply_formula(device, program, *inputs):
    """Records a formula of numbers and float64 Arrays of shape (); returns such an Array."""
    out = device.empty((), float64)
    device.elementwise(program, inputs, (out,))
    return out


def _squares(device, x):
    out = device.empty((), float64)
    device.reduce(SQUARE, "sum", (x,), out, x.shape, tuple(range(len(x.shape))))
    return out


def total_of(device, sums):
    """Records the sum of float64 Arrays of shape ()."""
    while len(sums) > 1:
        parts = [sums[k : k + MOST] for k in range(0, len(sums), MOST)]
        sums = [apply_formula(device, _sum_of(len(part)), *part) for part in parts]
    return sums[0]
