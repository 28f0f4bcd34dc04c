"""The graph under stress: long chains, diamonds, random programs, surgery, orders, threads."""

import gc
import itertools
import threading
import warnings
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import Polynomial

import minigrad as mg
from minigrad import errors
from minigrad.memory.monitor import pool_of
from minigrad.tape.node import Node
from minigrad.tape.order import ordered, searched


def leaf(values):
    return mg.variable(np.asarray(values, np.float64), requires_grad=True)


def test_chain_of_a_million_nodes_goes_forward_back_and_away():
    gc.collect()
    before = mg.memory.stats()["current_bytes"]
    x = leaf([1.0])
    y = x
    for _ in range(1_000_000):
        y = y + x
    last = weakref.ref(y.node)
    y.backward()
    assert x.grad.item() == 1_000_001.0
    del y
    assert last() is None
    y = x
    for _ in range(200_000):
        y = y * x
    last = weakref.ref(y.node)
    del y  # freed without a backward
    assert last() is None
    x.grad = None
    del x
    assert mg.memory.stats()["current_bytes"] == before


def test_chain_is_freed_without_recursion_when_only_a_leaf_holds_its_gradient():
    x = leaf([0.1])
    y = x
    for _ in range(5_000):
        y = (y * 0.999).tanh()
    y.backward(create_graph=True)
    g = x.grad
    assert g.requires_grad
    x.grad = None
    del y, g
    gc.collect()
    assert np.isfinite(x.item())


def test_diamonds_in_a_row_visit_each_node_once():
    x, calls = leaf([1.0]), []
    y = x
    for _ in range(200):
        y = y + y
    with mg.debug.record_grad_function() as log:
        y.backward()
    calls = [r.node for r in log]
    assert len(calls) == len(set(calls)) == 200
    assert x.grad.item() == 2.0**200


def test_gradients_of_shared_nodes_are_no_aliases():
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (a + b).sum().backward()
    assert not mg.memory.is_alias(a.grad, b.grad)
    (a + b).backward(mg.variable([1.0, 1.0], dtype="float64"))
    with mg.no_grad():
        a.grad.mul_(0.0)
    assert b.grad.tolist() == [2.0, 2.0]


def test_upstream_gradient_is_never_written_to_or_kept():
    x, dy = leaf([1.0, 2.0]), mg.variable([5.0, 7.0], dtype="float64")
    x.backward(dy)
    x.backward(dy)
    assert x.grad.tolist() == [10.0, 14.0]
    assert dy.tolist() == [5.0, 7.0]
    y = x + 0.0
    (g,) = mg.gradients([y], [x], [dy])
    assert not mg.memory.is_alias(g, dy)


# -- random programs against dual numbers --------------------------------------------------------


class Dual:
    """A value and its derivative along one direction: forward mode, independent of the engine."""

    def __init__(self, value, slope):
        self.value, self.slope = value, slope


UNARY = {
    "tanh": (np.tanh, lambda x: 1 - np.tanh(x) ** 2),
    "sin": (np.sin, np.cos),
    "square": (np.square, lambda x: 2 * x),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), lambda x: np.exp(-x) / (1 + np.exp(-x)) ** 2),
    "neg": (np.negative, lambda x: -np.ones_like(x)),
}
BINARY = {
    "add": (np.add, lambda a, b: (np.ones_like(a + b), np.ones_like(a + b))),
    "sub": (np.subtract, lambda a, b: (np.ones_like(a + b), -np.ones_like(a + b))),
    "mul": (np.multiply, lambda a, b: (b + 0 * a, a + 0 * b)),
    "div": (lambda a, b: a / (2 + b * b), lambda a, b: (
        1 / (2 + b * b) + 0 * a, -a * 2 * b / (2 + b * b) ** 2)),
}  # fmt: skip
SHAPES = [(), (3,), (2, 3), (2, 1), (1,), (0, 3)]


