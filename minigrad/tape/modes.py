"""Modes of a thread: recording, inference, and observers.

An operation reads all modes from one number, `state.path`. RECORD and NO_GRAD take the fast path.
SPAN also adds the node to the open spans. INFERENCE gives results a class of their own. SLOW means
that an observer (a timeline, a debugger, a seam) must see every op, or that `ops.autocast` must.
"""

import threading
from typing import Any

from minigrad.hints import teaching
from minigrad.memory.blocks import Block
from minigrad.memory.interrupts import uninterrupted

RECORD, NO_GRAD, SLOW, SPAN, INFERENCE = 0, 1, 2, 3, 4
ANNOUNCED = (SLOW, INFERENCE)  # the slow path passes their results to `observers.announce`


class State(threading.local):
    """The modes of one thread."""

    path = RECORD
    recording = True
    is_inference = False
    watchers = 0
    running: tuple[Any, Any] = ("", "")  # name and line of the running op, while observed
    spans: tuple[Any, ...] = ()  # open spans of GradManagers, innermost last
    # called with (node, dy, gradients, seconds) after each node of a backward pass
    observers: tuple[Any, ...] = ()
    # called with (op name, output Variable, inputs) after each op
    op_observers: tuple[Any, ...] = ()
    asked: Any = None  # collects (op, arguments, attributes, result) of operations
    backward_pass: Any = None  # the running backward pass
    scaled_by: Any = None  # the GradScaler that scaled a loss of the last backward pass
    # the Context of the custom Function whose backward builds a graph right now
    context: Any = None
    autocast: Any = None  # the dtype of the innermost block of autocast, or None
    casts: Any = None  # what the open blocks of autocast have cast: {id of a leaf: its half}
    saving_copies = 0  # number of open blocks of memory.copy_on_saved_write
    # collects the calls of custom Functions while a compiled step runs eagerly
    notes: Any = None

    def take_scaler(self):
        """Returns the GradScaler that scaled a loss of the last pass, or None; forgets it."""
        scaler, self.scaled_by = self.scaled_by, None
        return scaler

    def update(self):
        """Recomputes `path`."""
        if self.watchers or self.autocast is not None:
            self.path = SLOW
        elif self.is_inference:
            self.path = INFERENCE
        elif self.recording:
            self.path = SPAN if self.spans else RECORD
        else:
            self.path = NO_GRAD


state = State()


def note(node):
    """Adds a new node to the open spans of this thread."""
    for span in state.spans:
        span.add(node)


@uninterrupted
def watch(delta):
    """Adds to the number of observers that must see every op of this thread."""
    state.watchers += delta
    state.update()


class Mode(Block):
    """Sets a mode in a `with` block or a decorated function; restores the previous one after it."""

    _setting = "mode"

    def _set(self):
        raise NotImplementedError

    def _begin(self):
        before = {"recording": state.recording, "is_inference": state.is_inference}
        self._set()
        state.update()
        return before

    def _end(self, before, is_error):
        vars(state).update(before)
        state.update()


class no_grad(Mode):
    """Records nothing inside: results do not require gradients. Affects this thread only.

    >>> import minigrad as mg
    >>> w = mg.variable([2.0], requires_grad=True)
    >>> with mg.no_grad():
    ...     (w * w).requires_grad
    False
    """

    def _set(self):
        state.recording = False


class enable_grad(Mode):
    """Records operations inside, even within `no_grad`."""

    def _set(self):
        state.recording, state.is_inference = True, False


class inference(Mode):
    """Like `no_grad`, for evaluation only: a recorded op that uses a result later raises."""

    def _set(self):
        state.recording, state.is_inference = False, True


@teaching
def is_recording():
    """Returns whether ops of this thread are recorded now."""
    return state.recording
