"""The fast path does what the slow one does: bits, layouts, nodes, gradients, errors."""

import gc
import inspect
import threading
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad.array.array import Array
from minigrad.devices.cpu.own_matmul import use_own
from minigrad.devices.threads import threads
from minigrad.errors import ArgumentTypeError, ShapeError
from minigrad.ops import linear, names, routes
from minigrad.tape.groups import ParameterGroup
from tests.ops.cells import LAYOUTS, RANDOM, arranged, call, draw, public_ops, reason, samples
from tests.slow import slow_path

OPS = {n: op for n, op in public_ops().items() if n not in RANDOM}
# Operations that need more than programs and products: they take the slow path.
LONG = {
    "cholesky_factor", "conv2d", "conv_input", "conv_weight", "fold", "largest", "least_squares",
    "move", "setitem", "unfold",
}  # fmt: skip


@pytest.fixture(autouse=True)
def none_is_known(monkeypatch):
    """Start with no routes, and put back those that were known."""
    before = {op: dict(op.calls) for op in OPS.values()}
    for calls in names.known.values():
        calls.clear()
    for op in OPS.values():
        op.calls.clear()
        for plan in op.plans.values():
            if hasattr(plan, "routes"):
                monkeypatch.setattr(plan, "routes", {})
    yield
    for op, calls in before.items():
        op.calls.clear()
        op.calls.update(calls)


def known(op):
    """The routes of an operation."""
    return [f for f in op.calls.values() if f is not None and f.__code__.co_name == "route"]


def inputs(op, shapes, attributes, dtype, layout, requires_grad):
    arrays = draw(op, shapes, attributes, dtype)
    found = []
    for x, _ in arranged(arrays, layout):
        may = requires_grad and x.dtype.is_float
        found.append(x.detach().requires_grad_() if may else x)
    return found


def seen(value):
    """What can be seen of an Array or a number."""
    if not isinstance(value, Array):
        return value
    mine = mg.Variable(value)
    kind = type(value).__name__, value.is_flat
    return *kind, value.layout(), value.dtype, value.size, mine.numpy().tobytes()


def outcome(op, variables, attributes, dy=None):
    """All that a call and its gradients give, as values that can be compared."""
    y = call(op, variables, attributes)
    found = [seen(y.array), y.requires_grad]
    shared = [x.array.storage is y.array.storage for x in variables]
    node = y.node
    if node is None:
        return [*found, shared]
    found += [
        shared,
        (node.op, getattr(node.plan, "mask", None)),
        [seen(k) for k in node.kept],
        node.versions,
        node.wanted,
    ]
    found += [node.attributes, [e is not None for e in node.edges], node.line]
    found.append(getattr(y.array, "made_at", None))
    dy = mg.variable(np.linspace(-1.0, 2.0, y.size).reshape(y.shape), dtype=y.dtype)
    with mg.no_grad():
        grads = node.plan.backward(node, dy.array)
    found += [None if g is None else seen(g) for g in grads]
    found += [None if g is None else g.storage is dy.array.storage for g in grads]
    return found


@pytest.mark.parametrize("name", OPS)
def test_calls_after_the_first_give_the_same(name):
    op = OPS[name]
    cells = [(d, "contiguous") for d in ("int64", "int32", "bool")]
    for dtype, layout in cells + [("float32", layout) for layout in LAYOUTS]:
        if reason(op, dtype, layout) is not None:
            continue
        for shapes, attributes in samples(op)[: 9 if layout == "contiguous" else 1]:
            for requires_grad in (True, False)[: 2 if layout == "contiguous" else 1]:
                variables = inputs(op, shapes, attributes, dtype, layout, requires_grad)
                with slow_path():
                    expected = outcome(op, variables, attributes)
                for _ in range(4):
                    assert outcome(op, variables, attributes) == expected, (dtype, layout, shapes)


@pytest.mark.parametrize("name", OPS)
def test_which_operations_have_a_fast_path(name):
    op = OPS[name]
    shapes, attributes = samples(op)[0]
    variables = inputs(op, shapes, attributes, "float32", "contiguous", True)
    for _ in range(3):
        y = call(op, variables, attributes)
    kernels = (
        (op.program.entry + op.program.entry_bool + op.program.entry_number) if op.is_plain else []
    )
    is_uniform = any(entry is not None for entry in kernels)
    assert (is_uniform or bool(known(op))) != (name in LONG), y


