"""memory(step): the temporaries of a compiled step, before planning and after, side by side."""

from minigrad.viz.units import format_bytes, plural

INK, SOFT, ACCENT, PAPER = "#1f2430", "#59616f", "#3b6fd4", "#ffffff"
MOST_ROWS = 2000  # temporaries; of more, the largest are drawn
LETTER = 0.0125  # approximate width of a label's letter, relative to the axes
LEAST_HEIGHT = 0.028  # of a bar with a label, relative to the axes


def plan_of(x):
    """Returns the `before` and `after` plans of a compiled step; None if x is something else."""
    ask = getattr(x, "memory_plan", None)
    plan = ask() if callable(ask) else x
    sides = (getattr(plan, "before", None), getattr(plan, "after", None))
    return plan if all(hasattr(side, "rows") for side in sides) else None


def planned_memory(plt, plan):
    """Draws each temporary as a bar from first to last use, at its offset: a matplotlib Figure.

    Args:
        plan: `before` and `after`, each with rows (name, offset, size, first, last, sharing),
            total, peak, when, moments, unit.
    """
    sides = (plan.before, plan.after)
    figure, axes = plt.subplots(
        1, 2, sharey=True, layout="constrained", facecolor=PAPER, figsize=(10.0, 4.6)
    )
    highest = max(1, *(side.total for side in sides))
    scale, unit = unit_of(highest)
    titles = ("Before: a place for each temporary", "After: one arena, shared")
    for ax, side, title in zip(axes, sides, titles, strict=True):
        _draw(ax, side, title, scale, highest)
    axes[0].set_ylabel(f"offset ({unit})", color=INK)
    axes[0].set_ylim(0, 1.04 * highest / scale)
    return figure


def unit_of(largest):
    """Returns (divisor, name) of the binary unit that suits the largest value."""
    scale, name = 1, "bytes"
    for bigger in ("KiB", "MiB", "GiB", "TiB"):
        if largest < 2 * 1024 * scale:
            break
        scale, name = scale * 1024, bigger
    return scale, name


def styled(axes):
    """Gives axes the colours of the page, and removes the frame at the top and right."""
    axes.set_facecolor(PAPER)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(SOFT)
    axes.tick_params(colors=SOFT, labelsize=9)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)


def _draw(ax, side, title, scale, highest):
    import matplotlib as mpl
    from matplotlib.patches import Rectangle
    from matplotlib.ticker import MaxNLocator

    palette = mpl.colormaps["Blues"]
    rows = sorted(side.rows, key=lambda r: -r.size)[:MOST_ROWS]
    largest = max((r.size for r in rows), default=1)
    moments = max(1, side.moments)
    for row in rows:
        shade = 0.2 + 0.6 * (row.size / largest) ** 0.5
        width, height = row.last - row.first + 1, row.size
        ax.add_patch(
            Rectangle(
                (row.first, row.offset / scale), width, height / scale,
                facecolor=palette(shade), edgecolor=PAPER, linewidth=0.6 if len(rows) < 60 else 0.0,
            )
        )  # fmt: skip
        if height / highest > LEAST_HEIGHT:
            text, side_of = _label(row, side, moments)
            x = row.last + 1 if side_of == "right" else row.first
            gap = (-1 if side_of == "left" else 1) * 0.006 * moments
            ax.text(
                x + gap, (row.offset + height / 2) / scale, text,
                va="center", ha="right" if side_of == "left" else "left", fontsize=7.5,
                clip_on=True, color=PAPER if side_of == "inside" and shade > 0.55 else INK,
            )  # fmt: skip
    ax.axhline(side.peak / scale, color=ACCENT, linewidth=1.2, linestyle="--")
    count = plural(len(side.rows), "temporary", "temporaries")
    ax.set_title(title, loc="left", color=INK, fontsize=11, fontweight="bold", pad=20)
    ax.annotate(
        f"{format_bytes(side.total)} for {count}; dashed: at most {format_bytes(side.peak)} alive "
        "at once", (0, 1), (0, 5), xycoords="axes fraction", textcoords="offset points",
        fontsize=8.5, color=SOFT, va="bottom", annotation_clip=False,
    )  # fmt: skip
    ax.set_xlim(0, moments)
    ax.set_xlabel(f"{side.unit} of the step ({side.moments:,} in all)", color=INK)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    styled(ax)


def _label(row, side, moments):
    """Returns (text, position): inside the bar, or in free space beside it, or text ''."""
    names, size = " > ".join((row.name, *row.sharing)), format_bytes(row.size)
    texts = (f"{names} {size}", f"{row.name} {size}", row.name)
    level = [
        r for r in side.rows if r.offset < row.offset + row.size and row.offset < r.offset + r.size
    ]
    end = row.last + 1
    after = min((r.first for r in level if r.first >= end), default=moments)
    before = max((r.last + 1 for r in level if r.last < row.first), default=0)
    for where, room in (
        ("inside", end - row.first),
        ("right", after - end),
        ("left", row.first - before),
    ):
        for text in texts:
            if len(text) * LETTER < room / moments:
                return text, where
    return "", "inside"
