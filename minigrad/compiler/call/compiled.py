"""mg.compile: a function whose calls run as one program."""

import copy
import functools
import os
import threading
import time
import weakref
from types import MethodType

from minigrad.arguments import flag, short
from minigrad.compiler.call.failures import after_failure, warn
from minigrad.compiler.call.inspection import Inspection
from minigrad.compiler.call.tracing import traced
from minigrad.compiler.call.wrapper import MISS, RECHECK
from minigrad.compiler.gpu.gpu_plan import Unfit
from minigrad.compiler.trace import donation
from minigrad.compiler.trace.callbacks import Notes, Unlearned
from minigrad.compiler.trace.functions import check_function, signature_of, weakly
from minigrad.compiler.trace.guards import Description
from minigrad.compiler.trace.numbers import NumberPlaces
from minigrad.compiler.trace.pullback import pullbacks, without_freed_graphs
from minigrad.compiler.trace.retrace import Causes, Comparison, changed_error
from minigrad.compiler.trace.surroundings import Surroundings
from minigrad.devices import backend
from minigrad.errors import ArgumentError, ArgumentTypeError
from minigrad.hints import refuse_unknown_arguments, teaching
from minigrad.memory.interrupts import interruptible, ready, uninterrupted
from minigrad.nn import Module
from minigrad.seams import seams
from minigrad.tape.attribute_writes import writes
from minigrad.tape.modes import state
from minigrad.tape.node import user_place

MOST_TRACES = 16
MOST_UNFIT = 64
MOST_MET = 8  # how many sets of argument objects are remembered

_alive = weakref.WeakSet()


def _renew_locks():
    """Renew locks in a forked child: the threads that held them do not exist there."""
    for step in list(_alive):
        if not step._lock._is_owned():
            step._lock, step._inside.is_busy = threading.RLock(), False
    for pullback in list(pullbacks):
        if not pullback._lock._is_owned():
            pullback._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


@teaching
def compile(f=None, *, donate=(), strict=True, **unknown):
    """Compile all that a function does with Variables, such as a whole training step.

    Use it as a decorator, `@mg.compile` or `@mg.compile(donate=...)`, on functions and methods; or
    call `mg.compile(f)` on any callable, including a Module.

    The first call is *traced*: f runs on Variables without elements, and its operations are
    recorded, optimised and compiled. This call and later ones run that program instead of the
    Python code. If the first trace fails, the call runs eagerly, and the second call is traced.

    The program has all effects of f: on parameters, `.grad`, optimizer state, running statistics,
    random numbers, versions, learning rates of schedules that f steps. A view of an argument, or of
    another result, is returned as a copy. A result that is differentiable when f returns becomes
    the output of one node, whose backward is also a program: `mg.compile(model)` works with
    `loss.backward()` outside. The loss of a whole step, including `backward` and
    `optimizer.step()`, carries no graph; such steps are fastest. f runs eagerly while a timeline,
    anomaly detection, records or `mg.use` watch it, or another device is active. A program runs on
    the device of its arguments or of the arrays it captures; on `cuda` it consists of CUDA graphs.

    **Each call checks**, and needs another program if one of these is new: how the arguments are
    nested; shapes, strides, dtypes, devices, requires_grad of Variables, and which share memory;
    strings by value, and numbers until they change; other objects by identity; whether `.grad` is
    None; the modes (`no_grad`, `inference`); and whether an attribute of any Module, Parameter,
    optimizer or GradManager, or a hook, has been set since (if train() and eval() alternate, each
    finds its program again). NumPy arrays are refused: pass `mg.variable(x)`, `mg.from_numpy(x)`.

    **Numbers that change**, in arguments, closures, globals or attributes that f's code names, cost
    one more trace; from then on each run reads them. Where such a number decides a branch or a
    size in Python, another outcome needs another program.

    **What is frozen**: every other string, NumPy array and object that f captures, and the contents
    of lists and dicts. Calls 3, 5, 9, 17, ... are traced again and compared; a difference raises
    TraceError with the line and both values. MINIGRAD_COMPILE=check does so at each call,
    MINIGRAD_COMPILE=0 always runs f eagerly; the variable is read when the function is compiled.

    **What can still go unnoticed**: pure Python side effects happen only when f is traced: printing
    a string, appending a number to a list, counting calls, writing a file. If a frozen value
    changes between compared calls, the calls in between use the old value. Keeping a value that f
    makes (self.h = h) raises TraceError: write it in place (self.h.copy_(h)).

    Args:
        f: the function.
        donate: positions or names of arguments whose memory results may take over. Using such a
            value, or a view of it, after the call raises DonatedError; a clone stays valid.
        strict: whether to raise if no result can use a donation.

    Raises:
        TraceError: f does something that no program can do, or no longer does what it did.

    >>> import minigrad as mg
    >>> @mg.compile
    ... def distance(x, y):
    ...     return ((x - y) * (x - y)).sum().sqrt()
    >>> a, b = mg.variable([0.0, 0.0]), mg.variable([3.0, 4.0])
    >>> [distance(a, b).item() for _ in range(3)]
    [5.0, 5.0, 5.0]
    """
    refuse_unknown_arguments("compile", ("f", "donate", "strict"), unknown, "compile")
    if f is None:
        return functools.partial(compile, donate=donate, strict=strict)
    return (CompiledModule if isinstance(f, Module) else Compiled)(f, donate, strict)


