"""Donated arguments: who gets their memory, and what raises afterwards."""

import gc

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.compiler.trace.structure import variables_of
from minigrad.errors import ArgumentError, ArgumentTypeError, DonatedError, TraceError

pytestmark = pytest.mark.usefixtures("interpreted_plans")


def make(donate=0, strict=True):
    """state, x -> new state and its sum, the state donated."""

    @mg.compile(donate=donate, strict=strict)
    def advance(state, x):
        new = state * 2.0 + x
        return new, new.sum()

    return advance


def three():
    return mg.variable([1.0, 2.0, 3.0])


@pytest.mark.parametrize("donate", [0, "state", (0,), ["state"]])
def test_a_result_takes_over_the_memory(donate):
    advance, state, x = make(donate), three(), mg.ones((3,))
    wanted = state.numpy().copy()
    for k in range(8):
        address = state.data_ptr()
        state, total = advance(state, x)
        wanted = wanted * 2 + 1
        np.testing.assert_allclose(state.numpy(), wanted)
        assert total.item() == wanted.sum()
        if k:
            assert state.data_ptr() == address
        del total


@pytest.mark.parametrize("calls", [1, 2, 4])
def test_later_use_raises_through_any_alias(calls):
    advance, x = make(), mg.ones((3,))
    for _ in range(calls):
        state = three()
        view, detached, graph = state[1:], state.detach(), mg.variable([2.0], requires_grad=True)
        y = (graph * state).sum()
        advance(state, x)
    uses = [
        lambda: state + 1.0,
        lambda: 1.0 - view,
        lambda: detached.numpy(),
        lambda: state.item() if state.size == 1 else state.tolist(),
        lambda: state.clone(),
        lambda: repr(view),
        lambda: state.add_(1.0),
        lambda: x.copy_(state),
        lambda: state.data_ptr(),
        lambda: mg.exp(state[0]),
        lambda: y.backward(),
        lambda: advance(state, x),
        lambda: advance(three(), view),
        lambda: np.asarray(detached),
    ]
    for use in uses:
        with pytest.raises(DonatedError) as caught:
            use()
        text = str(caught.value)
        assert "'make.<locals>.advance'" in text
        assert "advance(state, x)" in text, "the line of the donation"
    assert state.shape == (3,)
    assert isinstance(caught.value, RuntimeError)


@pytest.mark.parametrize("calls", [1, 2, 5])
def test_a_clone_stays_valid_and_the_memory_is_copied(calls):
    advance, x = make(), mg.ones((3,))
    for _ in range(calls):
        state = three()
        clone = state.clone()
        new, _ = advance(state, x)
        assert new.data_ptr() != clone.data_ptr()
        assert clone.tolist() == [1.0, 2.0, 3.0]
        assert new.tolist() == [3.0, 5.0, 7.0]
        assert clone.refcount == 1
    with pytest.raises(DonatedError):
        state + 1.0
    assert [t.copies for t in advance.traces] == [{0: calls}]


def test_memory_that_numpy_looks_at_is_copied():
    advance, x = make(), mg.ones((3,))
    for _ in range(4):
        state = three()
        seen = state.numpy()
        data = np.array([1.0, 2.0, 3.0], "f4")
        shared = mg.from_numpy(data)
        for donated in (state, shared):
            new, _ = advance(donated, x)
            assert new.tolist() == [3.0, 5.0, 7.0]
        assert seen.tolist() == data.tolist() == [1.0, 2.0, 3.0]


def test_written_in_place_and_returned():
    step = mg.compile(lambda x: x.mul_(2.0), donate=0)
    for _ in range(5):
        x = three()
        address = x.data_ptr()
        y = step(x)
        assert y is not x
        assert (y.data_ptr(), y.tolist()) == (address, [2.0, 4.0, 6.0])
        with pytest.raises(DonatedError):
            x.tolist()


@pytest.mark.parametrize(
    "f",
    [
        lambda s: (s * 2.0, s),
        lambda s: (s, s * 2.0, s.detach(), s),
        lambda s: {"new": s + 1.0, "old": [s]},
        lambda s: (s.mul_(2.0), s * 2.0),
        lambda s: (s, s[1:] * 2.0, s.reshape(3, 1) + 1.0),
    ],
)
def test_returned_as_it_is_it_is_not_written_over(f):
    step = mg.compile(f, donate=0)
    for _ in range(4):
        x, wanted = three(), map(mg.Variable.tolist, variables_of(f(three())))
        assert [y.tolist() for y in variables_of(step(x))] == list(wanted)
        with pytest.raises(DonatedError):
            x.tolist()


@pytest.mark.parametrize("f", [lambda w, s: w * s, lambda w, s: ((w * s).sum(), s * 2.0)])
def test_backward_keeps_what_was_donated(f):
    w = mg.variable([3.0, 4.0, 5.0], requires_grad=True)
    step = mg.compile(lambda s: f(w, s), donate=0)
    for _ in range(4):
        x, w.grad = three(), None
        first, *more = variables_of(step(x))
        first.sum().backward()
        assert w.grad.tolist() == [1.0, 2.0, 3.0]
        assert [y.tolist() for y in more] == [[2.0, 4.0, 6.0]] * len(more)
        with pytest.raises(DonatedError):
            x.tolist()


