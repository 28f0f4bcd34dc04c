"""Notes of the ranks in a folder: their last calls, and how a rank died.

`minigrad run` makes the folder. A process that is killed says nothing more; its note is there.
"""

import mmap
import os
from pathlib import Path

from minigrad.distributed.supervisor import DIED, FOLDER

SIZE = 512  # bytes of the note of a call: the process, then the call

_open: dict[int, mmap.mmap] = {}


def note_call(rank, head):
    """Note that a rank begins a call, if there is a folder of notes."""
    folder = os.environ.get(FOLDER)
    if not folder:
        return
    if rank not in _open:
        path = Path(folder, f"{rank}")
        path.write_bytes(bytes(SIZE))
        with path.open("r+b") as file:
            _open[rank] = mmap.mmap(file.fileno(), SIZE)
    text = f"{os.getpid()}\ncall {head.number}, {head}".encode()[:SIZE]
    _open[rank][:] = text.ljust(SIZE, b"\0")


def calls_of(folder):
    """Return {rank: (process, its last call in words)}."""
    found = {}
    for path in Path(folder).iterdir():
        if path.name.isdigit():
            process, _, call = (
                path.read_bytes().rstrip(b"\0").decode(errors="ignore").partition("\n")
            )
            found[int(path.name)] = int(process or 0), call
    return dict(sorted(found.items()))


def died(folder):
    """Return {rank: how it died, such as 'was killed by SIGKILL'}."""
    found = {
        int(path.name.removesuffix(DIED)): path.read_text()
        for path in Path(folder).glob(f"*{DIED}")
    }
    return dict(sorted(found.items()))
