"""Draws a Diagram as SVG without scripts: no text overlaps, light and dark pages work."""

import html
import itertools
import unicodedata

from minigrad.viz.diagram import Changing
from minigrad.viz.layout import place
from minigrad.viz.steps import during

TITLE, TEXT = 13.0, 11.0  # font sizes in pixels
ADVANCE = 0.62  # width of a monospaced letter / font size; the widest font in use has 0.61
LINE = 15.0
PAD_X, PAD_Y = 12.0, 8.0
MARGIN = 16.0
FRAME = 12.0  # room above and below the content of a group's frame
LABEL, LABEL_GAP = 17.0, 8.0  # font size of a group's count, and its distance from the frame
IN, OUT = "(in)", "(out)"  # cells for the border of a group
MOST_LETTERS = 40
ASIDE = 7.0  # pixels between an edge and the arrow of the gradient that goes back along it
SQUARE = ("op", "product", "opaque", "constant", "more")  # boxes of other kinds are round

STYLE = """
.mg-graph{--mg-page:var(--jp-layout-color1,#fff);--mg-ink:var(--jp-content-font-color1,#1f2430);
--mg-soft:var(--jp-content-font-color2,#59616f);--mg-line:#8a93a3;
font-family:ui-monospace,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace}
.mg-page{fill:var(--mg-page)}
.mg-graph text{fill:var(--mg-ink);font-size:11px;text-anchor:middle}
.mg-graph .mg-title{font-size:13px;font-weight:600}
.mg-graph .mg-soft{fill:var(--mg-soft)}
.mg-graph .mg-times{text-anchor:start;font-size:17px;font-weight:600;fill:#8a5cd0}
.mg-edge{fill:none;stroke:var(--mg-line);stroke-width:1.4}
.mg-head{fill:var(--mg-line)}
.mg-box{stroke-width:1.3}
.mg-op .mg-box{fill:#4c7bd924;stroke:#4c7bd9}
.mg-leaf .mg-box{fill:#2e9e5b2b;stroke:#2e9e5b}
.mg-leaf .mg-behind{fill:none}
.mg-constant .mg-box{fill:#8a93a31f;stroke:#8a93a3;stroke-dasharray:4 3}
.mg-root .mg-box{fill:#e0803026;stroke:#e08030;stroke-width:2}
.mg-product .mg-box{fill:#b0489a24;stroke:#b0489a}
.mg-opaque .mg-box{fill:#1392a024;stroke:#1392a0}
.mg-alias .mg-box{fill:#e0803026;stroke:#e08030}
.mg-value .mg-box{fill:var(--mg-page);stroke:#8a93a366}
.mg-value .mg-title,.mg-alias .mg-title{font-size:11px;font-weight:400}
.mg-more .mg-box{fill:#8a93a31f;stroke:#8a93a3;stroke-dasharray:2 3}
.mg-group .mg-frame{fill:#8a5cd00f;stroke:#8a5cd0;stroke-width:1.3;stroke-dasharray:7 4}
""".strip().replace("\n", "")


def to_svg(diagram):
    """Returns a whole SVG document."""
    drawn = _Drawing(diagram)
    caption = diagram.caption
    width = max(drawn.width, _width(caption, TEXT)) + 2 * MARGIN
    height = drawn.height + 2 * MARGIN + (LINE + 10 if caption else 0)
    left = (width - drawn.width) / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="mg-graph" role="img" '
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">',
        f"<style>{STYLE}</style>",
        f'<rect class="mg-page" width="{width:.0f}" height="{height:.0f}" rx="6"/>',
        f'<g transform="translate({left:.1f} {MARGIN:.1f})">',
        *drawn.parts,
        "</g>",
    ]
    if caption:
        y = height - MARGIN
        parts.append(_text(caption, width / 2, y, "mg-soft"))
    return "\n".join([*parts, "</svg>"]) + "\n"


