"""state_dict and load_state_dict of optimizers."""

import contextlib
import gc
import json
from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors, nn
from tests.optim.reference import FEW


class Named(nn.Module):
    """Parameters of different shapes, declared in a given order."""

    shapes = {"a": (2, 3), "b": (3,), "c": (1,)}

    def __init__(self, order="abc"):
        for name in order:
            values = np.random.default_rng(ord(name)).standard_normal(self.shapes[name])
            setattr(self, name, nn.Parameter(values.astype("f4")))


def train(model, optimizer, steps, start=0):
    for step in range(start, start + steps):
        for name, p in model.named_parameters():
            rng = np.random.default_rng([step, ord(name[0])])
            p.grad = mg.variable(rng.standard_normal(p.shape).astype("f4"))
        optimizer.step()
    return {name: p.numpy().tobytes() for name, p in model.named_parameters()}


@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize("given", [lambda m: m, lambda m: m.parameters()])
def test_training_goes_on_bit_for_bit_in_a_model_of_another_order(name, given):
    def make(model):
        return FEW[name].make(given(model))

    model = Named()
    optimizer = make(model)
    train(model, optimizer, 5)
    values, state = model.state_dict(), optimizer.state_dict()
    expected = train(model, optimizer, 5, start=5)
    other = Named("cab")
    again = make(other)
    other.load_state_dict(values)
    missing = [] if state["state"] else ["c", "a", "b"]  # plain SGD keeps nothing
    assert again.load_state_dict(state) == (missing, [])
    assert train(other, again, 5, start=5) == expected


def test_state_dict_is_a_snapshot_by_name():
    model = Named()
    optimizer = mg.optim.Adam(model, learning_rate=0.1)
    train(model, optimizer, 2)
    state = optimizer.state_dict()
    assert state["algorithm"] == "Adam"
    assert state["groups"][0]["names"] == ["a", "b", "c"]
    assert state["groups"][0]["betas"] == (0.9, 0.999)
    assert state["state"].keys() == {"a", "b", "c"}
    assert state["state"]["a"].keys() == {"first_moment", "second_moment", "step"}
    before = state["state"]["a"]["first_moment"].numpy().copy()
    train(model, optimizer, 2)
    np.testing.assert_array_equal(state["state"]["a"]["first_moment"].numpy(), before)
    assert state["state"]["a"]["step"].item() == 2


def test_hyperparameters_are_loaded():
    model = Named()
    saved = mg.optim.Adam(model, learning_rate=0.5, betas=(0.5, 0.6)).state_dict()
    optimizer = mg.optim.Adam(model)
    optimizer.load_state_dict(saved)
    assert optimizer.learning_rate == 0.5
    assert optimizer.groups[0].betas == (0.5, 0.6)


def test_state_as_arrays_is_taken():
    model = Named()
    optimizer = mg.optim.Adam(model, learning_rate=0.1)
    train(model, optimizer, 2)
    saved = optimizer.state_dict()
    saved["state"] = {
        name: {k: v.numpy() for k, v in kept.items()} for name, kept in saved["state"].items()
    }
    again = mg.optim.Adam(model)
    again.load_state_dict(saved)
    assert again.state[model.a.id]["step"].item() == 2


def test_stale_names_are_left_out_and_reported():
    model = Named()
    optimizer = mg.optim.Adam(model)
    train(model, optimizer, 1)
    saved = optimizer.state_dict()
    fewer = Named("ab")
    again = mg.optim.Adam(fewer)
    with pytest.warns(UserWarning, match="left out.*c"):
        result = again.load_state_dict(saved)
    assert result == ([], ["c"])
    assert set(again.state) == {fewer.a.id, fewer.b.id}


