"""Which parameters are updated: following, orphans, replacing, adding, groups."""

import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors, nn


class Scale(nn.Module):
    def __init__(self, value=3.0):
        self.w = nn.Parameter([value])

    def forward(self, x):
        return x * self.w


def train(model, optimizer, steps=1, clip=None):
    """Steps on the mean of (w x - 1)^2; clip(model) runs after each. The values of w."""
    seen = []
    for _ in range(steps):
        optimizer.zero_grad()
        ((model(mg.variable([1.0, 2.0])) - 1.0) ** 2).mean().backward()
        optimizer.step()
        seen.append(model.w.item())
        if clip:
            clip(model)
    return seen


def replace_by_clipped(model):
    model.w = nn.Parameter(model.w.clip(-10.0, 10.0))


def test_orphan_of_a_list_raises_and_names_it():
    model = nn.Sequential(Scale())
    optimizer = mg.optim.Adam(model.parameters())
    old = model[0].w
    replace_by_clipped(model[0])
    for _ in range(2):
        with pytest.raises(errors.OrphanParameterError, match=r"'0\.w'") as caught:
            optimizer.step()
    assert caught.value.parameters == [old]
    assert "p.map(f)" in str(caught.value)


def test_orphan_of_a_followed_model_raises_when_state_would_be_lost():
    model = Scale()
    optimizer = mg.optim.Adam(model)
    train(model, optimizer)
    replace_by_clipped(model)
    model(mg.ones((1,))).sum().backward()
    before = model.w.item()
    for _ in range(2):
        with pytest.raises(errors.OrphanParameterError, match="'w'"):
            optimizer.step()
    assert model.w.item() == before


def test_followed_model_without_state_takes_replacements():
    model = Scale()
    optimizer = mg.optim.SGD(model, learning_rate=0.1)
    train(model, optimizer)
    model.w = nn.Parameter([5.0])
    assert train(model, optimizer)[0] < 5.0
    model = nn.Sequential(nn.Linear(2, 2))
    optimizer = mg.optim.Adam(model)
    model[0] = nn.Linear(2, 3)  # before the first step there is no state to lose
    model(mg.ones((1, 2))).sum().backward()
    before = model[0].bias.numpy().copy()
    optimizer.step()
    assert np.all(model[0].bias.numpy() != before)


def test_ignored_orphan_in_a_list_trains_and_the_model_stands_still():
    model = Scale()
    optimizer = mg.optim.Adam(model.parameters(), learning_rate=0.1, on_orphan="ignore")
    seen = train(model, optimizer, 5, replace_by_clipped)
    assert seen[0] == pytest.approx(2.9)
    assert seen[1:] == [seen[0]] * 4


def test_ignored_orphan_of_a_followed_model_turns_adam_into_steps_of_the_rate():
    model = Scale()
    optimizer = mg.optim.Adam(model, learning_rate=0.1, on_orphan="ignore")
    seen = [3.0, *train(model, optimizer, 5, replace_by_clipped)]
    np.testing.assert_allclose(np.diff(seen), -0.1, rtol=1e-5)
    assert len(optimizer.state) == 1


def test_map_keeps_the_state_that_replacing_loses():
    def run(clip):
        model = Scale()
        optimizer = mg.optim.Adam(model, learning_rate=0.1, on_orphan="ignore")
        return train(model, optimizer, 20, clip)

    plain = run(None)
    assert run(lambda m: m.w.map(lambda v: v.clip(-10.0, 10.0))) == plain
    assert run(lambda m: mg.optim.clip_params_(m, -10.0, 10.0)) == plain
    assert run(replace_by_clipped) != plain


@pytest.mark.parametrize("given", [lambda m: m, lambda m: m.parameters()])
def test_orphan_warns_once(given):
    model = Scale()
    optimizer = mg.optim.Adam(given(model), on_orphan="warn")
    train(model, optimizer)
    replace_by_clipped(model)
    with pytest.warns(UserWarning, match="'w' is no longer part of a model"):
        optimizer.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step()


