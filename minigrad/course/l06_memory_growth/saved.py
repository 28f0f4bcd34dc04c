"""Saved values that were written to before backward could use them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from minigrad.course.l06_memory_growth import lesson
from minigrad.grader.message import show
from minigrad.grader.tester import Tester

check_saved = lesson.exercise(
    "check_saved",
    difficulty=2,
    minutes=12,
    returns="None, or a SavedValueModifiedError raised",
    hints=(
        "A version was written down when the value was saved. When do that number and the "
        "present one differ?",
        "Walk along ctx.saved and ctx.versions together, with zip, and compare x.version with "
        "the version that was written down. What can ctx.saved be besides a tuple?",
        "Return at once if ctx.saved is None. At the first x whose x.version is not the one "
        'saved: raise SavedValueModifiedError(f"...") with ctx.op, ctx.line and both numbers.',
    ),
)
OPS = ("mul", "tanh", "MatMul", "Softcap", "log_softmax")
FILES = ("train.py", "C:\\nets\\Train.py", "my 100% {new} nets/train.py")
ERROR = "SavedValueModifiedError"


class Case:
    """What an operation saved, and the writes since.

    versions: the Storages' versions when saved; depths: the number of Views on each; same: whether
    they are one Storage, saved several times; writes: (place, times).
    """

    def __init__(
        self,
        t: Tester,
        n: int,
        depths: Sequence[int] = (),
        versions: Sequence[int] = (),
        same: bool = False,
    ) -> None:
        self.t, self.same = t, same
        self.op = str(t.random.choice(OPS))
        self.line = f"{t.random.choice(FILES)}:{t.random.integers(31, 99)}"
        drawn = t.random.choice(range(300, 900), n, replace=False)
        self.versions = list(versions) or [int(v) for v in drawn]
        self.depths = list(depths) or [0] * n

    def ask(
        self, writes: Sequence[tuple[int, int]] = (), is_freed: bool = False, looked: bool = False
    ) -> Any:
        """Call check_saved; return the driver's report."""
        names = [
            "View(" * depth + f"Storage at version {version}" + ")" * depth
            for version, depth in zip(self.versions, self.depths, strict=True)
        ]
        kept = f"({', '.join(names)}{',' if len(names) == 1 else ''})" if names else "()"
        if self.same:
            kept += ", one Storage, written to between"
        then = "; check_saved(ctx), once" * looked
        then += "".join(f"; saved[{p}] is at {self.versions[p] + n} now" for p, n in writes)
        if is_freed:
            then += "; then backward has run: ctx.saved is None now"
        given = f'ctx: op "{self.op}", line "{self.line}", saved {kept}{then}'
        arguments: list[Any] = [self.op, self.line, self.versions, self.depths]
        arguments += [[list(write) for write in writes], is_freed, self.same, looked]
        report = self.t.drive("saved", *arguments, given=given)
        if report["changed"]:
            self.t.fail(
                "changed",
                "the same answer to the same question, twice",
                "something else the second time: a saved value, a version or ctx was changed",
                "It only looks. Who else reads these versions?",
            )
        return report

    def alarm(
        self, writes: list[tuple[int, int]], key: str, attempt: str, looked: bool = False
    ) -> str:
        """Fail unless it raises the named error; return the error's text."""
        report = self.ask(writes, looked=looked)
        last = self.versions[-1]  # of the one Storage, if all show it
        place = writes[0][0] if writes else [v != last for v in self.versions].index(True)
        expected = f"a {ERROR}: saved[{place}] was written to"
        if "returned" in report:
            self.t.fail(key, expected, f"no error: it returned {show(report['returned'])}", attempt)
        if ERROR not in report["raised"]:
            name, text = report["raised"][0], str(report["text"])[:80]
            self.t.fail(
                "wrong_error",
                expected,
                f"{name}: {text}",
                "Is it raised, or does a line fail that makes the text? The class for it is at the "
                "top of your file.",
            )
        return str(report["text"])

    def no_alarm(self, why: str, attempt: str, **what: Any) -> None:
        """Fail if something is raised or returned."""
        report = self.ask(**what)
        if "raised" in report:
            got = f"{report['raised'][0]}: {str(report['text'])[:100]}"
            if what.get("is_freed") and ERROR not in report["raised"]:
                attempt = "ctx.saved is None here: no tuple. What is there to compare?"
            self.t.fail("false_alarm", f"no error: {why}", got, attempt)
        if report["returned"] is not None:
            self.t.fail(
                "returned",
                "None",
                show(report["returned"]),
                "It raises, or it returns nothing: the engine looks at no answer.",
            )


@check_saved.check(points=1, only_with=("not_written",))
def written(t: Tester) -> None:
    """It raises SavedValueModifiedError for a value that was written to."""
    asked = "An answer can be overlooked. What does the docstring ask?"
    Case(t, 1).alarm([(0, 1)], "did_not_raise", asked)
    Case(t, 1).alarm([(0, 3)], "did_not_raise", asked)


@check_saved.check(points=1)
def not_written(t: Tester) -> None:
    """It is quiet where nothing was written, and where nothing was saved."""
    written(t)  # so that always being quiet earns nothing
    were_written = "Written before they were saved, and not since. What do you compare, and how?"
    Case(t, 2).no_alarm("nothing was written since", were_written)
    Case(t, 2, versions=[0, 3]).no_alarm("nothing was written since", were_written)
    Case(t, 0).no_alarm("nothing was saved", "What is left to compare here?")


