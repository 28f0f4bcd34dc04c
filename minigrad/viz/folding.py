"""Finds blocks that repeat consecutively: the layers of a network, the steps of a loop."""

import itertools

import numpy as np

from minigrad.tape.node import Node

LONGEST_BLOCK = 512  # operations
FULL_DRAWING = 150  # operations; up to this number only long repetitions are folded
WORTH_FOLDING = 12  # operations that a fold must save in a small graph
SLOTS = 4  # inputs compared one by one; the others must be equally far back
MOST_FOLDS = 64


class Repeat:
    """The repetitions of a block. blocks: a list of equally long lists of nodes."""

    def __init__(self, blocks):
        self.blocks = blocks

    def nodes(self):
        """Returns the nodes of all repetitions, in order."""
        return [n for block in self.blocks for n in block]


def folded(nodes, layouts, fold=None):
    """Folds repeated blocks; returns nodes and Repeats in the order of execution.

    Two blocks are equal if their operations have equal names, output shapes and inputs. Two inputs
    are equal if they are equally far back, are one value, or are leaves of equal shapes.

    Args:
        nodes: in the order of execution.
        layouts: node -> (shape, dtype) of its output.
        fold: True folds every block that occurs twice in a row, False folds nothing. None folds
            where that saves a dozen operations, and acts as True above 150 operations.
    """
    if fold is False or len(nodes) < 2:
        return list(nodes)
    least = 1 if fold or len(nodes) > FULL_DRAWING else WORTH_FOLDING
    table = _Table(nodes, layouts)
    pieces, out, folds = [(0, len(nodes))], [], 0
    while pieces:  # a stack of ranges, the leftmost on top, instead of a recursion
        piece = pieces.pop()
        if isinstance(piece, Repeat):
            out.append(piece)
            continue
        first, last = piece
        best = table.best(first, last) if folds < MOST_FOLDS else None
        if best is None or best[1] * (best[2] - 1) < least:
            out += nodes[first:last]
            continue
        start, period, count = best
        folds += 1
        cuts = range(start, start + period * count + 1, period)
        blocks = [nodes[a:b] for a, b in itertools.pairwise(cuts)]
        pieces += [(start + period * count, last), Repeat(blocks), (first, start)]
    return out


class _Table:
    """The features of nodes as arrays: comparing all nodes with those a period later is fast."""

    def __init__(self, nodes, layouts):
        place = {n: i for i, n in enumerate(nodes)}
        numbers = {}
        self.kind = np.empty(len(nodes), np.int64)
        self.source = np.full((len(nodes), SLOTS), -1, np.int64)
        self.sources = []
        for i, node in enumerate(nodes):
            inputs = [place[e] if type(e) is Node else None for e in node.edges]
            self.sources.append([s for s in inputs if s is not None])
            for k, s in enumerate(inputs[:SLOTS]):
                if s is not None:
                    self.source[i, k] = s
            far = tuple(None if s is None else i - s for s in inputs[SLOTS:])
            leaves = tuple(
                None if e is None or type(e) is Node else (e.shape, e.dtype) for e in node.edges
            )
            key = (node.op, node.is_freed, layouts.get(node), leaves, far)
            self.kind[i] = numbers.setdefault(key, len(numbers))
        self.back = np.where(self.source < 0, 0, np.arange(len(nodes))[:, None] - self.source)
        self.has = self.source >= 0

    def best(self, first, last):
        """Returns (start, period, count) of the repetition that saves most in a range, or None."""
        best, most = None, 0
        for period in range(1, min((last - first) // 2, LONGEST_BLOCK) + 1):
            a, b = slice(first, last - period), slice(first + period, last)
            same = self.kind[a] == self.kind[b]
            if np.count_nonzero(same) < max(period, most):
                continue
            near = (self.back[a] == self.back[b]) | (self.source[a] == self.source[b])
            same &= (near & (self.has[a] == self.has[b])).all(axis=1)
            edges = np.flatnonzero(np.diff(np.concatenate(([0], same, [0]))))
            for start, stop in zip(edges[::2], edges[1::2], strict=True):
                saved = (stop - start) // period * period
                if saved > most:
                    most = saved
                    count = int(saved // period) + 1
                    spare = int(stop - start - saved)
                    best = (self._cut(first + int(start), spare, period), period, count)
        return best

    def _cut(self, start, spare, period):
        """Returns the start with the fewest values passing from block to block.

        There are `spare` + 1 possible starts; of equally good ones it takes the last. The
        operations before it belong to a first block with other inputs.
        """
        passing = []
        for s in range(start, start + spare + 1):
            edge = s + period
            inside = range(edge, edge + period)
            passing.append(len({x for i in inside for x in self.sources[i] if x < edge}))
        return start + spare - passing[::-1].index(min(passing))
