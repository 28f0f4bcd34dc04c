"""Names and arguments brought from elsewhere: the error says what they are called here."""

import pytest

import minigrad as mg
from minigrad import errors, nn


class Net(nn.Module):
    def __init__(self, hidden, depth=1):
        self.hidden, self.depth = hidden, depth


class Open(nn.Module):
    def __init__(self, **options):
        self.options = options


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Linear(in_features=3, outputs=2), "inputs=, as it is called here"),
        (lambda: nn.ReLU(inplace=True), "inplace\n(.*\n)*.*do not write to their input"),
        (lambda: nn.LeakyReLU(negative_slope=0.1), "slope="),
        (lambda: nn.Softmax(dim=1), "axis="),
        (lambda: nn.Tanh(dim=1), "takes no arguments"),
        (lambda: nn.Linear(3, 2, device="cuda"), "leave it out"),
        (lambda: nn.Linear(3, 2, biass=True), "it takes inputs, outputs, bias, dtype"),
        (lambda: nn.TransformerBlock(8, nhead=2), "heads="),
        (lambda: nn.LayerNorm(normalized_shape=4), "size="),
        (lambda: Net(hiden=3), "it takes hidden, depth"),
        (lambda: nn.Linear(2, 2).zero_grad(set_to_none=True), "always sets .grad to None"),
        (lambda: nn.Linear(2, 2).zero_grad(other=True), "takes no arguments"),
    ],
)
def test_unknown_argument_raises_and_names_what_there_is(make, message):
    with pytest.raises(errors.ArgumentTypeError, match=message):
        make()


def test_decorated_and_keyword_only_arguments_are_taken():
    import functools

    def plain(function):
        @functools.wraps(function)
        def inner(self, **given):
            return function(self, given.pop("extra", 0) + given["hidden"])

        return inner

    class Decorated(Net):
        __init__ = plain(Net.__init__)

    class Only(nn.Module):
        def __init__(self, *, width: "Undefined" = 2):  # noqa: F821
            self.width = width

    assert Decorated(hidden=1, extra=2).hidden == 3
    assert Only(width=5).width == 5
    with pytest.raises(errors.ArgumentTypeError, match="it takes width"):
        Only(breadth=5)


def test_layers_with_open_arguments_of_their_own_take_them():
    assert Open(inplace=True, in_features=3).options == {"inplace": True, "in_features": 3}
    assert Net(hidden=3).depth == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("functional", "mg.relu"),
        ("CrossEntropyLoss", "mg.cross_entropy"),
        ("MSELoss", "mg.mse"),
        ("utils", "mg.optim.clip_grad_norm_"),
        ("BatchNorm", "BatchNorm2d"),
        ("Liner", "did you mean Linear"),
        ("Relu", "did you mean ReLU"),
        ("Conv3d", "did you mean Conv"),
        ("Zebra", r"dir\(mg.nn\)"),
    ],
)
def test_missing_layer_says_what_it_is_called_here(name, message):
    with pytest.raises(AttributeError, match=message):
        getattr(nn, name)
    assert not hasattr(nn, "__missing__")


def test_hints_name_what_exists():
    import re

    from minigrad.hints import NAMES

    for hint in NAMES["mg.nn"].values():
        for path in re.findall(r"mg\.[\w.]*\w", hint):
            found = mg
            for part in path.split(".")[1:]:
                found = getattr(found, part)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("double", "to\\('float64'\\)"),
        ("float", "to\\('float32'\\)"),
        ("apply", "model.modules"),
        ("cuda", "model.to\\('cuda'\\)"),
        ("add_module", "setattr"),
    ],
)
def test_missing_method_of_a_module_says_what_to_write(name, message):
    with pytest.raises(AttributeError, match=message):
        getattr(nn.Linear(2, 2), name)


def test_attributes_with_such_names_are_ones_own():
    model = nn.Module()
    model.apply = 3
    assert model.apply == 3
