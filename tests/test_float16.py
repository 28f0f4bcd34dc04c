"""float16: two bytes in memory, float32 in kernels, one rounding per operation.

Every one of its 65,536 values goes through casts and elementwise operations, to the last bit.
"""

import numpy as np
import pytest

import minigrad as mg
from minigrad.devices import loader
from minigrad.devices.cpu import structural
from tests.ops.cells import call, draw, samples
from tests.ops.test_gradients import DIFFERENTIABLE, OPS

DEVICES = ["cpu", "numpy", "simt"]
ALL = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
with np.errstate(all="ignore"):  # of NaN
    ALL32, ALL64 = ALL.astype(np.float32), ALL.astype(np.float64)
    BETWEEN = (ALL64[:-1] + ALL64[1:]) / 2.0  # exactly between two neighbours
EDGES = [65519.99, 65520.0, 65504.0, -65520.0, 1e300, 2.0**-25, 1.5 * 2.0**-24, 2.0**-26, -0.0]


def quiet(function, *arguments):
    """The function's value, without NumPy's warnings of NaN and overflow."""
    with np.errstate(all="ignore"):
        return function(*arguments)


def numbers(dtype):
    """Floats that round in every way: values, ties, their neighbours, and random bits."""
    tiny = 2.0**-40 if dtype == "float64" else 2.0**-20
    ties = quiet(lambda: np.concatenate([BETWEEN, BETWEEN * (1 + tiny), BETWEEN * (1 - tiny)]))
    rng = np.random.default_rng(0)
    spread = rng.standard_normal(1 << 16) * 10.0 ** rng.uniform(-9, 6, 1 << 16)
    bits = rng.integers(0, 1 << 32, 1 << 16, dtype=np.uint64).astype(np.uint32).view(np.float32)
    return quiet(lambda: np.concatenate([ALL32, ties, spread, bits, EDGES]).astype(dtype))


def same(got, wanted):
    """Raises unless bits are equal, and NaN is NaN, of any payload."""
    assert got.dtype == wanted.dtype
    nan, bits = np.isnan(wanted), f"u{wanted.itemsize}"
    np.testing.assert_array_equal(np.isnan(got), nan)
    np.testing.assert_array_equal(got.view(bits)[~nan], wanted.view(bits)[~nan])


def values(x):
    return x.detach().to("cpu").numpy()


# -- casts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
def test_every_half_becomes_a_float_and_comes_back(device):
    x = mg.variable(ALL, device=device)
    assert x.dtype is mg.float16
    for dtype in ("float32", "float64"):
        wide = x.to(dtype)
        same(values(wide), quiet(ALL.astype, dtype))
        same(values(wide.to("float16")), ALL)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_round_once_to_the_nearest_half(dtype, device):
    x = numbers(dtype)
    wanted = quiet(x.astype, np.float16)
    same(values(mg.variable(x, device=device).to("float16")), wanted)
    strided = mg.variable(np.repeat(x, 2), device=device)[::2]
    same(values(strided.to("float16")), wanted)


@pytest.mark.parametrize("device", DEVICES)
def test_ints_and_truth_values_become_halves_and_come_back(device):
    whole = np.array([0, 1, -1, 2047, 2049, 2051, 65519, 65520, -(2**31), 2**31 - 1])
    for dtype in ("int32", "int64"):
        x = whole.astype(dtype)
        same(
            values(mg.variable(x, device=device).to("float16")),
            quiet(x.astype, np.float16),
        )
    h = np.array([0.0, -0.0, 0.6, 1.5, 200.9], np.float16)
    for dtype in ("int32", "int64", "uint8", "bool"):
        got = values(mg.variable(h, device=device).to(dtype))
        np.testing.assert_array_equal(got, h.astype(dtype))


