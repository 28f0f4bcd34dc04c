"""What the exercises of lesson 07 share: asking the driver, and the checks of any Function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from minigrad.grader.gradients import check_gradients
from minigrad.grader.message import show
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
    "the truth of an array": (
        "truth",
        "if, and, or and -1 <= x <= 1 want one answer for all. What compares entry by entry?",
    ),
    "was written": ("written", "A saved value was written to before backward used it."),
}
LOST = ("saved_intermediate", "left_graph", "no_graph")


def ask(t: Tester, name: str, *arguments: Any, given: str, without_graph: str = "") -> Any:
    """Drive, and fail with the engine's own words where it refused what the learner's code did.

    Args:
        t: the check's tester.
        name: of the driver's function.
        arguments: plain data for it.
        given: what the message's first part says.
        without_graph: the Try line where something without a graph was differentiated.
    """
    got = t.drive(name, *arguments, given=given)
    if isinstance(got, dict) and "raised" in got:
        _refused(t, got, without_graph or NO_GRAPH)
    return got


def _refused(t: Tester, got: dict, without_graph: str) -> NoReturn:
    kind, text, why, fix, line = (got.get(k) for k in ("raised", "text", "got", "fix", "line"))
    key = {"ShapeError": "shape", "DTypeError": "dtype"}.get(str(kind), "engine")
    attempt = str(fix) or "Compare it with what the docstring asks for."
    says = {**ENGINE_SAYS, "Variable requires no gradient": ("no_graph", without_graph)}
    for words, meant in says.items():
        if words in str(text):
            key, attempt = meant
    where = t.runner.line_of(t.exercise.name)
    if isinstance(line, list) and len(line) == 2:
        where = f"{where.partition(':')[0]}:{line[0]}\n  {line[1]}"
    said = f"{kind}: {text}" + (f"; got {why}" if why else "")
    expected = "a gradient that can be differentiated itself" if key in LOST else t.exercise.returns
    t.fail(key, expected, said, attempt, where=where)


def entries(t: Tester, got: Any, *names: str) -> tuple:
    """Return these entries of what the driver gave: as untrusted as any answer."""
    if not isinstance(got, dict) or any(name not in got for name in names):
        t.fail("type", t.exercise.returns, show(got), "Compare it with what the docstring says.")
    return tuple(got[name] for name in names)


def finite(t: Tester, what: str, got: Any, expected: np.ndarray) -> None:
    """Fail where inf or nan came back for finite numbers."""
    if isinstance(got, np.ndarray) and got.dtype.kind == "f" and not np.isfinite(got).all():
        t.fail(
            "not_finite",
            f"{what} = {show(expected)}",
            f"{what} = {show(got)}",
            "exp(1000) is inf, and inf / inf and inf * 0 are nan. Where does the formula of this "
            "part raise e to a large power?",
        )


def call_text(name: str, x: np.ndarray, numbers: Sequence[int] = ()) -> str:
    """Return `Name.apply(x)` with x shown, and the numbers."""
    return f"{name}.apply({', '.join([spelled(x), *map(str, numbers)])})"


def spelled(x: np.ndarray) -> str:
    """Return an array as a learner would type it, short ones in full."""
    if np.ndim(x) == 0:
        return f"{float(x):.4g}"
    if x.size <= 12:
        return (
            str([[float(f"{e:.4g}") for e in r] for r in x]) if x.ndim == 2 else show(x, bare=True)
        )
    return show(x)


def check_first(
    t: Tester,
    x: np.ndarray,
    dy: np.ndarray,
    forward: Callable,
    *,
    numbers: Sequence[int] = (),
    values: Sequence[Mistake] = (),
    gradients: Sequence[tuple[str, Any, str]] = (),
    slope: Callable | None = None,
    attempt: str = BY_DIFFERENCES,
) -> None:
    """Check output and gradient of one call.

    Args:
        t: the check's tester.
        x, dy: input and upstream gradient.
        forward: the function in NumPy.
        numbers: further arguments of apply.
        values, gradients: wrong outputs and wrong gradients that people really get.
        slope: (x, dy) -> the gradient, where differences of forward are too coarse.
        attempt: the Try line of a wrong gradient that nobody foresaw.
    """
    name = t.exercise.name
    given = f"{call_text(name, x, numbers)}, then backward with dy = {spelled(dy)}"
    y, dx, after = entries(
        t, ask(t, "first", name, x, list(numbers), dy, given=given), "y", "dx", "x"
    )
    if not isinstance(after, np.ndarray) or not np.array_equal(after, x):
        t.fail(
            "changed_input",
            "x as it was before the call",
            f"x = {show(after)}",
            "Which operation of forward writes in place (names that end in _, or +=)?",
        )
    if isinstance(y, np.ndarray) and y.dtype != x.dtype:
        t.fail(
            "dtype",
            f"y of x's dtype, {x.dtype}",
            f"y = {show(y)}",
            "Python numbers alone make float32, comparisons make bools. mg.ones_like(x) has x's "
            "dtype.",
        )
    finite(t, "y", y, forward(x))
    t.close(
        y,
        forward(x),
        what="y",
        mistakes=values,
        attempt="Compute one entry by hand: which step differs?",
    )
    if dx is None:
        order = "Does backward return what it computed, in the order of forward's arguments?"
        t.fail("no_gradient", "dx, an array", "None", order)
    if slope is not None:
        finite(t, "dx", dx, slope(x, dy))
        t.close(
            dx,
            slope(x, dy),
            what="dx",
            mistakes=[Mistake(*one) for one in gradients],
            attempt=attempt,
        )
        return
    check_gradients(
        t,
        (dx,),
        forward,
        (x,),
        dy,
        names=("dx",),
        attempt=attempt,
        mistakes=[(key, (value,), say) for key, value, say in gradients],
    )


def check_second(
    t: Tester,
    x: np.ndarray,
    dy: np.ndarray,
    v: np.ndarray,
    by_x: np.ndarray,
    by_dy: np.ndarray,
    *,
    numbers: Sequence[int] = (),
    mistakes: Sequence[Mistake] = (),
) -> None:
    """Check the derivatives of sum(dx * v) by x and by dy."""
    name = t.exercise.name
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
    dy: np.ndarray,
    slope: Callable,
    numbers: Sequence[int] = (),
) -> None:
    """Check that two calls do not share what they keep."""
    name = t.exercise.name
    given = (
        f"y1 = {call_text(name, x1, numbers)}; y2 = {call_text(name, x2, numbers)}; "
        f"then backward from y1, then from y2, dy = {spelled(dy)}"
    )
    got = ask(t, "two_calls", name, x1, x2, list(numbers), dy, given=given)
    for which, (dx, x) in enumerate(zip(t.pair(got, 2, "dx1, dx2"), (x1, x2), strict=True), 1):
        t.close(
            dx,
            slope(x, dy),
            what=f"dx{which}",
            mistakes=[
                Mistake(
                    "shared_state",
                    slope(x2 if which == 1 else x1, dy),
                    "That is the other call's gradient. Where is x kept: on ctx, or in a place "
                    "that both calls share?",
                )
            ],
            attempt="Where is x kept: on ctx, or in a place that both calls share?",
        )
