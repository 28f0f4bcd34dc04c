"""A step with a gradient that is made up, and says so."""

from __future__ import annotations

import numpy as np

from minigrad.course.l07_functions import lesson
from minigrad.course.l07_functions.common import (
    DROPPED,
    ask,
    check_first,
    check_two_calls,
    entries,
    spelled,
)
from minigrad.grader.message import show
from minigrad.grader.samples import SHAPES
from minigrad.grader.tester import Mistake, Tester

straight_through = lesson.exercise(
    "StraightThrough",
    difficulty=2,
    minutes=10,
    returns="a Function: y from forward, one gradient from backward",
    needs="engine",
    hints=(
        "mg.sign(0) is 0, which is neither of the two values wanted. Which operation chooses "
        "between two values by a condition?",
        "mg.where(condition, a, b) takes a where the condition holds and b elsewhere: once in "
        "forward, for the sign, and once in backward, for what passes.",
        "forward: save x and return mg.where(x >= 0, mg.ones_like(x), -mg.ones_like(x)). "
        "backward: mg.where(mg.abs(x) <= 1, dy, mg.zeros_like(dy)). And pseudo_gradient = True.",
    ),
)


def step(x: np.ndarray) -> np.ndarray:
    """Return +1 where x >= 0, -1 elsewhere."""
    return np.where(x >= 0, 1.0, -1.0)


def slope(x: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """Return the made-up gradient."""
    return dy * (np.abs(x) <= 1) + 0.0


def random_x(t: Tester, n: int) -> np.ndarray:
    """Return entries of both signs, within and beyond -1 to 1, in random order."""
    inside, beyond = t.random.uniform(0.1, 0.9, n), t.random.uniform(1.1, 3, n)
    signs = np.concatenate([np.resize([1, -1], n), np.resize([-1, 1], n)])
    return np.round(t.random.permutation(signs * np.concatenate([inside, beyond])), 2)


def check(t: Tester, x: np.ndarray) -> None:
    """Check value and gradient at x."""
    dy = np.round(t.random.choice([-1, 1], x.shape) * t.random.uniform(0.3, 2, x.shape), 2)
    inside = np.abs(x) <= 1
    made_up = "Made up or not, it is dy that passes. What does your function hand on?"
    check_first(
        t,
        x,
        dy,
        step(x),
        slope(x, dy),
        values=[
            Mistake("sign_of_zero", np.sign(x), "There is a 0 among the x, and x >= 0 holds."),
            Mistake("zero_one", (x >= 0) * 1.0, "The lower of the two values is -1."),
            Mistake("strict", np.where(x > 0, 1.0, -1.0), "Which value belongs to x = 0?"),
        ],
        gradients=[
            Mistake(
                "true_slope",
                np.zeros_like(x),
                "This is the slope that the step really has, and nothing would be learned. The "
                "docstring asks for another.",
            ),
            Mistake(
                "no_window", dy, "It passes everywhere. What about entries of x beyond -1 and 1?"
            ),
            Mistake("edge", dy * (np.abs(x) < 1), "At x = -1 and x = 1, dy still passes."),
            Mistake("turned", dy * ~inside, "Where does dy pass: near 0, or far from it?"),
            Mistake("dropped_upstream", inside * 1.0, f"{DROPPED} {made_up}"),
            Mistake(
                "one_side", dy * (x <= 1), "Does it stop dy on both sides: far above 0, far below?"
            ),
            Mistake(
                "one_side", dy * (x >= -1), "Does it stop dy on both sides: far above 0, far below?"
            ),
            Mistake("output", dy * step(x), "The sign of y is no slope. Let dy pass as it is."),
            Mistake(
                "clipped", np.clip(dy, -1, 1), "It is dy that was cut. The window is one for x."
            ),
            Mistake("clipped", slope(dy, dy), "It is dy that was cut. The window is one for x."),
        ],
        attempt="Take one entry: is its x inside -1 <= x <= 1? So what passes, by the docstring?",
    )


@straight_through.check(points=2)
def step_and_gradient(t: Tester) -> None:
    """The step is right for any shape, and dy passes where -1 <= x <= 1."""
    check(t, random_x(t, 2))
    for shape in SHAPES:
        check(t, np.resize(random_x(t, 3), shape))
    for x in (0.5, 1.5, -1.5):
        check(t, np.array(x))
    check_two_calls(t, np.array([0.5, 1.5]), np.array([-2.0, -0.2]), slope)


@straight_through.check(points=1)
def at_the_edges(t: Tester) -> None:
    """It is right at x = 0, where the step jumps, and at x = -1 and x = 1."""
    check(t, np.array([0.0, 0.5]))
    check(t, np.array([1.0, -0.5]))
    check(t, np.array([0.5, -1.0]))
    check(t, np.array([-0.001, 1.001, -1.001, -0.0]))
    check(t, np.array([-1e-300, 0.0, 1.0, np.nextafter(1, 2), -1.0, np.nextafter(-1, -2)]))
    check(t, t.random.permutation([0.0, 1.0, -1.0, 1.5, -1.5]))


@straight_through.check(points=2, only_with=("step_and_gradient",))
def declared(t: Tester) -> None:
    """pseudo_gradient says that gradcheck will fail, and gradcheck does fail."""
    x = random_x(t, 2)
    given = "StraightThrough.pseudo_gradient before any call, and then mg.debug.gradcheck at x = "
    got = ask(t, "declaration", "StraightThrough", x, given=given + spelled(x))
    said, passes, later = entries(t, got, "pseudo_gradient", "gradcheck", "later")
    if passes is not False:
        t.fail(
            "passes",
            "gradcheck fails: the gradient is not that of the step",
            "gradcheck passes",
            "The true slope of the step is 0. Which slope does the docstring ask for?",
        )
    if later is True is not said:
        t.fail(
            "not_yet",
            "True, before any call",
            f"pseudo_gradient = {show(said)}, and True after the first call",
            "A test asks the class before it calls it. Where do you set it?",
        )
    if said is not True:
        t.fail(
            "not_declared",
            "True, as gradcheck fails here on purpose",
            f"pseudo_gradient = {show(said)}",
            "Is the gradient of this class the true one, or a made-up one? Let the class say so.",
        )
