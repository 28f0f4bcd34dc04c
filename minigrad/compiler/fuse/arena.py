"""Lays out the arena: one piece of memory for all temporaries of a step.

A temporary lives from the region that first writes it to the last that reads it. Temporaries that
live at the same time must not overlap. In order of decreasing size, each gets the lowest offset
that is free during its life (greedy by size, Pisarchyk and Lee 2020).
"""

from minigrad.seams import seams

ALIGN = 64  # bytes: a cache line, and one vector


class Arena:
    """offsets: Value -> bytes from its start. size: bytes. separate: the bytes without reuse.

    lives: Value -> (first, last) region.
    """

    def __init__(self, lives: dict):
        self.lives, self.separate = lives, sum(v.nbytes for v in lives)
        self.offsets, self.size, placed = {}, 0, []
        if seams.plan_reuse is not None and lives:
            asked = [(max(1, value.nbytes), *life) for value, life in lives.items()]
            self.offsets = dict(zip(lives, seams.plan_reuse(asked), strict=True))
            self.size = max(
                o + (-(-v.nbytes // ALIGN) or 1) * ALIGN for v, o in self.offsets.items()
            )
            return
        for value in sorted(lives, key=lambda v: (-v.nbytes, lives[v])):
            first, last = lives[value]
            need = -(-value.nbytes // ALIGN) * ALIGN or ALIGN
            offset = 0
            for low, high, begin, end in placed:
                if begin <= last and first <= end:
                    if offset + need <= low:
                        break
                    offset = max(offset, high)
            placed.append((offset, offset + need, first, last))
            placed.sort()
            self.offsets[value] = offset
            self.size = max(self.size, offset + need)
