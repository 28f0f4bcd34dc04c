"""The order of the backward pass, and the search for cycles.

A node's serial number is greater than those of its inputs, so sorting by it is a topological order.
Whoever ties edges by hand can break that: then a full search decides, and names a cycle if there
is one.
"""

from operator import attrgetter

from minigrad.errors import GraphCycleError
from minigrad.tape.node import Node

_serial = attrgetter("serial")


def ordered(roots):
    """All nodes that the roots depend on, consumers before producers.

    Raises GraphCycleError, with the path in `.path`, if a node is its own ancestor.
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
    cycle = find_cycle(roots)
    if cycle is not None:
        raise cycle_error(cycle)
    return _searched(roots)


def leading_to(order, targets):
    """The targets (nodes or leaves) and all nodes in `order` from which one can be reached."""
    live = set(targets)
    for node in reversed(order):
        if any(edge in live for edge in node.edges):
            live.add(node)
    return live


def find_cycle(roots):
    """A path [a, b, ..., a] along edges if the graph has a cycle, else None. No recursion.

    Three colours (Cormen et al., Introduction to Algorithms, 22.3): white unseen, grey on the
    current path, black done. An edge to a grey node closes a cycle.
    """
    grey, black = 1, 2
    colour = {}
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
                    return [*path[path.index(edge) :], edge]
                if shade is None:
                    colour[edge] = grey
                    path.append(edge)
                    iterators.append(iter(edge.edges))
                    break
            else:
                colour[path.pop()] = black
                iterators.pop()
    return None


def cycle_error(cycle):
    """The GraphCycleError of a path."""
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


def _searched(roots):
    """Consumers before producers by depth-first search, for graphs whose serials do not tell."""
    done, order = set(), []
    for root in roots:
        stack = [(root, iter(root.edges))]
        if root in done:
            continue
        done.add(root)
        while stack:
            node, edges = stack[-1]
            for edge in edges:
                if type(edge) is Node and edge not in done:
                    done.add(edge)
                    stack.append((edge, iter(edge.edges)))
                    break
            else:
                order.append(node)
                stack.pop()
    return order[::-1]
