"""Schedules: small objects whose step() sets the learning rate of an optimizer.

Call `schedule.step()` once after each optimizer.step(). You may also call it after each epoch; then
all numbers count epochs. Creating a schedule sets the rate of step 0. The peak of each group is the
group's learning rate at that time.

Several schedules of one optimizer form a chain, as in PyTorch: each is stepped separately, and the
current rate of the earlier schedules is the peak of the next. So LinearWarmup and CosineDecay
multiply. A `Sequence` runs schedules one after another, each from its own step 0.
"""

import copy
import functools
import itertools
import math
import weakref

from minigrad.arguments import choice, instance, number, short, shown, whole
from minigrad.arguments import function as checked_function
from minigrad.errors import ArgumentError, ArgumentTypeError, StateError
from minigrad.hints import refuse_misfit, refuse_unknown_arguments
from minigrad.memory.interrupts import uninterrupted
from minigrad.optim.optimizer import Optimizer
from minigrad.seams import seams


def cosine(t, steps, peak=1.0, minimum=0.0):
    """Goes from peak at t = 0 to minimum at t = steps along half a cosine.

    Numbers t, steps, peak, minimum -> a float (Loshchilov, Hutter 2017).

    >>> cosine(0, 10), cosine(10, 10)
    (1.0, 0.0)
    """
    t, steps = number("cosine", "t", t), number("cosine", "steps", steps, above=0.0)
    peak, minimum = number("cosine", "peak", peak), number("cosine", "minimum", minimum)
    return minimum + (peak - minimum) * 0.5 * (1.0 + math.cos(math.pi * t / steps))


def warmup_cosine(t, warmup, steps, peak=1.0, minimum=0.0):
    """Rises from peak / warmup at 0 to peak at warmup - 1, then falls to minimum at steps.

    The rise is linear, the fall half a cosine; after `steps` it stays at minimum.
    Numbers t, warmup, steps, peak, minimum -> a float.

    >>> [round(warmup_cosine(t, 2, 6), 3) for t in range(8)]
    [0.5, 1.0, 1.0, 0.854, 0.5, 0.146, 0.0, 0.0]
    """
    given = {"t": t, "warmup": warmup, "steps": steps, "peak": peak, "minimum": minimum}
    t, warmup, steps, peak, minimum = (number("warmup_cosine", *pair) for pair in given.items())
    if t < warmup:
        return peak * (t + 1) / warmup
    if t >= steps:
        return minimum
    return cosine(t - warmup, steps - warmup, peak, minimum)


_numbers = itertools.count()


