"""The bug hunt: a target network of which one layer still shows online's bytes."""

from __future__ import annotations

import numpy as np

from minigrad.course.diagnosis import named_one, not_it
from minigrad.course.l05_clone_detach import lesson
from minigrad.course.l05_clone_detach.common import entries, has_moved
from minigrad.grader.message import a_kind, show
from minigrad.grader.samples import numbers
from minigrad.grader.tester import Tester

make_target = lesson.exercise(
    "make_target",
    difficulty=3,
    minutes=12,
    returns="a dict of Boxes with memory of their own",
    hints=(
        "Ask your is_alias about each layer of make_target(online) and of online. Take arrays as "
        "they come, and not transposed.",
        "Four of the five calls always make a new array. One gives its argument back where there "
        "is nothing to do: look up what NumPy says about it.",
        "np.ascontiguousarray copies only what is not contiguous yet. Which of the other four "
        "lines copies always, and could stand there?",
    ),
)
NAMES = ("embed", "w1", "b1", "w2", "b2")
CULPRIT = "w2"


@make_target.check(points=2)
def diagnosis(t: Tester) -> None:
    """BUG names the layer that shows online's bytes."""
    start = "Ask is_alias about each layer of online and the same layer of the target."
    name = named_one(t, "layer", NAMES, start)
    if name != CULPRIT:
        not_it(
            t,
            "the layer that moves with online",
            f"{name!r}, which has memory of its own",
            "Write into online's array, as it came, and look which layer of the target moves.",
        )


def network(t: Tester) -> dict[str, np.ndarray]:
    """Return five random layers."""
    shapes = ((4, 2), (2, 3), (3,), (3, 2), (2,))
    return {n: numbers(t.random, shape) for n, shape in zip(NAMES, shapes, strict=True)}


@make_target.check(points=3)
def repair(t: Tester) -> None:
    """No layer shows online's bytes, and all have online's values."""
    for transposed in (False, True):
        arrays = network(t)
        how = ", its layers column by column in memory" if transposed else ""
        facts = t.drive(
            "target",
            arrays,
            transposed,
            given=f"make_target(online){how}",
        )
        if "type" in facts:
            t.fail("type", "a dict of Boxes", a_kind(facts["type"]), "make_target returns a dict.")
        if set(facts["layers"]) != set(NAMES):
            t.fail("names", ", ".join(NAMES), ", ".join(facts["layers"]), "Keep the names.")
        if facts["kept"]:
            t.fail(
                "kept",
                "a target that stays as it was returned",
                f"the next call of make_target wrote into its {facts['kept'][0]}",
                "Who owns the dict and the arrays that you return? Make new ones in each call.",
            )
        for name in NAMES:
            values = entries(arrays[name])
            t.given = f"make_target(online){how}; {name} of online shows {values}"
            compare(t, name, facts["layers"][name], arrays[name])
        if not facts["online_unchanged"]:
            t.fail(
                "online",
                "online as it was",
                "online was changed",
                "The online network is in use: it is the target that needs memory of its own.",
            )


def compare(t: Tester, name: str, now: dict, right: np.ndarray) -> None:
    """Compare one layer of the new target with online's."""
    if now["type"] != "Box":
        t.fail("type", f"a Box for {name!r}", a_kind(now["type"]), "frozen(values) makes a Box.")
    if has_moved(now["values"], now["later"]):
        t.fail(
            "aliased",
            f"{name!r} with memory of its own",
            "it shows online's bytes",
            "Is what this line makes always a new array, or only sometimes?",
        )
    if not isinstance(now["values"], np.ndarray) or now["values"].shape != right.shape:
        got = show(now["values"])
        t.fail("shape", f"{name!r} of shape {right.shape}", got, "A copy keeps shape and type.")
    if not np.array_equal(now["values"], right):
        got = entries(now["values"])
        t.fail("value", f"{name!r} = {entries(right)}", got, "A copy keeps the values.")
    if now["node"]:
        t.fail(
            "node",
            f"{name!r} with node None",
            "a node",
            "A target is a constant: no way leads back.",
        )
