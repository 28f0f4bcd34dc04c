"""Runs beside the learner's code for the checks of lesson 08: builds models, runs them, looks."""

import contextlib
import sys

import numpy as np

from minigrad.course.objects import Parameter

array_equal = np.array_equal  # taken before the learner's file, which could replace it


def plain(value):
    """Return a copy of arrays, numbers, lists and dicts; anything else unchanged."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def caught(lets_through):
    """Return the exceptions to report: all, or only ValueError if others are let through.

    Only the check knows whether one is wanted.
    """
    return ValueError if lets_through else Exception


def described(error):
    """Return an exception as data."""
    text = "; ".join([str(error), *getattr(error, "__notes__", ())])
    return {"kinds": [kind.__name__ for kind in type(error).__mro__], "text": text}


@contextlib.contextmanager
def naming_keys(model, story):
    """Make a KeyError inside the block tell whose id its key is; story(name) adds what is known."""
    names = {p.id: name for name, p in model.items()}
    try:
        yield
    except KeyError as error:
        key = error.args[0] if error.args else None
        if type(key) is int and key in names:
            error.add_note(f"this key is {names[key]}.id; {story(names[key])}")
        elif type(key) is int:
            error.add_note("this key is the id of no parameter that the model had at first")
        raise


def had_state(state):
    """Describe a parameter whose id is missing; state: the names that have some."""
    return lambda name: (
        f"{name} had an entry in optimizer.state when the call began"
        if name in state
        else f"{name} has made no step yet, so optimizer.state has no entry for it"
    )


def built(values):
    """Return a model of Parameters from {name: array}."""
    return {name: Parameter(array) for name, array in values.items()}


def optimizer_of(mine, model, state):
    """Return the learner's SGD over a model, in another order, with state {name: {slot: array}}."""
    optimizer = mine.SGD(list(model.values())[::-1], learning_rate=0.1, momentum=0.9)
    optimizer.state = {model[name].id: plain(slots) for name, slots in state.items()}
    return optimizer


def by_name(model, state):
    """Return an optimizer's state by name; mark entries that belong to no parameter."""
    if not isinstance(state, dict):
        return state, []
    names = {p.id: name for name, p in model.items()}
    known = {names[key]: plain(slots) for key, slots in state.items() if key in names}
    strangers = [key for key in state if key not in names]
    return known, [
        str(key)[:40] if isinstance(key, int | str) else f"a {type(key).__name__}"
        for key in strangers
    ]


def update(mine, algorithm, values, gradients, state, hyperparameters):
    """Call sgd_update once for each gradient; return a row for each call."""
    rows, slots = [], dict(state)
    for gradient in gradients:
        returned = mine.sgd_update(algorithm, values, gradient, state, hyperparameters)
        rows.append(
            {
                "values": values.copy(),
                "gradient": gradient.copy(),
                "state": plain(state),
                "in_place": all(state.get(name) is array for name, array in slots.items()),
                "returned": plain(returned),
            }
        )
    return rows


def update_raises(mine, algorithm, values, gradient, state, hyperparameters):
    """Call sgd_update; return what it raised, None for nothing."""
    raised = None
    try:
        mine.sgd_update(algorithm, values, gradient, state, hyperparameters)
    except Exception as error:
        raised = described(error)
    return {"raised": raised, "values": values, "gradient": gradient, "state": state}


