"""explain_cycle: operations and lines, in one line."""

from __future__ import annotations

from minigrad.course.l03_cycles import lesson
from minigrad.grader.message import show
from minigrad.grader.tester import Tester

explain_cycle = lesson.exercise(
    "explain_cycle",
    difficulty=1,
    minutes=10,
    returns="a text such as mul (rnn.py:12) -> tanh (rnn.py:13) -> mul (rnn.py:12)",
    hints=(
        "First make a list with one text for each entry of the path. How does ' '.join help then?",
        "Where node.line is empty there are no brackets. If the list has more than 8 texts, put "
        "one text in place of those in the middle.",
        'names[:4], then f"... {len(names) - 8} more ...", then names[-4:]; '
        'and " -> ".join of them all.',
    ),
)
LINES = ("rnn.py:{}", "models/rnn.py:{}", "C:\\my work\\loop.py:{}", "<stdin>:{}", "cell {}", " ",
         "a_rather_long_name_of_a_folder/of_a_file.py:{}", "100%", "(x -> y):{}:{}")  # fmt: skip
OPS = ("mul", "add", "tanh", "exp", "store", "linear", "relu", "matmul", "sum", "sqrt", "__iadd__",
       "binary_cross_entropy_with_logits", "Conv2d", "op %s {}")  # fmt: skip


def texts(ops: list[str], lines: list[str]) -> list[str]:
    """Return one text for each entry of the closed path."""
    names = [f"{op} ({line})" if line else op for op, line in zip(ops, lines, strict=True)]
    return [*names, names[0]]


def shortened(names: list[str], keep: int = 4, most: int = 8) -> list[str]:
    """Return the texts of a path, shortened if there are more than `most`."""
    if len(names) <= most:
        return names
    return [*names[:keep], f"... {len(names) - 2 * keep} more ...", *names[-keep:]]


def check_text(t: Tester, ops: list[str], lines: list[str], given: str) -> None:
    """Compare with the line that the docstring states."""
    answer = t.drive("explained", ops, lines, given=given)
    got, names = answer["found"], texts(ops, lines)
    right = " -> ".join(shortened(names))
    expected = repr(right)
    if got is None:
        t.none(expected)
    if not isinstance(got, str):
        name = getattr(got, "type_name", type(got).__name__)
        t.fail("type", expected, f"{show(got)}, of type {name}", "Join the texts to one str.")
    if got == right:
        check_rest(t, answer, " -> ".join(shortened(texts(ops[::-1], lines[::-1]))))
        return
    bare = [*ops, ops[0]]
    middle = f"... {len(names) - 8} more ..."
    wrong = [
        ("last_missing", shortened(names)[:-1], "The path comes back to where it began."),
        ("last_missing", shortened(names[:-1]), "The path comes back to where it began."),
        ("brackets", shortened([n if "(" in n else f"{n} ()" for n in names]), "An empty line."),
        ("no_lines", shortened(bare), "People look for the line: where is node.line?"),
        ("backwards", shortened(names)[::-1], "In the order of the path, please."),
    ]
    for key, parts, say in wrong:
        if got == " -> ".join(parts):
            if key == "brackets":
                say = "Where a node's line is the empty text, there is nothing for the brackets."
            t.fail(key, expected, repr(got), say)
    if len(names) > 8:
        check_middle(t, got, names, expected, middle)
    elif "more ..." in got:
        say = f"This path has {len(names)} entries. From how many on is something left out?"
        t.fail("too_short", expected, repr(got), say)
    if got.replace(" ", "") == right.replace(" ", "") or got.split() == right.split():
        t.fail("spaces", expected, repr(got), "Only the spaces differ. Compare them.")
    t.fail("value", expected, repr(got), "Compare the two from the left: where do they part?")


def check_rest(t: Tester, answer: dict, later: str) -> None:
    """Fail if the path was written to, or if changed nodes do not change the text."""
    if not answer["same"]:
        say = "An error keeps this path, and shows it again. Whose list do you change?"
        t.fail("changed_input", "the path as it was", "a list with other entries", say)
    if not answer["same_nodes"]:
        say = "To say where a cycle is, it is enough to read op and line. Which of them do you set?"
        t.fail("changed_input", "nodes left as they were", "a node that was written to", say)
    if answer["later"] != later:
        t.given += "; then, once each node has the op and the line of another one"
        say = "The first text was right. Which part of it do you not read from the nodes again?"
        t.fail("kept", repr(later), show(answer["later"]), say)


def check_middle(t: Tester, got: str, names: list[str], expected: str, middle: str) -> None:
    """Fail and say what is wrong in a path that had to be shortened."""
    if got == " -> ".join(names):
        say = f"This path has {len(names)} entries. Of how many are all of them shown, at most?"
        t.fail("not_shortened", expected, repr(got)[:200], say)
    if " more ..." in got and middle not in got:
        say = f"This path has {len(names)} entries, and 8 of them are shown. How many are not?"
        t.fail("count", expected, repr(got), say)


@explain_cycle.check(points=1)
def short(t: Tester) -> None:
    """It names operation and line of each entry, for paths of 2 to 8 entries."""
    for n in (1, 2, 4, 7):
        ops = [str(op) for op in t.fixed.choice(OPS, n, replace=False)]
        lines = [LINES[k % 4].format(t.fixed.integers(1, 99)) for k in range(n)]
        if n in (2, 4):
            lines[int(t.fixed.integers(n))] = ""
        if n == 7:  # else the message would be all line numbers
            lines[2:] = [""] * 5
        check_text(t, ops, lines, given_path(ops, lines))
    for op, line in zip(OPS, LINES, strict=False):
        check_text(t, [op], [line.format(7, 9)], given_path([op], [line.format(7, 9)]))
    for op in OPS[len(LINES) :]:
        check_text(t, [op], [""], given_path([op], [""]))


@explain_cycle.check(points=1)
def long(t: Tester) -> None:
    """It leaves out the middle of a path of more than 8 entries."""
    for n in (8, 9, int(t.fixed.integers(20, 60)), 12_345):
        ops = [str(op) for op in t.fixed.choice(OPS, n)]
        check_text(t, ops, [""] * n, given_path(ops, [""] * n))
        lines = [f"rnn.py:{k + 1}" for k in range(n)]
        check_text(t, ops, lines, given_path(ops, lines))


def given_path(ops: list[str], lines: list[str]) -> str:
    """Return the call as messages show it."""
    names = [
        f'{op} with line "{line}"' if line else op for op, line in zip(ops, lines, strict=True)
    ]
    if len(names) > 9:
        names = [*names[:4], "…", *names[-4:]]
    nodes = ", ".join([*names, f"the first, {ops[0]}, again"])
    return f"explain_cycle of {len(ops) + 1} entries: {nodes}"
