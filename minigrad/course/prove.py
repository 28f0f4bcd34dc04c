"""Proves that the checks can fail: `python -m minigrad.course.prove [NAME ...]`.

A name is a lesson, such as 04, or an exercise, such as 04.unbroadcast; without one, all are proved.
By mistakes: the stub must get no points, the solution full marks, and each wrong solution that
people really write (`course.mutants`) the message meant for it, with each seed. By mechanical
mutants: each change that operators make of the solution (`course.mechanical`) must fail, or stand
in `tests/mutants/equivalent.toml` with the reason why it is no mistake. Prints a table of each;
exit code 1 if one survives.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing.util
import os
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from minigrad.course.mechanical import Broken, broken
from minigrad.course.mutants import grade_source, load_mutants, message_key, survives
from minigrad.course.stubs import cut
from minigrad.grader.folder import find_stem, known_stems, load_lesson
from minigrad.grader.launcher import GraderError, Server, shared_server

MISSED = "(survived)"  # a key that no message has
SEED = 11
PROOFS = ("mistakes", "mechanical")
MANY = 6  # mechanical mutants per task of a process


def solution_of(root: Path, stem: str) -> str:
    """Return the text of a lesson's solution."""
    return (root / "solutions" / f"{stem}.py").read_text(encoding="utf-8")


def asked_for(names: list[str]) -> dict[str, list[str]]:
    """Return {stem: its exercises} for names such as 04 and 04.unbroadcast, or for all."""
    chosen: dict[str, list[str]] = {}
    for name in names or known_stems():
        lesson, _, exercise = name.partition(".")
        stem = find_stem(lesson)
        known = list(load_lesson(stem).exercises)
        if exercise and exercise not in known:
            sys.exit(
                f"Lesson {lesson} has no exercise {exercise!r}; it has {', '.join(known)}. "
                "Does the __init__.py of the lesson's package import it?"
            )
        chosen[stem] = [*chosen.get(stem, []), *([exercise] if exercise else known)]
    return chosen


# ---- mistakes that people make --------------------------------------------------------------


def verdicts(server: Server, root: Path, stem: str, name: str, seed: int) -> Iterator[list[str]]:
    """Yield [exercise, key of the message, what is wrong] for each mistake.

    Yield the stub and the solution only if they are graded wrong.
    """
    label, solution = f"{stem[:2]}.{name}", solution_of(root, stem)
    if grade_source(server, stem, name, cut(solution, f"solutions/{stem}.py"), seed).points:
        yield [label, "", f"the stub gets points (seed {seed})"]
    if not grade_source(server, stem, name, solution, seed).passed:
        yield [label, "", f"the solution fails (seed {seed})"]
    for mutant in load_mutants(root, stem):
        if mutant.exercise == name:
            source = f"{solution}\n\n{mutant.code.strip()}\n"
            key = message_key(grade_source(server, stem, name, source, seed, briefly=True))
            said = f"a mutant meant for {mutant.key} gets {key or 'full marks'} (seed {seed})"
            yield [label, mutant.key, ""] if key == mutant.key else [label, MISSED, said]


def table_of_mistakes(rows: list[list[str]], n_seeds: int) -> tuple[list[str], list[str]]:
    """Return the lines of a table, and what is wrong."""
    counts: dict[str, Counter[str]] = {}
    for label, key, _ in rows:
        counts.setdefault(label, Counter()).update([key] if key else [])
    lines = []
    for label, keys in counts.items():
        total = keys.total() // n_seeds
        killed = (keys.total() - keys[MISSED]) // n_seeds
        by = ", ".join(
            f"{key} {n // n_seeds}" if n > n_seeds else key
            for key, n in sorted(keys.items())
            if key != MISSED
        )
        lines.append(f"{label:<29}{total:>8}{killed:>8}  {by}")
    return lines, [f"  {label}: {said}" for label, _, said in rows if said]


# ---- mechanical mutants ---------------------------------------------------------------------


def made(root: Path, stem: str, names: list[str]) -> list[Broken]:
    """Return the mechanical mutants of these exercises of a lesson.

    Makes those of all exercises, since a helper belongs to the exercise that follows it. Open
    exercises have none: a network with one unit more breaks no promise.
    """
    exercises = load_lesson(stem).exercises
    every = broken(solution_of(root, stem), list(exercises))
    return [one for one in every if one.exercise in names and not exercises[one.exercise].is_open]


def equivalents(root: Path) -> dict[tuple[str, str], str]:
    """Return the reason for each (exercise, change) that breaks no promise."""
    text = (root / "tests" / "mutants" / "equivalent.toml").read_text(encoding="utf-8")
    return {
        (name, change): reason
        for name, reasons in tomllib.loads(text).items()
        for reason, listed in reasons.items()
        for change in listed
    }


def survivors(server: Server, root: Path, stem: str, mutants: list[Broken]) -> Iterator[list[str]]:
    """Yield [exercise, operator, change, verdict] for each mutant; a bad verdict in capitals."""
    known = equivalents(root)
    for one in mutants:
        name = f"{stem[:2]}.{one.exercise}"
        is_known = (name, one.change) in known
        try:
            lives = survives(server, stem, one.exercise, one.source, SEED)
        except GraderError as error:
            verdict = f"BROKE THE CHECK: {error}".upper()
        else:
            verdict = ("equivalent" if is_known else "SURVIVED") if lives else "killed"
            if is_known and not lives:
                verdict = "NOT EQUIVALENT"
        yield [name, one.operator, one.change, verdict]


