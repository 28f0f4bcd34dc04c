"""The effects of a step: what the engine reports while the step is traced, and what is refused."""

import weakref

from minigrad.compiler.program.program import Instruction
from minigrad.compiler.trace import callbacks, refusals
from minigrad.compiler.trace.callbacks import Contexts, Notes
from minigrad.errors import TraceError
from minigrad.ops.creation import generator as default_generator
from minigrad.seams import Effects
from minigrad.tape.modes import state
from minigrad.tape.node import user_place

SEED = object()  # passed to ops as the seed of the default generator


class Copy:
    """A copy of x[i], used instead of a view because i is known only at run time.

    Eager execution returns a view here. The copy can be used as long as it behaves like a view:
    until x is written. It may be modified only if it is then put back, as x[i] += 1 does.
    """

    def __init__(self, storage, base):
        self.storage, self.base = weakref.ref(storage), weakref.ref(base)
        self.version, self.is_changed = base.version, False

    def is_stale(self):
        """Return whether the base has been written since the copy was made."""
        base = self.base()
        return base is not None and base.version != self.version


class StepEffects(Effects):
    """Notes or refuses the effects that the engine reports; the base of a Trace.

    notes: what custom Functions returned when they ran eagerly: `callbacks.Notes`.
    """

    is_tracing = True

    def __init__(self, notes=None):
        self.instructions: list[Instruction] = []
        self.held = []  # Storages that the step met, and its own Modules, so that no id is reused
        self.standing = {}  # id of a Storage -> its Copy
        self.failure = None
        self.owned = set()  # ids of Modules
        self.grads = {}  # id of a leaf -> (weak reference to it, its `.grad` before, is_set)
        self.changed = []  # (weak reference to a Variable, node, requires_grad before, error)
        self.actions = []  # (function, Arrays that it writes to, instructions before it, place)
        self.endings = []  # functions that are called when the step has been traced
        self.random_count = 0
        self.callbacks, self.contexts, self.notes = 0, Contexts(), notes or Notes()

    # -- errors --------------------------------------------------------------------------------

    def failed_by(self, error):
        """Remember an error, so that no `except` can swallow it, and return it."""
        self.failure = self.failure or error
        return error

    def refuse(self, wanted, fix, got=None):
        raise self.failed_by(TraceError(wanted, got, fix))

    def read(self, array):
        """Raise the error for a step that needs the elements of an Array."""
        value = getattr(array.buffer, "value", None)
        raise self.failed_by(refusals.read_error(array, value, state.running))

    # -- what the engine reports -----------------------------------------------------------------

    def function_forward(self, cls, ctx, args):
        """Record a custom Function, or a callback to it."""
        return callbacks.forward(self, cls, ctx, args)

    def function_backward(self, plan, dys, saved):
        """Record the backward of a custom Function, or a callback to it."""
        return callbacks.backward(self, plan, dys, saved)

    def each_run(self, name, function, inputs, wanted):
        """Record a callback to a function of the engine; return the Variables of its results."""
        return callbacks.each_run(self, name, function, inputs, wanted)

    def grad(self, *leaves, is_set=False):
        """Note the `.grad` of leaves before it is read, or set without being read (is_set)."""
        for leaf in leaves:
            noted = self.grads.get(id(leaf))
            if noted is None or noted[0]() is not leaf:
                self.grads[id(leaf)] = weakref.ref(leaf), leaf._grad, is_set

    def change(self, variable, what):
        """Note that a Variable gets another node or flag: an error if it outlives the step."""
        error = refusals.change_error(variable, what)
        before = variable.node, variable._requires_grad
        self.changed.append((weakref.ref(variable), *before, error))

    def write(self, owner, what):
        """Refuse to set an attribute, unless the step itself made its owner."""
        if id(owner) not in self.owned:
            self.refuse(*refusals.of_write(owner, what))
        return True

    def own(self, module):
        self.owned.add(id(module))
        self.held.append(module)

    def later(self, action, arrays):
        """Defer host work that writes to Arrays: it is done around each run, not now."""
        self.actions.append((action, arrays, len(self.instructions), user_place()))

    def at_end(self, function):
        self.endings.append(function)

    def stand_in(self, array, base):
        """Note that an Array, picked at an index known only at run time, stands for a view."""
        self.standing[id(array.storage)] = Copy(array.storage, base.storage)

    def put_back(self, array, target):
        """Note that an Array is about to be written back to its base, as by x[i] += 1."""
        copy = self.copy_of(array.storage)
        if copy is not None and copy.base() is target.storage:
            copy.is_changed, copy.version = False, target.storage.version + 1

    def draw(self, generator, count):
        """Reserve `count` random numbers of a generator; return their (seed, counter)."""
        if generator is not default_generator:
            self.refuse_generator()
        counter = self.random_count
        self.random_count += count
        return SEED, counter

    def refuse_generator(self):
        """Raise: a program advances only the default generator."""
        self.refuse(
            "random numbers of a custom generator inside a compiled step",
            "use the default generator (mg.manual_seed, outside the step), or draw outside and "
            "pass the numbers as an argument",
        )

    # -- copies instead of views ---------------------------------------------------------------

    def copy_of(self, storage):
        """Return the Copy that a Storage belongs to, or None."""
        copy = self.standing.get(id(storage))
        return copy if copy is not None and copy.storage() is storage else None

    def check_copies(self, base=None):
        """Raise if a copy was modified but not put back into `base` (None: into any base)."""
        for copy in self.standing.values():
            if copy.is_changed and (base is None or copy.base() is base):
                self.refuse(*refusals.CHANGED_COPY)