def test_parameters_without_saved_state_start_anew():
    model = Named("ab")
    optimizer = mg.optim.Adam(model)
    train(model, optimizer, 3)
    more = Named("abc")
    again = mg.optim.Adam(more)
    train(more, again, 1)
    assert again.load_state_dict(optimizer.state_dict()).missing == ["c"]
    train(more, again, 1)
    steps = {n: again.state[p.id]["step"].item() for n, p in more.named_parameters()}
    assert steps == {"a": 4, "b": 4, "c": 1}


def test_state_of_replaced_parameters_is_not_saved():
    model = Named()
    optimizer = mg.optim.Adam(model, on_orphan="ignore")
    train(model, optimizer, 1)
    model.c = nn.Parameter([1.0])
    train(model, optimizer, 1)
    saved = optimizer.state_dict()["state"]
    assert saved.keys() == {"a", "b", "c"}
    assert saved["c"]["step"].item() == 1


def test_other_shapes_raise_and_nothing_is_written():
    model = Named()
    optimizer = mg.optim.Adam(model, learning_rate=0.5)
    train(model, optimizer, 1)
    saved = optimizer.state_dict()
    saved["state"]["b"], saved["state"]["c"] = saved["state"]["c"], saved["state"]["b"]
    again = mg.optim.Adam(Named(), learning_rate=0.1)
    with pytest.raises(errors.StateError, match=r"b.first_moment has shape \(1,\), wanted \(3,\)"):
        again.load_state_dict(saved)
    assert again.learning_rate == 0.1
    assert again.state == {}


def test_other_algorithm_or_form_raises():
    model = Named()
    saved = mg.optim.SGD(model).state_dict()
    with pytest.raises(errors.StateError, match="another algorithm"):
        mg.optim.Adam(model).load_state_dict(saved)
    with pytest.raises(errors.ArgumentTypeError, match="state_dict"):
        mg.optim.Adam(model).load_state_dict({"a": 1})


def test_groups_are_matched_by_the_names_in_them():
    def make(model, order):
        groups = [
            {"parameters": [model.a], "learning_rate": 0.5},
            {"parameters": [model.b, model.c], "learning_rate": 0.1},
        ]
        return mg.optim.SGD([groups[k] for k in order], momentum=0.9)

    model = Named()
    saved = make(model, (0, 1)).state_dict()
    optimizer = make(model, (1, 0))
    optimizer.learning_rate = 0.0
    optimizer.load_state_dict(saved)
    assert [g.learning_rate for g in optimizer.groups] == [0.1, 0.5]
    with pytest.raises(errors.StateError, match="was several"):
        mg.optim.SGD(model, momentum=0.9).load_state_dict(saved)


def test_parameters_of_one_name_are_told_apart():
    first, second = Named("ab"), Named("ab")
    optimizer = mg.optim.Adam([first, second])
    assert [n for n, _ in optimizer.named_parameters()] == ["a", "b", "a#2", "b#2"]


def through_json(tree, arrays=True):
    """What JSON makes of a state: lists of tuples, and of arrays, too, unless they go beside it."""
    if isinstance(tree, dict):
        return {str(key): through_json(value, arrays) for key, value in tree.items()}
    if isinstance(tree, mg.Variable):
        return json.loads(json.dumps(tree.tolist())) if arrays else tree.numpy()
    return json.loads(json.dumps(tree))


