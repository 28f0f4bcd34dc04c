"""Gradients that a step finds in `.grad`: which of them can be other objects at the next call.

Each call finds a gradient that the step replaces or adds to through its leaf. A slice of a flat
buffer stays the same object, and a guard checks that. So no trace keeps the gradients of the call
that was traced.
"""

from minigrad.array.array import Array
from minigrad.compiler.trace.structure import outputs_of
from minigrad.tape.variable import Variable

PRESENT = object()  # stands for any gradient: it must exist, but may be another object


def settle(found):
    """Replaces gradients of a Capture that may change by PRESENT.

    Returns {Value whose memory is found through a leaf: number of its GradEffect}.
    """
    returned = [o.variable for o in outputs_of(found.structure) if o.kind == "captured"]
    captured = {id(v.storage): v for v in found.recording.values("captured")}
    moving = {}
    for k, effect in enumerate(found.grads):
        before, after = effect.before, effect.after
        if before is None or any(before is x for x in returned):
            continue
        if effect.is_read:
            array = before.array
            value = captured.get(id(array))
            if not is_whole(array) or value is None:
                continue
            moving[value], value.storage = k, None
        if after is not None and after.variable is before:
            effect.after = after._replace(variable=PRESENT)
        effect.before = PRESENT
    return moving


def is_whole(array):
    """Whether an Array is itself a Storage, and flat if it is on the CPU."""
    return type(array) is Array and (array.is_flat or array.device != "cpu")


def same_variable(old, new):
    """Whether two captured Variables show the same memory; PRESENT equals only itself."""
    if not isinstance(old, Variable) or not isinstance(new, Variable):
        return old is new
    a, b = old.array, new.array
    return a.storage is b.storage and a.layout() == b.layout()