def test_integers_convert_where_the_processor_has_no_instruction():
    storage = loader.load_source("storage_f2")
    text = """
wide_of, bits_of = exact_jit(_widened), exact_jit(_narrowed)


@jit("void(i8,i8,i8)")
def widen(words_at, out_at, n):
    words, out = u4_at(words_at), f4_at(out_at)
    for i in range(n):
        out[i] = wide_of(words[i])


@jit("void(i8,i8,i8)")
def narrow(x_at, out_at, n):
    x, out = f4_at(x_at), u4_at(out_at)
    for i in range(n):
        out[i] = bits_of(x[i])
"""
    name = storage.__name__
    kernels = loader.load(f"from {name} import _narrowed, _widened\n{text}", ("storage_f2",))
    words = np.arange(1 << 16, dtype=np.uint32)
    wide = np.empty(words.size, np.float32)
    kernels.widen(words.ctypes.data, wide.ctypes.data, words.size)
    same(wide, ALL32)
    x = numbers("float32")
    narrow = np.empty(x.size, np.uint32)
    kernels.narrow(x.ctypes.data, narrow.ctypes.data, x.size)
    same(narrow.astype(np.uint16).view(np.float16), quiet(x.astype, np.float16))


# -- arithmetic ------------------------------------------------------------------------------------

EXACT = {  # IEEE 754 defines them to the last bit, in float32; then they are rounded once
    "x + 1": lambda x, m: x + m(1.0),
    "0.1 x": lambda x, m: x * m(0.1),
    "x x": lambda x, m: x * x,
    "1 / x": lambda x, m: m(1.0) / x,
    "-x": lambda x, m: -x,
    "|x|": lambda x, m: abs(x),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", EXACT)
def test_elementwise_operations_on_every_half(name, device):
    wanted = quiet(lambda: EXACT[name](ALL32, np.float32).astype(np.float16))
    x = mg.variable(ALL, device=device)
    y = EXACT[name](x, float)
    assert y.dtype is mg.float16
    same(values(y), wanted)
    with mg.device(device):
        step = mg.compile(lambda x: EXACT[name](x, float))
        for _ in range(2):
            same(values(step(x)), wanted)


@pytest.mark.parametrize("device", DEVICES)
def test_a_compiled_step_rounds_after_each_operation_as_eager_ones_do(device):
    def chain(x, y):
        z = x * y + x
        return z / 3.0 - y, (z > y).to("float16") * z

    x = ALL32[np.isfinite(ALL32)]
    x, y = (mg.variable(v.astype(np.float16), device=device) for v in (x, x[::-1].copy()))
    with mg.device(device):
        step = mg.compile(chain)
        for _ in range(2):
            for got, wanted in zip(step(x, y), chain(x, y), strict=True):
                same(values(got), values(wanted))


def test_functions_of_every_half_are_those_of_float32_rounded():
    x, wide = mg.variable(ALL), mg.variable(ALL32)
    for name in ("exp", "tanh", "sigmoid", "sqrt", "relu", "sin"):
        f = getattr(mg, name)
        same(values(f(x)), quiet(values(f(wide)).astype, np.float16))


PROMOTED = {  # as in PyTorch
    "float32": "float32", "float64": "float64", "int64": "float16", "uint8": "float16",
    "bool": "float16", "float16": "float16",
}  # fmt: skip


@pytest.mark.parametrize("other", PROMOTED)
def test_promotion(other):
    x, y = mg.ones((2,), "float16"), mg.ones((2,), other)
    assert (x + y).dtype == (y + x).dtype == PROMOTED[other]
    assert (x + 1).dtype == (2.5 * x).dtype == mg.where(x > 0, x, 0.5).dtype == "float16"


def test_numbers_that_round_to_infinity_are_refused():
    assert mg.variable([65519.0], dtype="float16").tolist() == [65504.0]
    for number in (65520.0, -1e6):
        with pytest.raises(mg.errors.DTypeError, match="numbers that float16 holds"):
            mg.variable([number], dtype="float16")
    assert mg.variable([np.inf], dtype="float16").tolist() == [np.inf]


def test_products_of_two_float_dtypes_are_refused():
    with pytest.raises(mg.errors.DTypeError):
        mg.ones((2, 2), "float16") @ mg.ones((2, 2))


# -- what accumulates ------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
def test_sums_are_rounded_once(device):
    x = np.full((3, 4096), 1.0, np.float16)  # 2048 + 1 is no half
    x[1] = 60000.0
    x = mg.variable(x, device=device)
    assert values(x.sum(1)).tolist() == [4096.0, np.inf, 4096.0]
    assert values(x.mean(1)).tolist() == [1.0, 60000.0, 1.0]
    assert values(x.T.sum(0)).tolist() == [4096.0, np.inf, 4096.0]
    assert values(mg.cumsum(x[0], 0))[-1] == 4096.0
    assert values(mg.ones((1, 4096), "float16", device=device) @ x[0].reshape(4096, 1)) == 4096.0


@pytest.mark.parametrize("device", DEVICES)
def test_squares_may_be_larger_than_a_half(device):
    x = mg.full((400,), 200.0, "float16", device=device)
    assert values(mg.norm(x)) == 4000.0
    x = mg.variable(np.arange(4096) % 2 + 1024, dtype="float16", device=device)  # mean 1024.5
    assert values(mg.var(x, ddof=0)) == 0.25


@pytest.mark.parametrize("device", DEVICES)
def test_sums_at_an_index_are_rounded_once(device):
    x = mg.ones((2, 3), "float16", device=device, requires_grad=True)
    index = mg.zeros((5000,), "int64", device=device)
    x[index].sum().backward()
    assert values(x.grad).tolist() == [[5000.0] * 3, [0.0] * 3]


@pytest.mark.parametrize("device", DEVICES)
def test_uniform_numbers_stay_below_one(device):
    with mg.device(device):
        mg.manual_seed(0)
        x = values(mg.rand((20000,), "float16"))
        mg.manual_seed(0)
        wide = values(mg.rand((20000,)))
    assert x.max() < 1.0
    same(x, (np.floor(wide * 2048) / 2048).astype(np.float16))


def test_a_convolution_in_several_ranges(monkeypatch):
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype(np.float16) for s in ((8, 3, 12, 12), (4, 3, 3, 3)))

    def run():
        a, b = (mg.variable(v, requires_grad=True) for v in (x, w))
        y = mg.conv2d(a, b, padding=1)
        y.sum().backward()
        return [values(v) for v in (y, a.grad, b.grad)]

    whole = run()
    monkeypatch.setattr(structural, "SPLIT", 1)
    for one, other in zip(whole, run(), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-3)
    wide = mg.conv2d(*(mg.variable(v.astype(np.float32)) for v in (x, w)), padding=1)
    np.testing.assert_allclose(whole[0], wide.numpy(), rtol=1e-3, atol=1e-3)