def run_dual(name, a, b=None):
    if name in UNARY:
        f, df = UNARY[name]
        return Dual(f(a.value), df(a.value) * a.slope)
    if name == "sum":
        return Dual(a.value.sum(axis=-1, keepdims=True), a.slope.sum(axis=-1, keepdims=True))
    if name == "mean":
        return Dual(np.asarray(a.value.sum() / 7), np.asarray(a.slope.sum() / 7))
    if name == "transpose":
        return Dual(a.value.T, a.slope.T)
    if name in ("clone", "iadd"):
        return Dual(a.value.copy(), a.slope.copy()) if name == "clone" else run_dual("add", a, b)
    if name == "detach":
        return Dual(a.value, np.zeros_like(a.value))
    f, df = BINARY[name]
    da, db = df(a.value, b.value)
    return Dual(f(a.value, b.value), da * a.slope + db * b.slope)


def run_engine(name, a, b=None):
    if name == "sum":
        return a.sum(axis=-1, keepdims=True)
    if name == "mean":
        return a.sum() / 7
    if name == "div":
        return a / (2.0 + b * b)
    if name == "iadd":
        out = a * 1.0
        out += b
        return out
    if b is not None:
        return {"add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b}[name]()
    return getattr(a, name)()


@st.composite
def programs(draw):
    shapes = draw(st.lists(st.sampled_from(SHAPES[:-1]), min_size=1, max_size=4))
    if draw(st.integers(0, 9)) == 0:
        shapes = [(0, 3)]
    count = draw(st.integers(1, 25))
    names = [*UNARY, *BINARY, "add", "mul", "mul", "sum", "mean", "transpose", "clone", "detach",
             "iadd"]  # fmt: skip
    steps = [
        (draw(st.sampled_from(names)), draw(st.integers(0, 99)), draw(st.integers(0, 99)))
        for _ in range(count)
    ]
    return shapes, steps, draw(st.integers(0, 2**31))


def evaluate(shapes, steps, seed):
    """(leaves, directions, engine's values, dual values) of a program."""
    rng = np.random.default_rng(seed)
    leaves = [leaf(rng.uniform(-1, 1, size=s)) for s in shapes]
    directions = [rng.normal(size=s) for s in shapes]
    mine = list(leaves)
    duals = [Dual(x.detach().numpy().copy(), d) for x, d in zip(leaves, directions, strict=True)]
    for name, i, j in steps:
        i, j = i % len(mine), j % len(mine)
        takes_two = name in BINARY or name == "iadd"
        if name == "sum" and mine[i].ndim == 0:
            continue
        if takes_two:
            try:
                shape = np.broadcast_shapes(mine[i].shape, mine[j].shape)
            except ValueError:
                continue
            if name == "iadd" and shape != mine[i].shape:
                continue
        args = (i, j) if takes_two else (i,)
        mine.append(run_engine(name, *(mine[k] for k in args)))
        duals.append(run_dual(name, *(duals[k] for k in args)))
    return leaves, directions, mine, duals, rng


@settings(max_examples=150, deadline=None)
@given(programs())
def test_random_programs_agree_with_dual_numbers(program):
    leaves, directions, mine, duals, rng = evaluate(*program)
    outputs, wanted, total = [], 0.0, None
    for v, d in zip(mine[-3:], duals[-3:], strict=True):
        np.testing.assert_allclose(v.detach().numpy(), d.value, rtol=1e-9, atol=1e-12)
        u = rng.normal(size=v.shape)
        outputs.append((v, u))
        wanted += float(np.sum(u * d.slope))
        part = (v * mg.variable(u)).sum()
        total = part if total is None else total + part
    if total.requires_grad:
        total.backward()
    got = sum(
        float(np.sum(x.grad.numpy() * d))
        for x, d in zip(leaves, directions, strict=True)
        if x.grad is not None
    )
    assert got == pytest.approx(wanted, rel=1e-8, abs=1e-10)


@settings(max_examples=60, deadline=None)
@given(programs())
def test_random_programs_give_the_same_gradients_every_way(program):
    leaves, _, mine, _, rng = evaluate(*program)
    u = mg.variable(rng.normal(size=mine[-1].shape))
    y = (mine[-1] * u).sum() + (leaves[0] * leaves[0]).sum()
    quick = mg.gradients(y, leaves, retain_graph=True)
    recorded = mg.gradients(y, leaves, create_graph=True)
    with mg.debug.record_grad_function(), mg.memory.timeline():
        watched = mg.gradients(y, leaves, retain_graph=True)
    y.backward()
    for x, a, b, c in zip(leaves, quick, recorded, watched, strict=True):
        if a is None:
            assert b is None
            assert c is None
            assert x.grad is None
            continue
        for other in (b.detach(), c, x.grad):
            np.testing.assert_allclose(other.numpy(), a.numpy(), rtol=1e-12, atol=1e-14)


@settings(max_examples=40, deadline=None)
@given(programs())
def test_random_programs_leave_nothing_behind(program):
    pool = pool_of("cpu")
    gc.disable()
    try:
        before = pool.current_bytes
        leaves, _, mine, _, _ = evaluate(*program)
        y = mine[-1].sum() + (leaves[0] * leaves[0]).sum()
        nodes = [weakref.ref(v.node) for v in [*mine, y] if v.node is not None]
        y.backward()
        del leaves, mine, y
        assert not any(ref() for ref in nodes)
        assert pool.current_bytes == before
    finally:
        gc.enable()


# -- order and cycles ----------------------------------------------------------------------------


class Plan:
    """A node without an operation."""

    name, input_names, saved_names = "op", (), ()


def nodes(count):
    return [Node(Plan, ()) for _ in range(count)]


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 12), st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=40))
def test_order_is_topological_or_names_a_true_cycle(count, pairs):
    made = nodes(count)
    for a, b in pairs:  # any edges, also against the serial numbers
        a, b = made[a % count], made[b % count]
        a.edges = (*a.edges, b)
    reachable, stack = {made[0]}, [made[0]]
    while stack:
        for e in stack.pop().edges:
            if e not in reachable:
                reachable.add(e)
                stack.append(e)
    try:
        order = ordered([made[0]])
    except errors.GraphCycleError as error:
        path = error.path
        assert path[0] is path[-1]
        assert all(b in a.edges for a, b in itertools.pairwise(path))
        assert all(n in reachable for n in path)
    else:
        place = {n: k for k, n in enumerate(order)}
        assert set(order) == reachable
        assert len(order) == len(reachable)
        assert all(place[n] < place[e] for n in order for e in n.edges)
        assert searched([made[0]])[1] is None
    finally:
        for n in made:
            n.edges = ()


