"""GradManager: decides which parameters to differentiate, and when (after MegEngine's)."""

import copy
import weakref

from minigrad.arguments import flag, several, short
from minigrad.devices.backend import device_of
from minigrad.errors import (
    ArgumentTypeError,
    DeviceError,
    DTypeError,
    GradientError,
    GraphFreedError,
    ShapeError,
)
from minigrad.formulas.expression import IDENTITY
from minigrad.memory.interrupts import uninterrupted
from minigrad.seams import seams
from minigrad.tape.attribute_writes import written
from minigrad.tape.backward import commit, gradients
from minigrad.tape.groups import join
from minigrad.tape.lending import given_back, lent, replaced
from minigrad.tape.modes import state
from minigrad.tape.probe import run_as
from minigrad.tape.upstream import upstream
from minigrad.tape.variable import Variable, filled


class Span:
    """The nodes made between record and release. It holds them weakly and frees them together."""

    __slots__ = ("_nodes",)

    def __init__(self):
        self._nodes = []

    def add(self, node):
        """Adds a node to this span."""
        self._nodes.append(weakref.ref(node))

    def holds(self, node):
        """Returns whether the node was made in this span."""
        return any(ref() is node for ref in reversed(self._nodes))

    def drop(self):
        """Frees the values that the nodes still keep."""
        for ref in self._nodes:
            node = ref()
            if node is not None and node.kept is not None:
                node.free()
        self._nodes = []