def test_parameters_of_a_dead_model_are_orphans_of_a_list():
    model = Scale()
    optimizer = mg.optim.SGD(list(model.parameters()), learning_rate=0.1)
    del model
    with pytest.raises(errors.OrphanParameterError, match="'w'"):
        optimizer.step()


def test_parameters_that_never_had_a_module_are_no_orphans():
    p = nn.Parameter([1.0])
    p.grad = mg.ones((1,))
    mg.optim.SGD([p], learning_rate=0.5).step()
    assert p.item() == 0.5


def test_late_parameters_are_followed_with_counts_of_their_own():
    model = nn.Sequential(nn.Linear(2, 2))
    optimizer = mg.optim.Adam(model, learning_rate=0.1)
    for late in (False, True):
        if late:
            model.append(nn.Linear(2, 1))
        optimizer.zero_grad()
        model(mg.ones((1, 2))).sum().backward()
        optimizer.step()
    assert optimizer.state[model[0].weight.id]["step"].item() == 2
    assert optimizer.state[model[1].weight.id]["step"].item() == 1
    assert len(optimizer.parameters) == 4


def test_removed_module_that_lives_on_is_left_alone():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    optimizer = mg.optim.Adam(model, learning_rate=0.1)
    head = model[1]
    for p in model.parameters():
        p.grad = mg.ones(p.shape)
    optimizer.step()
    delattr(model, "1")
    before = head.weight.numpy().copy()
    optimizer.step()
    np.testing.assert_array_equal(head.weight.numpy(), before)


@pytest.mark.parametrize("given", [lambda m: m, lambda m: m.parameters()])
@pytest.mark.parametrize("state", ["keep", "drop"])
def test_replace_keeps_or_drops_state(given, state):
    def run(replaces):
        model = Scale()
        optimizer = mg.optim.Adam(given(model), learning_rate=0.1)
        seen = train(model, optimizer, 4)
        if replaces:
            old = model.w
            model.w = nn.Parameter(old.detach())
            optimizer.replace(old, model.w, state=state)
            assert (model.w.id in optimizer.state) == (state == "keep")
            assert old.id not in optimizer.state
        return seen + train(model, optimizer, 4)

    assert (run(True) == run(False)) == (state == "keep")


def test_replace_in_either_order_with_setting_the_attribute():
    model = Scale()
    optimizer = mg.optim.Adam(model.parameters(), learning_rate=0.1)
    train(model, optimizer, 3)
    old, new = model.w, nn.Parameter([7.0])
    optimizer.replace(old, new)
    model.w = new
    train(model, optimizer)
    assert optimizer.state[new.id]["step"].item() == 4


def test_replace_that_makes_no_sense_raises():
    model = Scale()
    optimizer = mg.optim.Adam(model)
    train(model, optimizer)
    old = model.w
    with pytest.raises(errors.ShapeError, match="equal shapes"):
        optimizer.replace(old, nn.Parameter([1.0, 2.0]))
    with pytest.raises(errors.ArgumentError, match="'keep' or 'drop'"):
        optimizer.replace(old, nn.Parameter([1.0]), state="copy")
    with pytest.raises(errors.ArgumentError, match="not updated"):
        optimizer.replace(nn.Parameter([1.0]), old)
    with pytest.raises(errors.ArgumentTypeError, match="two Parameters"):
        optimizer.replace(old, mg.ones((1,)))
    assert optimizer.state[old.id]["step"].item() == 1


def test_add_takes_one_more_parameter():
    p, q = nn.Parameter([1.0]), nn.Parameter([1.0])
    optimizer = mg.optim.SGD([p], learning_rate=0.5)
    optimizer.add(q)
    q.grad = mg.ones((1,))
    optimizer.step()
    assert (p.item(), q.item()) == (1.0, 0.5)
    with pytest.raises(errors.ArgumentError, match="updated already"):
        optimizer.add(q)
    with pytest.raises(errors.ArgumentTypeError, match="wanted a Parameter"):
        optimizer.add(mg.ones((1,)))


