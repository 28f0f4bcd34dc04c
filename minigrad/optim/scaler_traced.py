"""What a GradScaler does while a step is traced: it records formulas, since only a run has numbers.

The trace has an `Iteration` of its own. A step that must be left out chooses the old values (see
`traced.update`).
"""

import functools
import weakref

from minigrad.array.dtypes import float64
from minigrad.devices.backend import default_device
from minigrad.formulas.expression import ADD, Program, equal, symbol, where
from minigrad.optim.clipping import SCALED, apply_formula, total_of
from minigrad.optim.traced import cast
from minigrad.seams import seams
from minigrad.tape.node import user_place

TOGETHER = (
    "compile all of it, from scale() to update(), or none of it but scale() and backward() of "
    "the loss"
)
_x, _scale = symbol("x"), symbol("scale")
INVERSE = Program(["scale"], [1.0 / _scale])
ZERO = Program(["x"], [_x * 0.0])  # NaN where x is not finite
NOT_ZERO = Program(["x"], [where(equal(_x, 0.0), 0.0, 1.0)])


class Iteration:
    """What happened since the last update.

    is_begun: whether a loss was scaled. found: {optimizer: whether a gradient was not finite}, a
    bool, or in a traced step an Array of shape () that is 0 or 1. stepped: optimizers whose step
    was made, or left out. leaves: weak references to leaves that got scaled gradients in a trace.
    """

    def __init__(self):
        self.is_begun, self.found, self.stepped, self.leaves = False, {}, set(), []


class _Begun:
    """Begins the iteration and marks leaves, after each run of a program that only scales."""

    def __init__(self, scaler, leaves):
        self.scaler, self.leaves = scaler, leaves
        self.key = id(scaler), *(id(leaf()) for leaf in leaves)

    def __call__(self):
        self.scaler._iteration.is_begun = True
        self.scaler._mark([leaf for leaf in (r() for r in self.leaves) if leaf is not None])

    def __eq__(self, other):
        return type(other) is _Begun and other.key == self.key

    __hash__ = None  # pyright: ignore - two traces compare them, nobody looks them up


def traced_now(scaler):
    """Returns the iteration of the running trace."""
    trace = seams.effects
    if scaler._trace is None or scaler._trace() is not trace:
        trace.at_end(functools.partial(end_trace, scaler))
        scaler._trace, scaler._traced = weakref.ref(trace), None
    scaler._traced = scaler._traced or Iteration()
    return scaler._traced


def end_trace(scaler):
    """Refuses a step with a part of an iteration; one that only scales begins it each time."""
    now, scaler._trace, scaler._traced = scaler._traced, None, None
    if now is not None and now.found:
        refuse_part(None, "no update() in it")
    if now is not None:
        seams.effects.later(_Begun(scaler, now.leaves), [])


def refuse_part(name, got):
    """Raises in a trace of a step that has a part of an iteration. name: of the method, or None."""
    place = "GradScaler" if name is None else f"GradScaler.{name}"
    seams.effects.refuse(f"{place}: a part of an iteration inside a compiled step", TOGETHER, got)


def record_unscaling(scaler, pairs):
    """Records the division, and returns an Array () that is 1 if a gradient is not finite."""
    device, place, factors = default_device(), user_place(), {}
    inverse = apply_formula(device, INVERSE, scaler._number("scale"))
    zeros = []
    for _, g in pairs:
        zeros.append(zero := device.empty((), float64))
        device.reduce(ZERO, "sum", (g.array,), zero, g.shape, tuple(range(len(g.shape))))
        if g.dtype not in factors:
            factors[g.dtype] = cast(device, inverse, g.dtype)
        device.prepare_write(g.array, place)
        device.elementwise(SCALED, (g.array, factors[g.dtype]), (g.array,))
        g.mark = None
    return apply_formula(device, NOT_ZERO, total_of(device, zeros))


def record_step(scaler, optimizer, found_inf):
    """Records the optimizer's step, which keeps all old values where `found_inf` is not 0."""
    device, skipped = default_device(), scaler._number("skipped_steps")
    optimizer._skip = found_inf
    try:
        optimizer.step()
    finally:
        del optimizer._skip
    device.prepare_write(skipped, user_place())
    device.elementwise(ADD, (skipped, found_inf), (skipped,))
