"""The engine's promises, one function a number; a missing number fails.

What each promises is in its name and in docs/semantics.md. Gradients are compared with differences
in float64; memory by counts of bytes and nodes, never by time.
"""

import gc
import json
import re
import signal
import threading
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors
from minigrad.formulas import expression
from minigrad.memory.pool import Pool
from minigrad.tape import backward, modes

LAST = 53


@pytest.fixture(autouse=True)
def nothing_is_left():
    """What only the collector frees goes now: in the middle of a test it would be counted."""
    gc.collect()


def leaf(values, name=None):
    return mg.variable(np.asarray(values, np.float64), requires_grad=True, name=name)


def saved_bytes():
    return mg.memory.stats()["saved_bytes"]


def live_nodes():
    return mg.memory.stats()["live_nodes"]


class Tiny(mg.nn.Module):
    """Two layers, the first of which may be frozen."""

    def __init__(self):
        self.first = mg.nn.Linear(3, 4)
        self.second = mg.nn.Linear(4, 2)

    def forward(self, x):
        return self.second(self.first(x).tanh())


class One(mg.nn.Module):
    """A single parameter."""

    def __init__(self, values=(3.0,)):
        self.w = mg.nn.Parameter(np.asarray(values, np.float32))

    def forward(self, x):
        return self.w * x


def test_every_item_has_a_test():
    numbers = {
        int(found.group(1)) for name in globals() if (found := re.match(r"test_item_(\d\d)_", name))
    }
    assert numbers == set(range(1, LAST + 1))


# -- graph, memory, modes ----------------------------------------------------------------------


def test_item_01_gradients_equal_differences_with_shared_parts_and_broadcasting():
    rng = np.random.default_rng(0)
    x, y = leaf(rng.normal(size=(3, 4))), leaf(rng.uniform(0.5, 2.0, size=(4,)))
    functions = [
        lambda x, y: x * x,
        lambda x, y: (x * y) * (x + y) + x,
        lambda x, y: (x.tanh() * x.exp() + x.tanh() / y).sum(axis=0),
        lambda x, y: mg.softmax(x * y) @ (x.T * 2.0),
        lambda x, y: mg.matmul(x, y) * x.sum(),
        lambda x, y: mg.logsumexp(x, axis=1) - (x * x).mean() + y.log().sum(),
        lambda x, y: ((x + y).sigmoid() - mg.erf(x)).reshape(2, 6).std(axis=1, ddof=0),
        lambda x, y: mg.where(x > y, x * x, y.sqrt()),
        lambda x, y: y**3 + 2.0**x,
    ]
    for f in functions:
        assert mg.debug.gradcheck(f, [x, y])


def test_item_02_a_carried_state_grows_saved_bytes_and_detach_keeps_them_flat():
    w = leaf(np.full(8, 0.5))

    def after(steps, carry):
        h = mg.ones((8,), dtype="float64")
        for _ in range(steps):
            h = carry((h * w).tanh())
        return saved_bytes()

    short, middle, long = (after(n, lambda h: h) for n in (10, 20, 30))
    assert middle - short == long - middle > 0
    flat = [after(n, lambda h: h.detach()) for n in (10, 20, 30)]
    assert flat[0] == flat[1] == flat[2]


def test_item_03_forwards_whose_outputs_are_dropped_leave_no_nodes_without_gc():
    w, x = leaf(np.ones(4)), mg.ones((4,), dtype="float64")
    before = live_nodes()
    gc.disable()
    try:
        for step in range(1000):
            y = ((w * x).tanh() * w).sum()
            last = weakref.ref(y.node)
            del y
            assert last() is None
            if step % 250 == 0:
                assert live_nodes() == before
        assert live_nodes() == before
    finally:
        gc.enable()


def test_item_04_backward_frees_what_was_saved_and_kept_losses_hold_nothing():
    w = leaf(np.ones(100))
    before, losses = saved_bytes(), []
    for _ in range(3):
        loss = (w.tanh() * w).sum()
        assert saved_bytes() > before
        loss.backward()
        losses.append(loss)
    assert saved_bytes() == before


@pytest.mark.parametrize("f", [lambda x: x + x, lambda x: x.tanh() * x, lambda x: x.reshape(2, 1)])
def test_item_05_a_second_backward_raises_always_unless_the_graph_was_retained(f):
    x = leaf([1.0, 2.0])
    loss = f(x).sum()
    loss.backward(retain_graph=True)
    once = x.grad.numpy().copy()
    loss.backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * once)
    with pytest.raises(errors.GraphFreedError, match="a second time") as caught:
        loss.backward()
    assert "test_semantics.py" in str(caught.value)
    np.testing.assert_allclose(x.grad.numpy(), 2 * once)


def test_item_06_valid_shares_everything_records_nothing_and_train_gives_the_model_back():
    model = Tiny()
    model.first.requires_grad_(False)
    pattern = [p.requires_grad for p in model.parameters()]
    view = model.valid()
    for p, q in zip(model.parameters(), view.parameters(), strict=True):
        assert (p.id, p.data_ptr()) == (q.id, q.data_ptr())
    before = live_nodes()
    y = view(mg.ones((1, 3)))
    assert live_nodes() == before
    assert not y.requires_grad
    assert view.train() is model
    assert [p.requires_grad for p in model.parameters()] == pattern == [False, False, True, True]


