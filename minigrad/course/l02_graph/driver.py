"""Builds graphs of Nodes in the learner's process, and turns what comes back into plain data.

A node is known by its place: the number of its row. Rows come, and nodes are made, in a shuffled
order, since the learner's code can look at what this module's functions hold.
"""

from minigrad.course.objects import Node


class Watched(Node):
    """A Node that counts comparisons and looks at `inputs`, for all of them together."""

    comparisons = 0
    looks = 0

    def __eq__(self, other):
        Watched.comparisons += 1
        return self is other

    __hash__ = object.__hash__

    @property
    def inputs(self):
        Watched.looks += 1
        return self._inputs

    @inputs.setter
    def inputs(self, inputs):
        self._inputs = inputs


def build(ops, inputs, saved=None, kind=Node):
    """Return a graph's Nodes; each row has its op, its inputs' places, what it saved."""
    nodes = [kind(op, (), tuple(saved[k]) if saved else ()) for k, op in enumerate(ops)]
    for node, row in zip(nodes, inputs, strict=True):
        node.inputs = tuple(None if i is None else nodes[i] for i in row)
    return nodes


def places(result, nodes):
    """Return places for a list of nodes, text for items that are none; describe anything else."""
    if not isinstance(result, list):
        return result
    place = {id(node): k for k, node in enumerate(nodes)}
    return [place.get(id(one), repr(one)[:60]) for one in result]


def by_place(result, nodes):
    """Return [keys, values] for a dict whose keys are nodes; describe anything else."""
    if not isinstance(result, dict):
        return result
    return {"keys": places(list(result), nodes), "values": list(result.values())}


def order(mine, ops, inputs, root, name):
    """Return the result of topo_order or hasty_order, as places."""
    nodes = build(ops, inputs)
    fields = [dict(vars(node)) for node in nodes]
    first, second = (getattr(mine, name)(nodes[root]) for _ in range(2))
    return {
        "found": places(first, nodes),
        "again": places(second, nodes),
        "is_new": second is not first,
        "unchanged": fields == [vars(node) for node in nodes],
    }


def comparisons(mine, ops, inputs, root, name):
    """Return how often nodes were compared while a graph was sorted."""
    nodes = build(ops, inputs, kind=Watched)
    Watched.comparisons = 0
    getattr(mine, name)(nodes[root])
    return Watched.comparisons


def long_order(mine, ops, inputs, root, name):
    """Return the result of topo_order or hasty_order for a large graph, as places."""
    nodes = build(ops, inputs)
    return {"found": places(getattr(mine, name)(nodes[root]), nodes), "unchanged": True}


def gradients(mine, ops, inputs, root, saved):
    """Return the result of backward, by place, and that of a second call."""
    nodes = build(ops, inputs, saved)
    return two_calls(lambda: mine.backward(nodes[root]), nodes)


def two_calls(call, nodes):
    """Return a call's result, by place, that of a second call, and whether it is a new dict."""
    first = call()
    placed = by_place(first, nodes)
    second = call()
    return {"found": placed, "again": by_place(second, nodes), "is_new": second is not first}


def rule_calls(mine, ops, inputs, root, saved):
    """Return how often a rule was called in a backward pass over a graph."""
    nodes, calls = build(ops, inputs, saved), [0]
    originals = dict(mine.RULES)

    def counted(rule):
        def call(dy, *saved):
            calls[0] += 1
            return rule(dy, *saved)

        return call

    mine.RULES.update({op: counted(rule) for op, rule in originals.items()})
    try:
        grads = mine.backward(nodes[root])
    finally:
        mine.RULES.update(originals)
    return {"calls": calls[0], "grads": by_place(grads, nodes)}


def visits(mine, ops, inputs, root, algorithm):
    """Return the result of count_visits, by place, and that of a second call."""
    nodes = build(ops, inputs)
    return two_calls(lambda: mine.count_visits(nodes[root], algorithm), nodes)


def looks(mine, ops, inputs, root):
    """Return how often count_visits looked at a node's inputs."""
    nodes = build(ops, inputs, kind=Watched)
    Watched.looks = 0
    mine.count_visits(nodes[root], "naive")
    return Watched.looks


def counterexample(mine):
    """Return the learner's graph as rows, inputs first if it has no cycle."""
    root = mine.counterexample()
    if not isinstance(root, Node):
        return {"not_a_node": root}
    nodes, waiting = [], [root]
    while waiting and len(nodes) < 100:
        node = waiting.pop()
        if node not in nodes:
            nodes.append(node)
            waiting += [one for one in node.inputs if isinstance(one, Node)]
    place = {id(node): k for k, node in enumerate(nodes)}
    return {
        "ops": [str(node.op) for node in nodes],
        "inputs": [[None if i is None else place.get(id(i)) for i in n.inputs] for n in nodes],
    }


def refused(mine, ops, inputs, root, algorithm):
    """Return what count_visits raises for an unknown algorithm, None for nothing."""
    nodes = build(ops, inputs)
    try:
        mine.count_visits(nodes[root], algorithm)
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        return {"raised": kinds, "text": str(error)[:100]}
    return None
