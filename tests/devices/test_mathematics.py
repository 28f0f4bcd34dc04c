"""The elementary functions, inside kernels compiled with the flags that generated kernels have."""

import functools
import math

import numpy as np
import pytest

from minigrad.devices import loader

PI = np.arctan(np.longdouble(1)) * 4
DTYPES = {"f4": np.dtype(np.float32), "f8": np.dtype(np.float64)}
erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x):
    return np.where(x > 0, 1.0, np.exp(np.minimum(x, 0))) / (1 + np.exp(-np.abs(x)))


REFERENCE = {
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
    "tanh": np.tanh,
    "sigmoid": sigmoid,
    "erf": erf,
    "sin": np.sin,
    "cos": np.cos,
}
# The largest error allowed, in units in the last place of the result: float32, float64.
BOUND = {
    "exp": (1.1, 1.1),
    "expm1": (2.0, 2.2),
    "log": (1.1, 1.1),
    "log1p": (1.6, 1.6),
    "log2": (2.1, 2.1),
    "tanh": (3.0, 3.0),
    "sigmoid": (2.6, 2.8),
    "erf": (1.5, 2.1),  # the reference for float64, math.erf, has an error of its own
    "sin": (2.6, 2.6),
    "cos": (2.6, 2.6),
}
# Where the results are normal numbers: lowest and highest argument, by dtype.
RANGE = {
    "exp": {"f4": (-87.3, 88.7), "f8": (-708.3, 709.7)},
    "expm1": {"f4": (-30, 88.7), "f8": (-60, 709.7)},
    "log": {"f4": (1.2e-38, 3.4e38), "f8": (2.3e-308, 1.7e308)},
    "log1p": {"f4": (-0.9999999, 3.4e38), "f8": (-0.9999999999999999, 1.7e308)},
    "log2": {"f4": (1.2e-38, 3.4e38), "f8": (2.3e-308, 1.7e308)},
    "tanh": {"f4": (-12, 12), "f8": (-25, 25)},
    "sigmoid": {"f4": (-87, 100), "f8": (-708, 800)},
    "erf": {"f4": (-5, 5), "f8": (-7, 7)},
    "sin": {"f4": (-1e6, 1e6), "f8": (-1e14, 1e14)},
    "cos": {"f4": (-1e6, 1e6), "f8": (-1e14, 1e14)},
}
CASES = [(name, code) for name in REFERENCE for code in DTYPES]


@functools.cache
def kernel_of(expression, code, n_inputs=1):
    """The kernel that stores `expression` of x[j] (and y[j], z[j]) in out[j]."""
    names = "xyz"[:n_inputs]
    lines = [
        f"def kernel({', '.join(f'{name}_at' for name in names)}, out_at, n):",
        *(f"    {name} = {code}_at({name}_at)" for name in (*names, "out")),
        "    for j in range(n):",
        f"        out[j] = {expression}",
    ]
    signature = ", ".join(["i8"] * (n_inputs + 2))
    text = f'@jit("void({signature})")\n' + "\n".join(lines) + "\n"
    return loader.load(text, loader.MATHEMATICS).kernel


def evaluate(expression, code, *inputs):
    inputs = [np.ascontiguousarray(x, DTYPES[code]) for x in inputs]
    out = np.empty_like(inputs[0])
    kernel = kernel_of(expression, code, len(inputs))
    kernel(*(x.ctypes.data for x in inputs), out.ctypes.data, out.size)
    return out


def apply(name, code, x):
    return evaluate(f"{name}_{code}(x[j])", code, x)


def exact(name, x):
    """The function in a wider type: float64 for float32, long double for float64."""
    wide = np.float64 if x.dtype == np.float32 or name == "erf" else np.longdouble
    with np.errstate(all="ignore"):
        return REFERENCE[name](x.astype(wide))


def errors_in_last_places(got, wanted):
    unit = np.spacing(np.abs(wanted).astype(got.dtype)).astype(wanted.dtype)
    return np.abs(got.astype(wanted.dtype) - wanted) / unit


