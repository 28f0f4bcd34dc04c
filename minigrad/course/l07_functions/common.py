"""What the exercises of lesson 07 share: asking the driver, and the checks of any Function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from minigrad.grader.compare import disagreements
from minigrad.grader.message import show
from minigrad.grader.samples import numbers as short_numbers
from minigrad.grader.samples import odd_input
from minigrad.grader.tester import Mistake, Tester

DROPPED = "It is right only where dy is 1. What happens to dy on its way back?"
BY_DIFFERENCES = "Change one entry of x a little: by how much does sum(dy * y) change?"
NO_GRAPH = (
    "dx no longer knows that it was computed from x. What in backward cuts it off: no_grad, "
    "detach, an array of NumPy, a value computed in forward?"
)
# What the engine says about a Function, the key of that mistake, and what to try.
ENGINE_SAYS = {
    "gradients, one": ("count", "One gradient for each argument of forward after ctx."),
    "gradient, one": ("count", "One gradient for each argument of forward after ctx."),
    "saved intermediate": (
        "saved_intermediate",
        "It was computed unrecorded in forward: its own slope is lost. Save what it is made of.",
    ),
    "left the graph": (
        "left_graph",
        "NumPy arrays and numbers carry no graph. Compute backward with operations of mg.",
    ),
    "nothing was recorded": (
        "not_required",
        "Nothing was recorded for x, because nobody asked. How does a leaf ask for a gradient?",
    ),
    ".backward: wanted shape": (
        "shape",
        "A gradient has its argument's shape. ctx.saved is a list: was its entry taken out?",
    ),
    ".backward: wanted a Variable": (
        "not_variable",
        "backward gets Variables and gives Variables. Which step made something else of them?",
    ),
    ".forward: wanted a Variable": (
        "not_variable",
        "forward gives a Variable. Does it end in return, and were all its steps made with mg?",
    ),
    "is no static method": (
        "not_static",
        "What stands above `def forward` and `def backward` in the stub?",
    ),
    "backward that may use ctx.": (
        "saved_intermediate",
        "What forward left there has no graph: its slope by x is lost. Compute it in backward.",
    ),
    "the truth of an array": (
        "truth",
        "if, and, or and -1 <= x <= 1 want one answer for all. What compares entry by entry?",
    ),
    "was written": ("written", "A saved value was written to before backward used it."),
}
NOT_SHARED = (
    "Where is what backward needs of its call: on ctx, or in a place that both calls share?"
)
NEAR: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-12}  # the rounding error of float64
LOST = ("saved_intermediate", "left_graph", "no_graph")


def ask(t: Tester, name: str, *arguments: Any, given: str, without_graph: str = "") -> Any:
    """Call the driver; fail with the engine's own words if it refused the learner's code.

    Args:
        t: the check's tester.
        name: the driver's function.
        arguments: plain data for it.
        given: what the message's first part says.
        without_graph: the Try line if something without a graph was differentiated.
    """
    got = t.drive(name, *arguments, given=given)
    if isinstance(got, dict) and "raised" in got:
        _refused(t, got, without_graph or NO_GRAPH, odd_input(arguments))
    return got


def _refused(t: Tester, got: dict, without_graph: str, odd: str) -> NoReturn:
    kind, text, why, fix, line = (got.get(k) for k in ("raised", "text", "got", "fix", "line"))
    key = {"ShapeError": "shape", "DTypeError": "dtype"}.get(str(kind), "engine")
    attempt = odd or str(fix) or "Look at Given: what does each part of this line get there?"
    says = {**ENGINE_SAYS, "Variable requires no gradient": ("no_graph", without_graph)}
    for words, meant in says.items():
        if words in str(text):
            key, attempt = meant
    where = t.runner.line_of(t.about)
    if isinstance(line, list) and len(line) == 2:
        where = f"{where.partition(':')[0]}:{line[0]}\n  {line[1]}"
    said = f"{kind}: {text}" + (f"; got {why}" if why else "")
    expected = "a gradient that can be differentiated itself" if key in LOST else t.exercise.returns
    t.fail(key, expected, said, attempt, where=where)


def entries(t: Tester, got: Any, *names: str) -> tuple:
    """Return these entries of the driver's result, as untrusted as any answer."""
    if not isinstance(got, dict) or any(name not in got for name in names):
        t.fail("type", t.exercise.returns, show(got), "Compare it with what the docstring says.")
    return tuple(got[name] for name in names)


