"""docs/evidence.md: which answers of readers the checks graded right.

`answers.json` holds answers of readers who had read the lessons and the stubs, and seen neither
checks nor known mistakes: wrong ones that break a promise, and right ones written oddly.
"""

import json
from collections import Counter
from pathlib import Path

from minigrad.course.mutants import grade_source
from minigrad.course.prove import solution_of
from minigrad.grader.folder import find_stem
from tests.pages import NOTE

ROOT = Path(__file__).parents[2]
PATH = Path(__file__).parent / "answers.json"
ANSWERS = json.loads(PATH.read_text(encoding="utf-8"))
SEED = 11
HEAD = """# Evidence: what the checks catch

{note}

Readers wrote these answers from the lessons and the stubs alone, without a look at checks or at
known mistakes. These readers were language models asked to err as learners do; what people write
may fare otherwise. A *wrong* answer breaks something that a docstring or a lesson promises; most do
so for a few inputs only. A *right* one is unusual and breaks nothing. *At first* is how the checks
graded them at the first try. Since then the checks have been mended, and
`tests/readers/test_readers.py` holds that each of the answers is graded right now. That is no
estimate of how a new reader's answers fare; the first tries of the last round come nearest to one.

Measured with seed {seed}, each answer in the place of the solution's own function.
`tests/readers/answers.json` has the answers. More can be added there; `graded_right_at_first` says
whether the checks of that day caught a wrong answer, or gave a right one full marks.

## The first try, round by round

In round 1 a lesson had its first readers. In each later round it had new ones, after its checks had
been mended by what the rounds before had found; they had not seen those, and some had ideas that
had come up there. "29 of 40" is how many answers were graded right at the first try. Answers that
break nothing, by a later reading, were left out: 10 of round 2, 8 of round 3, 2 of round 4, 2 of
round 5. Of lesson 12, two that need SciPy were left out, and of 17 two wrong ones that still pass.
Meant to be right, and counted as wrong: one answer each of 11, 16 and 17, two each of 12 and 15.

| lesson | round | wrong, and caught | right, with full marks |
|---|---:|---:|---:|
{rounds}

## The messages of a first try

Of the wrong answers that were caught, a reader who had not written them judged what the learner
would read first: whether it *fits* what is wrong with this answer, says nothing about it, or
*misleads*. `tests/readers/add.py` adds answers and such verdicts.

| lesson | round | judged | fit | neutral | mislead |
|---|---:|---:|---:|---:|---:|
{messages}

## Exercise by exercise

| exercise | wrong | caught at first | right | full marks at first | graded right now |
|---|---:|---:|---:|---:|---:|
"""


def source_of(answer):
    """The solution's file with one answer in it."""
    stem = find_stem(answer["exercise"].partition(".")[0])
    return stem, "\n".join([solution_of(ROOT, stem), "", *answer["code"], ""])


def is_graded_right(server, answer):
    """Whether a wrong answer gets less than full marks, or a right one gets them."""
    stem, source = source_of(answer)
    name = answer["exercise"].partition(".")[2]
    return grade_source(server, stem, name, source, SEED).passed == (answer["kind"] == "right")


def counted(key):
    """How many answers there are of each kind, and how many were graded right at first, per key."""
    counts: dict = {}
    for answer in ANSWERS:
        found = counts.setdefault(key(answer), Counter())
        found[answer["kind"]] += 1
        found[answer["kind"], "first"] += answer["graded_right_at_first"]
    return counts


def rounds():
    """The rows of the table of first tries."""
    counts = counted(lambda answer: (answer["exercise"][:2], answer["round"]))
    counts |= counted(lambda answer: ("all", answer["round"]))
    return "\n".join(
        f"| {lesson} | {number} | {n['wrong', 'first']} of {n['wrong']} |"
        f" {n['right', 'first']} of {n['right']} |"
        for (lesson, number), n in sorted(counts.items())
    )


def messages():
    """The rows of the table of messages: what was judged, and how."""
    counts: dict = {}
    for answer in ANSWERS:
        if "message_fits" in answer:
            for lesson in (answer["exercise"][:2], "all"):
                found = counts.setdefault((lesson, answer["round"]), Counter())
                found[answer["message_fits"]] += 1
    return "\n".join(
        f"| {lesson} | {number} | {n.total()} | {n['yes']} | {n['neutral']} | {n['no']} |"
        for (lesson, number), n in sorted(counts.items())
    )


def text():
    """The whole page."""
    counts = counted(lambda answer: answer["exercise"])
    counts["**together**"] = sum(counts.values(), Counter())
    rows = [
        f"| {name} | {n['wrong']} | {n['wrong', 'first']} | {n['right']} | {n['right', 'first']} |"
        f" {n['wrong'] + n['right']} |"
        for name, n in counts.items()
    ]
    head = HEAD.format(note=NOTE, seed=SEED, rounds=rounds(), messages=messages())
    return head + "\n".join(rows) + "\n"
