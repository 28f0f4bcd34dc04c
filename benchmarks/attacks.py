"""What each boundary around a file holds: `python -m benchmarks.attacks` writes results/attacks.md.

Each attack that gets around the audit hook (`tests/grader/attacks.py`) is graded behind the hook
alone, behind walls, in a jail without walls, and behind both. It scores where what it tries works,
as it has the right answer then; it does harm where a file outside is not as it was, or the grading
process is gone.
"""

from __future__ import annotations

import ctypes
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.machine import describe, in_words
from benchmarks.tables import publish
from minigrad.cli import strangers
from minigrad.grader import launcher
from minigrad.grader.folder import GraderError, load_lesson
from minigrad.grader.jail import hindrance
from minigrad.grader.launcher import Server
from minigrad.grader.run import Submission, grade_exercise
from tests.grader.attacks import AROUND, PLAIN

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).with_name("results") / "attacks.md"
LEFT = ROOT / "solutions" / "left_behind.txt"
TEXT = "the work of a week"
IPC_RMID = 0
WAYS = {
    "the hook alone": {"walled": False},
    "walls": {},
    "a jail": {"walled": False, "jailed": True},
    "walls in a jail": {"jailed": True},
}


def tried(name: str, server: Server, folder: Path) -> str:
    """Return what came of an attack, in words."""
    victim = folder / "classmate.py"
    victim.unlink(missing_ok=True)
    victim.write_text(TEXT)
    before = victim.stat()
    source = AROUND[name](PLAIN)
    places = {"victim": victim, "solutions": ROOT / "solutions", "package": ROOT / "minigrad"}
    for place, path in places.items():
        source = source.replace(f"{{{place}}}", str(path))
    exercise = load_lesson(PLAIN.stem).exercises[PLAIN.name]
    said = []
    try:
        result = grade_exercise(
            server, exercise, Submission(ROOT / "exercises" / "x.py", source), 3
        )
        said += ["scores"] * bool(result.points)
    except GraderError:
        said.append("ends the grader")
    said += ["harm"] * (LEFT.exists() or not is_whole(victim, before))
    LEFT.unlink(missing_ok=True)
    forget_memory()
    return ", ".join(said) or "–"


def is_whole(victim: Path, before) -> bool:
    """Whether a file has its text, its rights and its times."""
    if not victim.exists():
        return False
    after = victim.stat()
    kept = (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
    victim.chmod(0o600)
    return kept and victim.read_text() == TEXT


def forget_memory() -> None:
    """Remove the shared memory that an attack may have left."""
    libc = ctypes.CDLL(None)
    place = libc.shmget(77, 0, 0)
    if place >= 0:
        libc.shmctl(place, IPC_RMID, None)


def main() -> int:
    """Try all, write the table, print it."""
    if why := hindrance():
        raise SystemExit(f"no jail can be made here: {why}")
    launcher.PATIENCE_SECONDS = 5.0  # one stops its fork server, whose answer is not waited for
    found: dict[str, list[str]] = {name: [] for name in AROUND}
    with tempfile.TemporaryDirectory() as folder, strangers.kernels_for(None) as kernels:
        for options in WAYS.values():
            for name in AROUND:
                with Server(kernels=kernels, **options) as server:  # one may end it
                    found[name].append(tried(name, server, Path(folder)))
    lines = [f"| attack | {' | '.join(WAYS)} |", "|---|" + "---|" * len(WAYS)]
    lines += [f"| {name} | {' | '.join(cells)} |" for name, cells in found.items()]
    totals = [Counter(word for cell in column for word in cell.split(", ")) for column in
              zip(*found.values(), strict=True)]  # fmt: skip
    lines.append(
        f"| **{len(AROUND)} in all: score / do harm** | "
        + " | ".join(
            f"**{one['scores']} / {one['harm'] + one['ends the grader']}**" for one in totals
        )
        + " |"
    )
    note = f"{in_words(describe())}. Made by `python -m benchmarks.attacks`."
    publish(RESULTS, lines, note)
    return 0


if __name__ == "__main__":
    sys.exit(main())
