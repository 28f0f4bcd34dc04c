"""memory(timeline): draws bytes in use over a program's events, and each buffer's lifetime."""

import textwrap
from collections import Counter
from dataclasses import dataclass

from minigrad.errors import ArgumentError, ArgumentTypeError, MissingLibraryError
from minigrad.viz.planned import (
    ACCENT,
    INK,
    PAPER,
    SOFT,
    plan_of,
    planned_memory,
    styled,
    unit_of,
)
from minigrad.viz.units import format_bytes

MOST_LIFETIMES = 4000  # buffers; of more, the largest are drawn
NAMED_AT_PEAK = 5
LETTERS_ACROSS = 100  # letters of a bar's label that fit across the figure


@dataclass
class Lifetime:
    """A buffer from alloc to free, as event numbers; `stop` is past the end if it still lives."""

    start: int
    stop: int
    nbytes: int
    op: str
    line: str
    lane: int = 0


def lifetimes(events):
    """Returns the Lifetimes of the buffers that the timeline saw, in order of allocation.

    Each buffer gets the first free lane, so no lane holds two buffers at once.
    """
    lives, alive = [], {}
    for e in events:
        if e.kind == "alloc":
            alive[e.buffer] = Lifetime(e.index, len(events), e.bytes, e.op, e.line)
            lives.append(alive[e.buffer])
        elif e.buffer in alive:
            alive.pop(e.buffer).stop = e.index
    return lives


def in_lanes(spans):
    """Gives each lifetime the lowest free lane; returns the number of lanes."""
    ends = []
    for span in spans:
        for lane, end in enumerate(ends):
            if end <= span.start:
                span.lane, ends[lane] = lane, span.stop
                break
        else:
            span.lane = len(ends)
            ends.append(span.stop)
    return len(ends)


def memory(timeline):
    """Draws the bytes in use over a `mg.memory.timeline()`, and the lifetime of each buffer.

    The picture names the largest buffers at the peak by the op that made them. For a compiled step
    it shows the offset and the lifetime of each temporary, before and after memory planning. It
    needs matplotlib.

    Args:
        timeline: a `mg.memory.timeline()` whose block has run; or a compiled step that has been
            called twice, or its `memory_plan()`.

    Returns:
        A matplotlib Figure. JupyterLab shows it, `.savefig(path)` writes it.
    """
    plan = plan_of(timeline)
    if plan is not None:
        return _shown(planned_memory(_pyplot(), plan))
    if not hasattr(timeline, "__iter__") or isinstance(timeline, (str, bytes)):
        raise ArgumentTypeError(
            "viz.memory: wanted a timeline, or a compiled step",
            type(timeline).__name__,
            "with mg.memory.timeline() as t: ..., then mg.viz.memory(t)",
        )
    events = list(timeline)
    if not events:
        raise ArgumentError(
            "viz.memory: wanted a timeline with events",
            "an empty one",
            "run something inside: with mg.memory.timeline() as t: ...",
        )
    plt = _pyplot()
    spans = lifetimes(events)
    shown = sorted(sorted(spans, key=lambda s: -s.nbytes)[:MOST_LIFETIMES], key=lambda s: s.start)
    lanes = in_lanes(shown)
    figure, (top, bottom) = plt.subplots(
        2, 1, sharex=True, layout="constrained", facecolor=PAPER,
        figsize=(9.0, 3.2 + min(5.0, 1.0 + 0.16 * lanes)),
        height_ratios=(2.6, min(5.0, 1.0 + 0.16 * lanes)),
    )  # fmt: skip
    peak = _draw_bytes(top, events)
    _draw_lifetimes(bottom, shown, lanes, len(events), len(spans))
    _name_peak(top, peak, spans)
    for axes in (top, bottom):
        styled(axes)
        axes.axvline(peak.index, color=ACCENT, linewidth=0.8, linestyle=":")
    return _shown(figure)


def _shown(figure):
    """Closes the figure and returns it: else a notebook would show it twice."""
    plt = _pyplot()
    if "inline" in plt.get_backend():
        plt.close(figure)
    return figure


def _pyplot():
    try:
        import matplotlib.pyplot as plt  # optional and slow to import
    except ImportError:
        raise MissingLibraryError(
            "viz.memory: wanted matplotlib, which is not installed",
            fix='pip install matplotlib, or pip install "minigrad[lab]" for all of the lessons',
        ) from None
    return plt


