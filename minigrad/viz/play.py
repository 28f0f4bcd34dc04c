"""graph(loss).play(): shows the graph step by step, values going down, gradients back up."""

import html
import pathlib
from dataclasses import dataclass, field

import numpy as np

from minigrad.arguments import short
from minigrad.errors import ArgumentError, GradientError, GraphFreedError
from minigrad.tape.node import Node
from minigrad.tape.order import ordered
from minigrad.tape.upstream import upstream
from minigrad.viz.builder import Builder, output_layouts
from minigrad.viz.diagram import Box, Changing
from minigrad.viz.replay import numbers, outputs, run_back, saved_input
from minigrad.viz.steps import stepped
from minigrad.viz.svg import to_svg
from minigrad.viz.units import format_shape, plural

MOST_PLAYED = 60  # operations; each takes a box, a step forward and a step backward
MOST_WRITTEN = 24  # letters of numbers in a box; longer lists show smallest and largest
UNKNOWN = "value: nobody holds it any more"
STYLE = """
.mg-graph{--mg-gradient:#d55e00;--mg-gradient:color-mix(in srgb,#d55e00 75%,var(--mg-ink))}
.mg-graph .mg-value{fill:var(--mg-ink)}
.mg-graph .mg-gradient{fill:var(--mg-gradient);font-weight:600}
.mg-back{fill:none;stroke:var(--mg-gradient);stroke-width:1.8;stroke-dasharray:5 3}
.mg-back-head{fill:var(--mg-gradient)}
.mg-slope .mg-box{fill:var(--mg-page);stroke:#8a93a388}
.mg-slope .mg-title{font-size:11px;font-weight:400}
.mg-busy{fill:none;stroke:var(--mg-ink);stroke-width:3.2}
""".strip().replace("\n", "")
PAGE = """
body{margin:1rem;background:var(--jp-layout-color1,#fff)}
@media(prefers-color-scheme:dark){:root{--jp-layout-color1:#14171c;
--jp-content-font-color1:#e4e7ec;--jp-content-font-color2:#a3acba}}
""".strip().replace("\n", "")


@dataclass(frozen=True)
class Frame:
    """The state of the picture after one step.

    Attributes:
        text: describes the step.
        busy: the key of the active box, "" for none.
        values: key of a box -> its value, an ndarray; unknown values are missing.
        gradients: key of a box -> the sum of the gradients that have arrived there.
    """

    text: str
    busy: str = ""
    values: dict = field(default_factory=dict)
    gradients: dict = field(default_factory=dict)


class Player:
    """The result of `graph(loss).play()`: a notebook shows it with buttons, `print` as text.

    Its HTML needs neither a kernel nor scripts, and it keeps no part of the graph alive. frames:
    the data behind it. titles: key of a box -> its title.
    """

    def __init__(self, frames, titles, diagram):
        self.frames, self.titles, self.diagram = frames, titles, diagram

    def to_html(self):
        """Returns the buttons and the picture as an HTML form, a part of a page."""
        picture = to_svg(self.diagram).replace("<style>", f"<style>{STYLE}", 1)
        back = next(k for k, frame in enumerate(self.frames) if frame.gradients)
        texts = [frame.text for frame in self.frames]
        return stepped(picture, texts, back, "The graph, step by step")

    def save_html(self, path):
        """Writes a self-contained HTML page."""
        path = pathlib.Path(path)
        if path.suffix not in (".html", ".htm"):
            raise ArgumentError("save_html: wanted a path that ends in .html", short(path.name))
        title = html.escape(self.diagram.caption)
        head = f'<!doctype html><meta charset="utf-8"><title>{title}</title><style>{PAGE}</style>'
        path.write_text(f"{head}\n{self.to_html()}\n", encoding="utf-8")

    def _repr_html_(self):
        return self.to_html()

    def __str__(self):
        return "\n".join(f"{k:>3} {frame.text}" for k, frame in enumerate(self.frames))

    def __repr__(self):
        return f"<play of a graph: {self.diagram.caption}>"


def play(roots, dy=None):
    """Makes the Player of a graph. roots: its Variables, None for one that is gone."""
    root, nodes = _checked(roots)
    dy = upstream(root, dy)
    sent, leaves = run_back(root, dy)
    builder = _Builder(root, nodes)
    known = {builder.inner[n]: y for n, y in outputs(root, nodes).items()} | builder.given
    frames = _frames(builder, nodes, known, sent, leaves, numbers(dy.array))
    _write(builder, frames, sent, known)
    builder.diagram.caption = plural(len(nodes), "operation")
    titles = {box.key: box.title for box in builder.diagram.boxes if box.kind != "slope"}
    return Player(frames, titles, builder.diagram)


