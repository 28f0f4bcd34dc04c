"""Builds a Diagram of Variables: a box per operation, leaf or input, a group per repetition."""

from minigrad.array.array import Array
from minigrad.devices.backend import values
from minigrad.tape.function_plan import SelectPlan
from minigrad.tape.node import Node
from minigrad.viz.diagram import Box, Diagram
from minigrad.viz.folding import Repeat, folded
from minigrad.viz.units import format_bytes, format_shape, joined_name, plural

MOST_ITEMS = 400  # boxes; a drawing with more is not readable
SHOWN_EACH_END = 60


def build_diagram(roots, nodes, fold):
    """Builds the Diagram of root Variables.

    Args:
        nodes: every node behind the roots, consumers before producers.
        fold: as for `minigrad.viz.folding.folded`.
    """
    layouts = output_layouts(roots, nodes)
    nodes = nodes[::-1]
    items = _shortened(folded(nodes, layouts, fold))
    builder = Builder(roots, items, layouts)
    builder.diagram.caption = caption(nodes)
    return builder.diagram


def wanted_of(node):
    """Returns for each input (shape, dtype, ...), or None for a number.

    None instead of the list means that all inputs have the output's shape and dtype.
    """
    return node.wanted or getattr(node.plan, "wanted", None)


def output_layouts(roots, nodes):
    """Returns {node: (shape, dtype) of its output}, as far as roots and consumers know it.

    Args:
        nodes: consumers before producers.
    """
    known = {r.node: (r.shape, r.dtype) for r in roots if r.node is not None}
    for node in nodes:
        wanted = wanted_of(node)
        for k, edge in enumerate(node.edges):
            if type(edge) is not Node or edge in known or type(node.plan) is SelectPlan:
                continue  # a Function with several outputs has no single shape
            if wanted is None and node in known:
                known[edge] = known[node]
            elif wanted is not None and wanted[k] is not None:
                known[edge] = tuple(wanted[k][:2])
    return known


def _shortened(items):
    """Returns the items; replaces the middle of too many with one tuple of nodes."""
    if len(items) <= MOST_ITEMS:
        return items
    middle = []
    for item in items[SHOWN_EACH_END:-SHOWN_EACH_END]:
        middle += _members(item)
    return [*items[:SHOWN_EACH_END], tuple(middle), *items[-SHOWN_EACH_END:]]


def _members(item):
    if isinstance(item, Repeat):
        return item.nodes()
    return item if isinstance(item, tuple) else (item,)


class _Frame:
    """A diagram under construction: the whole picture (key None), or a group for one block."""

    def __init__(self, diagram, key=None, number=None, block=()):
        self.diagram, self.key, self.number, self.block = diagram, key, number, set(block)
        self.handed_on = []  # nodes whose values the next repetition uses


