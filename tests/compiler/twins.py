"""A step twice, eager and compiled, from the same start: what both leave behind, compared."""

import itertools

import numpy as np

import minigrad as mg
from minigrad.devices.backend import values
from minigrad.nn import Module
from minigrad.ops.creation import generator
from minigrad.optim import Optimizer, Schedule
from minigrad.tape.variable import Variable


def elements(x):
    """What a Variable of any device holds, as an ndarray of its own."""
    return values(x.array).copy()


def numbers(tree):
    """A tree of Variables as one of ndarrays."""
    if isinstance(tree, Variable):
        return elements(tree)
    if isinstance(tree, dict):
        return {key: numbers(value) for key, value in tree.items()}
    if isinstance(tree, (tuple, list)):
        parts = [numbers(x) for x in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return tree


def left_behind(things):
    """All that a step may leave in its surroundings, by name: ndarrays, numbers, None."""
    found = {"random numbers": generator.counter}

    def note(name, x):
        found[name], found[f"{name} version"] = elements(x), x.version
        grad = x.grad
        found[f"{name}.grad"] = None if grad is None else elements(grad)
        if grad is not None:
            found[f"{name}.grad requires"] = grad.requires_grad

    for k, thing in enumerate(things):
        if isinstance(thing, Module):
            for name, p in thing.named_parameters():
                note(f"{k} {name}", p)
            for name, b in thing.named_buffers():
                note(f"{k} {name}", b)
        elif isinstance(thing, Optimizer):
            for name, p in thing.named_parameters():
                for slot, x in (thing.state.get(p.id) or {}).items():
                    note(f"{k} state of {name}: {slot}", x)
            for n, group in enumerate(thing.groups):
                found[f"{k} rate {n}"] = group.learning_rate
        elif isinstance(thing, Schedule):
            found[f"{k} t"] = thing.t
        elif isinstance(thing, Variable):
            note(f"{k}", thing)
        else:
            raise AssertionError(type(thing))
    return found


def same(wanted, got, error, where):
    """Asserts that two trees hold the same numbers: shape, dtype, NaN pattern, values."""
    if isinstance(wanted, dict):
        assert list(wanted) == list(got), where
        for key in wanted:
            same(wanted[key], got[key], error, f"{where} / {key}")
    elif isinstance(wanted, (tuple, list)):
        assert type(wanted) is type(got), where
        assert len(wanted) == len(got), where
        for k, (a, b) in enumerate(zip(wanted, got, strict=True)):
            same(a, b, error, f"{where}[{k}]")
    elif isinstance(wanted, np.ndarray):
        assert isinstance(got, np.ndarray), f"{where}: eager left an array, compiled {got!r}"
        assert (wanted.dtype, wanted.shape) == (got.dtype, got.shape), where
        np.testing.assert_allclose(got, wanted, error, error, equal_nan=True, err_msg=where)
    elif isinstance(wanted, float):
        np.testing.assert_allclose(got, wanted, error, error, err_msg=where)
    else:
        assert type(wanted) is type(got), f"{where}: eager {wanted!r}, compiled {got!r}"
        assert wanted == got, f"{where}: eager {wanted!r}, compiled {got!r}"


def run(make, calls, wrap, looks):
    """([what the calls returned], {call: what was left behind})."""
    mg.manual_seed(3)
    step, things, arguments = make(wrap)
    results, states = [], {}
    arguments = itertools.cycle(arguments)
    for n in range(1, calls + 1):
        results.append(numbers(step(*next(arguments))))
        if n in looks:
            states[n] = left_behind(things)
    return results, states


def check(make, calls=50, error=3e-5, programs=1, looks=(1, 2, 3, 4, 7)):
    """Runs both twins.

    make(wrap): (step, [what it may change], [arguments of a call, ...]); of what is to be compiled
    it calls wrap. programs: how many those must have had to make together, or None for any number.
    Returns what was compiled.
    """
    compiled = []

    def wrap(function):
        compiled.append(mg.compile(function))
        return compiled[-1]

    looks = {*looks, calls}
    wanted, before = run(make, calls, lambda function: function, looks)
    got, after = run(make, calls, wrap, looks)
    for n, state in before.items():
        same(wanted[n - 1], got[n - 1], error, f"call {n}, result")
        same(state, after[n], error, f"after call {n}")
    same(wanted, got, error, "results")
    if programs is not None:
        assert sum(len(step.traces) for step in compiled) == programs, compiled
    return compiled