class Inside:
    """Knows whether a thread is inside a call; that thread holds the lock."""

    __slots__ = ("is_busy",)

    def __init__(self):
        self.is_busy = False


class Compiled(Inspection):
    """A compiled function; see `mg.compile`.

    traces: its programs, most recently used first; see `tracing.Traced`.
    """

    def __init__(self, function, donate=(), strict=True):
        if isinstance(function, Compiled):
            raise ArgumentTypeError("compile: this function is compiled already", function.name)
        check_function(function)
        functools.update_wrapper(self, function, updated=())
        self.name = getattr(function, "__qualname__", type(function).__name__)
        self.names, self.is_open = signature_of(function)
        self.function, self.donate = function, donation.checked(donate, self)
        self.strict = flag("compile", "strict", strict)
        self.mode = os.environ.get("MINIGRAD_COMPILE", "")
        if self.mode not in ("", "0", "1", "check"):
            raise ArgumentError(
                "MINIGRAD_COMPILE: wanted 0 (run as usual), check (compare at each call) or 1",
                short(self.mode),
            )
        self.traces, self._runs, self._met, self._causes = [], [], [], Causes()
        self._lost = False  # whether objects of an earlier call have died
        self.notes = Notes()  # of custom Functions that run eagerly
        self._unfit = set()  # keys of calls that no program can be made for
        self.places, self.surroundings = NumberPlaces(), Surroundings(function)
        self._lock, self._inside = threading.RLock(), Inside()
        _alive.add(self)

    def __get__(self, instance, owner=None):
        return self if instance is None else MethodType(self, instance)

    def __getattr__(self, name):
        if name.startswith("__") or "function" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.function, name)  # of a Module: parameters, train, ...

    def __copy__(self):
        return type(self)(self.function, self.donate, self.strict)

    def __deepcopy__(self, memo):
        return type(self)(copy.deepcopy(self.function, memo), self.donate, self.strict)

    def __reduce_ex__(self, protocol):
        raise ArgumentTypeError(
            f"pickle: '{self.name}' is compiled for the objects of this process",
            fix="pickle what it is made of, and compile again",
        )

    def __repr__(self):
        return f"<compiled {self.name}: {len(self.traces)} programs>"

    # -- calling -------------------------------------------------------------------------------

    def __call__(self, *args, **kwargs):
        ready()
        with self._lock:
            inside = self._inside
            if inside.is_busy:  # the call comes from inside the step, or from a finalizer
                return self._as_usual(args, kwargs)
            inside.is_busy = True
            try:
                runs = self._runs
                if runs:
                    out = runs[0](args, kwargs)
                    if out is not MISS and out is not RECHECK:
                        return out
                    return self._again(args, kwargs, out)
                return self._first(args, kwargs)
            finally:
                inside.is_busy = False

    @interruptible
    def _as_usual(self, args, kwargs):
        """Run the function eagerly; spend donated values as a program does."""
        if seams.effects.is_tracing:
            return self.function(*args, **kwargs)
        if not self.donate:
            return without_freed_graphs(self._noted(args, kwargs), args, kwargs)
        place = user_place()
        described = Description(args, kwargs, self.names, self.is_open)
        members = donation.members_of(described, self.donate, self.names)
        storages = [m.array.storage for m in members]
        result = self._noted(args, kwargs)
        result = without_freed_graphs(result, args, kwargs)
        return donation.after_eager(result, storages, self.name, place)

    def _noted(self, args, kwargs):
        """Run the function, and note what custom Functions inside it return."""
        before, state.notes = state.notes, self.notes
        try:
            return self.function(*args, **kwargs)
        finally:
            state.notes = before

    def _again(self, args, kwargs, answer):
        """Handle a call that the most recently used program did not answer."""
        for k, trace in enumerate(list(self.traces)):
            if answer is MISS and (trace.wrapper.recognises() or k):
                answer = trace.run(args, kwargs)
            if answer is MISS:
                continue
            self._to_front(trace)
            return self._compared(trace, args, kwargs) if answer is RECHECK else answer
        return self._first(args, kwargs)

    @uninterrupted
    def _to_front(self, trace):
        self.traces = [trace, *(t for t in self.traces if t is not trace)][:MOST_TRACES]
        self._runs = [t.run for t in self.traces]

    def _first(self, args, kwargs):
        """Handle a call that no program has answered."""
        if (
            seams.effects.is_tracing  # inside another compiled step: a part of its program
            or self.mode == "0"
            or state.watchers
            or backend.chosen.device is not None
        ):
            return self._as_usual(args, kwargs)
        described = self._described(args, kwargs)
        is_first = described.identities not in self._met and len(self._met) < MOST_MET
        if is_first and self._lost_some():
            result = self._as_usual(args, kwargs)
            self._met.append(described.identities)
            warn(self._causes.stranger(self.name, described.identities))
            return result
        trace = None
        if described.key not in self._unfit:
            try:
                trace = self._trace_numbers(args, kwargs, described, is_first)
            except Unfit as error:
                self._leave_eager(described, error.why)
            except Unlearned:  # this eager call will learn it
                pass
            except Exception:
                if not is_first:
                    raise
        # if the first trace fails, the eager run raises the usual error, or creates what the
        # function creates only once, such as a mask or state, for the next trace to find
        answer = MISS if trace is None else trace.first_run(args, kwargs)
        if answer is MISS or answer is RECHECK:  # another thread set an attribute meanwhile
            answer = self._as_usual(args, kwargs)
        if is_first:
            self._met.append(described.identities)
        return answer

    def _lost_some(self):
        """Return whether objects that earlier calls passed to the step have died.

        If so, new objects may not outlive their call either, and a program for them is useless.
        """
        alive = [met for met in self._met if all(i.reference() is not None for i in met)]
        self._lost = self._lost or len(alive) < len(self._met)
        self._met = alive
        return self._lost

    def _leave_eager(self, described, why):
        """Run calls like this one eagerly from now on; warn the first time."""
        if not self._unfit:
            warn(f"'{self.name}' is not compiled and runs as usual: {why}")
        if len(self._unfit) < MOST_UNFIT:
            self._unfit.add(described.key)

    # -- tracing -------------------------------------------------------------------------------

    def _described(self, args, kwargs):
        """Return the Description of a call; numbers that changed since an earlier one move."""
        moving, outside = self.places.wanted(), self._outside(args)
        described = Description(args, kwargs, self.names, self.is_open, moving, outside)
        if self.places.learn(described.numbers):
            return self._described(args, kwargs)
        return described

    def _outside(self, args):
        """Return the places of the numbers that the function reads from outside."""
        places = self.surroundings.places(args)
        for place in places:
            place.is_moving = place.is_moving and place.where not in self.places.fixed
        return places

    def _trace_numbers(self, args, kwargs, described, is_first):
        """Return a Traced for this call; if moving numbers make tracing fail, fix them."""
        try:
            return self._trace(args, kwargs, described, is_first)
        except (Unfit, Unlearned):
            raise
        except Exception:
            moving = {*described.moving, *described.outside}
            if not moving:
                raise
            fixed, self.places.fixed = self.places.fixed, self.places.fixed | moving
            try:
                return self._trace(args, kwargs, self._described(args, kwargs), is_first)
            except Exception:
                self.places.fixed = fixed  # the moving numbers were not the reason
                raise

    def _trace(self, args, kwargs, described, is_first=False):
        """Return a Traced for this call: an old one, or a new one with an old or new program."""
        self.traces = [t for t in self.traces if t.is_alive]
        began = time.perf_counter()
        new = traced(self, args, kwargs, described, is_first)
        self._causes.spent(began, time.perf_counter())
        if new.kept:
            new.build()
            new.check_donations(self.strict)
            new.wrap(functools.partial(self._failed, new), False)
            return new
        for old in self.traces:
            is_here = old.capture.device == new.capture.device
            if is_here and Comparison(old, new).difference() is None:
                if self._causes.are_costly():
                    self._warn(new)
                if old.is_for(new):
                    old.renew()
                    self._to_front(old)
                    return old
                new.take(old)
                if old.key == new.key:
                    self.traces = [t for t in self.traces if t is not old]
                new.seconds = old.seconds
                break
        else:
            self._warn(new)
            began = time.perf_counter()
            new.build()
            ended = time.perf_counter()
            self._causes.compiled(ended - began)
            new.seconds = ended - new.began
        new.check_donations(self.strict)
        failed = functools.partial(weakly(self._failed), weakref.proxy(new))  # no cycle with `run`
        new.wrap(failed, self.mode == "check")
        if is_first and self.mode != "check":
            new.wrapper.left[0] += 1  # the first comparison is at the third call
        self._to_front(new)
        return new

    def _compared(self, trace, args, kwargs):
        """Retrace, raise if the function does something else, then run the program."""
        trace.wrapper.left[0] = 1  # if this call fails, the next one compares
        moving = {**trace.description.moving, **trace.description.outside}
        outside = self._outside(args)
        described = Description(args, kwargs, self.names, self.is_open, moving, outside)
        again = traced(self, args, kwargs, described)
        difference = Comparison(trace, again).difference()
        if difference is not None:
            self.traces = [t for t in self.traces if t is not trace]
            self._runs = [t.run for t in self.traces]
            raise changed_error(self.name, difference)
        trace.count_on()
        answer = trace.run(args, kwargs)
        if answer is MISS or answer is RECHECK:
            return self._as_usual(args, kwargs)
        return answer

    def _warn(self, new):
        changed = any(
            old.key == new.key and old.wrapper.known_writes[0] != writes.count
            for old in self.traces
        )
        more = {("a Module", "attributes"): writes.count if changed else None}
        self._causes.add(new.facts | more)
        warn(self._causes.sentence(self.name))

    def _failed(self, trace, status, args, kwargs, storages):
        """Handle a failed check: run the step eagerly if nothing has been changed yet."""
        return after_failure(self._as_usual, trace, status, args, kwargs, storages)


class CompiledModule(Compiled):
    """A compiled Module, which behaves like the Module: `net.parameters()`, `net.eval()`, `net[0]`.

    A method that returns the Module returns the compiled one instead: `net = net.eval()`.
    """

    def __getattr__(self, name):
        attribute = super().__getattr__(name)
        if not isinstance(attribute, MethodType) or attribute.__self__ is not self.function:
            return attribute

        @functools.wraps(attribute)
        def method(*args, **kwargs):
            out = attribute(*args, **kwargs)
            return self if out is self.function else out

        return method

    def __setattr__(self, name, value):
        if name in self.__dict__ or "_inside" not in self.__dict__:  # __init__ sets it last
            object.__setattr__(self, name, value)
        else:
            setattr(self.function, name, value)

    def __delattr__(self, name):
        delattr(self.function, name)

    def __getitem__(self, index):
        return self.function[index]

    def __len__(self):
        return len(self.function)

    def __iter__(self):
        return iter(self.function)

    def __bool__(self):
        return True

    def __contains__(self, x):
        return x in self.function
