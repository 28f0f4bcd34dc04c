"""The version counter that every in-place write bumps, seen through views."""

from __future__ import annotations

import numpy as np

from minigrad.course.l06_memory_growth import lesson
from minigrad.grader.message import show
from minigrad.grader.tester import Tester

bump_version = lesson.exercise(
    "bump_version",
    difficulty=1,
    minutes=5,
    returns="None, and the version of the Storage one higher",
    hints=(
        "Which object has a version that can be changed? A View only asks what it shows.",
        "isinstance(x, View) says whether x is a View, and x.base is what it shows. "
        "That may be a View again.",
        "Go from base to base as long as x is a View; then add one to x.version.",
    ),
)

LATE = 1_000_000
OTHERS = 3  # Storages made beside the one in question


def check_bump(t: Tester, depth: int, before: int, times: int = 3, empty: bool = False) -> None:
    """Bump a version through some Views and check the Storage."""
    shown = "the Storage" if not depth else "View(" * depth + "the Storage" + ")" * depth
    values, size = " of no values" * empty, 0 if empty else depth + 3
    place = int(t.random.spawn(1)[0].integers(OTHERS + 1))
    after = t.drive(
        "bump",
        before,
        depth,
        times,
        size,
        LATE,
        place,
        given=f"a Storage{values} at version {before}; {times} × bump_version(x), x = {shown}",
    )
    expected = f"the Storage at version {before + times}"
    if "refused" in after:
        attempt = "A View only asks what it shows. Which object has a version of its own?"
        if depth > 1:
            attempt = "The base of a View may be a View again. How far must you go?"
        t.fail("no_version", expected, f"AttributeError: {after['refused']}", attempt)
    version = after["storage"]
    got = f"the Storage at version {version}"
    if not np.array_equal(after["values"], np.arange(float(size))):
        t.fail(
            "wrote",
            "the values as they were",
            "other values in the Storage",
            "The write has happened already. Your function only notes that it did.",
        )
    if version == before:
        attempt = "Which object's version did your function change, or did it change none?"
        if depth:
            attempt = "x is a View: which Storage has its bytes, and is that the one you change?"
        if empty:
            attempt = "A write into no values is a write, too. What does your function ask first?"
        t.fail("unchanged", expected, got, attempt)
    if version == before + 1 != before + times:
        t.fail("set", expected, got, "Each write counts: what happens at the second call?")
    if version != before + times:
        t.fail("count", expected, got, "One call, one more: what does your function add?")
    if not after["same_objects"]:
        t.fail(
            "replaced",
            "the array of the Storage, and base and index of each View, as they were",
            "another object in the place of one of them",
            "Others hold these very objects. What of them needs to change?",
        )
    if after["later"] != LATE + 1 or type(version) is not int:
        t.given += f"; then its version is set to {LATE}, as by others' writes; bump_version(x)"
        t.fail(
            "other_number",
            f"the Storage at version {LATE + 1}",
            f"the Storage at version {show(after['later'])}",
            "The version is an int without an end, and others may write to it between two calls.",
        )
    if after["others"] != [before] * OTHERS:
        say = "Another Storage has counted a write that did not go to it. How do you find yours?"
        t.fail("another", "other Storages at the version that they had", "a later one", say)
    if after["returned"] is not None:
        t.fail("returned", "None", show(after["returned"]), "The Storage itself was to be changed.")


@bump_version.check(points=1)
def of_a_storage(t: Tester) -> None:
    """Each call adds one to the version of a Storage."""
    check_bump(t, 0, before=7)
    check_bump(t, 0, before=0)
    check_bump(t, 0, before=4, times=1)
    check_bump(t, 0, before=6, empty=True)


@bump_version.check(points=1)
def through_views(t: Tester) -> None:
    """It finds the Storage under a View, and under Views of Views."""
    for depth, before in ((1, 5), (2, 0), (3, 8), (100, 1)):
        check_bump(t, depth, before)
    check_bump(t, 2, before=3, empty=True)
    given = "Storages at versions 3, 8 and 0; bump_version(View(s)) for each, the View not kept"
    versions = t.drive("bump_in_turn", [3, 8, 0], given=given)
    if versions != [4, 9, 1]:
        kept = "A new View may lie where an old one lay. What of it do you remember?"
        t.fail("kept", "the Storages at versions 4, 9 and 1", f"at {show(versions)}", kept)
