"""The Hessian times a vector, without the Hessian."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.course.l07_functions import lesson
from minigrad.course.l07_functions.common import ask, entries, spelled
from minigrad.grader.compare import agree
from minigrad.grader.message import show
from minigrad.grader.samples import SHAPES, numbers
from minigrad.grader.tester import Mistake, Tester

hvp = lesson.exercise(
    "hvp",
    difficulty=4,
    minutes=20,
    returns="H @ v, a Variable of x's shape",
    needs="engine",
    answers=(
        "minigrad.hvp",
        "minigrad.jvp",
        "minigrad.hessian",
        "minigrad.jacobian",
        "minigrad.functional.hvp",
        "minigrad.functional.jvp",
        "minigrad.functional.hessian",
        "minigrad.functional.jacobian",
    ),
    hints=(
        "The gradient g is a function of x like any other. sum(g * v) is one number, so one more "
        "backward pass gives its derivative by every entry of x.",
        "Make a leaf of your own: x = x.detach(), then x.requires_grad = True. Take g with "
        "create_graph=True, and then the gradient of (g * v).sum().",
        "g = mg.gradients(f(x), x, create_graph=True). For a linear f, g may not depend on x: "
        "then g.requires_grad is False, or mg.gradients((g * v).sum(), x) gives None. Return "
        "zeros there.",
    ),
)
MAX_BACKWARD = 4
NO_SECOND_GRAPH = "g itself is differentiated here. What must mg.gradients be told when it makes g?"
CONSTANT = "f is linear: g is a constant and has no graph, or none that leads to x. So H is 0."
FORMULAS = {
    "cubes": "sum(c * x**3)",
    "one_row": "[sum(c * x**3)], of shape (1,)",
    "quadratic": "x @ A @ x / 2",
    "sine": "sin(sum(c * x))",
    "linear": "sum(c * x)",
    "network": "sum(c * tanh(W @ x)**2)",
}


def case(t: Tester, kind: str, *shape: int) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Return the weights of f, x and v, rounded as messages show them."""
    x, v = (numbers(t.random, shape, low=-1, high=1) for _ in "xv")
    n = x.size
    shapes: dict[str, list[Any]] = {"quadratic": [(n, n)], "network": [(4, n), (4,)]}
    weights = [numbers(t.random, s, low=0.4, high=1.6) for s in shapes.get(kind, [shape])]
    return weights, x, v


def describe(kind: str, weights: list[np.ndarray], x: np.ndarray, v: np.ndarray) -> str:
    """Return the text after Given."""
    letters = {"quadratic": "A", "network": "Wc"}.get(kind, "c")
    which = ", ".join(f"{name} = {spelled(w)}" for name, w in zip(letters, weights, strict=True))
    return f"hvp(f, x, v), f(x) = {FORMULAS[kind]}, {which}, x = {spelled(x)}, v = {spelled(v)}"


def slope(kind: str, weights: list[np.ndarray], x: np.ndarray) -> np.ndarray:
    """Return the gradient of f."""
    w = weights[0]
    if kind in ("cubes", "one_row"):
        return 3 * w * x**2
    if kind == "quadratic":
        return (w + w.T) @ x / 2
    if kind == "sine":
        return np.cos(np.sum(w * x)) * w
    if kind == "network":
        inner = np.tanh(w @ x)
        return w.T @ (2 * weights[1] * inner * (1 - inner**2))
    return w


def hessian(kind: str, weights: list[np.ndarray], x: np.ndarray) -> np.ndarray:
    """Return the Hessian of f by x.ravel(), for the network by differences of its gradient."""
    w = weights[0]
    if kind in ("cubes", "one_row"):
        return np.diag((6 * w * x).ravel())
    if kind == "quadratic":
        return (w + w.T) / 2
    if kind == "sine":
        return -np.sin(np.sum(w * x)) * np.outer(w, w)
    if kind == "network":
        nudges = 1e-5 * np.eye(x.size)
        columns = [slope(kind, weights, x + n) - slope(kind, weights, x - n) for n in nudges]
        return np.stack(columns, axis=1) / 2e-5
    return np.zeros((x.size, x.size))


