"""Where Variables live: moving, defaults, mixing, NumPy, memory. On the simulated GPU."""

import copy
import gc
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import minigrad as mg
from minigrad.array.dtypes import DTYPES
from minigrad.devices import backend
from minigrad.devices.gpu.driver import state as cuda_state
from minigrad.errors import ArgumentTypeError, DeviceError, GradientError, TraceError
from tests.functions import Two
from tests.slow import slow_path

DEVICE = "simt"


def values(x):
    """A Variable's elements, wherever it is."""
    return x.detach().to("cpu").numpy()


# -- moving ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [d.name for d in DTYPES])
@pytest.mark.parametrize("shape", [(3, 4), (), (0, 3)])
def test_values_come_back_as_they_went(dtype, shape):
    data = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 3).astype(dtype)
    x = mg.variable(data).to(DEVICE)
    assert x.device == DEVICE
    assert x.dtype.name == dtype
    back = x.to("cpu")
    assert back.device == "cpu"
    np.testing.assert_array_equal(back.numpy(), data)


def test_views_are_moved_as_they_are_shown():
    data = np.arange(24.0).reshape(2, 3, 4)
    x = mg.variable(data)
    for index in [np.s_[:, ::-1, 1:3], np.s_[1, :, ::2], np.s_[..., None, 0]]:
        there = x[index].to(DEVICE)
        np.testing.assert_array_equal(values(there), data[index])
        np.testing.assert_array_equal(values(x.to(DEVICE)[index]), data[index])
    np.testing.assert_array_equal(values(x.to(DEVICE).T), data.T)
    np.testing.assert_array_equal(values(x[0].expand((5, 3, 4)).to(DEVICE)), [data[0]] * 5)


def test_moving_to_where_it_is_gives_the_same_variable():
    x = mg.ones((2,), device=DEVICE)
    assert x.to(DEVICE) is x
    y = mg.ones((2,))
    assert y.to("cpu") is y


def test_what_was_moved_is_a_copy():
    x = mg.ones((2,))
    y = x.to(DEVICE)
    x += 1.0
    assert y.tolist() == [1.0, 1.0]
    y += 3.0
    assert x.tolist() == [2.0, 2.0]


def test_gradients_come_back_to_the_source_and_of_second_order_too():
    x = mg.variable([1.0, 2.0], requires_grad=True)
    y = (x.to(DEVICE) ** 3).sum()
    assert y.device == DEVICE
    y.backward(create_graph=True)
    assert x.grad.device == "cpu"
    assert x.grad.tolist() == [3.0, 12.0]
    first = x.grad
    x.grad = None
    mg.sum(first).backward()
    assert x.grad.tolist() == [6.0, 12.0]


def test_gradients_of_both_devices_meet_in_one_leaf():
    x = mg.variable([1.0, 2.0], requires_grad=True)
    there = (x.to(DEVICE) * 2.0).sum().to("cpu")
    (there + (x * 3.0).sum()).backward()
    assert x.grad.tolist() == [5.0, 5.0]


def test_variable_of_a_variable_stays_where_that_is_unless_told():
    x = mg.ones((2,), device=DEVICE)
    assert mg.variable(x).device == DEVICE
    assert mg.variable(x, dtype="float64").dtype == "float64"
    assert mg.variable(x, device="cpu").device == "cpu"
    assert mg.variable(mg.ones((2,)), device=DEVICE).device == DEVICE


def test_an_unknown_device_is_named_with_those_there_are():
    for act in (
        lambda: mg.ones((2,)).to("gpu"),
        lambda: mg.zeros((2,), device="gpu"),
        lambda: mg.device("gpu"),
        lambda: mg.set_default_device("gpu"),
    ):
        with pytest.raises(DeviceError, match=r"cpu, numpy, simt[\s\S]*'gpu'"):
            act()
    with pytest.raises(ArgumentTypeError, match="a name"):
        mg.zeros((2,), device=0)


