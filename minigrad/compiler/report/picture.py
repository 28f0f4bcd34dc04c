"""step.graph(): draws a program, with one box per call, or per instruction before fusion."""

from minigrad.compiler.program.labels import label, operation
from minigrad.compiler.report.flow import MOST_LINES, Flow
from minigrad.compiler.report.report import form_of
from minigrad.compiler.report.report_text import counted, few
from minigrad.formulas.expression import Expression
from minigrad.viz.picture import Picture
from minigrad.viz.units import format_bytes, format_shape, plural

MOST_BOXES = 60  # calls, or instructions, of a picture that shows each
LEGEND = (
    "blue: generated kernels",
    "purple: matrix products",
    "teal: hand-written kernels",
    "green: read",
    "orange: results, and what is written in place",
)


class Unit:
    """A call or an instruction: what it reads and writes.

    form: equal for units that may share a box; box: the first of them, which lists them in `mine`.
    """

    def __init__(self, kind, title, lines, instructions, reads, writes, form):
        self.kind, self.title, self.lines, self.form = kind, title, lines, form
        self.tooltip = "\n".join(dict.fromkeys(i.line for i in instructions if i.line))
        self.reads, self.writes = list(reads), list(writes)
        self.box, self.mine = self, [self]

    def take(self, other):
        other.box = self
        self.mine.append(other)


def picture_of(plan, names, title="", before=False):
    """Return the Picture of a plan; before: show the instructions before fusion."""
    units = _instructions(plan) if before else _calls(plan)
    n = len(units)
    what = plural(n, "instruction" if before else "call")
    caption = [f"{title}: {what}" if title else what]
    if n > MOST_BOXES:
        boxes = _by_form(units)
        count = plural(len(boxes), "box", "boxes")
        caption.append(f"folded: {count}, one for each form; edges that lead back are left out")
    else:
        boxes = units if before else _side_by_side(units)
    with_values = n <= MOST_BOXES and not before
    flow = Flow(units, boxes, plan, names, with_values)
    flow.diagram.caption = " \u00b7 ".join([*caption, *LEGEND])
    for unit in units:  # they refer to one another: cycles
        unit.box, unit.mine = None, []
    return Picture(flow.diagram)


# -- units -------------------------------------------------------------------------------------


def _calls(plan):
    units = []
    for region in plan.regions:
        for call in region:
            if call.kind == "finish":
                continue
            item, (function, kind, *_) = call.item, form_of(call, plan.kernels)
            lines = [function]
            if len(item.instructions) > 1:
                lines += few(counted(map(_operation, item.instructions)), MOST_LINES)
            units.append(
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
    return units


def _operation(i):
    """Return `relu: maximum`: an operation and, if it is a single one, its function."""
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
            if call.kernel is not None:  # of a product it is the epilogue's
                loop = getattr(call.item, "epilogue", None) or call.item
                where |= dict.fromkeys(loop.instructions, plan.kernels[call.kernel.text])
    units = []
    for i in plan.recording.instructions:
        is_loop = i.op in ("elementwise", "rows", "reduce")
        kind = "product" if i.op == "matmul" else "op" if is_loop else "opaque"
        lines = [
            f"{format_shape(r.shape, r.dtype)} {format_bytes(r.nbytes)}" for r in i.outputs[:2]
        ]
        lines += [f"in {where[i]}"] if i in where else []
        units.append(
            Unit(kind, _operation(i), lines, [i], i.reads, i.writes, (_operation(i), *lines))
        )
    return units


def _side_by_side(units):
    """Merge independent neighbours of one form."""
    boxes = []
    for unit in units:
        if (
            boxes
            and boxes[-1].form == unit.form
            and not any(w.overlaps(r) for x in boxes[-1].mine for w in x.writes for r in unit.reads)
        ):
            boxes[-1].take(unit)
        else:
            boxes.append(unit)
    return boxes


def _by_form(units):
    boxes = {}
    for unit in units:
        if unit.form in boxes:
            boxes[unit.form].take(unit)
        else:
            boxes[unit.form] = unit
    return list(boxes.values())