def test_long_cycle_is_found_without_recursion_and_shown_shortened():
    made = nodes(50_000)
    for a, b in zip(made[1:], made, strict=False):
        a.edges = (b,)
    made[0].edges = (made[-1],)
    with pytest.raises(errors.GraphCycleError) as caught:
        ordered([made[-1]])
    assert len(caught.value.path) == 50_001
    assert "more ..." in str(caught.value)
    assert len(str(caught.value)) < 2000
    made[0].edges = ()
    del caught  # its traceback holds this frame, and so 50,001 nodes until the collector runs


def test_edges_against_the_serial_numbers_without_a_cycle_are_no_error():
    x = leaf([2.0])
    late = x * 3.0
    early = x.tanh()
    assert late.node.serial < early.node.serial
    late.node.edges = (early.node, None)  # as if late had been made of early
    late.backward()
    np.testing.assert_allclose(x.grad.item(), 3.0 * (1 - np.tanh(2.0) ** 2))


def test_unreachable_cycle_is_no_error():
    x = leaf([2.0])
    other = x * 1.0
    other.node.edges = (other.node, None)
    (x * x).backward()
    assert x.grad.item() == 4.0
    other.node.edges = (x, None)


# -- orders of derivatives -----------------------------------------------------------------------


def test_derivatives_of_x_tanh_x_are_exact_to_fourth_order():
    x = leaf(np.linspace(-2.0, 2.0, 9))
    t, v = np.tanh(x.detach().numpy()), x.detach().numpy()
    tanh_derivative = [Polynomial([0, 1])]
    for _ in range(4):
        tanh_derivative.append(tanh_derivative[-1].deriv() * Polynomial([1, 0, -1]))
    y = x.tanh() * x
    for n in range(1, 5):
        (y,) = mg.gradients([y], [x], [mg.ones(y.shape, dtype="float64")], create_graph=True)
        wanted = v * tanh_derivative[n](t) + n * tanh_derivative[n - 1](t)
        np.testing.assert_allclose(y.detach().numpy(), wanted, rtol=1e-12, atol=1e-12)


