"""Golden cases: elementwise operations, comparisons, reductions."""

import torch
from case import away, case, distinct, fixed, normal, positive, unit
from torch.nn import functional

UNARY = {
    "neg": (torch.neg, normal),
    "abs": (torch.abs, away),
    "sign": (torch.sign, away),
    "square": (torch.square, normal),
    "sqrt": (torch.sqrt, positive),
    "rsqrt": (torch.rsqrt, positive),
    "reciprocal": (torch.reciprocal, away),
    "exp": (torch.exp, normal),
    "expm1": (torch.expm1, normal),
    "log": (torch.log, positive),
    "log1p": (torch.log1p, positive),
    "log2": (torch.log2, positive),
    "sin": (torch.sin, normal),
    "cos": (torch.cos, normal),
    "tan": (torch.tan, unit),
    "tanh": (torch.tanh, normal),
    "sigmoid": (torch.sigmoid, normal),
    "relu": (torch.relu, away),
    "leaky_relu": (functional.leaky_relu, away),
    "elu": (functional.elu, away),
    "silu": (functional.silu, normal),
    "softplus": (functional.softplus, normal),
    "erf": (torch.erf, normal),
    "round": (torch.round, away),
    "floor": (torch.floor, away),
    "ceil": (torch.ceil, away),
}

BINARY = {
    "add": (torch.add, normal, normal),
    "sub": (torch.sub, normal, normal),
    "mul": (torch.mul, normal, normal),
    "div": (torch.div, normal, away),
    "pow": (torch.pow, positive, normal),
    "atan2": (torch.atan2, away, away),
    "floor_divide": (lambda a, b: torch.div(a, b, rounding_mode="floor"), normal, away),
    "remainder": (torch.remainder, normal, away),
    "maximum": (torch.maximum, distinct, away),
    "minimum": (torch.minimum, distinct, away),
}

COMPARISONS = {
    "equal": torch.eq,
    "not_equal": torch.ne,
    "less": torch.lt,
    "less_equal": torch.le,
    "greater": torch.gt,
    "greater_equal": torch.ge,
}

LOGIC = {
    "logical_and": torch.logical_and,
    "logical_or": torch.logical_or,
}

# Below bounds, at them, between them, above them.
LIMITED = [-3.0, -1.0, 0.5, 0.5, 2.0, -1.5, 0.0]
BOUNDS = [0.5, 0.5, 0.5, 0.25, 1.0, -2.0, -1.0]

# Far from zero a formula that is right near zero may overflow or cancel.
WIDE = fixed([-90.0, -30.0, -12.5, -5.0, -0.125, 0.125, 5.0, 12.5, 30.0, 80.0])
SMALL = fixed([-1e-3, -(2.0**-20), 2.0**-30, 2.0**-20, 2.0**-10, 0.25])


def unary():
    """One case each in two dimensions, and the tails of those that saturate."""
    for name, (reference, draw) in UNARY.items():
        yield case(name, name, {"x": draw(3, 4)}, reference)
    for name in ("tanh", "sigmoid", "erf", "softplus", "silu", "elu", "expm1"):
        yield case(f"{name}_wide", name, {"x": WIDE}, UNARY[name][0])
    for name in ("expm1", "log1p", "tanh", "erf", "sin"):
        yield case(f"{name}_small", name, {"x": SMALL}, UNARY[name][0])
    for kind, name in (("tanh", "tanh"), ("none", "erf")):
        keywords = {"approximate": kind}
        for suffix, draw in (("", normal(3, 4)), ("_wide", WIDE)):
            yield case(
                f"gelu_{name}{suffix}",
                "gelu",
                {"x": draw},
                lambda x, kind=kind: functional.gelu(x, approximate=kind),
                **keywords,
            )
    yield case(
        "leaky_relu_slope",
        "leaky_relu",
        {"x": away(3, 4)},
        lambda x: functional.leaky_relu(x, 0.25),
        ["$x", 0.25],
    )
    yield case("elu_alpha", "elu", {"x": away(3, 4)}, lambda x: functional.elu(x, 1.5), ["$x", 1.5])
    x = {"x": away(3, 4)}
    yield case("clip", "clip", x, lambda x: x.clamp(-1, 0.5), ["$x", -1.0, 0.5])
    yield case("clip_low", "clip", x, lambda x: x.clamp(min=-0.5), ["$x", -0.5, None])


def binary():
    """Equal shapes, and every way of broadcasting."""
    shapes = {
        "": ((3, 4), (3, 4)),
        "_row": ((3, 4), (4,)),
        "_column": ((3, 4), (3, 1)),
        "_both": ((3, 1), (1, 4)),
        "_scalar": ((), (2, 3)),
        "_rank": ((2, 1, 4), (3, 1)),
    }
    for name, (reference, first, second) in BINARY.items():
        for suffix, (a, b) in shapes.items():
            yield case(f"{name}{suffix}", name, {"a": first(*a), "b": second(*b)}, reference)
    yield case("pow_square", "pow", {"x": normal(3, 4)}, lambda x: x**2, ["$x", 2])
    yield case("pow_cube_negative", "pow", {"x": away(3, 4)}, lambda x: x**-3, ["$x", -3])
    yield case("pow_half", "pow", {"x": positive(3, 4)}, lambda x: x**0.5, ["$x", 0.5])
    ints = {"a": fixed([7, -7, 7, -7, 0, 6]), "b": fixed([3, 3, -3, -3, 5, 2])}
    yield case("floor_divide_ints", "floor_divide", ints, torch.floor_divide)
    yield case("remainder_ints", "remainder", ints, torch.remainder)
    condition = {"c": fixed([[True, False, True], [False, False, True]])}
    for suffix, a, b in (("", (2, 3), (2, 3)), ("_broadcast", (3,), (2, 1))):
        yield case(
            f"where{suffix}",
            "where",
            {**condition, "a": normal(*a), "b": normal(*b)},
            torch.where,
        )
    bounds = {"low": fixed(-1.0), "high": fixed(BOUNDS)}  # at ties and in the wrong order, too
    yield case("clip_between", "clip", {"x": fixed(LIMITED), **bounds}, torch.clamp)
    for k, name in enumerate(bounds):
        yield case(
            f"clip_{name}_given",
            "clip",
            {"x": fixed(LIMITED), name: bounds[name]},
            lambda x, bound, name={"low": "min", "high": "max"}[name]: x.clamp(**{name: bound}),
            ["$x", *[None] * k, f"${name}"],
        )


