"""The formula of SGD, for one parameter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from minigrad.course.l08_optimizer_state import lesson
from minigrad.course.l08_optimizer_state.common import (
    close_to,
    is_same,
    listed,
    nothing_returned,
    numbers,
)
from minigrad.grader import samples
from minigrad.grader.message import show, show_both
from minigrad.grader.tester import Mistake, Tester

sgd_update = lesson.exercise(
    "sgd_update",
    difficulty=2,
    minutes=15,
    returns="None: the results are written into values and state",
    hints=(
        "Begin with momentum 0 and weight_decay 0: what is left of the three formulas is one line. "
        "`values = …` makes a new array that nobody else sees; `values -= …` writes into the old.",
        "With momentum, the new v is built from the old v and from d. Both arrays, values and "
        "state['momentum'], are written into: `array[...] = new` does that.",
        "v = gradient + weight_decay * values, a new array; if momentum is not 0, add momentum * "
        "state['momentum'] to it and copy it into state['momentum']; values -= learning_rate * v.",
    ),
)
Rule = Callable[..., tuple[np.ndarray, np.ndarray]]


def right(x, v, g, rate, momentum, decay):
    """Return the new values and the new v."""
    v = momentum * v + g + decay * x
    return x - rate * v, v


def _no_rate(x, v, g, rate, momentum, decay):
    v = momentum * v + g + decay * x
    return x - v, v


def _uphill(x, v, g, rate, momentum, decay):
    v = momentum * v + g + decay * x
    return x + rate * v, v


def _average(x, v, g, rate, momentum, decay):
    v = momentum * v + (1 - momentum) * (g + decay * x)
    return x - rate * v, v


def _old_velocity(x, v, g, rate, momentum, decay):
    return x - rate * v, momentum * v + g + decay * x


def _no_momentum(x, v, g, rate, momentum, decay):
    v = g + decay * x
    return x - rate * v, v


def _forgotten(x, v, g, rate, momentum, decay):
    return x - rate * (momentum * v + g + decay * x), v


def _nesterov(x, v, g, rate, momentum, decay):
    v = momentum * v + g + decay * x
    return x - rate * (momentum * v + g + decay * x), v


def _no_decay(x, v, g, rate, momentum, decay):
    v = momentum * v + g
    return x - rate * v, v


def _decoupled(x, v, g, rate, momentum, decay):
    v = momentum * v + g
    return x - rate * (v + decay * x), v


def _decay_after(x, v, g, rate, momentum, decay):
    v = momentum * v + g
    moved = x - rate * v
    return moved - rate * decay * moved, v


def _grows(x, v, g, rate, momentum, decay):
    v = momentum * v + g - decay * x
    return x - rate * v, v


def _absolute(x, v, g, rate, momentum, decay):
    v = momentum * v + g + decay
    return x - rate * v, v


WRONG: list[tuple[str, Rule, str]] = [
    ("no_rate", _no_rate, "The step is too long. Which number says how far to go?"),
    ("uphill", _uphill, "The gradient points uphill. Where do you want to go?"),
    ("average", _average, "Yours is an average, (1 - momentum) of it new. What does v add up?"),
    ("old_velocity", _old_velocity, "Which v moves the values, that of before or the new one?"),
    ("no_momentum", _no_momentum, "The second step is as long as if there had been no first."),
    ("forgotten", _forgotten, "v was computed. Where is it, when the next call looks for it?"),
    ("nesterov", _nesterov, "Momentum is in it twice: that is Nesterov's variant."),
    ("no_decay", _no_decay, "What has weight_decay done to the values?"),
    ("decoupled", _decoupled, "The decay passed v by. In the formula, v is built from d."),
    ("decoupled", _decay_after, "The decay passed v by. In the formula, v is built from d."),
    ("grows", _grows, "With decay, values shrink. Yours grow: look at the sign."),
    ("not_times_values", _absolute, "A value that is twice as large decays twice as fast."),
]
ZERO = "A gradient of zeros is a gradient: what do momentum and weight decay do then?"
REBOUND = (
    "`values = …` gives the name to a new array. The caller holds the old one: write into that."
)


def check_updates(
    t: Tester,
    x: np.ndarray,
    momentum: float,
    decay: float,
    n_calls: int = 1,
    *,
    flat: bool = False,
    rate: float | None = None,
    largest: float = 2.0,
    going: bool = False,
) -> dict:
    """Call sgd_update several times, check what each call leaves behind; return the last row.

    With `flat`, the last gradient is 0. With `going`, the momentum is not 0 before the first call.
    """
    rate = float(t.random.choice([0.15, 0.2, 0.5])) if rate is None else rate
    dtype = str(x.dtype)
    gradients = [
        samples.numbers(t.random, x.shape, dtype, low=-largest, high=largest)
        for _ in range(n_calls)
    ]
    gradients[-1][...] = 0 if flat else gradients[-1]
    hyperparameters = {
        "learning_rate": rate, "momentum": momentum, "nesterov": True, "weight_decay": decay,
    }  # fmt: skip
    v = numbers(t, *x.shape) if going else np.zeros_like(x)
    state = {"momentum": v.copy()} if momentum else {}
    given = f"sgd_update, {n_calls} calls in a row: " if n_calls > 1 else "sgd_update: "
    given += listed({"values": x}) + ", "
    given += ", then ".join(f"gradient = {show(g, bare=True)}" for g in gradients)
    kept = show(v, bare=True) if going else "zeros"
    given += f", state = {{'momentum': {kept}}}" if momentum else ", state = {}"
    given += f", learning_rate {rate}, momentum {momentum:g}, weight_decay {decay:g}"
    rows = t.drive("update", "SGD", x, gradients, state, hyperparameters, given=given)
    wrong = [(x, v)] * len(WRONG)
    for call, (row, gradient) in enumerate(zip(rows, gradients, strict=True), 1):
        when = f" after call {call}" if n_calls > 1 else ""
        before, arguments = x, (rate, momentum, decay)
        x, v = right(x, v, gradient, *arguments)
        wrong = [
            rule(*pair, gradient, *arguments)
            for (_, rule, _), pair in zip(WRONG, wrong, strict=True)
        ]
        if np.array_equal(row["values"], before) and not np.array_equal(x, before):
            returned = row["returned"]
            more = "" if returned is None else f", and {show(returned, bare=True)} was returned"
            t.fail(
                "not_in_place" if gradient.any() else "zero_skipped",
                f"values = {show(x, bare=True)}{when}",
                f"values = {show(before, bare=True)}, as before{more}",
                samples.attempt_for(before, row["values"], REBOUND) if gradient.any() else ZERO,
            )
        t.close(
            row["values"],
            x,
            **close_to(x),
            what=f"values{when}",
            attempt="Compute d, v and the new values for one entry by hand, in this order.",
            mistakes=[
                Mistake(key, pair[0], attempt)
                for (key, _, attempt), pair in zip(WRONG, wrong, strict=True)
            ],
        )
        if not np.array_equal(row["gradient"], gradient):
            wanted, actual = show_both(gradient, row["gradient"])
            t.fail(
                "changed_gradient",
                f"gradient = {wanted}, as it came",
                f"gradient = {actual}{when}",
                "Two names for one array: which line writes into the gradient?",
            )
        undecayed = wrong[[key for key, _, _ in WRONG].index("decoupled")][1]
        check_state(t, row, v, undecayed, rate, momentum, when)
    return rows[-1]


def check_state(
    t: Tester,
    row: dict,
    v: np.ndarray,
    undecayed: np.ndarray,
    rate: float,
    momentum: float,
    when: str,
) -> None:
    """Check the state after one call."""
    if not momentum:
        if row["state"]:
            t.fail(
                "state_grew",
                "state = {}, as it came",
                f"state with {', '.join(map(repr, row['state']))}",
                "With momentum 0 the next step needs nothing of this one. What do you keep?",
            )
        return
    if not row["in_place"]:
        t.fail(
            "state_rebound",
            "v written into the array that state['momentum'] was",
            f"another array in its place{when}",
            "state['momentum'] = … puts another array there; whoever holds the old one sees 0.",
        )
    t.close(
        row["state"].get("momentum"),
        v,
        **close_to(v),
        what=f"state['momentum']{when}",
        attempt="The values are right. What does the docstring say is kept in state?",
        mistakes=[
            Mistake("rate_inside", rate * v, "Is the learning rate a part of v in the formula?"),
            Mistake(
                "decoupled", undecayed, "The decay passed v by. In the formula, v is built from d."
            ),
            Mistake("not_kept", 0 * v, "v was computed. Where is it, when the next call needs it?"),
        ],
    )


@sgd_update.check(points=1)
def one_step(t: Tester) -> None:
    """Without momentum and decay, it walks against the gradient, for values of any shape."""
    for x in samples.arrays(t.random):
        nothing_returned(t, check_updates(t, x, 0.0, 0.0)["returned"])


@sgd_update.check(points=2)
def with_momentum(t: Tester) -> None:
    """With momentum, steps remember those before them, also where the gradient is 0."""
    for momentum in (0.5, 0.8):
        check_updates(t, numbers(t, 2), momentum, 0.0, 3)
        check_updates(t, numbers(t, 2), momentum, 0.0, 3, flat=True)
    for x in samples.arrays(t.random):
        check_updates(t, x, 0.5, 0.0, 2)
    check_updates(t, numbers(t, 2), 0.5, 0.0, 2, rate=0.0)  # a schedule may begin with rate 0
    check_updates(t, numbers(t, 2), 0.5, 0.0, 2, largest=300.0)
    for momentum in (-0.5, 1.25, 1e-4):
        check_updates(t, numbers(t, 2), momentum, 0.0, 2)


@sgd_update.check(points=1)
def with_decay(t: Tester) -> None:
    """Weight decay is added to the gradient, before momentum, also where the gradient is 0."""
    for x in (numbers(t, 2), numbers(t, 2, 3)):
        check_updates(t, x, 0.0, 0.5)
        check_updates(t, x, 0.0, 0.5, flat=True)
        check_updates(t, x, 0.5, 0.4, 2)
        check_updates(t, x, 0.5, -0.4, 2)
    check_updates(t, numbers(t, 2), 0.5, 0.4, 2, going=True)


@sgd_update.check(points=1, only_with=("one_step", "with_momentum", "with_decay"))
def other_algorithms(t: Tester) -> None:
    """It refuses to be another algorithm, with a ValueError."""
    for algorithm in ("Adam", "AdamW", "RMSprop", "NAG", "SGDW", "sgd", ""):
        refuses(t, algorithm)


def refuses(t: Tester, algorithm: str) -> None:
    """Check that sgd_update raises ValueError for this algorithm."""
    x, g = numbers(t, 2), numbers(t, 2)
    hyperparameters = {"learning_rate": 0.1, "momentum": 0.5, "weight_decay": 0.1}
    state = {"momentum": numbers(t, 2)}
    arguments = (x, g, state, hyperparameters)
    given = f"sgd_update({algorithm!r}, values, gradient, state, hyperparameters)"
    got = t.drive("update_raises", algorithm, *arguments, given=given)
    raised = got["raised"]
    if raised is not None and "NotImplementedError" in raised["kinds"]:
        t.drive("update", "SGD", x, [g], state, hyperparameters, given="sgd_update")  # a stub?
    if raised is None:
        t.fail(
            "did_not_raise",
            "a ValueError",
            "no error",
            f"For {algorithm!r} a step was made, as for a right name. Where does yours look at it?",
        )
    if "ValueError" not in raised["kinds"]:
        t.fail(
            "wrong_error",
            "a ValueError",
            f"{raised['kinds'][0]}: {raised['text'][:60]}",
            "Which exception does the docstring ask for?",
        )
    if not all(
        is_same(got[name], one)
        for name, one in {"values": x, "gradient": g, "state": state}.items()
    ):
        t.fail(
            "raised_late",
            f"{listed({'values': x, 'momentum': state['momentum']})} after the error, as before",
            listed({"values": got["values"], "momentum": got["state"].get("momentum")}),
            "First look whether it is yours to do, then raise, and only then write.",
        )
