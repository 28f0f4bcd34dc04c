"""The arena: one piece of memory for all temporaries of a step.

A temporary lives from the region that first writes it to the last that reads it. Temporaries that
live at the same time must not overlap: the largest first, each gets the lowest offset that is free
during its life (greedy by size, Pisarchyk and Lee 2020).
"""

ALIGN = 64  # bytes: a cache line, and a vector


class Arena:
    """offsets: Value -> bytes from its start. size: bytes. separate: the bytes without reuse.

    lives: Value -> (first, last) region.
    """

    def __init__(self, regions, outside):
        self.lives = self.find_lives(regions, outside)
        self.offsets, self.size, placed = {}, 0, []
        order = sorted(self.lives, key=lambda v: (-v.nbytes, self.lives[v]))
        for value in order:
            first, last = self.lives[value]
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

    def find_lives(self, regions, outside):
        """{Value: (first, last region)} of what needs a place."""
        return lives_of(regions, outside)

    @property
    def separate(self):
        """Bytes that the temporaries would take without reuse."""
        return sum(v.nbytes for v in self.lives)


def lives_of(regions, outside):
    """{Value: (first, last region)} of the temporaries that are not in `outside`."""
    lives = {}
    for t, region in enumerate(regions):
        for call in region:
            for r in (*call.reads, *call.writes):
                v = r.value
                if v.is_temporary and v not in outside:
                    first, _ = lives.get(v, (t, t))
                    lives[v] = first, t
    return lives
