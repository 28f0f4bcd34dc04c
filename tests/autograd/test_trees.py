"""grad, vjp, jvp of dicts, lists and dataclasses; and models as functions of their parameters."""

import collections
import dataclasses
import typing

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors, nn


@dataclasses.dataclass(frozen=True)
class Weights:
    w: typing.Any
    b: typing.Any
    name: str = "n"
    steps: int = 3


class Pair(typing.NamedTuple):
    w: typing.Any
    b: typing.Any


def plain(tree):
    """The numbers of a tree of Variables."""
    if isinstance(tree, mg.Variable):
        return tree.tolist()
    if isinstance(tree, dict):
        return {k: plain(v) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [plain(v) for v in tree]
    return tree


W, B = mg.variable([1.0, 2.0]), mg.variable(3.0)
TREES = {  # tree, how w and b are read from it, the form of gradients (w, b)
    "dict": ({"w": W, "b": B}, lambda t: (t["w"], t["b"]), lambda w, b: {"w": w, "b": b}),
    "list": ([W, B], lambda t: t, lambda w, b: [w, b]),
    "tuple": ((W, B), lambda t: t, lambda w, b: (w, b)),
    "named tuple": (Pair(W, B), lambda t: (t.w, t.b), Pair),
    "dataclass": (Weights(W, B), lambda t: (t.w, t.b), lambda w, b: Weights(w, b, None, None)),
    "nested": (
        {"one": [W], "two": Pair({"b": B}, None)},
        lambda t: (t["one"][0], t["two"].w["b"]),
        lambda w, b: {"one": [w], "two": Pair({"b": b}, None)},
    ),
    "with ints": (
        {"w": W, "b": B, "steps": 3, "index": mg.variable([1])},
        lambda t: (t["w"], t["b"]),
        lambda w, b: {"w": w, "b": b, "steps": None, "index": None},
    ),
    "of numbers": (
        {"w": [1.0, 2.0], "b": 3.0}, lambda t: (t["w"], t["b"]), lambda w, b: {"w": w, "b": b},
    ),
    "of arrays": (
        {"w": np.array([1.0, 2.0], "f4"), "b": np.float32(3.0)},
        lambda t: (t["w"], t["b"]),
        lambda w, b: {"w": w, "b": b},
    ),
    "OrderedDict": (
        collections.OrderedDict(w=W, b=B), lambda t: (t["w"], t["b"]),
        lambda w, b: collections.OrderedDict(w=w, b=b),
    ),
}  # fmt: skip


def function(read):
    def f(tree):
        w, b = read(tree)
        assert isinstance(w, mg.Variable)
        assert isinstance(b, mg.Variable)
        return (w * w).sum() * b

    return f


@pytest.mark.parametrize("name", TREES)
def test_gradient_of_a_tree_has_its_form(name):
    tree, read, form = TREES[name]
    g = mg.grad(function(read))(tree)
    assert type(g) is type(tree)
    assert plain(dataclasses.asdict(g) if name == "dataclass" else g) == plain(
        dataclasses.asdict(form([6.0, 12.0], 5.0))
        if name == "dataclass"
        else form([6.0, 12.0], 5.0)
    )
    value, again = mg.value_and_grad(function(read))(tree)
    assert value.item() == 15.0
    assert plain(read(again)[0]) == [6.0, 12.0]


@pytest.mark.parametrize("name", TREES)
def test_vjp_and_jvp_of_a_tree(name):
    tree, read, form = TREES[name]
    y, pull = mg.vjp(function(read), tree)
    assert y.item() == 15.0
    w, b = read(pull(mg.variable(2.0)))
    assert (w.tolist(), b.tolist()) == ([12.0, 24.0], 10.0)
    tangents = form(mg.variable([1.0, 0.0]), mg.variable(10.0))
    argument, direction = (tree,), (tangents,)  # a tuple alone would be two arguments
    y, dy = mg.jvp(function(read), argument, direction)
    assert dy.item() == 6.0 + 50.0
    if not isinstance(tree, (list, tuple)):
        assert mg.jvp(function(read), tree, tangents)[1].item() == 56.0


def test_derivatives_of_trees_nest_and_mix_with_plain_arguments():
    def f(p, x):
        return (p["w"] * p["w"] * x).sum()

    x = mg.variable([2.0, 3.0])
    dp, dx = mg.grad(f, (0, 1))({"w": W}, x)
    assert (plain(dp), dx.tolist()) == ({"w": [4.0, 12.0]}, [1.0, 4.0])
    second = mg.grad(lambda w: mg.grad(f)({"w": w}, x)["w"].sum())(W)
    assert second.tolist() == [4.0, 6.0]
    assert mg.hvp(lambda p: f(p, x), {"w": W}, {"w": W})["w"].tolist() == [4.0, 12.0]
    assert mg.jacobian(lambda p: p["w"] * x)({"w": W})["w"].tolist() == [[2.0, 0.0], [0.0, 3.0]]
    outer = mg.variable([1.0, 2.0], requires_grad=True)
    mg.grad(f)({"w": outer}, x)["w"].sum().backward()
    assert outer.grad.tolist() == [4.0, 6.0]


def test_lists_of_numbers_are_data_as_before():
    assert mg.grad(lambda x: (x * x).sum())([1.0, 2.0]).tolist() == [2.0, 4.0]
    assert mg.grad(lambda x: (x * x).sum())([[1.0], [2.0]]).tolist() == [[2.0], [4.0]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mg.grad(lambda p: p["w"].sum())({}), "a Variable of floats, at least one"),
        (lambda: mg.grad(lambda p: p["n"])({"n": 3}), "a Variable of floats, at least one"),
        (lambda: mg.jvp(lambda p: p["w"], {"w": W}, {"v": W}), "a dict with w"),
        (lambda: mg.jvp(lambda p: p["w"], {"w": W}, [W]), "a dict with w"),
        (lambda: mg.grad(lambda a, b: a)(W), "missing 1 required positional argument"),
    ],
)
def test_wrong_trees_say_what_is_wanted(call, message):
    with pytest.raises(errors.ArgumentTypeError, match=message):
        call()


