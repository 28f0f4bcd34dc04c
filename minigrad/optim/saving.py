"""state_dict of optimizers, keyed by parameter names instead of positions."""

import functools
import warnings
from typing import NamedTuple

from minigrad.arguments import shown
from minigrad.devices.backend import device_of
from minigrad.errors import ArgumentTypeError, StateError
from minigrad.formulas.update import MASTER
from minigrad.memory.interrupts import uninterrupted
from minigrad.ops.operands import constant, from_data
from minigrad.optim.state import ParameterState
from minigrad.tape.attribute_writes import written
from minigrad.tape.modes import no_grad
from minigrad.tape.variable import Variable


class LoadedState(NamedTuple):
    """Names of parameters without saved state, and saved names without a parameter."""

    missing: list
    stale: list


def state_dict(optimizer):
    """Optimizer.state_dict."""
    name_of = {p.id: name for name, p in optimizer.named_parameters()}
    groups = [
        {**g.as_dict(), "names": [name_of[p.id] for p in g.parameters]} for g in optimizer.groups
    ]
    state = {}
    for name, p in optimizer.named_parameters():
        if p.id in optimizer.state:
            state[name] = {
                key: Variable(device_of(value.array).convert(value.array, value.dtype))
                for key, value in optimizer.state[p.id].items()
            }
    return {"algorithm": optimizer.algorithm, "groups": groups, "state": state}


def load_state_dict(optimizer, saved):
    """Optimizer.load_state_dict: checks everything, then writes."""
    write, result = prepared(optimizer, saved)
    write()
    if result.stale:
        warnings.warn(
            f"{optimizer.algorithm}.load_state_dict: left out what nothing is updated under: "
            f"{', '.join(result.stale)}",
            stacklevel=3,
        )
    return result


def prepared(optimizer, saved):
    """Checks a state; returns (the function that writes it into the optimizer, LoadedState)."""
    kind = optimizer.algorithm
    if not isinstance(saved, dict) or not {"algorithm", "groups", "state"} <= set(saved):
        raise ArgumentTypeError(
            f"{kind}.load_state_dict: wanted what optimizer.state_dict() returns",
            f"{type(saved).__name__}",
        )
    its = saved["algorithm"]
    if not isinstance(its, str) or its != kind:
        raise StateError(
            f"{kind}.load_state_dict: this is the state of another algorithm",
            its if isinstance(its, str) else shown(its),
        )
    _check_form(kind, saved)
    values = {
        name: {k: _read(f"{name}.{k}", v) for k, v in kept.items()}
        for name, kept in saved["state"].items()
    }
    by_name = dict(optimizer.named_parameters())
    chosen = _groups(optimizer, saved["groups"])
    problems, fitting = [], []
    for group, hyperparameters in chosen:
        members = {p.id for p in group.parameters}
        for name, p in by_name.items():
            if name in values and p.id in members:
                update = optimizer.update_of({**group.as_dict(), **hyperparameters}, p.dtype)
                problems += _problems(name, p, values[name], update.slots, update.counts_steps)
                fitting += [(p, update, values[name])] if update.has_state else []
    if problems:
        raise StateError(
            f"{kind}.load_state_dict: the state does not fit; nothing was written",
            "; ".join(problems),
            "build model and optimizer as they were when the state was saved",
        )
    known = {n for g in saved["groups"] for n in g["names"]} | set(values)
    stale = sorted(known - set(by_name))
    states = {p.id: _made(p, update, its) for p, update, its in fitting}
    write = functools.partial(_take, optimizer, chosen, states)
    return write, LoadedState([name for name in by_name if name not in values], stale)


def _check_form(kind, saved):
    """Raises unless `saved` has the form of a state_dict. Tuples may have become JSON's lists."""
    groups, state = saved["groups"], saved["state"]
    got = None
    if not isinstance(groups, (list, tuple)) or not all(
        isinstance(g, dict)
        and isinstance(g.get("names"), (list, tuple))
        and all(isinstance(name, str) for name in g["names"])
        for g in groups
    ):
        got = f"groups {shown(groups)}"
    elif not isinstance(state, dict) or not all(
        isinstance(kept, dict) and all(isinstance(key, str) for key in (name, *kept))
        for name, kept in state.items()
    ):
        got = f"state {shown(state)}"
    if got:
        raise StateError(
            f"{kind}.load_state_dict: wanted what optimizer.state_dict() returns: groups, a list "
            "of dicts with names, and state, {name: {slot: array}}",
            got,
        )


def _read(name, value):
    """Returns a saved value as a Variable; lists and numbers from JSON in full precision."""
    return value if isinstance(value, Variable) else constant(from_data(name, value)[0], name)


def _problems(name, parameter, values, slots, has_step):
    """Returns the reasons why saved values do not fit a parameter, as sentences."""
    wanted = dict.fromkeys(slots, parameter.shape) | ({"step": ()} if has_step else {})
    problems = []
    for key in {*wanted, *values}:
        where = f"{name}.{key}"
        if key not in values:
            if key == MASTER:
                continue  # saved beside wide parameters: it begins as a copy of the narrow one
            problems.append(f"{where} is missing")
        elif key not in wanted:
            if key == MASTER:
                continue  # saved beside narrow parameters: a wide one needs no copy
            problems.append(f"{where} is unexpected: other hyperparameters?")
        elif values[key].shape != wanted[key]:
            problems.append(f"{where} has shape {values[key].shape}, wanted {wanted[key]}")
        elif key == "step" and not _is_count(values[key].item()):
            problems.append(f"{where} is {values[key].item()}, wanted a number of steps")
    return sorted(problems)


def _is_count(x):
    return 0 <= x < 2**53 and x == int(x)


def _made(parameter, update, values):
    """Makes a parameter's state from saved values, before any write, because it may fail."""
    state = ParameterState(parameter, update.slots, update.counts_steps)
    with no_grad():
        state.take(values)
    return state


@uninterrupted
def _take(optimizer, chosen, states):
    """Writes everything, after all checks."""
    for group, hyperparameters in chosen:
        for name, value in hyperparameters.items():
            setattr(group, name, value)
    optimizer._scheduled = [group.learning_rate for group in optimizer.groups]
    written(optimizer, f"{optimizer.algorithm}.load_state_dict")
    optimizer.state.clear()
    optimizer.state.update(states)
    optimizer.forget_plan()


def _groups(optimizer, saved):
    """Returns (group, saved hyperparameters) of each group, matched by parameter names."""
    home = {name: k for k, group in enumerate(saved) for name in group["names"]}
    name_of = {p.id: name for name, p in optimizer.named_parameters()}
    chosen = []
    for group in optimizer.groups:
        names = [name_of[p.id] for p in group.parameters]
        homes = {home[name] for name in names if name in home}
        if len(homes) > 1:
            raise StateError(
                f"{optimizer.algorithm}.load_state_dict: one group here was several when it was "
                "saved; which hyperparameters hold?",
                f"{', '.join(names[:6])}",
                "group the parameters as they were",
            )
        own = saved[homes.pop()] if homes else {}
        unknown = [k for k in own if k != "names" and k not in optimizer.defaults]
        if unknown:
            raise StateError(
                f"{optimizer.algorithm}.load_state_dict: wanted hyperparameters among "
                f"{', '.join(optimizer.defaults)}",
                ", ".join(map(str, unknown)),
            )
        own = {k: optimizer.checked(k, v) for k, v in own.items() if k != "names"}
        chosen.append((group, own))
    return chosen
