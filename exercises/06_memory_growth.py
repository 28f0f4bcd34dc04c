"""Lesson 06: what keeps a graph alive, and who notices overwritten values.

The first part works on plain objects: a `Storage` holds values and counts
how often they were written; a `View` shows part of one; a `Ctx` is what one
operation keeps for its backward pass. The second part, from `valid_copy`
on, works on minigrad itself.
"""

import collections
import copy
import functools
import inspect
import threading

import numpy as np

import minigrad as mg
from minigrad.course.objects import View


class SavedValueModifiedError(RuntimeError):
    """A value saved for the backward pass was written to before it ran."""


def bump_version(x):
    """Note that the values of x were written in place.

    The version of the Storage behind x goes up by one. A View has no
    version of its own: it uses that of its base.

    Args:
        x: a Storage, or a View of one. The base of a View is a Storage or
            again a View.

    Returns:
        None. No values change, and no object is replaced.
    """
    raise NotImplementedError("bump_version is yours to write")


def check_saved(ctx):
    """Raise if a value that an operation saved has been written to since.

    Args:
        ctx: a Ctx with these attributes:
            saved: tuple of Storages and Views; () where the operation saved
                nothing, and None once backward has let go of the values.
            versions: tuple of ints: the version of each, when it was saved.
                A Storage that was saved twice may have two.
            op, line: texts: the operation, and where it was called.

    Returns:
        None if nothing was written, or if nothing is saved (any more).

    Raises:
        SavedValueModifiedError: the version of some saved value has
            changed. The text of the error contains ctx.op, ctx.line, and,
            for the first such value, the saved version and the present one.
    """
    raise NotImplementedError("check_saved is yours to write")


class Mode(threading.local):
    """What operations ask before they record. Each thread has its own."""

    recording = True


mode = Mode()


class no_grad:
    """Nothing is recorded inside: `mode.recording` is False there.

    As a block, `with no_grad():`, and as a decorator, `@no_grad()`, of
    functions, methods among them, and of generator functions; one object
    may decorate several. However the block ends, also by an
    exception (which passes through), `mode.recording` is afterwards what it
    was before the block. Blocks nest, also two of the same object. While
    one runs, other threads may begin and end blocks, each of its own
    object, and call the same decorated functions.
    """

    def __init__(self):
        self.before = []

    def __enter__(self):
        """Begin the block: switch recording off. Returns self."""
        raise NotImplementedError("__enter__ is yours to write")

    def __exit__(self, kind, error, trace):
        """End the block: put back what was before. Exceptions go on."""
        raise NotImplementedError("__exit__ is yours to write")

    def __call__(self, function):
        """Return a function that does the same, and records nothing.

        It takes the same arguments, returns (or raises) the same, and has
        the same __name__.

        If `function` is a generator function, so is the result: it yields
        the same values, hands on to the body what is sent or thrown into it
        (close() throws GeneratorExit), and returns the same at its end.
        Nothing is recorded while its body runs, and between two values,
        while the caller runs, the mode is the caller's own.
        """
        raise NotImplementedError("__call__ is yours to write")


def max_batch(measure, limit):
    """Find the largest batch that fits, from two measurements.

    The peak memory of a training step is fixed + per_sample * batch:
    weights, gradients and optimizer state do not depend on the batch,
    activations do.

    Args:
        measure: function: measure(batch) runs a step and returns its peak
            memory, an int number of bytes, for an int batch of 1 or more.
            It is exactly of the form above, and slow: call it at most
            twice.
        limit: int, the bytes there are.

    Returns:
        int: the largest batch with measure(batch) <= limit; 0 if not even a
        batch of 1 fits.
    """
    raise NotImplementedError("max_batch is yours to write")


# --- From here on: minigrad itself ----------------------------------------


def valid_copy(model):
    """Return a second model for evaluation: it shares all with the first.

    This is what `model.valid()` does; write it without `valid` and `clone`.

    Args:
        model: an mg.nn.Module, often in the middle of being trained.

    Returns:
        An object `shown` such that
        - shown(x) gives what the model gives in evaluation mode (Dropout
          does nothing, BatchNorm learns nothing), and records no node,
          whatever the mode outside is;
        - list(shown.parameters()) has the ids (`p.id`) and the memory
          (`p.data_ptr()`) of list(model.parameters()), as often as it is
          asked: no value is copied, and when the model is trained on,
          shown(x) follows.

    The model stays as it was, now and after each shown(x): the
    requires_grad of each parameter, and the `training` of each module
    inside it, one by one (some layers may be frozen, some may be in
    evaluation mode already).
    """
    raise NotImplementedError("valid_copy is yours to write")


# --- Bug hunt -------------------------------------------------------------
# The loop below learns, and in each of its steps a few more nodes stay
# alive. Six lines, A to F, put something where it stays after its step.
# Three of them keep a graph:
#   chain: what is carried from step to step reaches back to the first step;
#   list:  a container that outlives the step holds on to its graph;
#   cycle: objects that hold each other, so that only the garbage collector
#          frees them, at some later time.
# Write the letter of each into BUG, each its own: one letter for two kinds
# counts for neither. Then mend the loop. Two of them may hold the same
# nodes: then removing only one changes nothing.

BUG = {"chain": None, "list": None, "cycle": None}


class Report:
    """The report of one step; `report.show()` gives it as a text."""

    def __init__(self, step, loss):
        self.step, self.loss = step, loss
        self.show = self.as_text  # C: how this report is shown

    def as_text(self):
        """Return the step and its loss as a text."""
        return f"step {self.step}: loss {float(self.loss):.4f}"


def fix_dqn_loop(loop):
    """Run a loop of deep Q-learning; mend it so that it keeps no graph.

    Args:
        loop: the parts of the loop:
            online, target: networks, (batch, 4) -> (batch, 4): a value for
                each of four actions; only `online` is trained.
            optimizer: that of `online`.
            states: float32 array (steps + 1, batch, 4).
            rewards: float32 array (steps, batch, 4), one for each action.
            report(report): to be called once in each step, with a Report.

    Returns:
        (losses, mean_value): the list of the losses, one float a step, and
        a float: the moving average of the mean chosen value, which starts
        at 0.

    In each of the steps: the number of live nodes is the same as in the
    step before, without `gc.collect()`. What is computed, and what is
    returned, stays as it is.
    """
    rows = np.arange(loop.states.shape[1])
    recent, losses, mean_value = collections.deque(maxlen=8), [], 0.0
    for step, rewards in enumerate(loop.rewards):
        values = loop.online(loop.states[step])
        actions = values.numpy().argmax(axis=1)
        recent.append((actions, rewards[rows, actions]))  # A: the last few
        with mg.no_grad():
            goal = (
                loop.target(loop.states[step + 1]).max(axis=1) * 0.9
                + rewards[rows, actions]
            )
        chosen = values[rows, actions]
        error = chosen - goal
        loss = (error * error).mean()
        loss.backward()
        loop.optimizer.step()
        loop.optimizer.zero_grad()
        last = loss  # B: the loss of this step, until the next one
        losses.append(last)  # D: the loss of every step
        mean_value = 0.9 * mean_value + 0.1 * chosen.mean()  # E: average
        if step % 50 == 0:
            with mg.no_grad():  # F: the target network follows
                for ours, theirs in zip(
                    loop.target.parameters(),
                    loop.online.parameters(),
                    strict=True,
                ):
                    ours.copy_(theirs)
        loop.report(Report(step, loss))
    return [float(loss) for loss in losses], float(mean_value)
