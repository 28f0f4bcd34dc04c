"""float16 and bfloat16: two bytes in memory, float32 in kernels, one rounding per operation.

All 65,536 values of each go through casts and elementwise operations, to the last bit. What they
are, and to which one a number rounds, is stated here anew, without NumPy's types or the engine's.
"""

import ctypes
import subprocess
import sys

import numpy as np
import pytest

import minigrad as mg
from minigrad.array.dtypes import as_dtype
from minigrad.devices import loader
from minigrad.devices.backend import device_of
from minigrad.devices.backend import values as numbers_of
from minigrad.devices.cpu import structural
from minigrad.devices.cpu.device import cpu
from tests.ops.cells import call, draw, samples
from tests.ops.test_gradients import DIFFERENTIABLE, OPS

DEVICES = ["cpu", "numpy", "simt"]


def quiet(function, *arguments):
    """The function's value, without NumPy's warnings of NaN and overflow."""
    with np.errstate(all="ignore"):
        return function(*arguments)


class Format:
    """A binary format of IEEE 754's kind: a sign, bits of an exponent, bits of a fraction."""

    def __init__(self, name, exponent, fraction):
        self.name, self.digits = name, fraction + 1
        self.words = np.arange(1 << 16, dtype=np.uint16)
        self.numbers = self._numbers(exponent, fraction)
        self.infinity = ((1 << exponent) - 1) << fraction  # positive words count upwards to it
        up = self.numbers[: self.infinity + 1].copy()
        self.largest, up[-1] = up[-2], 2.0 ** (1 << (exponent - 1))
        self.between = (up[:-1] + up[1:]) / 2.0  # exact in float64
        self.tolerance = 2.0**-fraction

    def _numbers(self, exponent, fraction):
        words = self.words.astype(np.int64)
        e, f = (words >> fraction) & ((1 << exponent) - 1), words & ((1 << fraction) - 1)
        bias = (1 << (exponent - 1)) - 1
        size = np.ldexp(np.where(e, f + (1 << fraction), f), np.maximum(e, 1) - bias - fraction)
        size = np.where(e < (1 << exponent) - 1, size, np.where(f, np.nan, np.inf))
        return np.where(words >> 15, -size, size)

    def rounded(self, x):
        """The words of the nearest numbers, to even between two."""
        x = quiet(np.asarray, x, np.float64)
        size = np.abs(x)
        found = np.searchsorted(self.between, size)
        tie = self.between[np.minimum(found, len(self.between) - 1)] == size
        found = np.where(tie, found + found % 2, found)
        found = np.where(np.isnan(x), self.infinity + 1, found)
        return (found + (np.signbit(x) << 15)).astype(np.uint16)

    def near(self, x):
        """The numbers nearest to others."""
        return self.numbers[self.rounded(x)]

    def every(self, device="cpu"):
        """A Variable of all numbers, in the order of their words."""
        return mg.Variable(cpu.adopt(self.words.copy(), as_dtype(self.name))).to(device)

    def variable(self, data, **more):
        return mg.variable(data, dtype=self.name, **more)

    def same(self, got, wanted):
        """Raises unless a Variable's bits are those of words; NaN is NaN, of any payload."""
        assert got.dtype == self.name
        got = device_of(got.array).to_numpy(got.detach().array).view(np.uint16)
        nan = np.isnan(self.numbers[wanted])
        np.testing.assert_array_equal(np.isnan(self.numbers[got]), nan)
        np.testing.assert_array_equal(got[~nan], wanted[~nan])

    def samples(self, dtype):
        """Floats that round in every way: values, ties, their neighbours, and random bits."""
        tiny = 2.0**-40 if dtype == "float64" else 2.0**-20
        ties = np.concatenate([self.between, -self.between])
        rng = np.random.default_rng(0)
        spread = rng.standard_normal(1 << 16) * 10.0 ** rng.uniform(-9, 6, 1 << 16)
        bits = rng.integers(0, 1 << 32, 1 << 16, dtype=np.uint64).astype(np.uint32)
        last = float(self.between[-1])  # from here on, inf
        parts = [
            self.numbers, ties, ties * (1 + tiny), ties * (1 - tiny), spread, bits.view(np.float32),
            [last, np.nextafter(last, 0), -last, 1e300, self.numbers[1] / 2, -0.0, np.nan],
        ]  # fmt: skip
        return quiet(lambda: np.concatenate(parts).astype(dtype))


