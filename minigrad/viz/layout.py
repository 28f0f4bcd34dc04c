"""Lays out a diagram in layers, sources above their users (Sugiyama, Tagawa and Toda, 1981).

Longest paths give the ranks. Barycentre sweeps give orders within the ranks, and the order with the
fewest crossings is kept. Least squares under this order give the positions. The result is
deterministic.
"""

import bisect
import itertools
from dataclasses import dataclass, field

SWEEPS = 6
ALIGNMENTS = 12
GAP_X, GAP_Y = 26.0, 34.0  # pixels between boxes of a rank, and between ranks
EDGE_GAP = 14.0  # pixels between an edge that passes a rank and its neighbours


@dataclass
class Cell:
    """A rectangle to place. A cell without a key reserves room for an edge that passes a rank."""

    key: str | None
    width: float
    height: float
    rank: int = 0
    x: float = 0.0  # the centre
    y: float = 0.0  # the top
    rank_top: float = 0.0  # the top of its row; edges run vertically within it
    rank_bottom: float = 0.0
    above: list = field(default_factory=list)  # its sources: Cells of the rank above
    below: list = field(default_factory=list)


@dataclass
class Placed:
    """A layout. cells: key -> Cell. routes: (source key, target key) -> Cells along the edge."""

    cells: dict
    routes: dict
    width: float
    height: float


def place(sizes, edges, first=None, last=None, late=False):
    """Places rectangles and routes the edges.

    Args:
        sizes: key -> (width, height) in pixels.
        edges: pairs (source, target) of keys, forward, without a cycle.
        first, last: keys of the cell that stays on the top rank, and of the one below all others.
        late: whether a side chain, which the longest path does not feed, moves as far down as
            possible, just above its user.
    """
    cells = {key: Cell(key, *size) for key, size in sizes.items()}
    _rank(cells, edges, first, late)
    if last is not None:
        cells[last].rank = 1 + max((c.rank for k, c in cells.items() if k != last), default=-1)
    routes, ranks = {}, [[] for _ in range(1 + max((c.rank for c in cells.values()), default=0))]
    for cell in cells.values():
        ranks[cell.rank].append(cell)
    for source, target in edges:
        a, b = cells[source], cells[target]
        route = [a]
        for rank in range(a.rank + 1, b.rank):
            passing = Cell(None, 1.0, 0.0, rank)
            ranks[rank].append(passing)
            route.append(passing)
        route.append(b)
        for upper, lower in itertools.pairwise(route):
            upper.below.append(lower)
            lower.above.append(upper)
        routes[source, target] = route
    _order(ranks)
    _align(ranks)
    left = min((c.x - c.width / 2 for r in ranks for c in r), default=0.0)
    y = 0.0
    for rank in ranks:
        height = max((c.height for c in rank), default=0.0)
        for cell in rank:
            cell.x -= left
            cell.rank_top, cell.rank_bottom = y, y + height
            if cell.key is None or cell.key == first:
                cell.height = height
            # a leaf is at the bottom of its row, near its user; other cells are in the middle
            room = height - cell.height
            cell.y = y + (room if not cell.above else room / 2)
        y += height + GAP_Y
    width = max((c.x + c.width / 2 for r in ranks for c in r), default=0.0)
    for cell in itertools.chain(*ranks):  # break the reference cycles between ranks
        cell.above, cell.below = [], []
    return Placed(cells, routes, width, max(0.0, y - GAP_Y))