def test_item_07_modes_nest_decorate_work_on_generators_per_thread_and_survive_exceptions():
    w = leaf([1.0])
    with mg.no_grad():
        assert not (w * w).requires_grad
        with mg.enable_grad():
            assert (w * w).requires_grad
        assert not (w * w).requires_grad
    assert (w * w).requires_grad

    @mg.no_grad()
    def plain():
        return (w * w).requires_grad

    @mg.no_grad()
    def generator():
        for _ in range(2):
            yield (w * w).requires_grad

    assert plain() is False
    steps = generator()
    assert next(steps) is False
    assert mg.is_recording()
    assert next(steps) is False
    with pytest.raises(ZeroDivisionError), mg.no_grad():
        raise ZeroDivisionError
    assert mg.is_recording()
    seen = []
    with mg.no_grad():
        thread = threading.Thread(target=lambda: seen.append(mg.is_recording()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_item_08_eval_does_not_stop_recording_and_says_so():
    model = Tiny().eval()
    assert model(mg.ones((1, 3))).requires_grad
    assert "still recorded" in mg.nn.Module.eval.__doc__


def test_item_09_assert_no_growth_names_op_line_and_bytes_of_the_oldest_survivors():
    w, kept = leaf(np.ones(16)), []
    with pytest.raises(mg.memory.MemoryGrowthError) as caught, mg.memory.assert_no_growth():
        kept.extend((w * w).sum() for _ in range(3))
    text = str(caught.value)
    assert "survivor: mul" in text
    assert "test_semantics.py:" in text
    assert "bytes saved" in text
    kept.clear()
    (w * w).sum().backward()  # the gradient's bytes are there from now on
    with mg.memory.assert_no_growth():
        (w * w).sum().backward()


def test_item_10_timeline_has_ordered_events_with_op_names_reproducibly():
    w = leaf(np.ones(1000))

    def events():
        w.grad = None
        with mg.memory.timeline() as t:
            (w.tanh() * w).sum().backward()
            w.grad = None
        return [(e.index, e.kind, e.bytes, e.current_bytes - t.events[0].current_bytes, e.op)
                for e in t.events]  # fmt: skip

    gc.collect()
    gc.disable()  # what others left behind is not freed in the middle
    try:
        first, second = events(), events()
    finally:
        gc.enable()
    assert first == second
    assert [e[0] for e in first] == list(range(len(first)))
    ops = [op for _, kind, _, _, op in first if kind == "alloc"]
    assert ops[:3] == ["tanh", "mul", "sum"]
    assert any("backward" in op for op in ops)
    allocated = sum(e[2] for e in first if e[1] == "alloc")
    assert allocated == sum(e[2] for e in first if e[1] == "free")


# -- clone, detach, copy-on-write, in-place ----------------------------------------------------


def test_item_11_clone_shares_bytes_until_the_first_write():
    a = mg.ones((4,))
    b = a.clone()
    assert a.data_ptr() == b.data_ptr()
    assert a.refcount == b.refcount == 2
    b.add_(1.0)
    assert a.data_ptr() != b.data_ptr()
    assert a.refcount == b.refcount == 1
    assert a.tolist() == [1.0] * 4
    assert b.tolist() == [2.0] * 4


def test_item_12_clone_passes_gradients_and_detach_stops_them_but_shares_storage():
    a = leaf([3.0])
    (a.clone() * a).backward()
    assert a.grad.tolist() == [6.0]
    a.grad = None
    (a.detach() * a).backward()
    assert a.grad.tolist() == [3.0]
    d = a.detach()
    assert mg.memory.shares_storage(a, d)
    d.add_(1.0)
    assert a.tolist() == [4.0]
    assert a.version == d.version == 1


def test_item_13_detach_of_a_leaf_that_requires_gradients_requires_none():
    a = leaf([3.0])
    assert not a.detach().requires_grad
    assert a.detach().is_leaf
    assert a.requires_grad


def test_item_14_a_write_after_save_raises_with_op_name_versions_and_both_lines():
    x = leaf([1.0, 2.0], name="weights")
    y = (x * x).sum()  # the line that saved
    with mg.no_grad():
        x.add_(1.0)  # the line that wrote
    with pytest.raises(errors.SavedValueModifiedError) as caught:
        y.backward()
    text = str(caught.value)
    for part in ("mul saved", "weights", "version 1, saved at version 0",
                 "the line that saved", "the line that wrote"):  # fmt: skip
        assert part in text
    assert x.grad is None


def test_item_14_an_operand_that_is_the_target_is_saved_as_it_was():
    x = leaf([1.0, 2.0, 3.0])
    h = x * 2.0
    h *= h
    h.sum().backward()
    assert x.grad.tolist() == [8.0, 16.0, 24.0]


def test_item_14_a_hook_that_writes_what_is_still_needed_raises():
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0], name="weights")
    h = x * w

    def write(g):
        with mg.no_grad():
            w.add_(1.0)

    h.register_hook(write)
    with pytest.raises(errors.SavedValueModifiedError, match="weights"):
        h.sum().backward()
    assert x.grad is None
    assert w.grad is None


def test_item_15_numpy_views_are_read_only_unless_asked_for():
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    with pytest.raises(ValueError, match="read-only"):
        x.numpy()[0] = 9.0
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0]
    z = mg.variable([1.0, 2.0])
    view = z.numpy(writable=True)
    assert z.version == 1
    w = leaf([1.0, 1.0])
    y = (w * z.to("float64")).sum()
    view[0] = 7.0
    assert z.tolist() == [7.0, 2.0]
    y.backward()
    assert w.grad.tolist() == [1.0, 2.0]


def test_item_16_writes_to_leaves_and_their_views_raise_outside_no_grad():
    x = leaf([1.0, 2.0])
    for write in (lambda: x.add_(1.0), lambda: x.reshape(2, 1).add_(1.0), lambda: x.fill_(0.0)):
        with pytest.raises(errors.InPlaceError):
            write()
    assert (x.tolist(), x.version) == ([1.0, 2.0], 0)
    with mg.no_grad():
        x.add_(1.0)
        x.reshape(2, 1).add_(1.0)
    assert (x.tolist(), x.version) == ([3.0, 4.0], 2)


def test_item_17_only_what_gradients_need_is_saved():
    x, w, data = leaf(np.ones(100)), leaf(np.ones(100)), mg.ones((100,), dtype="float64")
    before = saved_bytes()
    added = x + w
    assert saved_bytes() == before
    product = x * data  # only data, the partner of what needs a gradient
    assert saved_bytes() - before == data.nbytes
    assert product.node.saved.keys() == {"b"}
    del added, product
    weight, bias = mg.ones((5, 100), dtype="float64"), mg.ones((5,), dtype="float64")
    h = x.reshape(1, 100)
    before = saved_bytes()
    y = mg.linear(h, weight, bias)
    assert saved_bytes() - before == weight.nbytes
    assert "x" not in y.node.saved
    weight.requires_grad = True
    y = mg.linear(h.detach(), weight, bias)
    assert y.node.saved.keys() == {"x"}


