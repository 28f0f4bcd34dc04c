"""The results as pictures, with matplotlib."""

from benchmarks.fresh import KINDS
from benchmarks.peers import PEERS

COLOURS = {
    "minigrad": "#fb923c",
    "compiled": "#c2410c",
    "pytorch": "#1f2937",
    "inductor": "#9ca3af",
    "jax": "#0e7490",
    "mygrad": "#7c3aed",
    "autograd": "#65a30d",
}


def new_figure(*arguments, **keywords):
    """A figure on a light background that needs no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(*arguments, facecolor="white", layout="constrained", **keywords)
    FigureCanvasAgg(figure)
    return figure


def ratios(report):
    """Per row with figures for PyTorch and another: (title, times, goals, limit).

    All are multiples of PyTorch's time: of each peer as {peer: ratio}, minigrad's goals against
    PyTorch as [(who, ratio)], and the limit, or None.
    Left out are rows of fresh processes: what is loaded late or compiled would stretch the axis.
    """
    lines = []
    for entry in report["rows"]:
        base = entry["results"].get("pytorch")
        if base and len(entry["results"]) > 1 and entry["kind"] not in KINDS:
            base = base["median"]
            values = {n: r["median"] / base for n, r in entry["results"].items()}
            goals = [
                (goal["who"], 1 / goal["wanted"] if goal["kind"] == "faster" else goal["wanted"])
                for goal in entry["goals"]
                if "pytorch" in goal["over"] and goal["figure"] == "time"
            ]
            limit = entry["limit"] and entry["limit"]["seconds"] / base
            lines.append((entry["title"], values, goals, limit))
    return lines


def _wrapped(title, width=38):
    """The title over as many lines as it needs."""
    import textwrap

    return "\n".join(textwrap.wrap(title, width))


def bars(report, path):
    """Bars of every peer's ratio to PyTorch, on a logarithmic axis; False if there is none."""
    lines = ratios(report)
    peers = [n for n in report["peers"] if n != "pytorch" and any(n in line[1] for line in lines)]
    if not peers:
        return False
    height = 0.8 / len(peers)
    figure = new_figure(figsize=(9, 1.6 + len(lines) * (0.26 + 0.17 * len(peers))))
    axes = figure.add_subplot()
    for k, peer in enumerate(peers):
        places = [i + (k - (len(peers) - 1) / 2) * height for i, _ in enumerate(lines)]
        values = [line[1].get(peer) for line in lines]
        shown = [(p, v) for p, v in zip(places, values, strict=True) if v]
        axes.barh(
            [p for p, _ in shown],
            [v - 1 for _, v in shown],
            height * 0.92,
            left=1,
            color=COLOURS[peer],
            label=PEERS[peer].title,
        )
        for place, value in shown:
            axes.annotate(
                f"{value:.2g}" if value < 100 else f"{value:.0f}",
                (value, place),
                xytext=(3 if value >= 1 else -3, 0),
                textcoords="offset points",
                ha="left" if value >= 1 else "right",
                va="center",
                fontsize=7.5,
            )
    for peer in peers:
        goals = [(r, i) for i, line in enumerate(lines) for who, r in line[2] if who == peer]
        if goals:
            axes.vlines(
                [goal for goal, _ in goals],
                [i - 0.42 for _, i in goals],
                [i + 0.42 for _, i in goals],
                colors=COLOURS[peer],
                linestyles="dotted",
                linewidth=1.6,
                label=f"goal of {PEERS[peer].title}",
            )
    limits = [(line[3], i) for i, line in enumerate(lines) if line[3]]
    if limits:
        axes.scatter(*zip(*limits, strict=True), marker="|", s=250, color="black", label="limit")
    axes.set_xscale("log")
    axes.axvline(1, color=COLOURS["pytorch"], linewidth=1.2)
    axes.set_yticks(range(len(lines)), [_wrapped(line[0]) for line in lines], fontsize=8.5)
    axes.set_ylim(len(lines) - 0.4, -0.6)
    everything = [x for line in lines for x in line[1].values()] + [x for x, _ in limits]
    axes.set_xlim(min(everything) / 1.6, max(everything) * 1.6)
    axes.set_xlabel("time as a multiple of PyTorch eager's (left of the line is better)")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.grid(axis="x", color="#e5e7eb", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=4, fontsize=9, frameon=False)
    figure.savefig(path, dpi=150)
    return True
