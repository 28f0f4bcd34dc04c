"""Runs ops under observers: timelines, debuggers, spans, inference."""

import functools

from minigrad.hints import teaching
from minigrad.ops.operands import InferenceVariable
from minigrad.tape.modes import ANNOUNCED, note, state
from minigrad.tape.node import user_place
from minigrad.tape.probe import run_as
from minigrad.tape.variable import Variable


def announced(cls, args, variables, attributes):
    """Runs an op and announces its result to observers."""
    before = state.running
    state.running = (cls.name, user_place())
    try:
        y = cls.run(args, variables, attributes)
    finally:
        state.running = before
    return announce(cls.name, y, args)


def named(function):
    """Wraps a function that makes Variables, so that observers see it under its name."""
    taught = teaching(function)

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if state.path in ANNOUNCED:
            return run_as(function.__name__, taught, *args, **kwargs)
        return taught(*args, **kwargs)

    return wrapper


def announce(name, y, inputs=()):
    """Tells observers about the result of an op. Inference results get a class of their own.

    inputs: the Variables and numbers that made the result; none for a user's data.
    """
    if y.node is not None:
        note(y.node)
    for observe in state.op_observers:
        observe(name, y, inputs)
    if state.is_inference:
        return InferenceVariable(y.array)
    return y


def of_view(x, array):
    """Returns a Variable for a view of x, without graph; an InferenceVariable if x is one."""
    return InferenceVariable(array) if type(x) is InferenceVariable else Variable(array)