class GradManager:
    """Differentiates losses made while it records, for the parameters attached to it.

    Gradients accumulate in `.grad` until they are zeroed. Spans of managers may nest; operations in
    an inner span belong to the outer span as well.

    Args:
        parameters: passed to `attach`; by default none are attached.
        callbacks: passed to `attach`.
        keep_empty_grad: whether `.grad` becomes zeros (True) or stays None for attached parameters
            that a loss does not reach. An optimizer skips None, but momentum moves a parameter
            whose gradient is zeros.

    >>> import minigrad as mg
    >>> w = mg.variable([3.0])
    >>> gm = mg.GradManager([w])
    >>> with gm:
    ...     gm.backward((w * w).sum())
    >>> w.grad.tolist()
    [6.0]
    """

    def __init__(self, parameters=None, callbacks=(), keep_empty_grad=False):
        seams.effects.own(self)
        self._keep_empty_grad = flag("GradManager", "keep_empty_grad", keep_empty_grad)
        self._attached = {}  # id(parameter) -> (parameter, [callbacks])
        self._groups = {}
        self._span = None
        if parameters is not None or not isinstance(callbacks, tuple) or callbacks:
            self.attach(() if parameters is None else parameters, callbacks)

    @property
    def keep_empty_grad(self):
        """Whether attached parameters that a loss does not reach get zeros. Assignable."""
        return self._keep_empty_grad

    @keep_empty_grad.setter
    def keep_empty_grad(self, value):
        written(self, f"GradManager.keep_empty_grad = {value}")
        self._keep_empty_grad = flag("GradManager", "keep_empty_grad", value)

    @property
    def attached(self):
        """The attached parameters, in order."""
        return [p for p, _ in self._attached.values()]

    attached_tensors = attached

    def attach(self, parameters, callbacks=()):
        """Adds leaves to differentiate, from the next operation on. Returns the manager.

        Plain leaves start to require gradients; a frozen Parameter stays frozen and is skipped.

        Args:
            parameters: a Variable or an ordered iterable of them; not a set or a used iterator.
            callbacks: functions (parameter, grad) -> grad or None. Each backward calls them for
                every reached parameter with the gradient of this pass, before adding it to `.grad`.
                A callback with `whole_group = True` is called once per group, as (group, flat).

        Raises:
            DTypeError: a parameter has ints or bools.
            GradientError: a parameter is the output of an operation; only leaves can be attached.
        """
        parameters = [parameters] if isinstance(parameters, Variable) else parameters
        callbacks = [callbacks] if callable(callbacks) else callbacks
        fix = "list(model.parameters()); a generator can be used only once"
        parameters = several("attach", "a Variable or several parameters", parameters, fix)
        fix = "callbacks=[f, g]; they are called in this order"
        callbacks = several("attach", "several callbacks", callbacks, fix, or_none=True)
        for f in callbacks:
            if not callable(f):
                raise ArgumentTypeError("attach: wanted functions as callbacks", short(f))
        for p in parameters:
            self._check(p)
        new = [p for p in parameters if id(p) not in self._attached or p.group is None]
        if new or callbacks:
            written(self, "GradManager.attach")
        for p in parameters:
            if not p.requires_grad and not getattr(p, "is_parameter", False):
                p.requires_grad = True
            _, mine = self._attached.setdefault(id(p), (p, []))
            mine += [f for f in callbacks if f not in mine]
        join([p for p in parameters if p.requires_grad], self._groups)
        return self

    def __deepcopy__(self, memo):
        """Returns a manager of copies: copy.deepcopy((model, manager)) copies both together."""
        if self._span is not None:
            raise GradientError(
                "copy.deepcopy: this GradManager is recording", fix="copy it outside `with gm:`"
            )
        out = memo[id(self)] = type(self)(keep_empty_grad=self._keep_empty_grad)
        copies = copy.deepcopy(self.attached, memo)
        if copies:
            out.attach(copies)
        for (_, callbacks), p in zip(self._attached.values(), copies, strict=True):
            out.attach(p, copy.deepcopy(callbacks, memo))
        return out

    def __reduce_ex__(self, protocol):
        raise ArgumentTypeError(
            "pickle, copy.copy: a GradManager refers to parameters and buffers of the engine",
            fix="make it anew: mg.GradManager(list(model.parameters())); or copy.deepcopy((model, "
            "manager))",
        )

    def _check(self, p):
        if not isinstance(p, Variable):
            raise ArgumentTypeError("attach: wanted Variables", f"{type(p).__name__}")
        if not p.dtype.is_float:
            raise DTypeError("attach: wanted floating point Variables", p.describe())
        if p.node is not None:
            raise GradientError(
                "attach: wanted leaves",
                f"the output of {p.node.op}",
                "attach before computing, or attach y.detach()",
                details=[("made at", p.node.line)],
            )

    @uninterrupted
    def record(self):
        """Begins a span; `with gm:` begins one and ends it. Returns the manager.

        Raises:
            GradientError: the manager records already.
        """
        if self._span is not None:
            raise GradientError("this GradManager is recording already", fix="release() it first")
        self._span = Span()
        state.spans = (*state.spans, self._span)
        state.update()
        return self

    @uninterrupted
    def release(self):
        """Ends the span and frees its saved values: a later backward raises GraphFreedError.

        `.grad` stays.
        """
        if self._span is not None:
            span, self._span = self._span, None
            state.spans = tuple(s for s in state.spans if s is not span)
            state.update()
            span.drop()

    @uninterrupted
    def __enter__(self):
        return self if self._span is not None else self.record()

    @uninterrupted
    def __exit__(self, *error):
        self.release()

    def backward(self, loss, dy=None):
        """Adds the gradients of a loss made in this span to `.grad` of the attached parameters.

        Args:
            loss: a Variable of one element, or of any shape together with dy; or a list of losses.
            dy: the upstream gradient, of the loss's shape and dtype, or one for each loss.

        Raises:
            GradientError: the manager does not record, or a loss was made outside its span.
            GraphFreedError: a backward or `release` has freed what the graph saved.
        """
        if state.watchers:
            run_as("backward", self._backward, loss, dy)
        else:
            self._backward(loss, dy)

    def _backward(self, loss, dy):
        losses = list(loss) if isinstance(loss, (list, tuple)) else [loss]
        dys = list(dy) if isinstance(dy, (list, tuple)) else [dy] * len(losses)
        if len(dys) != len(losses):
            raise ShapeError(
                "gm.backward: wanted a dy for each loss", f"{len(dys)} for {len(losses)}"
            )
        if self._span is None:
            raise GradientError(
                "gm.backward: this GradManager is not recording, so it has no graph",
                fix="compute the loss and call backward inside `with gm:`",
            )
        dys = [upstream(y, d) for y, d in zip(losses, dys, strict=True)]
        for y in losses:
            if y.node is not None and not self._span.holds(y.node):
                raise (GraphFreedError if y.node.is_freed else GradientError)(
                    "gm.backward: wanted a loss made inside this span",
                    f"one made by {y.node.op} outside",
                    "compute it inside `with gm:`",
                    details=[("made at", y.node.line)],
                )
        grads = gradients(losses, dys, is_committed=True)
        scaler = state.take_scaler()
        wanted = {p: grads[p] for p, _ in self._attached.values() if p in grads}
        if self._keep_empty_grad:
            for p, _ in self._attached.values():
                if p not in wanted and p.requires_grad and p._grad is None:
                    wanted[p] = filled(p.array, 0.0)
        commit(self._called_back(wanted), [d.array.storage for d in dys], scaler)

    def _called_back(self, grads):
        """Passes gradients through the callbacks of parameters, then of groups; returns them."""
        whole = []
        for p in list(grads):
            for callback in self._attached[id(p)][1]:
                if getattr(callback, "whole_group", False):
                    if callback not in whole:
                        whole.append(callback)
                    continue
                given = lent(grads[p])
                result = replaced("callback", callback(p, given), given)
                grads[p] = given_back(result, given, grads[p])
        for callback in whole:
            self._call_whole(callback, grads)
        return grads

    def _call_whole(self, callback, grads):
        """Calls a whole_group callback once per group, with a flat buffer of gradients.

        Parameters that this pass did not reach have zeros there.
        """
        groups = {}
        for p in grads:
            groups.setdefault(id(p.group[0]), p.group[0])
        for group in groups.values():
            device = device_of(group.flat)
            flat = filled(group.flat, 0.0)
            members = {}
            for p in group.parameters:
                if p in grads:
                    view = group.slices[p.group[1]][0]
                    mine = flat.view(view.shape, view.strides, view.offset)
                    device.elementwise(IDENTITY, (grads[p],), (mine,))
                    members[p] = mine
            result = callback(group, Variable(flat))
            if result is not None:
                if not isinstance(result, Variable) or result.shape != flat.shape:
                    raise ShapeError(
                        f"a whole_group callback: wanted a flat gradient {flat.shape} or None",
                        short(result),
                    )
                if result.device != flat.device:
                    raise DeviceError(
                        f"a whole_group callback: wanted a flat gradient on {flat.device}",
                        result.device,
                    )
                device.copy(result.array, flat)
            grads.update(members)
