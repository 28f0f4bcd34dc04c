"""Parameters: ids, names, owners, and new values in the same parameter."""

import copy
import gc

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors, nn


class Scale(nn.Module):
    def __init__(self, value=2.0):
        self.factor = nn.Parameter([value])

    def forward(self, x):
        return x * self.factor


def test_parameter_from_birth_requires_gradients():
    p = nn.Parameter([1.0, 2.0])
    assert p.requires_grad
    assert p.is_leaf
    assert p.grad is None


def test_parameter_ids_are_different():
    assert len({nn.Parameter([1.0]).id for _ in range(20)}) == 20


def test_parameter_of_ints_raises():
    with pytest.raises(errors.DTypeError, match="floating point"):
        nn.Parameter([1, 2])


def test_parameter_copies_its_data_lazily():
    data = mg.variable([1.0, 2.0])
    p = nn.Parameter(data)
    assert p.data_ptr() == data.data_ptr()
    data.fill_(0.0)
    assert p.tolist() == [1.0, 2.0]


def test_parameter_of_a_computed_value_leaves_its_graph():
    x = mg.variable([1.0], requires_grad=True)
    p = nn.Parameter(x * 3.0)
    assert p.is_leaf
    (p * 2.0).sum().backward()
    assert x.grad is None
    assert p.grad.tolist() == [2.0]


def test_parameter_takes_part_in_operations_on_either_side():
    p, x = nn.Parameter([3.0]), mg.variable([4.0])
    ((p * x) + (x * p) + (x - p) + (p / x)).sum().backward()
    np.testing.assert_allclose(p.grad.numpy(), [4 + 4 - 1 + 0.25])


def test_map_keeps_id_object_and_gradient():
    p = nn.Parameter([1.0, -5.0])
    (p * p).sum().backward()
    id_, grad = p.id, p.grad
    version = p.version
    assert p.map(lambda v: v.clip(-1.0, 1.0)) is p
    assert p.tolist() == [1.0, -1.0]
    assert p.id == id_
    assert p.grad is grad
    assert p.version > version
    assert p.requires_grad


def test_map_records_nothing():
    seen = []
    nn.Parameter([1.0]).map(lambda v: seen.append(v) or v * 2.0)
    assert not seen[0].requires_grad


def test_map_to_another_shape_raises():
    p = nn.Parameter([1.0, 2.0])
    with pytest.raises(errors.ShapeError, match=r"wanted the shape \(2,\)"):
        p.map(lambda v: v.sum())
    assert p.tolist() == [1.0, 2.0]


def test_map_to_no_variable_raises():
    with pytest.raises(errors.ArgumentTypeError, match="returns a Variable"):
        nn.Parameter([1.0]).map(lambda v: None)


def test_assign_a_graph_raises_with_a_fix():
    p = nn.Parameter([1.0])
    with pytest.raises(errors.GradientError, match="detach") as caught:
        p.assign(p * 2.0)
    assert "made at" in str(caught.value)
    assert p.tolist() == [1.0]


@pytest.mark.parametrize("value", [[5.0, 6.0], np.array([5.0, 6.0], np.float32)])
def test_assign_takes_plain_data(value):
    p = nn.Parameter([1.0, 2.0])
    assert p.assign(value) is p
    assert p.tolist() == [5.0, 6.0]
    p.assign_(nn.Parameter([7.0, 8.0]))
    assert p.tolist() == [7.0, 8.0]


def test_edit_writes_in_place_and_keeps_id():
    p = nn.Parameter([1.0, 2.0])
    id_ = p.id
    with p.edit() as value:
        value *= 3.0
        p.add_(mg.variable([1.0, 1.0]))
    assert p.tolist() == [4.0, 7.0]
    assert p.id == id_
    assert p.is_leaf


def test_edit_that_writes_nothing_warns():
    p = nn.Parameter([1.0])
    with pytest.warns(UserWarning, match="nothing was written"), p.edit() as value:
        value = value * 2.0


def test_edit_restores_recording_after_an_error():
    p = nn.Parameter([1.0])
    with pytest.raises(ZeroDivisionError), p.edit():
        raise ZeroDivisionError
    assert mg.is_recording()


def test_in_place_on_a_parameter_outside_no_grad_raises():
    with pytest.raises(errors.InPlaceError):
        nn.Parameter([1.0]).mul_(2.0)


def test_name_is_the_path_from_the_outermost_module():
    inner = nn.Sequential(Scale())
    assert inner[0].factor.name == "0.factor"
    outer = nn.Module()
    outer.body = inner
    assert inner[0].factor.name == "body.0.factor"
    assert nn.Parameter([1.0], name="mine").name == "mine"
    assert nn.Parameter([1.0]).name is None


def test_replaced_parameter_is_an_orphan_with_its_last_name():
    model = nn.Sequential(Scale())
    old = model[0].factor
    assert not old.is_orphan
    model[0].factor = nn.Parameter([3.0])
    assert old.is_orphan
    assert old.name == "0.factor"
    assert not model[0].factor.is_orphan


def test_parameters_of_a_dead_model_are_orphans():
    model = nn.Sequential(Scale())
    p = model[0].factor
    gc.disable()
    try:
        del model
        assert p.is_orphan
    finally:
        gc.enable()
    assert not nn.Parameter([1.0]).is_orphan


def test_parameter_of_two_modules_is_owned_until_both_let_go():
    first, second = Scale(), Scale()
    second.factor = first.factor
    p = first.factor
    first.factor = nn.Parameter([0.0])
    assert not p.is_orphan
    del second.factor
    assert p.is_orphan


def test_writing_the_same_object_back_is_no_replacement():
    model = Scale()
    p = model.factor
    with mg.no_grad():
        model.factor *= 2.0
    assert model.factor is p
    assert not p.is_orphan
    assert p.tolist() == [4.0]


def test_deepcopy_of_a_parameter_is_another_one():
    p = nn.Parameter([1.0])
    q = copy.deepcopy(p)
    assert q.id != p.id
    with q.edit() as value:
        value.fill_(9.0)
    assert p.tolist() == [1.0]


def test_repr_says_parameter():
    assert repr(nn.Parameter([1.0])).startswith("Parameter(")