@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize("arrays", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_state_that_went_through_json_continues_bit_for_bit(name, arrays, dtype):
    def make():
        model = Named().to(dtype)
        return model, FEW[name].make(model)

    def go(model, optimizer, seed):
        for key, p in model.named_parameters():
            rng = np.random.default_rng([seed, ord(key)])
            p.grad = mg.variable(rng.standard_normal(p.shape).astype(dtype))
        optimizer.step()

    model, optimizer = make()
    for seed in range(3):
        go(model, optimizer, seed)
    saved = [through_json(x.state_dict(), arrays) for x in (model, optimizer)]
    other, again = make()
    other.load_state_dict(saved[0])
    again.load_state_dict(saved[1])
    for each in ((model, optimizer), (other, again)):
        go(*each, 3)
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        assert p.dtype is q.dtype
        assert p.numpy().tobytes() == q.numpy().tobytes()
    kept = [group.as_dict() for group in optimizer.groups]
    assert [group.as_dict() for group in again.groups] == kept


def changed(**parts):
    model = Named()
    optimizer = mg.optim.Adam(model)
    train(model, optimizer, 1)
    return optimizer, {**optimizer.state_dict(), **parts}


@pytest.mark.parametrize(
    "parts",
    [
        {"groups": None},
        {"groups": {"0": {}}},
        {"groups": ["a"]},
        {"groups": [{"learning_rate": 0.1}]},
        {"groups": [{"names": [["a"]]}]},
        {"groups": [{"names": ["a", "b", "c"], "betas": 0.9}]},
        {"groups": [{"names": ["a", "b", "c"], "betas": [0.9]}]},
        {"groups": [{"names": ["a", "b", "c"], "betas": ["0.9", "0.9"]}]},
        {"groups": [{"names": ["a", "b", "c"], "learning_rate": "0.1"}]},
        {"groups": [{"names": ["a", "b", "c"], "lr": 0.1}]},
        {"state": []},
        {"state": None},
        {"state": {"a": [1.0]}},
        {"state": {"a": {"first_moment": "text"}}},
        {"state": {"a": {"first_moment": None}}},
        {"state": {"a": {"first_moment": [[1.0], [1.0, 2.0]]}}},
        {"state": {None: {}}},
        {"state": {"a": {3: 1.0}}},
        {"algorithm": None},
        {"algorithm": np.zeros(2)},
    ],
)
def test_a_state_of_another_form_is_refused_and_nothing_written(parts):
    optimizer, saved = changed(**parts)
    with unwritten(optimizer), pytest.raises(errors.MinigradError):
        optimizer.load_state_dict(saved)


@contextlib.contextmanager
def unwritten(optimizer):
    """Asserts that the state is the same afterwards."""
    before = optimizer.state_dict()
    yield
    after = optimizer.state_dict()
    assert after["groups"] == before["groups"]
    assert after["state"].keys() == before["state"].keys()
    for name, slots in before["state"].items():
        for slot, value in slots.items():
            np.testing.assert_array_equal(after["state"][name][slot].numpy(), value.numpy())


@pytest.mark.parametrize("step", [-1, 2.5, float("nan"), float("inf"), 2**70, [1.0], None, "1"])
def test_a_wrong_number_of_steps_in_the_last_entry_is_refused_and_nothing_written(step):
    optimizer, saved = changed()
    name = list(saved["state"])[-1]
    saved["state"][name]["step"] = step
    with unwritten(optimizer), pytest.raises(errors.MinigradError):
        optimizer.load_state_dict(saved)


def test_when_memory_is_short_nothing_is_written():
    gc.collect()  # of what other tests have left nothing must come free below the limit
    stats = mg.memory.stats()
    unused = stats["reserved_bytes"] - stats["current_bytes"]
    model: Any = Named()
    model.wide = nn.Parameter(np.ones(unused // 4 + (1 << 22), "f4"))
    optimizer = mg.optim.Adam(model)
    saved = optimizer.state_dict()
    saved["state"] = {
        name: {**dict.fromkeys(("first_moment", "second_moment"), p.numpy()), "step": 3}
        for name, p in model.named_parameters()
    }
    mg.memory.empty_cache()
    mg.memory.set_limit(mg.memory.stats()["reserved_bytes"] + (1 << 20))
    try:
        with unwritten(optimizer), pytest.raises(errors.MinigradError, match="limit"):
            optimizer.load_state_dict(saved)
    finally:
        mg.memory.set_limit(None)
    optimizer.load_state_dict(saved)
    assert optimizer.state_dict()["state"]["wide"]["step"].item() == 3