class Schedule:
    """Sets the rate of a group to rate(t, peak); `t` counts the calls of step().

    A schedule keeps references to the earlier schedules of its optimizer, which determine its peak.
    The optimizer has only weak references. A chain ends if you set the rate by hand and then make
    another schedule: the earlier schedules have no more effect.

    Args:
        optimizer: the optimizer whose learning rates it sets.

    Raises:
        StateError: the earlier schedules have brought the rate to 0, which no factor can raise; or
            `step` was called after the chain had ended.
    """

    def __new__(cls, *args, **kwargs):
        if kwargs:
            refuse_unknown_arguments(cls.__name__, cls.__init__, kwargs, "schedule")
        refuse_misfit(cls, args, kwargs)
        return object.__new__(cls)

    def __init__(self, optimizer):
        instance(type(self).__name__, "optimizer", optimizer, Optimizer, "an optimizer")
        self.optimizer, self.t = optimizer, 0
        self._number, self._ended, self._before = next(_numbers), None, []
        now = [group.learning_rate for group in optimizer.groups]
        before, ended = self._chain(), []
        if before and now != optimizer._scheduled:
            before, ended = [], before
        self.peaks = list(before[0].peaks) if before else now
        if before and not any(now) and any(schedule.t for schedule in before):
            raise StateError(
                f"{type(self).__name__}: the schedules before it have brought the learning rate to "
                "0, and its rates would be multiples of that",
                ", ".join(map(repr, before)),
                "set optimizer.learning_rate = ... first: that ends what was before; for one after "
                "the other use optim.Sequence(optimizer, schedules, milestones)",
            )
        self._before = before
        self._apply([*before, self], self.t)
        for schedule in ended:
            schedule._ended = "the learning rate was set by hand, and another schedule made"
        self._enlist()

    def _enlist(self):
        known = self.optimizer._schedules
        known[:] = [*(r for r in known if r() is not None), weakref.ref(self)]

    def _chain(self):
        """Returns the active schedules, in order of creation."""
        known = [reference() for reference in self.optimizer._schedules]
        active = [s for s in known if s is not None and not s._ended]
        return sorted(active, key=lambda schedule: schedule._number)

    def rate(self, t, peak):
        """Returns the learning rate at step t."""
        raise NotImplementedError

    @uninterrupted
    def step(self):
        """Advances by one step and sets the learning rates. A compiled step does so at each run."""
        if self._ended:
            raise StateError(f"{type(self).__name__}.step: {self._ended}", f"{self}")
        if seams.effects.is_tracing:
            self._later()
            return
        self._apply(self._chain(), self.t + 1)
        self.t += 1

    def _later(self):
        if type(self).step is not Schedule.step:
            seams.effects.refuse(
                f"{type(self).__name__}.step() inside a compiled step: it has work of its own",
                "call it outside the step",
            )
        seams.effects.later(self.step, [group._array for group in self.optimizer.groups])

    @uninterrupted
    def _apply(self, chain, t):
        """Sets the rates of a chain, with this schedule at step t."""
        rates = self._rates(chain, t)
        if t > self.t and not any(rates) and not any(chain[0].peaks):
            raise StateError(
                f"{type(self).__name__}.step: the learning rate was 0 when it was made, and "
                "all its rates are multiples of that: nothing trains",
                fix="set optimizer.learning_rate = ... before the schedule is made",
            )
        self._set(rates)

    def _rates(self, chain, t):
        """Computes and checks the rates of a chain, with this schedule at step t."""
        rates = list(chain[0].peaks)
        for schedule in chain:
            at = t if schedule is self else schedule.t
            rates = [schedule._rate(at, peak) for peak in rates]
        return rates

    def _rate(self, t, peak):
        try:
            rate = self.rate(t, peak)
        except OverflowError:  # powers and quotients raise; products are inf
            rate = math.inf
        return self.optimizer.checked("learning_rate", rate)

    @uninterrupted
    def _let_go(self, some):
        """Sets the rates of the chain without `some` schedules, unless rates were set by hand."""
        chain, groups = self._chain(), self.optimizer.groups
        if [group.learning_rate for group in groups] == self.optimizer._scheduled:
            rates = list(chain[0].peaks)
            for schedule in chain:
                if schedule not in some:
                    rates = [schedule._rate(schedule.t, peak) for peak in rates]
            self._set(rates)

    @uninterrupted
    def _set(self, rates, scheduled=None):
        optimizer = self.optimizer
        for group, rate in zip(optimizer.groups, rates, strict=True):
            group.learning_rate = rate
        optimizer._scheduled = rates if scheduled is None else scheduled

    def state_dict(self):
        """Returns plain numbers for `load_state_dict`, those of the earlier schedules included."""
        before = [schedule.state_dict() for schedule in self._before]
        return {
            "schedule": type(self).__name__, "t": self.t, "peaks": list(self.peaks),
            **({"before": before} if before else {}),
        }  # fmt: skip

    @uninterrupted
    def load_state_dict(self, saved):
        """Continues from a saved state and sets the learning rates."""
        prepared(self, saved)()

    @uninterrupted
    def _continue(self, saved):
        """Continues from a checked state and sets the learning rates."""
        self._take_all(saved)
        self._apply(self._chain(), self.t)

    @uninterrupted
    def _try(self, saved):
        """Raises if a checked state leads to invalid rates. Sets nothing."""
        former = [(schedule, dict(vars(schedule))) for schedule in (*self._before, self)]
        try:
            self._take_all(saved)
            self._rates(self._chain(), self.t)
        finally:
            for schedule, attributes in former:
                vars(schedule).update(attributes)

    def _take_all(self, saved):
        for schedule, its in zip(self._before, saved.get("before", ()), strict=True):
            schedule._take(its)
        self._take(saved)

    def _read(self, saved):
        """Checks a saved state; returns {attribute: value}."""
        where, peaks = f"{type(self).__name__}.load_state_dict", saved["peaks"]
        if not isinstance(peaks, (list, tuple)):
            raise ArgumentTypeError(f"{where}: wanted a list of numbers for peaks", shown(peaks))
        t = whole(where, "t", saved["t"], 0)
        if t.bit_length() > 63:
            raise ArgumentError(f"{where}: wanted a number of steps for t", shown(t))
        return {
            "t": t,
            "peaks": [number(where, "peaks", peak, 0.0) for peak in peaks],
        }

    def _take(self, saved):
        """Sets the numbers of a checked state."""
        vars(self).update(self._read(saved))

    def __deepcopy__(self, memo):
        out = memo[id(self)] = object.__new__(type(self))
        for name, value in self.__dict__.items():
            out.__dict__[name] = copy.deepcopy(value, memo)
        out._enlist()
        return out

    def __reduce_ex__(self, protocol):
        raise ArgumentTypeError(
            f"pickle, copy.copy: a {type(self).__name__} sets the rates of one optimizer",
            fix="save schedule.state_dict(), plain numbers, and load it into one made anew; or "
            "copy.deepcopy((model, optimizer, schedule))",
        )

    def __repr__(self):
        return f"{type(self).__name__}(t={self.t}, learning_rate={self.optimizer.learning_rate})"