@pytest.mark.skipif(cuda_state.hindrance() is None, reason="there is a GPU")
def test_a_device_that_is_not_here_says_why_and_where_it_was_asked_for():
    lent = SimpleNamespace(__dlpack__=None, __dlpack_device__=lambda: (2, 0))
    for act in (
        lambda: mg.ones((2,)).to("cuda"),
        lambda: mg.zeros((2,), device="cuda"),
        lambda: mg.from_dlpack(lent),
        lambda: mg.variable(lent),
    ):
        with pytest.raises(DeviceError, match=r"no device 'cuda' here\n  got: .*") as caught:
            act()
        assert "test_device.py" in caught.value.where


# -- defaults ----------------------------------------------------------------------------------


def test_device_block_decides_where_new_things_are_and_nothing_else():
    here = mg.ones((2,))
    with mg.device(DEVICE):
        assert mg.get_default_device() == DEVICE
        made = [
            mg.zeros((2,)), mg.full((2,), 3), mg.variable([1.0]), mg.rand((2,)), mg.randn((2,)),
            mg.randint(0, 5, (2,)), mg.randperm(3), mg.arange(3), mg.linspace(0, 1, 3), mg.eye(2),
            mg.nn.Linear(2, 3).weight, mg.nn.Parameter([1.0]),
        ]  # fmt: skip
        assert {x.device for x in made} == {DEVICE}
        assert mg.zeros((2,), device="cpu").device == "cpu"
        assert (here + 1.0).device == mg.zeros_like(here).device == "cpu"
        assert mg.from_numpy(np.ones(2)).device == "cpu"
    assert mg.get_default_device() == mg.zeros((2,)).device == "cpu"


def test_device_blocks_nest_and_are_left_by_errors():
    with mg.device(DEVICE):
        with mg.device("cpu"):
            assert mg.zeros((1,)).device == "cpu"
        assert mg.zeros((1,)).device == DEVICE
        with pytest.raises(ValueError, match="mine"), mg.device("cpu"):
            raise ValueError("mine")
        assert mg.zeros((1,)).device == DEVICE
    assert mg.zeros((1,)).device == "cpu"


def test_default_device_is_of_one_thread():
    seen = []
    mg.set_default_device(DEVICE)
    try:
        thread = threading.Thread(target=lambda: seen.append(mg.zeros((1,)).device))
        thread.start()
        thread.join()
        assert mg.zeros((1,)).device == DEVICE
    finally:
        mg.set_default_device("cpu")
    assert seen == ["cpu"]
    assert mg.zeros((1,)).device == "cpu"


def test_device_decorates_functions():
    @mg.device(DEVICE)
    def made(deeper=False):
        return (made() if deeper else mg.ones((1,)).device), mg.get_default_device()

    assert made(deeper=True) == ((DEVICE, DEVICE), DEVICE)
    assert mg.get_default_device() == "cpu"


def test_decorated_functions_of_two_threads_leave_each_its_own_device():
    entered, both, left = (threading.Event() for _ in range(3))
    decorate, found = mg.device(DEVICE), []

    @decorate
    def first():
        entered.set()
        both.wait(10)

    @decorate
    def second():
        both.set()
        left.wait(10)

    def run():
        first()
        found.append(mg.get_default_device())
        left.set()

    thread = threading.Thread(target=run)
    with mg.device(DEVICE):
        thread.start()
        entered.wait(10)
        second()
        found.append(mg.get_default_device())
    thread.join()
    assert found == ["cpu", DEVICE]


def test_active_device_computes_and_refuses_arrays_of_others():
    x = mg.ones((2,))
    device = backend.device_named(DEVICE)
    with backend.active(device), slow_path():
        assert (mg.ones((2,)) + 1.0).device == DEVICE
        with pytest.raises(DeviceError, match=rf"on {DEVICE}[\s\S]*on cpu"):
            x.clone()
        assert x.numpy().sum() == x[0].item() + 1.0 == 2.0  # looking computes nothing
        assert (x.to(DEVICE) + 1.0).tolist() == [2.0, 2.0]
        with pytest.raises(DeviceError, match=rf"on {DEVICE}[\s\S]*on cpu"):
            x + 1.0
    assert (x + 1.0).tolist() == [2.0, 2.0]


