"""Node: one operation of the graph.

Outputs own the graph. A Variable holds its node. A node holds edges to its inputs and the Arrays
that it saved, but never a Variable that an op made. So dropping the output frees the whole graph
behind it at once, without the garbage collector.
"""

import gc
import itertools
import sys
from typing import Any

from minigrad.array.array import Array
from minigrad.errors import describe_line, is_ours

next_serial = itertools.count(1).__next__


class _Ours(dict):
    """A cache {filename: whether the file belongs to minigrad}, because every op looks it up."""

    def __missing__(self, filename):
        is_own = self[filename] = is_ours(filename)
        return is_own


OURS = _Ours()


def user_place():
    """Returns (code, instruction) of the user's call, for `place_line`; its frame is not kept."""
    frame = sys._getframe(1)
    while OURS[frame.f_code.co_filename] and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code, frame.f_lasti


def place_line(place):
    """Returns `file:line  text` of a place, or an empty string."""
    if place is None or place[0] is None:
        return ""
    code, instruction = place
    for start, stop, number in code.co_lines():
        if start <= instruction < stop and number is not None:
            return describe_line(code.co_filename, number)
    return describe_line(code.co_filename, code.co_firstlineno)


class Plan:
    """Computes the gradients of an op's nodes; has `name`, `saved_names` and `input_names`.

    backward(node, dy) computes Arrays from an Array. backward_graph(node, dy) computes Variables
    with a graph of their own. Both return one gradient, or None, for each input. An op that reads
    part of its only input may have add_to(node, dy, total): it adds the gradient to a sum in place.
    """

    add_to: Any = None

    def narrowed(self, edges, live):
        """Returns a plan without the gradients of edges outside `live`, or itself."""
        return self

    def of_route(self):
        """Returns a plan for the nodes that one route makes, or itself."""
        return self


class Node:
    """One recorded operation.

    plan: computes the gradients and names the op. edges: for each input the Node that made it, the
    leaf Variable, or None if the input needs no gradient. kept: the saved values, None once freed.
    versions: the versions of the saved values. wanted: for each input the (shape, dtype) of its
    gradient, or None if all equal the output's. attributes: the call's other arguments. serial: a
    number, greater than those of the inputs.
    """

    __slots__ = (
        "__weakref__",
        "attributes",
        "code",
        "edges",
        "hooks",
        "instruction",
        "kept",
        "plan",
        "serial",
        "versions",
        "wanted",
    )

    def __init__(self, plan, edges, kept=(), versions=(), wanted=None, attributes=()):
        self.plan, self.edges, self.kept, self.versions = plan, edges, kept, versions
        self.wanted, self.attributes, self.hooks = wanted, attributes, None
        self.serial = next_serial()
        self.code, self.instruction = user_place()

    @property
    def op(self):
        """The name of the operation."""
        return self.plan.name

    @property
    def inputs(self):
        """A tuple: for each input the Node that made it, the leaf Variable, or None."""
        return self.edges

    @property
    def saved(self):
        """A dict of the values saved for backward, by name; empty once freed."""
        return (
            {} if self.kept is None else dict(zip(self.plan.saved_names, self.kept, strict=False))
        )

    @property
    def is_freed(self):
        """Whether the saved values have been dropped."""
        return self.kept is None

    @property
    def line(self):
        """`file:line  text` of the user's call."""
        return place_line((self.code, self.instruction))

    def edge_of(self, name):
        """Returns the edge of the input with this name in the op's signature, or None."""
        names = self.plan.input_names
        return self.edges[names.index(name)] if name in names else None

    @property
    def saved_bytes(self):
        """The bytes of the saved Arrays."""
        return sum(a.nbytes for a in self.kept or () if isinstance(a, Array))

    def free(self):
        """Drops the saved values. Backward through this node raises from now on."""
        self.kept = None

    def __repr__(self):
        return f"Node({self.op}, {self.line})"


def live_nodes():
    """Returns the live nodes, oldest first. It is slow: it walks all objects of the process."""
    nodes = [o for o in gc.get_objects() if type(o) is Node]
    nodes.sort(key=lambda n: n.serial)
    return nodes


def saved_bytes(nodes):
    """Returns the bytes of the values that nodes saved; each Storage counts once."""
    seen, total = set(), 0
    for node in nodes:
        for a in node.kept or ():
            if isinstance(a, Array) and id(a.storage) not in seen:
                seen.add(id(a.storage))
                total += a.storage.nbytes
    return total
