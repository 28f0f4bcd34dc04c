"""Wrong solutions of lesson 10 that people really write."""

from pathlib import Path

from minigrad.course.mutants import Mutant

SOLUTION = (Path(__file__).parents[2] / "solutions" / "10_allocator.py").read_text("utf-8")


def changed(head: str, *changes: tuple[str, str]) -> str:
    """Return the solution's text from `head` to the next definition, with pieces replaced."""
    start = SOLUTION.index(head)
    ends = [SOLUTION.find(mark, start + 1) for mark in ("\n\n\nclass ", "\n\n\ndef ", "\n\n\n# ")]
    text = SOLUTION[start : min([end for end in ends if end > 0], default=None)]
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def pool(key: str, *changes: tuple[str, str]) -> Mutant:
    """Return a Pool with pieces replaced."""
    return Mutant("Pool", key, changed("class Pool:", *changes))


SIZE = "size = size_class(nbytes)"
TOUCHES = "piece[2] == segment and (high == start or low == end)"
REST = """\
        if room > size:
            self.free_blocks.append((address + size, room - size, segment))
"""
BACK = """\
        self.free_blocks.append((start, end - start, segment))
"""
LEAST = "piece = min(fitting, key=lambda piece: piece[1])"
REFUSED = """\
        if address not in self.in_use:
            raise NotInUseError(f"no block in use begins at {address}")
"""
CUT = """\
        address, room, segment = piece
        if room > size:
            self.free_blocks.append((address + size, room - size, segment))
"""

POOLS = [
    pool(
        "overlap",
        ("        self.free_blocks.remove(piece)\n        address, room", "        address, room"),
    ),
    pool("misaligned", (SIZE, "size = nbytes")),
    pool("segment", (SIZE, "size = -(-nbytes // 64) * 64")),
    pool("segment", ("room = max(size, SEGMENT)", "room = size")),
    pool("segment", ("room = max(size, SEGMENT)", "room = size + SEGMENT")),
    pool("segment", ("room = max(size, SEGMENT)", "room = SEGMENT")),
    pool("no_reuse", (BACK, "")),
    pool("no_split", (REST, "")),
    pool("outside", ("room - size, segment", "room, segment")),
    pool("no_merge", (TOUCHES, "False")),
    pool("no_merge", (TOUCHES, "piece[2] == segment and high == start")),
    pool("no_merge", (TOUCHES, "piece[2] == segment and low == end")),
    pool("outside", (TOUCHES, "high == start or low == end")),
    pool("not_smallest", (LEAST, "piece = fitting[0]")),
    pool("not_smallest", (LEAST, "piece = fitting[-1]")),
    pool("not_smallest", (LEAST, "piece = max(fitting, key=lambda piece: piece[1])")),
    pool(
        "not_at_start",
        (
            CUT,
            CUT.replace("address + size, room", "address, room")
            + "            address += room - size\n",
        ),
    ),
    pool(
        "did_not_raise", (REFUSED, "        if address not in self.in_use:\n            return\n")
    ),
    pool("raised", (REFUSED, "")),
    pool("raised", ("raise NotInUseError(", "raise ValueError(")),
    pool("did_not_raise", ("raise NotInUseError(", "return NotInUseError(")),
    pool("unbounded", ("            self.give_back_empty()\n", "")),
    pool("too_eager", (BACK, BACK + "        self.give_back_empty()\n")),
    pool(
        "no_reuse",
        (SIZE, SIZE + "\n        self.give_back_empty()"),
    ),
    pool(
        "gave_live",
        ("if room == self.segments[segment]:", "if address == segment:"),
    ),
    pool("no_segment", ("self.system.give_back(address)", "self.system.give_back(address + room)")),
    pool("none", ("        return address\n", "")),
    pool(
        "kept_empty",
        (
            "                self.system.give_back(address)\n",
            "                self.system.give_back(address)\n                break\n",
        ),
    ),
]


def buffer(key: str, *changes: tuple[str, str]) -> Mutant:
    """Return a Buffer with pieces replaced."""
    return Mutant("Buffer", key, changed("class Buffer:", *changes))