FORMATS = {f.name: f for f in (Format("float16", 5, 10), Format("bfloat16", 8, 7))}


@pytest.fixture(params=FORMATS)
def half(request):
    return FORMATS[request.param]


def same(got, wanted):
    """Raises unless bits are equal, and NaN is NaN, of any payload."""
    assert got.dtype == wanted.dtype
    nan, bits = np.isnan(wanted), f"u{wanted.itemsize}"
    np.testing.assert_array_equal(np.isnan(got), nan)
    np.testing.assert_array_equal(got.view(bits)[~nan], wanted.view(bits)[~nan])


def values(x):
    """The numbers, as float32 if NumPy lacks the dtype."""
    return numbers_of(x.detach().array).copy()  # it shows memory that x may be the last to own


# -- casts -----------------------------------------------------------------------------------------


def test_the_formats_are_those_of_numpy_and_ml_dtypes():
    for half in FORMATS.values():
        if half.name == "float16":
            kind = np.float16
        else:
            kind = pytest.importorskip(
                "ml_dtypes", reason="not installed (extra bfloat16)"
            ).bfloat16
        same(quiet(half.words.view(kind).astype, np.float32), quiet(half.numbers.astype, "f4"))
        x = half.samples("float32")
        same(quiet(x.astype, kind).astype("f4"), quiet(half.near(x).astype, "f4"))


def test_every_bfloat16_has_the_bits_of_ml_dtypes_both_ways():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="not installed (extra bfloat16)")
    words = FORMATS["bfloat16"].words
    theirs = words.view(ml_dtypes.bfloat16)
    with np.errstate(all="ignore"):
        wide = theirs.astype(np.float32)
        x = mg.from_numpy(theirs.copy())
        assert x.numpy().dtype == theirs.dtype
        for device in DEVICES:
            for way in (x.to(device).to("float32"), mg.variable(theirs, "float32", device=device)):
                same(values(way), wide)
            back = mg.variable(wide, device=device).to("bfloat16").to("cpu").numpy()
            np.testing.assert_array_equal(
                back.view(np.uint16), wide.astype(ml_dtypes.bfloat16).view(np.uint16)
            )


@pytest.mark.parametrize("device", DEVICES)
def test_every_half_becomes_a_float_and_comes_back(half, device):
    x = half.every(device)
    for dtype in ("float32", "float64"):
        wide = x.to(dtype)
        same(values(wide), quiet(half.numbers.astype, dtype))
        half.same(wide.to(half.name), half.words)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_round_once_to_the_nearest_half(half, dtype, device):
    x = half.samples(dtype)
    wanted = half.rounded(x)
    half.same(mg.variable(x, device=device).to(half.name), wanted)
    half.same(half.variable(x, device=device), wanted)
    strided = mg.variable(np.repeat(x, 2), device=device)[::2]
    half.same(strided.to(half.name), wanted)


@pytest.mark.parametrize("device", DEVICES)
def test_ints_and_truth_values_become_halves_and_come_back(half, device):
    whole = np.array([0, 1, -1, 257, 259, 2047, 2049, 2051, 65519, 65520, -(2**31), 2**31 - 1])
    for dtype in ("int32", "int64"):
        x = mg.variable(whole.astype(dtype), device=device)
        half.same(x.to(half.name), half.rounded(whole.astype(np.float32)))
    h = half.near([0.0, -0.0, 0.6, 1.5, 200.9])
    for dtype in ("int32", "int64", "uint8", "bool"):
        got = values(half.variable(h, device=device).to(dtype))
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
    half = FORMATS["float16"]
    same(wide, quiet(half.numbers.astype, "f4"))
    x = half.samples("float32")
    narrow = np.empty(x.size, np.uint32)
    kernels.narrow(x.ctypes.data, narrow.ctypes.data, x.size)
    same(half.numbers[narrow], half.near(x))


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
def test_elementwise_operations_on_every_half(half, name, device):
    wide = quiet(half.numbers.astype, np.float32)
    wanted = half.rounded(quiet(EXACT[name], wide, np.float32))
    x = half.every(device)
    half.same(EXACT[name](x, float), wanted)
    with mg.device(device):
        step = mg.compile(lambda x: EXACT[name](x, float))
        for _ in range(2):
            half.same(step(x), wanted)


