"""Diagram: boxes with text and the edges between them. Other modules draw it.

Edges point in the direction of the forward pass, from a value to its users.
"""

from dataclasses import dataclass, field


@dataclass
class Changing:
    """A line of a box whose text changes from step to step.

    kind: value or gradient. texts: pairs (first step, text), in order.
    """

    kind: str
    texts: list


@dataclass
class Box:
    """One thing to draw.

    kind: op, leaf, constant (an input without gradient), root, group (a repeated block, with its
    parts in `inside`) or more (operations left out). Pictures of compiled steps also have product,
    opaque (a hand-written kernel), value and alias (memory outside the step that it writes); played
    pictures also have slope (a local derivative). lines: text below the title, Changing if played.
    times: the number of equal boxes that it represents. busy: the steps in which it is active.
    """

    key: str
    kind: str
    title: str
    lines: list = field(default_factory=list)
    tooltip: str = ""
    times: int = 1
    inside: "Diagram | None" = None
    busy: list = field(default_factory=list)


@dataclass
class Diagram:
    """Boxes in the order of execution, and edges as pairs of keys.

    caption: one line below the picture. entries, exits: for a diagram inside a group, the keys of
    boxes that use values from outside, and of boxes whose values are used outside or by the next
    repetition. late: whether side chains stand as far down as possible. back: edge -> the step in
    which a gradient goes back along it.
    """

    boxes: list = field(default_factory=list)
    edges: list = field(default_factory=list)
    entries: list = field(default_factory=list)
    exits: list = field(default_factory=list)
    caption: str = ""
    late: bool = False
    back: dict = field(default_factory=dict)

    def connect(self, source, target):
        """Adds an edge, once."""
        if (source, target) not in self._known:
            self._known.add((source, target))
            self.edges.append((source, target))

    def __post_init__(self):
        self._known = set(self.edges)
