"""state_dict and load_state_dict."""

import json

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors, nn


def network():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


def test_state_dict_names_parameters_and_buffers():
    assert list(network().state_dict()) == [
        "0.weight", "0.bias", "1.weight", "1.bias", "2.weight", "2.bias",
        "1.running_mean", "1.running_var",
    ]  # fmt: skip


def test_state_dict_is_a_snapshot():
    model, x = network(), mg.randn((5, 3))
    state = model.state_dict()
    before = {name: value.numpy().copy() for name, value in state.items()}
    model(x).sum().backward()
    mg.optim.SGD(model, learning_rate=0.5).step()
    for name, value in state.items():
        np.testing.assert_array_equal(value.numpy(), before[name])
    assert np.any(model[2].bias.numpy() != before["2.bias"])
    assert np.any(model[1].running_mean.numpy() != before["1.running_mean"])


def test_load_state_dict_restores_bit_for_bit_and_keeps_ids():
    model, other, x = network(), network(), mg.randn((5, 3))
    model(x)
    ids = [p.id for p in other.parameters()]
    assert other.load_state_dict(model.state_dict()) == ([], [])
    assert [p.id for p in other.parameters()] == ids
    np.testing.assert_array_equal(model.valid()(x).numpy(), other.valid()(x).numpy())


def test_load_state_dict_takes_arrays_in_any_order():
    model, other = network(), network()
    state = {name: value.numpy() for name, value in reversed(model.state_dict().items())}
    other.load_state_dict(state)
    np.testing.assert_array_equal(other[0].weight.numpy(), model[0].weight.numpy())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.pop("2.bias"), "missing: 2.bias"),
        (lambda s: s.update(extra=mg.zeros((1,))), "unexpected: extra"),
        (lambda s: s.update({"0.weight": mg.zeros((4, 4))}), r"0.weight: shape \(4, 4\)"),
        (lambda s: s.update({"0.weight": mg.zeros((4, 3), "int64")}), "0.weight: dtype int64"),
    ],
)
def test_load_state_dict_that_does_not_fit_raises_and_writes_nothing(change, message):
    model, other = network(), network()
    state = model.state_dict()
    change(state)
    before = [p.numpy().copy() for p in other.parameters()]
    with pytest.raises(errors.StateError, match=message):
        other.load_state_dict(state)
    for p, value in zip(other.parameters(), before, strict=True):
        np.testing.assert_array_equal(p.numpy(), value)


def test_load_state_dict_suggests_a_close_name():
    state = network().state_dict()
    state["2.bais"] = state.pop("2.bias")
    with pytest.raises(errors.StateError, match=r"is it '2.bais'\?"):
        network().load_state_dict(state)


def test_load_state_dict_not_strict_reports_what_is_left():
    model = network()
    state = {"0.bias": mg.ones((4,)), "more": mg.ones((1,))}
    result = model.load_state_dict(state, strict=False)
    assert result.unexpected == ["more"]
    assert "0.weight" in result.missing
    assert model[0].bias.tolist() == [1.0] * 4


def test_load_state_dict_of_no_dict_raises():
    with pytest.raises(errors.ArgumentTypeError, match="wanted a dict"):
        network().load_state_dict([1, 2])


def test_tied_parameters_are_saved_once_and_stay_tied():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    state = model.state_dict()
    assert list(state) == ["0.weight", "0.bias", "1.bias"]
    state["0.weight"] = mg.ones((3, 3))
    model.load_state_dict(state)
    assert model[1].weight.tolist() == [[1.0] * 3] * 3


class Tied(nn.Module):
    """An embedding whose table is the weight of the head, and a batch norm."""

    def __init__(self):
        self.table = nn.Embedding(5, 4)
        self.norm = nn.BatchNorm1d(4)
        self.head = nn.Linear(4, 5, bias=False)
        self.head.weight = self.table.weight

    def forward(self, x):
        return self.head(self.norm(self.table(x)))


def state_of_pytorch():
    """As torch.nn gives it for such a module: both names, and the count of batches."""
    table = np.arange(20, dtype=np.float32).reshape(5, 4)
    return {
        "table.weight": table, "norm.weight": np.full(4, 2.0, np.float32),
        "norm.bias": np.full(4, 3.0, np.float32), "norm.running_mean": np.zeros(4, np.float32),
        "norm.running_var": np.ones(4, np.float32), "norm.num_batches_tracked": np.array(7),
        "head.weight": table,
    }  # fmt: skip


def test_a_state_of_pytorch_with_tied_weights_and_counts_of_batches_loads():
    model, state = Tied(), state_of_pytorch()
    assert model.load_state_dict(state) == ([], [])
    np.testing.assert_array_equal(model.head.weight.numpy(), state["table.weight"])
    assert model.head.weight is model.table.weight
    assert model.norm.bias.tolist() == [3.0] * 4
    del state["table.weight"]  # one of the names is enough, whichever
    state["head.weight"] = state["head.weight"] + 1
    assert model.load_state_dict(state) == ([], [])
    np.testing.assert_array_equal(model.table.weight.numpy(), state["head.weight"])
    assert model.load_state_dict(model.state_dict()) == ([], [])


def test_tied_names_with_other_values_are_refused():
    model, state = Tied(), state_of_pytorch()
    before = model.head.weight.numpy().copy()
    state["head.weight"] = state["head.weight"] + 1
    with pytest.raises(errors.StateError, match="its tied name"):
        model.load_state_dict(state)
    np.testing.assert_array_equal(model.head.weight.numpy(), before)


def test_a_count_of_batches_of_nothing_is_unexpected():
    with pytest.raises(errors.StateError, match="unexpected: table"):
        Tied().load_state_dict({**state_of_pytorch(), "table.num_batches_tracked": np.array(1)})


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod."])
def test_the_prefix_of_a_wrapper_is_named(prefix):
    state = {prefix + name: value for name, value in state_of_pytorch().items()}
    with pytest.raises(errors.StateError, match="removeprefix") as caught:
        Tied().load_state_dict(state)
    assert repr(prefix) in str(caught.value)
    stripped = {name.removeprefix(prefix): value for name, value in state.items()}
    assert Tied().load_state_dict(stripped) == ([], [])


def test_a_module_that_is_there_twice_loads_under_both_names():
    shared = nn.Linear(2, 2)
    model = nn.Sequential(shared, nn.ReLU(), shared)
    values = {"0.weight": np.eye(2, dtype="f4"), "0.bias": np.zeros(2, "f4")}
    both = values | {name.replace("0.", "2."): v for name, v in values.items()}
    assert model.load_state_dict(both) == ([], [])
    assert shared.weight.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_lists_that_json_made_are_read_in_full_precision():
    model, other = (nn.Linear(3, 2, dtype="float64") for _ in range(2))
    state = {name: json.loads(json.dumps(x.tolist())) for name, x in model.state_dict().items()}
    other.load_state_dict(state)
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        np.testing.assert_array_equal(p.numpy(), q.numpy())
    for wrong in ("text", None, {"0": 1.0}, [[1.0], [1.0, 2.0]]):
        with pytest.raises(errors.MinigradError, match="bias"):
            other.load_state_dict({**state, "bias": wrong})