# -- functional_call ----------------------------------------------------------------------------


def model():
    mg.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def test_functional_call_is_the_model_at_other_parameters():
    net, x = model(), mg.randn((5, 3))
    parameters = dict(net.named_parameters())
    before = [(p, p.tolist()) for p in net.parameters()]
    g = mg.grad(lambda p: mg.functional_call(net, p, x).square().sum())(parameters)
    net(x).square().sum().backward()
    for name, p in parameters.items():
        np.testing.assert_allclose(g[name].numpy(), p.grad.numpy(), 1e-6)
    doubled = {name: p.detach() * 2 for name, p in parameters.items()}
    wanted = model()
    for p in wanted.parameters():
        p.map(lambda v: v * 2)
    np.testing.assert_allclose(
        mg.functional_call(net, doubled, x).detach().numpy(), wanted(x).detach().numpy(), 1e-6
    )
    assert all(
        p is q and p.tolist() == v for q, (p, v) in zip(net.parameters(), before, strict=True)
    )


def test_functional_call_of_some_parameters_buffers_and_keywords():
    class Scaled(nn.Module):
        def __init__(self):
            self.w = nn.Parameter([2.0])
            self.tied = self.w
            self.register_buffer("offset", mg.variable([1.0]))

        def forward(self, x, times=1):
            return (x * self.w * self.tied + self.offset) * times

    net, x = Scaled(), mg.variable([3.0])
    assert mg.functional_call(net, {}, x).tolist() == [13.0]
    w, offset = mg.variable([1.0]), mg.variable([5.0])
    assert mg.functional_call(net, {"w": w}, x, times=2).tolist() == [8.0]
    assert mg.functional_call(net, {"offset": offset}, x).tolist() == [17.0]
    assert net(x).tolist() == [13.0]


def test_model_is_whole_again_after_an_error():
    net = model()
    before = list(net.parameters())
    with pytest.raises(errors.ShapeError):
        mg.functional_call(net, {n: p.detach() for n, p in net.named_parameters()}, mg.ones((2, 7)))
    assert all(p is q for p, q in zip(net.parameters(), before, strict=True))


def test_functional_call_compiles():
    net, x = model(), mg.randn((5, 3))
    parameters = {name: p.detach() for name, p in net.named_parameters()}

    def step(p, x):
        return mg.grad(lambda p: mg.functional_call(net, p, x).square().mean())(p)

    compiled = mg.compile(step)
    for k in range(3):
        given = {name: p * (k + 1.0) for name, p in parameters.items()}
        got, wanted = compiled(given, x), step(given, x)
        for name in parameters:
            np.testing.assert_allclose(got[name].numpy(), wanted[name].numpy(), 1e-4, 1e-6)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda n, p, x: mg.functional_call(n, {"q": x}, x), errors.MissingNameError, "0.weight"),
        (lambda n, p, x: mg.functional_call(n, {"0.bias": x}, x), errors.ShapeError, "0.bias"),
        (
            lambda n, p, x: mg.functional_call(n, {"0.bias": 1}, x),
            errors.ArgumentTypeError,
            "a Var",
        ),
        (lambda n, p, x: mg.functional_call(n, list(p), x), errors.ArgumentTypeError, "a dict"),
        (lambda n, p, x: mg.functional_call(mg.exp, p, x), errors.ArgumentTypeError, "a Module"),
        (lambda n, p, x: mg.functional_call(n, p, (x,)), errors.ArgumentTypeError, "[*]args"),
        (lambda n, p, x: mg.functional_call(n.valid(), p, x), errors.ArgumentTypeError, "train"),
        (lambda n, p, x: mg.functional_call(n), errors.ArgumentTypeError, "parameters"),
    ],
)
def test_wrong_functional_calls_say_what_is_wanted(call, error, message):
    net = model()
    with pytest.raises(error, match=message):
        call(net, dict(net.named_parameters()), mg.ones((2, 3)))
