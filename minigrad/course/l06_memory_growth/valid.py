"""A second model for evaluation that shares everything with the first."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.course.l06_memory_growth import lesson
from minigrad.grader.message import counted
from minigrad.grader.samples import numbers
from minigrad.grader.tester import Mistake, Tester

valid_copy = lesson.exercise(
    "valid_copy",
    difficulty=3,
    minutes=20,
    returns="an object to be called like the model, with parameters()",
    needs="engine",
    answers=(
        "minigrad.nn.Module.valid",
        "minigrad.nn.Module.clone",
        "minigrad.nn.copies.view",
        "minigrad.nn.copies.clone",
    ),
    hints=(
        "Three things are asked: no recording, evaluation mode, and the model left alone. "
        "Which of them does model.eval() give, and which does it break?",
        "copy.copy(model) is a second tree of modules over the same parameters; its eval() "
        "leaves the first tree alone. copy.deepcopy would copy the parameters too.",
        "shown = copy.copy(model).eval(); and its forward must run inside mg.no_grad(), which "
        "decorates methods too: mg.no_grad()(shown.forward).",
    ),
)
GROWS = 1.5  # the driver multiplies the weights by this between its two calls
SHAPES = ((6, 4), (6,), (6,), (6,), (2, 6), (2,))  # of each layer's weights, then its bias
LAYERS = (
    "body: Linear (frozen), BatchNorm1d, Dropout, ReLU; head: Dropout (in evaluation mode), "
    "Linear; forward: head(body(x))"
)


def ask(t: Tester, recording: bool = True) -> tuple[dict, np.ndarray, list[list[np.ndarray]]]:
    """Make a copy of a model and look at both.

    Returns the driver's report, the input, and the weights of the model and of another one.
    """
    x = np.round(t.random.uniform(-2, 2, (3, 4)), 2).astype(np.float32)
    weights = [[numbers(t.random, shape, "float32") for shape in SHAPES] for _ in range(2)]
    outside = "" if recording else ", inside `with mg.no_grad():`"
    copies = "shown = valid_copy(model); valid_copy(another)"
    given = f"{copies}; shown(x){outside}; the model, in training: {LAYERS}; between two calls of "
    given += "shown it is trained, and modes are changed"
    seen = t.drive("copied", x, recording, *weights, given=given)
    if seen is None:
        t.none("an object that can be called")
    if "kind" in seen:
        lacks = "Who calls it also asks for list(shown.parameters()). What could have both?"
        wanted = "an object with shown(x) and shown.parameters()"
        t.fail("not_a_model", wanted, f"an object of type {seen['kind']}", lacks)
    if "gave" in seen:
        lost = "Where does the model's answer get lost: does each function on the way return it?"
        t.fail("no_output", "shown(x): a Variable", f"shown(x): {seen['gave']}", lost)
    return seen, x, weights


def unchanged(t: Tester, moment: str, before: dict, after: dict) -> None:
    """Fail unless requires_grad and training are as before."""
    for what, key, kind in (
        ("requires_grad", "frozen", "of each parameter"),
        ("training", "training", "of the model, then of its layers,"),
    ):
        if before[what] == after[what]:
            continue
        attempt = "The model is somebody's who trains it. What of it do you need to change at all?"
        lost = sum(before[what]), sum(after[what])
        if what == "requires_grad" and lost[1] > lost[0]:
            key, attempt = "unfrozen", "Who was frozen before must be frozen afterwards: who was?"
        if what == "training" and lost[1] > lost[0]:
            key = "training_lost"
            attempt = "train() sets all modules. One of them was in evaluation mode before."
        t.fail(
            key,
            f"{what} {kind} as before: {before[what]}",
            f"after {moment}: {after[what]}",
            attempt,
        )


@valid_copy.check(points=2)
def records_nothing(t: Tester) -> None:
    """Calling it records no node, and the mode outside stays as it is."""
    for recording in (True, False):
        seen, *_ = ask(t, recording)
        if max(seen["n_nodes"]) > 0:
            t.fail(
                "recorded",
                "0 nodes recorded by shown(x)",
                f"{counted(max(seen['n_nodes']), 'node')} recorded",
                "Evaluation mode changes Dropout and the like. What decides about recording?",
            )
        if not seen["mode_kept"]:
            t.fail(
                "mode",
                f"mg.is_recording() after shown(x): {recording}",
                f"{not recording}",
                "Which mode do you leave behind for the rest of the program?",
            )


@valid_copy.check(points=1, only_with=("records_nothing", "evaluates"))
def same_parameters(t: Tester) -> None:
    """Its parameters have the model's ids and the model's memory."""
    seen, *_ = ask(t)
    first, again = seen["shown"]
    ids, pointers = first["ids"], first["pointers"]
    if pointers != seen["model"]["pointers"]:
        n = sum(p not in seen["model"]["pointers"] for p in pointers)
        t.fail(
            "copied",
            "p.data_ptr() of each parameter as in the model: no bytes copied",
            f"{n} of {len(pointers)} parameters lie elsewhere",
            "A copy of the values doubles the memory, and goes stale when the model is trained on.",
        )
    if ids != seen["model"]["ids"]:
        t.fail(
            "other_ids",
            f"the ids of the model's parameters: {seen['model']['ids']}",
            str(ids),
            "Optimizers know parameters by id. Show the model's own parameters.",
        )
    if again != first:
        t.fail(
            "only_once",
            f"{counted(len(ids), 'parameter')} in list(shown.parameters()), each time",
            f"{counted(len(again['ids']), 'parameter')} the second time",
            "An iterator is used up once it was walked. When do you make the one you give?",
        )


@valid_copy.check(points=2, only_with=("records_nothing", "evaluates"))
def model_unchanged(t: Tester) -> None:
    """The model stays as it was: frozen layers frozen, training modes one by one."""
    seen, *_ = ask(t)
    for state in seen["states"]:
        unchanged(t, *state)


@valid_copy.check(points=2)
def evaluates(t: Tester) -> None:
    """It gives what the model gives in evaluation mode, also after further training."""
    attempt = "Run it twice on the same x: the same twice? What does Dropout do in training?"
    stale = "The model was trained on. Does your copy compute with the new values?"
    shared = "This is what the other model gives. Where does your copy keep its model?"
    near: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-5, "what": "shown(x)"}
    for recording in (True, False):
        seen, x, (weights, others) = ask(t, recording)
        unchanged(t, *seen["states"][0])
        other = Mistake("other_model", expected(x, others), shared)
        right = [expected(x, [w * GROWS**n for w in weights]) for n in range(2)]
        for n, (got, wanted) in enumerate(zip(seen["outputs"], right, strict=False)):
            mistakes = [other, Mistake("stale", right[0], stale)][: n + 1]
            t.close(got, wanted, attempt=attempt, mistakes=mistakes, **near)


def expected(x: np.ndarray, weights: list[Any]) -> np.ndarray:
    """Return the layers' output in evaluation mode; the running mean is 0, the variance 1."""
    w1, b1, scale, shift, w2, b2 = weights
    normal = (x @ w1.T + b1) / np.sqrt(1 + 1e-5)
    return np.maximum(normal * scale + shift, 0) @ w2.T + b2
