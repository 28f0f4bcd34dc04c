"""model.valid(), model.clone(), copy.deepcopy and copy.copy."""

import copy

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors, nn


def network():
    return nn.Sequential(
        nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 2)
    )


def ids(model):
    return [p.id for p in model.parameters()]


def pointers(model):
    return [p.data_ptr() for p in model.parameters()]


def test_valid_shares_ids_and_storages_and_records_nothing():
    model, x = network(), mg.randn((5, 3))
    view = model.valid()
    assert isinstance(view, nn.Sequential)
    assert ids(view) == ids(model)
    assert pointers(view) == pointers(model)
    assert not view(x).requires_grad
    assert not view(mg.variable(np.ones((5, 3), np.float32), requires_grad=True)).requires_grad
    assert view[0](x).node is None
    assert not any(p.requires_grad for p in view.parameters())


def test_valid_leaves_the_model_as_it_is():
    model = network()
    model[0].requires_grad_(False)
    before = [p.requires_grad for p in model.parameters()]
    view = model.valid()
    view(mg.randn((5, 3)))
    assert model.training
    assert all(m.training for m in model.modules())
    assert not any(m.training for m in view.modules())
    assert [p.requires_grad for p in model.parameters()] == before
    assert view.train() is model
    assert view[0].train() is model[0]
    assert [p.requires_grad for p in view.train().parameters()] == before
    assert model(mg.randn((5, 3))).requires_grad


def test_valid_evaluates_dropout_and_running_statistics():
    model, x = network(), mg.randn((50, 3))
    model(x)
    mean = model[1].running_mean.numpy().copy()
    a, b = model.valid()(x), model.valid()(x)
    np.testing.assert_array_equal(a.numpy(), b.numpy())
    np.testing.assert_array_equal(model[1].running_mean.numpy(), mean)
    expected = model.eval()(x)
    np.testing.assert_array_equal(a.numpy(), expected.numpy())


def test_valid_is_live_to_values_and_structure():
    model, x = nn.Sequential(nn.Linear(2, 2)), mg.ones((1, 2))
    view = model.valid()
    optimizer = mg.optim.SGD(model, learning_rate=0.1)
    model(x).sum().backward()
    optimizer.step()
    np.testing.assert_array_equal(view(x).numpy(), model(x).detach().numpy())
    model[0].weight = nn.Parameter(mg.zeros((2, 2)))
    np.testing.assert_array_equal(view(x).numpy(), model(x).detach().numpy())
    model[0] = nn.Linear(2, 5)
    assert view(x).shape == (1, 5)
    assert ids(view) == ids(model)
    model.to("float64")
    assert view[0].weight.dtype == mg.float64


def test_valid_shows_plain_attributes_over_class_attributes():
    class Gain(nn.Module):
        gain = 1.0

        def forward(self, x):
            return x * self.gain

    model = Gain()
    view = model.valid()
    model.gain = 3.0
    assert view(mg.ones((1,))).tolist() == [3.0]


def test_valid_cannot_be_changed_or_trained():
    model = network()
    view = model.valid()
    with pytest.raises(errors.ArgumentTypeError, match="change the model"):
        view.extra = 1
    with pytest.raises(errors.ArgumentTypeError, match="change the model"):
        del view.training
    with pytest.raises(errors.GradientError, match="never trained"):
        view[0].weight.requires_grad = True
    with pytest.raises(errors.GradientError, match="never trained"):
        view.requires_grad_()
    with pytest.raises(errors.ArgumentTypeError, match="converted"):
        view.to("float64")
    with pytest.raises(errors.ArgumentError, match=r"view\.train\(\)"):
        mg.optim.Adam(view)
    assert view.valid() is view
    assert view.eval() is view


def test_valid_has_the_state_of_the_model():
    model = network()
    state = model.valid().state_dict()
    assert list(state) == list(model.state_dict())


def test_clone_shares_bytes_until_the_first_write():
    model = network()
    copied = model.clone()
    assert ids(copied) == ids(model)
    assert pointers(copied) == pointers(model)
    with model[0].weight.edit() as value:
        value.fill_(7.0)
    assert copied[0].weight.data_ptr() != model[0].weight.data_ptr()
    assert not np.any(copied[0].weight.numpy() == 7.0)
    assert copied[4].weight.data_ptr() == model[4].weight.data_ptr()


def test_clone_is_frozen_and_may_be_written():
    model, x = network(), mg.randn((5, 3))
    copied = model.clone()
    assert not copied(x).requires_grad
    assert not any(m.training for m in copied.modules())
    assert model.training
    with pytest.raises(errors.GradientError, match="deepcopy"):
        copied.requires_grad_()
    with pytest.raises(errors.ArgumentError, match="clone"):
        mg.optim.SGD(copied, learning_rate=0.1)
    with mg.no_grad():
        for target, p in zip(copied.parameters(), model.parameters(), strict=True):
            target.mul_(0.5).add_(p * 0.5)
    copied.load_state_dict(model.state_dict())
    np.testing.assert_array_equal(copied[0].weight.numpy(), model[0].weight.numpy())


def test_gradients_flow_through_a_clone_to_its_input():
    copied = nn.Linear(3, 1).clone()
    x = mg.variable(np.ones((1, 3), np.float32), requires_grad=True)
    copied(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), copied.weight.numpy())
    assert copied.weight.grad is None


def test_clone_does_not_follow_training():
    model, x = nn.Linear(2, 2), mg.ones((1, 2))
    copied = model.clone()
    before = copied(x).numpy().copy()
    optimizer = mg.optim.Adam(model, learning_rate=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
    np.testing.assert_array_equal(copied(x).numpy(), before)
    assert np.abs(model(x).detach().numpy() - before).max() > 0.1


def test_clone_copies_buffers_and_keeps_ties():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3), nn.BatchNorm1d(3))
    model[1].weight = model[0].weight
    copied = model.clone()
    assert copied[0].weight is copied[1].weight
    model[2].running_mean.fill_(5.0)
    assert copied[2].running_mean.tolist() == [0.0, 0.0, 0.0]


def test_deepcopy_is_a_second_model_to_train():
    model, x = network(), mg.randn((5, 3))
    model[4].requires_grad_(False)
    other = copy.deepcopy(model)
    assert not set(ids(other)) & set(ids(model))
    assert [p.requires_grad for p in other.parameters()] == [
        p.requires_grad for p in model.parameters()
    ]
    other(x).sum().backward()
    mg.optim.SGD(other, learning_rate=0.1).step()
    assert model[0].weight.grad is None
    assert np.any(other[0].weight.numpy() != model[0].weight.numpy())
    assert [n for n, _ in other.named_parameters()] == [n for n, _ in model.named_parameters()]


def test_shallow_copy_has_the_same_parameters():
    model = network()
    other = copy.copy(model)
    assert list(other.parameters()) == list(model.parameters())
    other[0] = nn.Linear(3, 4)
    assert ids(model) != ids(other)
