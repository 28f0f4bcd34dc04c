"""The trace of a step: a device that records its calls, and the step's effects."""

import weakref

from minigrad.compiler.trace import callbacks, refusals
from minigrad.compiler.trace.callbacks import Contexts, Notes
from minigrad.compiler.trace.memory import Copy
from minigrad.compiler.trace.table import SEED, Table
from minigrad.devices import backend
from minigrad.ops.creation import generator as default_generator
from minigrad.seams import Effects, seams
from minigrad.tape.modes import state, watch
from minigrad.tape.node import user_place


class Trace(Table, Effects):
    """A device that records a step of this thread, and the effects that the engine reports.

    Args:
        arguments: Arrays that are passed in; those of one Storage are one Value.
        device: the name of the device that the program will run on.
        numbers: the `RunNumbers` of the trace, or None.
        notes: what custom Functions returned when they ran eagerly: `callbacks.Notes`.
    """

    is_tracing = True

    def __init__(self, arguments=(), device="cpu", numbers=None, notes=None):
        super().__init__(arguments, device, numbers)
        self.owned = set()  # ids of Modules
        self.grads = {}  # id of a leaf -> (weak reference to it, its `.grad` before, is_set)
        self.changed = []  # (weak reference to a Variable, node, requires_grad before, error)
        self.actions = []  # (function, Arrays that it writes to, instructions before it, place)
        self.random_count = 0
        self.callbacks, self.contexts, self.notes = 0, Contexts(), notes or Notes()

    # -- beginning and end ---------------------------------------------------------------------

    def run(self, function, *arguments):
        """Records the ops of function(*arguments); puts back what it changed."""
        alone = seams.effects
        before = state.path, state.watchers, state.spans, state.is_inference, state.recording
        device = backend._active.device
        try:
            seams.effects, backend._active.device = self, self
            watch(1)
            out = function(*arguments)
        finally:  # no call comes first: Python delivers Ctrl-C at calls
            seams.effects = alone
            backend._active.device = device
            state.path, state.watchers, state.spans, state.is_inference, state.recording = before
            try:
                self._put_back()
            except KeyboardInterrupt:
                self._put_back()
                raise
        return out

    def _put_back(self):
        for storage, version, place in self.written.values():
            storage.version = version
            storage.written_at = place
        for reference, grad, _ in self.grads.values():
            leaf = reference()
            if leaf is not None:
                leaf._grad = grad
        for reference, node, requires_grad, _ in reversed(self.changed):
            variable = reference()
            if variable is not None:
                variable.node, variable._requires_grad = node, requires_grad

    # -- what the engine reports -----------------------------------------------------------------

    def function_forward(self, cls, ctx, args):
        """Records a custom Function, or a callback to it."""
        return callbacks.forward(self, cls, ctx, args)

    def function_backward(self, plan, dys, saved):
        """Records its backward, or a callback to it."""
        return callbacks.backward(self, plan, dys, saved)

    def grad(self, *leaves, is_set=False):
        """Notes the `.grad` of leaves before it is read, or set without being read (is_set)."""
        for leaf in leaves:
            found = self.grads.get(id(leaf))
            if found is None or found[0]() is not leaf:
                self.grads[id(leaf)] = weakref.ref(leaf), leaf._grad, is_set

    def change(self, variable, what):
        """Notes that a Variable gets another node or flag: an error if it outlives the step."""
        error = refusals.change_error(variable, what)
        before = variable.node, variable._requires_grad
        self.changed.append((weakref.ref(variable), *before, error))

    def write(self, owner, what):
        """Refuses to set an attribute, unless the step itself made its owner."""
        if id(owner) not in self.owned:
            self.refuse(*refusals.of_write(owner, what))
        return True

    def own(self, module):
        """Notes that the step itself makes a module."""
        self.owned.add(id(module))
        self.held.append(module)

    def later(self, action, arrays):
        """Notes work of the host that writes to Arrays; it is done around each run, not now."""
        self.actions.append((action, arrays, len(self.instructions), user_place()))

    def stand_in(self, array, base):
        """Notes that an Array, picked at an index that only a run knows, stands for a view."""
        self.standing[id(array.storage)] = Copy(array.storage, base.storage)

    def put_back(self, array, target):
        """Notes that an Array is about to be written back to its base, as by x[i] += 1."""
        copy = self._copy(array.storage)
        if copy is not None and copy.base() is target.storage:
            copy.is_changed, copy.version = False, target.storage.version + 1

    def draw(self, generator, count):
        """(seed, counter) of the next numbers of a generator."""
        if generator is not default_generator:
            self.refuse_generator()
        counter = self.random_count
        self.random_count += count
        return SEED, counter
