"""Proves that the checks can fail: `python -m minigrad.course.prove [--seeds N] [LESSON ...]`.

For each exercise and seed: the stub must get no points, every mutant must fail with the message
meant for it, and the solution must get full marks. Prints a table; exit code 1 if one survives.

With --mechanical the mutants are made by operators on the solutions (`course.mechanical`). Each
must fail, or stand in `tests/mutants/equivalent.toml` with the reason why it is no mistake.
--tenth K takes every tenth of them; --write writes `docs/generated/mutants.md`.
"""

from __future__ import annotations

import argparse
import functools
import sys
import tomllib
import zlib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from minigrad.course.mechanical import Broken, broken
from minigrad.course.mutants import grade_source, message_key, run_mutants, survives
from minigrad.course.stubs import cut
from minigrad.grader.folder import find_stem, known_stems, load_lesson
from minigrad.grader.launcher import GraderError, Server

MISSED = "(survived)"  # no message has this key
SEED = 11


def prove_lesson(server: Server, root: Path, stem: str, seeds: range) -> tuple[list[str], int]:
    """Return the lines of the table for one lesson, and how many things went wrong."""
    solution = solution_of(root, stem)
    stub = cut(solution, f"solutions/{stem}.py")
    names = list(load_lesson(stem).exercises)
    counts = {name: Counter() for name in names}
    wrong: list[str] = []
    for seed in seeds:
        for name in names:
            if grade_source(server, stem, name, stub, seed).points:
                wrong.append(f"  the stub of {name} gets points (seed {seed})")
            if not grade_source(server, stem, name, solution, seed).passed:
                wrong.append(f"  the solution of {name} fails (seed {seed})")
        for mutant, result in run_mutants(server, root, stem, seed):
            key = message_key(result)
            if key == mutant.key:
                counts[mutant.exercise][key] += 1
            else:
                wrong.append(
                    f"  a mutant of {mutant.exercise}, meant for {mutant.key}, "
                    f"gets {key or 'full marks'} (seed {seed})"
                )
                counts[mutant.exercise][MISSED] += 1
    lines = []
    for name, keys in counts.items():
        total = keys.total() // len(seeds)
        killed = (keys.total() - keys[MISSED]) // len(seeds)
        by = ", ".join(
            f"{key} {n // len(seeds)}" if n > len(seeds) else key
            for key, n in sorted(keys.items())
            if key != MISSED
        )
        lines.append(f"{stem[:2]}.{name:<26}{total:>8}{killed:>8}  {by}")
    return lines + wrong, len(wrong)


def solution_of(root: Path, stem: str) -> str:
    """Return the text of a lesson's solution."""
    return (root / "solutions" / f"{stem}.py").read_text(encoding="utf-8")


# ---- mechanical mutants ---------------------------------------------------------------------


def made(root: Path, stem: str, tenth: int | None = None) -> Iterator[Broken]:
    """Yield the mechanical mutants of a lesson, or those of one tenth."""
    for one in broken(solution_of(root, stem), list(load_lesson(stem).exercises)):
        number = zlib.crc32(f"{one.exercise} {one.operator} {one.change}".encode())
        if tenth is None or number % 10 == tenth:
            yield one


def equivalents(root: Path) -> dict[tuple[str, str], str]:
    """Return the reason for each (exercise, change) that breaks nothing that is promised."""
    text = (root / "tests" / "mutants" / "equivalent.toml").read_text(encoding="utf-8")
    return {
        (name, change): reason
        for name, reasons in tomllib.loads(text).items()
        for reason, found in reasons.items()
        for change in found
    }


def survivors(root: Path, tenth: int | None, stem: str) -> list[str]:
    """Return a line for each mutant of a lesson: name, operator, change and verdict, by tabs."""
    known = equivalents(root)
    lines = []
    with Server() as server:
        for one in made(root, stem, tenth):
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
            lines.append("\t".join((name, one.operator, one.change, verdict)))
    return lines


def prove_mechanical(root: Path, stems: list[str], tenth: int | None) -> tuple[list[str], int]:
    """Return the table of the mechanical mutants, and how many things are wrong."""
    with ProcessPoolExecutor(2) as pool:
        rows = [
            line.split("\t")
            for lines in pool.map(functools.partial(survivors, root, tenth), stems)
            for line in lines
        ]
    counts: dict[str, Counter[str]] = {}
    for name, _, _, verdict in rows:
        counts.setdefault(name, Counter())[verdict] += 1
    wrong = [row for row in rows if row[3].isupper()]
    table = ["| exercise | mutants | killed | equivalent |", "|---|---:|---:|---:|"]
    for name, found in counts.items():
        entries = (name, found.total(), found["killed"], found["equivalent"])
        table.append("| " + " | ".join(map(str, entries)) + " |")
    total = sum(counts.values(), Counter())
    sums = (total.total(), total["killed"], total["equivalent"])
    table.append("| **together** | " + " | ".join(f"**{n}**" for n in sums) + " |")
    said = [f"  {name}: {verdict}: {what}: {change}" for name, what, change, verdict in wrong]
    return [*table, *said], len(wrong)


def page(root: Path, table: list[str]) -> str:
    """Return the page of mechanical mutants: the table, and each reason."""
    head = (
        "# Mechanical mutants\n\n"
        "Each solution was broken at one place after another (`minigrad/course/mechanical.py`),\n"
        "and graded. *Killed*: a check refused it. *Equivalent*: it breaks nothing that the\n"
        "docstring promises, for the reason below. None survived.\n"
        "`python -m minigrad.course.prove --mechanical --write` makes this page.\n"
    )
    reasons: dict[tuple[str, str], list[str]] = {}
    for (name, change), reason in equivalents(root).items():
        reasons.setdefault((name, reason), []).append(f"`{change}`")
    listed = [
        f"- **{name}**: {reason} {'; '.join(found)}" for (name, reason), found in reasons.items()
    ]
    return "\n".join([head, *table, "", "## Equivalent, and why", "", *listed]) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m minigrad.course.prove",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("lessons", nargs="*", help="such as 00 (default: all)")
    parser.add_argument("--seeds", type=int, default=2, help="how many seeds (default: 2)")
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="the repository's folder")
    parser.add_argument("--mechanical", action="store_true", help="mutants made by operators")
    parser.add_argument("--tenth", type=int, help="only this tenth of them, 0 to 9")
    parser.add_argument("--write", action="store_true", help="write docs/generated/mutants.md")
    options = parser.parse_args(arguments)
    stems = [find_stem(name) for name in options.lessons] or known_stems()
    failures = 0
    if options.mechanical:
        lines, failures = prove_mechanical(options.root, stems, options.tenth)
        sys.stdout.write("\n".join(lines) + "\n")
        if options.write and not failures:
            target = options.root / "docs" / "generated" / "mutants.md"
            target.write_text(page(options.root, lines), encoding="utf-8")
    else:
        sys.stdout.write(f"{'function':<29}{'mutants':>8}{'killed':>8}  by the message\n")
        with Server() as server:
            for stem in stems:
                lines, n_wrong = prove_lesson(server, options.root, stem, range(options.seeds))
                failures += n_wrong
                sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.write(f"{failures} survived\n" if failures else "none survived\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