@pytest.mark.parametrize("device", DEVICES)
def test_a_compiled_step_rounds_after_each_operation_as_eager_ones_do(half, device):
    def chain(x, y):
        z = x * y + x
        return z / 3.0 - y, (z > y).to(half.name) * z

    x = half.numbers[np.isfinite(half.numbers)]
    x, y = (half.variable(v, device=device) for v in (x, x[::-1].copy()))
    with mg.device(device):
        step = mg.compile(chain)
        for _ in range(2):
            for got, wanted in zip(step(x, y), chain(x, y), strict=True):
                same(values(got), values(wanted))


def test_functions_of_every_half_are_those_of_float32_rounded(half):
    x = half.every()
    for name in ("exp", "tanh", "sigmoid", "sqrt", "relu", "sin"):
        f = getattr(mg, name)
        half.same(f(x), half.rounded(values(f(x.to("float32")))))


PROMOTED = {  # as in PyTorch; None: the half itself
    "float32": "float32", "float64": "float64", "int32": None, "int64": None, "uint8": None,
    "bool": None, "float16": None, "bfloat16": None,
}  # fmt: skip


@pytest.mark.parametrize("other", PROMOTED)
def test_promotion(half, other):
    x, y = mg.ones((2,), half.name), mg.ones((2,), other)
    is_other_half = other in FORMATS and other != half.name
    wanted = "float32" if is_other_half else PROMOTED[other] or half.name
    assert (x + y).dtype == (y + x).dtype == mg.where(x > 0, x, y).dtype == wanted
    assert mg.concatenate([x, y]).dtype == wanted
    assert (x + 1).dtype == (2.5 * x).dtype == mg.where(x > 0, x, 0.5).dtype == half.name
    assert (x + True).dtype == half.name


def test_numbers_that_round_to_infinity_are_refused(half):
    first = half.between[-1]  # the smallest such number
    assert half.variable([np.nextafter(first, 0)]).tolist() == [half.largest]
    for number in (first, -1e39):
        with pytest.raises(mg.errors.DTypeError, match=f"numbers that {half.name} holds"):
            half.variable([number])
    assert half.variable([np.inf]).tolist() == [np.inf]


def test_products_of_two_float_dtypes_are_refused(half):
    for other in ({*FORMATS} - {half.name}) | {"float32"}:
        with pytest.raises(mg.errors.DTypeError):
            mg.ones((2, 2), half.name) @ mg.ones((2, 2), other)


# -- what accumulates ------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
def test_sums_are_rounded_once(half, device):
    x = np.full((3, 4096), 1.0)  # 2048 + 1 is no float16, 256 + 1 no bfloat16
    x[1] = large = half.near(0.9 * half.largest)
    x = half.variable(x, device=device)
    assert values(x.sum(1)).tolist() == [4096.0, np.inf, 4096.0]
    assert values(x.mean(1)).tolist()[::2] == [1.0, 1.0]
    assert half.name == "bfloat16" or values(x.mean(1))[1] == large  # a float32 overflows, too
    assert values(x.T.sum(0)).tolist() == [4096.0, np.inf, 4096.0]
    assert values(mg.cumsum(x[0], 0))[-1] == 4096.0
    assert values(mg.ones((1, 4096), half.name, device=device) @ x[0].reshape(4096, 1)) == 4096.0


