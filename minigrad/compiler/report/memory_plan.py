"""Describes a program's memory before and after planning, for `mg.viz.memory` to draw."""

from typing import NamedTuple

from minigrad.compiler.fuse.inplace import rooted
from minigrad.compiler.program.traffic import lives, peak
from minigrad.viz.units import format_bytes, plural


class PlanRow(NamedTuple):
    """A temporary: offset and size in bytes, first and last moment at which it is needed.

    sharing: names of the temporaries that take over its memory.
    """

    name: str
    offset: int
    size: int
    first: int
    last: int
    sharing: tuple = ()


class PlanMemory(NamedTuple):
    """Temporaries over the moments of a step.

    rows: a PlanRow each; total: bytes that the offsets span; peak: most bytes alive at once, at
    moment `when`; moments: their number; unit: what a moment is.
    """

    rows: list
    total: int
    peak: int
    when: int
    moments: int
    unit: str


class MemoryPlan:
    """before: every temporary of the recording in a place of its own. after: the arena.

    Moments are instructions before, and regions after (calls between which threads meet, or single
    calls). Offsets, sizes: bytes.
    """

    def __init__(self, plan, names, title=""):
        self.title = title
        self.before = _before(plan, names)
        self.after = _after(plan, names)

    def __str__(self):
        return "\n".join(
            f"{side} {plural(len(m.rows), 'temporary', 'temporaries')} in "
            f"{format_bytes(m.total)}, at most {format_bytes(m.peak)} alive at once, "
            f"{plural(m.moments, m.unit)}"
            for side, m in (("before:", self.before), ("after: ", self.after))
        )

    __repr__ = __str__


def _before(plan, names):
    lifetimes, offset, rows = lives(plan.before), 0, []
    for value, (first, last) in lifetimes.items():
        rows.append(PlanRow(names(value), offset, value.nbytes, first, last))
        offset += value.nbytes
    most, when = peak(lifetimes)
    return PlanMemory(rows, offset, most, when, len(plan.before.instructions), "instruction")


def _after(plan, names):
    arena, sharing, makers = plan.arena, {}, {}
    for value, owner in plan.owner.items():
        sharing.setdefault(owner, []).append(names(value))
    for region in plan.regions:
        for call in region:
            for r in call.writes:
                root = rooted(r, plan.owner).value
                if root.is_temporary and root.name in ("scratch", "partial"):
                    makers.setdefault(root, root.name)
    rows = []
    for value, (first, last) in arena.lives.items():
        name, mine = makers.get(value) or names(value), tuple(sharing.get(value, ()))
        rows.append(PlanRow(name, arena.offsets[value], value.nbytes, first, last, mine))
    most, when = peak(arena.lives)
    return PlanMemory(rows, arena.size, most, when, len(plan.regions), "region")
