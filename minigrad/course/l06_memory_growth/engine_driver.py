"""Runs the engine for the checks of lesson 06: models, a loop, and what they leave behind."""

import gc
from typing import Any

import minigrad
from minigrad.tape.node import Node, next_serial

mg: Any = minigrad  # its names appear when they are asked for first
# The measuring functions are looked up before the learner's file, which could replace them, is
# loaded. `collect` raises: the exercise must be solved without it.
is_recording, collect, all_objects, kind_of = mg.is_recording, gc.collect, gc.get_objects, type
disable, enable, freeze, unfreeze = gc.disable, gc.enable, gc.freeze, gc.unfreeze
callbacks = gc.callbacks


class DQNLoop:
    """The parts of a deep Q-learning loop on recorded states.

    online, target: networks 4 -> width -> 4; optimizer: that of `online`; states (steps + 1,
    batch, 4) and rewards (steps, batch, 4): float32 arrays; report: called once in each step.
    """

    def __init__(self, width, states, rewards, report=lambda report: None):
        self.online, self.target = (
            mg.nn.Sequential(mg.nn.Linear(4, width), mg.nn.ReLU(), mg.nn.Linear(width, 4))
            for _ in range(2)
        )
        self.optimizer = mg.optim.SGD(self.online, learning_rate=0.01)
        self.states, self.rewards, self.report = states, rewards, report


def values_of(model):
    """Return a model's parameters as arrays, in order."""
    return [p.numpy().copy() for p in model.parameters()]


def counter_of_nodes():
    """Return a function that counts live nodes without looking up any name.

    While the learner's code runs, it can replace every name in this module and in the engine.
    """
    objects, kind, node = all_objects, kind_of, Node

    def count():
        n = 0
        for one in objects():
            if kind(one) is node:
                n += 1
        return n

    return count


def run_loop(mine, width, states, rewards, every):
    """Run the learner's loop with the garbage collector off; count live nodes every few steps."""
    mg.manual_seed(len(states))
    n_live = counter_of_nodes()
    live, texts, n_reports, collected = [], [], 0, []

    def report(report):
        nonlocal n_reports
        n_reports += 1
        if n_reports % every == 0:
            live.append(n_live())
        texts.append(report.show())

    loop = DQNLoop(width, states, rewards, report)
    weights = {"online": values_of(loop.online), "target": values_of(loop.target)}
    was_on = gc.isenabled()
    disable()
    freeze()  # so counting nodes visits new objects only
    before = n_live()

    def note(phase, info):
        collected.append(phase)

    callbacks.append(note)
    try:
        returned = mine.fix_dqn_loop(loop)
        left = n_live() - before
    finally:
        is_noted = note in callbacks
        if is_noted:
            callbacks.remove(note)
        unfreeze()
        if was_on:
            enable()
    if collected or not is_noted:
        collect()
    return {
        "returned": returned,
        "live": live,
        "left": left,
        "n_reports": n_reports,
        "texts": texts,
        "weights": weights,
        "trained": values_of(loop.online),
    }


class Net(mg.nn.Module):
    """A model that is no Sequential: a body and a head."""

    def __init__(self):
        self.body = mg.nn.Sequential(
            mg.nn.Linear(4, 6), mg.nn.BatchNorm1d(6), mg.nn.Dropout(0.5), mg.nn.ReLU()
        )
        self.head = mg.nn.Sequential(mg.nn.Dropout(0.5), mg.nn.Linear(6, 2))

    def forward(self, x):
        return self.head(self.body(x))


def some_model(weights):
    """Return a model in mid-training, with a frozen layer and one in evaluation mode."""
    model = Net()
    for p, values in zip(model.parameters(), weights, strict=True):
        p.assign(mg.variable(values))
    model.body[0].requires_grad_(False)
    model.train()
    model.head[0].eval()
    return model


def facts(model):
    """Return what must stay unchanged: each parameter's requires_grad, each module's training."""
    return {
        "requires_grad": [p.requires_grad for p in model.parameters()],
        "training": [module.training for module in model.modules()],
    }


def known_as(parameters):
    """Return ids and addresses of parameters."""
    listed = list(parameters)
    return {"ids": [p.id for p in listed], "pointers": [p.data_ptr() for p in listed]}


GROWS = 1.5  # the factor by which training changes each value between the two calls


def copied(mine, x, recording, weights, others):
    """Make the learner's copy; run it, train the model further, run it again, and let it fail.

    The weights are those of the model and of another model, which is also copied.
    """
    model = some_model(weights)
    before = facts(model)
    seen: dict = {"model": known_as(model.parameters())}
    shown = mine.valid_copy(model)
    mine.valid_copy(some_model(others))
    if shown is None:
        return None
    if not callable(shown) or not hasattr(shown, "parameters"):
        return {"kind": type(shown).__name__}
    seen["states"] = [("valid_copy(model)", before, facts(model))]
    seen["shown"] = [known_as(shown.parameters()) for _ in range(2)]
    seen["outputs"], seen["n_nodes"], seen["mode_kept"] = [], [], True
    for moment in ("shown(x)", "shown(x), after more training", "a shown(x) that raises"):
        before = facts(model)
        with mg.enable_grad() if recording else mg.no_grad():
            first = next_serial()
            try:
                y: Any = shown(mg.variable(x[:, :3] if "raises" in moment else x))
            except Exception:
                if "raises" not in moment:
                    raise
            else:
                if not isinstance(y, mg.Variable):
                    return {"gave": repr(y)[:60]}
                seen["outputs"].append(y.numpy().copy())
            seen["n_nodes"].append(next_serial() - first - 1)
            seen["mode_kept"] &= is_recording() == recording
        seen["states"].append((moment, before, facts(model)))
        for p in model.parameters():
            p.map(lambda value: value * GROWS)
        model.body.requires_grad_(True)
        model.body[2].eval()
        model.head.train()
    return seen