def _draw_bytes(axes, events):
    """Draws the step plot; returns the event of the peak."""
    peak = max(events, key=lambda e: e.current_bytes)
    scale, unit = unit_of(peak.current_bytes)
    first = events[0]
    before = first.current_bytes - (first.bytes if first.kind == "alloc" else -first.bytes)
    where = [-1, *(e.index for e in events), len(events)]
    values = [before, *(e.current_bytes for e in events), events[-1].current_bytes]
    values = [v / scale for v in values]
    axes.fill_between(where, values, step="post", color=ACCENT, alpha=0.18, linewidth=0)
    axes.step(where, values, where="post", color=ACCENT, linewidth=1.4)
    axes.set_ylabel(f"in use ({unit})")
    axes.set_ylim(0, 1.08 * max(values) or 1)
    axes.plot([peak.index], [peak.current_bytes / scale], "o", color=ACCENT, markersize=5)
    return peak


def _name_peak(axes, peak, spans):
    held = [s for s in spans if s.start <= peak.index < s.stop]
    alike = Counter((s.op or "data", s.nbytes) for s in held)
    groups = sorted(alike.items(), key=lambda item: -item[0][1] * item[1])
    named = [
        (f"{n} \u00d7 " if n > 1 else "") + f"{op} {format_bytes(nbytes)}"
        for (op, nbytes), n in groups[:NAMED_AT_PEAK]
    ]
    rest = sum(n for _, n in groups[NAMED_AT_PEAK:])
    if rest:
        named.append(f"{rest} more")
    older = peak.current_bytes - sum(s.nbytes for s in held)
    if older > 0:
        named.append(f"{format_bytes(older)} from before")
    during = f", in {peak.op}" if peak.op else ""
    glued = [name.replace(" ", "\u00a0") for name in named]  # lines break only between names
    lines = textwrap.wrap("\u00a0\u00b7 ".join(glued), LETTERS_ACROSS)
    title = f"Peak {format_bytes(peak.current_bytes)} at event {peak.index}{during}"
    above = 8 + 12 * len(lines)  # points, for the lines between title and axes
    axes.set_title(title, loc="left", color=INK, fontsize=11, fontweight="bold", pad=above)
    axes.annotate(
        "\n".join(lines), (0, 1), (0, 5), xycoords="axes fraction", textcoords="offset points",
        fontsize=8.5, color=SOFT, va="bottom", annotation_clip=False,
    )  # fmt: skip


def _draw_lifetimes(axes, shown, lanes, end, total):
    import matplotlib as mpl
    from matplotlib.ticker import MaxNLocator

    largest = max((s.nbytes for s in shown), default=1)
    palette = mpl.colormaps["Blues"]
    for lane in range(lanes):
        mine = [s for s in shown if s.lane == lane]
        axes.broken_barh(
            [(s.start, s.stop - s.start) for s in mine],
            (lane - 0.41, 0.82),
            facecolors=[palette(_shade(s, largest)) for s in mine],
            edgecolor=PAPER,
            linewidth=0.3,
        )
    for span in shown if lanes <= 40 else ():
        label = f"{span.op or 'data'} {format_bytes(span.nbytes)}"
        if (span.stop - span.start) / end * LETTERS_ACROSS > len(label):
            colour = PAPER if _shade(span, largest) > 0.5 else INK
            x = span.start + 0.004 * end
            axes.text(x, span.lane, label, va="center", fontsize=7.5, color=colour, clip_on=True)
    axes.set_ylim(lanes - 0.4, -0.6)
    axes.set_yticks([])
    axes.set_ylabel("buffers")  # short: with few buffers these axes are low
    rest = "" if total == len(shown) else f"; the {len(shown):,} largest of {total:,} buffers"
    axes.set_xlabel(f"event (alloc or free); darker bars are larger buffers{rest}")
    axes.set_xlim(-1, end)
    ticks = MaxNLocator(integer=True, min_n_ticks=1).tick_values(0, end)
    axes.set_xticks([tick for tick in ticks if 0 <= tick <= end])


def _shade(span, largest):
    """Returns a buffer's colour between light and dark; the root separates small sizes."""
    return 0.15 + 0.75 * (span.nbytes / largest) ** 0.5
