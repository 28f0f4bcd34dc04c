"""CowBuffer: copies, counted."""

from __future__ import annotations

import numpy as np

from minigrad.course.l05_clone_detach import lesson
from minigrad.course.l05_clone_detach.common import entries
from minigrad.course.l05_clone_detach.cow_model import Model, step_text
from minigrad.grader import samples
from minigrad.grader.message import a_kind, show
from minigrad.grader.tester import Tester

CowBuffer = lesson.exercise(
    "CowBuffer",
    difficulty=4,
    minutes=35,
    returns="a CowBuffer with read, write and fork",
    hints=(
        "write() must know whether anybody else still shows its array. So all buffers that show "
        "one array need something in common, in which they can be counted.",
        "Let __init__ make a WeakSet that holds only self. fork() makes another CowBuffer of the "
        "same array, puts it into the set, and gives it this very set.",
        "write(): if the set holds more than one, take self out of it, make a new set with self "
        "alone, and let the array be a copy. Then, in every case, return the array. read() returns "
        "a view whose flags.writeable is False.",
    ),
)
Step = tuple
BAD = {
    "fork": ("fork_type", "another CowBuffer from fork()", "CowBuffer(array) makes one."),
    "itself": (
        "itself",
        "another CowBuffer from fork()",
        "Two names for one object are no fork: a write by one would show in both.",
    ),
    "read": ("type", "an array from read()", "Every path through read() returns the array."),
    "write": ("type", "an array from write()", "Every path through write() returns the array."),
    "read_only": (
        "read_only",
        "an array from write() that can be written to",
        "Only what read() gives refuses writes. A view has flags of its own.",
    ),
}
COPIES = {
    "start": ("init", "The buffer owns the very array that it is given. Where is a copy made?"),
    "fork": ("eager", "Nobody has written yet. What does the fork need of its own by now?"),
    "read": ("read_copies", "Reading changes nothing, so all may look at the same bytes."),
    "again": ("copies_again", "After its first write it is alone. How does the second know?"),
    "last": ("last_owner", "Who else still shows this array? Where is that counted?"),
    "alone": ("alone", "It was never forked. From whom would a copy protect it?"),
    "dropped": (
        "dropped",
        "What is gone must not count. Who still holds it: a list, a function of its own?",
    ),
}


def run(t: Tester, steps: list[Step], values: np.ndarray | None = None) -> None:
    """Run steps on the learner's buffers; fail if something is not even a buffer."""
    values = samples.numbers(t.random, (3,)) if values is None else values
    is_plain = values.dtype == np.float64 and values.flags.c_contiguous
    made = f"array({entries(values)})" if is_plain else show(values)
    lines = [f"a = CowBuffer({made})", *(step_text(step) for step in steps)]
    report = t.drive("cow", values, [list(step) for step in steps], given="; ".join(lines))
    if len(report) == 1 and "bad" in report[0]:
        bad(t, report[0])
    model = Model(values)
    for count, step in enumerate([("start",), *steps]):
        said = model.do(step)
        t.given = "; ".join(lines[: count + 1]) + "; after each of these, all are read"
        compare(t, report[count], model, step, said)


def bad(t: Tester, note: dict) -> None:
    """Fail because of what fork, read or write returned."""
    key, expected, attempt = BAD[note["bad"]]
    got = {"itself": "the buffer itself", "read_only": "an array that refuses writes"}
    kind = note["type"]
    t.fail(
        "none" if kind == "NoneType" else key,
        expected,
        got.get(note["bad"]) or a_kind(kind),
        attempt,
    )


def compare(t: Tester, after: dict, model: Model, step: Step, said: str) -> None:
    """Compare the buffers' values after one step, and the number of memories."""
    values = {name: shown[0] for name, shown in after["shown"].items()}
    for name, right in model.values().items():
        t.dtype(values[name], right.dtype, "A copy keeps the dtype.")
        if np.array_equal(values[name], right):
            continue
        wrote = step[0] == "write"
        if wrote and name != step[1]:
            key, attempt = (
                "seen",
                "write() gave out an array that another still shows. How could it know?",
            )
        elif wrote:
            key = "lost"
            attempt = "read() shows another array than write() gave out. Who decides which?"
        elif step[0] == "fork":
            key, attempt = "value", "A fork shows what its source shows at that moment."
        else:
            key = "value"
            attempt = "Nothing was written here. Which line makes another array of what came?"
        t.fail(key, f"{name}.read() gives {entries(right)}", f"{entries(values[name])}", attempt)
    copies = after["memories"] - 1
    if after.get("read_copies"):
        said = "read"
    if copies != model.n_copies:
        key, attempt = COPIES.get(said, ("copies", "Which buffers still show the same array?"))
        if copies < model.n_copies:
            key, attempt = "no_copy", "write() hands out an array that another one still shows."
        t.fail(
            key,
            f"{model.n_copies} {'copy' if model.n_copies == 1 else 'copies'} by now",
            str(copies),
            attempt,
        )
    for name, place in model.where.items():
        if after["shown"][name][1] != place:
            t.fail(
                "wrong_copier",
                f"{name} with the array that it had",
                "the copy, which another one has written for",
                "The one that writes takes the copy. The others may be using the old array.",
            )
    if after.get("writeable"):
        t.fail(
            "read_writable",
            "an array from read() that refuses to be written to",
            "one that can be written to",
            "A write that does not go through write() would show in every fork.",
        )


