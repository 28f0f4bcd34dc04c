"""The pictures of docs/tour.md, each drawn from the variables of the tour where it is shown."""

import ast
import html
import itertools

import minigrad as mg
from minigrad.formulas.expression import Expression
from minigrad.viz.diagram import Box, Diagram
from minigrad.viz.svg import to_svg
from tests.tour import path

LETTER = 6.8  # pixels of a letter of 11 pixels, in the widest monospaced font
STYLE = """
.page{fill:#fff}.cell{stroke:#4c7bd9;stroke-width:1.2}
.used{fill:#4c7bd94d}.over{fill:#4c7bd914}.ready{fill:#2e9e5b1f;stroke:#2e9e5b}
.free{fill:none;stroke:#8a93a3;stroke-dasharray:4 3}.launch{fill:#e0803026;stroke:#e08030}
.arrow{stroke:#e08030;stroke-width:2;fill:none}.head{fill:#e08030}
text{font:11px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#59616f}
.title{font-size:13px;font-weight:600;fill:#1f2430}.mid{text-anchor:middle}.ink{fill:#1f2430}
""".strip().replace("\n", "")


class Canvas:
    """Rectangles and text at places in pixels."""

    def __init__(self):
        self.parts, self.width, self.height = [], 0, 0

    def _reach(self, x, y):
        self.width, self.height = max(self.width, x), max(self.height, y)

    def box(self, x, y, width, height, kind, style=""):
        self._reach(x + width, y + height)
        self.parts.append(
            f'<rect class="cell {kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
            f'height="{height:.1f}" rx="3"{style and f" style={chr(34)}{style}{chr(34)}"}/>'
        )

    def text(self, x, y, text, kind=""):
        at_left = x + LETTER * len(text) * (0.5 if "mid" in kind else 1.2 if "title" in kind else 1)
        self._reach(at_left, y + 4)
        self.parts.append(
            f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{html.escape(text)}</text>'
        )

    def arrow(self, x, y, to_x):
        self._reach(to_x, y)
        self.parts.append(f'<path class="arrow" d="M{x:.1f} {y:.1f}H{to_x - 7:.1f}"/>')
        self.parts.append(f'<path class="head" d="M{to_x:.1f} {y:.1f}l-9 -5v10z"/>')

    def svg(self):
        width, height = self.width + 16, self.height + 14
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" '
            f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">'
        )
        page = f'<rect class="page" width="{width:.0f}" height="{height:.0f}" rx="6"/>'
        return "\n".join([head, f"<style>{STYLE}</style>", page, *self.parts, "</svg>"]) + "\n"


def files(tour):
    """The files of the path and their imports, without those that follow from others."""
    place = {"minigrad." + f[:-3].replace("/", "."): k for k, f in enumerate(path.FILES)}
    imports = {}
    for file, k in zip(path.FILES, place.values(), strict=True):
        tree = ast.parse((path.ROOT / "minigrad" / file).read_text(encoding="utf-8"))
        found = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module]
        names = {n.module for n in found} | {f"{n.module}.{a.name}" for n in found for a in n.names}
        imports[k] = {place[name] for name in names & place.keys()}
    behind = {}

    def all_behind(k):
        if k not in behind:
            behind[k] = imports[k].union(*map(all_behind, imports[k]))
        return behind[k]

    diagram = Diagram()
    for k, file in enumerate(path.FILES):
        diagram.boxes.append(Box(str(k), "op", f"{k + 1} {file[:-3]}"))
        for other in sorted(imports[k]):
            if not any(other in all_behind(n) for n in imports[k]):
                diagram.connect(str(other), str(k))
    return to_svg(diagram)