def test_item_18_copy_on_saved_write_keeps_the_gradients_of_what_was_saved():
    x = leaf([3.0, 4.0])
    with mg.memory.copy_on_saved_write():
        y = (x * x.exp()).sum()
        assert x.refcount > 1  # shared, not copied yet
        with mg.no_grad():
            x.fill_(100.0)
        h = x.tanh()
        h += 1.0
    y.backward()
    v = np.array([3.0, 4.0])
    np.testing.assert_allclose(x.grad.numpy(), np.exp(v) * (1 + v))
    y = (x * x).sum()
    with mg.no_grad():
        x.add_(1.0)
    with pytest.raises(errors.SavedValueModifiedError):
        y.backward()


# -- cycles ------------------------------------------------------------------------------------


def test_item_19_a_cycle_raises_with_its_path_before_any_gradient_is_written():
    x = leaf([1.0])
    a = x.tanh()
    b = a.exp()
    y = b * x
    a.node.edges = (b.node,)
    with pytest.raises(errors.GraphCycleError) as caught:
        y.backward()
    assert [n.op for n in caught.value.path] in (["tanh", "exp", "tanh"], ["exp", "tanh", "exp"])
    assert " -> " in str(caught.value)
    assert "test_semantics.py" in str(caught.value)
    assert x.grad is None
    a.node.edges = (x,)
    y.backward()
    assert x.grad is not None


def test_item_20_rebinding_and_long_chains_are_no_cycles():
    w, x = leaf([0.5]), mg.ones((1,), dtype="float64")
    x = x * w
    x += w
    b = x
    b = b * b
    b.backward()
    assert w.grad.tolist() == [4.0]
    h = leaf([1.0])
    y = h
    for _ in range(200_000):
        y = y + h
    y.backward()
    assert h.grad.tolist() == [200_001.0]
    del y


def test_item_21_a_graph_cycle_a_reference_cycle_and_an_unrolled_loop_are_told_apart():
    w = leaf([0.5])
    h = w
    for _ in range(5):
        h = (h * w).tanh()  # the same code again: no cycle
    h.backward()
    assert w.grad is not None
    gc.collect()
    gc.disable()
    try:
        holder = {"y": w * w}
        holder["self"] = holder  # a Python cycle around the output: a leak, no graph cycle
        node = weakref.ref(holder["y"].node)
        holder["y"].backward()
        del holder
        assert node() is not None
        gc.collect()
        assert node() is None
    finally:
        gc.enable()
    y = w * w
    y.node.edges = (y.node, w)  # and this is a graph cycle
    with pytest.raises(errors.GraphCycleError):
        y.backward()
    y.node.edges = (w, w)


# -- parameters and optimizers -----------------------------------------------------------------


def step(model, optimizer, x=1.0):
    optimizer.zero_grad()
    (model(mg.variable([x])) ** 2).sum().backward()
    optimizer.step()


def test_item_22_ids_survive_valid_train_to_clone_and_loading_and_key_the_state():
    model = Tiny()
    ids = [p.id for p in model.parameters()]
    optimizer = mg.optim.Adam(model)
    model(mg.ones((1, 3))).sum().backward()
    optimizer.step()
    assert set(optimizer.state) == set(ids)
    for copy in (model.valid(), model.clone(), model.train(), model.to("float64")):
        assert [p.id for p in copy.parameters()] == ids
    model.load_state_dict(model.state_dict())
    assert [p.id for p in model.parameters()] == ids


def test_item_23_replacing_a_parameter_turns_adam_into_sign_sgd():
    def steps(change):
        model = One()
        optimizer = mg.optim.Adam(model, learning_rate=0.1, on_orphan="ignore")
        found = []
        for k in range(4):
            before = model.w.item()
            step(model, optimizer, x=3.0 - 0.5 * k)
            found.append(abs(model.w.item() - before))
            change(model)
        return found

    def replace(model):
        model.w = mg.nn.Parameter(model.w.detach().clip(-10.0, 10.0))

    def keep(model):
        model.w.map(lambda value: value.clip(-10.0, 10.0))

    np.testing.assert_allclose(steps(replace), 0.1, rtol=1e-4)
    kept = steps(keep)
    np.testing.assert_allclose(kept[0], 0.1, rtol=1e-4)
    assert all(abs(s - 0.1) > 0.001 for s in kept[1:])


def test_item_24_stepping_an_orphan_raises_and_names_it():
    model = One()
    optimizer = mg.optim.SGD(model.parameters(), learning_rate=0.1)
    step(model, optimizer)
    model.w = mg.nn.Parameter(model.w.detach() * 0.5)
    with pytest.raises(errors.OrphanParameterError, match="'w'"):
        step(model, optimizer)
    warned = mg.optim.SGD(list(One().parameters()), learning_rate=0.1, on_orphan="warn")
    with pytest.warns(UserWarning, match="w"):
        warned.step()


def test_item_25_map_assign_and_edit_keep_id_and_state_and_refuse_a_graph():
    model = One()
    optimizer = mg.optim.Adam(model, learning_rate=0.1)
    step(model, optimizer)
    p, state = model.w, {k: v.tolist() for k, v in optimizer.state[model.w.id].items()}
    identity = (p.id, p.data_ptr())
    p.map(lambda value: value * 2.0)
    p.assign([1.5])
    with p.edit() as value:
        value *= 2.0
    assert (p.id, p.data_ptr()) == identity
    assert p.tolist() == [3.0]
    assert {k: v.tolist() for k, v in optimizer.state[p.id].items()} == state
    with pytest.raises(errors.GradientError, match="detach"):
        p.assign(p * 2.0)


def test_item_26_optimizer_state_is_loaded_by_name_and_shape():
    class Ordered(mg.nn.Module):
        def __init__(self, names):
            for name in names:
                setattr(self, name, mg.nn.Parameter(np.full({"a": 2, "b": 3}[name], 1.0, "f4")))

        def forward(self):
            return (self.a * self.a).sum() + (self.b**3).sum()

    def trained(model):
        optimizer = mg.optim.Adam(model, learning_rate=0.1)
        model().backward()
        optimizer.step()
        return optimizer

    first, second = Ordered("ab"), Ordered("ba")
    saved = trained(first).state_dict()
    optimizer = mg.optim.Adam(second, learning_rate=0.1)
    optimizer.load_state_dict(saved)
    for name in "ab":
        mine = optimizer.state[getattr(second, name).id]
        for key, value in saved["state"][name].items():
            np.testing.assert_array_equal(mine[key].numpy(), value.numpy())
    other = Ordered("ab")
    other.a = mg.nn.Parameter(np.ones(5, "f4"))
    with pytest.raises(errors.StateError, match="a"):
        mg.optim.Adam(other).load_state_dict(saved)
    with pytest.warns(UserWarning, match="b"):
        result = mg.optim.Adam([second.a]).load_state_dict(saved)
    assert result.stale == ["b"]