def _checked(roots):
    """Returns (root, nodes in the order of the forward pass), or raises why it cannot be played."""
    if len(roots) != 1:
        raise ArgumentError(
            "play: wanted the graph of one Variable", f"{len(roots)}", "mg.viz.graph(loss).play()"
        )
    (root,) = roots
    if root is None:
        raise GraphFreedError(
            "play: this graph is gone: its output owned it, and nobody holds the output",
            fix="keep it: loss = ..., and then mg.viz.graph(loss).play()",
        )
    if root.node is None:
        raise GradientError(
            "play: this Variable has no graph: no recorded operation made it",
            root.describe(),
            "compute it from a leaf with requires_grad=True, outside no_grad()",
        )
    nodes = ordered([root.node])[::-1]
    if len(nodes) > MOST_PLAYED:
        raise ArgumentError(
            f"play: wanted at most {MOST_PLAYED} operations, so that the steps can be followed",
            f"{len(nodes):,}",
            "play a part: one layer, or a smaller network; mg.viz.graph draws a graph of any size",
        )
    freed = [node for node in nodes if node.is_freed]
    if freed:
        raise GraphFreedError(
            f"play: what {freed[0].op} saved was freed by an earlier backward",
            fix="play before backward, pass retain_graph=True to it, or compute the loss again",
            details=[("made at", freed[0].line)],
        )
    return root, nodes


class _Builder(Builder):
    """Adds a box for the local derivative to each edge that a gradient takes.

    given: key -> value, for leaves and constants. slopes: (node, input) -> its box. homes: node or
    leaf -> its box.
    """

    def __init__(self, root, nodes):
        self.given, self.slopes, self.homes = {}, {}, {}
        super().__init__([root], nodes, output_layouts([root], nodes[::-1]))
        named = {}
        for box in self.diagram.boxes:
            named.setdefault(box.title if box.kind in ("op", "leaf") else "", []).append(box)
        for title, alike in named.items():
            for number, box in enumerate(alike if len(alike) > 1 and title else (), 1):
                box.title = f"{title} #{number}"
        by_key = {box.key: box for box in self.diagram.boxes}
        self.homes |= {node: by_key[key] for node, key in self.inner.items()}
        if root.name:
            self.homes[root.node].title += f" = {root.name}"
        self.homes[root.node].kind = "root"

    def connect(self, diagram, source, key, node, k):
        edge = node.edges[k]
        if edge is None:
            value = saved_input(node, k)
            if value is not None:
                self.given[source] = numbers(value)
            diagram.connect(source, key)
            return
        if type(edge) is not Node:
            self.given[source] = numbers(edge.array)
            self.homes[edge] = next(box for box in diagram.boxes if box.key == source)
        slope = self.slopes[node, k] = Box(self.new_key("s"), "slope", "\u2013")
        slope.tooltip = "no gradient comes this way"
        diagram.boxes.append(slope)
        diagram.connect(source, slope.key)
        diagram.connect(slope.key, key)

    def add_root(self, root):
        """Adds nothing: the box of the root's node represents it."""


def _frames(builder, nodes, known, sent, leaves, dy):
    """Makes the Frames: leaves, one per node forward, dy at the root, one per node backward."""
    homes = builder.homes
    values = dict(builder.given)
    frames = [Frame("Start: only the leaves and the inputs have values.", "", values)]
    for number, node in enumerate(nodes, 1):
        key = homes[node].key
        values = values | ({key: known[key]} if key in known else {})
        result = f"= {written(known[key])}" if key in known else "has a value that nobody holds now"
        text = f"Forward, {number} of {len(nodes)}: {homes[node].title} {result}."
        frames.append(Frame(text, key, values))
    root = homes[nodes[-1]]
    arrived = {root.key: dy}
    text = f"Backward begins at {root.title} with dy = {written(dy)}."
    frames.append(Frame(text, root.key, values, arrived))
    for number, (node, complete, _, gradients) in enumerate(sent, 1):
        home = homes[node]
        arrived = arrived | {home.key: complete}
        ways = []
        for edge, g in zip(node.edges, gradients, strict=True):
            if edge is not None and g is not None:
                key = homes[edge].key
                arrived[key] = _added(arrived[key], g) if key in arrived else g
                ways.append(f"{written(g)} to {homes[edge].title}")
        text = f"Backward, {number} of {len(sent)}: {home.title} has dy = {written(complete)}"
        text += f", and sends {' and '.join(ways)}." if ways else "."
        frames.append(Frame(text, home.key, values, arrived))
    last = frames[-1]
    arrived = last.gradients | {homes[leaf].key: g for leaf, g in leaves.items()}
    text = f"{last.text} Done: the leaves have what backward() adds to their .grad."
    frames[-1] = Frame(text, last.busy, values, arrived)
    return frames


