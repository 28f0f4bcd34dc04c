"""Schedules: small objects whose step() sets the learning rate of an optimizer.

Call `schedule.step()` once after each optimizer.step() (or each epoch: then all numbers count
epochs). Step 0, the first, has the rate that the schedule says for 0, set when it is made. With
several groups each keeps its own peak: the rate that it had then.
"""

import math

from minigrad.errors import ArgumentError, ArgumentTypeError, StateError
from minigrad.graph.modes import state
from minigrad.nn.names import refuse_unknown_arguments
from minigrad.optim.names import NO_SCHEDULE_ARGUMENTS, SCHEDULE_ARGUMENTS
from minigrad.optim.optimizer import Optimizer


def cosine(t, steps, peak=1.0, minimum=0.0):
    """From peak at t = 0 to minimum at t = steps along half a cosine (Loshchilov, Hutter 2017).

    >>> cosine(0, 10), cosine(10, 10)
    (1.0, 0.0)
    """
    return minimum + (peak - minimum) * 0.5 * (1.0 + math.cos(math.pi * t / steps))


def warmup_cosine(t, warmup, steps, peak=1.0, minimum=0.0):
    """Linear from peak / warmup at 0 to peak at warmup - 1, then cosine to minimum at steps.

    From `steps` on it stays at minimum.

    >>> [round(warmup_cosine(t, 2, 6), 3) for t in range(8)]
    [0.5, 1.0, 1.0, 0.854, 0.5, 0.146, 0.0, 0.0]
    """
    if t < warmup:
        return peak * (t + 1) / warmup
    if t >= steps:
        return minimum
    return cosine(t - warmup, steps - warmup, peak, minimum)


class Schedule:
    """rate(t, peak) of a group whose own rate was `peak`; `t` counts the calls of step()."""

    def __new__(cls, *args, **kwargs):
        if kwargs:
            refuse_unknown_arguments(
                cls.__name__, cls.__init__, kwargs, SCHEDULE_ARGUMENTS, NO_SCHEDULE_ARGUMENTS
            )
        return object.__new__(cls)

    def __init__(self, optimizer):
        if not isinstance(optimizer, Optimizer):
            raise ArgumentTypeError(
                f"{type(self).__name__}: wanted an optimizer", f"{type(optimizer).__name__}"
            )
        self.optimizer, self.t = optimizer, 0
        self.peaks = [group.learning_rate for group in optimizer.groups]
        self._apply()

    def rate(self, t, peak):
        """The learning rate at step t."""
        raise NotImplementedError

    def step(self):
        """One step further: sets the learning rates. In a compiled step: around each run of it."""
        if state.trace is not None:
            self._later()
            return
        self.t += 1
        self._apply()

    def _later(self):
        if type(self).step is not Schedule.step:
            state.trace.refuse(
                f"{type(self).__name__}.step() inside a compiled step: it has work of its own",
                "call it outside the step",
            )
        state.trace.later(self.step, [group._array for group in self.optimizer.groups])

    def _apply(self):
        for group, peak in zip(self.optimizer.groups, self.peaks, strict=True):
            group.learning_rate = self.rate(self.t, peak)

    def state_dict(self):
        """Plain numbers, for `load_state_dict`."""
        return {"schedule": type(self).__name__, "t": self.t, "peaks": list(self.peaks)}

    def load_state_dict(self, saved):
        """Goes on where the saved one was, and sets the learning rates."""
        _check_saved(self, saved)
        self.t, self.peaks = int(saved["t"]), list(saved["peaks"])
        self._apply()

    def __repr__(self):
        return f"{type(self).__name__}(t={self.t}, learning_rate={self.optimizer.learning_rate})"


def _check_saved(schedule, saved):
    kind = type(schedule).__name__
    if not isinstance(saved, dict) or saved.get("schedule") != kind:
        got = saved.get("schedule") if isinstance(saved, dict) else type(saved).__name__
        raise StateError(f"{kind}.load_state_dict: wanted the state of a {kind}", f"{got}")
    if len(saved["peaks"]) != len(schedule.optimizer.groups):
        raise StateError(
            f"{kind}.load_state_dict: wanted {len(schedule.optimizer.groups)} groups",
            f"{len(saved['peaks'])}",
        )


def _whole(kind, name, value, at_least=1):
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < at_least:
        raise ArgumentError(
            f"{kind}: wanted a whole number of at least {at_least} for {name}", value
        )
    return value.__index__()


def _between(kind, name, value, low, high):
    if not low <= value <= high:
        raise ArgumentError(f"{kind}: wanted {name} from {low} to {high}", f"{value}")
    return float(value)


class Constant(Schedule):
    """factor * peak for the first `steps` steps, then peak."""

    def __init__(self, optimizer, factor=1.0, steps=0):
        self.factor = _between("Constant", "factor", factor, 0.0, math.inf)
        self.steps = _whole("Constant", "steps", steps, 0)
        super().__init__(optimizer)

    def rate(self, t, peak):
        """The learning rate at step t."""
        return peak * self.factor if t < self.steps else peak


