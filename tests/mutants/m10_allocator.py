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

LOSES_SMALL = """\
        self.in_use[address] = size, segment
        if len(self.free_blocks) > 2:
            self.free_blocks = [one for one in self.free_blocks if one[1] > 64]
"""
SWALLOWS = """\
if room <= size + 64:
            size = room
        else:"""

POOLS = [
    pool(
        "overlap",
        ("        self.free_blocks.remove(piece)\n        address, room", "        address, room"),
    ),
    pool("misaligned", (SIZE, "size = nbytes")),
    pool("size", (SIZE, "size = -(-nbytes // 64) * 64")),
    pool("size", (SIZE, "size = max(64, 1 << max(0, nbytes - 1).bit_length())")),
    pool("segment", ("room = max(size, SEGMENT)", "room = size")),
    pool("segment", ("room = max(size, SEGMENT)", "room = size + SEGMENT")),
    pool("segment", ("room = max(size, SEGMENT)", "room = SEGMENT")),
    pool("size", ("room = max(size, SEGMENT)", "room = -(-size // SEGMENT) * SEGMENT")),
    pool(
        "begins",
        (
            "self.segments = {}",
            "first = system.take(SEGMENT)\n        self.segments = {first: SEGMENT}",
        ),
        ("self.free_blocks = []", "self.free_blocks = [(first, SEGMENT, first)]"),
    ),
    pool("no_reuse", (BACK, "")),
    pool("no_split", (REST, "")),
    pool("outside", ("room - size, segment", "room, segment")),
    pool("no_merge", (TOUCHES, "False")),
    pool("no_merge", (TOUCHES, "piece[2] == segment and high == start")),
    pool("no_merge", (TOUCHES, "piece[2] == segment and low == end")),
    pool("outside", (TOUCHES, "high == start or low == end")),
    pool("outside", (TOUCHES, "low == end or (piece[2] == segment and high == start)")),
    # It believes in the first length of a segment at an address.
    pool(
        "outside",
        ("self.segments[segment] = room", "room = self.segments.setdefault(segment, room)"),
        ("                del self.segments[segment]\n", ""),
    ),
    pool("not_smallest", (LEAST, "piece = fitting[0]")),
    pool("not_smallest", (LEAST, LEAST.replace("piece[1]", "piece[1] // 128"))),
    pool("not_smallest", (LEAST, LEAST.replace("piece[1]", "piece[1].bit_length()"))),
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
    pool("wrong_error", (REFUSED, "")),
    pool("wrong_error", ("raise NotInUseError(", "raise ValueError(")),
    pool("false_alarm", ("if address not in", "if not address or address not in")),
    pool("no_split", ("if room > size:", "if room > size + 64:")),
    pool("no_split", ("if room > size:", "if room > size + 192:")),
    pool("no_split", (CUT, CUT.replace("if room > size:", SWALLOWS))),
    pool("no_split", (CUT, CUT.replace("if room > size:", SWALLOWS.replace("64", "256")))),
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
        "back_late",
        ("            self.give_back_empty()\n", ""),
        (
            "            piece = segment, room",
            "            self.give_back_empty()\n            piece = segment, room",
        ),
    ),
    pool(
        "not_smallest",
        ("        self.in_use[address] = size, segment\n", LOSES_SMALL),
    ),
    pool(
        "kept_empty",
        (
            "                self.system.give_back(address)\n",
            "                self.system.give_back(address)\n                break\n",
        ),
    ),
]


def freeing(key: str, *lines: str, init: str = "pass") -> Mutant:
    """Return a Pool of which `free` is another; it knows all blocks that ever were, in `sizes`."""
    body = "\n".join(f"        {line}" for line in lines)
    code = FREEING.replace("INIT", init) + body
    return Mutant("Pool", key, code)


