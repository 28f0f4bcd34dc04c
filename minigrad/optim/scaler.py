"""GradScaler: keeps small gradients of half precision above 0 by a factor on the loss.

The scaler's numbers are one block of memory. What happens between two calls of `update` is an
`Iteration`. While a step is traced, the trace has an iteration of its own (see `scaler_traced`).
"""

import functools
import math
import weakref
from typing import Any

import numpy as np

from minigrad.arguments import flag, instance, number, shown, whole
from minigrad.array.dtypes import float64
from minigrad.devices.backend import (
    default_device,
    device_named,
    device_of,
    host,
    moved,
    set_values,
    values,
)
from minigrad.errors import ArgumentTypeError, DTypeError, StateError
from minigrad.formulas.expression import (
    Expression,
    Program,
    equal,
    logical_and,
    maximum,
    minimum,
    symbol,
    where,
)
from minigrad.hints import missing, teaching, teaching_class
from minigrad.memory.interrupts import uninterrupted
from minigrad.optim.clipping import (
    norms_of,
    scale_gradients,
    total_of,
    with_gradients,
)
from minigrad.optim.hooked import stepped_by_hook, unscaled_by_hook
from minigrad.optim.optimizer import Optimizer
from minigrad.optim.scaled import ELSEWHERE, Marking, called, mark, refuse_alone
from minigrad.optim.scaler_traced import (
    Iteration,
    record_step,
    record_unscaling,
    refuse_part,
    traced_now,
)
from minigrad.seams import seams
from minigrad.tape.attribute_writes import writes
from minigrad.tape.node import user_place
from minigrad.tape.probe import run_as
from minigrad.tape.variable import Variable

NAMES = (
    "scale", "growth_factor", "backoff_factor", "growth_interval", "growth_tracker",
    "skipped_steps",
)  # fmt: skip
LEAST, MOST = 2.0**-126, float(np.finfo(np.float32).max)  # both have an inverse in float32
NARROWEST = 4  # bytes of a gradient's element: half precision has no room for what is unscaled

_x, _scale, _growth, _backoff, _interval, _tracker, _skipped = map(symbol, ("x", *NAMES))
_found = symbol("found")
_is_due = _tracker + 1.0 >= _interval
_grown = _scale * _growth
_kept = where(logical_and(_is_due, _grown <= MOST), _grown, _scale)
_lowered = maximum(_scale * _backoff, minimum(_scale, LEAST))
_counted = where(_is_due, 0.0, _tracker + 1.0)
UPDATED = Program(  # the scale, a number of float32, and the tracker after an iteration
    [*NAMES[:5], "found"],
    [
        Expression("as_float32", where(equal(_found, 0.0), _kept, _lowered)),
        where(equal(_found, 0.0), _counted, 0.0),
    ],
)


