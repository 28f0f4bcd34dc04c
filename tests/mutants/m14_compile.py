"""Wrong solutions of lesson 14 that people really write."""

from pathlib import Path

from minigrad.course.mutants import Mutant

SOLUTION = (Path(__file__).parents[2] / "solutions" / "14_compile.py").read_text(encoding="utf-8")


def changed(head: str, *changes: tuple[str, str]) -> str:
    """Return the solution's text from `head` to the next definition, with pieces replaced."""
    start = SOLUTION.index(head)
    ends = [SOLUTION.find(mark, start + 1) for mark in ("\n\n\nclass ", "\n\n\ndef ", "\n\n\n# ")]
    text = SOLUTION[start : min([end for end in ends if end > 0], default=None)]
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


TRACER, TRACE = "class Tracer:", "def trace(f, inputs):"
DEAD, FUSE, JOIN = "def eliminate_dead(", "def fuse(", "def may_join("
ALIAS, DONATE, STEP = "def may_alias(", "def donate(", "def step_in_place("

RAISES = SOLUTION[SOLUTION.index("        raise TracedBranchError(") :].partition(
    "        ### END"
)[0]
REFUSALS = changed(DONATE).partition("    for i in donated:\n")[2].partition("        same_size")[0]
PLACES = """\
    if (
        i in program.ops[written].inputs
        and not program.ops[written].is_elementwise
    ):
        return False
"""
LATE = "not any(i in op.inputs for op in program.ops[written + 1 :])"
LAST = """\
last = max(
            (place[x] for x in op.inputs if x in place), default=None
        )"""
WALK = "    for op in reversed"
WHY = "TAKEN if possible else STILL_READ if same_size else NO_SIZE"
POSSIBLE = "possible = [o for o in same_size if may_alias(program, i, o)]"
UPDATE = "    w2 -= learning_rate * v2  # J: the new w2\n"
BACK = "    dh = d @ w2_turned  # K: back through the second layer\n"
COPIED = (
    "w2_turned = w2.T  # A: w2 as the backward pass needs it",
    "w2_turned = w2.T.copy()",
)