def steps(mine, values, rounds):
    """Make an SGD over a model and step it once for each round; return a row for each step.

    A round is what a script sets before the step:
    {"gradients": {name: array}, "frozen": [name], "hyper": {name: number}}.
    """
    model = built(values)
    held = {name: p.values for name, p in model.items()}
    for name, p in model.items():
        p.requires_grad = name not in rounds[0]["frozen"]
        p.grad = plain(rounds[0]["gradients"].get(name))
    optimizer = mine.SGD(iter(model.values()), **rounds[0]["hyper"])
    at_first, rows, calls = plain(optimizer.state), [], []
    firsts = {}  # the step that first updates each

    def story(name):
        first = firsts.get(name)
        return f"step {first} is the first to update {name}" if first else f"{name} is not updated"

    code = getattr(mine.sgd_update, "__code__", None)

    def note(frame, event, _):  # whatever name it is called under
        if event == "call" and frame.f_code is code:
            calls.append(1)

    for number, now in enumerate(rounds, 1):
        for name, p in model.items():
            gradient = now["gradients"].get(name)
            p.grad = None if gradient is None else gradient.copy()
            p.requires_grad = name not in now["frozen"]
            if p.grad is not None and p.requires_grad:
                firsts.setdefault(name, number)
        for name, value in now["hyper"].items():
            setattr(optimizer, name, value)
        grads = {name: p.grad for name, p in model.items()}
        calls.clear()
        sys.setprofile(note)
        try:
            with naming_keys(model, story):
                returned = optimizer.step()
        finally:
            sys.setprofile(None)
        state, strangers = by_name(model, optimizer.state)
        rows.append(
            {
                "returned": plain(returned),
                "values": {name: plain(p.values) for name, p in model.items()},
                "held": plain(held),
                "grads": {name: plain(p.grad) for name, p in model.items()},
                "same_grads": all(p.grad is grads[name] for name, p in model.items()),
                "same_arrays": all(p.values is held[name] for name, p in model.items()),
                "state": state,
                "strangers": strangers,
                "at_first": at_first,
                "calls": len(calls) if code else None,
            }
        )
        if not all(isinstance(p.values, np.ndarray) for p in model.values()):
            break  # the next step would only fail on it
    return rows


def clip_gradients(mine, gradients, max_norm, lets_through=False):
    """Call clip_grad_norm_ on a list; return its result or error, and the arrays afterwards."""
    given = list(gradients)
    try:
        returned, raised = plain(mine.clip_grad_norm_(given, max_norm)), None
    except caught(lets_through) as error:
        returned, raised = None, described(error)
    return {"returned": returned, "raised": raised, "gradients": gradients, "list": plain(given)}


def clip_weights(mine, values, gradients, frozen, low, high):
    """Call clip_weights_ on a model; describe its Parameters and their arrays afterwards."""
    model = built(values)
    for name in frozen:
        model[name].requires_grad = False
    for name, gradient in gradients.items():
        model[name].grad = gradient.copy()
    before, held = dict(model), {name: p.values for name, p in model.items()}
    ids = {name: p.id for name, p in model.items()}
    returned = mine.clip_weights_(model, low, high)
    return {
        "returned": returned,
        "names": list(model),
        "values": {name: plain(p.values) for name, p in model.items()},
        "held": held,
        "grads": {name: plain(p.grad) for name, p in before.items()},
        "frozen": [name for name, p in before.items() if not p.requires_grad],
        "same_objects": all(model.get(name) is p for name, p in before.items()),
        "same_ids": all(model[name].id == ids[name] for name in before if name in model),
        "same_arrays": all(model[n].values is held[n] for n in before if n in model),
    }


def save(mine, values, state, frozen):
    """Call state_dict after a call for another model; return its result, then and after a step.

    The step adds 1 to all that the optimizer remembers. While the learner's code runs, nothing here
    holds the state by name: that would be the answer.
    """
    model = built(values)
    optimizer = optimizer_of(mine, model, state)
    known = {*state, "another"}
    del state
    for name in frozen:
        model[name].requires_grad = False
    other = built({"another": np.ones(2)})
    other_optimizer = optimizer_of(mine, other, {"another": {"momentum": np.ones(2)}})
    with naming_keys(other | model, had_state(known)):
        before = mine.state_dict(other, other_optimizer)
        saved = mine.state_dict(model, optimizer)
    mixed = saved is before or (isinstance(saved, dict) and "another" in saved)
    at_once = plain(saved)
    for slots in optimizer.state.values():
        for array in slots.values():
            array += 1.0
    return {
        "saved": at_once,
        "later": plain(saved),
        "ids": {name: p.id for name, p in model.items()},
        "mixed": mixed,
        "again": plain(mine.state_dict(model, optimizer)),
        "kept": by_name(model, optimizer.state)[0],
    }


