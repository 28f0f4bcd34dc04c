"""Notes of the ranks in a folder: their last calls, and how each has ended.

`minigrad run` makes the folder. A process that is killed says nothing more; its note is there.
"""

import json
import mmap
import os
from pathlib import Path
from typing import NamedTuple

from minigrad.distributed.supervisor import DIED, ENDED, FOLDER, PROCESS

SIZE = 512  # bytes of the note of a call

_open: dict[int, mmap.mmap] = {}


class End(NamedTuple):
    """How a rank has ended badly. when: in ns. ranks: those that it holds at fault."""

    when: int
    text: str
    ranks: tuple = ()


def note_joined(rank):
    """Note that a rank has joined the others, if there is a folder of notes."""
    _note(rank, "")


def note_call(rank, head):
    """Note that a rank begins a call."""
    _note(rank, f"call {head.number}, {head}")


def _note(rank, text):
    folder = os.environ.get(FOLDER)
    if not folder:
        return
    if rank not in _open:
        path = Path(folder, f"{rank}")
        path.write_bytes(bytes(SIZE))
        with path.open("r+b") as file:
            _open[rank] = mmap.mmap(file.fileno(), SIZE)
    _open[rank][:] = text.encode()[:SIZE].ljust(SIZE, b"\0")


def calls_of(folder):
    """Return {rank that has joined: its last call in words, "" before the first one}."""
    calls = {
        int(path.name): path.read_bytes().rstrip(b"\0").decode(errors="ignore")
        for path in Path(folder).iterdir()
        if path.name.isdigit()
    }
    return dict(sorted(calls.items()))


def processes(folder):
    """Return {rank: the number of its process}."""
    return {rank: int(path.read_text()) for rank, path in _notes(folder, PROCESS)}


def died(folder):
    """Return {rank: how it died, such as 'was killed by SIGKILL'}."""
    return {rank: path.read_text() for rank, path in _notes(folder, DIED)}


def ends(folder):
    """Return {rank that has ended badly: its End}."""
    end_of = {}
    for rank, path in _notes(folder, DIED):
        end_of[rank] = End(path.stat().st_mtime_ns, path.read_text().removeprefix("was "))
    for rank, path in _notes(folder, ENDED):
        told = json.loads(path.read_text(encoding="utf-8"))
        end_of[rank] = End(path.stat().st_mtime_ns, told["text"], tuple(told["ranks"]))
    return end_of


def _notes(folder, kind):
    """Return [(rank, path)] of one kind of notes, by rank."""
    return sorted((int(p.name.removesuffix(kind)), p) for p in Path(folder).glob(f"*{kind}"))
