"""graph(loss): the graph that backward will walk, as a picture and as text."""

import html
import pathlib
import weakref

from minigrad.arguments import short
from minigrad.errors import ArgumentError, ArgumentTypeError
from minigrad.tape.order import ordered
from minigrad.tape.variable import Variable
from minigrad.viz.builder import build_diagram
from minigrad.viz.graph_text import to_dot, to_mermaid, to_text
from minigrad.viz.play import play
from minigrad.viz.svg import to_svg

LEAST = 0.7  # the least scale: titles then have 9 pixels


class Picture:
    """The result of `graph`: JupyterLab shows it as a picture, `print` as text.

    diagram: the plain data behind it.
    """

    def __init__(self, diagram, roots=()):
        self.diagram = diagram
        self._roots = [weakref.ref(root) for root in roots]  # a picture must not keep the graph

    def play(self, dy=None):
        """Shows the graph step by step: values flow forward, then gradients flow back.

        Each edge that carries a gradient has a box with its local derivative. The numbers are the
        engine's own: it runs a backward pass, with hooks, that changes no `.grad` and frees
        nothing. Nodes keep only what backward needs. A value that nobody holds any more is left
        out.

        Args:
            dy: upstream gradient, as for `backward`.

        Returns:
            A Player. JupyterLab shows it with buttons, which work without a kernel. `print` shows
            text; `.save_html(path)` writes a page.

        Raises:
            GradientError: the Variable has no graph.
            GraphFreedError: backward has freed the graph, or nobody holds its output any more.
            ArgumentError: more than 60 operations, or several Variables.

        >>> import minigrad as mg
        >>> x = mg.variable(3.0, requires_grad=True, name="x")
        >>> y = x * x
        >>> print(mg.viz.graph(y).play())
          0 Start: only the leaves and the inputs have values.
          1 Forward, 1 of 1: mul = 9.
          2 Backward begins at mul with dy = 1.
          3 Backward, 1 of 1: mul has dy = 1, and sends 3 to x and 3 to x. Done: ...
        """
        return play([root() for root in self._roots], dy)

    def to_svg(self):
        """Returns a whole SVG document."""
        return to_svg(self.diagram)

    def to_dot(self):
        """Returns the graph in the DOT language of Graphviz."""
        return to_dot(self.diagram)

    def to_mermaid(self):
        """Returns the graph as a Mermaid flowchart, for a `mermaid` block of Markdown."""
        return to_mermaid(self.diagram)

    def save(self, path):
        """Writes a file in the format of its suffix: .svg, .dot, .mmd (Mermaid), .html or .txt."""
        path = pathlib.Path(path)
        writers = {
            ".svg": self.to_svg, ".dot": self.to_dot, ".gv": self.to_dot, ".mmd": self.to_mermaid,
            ".html": self._to_html, ".txt": self.__str__,
        }  # fmt: skip
        if path.suffix not in writers:
            raise ArgumentError(
                f"save: wanted a path that ends in {', '.join(writers)}", short(path.name)
            )
        path.write_text(writers[path.suffix](), encoding="utf-8")

    def _to_html(self):
        title = html.escape(self.diagram.caption)
        return f'<!doctype html><meta charset="utf-8"><title>{title}</title>\n{self.to_svg()}'

    def __str__(self):
        return to_text(self.diagram)

    def __repr__(self):
        return f"<graph: {self.diagram.caption}>"

    def _repr_svg_(self):
        return self.to_svg()

    def _repr_mimebundle_(self, include=None, exclude=None):
        # JupyterLab puts text/html into the page, where tooltips and the theme's colours work.
        # It shows image/svg+xml as an image, where they do not work. Other viewers take the image.
        svg = self.to_svg()
        bundle = {
            "text/html": f'<div style="overflow-x:auto">{_readable(svg)}</div>',
            "image/svg+xml": svg,
            "text/plain": str(self),
        }
        keep = set(include or bundle) - set(exclude or ())
        return {kind: data for kind, data in bundle.items() if kind in keep}


def _readable(svg):
    """Wraps an SVG so that it shrinks only while it is readable, and then scrolls."""
    width, _ = svg.partition(' width="')[2].split('"', 1)
    return svg.replace("<svg ", f'<svg style="min-width:{LEAST * float(width):.0f}px" ', 1)


def graph(outputs, fold=None):
    """Draws the graph behind a Variable, or behind several.

    Operations go from top to bottom in the order of the forward pass. Each box has the output's
    shape and the values saved for backward; its tooltip is the user's line. Leaves are where
    backward writes `.grad`. Dashed boxes are inputs without gradient. After backward the picture
    still has the shapes, but no saved values.

    Args:
        outputs: a Variable, or a list of them.
        fold: whether to draw blocks that repeat consecutively (layers, steps of a loop) once, with
            their count. True folds all, False none. None folds long ones; above 150 operations it
            folds all.

    Returns:
        A Picture. JupyterLab shows it, `print` shows text. It has `.to_svg()`, `.to_dot()`,
        `.to_mermaid()` and `.save(path)`; `.play()` goes through the graph step by step.

    >>> import minigrad as mg
    >>> w = mg.variable([1.0, 2.0], requires_grad=True, name="w")
    >>> print(mg.viz.graph((w * w).sum()))
    output ()  = 5
    sum ()
    mul (2,)  saves a 8 B, b 8 B
    └─ w (2,)  leaf
    2 operations · 1 leaf · saved for backward: 8 B, 8 B of it leaves
    """
    roots = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    for root in roots:
        if not isinstance(root, Variable):
            raise ArgumentTypeError(
                "viz.graph: wanted a Variable or a list of Variables", f"{type(root).__name__}"
            )
    if not roots:
        raise ArgumentError("viz.graph: wanted at least one Variable")
    nodes = ordered(list(dict.fromkeys(r.node for r in roots if r.node is not None)))
    return Picture(build_diagram(roots, nodes, fold), roots)