@teaching_class
class GradScaler:
    """Scales a loss so that gradients in half precision do not become 0, and adapts the factor.

    An iteration is scale, backward, unscale_ (if gradients are clipped or looked at), step, update.
    `step` leaves a step out if a gradient is NaN or infinite; then `update` lowers the scale by
    backoff_factor. After growth_interval iterations in a row without such a gradient it multiplies
    the scale by growth_factor. The scale stays a number of float32 with an inverse.

    A compiled step may scale and go backward, or have the whole iteration: then the update of a
    step that is left out keeps all old values.

    To compute in float16, keep the parameters in float32, and call model and loss in a block of
    `mg.autocast`, which takes the loss in float32: times 65536, one of 1.0 in float16 would be inf.

    Args:
        init_scale: the scale at first, a positive number of float32.
        growth_factor: above 1.
        backoff_factor: between 0 and 1.
        growth_interval: an int of at least 1.
        enabled: False turns all off: `scale` returns the loss, `step` is optimizer.step().

    >>> import minigrad as mg
    >>> mg.manual_seed(0)
    >>> model = mg.nn.Linear(2, 1)
    >>> optimizer, scaler = mg.optim.SGD(model, learning_rate=0.1), mg.optim.GradScaler()
    >>> for size in (1.0, 2e4):
    ...     with mg.autocast("float16"):
    ...         loss = mg.mean(model(mg.variable([[size, size]])) ** 2)
    ...     scaler.scale(loss).backward()
    ...     scaler.unscale_(optimizer)
    ...     norm = mg.optim.clip_grad_norm_(model, 1.0, error_if_nonfinite=False)
    ...     scaler.step(optimizer)
    ...     scaler.update()
    ...     optimizer.zero_grad()
    >>> scaler.get_scale(), scaler.skipped_steps
    (32768.0, 1)
    """

    __slots__ = ("__weakref__", "_block", "_enabled", "_iteration", "_trace", "_traced")

    def __init__(
        self, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000,
        enabled=True,
    ):  # fmt: skip
        given = init_scale, growth_factor, backoff_factor, growth_interval, 0, 0
        numbers = _checked("GradScaler", "init_scale", *given)
        self._enabled = flag("GradScaler", "enabled", enabled)
        self._block = host().from_numpy(np.array(numbers), float64)
        self._iteration = Iteration()
        self._trace: Any = None  # a weak reference to the running trace
        self._traced: Any = None  # its iteration

    enabled = property(lambda self: self._enabled, doc="Whether it scales. It cannot be set.")

    # -- an iteration ----------------------------------------------------------------------------

    @teaching
    def scale(self, loss):
        """Returns the loss times the scale.

        Args:
            loss: a floating point Variable, or a list or tuple of them.

        Raises:
            DTypeError: a loss has ints or bools.
        """
        if isinstance(loss, (list, tuple)):
            _ = [_checked_loss(x) for x in loss]
            return type(loss)(map(self.scale, loss))
        _checked_loss(loss)
        if not self._enabled:
            return loss
        y = loss * self._factor(loss)
        if y.node is not None:
            y.node.plan = Marking(y.node.plan, self)
        self._now().is_begun = True
        return y

    @teaching
    def unscale_(self, optimizer):
        """Divides the optimizer's gradients by the scale, in place, and looks for NaN and infinity.

        `step` does so itself. Call it before, once, where gradients are clipped or looked at.

        Args:
            optimizer: the optimizer that updates parameters which have gradients.

        Raises:
            StateError: no loss was scaled since the last `update`; the optimizer's gradients were
                unscaled already; none of its parameters has a gradient.
            DTypeError: a gradient has half precision.
        """
        _checked_optimizer("unscale_", optimizer)
        if self._enabled:
            self._unscale("unscale_", optimizer)

    @teaching
    def step(self, optimizer):
        """Calls optimizer.step() on unscaled gradients, or leaves it out if they are not finite.

        Args:
            optimizer: the optimizer to step; once in an iteration.

        Raises:
            StateError: no loss was scaled since the last `update`; the optimizer has stepped
                since; a gradient was scaled again after `unscale_`; there is no gradient.
        """
        _checked_optimizer("step", optimizer)
        if not self._enabled:
            optimizer.step()
            return
        now = self._begun("step", optimizer)
        if optimizer in now.stepped:
            raise StateError(
                f"GradScaler.step: wanted one step of {optimizer.algorithm} in an iteration",
                "a second one since the last update()",
                "call scaler.update() once after the steps of all optimizers",
            )
        if optimizer not in now.found:
            self._unscale("step", optimizer)
        elif again := [p for p, g in _gradients(optimizer) if g.mark is not None]:
            raise StateError(
                "GradScaler.step: wanted unscaled gradients",
                f"a scaled one was added to {called(again)} after unscale_",
                "call unscale_ after the last backward of the iteration",
            )
        if seams.effects.is_tracing:
            run_as("GradScaler.step", record_step, self, optimizer, now.found[optimizer])
            now.stepped.add(optimizer)
        elif seams.grad_scaler is not None:
            is_made = stepped_by_hook(self, optimizer, seams.grad_scaler)
            self._note_step(now, optimizer, is_made)
        else:
            self._step_now(now, optimizer)

    @uninterrupted
    def _step_now(self, now, optimizer):
        is_made = not now.found[optimizer]
        if is_made:
            optimizer.step()
        self._note_step(now, optimizer, is_made)

    @uninterrupted
    def _note_step(self, now, optimizer, is_made):
        if not is_made:
            self._write(skipped_steps=self.skipped_steps + 1)
        now.stepped.add(optimizer)

    @teaching
    def update(self, new_scale=None):
        """Ends the iteration: lowers, keeps or raises the scale.

        Args:
            new_scale: a number to set the scale to; by default it follows from the gradients.

        Raises:
            StateError: no optimizer's gradients were unscaled since the last `update`.
        """
        where_ = "GradScaler.update"
        if new_scale is not None:
            new_scale = _scale_of(where_, "new_scale", new_scale)
        if not self._enabled:
            return
        now = self._now()
        if new_scale is None and not now.found:
            raise StateError(
                f"{where_}: wanted gradients that were looked at in this iteration",
                "no step() or unscale_() since the last update()",
                "scaler.scale(loss).backward(), scaler.step(optimizer), scaler.update()",
            )
        if seams.effects.is_tracing:
            found_inf = total_of(default_device(), list(now.found.values())) if now.found else None
            run_as(where_, self._update, found_inf, new_scale)
        elif seams.grad_scaler is not None and new_scale is None:
            scale, tracker = seams.grad_scaler.update(self)
            self._end_by_hook(min(max(scale, LEAST), MOST), tracker)
        else:
            self._update(float(any(now.found.values())), new_scale)

    @uninterrupted
    def _update(self, found_inf, new_scale):
        if seams.effects.is_tracing:
            self._traced = None
        else:
            self._iteration = Iteration()
        device, numbers = device_of(self._block), [self._number(name) for name in NAMES[:5]]
        device.prepare_write(self._block, user_place())
        if new_scale is not None:
            device.fill(numbers[0], new_scale)
        else:
            device.elementwise(UPDATED, (*numbers, found_inf), (numbers[0], numbers[4]))

    @uninterrupted
    def _end_by_hook(self, scale, tracker):
        self._write(scale=float(np.float32(scale)), growth_tracker=float(tracker))
        self._iteration = Iteration()

    def _unscale(self, name, optimizer):
        now = self._begun(name, optimizer)
        if optimizer in now.found:
            is_late = optimizer in now.stepped
            raise StateError(
                f"GradScaler.unscale_: wanted scaled gradients of {optimizer.algorithm}",
                "its step was made already" if is_late else "unscale_() was called already",
                "call it once in an iteration, before step(); update() begins the next",
            )
        pairs = _gradients(optimizer)
        if not pairs:
            raise StateError(
                f"GradScaler.{name}: wanted gradients of {optimizer.algorithm}'s parameters",
                "none has one",
                "call scaler.scale(loss).backward() before, with a loss that depends on them",
            )
        narrow = [p for p, g in pairs if g.dtype.itemsize < NARROWEST]
        if narrow:
            raise DTypeError(
                f"GradScaler.{name}: wanted gradients of float32 or float64",
                f"{narrow[0].dtype} of {called(narrow)}",
                "keep the parameters in float32, model.to('float32'), and call the model in "
                "`with mg.autocast('float16'):`",
            )
        if seams.effects.is_tracing:
            now.found[optimizer] = run_as("GradScaler.unscale_", record_unscaling, self, pairs)
        elif seams.grad_scaler is not None:
            is_found = unscaled_by_hook(self, optimizer, pairs, seams.grad_scaler)
            self._note_unscaled(now, optimizer, pairs, is_found)
        else:
            self._unscale_now(now, optimizer, pairs)

    @uninterrupted
    def _unscale_now(self, now, optimizer, entries):
        pairs = zip(entries, norms_of([g for _, g in entries]), strict=True)
        is_found = not all(  # a norm may overflow where no element does
            math.isfinite(norm) or np.isfinite(values(g.array)).all() for (_, g), norm in pairs
        )
        scale_gradients(entries, [1.0 / self.get_scale()] * len(entries))
        self._note_unscaled(now, optimizer, entries, is_found)

    @uninterrupted
    def _note_unscaled(self, now, optimizer, pairs, is_found):
        for _, g in pairs:
            g.mark = None
        now.found[optimizer] = is_found

    def _now(self):
        """Returns the iteration: the trace's own while a step is traced."""
        return traced_now(self) if seams.effects.is_tracing else self._iteration

    def _begun(self, name, optimizer):
        refuse_alone(f"GradScaler.{name}", optimizer.parameters)
        now = self._now()
        if not now.is_begun and any(g.mark is ELSEWHERE for _, g in _gradients(optimizer)):
            now.is_begun = True  # by the scale() of another rank; this one had no examples
        if not now.is_begun and seams.effects.is_tracing:
            refuse_part(name, "no scale() in it")
        if not now.is_begun:
            raise StateError(
                f"GradScaler.{name}: wanted gradients of a loss that was scaled in this iteration",
                "no scale() since the last update()",
                "scaler.scale(loss).backward()",
            )
        return now

    def _mark(self, leaves):
        """Marks the gradients of leaves as scaled; backward calls it."""
        mark(leaves, self)
        if seams.effects.is_tracing:
            self._now().leaves += map(weakref.ref, leaves)

    # -- numbers ---------------------------------------------------------------------------------

    def get_scale(self):
        """Returns the scale, a float; 1.0 if the scaler is not enabled."""
        return self._numbers()["scale"] if self._enabled else 1.0

    @property
    def skipped_steps(self):
        """How many steps of optimizers were left out, an int."""
        return int(self._numbers()["skipped_steps"])

    def _numbers(self):
        seams.effects.read(self._block)
        return dict(zip(NAMES, values(self._block).tolist(), strict=True))

    @uninterrupted
    def _write(self, **numbers):
        merged = {**self._numbers(), **numbers}
        device_of(self._block).prepare_write(self._block)
        set_values(self._block, np.array([merged[name] for name in NAMES]))

    def _number(self, name):
        """Returns an Array () over the memory of a number."""
        return self._block.view((), (), NAMES.index(name))

    def _factor(self, loss):
        """Returns the scale as a number, or in a traced step as a Variable of the loss's dtype."""
        if not seams.effects.is_tracing:
            hook = seams.grad_scaler
            return self.get_scale() if hook is None else hook.scale(self, not self._now().is_begun)
        if self._block.device != loss.device:  # a program writes to memory of its own device
            with seams.effects.paused():
                self._block = moved(self._block, device_named(loss.device))
            writes.note()  # programs that hold the old memory are traced again
        seams.effects.call(self._block, "GradScaler's numbers")
        return Variable(default_device().convert(self._number("scale"), loss.dtype))

    # -- saving ----------------------------------------------------------------------------------

    def state_dict(self):
        """Returns plain numbers for `load_state_dict`. Save them after `update`."""
        numbers = self._numbers()
        return {k: v if k.endswith(("scale", "factor")) else int(v) for k, v in numbers.items()}

    @teaching
    def load_state_dict(self, saved):
        """Restores the result of `state_dict`, and begins a new iteration.

        Args:
            saved: a dict with the names of `state_dict`, and no others.

        Raises:
            StateError: names are missing or unexpected. Nothing was written.
            ArgumentError: a number is out of its range. Nothing was written.
        """
        prepared(self, saved)()

    @uninterrupted
    def _take(self, numbers):
        seams.effects.refuse(
            "GradScaler.load_state_dict inside a compiled step would be done once, while tracing",
            "call it outside the step",
        )
        self._write(**dict(zip(NAMES, numbers, strict=True)))
        self._iteration = Iteration()

    def __getattr__(self, name):
        raise missing("GradScaler", name, "GradScaler has no attribute", known=dir(type(self)))

    def __reduce_ex__(self, protocol):
        return _restored, (self.state_dict(), self._enabled)

    def __repr__(self):
        if not self._enabled:
            return "GradScaler(enabled=False)"
        return f"GradScaler({', '.join(f'{k}={v}' for k, v in self.state_dict().items())})"