def prepared(schedule, saved):
    """Checks a state; returns the function that writes it into the schedule."""
    _check_saved(schedule, saved)
    schedule._try(saved)
    return functools.partial(schedule._continue, saved)


def _check_saved(schedule, saved):
    kind = type(schedule).__name__
    wanted = schedule.state_dict().keys() - {"before"}
    its = saved.get("schedule") if isinstance(saved, dict) else None
    if not isinstance(its, str) or its != kind or not wanted <= saved.keys():
        got = its if isinstance(its, str) and its != kind else shown(saved)
        raise StateError(f"{kind}.load_state_dict: wanted the state of a {kind}", got)
    count = len(schedule._read(saved)["peaks"])
    if count != len(schedule.optimizer.groups):
        raise StateError(
            f"{kind}.load_state_dict: wanted {len(schedule.optimizer.groups)} groups", f"{count}"
        )
    before = saved.get("before", ())
    if not isinstance(before, (list, tuple)) or not all(isinstance(its, dict) for its in before):
        raise ArgumentTypeError(
            f"{kind}.load_state_dict: wanted a list of states for before", shown(before)
        )
    if len(before) != len(schedule._before):
        raise StateError(
            f"{kind}.load_state_dict: wanted the state of one that was made after "
            f"{len(schedule._before)} other schedules of its optimizer",
            f"{len(before)}: {', '.join(str(its.get('schedule')) for its in before) or 'none'}",
            "make the schedules as they were made when the state was saved",
        )
    for earlier, its in zip(schedule._before, before, strict=True):
        _check_saved(earlier, its)


class Constant(Schedule):
    """factor * peak for the first `steps` steps, then peak; factor is a number of at least 0."""

    def __init__(self, optimizer, factor=1.0, steps=0):
        self.factor = number("Constant", "factor", factor, 0.0)
        self.steps = whole("Constant", "steps", steps, 0)
        super().__init__(optimizer)

    def rate(self, t, peak):
        return peak * self.factor if t < self.steps else peak


