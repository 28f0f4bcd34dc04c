"""ModuleDict: modules under names of one's own."""

import pytest

import minigrad as mg
from minigrad import errors, nn


def heads():
    return nn.ModuleDict({"digit": nn.Linear(2, 3), "sign": nn.Linear(2, 1)})


def test_its_modules_are_parts_of_the_model():
    model = nn.Module()
    model.heads = heads()
    names = [name for name, _ in model.named_parameters()]
    assert names == [f"heads.{n}.{p}" for n in ("digit", "sign") for p in ("weight", "bias")]
    assert model.heads["sign"](mg.ones((4, 2))).shape == (4, 1)


def test_it_reads_like_a_dict():
    model = heads()
    assert len(model) == 2
    assert list(model) == ["digit", "sign"]
    assert "sign" in model
    assert "other" not in model
    assert dict(model.items())["digit"] is model.values()[0] is model["digit"]
    model.update([("other", nn.ReLU())])
    model["sign"] = nn.Tanh()
    del model["digit"]
    assert model.keys() == ("sign", "other")
    assert list(model.parameters()) == []
    assert list(nn.ModuleDict(a=nn.ReLU(), b=nn.ReLU())) == ["a", "b"]


def test_views_clones_and_states_have_its_names():
    model = heads()
    assert model.valid()["sign"].training is False
    assert model.clone().keys() == model.keys()
    again = heads()
    again.load_state_dict(model.state_dict())
    assert again["sign"].bias.tolist() == model["sign"].bias.tolist()


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: heads()["x"], KeyError, "there is digit, sign"),
        (lambda: heads().__delitem__("x"), errors.MissingNameError, "there is digit, sign"),
        (lambda: nn.ModuleDict({"a.b": nn.ReLU()}), errors.ArgumentTypeError, "without dots"),
        (lambda: nn.ModuleDict({1: nn.ReLU()}), errors.ArgumentTypeError, "a str"),
        (lambda: nn.ModuleDict(a=mg.relu), errors.ArgumentTypeError, "wanted Modules"),
        (lambda: nn.ModuleDict(keys=nn.ReLU()), errors.ArgumentError, "another name"),
        (lambda: nn.ModuleDict(training=nn.ReLU()), errors.ArgumentError, "another name"),
        (lambda: heads()(mg.ones((1, 2))), errors.ArgumentTypeError, "take one in forward"),
    ],
)
def test_bad_use_raises(make, kind, message):
    with pytest.raises(kind, match=message):
        make()
