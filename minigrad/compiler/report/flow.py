"""Draws the data flow of a compiled step as a Diagram.

Inputs stand above their readers: arguments, parameters and state as leaves, values of earlier calls
with their sizes. Writes to memory outside the step are marked.
"""

from minigrad.compiler.program.program import ARGUMENT, CONSTANT
from minigrad.compiler.program.traffic import distinct
from minigrad.compiler.report.report_text import few
from minigrad.viz.diagram import Box, Diagram
from minigrad.viz.units import format_bytes

MOST_LINES = 6  # per box


class Flow:
    """The Diagram of units, with edges from the box that writes a value to those that read it.

    with_values: whether values are drawn, each with its size, on these edges.
    """

    def __init__(self, units, boxes, plan, names, with_values):
        self.names, self.owner, self.with_values = names, plan.owner, with_values
        self.results = {r.value: k for k, r in enumerate(plan.results)}
        self.diagram, self.writers = Diagram(late=True), {}
        self.readers = {}  # (box, Value that it wrote) -> {box that reads it}
        outside = {unit: [] for unit in boxes}
        for unit in units:
            outside[unit.box] += self._inputs(unit)
            for r in unit.writes:
                self.writers.setdefault(r.value, []).append((r, unit.box))
        boxes = self._ordered(units, boxes)
        for k, unit in enumerate(boxes):
            unit.key = f"n{k}"
            self._leaves(unit, outside[unit])
            n = len(unit.mine)
            title = f"{n} x {unit.title}" if n > 1 else unit.title
            box = Box(unit.key, unit.kind, title, list(unit.lines), unit.tooltip)
            box.times = n
            self.diagram.boxes.append(box)
        self._edges()
        for unit in boxes:
            self._outputs(unit)

    def _inputs(self, unit):
        """Note which boxes wrote what the unit reads; return the Refs that come from outside."""
        outside = []
        for r in dict.fromkeys(unit.reads):
            is_written = False
            for written, by in reversed(self.writers.get(r.value, ())):
                if written.overlaps(r):
                    is_written = True
                    if by is not unit.box:
                        self.readers.setdefault((by, r.value), {})[unit.box] = None
                    if distinct(written) >= distinct(r):
                        break
            if not is_written and not r.value.is_temporary:
                outside.append(r)
        return outside

    def _ordered(self, units, boxes):
        """Order the boxes so that edges lead forward; drop the other edges.

        A box of several calls stands at the first of them; or at the last, if no box reads their
        results, as for an optimizer.
        """
        at = {}
        read = {by for by, _ in self.readers}
        for t, unit in enumerate(units):
            if unit.box not in at or unit.box not in read:
                at[unit.box] = t
        kept = {}
        for (by, value), readers in self.readers.items():
            later = {box: None for box in readers if at[by] < at[box]}
            if later:
                kept[by, value] = later
        self.readers = kept
        return sorted(boxes, key=at.__getitem__)

    def _edges(self):
        """Connect units to readers; with values, those with the same readers share a box."""
        if not self.with_values:
            for (by, _), units in self.readers.items():
                for unit in units:
                    self.diagram.connect(by.key, unit.key)
            return
        together = {}
        for (by, value), units in self.readers.items():
            key = by, tuple(units), value.is_temporary
            together.setdefault(key, []).append(value)
        for n, ((by, units, is_temporary), values) in enumerate(together.items()):
            key, sizes, lines = f"v{n}", self._written(by, values), []
            if not is_temporary:
                lines.append("in place")
            elif len(values) == 1 and values[0] in self.owner:
                lines.append(f"over {self.names(self.owner[values[0]])}")
            name = self.names(values[0]) if len(values) == 1 else f"{len(values)} values,"
            kind = "value" if is_temporary else "alias"
            self.diagram.boxes.append(Box(key, kind, f"{name} {format_bytes(sizes)}", lines))
            self.diagram.connect(by.key, key)
            for unit in units:
                self.diagram.connect(key, unit.key)

    def _written(self, unit, values):
        written = dict.fromkeys(w for x in unit.mine for w in x.writes)
        return sum(distinct(w) for w in written if w.value in values)

    def _leaves(self, unit, refs):
        """Add boxes for what a unit reads from outside: arguments, and what the step captured."""
        for is_argument, kind in ((True, "constant"), (False, "leaf")):
            mine = {}
            for r in dict.fromkeys(refs):
                v = r.value
                if (v.kind == ARGUMENT) == is_argument and v.kind != CONSTANT:
                    mine[v] = mine.get(v, 0) + distinct(r)
            if not mine:
                continue
            total = format_bytes(sum(mine.values()))
            key = f"{unit.key}{kind[0]}"
            self.diagram.boxes.append(_box(key, kind, list(map(self.names, mine)), total))
            self.diagram.connect(key, unit.key)

    def _outputs(self, unit):
        """Add boxes for results, and for other outside memory that is written but never read."""
        results, others = {}, {}
        for r in dict.fromkeys(w for x in unit.mine for w in x.writes):
            v, is_read = r.value, (unit, r.value) in self.readers
            if v in self.results:
                results[v] = distinct(r)
            elif not v.is_temporary and not is_read:
                others[v] = others.get(v, 0) + distinct(r)
        for text, values in (("result", results), ("in place", others)):
            if not values:
                continue
            key = f"{unit.key}{text[0]}"
            total = format_bytes(sum(values.values()))
            names = list(map(self.names, values))
            self.diagram.boxes.append(_box(key, "alias", names, f"{text}, {total}"))
            self.diagram.connect(unit.key, key)


def _box(key, kind, names, line):
    """Return a Box for one array, or for several."""
    if len(names) == 1:
        return Box(key, kind, names[0], [line])
    return Box(key, kind, f"{len(names)} arrays", [line, *few(names, MOST_LINES)])