def arguments(name, code, rng):
    """Many scales, dense places around the joints of the formulas, and the ends of the range."""
    low, high = (np.nextafter(DTYPES[code].type(v), 0) for v in RANGE[name][code])
    signs = rng.choice([-1.0, 1.0], 60_000)
    scale = np.log(float(high))
    tiny = -80.0 if code == "f4" else -600.0
    joints = [0.0, 0.5, 1.0, math.sqrt(0.5), math.sqrt(2), math.log(2) / 2, 3.92, 5.93, 9.02, 19.06]
    joints += [k * math.pi / 4 for k in range(1, 60)]
    near = np.array(joints) * (1 + np.linspace(-1e-5, 1e-5, 501))[:, None]
    pieces = [
        rng.uniform(-1, 1, 60_000) * min(high, 30.0),
        rng.uniform(low, high / 2, 60_000) + high / 2 * rng.uniform(0, 1, 60_000),
        signs * np.exp(rng.uniform(tiny, scale, 60_000)),
        near.ravel(),
        -near.ravel(),
        [low, high],
    ]
    if name in ("sin", "cos"):  # next to the zeros, where a reduction of few bits has nothing left
        quarters = np.floor(np.exp(rng.uniform(0, np.log(high / 2), 100_000)))
        pieces.append(quarters.astype(np.longdouble) * (PI / 2))
    x = np.concatenate(pieces).astype(DTYPES[code])
    return x[(x >= low) & (x <= high)]


@pytest.mark.parametrize(("name", "code"), CASES)
def test_function_over_its_range_keeps_its_error_bound(name, code):
    if code == "f8" and name != "erf" and np.finfo(np.longdouble).nmant <= 52:
        pytest.skip("long double is no wider than float64 here: no reference")
    x = arguments(name, code, np.random.default_rng(7))
    wanted = exact(name, x)
    errors = errors_in_last_places(apply(name, code, x), wanted)
    normal = np.abs(wanted) >= np.finfo(DTYPES[code]).tiny
    assert normal.sum() > 50_000
    worst = np.argmax(np.where(normal, errors, 0))
    bound = BOUND[name][code == "f8"]
    assert errors[worst] <= bound, f"{errors[worst]:.2f} units in the last place at {x[worst]!r}"


@pytest.mark.parametrize("code", DTYPES)
def test_functions_of_special_values_give_the_exact_ones(code):
    inf, nan = math.inf, math.nan
    table = {
        "exp": [(0.0, 1), (-0.0, 1), (inf, inf), (-inf, 0), (1e30, inf), (-1e30, 0)],
        "expm1": [(0.0, 0.0), (-0.0, -0.0), (inf, inf), (-inf, -1), (1e30, inf), (-1e30, -1)],
        "log": [
            (1.0, 0.0),
            (0.0, -inf),
            (-0.0, -inf),
            (inf, inf),
            (-inf, nan),
            (-1.0, nan),
            (-1e-30, nan),
        ],
        "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1.0, -inf), (inf, inf), (-inf, nan), (-1.5, nan)],
        "log2": [(1.0, 0.0), (0.0, -inf), (-0.0, -inf), (8.0, 3.0), (inf, inf), (-1.0, nan)],
        "tanh": [
            (0.0, 0.0),
            (-0.0, -0.0),
            (inf, 1),
            (-inf, -1),
            (1e30, 1),
            (-1e30, -1),
            (25.0, 1),
            (-25.0, -1),
        ],
        "sigmoid": [(0.0, 0.5), (-0.0, 0.5), (inf, 1), (-inf, 0), (1e30, 1), (-1e30, 0)],
        "erf": [
            (0.0, 0.0),
            (-0.0, -0.0),
            (inf, 1),
            (-inf, -1),
            (1e30, 1),
            (-1e30, -1),
            (6.0, 1),
            (-6.0, -1),
        ],
        "sin": [(0.0, 0.0), (-0.0, -0.0), (inf, nan), (-inf, nan)],
        "cos": [(0.0, 1), (-0.0, 1), (inf, nan), (-inf, nan)],
    }
    for name, values in table.items():
        x, wanted = zip(*values, (nan, nan), strict=True)
        got = apply(name, code, x)
        np.testing.assert_array_equal(got, wanted, err_msg=name)
        zero = got == 0
        assert np.array_equal(np.signbit(got[zero]), np.signbit(np.array(wanted)[zero])), name


@pytest.mark.parametrize(("name", "code"), CASES)
def test_function_of_tiny_arguments_keeps_their_bits(name, code):
    info = np.finfo(DTYPES[code])
    x = np.array([info.smallest_subnormal, info.tiny, 3 * info.smallest_subnormal, info.tiny / 8])
    x = np.concatenate([x, -x]).astype(DTYPES[code])
    if name in ("log", "log2"):
        x = np.abs(x)
    got, wanted = apply(name, code, x), exact(name, x)
    assert np.all(errors_in_last_places(got, wanted) <= 1.1), f"{x} {got} {wanted}"


