"""Converts the engine's graph to plain nodes, for the learners' functions that walk it."""

import itertools

from minigrad.course import objects
from minigrad.course.seam_parts import Adapter, read_only
from minigrad.tape.node import Node
from minigrad.tape.order import cycle_error, searched


class PlainGraph:
    """A graph of plain nodes: leaves have op='leaf', inputs that need no gradient are None."""

    def __init__(self, roots):
        self.plain, self.engine, self.leaves = {}, {}, {}
        waiting = list(roots)
        while waiting:
            node = waiting.pop()
            if node in self.plain:
                continue
            self._add(node)
            waiting += [e for e in node.edges if type(e) is Node]
        for node, plain in list(self.plain.items()):
            plain.inputs = tuple(self._input(e) for e in node.edges)
        self.roots = [self.plain[r] for r in roots]
        if len(self.roots) == 1:
            self.root = self.roots[0]
        else:  # one root above all, since learners' functions take one
            self.root = objects.Node("outputs", tuple(self.roots))

    def _add(self, node):
        kept = tuple(read_only(k) for k in node.kept or ())
        plain = self.plain[node] = objects.Node(node.op, (), kept, node.line)
        self.engine[id(plain)] = node

    def _input(self, edge):
        if edge is None or type(edge) is Node:
            return self.plain.get(edge)
        if edge not in self.leaves:
            self.leaves[edge] = objects.Node("leaf", (), (read_only(edge.array),), edge.name or "")
        return self.leaves[edge]

    def all_nodes(self):
        """Return every plain node, leaves and the root included."""
        extra = [] if len(self.roots) == 1 else [self.root]
        return [*self.plain.values(), *self.leaves.values(), *extra]


class TopologicalOrder(Adapter):
    """topological_order(root) -> every node once, inputs before consumers or reversed."""

    def __call__(self, roots):
        if not roots:
            return []
        _, cycle = searched(roots)
        if cycle is not None:
            raise cycle_error(cycle)
        graph = PlainGraph(roots)
        order = self.part(graph.root)
        if not isinstance(order, (list, tuple)):
            self.part.refuse("a list of nodes", type(order).__name__)
        wanted = {id(n): n for n in graph.all_nodes()}
        for n in order:
            if id(n) not in wanted:
                self.part.refuse("nodes of the graph it was given", f"{n!r:.80}")
        place = {id(n): k for k, n in enumerate(order)}
        if len(place) != len(order) or len(order) != len(wanted):
            self.part.refuse(
                f"each of {len(wanted)} nodes once", f"{len(order)} nodes, {len(place)} different"
            )
        steps = [
            (place[id(n)] - place[id(i)], n, i) for n in order for i in n.inputs if i is not None
        ]
        if any(d > 0 for d, *_ in steps) and any(d < 0 for d, *_ in steps):
            _, n, i = next(s for s in steps if (s[0] > 0) != (steps[0][0] > 0))
            self.part.refuse(
                "every node on the same side of its inputs", f"{n.op} and its input {i.op} are not"
            )
        if steps and steps[0][0] > 0:
            order = order[::-1]
        return [graph.engine[id(n)] for n in order if id(n) in graph.engine]


class FindCycle(Adapter):
    """find_cycle(root) -> None, or nodes [a, b, ..., a] along inputs."""

    def __call__(self, roots):
        graph = PlainGraph(roots)
        cycle = self.part(graph.root)
        _, truth = searched(roots)
        if cycle is None:
            if truth is not None:
                self.part.refuse(
                    "the cycle of this graph", "None", f"it has one through {truth[0].op}"
                )
            return
        if not isinstance(cycle, (list, tuple)) or len(cycle) < 2 or cycle[0] is not cycle[-1]:
            self.part.refuse("None, or a list of nodes that ends where it begins", f"{cycle!r:.80}")
        for a, b in itertools.pairwise(cycle):
            if not any(i is b for i in getattr(a, "inputs", ())):
                self.part.refuse("a path along inputs", f"{a!r:.60} does not have {b!r:.60}")
        raise cycle_error([graph.engine[id(n)] for n in cycle])
