"""Optimizers over parameters of half precision update a wide copy, and round it."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.array.dtypes import DTYPES, float32
from minigrad.optim import passes
from minigrad.optim.passes import cut
from minigrad.seams import seams
from tests.optim.reference import CASES

HALVES = [d.name for d in DTYPES if d.is_narrow]
DEVICES = ("cpu", "numpy", "simt")
LAST = {row.kind: row for row in CASES}.values()  # the fullest of each optimizer


def values(v):
    return v.detach().to("cpu").to("float64").numpy()


def rounded(x, dtype):
    """Returns NumPy's values of a float32 ndarray, rounded to a dtype of minigrad."""
    return values(mg.variable(np.asarray(x, np.float32)).to(dtype))


def gradients(steps, shape=(5,)):
    return np.random.default_rng(1).integers(-8, 9, (steps, *shape)) / 8.0  # exact in all dtypes


def start(dtype):
    return mg.nn.Parameter(mg.variable(np.linspace(-2.0, 2.0, 5), "float32").to(dtype))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("row", LAST, ids=str)
def test_half_parameters_are_those_of_float32_rounded(row, dtype, device):
    with mg.device(device):
        half = start(dtype)
        wide = mg.nn.Parameter(half.detach().to("float32"))
        optimizers = [row.make([p], learning_rate=1e-3) for p in (half, wide)]
        for g in gradients(6):
            for p, optimizer in zip((half, wide), optimizers, strict=True):
                p.grad = mg.variable(g, "float32").to(p.dtype)
                optimizer.step()
    state, wanted = (
        o.state[p.id] if o.state else {} for o, p in zip(optimizers, (half, wide), strict=True)
    )
    assert half.dtype == dtype
    assert all(v.dtype is float32 for k, v in state.items() if k != "step")
    np.testing.assert_allclose(values(state["master"]), values(wide), rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(values(half), rounded(values(state["master"]), dtype))
    assert set(state) == {*wanted, "master"}
    for name, v in wanted.items():
        np.testing.assert_allclose(values(state[name]), values(v), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("wrap", [lambda f: f, mg.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", HALVES)
def test_updates_far_below_one_ulp_add_up(dtype, wrap):
    p = mg.nn.Parameter(mg.ones((3,), dtype))
    optimizer = mg.optim.SGD([p], learning_rate=2.0**-15)  # an ulp of 1.0 is 2^-10 or larger

    @wrap
    def step():
        (p * 1.0).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    assert p.tolist() == [1.0] * 3
    for _ in range(1023):
        step()
    assert p.tolist() == [1.0 - 2.0**-5] * 3


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("row", LAST, ids=str)
def test_a_compiled_step_has_the_bits_of_an_eager_one(row, dtype):
    def trained(wrap):
        p = start(dtype)
        optimizer = row.make([p], learning_rate=1e-2)

        @wrap
        def step(g):
            (p * g).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

        for g in gradients(5):
            step(mg.variable(g, "float32").to(dtype))
        return [values(v).tobytes() for v in (p, *optimizer.state[p.id].values())]

    assert trained(lambda f: f) == trained(mg.compile)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("wrap", [lambda f: f, mg.compile], ids=["eager", "compiled"])
def test_what_a_person_writes_into_a_parameter_counts(dtype, wrap):
    p = mg.nn.Parameter(mg.ones((2,), dtype))
    optimizer = mg.optim.SGD([p], learning_rate=2.0**-13)

    @wrap
    def step():
        (p * 1.0).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    step()
    with mg.no_grad():
        p[0] = 4.0
    step()
    wanted = [4.0 - 2.0**-13, 1.0 - 3 * 2.0**-13]
    assert optimizer.state[p.id]["master"].tolist() == wanted


@pytest.mark.parametrize("dtype", HALVES)
def test_threads_share_a_large_parameter(dtype, monkeypatch):
    monkeypatch.setattr(passes, "cut", lambda sizes, parts: cut(sizes, 3))
    p = mg.nn.Parameter(mg.linspace(-2.0, 2.0, 1001).to(dtype))
    before = values(p)
    optimizer = mg.optim.SGD([p], learning_rate=0.25, momentum=0.5)
    for _ in range(2):
        p.grad = mg.ones_like(p)
        optimizer.step()
    wanted = before.astype(np.float32) - np.float32(0.625)
    assert optimizer.state[p.id]["master"].tolist() == wanted.tolist()
    assert optimizer.state[p.id]["momentum"].tolist() == [1.5] * 1001
    np.testing.assert_array_equal(values(p), rounded(wanted, dtype))


@pytest.mark.parametrize("dtype", HALVES)
def test_a_saved_copy_goes_on_with_the_same_bits(dtype):
    def make():
        p = start(dtype)
        return p, mg.optim.Adam([p], learning_rate=1e-4)

    def run(p, optimizer, part):
        for g in part:
            p.grad = mg.variable(g, "float32").to(dtype)
            optimizer.step()

    p, optimizer = make()
    run(p, optimizer, gradients(8))
    q, first = make()
    run(q, first, gradients(8)[:3])
    saved, kept = first.state_dict(), q.detach().clone()
    (name,) = saved["state"]
    assert saved["state"][name]["master"].dtype is float32
    r, second = make()
    r.assign(kept)
    second.load_state_dict(saved)
    run(r, second, gradients(8)[3:])
    assert values(r).tobytes() == values(p).tobytes()
    for key, v in optimizer.state[p.id].items():
        assert values(v).tobytes() == values(second.state[r.id][key]).tobytes()


@pytest.mark.parametrize("dtype", HALVES)
def test_states_of_wide_and_of_half_parameters_load_into_each_other(dtype):
    half = start(dtype)
    wide = mg.nn.Parameter(half.detach().to("float32"))
    made = [mg.optim.SGD([p], learning_rate=0.5, momentum=0.5) for p in (half, wide)]
    for p, optimizer in zip((half, wide), made, strict=True):
        p.grad = mg.ones_like(p)
        optimizer.step()
    half_state, wide_state = (o.state_dict() for o in made)
    made[0].load_state_dict(wide_state)
    assert made[0].state[half.id]["master"].tolist() == half.tolist()
    made[1].load_state_dict(half_state)  # the copy is left out: the parameter is as wide
    assert set(made[1].state[wide.id]) == {"momentum"}
    (kept,) = half_state["state"].values()
    assert made[1].state[wide.id]["momentum"].tolist() == kept["momentum"].tolist()
    plain = [mg.optim.SGD([p], learning_rate=0.5) for p in (half, wide)]
    plain[0].step()
    plain[1].load_state_dict(plain[0].state_dict())
    assert not plain[1].state


@pytest.mark.parametrize("dtype", HALVES)
def test_a_model_that_becomes_half_keeps_its_state(dtype):
    model = mg.nn.Linear(2, 1)
    optimizer = mg.optim.SGD(model, learning_rate=0.5, momentum=0.5)
    for _ in range(2):
        model(mg.ones((1, 2), model.weight.dtype)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        model.to(dtype)
    state = optimizer.state[model.weight.id]
    assert state["momentum"].tolist() == [[1.5, 1.5]]


@pytest.mark.parametrize("dtype", HALVES)
def test_adam_works_with_its_default_eps(dtype):
    p = mg.nn.Parameter(mg.ones((2,), dtype))
    optimizer = mg.optim.Adam([p], learning_rate=1e-2)
    for _ in range(10):
        p.grad = mg.variable([1e-4, 1e-3], dtype)  # their squares are 0 in float16
        optimizer.step()
    np.testing.assert_allclose(values(p), 0.9, rtol=1e-2)


def test_a_learner_s_update_gets_the_wide_copy(monkeypatch):
    p = mg.nn.Parameter(mg.ones((2,), "float16"))
    optimizer = mg.optim.SGD([p], learning_rate=2.0**-13)
    seen = []

    def update(algorithm, values, gradient, state, hyperparameters):
        seen.append((values.dtype, gradient.dtype, dict(state)))
        values -= hyperparameters["learning_rate"] * gradient

    monkeypatch.setattr(seams, "update", update)
    for _ in range(16):
        p.grad = mg.ones_like(p)
        optimizer.step()
    assert seen[0] == (np.float32, np.float32, {})
    assert p.tolist() == [1.0 - 2.0**-9] * 2
