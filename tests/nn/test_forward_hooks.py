"""Forward hooks: they see and may change what a module returns."""

import copy

import pytest

import minigrad as mg
from minigrad import errors, nn


def test_hook_sees_module_inputs_and_output_until_removed():
    model, seen = nn.Sequential(nn.Linear(2, 3), nn.ReLU()), []
    handle = model[0].register_forward_hook(lambda *given: seen.append(given))
    x = mg.ones((4, 2))
    y = model(x)
    ((module, inputs, output),) = seen
    assert module is model[0]
    assert inputs[0] is x
    assert output.shape == y.shape == (4, 3)
    handle.remove()
    handle.remove()
    model(x)
    assert len(seen) == 1


def test_what_a_hook_returns_is_the_output_and_takes_part_in_backward():
    layer = nn.Linear(2, 1)
    layer.register_forward_hook(lambda module, inputs, y: y * 2.0)
    layer.register_forward_hook(lambda module, inputs, y: y + inputs[0].sum())
    x = mg.ones((1, 2))
    expected = 2.0 * (layer.weight.numpy().sum() + layer.bias.item()) + 2.0
    y = layer(x)
    assert y.item() == pytest.approx(expected, rel=1e-5)
    y.sum().backward()
    assert layer.weight.grad.tolist() == [[2.0, 2.0]]


def test_views_call_hooks_and_record_nothing():
    model, seen = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5)), []
    with model[1].register_forward_hook(lambda m, inputs, y: seen.append(m.training)):
        y = model.valid()(mg.ones((1, 2)))
        model(mg.ones((1, 2)))
    model(mg.ones((1, 2)))
    assert not y.requires_grad
    assert seen == [False, True]
    with model.valid()[0].register_forward_hook(lambda m, inputs, y: seen.append(m)):
        model(mg.ones((1, 2)))
    assert seen[2:] == [model[0]]


def test_copies_have_no_hooks_and_walks_do_not_mind_them():
    model, seen = nn.Linear(2, 2), []
    model.register_forward_hook(lambda m, inputs, y: seen.append(y))
    assert len(list(model.parameters())) == 2
    for other in (model.clone(), copy.deepcopy(model), copy.copy(model)):
        other(mg.ones((1, 2)))
    assert seen == []
    assert list(model.state_dict()) == ["weight", "bias"]


def test_a_hook_may_remove_itself():
    layer, seen = nn.Linear(1, 1), []

    def once(module, inputs, y):
        seen.append(y)
        handle.remove()

    handle = layer.register_forward_hook(once)
    layer(mg.ones((1, 1)))
    layer(mg.ones((1, 1)))
    assert len(seen) == 1


def test_what_cannot_be_called_is_no_hook():
    with pytest.raises(errors.ArgumentTypeError, match="wanted a function"):
        nn.Linear(1, 1).register_forward_hook(3)
