"""The order of a graph's nodes: consumers before producers, or the cycle that leaves none.

A node's serial number exceeds those of its inputs, so sorting by serial number gives a topological
order. Edges set by hand can break this invariant. A depth-first search then finds the order, or
reports a cycle.
"""

from operator import attrgetter

from minigrad.errors import GraphCycleError
from minigrad.tape.node import Node

_serial = attrgetter("serial")


def ordered(roots):
    """Returns all nodes that the roots depend on, consumers before producers.

    Raises:
        GraphCycleError: a node is its own ancestor; `.path` has the cycle.
    """
    seen, nodes, in_order = set(roots), list(roots), True
    position = 0
    while position < len(nodes):
        node = nodes[position]
        position += 1
        serial = node.serial
        for edge in node.edges:
            if type(edge) is Node:
                if edge.serial >= serial:
                    in_order = False
                if edge not in seen:
                    seen.add(edge)
                    nodes.append(edge)
    if in_order:
        nodes.sort(key=_serial, reverse=True)
        return nodes
    order, cycle = searched(roots)
    if order is None:
        raise cycle_error(cycle)
    return order


def leading_to(order, targets):
    """Returns the targets (nodes or leaves) and all nodes in `order` that lead to one of them."""
    live = set(targets)
    for node in reversed(order):
        if not live.isdisjoint(node.edges):
            live.add(node)
    return live


def searched(roots):
    """Searches depth first for an order or a cycle.

    Colours mark the nodes (Cormen et al., Introduction to Algorithms, 22.3): white is unseen, grey
    is on the current path, black is done. An edge to a grey node closes a cycle. A stack replaces
    the recursion.

    Returns:
        (nodes, None), consumers before producers; or (None, path), a cycle [a, b, ..., a].
    """
    grey, black = 1, 2
    colour, order = {}, []
    for root in roots:
        if root in colour:
            continue
        colour[root] = grey
        path, iterators = [root], [iter(root.edges)]
        while path:
            for edge in iterators[-1]:
                if type(edge) is not Node:
                    continue
                shade = colour.get(edge)
                if shade == grey:
                    return None, [*path[path.index(edge) :], edge]
                if shade is None:
                    colour[edge] = grey
                    path.append(edge)
                    iterators.append(iter(edge.edges))
                    break
            else:
                colour[path[-1]] = black
                order.append(path.pop())
                iterators.pop()
    return order[::-1], None


def cycle_error(cycle):
    """Returns the GraphCycleError for a cycle of nodes."""
    names = [f"{node.op} ({node.line})" for node in cycle]
    shown = (
        names if len(names) <= 8 else [*names[:4], f"... {len(names) - 8} more ...", *names[-4:]]
    )
    error = GraphCycleError(
        "the graph has a cycle: " + " -> ".join(shown),
        fix="an operation must make a new node; look for one that re-uses the node of its input",
    )
    error.path = tuple(cycle)
    return error
