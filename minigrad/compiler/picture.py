"""step.graph(): a program as a picture, one box for each call, or for each instruction before.

What is read comes from above: arguments, parameters and state as leaves, values that an earlier
call has made with their sizes. What is written outside of the step's own memory is marked.
"""

from minigrad.compiler.items import meet
from minigrad.compiler.labels import label, operation, short_argument
from minigrad.compiler.program import ARGUMENT, CONSTANT
from minigrad.compiler.report import form_of
from minigrad.compiler.traffic import distinct
from minigrad.kernels.expression import Expression
from minigrad.viz.diagram import Box, Diagram
from minigrad.viz.picture import Picture
from minigrad.viz.units import format_bytes, format_shape, plural

MOST_BOXES = 60  # calls, or instructions, of a picture that shows each
MOST_LINES = 6  # of one box
LEGEND = (
    "blue: generated kernels",
    "purple: matrix products",
    "teal: hand-written kernels",
    "green: read",
    "orange: results, and what is written in place",
)


class Unit:
    """A call or an instruction: what it reads and writes.

    form: what those that may share a box have in common; box: the first of them; times: how many.
    """

    def __init__(self, kind, title, lines, instructions, reads, writes, form):
        self.kind, self.title, self.lines, self.form = kind, title, lines, form
        self.tooltip = "\n".join(dict.fromkeys(i.line for i in instructions if i.line))
        self.reads, self.writes, self.times = list(reads), list(writes), 1
        self.box, self.mine = self, [self]

    def take(self, other):
        """Stands for one more."""
        self.times += 1
        other.box = self
        self.mine.append(other)


def picture_of(plan, names, title="", before=False):
    """The Picture of a plan; before: of the instructions before they were fused."""
    units = _instructions(plan) if before else _calls(plan)
    n = len(units)
    what = plural(n, "instruction" if before else "call")
    caption = [f"{title}: {what}" if title else what]
    if n > MOST_BOXES:
        boxes = _by_form(units)
        caption.append(
            f"folded: {plural(len(boxes), 'box', 'boxes')}, what has one form in one; "
            "edges that lead back are left out"
        )
    else:
        boxes = units if before else _side_by_side(units)
    with_values = n <= MOST_BOXES and not before
    flow = Flow(units, boxes, plan, names, with_values)
    flow.diagram.caption = " \u00b7 ".join([*caption, *LEGEND])
    return Picture(flow.diagram)


# -- units -------------------------------------------------------------------------------------


def _calls(plan):
    found = []
    for region in plan.regions:
        for call in region:
            if call.kind == "finish":
                continue
            item, (function, kind, *_) = call.item, form_of(call, plan.kernels)
            lines = [function]
            if len(item.instructions) > 1:
                lines += _listed(item.instructions)
            found.append(
                Unit(
                    "op" if kind == "loop" else kind,
                    label(item),
                    lines,
                    item.instructions,
                    item.reads,
                    item.writes,
                    (function, label(item)),
                )
            )
    return found


def _listed(instructions):
    """One line for each operation, with its count."""
    counts = {}
    for i in instructions:
        counts[_operation(i)] = counts.get(_operation(i), 0) + 1
    lines = [f"{n} x {text}" if n > 1 else text for text, n in counts.items()]
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 1], f"and {len(lines) - MOST_LINES + 1} more"]
    return lines


def _operation(i):
    """`relu: maximum`: an operation, and the function or kernel that it comes down to, if one."""
    name, inner, program = operation(i), i.op, i.attributes.get("program")
    if program is not None:
        e = program.outputs[0]
        is_one = (
            len(program.outputs) == 1
            and i.op != "rows"
            and all(a.op in ("symbol", "constant") for a in e.args if isinstance(a, Expression))
        )
        inner = i.attributes.get("how") or (e.op if is_one else name)
    inner = {"symbol": "copy", "constant": "fill"}.get(inner, inner)
    return name if inner == name else f"{name}: {inner}"


def _instructions(plan):
    where = {}
    for region in plan.regions:
        for call in region:
            if call.kind == "loop":
                for i in call.item.instructions:
                    where[i] = plan.kernels[call.kernel.text]
    found = []
    for i in plan.recording.instructions:
        is_loop = i.op in ("elementwise", "rows", "reduce")
        kind = "product" if i.op == "matmul" else "op" if is_loop else "opaque"
        lines = [
            f"{format_shape(r.shape, r.dtype)} {format_bytes(r.nbytes)}" for r in i.outputs[:2]
        ]
        lines += [f"in {where[i]}"] if i in where else []
        found.append(
            Unit(kind, _operation(i), lines, [i], i.reads, i.writes, (_operation(i), *lines))
        )
    return found