def test_duplicates_raise_and_tied_ones_count_once():
    p = nn.Parameter([1.0], name="p")
    with pytest.raises(errors.ArgumentError, match="'p' was given twice"):
        mg.optim.SGD([p, p], learning_rate=0.1)
    with pytest.raises(errors.ArgumentError, match="given twice"):
        mg.optim.SGD([{"parameters": [p]}, {"parameters": [p]}], learning_rate=0.1)
    model = nn.Sequential(Scale(), Scale())
    model[1].w = model[0].w
    optimizer = mg.optim.SGD(model, learning_rate=1.0)
    model[0].w.grad = mg.ones((1,))
    optimizer.step()
    assert model[1].w.item() == 2.0
    assert len(mg.optim.SGD([model[0], model[1]], learning_rate=1.0).parameters) == 1


def test_groups_have_hyperparameters_of_their_own():
    body, head = nn.Linear(2, 2), nn.Linear(2, 1)
    optimizer = mg.optim.SGD(
        [{"parameters": body, "learning_rate": 0.5}, {"params": head.parameters()}],
        learning_rate=0.1,
    )
    for p in optimizer.parameters:
        p.assign(mg.zeros(p.shape))
        p.grad = mg.ones(p.shape)
    optimizer.step()
    np.testing.assert_allclose(body.weight.numpy(), -0.5)
    np.testing.assert_allclose(head.weight.numpy(), -0.1)
    assert [g.learning_rate for g in optimizer.groups] == [0.5, 0.1]
    optimizer.groups[1].learning_rate = 1.0
    optimizer.step()
    np.testing.assert_allclose(head.bias.numpy(), -1.1)
    optimizer.learning_rate = 0.25
    assert [g.learning_rate for g in optimizer.groups] == [0.25, 0.25]
    body.extra = nn.Parameter([1.0])
    assert [p.id for p in optimizer.parameters][2] == body.extra.id


def test_learning_rate_lives_in_an_array():
    optimizer = mg.optim.SGD([nn.Parameter([1.0])], learning_rate=0.1)
    array = optimizer.groups[0].learning_rate_array
    version = array.version
    optimizer.learning_rate = 0.5
    assert array.item() == 0.5
    assert array.version == version + 1
    optimizer.learning_rate *= 0.5
    assert array.item() == optimizer.learning_rate == 0.25
    optimizer.learning_rate = mg.variable(0.125)
    assert optimizer.learning_rate == 0.125


def test_named_parameters_are_accepted_and_given():
    model = nn.Linear(2, 1)
    optimizer = mg.optim.SGD(model.named_parameters(), learning_rate=0.1)
    assert [name for name, _ in optimizer.named_parameters()] == ["weight", "bias"]
    two = mg.optim.SGD([*nn.Linear(2, 1).parameters(), nn.Parameter([1.0])], on_orphan="ignore")
    assert [name for name, _ in two.named_parameters()] == ["weight", "bias", "parameter_2"]


def test_zero_grad_reaches_late_parameters():
    model = nn.Sequential(nn.Linear(2, 2))
    optimizer = mg.optim.SGD(model, learning_rate=0.1)
    model.append(nn.Linear(2, 1))
    model(mg.ones((1, 2))).sum().backward()
    optimizer.zero_grad()
    assert all(p.grad is None for p in model.parameters())


def test_repr_shows_hyperparameters():
    text = repr(mg.optim.Adam(nn.Linear(2, 1), learning_rate=0.5))
    assert text.startswith("Adam(")
    assert "2 parameters" in text
    assert "learning_rate=0.5" in text


