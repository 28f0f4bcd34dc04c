"""Wrong solutions of lesson 01 that people really write."""

from minigrad.course.mutants import Mutant


def function(head: str, *body: str) -> str:
    """Return the text of a function."""
    return "\n".join([f"def {head}:", *(f"    {line}" for line in body)])


COUNT = "count_mults(n_in, n_out, mode)"

MUTANTS = [
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
        "softplus_dropped_upstream",
        "def softplus_backward(dy, x):\n    return 1 / (1 + np.exp(-x))\n\n\n"
        'RULES["softplus"] = lambda dy, x: dy / (1 + np.exp(-x))',
    ),
]
