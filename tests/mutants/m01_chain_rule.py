"""Wrong solutions of lesson 01 that people really write."""

from minigrad.course.mutants import Mutant


def function(head: str, *body: str) -> str:
    """Return the text of a function."""
    return "\n".join([f"def {head}:", *(f"    {line}" for line in body)])


MUL = "mul_backward(dy, a, b)"
TANH = "tanh_backward(dy, y)"
POW = "pow_backward(dy, x, n)"
CHAIN = "chain(fs, dfs, x)"
COUNT = "count_mults(n_in, n_out, mode)"

MUTANTS = [
    Mutant("mul_backward", "dropped_upstream", function(MUL, "return b, a")),
    Mutant("mul_backward", "swapped", function(MUL, "return dy * a, dy * b")),
    Mutant("mul_backward", "count", function(MUL, "return dy * b")),
    Mutant("mul_backward", "added", function(MUL, "return dy, dy")),
    Mutant("mul_backward", "added", function(MUL, "return dy + b, dy + a")),
    Mutant(
        "mul_backward", "changed_input", function(MUL, "da = dy * b", "dy *= a", "return da, dy")
    ),
    Mutant("mul_backward", "shape", function(MUL, "return (dy * b).sum(), (dy * a).sum()")),
    Mutant("mul_backward", "none", function(MUL, "da, db = dy * b, dy * a")),
    Mutant("tanh_backward", "dropped_upstream", function(TANH, "return 1 - y ** 2")),
    Mutant("tanh_backward", "twice", function(TANH, "return dy * (1 - np.tanh(y) ** 2)")),
    Mutant("tanh_backward", "sigmoid", function(TANH, "return dy * y * (1 - y)")),
    Mutant("tanh_backward", "no_square", function(TANH, "return dy * (1 - y)")),
    Mutant("tanh_backward", "brackets", function(TANH, "return dy * 1 - y ** 2")),
    Mutant("tanh_backward", "plus", function(TANH, "return dy * (1 + y ** 2)")),
    Mutant("tanh_backward", "roles", function(TANH, "return (1 - dy ** 2) * y")),
    Mutant("tanh_backward", "added", function(TANH, "return dy + (1 - y ** 2)")),
    Mutant("tanh_backward", "value", function(TANH, "return dy * (1 - y ** 3)")),
    Mutant("tanh_backward", "sign", function(TANH, "return dy * (y ** 2 - 1)")),
    Mutant("pow_backward", "dropped_upstream", function(POW, "return n * x ** (n - 1)")),
    Mutant("pow_backward", "no_factor", function(POW, "return dy * x ** (n - 1)")),
    Mutant("pow_backward", "no_decrease", function(POW, "return dy * n * x ** n")),
    Mutant("pow_backward", "nan", function(POW, "return dy * n * x ** n / x")),
    Mutant("pow_backward", "nan", function(POW, "return dy * n * x ** (n - 1.0)")),
    Mutant("pow_backward", "nan", function(POW, "return dy * n * np.exp((n - 1) * np.log(x))")),
    Mutant("pow_backward", "absolute", function(POW, "return dy * n * np.abs(x) ** max(n - 1, 0)")),
    Mutant(
        "chain",
        "all_at_x",
        function(CHAIN, "total = 1.0", "for df in dfs:", "    total *= df(x)", "return total"),
    ),
    Mutant(
        "chain",
        "after",
        function(
            CHAIN,
            "total = 1.0",
            "for f, df in zip(fs, dfs):",
            "    x = f(x)",
            "    total *= df(x)",
            "return total",
        ),
    ),
    Mutant(
        "chain",
        "sum",
        function(
            CHAIN,
            "total = 0.0",
            "for f, df in zip(fs, dfs):",
            "    total += df(x)",
            "    x = f(x)",
            "return total",
        ),
    ),
    Mutant(
        "chain",
        "backwards",
        function(
            CHAIN,
            "total = 1.0",
            "for f, df in zip(fs[::-1], dfs[::-1]):",
            "    total *= df(x)",
            "    x = f(x)",
            "return total",
        ),
    ),
    Mutant(
        "chain",
        "last_missing",
        function(
            CHAIN,
            "total = 1.0",
            "for f, df in zip(fs[:-1], dfs[:-1]):",
            "    total *= df(x)",
            "    x = f(x)",
            "return total",
        ),
    ),
    Mutant(
        "chain",
        "value",
        function(CHAIN, "for f in fs:", "    x = f(x)", "return x"),
    ),
    Mutant(
        "chain",
        "cost",
        function(
            CHAIN,
            "total = 1.0",
            "for i, df in enumerate(dfs):",
            "    value = x",
            "    for f in fs[:i]:",
            "        value = f(value)",
            "    total *= df(value)",
            "return total",
        ),
    ),
    Mutant(
        "chain",
        "value",
        function(
            CHAIN,
            "def whole(x):",
            "    for f in fs:",
            "        x = f(x)",
            "    return x",
            "return (whole(x + 1e-3) - whole(x)) / 1e-3",
        ),
    ),
    Mutant(
        "count_mults",
        "swapped",
        function(
            COUNT,
            "if mode not in ('forward', 'reverse'):",
            "    raise ValueError(mode)",
            "one = HIDDEN * n_in + HIDDEN + n_out * HIDDEN",
            "return one * (n_out if mode == 'forward' else n_in)",
        ),
    ),
    Mutant(
        "count_mults",
        "one_pass",
        function(COUNT, "return HIDDEN * n_in + HIDDEN + n_out * HIDDEN"),
    ),
    Mutant(
        "count_mults",
        "no_tanh",
        function(
            COUNT,
            "if mode not in ('forward', 'reverse'):",
            "    raise ValueError(mode)",
            "one = HIDDEN * n_in + n_out * HIDDEN",
            "return one * (n_in if mode == 'forward' else n_out)",
        ),
    ),
    Mutant(
        "count_mults",
        "float",
        function(
            COUNT,
            "if mode not in ('forward', 'reverse'):",
            "    raise ValueError(mode)",
            "one = (HIDDEN * n_in + HIDDEN + n_out * HIDDEN) / 1",
            "return one * (n_in if mode == 'forward' else n_out)",
        ),
    ),
    Mutant("count_mults", "product", function(COUNT, "return HIDDEN * n_in * n_out")),
    Mutant(
        "count_mults",
        "did_not_raise",
        function(
            COUNT,
            "one = HIDDEN * n_in + HIDDEN + n_out * HIDDEN",
            "return one * (n_in if mode == 'forward' else n_out)",
        ),
    ),
    Mutant(
        "count_mults",
        "wrong_error",
        function(
            COUNT,
            "one = HIDDEN * n_in + HIDDEN + n_out * HIDDEN",
            "return one * {'forward': n_in, 'reverse': n_out}[mode]",
        ),
    ),
    Mutant("pipeline_gradient", "not_it", 'BUG = ("node", 3)'),
    Mutant("pipeline_gradient", "not_it", 'BUG = ("node", 4)'),
    Mutant("pipeline_gradient", "form", 'BUG = ("op", "softplus")'),
    Mutant("pipeline_gradient", "form", 'BUG = ("node", 5)'),
    Mutant("pipeline_gradient", "named", 'BUG = ("node", "softplus")'),
    Mutant(
        "pipeline_gradient",
        "value",
        "def softplus_backward(dy, x):\n    return 1 / (1 + np.exp(-x))\n\n\n"
        'RULES["softplus"] = softplus_backward',
    ),
    Mutant(
        "pipeline_gradient",
        "value",
        "def softplus_backward(dy, x):\n    return dy / (1 + np.exp(x))\n\n\n"
        'RULES["softplus"] = softplus_backward',
    ),
    Mutant(
        "pipeline_gradient",
        "dropped_upstream",
        "def softplus_backward(dy, x):\n    return 1 / (1 + np.exp(-x))\n\n\n"
        'RULES["softplus"] = lambda dy, x: dy / (1 + np.exp(-x))',
    ),
]