def test_item_27_duplicates_raise_and_tied_weights_count_once():
    p = mg.nn.Parameter([1.0])
    with pytest.raises(errors.ArgumentError):
        mg.optim.SGD([p, p], learning_rate=0.1)

    class Tied(mg.nn.Module):
        def __init__(self):
            self.a = mg.nn.Parameter([3.0])
            self.b = self.a

    model = Tied()
    assert len(list(model.parameters())) == 1
    optimizer = mg.optim.SGD(model, learning_rate=0.1)
    (model.a * model.b).sum().backward()
    optimizer.step()
    np.testing.assert_allclose(model.a.tolist(), [3.0 - 0.1 * 6.0], rtol=1e-6)


def test_item_28_clipping_is_global_or_per_parameter_and_refuses_non_finite_norms():
    def two():
        a, b = mg.nn.Parameter([0.0, 0.0], name="a"), mg.nn.Parameter([0.0], name="b")
        a.grad, b.grad = mg.variable([3.0, 0.0]), mg.variable([4.0])
        return a, b

    a, b = two()
    assert mg.optim.clip_grad_norm_([a, b], 1.0) == pytest.approx(5.0)
    np.testing.assert_allclose(a.grad.tolist() + b.grad.tolist(), [0.6, 0.0, 0.8], rtol=1e-6)
    a, b = two()
    assert mg.optim.clip_grad_norm_per_param_([a, b], 1.0) == pytest.approx([3.0, 4.0])
    np.testing.assert_allclose(a.grad.tolist() + b.grad.tolist(), [1.0, 0.0, 1.0], rtol=1e-6)
    b.grad = mg.variable([np.inf])
    with pytest.raises(errors.NonFiniteError, match="b"):
        mg.optim.clip_grad_norm_([a, b], 1.0)
    np.testing.assert_allclose(a.grad.tolist(), [1.0, 0.0], rtol=1e-6)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_item_28_scaled_gradients_are_unscaled_before_clipping_or_the_step_is_left_out(is_compiled):
    model, scaler = One((3.0, -4.0)), mg.optim.GradScaler()
    optimizer = mg.optim.Adam(model, learning_rate=0.1)

    def step(factor):
        scaler.scale((model.w * factor).sum()).backward()
        scaler.unscale_(optimizer)
        mg.optim.clip_grad_norm_(model, 1.0, error_if_nonfinite=False)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()

    def bits():
        state = optimizer.state[model.w.id]
        return [v.numpy().tobytes() for v in (model.w, *state.values())]

    step = mg.compile(step) if is_compiled else step
    step(mg.variable([1.0, 2.0]))
    before = bits()
    step(mg.variable([1.0, np.inf]))
    assert bits() == before
    step(mg.variable([1.0, 2.0]))
    assert bits() != before
    scaler.scale((model.w * model.w).sum()).backward()
    with pytest.raises(errors.StateError, match="unscaled"):
        mg.optim.clip_grad_norm_(model, 1.0)


def test_item_25_a_half_parameter_adds_up_small_steps_and_keeps_what_is_written():
    p = mg.nn.Parameter(mg.ones((2,), "float16"))
    optimizer = mg.optim.SGD([p], learning_rate=2.0**-15)

    def steps(count):
        for _ in range(count):
            p.grad = mg.ones_like(p)
            optimizer.step()

    steps(64)
    assert p.tolist() == [1.0 - 2.0**-9] * 2
    with mg.no_grad():
        p[0] = 2.0
    steps(64)
    assert p.tolist() == [2.0 - 2.0**-9, 1.0 - 2.0**-8]


def test_item_29_clipping_parameters_keeps_ids_and_moments_bit_for_bit():
    model = One((3.0, -4.0))
    optimizer = mg.optim.Adam(model, learning_rate=0.1)
    step(model, optimizer)
    before = {k: v.numpy().tobytes() for k, v in optimizer.state[model.w.id].items()}
    mg.optim.clip_params_(model, -1.0, 1.0)
    assert model.w.tolist() == [1.0, -1.0]
    after = {k: v.numpy().tobytes() for k, v in optimizer.state[model.w.id].items()}
    assert after == before


# -- Function, Variable, GradManager -----------------------------------------------------------


class Scale(mg.Function):
    """x times a number and its square root, the root not differentiable."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        ctx.save_for_backward(x)
        root = x.sqrt()
        ctx.mark_non_differentiable(root)
        return x * factor, root

    @staticmethod
    def backward(ctx, dy, droot):
        (x,) = ctx.saved_tensors
        assert x is ctx.saved[0]
        assert ctx.needs_input_grad == (True, False)
        assert droot is None if not ctx.materializes else droot.tolist() == [0.0, 0.0]
        return dy * ctx.factor, None


class AddOne(mg.Function):
    """Writes to its input."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        ctx.mark_dirty(x)
        return x.add_(1.0)

    @staticmethod
    def backward(ctx, dy):
        return dy


def test_item_30_function_has_static_methods_context_and_both_ways_to_call_it():
    for call in (Scale.apply, Scale()):
        x = leaf([1.0, 4.0])
        y, root = call(x, 3.0)
        assert not root.requires_grad
        y.sum().backward()
        assert x.grad.tolist() == [3.0, 3.0]
    x = leaf([1.0, 4.0])
    h = x * 2.0
    y = AddOne.apply(h)
    assert y is h
    (y * 5.0).sum().backward()
    assert x.grad.tolist() == [10.0, 10.0]


def custom(result, arguments=2):
    class Custom(mg.Function):
        @staticmethod
        def forward(ctx, *xs):
            return xs[0] * 1.0

        @staticmethod
        def backward(ctx, dy):
            return result(dy)

    return Custom.apply(*(leaf([1.0, 2.0]) for _ in range(arguments)))