def comparisons():
    """Truth values: compared exactly, without gradients."""
    a, b = fixed([[1.0, 2.0, 3.0], [-1.0, 0.0, 5.0]]), fixed([1.0, 3.0, 2.0])
    for name, reference in COMPARISONS.items():
        yield case(name, name, {"a": a, "b": b}, reference, constant=("a", "b"))
    p, q = fixed([True, True, False, False]), fixed([True, False, True, False])
    for name, reference in LOGIC.items():
        yield case(name, name, {"a": p, "b": q}, reference)
    yield case("logical_not", "logical_not", {"a": p}, torch.logical_not)
    yield case("any_axis", "any", {"x": fixed([[True, False], [False, False]])}, any_last, axis=1)
    yield case("all_axis", "all", {"x": fixed([[True, True], [True, False]])}, all_last, axis=1)


def any_last(x):
    """Any along the last axis."""
    return x.any(-1)


def all_last(x):
    """All along the last axis."""
    return x.all(-1)


def along(function, axis, keepdims):
    """Torch's name for axis is dim; a product takes one axis only."""
    if axis is None:
        return lambda x: function(x)
    return lambda x: function(x, dim=axis, keepdim=keepdims)


def reductions():
    """Over everything, one axis, several axes, with and without kept dimensions."""
    everywhere = {"": (None, False), "_last": (-1, False), "_first_kept": (0, True)}
    several = {**everywhere, "_two": ((0, 2), False), "_two_kept": ((-1, 1), True)}
    functions = {
        "sum": (torch.sum, normal, several),
        "mean": (torch.mean, normal, several),
        "prod": (torch.prod, away, everywhere),
        "max": (torch.amax, distinct, several),
        "min": (torch.amin, distinct, several),
        "var": (lambda x, **k: torch.var(x, correction=0, **k), normal, several),
        "std": (lambda x, **k: torch.std(x, correction=0, **k), normal, several),
        "norm": (torch.linalg.vector_norm, normal, several),
    }
    for name, (function, draw, axes) in functions.items():
        for suffix, (axis, keepdims) in axes.items():
            keywords = {} if axis is None else {"axis": axis}
            if keepdims:
                keywords["keepdims"] = True
            if name in ("var", "std"):
                keywords["ddof"] = 0
            yield case(
                f"{name}{suffix}",
                name,
                {"x": draw(2, 3, 4)},
                along(function, axis, keepdims),
                **keywords,
            )
    for suffix, (axis, keepdims) in several.items():
        dims = (0, 1, 2) if axis is None else axis
        keywords = {} if axis is None else {"axis": axis, "keepdims": keepdims}
        yield case(
            f"logsumexp{suffix}",
            "logsumexp",
            {"x": normal(2, 3, 4)},
            lambda x, dims=dims, keepdims=keepdims: torch.logsumexp(x, dims, keepdim=keepdims),
            **keywords,
        )
    yield case(
        "logsumexp_wide",
        "logsumexp",
        {"x": fixed([[1000.0, 999.0], [-1000.0, -1001.0]])},
        lambda x: torch.logsumexp(x, 1),
        axis=1,
    )
    for name, function in (("argmax", torch.argmax), ("argmin", torch.argmin)):
        x = {"x": distinct(3, 4)}
        yield case(name, name, x, lambda x, f=function: f(x), constant=("x",))
        yield case(f"{name}_axis", name, x, lambda x, f=function: f(x, 1), constant=("x",), axis=1)
    for axis in (0, -1):
        yield case(
            f"cumsum_{axis}",
            "cumsum",
            {"x": normal(3, 4)},
            lambda x, axis=axis: torch.cumsum(x, axis),
            axis=axis,
        )
    for axis in (1, -1):
        x = {"x": normal(2, 3, 4)}
        for name in ("softmax", "log_softmax"):
            yield case(
                f"{name}_{axis}",
                name,
                x,
                lambda x, name=name, axis=axis: getattr(functional, name)(x, axis),
                axis=axis,
            )
    wide = {"x": fixed([[200.0, 0.0, -200.0], [1.0, 2.0, 3.0]])}
    yield case("softmax_wide", "softmax", wide, lambda x: torch.softmax(x, 1), axis=1)
    yield case("log_softmax_wide", "log_softmax", wide, lambda x: torch.log_softmax(x, 1), axis=1)
    yield case("mean_of_unit", "mean", {"x": unit(7)}, torch.mean)


CASES = [*unary(), *binary(), *comparisons(), *reductions()]
