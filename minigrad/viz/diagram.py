"""Diagram: boxes with text, and the edges between them, without their drawing.

Edges point in the direction of the forward pass, from a value to its users.
"""

from dataclasses import dataclass, field


@dataclass
class Box:
    """One thing to draw.

    kind: op, leaf, constant (an input without gradient), root, group (a repeated block, whose
    parts are in `inside`) or more (what is left out); in pictures of compiled steps also product,
    opaque (a hand-written kernel), value and alias (memory outside that is written). lines: text
    below the title. times: how many equal boxes it stands for.
    """

    key: str
    kind: str
    title: str
    lines: list = field(default_factory=list)
    tooltip: str = ""
    times: int = 1
    inside: "Diagram | None" = None


@dataclass
class Diagram:
    """Boxes in the order of execution, and edges as pairs of keys. `caption`: one line below.

    A diagram inside a group also has `entries` and `exits`: the keys of boxes that use values from
    outside, and of boxes whose values are used outside or by the next repetition. late: whether
    side chains stand as far down as possible.
    """

    boxes: list = field(default_factory=list)
    edges: list = field(default_factory=list)
    entries: list = field(default_factory=list)
    exits: list = field(default_factory=list)
    caption: str = ""
    late: bool = False

    def connect(self, source, target):
        """Adds an edge, once."""
        if (source, target) not in self._known:
            self._known.add((source, target))
            self.edges.append((source, target))

    def __post_init__(self):
        self._known = set(self.edges)
