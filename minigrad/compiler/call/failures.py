"""Makes the errors of failed checks, which say what had been written by then, and warnings."""

import inspect
import warnings

from minigrad.compiler.program.labels import ValueNames
from minigrad.errors import RetraceWarning
from minigrad.tape.node import user_place

MOST_LEAVES = 3  # the most that a message names
GRADIENTS = "all other arrays and gradients, the random numbers"
ALL = "all other arrays, every .grad, the random numbers"


class Failure:
    """Describes the state after a failed check; restores versions of memory that was not written.

    Args:
        trace: the `Traced` whose program failed.
        status: the number of the check, from 1.
        storages: the Storages of the arguments.

    updated: what had been written, in words; kept: what had not.
    """

    def __init__(self, trace, status, storages):
        self.trace, self.status = trace, status
        self._leaves = self._leaves_of_gradients()
        unseen = [flat for flat, leaves in self._leaves.items() if not leaves]
        values = [v for v in trace.plan.written_before(status) if v not in unseen]
        self._put_back_versions(storages, values)
        lost = self._lost()
        self.updated = [self._words(v) for v in values]
        self.updated += [
            f"the other ranks, by {i.name} at {i.line}"
            for i in trace.plan.checks[: status - 1]
            if i.op == "callback" and not i.attributes["call"].is_repeatable
        ]
        if any(when == "before" for _, when in trace.capture.actions):
            self.updated.append("a schedule's learning rate")
        if self.updated and lost:  # lost gradients alone do not prevent an eager run
            self.updated.append(f"{_gradients(lost)}, None now")
        self.kept = GRADIENTS if lost or any(v in self._leaves for v in values) else ALL

    def _leaves_of_gradients(self):
        """Return {Value with gradients: GradEffects of the leaves whose gradient is in it}."""
        by_value, effects = {}, self.trace.capture.grads
        flat = {id(v.storage): v for v in self.trace.capture.recording.values("captured")}
        for effect in effects:
            leaf = effect.leaf
            if leaf is None or leaf.group is None or id(leaf.group[0].flat) not in flat:
                continue
            leaves = by_value.setdefault(flat[id(leaf.group[0].flat)], [])
            leaves += [effect] * (leaf._grad is not None)
        return by_value | {value: [effects[k]] for value, k in self.trace.moving.items()}

    def _put_back_versions(self, storages, values):
        for value, count in self.trace.capture.written.items():
            if value in values:
                continue
            storage = storages[value.index] if value.kind == "argument" else value.storage
            if storage is None:  # a gradient that the program reaches through its leaf
                leaf = self._leaves[value][0].leaf
                storage = leaf._grad.array if leaf is not None else None
            if storage is not None:
                storage.version -= count

    def _lost(self):
        """Return GradEffects of gradients whose memory was reused and partly overwritten."""
        wrapper = self.trace.wrapper
        spoilt = wrapper.spoilt[self.status]
        effects = [wrapper.reusable[k] for k in wrapper.reused if k in spoilt]
        return [e for e in effects if e.leaf is not None and e.leaf._grad is None]

    def _words(self, value):
        instructions = self.trace.capture.recording.instructions
        i = next((i for i in instructions if any(r.value is value for r in i.writes)), None)
        if value in self._leaves:
            what = _gradients(self._leaves[value])
        else:
            what = f"'{ValueNames(instructions, self.trace, self.trace.function)(value)}'"
        return what if i is None else f"{what}, by {i.name or i.op} at {i.line}"


def _gradients(effects):
    names = [e.where for e in effects]
    if len(names) == 1:
        return f"the gradient of {names[0]}"
    more = f" and {len(names) - MOST_LEAVES} more" if len(names) > MOST_LEAVES else ""
    return f"the gradients of {', '.join(names[:MOST_LEAVES])}{more}"


def after_failure(as_usual, trace, status, args, kwargs, storages):
    """Run the step eagerly if its program wrote nothing before the failed check, else raise."""
    failure = Failure(trace, status, storages)
    check = trace.plan.checks[status - 1]
    if check.op == "callback":
        raise _raised(check, failure)
    if not failure.updated:
        return as_usual(args, kwargs)
    error = trace.plan.checks[status - 1].attributes["error"]()
    error.details = (
        *error.details,
        ("updated before", "; ".join(failure.updated)),
        ("as they were", failure.kept),
    )
    error.args = (error._text(),)
    try:
        raise error
    finally:
        del error  # it holds this frame: a cycle


def _raised(check, failure):
    """Return a custom Function's error, with a note of what the step had done by then."""
    error = check.attributes["error"]()
    check.attributes["call"].raised = None  # it holds frames
    updated = "; ".join(failure.updated) or "nothing"
    where = f"in {check.name}, called by a compiled step; {check.line}"
    error.add_note(f"{where}\nupdated before the error: {updated}; as it was: {failure.kept}")
    return error


def warn(text):
    """Issue a RetraceWarning at the user's line, unless the text is empty."""
    if not text:
        return
    frame, n = inspect.currentframe(), 1
    place = user_place()[0]
    while frame is not None and frame.f_code is not place:
        frame, n = frame.f_back, n + 1
    warnings.warn(text, RetraceWarning, stacklevel=n)
