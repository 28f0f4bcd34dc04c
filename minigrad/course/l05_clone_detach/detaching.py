"""detach: the same bytes, no history."""

from __future__ import annotations

from minigrad.course.l05_clone_detach import lesson
from minigrad.course.l05_clone_detach.common import asked, has_moved, node_text
from minigrad.grader.tester import Tester

detach = lesson.exercise(
    "detach",
    difficulty=1,
    minutes=6,
    returns="a new Box over the same Storage, with node None",
    hints=(
        "A Box has two parts. Which of them does detach keep, and which does it leave behind?",
        "Keep the Storage object itself: its array, and its version counter with it. A new Storage "
        "over the same array would count writes on its own.",
        "One line: a new Box with box.storage and no node.",
    ),
)


@detach.check(points=1, only_with=("no_history",))
def same_bytes(t: Tester) -> None:
    """It shows the same bytes, and counts writes with the same counter."""
    for _, _, facts in asked(t, "detach"):
        if facts["same_storage"]:
            continue
        if not has_moved(facts["data"], facts["later"]):
            t.fail(
                "copied",
                "the bytes of the given Box",
                "a copy of them",
                "detach cuts the history only. Who would see a write to the result?",
            )
        t.fail(
            "new_storage",
            "the very Storage of the given Box",
            f"another Storage over the same array (version {facts['version']})",
            "A write through one of the two would not be counted by the other.",
        )


@detach.check(points=2)
def no_history(t: Tester) -> None:
    """It has no node, whatever the given Box has; a leaf's is cut off too."""
    for _, history, facts in asked(t, "detach"):
        node = facts["node"]
        if node["is"] == "none":
            continue
        if history == "leaf":
            key = "leaf"
            attempt = "A leaf is no exception: what is detached asks for no gradient of its own."
        elif node["is"] == "same":
            key, attempt = "attached", "Where would a gradient that arrives at the result go?"
        else:
            key = "recorded"
            attempt = "A Node is a way back for gradients. Is there to be one?"
        t.fail(key, "node None", node_text(node), attempt)