def test_nested_arguments_are_donated_as_a_whole():
    @mg.compile(donate="state")
    def step(x, state):
        return {k: v + x for k, v in state.items()}

    for _ in range(5):
        state = {"a": three(), "b": mg.ones((3,))}
        addresses = {k: v.data_ptr() for k, v in state.items()}
        new = step(mg.ones((3,)), state=state)
        assert new["a"].tolist() == [2.0, 3.0, 4.0]
        for v in state.values():
            with pytest.raises(DonatedError):
                v.numpy()
    assert {v.data_ptr() for v in new.values()} == set(addresses.values())


def test_a_failed_call_donates_nothing():
    @mg.compile(donate=0)
    def step(state, labels):
        return state * 1.0, mg.cross_entropy(state, labels)

    logits = lambda: mg.ones((2, 3))  # noqa: E731
    for _ in range(3):
        step(logits(), mg.variable([0, 1]))
    state = logits()
    with pytest.raises(mg.errors.MinigradError, match="cross_entropy"):
        step(state, mg.variable([0, 7]))
    assert state.tolist() == [[1.0] * 3] * 2


class TestRefused:
    @pytest.mark.parametrize("calls", [0, 3])
    def test_the_same_memory_twice(self, calls):
        step = mg.compile(lambda a, b: (a * 1.0, b * 1.0), donate=(0, 1))
        for _ in range(calls):
            step(three(), three())
        x = three()
        for other in (x, x.detach(), x[:], x[1:]):
            with pytest.raises(ArgumentError, match="show the same memory"):
                step(x, other)
        assert x.tolist() == [1.0, 2.0, 3.0]
        step(x, x.clone())

    @pytest.mark.parametrize("calls", [0, 3])
    def test_parameters_leaves_and_parts(self, calls):
        advance, x = make(strict=False), mg.ones((3,))
        for _ in range(calls):
            advance(three(), x)
        leaf = mg.variable([1.0, 2.0, 3.0], requires_grad=True)
        flat = mg.ones((6,))
        for bad, match in [
            (nn.Parameter([1.0, 2.0, 3.0]), "is a Parameter"),
            (nn.Buffer([1.0, 2.0, 3.0]), "is a Buffer"),
            (leaf, "requires gradients"),
            (flat[:3], "a part of its memory"),
            (flat[::2], "a part of its memory"),
        ]:
            with pytest.raises(ArgumentError, match=match):
                advance(bad, x)
            assert bad.size == 3
            bad.numpy()

    def test_a_value_that_the_step_also_has_from_outside(self):
        h = three()
        step = mg.compile(lambda x: x * 2.0 + h, donate=0)
        for _ in range(3):
            step(three())
        with pytest.raises(TraceError, match="is donated, and the compiled step also reaches"):
            step(h)
        assert h.tolist() == [1.0, 2.0, 3.0]

    def test_a_donation_that_no_result_can_use(self):
        step = mg.compile(lambda x: x.sum(), donate=0)
        step(three())  # as usual: the second call knows
        x = three()
        with pytest.raises(ArgumentError, match="fits no result by size and dtype") as caught:
            step(x)
        assert "float32[3]; the results: float32[]" in str(caught.value)
        assert x.tolist() == [1.0, 2.0, 3.0]

    def test_which_is_fine_if_not_strict(self):
        step = mg.compile(lambda x: x.sum(), donate=0, strict=False)
        for _ in range(5):
            x = mg.ones((1000,))
            before = mg.memory.stats()["current_bytes"]
            assert step(x).item() == 1000.0
            gc.collect()
            assert mg.memory.stats()["current_bytes"] <= before - 4000, "back in the pool"
            with pytest.raises(DonatedError):
                x.numpy()
        assert [m.where for m in step.traces[0].unused] == ["argument 0 ('x')"]

    @pytest.mark.parametrize(
        ("donate", "error", "match"),
        [
            ("nothing", ArgumentError, "no such argument"),
            (-1, ArgumentError, "no such argument"),
            (True, ArgumentTypeError, "positions or names"),
            ((1.0,), ArgumentTypeError, "positions or names"),
            (1.0, ArgumentTypeError, "positions or names"),
        ],
    )
    def test_names_that_are_not_there(self, donate, error, match):
        with pytest.raises(error, match=match):
            mg.compile(lambda x: x, donate=donate)

    def test_an_argument_that_is_no_variable(self):
        with pytest.raises(ArgumentError, match="wanted a Variable as argument 1"):
            mg.compile(lambda x, n: x * n, donate=1)(three(), 2)


def test_nothing_leaks():
    advance, x = make(), mg.ones((3,))
    state = three()
    for k in range(60):
        state = advance(state.clone() if k % 3 else state, x)[0] * 0.1
        if k == 20:
            gc.collect()
            before = mg.memory.stats()["current_bytes"]
    gc.collect()
    assert mg.memory.stats()["current_bytes"] == before