@pytest.mark.parametrize("device", DEVICES)
def test_squares_may_be_larger_than_a_half(half, device):
    x = mg.full((400,), 200.0, half.name, device=device)
    assert values(mg.norm(x)) == half.near(4000.0)
    base = 2 ** (half.digits - 1)  # and the mean is between two halves
    x = half.variable(np.arange(4096) % 2 + base, device=device)
    assert values(mg.var(x, ddof=0)) == 0.25


@pytest.mark.parametrize("device", DEVICES)
def test_sums_at_an_index_are_rounded_once(half, device):
    x = mg.ones((2, 3), half.name, device=device, requires_grad=True)
    index = mg.zeros((5000,), "int64", device=device)
    x[index].sum().backward()
    assert values(x.grad).tolist() == [[half.near(5000.0)] * 3, [0.0] * 3]


@pytest.mark.parametrize("device", DEVICES)
def test_uniform_numbers_stay_below_one(half, device):
    with mg.device(device):
        mg.manual_seed(0)
        x = values(mg.rand((20000,), half.name))
        mg.manual_seed(0)
        wide = values(mg.rand((20000,)))
    assert x.max() < 1.0
    steps = 2**half.digits
    np.testing.assert_array_equal(x, np.floor(wide * steps) / steps)


def test_a_convolution_in_several_ranges(half, monkeypatch):
    rng = np.random.default_rng(0)
    x, w = (half.near(rng.standard_normal(s)) for s in ((8, 3, 12, 12), (4, 3, 3, 3)))

    def run():
        a, b = (half.variable(v, requires_grad=True) for v in (x, w))
        y = mg.conv2d(a, b, padding=1)
        y.sum().backward()
        return [values(v) for v in (y, a.grad, b.grad)]

    whole = run()
    monkeypatch.setattr(structural, "SPLIT", 1)
    for one, other in zip(whole, run(), strict=True):
        np.testing.assert_allclose(one, other, rtol=2 * half.tolerance)
    wide = mg.conv2d(*(mg.variable(v.astype(np.float32)) for v in (x, w)), padding=1)
    np.testing.assert_allclose(whole[0], wide.numpy(), rtol=half.tolerance, atol=1e-3)


# -- training --------------------------------------------------------------------------------------


def trained(half, device, wrap, clip):
    with mg.device(device):
        mg.manual_seed(0)
        model = mg.nn.Sequential(mg.nn.Linear(6, 8), mg.nn.ReLU(), mg.nn.Linear(8, 3))
        model = model.to(half.name)
        optimizer = mg.optim.Adam(model, learning_rate=1e-3)
        x = half.variable(np.random.default_rng(0).standard_normal((20, 6)))
        y = mg.variable(np.arange(20) % 3)

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
    assert all(p.dtype == half.name for p in model.parameters())
    return losses, [values(p) for p in model.parameters()]


@pytest.mark.parametrize("clip", [False, True])
def test_devices_and_compiled_steps_train_alike(half, clip):
    wanted, parameters = trained(half, "cpu", lambda f: f, clip)
    assert wanted[-1] < wanted[0]
    for device in DEVICES:
        for wrap in (lambda f: f, mg.compile):
            losses, others = trained(half, device, wrap, clip)
            np.testing.assert_allclose(losses, wanted, rtol=2 * half.tolerance)
            for p, q in zip(parameters, others, strict=True):
                np.testing.assert_allclose(p, q, rtol=4 * half.tolerance, atol=0.2 * half.tolerance)


def test_hyperparameters_are_not_rounded_to_halves(half):
    for device in DEVICES:  # 1 - 1e-4 would be 1 as a half, and the average would stay 0
        p = mg.nn.Parameter(mg.ones((4,), half.name, device=device))
        optimizer = mg.optim.Adam([p], learning_rate=2.0**-6, betas=(1 - 1e-4, 1 - 1e-4), eps=1e-3)
        (p * 1.0).sum().backward()
        optimizer.step()
        assert np.all(values(p) < 0.9859), device


# -- outside ---------------------------------------------------------------------------------------


