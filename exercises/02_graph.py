"""Lesson 02: the graph, and the order in which to walk it.

A graph is made of `Node`s. Each has an `op`, `inputs` (a tuple of Nodes;
None stands for an input that needs no gradient, such as a constant) and
`saved` (what its backward rule needs). A node's inputs were made before it,
so there is no cycle. If a node has `node` among its inputs, it is a
*consumer* of node; one node may be an input of many others, and twice of
the same one.
"""

import math

from minigrad.course.objects import Node

# The backward function of each op: rule(dy, *saved) is a tuple, a gradient
# per input.
RULES = {
    "add": lambda dy: (dy, dy),
    "mul": lambda dy, a, b: (dy * b, dy * a),
    "tanh": lambda dy, y: (dy * (1 - y * y),),
}

# --- For building graphs by hand: these four are complete. ----------------


def leaf(value):
    """Return a node without inputs that holds a number; it has no rule."""
    return with_value(Node("leaf", saved=(value,)), value)


def add(a, b):
    """Return a node for a + b; a and b are nodes or numbers."""
    return with_value(Node("add", edges(a, b)), value_of(a) + value_of(b))


def mul(a, b):
    """Return a node for a * b; a and b are nodes or numbers."""
    return with_value(
        Node("mul", edges(a, b), (value_of(a), value_of(b))),
        value_of(a) * value_of(b),
    )


def tanh(a):
    """Return a node for tanh(a)."""
    y = math.tanh(value_of(a))
    return with_value(Node("tanh", edges(a), (y,)), y)


def with_value(node, value):
    """Put the number itself on the node, for the four functions above."""
    node.value = value
    return node


def value_of(a):
    """Return the number of a node; of a number, itself."""
    return a.value if isinstance(a, Node) else a


def edges(*inputs):
    """Return the inputs of a node: None stands for a plain number."""
    return tuple(a if isinstance(a, Node) else None for a in inputs)


# --- Exercises ------------------------------------------------------------


def topo_order(root):
    """Put the nodes that root depends on into an order.

    Args:
        root: a Node. The graph has no cycle. An input may be None (skip
            it), the same Node may be among the inputs twice, and a chain
            may be 50,000 nodes deep, so a function that calls itself once a
            node is too deep for Python.

    Returns:
        A new list of Nodes: root and every node that it depends on, each
        exactly once, every node after all of its inputs. So root is the
        last. Leaves belong to the list, and None does not. Where several
        orders are right, any will do.

    Change no node. Do not search a list to see whether it has a node: that
    is too slow. Nodes can be put into sets, and be keys of a dict.
    """
    raise NotImplementedError("topo_order is yours to write")


def backward(root):
    """Compute how much root changes with each node that it depends on.

    RULES[node.op](dy, *node.saved) turns dy, the gradient of root with
    respect to node, into a tuple: what this node sends to each of its
    inputs, in the order of node.inputs. What is sent to an input that is
    None is dropped. What several consumers send to one node, or one
    consumer sends to it twice, is added up.

    Args:
        root: a Node of a graph without cycles. Its leaves have the op
            "leaf", no inputs, and no rule.

    Returns:
        A new dict: for root and every node that it depends on, leaves and
        nodes in the middle alike, the gradient, a number. That of root is
        1.0.

    Call the rule of each node that is no leaf exactly once, as
    RULES[node.op], when its dy is complete, also where that is 0. Use your
    topo_order.
    """
    raise NotImplementedError("backward is yours to write")


def count_visits(root, algorithm):
    """Say how often a walk from root backward visits each node.

    algorithm="naive" is the walk visit(root), where visit(node) calls visit
    for each of node.inputs that is not None, one after another, whether or
    not it was there before: it goes down every path that leads to a node.
    algorithm="sorted" walks along the list of topo_order.

    Args:
        root: a Node of a graph without cycles, as deep as in topo_order.
            The same Node may be among the inputs of another one twice:
            visit goes there twice.
        algorithm: "naive" or "sorted"; anything else raises ValueError.

    Returns:
        A new dict: for root and every node that it depends on, the number
        of visits, an int. The visit(root) that starts the naive walk counts
        for root.

    Do not run the naive walk: in a graph of 201 nodes it would visit a leaf
    2**200 times, and this function must say so. Use your topo_order.
    """
    raise NotImplementedError("count_visits is yours to write")


# --- Bug hunt -------------------------------------------------------------
# hasty_order should give every node before its inputs, so that backward can
# walk along it: then the dy of each node is complete in time. It is right
# for every chain and for every tree. Find a graph of at most five nodes for
# which it is wrong, let counterexample build it, then repair hasty_order.


def counterexample():
    """Build a graph for which hasty_order, as it came, is wrong.

    Returns:
        The root, a Node, of a graph of at most five nodes without cycles in
        whose hasty_order a node that is no leaf stands before one of its
        consumers. (A leaf passes nothing on, so for a leaf that does no
        harm.) Build it with leaf, add, mul and tanh from the top of this
        file.
    """
    raise NotImplementedError("counterexample is yours to write")


def hasty_order(root):
    """Put the nodes that root depends on into an order, root first.

    Args:
        root: a Node of a graph without cycles; an input may be None.

    Returns:
        A new list of Nodes: root and every node that it depends on, each
        exactly once, every node before all of its inputs.
    """
    order, seen, stack = [], set(), [root]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            order.append(node)
            stack.extend(
                one for one in reversed(node.inputs) if one is not None
            )
    return order
