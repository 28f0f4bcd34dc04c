"""The parts of the engine that other code may replace, in one object per thread: `seams`.

Control points down: the engine looks here and never calls a layer above it. A lesson puts a
learner's functions here (`mg.use`), tracing a compiled step puts its trace here. The code that
replaces a part restores the previous one.
"""

import contextlib
import threading
from typing import Any

BACKWARD = (
    "gradient_plan", "unbroadcast", "find_cycle", "topological_order", "accumulate", "check_saved",
    "kernel",
)  # fmt: skip


class Effects:
    """Methods that the engine calls before an effect that outlives the current operation.

    By default they do nothing. While a compiled step is traced, `compiler.trace.effects`
    records these effects in the program or refuses them.
    """

    is_tracing = False

    def read(self, array):
        """NumPy is about to read the elements or the address of an Array."""

    def grad(self, *leaves, is_set=False):
        """The `.grad` of leaves is about to be read or set."""

    def change(self, variable, what):
        """A Variable is about to get another node or another `requires_grad`."""

    def write(self, owner, what):
        """An attribute of a module, an optimizer or a manager is about to be set.

        Returns True if the write is handled and must not be counted.
        """
        return False

    def own(self, made):
        """A module or a manager has been made."""

    def refuse(self, wanted, fix, got=None):
        """An action is about to happen that a program could not repeat."""

    def made_on(self, device):
        """An array is about to be made on a device, by its name."""

    def draw(self, generator, count):
        """Returns (seed, counter) to use instead of the generator's own, or None."""

    def stand_in(self, array, base):
        """An Array was copied where eager execution makes a view of `base`."""

    def put_back(self, array, target):
        """An Array is about to be written back to where it was read, as in x[i] += 1."""

    def function_forward(self, cls, ctx, args):
        """Returns the results of a custom Function's forward."""
        return cls.forward(ctx, *args)

    def function_backward(self, plan, dys, saved):
        """Returns the gradients of a custom Function. plan: its FunctionPlan."""
        return plan.called(dys, saved)

    def each_run(self, name, function, inputs, wanted):
        """Returns function(*inputs), Variables; each run of a program is to call it again.

        wanted: [(shape, dtype)] of the results. Equal functions do the same.
        """
        return function(*inputs)

    def at_end(self, function):
        """A function is to be called when the step has been traced; it may refuse the step."""

    def paused(self):
        """Returns a context manager: operations inside run eagerly even while a step is traced."""
        return contextlib.nullcontext()


class Seams(threading.local):
    """The replaced parts of one thread; None stands for the engine's own.

    Backward passes and operations (arrays are described in `course.seam_parts`):
        gradient_plan(op, mask) -> a plan for the node of an elementwise operation, or None.
        unbroadcast(array, shape, dtype) -> the sum, an Array of that shape and dtype.
        find_cycle(roots): raises if there is a cycle; called before the order is computed.
        topological_order(roots) -> nodes, consumers before producers.
        accumulate(arrived, key, gradient): adds a gradient to arrived[key].
        check_saved(node): raises if a saved value was written to.
        kernel(name of an operation, operands, out=None) -> its output Array, or None; asked for
            elementwise operations, operations along rows and products of matrices.
        in_backward: whether any of these is replaced; backward passes are then of first order only.

    Copy-on-write:
        storage: an object with forked(source, clone), called after a Storage was cloned, and
            write(storage, copy_buffer), which unshares it and returns True, or returns False.

    Memory:
        pool: an object with grow(pool, home, requested), asked for a Buffer by a Pool whose bin is
            empty; it returns None where the Pool is to help itself.
        plan_reuse([(nbytes, first, last)]) -> an offset for each temporary of a compiled step.

    Optimizers:
        update: called by `optimizer.step()` once per parameter that has a gradient, instead of the
            fused kernels, as

                update(algorithm, values, gradient, state, hyperparameters)

            algorithm: the name of the optimizer's class, such as 'SGD' or 'Adam'.
            values, gradient: NumPy arrays (n,) in the parameter's dtype (halves: float32):
                flat copies.
            state: {name: flat copy (n,)} of this parameter's state, initially zeros, under the
                names of `optimizer.state`; for Adam and AdamW also 'step', an int starting at 1.
            hyperparameters: {name: number, pair or bool} of the parameter's group, as in the
                signature of the optimizer.

            update writes the new values into `values` and `state` in place; its result is ignored.
            The optimizer copies both back. An update with an attribute `algorithms` is called only
            for these; the kernels run the others.
        clip_grad_norm_: called by `optim.clip_grad_norm_` as

                clip_grad_norm_(gradients, max_norm) -> norm

            gradients: a list of NumPy arrays (n,), flat copies, to change in place; they are copied
                back. norm: the number that `optim.clip_grad_norm_` then returns.
        grad_scaler: an object that `optim.GradScaler` asks in place of its own arithmetic; what may
            be called when is checked before. `scaler` is the GradScaler that asks:
            scale(scaler, is_first) -> the factor for a loss, a float; is_first: whether it begins
                an iteration.
            unscale_(scaler, optimizer, gradients): divides, in place, a list of NumPy arrays (n,),
                flat copies, which are copied back.
            step(scaler, optimizer, step): calls step(), or leaves it out.
            update(scaler) -> (scale, growth_tracker), which the GradScaler takes over.

    Ranks:
        all_reduce(engine) -> an engine of `distributed` that moves data in its place, and sums in
            its own way.

    Tracing:
        effects: an Effects; never None.
    """

    gradient_plan: Any = None
    unbroadcast: Any = None
    find_cycle: Any = None
    topological_order: Any = None
    accumulate: Any = None
    check_saved: Any = None
    kernel: Any = None
    in_backward = False
    storage: Any = None
    pool: Any = None
    plan_reuse: Any = None
    update: Any = None
    clip_grad_norm_: Any = None
    grad_scaler: Any = None
    all_reduce: Any = None
    effects: Any = Effects()

    def replace(self, **parts):
        """Replaces parts. Returns the previous ones, which the same call restores."""
        before = {name: getattr(self, name) for name in parts}
        vars(self).update(parts)
        self.in_backward = any(getattr(self, name) is not None for name in BACKWARD)
        return before


seams = Seams()