def test_views_and_writes_share_two_bytes(half):
    x = half.variable(np.arange(12).reshape(3, 4))
    assert x.array.nbytes == 24
    assert x[1:, ::2].T.tolist() == [[4.0, 8.0], [6.0, 10.0]]
    x[1] = 0.1
    assert x[1].tolist() == [half.near(0.1)] * 4
    x[:, [0, 3]] += 1.0
    assert x[0].tolist() == [1.0, 1.0, 2.0, 4.0]
    assert f"dtype={half.name}" in repr(x)
    assert mg.concatenate([x, x]).dtype == half.name
    assert x.dtype.itemsize == 2
    assert float(x[1, 0]) == half.near(1.1)


def kind_of(half):
    """NumPy's type of a format, or skips the test."""
    return half.name if half.name == "float16" else pytest.importorskip("ml_dtypes").bfloat16


def test_numpy_shares_the_memory(half):
    a = np.ones(4, kind_of(half))
    x = mg.from_numpy(a)
    a[0] = 3.0
    assert x.tolist() == [3.0, 1.0, 1.0, 1.0]
    assert x.dtype == half.name == a.dtype.name == x.numpy().dtype.name == np.dtype(x.dtype).name
    x.numpy(writable=True)[1] = 2.0
    assert a.tolist() == [3.0, 2.0, 1.0, 1.0]
    for data in (a[::-1], [a[3], a[2], 2, a[0]], [x[3], x[2], x[1], x[0]]):
        y = mg.variable(data)
        assert (y.dtype, y.tolist()) == (half.name, [1.0, 1.0, 2.0, 3.0])
    assert (x + a[0]).dtype == (a + x).dtype == half.name


def test_names_of_pytorch_are_explained():
    for wrong, right in (("half", "float16"), ("bfloat16", "bfloat16")):
        with pytest.raises(AttributeError, match=rf"x\.to\('{right}'\)"):
            getattr(mg.ones((2,)), wrong)


class Other:
    """An array of a library that speaks DLPack: of its version 1, or of an older one."""

    def __init__(self, x, is_old=False):
        self.x, self.is_old = x, is_old

    def __dlpack__(self, *, stream=None, **options):
        if self.is_old and options:
            raise TypeError("unknown options")
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self):
        return 1, 0


def test_dlpack_shares_the_memory(half):
    x = half.variable([[1.0, 2.0], [3.0, 4.0]])
    y = mg.from_dlpack(Other(x.T))
    assert y.dtype == half.name
    assert y.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    y = mg.from_dlpack(Other(x))
    assert y.data_ptr() == x.data_ptr()
    y[0, 0] = 5.0
    assert x.tolist() == [[5.0, 2.0], [3.0, 4.0]]
    assert mg.from_dlpack(Other(x, is_old=True)).tolist() == x.tolist()
    y = mg.variable(Other(x))
    assert y.dtype == half.name
    assert y.data_ptr() != x.data_ptr()
    assert mg.variable(Other(x), "float64").dtype == "float64"


def test_dlpack_says_what_the_elements_are():
    x = mg.ones((3,), "bfloat16")
    with pytest.raises((BufferError, RuntimeError), match=r"(?i)dtype|type"):  # NumPy has no such
        np.from_dlpack(x)
    assert np.from_dlpack(mg.ones((3,), "float16")).dtype == np.float16
    assert np.from_dlpack(Relabelled(x)).tolist() == [0x3F80] * 3


class Relabelled:
    """A Variable whose elements NumPy takes for uint16, from the definition in dlpack.h."""

    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **options):
        capsule = self.x.__dlpack__()  # of no version: DLTensor comes first
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        tensor = Tensor.from_address(pointer(capsule, b"dltensor"))
        assert (tensor.code, tensor.bits, tensor.lanes) == (4, 16, 1)  # 4: kDLBfloat
        tensor.code = 1  # kDLUInt
        return capsule

    def __dlpack_device__(self):
        return 1, 0