def load(mine, values, state, saved, has_stranger=False, lets_through=False):
    """Call load_state_dict; return the state by name afterwards, and what was raised.

    `has_stranger`: the state has an entry for a Parameter that is in no model.
    """
    model = built(values)
    optimizer = optimizer_of(mine, model, state)
    if has_stranger:
        other = built({"old": np.ones(2)})["old"]
        optimizer.state[other.id] = {"momentum": np.ones(2)}
    list(model.values())[-1].requires_grad = False
    try:
        with naming_keys(model, had_state(state)):
            returned, raised = mine.load_state_dict(model, optimizer, saved), None
    except caught(lets_through) as error:
        returned, raised = None, described(error)
    named_state, strangers = by_name(model, optimizer.state)
    kept = plain(saved)
    for slots in optimizer.state.values() if isinstance(optimizer.state, dict) else ():
        for array in slots.values() if isinstance(slots, dict) else ():
            if isinstance(array, np.ndarray):
                array += 1.0
    return {
        "returned": plain(returned),
        "raised": raised,
        "state": named_state,
        "strangers": strangers,
        "kept": kept,
        "later": plain(saved),
    }


def replace(mine, values, state, name, new_values, keep_state, lets_through=False):
    """Call replace_parameter; return who holds which Parameter afterwards."""
    model = built(values)
    optimizer = optimizer_of(mine, model, state)
    before, old = dict(model), model[name]
    taken = [p.id for p in (*model.values(), Parameter(np.zeros(1)))]  # even another model's
    for p in model.values():
        p.grad, p.requires_grad = np.ones_like(p.values), p is old or p is before["c"]
    facts = {n: (p.id, p.values, p.grad, p.requires_grad) for n, p in model.items()}
    try:
        with naming_keys(model, had_state(state)):
            new = mine.replace_parameter(model, optimizer, name, new_values, keep_state)
        raised = None
    except caught(lets_through) as error:
        new, raised = None, described(error)
    held = list(optimizer.parameters)
    placed = model.get(name)
    named_state, strangers = by_name(model, optimizer.state)
    return {
        "raised": raised,
        "returned": new if new is None or isinstance(new, np.ndarray) else type(new).__name__,
        "returned_it": new is placed,
        "names": list(model),
        "is_old": placed is old,
        "is_parameter": isinstance(placed, Parameter),
        "id_is_new": getattr(placed, "id", None) not in taken,
        "values": plain(getattr(placed, "values", None)),
        "grad": plain(getattr(placed, "grad", None)),
        "others_stay": all(model.get(n) is p for n, p in before.items() if n != name),
        "holds": [next((n for n, p in model.items() if p is one), "the old one") for one in held],
        "old_values": plain(old.values),
        "touched": [
            n
            for n, (id, array, grad, flag) in facts.items()
            if (before[n].id, before[n].requires_grad) != (id, flag)
            or not (before[n].values is array and before[n].grad is grad and np.all(grad == 1.0))
            or not array_equal(array, values[n])
        ],
        "old_id_in_state": isinstance(optimizer.state, dict) and old.id in optimizer.state,
        "state": named_state,
        "strangers": [key for key in strangers if key != str(old.id)],
    }


def fine_tune(mine, values, batches, prefix, after):
    """Call fine_tune on a model; return its values afterwards."""
    model = built(values)
    with naming_keys(model, lambda name: f"velocity has nothing before the first step of {name}"):
        mine.fine_tune(model, batches, prefix, after)
    return {name: plain(p.values) for name, p in model.items()}


def forget(mine, values):
    """Call forget_gradients on parameters with None, zeros, ones, twos; return their gradients."""
    model = built(values)
    for number, p in enumerate(list(model.values())[1:]):
        p.grad = np.full_like(p.values, number)
    mine.forget_gradients(model)
    return {name: plain(p.grad) for name, p in model.items()}