def ask_hvp(t: Tester, kind: str, weights: list, x: np.ndarray, v: np.ndarray, **options) -> tuple:
    """Call hvp; return its result, and what it did."""
    requires_grad = options.get("requires_grad", False)
    given = options.get("given") or describe(kind, weights, x, v)
    if requires_grad:
        given += "; x requires gradients and has a .grad already"
    if is_x := v is x:
        given += ", the same Variable as x"
    got = ask(
        t, "product", kind, weights, x, None if is_x else v, requires_grad, given=given,
        without_graph=CONSTANT if kind == "linear" else NO_SECOND_GRAPH,
    )  # fmt: skip
    observed = entries(t, got, "found", "counts", "seen", "x", "grad", "requires_grad")
    if observed[0] is not None and got.get("type") != "Variable":
        t.fail(
            "not_variable",
            "H @ v, a Variable",
            f"{show(observed[0])}, of type {str(got.get('type'))[:40]}",
            "What mg.gradients gives is a Variable already. Which step makes something else of it?",
        )
    return observed


def product(kind: str, weights: list[np.ndarray], x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return H @ v in x's shape."""
    return (hessian(kind, weights, x) @ v.ravel()).reshape(x.shape)


def check_value(t: Tester, kind: str, *shape: int, along: float | None = None) -> None:
    """Check one product; `along`: the value of all entries of v."""
    weights, x, v = case(t, kind, *shape)
    v = v if along is None else np.full_like(v, along)
    hv = ask_hvp(t, kind, weights, x, v)[0]
    g, rows = slope(kind, weights, x), product(kind, weights, x, np.ones_like(x))
    diagonal = np.diag(hessian(kind, weights, x)).reshape(x.shape)
    t.close(
        hv,
        product(kind, weights, x, v),
        what="H @ v",
        rtol=1e-6,
        mistakes=[
            Mistake("gradient", g, "This is the gradient g. Asked for is how g changes along v."),
            Mistake("gradient_times_v", g * v, "This is g * v, one step before the end."),
            Mistake("slope_along_v", np.sum(g * v), "This is sum(g * v). Now differentiate it."),
            Mistake(
                "without_v",
                rows,
                "This is right for v = 1 everywhere. Where does v come in: before the second "
                "backward pass, or not at all?",
            ),
            Mistake(
                "late_v",
                rows * v,
                "v was multiplied after the second pass. It weighs g before it.",
            ),
            Mistake("diagonal", diagonal * v, "Only the diagonal of H was used."),
            Mistake("no_second", 0 * v, "The second pass found no graph behind g."),
        ],
        attempt="Which number is differentiated in the second backward pass, and by what?",
    )


@hvp.check(points=2)
def small_cases(t: Tester) -> None:
    """It is right where H can be written down, for x of any shape and f of one element."""
    check_value(t, "quadratic", 2)
    check_value(t, "sine", 3)
    for shape in SHAPES:
        check_value(t, "cubes", *shape)
    check_value(t, "sine", 2, 2)
    check_value(t, "one_row", 2)
    check_value(t, "quadratic", 2, along=0.0)


@hvp.check(points=2)
def symmetric(t: Tester) -> None:
    """For a small network, u @ (H v) equals v @ (H u), and both agree with differences."""
    weights, x, v = case(t, "network", 5)
    u = np.round(t.random.uniform(-1, 1, 5), 1)
    products = [ask_hvp(t, "network", weights, x, one)[0] for one in (v, u)]
    if all(isinstance(one, np.ndarray) and one.shape == x.shape for one in products):
        left, right = float(u @ products[0]), float(v @ products[1])
        if not agree(right, left, rtol=1e-8, atol=1e-8):
            t.fail(
                "asymmetric",
                "u @ hvp(f, x, v) equal to v @ hvp(f, x, u)",
                f"{left:.6g} and {right:.6g}",
                "H[i, j] is H[j, i]. Which step treats v unlike u, or keeps something of the "
                "first call?",
            )
    for one, along in zip(products, (v, u), strict=True):
        t.close(
            one,
            hessian("network", weights, x) @ along,
            rtol=1e-5,
            atol=1e-7,
            what="H @ v",
            attempt="Differentiate sum(g * v) by x: through every way in which g depends on x.",
        )


@hvp.check(points=1)
def linear(t: Tester) -> None:
    """It gives zeros for a linear f, whose gradient does not depend on x."""
    for shape in ((2,), (2, 2), ()):
        weights, x, v = case(t, "linear", *shape)
        hv = ask_hvp(t, "linear", weights, x, v)[0]
        if hv is None:
            t.fail("none", f"H @ v = {show(0 * x)}", "None", CONSTANT)
        t.close(hv, 0 * x, what="H @ v", attempt=CONSTANT)


@hvp.check(points=2)
def exact_and_cheap(t: Tester) -> None:
    """f is called once, at x, and goes backward twice, however large x is."""
    n = int(t.random.integers(12, 20))
    weights, x, v = case(t, "cubes", n)
    given = f"hvp(f, x, v) for f(x) = sum(c * x**3) of {n} entries"
    hv, counts, seen, *_ = ask_hvp(t, "cubes", weights, x, v, given=given)
    forward, backward = entries(t, counts, "forward", "backward")
    if elsewhere := [at for at in seen if not np.array_equal(at, x)]:
        away = np.abs(elsewhere[-1] - x).max() if np.shape(elsewhere[-1]) == x.shape else np.nan
        t.fail(
            "differences",
            "f called at x and nowhere else",
            f"f called {show(away, 2)} away from x",
            "Differences of gradients are rounded. The second backward pass is exact.",
        )
    if not isinstance(backward, int) or backward > MAX_BACKWARD:
        t.fail(
            "cost",
            f"2 backward passes through f, for any n (here n = {n})",
            f"{show(backward)} backward passes",
            "A pass for each entry builds all of H. Which single number, differentiated once, "
            "gives H @ v?",
        )
    if forward != 1:
        t.fail(
            "calls",
            "f called once",
            f"f called {show(forward)} times",
            "The graph of the first call serves both passes.",
        )
    right = product("cubes", weights, x, v)
    t.close(hv, right, what="H @ v", attempt="Cheap it is. Is it right for many entries, too?")


@hvp.check(points=1)
def leaves_no_trace(t: Tester) -> None:
    """x, its .grad and its .requires_grad are as before, and so are the .grad of f's weights."""
    say = "Work on a leaf of your own, x.detach(), and let the caller's x be."
    for requires_grad in (False, True):
        weights, x, v = case(t, "cubes", 2)
        hv, _, _, after, grad, flag = ask_hvp(
            t, "cubes", weights, x, v, requires_grad=requires_grad
        )
        if flag is not requires_grad:
            t.fail("flag", f"x.requires_grad = {requires_grad}", f"it is {show(flag)} now", say)
        before = np.full(2, 2.0) if requires_grad else None
        if show(grad) != show(before):
            t.fail(
                "wrote_grad", f"x.grad = {show(before)}, as before", f"x.grad = {show(grad)}", say
            )
        t.close(after, x, what="x", attempt=say)
        right = product("cubes", weights, x, v)
        t.close(hv, right, what="H @ v", attempt="Is it right where x requires gradients, too?")
    weights, x, _ = case(t, "quadratic", 2)
    hv, right = ask_hvp(t, "quadratic", weights, x, x)[0], product("quadratic", weights, x, x)
    t.close(hv, right, what="H @ v", attempt=f"v requires no gradient. Does yours? {say}")
    for kind in ("linear", "cubes"):
        weights, x, v = case(t, kind, 2)
        given = f"{describe(kind, weights, x, v)}; c requires gradients and has a .grad already"
        got = ask(t, "product_beside_weights", kind, weights[0], x, v, given=given,
                  without_graph=CONSTANT if kind == "linear" else NO_SECOND_GRAPH)  # fmt: skip
        hv, before, after = entries(t, got, "found", "before", "after")
        if hv is None:
            t.fail("none", f"H @ v = {show(product(kind, weights, x, v))}", "None", CONSTANT)
        t.close(hv, product(kind, weights, x, v), what="H @ v", attempt=CONSTANT)
        writes = "x.backward() writes into every leaf it reaches. mg.gradients writes nowhere."
        t.close(after, before, what="c.grad", attempt=writes)