P = nn.Parameter([1.0])
BAD = {
    "empty list": (lambda: mg.optim.SGD([]), errors.ArgumentError, "empty list"),
    "used generator": (lambda: mg.optim.SGD(iter(())), errors.ArgumentError, "only once"),
    "no parameters": (lambda: mg.optim.SGD(nn.ReLU()), errors.ArgumentError, "without parameters"),
    "Variable": (
        lambda: mg.optim.SGD([mg.variable([1.0], requires_grad=True)]),
        errors.ArgumentTypeError, r"nn\.Parameter\(x\)",
    ),
    "number": (lambda: mg.optim.SGD([3]), errors.ArgumentTypeError, "int"),
    "None": (lambda: mg.optim.SGD(None), errors.ArgumentTypeError, "NoneType"),
    "state": (
        lambda: mg.optim.SGD(nn.Linear(1, 1).state_dict()), errors.ArgumentTypeError, "str"
    ),
    "mixed groups": (
        lambda: mg.optim.SGD([{"parameters": [P]}, P]), errors.ArgumentTypeError, "list of dicts"
    ),
    "group without parameters": (
        lambda: mg.optim.SGD([{"learning_rate": 1.0}]), errors.ArgumentTypeError, "learning_rate"
    ),
    "group with an unknown name": (
        lambda: mg.optim.SGD([{"parameters": [P], "lr": 1.0}]), errors.ArgumentError, "lr"
    ),
    "negative rate": (
        lambda: mg.optim.SGD([P], learning_rate=-0.1), errors.ArgumentError, "learning_rate 0 or"
    ),
    "rate NaN": (
        lambda: mg.optim.SGD([P], learning_rate=float("nan")), errors.ArgumentError, "finite"
    ),
    "rate text": (
        lambda: mg.optim.SGD([P], learning_rate="fast"), errors.ArgumentTypeError, "a number"
    ),
    "beta 1": (lambda: mg.optim.Adam([P], betas=(0.9, 1.0)), errors.ArgumentError, "below 1"),
    "one beta": (lambda: mg.optim.Adam([P], betas=0.9), errors.ArgumentTypeError, "two numbers"),
    "negative eps": (lambda: mg.optim.Adam([P], eps=-1.0), errors.ArgumentError, "eps 0 or more"),
    "negative decay": (
        lambda: mg.optim.AdamW([P], weight_decay=-1.0), errors.ArgumentError, "weight_decay"
    ),
    "alpha 2": (lambda: mg.optim.RMSprop([P], alpha=2.0), errors.ArgumentError, "alpha"),
    "Nesterov without momentum": (
        lambda: mg.optim.SGD([P], nesterov=True), errors.ArgumentError, "momentum above 0"
    ),
    "centered 1": (
        lambda: mg.optim.RMSprop([P], centered=1), errors.ArgumentTypeError, "True or False"
    ),
    "lr": (lambda: mg.optim.SGD([P], lr=0.1), errors.ArgumentTypeError, "learning_rate="),
    "lr written": (
        lambda: setattr(mg.optim.SGD([P]), "lr", 0.1), AttributeError, "called learning_rate"
    ),
    "param_groups": (
        lambda: mg.optim.SGD([P]).param_groups, AttributeError, "called groups"
    ),
    "on_orphan": (
        lambda: mg.optim.SGD([P], on_orphan="no"), errors.ArgumentError, "'raise', 'warn'"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_argument_raises(name):
    make, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        make()


def test_bad_hyperparameter_written_later_raises_and_changes_nothing():
    optimizer = mg.optim.SGD([nn.Parameter([1.0])], learning_rate=0.1, momentum=0.9, nesterov=True)
    with pytest.raises(errors.ArgumentError):
        optimizer.learning_rate = -1.0
    with pytest.raises(errors.ArgumentError, match="momentum above 0"):
        optimizer.groups[0].momentum = 0.0
    with pytest.raises(AttributeError, match="it has learning_rate"):
        optimizer.groups[0].rate = 1.0
    with pytest.raises(AttributeError, match="it has learning_rate"):
        optimizer.groups[0].rate  # noqa: B018
    assert (optimizer.learning_rate, optimizer.groups[0].momentum) == (0.1, 0.9)


def test_a_rate_that_a_compiled_step_wrote_stays_when_another_number_is_set():
    optimizer = mg.optim.SGD(Scale().parameters(), learning_rate=0.5)
    group = optimizer.groups[0]
    group.learning_rate_array.fill_(0.25)  # as a schedule inside a compiled step does
    group.momentum = 0.5
    assert group.learning_rate == 0.25