MIXED = {"elu", "huber_element", "leaky_relu", "where"}  # gradients of numbers or masks beside dy
UNIFORM = [n for n, op in OPS.items() if op.is_plain and op.has_gradients and n not in MIXED]


@pytest.mark.parametrize("name", UNIFORM)
def test_gradients_of_flat_operands_have_a_fast_path(name):
    """One kernel makes all gradients; where it has several outputs, its code is kept, too."""
    op = OPS[name]
    shapes, attributes = next(s for s in samples(op) if len(set(s[0])) == 1)
    node = call(op, inputs(op, shapes, attributes, "float32", "contiguous", True), attributes).node
    node.plan.backward(node, mg.ones(shapes[0]).array)
    program = getattr(node.plan, "program", None)
    assert program is None or program.entry[mg.float32.index] is not None


def test_generated_texts_can_be_read():
    x, c = mg.ones((2, 3)), mg.ones(3)
    for _ in range(3):
        x + c
    (route,) = known(OPS["add"])
    assert "p1 = x1.buffer.address" in inspect.getsource(route)
    assert "entry(source.address" in inspect.getsource(OPS["exp"].apply)


def test_parameters_have_routes():
    layer, x = mg.nn.Linear(3, 2), mg.rand((4, 3))
    for _ in range(4):
        found = layer(x)
        np.testing.assert_allclose(
            found.numpy(), x.numpy() @ layer.weight.numpy().T + layer.bias.numpy(), rtol=1e-6
        )
    assert len(known(OPS["linear"])) == 1


def test_other_values_of_the_same_layouts():
    def f(x, r):
        return ((x * r + 2.5) @ r.reshape(3, 1)).mean(0) ** 3

    generator = np.random.default_rng(0)
    for _ in range(5):
        a, b = generator.random((4, 3)), generator.random(3)
        x, r = (mg.variable(v, requires_grad=True) for v in (a, b))
        f(x, r).sum().backward()
        inner = (a * b + 2.5) @ b
        np.testing.assert_allclose(f(x, r).numpy(), [inner.mean() ** 3])
        slope = 3 * inner.mean() ** 2 / 4
        np.testing.assert_allclose(x.grad.numpy(), slope * np.tile(b * b, (4, 1)))
        np.testing.assert_allclose(r.grad.numpy(), slope * (a * b + a * b + 2.5).sum(0), rtol=1e-12)


def test_a_number_is_read_anew():
    x = mg.variable([1.0, 2.0])
    for k in range(6):
        assert (x - k).tolist() == [1.0 - k, 2.0 - k]
        assert (k - 0.5 - x).tolist() == [k - 1.5, k - 2.5]
        assert mg.where(x > k, x, k + 0.5).tolist() == [v if v > k else k + 0.5 for v in (1.0, 2.0)]
        assert (x > np.float32(k)).tolist() == [k < 1, k < 2]
    assert [(1 / (x - x) * s).tolist()[0] for s in (0.0, -0.0, 1, -1)][2:] == [np.inf, -np.inf]
    assert np.signbit((x.sum() * 0 - 0.0).numpy()) == np.signbit(np.float32(0.0) - 0.0)


@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_a_number_that_the_dtype_does_not_hold_raises_each_time(dtype):
    x = mg.variable([1, 2], dtype=dtype)
    for _ in range(4):
        assert (x - 1).tolist() == [0, 1]
        with pytest.raises(mg.errors.DTypeError):
            x - 2**40


def test_gradients_made_of_operations_note_all_of_them():
    """Operators inside took their own fast path, past the notes, where no memory lay ready."""
    dy = mg.variable([[1.0], [2.0], [3.0]])
    for n in range(2, 40):
        x = mg.arange(3 * n).reshape(3, n).to("float32").requires_grad_()
        for _ in range(5):
            y = x.max(axis=1, keepdims=True)
            (g,) = mg.gradients(y, [x], dy)
            expected = np.zeros((3, n))
            expected[:, -1] = [1.0, 2.0, 3.0]
            np.testing.assert_array_equal(g.numpy(), expected)


