"""Random numbers, and what draws them: the same for the same seed, however the work is cut."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.devices.cpu import structural
from minigrad.devices.threads import threads
from minigrad.ops.base import registry
from minigrad.ops.creation import Generator
from tests.slow import slow_path

DRAWS = {
    "rand": lambda shape, g: mg.rand(shape, generator=g),
    "rand_float64": lambda shape, g: mg.rand(shape, dtype="float64", generator=g),
    "randn": lambda shape, g: mg.randn(shape, generator=g),
    "randn_float64": lambda shape, g: mg.randn(shape, dtype="float64", generator=g),
    "randint": lambda shape, g: mg.randint(-3, 12, shape, generator=g),
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("size", [0, 1, 2, 3, 5, 1001])
def test_random_numbers_depend_on_seed_and_place_alone(name, size):
    draw = DRAWS[name]
    first = draw((size,), Generator(5)).numpy()
    np.testing.assert_array_equal(draw((size,), Generator(5)).numpy(), first)
    longer = draw((size + 7,), Generator(5)).numpy()
    np.testing.assert_array_equal(longer[:size], first)


@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers_cut_into_ranges_are_those_of_one_range(name, monkeypatch):
    draw = DRAWS[name]
    whole = draw((999,), Generator(3)).numpy()
    monkeypatch.setattr(structural, "SPLIT", 1)
    monkeypatch.setattr(threads, "count", 7)  # ranges of 142 and 143: cut within blocks
    np.testing.assert_array_equal(draw((999,), Generator(3)).numpy(), whole)


def test_consecutive_draws_differ_and_manual_seed_repeats_them():
    mg.manual_seed(1)
    a, b = mg.rand((50,)).numpy(), mg.rand((50,)).numpy()
    assert not np.intersect1d(a, b).size
    mg.manual_seed(1)
    np.testing.assert_array_equal(mg.rand((50,)).numpy(), a)


def test_randn_has_mean_0_and_variance_1():
    x = mg.randn((100_000,), generator=Generator(0)).numpy()
    assert abs(x.mean()) < 0.02
    assert abs(x.var() - 1) < 0.02


def test_randint_is_within_its_bounds_and_reaches_them():
    x = mg.randint(-2, 3, (1000,), generator=Generator(0)).numpy()
    assert set(x.tolist()) == {-2, -1, 0, 1, 2}


def test_randperm_is_a_permutation():
    assert sorted(mg.randperm(100).tolist()) == list(range(100))


def test_dropout_keeps_the_mean_and_scales_what_stays():
    x = mg.ones((100_000,))
    y = mg.dropout(x, 0.25, generator=Generator(0)).numpy()
    assert set(np.unique(y)) == {0.0, np.float32(1 / 0.75)}
    assert abs((y == 0).mean() - 0.25) < 0.01


def test_dropout_backward_uses_the_same_mask_and_stores_none():
    x = mg.ones((1000,), requires_grad=True)
    y = mg.dropout(x, 0.5, generator=Generator(2))
    assert y.node.saved_bytes == 0
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.numpy())


def test_dropout_when_not_training_or_of_0_is_its_input():
    x = mg.ones((3,))
    assert mg.dropout(x, 0.9, training=False) is x
    assert mg.dropout(x, 0.0) is x
    assert mg.dropout(x, 1.0).tolist() == [0.0, 0.0, 0.0]


def test_dropout_twice_in_one_graph_draws_two_masks():
    x = mg.ones((1000,))
    source = Generator(4)
    a, b = (mg.dropout(x, 0.5, generator=source).numpy() for _ in range(2))
    assert (a != b).mean() > 0.3


def dropped(x, generator):
    """The bits of what dropout gives, and of its gradients of both orders."""
    y = mg.dropout(x, 0.3, generator=generator)
    (first,) = mg.gradients((y * y).sum(), [x], retain_graph=True)
    (again,) = mg.gradients((y * y).sum(), [x], create_graph=True)
    (second,) = mg.gradients((again * again).sum(), [x])
    return [v.detach().numpy().tobytes() for v in (y, first, again, second)]


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((3, 4), "float32"), ((300, 400), "float64"), ((5,), "float16"), ((0, 2), "float32")],
)
def test_dropout_draws_other_numbers_in_each_of_the_same_calls(shape, dtype, count, monkeypatch):
    monkeypatch.setattr(threads, "count", count)
    for turned in (False, True):
        x = mg.rand(shape, dtype)
        x = (x.T if turned else x).detach().requires_grad_()
        for seed in (3, 4, 2**62):
            fast, slow = Generator(seed), Generator(seed)
            for k in range(6):
                with slow_path():
                    expected = dropped(x, slow)
                assert dropped(x, fast) == expected, (turned, seed, k)
                assert fast.counter == slow.counter == (k + 1) * x.size


def test_dropout_notes_one_route_for_all_calls():
    x = mg.ones((3, 5), requires_grad=True)
    op = registry[mg.dropout(x, 0.5).node.op]
    op.calls.clear()
    for k in range(1000):
        mg.dropout(x, 0.5).sum().backward()
        mg.dropout(x, 0.5, generator=Generator(k)).sum().backward()
    y = mg.dropout(x, 0.5)
    for table in (op.calls, y.node.plan.routes):
        assert [call.__code__.co_name for call in table.values()] == ["route"]
    assert (x.grad.numpy() > 0).all()


def test_dropout_through_views_equals_contiguous():
    x = np.arange(12.0).reshape(3, 4)
    a = mg.dropout(mg.variable(x), 0.5, generator=Generator(1)).numpy()
    b = mg.dropout(mg.variable(np.ascontiguousarray(x.T)).T, 0.5, generator=Generator(1)).numpy()
    np.testing.assert_array_equal(a, b)


def test_categorical_draws_classes_with_their_probabilities():
    p = np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]], "f4")
    with np.errstate(divide="ignore"):
        logits = mg.variable(np.log(p) + 3.0)  # a common offset does not matter
    mg.manual_seed(4)
    drawn = mg.random.categorical(logits, (20_000,))
    assert (drawn.shape, drawn.dtype) == ((20_000, 2), mg.int64)
    counts = np.stack([np.bincount(column, minlength=3) for column in drawn.numpy().T])
    expected = 20_000 * p
    chi = ((counts - expected) ** 2)[expected > 0] / expected[expected > 0]
    assert chi.sum() < 25.0
    assert counts[1, 2] == 0


def test_categorical_draws_once_along_any_axis_and_the_same_everywhere():
    logits = np.log(np.random.default_rng(0).dirichlet(np.ones(5), 7)).T.astype("f4")
    mg.manual_seed(5)
    wanted = mg.random.categorical(logits, axis=0)
    assert wanted.shape == (7,)
    step = mg.compile(lambda x: mg.random.categorical(x, axis=0))
    for device in ("cpu", "numpy", "simt"):
        with mg.device(device):
            x = mg.variable(logits)
            mg.manual_seed(5)
            assert mg.random.categorical(x, axis=0).to("cpu").tolist() == wanted.tolist()
            mg.manual_seed(5)
            assert step(x).to("cpu").tolist() == wanted.tolist()
    assert mg.random.categorical([0.0]).item() == 0
    assert mg.random.categorical([0, 5]).shape == ()
    assert mg.random.categorical(mg.zeros((0, 3)), (2,)).shape == (2, 0)
    own = [mg.random.categorical(wanted * 0.1, (9,), generator=mg.Generator(3)) for _ in range(2)]
    assert own[0].tolist() == own[1].tolist()
    leaf = mg.variable([0.5, 1.5], requires_grad=True)
    assert not mg.random.categorical(leaf).requires_grad


@pytest.mark.parametrize("row", [[np.nan, 0.0], [np.inf, 0.0], [-np.inf, -np.inf]])
def test_categorical_of_no_distribution_raises(row):
    with pytest.raises(mg.errors.ArgumentError, match="in each row a finite logit"):
        mg.random.categorical([[0.0, 1.0], row])
    step = mg.compile(lambda x: mg.random.categorical(x))
    assert step(mg.zeros((2, 2))).shape == (2,)
    with pytest.raises(mg.errors.ArgumentError, match="in each row a finite logit"):
        step(mg.variable([[0.0, 1.0], row]))


def test_randperm_is_the_same_on_every_device():
    mg.manual_seed(6)
    wanted = mg.randperm(50).tolist()
    assert sorted(wanted) == list(range(50))
    with mg.device("simt"):
        mg.manual_seed(6)
        got = mg.randperm(50)
        assert got.device == "simt"
        assert got.to("cpu").tolist() == wanted
        assert mg.randperm(0).shape == (0,)
