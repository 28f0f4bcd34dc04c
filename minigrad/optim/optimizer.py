"""Optimizer: the parameters to update, their state by id, and step()."""

import copy
import functools
import inspect
import math
import warnings
import weakref
from typing import Any

from minigrad.arguments import choice, flag, instance, number, short, whole
from minigrad.errors import ArgumentError, ArgumentTypeError, OrphanParameterError, ShapeError
from minigrad.formulas.update import Update, structure
from minigrad.hints import NAMES, missing, refuse_unknown_arguments, teaching
from minigrad.memory.interrupts import ready, uninterrupted
from minigrad.nn import Parameter
from minigrad.nn.ownership import changes
from minigrad.optim import saving, traced
from minigrad.optim.group import Group, check_trainable, split
from minigrad.optim.hooked import updated_by_hook
from minigrad.optim.passes import pass_of
from minigrad.optim.scaled import marks, refuse_marked
from minigrad.optim.state import ParameterState
from minigrad.optim.tracking import Tracking
from minigrad.seams import seams
from minigrad.tape import modes
from minigrad.tape.attribute_writes import written
from minigrad.tape.node import user_place
from minigrad.tape.probe import run_as

ORPHAN_RULES = ("raise", "warn", "ignore")
KNOWN_AS = NAMES["Optimizer"]
_update = functools.cache(Update)