# -- training --------------------------------------------------------------------------------------


def trained(device, wrap, clip):
    with mg.device(device):
        mg.manual_seed(0)
        model = mg.nn.Sequential(mg.nn.Linear(6, 8), mg.nn.ReLU(), mg.nn.Linear(8, 3))
        model = model.to("float16")
        optimizer = mg.optim.Adam(model, learning_rate=1e-3)
        x = np.random.default_rng(0).standard_normal((20, 6)).astype(np.float16)
        x, y = mg.variable(x), mg.variable(np.arange(20) % 3)

        def step(x, y):
            loss = mg.cross_entropy(model(x), y)
            loss.backward()
            if clip:
                mg.optim.clip_grad_norm_(model, 0.05)
            optimizer.step()
            optimizer.zero_grad()
            return loss

        step = wrap(step)
        losses = [step(x, y).item() for _ in range(8)]
    assert all(p.dtype is mg.float16 for p in model.parameters())
    return losses, [values(p) for p in model.parameters()]


@pytest.mark.parametrize("clip", [False, True])
def test_devices_and_compiled_steps_train_alike(clip):
    wanted, parameters = trained("cpu", lambda f: f, clip)
    assert wanted[-1] < wanted[0]
    for device in DEVICES:
        for wrap in (lambda f: f, mg.compile):
            losses, others = trained(device, wrap, clip)
            np.testing.assert_allclose(losses, wanted, rtol=2e-3)
            for p, q in zip(parameters, others, strict=True):
                np.testing.assert_allclose(p, q, rtol=4e-3, atol=2e-4)