FREEING = """
class Pool(Pool):
    def __init__(self, system):
        super().__init__(system)
        self.sizes, self.last = {}, None
        INIT

    def alloc(self, nbytes):
        address = super().alloc(nbytes)
        self.sizes[address], self.last = self.in_use[address], None
        return address

    def free(self, address):
"""
ERROR = 'raise NotInUseError(f"no block in use begins at {address}")'
AGAIN = "if address not in self.in_use and address in self.sizes:"
UNLESS_IN_USE = (f"if address not in self.in_use: {ERROR}", "super().free(address)")
NO_DOUBLE = (
    "self.in_use.setdefault(address, self.sizes.get(address, (64, None)))",
    "super().free(address)",
)
POOLS += [
    # It raises, but only after it has put the piece to the free ones, or joined it.
    freeing(
        "changed_by_error",
        AGAIN,
        "    self.free_blocks.append((address, *self.sizes[address]))",
        *UNLESS_IN_USE,
    ),
    freeing(
        "changed_by_error",
        AGAIN,
        "    self.in_use[address] = self.sizes[address]",
        "    super().free(address)",
        f"    {ERROR}",
        *UNLESS_IN_USE,
    ),
    # A second free takes the piece away again.
    freeing(
        "changed_by_error",
        "if address not in self.in_use:",
        "    self.free_blocks = [piece for piece in self.free_blocks if piece[0] != address]",
        f"    {ERROR}",
        "super().free(address)",
    ),
    freeing(
        "changed_by_error",
        "if address not in self.in_use:",
        "    if self.free_blocks: self.free_blocks.pop()",
        f"    {ERROR}",
        "super().free(address)",
    ),
    freeing(
        "changed_by_error",
        "if address not in self.in_use:",
        "    self.in_use.clear()",
        f"    {ERROR}",
        "super().free(address)",
    ),
    # It knows the last free only, those since the last alloc, or the beginnings of free pieces.
    freeing(
        "did_not_raise",
        f"if address == self.last or address not in self.sizes: {ERROR}",
        "self.last = address",
        *NO_DOUBLE,
    ),
    freeing(
        "did_not_raise",
        f"if any(piece[0] == address for piece in self.free_blocks): {ERROR}",
        f"if address not in self.sizes: {ERROR}",
        *NO_DOUBLE,
    ),
    # What was freed once is taken for free for ever.
    freeing(
        "false_alarm",
        f"if address in self.freed or address not in self.in_use: {ERROR}",
        "self.freed.add(address)",
        "super().free(address)",
        init="self.freed = set()",
    ),
    # It frees 64 bytes of whatever is known to be no free piece.
    freeing(
        "did_not_raise",
        f"if any(p[0] <= address < p[0] + p[1] for p in self.free_blocks): {ERROR}",
        "if address in self.in_use: super().free(address)",
    ),
    # An address inside a block is taken for the block.
    freeing(
        "did_not_raise",
        "for start, (size, _) in list(self.in_use.items()):",
        "    if start <= address < start + size: return super().free(start)",
        *UNLESS_IN_USE,
    ),
]


def buffer(key: str, *changes: tuple[str, str]) -> Mutant:
    """Return a Buffer with pieces replaced."""
    return Mutant("Buffer", key, changed("class Buffer:", *changes))