def test_fast_paths_of_the_cpu_never_see_arrays_of_the_device():
    x = mg.variable([1.0, 2.0], device=DEVICE, requires_grad=True)
    y = (x * x).exp()
    y.sum().backward()
    made = [
        x, y, x.grad, x.detach().clone(), x.to("float64"), mg.zeros_like(x), x.sum(), mg.rand((2,)),
        mg.concatenate([x, y]), mg.full((2,), 1, device=DEVICE), x[[0]], x.detach().T,
    ]  # fmt: skip
    assert [v.array.is_flat for v in made] == [v.device == "cpu" for v in made]


@pytest.mark.parametrize("place", ["cpu", DEVICE])
def test_printing_in_a_compiled_step_is_refused_in_the_same_words_everywhere(place):
    step = mg.compile(lambda x: (repr(x * 2.0), x)[1])
    with mg.device(place):
        x = mg.ones((2,))
        step(x)
        with pytest.raises(TraceError, match="print or repr needs the elements"):
            step(x)


def test_compiled_functions_follow_the_default_device():
    x, double = mg.ones((2,)), mg.compile(lambda x: mg.ones((2,)) * 2.0)
    made = []
    for place in ("cpu", DEVICE, "cpu"):
        with mg.device(place):
            made += [double(x).device for _ in range(4)]
    assert made == ["cpu"] * 4 + [DEVICE] * 4 + ["cpu"] * 4
    with mg.device(DEVICE):
        mix = mg.compile(lambda x: x + mg.ones((2,)))
        for _ in range(3):
            with pytest.raises(DeviceError, match="one device"):
                mix(x)
    move = mg.compile(lambda x: x.to(DEVICE) + 1.0)
    assert move(x).device == DEVICE  # the first call is eager
    with pytest.raises(mg.errors.TraceError, match="one device"):
        move(x)


# -- mixing ------------------------------------------------------------------------------------

PAIRS = {
    "operator": lambda a, b: a + b,
    "in place": lambda a, b: a.add_(b),
    "copy_": lambda a, b: a.copy_(b),
    "matmul": lambda a, b: a @ b,
    "function": mg.maximum,
    "index": lambda a, b: a[b.to("int64")],
    "mask": lambda a, b: a[b > 0.0],
    "setitem": lambda a, b: a.__setitem__(0, b[0]),
    "setitem at an index": lambda a, b: a.__setitem__(b[0].to("int64"), 0.0),
    "concatenate": lambda a, b: mg.concatenate([a, b]),
    "loss": lambda a, b: mg.cross_entropy(a, b[0].to("int64")),
    "attention": lambda a, b: mg.scaled_dot_product_attention(a, a, a, mask=b),
    "allclose": mg.allclose,
}


@pytest.mark.parametrize("how", PAIRS)
def test_mixing_devices_names_both_and_the_fix(how):
    a, b = mg.ones((2, 2), device=DEVICE), mg.ones((2, 2))
    for pair in ((a, b), (b, a)):
        with pytest.raises(
            DeviceError, match=r"move what is on the cpu: x\.to\('simt'\)"
        ) as caught:
            PAIRS[how](*pair)
        assert "simt" in str(caught.value)
        assert "cpu" in str(caught.value)
    assert a.tolist() == b.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert a.version == b.version == 0


def test_data_that_is_no_variable_goes_where_its_operands_are():
    x = mg.ones((2, 2), device=DEVICE)
    results = [
        x + np.ones(2, np.float32), np.ones(2, np.float32) + x, x @ [[1.0], [1.0]], x[[1, 0]],
        mg.cross_entropy(x, [0, 1]), mg.mse(x, np.ones((2, 2), np.float32)),
        mg.where(x > 0.0, [1.0, 2.0], x), mg.concatenate([[[1.0, 1.0]], x]), x + np.float32(1.0),
        mg.one_hot(mg.zeros((2,), "int64", DEVICE), 3), mg.batch_norm(x, training=True),
    ]  # fmt: skip
    assert {y.device for y in results} == {DEVICE}
    layer = mg.nn.Linear(2, 3).to(DEVICE)
    assert layer(np.ones((4, 2), np.float32)).device == DEVICE
    x[0] = [5.0, 6.0]
    assert x.tolist() == [[5.0, 6.0], [1.0, 1.0]]