def test_hyperparameters_are_not_rounded_to_halves():
    for device in DEVICES:  # 1 - 1e-4 would be 1 as a half, and the average would stay 0
        p = mg.nn.Parameter(mg.ones((4,), "float16", device=device))
        optimizer = mg.optim.Adam([p], learning_rate=2.0**-6, betas=(1 - 1e-4, 1 - 1e-4), eps=1e-3)
        (p * 1.0).sum().backward()
        optimizer.step()
        assert np.all(values(p) < 0.9859), device


# -- outside ---------------------------------------------------------------------------------------


def test_views_and_writes_share_two_bytes():
    x = mg.variable(np.arange(12, dtype=np.float16).reshape(3, 4))
    assert x.numpy().dtype == np.float16
    assert x.array.nbytes == 24
    assert x[1:, ::2].T.tolist() == [[4.0, 8.0], [6.0, 10.0]]
    x[1] = 0.1
    assert x[1].tolist() == [float(np.float16(0.1))] * 4
    x[:, [0, 3]] += 1.0
    assert x[0].tolist() == [1.0, 1.0, 2.0, 4.0]
    assert "float16" in repr(x)
    assert mg.concatenate([x, x]).dtype == "float16"
    assert mg.float16.itemsize == 2


def test_numpy_and_dlpack_share_the_memory():
    a = np.ones(4, np.float16)
    x = mg.from_numpy(a)
    a[0] = 3.0
    assert x.tolist() == [3.0, 1.0, 1.0, 1.0]
    y = mg.from_dlpack(a)
    assert y.dtype is mg.float16
    back = np.from_dlpack(mg.ones((3,), "float16"))
    assert back.dtype == np.float16
    assert back.tolist() == [1.0] * 3


def test_checkpoints_keep_every_half(tmp_path):
    pytest.importorskip("safetensors")
    path = tmp_path / "x.safetensors"
    mg.save(path, x=mg.variable(ALL))
    assert np.asarray(mg.load(path)["x"]).tobytes() == ALL.tobytes()


# -- every kind of operation -----------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in DIFFERENTIABLE if n not in ("move", "dropout")])
def test_gradients_are_those_of_float64_rounded(name):
    op = OPS[name]
    shapes, attributes = samples(op)[0]
    arrays = draw(op, shapes, attributes, "float16")
    attributes = ("float32",) if name == "cast" else attributes

    def gradients(dtype):
        inputs = [
            mg.variable(a.astype(dtype), requires_grad=True) if a.dtype.kind == "f" else a
            for a in arrays
        ]
        inputs = [v if isinstance(v, mg.Variable) else mg.variable(v) for v in inputs]
        y = call(op, inputs, attributes)
        dy = np.random.default_rng(0).integers(-2, 3, y.shape)
        y.backward(mg.variable(dy.astype(y.dtype.numpy)))
        return [v.grad for v in inputs]

    for got, wanted in zip(gradients("float16"), gradients("float64"), strict=True):
        assert (got is None) == (wanted is None)
        if got is not None:
            assert got.dtype is mg.float16
            size = np.abs(wanted.numpy()).max(initial=1e-9)
            np.testing.assert_allclose(got.numpy() / size, wanted.numpy() / size, atol=3e-3)


def network(x, w, table, index):
    """Windows, a convolution, selection by index, rows, attention, scans: kernels of each kind."""
    y = mg.max_pool2d(mg.relu(mg.conv2d(x, w, padding=1)), 2).flatten(1)  # (4, 12)
    y = mg.layer_norm(y + table[index], mg.ones_like(y[0]), mg.zeros_like(y[0]))
    q = y.reshape(2, 2, 12)
    y = y + mg.scaled_dot_product_attention(q, q, q).reshape(4, 12)
    return mg.cumsum(mg.softmax(y, -1), 1), mg.argmax(y, axis=1), mg.sort(y, axis=-1)


