"""Lesson 03: cycles: what is one, how to find it, how to say where it is.

Nodes are those of lesson 02: `op`, `inputs` (a tuple of Nodes; None where
an input needs no gradient), `saved`, and `line`, where the operation was
called. An edge leads from a node to each of its inputs. A cycle is a path
along edges that comes back to where it began: a node that depends on
itself.
"""

import math
import sys

from minigrad.course.objects import Node


class GraphCycleError(RuntimeError):
    """For a graph with a cycle; `path` lists its nodes. It is complete."""

    def __init__(self, path):
        super().__init__("the graph has a cycle: " + explain_cycle(path))
        self.path = path


def find_cycle(root):
    """Look for a node that depends on itself.

    Args:
        root: a Node. An input may be None (skip it). A graph may be 50,000
            nodes deep, so a function that calls itself once a node is too
            deep for Python.

    Returns:
        None if there is no cycle among root and the nodes that it depends
        on. Two paths to the same node are no cycle, and neither is a Node
        that is twice among the inputs of another one. Otherwise one cycle,
        as a list of Nodes [a, b, ..., a]: each of them has the next one
        among its inputs, the first and the last are the same Node, and no
        other Node occurs twice. The path from root to the cycle is no part
        of it. A node that is its own input is the cycle [a, a]. Of several
        cycles, any will do.

    Look at each edge at most twice, however many paths lead to it. Use `in`
    with a set or a dict: in a list, 50,000 nodes are compared one by one.
    Change no node.
    """
    raise NotImplementedError("find_cycle is yours to write")


def explain_cycle(path):
    """Say in one line where a cycle is.

    Each entry of the path becomes `op (line)`, or `op` alone where its line
    is the empty text, and between two entries stands ` -> `:

        mul (rnn.py:12) -> tanh (rnn.py:13) -> mul (rnn.py:12)

    Of a path of more than 8 entries only the first 4 and the last 4 are
    shown, and between them `... N more ...`, where N says how many were
    left out:

        a -> b -> c -> d -> ... 3 more ... -> h -> i -> j -> a

    Args:
        path: a list of Nodes [a, b, ..., a], as find_cycle returns it. It
            is left as it is.

    Returns:
        A str, without a newline.
    """
    raise NotImplementedError("explain_cycle is yours to write")


def assert_dag(root):
    """Raise an error if root depends on a cycle, and do nothing else.

    Args:
        root: a Node, as for find_cycle.

    Returns:
        None if there is no cycle among root and the nodes that it depends
        on. A cycle in other nodes, on which root does not depend, does not
        count.

    Raises:
        GraphCycleError: there is a cycle; made as GraphCycleError(path).

    Look at each edge at most twice. Use find_cycle.
    """
    raise NotImplementedError("assert_dag is yours to write")


# --- Bug hunt -------------------------------------------------------------
# A recurrent network of one number, h = tanh(w * h + x), over and over,
# that saves memory: each step works in place. Each method records a Node
# for what it does, with the line of its call. The values are right, but the
# graph has a cycle. Which operation makes it? Write its name into BUG (the
# op of its nodes: "mul", "add", "tanh" or "store"), then repair its method.

BUG = ("op", None)


def here():
    """Return where the calling method was called, as file:line."""
    frame = sys._getframe(2)
    return f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}"


class Number:
    """A number that records what is done to it.

    `value` is the number, and `node` is the Node that made its present
    value. A method that ends in _ works in place.
    """

    def __init__(self, value):
        self.value = value
        self.node = Node("leaf", saved=(value,), line=here())

    def times(self, other):
        """Return a new Number, self * other."""
        out = Number(self.value * other.value)
        out.node = Node(
            "mul",
            (self.node, other.node),
            (self.value, other.value),
            here(),
        )
        return out

    def add_(self, other):
        """Add another Number to this one."""
        self.value += other.value
        self.node = Node("add", (self.node, other.node), (), here())

    def tanh_(self):
        """Put tanh of the value in its place."""
        self.value = math.tanh(self.value)
        self.node = Node("tanh", (self.node,), (self.value,), here())

    def store_(self, other):
        """Take over another Number's value; pass the gradient on to it."""
        self.value = other.value
        self.node.op = "store"
        self.node.inputs = (other.node,)
        self.node.saved = ()
        self.node.line = here()


def recurrent(h, w, x, steps):
    """Run the network.

    Args:
        h, w, x: Numbers: the state, which is changed in place, the weight,
            and what is added in every step.
        steps: how many steps.

    Returns:
        h, whose node is the root of the graph of all steps.
    """
    for _ in range(steps):
        u = h.times(w)
        u.add_(x)
        u.tanh_()
        h.store_(u)
    return h
