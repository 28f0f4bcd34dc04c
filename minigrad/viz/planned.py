"""memory(step): the temporaries of a compiled step, before planning and after, side by side."""

from minigrad.viz.units import format_bytes, plural

INK, SOFT, ACCENT, PAPER = "#1f2430", "#59616f", "#3b6fd4", "#ffffff"
MOST_ROWS = 2000  # of more temporaries than this, the largest are drawn
LETTER = 0.0125  # width of a letter of a label over that of the axes, about
LEAST_HEIGHT = 0.028  # of a bar with a label, over that of the axes


def plan_of(x):
    """What holds `before` and `after` of a compiled step, or None if x is something else."""
    ask = getattr(x, "memory_plan", None)
    plan = ask() if callable(ask) else x
    sides = (getattr(plan, "before", None), getattr(plan, "after", None))
    return plan if all(hasattr(side, "rows") for side in sides) else None


def planned_memory(plt, plan):
    """A matplotlib Figure: each temporary as a bar from first to last use, at its offset.

    Args:
        plan: `before` and `after`, each with rows (name, offset, size, first, last, sharing),
            total, peak, when, moments, unit.
    """
    sides = (plan.before, plan.after)
    figure, axes = plt.subplots(
        1, 2, sharey=True, layout="constrained", facecolor=PAPER, figsize=(10.0, 4.6)
    )
    highest = max(1, *(side.total for side in sides))
    scale, unit = _unit(highest)
    titles = ("Before: a place for each temporary", "After: one arena, shared")
    for ax, side, title in zip(axes, sides, titles, strict=True):
        _draw(ax, side, title, scale, highest)
    axes[0].set_ylabel(f"offset ({unit})", color=INK)
    axes[0].set_ylim(0, 1.04 * highest / scale)
    return figure


def _unit(largest):
    scale, name = 1, "bytes"
    for bigger in ("KiB", "MiB", "GiB", "TiB"):
        if largest < 2 * 1024 * scale:
            break
        scale, name = scale * 1024, bigger
    return scale, name


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
                facecolor=palette(shade), edgecolor=PAPER, linewidth=0.6,
            )
        )  # fmt: skip
        text = _fitting(row, width / moments)
        if text and height / highest > LEAST_HEIGHT:
            ax.text(
                row.first + 0.006 * moments, (row.offset + height / 2) / scale, text,
                va="center", fontsize=7.5, color=PAPER if shade > 0.55 else INK, clip_on=True,
            )  # fmt: skip
    ax.axhline(side.peak / scale, color=ACCENT, linewidth=1.2, linestyle="--")
    ax.annotate(
        f"at most {format_bytes(side.peak)} alive at once", (1, side.peak / scale), (-2, 3),
        xycoords=("axes fraction", "data"), textcoords="offset points", ha="right", va="bottom",
        fontsize=8, color=ACCENT,
        bbox={"facecolor": PAPER, "edgecolor": "none", "alpha": 0.8, "pad": 1.0},
    )  # fmt: skip
    count = plural(len(side.rows), "temporary", "temporaries")
    ax.set_title(
        f"{title}\n{format_bytes(side.total)} for {count}",
        loc="left", color=INK, fontsize=10.5, fontweight="bold",
    )  # fmt: skip
    ax.set_xlim(0, moments)
    ax.set_xlabel(f"{side.unit} of the step ({side.moments:,} in all)", color=INK)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_facecolor(PAPER)
    for name in ("top", "right"):
        ax.spines[name].set_visible(False)
    for name in ("left", "bottom"):
        ax.spines[name].set_color(SOFT)
    ax.tick_params(colors=SOFT, labelsize=9)


def _fitting(row, share):
    """A label that fits into a bar of a share of the width: with its size, alone, or none."""
    names = " = ".join(dict.fromkeys((row.name, *row.sharing)))
    for text in (f"{names} {format_bytes(row.size)}", f"{row.name} {format_bytes(row.size)}",
                 row.name):  # fmt: skip
        if len(text) * LETTER < share:
            return text
    return ""