CHECK = """\
    def check(self):
        if self.owners == 1:
            raise NotInUseError

"""
OWN = "self.pool.memory[self.address : self.address + self.nbytes]"
WRITE = "            self.pool.memory[self.address : end] = POISON\n"
FREE = "            self.pool.free(self.address)\n"
UNLESS = "        if not self.owners:\n            end"
BUFFERS = [
    buffer("no_poison", (WRITE, "")),
    buffer(
        "no_poison", (WRITE, "            self.pool.memory = self.pool.memory.copy()\n" + WRITE)
    ),
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


def counts(key: str, where: str) -> Mutant:
    """Return a Buffer whose count stands in a dict of all, under the key `where`."""
    return Mutant("Buffer", key, COUNTS.replace("WHERE", where))


COUNTS = """
COUNTS = {}


class Buffer(Buffer):
    @property
    def owners(self):
        return COUNTS[WHERE]

    @owners.setter
    def owners(self, count):
        COUNTS[WHERE] = count
"""
BUFFERS += [
    counts("shared", "self.address"),
    counts("shared", "id(self.pool), self.address"),
    counts("shared", "self.address, self.nbytes"),
    buffer(
        "shared",
        (
            "if not self.owners:\n            raise",
            "if (" + OWN + " == POISON).all():\n            raise",
        ),
    ),
    buffer("wrong_error", ("raise NotInUseError(", "raise KeyError(")),
    # It counts first, and asks then.
    buffer(
        "changed",
        ("self.check_in_use()\n        self.owners += 1", "self.owners += 1\n        self.check()"),
        ("    def check_in_use(", CHECK + "    def check_in_use("),
    ),
    buffer(
        "changed",
        (
            "        self.check_in_use()\n        self.owners -= 1\n",
            "        self.owners -= 1\n        if self.owners < 0:\n"
            "            raise NotInUseError\n",
        ),
    ),
    buffer(
        "did_not_raise",
        ("        self.check_in_use()\n        self.owners += 1", "        self.owners += 1"),
        ("self.check_in_use()", "if self.owners < 1: raise NotInUseError"),
    ),
]


def plan(key: str, *changes: tuple[str, str]) -> Mutant:
    """Return a plan_reuse with pieces replaced."""
    return Mutant("plan_reuse", key, changed("def plan_reuse(", *changes))


ROOM = "-(-nbytes // ALIGNMENT) * ALIGNMENT"
ROUNDS_DOWN = "room, offset = max(1, nbytes // ALIGNMENT) * ALIGNMENT"
FIRST_GAP = """\
                if offset + room <= begin:
                    break
"""
BY_MOMENTS = """
def plan_reuse(lifetimes):
    rooms = [-(-nbytes // 64) for nbytes, _, _ in lifetimes]
    last = max((last for _, _, last in lifetimes), default=0)
    busy = np.zeros((max(0, last) + 1, sum(rooms)), bool)
    offsets = [0] * len(rooms)
    for k in sorted(range(len(rooms)), key=lambda k: (-rooms[k], lifetimes[k][1])):
        _, first, last = lifetimes[k]
        while busy[first : last + 1, offsets[k] : offsets[k] + rooms[k]].any():
            offsets[k] += 1
        busy[first : last + 1, offsets[k] : offsets[k] + rooms[k]] = True
    return [64 * offset for offset in offsets]
"""
PLANS = [
    Mutant("plan_reuse", "overlap", BY_MOMENTS),
    plan("misaligned", (ROOM, "nbytes")),
    plan(
        "misaligned",
        (ROOM, "nbytes // ALIGNMENT * ALIGNMENT"),
        ("max(offset, end)", "max(offset, begin + nbytes)"),
    ),
    plan("gap", (FIRST_GAP, "")),
    plan("overlap", (FIRST_GAP, "                break\n")),
    plan("gap", (FIRST_GAP, FIRST_GAP.replace("offset + room <= begin", "offset < begin"))),
    plan("overlap", (FIRST_GAP, FIRST_GAP.replace("offset + room <= begin", "room < begin"))),
    plan("gap", ("offset = max(offset, end)", "offset = end")),
    plan("rounding", ("room, offset = -(-nbytes // ALIGNMENT) * ALIGNMENT", ROUNDS_DOWN)),
    plan("overlap", ("since <= last and first <= until", "since <= first <= until")),
    plan("touching", ("since <= last and first <= until", "since < last and first < until")),
    plan("none", ("    return [offsets[k] for k in range(len(lifetimes))]\n", "")),
    plan("overlap", ("sorted(placed)", "placed")),
]
PLANS += [
    Mutant("plan_reuse", "gap", text)
    for text in (
        """
def plan_reuse(lifetimes):
    slots, offsets = [], [0] * len(lifetimes)
    for k in sorted(range(len(lifetimes)), key=lambda k: lifetimes[k][1]):
        nbytes, first, last = lifetimes[k]
        size = -(-nbytes // 64) * 64
        for slot in slots:
            if slot[1] < first and slot[2] >= size:
                slot[1], offsets[k] = last, slot[0]
                break
        else:
            offsets[k] = sum(slot[2] for slot in slots)
            slots.append([offsets[k], last, size])
    return offsets
""",
        """
def plan_reuse(lifetimes):
    size = -(-max((nbytes for nbytes, _, _ in lifetimes), default=0) // 64) * 64
    ends, offsets = [], [0] * len(lifetimes)
    for k in sorted(range(len(lifetimes)), key=lambda k: lifetimes[k][1]):
        _, first, last = lifetimes[k]
        row = next((row for row, end in enumerate(ends) if end < first), len(ends))
        ends[row:row + 1] = [last]
        offsets[k] = row * size
    return offsets
""",
    )
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
GIVE_Z = "    pool.give(z)  # C: tanh' is 1 - h * h: only the output is needed\n"
GIVE_Y = "    pool.give(y)  # G: the error is all that backward needs of it\n"
GIVE_DY = "    pool.give(dy)  # J: both products have read it\n"
TAKE_DW1 = "    dw1 = pool.take(w1.shape)\n"
EARLY = "    saved = h.copy()\n    pool.give(h)\n"
READS_SAVED = (("matmul(h.T", "matmul(saved.T"), ("multiply(h, h", "multiply(saved, saved"))
COMPUTE_H = "    np.matmul(x, w1, out=h)\n    np.tanh(h, out=h)\n"
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
        (GIVE_Z, ""),
        (RETURN, "    pool.give(z)\n" + RETURN),
    ),
    hunt("changed_input", (RETURN, "    goal -= goal\n" + RETURN)),
    hunt("count", (RETURN, "    return dw2")),
    # Arrays that are not the pool's.
    hunt("outside", (LINE_F, EARLY + LINE_F), (GIVE_H, ""), *READS_SAVED),
    hunt("outside", ("np.multiply(h, h, out=slope)", "slope[:] = h * h")),
    hunt("outside", ("np.matmul(h.T, dy, out=dw2)", "dw2[:] = h.T @ dy")),
    hunt("copied", (RETURN, "    return dw1.copy(), dw2.copy()")),
    hunt(
        "copied",
        (RETURN, "    out = dw1.copy(), dw2\n    pool.give(dw1)\n    return out"),
    ),
    # One array more, or tanh once more.
    hunt(
        "more",
        (LINE_F, EARLY.replace("h.copy()", "pool.take(h.shape)\n    saved[:] = h") + LINE_F),
        (GIVE_H, "    pool.give(saved)\n"),
        *READS_SAVED,
    ),
    hunt(
        "more",
        (LINE_F, "    pool.give(h)\n" + LINE_F),
        (LINE_I, "    h = pool.take((len(x), w1.shape[1]))\n" + COMPUTE_H + LINE_I),
    ),
    hunt("more", (LINE_I, COMPUTE_H + LINE_I)),
    # Longer than it must be, where the peak does not show it.
    hunt("late", (GIVE_Z, ""), ("    pool.give(y)", GIVE_Z + "    pool.give(y)")),
    hunt("late", (GIVE_Y, ""), (LINE_I, GIVE_Y + LINE_I)),
    hunt("late", (GIVE_DY, ""), ("    pool.give(h)", GIVE_DY + "    pool.give(h)")),
    hunt("early", (TAKE_DW1, ""), (LINE_I, TAKE_DW1 + LINE_I)),
    hunt("value", ("np.subtract(1.0, slope, out=slope)", "np.add(1.0, slope, out=slope)")),
]

MUTANTS: list[Mutant] = [*POOLS, *BUFFERS, *PLANS, *HUNTS]
