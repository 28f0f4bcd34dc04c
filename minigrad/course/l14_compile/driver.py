"""Runs in the learner's process for the checks of lesson 14: programs in, plain lists out."""

import contextlib
import copy
import operator
import tracemalloc

import numpy as np

from minigrad.course.objects import Op, Program

# Looked up before the learner's file is loaded, which could replace them.
start_counting, stop_counting = tracemalloc.start, tracemalloc.stop
counted_bytes = tracemalloc.get_traced_memory


def built(program):
    """Return a Program from the lists that were sent."""
    ops, inputs, outputs, shapes = program
    return Program(
        tuple(Op(name, tuple(given), output) for name, given, output in ops),
        tuple(inputs),
        tuple(outputs),
        {value: tuple(shape) for value, shape in shapes.items()},
    )


def plain(op):
    """Return an operation as a list; anything else as the name of its type."""
    if not isinstance(op, Op):
        return type(op).__name__
    return [op.name, list(op.inputs), op.output]


def in_time(look, again):
    """Return look(result), and whether it stays the same after another call."""
    before = look()
    with contextlib.suppress(Exception):
        again(Program((Op("neg", ("a",), "o"),), ("a",), ("o",), {"a": (1, 1), "o": (1, 1)}))
    return before | {"stays": look() == before}


def unpacked(result):
    """Return a Program as lists, or {"kind": …} for anything else."""
    if not isinstance(result, Program):
        return {"kind": "None" if result is None else type(result).__name__}
    for part in ("ops", "inputs", "outputs"):
        if not isinstance(getattr(result, part), tuple | list):
            return {"kind": f"Program whose {part} are a {type(getattr(result, part)).__name__}"}
    return {
        "ops": [plain(op) for op in result.ops],
        "inputs": list(result.inputs),
        "outputs": list(result.outputs),
        "shapes": dict(result.shapes),
    }


def traced(mine, text, inputs, nested=False):
    """Trace a function with this text; return the resulting Program, and other observations.

    Only the text is known here of the expected program. `nested`: the function traces another one
    before it returns.
    """
    names, calls, before = {}, [], dict(inputs)
    exec(text, names)
    del text  # it reveals what to record
    f = names["f"]

    def traces_too(*arguments):
        calls.append(len(arguments))
        results = f(*arguments)
        if nested:
            mine.trace(operator.neg, {"inner": (1, 1)})
        return results

    program = mine.trace(traces_too, inputs)
    return unpacked(program) | {"n_calls": len(calls), "same_inputs": inputs == before}


def misfit(mine, shape, other):
    """Trace the sum of two values whose shapes do not fit; return the resulting shape."""
    try:
        program = mine.trace(operator.add, {"x": shape, "y": other})
    except ValueError:
        return None
    return unpacked(program)


def branch(mine, name, how, shape):
    """Trace a function that takes the truth value of a traced value; return the outcome."""
    asked = []

    def asks(x):
        asked.append(x > 0)
        return x * 2.0 if asked[0] else -x

    def loops(x):
        asked.append(x)
        for _ in range(4):
            if not x:
                break
            x = x - 1.0
        return x

    def combines(x):
        asked.append(x)
        return x and x * 2.0

    f = {"if x > 0": asks, "if not x": loops, "x and 2 * x": combines}[how]
    try:
        program = mine.trace(f, {name: shape})
    except mine.TracedBranchError as error:
        of = str(getattr(asked[0], "name", ""))
        return {"raised": "TracedBranchError", "text": str(error), "of": of}
    except TypeError as error:
        if not asked_for_truth(error):
            raise
        return {"raised": f"TypeError: {error}", "text": ""}
    return {"returned": unpacked(program)}


def asked_for_truth(error):
    """Return whether this TypeError is from __bool__, or from Python as that returned no bool."""
    frame = error.__traceback__
    while frame.tb_next is not None:
        frame = frame.tb_next
    return frame.tb_frame.f_code.co_name == "__bool__" or "should return bool" in str(error)


def without_dead(mine, program):
    """Eliminate dead operations; return the Program, and whether the given one is unchanged."""
    given = built(program)
    before = built(program)
    result = mine.eliminate_dead(given)
    return in_time(lambda: unpacked(result), mine.eliminate_dead) | {"unchanged": given == before}


def fused(mine, program):
    """Fuse; return the groups as lists of lists."""
    given = built(program)
    groups = mine.fuse(given)
    if not isinstance(groups, list):
        return {"kind": "None" if groups is None else type(groups).__name__}
    if not all(isinstance(group, list) for group in groups):
        return {"kind": "list of other things than lists"}
    unchanged = given == built(program)

    def look():
        return {"groups": [[plain(op) for op in group] for group in groups]}

    return in_time(look, mine.fuse) | {"unchanged": unchanged}


def alias(mine, program, i, o):
    """Call may_alias for an output and an input."""
    verdict = mine.may_alias(built(program), i, o)
    return bool(verdict) if isinstance(verdict, np.bool_) else verdict


def donated(mine, program, names):
    """Donate inputs; return the two dicts, or the ValueError that was raised."""
    given = list(names)
    try:
        result = mine.donate(built(program), given)
    except ValueError as error:
        return {"raised": str(error)}
    reasons = [mine.NO_SIZE, mine.STILL_READ, mine.TAKEN]
    seen = in_time(
        lambda: {"returned": copy.deepcopy(result)}, lambda other: mine.donate(other, ["a"])
    )
    return seen | {"reasons": reasons, "same_names": given == names}


def laid(array, order):
    """Return a copy in column order ("F"), or with gaps between the numbers."""
    if order == "F":
        return np.asfortranarray(array)
    apart = np.repeat(array, 2, axis=1)
    return apart[:, ::2]


def in_place(mine, x, t, w1, w2, v1, v2, learning_rate, order="C", least=0):
    """Take a step in place; return the results, whose memory they have, and the peak of bytes.

    `order`: the memory layout: "C", "F", or "apart", with gaps between the numbers. Before the
    step, allocate and free `least` bytes: a lower peak does not cover everything.
    """
    given = [w1, w2, v1, v2] if order == "C" else [laid(a, order) for a in (w1, w2, v1, v2)]
    start_counting()
    try:
        bytearray(least)
        results = mine.step_in_place(x, t, *given, learning_rate)
        peak = counted_bytes()[1]
    finally:
        stop_counting()
    same = []
    if isinstance(results, tuple | list):
        same = [
            isinstance(array, np.ndarray)
            and array.shape == before.shape
            and array.ctypes.data == before.ctypes.data
            for array, before in zip(results, given, strict=False)
        ]
    return {"returned": results, "same_memory": same, "peak": peak, "after": [x, t, *given]}