def test_gradients_of_another_device_are_refused_everywhere():
    x = mg.ones((2,), device=DEVICE).requires_grad_()
    away = mg.ones((2,))
    with pytest.raises(DeviceError, match="dy on simt"):
        (x * 2.0).backward(away)
    with pytest.raises(DeviceError, match="a gradient on simt"):
        x.grad = away
    handle = x.register_hook(lambda g: away)
    with pytest.raises(DeviceError, match="hook"):
        (x * 2.0).sum().backward()
    handle.remove()
    gm = mg.GradManager([x], callbacks=lambda p, g: away)
    with pytest.raises(DeviceError, match="callback"), gm:
        gm.backward((x * 2.0).sum())

    def whole(group, flat):
        return mg.ones(flat.shape)

    whole.whole_group = True
    y = mg.ones((2,), device=DEVICE).requires_grad_()
    gm = mg.GradManager([y], callbacks=whole)
    with pytest.raises(DeviceError, match="wanted a flat gradient on simt"), gm:
        gm.backward((y * 2.0).sum())
    assert x.grad is y.grad is None


def test_function_with_a_gradient_on_another_device_is_told():
    class Wrong(mg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, dy):
            return dy.to("cpu")

    x = mg.ones((2,), device=DEVICE).requires_grad_()
    with pytest.raises(DeviceError, match="device simt"):
        Wrong.apply(x).sum().backward()


def test_function_with_two_outputs_gets_missing_gradients_on_its_device():
    x = mg.ones((2,), device=DEVICE).requires_grad_()
    Two.apply(x)[1].sum().backward()
    assert x.grad.device == DEVICE
    assert x.grad.tolist() == [3.0, 3.0]


# -- NumPy, Python and others --------------------------------------------------------------------


def test_numpy_is_refused_with_the_way_over_the_cpu():
    x = mg.ones((2,), device=DEVICE)
    for act in (x.numpy, lambda: np.asarray(x), lambda: np.sum(x), lambda: x.numpy(writable=True)):
        with pytest.raises(DeviceError, match=r"x\.to\('cpu'\)\.numpy\(\)"):
            act()
    for act in (x.__dlpack__, x.__dlpack_device__, lambda: np.from_dlpack(x)):
        with pytest.raises(DeviceError, match=r"x\.to\('cpu'\)"):
            act()
    assert not hasattr(x, "__cuda_array_interface__")
    with pytest.raises(GradientError):
        np.asarray(mg.ones((2,), device=DEVICE, requires_grad=True))


def test_python_reads_values_wherever_they_are():
    x = mg.variable([[1.5, -2.0], [0.0, 3.0]], device=DEVICE)
    assert x.tolist() == [[1.5, -2.0], [0.0, 3.0]]
    assert x.T.tolist() == [[1.5, 0.0], [-2.0, 3.0]]
    assert x[0, 1].item() == float(x[0, 1]) == -2.0
    assert int(x[1, 1]) == 3
    assert bool(x[1, 1] > 2.0)
    assert f"{x[0, 0]:.2f}" == "1.50"
    assert [row.tolist() for row in x] == [[1.5, -2.0], [0.0, 3.0]]
    assert repr(x[0]) == "Variable([ 1.5, -2. ], device=simt, node=None)".replace(", node=None", "")
    assert mg.allclose(x, x.clone())