def test_arguments_that_are_equal_but_not_the_same():
    x = mg.ones((2, 3))
    for _ in range(4):
        assert mg.sum(x, 1).tolist() == [3.0, 3.0]
    for axis in (True, 1.0, (0, True), (1.0,)):
        with pytest.raises(mg.errors.MinigradError):
            mg.sum(x, axis)


def test_operands_that_share_memory_are_not_taken_for_one():
    a = mg.variable([[1.0, 2.0], [3.0, 4.0]])
    b = mg.variable([[5.0, 6.0], [7.0, 8.0]])
    for _ in range(3):
        assert (a @ a).tolist() == [[7.0, 10.0], [15.0, 22.0]]
        assert (a - a[:1]).tolist() == [[0.0, 0.0], [2.0, 2.0]]
    assert (a @ b).tolist() == [[19.0, 22.0], [43.0, 50.0]]
    assert (a - b[:1]).tolist() == [[-4.0, -4.0], [-2.0, -2.0]]


def test_a_view_that_was_written_to_raises():
    base = mg.ones((2, 2), requires_grad=True) * 1.0
    view = base[0]
    for _ in range(4):
        view.sum()
    with mg.no_grad():
        base.fill_(2.0)
    with pytest.raises(mg.errors.InPlaceError):
        view.sum()


def test_modes_hold_on_the_fast_path():
    x, r = mg.ones((2, 3), requires_grad=True), mg.ones(3)
    for _ in range(4):
        assert (x + r).requires_grad
        with mg.no_grad():
            assert (x + r).node is None
        with mg.inference():
            assert type(x + r).__name__ == "InferenceVariable"
        with mg.GradManager().attach([x]) as manager:
            manager.backward((x + r).sum())
    assert x.grad.tolist() == [[4.0] * 3] * 2


def test_products_of_our_own_kernel_are_not_passed_by():
    a, b = mg.rand((3, 4)), mg.rand((4, 5))
    for _ in range(4):
        expected = a @ b
    with use_own():
        from minigrad.devices.cpu import own_matmul

        calls, product = [], own_matmul._product
        own_matmul._product = lambda *given: calls.append(1) or product(*given)
        try:
            found = a @ b
        finally:
            own_matmul._product = product
    assert calls
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5)


def test_saved_values_are_copied_where_others_may_write():
    data = np.ones((2, 2), np.float32)
    foreign = mg.from_numpy(data)
    w = mg.ones(2, requires_grad=True)
    for _ in range(4):
        y = w * foreign
        data[...] = 5.0
        (g,) = mg.gradients(y.sum(), [w])
        assert g.tolist() == [2.0, 2.0]
        data[...] = 1.0
    x = mg.ones((2, 2))
    with mg.memory.copy_on_saved_write():
        for _ in range(4):
            y = w * x
            x += 1.0
            (g,) = mg.gradients(y.sum(), [w])
            assert g.tolist() == [2.0 * float(x[0, 0].item() - 1.0)] * 2


def test_nothing_keeps_a_graph():
    def step():
        x = mg.ones((3, 2), requires_grad=True)
        y = (mg.softmax(x * mg.ones(2)) @ mg.ones((2, 2))).max()
        y.backward()
        return weakref.ref(x), weakref.ref(y.node)

    for _ in range(5):
        found = step()
        gc.collect()
        assert [r() for r in found] == [None, None]


def test_memory_is_counted_as_on_slow_path():
    x, r = mg.rand((40, 30)), mg.rand(30)

    def used():
        before = mg.memory.stats()["allocated_bytes"]
        y = mg.var(x + r, ddof=0)
        return mg.memory.stats()["allocated_bytes"] - before, y.item()

    first, _, *more = [used() for _ in range(4)]  # the second call finds out what to do
    with slow_path():
        assert [first, *more] == [used()] * 3


def test_a_table_of_routes_stays_small():
    r = mg.ones(1)
    op = OPS["add"]
    for n in range(2, routes.MOST + 20):
        for _ in range(2):
            mg.ones(n) + r
    assert len(op.calls) <= routes.MOST


