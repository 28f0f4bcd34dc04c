"""Proves that the checks can fail: `python -m minigrad.course.prove [--seeds N] [LESSON ...]`.

For each exercise and seed: the stub must get no points, every mutant must fail with the message
meant for it, and the solution must get full marks. Prints a table; exit code 1 if one survives.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from minigrad.course.mutants import grade_source, message_key, run_mutants
from minigrad.course.stubs import cut
from minigrad.grader.folder import find_stem, known_stems, load_lesson
from minigrad.grader.launcher import Server

MISSED = "(survived)"  # no message has this key


def prove_lesson(server: Server, root: Path, stem: str, seeds: range) -> tuple[list[str], int]:
    """Return the lines of the table for one lesson, and how many things went wrong."""
    solution = (root / "solutions" / f"{stem}.py").read_text(encoding="utf-8")
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
    options = parser.parse_args(arguments)
    stems = [find_stem(name) for name in options.lessons] or known_stems()
    failures = 0
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