def prepared(scaler, saved):
    """Checks a state; returns the function that writes it into the scaler."""
    where_ = "GradScaler.load_state_dict"
    if not isinstance(saved, dict):
        raise ArgumentTypeError(f"{where_}: wanted what scaler.state_dict() returns", shown(saved))
    if set(saved) != set(NAMES):
        raise StateError(
            f"{where_}: wanted {', '.join(NAMES)}",
            ", ".join(map(str, saved)) or "nothing",
            "load what scaler.state_dict() returned",
        )
    return functools.partial(
        scaler._take, _checked(where_, "scale", *(saved[name] for name in NAMES))
    )


def _scale_of(name, what, value):
    return float(np.float32(number(name, what, value, LEAST, MOST)))


def _checked(name, what, scale, growth, backoff, interval, tracker, skipped):
    """Checks the numbers of a scaler; returns them as floats. what: the name of the scale."""
    return [
        _scale_of(name, what, scale),
        number(name, "growth_factor", growth, above=1.0),
        number(name, "backoff_factor", backoff, above=0.0, below=1.0),
        number(name, "growth_interval", whole(name, "growth_interval", interval, 1), below=2**53),
        number(name, "growth_tracker", whole(name, "growth_tracker", tracker, 0), below=2**53),
        number(name, "skipped_steps", whole(name, "skipped_steps", skipped, 0), below=2**53),
    ]


def _restored(saved, enabled):
    made = GradScaler(enabled=enabled)
    made.load_state_dict(saved)
    return made


def _checked_loss(loss):
    if not isinstance(loss, Variable):
        raise ArgumentTypeError(
            "GradScaler.scale: wanted a Variable, or a list of them", shown(loss), "scale(loss)"
        )
    if not loss.dtype.is_float:
        raise DTypeError(
            "GradScaler.scale: wanted a loss of floating point", loss.describe(), "scale the loss "
            "that backward begins at, which is never of ints",
        )  # fmt: skip


def _checked_optimizer(name, optimizer):
    fix = f"scaler.{name}(optimizer)"
    instance(f"GradScaler.{name}", "optimizer", optimizer, Optimizer, "an optimizer", fix)


def _gradients(optimizer):
    """Returns (parameter, gradient) of the parameters that a step would update."""
    pairs = with_gradients("GradScaler", optimizer.parameters)
    return [(p, g) for p, g in pairs if p._requires_grad]
