"""The elementary functions fused with other arithmetic, also where flags let LLVM reorder it."""

import math
import re

import numpy as np
import pytest

from minigrad.devices import loader

DTYPES = {"f4": np.dtype(np.float32), "f8": np.dtype(np.float64)}
NAMES = ("exp", "expm1", "log", "log1p", "log2", "tanh", "sigmoid", "erf", "sin", "cos")
WIDE = {"f4": np.float64, "f8": np.longdouble}
LOOSE = """def loose(signature):
    flags = {"reassoc", "contract", "nsz", "arcp"}
    return njit(signature, nogil=True, error_model="numpy", fastmath=flags)"""


def compiled(text):
    """Under flags that let LLVM reorder everything, as kernels of people may have them."""
    loose = text.replace("@jit(", "@loose(", 1)
    return loader.load(f"{LOOSE}\n\n{loose}", loader.MATHEMATICS).kernel


def address(array):
    return array.ctypes.data


def test_kernels_may_skip_the_rounding_of_a_product_and_change_nothing_else():
    flags = loader.load("", ()).FLAGS
    assert flags == {"contract"}


@pytest.mark.parametrize("code", DTYPES)
def test_exp_of_a_product_plus_a_term_keeps_its_accuracy_and_infinities(code):
    kernel = compiled(f"""@jit("void(i8, i8, i8, i8, i8)")
def kernel(a_at, b_at, c_at, out_at, n):
    a, b, c, out = {code}_at(a_at), {code}_at(b_at), {code}_at(c_at), {code}_at(out_at)
    for j in range(n):
        out[j] = exp_{code}(a[j] * b[j]) + c[j]
""")
    rng = np.random.default_rng(1)
    limit = 9.4 if code == "f4" else 26.6
    a, b, c = (rng.uniform(-limit, limit, 50_001).astype(DTYPES[code]) for _ in range(3))
    a[:6] = [np.inf, np.inf, -np.inf, 1000, -1000, np.nan]
    b[:6] = [1, -1, 1, 1000, 1000, 1]
    out = np.empty_like(a)
    kernel(*map(address, (a, b, c, out)), out.size)
    np.testing.assert_array_equal(out[:6], [np.inf, c[1], c[2], np.inf, c[4], np.nan])
    x = a[6:].astype(WIDE[code]) * b[6:]
    size = np.exp(x) * (2 + np.abs(x)) + np.abs(c[6:])
    error = np.abs(out[6:] - (np.exp(x) + c[6:])) / (size * np.finfo(DTYPES[code]).eps)
    assert error.max() <= 1.0


@pytest.mark.parametrize("code", DTYPES)
def test_softmax_of_rows_with_masked_entries_is_exact_where_it_can_be(code):
    kernel = compiled(f"""@jit("void(i8, i8, i8, i8)")
def kernel(x_at, out_at, m, n):
    x, out = {code}_at(x_at), {code}_at(out_at)
    for i in range(m):
        largest = {code.upper()}(-math.inf)
        for j in range(n):
            largest = max(largest, x[i * n + j])
        total = {code.upper()}(0)
        for j in range(n):
            out[i * n + j] = exp_{code}(x[i * n + j] - largest)
            total += out[i * n + j]
        for j in range(n):
            out[i * n + j] /= total
""")
    rng = np.random.default_rng(2)
    x = (rng.standard_normal((40, 67)) * 30).astype(DTYPES[code])
    x[rng.random(x.shape) < 0.3] = -np.inf
    x[:, 5] = 1.0  # no row is masked as a whole
    out = np.empty_like(x)
    kernel(address(x), address(out), *x.shape)
    wide = np.exp((x - x.max(axis=1, keepdims=True)).astype(WIDE[code]))  # the rounded difference
    wide /= wide.sum(axis=1, keepdims=True)
    eps = np.finfo(DTYPES[code]).eps
    assert np.all(out[np.isneginf(x)] == 0)
    assert np.all(np.abs(out.astype(WIDE[code]).sum(axis=1) - 1) < 4 * eps)
    normal = wide > np.finfo(DTYPES[code]).tiny * 100
    assert np.max(np.abs(out - wide)[normal] / wide[normal]) < 4 * eps


