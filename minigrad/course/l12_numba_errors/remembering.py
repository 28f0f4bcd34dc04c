"""A global that compiled code has read long ago."""

from __future__ import annotations

import numpy as np

from minigrad.course.l12_numba_errors import lesson
from minigrad.course.l12_numba_errors.common import DIGITS, ODD, numbers
from minigrad.grader.compare import agree
from minigrad.grader.message import show
from minigrad.grader.tester import Mistake, Tester

leaky = lesson.exercise(
    "leaky",
    difficulty=3,
    minutes=12,
    returns="an array with the leaky ReLU of each element",
    hints=(
        "When is a function compiled? Of what it uses, what is fixed then, and what may differ "
        "from call to call?",
        "A global, and a variable of the function around it, are compiled in. Arguments are not: "
        "only their types are.",
        "Below @njit, a function (x, slope, out) with the loop: out[i] = x[i] if x[i] > 0.0 else "
        "slope * x[i]. leaky makes out, calls it, and returns out.",
    ),
)
SLOPES = (0.01, 0.08, 0.15, 0.25, 0.4, 0.55, 0.7, 0.85)  # a check draws from these
STALE = "This is the result for another slope, {}. Where does compiled code have it from?"
LARGER = "max(x, slope * x) is the larger of two numbers. With a slope above 1, which one is that?"


def expected(x: np.ndarray, slope: float) -> np.ndarray:
    """Return the leaky ReLU."""
    return np.where(x > 0, x, slope * x)


def ask(t: Tester, slopes: list[float], *, n: int = 6, last: tuple[float, ...] = ()) -> dict:
    """Call leaky with one slope after the other; fail unless each result is right.

    `last` are the last numbers of x.
    """
    x = numbers(t, n)
    x[:3] = -1.5, 0.0, 0.5
    x[n - len(last) :] = last
    calls = ", then ".join(f"leaky(x, {slope})" for slope in slopes[:4])
    dots = ", …" if len(slopes) > 4 else ""
    seen = t.drive("series", "leaky", x, slopes, given=f"x = {show(x)}; {calls}{dots}")
    if seen["changed"] is not False:
        attempt = "The caller still needs it. Write into an array of your own."
        t.fail("changed_input", "x as it was", "x was written to", attempt)
    if seen["shared"] is not False:
        attempt = "Callers keep a result. Where is the array made that a later call returns?"
        t.fail("same_array", "a new array from each call", "one that has been used before", attempt)
    results = t.pair(seen["results"], len(slopes), "the results")
    for k, (got, slope) in enumerate(zip(results, slopes, strict=True)):
        mistakes = [
            Mistake("stale", expected(x, one), STALE.format(one)) for one in (*SLOPES, *slopes)
        ]
        mistakes += [
            Mistake("relu", np.maximum(x, 0), "And the negative elements?"),
            Mistake("maximum", np.maximum(x, slope * x), LARGER),
            Mistake("linear", slope * x, "Which elements are scaled, and which stay?"),
        ]
        right = expected(x, slope)
        attempt = ODD if last else "Which elements are scaled, and by what?"
        if agree(got, right):
            attempt = DIGITS
        t.close(
            got,
            right,
            attempt=attempt,
            mistakes=mistakes,
            what=f"call {k + 1}, leaky(x, {slope})",
            rtol=1e-10,
        )
    return seen


def slopes_for(t: Tester, n: int) -> list[float]:
    """Return different slopes."""
    return [float(one) for one in t.random.permutation(SLOPES)[:n]]


@leaky.check(points=3)
def each_slope(t: Tester) -> None:
    """Each call uses its own slope, whatever was called before."""
    first, second = slopes_for(t, 2)
    ask(t, [first])
    ask(t, [second, first, second])
    ask(t, [*slopes_for(t, 5), 0.0, 1.0, 2.5, -0.5], n=9)
    ask(t, slopes_for(t, 2), last=(np.nan, np.inf, -np.inf))


@leaky.check(points=3, only_with=("each_slope",))
def compiled_once(t: Tester) -> None:
    """Compiled code does the work, and another slope compiles nothing."""
    seen = ask(t, slopes_for(t, 8))
    if seen["later"] != 0:
        attempt = (
            "What does each call compile anew, and where would that happen only once? What differs "
            "from call to call comes as an argument."
        )
        got = f"{show(seen['later'])} compilations for 7 more slopes"
        t.fail("recompiled", "nothing compiled after the first call", got, attempt)
    if seen["compiles"] is not True:
        attempt = "The loop runs in a function below @njit, in this one or in one that it calls."
        expected = "leaky, or a function that it calls, compiled by Numba"
        t.fail("not_compiled", expected, "Python and NumPy alone, or object mode", attempt)
    if seen["loops"] is not False:
        attempt = "Python goes round the loop, and calls compiled code each time. Move the loop in."
        expected = "a loop over x in compiled code"
        t.fail("python_loop", expected, "a loop outside of it, element by element", attempt)