WRITE = "            self.pool.memory[self.address : end] = POISON\n"
FREE = "            self.pool.free(self.address)\n"
UNLESS = "        if not self.owners:\n            end"
BUFFERS = [
    buffer("no_poison", (WRITE, "")),
    buffer("too_late", (WRITE + FREE, FREE + WRITE)),
    buffer("not_freed", (FREE, "")),
    buffer("freed_early", (UNLESS, "        if True:\n            end")),
    buffer("freed_early", (UNLESS, "        if self.owners <= 1:\n            end")),
    buffer("not_freed", (UNLESS, "        if self.owners < 0:\n            end")),
    buffer(
        "early_poison",
        (
            UNLESS,
            "        self.pool.memory[self.address : self.address + self.nbytes] = 255\n" + UNLESS,
        ),
    ),
    buffer(
        "count",
        ("        self.owners = 1\n", "        self.owners = 0\n"),
        ("self.check_in_use()", "pass"),
    ),
    buffer("poison", ("= POISON", "= 0")),
    buffer("others", ("self.address + self.nbytes", "self.address + self.nbytes + 64")),
    buffer("others", ("memory[self.address : end]", "memory[:]")),
    buffer("poison", ("memory[self.address : end]", "memory[self.address]")),
    buffer(
        "did_not_raise", ("if not self.owners:\n            raise", "if False:\n            raise")
    ),
    buffer(
        "did_not_raise",
        ("        self.check_in_use()\n        self.owners += 1", "        self.owners += 1"),
    ),
    buffer("asked", ("pool.alloc(nbytes)", "pool.alloc(max(nbytes, 64))")),
    buffer("wrong_address", ("pool.free(self.address)", "pool.free(self.address + self.nbytes)")),
    buffer(
        "kept",
        ("        self.owners = 1\n", ""),
        ("class Buffer:\n", "class Buffer:\n    owners = 1\n"),
        ("self.owners += 1", "Buffer.owners += 1"),
        ("self.owners -= 1", "Buffer.owners -= 1"),
    ),
]


def plan(key: str, *changes: tuple[str, str]) -> Mutant:
    """Return a plan_reuse with pieces replaced."""
    return Mutant("plan_reuse", key, changed("def plan_reuse(", *changes))


ROOM = "-(-nbytes // ALIGNMENT) * ALIGNMENT"
FIRST_GAP = """\
                if offset + room <= begin:
                    break
"""
PLANS = [
    plan("misaligned", (ROOM, "nbytes")),
    plan(
        "misaligned",
        (ROOM, "nbytes // ALIGNMENT * ALIGNMENT"),
        ("max(offset, end)", "max(offset, begin + nbytes)"),
    ),
    plan("equals", (FIRST_GAP, "")),
    plan("overlap", (FIRST_GAP, "                break\n")),
    plan("overlap", ("offset = max(offset, end)", "offset = end")),
    plan("overlap", ("since <= last and first <= until", "since <= first <= until")),
    plan("touching", ("since <= last and first <= until", "since < last and first < until")),
    plan("none", ("    return [offsets[k] for k in range(len(lifetimes))]\n", "")),
    plan("overlap", ("sorted(placed)", "placed")),
]


def hunt(key: str, *changes: tuple[str, str]) -> Mutant:
    """Return a hand_step with pieces replaced."""
    return Mutant("hand_step", key, changed("def hand_step(", *changes))


def diagnosed(key: str, text: str) -> Mutant:
    """Return another diagnosis."""
    return Mutant("hand_step", key, f"BUG = {text}")


GIVE_H = "    pool.give(h)  # E: the slope of tanh was the last to read it\n"
LINE_F = "    np.subtract(y, goal, out=dy)  # F\n"
LINE_I = "    np.matmul(h.T, dy, out=dw2)  # I\n"
RETURN = "    return dw1, dw2"
HUNTS = [
    diagnosed("untouched", '{"given": None, "read": "I"}'),
    diagnosed("form", '{"given": "z2", "read": "I"}'),
    diagnosed("form", '("E", "I")'),
    diagnosed("not_it", '{"given": "E", "read": "K"}'),
    diagnosed("not_it", '{"given": "C", "read": "I"}'),
    diagnosed("same_text", '{"given": "E", "read": "E"}'),
    hunt("nan", (GIVE_H, ""), (LINE_F, GIVE_H + LINE_F)),
    hunt("nan", (GIVE_H, ""), (LINE_I, LINE_I + GIVE_H)),
    hunt("not_given", (GIVE_H, "")),
    hunt("late", (GIVE_H, ""), (RETURN, GIVE_H + RETURN)),
    hunt(
        "not_given",
        ("    h = pool.take(z.shape)\n", "    h = np.empty_like(z)\n"),
        (GIVE_H, ""),
        ("    pool.give(dh)  # P\n", ""),
    ),
    hunt("gave_twice", (LINE_I, LINE_I + GIVE_H.replace("(h)", "(h.copy())"))),
    hunt("gave_twice", (GIVE_H, GIVE_H + GIVE_H)),
    hunt(
        "late",
        ("    pool.give(z)  # C: tanh' is 1 - h * h: only the output is needed\n", ""),
        (RETURN, "    pool.give(z)\n" + RETURN),
    ),
    hunt("count", (RETURN, "    return dw2")),
    hunt("value", ("np.subtract(1.0, slope, out=slope)", "np.add(1.0, slope, out=slope)")),
]

MUTANTS: list[Mutant] = [*POOLS, *BUFFERS, *PLANS, *HUNTS]