MUTANTS = [
    Mutant(
        "trace",
        "did_not_raise",
        changed(
            TRACER, (RAISES, "        return TracedBranchError(self.name)\n"), ("__bool__", "truth")
        ),
    ),
    Mutant(
        "trace",
        "another_error",
        changed(TRACER, (RAISES, "        raise TypeError('no truth while tracing')\n")),
    ),
    Mutant(
        "trace",
        "text",
        changed(TRACER, (RAISES, "        raise TracedBranchError('no truth while tracing')\n")),
    ),
    Mutant(
        "trace",
        "holds_tracers",
        changed(
            TRACER,
            ("Op(op, inputs, name)", "Op(op, operands, name)"),
        ),
    ),
    Mutant("trace", "same_name", changed(TRACER, ('f"t{len(self.tape)}"', "op"))),
    Mutant(
        "trace",
        "value",
        changed(TRACER, ("Op(op, inputs, name)", "Op(op, tuple(sorted(inputs, key=str)), name)")),
    ),
    Mutant(
        "trace",
        "changed_input",
        changed(TRACE, ("dict(inputs)", "inputs")),
    ),
    Mutant(
        "trace",
        "outputs",
        changed(TRACE, ("tuple(result.name for result in results)", "(tape[-1].output,)")),
    ),
    Mutant(
        "trace",
        "calls",
        changed(
            TRACE,
            (
                "    if not isinstance(results, tuple):",
                "    tape.clear()\n"
                "    results = f(*(Tracer(tape, shapes, name) for name in inputs))\n"
                "    if not isinstance(results, tuple):",
            ),
        ),
    ),
    Mutant(
        "trace",
        "ops",
        changed(TRACER, ("        self.tape.append(", "        self.tape.insert(0, ")),
    ),
    Mutant(
        "eliminate_dead",
        "kept_chain",
        changed(
            DEAD,
            (
                WALK,
                "    needed |= {x for op in program.ops for x in op.inputs}\n" + WALK,
            ),
        ),
    ),
    Mutant(
        "eliminate_dead",
        "dropped_live",
        changed(DEAD, ("            needed.update(op.inputs)\n", "")),
    ),
    Mutant(
        "eliminate_dead",
        "dropped_live",
        changed(
            DEAD,
            ("set(program.outputs)", "set(program.outputs[-1:])"),
        ),
    ),
    Mutant(
        "eliminate_dead",
        "dropped_live",
        changed(DEAD, ("in reversed(program.ops)", "in program.ops"), ("reversed(kept)", "kept")),
    ),
    Mutant("eliminate_dead", "order", changed(DEAD, ("tuple(reversed(kept))", "tuple(kept)"))),
    Mutant(
        "eliminate_dead",
        "inputs",
        changed(DEAD, ("program.inputs,\n", "tuple(x for x in program.inputs if x in needed),\n")),
    ),
    Mutant(
        "eliminate_dead",
        "changed",
        changed(
            DEAD,
            (
                "    return Program(",
                "    for op in program.ops:\n"
                "        if op not in kept:\n"
                "            del program.shapes[op.output]\n"
                "    return Program(",
            ),
        ),
    ),
    Mutant(
        "eliminate_dead",
        "kept_dead",
        changed(DEAD, ("if op.output in needed:", "if op.output in needed or len(op.inputs) < 2:")),
    ),
    Mutant("fuse", "too_many", "def fuse(program):\n    return [[op] for op in program.ops]"),
    Mutant("fuse", "not_complete", changed(JOIN, ("other.is_elementwise", "True"))),
    Mutant(
        "fuse",
        "too_early",
        changed(FUSE, (LAST, "last = place.get(op.inputs[0])")),
    ),
    Mutant("fuse", "too_early", changed(FUSE, ("last = max(", "last = min("))),
    Mutant(
        "fuse",
        "loops",
        changed(JOIN, (" or loop != program.loop(group[0])", "")),
    ),
    Mutant(
        "fuse",
        "alone",
        changed(
            JOIN,
            ("loop is None or loop != program.loop(group[0])", "program.loop(group[0]) is None"),
        ),
    ),
    Mutant(
        "fuse",
        "too_many",
        changed(JOIN, ("loop is None", "not op.is_elementwise")),
    ),
    Mutant(
        "fuse",
        "too_many",
        changed(
            FUSE,
            (
                LAST,
                "last = len(groups) - 1 if groups else None",
            ),
        ),
    ),
    Mutant(
        "fuse",
        "lost",
        changed(
            FUSE,
            (
                "        if last is None or not may_join",
                "        if last is None:\n            continue\n        if not may_join",
            ),
        ),
    ),
    Mutant("may_alias", "size", changed(ALIAS, ("program.nbytes(i) != program.nbytes(o) or ", ""))),
    Mutant(
        "may_alias",
        "shape",
        changed(
            ALIAS,
            ("program.nbytes(i) != program.nbytes(o)", "program.shapes[i] != program.shapes[o]"),
        ),
    ),
    Mutant("may_alias", "returned", changed(ALIAS, (" or i in program.outputs", ""))),
    Mutant("may_alias", "later", changed(ALIAS, (LATE, "True"))),
    Mutant("may_alias", "place", changed(ALIAS, (PLACES, ""))),
    Mutant("may_alias", "same_place", changed(ALIAS, ("written + 1 :", "written:"))),
    Mutant(
        "may_alias",
        "strict",
        changed(ALIAS, ("program.ops[written + 1 :]", "program.ops[:written]")),
    ),
    Mutant(
        "may_alias",
        "unread",
        changed(ALIAS, (LATE, LATE + " and any(i in op.inputs for op in program.ops)")),
    ),
    Mutant(
        "may_alias",
        "type",
        changed(ALIAS, ("return not any", "return 'yes' if not any"), ("1 :])", "1 :]) else ''")),
    ),
    Mutant(
        "donate",
        "double",
        changed(DONATE, ("taken[free[0]] = i", "taken.update(dict.fromkeys(free, i))")),
    ),
    Mutant(
        "donate",
        "silent",
        changed(DONATE, ("free = [o for o in possible if o not in taken]", "free = possible")),
    ),
    Mutant(
        "donate",
        "unsafe",
        changed(DONATE, (POSSIBLE, "possible = same_size")),
    ),
    Mutant("donate", "direction", changed(DONATE, ("taken[free[0]] = i", "taken[i] = free[0]"))),
    Mutant("donate", "did_not_raise", changed(DONATE, (REFUSALS, ""))),
    Mutant(
        "donate",
        "reason",
        changed(DONATE, ("TAKEN if possible else ", "")),
    ),
    Mutant(
        "donate",
        "silent",
        changed(DONATE, ("refused[i] = (\n                " + WHY + "\n            )", "pass")),
    ),
    Mutant("donate", "order", changed(DONATE, ("taken[free[0]] = i", "taken[free[-1]] = i"))),
    Mutant(
        "donate",
        "missed",
        changed(DONATE, ("        if free:", "        if possible and possible[0] not in taken:")),
    ),
    Mutant(
        "donate", "text", changed(DONATE, ('f"{i} is donated twice', '"an input is donated twice'))
    ),
    Mutant("step_in_place", "form", 'BUG = {"value": "w2_turned", "written": "J", "read": "K"}'),
    Mutant("step_in_place", "not_it", 'BUG = {"value": "v2", "written": "I", "read": "J"}'),
    Mutant("step_in_place", "not_it", 'BUG = {"value": "w2", "written": "J", "read": "A"}'),
    Mutant("step_in_place", "untouched", 'BUG = {"value": "w2", "written": "J", "read": None}'),
    Mutant("step_in_place", "late", changed(STEP, (BACK, ""), (UPDATE, UPDATE + BACK))),
    Mutant(
        "step_in_place",
        "late",
        changed(STEP, (BACK, ""), (UPDATE, UPDATE + BACK.replace("w2_turned", "w2.T"))),
    ),
    Mutant("step_in_place", "copied", changed(STEP, COPIED)),
    Mutant(
        "step_in_place",
        "moved",
        changed(STEP, (UPDATE, UPDATE.replace("w2 -= ", "w2 = w2 - "))),
    ),
    Mutant(
        "step_in_place",
        "value",
        changed(
            STEP, ("    v2 += h.T @ d  # I\n", ""), (UPDATE, UPDATE + "    v2 += h.T @ d  # I\n")
        ),
    ),
]
