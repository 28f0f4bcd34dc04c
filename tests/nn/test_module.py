"""Modules: what attributes register, walks, modes, freezing."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors, nn


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.scale = nn.Parameter([1.0])
        self.count = nn.Buffer([0.0])
        self.second = nn.Linear(4, 2)
        self.note = "plain"

    def forward(self, x):
        return self.second(self.first(x).relu()) * self.scale


def test_named_parameters_are_in_order_of_modules_and_attributes():
    names = [name for name, _ in Two().named_parameters()]
    assert names == ["scale", "first.weight", "first.bias", "second.weight", "second.bias"]


def test_walks_find_everything_once():
    model = Two()
    assert [n for n, _ in model.named_modules()] == ["", "first", "second"]
    assert [n for n, _ in model.named_buffers()] == ["count"]
    assert list(model.children()) == [model.first, model.second]
    assert len(list(model.parameters())) == 5
    assert next(model.modules()) is model
    assert [b.tolist() for b in model.buffers()] == [[0.0]]


def test_super_init_may_be_left_out():
    class Lazy(nn.Module):
        def __init__(self):
            self.w = nn.Parameter([1.0])

    assert [n for n, _ in Lazy().named_parameters()] == ["w"]


def test_tied_parameters_appear_once():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    assert [n for n, _ in model.named_parameters()] == ["0.weight", "0.bias", "1.bias"]
    assert model[1].weight.name == "0.weight"


def test_a_shared_module_appears_once_and_trains_once():
    layer = nn.Linear(2, 2)
    model = nn.Sequential(layer, layer)
    assert len(list(model.parameters())) == 2
    model(mg.ones((1, 2))).sum().backward()
    assert layer.weight.grad.shape == (2, 2)


def test_parameter_set_later_is_seen_by_a_walk_that_was_made_before():
    model = nn.Sequential(nn.Linear(2, 2))
    assert len(list(model.parameters())) == 2
    model[0].extra = nn.Parameter([1.0])
    assert len(list(model.parameters())) == 3
    del model[0].extra
    assert len(list(model.parameters())) == 2


def test_attribute_set_to_none_is_taken_out():
    layer = nn.Linear(2, 2)
    layer.bias = None
    assert [n for n, _ in layer.named_parameters()] == ["weight"]
    np.testing.assert_allclose(
        layer(mg.ones((1, 2))).numpy(), layer.weight.numpy().sum(1)[None], rtol=1e-6
    )


def test_a_value_with_a_graph_in_place_of_a_parameter_raises_with_a_fix():
    model = Two()
    with pytest.raises(errors.GradientError, match="map") as caught:
        model.scale = model.scale * 2.0
    assert "assign" in str(caught.value)
    assert isinstance(model.scale, nn.Parameter)


def test_a_plain_value_in_place_of_a_parameter_raises():
    model = Two()
    with pytest.raises(errors.ArgumentTypeError, match="assign"):
        model.scale = mg.variable([3.0])
    with pytest.raises(errors.ArgumentTypeError, match="wanted a module"):
        model.first = 3
    with pytest.raises(errors.ArgumentTypeError, match="wanted a buffer"):
        model.count = np.zeros(1)


def test_a_plain_variable_that_requires_gradients_raises():
    with pytest.raises(errors.ArgumentTypeError, match=r"nn\.Parameter"):
        nn.Module().w = mg.variable([1.0], requires_grad=True)


def test_state_of_a_recurrent_net_may_be_a_plain_attribute():
    model = Two()
    model.h = model(mg.ones((1, 3)))
    assert len(list(model.parameters())) == 5


@pytest.mark.parametrize("box", [list, tuple, lambda layers: dict(enumerate(layers))])
def test_modules_in_a_plain_collection_raise(box):
    model = nn.Module()
    model.layers = box([nn.Linear(2, 2)])
    with pytest.raises(errors.ArgumentTypeError, match=r"nn\.Module(List|Dict)"):
        list(model.parameters())


NESTED = {
    "list in a list": (lambda x: [[x]], "boxes[0][0]"),
    "dict of lists": (lambda x: {"a": [1, x]}, "boxes['a'][1]"),
    "set": (lambda x: {x}, "at boxes"),
    "tuple in a set": (lambda x: {(1, x)}, "at boxes[1]"),
    "five deep": (lambda x: [{"k": ([[x]],)}], "boxes[0]['k'][0][0][0]"),
}


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("make", [lambda: nn.Linear(2, 2), lambda: nn.Parameter([1.0])])
def test_what_nested_collections_hide_raises_and_says_where(make, name):
    box, place = NESTED[name]
    model = nn.Module()
    model.boxes = box(make())
    with pytest.raises(errors.ArgumentTypeError, match="would not be trained") as caught:
        list(model.parameters())
    assert place in str(caught.value)
    with pytest.raises(errors.ArgumentTypeError):
        mg.optim.SGD(model)


def test_what_a_wrapper_hides_raises():
    model = nn.Module()
    model.body = mg.compile(nn.Linear(2, 2))
    with pytest.raises(errors.ArgumentTypeError, match="a CompiledModule hides the Module"):
        mg.optim.SGD(model)


def test_wrappers_of_modules_that_are_part_of_a_model_are_left_alone():
    model = nn.Module()
    model.body = nn.Linear(2, 2)
    model.fast, model.whole, model.method = map(mg.compile, (model.body, model, model.body.forward))
    assert [name for name, _ in model.named_parameters()] == ["body.weight", "body.bias"]


def test_plain_collections_of_plain_values_are_left_alone():
    model = nn.Sequential(nn.Linear(2, 2))
    own = [1, "a", {"b": (2.0, None)}, {3}]
    own.append(own)
    model.notes = own
    assert len(list(model.parameters())) == 2


def test_a_module_in_itself_raises():
    model = nn.Sequential(nn.Linear(2, 2))
    with pytest.raises(errors.ArgumentError, match="contain itself"):
        model[0].parent = model
    assert [n for n, _ in model.named_modules()] == ["", "0"]


def test_missing_attribute_names_what_there_is():
    with pytest.raises(AttributeError, match="first, scale, count, second"):
        Two().third  # noqa: B018


def test_train_and_eval_reach_every_module():
    model = nn.Sequential(nn.Dropout(0.5), nn.Sequential(nn.Dropout(0.5)))
    assert model.eval() is model
    assert not any(m.training for m in model.modules())
    model.train()
    assert all(m.training for m in model.modules())


def test_eval_does_not_stop_recording():
    model = Two().eval()
    assert model(mg.ones((1, 3))).requires_grad


def test_freezing_stops_gradients_and_thawing_brings_them_back():
    model = Two()
    assert model.first.requires_grad_(False) is model.first
    model(mg.ones((1, 3))).sum().backward()
    assert model.first.weight.grad is None
    assert model.second.weight.grad is not None
    model.first.requires_grad_()
    model.zero_grad()
    assert model.second.weight.grad is None
    model(mg.ones((1, 3))).sum().backward()
    assert model.first.weight.grad is not None


def test_to_another_dtype_keeps_ids():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    ids = [p.id for p in model.parameters()]
    assert model.to("float64") is model
    assert [p.id for p in model.parameters()] == ids
    assert {x.dtype for x in (*model.parameters(), *model.buffers())} == {mg.float64}
    assert model(mg.ones((3, 2), dtype="float64")).dtype == mg.float64


def test_to_takes_what_is_wanted_by_name_too():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    assert model.to(device="simt") is model
    assert {x.device for x in (*model.parameters(), *model.buffers())} == {"simt"}
    model.to(dtype="float64").to(device="cpu")
    assert {(x.device, x.dtype) for x in model.parameters()} == {("cpu", mg.float64)}
    x = mg.ones((2,)).to(dtype="int64").to(device="simt")
    assert (x.device, x.dtype) == ("simt", mg.int64)


def test_to_names_what_it_cannot_take():
    model = nn.Linear(2, 2)
    for x in (model, mg.ones((2,))):
        with pytest.raises(errors.ArgumentTypeError, match=r"got: 'simt', 'float64'"):
            x.to("simt", dtype="float64")
        with pytest.raises(errors.ArgumentTypeError, match=r"wanted to\(.*device=None"):
            x.to("simt", "float64")
        with pytest.raises(errors.ArgumentTypeError, match="non_blocking"):
            x.to("simt", non_blocking=True)
        with pytest.raises(errors.DTypeError, match="or the name of a device"):
            x.to()
    with pytest.raises(errors.ArgumentTypeError, match="cannot be converted"):
        model.valid().to(device="simt")
    assert model.weight.device == "cpu"


def test_to_another_dtype_while_a_manager_holds_the_gradients():
    model, x = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1)), mg.ones((4, 2))
    manager = mg.GradManager(model.parameters())
    for dtype in ("float32", "float64"):
        model[0].to(dtype)
        with manager:
            y = model[1](model[0](x.to(dtype)).to("float32"))
            manager.backward(y.sum())
        grads = [p.grad.numpy().copy() for p in model.parameters()]
        np.testing.assert_allclose(grads[0], np.repeat(4 * model[1].weight.numpy().T, 2, 1))
        np.testing.assert_allclose(grads[3], [4.0])
        model.zero_grad()


def test_repr_shows_the_tree():
    text = repr(nn.Sequential(nn.Linear(3, 2), nn.Sequential(nn.ReLU())))
    assert text == "Sequential(\n  (0): Linear(3, 2)\n  (1): Sequential(\n    (0): ReLU()\n  )\n)"


def test_module_without_forward_says_so():
    with pytest.raises(NotImplementedError, match="define forward"):
        nn.Module()(mg.ones((1,)))


def test_sequential_is_a_list_of_modules():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    assert len(model) == 2
    assert model.append(nn.Linear(3, 1)) is model
    assert isinstance(model[-1], nn.Linear)
    assert [type(m).__name__ for m in model] == ["Linear", "ReLU", "Linear"]
    assert isinstance(model[:2], nn.Sequential)
    assert model[:2][0] is model[0]
    with pytest.raises(errors.BoundsError, match="from -3 to 2"):
        model[3]
    with pytest.raises(errors.ArgumentTypeError, match=r"nn\.ReLU"):
        nn.Sequential(nn.Linear(2, 2), mg.relu)
    with pytest.raises(errors.ArgumentTypeError, match=r"\(\*modules\)"):
        nn.Sequential([nn.Linear(2, 2)])


def test_module_list_registers_and_cannot_be_called():
    layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    assert [n for n, _ in layers.named_parameters()][-1] == "2.bias"
    assert len(nn.ModuleList(nn.ReLU(), nn.ReLU())) == 2
    with pytest.raises(errors.ArgumentTypeError, match="loop over it"):
        layers(mg.ones((1, 2)))


def test_register_buffer_and_parameter_by_name():
    model = nn.Module()
    model.register_buffer("steps", mg.zeros((1,)), persistent=False)
    model.register_parameter("w", nn.Parameter([1.0]))
    assert [n for n, _ in model.named_buffers()] == ["steps"]
    assert [n for n, _ in model.named_parameters()] == ["w"]
    assert model.state_dict().keys() == {"w"}


def test_pickle_raises_with_a_fix():
    import pickle

    with pytest.raises(errors.ArgumentTypeError, match="state_dict"):
        pickle.dumps(Two())