@pytest.mark.parametrize(
    ("result", "error", "text"),
    [
        (lambda dy: dy, errors.GradientError, "wanted 2 gradients"),
        (lambda dy: (dy, dy, dy), errors.GradientError, "wanted 2 gradients"),
        (lambda dy: (dy, dy.sum()), errors.ShapeError, "gradient 1"),
        (lambda dy: (dy.to("float32"), dy), errors.DTypeError, "gradient 0"),
        (lambda dy: (dy, 1.0), errors.ArgumentTypeError, "gradient 1"),
    ],
)
def test_item_31_gradients_of_a_function_are_checked(result, error, text):
    with pytest.raises(error, match=text) as caught:
        custom(result).sum().backward()
    assert "Custom" in str(caught.value)


def test_item_31_none_for_an_input_that_needs_a_gradient_warns():
    with pytest.warns(UserWarning, match="Custom.backward returned None for argument 1"):
        custom(lambda dy: (dy, None)).sum().backward()


def test_item_32_an_output_on_ctx_is_refused_and_saved_outputs_do_not_leak():
    class Kept(mg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.y = x.exp()
            return ctx.y

    with pytest.raises(errors.ArgumentTypeError, match="save_for_backward"):
        Kept.apply(leaf([1.0]))

    class Hidden(mg.Function):
        @staticmethod
        def forward(ctx, x, wrap):
            ctx.kept = wrap(x.exp())
            return x * 2.0

    for wrap in (lambda y: [y], lambda y: (1, {"y": (y,)})):
        with pytest.raises(errors.ArgumentTypeError, match="with a Variable"):
            Hidden.apply(leaf([1.0]), wrap)

    class Saved(mg.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, dy):
            return dy * ctx.saved[0]

    gc.disable()
    try:
        y = Saved.apply(leaf([1.0]))
        node = weakref.ref(y.node)
        del y
        assert node() is None
    finally:
        gc.enable()


def second_order(function, dy=None):
    """Every way to a second derivative, as functions without arguments."""

    def by_backward():
        x = leaf([1.0])
        function(x).backward(dy, create_graph=True)
        x.grad.backward()

    def by_gradients():
        x = leaf([1.0])
        mg.gradients(mg.gradients(function(x), x, dy, create_graph=True), x)

    return by_backward, by_gradients, lambda: mg.grad(mg.grad(function))([1.0])


def test_item_33_second_derivatives_through_what_has_none_raise_on_every_route():
    class Once(mg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        @mg.once_differentiable
        def backward(ctx, dy):
            return dy * ctx.saved[0] * ctx.saved[0] * 3.0

    class Intermediate(mg.Function):
        @staticmethod
        def forward(ctx, x):
            s = x.sin()
            ctx.save_for_backward(s)
            return s * s

        @staticmethod
        def backward(ctx, dy):
            (s,) = ctx.saved
            return dy * 2.0 * s * (1.0 - s * s).sqrt()

    class Left(mg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, dy):
            return dy * mg.variable(2.0 * ctx.saved[0].numpy())

    def hidden(keep, known):
        class Hidden(mg.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.s = keep(x.sin())
                return mg.variable(known(ctx.s)) ** 2.0

            @staticmethod
            def backward(ctx, dy):
                s = mg.variable(known(ctx.s))
                return dy * 2.0 * s * (1.0 - s * s).sqrt()

        return lambda x: Hidden.apply(x * x)

    functions = [
        Once.apply,
        Intermediate.apply,
        Left.apply,
        hidden(lambda s: s.numpy().copy(), lambda s: s),
        hidden(lambda s: {"kept": [s.numpy()]}, lambda s: s["kept"][0]),
        hidden(lambda s: (s.numpy()[0],), list),
    ]
    for function in functions:
        x = leaf([1.0])
        function(x).backward()
        assert x.grad is not None
        for route in second_order(function):
            with pytest.raises(errors.GradientError):
                route()
    for route in second_order(Once.apply, mg.variable([1.0], dtype="float64")):
        with pytest.raises(errors.GradientError, match="second derivative"):
            route()


def test_item_33_constants_on_ctx_do_not_keep_it_from_being_differentiated_twice():
    class Scaled(mg.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.scale, ctx.order, ctx.power = scale, np.argsort(x.numpy()), 3.0
            ctx.save_for_backward(x)
            return mg.variable(scale * x.numpy() ** ctx.power)

        @staticmethod
        def backward(ctx, dy):
            return dy * mg.variable(ctx.scale) * ctx.power * ctx.saved[0] ** (ctx.power - 1.0), None

    def scaled(x):
        return Scaled.apply(x, np.array([2.0], "f4")).sum()

    for route in second_order(scaled):
        route()
    assert mg.hessian(scaled)([1.0]).tolist() == [[12.0]]


def test_item_34_grad_manager_attaches_records_goes_back_and_releases():
    w = mg.variable([3.0])
    gm = mg.GradManager()
    early = w * w
    gm.attach([w])
    assert [p is w for p in gm.attached] == [True]
    assert gm.attached_tensors[0] is w
    with pytest.raises(errors.GradientError, match="not recording"):
        gm.backward(early)
    before = saved_bytes()
    with gm:
        with pytest.raises(errors.GradientError):
            gm.backward(early)
        with pytest.raises(errors.GradientError, match="already"):
            gm.record()
        loss = w * w
        gm.backward(loss)
    assert w.grad.tolist() == [6.0]
    gm.record()
    loss = (w * w).exp()
    assert saved_bytes() > before
    gm.release()
    assert saved_bytes() == before
    with pytest.raises(errors.GraphFreedError):
        loss.backward()
    assert w.grad.tolist() == [6.0]


def test_item_35_keep_empty_grad_decides_between_none_and_zeros_for_the_unreached():
    def trained(keep):
        a, b = mg.nn.Parameter(np.ones(4, "f4")), mg.nn.Parameter(np.ones(4, "f4"))
        gm = mg.GradManager([a, b], keep_empty_grad=keep)
        optimizer = mg.optim.Adam([a, b], learning_rate=0.1)
        for k in range(2):
            with gm:
                gm.backward((a * (b if k == 0 else a)).sum())
            optimizer.step()
            if k == 0:
                after = b.tolist()
                optimizer.zero_grad()
        return b, after

    b, after = trained(keep=False)
    assert b.grad is None
    assert b.tolist() == after  # Adam leaves it alone
    b, after = trained(keep=True)
    assert b.grad.tolist() == [0.0] * 4
    assert b.grad.nbytes == 16
    assert b.tolist() != after  # its momentum moves it


def test_item_36_a_callback_attached_twice_runs_once_and_non_scalars_want_dy():
    w, calls = mg.variable([3.0, 4.0]), []
    gm = mg.GradManager()

    def callback(parameter, grad):
        calls.append(parameter is w)
        return grad * 10.0

    gm.attach([w], [callback])
    gm.attach([w], [callback])
    with gm:
        gm.backward((w * w).sum())
    assert calls == [True]
    assert w.grad.tolist() == [60.0, 80.0]
    with gm, pytest.raises(errors.GradientError, match="dy"):
        gm.backward(w * w)


# -- debugging ---------------------------------------------------------------------------------


def test_item_37_record_grad_function_gives_ordered_records_json_and_dot():
    x = leaf([3.0, 4.0], name="x")
    y = (x.tanh() * x).sum()  # forward
    with mg.debug.record_grad_function() as log:
        y.backward()
    assert [r.op for r in log] == ["sum", "mul", "tanh"]
    mul = log.records[1]
    assert mul.input_shapes == ((2,), (2,))
    assert mul.incoming_norm == pytest.approx(np.sqrt(2.0))
    assert mul.outgoing_norms[0] == pytest.approx(5.0)
    assert mul.milliseconds >= 0.0
    assert mul.saved_bytes == 32
    assert "# forward" in mul.line
    plain = json.loads(log.to_json())
    assert [r["op"] for r in plain] == ["sum", "mul", "tanh"]
    dot = log.to_dot()
    assert dot.startswith("digraph")
    assert '"x"' in dot
    assert dot.count("->") == 4
    from minigrad.tape.modes import state

    assert state.observers == ()
    (x * x).sum().backward()
    assert len(log) == 3


def test_item_38_anomaly_mode_raises_forward_and_backward_with_line_shape_and_index():
    with mg.debug.detect_anomaly():
        with pytest.raises(errors.NonFiniteError, match=r"log gave nan at index \(1,\)"):
            mg.log(leaf([1.0, -1.0]))
        x = leaf([3.0, 1.0])
        with pytest.raises(errors.NonFiniteError) as caught:
            mg.sqrt(
                mg.sqrt(x - 2.0)  # the inner line
            )
        assert "# the inner line" in str(caught.value)
        x = leaf([[1.0, 0.0]])
        y = mg.sqrt(x).sum()  # its derivative at 0 is infinite
        with pytest.raises(errors.NonFiniteError) as caught:
            y.backward()
    text = str(caught.value)
    for part in ("backward of sqrt gave inf", "index (0, 1)", "float64[1, 2]", "# its derivative"):
        assert part in text
    assert x.grad is None
    assert np.isnan(mg.log(leaf([-1.0])).item())


def test_item_39_gradcheck_knows_kinks_chance_and_float32_and_shows_entries():
    class Wrong(mg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, dy):
            return dy * 2.0 * ctx.saved[0] * mg.variable([1.0, 1.1, 1.0], dtype="float64")

    x = leaf([0.5, 1.5, -1.0])
    with pytest.raises(errors.GradcheckError, match=r"input 0 \[1\]\s+\S+\s+\S+") as caught:
        mg.debug.gradcheck(Wrong.apply, [x])
    assert "difference" in str(caught.value)
    with pytest.raises(errors.GradcheckError, match="non-smooth point"):
        mg.debug.gradcheck(mg.relu, [leaf([1.0, 0.0])])
    with pytest.raises(errors.GradcheckError, match="not deterministic"):
        mg.debug.gradcheck(lambda x: x * mg.rand((3,), dtype="float64"), [x])
    with pytest.raises(errors.DTypeError, match="float64"):
        mg.debug.gradcheck(mg.tanh, [mg.variable([1.0], requires_grad=True)])
    assert mg.debug.gradcheck(mg.tanh, [x])
    assert mg.debug.gradgradcheck(mg.tanh, [x])

    class Intermediate(mg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, dy):
            return dy * ctx.saved[0].detach().cos()  # first order right, second order not

    assert mg.debug.gradcheck(Intermediate.apply, [x])
    with pytest.raises(errors.GradcheckError):
        mg.debug.gradgradcheck(Intermediate.apply, [x])


def test_item_40_a_hook_that_writes_to_its_gradient_changes_no_other():
    a, b, w = leaf([1.0, 2.0]), leaf([1.0, 2.0]), leaf([3.0, 4.0])
    h = a * 1.0
    h.register_hook(lambda g: g.mul_(10.0))
    ((h + b) * w).sum().backward()
    assert a.grad.tolist() == [30.0, 40.0]
    assert b.grad.tolist() == [3.0, 4.0]


def test_item_40_hooks_run_in_order_may_replace_are_checked_and_removed():
    x = leaf([1.0, 2.0])
    h = x * 2.0
    seen = []
    first = h.register_hook(lambda g: seen.append(("first", g.tolist())))
    h.register_hook(lambda g: g * 10.0)
    h.register_hook(lambda g: seen.append(("third", g.tolist())))
    h.sum().backward()
    assert seen == [("first", [1.0, 1.0]), ("third", [10.0, 10.0])]
    assert x.grad.tolist() == [20.0, 20.0]
    first.remove()
    first.remove()
    h = x * 2.0
    h.register_hook(lambda g: g.sum())
    with pytest.raises(errors.ShapeError, match="hook"):
        h.sum().backward()
    with pytest.raises(errors.GradientError):
        x.detach().register_hook(print)
    p = mg.variable([1.0], requires_grad=True)

    def update(leaf):
        with mg.no_grad():
            leaf.add_(leaf.grad * -0.1)
        leaf.grad = None

    handle = p.register_post_accumulate_hook(update)
    (p * p).backward()
    assert p.grad is None
    assert p.item() == pytest.approx(0.8)
    handle.remove()
    (p * p).backward()
    assert p.grad.item() == pytest.approx(1.6)


# -- the allocator -----------------------------------------------------------------------------


def test_item_41_a_fixed_shape_loop_makes_no_system_allocation_and_stats_are_complete():
    model = Tiny()
    optimizer = mg.optim.Adam(model, learning_rate=0.01)
    x = mg.ones((8, 3))
    counts = []
    for _ in range(6):
        optimizer.zero_grad()
        (model(x) ** 2).mean().backward()
        optimizer.step()
        counts.append(mg.memory.stats()["system_allocations"])
    assert counts[2:] == [counts[1]] * 4
    stats = mg.memory.stats()
    for name in (
        "current_bytes", "peak_bytes", "allocated_bytes", "freed_bytes", "requested_bytes",
        "reserved_bytes", "inactive_split", "retries", "ooms", "system_allocations", "hits",
    ):  # fmt: skip
        assert stats[name] >= 0
    assert stats["requested_bytes"] <= stats["current_bytes"] <= stats["reserved_bytes"]
    assert stats["current_bytes"] <= stats["peak_bytes"]
    assert stats["allocated_bytes"] - stats["freed_bytes"] == stats["current_bytes"]
    json.dumps(mg.memory.snapshot())


def test_item_42_the_pool_is_bounded_and_retries_when_the_system_has_no_more():
    memory, limit = [], [1 << 40]

    def allocate(nbytes):
        if sum(m.nbytes for m in memory if m is not None) + nbytes > limit[0]:
            raise MemoryError
        block = np.empty(nbytes + 64, np.uint8)
        start = -block.ctypes.data % 64
        return block[start : start + nbytes], block.ctypes.data + start

    pool = Pool("test", allocate)
    rng, held, peak = np.random.default_rng(0), [], 0
    for _ in range(2000):
        held.append(pool.take(int(rng.integers(1, 1 << 20))))
        peak = max(peak, sum(b.requested for b in held))
        if len(held) > 20:
            release(pool, held.pop(int(rng.integers(len(held)))))
        assert pool.reserved_bytes <= 2 * peak + (2 << 20)
    for b in held:
        release(pool, b)

    asked = []

    def full_once(nbytes):
        asked.append(nbytes)
        if len(asked) == 2:
            raise MemoryError
        return allocate(nbytes)

    pool = Pool("test", full_once)
    release(pool, pool.take(4 << 20))
    assert pool.take(5 << 20).nbytes >= 5 << 20
    assert (pool.retries, pool.ooms) == (1, 0)
    assert pool.reserved_bytes < 9 << 20  # what was cached went back first


def release(pool, buffer):
    buffer.owners = 0
    pool.release(buffer)


def test_item_43_a_buffer_returns_with_its_last_reference_and_poison_shows_use_after_free():
    x = mg.ones((1000,))
    y = x.clone()
    address, before = x.data_ptr(), mg.memory.stats()["current_bytes"]
    del x
    assert mg.memory.stats()["current_bytes"] == before
    del y
    assert mg.memory.stats()["current_bytes"] < before
    z = mg.zeros((1000,))
    assert z.data_ptr() == address  # recycled
    with mg.memory.poison():
        import ctypes

        held = (ctypes.c_float * 1000).from_address(z.data_ptr())
        del z
        assert np.isnan(held[0])
        assert np.isnan(held[999])


# -- compiled steps --------------------------------------------------------------------------------


def test_item_44_donated_memory_is_taken_over_and_its_later_use_raises():
    step = mg.compile(lambda state, x: state * 0.5 + x, donate=0)
    state, x = mg.zeros((1000,)), mg.ones((1000,))
    for k in range(4):
        old, view, alias, address = state, state[1:], state.detach(), state.data_ptr()
        clone = state.clone() if k == 2 else None
        state = step(state, x)
        assert k == 0 or (state.data_ptr() == address) == (clone is None)
        for gone in (old, view, alias):
            with pytest.raises(errors.DonatedError, match="state = step"):
                gone + 1.0
        assert clone is None or clone.tolist() == [1.5] * 1000
    assert state.tolist() == [1.875] * 1000

    both = mg.compile(lambda a, b: (a * 1.0, b * 1.0), donate=(0, 1))
    with pytest.raises(errors.ArgumentError, match="same memory"):
        both(state, state.detach())
    total = mg.compile(lambda x: x.sum(), donate=0)
    total(mg.ones((3,)))
    with pytest.raises(errors.ArgumentError, match="fits no result"):
        total(state)
    assert state.tolist() == [1.875] * 1000


# -- devices ---------------------------------------------------------------------------------------


def test_item_45_operands_on_two_devices_raise_and_data_goes_along():
    x, y = mg.ones((2,), device="simt"), mg.ones((2,))
    with pytest.raises(errors.DeviceError, match=r"simt and cpu[\s\S]*x\.to\('simt'\)"):
        x + y
    assert (x + np.ones(2, np.float32)).device == "simt"
    assert x[[1]].device == "simt"
    with pytest.raises(errors.DeviceError, match=r"x\.to\('cpu'\)\.numpy\(\)"):
        x.numpy()
    assert x.to("cpu").numpy().tolist() == x.tolist() == [1.0, 1.0]


def test_item_46_gradients_come_back_and_state_follows():
    x = mg.variable([1.0, 2.0], requires_grad=True)
    assert x.to("cpu") is x
    (x.to("simt") ** 3).sum().backward(create_graph=True)
    assert x.grad.device == "cpu"
    first, x.grad = x.grad, None
    first.sum().backward()
    assert x.grad.tolist() == [6.0, 12.0]

    found = []
    for place in ("cpu", "numpy", "simt"):
        p = mg.nn.Parameter([1.0, -1.0])
        model = mg.nn.Module()
        model.p = p
        optimizer = mg.optim.SGD(model, 0.1, momentum=0.9)
        for where in ("cpu", place, place):
            before = p.id
            model.to(where)
            assert (model.p is p, p.id, p.device) == (True, before, where)
            assert p.grad is None
            (p * p).sum().backward()
            optimizer.step()
            if where == place:
                optimizer.zero_grad()
        assert optimizer.state[p.id]["momentum"].device == place
        found.append(p.tolist())
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-6)


def test_item_47_random_numbers_and_training_are_those_of_the_cpu():
    found = []
    for place in ("cpu", "numpy", "simt"):
        with mg.device(place):
            mg.manual_seed(0)
            model, x = mg.nn.Linear(5, 3), mg.rand((4, 5))
            optimizer = mg.optim.Adam(model, 0.01)
            loss = mg.cross_entropy(model(x), [0, 1, 2, 0])
            loss.backward()
            optimizer.step()
            found.append((loss.item(), x.tolist(), model.weight.tolist()))
    loss, drawn, weight = found[0]
    for its_loss, its_drawn, its_weight in found[1:]:
        assert its_drawn == drawn
        assert its_loss == pytest.approx(loss, rel=1e-6)
        np.testing.assert_allclose(its_weight, weight, rtol=1e-5, atol=1e-7)


# -- cycles of Python, and Ctrl-C ------------------------------------------------------------------


def test_item_48_graphs_of_second_order_go_without_the_garbage_collector():
    model = Tiny()

    def step():
        x = leaf(np.ones((5, 3)))
        u = model.to("float64")(x).tanh()
        (dx,) = mg.gradients([u.sum()], [x], create_graph=True)
        ((dx * dx).sum() + u.sum()).backward()
        model.zero_grad()

    step()
    gc.collect()
    bytes_before, nodes_before = mg.memory.stats()["current_bytes"], live_nodes()
    gc.disable()
    try:
        for _ in range(20):
            step()
        assert mg.memory.stats()["current_bytes"] == bytes_before
        assert live_nodes() == nodes_before
    finally:
        gc.enable()
    deep = expression.symbol("x")
    for _ in range(20_000):  # far beyond Python's limit of recursion
        deep = deep + 1.0
    assert expression.evaluate(deep, {"x": 0.5}) == 20_000.5


def test_item_49_an_interrupted_backward_writes_every_gradient_or_none(monkeypatch):
    model, x, write, state = Tiny(), mg.ones((2, 3)), backward.write_grad, modes.state
    handler, before = signal.getsignal(signal.SIGINT), (state.recording, state.path)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    count = len(list(model.parameters()))
    try:
        for k in range(count):
            loss, left = model(x).sum(), [k]

            def write_grad(*arguments, left=left):
                write(*arguments)
                left[0] -= 1
                if left[0] == -1:
                    signal.raise_signal(signal.SIGINT)

            monkeypatch.setattr(backward, "write_grad", write_grad)
            with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - it may wait for the next call
                loss.backward()
                len("here it comes")
            assert sum(p.grad is not None for p in model.parameters()) in (0, count), k
            assert (state.recording, state.path) == before
            model.zero_grad()
    finally:
        signal.signal(signal.SIGINT, handler)


# -- compiled functions and what is around them ----------------------------------------------------


def test_item_50_backward_of_a_compiled_model_outside_of_it():
    model = mg.nn.Sequential(mg.nn.Linear(4, 3), mg.nn.Tanh())
    net, x = mg.compile(model), mg.randn((5, 4))
    (model(x) ** 2.0).sum().backward()
    wanted = [p.grad.numpy().copy() for p in model.parameters()]
    for _ in range(3):
        for p in model.parameters():
            p.grad = None
        y = net(x)
        (y**2.0).sum().backward()
        for p, g in zip(model.parameters(), wanted, strict=True):
            np.testing.assert_allclose(p.grad.numpy(), g, rtol=1e-5, atol=1e-6)
        with pytest.raises(errors.GraphFreedError):
            y.sum().backward()
        y = net(x)
        with mg.no_grad():
            x.mul_(1.0)
        with pytest.raises(errors.SavedValueModifiedError):
            y.sum().backward()


def test_item_50_the_loss_of_a_whole_step_carries_no_graph_at_any_call():
    w = mg.nn.Parameter([1.0, 2.0])

    @mg.compile
    def step(x):
        loss = (w * x).sum()
        loss.backward()
        return loss

    for _ in range(3):
        loss = step(mg.ones((2,)))
        assert loss.node is None
        assert not loss.requires_grad


def test_item_51_a_resumed_run_is_the_same_bit_for_bit():
    def make():
        model = mg.nn.Sequential(mg.nn.Linear(6, 5), mg.nn.Dropout(0.2), mg.nn.Linear(5, 3))
        optimizer = mg.optim.Adam(model, 0.01)

        @mg.compile
        def step(x):
            loss = mg.cross_entropy(model(x), [0, 1, 2, 0])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        return model, optimizer, lambda k: step(mg.variable(np.eye(4, 6, k, dtype="f4"))).item()

    model, optimizer, step = make()
    for k in range(3):
        step(k)
    saved = model.state_dict(), optimizer.state_dict(), mg.get_rng_state()
    wanted = [step(k) for k in range(3, 6)]
    model, optimizer, step = make()
    model.load_state_dict(saved[0])
    optimizer.load_state_dict(saved[1])
    mg.set_rng_state(saved[2])
    assert [step(k) for k in range(3, 6)] == wanted


# -- mixed precision -------------------------------------------------------------------------------


@pytest.mark.parametrize("is_compiled", [False, True])
def test_item_52_autocast_lowers_products_alone_and_gradients_are_of_the_leaves(is_compiled):
    w = mg.variable([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)

    def step(w):
        y = w @ w
        return y, mg.softmax(y), (w.to("float64") @ w.to("float64")).detach()

    step = mg.compile(step) if is_compiled else step
    for _ in range(3):
        with mg.autocast("float16"):
            found = step(w)
        assert [v.dtype for v in found] == ["float16", "float32", "float64"]
        assert [v.dtype for v in step(w)] == ["float32", "float32", "float64"]
    found[1][0, 0].backward()
    assert w.grad.dtype == "float32"


def test_item_53_ranks_agree_or_all_raise():
    from minigrad import distributed as d

    x = np.linspace(-1, 1, 14, dtype="f4").reshape(7, 2)

    def model_of():
        model = mg.nn.Linear(2, 1, bias=False)
        model.weight.assign(mg.variable([[0.5, -0.5]]))
        return model

    def shard():
        model = model_of()
        rows = x[5:] if d.rank() else x[:5]
        loss = (model(mg.variable(rows)) ** 2).mean()
        d.DataParallel(model).backward(loss, weight=len(rows))
        return model.weight.grad.numpy()

    raised = []

    def differ():
        try:
            d.all_reduce(mg.ones((1 + d.rank() // 2,)))
        except errors.DistributedError as error:
            raised.append(error)
            raise

    first, second = d.run(shard, 2)
    assert (first == second).all()
    alone = model_of()
    (alone(mg.variable(x)) ** 2).mean().backward()
    np.testing.assert_allclose(first, alone.weight.grad.numpy(), rtol=1e-6)
    with pytest.raises(errors.DistributedError):
        d.run(differ, 3)
    assert [error.ranks for error in raised] == [(2,)] * 3
    assert all("all_reduce 'sum' of float32[2]" in str(error) for error in raised)