class _Drawing:
    """The SVG parts of one diagram, and its size. Each group has a drawing of its own.

    Inside a group, the border takes part in the layout: the cell IN above all others, OUT below.
    """

    def __init__(self, diagram):
        self.back = diagram.back
        self.inside = {b.key: _Drawing(b.inside) for b in diagram.boxes if b.inside is not None}
        sizes = {b.key: self._size(b) for b in diagram.boxes}
        edges = list(diagram.edges)
        edges += [(IN, key) for key in diagram.entries] + [(key, OUT) for key in diagram.exits]
        ends = {IN: diagram.entries, OUT: diagram.exits}
        sizes |= {key: (1.0, 0.0) for key, used in ends.items() if used}
        first, last = (key if used else None for key, used in ends.items())
        self.placed = place(sizes, edges, first, last, diagram.late)
        self.width, self.height = self.placed.width, self.placed.height
        self.parts = [*self._edges(), *map(self._box, diagram.boxes)]

    def _size(self, box):
        if box.inside is not None:
            inner = self.inside[box.key]
            width = inner.width + 2 * MARGIN + _width(box.title, LABEL) + LABEL_GAP
            return width, inner.height + 2 * FRAME
        wide = [_width(_short(text), TEXT) for line in box.lines for _, text in _texts(line)]
        wide.append(_width(_short(box.title), TITLE))
        return max(wide) + 2 * PAD_X, 2 * PAD_Y + LINE * (1 + len(box.lines))

    def _port(self, cell, end):
        """Returns the x where edges meet a cell: its middle, or the border cell of a group."""
        inner = self.inside.get(cell.key)
        if inner is None or end not in inner.placed.cells:
            return cell.x
        return cell.x - cell.width / 2 + MARGIN + inner.placed.cells[end].x

    def _edges(self):
        into = {}
        for (source, target), route in self.placed.routes.items():
            into.setdefault(target, []).append((source, route))
        for target, routes in into.items():
            cell = self.placed.cells[target]
            routes.sort(key=lambda r: r[1][-2].x)
            # edges enter side by side, at most 18 pixels apart
            step = 0 if target == OUT else min(18.0, 0.7 * cell.width / len(routes))
            if cell.key in self.inside:
                step = min(step, 8.0)
            middle = self._port(cell, IN)
            for k, (source, route) in enumerate(routes):
                start = self._port(route[0], OUT)
                end = middle + (k - (len(routes) - 1) / 2) * step
                yield from _edge(route, start, end, has_head=target != OUT)
                if (source, target) in self.back:
                    yield from _way_back(route, start, end, self.back[source, target])

    def _box(self, box):
        cell = self.placed.cells[box.key]
        x, y = cell.x - cell.width / 2, cell.y
        body = [f'<g class="mg-{box.kind}">']
        if box.tooltip:
            body.append(f"<title>{html.escape(box.tooltip)}</title>")
        if box.inside is not None:
            return "\n".join([*body, *self._frame(box, cell, x, y), "</g>"])
        radius = 5 if box.kind in SQUARE else min(16, cell.height / 2)
        rectangle = (
            f'<rect class="mg-box" x="{{:.1f}}" y="{{:.1f}}" width="{cell.width:.1f}" '
            f'height="{cell.height:.1f}" rx="{radius:.0f}"/>'
        )
        if box.times > 1:  # a second box behind it shows that it represents several
            behind = rectangle.replace("mg-box", "mg-box mg-behind")
            body.append(behind.format(x + 4, y + 4))
        body.append(rectangle.format(x, y))
        at = y + PAD_Y + 11
        body.append(_text(_short(box.title), cell.x, at, "mg-title"))
        for k, line in enumerate(box.lines):
            body += _line(line, cell.x, at + LINE * (k + 1))
        for step in box.busy:
            ring = rectangle.replace("mg-box", "mg-busy").format(x, y)
            body.append(f"<g {during(step, step + 1)}>{ring}</g>")
        return "\n".join([*body, "</g>"])

    def _frame(self, box, cell, x, y):
        """Draws a group: a frame around the drawing of its block, and its count beside it."""
        inner = self.inside[box.key]
        width = inner.width + 2 * MARGIN
        yield (
            f'<rect class="mg-frame" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
            f'height="{cell.height:.1f}" rx="10"/>'
        )
        yield _text(box.title, x + width + LABEL_GAP, y + cell.height / 2 + 6, "mg-times")
        yield f'<g transform="translate({x + MARGIN:.1f} {y + FRAME:.1f})">'
        for key, start in ((IN, -FRAME), (OUT, inner.height + FRAME)):
            border = inner.placed.cells.get(key)
            if border is not None:
                end = border.y + border.height
                yield f'<path class="mg-edge" d="M{border.x:.1f} {start:.1f}V{end:.1f}"/>'
        yield from inner.parts
        yield "</g>"


def _edge(route, x, port, has_head):
    """Draws a curve from the bottom of the first cell through the others to the top of the last."""
    yield f'<path class="mg-edge" d="{_curve(route, x, port, has_head)}"/>'
    if has_head:
        yield f'<path class="mg-head" d="M{port:.1f} {route[-1].y:.1f}l-4 -8h8z"/>'


def _way_back(route, x, port, step):
    """Draws the gradient's way back from a step on: dashed, beside the edge, head at its start."""
    top = route[0].y + route[0].height
    yield f'<g {during(step)}><g transform="translate({ASIDE} 0)">'
    yield f'<path class="mg-back" d="{_curve(route, x, port, has_head=True)}"/>'
    yield f'<path class="mg-back-head" d="M{x:.1f} {top:.1f}l-4.5 9h9z"/></g></g>'


def _curve(route, x, port, has_head):
    first, last = route[0], route[-1]
    path = [f"M{x:.1f} {first.y + first.height:.1f}V{first.rank_bottom:.1f}"]
    for above, cell in itertools.pairwise(route):
        y, to_y = above.rank_bottom, cell.rank_top
        to_x, end = cell.x, cell.rank_bottom
        if cell is last:
            to_x, end = port, cell.y - (6 if has_head else 0)
            to_y = min(to_y, end)
        middle = (y + to_y) / 2
        path.append(
            f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}V{end:.1f}"
        )
        x = to_x
    return "".join(path)


def _line(line, x, y):
    """Draws a line of a box: one text, or texts that take turns at one place."""
    if not isinstance(line, Changing):
        yield _text(_short(line), x, y, "mg-soft")
        return
    ends = [step for step, _ in line.texts[1:]]
    for (step, text), end in zip(line.texts, [*ends, None], strict=True):
        if text:
            yield f"<g {during(step, end)}>{_text(_short(text), x, y, f'mg-{line.kind}')}</g>"


def _texts(line):
    """Returns (step, text) of each text that a line has in turn."""
    return line.texts if isinstance(line, Changing) else [(0, line)]


def _text(text, x, y, kind):
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{html.escape(text)}</text>'


def _short(text):
    return text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 1] + "\u2026"


def _width(text, size):
    """Returns the width of a monospaced line in pixels; East Asian letters count twice."""
    places = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
    return places * size * ADVANCE
