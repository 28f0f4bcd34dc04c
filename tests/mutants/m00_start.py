"""Wrong solutions of lesson 00 that people really write."""

from minigrad.course.mutants import Mutant

MUTANTS = [
    Mutant("hello", "order", 'def hello():\n    return "hello, gradeints"'),
    Mutant("hello", "capitals", 'def hello():\n    return "Hello, gradients"'),
    Mutant("hello", "printed", 'def hello():\n    print("hello, gradients")'),
    Mutant("hello", "none", 'def hello():\n    "hello, gradients"'),
    Mutant("hello", "spaces", 'def hello():\n    return "hello, gradients\\n"'),
    Mutant("hello", "punctuation", 'def hello():\n    return "hello gradients"'),
    Mutant("hello", "type", 'def hello():\n    return ["hello, gradients"]'),
    Mutant("hello", "value", 'def hello():\n    return "hello, world"'),
    Mutant("slope", "not_wrong", 'BUG = ("x", 3.0)'),
    Mutant("slope", "form", "BUG = 1e10"),
    Mutant("slope", "form", 'BUG = ("x", "1e9")'),
    Mutant("slope", "extreme", 'BUG = ("x", 1e300)'),
    Mutant(
        "slope",
        "step_too_small",
        """
def slope(f, x):
    eps = 1e-3
    return (f(x + eps) - f(x - eps)) / (2 * eps)
""",
    ),
    Mutant(
        "slope",
        "raised",
        """
def slope(f, x):
    eps = 6e-6 * (1 + x)
    return (f(x + eps) - f(x - eps)) / (2 * eps)
""",
    ),
    Mutant(
        "slope",
        "step_of_sign",
        """
def slope(f, x):
    eps = max(1e-6, x * 1e-6)
    return (f(x + eps) - f(x - eps)) / (2 * eps)
""",
    ),
    Mutant("slope", "f_not_called", "def slope(f, x):\n    return 2 * x"),
    Mutant(
        "slope",
        "step_too_large",
        """
def slope(f, x):
    eps = 10.0 * max(1.0, abs(x)) ** 0.5
    return (f(x + eps) - f(x - eps)) / (2 * eps)
""",
    ),
    Mutant(
        "slope",
        "raised",
        """
def slope(f, x):
    eps = 1e-5 * abs(x)
    return (f(x + eps) - f(x - eps)) / (2 * eps)
""",
    ),
    Mutant(
        "slope",
        "step_too_small",
        """
def slope(f, x):
    eps = 2.2e-16 * max(1.0, abs(x))
    return (f(x + eps) - f(x - eps)) / (2 * eps)
""",
    ),
]