@CowBuffer.check(points=2)
def forks_share(t: Tester) -> None:
    """Forks and reads copy nothing, and show the same values."""
    run(t, [("fork", "b", "a"), ("read", "b"), ("fork", "c", "b"), ("read", "a"), ("read", "c")])


@CowBuffer.check(points=2)
def first_write_copies(t: Tester) -> None:
    """The first write to a fork copies once, the next no more, and nobody else sees it."""
    for writer in ("b", "a"):
        run(
            t,
            [
                ("touch", "a"),
                ("fork", "b", "a"),
                ("write", writer, 0, 7.0),
                ("write", writer, 1, 8.0),
            ],
        )


@CowBuffer.check(points=2)
def last_owner_writes_in_place(t: Tester) -> None:
    """The last one that shows an array writes to it without a copy."""
    run(t, [("fork", "b", "a"), ("write", "b", 0, 7.0), ("write", "a", 1, 8.0)])
    run(
        t,
        [
            ("fork", "b", "a"),
            ("fork", "c", "b"),
            ("write", "a", 0, 5.0),
            ("write", "c", 1, 6.0),
            ("write", "b", 2, 7.0),
        ],
    )


@CowBuffer.check(points=1)
def any_order(t: Tester) -> None:
    """Values and copies are right for arrays of any kind, and whoever forks and writes."""
    for text in (
        "a>b a>c b c a",
        "a>b a>c a c b",
        "a>b b>c b a c",
        "a>b a>c c>d c a d b",
        "a>b b b>c b c a",
        "a>b a a>c b>d b a c d",
        "a>b a a a a b b",
        "a>b a>c b>d a>e c>f a>g b a c g d e f",
    ):
        run(t, [step(move, number) for number, move in enumerate(text.split())])
    for values in samples.arrays(t.random):
        if not values.size:
            run(t, [("fork", "b", "a"), ("touch", "b"), ("touch", "a")], values)
        else:
            last = tuple(n - 1 for n in values.shape)
            run(
                t,
                [("fork", "b", "a"), ("write", "b", last, 7.0), ("write", "a", last, 8.0)],
                values,
            )


def step(move: str, number: int) -> Step:
    """Return the step for `a>b`, where a makes a fork b, or for `a`, where a writes."""
    old, _, new = move.partition(">")
    return ("fork", new, old) if new else ("write", old, number % 3, 10.0 + number)


@CowBuffer.check(points=1)
def counted_in_bytes(t: Tester) -> None:
    """No copy is made and thrown away: bytes are counted while a large array is at work."""
    n = 50_000
    steps: list[Step] = [
        ("fork", "b", "a"),
        ("read", "b"),
        ("touch", "b"),
        ("touch", "b"),
        ("touch", "a"),
    ]
    lines = [f"a = CowBuffer(np.zeros({n}))", *(step_text(step) for step in steps)]
    copies = t.drive("cow_bytes", n, [list(step) for step in steps], given="; ".join(lines))
    if copies and isinstance(copies[0], dict):
        bad(t, copies[0])
    for step, right, said, got in zip(
        steps, (0, 0, 1, 0, 0), ("fork", "read", "", "again", "last"), copies, strict=True
    ):
        if round(got) != right:
            key, attempt = COPIES.get(said, ("wasted", "How many arrays does write() make?"))
            expected = f"{right} times {n * 8} bytes allocated by {step_text(step)}"
            t.fail(key, expected, f"{got:.1f} times", attempt)


@CowBuffer.check(points=1)
def reading_is_safe(t: Tester) -> None:
    """What read() gives refuses to be written to."""
    run(t, [("fork", "b", "a"), ("poke", "b"), ("write", "b", 0, 7.0), ("poke", "b")])


@CowBuffer.check(points=1)
def dropped_forks(t: Tester) -> None:
    """A fork that was dropped is no owner any more; those that are left still are."""
    fork_b, fork_c = ("fork", "b", "a"), ("fork", "c", "a")
    run(t, [fork_b, ("drop", "b"), ("write", "a", 0, 7.0)])
    run(t, [fork_b, fork_c, ("drop", "a"), ("drop", "c"), ("write", "b", 1, 8.0)])
    run(t, [fork_b, fork_c, ("drop", "b"), ("write", "a", 0, 7.0), ("write", "c", 1, 8.0)])
    middle = ("fork", "c", "b")
    run(t, [fork_b, middle, ("drop", "b"), ("write", "a", 0, 7.0), ("write", "c", 1, 8.0)])
    run(t, [fork_b, ("drop", "b"), fork_c, ("write", "c", 0, 7.0), ("write", "a", 1, 8.0)])
    run(t, [fork_b, fork_c, ("write", "b", 0, 7.0), ("drop", "b"), ("write", "a", 1, 8.0)])