def _side_by_side(units):
    """Neighbours of one form that do not need one another, as one."""
    found = []
    for unit in units:
        if (
            found
            and found[-1].form == unit.form
            and not any(meet(w, r) for x in found[-1].mine for w in x.writes for r in unit.reads)
        ):
            found[-1].take(unit)
        else:
            found.append(unit)
    return found


def _by_form(units):
    found = {}
    for unit in units:
        if unit.form in found:
            found[unit.form].take(unit)
        else:
            found[unit.form] = unit
    return list(found.values())


# -- edges -------------------------------------------------------------------------------------


class Flow:
    """The Diagram of units: who reads what from whom, seen from box to box.

    with_values: whether values are drawn, each with its size, between who makes and who reads them.
    """

    def __init__(self, units, boxes, plan, names, with_values):
        self.names, self.owner, self.with_values = names, plan.owner, with_values
        self.results = {r.value: k for k, r in enumerate(plan.results)}
        self.diagram, self.writers = Diagram(late=True), {}
        self.readers = {}  # (box, Value that it wrote) -> {box that reads it}
        self.number = {unit: k for k, unit in enumerate(boxes)}
        outside = {unit: [] for unit in boxes}
        for unit in units:
            outside[unit.box] += self._inputs(unit)
            for r in unit.writes:
                self.writers.setdefault(r.value, []).append((r, unit.box))
        for unit, k in self.number.items():
            unit.key = f"n{k}"
            self._leaves(unit, outside[unit])
            box = Box(unit.key, unit.kind, self._title(unit), list(unit.lines), unit.tooltip)
            box.times = unit.times
            self.diagram.boxes.append(box)
        self._edges()
        for unit in boxes:
            self._outputs(unit)

    def _title(self, unit):
        return f"{unit.times} x {unit.title}" if unit.times > 1 else unit.title

    def _inputs(self, unit):
        """Notes who wrote what the unit reads; the Refs that come from outside."""
        outside = []
        for r in dict.fromkeys(unit.reads):
            found = False
            for written, by in reversed(self.writers.get(r.value, ())):
                if meet(written, r):
                    found = True
                    if self.number[by] < self.number[unit.box]:
                        self.readers.setdefault((by, r.value), {})[unit.box] = None
                    if distinct(written) >= distinct(r):
                        break
            if not found and not r.value.is_temporary:
                outside.append(r)
        return outside

    def _edges(self):
        """Edges from units to readers; with values, those of the same readers in one box."""
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
        """Boxes for what a unit reads from outside: arguments, and what the step captured."""
        for is_argument, kind in ((True, "constant"), (False, "leaf")):
            mine = {}
            for r in dict.fromkeys(refs):
                v = r.value
                if (v.kind == ARGUMENT) == is_argument and v.kind != CONSTANT:
                    mine[v] = mine.get(v, 0) + distinct(r)
            if not mine:
                continue
            names = [short_argument(v) if is_argument else self.names(v) for v in mine]
            total = format_bytes(sum(mine.values()))
            key = f"{unit.key}{kind[0]}"
            if len(mine) == 1:
                box = Box(key, kind, names[0], [total])
            else:
                box = Box(key, kind, f"{len(mine)} arrays", [total, *_few(names)])
            self.diagram.boxes.append(box)
            self.diagram.connect(key, unit.key)

    def _outputs(self, unit):
        """Boxes for what a unit leaves outside, if no other unit goes on with it."""
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
            names, total = list(map(self.names, values)), format_bytes(sum(values.values()))
            if len(names) == 1:
                box = Box(key, "alias", names[0], [f"{text}, {total}"])
            else:
                box = Box(key, "alias", f"{len(names)} arrays", [f"{text}, {total}", *_few(names)])
            self.diagram.boxes.append(box)
            self.diagram.connect(unit.key, key)


def _few(names):
    shown = names if len(names) <= MOST_LINES else names[: MOST_LINES - 1]
    more = [f"and {len(names) - len(shown)} more"] if len(shown) < len(names) else []
    return [*shown, *more]