class Optimizer:
    """The base class of optimizers. `state` is {parameter id: {name: Variable}}.

    Given a Module, an optimizer follows it and sees parameters that are added or replaced later.
    Given Parameters, it keeps these objects. It skips frozen parameters and those whose `.grad` is
    None. With a gradient of zeros a parameter still moves, by momentum and decay.

    Of a parameter in half precision it keeps a copy in float32, `master`, beside its other state,
    which is in float32, too. A step updates the copy, and rounds it to the parameter, so steps of
    less than the parameter's precision add up. What is written into the parameter in between
    counts: where it is not the copy rounded, the copy begins anew from it.

    A subclass is a rule: see `rules`. defaults: {hyperparameter: value}, the learning rate first.
    slots: names of the arrays kept per parameter. below_one: hyperparameters that must be below 1;
    the numbers of pairs always must be.
    """

    defaults: dict = {}
    slots: tuple = ()
    below_one: tuple = ()
    formula: Any  # (p, g, state, h) -> the new p and the new state
    _scheduled: list | None

    def __init_subclass__(cls):
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        options = {**cls.defaults, "on_orphan": "raise"}
        cls.__signature__ = inspect.Signature(
            [inspect.Parameter("parameters", kind)]
            + [inspect.Parameter(n, kind, default=value) for n, value in options.items()]
        )

    def __init__(self, *args, **kwargs):
        name, known = type(self).__name__, tuple(self.__signature__.parameters)
        refuse_unknown_arguments(name, known, kwargs, "optimizer")
        try:
            given = self.__signature__.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentTypeError(
                f"{name}: {error}", fix=f"it takes {', '.join(known)}"
            ) from None
        given.apply_defaults()
        self._begin(**given.arguments)

    def _begin(self, parameters, on_orphan, **hyperparameters):
        self.algorithm = type(self).__name__
        self.on_orphan = choice(self.algorithm, "on_orphan", on_orphan, ORPHAN_RULES)
        self.state, self._passes, self._seen = {}, None, -1
        self._schedules, self._scheduled = [], None  # weak references; the rates set last
        groups = []
        for sources, own in split(self.algorithm, parameters):
            unknown = set(own) - set(self.defaults)
            if unknown:
                raise ArgumentError(
                    f"{self.algorithm}: wanted hyperparameters among {', '.join(self.defaults)}",
                    f"{', '.join(sorted(unknown))}",
                    "; ".join(f"{KNOWN_AS[u]} for {u}" for u in sorted(unknown & KNOWN_AS.keys())),
                )
            groups.append(Group(self, sources, {**hyperparameters, **own}))
        self.groups = tuple(groups)
        self._tracking = Tracking(weakref.proxy(self))
        self._sync()
        if not any(group.parameters for group in self.groups):
            raise ArgumentError(
                f"{self.algorithm}: wanted parameters to update", "a module without parameters"
            )

    def __setattr__(self, name, value):
        if name in KNOWN_AS:  # setting it would have no effect
            self.__getattr__(name)
        if name[0] != "_" and name != "learning_rate":
            written(self, f"{type(self).__name__}.{name} = ...")
        object.__setattr__(self, name, value)

    def __getattr__(self, name):
        raise missing("Optimizer", name, f"{type(self).__name__} has no attribute")

    # -- hyperparameters -----------------------------------------------------------------------

    @property
    def learning_rate(self):
        """The learning rate of the first group. Assignment sets it in all groups."""
        return self.groups[0].learning_rate

    @learning_rate.setter
    def learning_rate(self, value):
        for group in self.groups:
            group.learning_rate = value

    def slots_of(self, values):
        """Returns the names of the arrays kept per parameter with these hyperparameters."""
        return self.slots

    def check(self, values):
        """Raises if hyperparameters do not go together."""

    def checked(self, name, value):
        """Checks the range and type of a hyperparameter; returns it with its default's type."""
        if name not in self.defaults:
            raise AttributeError(
                f"{self.algorithm} has no hyperparameter '{name}'; "
                f"it has {', '.join(self.defaults)}"
            )
        default, most = self.defaults[name], 1.0 if name in self.below_one else math.inf
        if isinstance(default, bool):
            return flag(self.algorithm, name, value)
        if not isinstance(default, tuple):
            return number(self.algorithm, name, value, 0.0, below=most)
        if not isinstance(value, (tuple, list)) or len(value) != len(default):
            raise ArgumentTypeError(
                f"{self.algorithm}: wanted two numbers for {name}", short(value)
            )
        return tuple(number(self.algorithm, name, b, 0.0, below=1.0) for b in value)

    def update_of(self, values, dtype=None):
        """Returns the formulas.Update for these hyperparameters, and parameters of a dtype."""
        narrow = dtype if dtype is not None and dtype.is_narrow else None
        return _update(type(self).formula, tuple(self.slots_of(values)), structure(values), narrow)

    # -- parameters ----------------------------------------------------------------------------

    @property
    def parameters(self):
        """All parameters that are updated now, in order."""
        self._sync()
        return [p for group in self.groups for p in group.parameters]

    @uninterrupted
    def add(self, parameter, group=0):
        """Updates one more parameter from now on, with fresh state. group: the group's index."""
        kind = f"{self.algorithm}.add"
        instance(kind, "parameter", parameter, Parameter, "a Parameter")
        check_trainable(kind, parameter)
        group = whole(kind, "group", group)
        if not -len(self.groups) <= group < len(self.groups):
            raise ArgumentError(f"{kind}: wanted one of {len(self.groups)} groups", short(group))
        if any(p is parameter for p in self.parameters):
            raise ArgumentError(
                f"{kind}: '{parameter.name}' is updated already",
                fix="an optimizer that was given the model follows it: nothing to add",
            )
        written(self, kind)
        self.groups[group].sources.append(parameter)
        self._seen = -1
        self._sync()

    @uninterrupted
    def replace(self, old, new, state="keep"):
        """Updates `new` instead of `old` from now on.

        Args:
            old: the Parameter that was updated so far.
            new: the Parameter that replaces it.
            state: 'keep' passes old's state (momentum and the like) on to new, which must have the
                same shape; 'drop' starts with fresh state.
        """
        kind = f"{self.algorithm}.replace"
        choice(kind, "state", state, ("keep", "drop"))
        for p in (old, new):
            instance(kind, "old and new", p, Parameter, "two Parameters")
            check_trainable(kind, p)
        if not self._tracking.knows(old):
            raise ArgumentError(f"{kind}: '{old.name}' is not updated by this optimizer")
        if state == "keep" and old.shape != new.shape:
            raise ShapeError(
                f"{kind}: wanted equal shapes to keep the state",
                f"{old.shape} and {new.shape}",
                "state='drop' starts anew",
            )
        written(self, kind)
        kept = self.state.pop(old.id, None)
        if state == "keep" and kept is not None:
            self.state[new.id] = kept
        else:
            self.state.pop(new.id, None)
        self._tracking.replaced(old, new)
        self.forget_plan()
        self._seen = -1
        self._sync()

    @uninterrupted
    def _sync(self):
        """Collects the parameters of followed modules again if any module has changed."""
        if self._seen != changes.count:
            if self._tracking.update():
                self.forget_plan()
            self._seen = changes.count

    def forget_plan(self):
        """Makes the next step rebuild its passes."""
        self._passes = None

    # -- stepping ------------------------------------------------------------------------------

    @teaching
    def step(self):
        """Updates every parameter that has a gradient.

        Raises:
            OrphanParameterError: a parameter is no longer part of a module: training it would not
                change the model, or its state was lost.
            StateError: gradients are still scaled by a GradScaler, or were computed in `no_sync()`
                of a DataParallel and not reduced since. Nothing was written.
        """
        ready()
        if self._seen != changes.count:
            self._sync()
        if self._tracking.orphans:
            self._meet_orphans()
        if marks.are_used:
            updated = [p for group in self.groups for p in group.parameters if p._requires_grad]
            fix = "scaler.step(optimizer), or scaler.unscale_(optimizer) before optimizer.step()"
            refuse_marked(f"{self.algorithm}.step", updated, fix)
        if seams.update is not None and updated_by_hook(self, seams.update):
            return
        place = user_place()
        if seams.effects.is_tracing:
            run_as(f"{self.algorithm}.step", traced.update, self, place)
        else:
            self._update(place)

    @uninterrupted
    def _update(self, place):
        """Updates all parameters, or none."""
        if self._passes is None or not all(p.prepare(place) for p in self._passes):
            self._passes = self._plan()
            for p in self._passes:
                p.prepare(place)
        for p in self._passes:
            p.run()

    def _plan(self):
        rows = {}
        for group in self.groups:
            for p in group.parameters:
                update = group.update(p.dtype)
                state = self.state_for(p, group) if p._grad is not None else self.state.get(p.id)
                rows.setdefault((update, p.dtype, p.device), []).append((p, state, group))
        return [pass_of(a, dtype, device, entries) for (a, dtype, device), entries in rows.items()]

    @uninterrupted
    def state_for(self, parameter, group):
        """Returns a parameter's state, made or converted if needed; None if the rule has none."""
        update = group.update(parameter.dtype)
        slots, counts = update.slots, update.counts_steps
        state = self.state.get(parameter.id)
        if not update.has_state:
            self.state.pop(parameter.id, None)
            return None
        if state is None or not state.fits(parameter, slots, counts):
            new = ParameterState(parameter, slots, counts)
            if state is not None and state.shape == new.shape:
                with modes.no_grad():
                    new.take(state)
            state = self.state[parameter.id] = new
        return state

    def _meet_orphans(self):
        orphans = list(self._tracking.orphans.values())
        if self.on_orphan == "raise":
            names = ", ".join(f"'{self._tracking.name_of(p)}'" for p in orphans)
            error = OrphanParameterError(
                f"{self.algorithm}.step: {names} was part of a model and no longer is: the "
                "model has another Parameter in its place, and this optimizer's state is for the "
                "old one",
                fix="keep the Parameter and change its values: p.map(f) or p.assign(value); or say "
                "what you want: optimizer.replace(old, new, state='keep' or 'drop'); or "
                "on_orphan='warn'",
            )
            error.parameters = orphans
            try:
                raise error
            finally:
                del error  # it refers to this frame: break the cycle
        if self.on_orphan == "warn":
            for p in self._tracking.unwarned():
                warnings.warn(
                    f"{self.algorithm}.step: '{self._tracking.name_of(p)}' is no longer part of a "
                    "model: what is updated is not what the model uses, or its state is lost",
                    stacklevel=3,
                )
        self._tracking.accept_orphans()

    @teaching
    def zero_grad(self, **unknown):
        """Sets the `.grad` of every parameter to None. Takes no arguments."""
        if unknown:
            refuse_unknown_arguments("zero_grad", (), unknown, "optimizer")
        if self._seen != changes.count:
            self._sync()
        self._drop_grads()

    @uninterrupted
    def _drop_grads(self):
        for group in self.groups:
            seams.effects.grad(*group.parameters, is_set=True)
            for p in group.parameters:
                p._grad = None

    # -- saving --------------------------------------------------------------------------------

    def state_dict(self):
        """Returns {'algorithm', 'groups', 'state'}: hyperparameters, and state by parameter name.

        Values are clones of the current state. State of parameters that are gone is left out.
        """
        self._sync()
        return saving.state_dict(self)

    def load_state_dict(self, saved):
        """Restores the result of `state_dict`, by the parameters' names, in any order.

        Returns:
            (missing, stale). missing: names of parameters without saved state, which start with
            fresh state. stale: saved names that this one does not update; a warning lists them.

        Raises:
            StateError: the algorithm or shapes differ. Nothing was written. `master`, the copy of a
                parameter in half precision, may be missing, or be there for a wider parameter.
        """
        self._sync()
        return saving.load_state_dict(self, saved)

    def named_parameters(self):
        """Returns (name, Parameter) of all updated parameters, by the names of `state_dict`."""
        self._sync()
        return self._tracking.named()

    # -- copies --------------------------------------------------------------------------------

    def __deepcopy__(self, memo):
        """Returns an optimizer of copies of its parameters, with a copy of its state.

        copy.deepcopy((model, optimizer)) returns a new model and the optimizer that trains it. The
        new parameters have new ids. copy.deepcopy(optimizer) also copies parameters, as in PyTorch.
        """
        self._sync()
        if self._tracking.orphans:
            self._meet_orphans()
        out = memo[id(self)] = object.__new__(type(self))
        groups = [(g.as_dict(), copy.deepcopy(g.sources, memo)) for g in self.groups]
        own = {"_passes": None, "_seen": -1, "_schedules": [], "_scheduled": self._scheduled}
        out.__dict__.update(own, state={})
        for name, value in self.__dict__.items():
            if name not in own and name not in ("state", "groups", "_tracking"):
                out.__dict__[name] = copy.deepcopy(value, memo)
        out.__dict__["groups"] = tuple(Group(out, sources, values) for values, sources in groups)
        out.__dict__["_tracking"] = Tracking(weakref.proxy(out))
        out._sync()
        copied = {}
        for (name, p), (_, q) in zip(self.named_parameters(), out.named_parameters(), strict=True):
            copied[q.id] = name
            if p.id in self.state:
                out.state[q.id] = self.state[p.id].copy_for(q)
        out._tracking.rename(copied)
        return out

    def __copy__(self):
        raise ArgumentTypeError(
            f"copy.copy: two {self.algorithm}s would share one state",
            fix="copy.deepcopy((model, optimizer)) gives a second model and its optimizer",
        )

    def __reduce_ex__(self, protocol):
        raise ArgumentTypeError(
            f"pickle: {self.algorithm} holds memory of the engine",
            fix="save optimizer.state_dict(), its Variables as x.numpy(), and load it into one "
            "made anew",
        )

    def __repr__(self):
        inside = "\n  ".join(map(repr, self.groups))
        return f"{self.algorithm}(\n  {inside}\n)"