def _rank(cells, edges, first, late):
    """Ranks cells by the longest path from a source; a source goes just above its first user."""
    below = {key: [] for key in cells}
    has_input = set()
    for source, target in edges:
        below[source].append(target)
        has_input.add(target)
    waiting = dict.fromkeys(cells, 0)
    for _, target in edges:
        waiting[target] += 1
    ready = [key for key in cells if not waiting[key]]
    for key in ready:
        for target in below[key]:
            cells[target].rank = max(cells[target].rank, cells[key].rank + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    if late:
        _lower(cells, edges, ready)
    for key, cell in cells.items():
        if key != first and key not in has_input and below[key]:
            cell.rank = min(cells[t].rank for t in below[key]) - 1


def _lower(cells, edges, order):
    """Moves side chains down. order: the keys, sources before users."""
    above, below = ({key: [] for key in cells} for _ in range(2))
    for source, target in edges:
        above[target].append(source)
        below[source].append(target)
    lowest, last = {}, max((c.rank for c in cells.values()), default=0)
    for key in reversed(order):
        lowest[key] = min((lowest[t] - 1 for t in below[key]), default=last)
    held = set()  # cells without room below them, and all cells that depend on these
    for key in order:
        if above[key] and (lowest[key] == cells[key].rank or held & set(above[key])):
            held.add(key)
    for key in reversed(order):
        if above[key] and below[key] and key not in held:
            ends = [cells[t].rank for t in below[key] if below[t] or t in held]
            cells[key].rank = min(ends, default=cells[key].rank + 1) - 1
    for key in order:
        if above[key] and not below[key]:  # an end goes just below its sources
            cells[key].rank = 1 + max(cells[s].rank for s in above[key])


def _order(ranks):
    """Sorts ranks by the mean position of neighbours, down and up; keeps the best order."""
    best, fewest = [list(r) for r in ranks], _crossings(ranks)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        downwards = sweep % 2 == 0
        for rank in ranks if downwards else ranks[::-1]:
            _by_neighbours(ranks, rank, downwards)
        crossings = _crossings(ranks)
        if crossings < fewest:
            best, fewest = [list(r) for r in ranks], crossings
    for rank, order in zip(ranks, best, strict=True):
        rank[:] = order


def _by_neighbours(ranks, rank, downwards):
    if not rank:
        return
    beside = rank[0].rank + (-1 if downwards else 1)
    if not 0 <= beside < len(ranks):
        return
    at = {id(c): i for i, c in enumerate(ranks[beside])}
    keys = {}
    for i, cell in enumerate(rank):
        around = cell.above if downwards else cell.below
        keys[id(cell)] = sum(at[id(c)] for c in around) / len(around) if around else float(i)
    rank.sort(key=lambda c: keys[id(c)])


def _crossings(ranks):
    """Counts the crossings: inversions of the lower ends of edges sorted by upper ends."""
    total = 0
    for upper, lower in itertools.pairwise(ranks):
        at = {id(c): i for i, c in enumerate(lower)}
        seen = []
        for cell in upper:
            ends = sorted(at[id(c)] for c in cell.below)
            total += sum(len(seen) - bisect.bisect_right(seen, end) for end in ends)
            for end in ends:
                bisect.insort(seen, end)
    return total


def _align(ranks):
    """Moves each cell towards its neighbours, above and below in turns."""
    for rank in ranks:
        x = 0.0
        for cell in rank:
            cell.x = x
            x += cell.width + GAP_X
    for turn in range(ALIGNMENTS):
        downwards = turn % 2 == 0
        for rank in ranks if downwards else ranks[::-1]:
            wanted, weights = [], []
            for cell in rank:
                around = cell.above if downwards else cell.below
                if turn >= ALIGNMENTS - 2:
                    around = cell.above + cell.below
                pulls = [_pull(cell, c) for c in around]
                total = sum(pulls)
                if around:
                    wanted.append(sum(p * c.x for p, c in zip(pulls, around, strict=True)) / total)
                else:
                    wanted.append(cell.x)
                weights.append(total or 0.02)
            _settle(rank, wanted, weights)


def _pull(a, b):
    """Returns the weight that pulls the ends of an edge together, least for leaves."""
    if a.key is None and b.key is None:
        return 4.0
    return 1.0 if a.above and b.above else 0.05


def _leaves_width(cell):
    """Returns the width of the leaves that only this cell uses; 0 if there are none."""
    leaves = [c.width for c in cell.above if c.key and not c.above and len(c.below) == 1]
    return sum(leaves) + GAP_X * max(0, len(leaves) - 1)


def _settle(rank, wanted, weights):
    """Moves cells as near as possible to the wanted positions, in order and without overlap.

    Nearest is by weighted least squares. After subtracting the distances between cells this is
    isotonic regression, solved by pooling adjacent violators.
    """
    offsets, total = [], 0.0
    for k, cell in enumerate(rank):
        if k:
            before = rank[k - 1]
            gap = GAP_X if cell.key and before.key else EDGE_GAP
            wide = _leaves_width(before), _leaves_width(cell)
            rooms = max(before.width, wide[0]) + max(cell.width, wide[1])
            total += (rooms if all(wide) else before.width + cell.width) / 2 + gap
        offsets.append(total)
    pools = []  # (weight, mean, count)
    for want, weight, offset in zip(wanted, weights, offsets, strict=True):
        pool = (weight, want - offset, 1)
        while pools and pools[-1][1] >= pool[1]:
            w, mean, count = pools.pop()
            both = w + pool[0]
            pool = (both, (w * mean + pool[0] * pool[1]) / both, count + pool[2])
        pools.append(pool)
    k = 0
    for _, mean, count in pools:
        for _ in range(count):
            rank[k].x = mean + offsets[k]
            k += 1