def test_threads_share_routes():
    wrong = []

    def work(k):
        for n in range(2, 40):
            x, r = mg.full((n, 3), float(k)), mg.full((3,), 2.0 * k)
            for _ in range(4):
                if (x + r).sum().item() != 9.0 * k * n:
                    wrong.append((k, n))

    threads = [threading.Thread(target=work, args=(k,)) for k in (1, 2, 3, 4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_mean_by_a_learner_replaces_the_sum_of_broadcast_gradients():
    w, x = mg.ones(3, requires_grad=True), mg.ones((2, 3))
    for _ in range(4):
        (w * x).sum().backward()
    calls = []

    def unbroadcast(gradient, shape):
        calls.append(shape)
        return gradient.sum(0)

    with mg.use(unbroadcast=unbroadcast):
        (w * x).sum().backward()
    assert calls


def test_negative_exponents_of_ints_raise_after_positive_ones():
    for x in (mg.variable([1, 2]), mg.variable([True, False])):
        for _ in range(4):
            assert (x**3).tolist() in ([1, 8], [1, 0])
        with pytest.raises(mg.errors.ArgumentError):
            x**-2


def test_an_operation_that_returns_its_input():
    x = mg.variable([1.0, 2.0], requires_grad=True)
    w = mg.variable([3.0, 4.0], requires_grad=True)
    for k in range(8):
        y = mg.expand(x, (2,))
        z = (y.reshape(2, 1) * w.reshape(2, 1)).sum() if k % 5 < 4 else (y * w).sum()
        (g,) = mg.gradients(z, [x], create_graph=True)
        assert g.tolist() == [3.0, 4.0]


def test_numbers_of_other_libraries_types():
    x = mg.variable([1.0, 2.0])
    for _ in range(4):
        assert (x + np.longdouble(1.5)).tolist() == [2.5, 3.5]
        assert mg.maximum(x, np.int32(1)).tolist() == [1.0, 2.0]
        with pytest.raises(mg.errors.ArgumentTypeError):
            x + np.timedelta64(5, "ns")


def test_the_call_that_notes_needs_no_more_memory():
    gc.collect()  # what earlier tests left must not go away in between
    a = mg.zeros((1_000_000,))
    start = mg.memory.stats()["current_bytes"]
    for _ in range(4):
        mg.memory.reset_peak()
        a[:3] * a[3:6]
        assert mg.memory.stats()["peak_bytes"] - start < 10_000
    assert a.refcount == 1


@pytest.mark.parametrize("name", ["prod", "var", "max", "norm", "mean", "softmax"])
def test_gradients_need_no_more_memory_at_the_peak(name):
    gc.collect()  # what earlier tests left must not go away in between
    x, more = mg.rand((40, 40)).requires_grad_(), {"ddof": 0} if name == "var" else {}

    def peak():
        y = getattr(mg, name)(x, **more)
        dy = mg.ones(y.shape)
        start = mg.memory.stats()["current_bytes"]
        mg.memory.reset_peak()
        mg.gradients(y, [x], dy)
        return mg.memory.stats()["peak_bytes"] - start

    found = [peak() for _ in range(5)]
    with slow_path():
        assert found[-1] <= 1.1 * peak()


SEVERAL = [n for n, op in OPS.items() if len(op.inputs) > 1 and op.has_gradients]


@pytest.mark.parametrize("name", SEVERAL)
def test_gradients_of_some_inputs_are_those_of_all(name):
    op = OPS[name]
    shapes, attributes = samples(op)[0]
    variables = inputs(op, shapes, attributes, "float32", "contiguous", True)
    leaves = [x for x in variables if isinstance(x, mg.Variable) and x.requires_grad]
    for again in (False, True):
        for _ in range(3):
            y = call(op, variables, attributes)
            dy = mg.ones(y.shape)
            more = {"retain_graph": True, "create_graph": again}
            expected = mg.gradients(y, leaves, dy, **more)
            for x, g in zip(leaves, expected, strict=True):
                (found,) = mg.gradients(y, [x], dy, **more)
                assert (found is None) == (g is None)
                if g is None:  # an input that takes no gradient
                    continue
                np.testing.assert_allclose(found.numpy(), g.numpy(), rtol=1e-5, atol=1e-6)


def test_a_gradient_that_nobody_asked_for_is_not_computed(monkeypatch):
    x, w = mg.ones((2, 3)).requires_grad_(), mg.ones((3, 2)).requires_grad_()
    y = (x @ w).sum()
    counted = []
    real = linear.matmul_arrays
    monkeypatch.setattr(linear, "matmul_arrays", lambda *a: counted.append(1) or real(*a))
    mg.gradients(y, [x], retain_graph=True)
    assert len(counted) == 1
    mg.gradients(y, [x, w])
    assert len(counted) == 3


@pytest.mark.parametrize("name", ["sum", "mean", "max", "var", "norm", "prod", "all"])
def test_what_equals_an_axis_is_no_axis_after_calls_either(name):
    function, more = getattr(mg, name), {"ddof": 0} if name == "var" else {}
    x = mg.ones((2, 3))
    for _ in range(4):
        function(x, axis=(0, 1), **more)
    for axis in ((0, 1.0), (0, True), (False, True)):
        with pytest.raises(ArgumentTypeError, match="wanted an int for axis"):
            function(x, axis=axis, **more)
    assert function(x, axis=(np.int64(0), 1), **more).shape == ()


def test_wrong_calls_are_explained_after_right_ones():
    x = mg.ones((2, 3))
    for _ in range(4):
        mg.exp(x), mg.add(x, x), x @ x.T
    for call_ in (
        lambda: mg.exp(), lambda: mg.exp(x, x), lambda: mg.exp(x, 1, 2), lambda: mg.exp(y=x),
        lambda: mg.add(x), lambda: mg.add(x, x, x), lambda: mg.add(x, b=x), lambda: x.exp(1),
        lambda: x @ "a", lambda: x @ None,
    ):  # fmt: skip
        with pytest.raises(ArgumentTypeError, match=r"test_routes\.py"):
            call_()
    with pytest.raises(ShapeError, match=r"test_routes\.py"):
        x @ x


@pytest.mark.parametrize("count", [1, 3, 4, 20, 32, 33])
def test_joining_many_is_joining_few(count):
    op, more = OPS["concatenate"], (1,)
    xs = [mg.rand((2, 1 + k % 3)).requires_grad_(k % 3 == 1) for k in range(count)]
    xs[0] = mg.arange(4).reshape(2, 2)
    for _ in range(2):
        with slow_path():
            expected = outcome(op, xs, more)
        for _ in range(4):
            assert outcome(op, xs, more) == expected
        xs = [x.detach() for x in xs]
    assert len(known(op)) == (count <= 32)


def test_operators_ask_foreign_types_for_their_reflected_method():
    class Foreign:
        __rmatmul__ = __radd__ = __rmul__ = lambda self, other: ("asked", other)

    class Silent:
        def __rmatmul__(self, other):
            return NotImplemented

    x = mg.ones((2, 2))
    for _ in range(4):
        assert x @ x.T is not None
        for y in (x @ Foreign(), x + Foreign(), x * Foreign()):
            assert y == ("asked", x)
        with pytest.raises(TypeError, match="unsupported operand"):
            x @ Silent()
        assert (x @ np.eye(2, dtype=np.float32)).tolist() == (x @ [[1.0, 0], [0, 1]]).tolist()


def test_gradients_go_directly_into_flat_buffers_after_calls_too(monkeypatch):
    layer, x, asked = mg.nn.Linear(3, 2), mg.rand((4, 3)), []
    for _ in range(4):  # without a buffer these gradients have a route
        (layer(x) ** 2).mean().backward()
    layer.weight.grad = layer.bias.grad = None
    manager = mg.GradManager(layer.parameters())
    destination = ParameterGroup.destination

    def counted(group, parameter):
        asked.append(parameter)
        return destination(group, parameter)

    monkeypatch.setattr(ParameterGroup, "destination", counted)
    for k in range(1, 7):
        with manager:
            manager.backward((layer(x) ** 2).mean())
        assert len(asked) == 2 * k  # weight and bias
        layer.weight.grad = layer.bias.grad = None


def test_foreign_memory_is_told_from_our_own_of_the_same_layout():
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    own, w = mg.variable(data).T, mg.variable(np.ones((3, 2), np.float32), requires_grad=True)
    for k in range(8):
        foreign = mg.from_numpy(data).T
        x = own if k % 2 else foreign
        y = (w * x).sum()
        if x is foreign:
            data += 1.0  # what was saved is a copy
        (g,) = mg.gradients(y, [w])
        expected = own.numpy() if x is own else data.T - 1.0
        np.testing.assert_array_equal(g.numpy(), expected)


def test_a_narrowed_plan_computes_only_what_is_asked():
    a, b = mg.ones(3).requires_grad_(), mg.ones(3).requires_grad_()
    plan = (a * b).node.plan
    narrow = plan.narrowed((a, b), {b})
    assert [f is None for f in narrow.formulas] == [True, False]
    assert len(narrow.program.outputs) == 1
    assert plan.narrowed((a, b), {a, b}) is plan
    assert plan.narrowed((a, b), {b}) is narrow


def test_products_of_what_blas_cannot_read_have_a_route():
    x, w = mg.ones(()).expand((2, 3)), mg.rand((3, 2))
    for _ in range(4):
        np.testing.assert_allclose((x @ w).numpy(), np.ones((2, 3), np.float32) @ w.numpy(), 1e-6)
    assert len(known(OPS["matmul"])) == 1


SHARED = {  # of more elements than one thread gets, and sums at an index that take scratch memory
    "cumsum": (lambda x, i: mg.cumsum(x.reshape(40, 2500), 1), "cumsum"),
    "argsort": (lambda x, i: mg.argsort(x.reshape(40, 2500)), "order_of_rows"),
    "argmax": (lambda x, i: mg.argmax(x.reshape(40, 2500), axis=1), "argmax"),
    "gather": (lambda x, i: x[i], "take"),
    "scatter": (lambda x, i: mg.index_add(mg.zeros((7,)), i % 7, x, 0), "take_adjoint"),
}


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("name", SHARED)
def test_kernels_that_threads_share_have_routes(name, count, monkeypatch):
    function, op = SHARED[name]
    for k in range(5):
        x = mg.rand((100_000,), "float32", mg.Generator(k))
        i = mg.randint(0, x.size, x.shape, mg.Generator(k))
        monkeypatch.setattr(threads, "count", 1)
        with slow_path():
            expected = seen(function(x, i).array)
        monkeypatch.setattr(threads, "count", count)
        assert seen(function(x, i).array) == expected
    assert known(OPS[op])


def test_results_larger_than_the_limit_have_no_route(monkeypatch):
    monkeypatch.setattr(routes, "LARGEST", 600 * 600 - 1)
    a, b = mg.ones((600, 1)), mg.ones((1, 600))
    for _ in range(4):
        assert (a + b).shape == (600, 600)
    assert known(OPS["add"]) == []


def test_views_of_large_arrays_have_routes():
    x = mg.rand((600, 600)).requires_grad_()
    for _ in range(4):
        assert x.T[3].tolist() == x.numpy()[:, 3].tolist()
        (g,) = mg.gradients(x[::2].sum(), [x])
        assert g.numpy().sum(1).tolist() == [600.0, 0.0] * 300
        assert x.T.reshape((360_000,)).numpy().tobytes() == x.numpy().T.tobytes()
    assert known(OPS["permute"])
    assert known(OPS["slice"])


def test_what_equals_an_index_is_no_index_after_calls_either():
    x = mg.arange(4)
    for _ in range(4):
        assert x[0:1].tolist() == [0]
        assert x[1].tolist() == 1
    for index in (slice(0.0, 1), slice(0, 1.0), 1.0):
        with pytest.raises(ArgumentTypeError, match="index: wanted"):
            x[index]


@pytest.mark.parametrize("join", [lambda a, b: mg.concatenate([a, b]), lambda a, b: a * b])
def test_hooks_of_leaves_that_nobody_asked_for_do_not_run(join):
    a, b, seen_ = mg.ones(2).requires_grad_(), mg.ones(2).requires_grad_(), []
    b.register_hook(seen_.append)
    for _ in range(4):
        mg.gradients(join(a, b).sum(), [a])
    assert seen_ == []


def test_nodes_name_the_users_line_on_every_path():
    x, layer = mg.rand((3, 3)).requires_grad_(), mg.nn.Linear(3, 3)
    for _ in range(4):
        for y in (
            mg.softmax(x, 0), x.reshape(9), x @ x, x[0], x**2, x.sum(0), mg.add(x, x), layer(x),
            mg.tanh(x), x.T, 1.0 - x, mg.mse(x, x * 2.0),
        ):  # fmt: skip
            assert "test_routes.py" in y.node.line, y