Counts = dict[str, tuple[int, int, int]]  # {exercise: mutants, killed, equivalent}


def counts_of(rows: list[list[str]]) -> Counts:
    """Return the counts of verdicts for each exercise."""
    counts: dict[str, Counter[str]] = {}
    for name, _, _, verdict in rows:
        counts.setdefault(name, Counter())[verdict] += 1
    return {n: (c.total(), c["killed"], c["equivalent"]) for n, c in counts.items()}


def counts_on(text: str) -> Counts:
    """Return the counts that a page of mechanical mutants tells."""
    rows = re.findall(r"^\| (\d\d\.\w+) \| (\d+) \| (\d+) \| (\d+) \|$", text, flags=re.MULTILINE)
    return {name: (int(n), int(killed), int(same)) for name, n, killed, same in rows}


def table_of(counts: Counts) -> list[str]:
    """Return the lines of a table of mechanical mutants."""
    table = ["| exercise | mutants | killed | equivalent |", "|---|---:|---:|---:|"]
    table += [f"| {name} | {' | '.join(map(str, n))} |" for name, n in counts.items()]
    sums = " | ".join(f"**{sum(column)}**" for column in zip(*counts.values(), strict=True))
    return [*table, f"| **together** | {sums} |"]


def in_order(counts: Counts) -> Counts:
    """Return counts in the order of the course, without exercises that it no longer has."""
    known = (f"{stem[:2]}.{name}" for stem in known_stems() for name in load_lesson(stem).exercises)
    return {name: counts[name] for name in known if name in counts}


def page(root: Path, counts: Counts) -> str:
    """Return the page of mechanical mutants: the table and all reasons."""
    head = (
        "# Mechanical mutants\n\n"
        "Each solution was broken at one place after another (`minigrad/course/mechanical.py`),\n"
        "and graded. *Killed*: a check refused it. *Equivalent*: it breaks nothing that the\n"
        "docstring promises, for the reason below. None survived.\n"
        "`python -m minigrad.course.prove --by mechanical --write` makes this page. With names of\n"
        "exercises after it, it counts only these anew.\n"
    )
    reasons: dict[tuple[str, str], list[str]] = {}
    for (name, change), reason in equivalents(root).items():
        reasons.setdefault((name, reason), []).append(f"`{change}`")
    listed = [
        f"- **{name}**: {reason} {'; '.join(some)}" for (name, reason), some in reasons.items()
    ]
    return "\n".join([head, *table_of(counts), "", "## Equivalent, and why", "", *listed]) + "\n"


# ---- side by side ---------------------------------------------------------------------------


def begin() -> None:
    """Make a pool's process close its server at its end: `atexit` handlers do not run there."""
    multiprocessing.util.Finalize(None, shared_server().close, exitpriority=0)


def by_mistakes(root: Path, work: tuple[str, str, int]) -> list[list[str]]:
    """Return the verdicts for an exercise with a seed."""
    return list(verdicts(shared_server(), root, *work))


def by_mutants(root: Path, work: tuple[str, list[Broken]]) -> list[list[str]]:
    """Return the verdicts on some of a lesson's mechanical mutants."""
    return list(survivors(shared_server(), root, *work))


def side_by_side(
    pool: ProcessPoolExecutor, do: Callable[[Path, Any], list[list[str]]], root: Path, works: list
) -> list[list[str]]:
    """Return the rows of all works, in their order."""
    return [row for rows in pool.map(functools.partial(do, root), works) for row in rows]


def main(arguments: list[str] | None = None) -> int:
    """Print the tables; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m minigrad.course.prove",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as 00, or 00.slope")
    parser.add_argument("--seeds", type=int, default=2, help="how many seeds (default: 2)")
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="the repository's folder")
    parser.add_argument("--by", choices=PROOFS, help="by one of the two alone")
    parser.add_argument(
        "--write", action="store_true", help="write the counts to docs/generated/mutants.md"
    )
    options = parser.parse_args(arguments)
    asked, root = asked_for(options.names), options.root
    wrong: list[str] = []
    with ProcessPoolExecutor(os.cpu_count(), initializer=begin) as pool:
        if options.by != "mechanical":
            sys.stdout.write(f"{'function':<29}{'mutants':>8}{'killed':>8}  by the message\n")
            for stem, names in asked.items():
                works = [(stem, name, SEED + k) for name in names for k in range(options.seeds)]
                rows = side_by_side(pool, by_mistakes, root, works)
                lines, survived = table_of_mistakes(rows, options.seeds)
                sys.stdout.write("\n".join(lines + survived) + "\n")
                sys.stdout.flush()
                wrong += survived
        if options.by != "mistakes":
            shares = []
            for stem, names in asked.items():
                some = made(root, stem, names)
                shares += [(stem, some[k : k + MANY]) for k in range(0, len(some), MANY)]
            rows = side_by_side(pool, by_mutants, root, shares)
            survived = [
                f"  {n}: {v}: {what}: {change}" for n, what, change, v in rows if v.isupper()
            ]
            counts = counts_of(rows)
            sys.stdout.write("\n".join(table_of(counts) + survived) + "\n")
            wrong += survived
            if options.write and not survived:
                target = root / "docs" / "generated" / "mutants.md"
                known = counts_on(target.read_text(encoding="utf-8"))
                target.write_text(page(root, in_order(known | counts)), encoding="utf-8")
    sys.stdout.write(f"{len(wrong)} survived\n" if wrong else "none survived\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
