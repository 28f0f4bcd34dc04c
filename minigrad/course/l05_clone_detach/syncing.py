"""target_sync: the values go over, the memory stays."""

from __future__ import annotations

import numpy as np

from minigrad.course.l05_clone_detach import lesson
from minigrad.course.l05_clone_detach.common import entries
from minigrad.grader import samples
from minigrad.grader.compare import agree, type_name
from minigrad.grader.message import a_kind, show
from minigrad.grader.tester import Tester

target_sync = lesson.exercise(
    "target_sync",
    difficulty=2,
    minutes=10,
    returns="nothing (None): it writes into target's arrays",
    hints=(
        "The target keeps its Boxes, its Storages and its arrays. So nothing is assigned to a name "
        "or a field, except the version: values are written *into* an array.",
        "array[...] = values writes all elements of an array in place. Walk through the names, as "
        "the two dicts may be ordered differently.",
        "for name, box in target.items(): write online[name].storage.data into "
        "box.storage.data[...], and count the write in box.storage.version.",
    ),
)
BACKWARDS = "Which of the two networks was to be written to?"
COMMON = "Both show one array here. What is left of its numbers after your first step?"


def ask(t: Tester, target: dict[str, np.ndarray], common: str = "") -> None:
    """Synchronise two small networks and check everything that must hold afterwards.

    Args:
        target: the target's arrays by name. In online the order is reversed.
        common: a name for which both have the very same array.
    """
    order, names = list(target), list(reversed(target))
    online = {name: samples.numbers(t.random, target[name].shape, low=3, high=9) for name in names}
    online.update({name: target[name] for name in common})

    def text(network: dict, order: list[str]) -> str:
        return ", ".join(f"{name}: {entries(network[name])}" for name in order)

    given = f"online of {text(online, names)}; target of {text(target, order)}"
    given += f"; {common} is one and the same array" if common else ""
    facts = t.drive(
        "sync", online, target, order, given=f"target_sync(online, target) with {given}"
    )
    if set(facts["names"]) != set(names):
        t.fail("names", f"target with {', '.join(order)}", f"{facts['names']}", "Keep the names.")
    for name in names:
        if not np.array_equal(facts["online_values"][name], online[name]):
            got = f"online[{name!r}] = {entries(facts['online_values'][name])}"
            key, attempt = ("common", COMMON) if name in common else ("backwards", BACKWARDS)
            t.fail(key, f"online[{name!r}] = {entries(online[name])}", got, attempt)
    swapped = len(names) > 1 and by_position(facts["target"], online, order, names)
    for name in order:
        untouched = np.array_equal(facts["target"][name].get("values", ()), target[name])
        near = agree(facts["target"][name].get("values"), online[name], rtol=1e-9)
        how = (
            "untouched" if untouched else "by_position" if swapped else "near" if near else "value"
        )
        compare(t, name, facts["target"][name], online[name], how)
    if facts["online_changed"]:
        changed = ", ".join(facts["online_changed"])
        was = "online with its Boxes, nodes and versions as they were"
        attempt = "It is only read: which line sets something of it, a value, a flag, a version?"
        t.fail("online", was, f"online's {changed} was changed", attempt)
    if facts["returned"] is not None:
        nothing = "The target itself was to be changed: nothing needs to be returned."
        t.fail("returned", "None", a_kind(type_name(facts["returned"])), nothing)


def by_position(now: dict, online: dict, order: list[str], names: list[str]) -> bool:
    """Return whether the values were copied by position instead of name."""
    pairs = zip(order, names, strict=True)
    return all(
        np.array_equal(now[mine].get("values", ()), online[theirs]) for mine, theirs in pairs
    )


WRONG = {
    "value": "Compare target and online, name by name, after the call.",
    "near": "Nearly: these numbers come out of a computation, which rounds. What copies them?",
    "by_position": "The two dicts are ordered differently: go by names.",
    "untouched": "A name bound anew is not the caller's, nor is a copy. What writes into it?",
}


def compare(t: Tester, name: str, now: dict, right: np.ndarray, how: str) -> None:
    """Compare one Box of the target with what it must be; `how` explains wrong values."""
    if now["type"] != "Box":
        attempt = "The target keeps its own Box; only the numbers in its array change."
        t.fail("replaced", f"target[{name!r}], a Box", a_kind(now["type"]), attempt)
    if now.get("shares"):
        t.fail(
            "aliased",
            f"target[{name!r}] with memory of its own",
            "it shows online's bytes",
            "Online's next step would move the target too. Copy the numbers, not the reference.",
        )
    if not now["same_box"] or "values" not in now or not now["same_storage"]:
        what = "Box" if not now["same_box"] else "Storage"
        t.fail(
            "replaced",
            f"target[{name!r}] with the {what} that it had",
            f"another {what}",
            "Whoever holds the old one never hears of it. Write into what is there.",
        )
    if not now["same_data"]:
        t.fail(
            "rebound",
            f"target[{name!r}] with the array that it had",
            "another array in its Storage",
            "A view of the old array would show old values. Write into the array: array[...] = …",
        )
    if not np.array_equal(now["values"], right):
        right_text = f"target[{name!r}] = {entries(right)}"
        t.fail(how, right_text, entries(now["values"]), WRONG[how])
    if not now["writeable"]:
        t.fail(
            "locked",
            f"target[{name!r}] with its array as before",
            "the array refuses to be written to now",
            "There will be a next synchronisation. Which line locks the array?",
        )
    before, after = now["version"]
    if after != before + 1:
        t.fail(
            "version",
            f"target[{name!r}] with version {before + 1}, after one write",
            f"version {show(after)}",
            miscounted(after, before),
        )
    if now["node"] != "as before":
        t.fail(
            "node",
            f"target[{name!r}] with its node as before",
            now["node"],
            "Only the numbers move. Whose history a Box has is no matter of its bytes.",
        )


def miscounted(after: object, before: int) -> str:
    """Return the Try line for a version that did not grow by one."""
    if after == before:
        return "A call writes to each Storage, equal values or not. Which path counts no write?"
    if isinstance(after, int) and after > before + 1:
        return "One call is one write for each Storage. What is counted more than once, or copied?"
    return "Each write in place is counted in the Storage that it goes to."


@target_sync.check(points=2)
def one_layer(t: Tester) -> None:
    """The values go over, and the memory stays apart, whatever shape and layout it has."""
    for array in samples.arrays(t.random, dtypes=("float64",)):
        ask(t, {"w": array})


@target_sync.check(points=2)
def several_layers(t: Tester) -> None:
    """Each layer gets its own values, whatever the order of the names."""
    for shapes in ([(2,), (2,)], [(2, 3), (), (3,)], [(2,), (2,), (2,)], [(2,)] * 5):
        ask(
            t,
            {name: samples.numbers(t.random, s) for name, s in zip("wbvue", shapes, strict=False)},
        )
    ask(t, {name: samples.numbers(t.random, (2,)) for name in "wb"}, common="b")
