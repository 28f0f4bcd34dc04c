"""How good the messages are: wrong answers, each repaired once by someone who saw the message only.

    python -m tests.repairs.cases write FOLDER [--seed N]    22 cases, each a folder of three files
    python -m tests.repairs.cases write FOLDER --lesson 13 --cases 20       cases of one lesson
    python -m tests.repairs.cases grade FOLDER               the table of what was repaired

A case is a random mutant: `stub.py` (the exercise file as it comes), `wrong.py` (what was
written) and `message.txt` (what the check says). Whoever repairs it writes `repaired.py`, once,
before anything is graded. `tests/repairs/answers` keeps those files, as NAME.txt: of cases spread
over the lessons, and in `lesson_13` of cases of that lesson alone. A test grades them again.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

from minigrad.course.mutants import Mutant, grade_source, load_mutants
from minigrad.course.stubs import cut
from minigrad.grader.folder import find_stem, known_stems
from minigrad.grader.launcher import Server

ROOT = Path(__file__).parents[2]
ANSWERS = Path(__file__).with_name("answers")
N_CASES = 22
SEED = 7


def solution_of(stem: str) -> str:
    """Return the text of a lesson's solutions."""
    return (ROOT / "solutions" / f"{stem}.py").read_text(encoding="utf-8")


def choose(seed: int, n: int = N_CASES, lesson: str = "") -> list[tuple[str, Mutant]]:
    """Return n random mutants, spread over the lessons, no two of one exercise and message."""
    draw = random.Random(seed)
    stems = [find_stem(lesson)] if lesson else known_stems()
    decks = {stem: load_mutants(ROOT, stem) for stem in stems}
    for deck in decks.values():
        draw.shuffle(deck)
    chosen: list[tuple[str, Mutant]] = []
    seen = set()
    while len(chosen) < n and any(decks.values()):
        for stem, deck in decks.items():
            while deck and (stem, deck[-1].exercise, deck[-1].key) in seen:
                deck.pop()
            if deck and len(chosen) < n:
                mutant = deck.pop()
                seen.add((stem, mutant.exercise, mutant.key))
                chosen.append((stem, mutant))
    return sorted(chosen, key=lambda case: case[0])


def write(folder: Path, seed: int, n: int = N_CASES, lesson: str = "") -> None:
    """Write the cases."""
    with Server() as server:
        for number, (stem, mutant) in enumerate(choose(seed, n, lesson), 1):
            case = folder / f"{number:02d}_{stem}__{mutant.exercise}"
            case.mkdir(parents=True)
            source = f"{solution_of(stem)}\n\n{mutant.code.strip()}\n"
            result = grade_source(server, stem, mutant.exercise, source, seed)
            failure = result.first_failure
            said = str(failure.message) if failure else "full marks"
            (case / "stub.py").write_text(cut(solution_of(stem), stem), encoding="utf-8")
            wrong = [line for line in mutant.code.strip().splitlines() if "###" not in line]
            (case / "wrong.py").write_text("\n".join(wrong) + "\n", encoding="utf-8")
            (case / "message.txt").write_text(said + "\n", encoding="utf-8")


def grade(folder: Path, seed: int) -> list[tuple[str, bool, str]]:
    """Return per case its name, whether its repair gets full marks, and what is said if not."""
    rows = []
    with Server() as server:
        for path in sorted(folder.glob("*/repaired.py")) or sorted(folder.glob("*.txt")):
            name = path.parent.name if path.name == "repaired.py" else path.stem
            stem, _, exercise = name[3:].partition("__")
            source = f"{solution_of(stem)}\n\n{path.read_text(encoding='utf-8').strip()}\n"
            result = grade_source(server, stem, exercise, source, seed)
            failure = result.first_failure
            said = str(failure.message) if failure and failure.message else ""
            rows.append((name, result.passed, said))
    return rows


def main() -> int:
    """Write or grade, as the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=("write", "grade"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--lesson", default="", help="cases of this lesson alone, such as 13")
    parser.add_argument("--cases", type=int, default=N_CASES)
    options = parser.parse_args()
    if options.what == "write":
        write(options.folder, options.seed, options.cases, options.lesson)
        return 0
    rows = grade(options.folder, options.seed)
    for name, repaired, said in rows:
        sys.stdout.write(f"{'repaired' if repaired else 'NOT REPAIRED':<14}{name}\n")
        if said:
            sys.stdout.write("".join(f"    {line}\n" for line in said.splitlines()))
    sys.stdout.write(f"{sum(ok for _, ok, _ in rows)} of {len(rows)} at the first try\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
