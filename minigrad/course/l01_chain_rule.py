"""Lesson 01: what is checked, for how many points, and the hints."""

from __future__ import annotations

import numpy as np

from minigrad.grader.formula import Formula
from minigrad.grader.gradients import check_gradients
from minigrad.grader.message import show
from minigrad.grader.spec import Lesson
from minigrad.grader.tester import Mistake, Tester

lesson = Lesson("01_chain_rule", "Local derivative times what arrives")

DROPPED = "It is right only where dy is 1. What happens to dy on its way through your function?"
BY_DIFFERENCES = "Change one entry of the input a little: by how much does sum(dy * y) change?"


def random_arrays(t: Tester, n: int, size: int = 4) -> list[np.ndarray]:
    """Return n arrays of a random shape, rounded as they are shown."""
    shape = (size,) if t.random.random() < 0.7 else (2, size // 2)
    return [np.round(t.random.uniform(-2, 2, shape), 2) for _ in range(n)]


# ---- mul_backward -----------------------------------------------------------------------------

mul_backward = lesson.exercise(
    "mul_backward",
    difficulty=1,
    minutes=5,
    returns="two arrays: da, db",
    hints=(
        "Hold b still and move a by a little: by how much does a * b move? "
        "That is the local derivative with respect to a.",
        "Each of the two gradients is dy times a local derivative, and each local derivative is "
        "one of the factors.",
        "da is dy times the other factor, b; db is dy times a. Return them in this order.",
    ),
)


def check_mul(t: Tester, dy: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """Ask mul_backward for its two gradients and check them."""
    got = t.call("mul_backward", dy, a, b)
    da, db = t.pair(got, 2, "da, db")
    order = "The gradient of a comes first. Which factor belongs to it?"
    check_gradients(
        t,
        (da, db),
        np.multiply,
        (a, b),
        dy,
        names=("da", "db"),
        attempt=BY_DIFFERENCES,
        mistakes=[
            ("dropped_upstream", (b, a), DROPPED),
            ("swapped", (dy * a, dy * b), order),
            ("swapped", (a, b), order),
            ("added", (dy, dy), "These are the gradients of a + b. And of a product?"),
            ("added", (dy + b, dy + a), "What arrives and the local derivative are multiplied."),
        ],
    )


@mul_backward.check(points=1)
def with_dy_of_one(t: Tester) -> None:
    """It is right where dy is 1 everywhere."""
    a, b = random_arrays(t, 2)
    check_mul(t, np.ones_like(a), a, b)


@mul_backward.check(points=2)
def with_any_dy(t: Tester) -> None:
    """It is right for a random dy."""
    for _ in range(3):
        check_mul(t, *random_arrays(t, 3))


# ---- tanh_backward ----------------------------------------------------------------------------

tanh_backward = lesson.exercise(
    "tanh_backward",
    difficulty=2,
    minutes=8,
    returns="one array: dx",
    hints=(
        "The derivative of tanh(x) can be written with tanh(x) alone, without x.",
        "d tanh(x) / dx = 1 - tanh(x) ** 2. You are given y, which is tanh(x) already.",
        "dx is dy times (1 - y * y).",
    ),
)


@tanh_backward.check(points=3)
def from_the_output(t: Tester) -> None:
    """It is right for random x, given only tanh(x)."""
    for _ in range(3):
        dy, x = random_arrays(t, 2)
        y = np.tanh(x)
        got = t.call("tanh_backward", dy, y)
        again = "y is tanh(x) already. What does your function do to it once more?"
        check_gradients(
            t,
            (got,),
            np.tanh,
            (x,),
            dy,
            names=("dx",),
            attempt=BY_DIFFERENCES,
            mistakes=[
                ("dropped_upstream", (1 - y * y,), DROPPED),
                ("twice", (dy * (1 - np.tanh(y) ** 2),), again),
                ("sigmoid", (dy * y * (1 - y),), "That is another function's rule: the sigmoid's."),
                ("no_square", (dy * (1 - y),), "Near x = 0 this is right. And far from 0?"),
                ("sign", (dy * (y * y - 1),), "tanh rises everywhere. And your slope?"),
                ("inverse", (dy / (1 - y * y),), "This is the slope of the inverse function."),
            ],
        )


# ---- pow_backward -----------------------------------------------------------------------------

pow_backward = lesson.exercise(
    "pow_backward",
    difficulty=2,
    minutes=10,
    returns="one array: dx",
    hints=(
        "x ** n has the derivative n * x ** (n - 1). Which x make trouble, and for which n?",
        "n = 0: the output is 1 whatever x is. What is the slope of a constant? "
        "And what does 0.0 ** -1 give?",
        "Treat n = 0 by itself, with zeros of dy's shape. Never divide by x.",
    ),
)


def check_pow(t: Tester, x: np.ndarray, n: int) -> None:
    """Ask pow_backward for its gradient and check it."""
    dy = np.round(t.random.uniform(-2, 2, x.shape), 2)
    got = t.call("pow_backward", dy, x, n)
    with np.errstate(all="ignore"):
        powered = x ** max(n - 1, 0)
        wrong = [
            ("dropped_upstream", (n * powered,), DROPPED),
            ("no_factor", (dy * powered,), "How does the slope of x ** 3 compare with x ** 2?"),
            ("no_decrease", (dy * n * x**n,), "The slope of x ** 2 is no parabola. What power?"),
            ("off_by_one", (dy * (n - 1) * powered,), "For n = 1 the slope is 1. And yours?"),
            (
                "absolute",
                (dy * n * np.abs(x) ** max(n - 1, 0),),
                "It is right where x > 0. Which step loses the sign of x?",
            ),
        ]
    check_gradients(
        t,
        (got,),
        lambda x: x**n,
        (x,),
        dy,
        names=("dx",),
        attempt=BY_DIFFERENCES,
        mistakes=wrong,
    )


@pow_backward.check(points=1)
def positive_x(t: Tester) -> None:
    """It is right for positive x and n from 2 to 5."""
    for n in t.random.permutation(np.arange(2, 6))[:3]:
        check_pow(t, np.round(t.random.uniform(0.2, 2, 4), 2), int(n))


@pow_backward.check(points=1)
def negative_x(t: Tester) -> None:
    """It is right for negative x."""
    for n in (2, 3, 4):
        check_pow(t, -np.round(t.random.uniform(0.2, 2, 4), 2), n)


@pow_backward.check(points=1)
def zero_and_constants(t: Tester) -> None:
    """It is right where x is 0, and for n = 1 and n = 0."""
    for n in (2, 1, 0, 3):
        x = np.round(t.random.uniform(-2, 2, 4), 2)
        x[t.random.integers(4)] = 0.0
        check_pow(t, x, n)


# ---- chain ------------------------------------------------------------------------------------

chain = lesson.exercise(
    "chain",
    difficulty=3,
    minutes=15,
    returns="a number: the derivative of the whole chain",
    hints=(
        "Take two functions and write the chain rule on paper. At which point is the second "
        "derivative taken? Not at x.",
        "Walk along the chain with two numbers in hand: the value that goes into the next "
        "function, and the product of the derivatives so far.",
        "For each f, df: first multiply the product by df(value), then let value = f(value). "
        "The order of these two lines matters.",
    ),
)
STAGES = [
    ("sin({a}*x)", "{a}*cos({a}*x)"),
    ("{a}*x + {b}", "{a} + 0*x"),
    ("{a}*tanh(x) + {b}", "{a}*(1 - tanh(x)**2)"),
    ("{b}*x**2 + x", "2*{b}*x + 1"),
    ("cos(x) + {a}*x", "-sin(x) + {a}"),
]


def random_chain(t: Tester, n: int) -> tuple[list[Formula], list[Formula], float]:
    """Return n functions, their derivatives and a start, such that all values stay moderate."""
    while True:
        fs, dfs = [], []
        for _ in range(n):
            f, df = STAGES[t.random.integers(len(STAGES))]
            numbers = {"a": t.random.uniform(0.6, 1.4), "b": t.random.uniform(0.1, 0.5)}
            fs.append(t.formula(f, **numbers))
            dfs.append(t.formula(df, **numbers))
        x = round(float(t.random.uniform(-1, 1)), 2)
        values = values_along(fs, x)
        derivative = chain_derivative(dfs, values)
        if max(map(abs, values)) < 20 and 1e-4 < abs(derivative) < 1e4:
            return fs, dfs, x


def values_along(fs: list[Formula], x: float) -> list[float]:
    """Return what goes into each function, and what comes out of the last."""
    values = [x]
    for f in fs:
        values.append(float(f.value(values[-1])))
    return values


def chain_derivative(dfs: list[Formula], values: list[float]) -> float:
    """Return the product of the derivatives, each at what goes into its function."""
    return float(np.prod([df.value(value) for df, value in zip(dfs, values, strict=False)]))


def wrong_chains(fs: list[Formula], dfs: list[Formula], x: float) -> list[Mistake]:
    """Return what people compute instead of the derivative of the chain."""
    values = values_along(fs, x)
    missing = "One stage is missing from the product: which end of the list?"
    slopes = [df.value(value) for df, value in zip(dfs, values, strict=False)]
    wrong = [
        ("value", values[-1], "This is the chain's value. Asked for is its slope."),
        (
            "all_at_x",
            chain_derivative(dfs, [x] * len(dfs)),
            "Every derivative was taken at x. What really goes into the second function?",
        ),
        (
            "after",
            chain_derivative(dfs, values[1:]),
            "Each derivative was taken at what comes out of its function. What went in?",
        ),
        (
            "backwards",
            chain_derivative(dfs[::-1], values_along(fs[::-1], x)),
            "The list was run from its end. x goes into fs[0].",
        ),
        (
            "sum",
            float(sum(slopes)),
            "Two stages that each double a change: is the whole change 2 + 2 or 2 * 2?",
        ),
        ("last_missing", chain_derivative(dfs[:-1], values), missing),
        ("first_missing", chain_derivative(dfs[1:], values[1:]), missing),
    ]
    return [Mistake(*one) for one in wrong]


def check_chain(t: Tester, n: int) -> None:
    """Ask for the derivative of a random chain of n functions."""
    while True:  # until every mistake gives a number of its own
        fs, dfs, x = random_chain(t, n)
        right = chain_derivative(dfs, values_along(fs, x))
        mistakes = wrong_chains(fs, dfs, x) if n > 1 else []
        answers = sorted([right, *(mistake.value for mistake in mistakes)])
        if np.min(np.diff(answers), initial=1.0) > 1e-4:
            break
    t.close(
        t.call("chain", fs, dfs, x),
        right,
        rtol=1e-6,
        atol=0,
        mistakes=mistakes,
        attempt="Follow a chain of two by hand: which derivative is taken at which value?",
    )


@chain.check(points=1)
def two_functions(t: Tester) -> None:
    """It is right for chains of two."""
    for _ in range(3):
        check_chain(t, 2)


@chain.check(points=2)
def any_length(t: Tester) -> None:
    """It is right for chains of 1 to 12 functions."""
    for n in (1, 12, *t.random.integers(3, 12, 3)):
        check_chain(t, int(n))


@chain.check(points=1)
def each_once(t: Tester) -> None:
    """It calls each function at most once."""
    n = 8
    fs, dfs, x = random_chain(t, n)
    t.call("chain", fs, dfs, x)
    calls = t.n_calls[:n]
    if sum(t.n_calls[n:]) == 0:
        t.fail(
            "no_derivatives",
            "calls of the functions in dfs",
            "no call of any of them",
            "The derivatives are given in dfs. How would you use them?",
        )
    if max(calls, default=0) > 1:
        t.fail(
            "cost",
            f"at most {n} calls of functions in fs, one each",
            f"{sum(calls)} calls, {max(calls)} of the same function",
            "Which value is computed again that you had in hand already?",
        )


# ---- count_mults ------------------------------------------------------------------------------

count_mults = lesson.exercise(
    "count_mults",
    difficulty=3,
    minutes=15,
    returns="a whole number of multiplications",
    hints=(
        "One pass goes through W1, tanh and W2, in either direction. What does one pass cost?",
        "HIDDEN * n_in for W1, HIDDEN for tanh, n_out * HIDDEN for W2. "
        "How many passes does each mode need?",
        "Forward: a pass for each input. Reverse: a pass for each output. "
        "Multiply, and raise ValueError for any other mode.",
    ),
)
HIDDEN = 16


class Counted:
    """Matrix-vector products that count their multiplications."""

    def __init__(self) -> None:
        self.n_mults = 0

    def matvec(self, matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
        """Return matrix @ vector, one counted multiplication at a time."""
        out = np.zeros(matrix.shape[0])
        for i in range(matrix.shape[0]):
            for j in range(matrix.shape[1]):
                out[i] += matrix[i, j] * vector[j]
                self.n_mults += 1
        return out

    def times(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return a * b, elementwise."""
        self.n_mults += a.size
        return a * b


def instrumented_run(n_in: int, n_out: int, mode: str) -> int:
    """Compute the Jacobian of the network in one mode; return the multiplications counted."""
    random = np.random.default_rng(0)
    w1, w2 = random.standard_normal((HIDDEN, n_in)), random.standard_normal((n_out, HIDDEN))
    slope = 1 - np.tanh(w1 @ random.standard_normal(n_in)) ** 2
    counted = Counted()
    if mode == "forward":
        for unit in np.eye(n_in):
            counted.matvec(w2, counted.times(slope, counted.matvec(w1, unit)))
    else:
        for unit in np.eye(n_out):
            counted.matvec(w1.T, counted.times(slope, counted.matvec(w2.T, unit)))
    return counted.n_mults


def check_count(t: Tester, mode: str) -> None:
    """Compare with an instrumented run for random sizes."""
    for _ in range(3):
        n_in, n_out = (int(n) for n in t.random.choice(np.arange(2, 13), 2, replace=False))
        right = instrumented_run(n_in, n_out, mode)
        passes, other = (n_in, n_out) if mode == "forward" else (n_out, n_in)
        one = right // passes
        got = t.call("count_mults", n_in, n_out, mode)
        swapped = "In this mode, does a pass give a column of the Jacobian, or a row?"
        t.close(
            got,
            right,
            rtol=0,
            atol=0,
            attempt="Count one pass on paper: W1, tanh, W2. Then: how many passes?",
            mistakes=[
                Mistake("swapped", other * one, swapped),
                Mistake("one_pass", one, "That is one pass. How many does the Jacobian need?"),
                Mistake(
                    "no_tanh",
                    passes * (one - HIDDEN),
                    "One stage of the network is not counted yet: the cheapest.",
                ),
                Mistake(
                    "product",
                    HIDDEN * n_in * n_out,
                    "That is W2 @ W1, two whole matrices. Here vectors go through, one by one.",
                ),
                Mistake(
                    "no_matrices",
                    passes * (n_in + HIDDEN + n_out),
                    "A matrix of m rows and n columns has how many entries to multiply?",
                ),
            ],
        )


@count_mults.check(points=1)
def forward(t: Tester) -> None:
    """It counts what forward mode costs, as an instrumented run does."""
    check_count(t, "forward")


@count_mults.check(points=1)
def reverse(t: Tester) -> None:
    """It counts what reverse mode costs, as an instrumented run does."""
    check_count(t, "reverse")


@count_mults.check(points=1)
def other_modes(t: Tester) -> None:
    """It raises ValueError for a mode that does not exist."""
    mode = str(t.random.choice(["sideways", "backward", "Forward"]))
    raised = t.raises("count_mults", 3, 2, mode)
    if "ValueError" not in raised["kinds"]:
        if "NotImplementedError" in raised["kinds"]:
            t.call("count_mults", 3, 2, mode)
        t.fail(
            "wrong_error",
            "a ValueError",
            f"{raised['type']}: {raised['text']}",
            "Which exception says that an argument has a value that makes no sense?",
        )


# ---- pipeline_gradient: the bug hunt ----------------------------------------------------------

pipeline_gradient = lesson.exercise(
    "pipeline_gradient",
    difficulty=3,
    minutes=15,
    returns="the gradient with respect to x",
    hints=(
        "All five pass with dy = 1, so ask each of them with dy = 1 and with dy = 2. "
        "A backward function is linear in dy: what must happen to its result?",
        "for op, rule in mine.RULES.items(): print(op, rule(1.0, 0.7), rule(2.0, 0.7))",
        "One of the five gives the same for dy = 1 and dy = 2: nothing that arrives from behind "
        "gets through it. Its local derivative is right; what is missing is the product.",
    ),
)
OPS = ("exp", "sqrt", "softplus", "square", "log")
CULPRIT = 2


def pipeline(x: np.ndarray) -> np.ndarray:
    """Return what the file's pipeline computes."""
    return np.log(np.log1p(np.exp(np.sqrt(np.exp(x)))) ** 2)


@pipeline_gradient.check(points=2)
def diagnosis(t: Tester) -> None:
    """BUG names the node that breaks the gradient."""
    bug = t.get("BUG")
    where = t.runner.line_of("BUG")
    well_formed = isinstance(bug, tuple | list) and len(bug) == 2 and bug[0] == "node"
    place = bug[1] if well_formed else None
    if isinstance(place, bool) or not isinstance(place, int) or not 0 <= place < len(OPS):
        untouched = well_formed and place is None
        t.fail(
            "untouched" if untouched else "form",
            '("node", 0), ("node", 1), … or ("node", 4)',
            show(bug),
            "Compare the gradient that leaves each node with differences of the forward pass.",
            where=where,
        )
    if place != CULPRIT:
        t.fail(
            "not_it",
            "the node whose function loses what arrives",
            f"node {place}, {OPS[place]}",
            f"Ask {OPS[place]}_backward with dy = 1 and dy = 2. Does its answer double?",
            where=where,
        )


def upstream_and_slope(op: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what the backward function of an op is given beside dy, and the local derivative."""
    if op == "exp":
        return np.exp(x), np.exp(x)
    if op == "sqrt":
        return np.sqrt(x), 0.5 / np.sqrt(x)
    if op == "softplus":
        return x, 1 / (1 + np.exp(-x))
    return (x, 2 * x) if op == "square" else (x, 1 / x)


@pipeline_gradient.check(points=3)
def repair(t: Tester) -> None:
    """The gradient of the whole is right, and so is each of the five."""
    for _ in range(3):
        x, dy = (np.round(t.random.uniform(-1, 1, 4), 2) for _ in range(2))
        got = t.call("pipeline_gradient", x, dy)
        slopes = "Which of the five is wrong in a chain, yet right alone with dy = 1?"
        check_gradients(t, (got,), pipeline, (x,), dy, names=("dx",), attempt=slopes)
    for op in OPS:
        x, dy = (np.round(t.random.uniform(0.5, 2, 3), 2) for _ in range(2))
        kept, slope = upstream_and_slope(op, x)
        got = t.call(f"{op}_backward", dy, kept)
        compensated = "The whole is right and this part is wrong: mend the part that was broken."
        t.close(
            got,
            dy * slope,
            attempt=compensated,
            mistakes=[Mistake("dropped_upstream", slope, DROPPED)],
            what="dx",
        )