def finite(t: Tester, what: str, got: Any, expected: np.ndarray) -> None:
    """Fail if the result has inf or nan for finite numbers."""
    if what == "y" and isinstance(got, np.ndarray) and np.isneginf(got).any():
        t.fail(
            "not_finite",
            f"{what} = {show(expected)}",
            f"{what} = {show(got)}",
            "log(0) is -inf: every e to the power here is 0. How large must the largest one be?",
        )
    if isinstance(got, np.ndarray) and got.dtype.kind == "f" and not np.isfinite(got).all():
        t.fail(
            "not_finite",
            f"{what} = {show(expected)}",
            f"{what} = {show(got)}",
            "exp(1000) is inf, and inf / inf and inf * 0 are nan. Where does the formula of this "
            "part raise e to a large power?",
        )


def call_text(name: str, x: np.ndarray, numbers: Sequence[float] = ()) -> str:
    """Return `Name.apply(x)` with x shown, and the numbers."""
    return f"{name}.apply({', '.join([spelled(x), *map(str, numbers)])})"


def spelled(x: np.ndarray) -> str:
    """Return an array as a learner would type it, in full if short."""
    if np.ndim(x) == 0:
        return f"{float(x):.4g}"
    if 0 < x.size <= 12:
        if x.ndim == 2:
            return str([[float(f"{e:.4g}") for e in r] for r in x])
        shown = {float(f"{e:.6g}") for e in x.flat}
        return show(x, 6 if len(shown) == len({*x.flat}) else 17, bare=True)
    return show(x)


def check_first(
    t: Tester,
    x: np.ndarray,
    dy: np.ndarray,
    y: np.ndarray,
    dx: np.ndarray,
    *,
    numbers: Sequence[int] = (),
    values: Sequence[Mistake] = (),
    gradients: Sequence[Mistake] = (),
    attempt: str = BY_DIFFERENCES,
) -> None:
    """Check the output and gradient of one call.

    Args:
        t: the check's tester.
        x, dy: input and upstream gradient.
        y, dx: the right output and the right gradient.
        numbers: further arguments of apply.
        values, gradients: common wrong outputs and wrong gradients.
        attempt: the Try line for any other wrong gradient.
    """
    name = t.exercise.name
    given = f"{call_text(name, x, numbers)}, then backward with dy = {spelled(dy)}"
    t.about = f"{name}.forward"
    got = ask(t, "first", name, x, list(numbers), dy, given=given)
    found_y, found_dx, after = entries(t, got, "y", "dx", "x")
    if not isinstance(after, np.ndarray) or not np.array_equal(after, x):
        t.fail(
            "changed_input",
            "x as it was before the call",
            f"x = {show(after)}",
            "Which operation of forward or backward writes in place (names that end in _, +=, -=)?",
        )
    if isinstance(found_y, np.ndarray) and found_y.dtype != x.dtype:
        t.fail(
            "dtype",
            f"y of x's dtype, {x.dtype}",
            f"y = {show(found_y)}",
            "Python numbers alone make float32, comparisons make bools. mg.ones_like(x) has x's "
            "dtype.",
        )
    finite(t, "y", found_y, y)
    say = "Compute the first wrong entry by hand: which step, or which case, differs?"
    wrong = x[disagreements(found_y, y, **NEAR)] if x.shape == y.shape else x
    if wrong.size and not wrong.any():
        say = "It is wrong at 0 or -0.0 alone, and these two are equal. What does your code ask?"
    t.close(found_y, y, what="y", mistakes=values, attempt=say, **NEAR)
    t.about = f"{name}.backward"
    if found_dx is None:
        order = "Does backward return what it computed, in the order of forward's arguments?"
        t.fail("no_gradient", "dx, an array", "None", order)
    finite(t, "dx", found_dx, dx)
    t.close(found_dx, dx, what="dx", mistakes=gradients, attempt=attempt, **NEAR)