class StepDecay(Schedule):
    """peak * factor^(t // every)."""

    def __init__(self, optimizer, every, factor=0.1):
        self.every = _whole("StepDecay", "every", every)
        self.factor = _between("StepDecay", "factor", factor, 0.0, 1.0)
        super().__init__(optimizer)

    def rate(self, t, peak):
        """The learning rate at step t."""
        return peak * self.factor ** (t // self.every)


class ExponentialDecay(Schedule):
    """peak * factor^t."""

    def __init__(self, optimizer, factor):
        self.factor = _between("ExponentialDecay", "factor", factor, 0.0, 1.0)
        super().__init__(optimizer)

    def rate(self, t, peak):
        """The learning rate at step t."""
        return peak * self.factor**t


class CosineDecay(Schedule):
    """From peak at 0 to minimum at `steps` along half a cosine; beyond, it rises again."""

    def __init__(self, optimizer, steps, minimum=0.0):
        self.steps = _whole("CosineDecay", "steps", steps)
        self.minimum = _between("CosineDecay", "minimum", minimum, 0.0, math.inf)
        super().__init__(optimizer)

    def rate(self, t, peak):
        """The learning rate at step t."""
        return cosine(t, self.steps, peak, self.minimum)


class LinearWarmup(Schedule):
    """From peak * start at 0 to peak at `steps` in equal steps, then peak."""

    def __init__(self, optimizer, steps, start=0.0):
        self.steps = _whole("LinearWarmup", "steps", steps)
        self.start = _between("LinearWarmup", "start", start, 0.0, 1.0)
        super().__init__(optimizer)

    def rate(self, t, peak):
        """The learning rate at step t."""
        share = min(t / self.steps, 1.0)
        return peak * (self.start + (1.0 - self.start) * share)


class WarmupCosine(Schedule):
    """Linear to peak in `warmup` steps, then half a cosine to minimum at `steps`."""

    def __init__(self, optimizer, warmup, steps, minimum=0.0):
        self.warmup = _whole("WarmupCosine", "warmup", warmup, 0)
        self.steps = _whole("WarmupCosine", "steps", steps)
        self.minimum = _between("WarmupCosine", "minimum", minimum, 0.0, math.inf)
        if self.warmup >= self.steps:
            raise ArgumentError("WarmupCosine: wanted warmup < steps", f"{warmup} and {steps}")
        super().__init__(optimizer)

    def rate(self, t, peak):
        """The learning rate at step t."""
        return warmup_cosine(t, self.warmup, self.steps, peak, self.minimum)


class ReduceOnPlateau(Schedule):
    """Multiplies the rate by `factor` when `step(value)` has brought nothing better for a while.

    Args:
        patience: so many steps without progress are borne; the next one reduces.
        threshold: progress is a value below best * (1 - threshold), or above best * (1 + threshold)
            with mode='max'.
        minimum: no rate goes below it.
        mode: 'min' for losses, 'max' for accuracies.
    """

    def __init__(
        self, optimizer, factor=0.1, patience=10, threshold=1e-4, minimum=0.0, mode="min"
    ):  # fmt: skip
        if mode not in ("min", "max"):
            raise ArgumentError("ReduceOnPlateau: wanted mode 'min' or 'max'", f"{mode!r}")
        self.factor = _between("ReduceOnPlateau", "factor", factor, 0.0, 1.0)
        self.patience = _whole("ReduceOnPlateau", "patience", patience, 0)
        self.threshold = _between("ReduceOnPlateau", "threshold", threshold, 0.0, 1.0)
        self.minimum = _between("ReduceOnPlateau", "minimum", minimum, 0.0, math.inf)
        self.mode, self.best, self.waited, self.scale = mode, None, 0, 1.0
        super().__init__(optimizer)

    def rate(self, t, peak):
        """The learning rate now."""
        return max(peak * self.scale, min(self.minimum, peak))

    def step(self, value):  # pyright: ignore[reportIncompatibleMethodOverride] - as PyTorch
        """Takes the value that is watched, such as the loss on held-out data."""
        if state.trace is not None:
            self._later()
        value, sign = float(value), 1.0 if self.mode == "min" else -1.0
        best = self.best
        if best is None or sign * value < sign * best - self.threshold * abs(best):
            self.best, self.waited = value, 0
        else:
            self.waited += 1
        if self.waited > self.patience:
            self.scale, self.waited = self.scale * self.factor, 0
        super().step()

    def state_dict(self):
        """Plain numbers, for `load_state_dict`."""
        mine = {"best": self.best, "waited": self.waited, "scale": self.scale}
        return {**super().state_dict(), **mine}

    def load_state_dict(self, saved):
        """Goes on where the saved one was."""
        _check_saved(self, saved)
        self.best, self.waited, self.scale = saved["best"], saved["waited"], saved["scale"]
        super().load_state_dict(saved)