class Builder:
    """Builds the Diagram of items: nodes, Repeats, and tuples of nodes to leave out."""

    def __init__(self, roots, items, layouts):
        self.items, self.layouts, self.count = items, layouts, 0
        self.diagram = Diagram()
        self.outermost = _Frame(self.diagram)
        self.inner = {}  # node -> key of its own box
        self.outer = {}  # node -> key of the box that represents it on the outermost level
        self.leaf_keys = {}  # ids of leaves that share a box -> its key
        self.leaf_homes = _homes(items)
        self.passed_on = _passed_on(items) | {r.node for r in roots}
        for number, item in enumerate(items):
            if isinstance(item, Repeat):
                self._add_group(item, number)
            elif isinstance(item, tuple):
                self._add_more(item)
            else:
                self._add_op(self.outermost, [item])
        for root in roots:
            self.add_root(root)

    def new_key(self, prefix):
        """Returns a key that no other box has."""
        self.count += 1
        return f"{prefix}{self.count}"

    def _add_op(self, frame, nodes):
        """Adds the box of one node, or of the nodes at one position of a repeated block."""
        node = nodes[-1]
        key = self.new_key("n")
        for n in nodes:
            self.inner[n], self.outer[n] = key, frame.key or key
        box = Box(key, "op", node.op, tooltip=_tooltip(node))
        if node in self.layouts:
            box.lines.append(format_shape(*self.layouts[node]))
        box.lines += _saved_lines(node)
        sources = [self._input(frame, nodes, k, key) for k in range(len(node.edges))]
        frame.diagram.boxes.append(box)
        for k, source in enumerate(sources):
            if source is not None:
                self.connect(frame.diagram, source, key, node, k)

    def connect(self, diagram, source, key, node, k):
        """Connects the box `source` to input k of a node, whose box is `key`."""
        diagram.connect(source, key)

    def _input(self, frame, nodes, k, key):
        """Returns the key of the box that feeds input k, or None if it is outside the frame."""
        edges = [n.edges[k] for n in nodes]
        edge = edges[-1]
        if edge is None:
            return self._constant(frame, nodes[-1], k)
        if type(edge) is Node:
            if frame.key is None:
                return self.outer[edge]
            if edge in frame.block:
                return self.inner[edge]
            for e in edges:
                source = self.outer[e]
                if source == frame.key:
                    frame.handed_on.append(e)
                else:
                    self.diagram.connect(source, frame.key)
            frame.diagram.entries.append(key)
            return None
        leaves = tuple({id(e): e for e in edges}.values())
        if frame.key is None or self.leaf_homes.get(_family(leaves)) == frame.number:
            return self._leaf(frame, leaves)
        self.diagram.connect(self._leaf(self.outermost, leaves), frame.key)
        frame.diagram.entries.append(key)
        return None

    def _leaf(self, frame, leaves):
        family = _family(leaves)
        if family not in self.leaf_keys:
            self.leaf_keys[family] = self.new_key("l")
            name = joined_name([x.name for x in leaves]) or "leaf"
            tooltip = "a leaf: backward adds to its .grad"
            if len(leaves) > 1:
                tooltip = f"{len(leaves)} leaves, one a repetition"
            if not leaves[-1].requires_grad:
                tooltip = "a leaf that requires no gradient"
            lines = [format_shape(leaves[-1].shape, leaves[-1].dtype)]
            box = Box(self.leaf_keys[family], "leaf", name, lines, tooltip, len(leaves))
            frame.diagram.boxes.append(box)
        return self.leaf_keys[family]

    def _constant(self, frame, node, k):
        """Adds the box of an input without gradient, of which only the layout is known.

        Returns its key, or None for a number, which gets no box.
        """
        wanted = wanted_of(node)
        layout = self.layouts.get(node) if wanted is None else wanted[k]
        if layout is None:
            return None
        names = node.plan.input_names
        title = names[k] if k < len(names) else "input"
        box = Box(self.new_key("c"), "constant", title, [format_shape(*layout[:2])])
        box.tooltip = f"input {title} of {node.op}: takes no gradient"
        frame.diagram.boxes.append(box)
        return box.key

    def _add_group(self, repeat, number):
        block, times = repeat.blocks[-1], len(repeat.blocks)
        key = self.new_key("g")
        frame = _Frame(Diagram(), key, number, block)
        for n in repeat.nodes():
            self.outer[n] = key
        for position in range(len(block)):
            self._add_op(frame, [b[position] for b in repeat.blocks])
        inside = frame.diagram
        leaving = (n for n in block if n in self.passed_on)
        inside.exits += [self.inner[n] for n in (*leaving, *frame.handed_on)]
        inside.entries = list(dict.fromkeys(inside.entries))
        inside.exits = list(dict.fromkeys(inside.exits))
        box = Box(key, "group", f"\u00d7 {times}", times=times, inside=inside)
        box.tooltip = f"{plural(len(block), 'operation')}, {times} times; shown: the last time"
        self.diagram.boxes.append(box)

    def _add_more(self, nodes):
        key = self.new_key("m")
        for n in nodes:
            self.inner[n] = self.outer[n] = key
        text = f"{len(nodes):,} more operations"
        self.diagram.boxes.append(Box(key, "more", "...", [text], "left out of the picture"))
        for n in nodes:
            for edge in n.edges:
                if type(edge) is Node and self.outer[edge] != key:
                    self.diagram.connect(self.outer[edge], key)

    def add_root(self, root):
        """Adds the box of a root below its node."""
        if root.node is None:
            self._leaf(self.outermost, (root,))
            return
        lines = [format_shape(root.shape, root.dtype)]
        if root.size == 1:
            lines.append(f"= {values(root.array).item():.6g}")
        box = Box(self.new_key("r"), "root", root.name or "output", lines, "backward starts here")
        self.diagram.boxes.append(box)
        self.diagram.connect(self.outer[root.node], box.key)