class Tensor(ctypes.Structure):
    """DLTensor of dlpack.h, as far as its element type."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
    ]  # fmt: skip


def test_checkpoints_keep_every_half(half, tmp_path):
    pytest.importorskip("safetensors")
    kind_of(half)
    path = tmp_path / "x.safetensors"
    mg.save(path, x=half.every())
    found = mg.load(path)["x"]
    half.same(found, half.words)
    name = b'"BF16"' if half.name == "bfloat16" else b'"F16"'
    assert name in path.read_bytes()


WITHOUT = """
import sys
sys.modules["ml_dtypes"] = None
import minigrad as mg
x = mg.variable([[1.0, 2.0], [3.1, -4.0]], dtype="bfloat16", requires_grad=True)
y = (x * x @ x + mg.exp(x)).sum()
y.backward()
print(x, x.grad.tolist(), y.item(), x.to("float32").numpy().tolist(), mg.from_dlpack(x.detach()))
for read in (lambda: x.detach().numpy(), lambda: mg.bfloat16.numpy, lambda: mg.save("x", x=x)):
    try:
        read()
    except mg.errors.DTypeError as error:
        print(error)
"""


def test_without_ml_dtypes_all_works_but_what_needs_a_type_of_numpy(tmp_path):
    command = [sys.executable, "-W", "error", "-c", WITHOUT]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert ran.returncode == 0, ran.stderr
    first, *errors = ran.stdout.split("bfloat16: wanted the package ml_dtypes")
    assert first.startswith("Variable([[ 1.    ,  2.    ],")
    assert "[[1.0, 2.0], [3.09375, -4.0]]" in first
    assert len(errors) == 3
    assert all("pip install 'minigrad[bfloat16]'" in e and "x.to('float32')" in e for e in errors)


WITHOUT_SAVING = """
import pickle, sys
sys.modules["ml_dtypes"] = None
import minigrad as mg
model = mg.nn.Linear(2, 1).to("bfloat16")
for call in (lambda: mg.save("x", net=model), lambda: pickle.dumps(model.weight)):
    try:
        call()
    except mg.errors.MinigradError as error:
        print(error.fix)