def check_second(
    t: Tester,
    x: np.ndarray,
    dy: np.ndarray,
    v: np.ndarray,
    by_x: np.ndarray,
    by_dy: np.ndarray,
    *,
    numbers: Sequence[float] = (),
    mistakes: Sequence[Mistake] = (),
    name: str = "",
) -> None:
    """Check the derivatives of sum(dx * v) by x and by dy, for the Function `name` if given."""
    name = name or t.exercise.name
    t.about = f"{name}.backward"
    by_x, by_dy = by_x + 0.0, by_dy + 0.0  # no -0 in messages
    given = (
        f"{call_text(name, x, numbers)}, dy = {spelled(dy)}: its dx, and the gradient of "
        f"sum(dx * v) for v = {spelled(v)}"
    )
    got = ask(t, "second", name, x, list(numbers), dy, v, given=given)
    _, found_x, found_dy = entries(t, got, "dx", "by_x", "by_dy")
    if found_x is None:
        t.fail(
            "no_graph",
            f"by x: {show(by_x)}",
            "by x: nothing, which counts as 0: dx does not depend on x any more",
            NO_GRAPH,
        )
    finite(t, "by x", found_x, by_x)
    t.close(
        found_x,
        by_x,
        what="by x",
        mistakes=mistakes,
        attempt="backward is differentiated itself. Which of its parts depend on x, and which lost "
        "that?",
    )
    if found_dy is None:
        t.fail(
            "no_graph",
            f"by dy: {show(by_dy)}",
            "by dy: nothing: dx does not depend on dy any more",
            NO_GRAPH,
        )
    t.close(found_dy, by_dy, what="by dy", attempt="dx is linear in dy. What is its factor?")


def check_two_calls(
    t: Tester,
    x1: np.ndarray,
    x2: np.ndarray,
    slope: Callable,
    numbers: Sequence = ((), ()),
    name: str = "",
) -> None:
    """Check that two calls share nothing that they keep, whichever goes backward first.

    Args:
        t: the check's tester.
        x1, x2: the inputs.
        slope: (x, dy, *numbers) -> the gradient.
        numbers: further arguments of apply for each call.
        name: the Function, if not the exercise's.
    """
    name = name or t.exercise.name
    dy = short_numbers(t.random, (2,))
    shared = "That is the other call's gradient. Where is x kept, on ctx or where both find it?"
    first, second = (call_text(name, x, n) for x, n in zip((x1, x2), numbers, strict=True))
    for order in ((1, 2), (2, 1)):
        given = f"y1 = {first}; y2 = {second}; then backward from y{order[0]}, then from "
        given += f"y{order[1]}, dy = {spelled(dy)}"
        n1, n2 = numbers
        each = [[x1, list(n1)], [x2, list(n2)]]
        *gradients, before, later = t.pair(
            ask(t, "two_calls", name, each, dy, list(order), given=given), 4, "dx1, dx2, y1, y1"
        )
        if not np.array_equal(before, later, equal_nan=True):
            say = "Two calls, two results. Whose memory does forward hand out?"
            t.fail(
                "shared_result", "y1 as it was returned", "another y1 after the call for y2", say
            )
        mistake = Mistake("shared_state", slope(x2, dy, *n2), shared)
        for what, dx, x, n in zip(("dx1", "dx2"), gradients, (x1, x2), numbers, strict=True):
            t.close(dx, slope(x, dy, *n), what=what, mistakes=[mistake], attempt=NOT_SHARED)