def test_copies_stay_on_the_device():
    x = mg.variable([1.0, 2.0], device=DEVICE, requires_grad=True)
    (x * x).sum().backward()
    again = copy.deepcopy(x)
    assert (again.device, again.grad.device) == (DEVICE, DEVICE)
    assert again.grad.tolist() == [2.0, 4.0]
    assert x.detach().reshape((2, 1))[1:].clone().tolist() == [[2.0]]
    filled = mg.nn.init.uniform_(mg.zeros((2, 2), device=DEVICE), 1.0, 2.0)
    assert min(min(row) for row in filled.tolist()) >= 1.0
    assert mg.nn.init.normal_(filled).device == DEVICE
    like = (mg.full_like(x, 3), mg.zeros_like(x), mg.ones_like(x))
    assert {v.device for v in like} == {DEVICE}
    y = x.detach().clone()
    assert y.refcount == 2
    y += 1.0
    assert y.refcount == 1
    assert (x.tolist(), y.tolist()) == ([1.0, 2.0], [2.0, 3.0])


def test_compiled_kernels_of_ones_own_are_for_the_cpu():
    @mg.kernel
    def twice(x, out):
        for i in range(x.size):
            out.flat[i] = x.flat[i] * 2

    assert twice(mg.ones((2,))).tolist() == [2.0, 2.0]
    with pytest.raises(DeviceError, match=r"mg\.cuda\.jit"):
        twice(mg.ones((2,), device=DEVICE))


# -- looking -----------------------------------------------------------------------------------


def test_memory_is_seen_device_by_device():
    gc.collect()  # what earlier tests left
    host = mg.memory.stats()["allocated_bytes"]
    before = mg.memory.stats(DEVICE)
    with mg.memory.timeline(DEVICE) as seen:
        x = mg.ones((256,), device=DEVICE)
        y = x * 2.0
    after = mg.memory.stats(DEVICE)
    assert after["requested_bytes"] - before["requested_bytes"] == 2048
    assert [(e.kind, e.op, e.device) for e in seen][:2] == [
        ("alloc", "full", DEVICE),
        ("alloc", "mul", DEVICE),
    ]
    assert mg.memory.stats()["allocated_bytes"] == host
    assert mg.memory.snapshot(DEVICE)["device"] == DEVICE
    del x, y
    with mg.memory.poison(DEVICE):
        z = mg.ones((5,), device=DEVICE)
        assert (z * 2.0 + 1.0).tolist() == [3.0] * 5


def test_limit_of_a_device_names_its_holders():
    held = mg.ones((1000,), device=DEVICE, name="held")
    gc.collect()
    mg.memory.trim(DEVICE)
    mg.memory.set_limit(mg.memory.stats(DEVICE)["reserved_bytes"], DEVICE)
    try:
        with pytest.raises(mg.errors.OutOfMemoryError, match=r"on simt[\s\S]*held"):
            mg.ones((1 << 22,), device=DEVICE)
    finally:
        mg.memory.set_limit(None, DEVICE)
    assert held.sum().item() == 1000.0


def test_debug_looks_at_values_of_the_device():
    with mg.debug.detect_anomaly(), pytest.raises(mg.errors.NonFiniteError, match="log gave nan"):
        mg.log(mg.variable([1.0, -1.0], device=DEVICE))
    x = mg.variable([3.0, 4.0], device=DEVICE, requires_grad=True)
    with mg.debug.record_grad_function() as record:
        (x * x).sum().backward()
    assert "mul" in repr(record)
    y = mg.variable([0.5, 2.0], dtype="float64", device=DEVICE, requires_grad=True)
    assert mg.debug.gradcheck(lambda v: (v * v).tanh(), y)
    assert mg.debug.gradgradcheck(lambda v: (v * v).tanh(), y)
    mg.viz.graph((x * x).sum())


def test_functional_transforms_run_on_the_device():
    x = mg.variable([1.0, 2.0], device=DEVICE)
    assert mg.grad(lambda v: (v**3).sum())(x).tolist() == [3.0, 12.0]
    hessian = mg.hessian(lambda v: (v**3).sum())(x)
    assert hessian.device == DEVICE
    assert hessian.tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert mg.jvp(lambda v: v * v, x, [1.0, 0.0])[1].tolist() == [2.0, 0.0]