def pool(tour):
    """The first blocks of the pool's first segment, 512 bytes a row."""
    owners = {tour[name].array.buffer.address: name for name in ("x", "labels")}
    owners[tour["optimizer"].groups[0].address] = "numbers of SGD"
    for name, p in tour["model"].named_parameters():
        owners[p.array.buffer.address] = name
    segment = mg.memory.snapshot()["segments"][0]
    canvas, row, scale = Canvas(), 512, 1.75
    canvas.text(16, 26, f"a segment of {segment['bytes']:,} bytes, {row} in a row", "title")
    for block in segment["blocks"]:
        at, end = block["offset"], block["offset"] + block["bytes"]
        is_rest = block is segment["blocks"][-1]
        end = min(end, (at // row + 1) * row) if is_rest else end
        kind = "over" if block["state"] == "used" else "free" if is_rest else "ready"
        name = owners.get(segment["address"] + at, "")
        while at < end:  # a block may go on in the next row
            stop = min(end, (at // row + 1) * row)
            x, y = 16 + at % row * scale, 44 + at // row * 46
            canvas.box(x, y, (stop - at) * scale, 38, kind)
            asked = min(stop - at, block["offset"] + block["requested"] - at)
            if asked > 0:
                canvas.box(x, y, asked * scale, 38, "used")
            if at == block["offset"]:
                text = f"{block['bytes'] if not is_rest else segment['bytes'] - at:,}"
                text = name or ("free: " + text if is_rest else text)
                if LETTER * len(text) + 8 < (stop - at) * scale:
                    canvas.text(x + 5, y + 23, text, "ink")
            at = stop
    y = canvas.height + 14
    legend = {"used": "asked for", "over": "added by rounding", "ready": "in a bin: its bytes"}
    for k, (kind, text) in enumerate(legend.items()):
        canvas.box(16 + 170 * k, y, 16, 12, kind)
        canvas.text(38 + 170 * k, y + 10, text)
    return canvas.svg()


def arrays(tour):
    """Three Variables, their Arrays, the Buffer."""
    a, turned, copy = tour["a"], tour["turned"], tour["copy"]
    diagram = Diagram()
    boxes = diagram.boxes
    boxes.append(Box("buffer", "root", "Buffer", [f"{a.array.buffer.nbytes} bytes",
                     f"{a.array.buffer.owners} owners"]))  # fmt: skip
    for name, x, key in (("a", a, "a"), ("copy", copy, "copy")):
        lines = ["Storage", f"shape {x.shape}", f"strides {x.strides}", f"version {x.version}"]
        boxes.append(Box(f"array {key}", "op", "Array", lines))
        boxes.append(Box(f"variable {key}", "leaf", name, ["Variable"]))
        diagram.connect("buffer", f"array {key}")
        diagram.connect(f"array {key}", f"variable {key}")
    lines = [f"shape {turned.shape}", f"strides {turned.strides}"]
    boxes.append(Box("view", "constant", "View", lines))
    boxes.append(Box("variable turned", "leaf", "turned", ["Variable"]))
    diagram.connect("array a", "view")
    diagram.connect("view", "variable turned")
    return to_svg(diagram)


def layout(tour):
    """Each view as a grid; a cell shows the place in memory of its element, in its colour."""
    canvas, left, size = Canvas(), 16, 30
    for name, x in tour["views"].items():
        canvas.text(left, 26, name, "title")
        canvas.text(left, 44, f"strides {x.strides}")
        canvas.text(left, 60, f"offset {x.array.offset}")
        (rows, columns), (down, right) = x.shape, x.strides
        for i, j in itertools.product(range(rows), range(columns)):
            at = x.array.offset + i * down + j * right
            place = left + j * size, 72 + i * size
            canvas.box(*place, size, size, "", f"fill:hsl({at * 27},70%,84%)")
            canvas.text(place[0] + size / 2, place[1] + 19, str(at), "mid ink")
        left += max(columns * size, LETTER * max(1.2 * len(name), 14)) + 34
    return canvas.svg()


def expression(tour):
    """The tree of the formula: equal parts are one box."""
    diagram, (root,) = Diagram(), tour["gradient"].outputs
    keys = {}

    def key_of(e):
        if e not in keys:
            kind = {"symbol": "leaf", "constant": "constant"}.get(e.op, "op")
            title = e.op if kind == "op" else str(e.args[0])
            inputs = [key_of(a) for a in e.args if isinstance(a, Expression)]
            keys[e] = f"e{len(keys)}"
            diagram.boxes.append(Box(keys[e], kind, title, [str(e)] if kind == "op" else []))
            for key in inputs:
                diagram.connect(key, keys[e])
        return keys[e]

    end = key_of(root)
    diagram.boxes.append(Box("out", "root", "gradient of x"))
    diagram.connect(end, "out")
    return to_svg(diagram)


def graph(tour):
    """The graph of the loss."""
    return mg.viz.graph(tour["loss"]).to_svg()


def backward(tour):
    """The same graph from the loss down to the leaves, operations numbered in their order."""
    forward, turned = mg.viz.graph(tour["loss"]).diagram, Diagram()
    arriving = [source for source, _ in forward.edges]
    number = itertools.count(1)
    for box in reversed(forward.boxes):
        lines = box.lines[:1]
        if box.kind == "op":
            box.title = f"{next(number)}. {box.title}"
            n = arriving.count(box.key)
            lines = [f"adds {n} gradients"] if n > 1 else []
        elif box.kind == "leaf":
            lines = [".grad"]
        elif box.kind == "constant":
            continue
        turned.boxes.append(Box(box.key, box.kind, box.title, lines))
    shown = {box.key for box in turned.boxes}
    for source, target in reversed(forward.edges):
        if source in shown:
            turned.connect(target, source)
    return to_svg(turned)


def optimizer(tour):
    """The table of a step: a row for each parameter, with the sizes of what its addresses show."""
    canvas, named = Canvas(), list(tour["model"].named_parameters())
    columns = ["parameter", "gradient", *tour["update"].slots]
    canvas.box(16, 56, 160, 40 * len(named) - 8, "launch")
    canvas.text(96, 46 + 20 * len(named), "one launch:", "mid ink")
    canvas.text(96, 62 + 20 * len(named), f"kernel(table, {len(named)} rows)", "mid ink")
    for k, title in enumerate(columns):
        canvas.text(320 + 150 * k, 40, title, "title")
    for i, (name, p) in enumerate(named):
        y = 56 + 40 * i
        canvas.arrow(180, y + 16, 212)
        canvas.text(220, y + 20, name, "ink")
        for k in range(len(columns)):
            canvas.box(320 + 150 * k, y, p.size * 4, 32, "used")
            canvas.text(320 + 150 * k + p.size * 2, y + 20, str(p.size), "mid ink")
    return canvas.svg()


def recording(tour):
    """The compiled step before fusion."""
    return tour["compiled"].graph(before=True).to_svg()


def program(tour):
    """The compiled step."""
    return tour["compiled"].graph().to_svg()


def memory(tour):
    """What the step took from the pool."""
    return mg.viz.memory(tour["timeline"])


def plan(tour):
    """Where the temporaries of the compiled step lie."""
    return mg.viz.memory(tour["compiled"])


def draw(file, tour):
    """Writes the picture of a file's name: SVG as text, PNG by matplotlib."""
    drawn = globals()[file.stem](tour)
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".svg":
        file.write_text(drawn, encoding="utf-8", newline="\n")
    else:
        drawn.savefig(file, dpi=100, metadata={"Software": None})