def _added(a, b):
    """Adds two gradients; if they are tuples, of several outputs, joins these."""
    return (*a, *b) if isinstance(a, tuple) else np.asarray(a + b)


def _write(builder, frames, sent, known):
    """Writes the lines of the boxes from the frames, and marks the edges that go back."""
    diagram, homes = builder.diagram, builder.homes
    for owner, box in homes.items():
        layout = builder.layouts.get(owner) if type(owner) is Node else (owner.shape, owner.dtype)
        settings = [line for line in box.lines if " = " in line]  # numbers that the node keeps
        mark = "dy =" if type(owner) is Node else "grad ="
        box.lines = [
            *([format_shape(*layout)] if layout and layout[0] else []),
            *settings,
            _turns("value", [f.values.get(box.key) for f in frames], "="),
            _turns("gradient", [f.gradients.get(box.key) for f in frames], mark),
        ]
        box.busy = [step for step, frame in enumerate(frames) if frame.busy == box.key]
        told = [f"shape {tuple(layout[0])}, {layout[1]}"] if layout else []
        told.append(f"value {whole(known[box.key])}" if box.key in known else UNKNOWN)
        if box.key in frames[-1].gradients:
            told.append(f"gradient {whole(frames[-1].gradients[box.key])}")
        box.tooltip = "\n".join([box.tooltip, *told])
    for box in diagram.boxes:
        if box.kind == "constant" and box.key in known:
            box.lines.append(f"= {written(known[box.key])}")
            box.tooltip += f"\nvalue {whole(known[box.key])}"
        elif box.kind == "constant":
            box.tooltip += f"\n{UNKNOWN}"
    for step, (node, _, slopes, gradients) in enumerate(sent, len(frames) - len(sent)):
        for k, (slope, g) in enumerate(zip(slopes, gradients, strict=True)):
            box = builder.slopes.get((node, k))
            if box is None or g is None:
                continue
            _write_slope(box, node, k, slope)
            box.lines = [Changing("gradient", [(step, f"\u2191 {written(g)}")])]
            diagram.back |= {edge: step for edge in diagram.edges if box.key in edge}


def _write_slope(box, node, k, slope):
    name = node.plan.input_names[k] if k < len(node.plan.input_names) else f"input {k}"
    of = f"of {node.op} with respect to its input {name}"
    if slope is None:
        box.title = f"\u2202{node.op}/\u2202{name}"
        box.tooltip = (
            f"the derivative {of} is a table, which the rule of {node.op} never writes down"
        )
        return
    box.title = f"\u00d7 {written(slope).removeprefix('all ')}"
    box.tooltip = f"the local derivative {of}\n{whole(slope)}"


def _turns(kind, values, mark):
    """Makes a Changing line. values: the value in each frame, None where there is none."""
    texts = [(0, "")]
    for step, x in enumerate(values):
        text = "" if x is None else f"{mark} {written(x)}"
        if text != texts[-1][1]:
            texts.append((step, text))
    return Changing(kind, texts)


def written(x):
    """Formats numbers in a few letters: all of them, or the smallest and the largest.

    >>> import numpy as np
    >>> written(np.array(0.1234567)), written(np.arange(3.0)), written(np.arange(10.0))
    ('0.1235', '[0, 1, 2]', '0 \u2026 9')
    """
    if isinstance(x, tuple):
        return " and ".join(map(written, x))
    x = np.asarray(x)
    if x.size == 1:
        return f"{x.item():.4g}"
    if not x.size:
        return "nothing"
    if (x == x.flat[0]).all():
        return f"all {x.flat[0]:.4g}"
    text = " ".join(_listed(x, 3).split()) if x.size < MOST_WRITTEN else ""
    return text if 0 < len(text) <= MOST_WRITTEN else f"{x.min():.3g} \u2026 {x.max():.3g}"


def whole(x):
    """Formats numbers as NumPy prints them, for a tooltip."""
    return "\n".join(map(whole, x)) if isinstance(x, tuple) else _listed(np.asarray(x), 6)


def _listed(x, digits):
    def text(number):
        return f"{number:.{digits}g}"

    return np.array2string(x, separator=", ", threshold=60, formatter={"all": text})
