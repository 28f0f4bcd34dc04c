"""Builds graphs of Nodes in the learner's process, cycles and all; hands back plain data.

A node is known by its place: the number of its row. Rows come in a shuffled order, since the order
of rows would reveal a cycle, and the learner's code can look at what this module's functions hold.
"""

import contextlib
import io
import operator
import sys

from minigrad.course.objects import Node


class Counted(tuple):
    """A node's inputs that count how often one is looked at, for all nodes together."""

    __slots__ = ()
    looks = 0

    def __iter__(self):
        for one in super().__iter__():
            Counted.looks += 1
            yield one

    def __getitem__(self, index):
        Counted.looks += len(range(len(self))[index]) if isinstance(index, slice) else 1
        return super().__getitem__(index)


class Compared(Node):
    """A Node that counts comparisons of two nodes, for all nodes together."""

    __hash__ = Node.__hash__
    times = 0

    def __eq__(self, other):
        Compared.times += 1
        return self is other


def build(ops, inputs, kind=tuple, lines=None, node=Node):
    """Return a graph's Nodes; each row has its op and its inputs' places."""
    nodes = [node(op, (), (k,), lines[k] if lines else "") for k, op in enumerate(ops)]
    join(nodes, inputs, kind)
    return nodes


def join(nodes, inputs, kind=tuple):
    """Set the inputs of nodes, given as places."""
    for node, row in zip(nodes, inputs, strict=True):
        node.inputs = kind(None if i is None else nodes[i] for i in row)


def places(result, nodes):
    """Return places for a list of nodes, text for items that are none; describe anything else."""
    if not isinstance(result, list | tuple):
        return result
    place = {id(node): k for k, node in enumerate(nodes)}
    # Take no repr of a node with a place: that would look at edges.
    kept = [place[id(one)] if id(one) in place else repr(one)[:60] for one in result]
    return kept if isinstance(result, list) else tuple(kept)


def as_they_were(nodes, made, kind):
    """Return whether nodes still have exactly the attributes that they had."""
    return all(
        {**vars(node), "inputs": None} == {**known, "inputs": None}
        and type(node.inputs) is kind
        and len(node.inputs) == len(known["inputs"])
        and all(map(operator.is_, tuple.__iter__(node.inputs), tuple.__iter__(known["inputs"])))
        for node, known in zip(nodes, made, strict=True)
    )


def find(mine, ops, inputs, root, before=None):
    """Return the result of find_cycle, as places, and how often edges were looked at.

    With `before`, call it first on the same nodes with these inputs.
    """
    nodes = build(ops, before or inputs, Counted)
    if before:
        mine.find_cycle(nodes[root])
        join(nodes, inputs, Counted)
    made = [dict(vars(node)) for node in nodes]
    Counted.looks = 0
    cycle = mine.find_cycle(nodes[root])
    looks, same = Counted.looks, as_they_were(nodes, made, Counted)
    answer = places(cycle, nodes)
    mine.find_cycle(Node("leaf"))
    ring = Node("tanh")
    ring.inputs = (ring,)
    mine.find_cycle(ring)
    stays = not isinstance(answer, list | tuple) or places(cycle, nodes) == answer
    return {"found": answer, "looks": looks, "unchanged": same, "stays": stays}


def find_long(mine, ops, inputs, root):
    """Return the result of find_cycle for a long graph, without counting looks at edges."""
    nodes = build(ops, inputs)
    return {"found": places(mine.find_cycle(nodes[root]), nodes), "looks": 0}


def find_compared(mine, ops, inputs, root):
    """Return the same for a graph whose nodes count comparisons of two of them."""
    nodes = build(ops, inputs, node=Compared)
    Compared.times = 0
    cycle = mine.find_cycle(nodes[root])
    return {"found": places(cycle, nodes), "looks": 0, "compared": Compared.times}