@check_saved.check(points=1)
def after_backward(t: Tester) -> None:
    """It is quiet after backward, when the values are let go."""
    written(t)
    case = Case(t, 1)
    gone = "backward is over and has let go of the values: no write can harm it any more."
    case.no_alarm("nothing is saved any more", gone, writes=[(0, 1)], is_freed=True)


@check_saved.check(points=1, only_with=("not_written",))
def any_of_them(t: Tester) -> None:
    """It finds the one of several values that was written to, from any version to any other."""
    Case(t, 1).alarm([(0, -1)], "other_version", "Another version is one that is not the same.")
    Case(t, 1, versions=[0]).alarm([(0, 1)], "version_0", "0 is a version like any other.")
    attempt = "Some of the saved values were written to. Which of them do you look at?"
    for versions, writes in (
        ([5, 6, 7], [(0, 1)]),
        ([5, 6, 7], [(1, 1)]),
        ([7, 6, 5], [(2, 1)]),
        ([3, 2, 4, 1], [(3, 2)]),
        ([*range(40)], [(39, 1)]),
    ):
        Case(t, len(versions), versions=versions).alarm(writes, "overlooked", attempt)
    asked_before = "It was fine at the first look. What does the second one still look at?"
    Case(t, 2).alarm([(1, 1)], "overlooked", asked_before, looked=True)
    twice = "One Storage, saved twice, with a write between: each has a version of its own."
    for versions, depths in (([6, 7], (0, 0)), ([6, 7], (0, 1)), ([7, 6, 7], (0, 0, 0))):
        Case(t, len(versions), depths, versions, same=True).alarm([], "overlooked", twice)
    turned = "4 and 5 before, 5 and 4 now. Which version belongs to which value?"
    Case(t, 2, versions=[4, 5]).alarm([(0, 1), (1, -1)], "overlooked", turned)


@check_saved.check(points=1, only_with=("not_written",))
def through_views(t: Tester) -> None:
    """It sees a write through Views."""
    for depth in (1, 2, 5):
        attempt = (
            "A View has none of its own: it shows bytes of a Storage. Whose version counts for it?"
        )
        Case(t, 2, (0, depth)).alarm([(1, 1)], "view", attempt)
    given = "check_saved(ctx), a write to what the saved View shows, check_saved(ctx): 60 times, "
    given += "with a new View of a new Storage each time"
    answers = t.drive("dropped_views", 60, given=given)
    wanted = [False, True] * 60
    if answers != wanted:
        wrong = next(k for k, raised in enumerate(answers) if raised is not wanted[k])
        number, raised = wrong // 2, answers[wrong]
        expected = f"{'no error' if raised else f'a {ERROR}'} for View number {number}"
        got = f"a {ERROR}" if raised else "no error"
        attempt = (
            "What do you keep from call to call? An id is given to others when its owner dies."
        )
        t.fail("kept", expected, got, attempt)


@check_saved.check(points=1, only_with=("not_written",))
def text_of_the_error(t: Tester) -> None:
    """The error says op, line, and both versions of the first value that was written to."""
    two = [(1, 4), (2, 1)]
    cases: list[tuple[Case, list[tuple[int, int]], int, int]] = []  # the versions asked for
    for depths in ((0, 0, 0), (1, 2, 0)):
        case = Case(t, 3, depths)
        cases.append((case, two, case.versions[1], case.versions[1] + 4))
    cases.append((Case(t, 2, versions=[0, 5]), [(0, 3), (1, 4)], 0, 3))
    cases.append((Case(t, 1, versions=[3]), [(0, -3)], 3, 0))
    cases.append((Case(t, 3, versions=[742, 741, 742], same=True), [], 741, 742))
    for number, (case, writes, then, now) in enumerate(cases):
        case.op, file = OPS[number % len(OPS)], FILES[number % len(FILES)]
        case.line = f"{file}:{t.random.integers(31, 99)}"
        check_text(t, case, writes, then, now)


def check_text(t: Tester, case: Case, writes: list[tuple[int, int]], then: int, now: int) -> None:
    """Fail unless the error says op, line and these versions."""
    text = case.alarm(writes, "overlooked", "Which of the values do you look at?")
    numbers = [int(n) for n in re.findall(r"\d+", text.replace(case.line, ""))]
    parts = {
        f"the op, {case.op}": case.op in text,
        f"the line, {case.line}": case.line in text,
        f"version {then} as saved": then in numbers,
        f"version {now} as it is": now in numbers,
    }
    missing = [part for part, is_there in parts.items() if not is_there]
    if not missing:
        return
    others = [v for v in case.versions if v not in (then, now)]
    if then not in numbers and case.op in text and case.line in text and {*others} & {*numbers}:
        key, attempt = "wrong_one", "Several were written to; the first of them is asked for."
    else:
        key = "text"
        attempt = f"Who reads this must find the line to mend. What is missing: {missing[0]}?"
    t.fail(key, f"a text that contains {', '.join(parts)}", f"{ERROR}: {text[:160]}", attempt)
