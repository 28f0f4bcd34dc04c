"""What step() does to values: against the formulas, for every way to lay out parameters."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minigrad as mg
from minigrad import nn
from minigrad.devices.threads import threads
from minigrad.errors import ArgumentError, ArgumentTypeError
from minigrad.optim.passes import GRAIN, cut
from tests.optim.reference import CASES, FEW

SHAPES = [(), (1,), (3,), (17, 5), (2, 3, 4), (0, 3)]


def parameters(dtype, shapes=SHAPES, seed=0):
    rng = np.random.default_rng(seed)
    return [nn.Parameter(rng.standard_normal(s).astype(dtype)) for s in shapes]


def set_gradients(ps, rng, skip=()):
    """Random gradients for all but some; returns them."""
    grads = []
    for k, p in enumerate(ps):
        g = rng.standard_normal(p.shape).astype(p.dtype.numpy)
        p.grad = None if k in skip else mg.variable(g)
        grads.append(None if k in skip else g.astype(np.float64))
    return grads


def test_every_optimizer_stands_in_the_table():
    exported = {name for name in mg.optim.__all__ if name[0].isupper()} - {"Optimizer"}
    rules = {n for n in exported if issubclass(getattr(mg.optim, n), mg.optim.Optimizer)}
    missing = sorted(rules - {row.kind for row in CASES})
    assert not missing, (
        f"{', '.join(missing)} has no row in CASES of tests/optim/reference.py, so nothing tests it"
    )
    missing = sorted(rules - {row.kind for row in CASES if not row.options})
    assert not missing, f"{', '.join(missing)} has no row in CASES for its defaults: options {{}}"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row", CASES, ids=str)
def test_steps_equal_the_formula(row, dtype):
    ps, rng = parameters(dtype), np.random.default_rng(1)
    expected = [p.numpy().astype(np.float64) for p in ps]
    states = [{} for _ in ps]
    optimizer = row.make(ps, learning_rate=0.02)
    for step in range(12):
        skip = {1} if step in (0, 1, 5) else set()  # a late parameter, and one that pauses
        grads = set_gradients(ps, rng, skip)
        optimizer.step()
        for k, g in enumerate(grads):
            if g is not None:
                expected[k] = row.formula(expected[k], g, states[k], 0.02, **row.options)
    tolerance = {"rtol": 1e-10, "atol": 1e-12} if dtype == "float64" else {"rtol": 0, "atol": 5e-5}
    for p, value, state in zip(ps, expected, states, strict=True):
        np.testing.assert_allclose(p.numpy(), value, **tolerance)
        kept = dict(optimizer.state[p.id].items()) if p.id in optimizer.state else {}
        for name, wanted in state.items():  # the formula has names of its own
            if np.ndim(wanted):
                found = [x.numpy() for x in kept.values() if x.shape == wanted.shape]
                assert any(np.allclose(x, wanted, **tolerance) for x in found), name


@pytest.mark.parametrize("row", CASES, ids=str)
def test_gradients_are_left_as_they_are(row):
    ps = parameters("float32")
    grads = set_gradients(ps, np.random.default_rng(2))
    optimizer = row.make(ps)
    for _ in range(2):
        optimizer.step()
    for p, g in zip(ps, grads, strict=True):
        np.testing.assert_array_equal(p.grad.numpy(), g.astype(np.float32))


def test_step_without_gradients_changes_nothing():
    ps = parameters("float32")
    before = [p.numpy().copy() for p in ps]
    optimizer = mg.optim.Adam(ps, weight_decay=0.1)
    optimizer.step()
    for p, value in zip(ps, before, strict=True):
        np.testing.assert_array_equal(p.numpy(), value)
    assert optimizer.state == {}


def test_adam_with_zeros_still_moves_and_with_none_does_not():
    p, q = nn.Parameter([1.0]), nn.Parameter([1.0])
    optimizer = mg.optim.Adam([p, q], learning_rate=0.1)
    p.grad = q.grad = mg.variable([1.0])
    optimizer.step()
    after = p.item()
    p.grad, q.grad = mg.zeros((1,)), None
    optimizer.step()
    assert p.item() < after - 0.01
    assert q.item() == after
    assert optimizer.state[p.id]["step"].item() == 2
    assert optimizer.state[q.id]["step"].item() == 1


@pytest.mark.parametrize("size", [1e-10, 1e-4, 1.0, 1e8])
def test_first_step_of_adam_is_the_rate_whatever_the_gradient(size):
    p = nn.Parameter(mg.zeros((3,), dtype="float64"))
    p.grad = mg.variable(np.array([size, -size, 0.0]))
    mg.optim.Adam([p], learning_rate=0.1).step()
    expected = 0.1 * size / (size + 1e-8)
    np.testing.assert_allclose(p.numpy(), [-expected, expected, 0.0], rtol=1e-12)


def test_frozen_parameter_with_an_old_gradient_neither_moves_nor_decays():
    p = nn.Parameter([1.0, 2.0])
    p.grad = mg.ones((2,))
    p.requires_grad = False
    mg.optim.AdamW([p, nn.Parameter([1.0])], weight_decay=0.5).step()
    assert p.tolist() == [1.0, 2.0]


def test_both_dtypes_in_one_optimizer():
    p, q = nn.Parameter([1.0]), nn.Parameter(np.array([1.0]))
    optimizer = mg.optim.SGD([p, q], learning_rate=0.5)
    p.grad, q.grad = mg.variable([1.0]), mg.variable(np.array([1.0]))
    optimizer.step()
    assert (p.item(), q.item()) == (0.5, 0.5)
    assert (p.dtype, q.dtype) == (mg.float32, mg.float64)


def test_parameter_converted_to_float64_keeps_its_state():
    model = nn.Linear(2, 1, bias=False)
    optimizer = mg.optim.SGD(model, learning_rate=0.0, momentum=0.5)
    for _ in range(2):
        model.weight.grad = mg.ones((1, 2))
        optimizer.step()
    model.to("float64")
    model.weight.grad = mg.ones((1, 2), dtype="float64")
    optimizer.step()
    momentum = optimizer.state[model.weight.id]["momentum"]
    assert momentum.dtype == mg.float64
    assert momentum.tolist() == [[1.75, 1.75]]


def test_step_is_a_write_that_backward_notices():
    p = nn.Parameter([2.0])
    loss = (p * p).sum()
    p.grad = mg.ones((1,))
    optimizer = mg.optim.SGD([p], learning_rate=0.1)
    version = p.version
    optimizer.step()
    assert p.version == version + 1
    with pytest.raises(mg.errors.SavedValueModifiedError, match=r"optimizer\.step\(\)"):
        loss.backward()


def test_step_does_not_write_to_clones():
    p = nn.Parameter([1.0, 2.0])
    with mg.no_grad():
        kept = p.clone()
    p.grad = mg.ones((2,))
    optimizer = mg.optim.SGD([p], learning_rate=1.0)
    optimizer.step()
    assert kept.tolist() == [1.0, 2.0]
    assert p.tolist() == [0.0, 1.0]
    address = p.data_ptr()
    optimizer.step()
    assert p.data_ptr() == address
    with mg.no_grad():
        other = p.clone()
    optimizer.step()
    assert other.tolist() == [-1.0, 0.0]
    assert p.tolist() == [-2.0, -1.0]


def test_gradient_that_is_a_view_of_a_larger_buffer():
    flat = mg.variable([9.0, 1.0, 2.0, 9.0])
    p = nn.Parameter([0.0, 0.0])
    p._grad = flat[1:3]
    mg.optim.SGD([p], learning_rate=1.0).step()
    assert p.tolist() == [-1.0, -2.0]


def test_gradient_with_a_graph_and_strides_is_taken():
    p = nn.Parameter(np.arange(6.0).reshape(2, 3))
    (p.transpose() * 2.0).sum().backward(create_graph=True)
    mg.optim.SGD([p], learning_rate=0.5).step()
    np.testing.assert_array_equal(p.numpy(), np.arange(6.0).reshape(2, 3) - 1.0)


def test_values_shared_with_numpy_are_updated():
    data = np.ones(3, np.float32)
    p = nn.Parameter([1.0, 1.0, 1.0])
    view = p.detach().numpy()
    p.grad = mg.variable(data)
    mg.optim.SGD([p], learning_rate=0.5).step()
    np.testing.assert_array_equal(view, [0.5, 0.5, 0.5])


def test_hyperparameters_written_later_are_used():
    p = nn.Parameter([0.0])
    optimizer = mg.optim.SGD([p], learning_rate=1.0)
    p.grad = mg.ones((1,))
    optimizer.step()
    optimizer.groups[0].momentum = 0.5
    optimizer.learning_rate = 0.1
    optimizer.step()
    optimizer.step()
    np.testing.assert_allclose(p.item(), -1.0 - 0.1 * (1.0 + 1.5), rtol=1e-6)
    optimizer.groups[0].momentum = 0.0
    optimizer.step()
    np.testing.assert_allclose(p.item(), -1.25 - 0.1, rtol=1e-6)
    assert optimizer.state == {}


@pytest.mark.parametrize("name", FEW)
def test_big_parameters_on_two_threads_equal_one(name, monkeypatch):
    def run(count):
        monkeypatch.setattr(threads, "count", count)
        ps = parameters("float32", [(300, 333), (5,), (401, 211)])
        optimizer = FEW[name].make(ps)
        for step in range(3):
            set_gradients(ps, np.random.default_rng(step), {1} if step == 1 else ())
            optimizer.step()
        assert len(optimizer._passes[0].ranges) == count
        return [p.numpy().copy() for p in ps]

    for a, b in zip(run(1), run(3), strict=True):
        np.testing.assert_array_equal(a, b)


@settings(deadline=None)
@given(st.lists(st.integers(0, 5000), min_size=1, max_size=12), st.integers(1, 5))
def test_cut_covers_every_element_once(sizes, parts):
    pieces, ranges = cut(sizes, parts)
    rows = [tuple(pieces[k : k + 3]) for k in range(0, len(pieces), 3)]
    covered = [(row, first + i) for row, first, n in rows for i in range(n)]
    assert covered == [(row, i) for row, size in enumerate(sizes) for i in range(size)]
    assert all(first % GRAIN == 0 for _, first, _ in rows)
    assert len(ranges) <= parts
    assert [a for a, _ in ranges[1:]] == [b for _, b in ranges[:-1]]
    assert ranges[0][0] == 0
    assert ranges[-1][1] == len(rows)
    work = [sum(n for _, _, n in rows[a:b]) for a, b in ranges]
    assert max(work) <= sum(sizes) / parts + (len(sizes) + 2) * GRAIN


def rule_of(formula, slots=()):
    kinds = {"defaults": {"learning_rate": 0.1}, "slots": slots, "formula": formula}
    return type("Rule", (mg.optim.Optimizer,), kinds)


@pytest.mark.parametrize(
    ("formula", "slots", "error"),
    [
        (lambda p, g, s, h: p - sum(h.t**k * g for k in range(2, 10)), (), ArgumentError),
        (lambda p, g, s, h: p - g, ("average",), ArgumentTypeError),
        (lambda p, g, s, h: 0.0, (), ArgumentTypeError),
    ],
    ids=["too many numbers of steps", "a slot is left out", "no formula"],
)
def test_a_rule_that_cannot_be_is_refused_before_memory_is_touched(formula, slots, error):
    p = mg.nn.Parameter([1.0])
    with pytest.raises(error, match="wanted"):
        rule_of(formula, slots)([p])
    assert p.tolist() == [1.0]


def test_a_rule_may_have_as_many_numbers_of_steps_as_there_is_memory_for():
    p = mg.nn.Parameter([0.0])
    optimizer = rule_of(lambda p, g, s, h: p + sum(h.t**k * g for k in range(2, 9)))([p])
    p.grad = mg.variable([1.0])
    for _ in range(2):
        optimizer.step()
    assert p.tolist() == [7.0 + sum(2.0**k for k in range(2, 9))]