class StepDecay(Schedule):
    """peak * factor^(t // every), with `every` at least 1 and factor from 0 to 1."""

    def __init__(self, optimizer, every, factor=0.1):
        self.every = whole("StepDecay", "every", every, 1)
        self.factor = number("StepDecay", "factor", factor, 0.0, 1.0)
        super().__init__(optimizer)

    def rate(self, t, peak):
        return peak * self.factor ** (t // self.every)


class ExponentialDecay(Schedule):
    """peak * factor^t, with factor from 0 to 1."""

    def __init__(self, optimizer, factor):
        self.factor = number("ExponentialDecay", "factor", factor, 0.0, 1.0)
        super().__init__(optimizer)

    def rate(self, t, peak):
        return peak * self.factor**t


class CosineDecay(Schedule):
    """Falls from peak at 0 to minimum at `steps` along half a cosine, and then rises again."""

    def __init__(self, optimizer, steps, minimum=0.0):
        self.steps = whole("CosineDecay", "steps", steps, 1)
        self.minimum = number("CosineDecay", "minimum", minimum, 0.0)
        super().__init__(optimizer)

    def rate(self, t, peak):
        return cosine(t, self.steps, peak, self.minimum)


class LinearWarmup(Schedule):
    """Rises in equal steps from peak * start at 0 to peak at `steps`; start is from 0 to 1."""

    def __init__(self, optimizer, steps, start=0.0):
        self.steps = whole("LinearWarmup", "steps", steps, 1)
        self.start = number("LinearWarmup", "start", start, 0.0, 1.0)
        super().__init__(optimizer)

    def rate(self, t, peak):
        share = min(t / self.steps, 1.0)
        return peak * (self.start + (1.0 - self.start) * share)


class WarmupCosine(Schedule):
    """Rises linearly to peak in `warmup` steps, then falls to minimum at `steps`, half a cosine.

    Raises:
        ArgumentError: warmup is not below steps.
    """

    def __init__(self, optimizer, warmup, steps, minimum=0.0):
        self.warmup = whole("WarmupCosine", "warmup", warmup, 0)
        self.steps = whole("WarmupCosine", "steps", steps, 1)
        self.minimum = number("WarmupCosine", "minimum", minimum, 0.0)
        if self.warmup >= self.steps:
            raise ArgumentError("WarmupCosine: wanted warmup < steps", f"{warmup} and {steps}")
        super().__init__(optimizer)

    def rate(self, t, peak):
        return warmup_cosine(t, self.warmup, self.steps, peak, self.minimum)


class LambdaSchedule(Schedule):
    """peak * function(t) with your own function, as PyTorch's LambdaLR.

    Args:
        optimizer: the optimizer whose learning rates it sets.
        function: takes the step t, an int from 0 on, and returns a number of at least 0. A saved
            state does not contain it.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.nn.Parameter([1.0])], learning_rate=0.5)
    >>> schedule = mg.optim.LambdaSchedule(optimizer, lambda t: 1 / (1 + t))
    >>> schedule.step()
    >>> optimizer.learning_rate
    0.25
    """

    def __init__(self, optimizer, function):
        fix = "LambdaSchedule(optimizer, lambda t: 0.9**t)"
        self.function = checked_function("LambdaSchedule", "function", function, fix)
        super().__init__(optimizer)

    def rate(self, t, peak):
        factor = self.function(t)
        return peak * number("LambdaSchedule", "what the function returns", factor, 0.0)


class ReduceOnPlateau(Schedule):
    """Multiplies the rate by `factor` when the values of `step(value)` stop improving.

    Args:
        optimizer: the optimizer whose learning rates it sets.
        factor: from 0 to 1.
        patience: the number of steps without progress to tolerate. The next one reduces the rate.
        threshold: progress is a value below best * (1 - threshold), or above best * (1 + threshold)
            with mode='max'.
        minimum: the lower bound of the rate.
        mode: 'min' for losses, 'max' for accuracies.
    """

    def __init__(
        self, optimizer, factor=0.1, patience=10, threshold=1e-4, minimum=0.0, mode="min"
    ):  # fmt: skip
        choice("ReduceOnPlateau", "mode", mode, ("min", "max"))
        self.factor = number("ReduceOnPlateau", "factor", factor, 0.0, 1.0)
        self.patience = whole("ReduceOnPlateau", "patience", patience, 0)
        self.threshold = number("ReduceOnPlateau", "threshold", threshold, 0.0, 1.0)
        self.minimum = number("ReduceOnPlateau", "minimum", minimum, 0.0)
        self.mode, self.best, self.waited, self.scale = mode, None, 0, 1.0
        super().__init__(optimizer)

    def rate(self, t, peak):
        return max(peak * self.scale, min(self.minimum, peak))

    @uninterrupted
    def step(self, value):  # pyright: ignore[reportIncompatibleMethodOverride] - as PyTorch
        """Records the monitored value, such as the loss on held-out data."""
        if seams.effects.is_tracing:
            self._later()
        value = number("ReduceOnPlateau.step", "value", value, high=None)
        sign = 1.0 if self.mode == "min" else -1.0
        best = self.best
        if best is None or sign * value < sign * best - self.threshold * abs(best):
            self.best, self.waited = value, 0
        else:
            self.waited += 1
        if self.waited > self.patience:
            self.scale, self.waited = self.scale * self.factor, 0
        super().step()

    def state_dict(self):
        mine = {"best": self.best, "waited": self.waited, "scale": self.scale}
        return {**super().state_dict(), **mine}

    def _read(self, saved):
        where, best = "ReduceOnPlateau.load_state_dict", saved["best"]
        return {
            **super()._read(saved),
            "best": best if best is None else number(where, "best", best, high=None),
            "waited": whole(where, "waited", saved["waited"], 0),
            "scale": number(where, "scale", saved["scale"], 0.0),
        }


class Sequence(Schedule):
    """Runs schedules one after another, each from its own step 0, as PyTorch's SequentialLR.

    Args:
        optimizer: the optimizer whose learning rates it sets.
        schedules: schedules of the same optimizer, in order. From now on step the sequence instead
            of its schedules.
        milestones: the steps at which the second, the third, ... schedule begins.

    Raises:
        ArgumentError: milestones do not increase, or are not one fewer than the schedules; a
            schedule belongs to another optimizer, or has made a step.

    >>> import minigrad as mg
    >>> optimizer = mg.optim.SGD([mg.nn.Parameter([1.0])], learning_rate=1.0)
    >>> warmup, decay = mg.optim.LinearWarmup(optimizer, 2), mg.optim.StepDecay(optimizer, 2, 0.5)
    >>> schedule, rates = mg.optim.Sequence(optimizer, [warmup, decay], [2]), []
    >>> for step in range(6):
    ...     rates.append(optimizer.learning_rate)
    ...     schedule.step()
    >>> rates
    [0.0, 0.5, 1.0, 1.0, 0.5, 0.5]
    """

    def __init__(self, optimizer, schedules, milestones):
        self.schedules, self.milestones = _parts(optimizer, schedules, milestones)
        before = [group.learning_rate for group in optimizer.groups], optimizer._scheduled
        try:
            self.schedules[-1]._let_go(self.schedules)
            for schedule in self.schedules:
                schedule._ended = "it is part of a Sequence, which is stepped instead"
            super().__init__(optimizer)
        except BaseException:
            for schedule in self.schedules:
                schedule._ended = None
            self.schedules[-1]._set(*before)
            raise

    def rate(self, t, peak):
        k = sum(t >= milestone for milestone in self.milestones)
        return self.schedules[k].rate(t - (self.milestones[k - 1] if k else 0), peak)


def _parts(optimizer, schedules, milestones):
    """Checks and returns the schedules and milestones of a Sequence."""
    for name, given in (("schedules", schedules), ("milestones", milestones)):
        if not isinstance(given, (list, tuple)):
            raise ArgumentTypeError(f"Sequence: wanted a list of {name}", short(given))
    for schedule in schedules:
        if not isinstance(schedule, Schedule) or isinstance(schedule, ReduceOnPlateau):
            raise ArgumentTypeError(
                "Sequence: wanted schedules whose rate depends on the step alone",
                short(schedule),
            )
        if schedule.optimizer is not optimizer or schedule._ended or schedule.t:
            raise ArgumentError(
                "Sequence: wanted schedules of its own optimizer at step 0, in no other Sequence",
                short(schedule),
            )
    milestones = [whole("Sequence", "milestones", value, 1) for value in milestones]
    if len(schedules) != len(milestones) + 1 or sorted(set(milestones)) != milestones:
        raise ArgumentError(
            "Sequence: wanted a milestone, each larger than the last, for every schedule but the "
            "first",
            f"{len(schedules)} schedules, milestones {milestones}",
        )
    return list(schedules), milestones