@pytest.mark.parametrize("code", DTYPES)
def test_exp_at_the_ends_overflows_and_underflows_gradually(code):
    low, high = (-104.5, 89.5) if code == "f4" else (-746.5, 710.5)
    x = np.concatenate([np.linspace(low, low + 20, 4001), np.linspace(high - 2, high, 4001)])
    x = x.astype(DTYPES[code])
    with np.errstate(over="ignore", under="ignore"):
        wanted = exact("exp", x).astype(DTYPES[code])
    got = apply("exp", code, x)
    assert np.array_equal(got == np.inf, wanted == np.inf)
    assert np.any(got == np.inf)
    assert np.any((got > 0) & (got < np.finfo(got.dtype).tiny)), "subnormal results exist"
    finite = np.isfinite(wanted)
    unit = np.spacing(wanted[finite])
    assert np.all(np.abs(got[finite] - wanted[finite]) <= 1.1 * unit)


@pytest.mark.parametrize(("name", "code"), [c for c in CASES if c[0] not in ("sin", "cos")])
def test_function_between_neighbours_never_falls_back_by_more_than_its_error(name, code):
    # Rounding makes steps of one unit; a larger fall would be a visible joint of two formulas.
    dtype = DTYPES[code]
    centres = [1e-8, 1e-4, 1e-9, 0.34657359, 0.70710678, 1.0, 1.41421356, 3.92, 5.93, 9.01, 19.06]
    for centre in centres:
        x = dtype.type(centre) + np.arange(-2000, 2000) * np.spacing(dtype.type(centre))
        for signed in (x, -x[::-1]):
            if name in ("log", "log2") and signed[0] <= 0:
                continue
            if name == "log1p" and signed[0] <= -1:
                continue
            y = apply(name, code, signed)
            falls = -np.diff(y) / np.spacing(np.abs(y[:-1]))
            assert np.max(falls) <= 2, f"{name} falls near {centre}"


@pytest.mark.parametrize("code", DTYPES)
def test_bounded_functions_never_leave_their_bounds(code):
    x = np.random.default_rng(3).uniform(-40, 40, 200_000)
    for name, low in (("tanh", -1), ("erf", -1), ("sin", -1), ("cos", -1), ("sigmoid", 0)):
        y = apply(name, code, x)
        assert y.min() >= low, name
        assert y.max() <= 1, name


@pytest.mark.parametrize("code", DTYPES)
def test_sine_and_cosine_beyond_their_range_are_nan_not_noise(code):
    limit = {"f4": 1e6, "f8": 1e14}[code]
    for name in ("sin", "cos"):
        got = apply(name, code, [limit, -limit, limit * 1.01, -limit * 1.01, 1e30])
        assert np.array_equal(np.isnan(got), [False, False, True, True, True])


@pytest.mark.parametrize("code", DTYPES)
def test_log2_of_powers_of_two_is_exact(code):
    least, most = (-149, 127) if code == "f4" else (-1074, 1023)
    powers = np.arange(least, most + 1)
    x = np.ldexp(1.0, powers).astype(DTYPES[code])
    assert np.array_equal(apply("log2", code, x), powers)


@pytest.mark.parametrize("code", DTYPES)
def test_angles_keep_their_error_bound(code):
    dtype, rng = DTYPES[code], np.random.default_rng(9)
    wide = np.float64 if code == "f4" else np.longdouble
    if code == "f8" and np.finfo(np.longdouble).nmant <= 52:
        pytest.skip("long double is no wider than float64 here: no reference")
    scale = 80 if code == "f4" else 600
    y = np.concatenate([
        rng.normal(size=100_000), np.exp(rng.uniform(-scale, scale, 50_000)),
        np.linspace(0.4142, 0.4143, 2000), np.linspace(0.99, 1.01, 2000),
    ]).astype(dtype)  # fmt: skip
    x = np.concatenate([
        rng.normal(size=100_000), np.exp(rng.uniform(-scale, scale, 50_000)), np.ones(4000),
    ]).astype(dtype)  # fmt: skip
    for sy, sx in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        got = evaluate(f"atan2_{code}(x[j], y[j])", code, sy * y, sx * x)
        wanted = np.arctan2((sy * y).astype(wide), (sx * x).astype(wide))
        errors = errors_in_last_places(got, wanted)
        normal = np.abs(wanted) >= np.finfo(dtype).tiny
        assert np.max(np.where(normal, errors, 0)) <= 2.3
        assert np.all(np.abs(got) <= dtype.type(np.pi))


@pytest.mark.parametrize("code", DTYPES)
def test_angles_of_special_points_are_those_of_c(code):
    special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 1e38, -1e38]
    y, x = (m.ravel().astype(DTYPES[code]) for m in np.meshgrid(special, special))
    got, wanted = evaluate(f"atan2_{code}(x[j], y[j])", code, y, x), np.arctan2(y, x)
    np.testing.assert_allclose(got, wanted, 3e-7 if code == "f4" else 5e-16)
    known = ~np.isnan(wanted)
    assert np.array_equal(np.signbit(got[known]), np.signbit(wanted[known]))
