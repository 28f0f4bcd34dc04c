"""Draws pictures for lesson 14 on given axes: what each kernel computes, and memory over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from minigrad.course.l14_compile.costs import Groups, bytes_moved, peak_bytes, plan
from minigrad.course.objects import Op, Program

COLOURS = {"matmul": "C0", "transpose": "#8aa9e6", "sum": "#c98a1b", "elementwise": "#7fb77e"}
KINDS = {"input": "#b8bec8", "temporary": "C1", "output": "C0"}
DONATED = "#5f97c9"
KIB = 1024


def kind_of(op: Op) -> str:
    """Return the kind that determines an operation's colour."""
    return "elementwise" if op.is_elementwise else "sum" if op.is_sum else op.name


def draw_kernels(axis: Any, groups: Groups, title: str) -> None:
    """Draw a column per kernel, in running order, with a box for each of its operations."""
    from matplotlib.patches import Patch

    for number, group in enumerate(groups):
        for height, op in enumerate(group):
            axis.bar(
                number, 0.92, 0.9, height, color=COLOURS[kind_of(op)], edgecolor="white", lw=0.5
            )
            if len(groups) <= 20:
                middle = number, height + 0.46
                axis.text(*middle, op.name, ha="center", va="center", fontsize=6.5, color="black")
    axis.set(
        xlabel="kernel, in the order in which they run",
        ylabel="operations in it",
        xlim=(-0.7, len(groups) - 0.3),
        title=title,
    )
    highest = max(map(len, groups))
    axis.set(ylim=(0, highest + 0.1), yticks=range(1, highest + 1))
    if highest > 1:
        handles = [Patch(color=colour, label=kind) for kind, colour in COLOURS.items()]
        axis.legend(handles=handles, fontsize=8, loc="upper right")


def draw_plan(
    axis: Any,
    program: Program,
    groups: Groups,
    taken: Mapping[str, str],
    title: str,
    *,
    top: int = 0,
) -> None:
    """Draw where each value lies, and when: time runs to the right, memory upwards.

    Args:
        axis: a matplotlib axis.
        program, groups, taken: as for `costs.plan`.
        title: the first line of the title; the second states the cost.
        top: how many bytes the axis shows; 0 for all.
    """
    from matplotlib.patches import Patch, Rectangle

    blocks = plan(program, groups, taken)
    n, peak = len(groups), peak_bytes(blocks)
    for block in blocks:
        start, stop = max(block.start, 0), min(block.stop + 1, n)
        if block.kind == "input":
            start, stop = -0.04 * n, n
        colour = DONATED if block.over else KINDS[block.kind]
        axis.add_patch(
            Rectangle(
                (start, block.offset / KIB), stop - start, block.nbytes / KIB,
                facecolor=colour, edgecolor="white", linewidth=0.6,
                hatch="//" if block.over else None,
            )
        )  # fmt: skip
    axis.axhline(peak / KIB, color="C3", linestyle="--", linewidth=1)
    axis.set(xlim=(-0.04 * n, n), ylim=(0, 1.06 * max(top, peak) / KIB))
    axis.set(xlabel="kernel", ylabel="memory, KiB")
    kernels = f"{n} kernels, {bytes_moved(program, groups) / KIB:,.0f} KiB moved"
    axis.set_title(f"{title}: {kernels}\npeak {peak / KIB:,.0f} KiB", fontsize=9)
    labels = {"given": KINDS["input"], "temporary": KINDS["temporary"], "result": KINDS["output"]}
    handles: list[Any] = [Patch(color=colour, label=label) for label, colour in labels.items()]
    if taken:
        over = Patch(facecolor=DONATED, edgecolor="white", hatch="//", label="result over given")
        handles.append(over)
    axis.legend(handles=handles, fontsize=6, loc="lower left", framealpha=0.9)


def table(rows: Sequence[tuple[str, Program, Groups, Mapping[str, str]]]) -> str:
    """Return a table of each stage's cost: kernels, KiB moved, and peak memory."""
    lines = [f"{'':<12}{'kernels':>8}{'KiB moved':>11}{'peak KiB':>10}"]
    for name, program, groups, taken in rows:
        moved, peak = bytes_moved(program, groups), peak_bytes(plan(program, groups, taken))
        lines.append(f"{name:<12}{len(groups):>8}{moved / KIB:>11,.0f}{peak / KIB:>10,.0f}")
    return "\n".join(lines)