def explained(mine, ops, lines):
    """Return the result of explain_cycle for a path of nodes with these ops and lines.

    Also return that for the same nodes once each has another one's op and line, and whether both
    lists are as they were.
    """
    nodes = [Node(op, line=line) for op, line in zip(ops, lines, strict=True)]
    path, made = [*nodes, nodes[0]], [dict(vars(node)) for node in nodes]
    explanation = mine.explain_cycle(path)
    same_nodes = as_they_were(nodes, made, tuple)
    for node, op, line in zip(nodes, reversed(ops), reversed(lines), strict=True):
        node.op, node.line = op, line
    later = mine.explain_cycle([*nodes, nodes[0]])
    same = len(path) == len(ops) + 1 and all(map(operator.is_, path, [*nodes, nodes[0]]))
    return {"found": explanation, "later": later, "same": same, "same_nodes": same_nodes}


def asserted(mine, ops, inputs, root, before=None, lines=None, counted=True):
    """Return what assert_dag raises, if anything, and how often edges were looked at.

    With `before`, call it first on the same nodes with these inputs.
    """
    kind = Counted if counted else tuple
    nodes = build(ops, before or inputs, kind, lines)
    printed = io.StringIO()
    both = contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed)
    if before:
        with contextlib.suppress(Exception):
            mine.assert_dag(nodes[root])
        join(nodes, inputs, kind)
    made = [dict(vars(node)) for node in nodes]
    Counted.looks = 0
    raised = returned = None
    try:
        with both[0], both[1]:
            returned = mine.assert_dag(nodes[root])
    except NotImplementedError:
        raise
    except Exception as error:
        raised = {
            "kinds": [kind.__name__ for kind in type(error).__mro__],
            "text": str(error)[:300],
            "is_it": isinstance(error, mine.GraphCycleError),
            "path": places(getattr(error, "path", None), nodes),
        }
    looks = Counted.looks
    said = None if returned is None else repr(returned)[:60]
    sys.stdout.write(printed.getvalue())  # the report shows it
    left = {"printed": printed.getvalue(), "unchanged": as_they_were(nodes, made, kind)}
    return {"raised": raised, "returned": said, "looks": looks, **left}


def assert_long(mine, ops, inputs, root):
    """Return the same for a long graph, without counting looks at edges."""
    return asserted(mine, ops, inputs, root, counted=False)


def rows(root, known):
    """Return the graph behind a Node as rows, with the nodes `known` first."""
    nodes, place = list(known), {id(node): k for k, node in enumerate(known)}
    if id(root) not in place:
        place[id(root)] = len(nodes)
        nodes.append(root)
    for node in nodes:
        for one in node.inputs:
            if isinstance(one, Node) and id(one) not in place and len(nodes) < 1000:
                place[id(one)] = len(nodes)
                nodes.append(one)
    return {
        "ops": [str(node.op) for node in nodes],
        "inputs": [[place.get(id(one)) for one in node.inputs] for node in nodes],
        "lines": [str(node.line) for node in nodes],
        "saved": [[float(value) for value in node.saved] for node in nodes],
        "root": place[id(root)],
    }


def store(mine, start, factor):
    """Run h = Number(start); u = h.times(Number(factor)); h.store_(u)."""
    h, w = mine.Number(start), mine.Number(factor)
    first = h.node
    u = h.times(w)
    made = u.node
    _, line = h.store_(u), mine.Number(0.0).node.line  # a Number made on the same line
    of_u = made.op if u.node is made else u.node.op
    values = {"value": h.value, "value_of_u": u.value, "kind": type(h.node.inputs).__name__}
    return {**values, "line": line, "of_u": of_u, **rows(h.node, [first, w.node])}


def run(mine, h, w, x, steps):
    """Run the recurrent network; rows 0, 1 and 2 are the leaves h, w and x."""
    numbers = [mine.Number(value) for value in (h, w, x)]
    leaves = [number.node for number in numbers]
    end = mine.recurrent(*numbers, steps)
    return {"value": end.value, "same": end is numbers[0], **rows(end.node, leaves)}
