"""Writes a Diagram as text: a tree for terminals, DOT for Graphviz, Mermaid for Markdown."""

from minigrad.viz.svg import SQUARE


def to_text(diagram):
    """Writes the graph as a tree, from its outputs down to its leaves.

    A chain of operations goes straight down, each fed by the one below; other inputs branch off. A
    value with several users is written once, and elsewhere by its number.
    """
    lines = _Tree(diagram).lines
    return "\n".join([*lines, diagram.caption] if diagram.caption else lines)


class _Tree:
    def __init__(self, diagram):
        self.boxes = {b.key: b for b in diagram.boxes}
        self.inputs = {key: [] for key in self.boxes}
        uses = dict.fromkeys(self.boxes, 0)
        for source, target in diagram.edges:
            self.inputs[target].append(source)
            uses[source] += 1
        self.shared = {key for key, n in uses.items() if n > 1 and self.inputs[key]}
        self.numbers, self.done, self.lines, self.depth = {}, set(), [], {}
        for key in self.boxes:  # sources first
            above = [self.depth.get(s, 0) for s in self.inputs[key]]
            self.depth[key] = 1 + max(above, default=0)
        for key in reversed(self.boxes):
            if not uses[key]:
                self._walk(key)

    def _walk(self, key):
        """Writes a box and all its sources, with a stack, because graphs may be deep."""
        stack = [(key, "", "")]
        while stack:
            key, first, prefix = stack.pop()
            box = self.boxes[key]
            if key in self.done and self.inputs[key]:
                self.lines.append(f"{first}{box.title} #{self.numbers[key]}, as above")
                continue
            self.done.add(key)
            mark = ""
            if key in self.shared:
                self.numbers[key] = len(self.numbers) + 1
                mark = f"  #{self.numbers[key]}"
            self.lines.append(f"{first}{_line(box)}{mark}")
            if box.inside is not None:
                for text in to_text(box.inside).split("\n"):
                    self.lines.append(f"{prefix}\u2502 {text}")
            sources = self.inputs[key]
            straight = None
            if sources:
                deepest = max(sources, key=lambda s: self.depth[s])
                straight = deepest if self.inputs[deepest] else None
            branches = [s for s in sources if s != straight]
            if straight is not None:
                stack.append((straight, prefix, prefix))
            for k, s in reversed(list(enumerate(branches))):
                is_last = k == len(branches) - 1 and straight is None
                head, rest = ("\u2514\u2500 ", "   ") if is_last else ("\u251c\u2500 ", "\u2502  ")
                stack.append((s, prefix + head, prefix + rest))


def _line(box):
    if box.kind == "group":
        return f"{box.title} ({box.tooltip})"
    layout, *others = box.lines or [""]
    if box.kind in ("leaf", "constant"):
        others = [box.kind if box.times == 1 else f"{box.times} leaves"]
    saved = [text.removeprefix("saves ") for text in others if text.startswith("saves ")]
    if saved:
        others = [t for t in others if not t.startswith("saves ")]
        others.append(f"saves {', '.join(saved)}")
    head = f"{box.title} {layout}".rstrip()
    return f"{head}  {', '.join(others)}".rstrip()


def _ends(diagram):
    """Returns the edges with each group replaced by the boxes at its border."""
    inside = {b.key: b.inside for b in diagram.boxes if b.inside is not None}
    for source, target in diagram.edges:
        sources = inside[source].exits if source in inside else [source]
        targets = inside[target].entries if target in inside else [target]
        yield from ((s, t) for s in sources for t in targets)
    for inner in inside.values():
        yield from inner.edges


_DOT_STYLE = {
    "op": 'shape=box, style="rounded"',
    "leaf": 'shape=box, style="rounded,bold", color="#2e9e5b"',
    "constant": 'shape=box, style="dashed", color="#8a93a3"',
    "root": 'shape=box, style="rounded,bold", color="#e08030"',
    "more": 'shape=box, style="dotted"',
    "product": 'shape=box, style="rounded", color="#b0489a"',
    "opaque": 'shape=box, style="rounded", color="#1392a0"',
    "alias": 'shape=box, style="rounded", color="#e08030"',
    "value": "shape=plaintext",
}


def to_dot(diagram):
    """Writes the DOT language of Graphviz."""
    lines = ["digraph minigrad {", '  node [fontname="monospace", fontsize=11];']
    _write_dot(lines, diagram, "  ")
    lines += [f"  {source} -> {target};" for source, target in _ends(diagram)]
    if diagram.caption:
        lines.append(f"  label={_quoted(diagram.caption)};")
    return "\n".join([*lines, "}"]) + "\n"


def _write_dot(lines, part, indent):
    for box in part.boxes:
        if box.inside is not None:
            lines.append(f"{indent}subgraph cluster_{box.key} {{")
            lines.append(f"{indent}  label={_quoted(box.title)}; style=dashed;")
            _write_dot(lines, box.inside, indent + "  ")
            lines.append(f"{indent}}}")
        else:
            label = _quoted("\n".join([box.title, *box.lines]))
            tooltip = f", tooltip={_quoted(box.tooltip)}" if box.tooltip else ""
            style = _DOT_STYLE[box.kind]
            lines.append(f"{indent}{box.key} [label={label}, {style}{tooltip}];")


def _quoted(text):
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'


def to_mermaid(diagram):
    """Writes a Mermaid flowchart."""
    lines = ["flowchart TD"]
    _write_mermaid(lines, diagram, "  ")
    lines += [f"  {source} --> {target}" for source, target in _ends(diagram)]
    lines += [
        "  classDef leaf stroke:#2e9e5b",
        "  classDef constant stroke-dasharray:4 3",
        "  classDef root stroke:#e08030",
        "  classDef more stroke-dasharray:2 3",
        "  classDef op stroke:#4c7bd9",
    ]
    return "\n".join(lines) + "\n"


def _write_mermaid(lines, part, indent):
    for box in part.boxes:
        if box.inside is not None:
            lines.append(f'{indent}subgraph {box.key} ["{_entities(box.title)}"]')
            _write_mermaid(lines, box.inside, indent + "  ")
            lines.append(f"{indent}end")
        else:
            left, right = ("[", "]") if box.kind in SQUARE else ("([", "])")
            label = "<br/>".join(map(_entities, [box.title, *box.lines]))
            lines.append(f'{indent}{box.key}{left}"{label}"{right}:::{box.kind}')


def _entities(text):
    """Escapes text for a quoted Mermaid label, whose entities start with #."""
    for letter, entity in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;")):
        text = text.replace(letter, entity)
    return text