wide = model.weight.detach().to('float32').numpy()
print(mg.variable(pickle.loads(pickle.dumps(wide)), dtype='bfloat16').dtype)
"""


def test_without_ml_dtypes_errors_name_what_saves_a_bfloat16(tmp_path):
    command = [sys.executable, "-W", "error", "-c", WITHOUT_SAVING]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [
        "net.to('float32'), which has all of them, or pip install 'minigrad[bfloat16]'",
        "pickle or np.save x.detach().to('float32').numpy(), and restore it with mg.variable(..., "
        "dtype='bfloat16')",
        "bfloat16",
    ]


def test_products_of_two_halves_say_what_to_convert():
    a, b = (mg.ones((2, 2), dtype=d) for d in ("float16", "bfloat16"))
    for product in (mg.matmul, mg.linear):
        with pytest.raises(mg.errors.DTypeError) as raised:
            product(a, b)
        assert "convert both, x.to('float32')" in raised.value.fix
        assert "x.to('bfloat16')" in raised.value.fix
    with pytest.raises(mg.errors.DTypeError) as raised:
        _ = a @ mg.ones((2, 2))
    assert raised.value.fix == "convert one: x.to('float32')"


def test_ml_dtypes_is_not_imported_before_it_is_needed():
    code = "import sys, minigrad as mg; mg.ones((2,), mg.bfloat16).sum().item(); "
    code += "print('ml_dtypes' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert ran.stdout.strip() == "False", ran.stderr


def test_kernels_of_ones_own_refuse_bfloat16_and_take_float16():
    @mg.cuda.jit
    def double(x):
        i = mg.cuda.grid(1)
        x[i] = x[i] + x[i]

    with pytest.raises(mg.errors.DTypeError, match="bfloat16"):
        double[1, 2](mg.ones((2,), "bfloat16", device="simt"))
    x = mg.ones((2,), "float16", device="simt")
    double[1, 2](x)
    assert x.tolist() == [2.0, 2.0]


def test_functions_of_ones_own_in_a_compiled_step(half):
    class Twice(mg.Function):
        @staticmethod
        def forward(ctx, x):
            assert x.dtype == half.name
            return x + x

        @staticmethod
        def backward(ctx, dy):
            assert dy.dtype == half.name
            return dy * 2.0

    def step(x):
        x = x.detach()
        x.requires_grad = True
        y = Twice.apply(x * 1.5)
        (y * y).sum().backward()
        return y, x.grad

    x, compiled = half.variable([0.1, 2.0, -3.0]), mg.compile(step)
    for _ in range(3):
        for got, wanted in zip(compiled(x), step(x), strict=True):
            same(values(got), values(wanted))
            assert got.dtype == half.name


def test_kernels_of_ones_own_for_the_cpu_see_float32(half):
    @mg.kernel
    def square(x, y):
        for i in range(x.size):
            y[i] = x[i] * x[i]

    x = half.variable([0.1, 3.0])
    y = square(x)
    half.same(y, half.rounded(np.float32(half.near([0.1, 3.0])) ** 2))


# -- every kind of operation -----------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in DIFFERENTIABLE if n not in ("move", "dropout")])
def test_gradients_are_those_of_float64_rounded(half, name):
    op = OPS[name]
    shapes, attributes = samples(op)[0]
    arrays = draw(op, shapes, attributes, "float16")
    arrays = [half.near(a) if a.dtype.kind == "f" else a for a in arrays]
    attributes = ("float32",) if name == "cast" else attributes

    def gradients(dtype):
        inputs = [
            mg.variable(a, dtype, requires_grad=True) if a.dtype.kind == "f" else a for a in arrays
        ]
        inputs = [v if isinstance(v, mg.Variable) else mg.variable(v) for v in inputs]
        y = call(op, inputs, attributes)
        dy = np.random.default_rng(0).integers(-2, 3, y.shape)
        y.backward(mg.variable(dy, y.dtype))
        return [v.grad for v in inputs]

    for got, wanted in zip(gradients(half.name), gradients("float64"), strict=True):
        assert (got is None) == (wanted is None)
        if got is not None:
            assert got.dtype == half.name
            size = np.abs(wanted.numpy()).max(initial=1e-9)
            within = 3 * half.tolerance
            np.testing.assert_allclose(values(got) / size, wanted.numpy() / size, atol=within)


def network(x, w, table, index):
    """Windows, a convolution, selection by index, rows, attention, scans: kernels of each kind."""
    y = mg.max_pool2d(mg.relu(mg.conv2d(x, w, padding=1)), 2).flatten(1)  # (4, 12)
    y = mg.layer_norm(y + table[index], mg.ones_like(y[0]), mg.zeros_like(y[0]))
    q = y.reshape(2, 2, 12)
    y = y + mg.scaled_dot_product_attention(q, q, q).reshape(4, 12)
    return mg.cumsum(mg.softmax(y, -1), 1), mg.argmax(y, axis=1), mg.sort(y, axis=-1)


@pytest.mark.parametrize("device", DEVICES)
def test_a_compiled_network_gives_what_an_eager_one_does(half, device):
    rng = np.random.default_rng(0)
    shapes = (4, 2, 4, 4), (3, 2, 3, 3), (7, 12)
    with mg.device(device):
        leaves = [half.variable(rng.standard_normal(s)) for s in shapes]
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
                within = 4 * half.tolerance
                np.testing.assert_allclose(values(got), values(want), rtol=within, atol=within)


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
def test_reductions_over_rows_round_once(half, how, device):
    """Their partial results lie in the row of outputs, which must not be halves meanwhile."""
    data = half.near(np.random.default_rng(1).uniform(0.9, 1.1, (300, 7)))
    with mg.device(device):
        got, wide = (
            values(getattr(mg, how)(mg.variable(data, dtype=d), axis=0)) for d in (half.name, "f4")
        )
    np.testing.assert_array_equal(got, half.near(wide))


@pytest.mark.filterwarnings("error")
def test_arrays_that_overflow_become_inf_without_a_warning():
    assert mg.variable(np.array([7e4, 1.0], "f4"), dtype="float16").tolist() == [np.inf, 1.0]
