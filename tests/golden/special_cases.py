"""Cases at special values: inputs, minigrad's calls, and where minigrad differs on purpose."""

import itertools

import numpy as np

NAN, INF = float("nan"), float("inf")
WIDE = [0.0, -0.0, INF, -INF, NAN, 1e-310, -1e-310, 1e300, -1e300, 1.0, -1.0, 0.5, -2.5]
FEW = [0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 0.5, -2.5, 2.0, 1e300]
ROWS = [
    [1, 2, 3], [0, 0, 0], [2, 2, 2], [-0.0, 0, 1], [INF, 1, 2], [-INF, 1, 2], [-INF, -INF, -INF],
    [INF, INF, 1], [INF, -INF, 0], [NAN, 1, 2], [0, 1, 2], [0, 0, 3], [1e300, 1e300, 1],
    [1e-310, 0, 0], [1e200, -1e200, 1], [-1e300, 0, 1e300], [10001, 10002, 10000],
]  # fmt: skip
EXPONENTS = (0.0, 1.0, 2.0, 3.0, 0.5, 1.5, -1.0, -2.0, 2.5)
BASES = (0.0, 2.0, 0.5)
UNARY = (
    "neg", "square", "sqrt", "rsqrt", "reciprocal", "exp", "expm1", "log", "log1p", "log2", "sin",
    "cos", "tan", "tanh", "sigmoid", "erf", "relu", "leaky_relu", "elu", "gelu", "silu", "softplus",
    "sign",
)  # fmt: skip
BINARY = (
    "add",
    "sub",
    "mul",
    "div",
    "maximum",
    "minimum",
    "pow",
    "atan2",
    "remainder",
    "floor_divide",
)
ALONG_ROWS = ("sum", "mean", "prod", "max", "min", "norm", "cumsum", "cumprod", "logsumexp", "sort")
SPREADS = ("var", "std")
LABELS = np.arange(len(ROWS)) % 3


def pairs(a, b):
    """Every pair, as two columns."""
    return [list(c) for c in zip(*itertools.product(a, b), strict=True)]


# name: (columns of inputs, function of minigrad's module and the inputs)
CASES = {name: ([WIDE], lambda mg, x, n=name: getattr(mg, n)(x)) for name in UNARY}
CASES |= {name: (pairs(FEW, FEW), lambda mg, a, b, n=name: getattr(mg, n)(a, b)) for name in BINARY}
CASES |= {name: ([ROWS], lambda mg, x, n=name: getattr(mg, n)(x, axis=1)) for name in ALONG_ROWS}
CASES |= {name: ([ROWS], lambda mg, x, n=name: getattr(mg, n)(x, 1, ddof=0)) for name in SPREADS}
CASES |= {f"power {b}": ([WIDE], lambda mg, x, b=b: x**b) for b in EXPONENTS}
CASES |= {f"base {a}": ([WIDE], lambda mg, x, a=a: a**x) for a in BASES}
CASES |= {
    "gelu_tanh": ([WIDE], lambda mg, x: mg.gelu(x, approximate="tanh")),
    "clip": ([WIDE], lambda mg, x: mg.clip(x, -1.0, 0.5)),
    "masked_sqrt": ([WIDE], lambda mg, x: mg.where(x > 0, mg.sqrt(x), 0.0)),
    "bce_with_logits": (
        pairs(FEW, [0.0, 1.0, 0.5]),
        lambda mg, x, t: mg.bce_with_logits(x, t, reduction="none"),
    ),
    "huber": (pairs(FEW, FEW), lambda mg, x, t: mg.huber(x, t, reduction="none")),
    "softmax": ([ROWS], lambda mg, x: mg.softmax(x)),
    "log_softmax": ([ROWS], lambda mg, x: mg.log_softmax(x)),
    "cross_entropy": (
        [ROWS],
        lambda mg, x: mg.cross_entropy(x, mg.variable(LABELS), reduction="none"),
    ),
    "cross_entropy_smooth": (
        [ROWS],
        lambda mg, x: mg.cross_entropy(
            x, mg.variable(LABELS), reduction="none", label_smoothing=0.1
        ),
    ),
    "layer_norm": (
        [ROWS],
        lambda mg, x: mg.layer_norm(x, mg.variable(np.ones(3)), mg.variable(np.zeros(3))),
    ),
    "rms_norm": ([ROWS], lambda mg, x: mg.rms_norm(x, mg.variable(np.ones(3)))),
}

# (case, order): why minigrad differs; "*": of every order
DIFFERENT = {
    ("sign", "value"): "the sign of NaN is NaN, as in NumPy",
    ("sin", "*"): "NaN beyond 10^14: docs/numerics.md",
    ("cos", "*"): "NaN beyond 10^14: docs/numerics.md",
    ("tan", "*"): "NaN beyond 10^14, as sin",
    ("elu", "gradient"): "of NaN NaN, as its value",
    ("elu", "second"): "at 0 the derivative from the left; of NaN NaN",
    ("gelu", "second"): "0 where x^2 overflows and the density is 0; PyTorch: NaN",
    ("power 0.5", "second"): "the op is sqrt: an odd root of -0, and NaN of -inf",
    ("power 1.5", "gradient"): "of -inf: (-inf)^0.5 is inf, as in C; PyTorch: NaN",
    ("power 2.5", "second"): "of -inf: (-inf)^0.5 is inf, as in C; PyTorch: NaN",
    ("base 0.0", "second"): "0 for exponents of at least 0, as the gradient; PyTorch: 0 * inf",
    (
        "pow",
        "second",
    ): "0 ** b as its gradient; NaN for a negative base, as its slope",
    ("bce_with_logits", "value"): "0 or inf of infinite logits, which is the limit; PyTorch: NaN",
    ("prod", "second"): "products of the others, without division; PyTorch divides",
    ("atan2", "second"): "0 at the origin, as the gradient; PyTorch: NaN",
    ("cumprod", "second"): "products of sums of products; PyTorch divides by the factors",
    ("max", "gradient"): "NaN share it; PyTorch: NaN for every element",
    ("min", "gradient"): "NaN share it; PyTorch: NaN for every element",
    ("norm", "second"): "at 0 it is 0, as the first; PyTorch: NaN",
    ("logsumexp", "gradient"): "softmax, exact where the sum is: 0 of -inf throughout",
    ("logsumexp", "second"): "as the gradient",
    ("layer_norm", "*"): "0 where the variance overflows; PyTorch: NaN",
    ("rms_norm", "second"): "0 where the mean of squares overflows; PyTorch: NaN",
}
