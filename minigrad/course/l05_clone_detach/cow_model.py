"""Models what copy-on-write must do: the check's own bookkeeping, with explicit owner counts."""

from __future__ import annotations

import numpy as np


class Model:
    """Buffers by name, each with the number of its memory."""

    def __init__(self, values: np.ndarray) -> None:
        self.memories = [values.copy()]
        self.where = {"a": 0}
        self.written: set[str] = set()
        self.dropped = False
        self.n_copies = 0

    def values(self) -> dict[str, np.ndarray]:
        """Return each buffer's values."""
        return {name: self.memories[place] for name, place in self.where.items()}

    def do(self, step: tuple) -> str:
        """Do one step; return the mistake that an extra copy would show."""
        what, *rest = step
        if what == "start":
            return "start"
        if what == "fork":
            self.where[rest[0]] = self.where[rest[1]]
            return "fork"
        if what == "drop":
            del self.where[rest[0]]
            self.dropped = True
            return "read"
        if what not in ("write", "touch"):
            return "read"
        name = rest[0]
        place = self.where[name]
        others = list(self.where.values()).count(place) - 1
        if others:
            self.memories.append(self.memories[place].copy())
            self.where[name] = place = len(self.memories) - 1
            self.n_copies += 1
            said = "needed"
        elif name in self.written:
            said = "again"
        elif self.dropped:
            said = "dropped"
        else:
            said = "alone" if len(self.where) == 1 else "last"
        self.written.add(name)
        if what == "write":
            self.memories[place][rest[1]] = rest[2]
        return said


def step_text(step: tuple) -> str:
    """Return a step as a line of Python."""
    what, *rest = step
    if what == "fork":
        return f"{rest[0]} = {rest[1]}.fork()"
    if what == "write":
        return f"{rest[0]}.write()[{rest[1]}] = {rest[2]:g}"
    if what == "drop":
        return f"del {rest[0]}"
    return f"{rest[0]}.{'write' if what == 'touch' else 'read'}()"