def test_gradients_of_create_graph_accumulate_until_zeroed():
    x = leaf([3.0])
    (x * x).backward(create_graph=True)
    first = x.grad
    assert first.requires_grad
    (x * x).backward(create_graph=True)
    assert x.grad.item() == 12.0
    assert x.grad.requires_grad
    x.grad = None
    first.backward()
    assert x.grad.item() == 2.0


def test_retained_graph_can_be_used_again_and_freed_at_last():
    x = leaf([3.0])
    y = (x * x).exp().log()
    for k in range(1, 4):
        y.backward(retain_graph=k < 3)
        np.testing.assert_allclose(x.grad.item(), 6.0 * k)
    with pytest.raises(errors.GraphFreedError):
        y.backward()


def test_backward_inside_a_custom_backward_works():
    class Inner(mg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, dy):
            with mg.enable_grad():
                x = ctx.saved[0].detach()
                x.requires_grad = True
                (x * x).backward(dy)
            return x.grad

    x = leaf([3.0])
    (Inner.apply(x) * 2.0).backward()
    assert x.grad.item() == 12.0


def test_weights_used_twice_in_one_pass_of_a_manager_add_up():
    w, b = leaf(np.ones((2, 2))), leaf(np.zeros(2))
    x = mg.variable([[1.0, 2.0]], dtype="float64")
    gm = mg.GradManager([w, b])
    for _ in range(2):
        with gm:
            gm.backward(mg.linear(mg.linear(x, w, b), w, b).sum())
    once = mg.gradients(mg.linear(mg.linear(x, w, b), w, b).sum(), [w, b])
    for p, g in zip((w, b), once, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), 2 * g.numpy())


# -- threads -------------------------------------------------------------------------------------


def train(seed, found):
    rng = np.random.default_rng(seed)
    x, t = mg.variable(rng.normal(size=(8, 4))), mg.variable(rng.normal(size=(8, 2)))
    w, v = leaf(rng.normal(size=(4, 5))), leaf(rng.normal(size=(5, 2)))
    losses = []
    for _ in range(40):
        loss = (((x @ w).tanh() @ v - t) ** 2).mean()
        loss.backward()
        losses.append(loss.item())
        with mg.no_grad():
            for p in (w, v):
                p.sub_(p.grad * 0.1)
                p.grad = None
    found[seed] = losses


def test_threads_train_separate_models_with_the_results_of_one():
    alone, together = {}, {}
    for seed in range(4):
        train(seed, alone)
    threads = [threading.Thread(target=train, args=(seed, together)) for seed in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert together == alone


def test_modes_of_one_thread_do_not_reach_another():
    entered, done, seen = threading.Event(), threading.Event(), []

    def other():
        with mg.no_grad(), mg.memory.copy_on_saved_write():
            entered.set()
            done.wait(10)
            seen.append((leaf([1.0]) * 2.0).requires_grad)

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait(10)
    x = leaf([1.0])
    y = x * x
    assert y.requires_grad
    with mg.no_grad():
        x.add_(1.0)
    with pytest.raises(errors.SavedValueModifiedError):
        y.backward()
    done.set()
    thread.join()
    assert seen == [False]


def test_graph_made_in_one_thread_goes_back_in_another():
    x, failures = leaf([3.0]), []
    y = x * x

    def back():
        try:
            y.backward()
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=back)
    thread.start()
    thread.join()
    assert not failures
    assert x.grad.item() == 6.0


@pytest.mark.parametrize("create_graph", [False, True])
def test_leaves_of_one_gradient_get_one_each_and_not_the_upstream_one(create_graph):
    a, b = (mg.variable([1.0, 2.0], requires_grad=True) for _ in range(2))
    dy = mg.variable([3.0, 4.0])
    ((a + b) * 2.0).backward(dy, create_graph=create_graph)
    with mg.no_grad():
        a.grad.mul_(10.0)
    assert (a.grad.tolist(), b.grad.tolist(), dy.tolist()) == ([60.0, 80.0], [6.0, 8.0], [3.0, 4.0])


def test_reading_grad_of_no_leaf_says_why_it_is_none():
    x = leaf([1.0, 2.0])
    y = x * 2.0
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(3):
            assert y.grad is None
    assert [str(w.message).split(":")[0] for w in found] == [
        ".grad of a Variable that is no leaf is None"
    ]
    assert found[0].filename == __file__
    assert leaf([1.0]).grad is None  # silently
