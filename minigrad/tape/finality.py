"""Tells, while a backward pass runs, which gradients of leaves are complete."""

from minigrad.tape.node import Node


class Finals:
    """The nodes of a pass in their order; between two of them it tells which leaves are done.

    The walk asks for the next node once it has used one. The gradient of a leaf is complete after
    the last node that leads to it. A leaf with hooks is left out: its gradient comes after them.

    Args:
        order: the nodes.
        arrived: leaf -> the sum of its gradients so far; the walk changes it.
        on_final: called as on_final(leaf, Array), once for each leaf, before `.grad` is written. It
            must leave the Array as it is.
    """

    def __init__(self, order, arrived, on_final):
        self._order, self._arrived, self._on_final = order, arrived, on_final
        self._next = 0
        last = {}
        for k, node in enumerate(order):
            for edge in node.edges:
                if edge is not None and type(edge) is not Node:
                    last[edge] = k
        self._final_after = {}
        for leaf, k in last.items():
            if not leaf.hooks:
                self._final_after.setdefault(k, []).append(leaf)

    def __iter__(self):
        return self

    def __next__(self):
        for leaf in self._final_after.pop(self._next - 1, ()):
            g = self._arrived.get(leaf)
            if g is not None:
                self._on_final(leaf, g)
        if self._next == len(self._order):
            raise StopIteration
        self._next += 1
        return self._order[self._next - 1]

    def __length_hint__(self):
        return len(self._order) - self._next