def _family(leaves):
    return frozenset(map(id, leaves))


def _homes(items):
    """Returns {family of leaves: item number of the only group that uses them}."""
    users, families = {}, {}
    for number, item in enumerate(items):
        is_group = isinstance(item, Repeat)
        rows = zip(*item.blocks, strict=True) if is_group else ((n,) for n in _members(item))
        for nodes in rows:
            for edges in zip(*(n.edges for n in nodes), strict=True):
                if type(edges[-1]) is Node or edges[-1] is None:
                    continue
                for leaf in edges:
                    users.setdefault(id(leaf), set()).add(number)
                if is_group and len(_family(edges)) > 1:
                    families[_family(edges)] = number
    return {f: n for f, n in families.items() if all(users[leaf] == {n} for leaf in f)}


def _passed_on(items):
    """Returns the nodes whose values other items use."""
    used = set()
    for item in items:
        members = set(_members(item))
        for n in members:
            used |= {e for e in n.edges if type(e) is Node and e not in members}
    return used


def caption(nodes):
    """Returns the caption: the number of operations and leaves, and the bytes saved."""
    leaves = {id(e): e for n in nodes for e in n.edges if e is not None and type(e) is not Node}
    parts = [plural(len(nodes), "operation"), plural(len(leaves), "leaf", "leaves")]
    freed = sum(n.is_freed for n in nodes)
    if nodes and freed == len(nodes):
        return " \u00b7 ".join([*parts, "freed: backward has used up what was saved"])
    if freed:
        parts.append(f"{plural(freed, 'operation')} freed")
    total, held = saved_totals(nodes, leaves.values())
    text = f"saved for backward: {format_bytes(total)}"
    if held:
        text += f", {format_bytes(held)} of it leaves"
    return " \u00b7 ".join([*parts, text])


def saved_totals(nodes, leaves):
    """Returns (bytes saved, bytes of these that leaves own); each Storage counts once."""
    own = {id(leaf.array.storage) for leaf in leaves}
    seen, total, held = set(), 0, 0
    for n in nodes:
        for value in n.kept or ():
            if isinstance(value, Array) and id(value.storage) not in seen:
                seen.add(id(value.storage))
                total += value.storage.nbytes
                held += value.storage.nbytes if id(value.storage) in own else 0
    return total, held


def _saved_lines(node):
    lines = []
    for name, value in node.saved.items():
        if isinstance(value, Array):
            lines.append(f"saves {name} {format_bytes(value.nbytes)}")
        elif value is not None:
            lines.append(f"{name} = {value:.6g}")
    return lines


def _tooltip(node):
    lines = [node.line or node.op]
    for name, value in node.saved.items():
        if isinstance(value, Array):
            size = format_bytes(value.nbytes)
            lines.append(f"saved {name}: {format_shape(value.shape, value.dtype)}, {size}")
    if node.is_freed:
        lines.append("freed: backward has used it up")
    return "\n".join(lines)
