"""Records each step of a backward pass: the public `mg.debug.record_grad_function`."""

import json
import math
from typing import NamedTuple

import numpy as np

from minigrad.devices.backend import values
from minigrad.memory.blocks import Block
from minigrad.tape.function_plan import Pack
from minigrad.tape.modes import state
from minigrad.tape.node import Node
from minigrad.tape.variable import Variable


def arrays_of(gradient):
    """Returns the Arrays of a gradient: one, none, or several in a Pack for a Function's node."""
    if gradient is None:
        return []
    if isinstance(gradient, Pack):
        return [a for part in gradient.parts.values() for g in part for a in arrays_of(g)]
    return [gradient.array if isinstance(gradient, Variable) else gradient]


def norm_of(gradient):
    """Returns the Euclidean norm of a gradient, computed in float64, or None without gradient."""
    arrays = arrays_of(gradient)
    if not arrays:
        return None
    with np.errstate(all="ignore"):
        return math.sqrt(sum(float(np.sum(values(a).astype(np.float64) ** 2)) for a in arrays))


class Record(NamedTuple):
    """One node of a backward pass.

    Attributes:
        index: the node's position in the pass.
        op: the name of the operation.
        input_shapes: for each input its shape, or None if it takes no gradient.
        incoming_norm: the norm of the upstream gradient.
        outgoing_norms: for each input the norm of its gradient, or None.
        milliseconds: the duration of the node's backward.
        saved_bytes: bytes that forward saved for the node.
        gradient_bytes: bytes of the node's gradients.
        line: the user's line of the forward call.
        node: the node's serial number.
        targets: for each input where its gradient goes: a serial number, a leaf's name, or None.
    """

    index: int
    op: str
    input_shapes: tuple
    incoming_norm: float | None
    outgoing_norms: tuple
    milliseconds: float
    saved_bytes: int
    gradient_bytes: int
    line: str
    node: int
    targets: tuple


class record_grad_function(Block):
    """Records every node of this thread's backward passes inside the block.

    Read `.records`, print the object, or export it. Passes outside the block have no overhead.

    >>> import minigrad as mg
    >>> x = mg.variable([3.0, 4.0], requires_grad=True, name="x")
    >>> with mg.debug.record_grad_function() as log:
    ...     (x * x).sum().backward()
    >>> [(r.op, r.incoming_norm, r.outgoing_norms) for r in log]
    [('sum', 1.0, (1.4142135623730951,)), ('mul', 1.4142135623730951, (5.0, 5.0))]
    """

    def __init__(self):
        self.records, self._leaves = [], {}

    def _begin(self):
        is_inner = self._observe in state.observers
        if not is_inner:
            state.observers = (*state.observers, self._observe)
        return {"is_inner": is_inner}

    def _end(self, before, is_error):
        if not before["is_inner"]:
            state.observers = tuple(o for o in state.observers if o != self._observe)
            self._leaves = {}  # keeps no Variables after the block

    def _observe(self, node, dy, gradients, seconds):
        edges = node.edges
        passed = [g if e is not None else None for e, g in zip(edges, gradients, strict=True)]
        self.records.append(
            Record(
                index=len(self.records),
                op=node.op,
                input_shapes=tuple(_shape(e, g) for e, g in zip(edges, passed, strict=True)),
                incoming_norm=norm_of(dy),
                outgoing_norms=tuple(norm_of(g) for g in passed),
                milliseconds=1000.0 * seconds,
                saved_bytes=node.saved_bytes,
                gradient_bytes=sum(a.nbytes for g in passed for a in arrays_of(g)),
                line=node.line,
                node=node.serial,
                targets=tuple(self._target(e) for e in edges),
            )
        )

    def _target(self, edge):
        if edge is None or type(edge) is Node:
            return None if edge is None else edge.serial
        if edge not in self._leaves:
            self._leaves[edge] = edge.name or f"leaf {len(self._leaves)}"
        return self._leaves[edge]

    def __len__(self):
        return len(self.records)

    def __iter__(self):
        return iter(self.records)

    def __repr__(self):
        lines = [f"{'#':>3} {'op':<16}{'gradient in':>12}{'out':>26}{'ms':>9}{'bytes':>12}  line"]
        for r in self.records:
            out = " ".join("-" if n is None else f"{n:.4g}" for n in r.outgoing_norms)
            size = r.saved_bytes + r.gradient_bytes
            lines.append(
                f"{r.index:>3} {r.op:<16}{_number(r.incoming_norm):>12}{out:>26}"
                f"{r.milliseconds:>9.3f}{size:>12,}  {r.line}"
            )
        return "\n".join(lines)

    def to_json(self):
        """Returns the records as JSON, a list of objects. NaN and infinities are strings."""
        return json.dumps([_plain(r._asdict()) for r in self.records], indent=1, allow_nan=False)

    def to_dot(self):
        """Returns the pass in the DOT language: arrows show gradients, with their norms."""
        lines = ["digraph backward {", "  node [shape=box, fontname=monospace];"]
        leaves = []
        for r in self.records:
            label = f"{r.index} {r.op}\\n|dy| = {_number(r.incoming_norm)}\\n{_escaped(r.line)}"
            lines.append(f'  n{r.node} [label="{label}"];')
            for target, norm in zip(r.targets, r.outgoing_norms, strict=True):
                if target is None:
                    continue
                if isinstance(target, str) and target not in leaves:
                    leaves.append(target)
                    label = _escaped(target)
                    lines.append(f'  leaf{len(leaves) - 1} [label="{label}", shape=oval];')
                to = f"leaf{leaves.index(target)}" if isinstance(target, str) else f"n{target}"
                lines.append(f'  n{r.node} -> {to} [label="{_number(norm)}"];')
        return "\n".join([*lines, "}"])


def _shape(edge, gradient):
    if edge is None:
        return None
    arrays = arrays_of(gradient)
    return tuple(arrays[0].shape) if arrays else getattr(edge, "shape", None)


def _number(value):
    return "-" if value is None else f"{value:.4g}"


def _escaped(text):
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _plain(value):
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