@pytest.mark.parametrize("code", DTYPES)
def test_sum_of_exp_in_any_order_is_as_accurate_as_a_sum(code):
    kernel = compiled(f"""@jit("void(i8, i8, i8)")
def kernel(x_at, out_at, n):
    x, out = {code}_at(x_at), {code}_at(out_at)
    total = {code.upper()}(0)
    for j in range(n):
        total += exp_{code}(x[j])
    out[0] = total
""")
    rng = np.random.default_rng(3)
    out = np.empty(1, DTYPES[code])
    for low, high in ((-3, 3), (-80, -60), (60, 80)):
        x = rng.uniform(low, high, 1003).astype(DTYPES[code])
        kernel(address(x), address(out), x.size)
        wanted = np.exp(x.astype(WIDE[code])).sum()
        assert abs(out[0] - wanted) < 40 * np.finfo(out.dtype).eps * wanted
    x[77] = np.nan
    kernel(address(x), address(out), x.size)
    assert np.isnan(out[0])
    x[:] = -np.inf
    kernel(address(x), address(out), x.size)
    assert out[0] == 0


@pytest.mark.parametrize("code", DTYPES)
def test_functions_of_sums_are_the_functions_of_the_rounded_sums(code):
    # The steps of a reduction (x * c + big - big) must not be merged with the sum that makes x.
    body = " + ".join(f"{name}_{code}(a[j] + b[j])" for name in ("exp", "sin", "tanh", "log1p"))
    kernel = compiled(f"""@jit("void(i8, i8, i8, i8)")
def kernel(a_at, b_at, out_at, n):
    a, b, out = {code}_at(a_at), {code}_at(b_at), {code}_at(out_at)
    for j in range(n):
        out[j] = {body}
""")
    rng = np.random.default_rng(4)
    a, b = (rng.uniform(0, 2, 30_001).astype(DTYPES[code]) for _ in range(2))
    out = np.empty_like(a)
    kernel(*map(address, (a, b, out)), out.size)
    x = (a + b).astype(WIDE[code])
    wanted = np.exp(x) + np.sin(x) + np.tanh(x) + np.log1p(x)
    assert np.max(np.abs(out - wanted) / np.abs(wanted)) < 4 * np.finfo(DTYPES[code]).eps


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("code", DTYPES)
def test_kernel_of_a_function_is_vector_code_in_its_own_precision_without_calls(name, code):
    module = loader.load(
        f"""@njit("void(i8, i8, i8)", nogil=True, error_model="numpy", fastmath=FLAGS)
def kernel(x_at, out_at, n):
    x, out = {code}_at(x_at), {code}_at(out_at)
    for j in range(n):
        out[j] = {name}_{code}(x[j])
""",
        loader.MATHEMATICS,
    )
    (code_text,) = module.kernel.inspect_llvm().values()
    kind = {"f4": "float", "f8": "double"}[code]
    assert re.search(rf"fmul [a-z ]*<\d+ x {kind}>", code_text), "not vectorised"
    assert not re.search(r"call \w* ?double @(?!llvm)|call \w* ?float @(?!llvm)", code_text)
    libm = r"@(llvm\.)?(exp|exp2|log|log1p|expm1|tanh|erf|sin|cos|pow)f?(\.\w+)?\("
    assert not re.search(libm, code_text), "calls the C library"
    if code == "f4":
        assert "double" not in code_text, "float32 kernels compute in float32"


def test_pow_i8_squares_wraps_around_and_cuts_negative_powers():
    kernel = compiled("""@jit("i8(i8, i8)")
def kernel(base, exponent):
    return pow_i8(base, exponent)
""")
    rng = np.random.default_rng(6)
    for base, exponent in rng.integers((-12, 0), (13, 90), (400, 2)).tolist():
        wrapped = (base**exponent + 2**63) % 2**64 - 2**63
        assert kernel(base, exponent) == wrapped, f"{base}^{exponent}"
    negative = {(1, -5): 1, (-1, -5): -1, (-1, -4): 1, (2, -1): 0, (-7, -3): 0, (0, -1): 0}
    for (base, exponent), wanted in negative.items():
        assert kernel(base, exponent) == wanted, f"{base}^{exponent}"
    assert kernel(0, 0) == 1
    assert kernel(3, 39) == 3**39
    assert math.log2(kernel(2, 62)) == 62