@pytest.mark.parametrize("device", DEVICES)
def test_a_compiled_network_gives_what_an_eager_one_does(device):
    rng = np.random.default_rng(0)
    shapes = (4, 2, 4, 4), (3, 2, 3, 3), (7, 12)
    with mg.device(device):
        leaves = [mg.variable(rng.standard_normal(s).astype(np.float16)) for s in shapes]
        index = mg.variable([3, 0, 6, 3])

        def step(*leaves):
            found = [v.detach() for v in leaves]
            for v in found:
                v.requires_grad = True
            outs = network(*found, index)
            (outs[0] * outs[2]).sum().backward()
            return *outs, *(v.grad for v in found)

        compiled = mg.compile(step)
        wanted = step(*leaves)
        for _ in range(2):
            for got, want in zip(compiled(*leaves), wanted, strict=True):
                assert got.dtype is want.dtype
                np.testing.assert_allclose(values(got), values(want), rtol=4e-3, atol=4e-3)


# -- what float16 does not hold on the way to a result that it holds -------------------------------


def halves(values, **more):
    return mg.variable(np.array(values), dtype="float16", **more)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("size", [1000.0, 1e-4])
def test_batch_norm_of_halves_is_that_of_float32_rounded(size, compiled):
    data = np.random.default_rng(0).normal(size=(8, 3, 2)) * size
    outcomes = []
    for dtype in ("float16", "float32"):
        norm, x = mg.nn.BatchNorm1d(3), halves(data).to(dtype).detach()
        x.requires_grad = True

        def step(x, norm=norm):
            return norm(x)

        y = (mg.compile(step) if compiled else step)(x)
        (y * y.detach()).sum().backward()
        norm.eval()
        outcomes.append([y, norm(x), norm.running_var, x.grad])
        assert {v.dtype.name for v in (y, norm(x), x.grad)} == {dtype}
    for half, wide in zip(*outcomes, strict=True):
        np.testing.assert_allclose(half.numpy(), wide.numpy(), rtol=2e-3, atol=4e-3)


@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_of_halves_scales_before_scores_overflow(is_causal):
    q = halves(np.full((1, 2, 3, 64), 80.0), requires_grad=True)
    y = mg.scaled_dot_product_attention(q, q, q, is_causal=is_causal)
    y.sum().backward()
    assert (y.numpy() == 80).all()
    assert np.isfinite(q.grad.numpy()).all()
    (again,) = mg.gradients(
        mg.scaled_dot_product_attention(q, q, q, is_causal=is_causal).sum(), [q], create_graph=True
    )
    assert np.isfinite(again.numpy()).all()


def test_deviations_and_norms_of_halves_whose_squares_it_does_not_hold():
    for size in (300.0, 1e-4):
        x = halves([size, -size], requires_grad=True)
        y = mg.std(x, correction=0)
        assert y.dtype == "float16"
        assert y.item() == pytest.approx(size, rel=2e-3)
        y.backward()
        np.testing.assert_allclose(x.grad.numpy(), [0.5, -0.5], rtol=2e-3)
    assert mg.normalize(halves([[0.0, 0.0]]), axis=-1).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("device", ["cpu", "numpy", "simt"])
@pytest.mark.parametrize("how", ["sum", "mean", "prod", "max"])
def test_reductions_over_rows_round_once(how, device):
    """Their partial results lie in the row of outputs, which must not be halves meanwhile."""
    data = np.random.default_rng(1).uniform(0.9, 1.1, (300, 7)).astype("f2")
    with mg.device(device):
        half, wide = (
            getattr(mg, how)(mg.variable(data, dtype=d), axis=0).to("cpu").numpy()
            for d in ("f2", "f4")
        )
    np.testing.assert_array_equal(half, wide.astype("f2"))


@pytest.mark.filterwarnings("error")
def test_arrays_that_overflow_become_inf_without_a_warning():
    assert mg.variable(np.array([7e4, 1.0], "f4"), dtype="float16").tolist() == [np.inf, 1.0]
