"""The results as pictures, with matplotlib."""

from benchmarks.peers import PEERS

COLOURS = {
    "minigrad": "#c2410c",
    "pytorch": "#1f2937",
    "jax": "#0e7490",
    "mygrad": "#7c3aed",
    "autograd": "#65a30d",
}


def _figure(*arguments, **keywords):
    """A figure on a light background that needs no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(*arguments, facecolor="white", layout="constrained", **keywords)
    FigureCanvasAgg(figure)
    return figure


def ratios(report):
    """Per row with figures for PyTorch and another: title, goal, {peer: figure / PyTorch's}.

    Left out is the time of import: an import that loads its parts later would stretch the axis.
    """
    lines = []
    for entry in report["rows"]:
        base = entry["results"].get("pytorch")
        if base and len(entry["results"]) > 1 and entry["kind"] != "import":
            values = {n: r["median"] / base["median"] for n, r in entry["results"].items()}
            lines.append((entry["title"], entry["goal_ratio"], values))
    return lines


def _wrapped(title, width=38):
    """The title over as many lines as it needs."""
    import textwrap

    return "\n".join(textwrap.wrap(title, width))


def bars(report, path):
    """Bars of every peer's ratio to PyTorch, on a logarithmic axis; False if there is none."""
    lines = ratios(report)
    peers = [n for n in report["peers"] if n != "pytorch" and any(n in v for _, _, v in lines)]
    if not peers:
        return False
    height = 0.8 / len(peers)
    figure = _figure(figsize=(9, 1.6 + len(lines) * (0.26 + 0.17 * len(peers))))
    axes = figure.add_subplot()
    for k, peer in enumerate(peers):
        places = [i + (k - (len(peers) - 1) / 2) * height for i, _ in enumerate(lines)]
        values = [v.get(peer) for _, _, v in lines]
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
    goals = [(goal, i) for i, (_, goal, _) in enumerate(lines) if goal]
    if goals:
        axes.vlines(
            [goal for goal, _ in goals],
            [i - 0.42 for _, i in goals],
            [i + 0.42 for _, i in goals],
            colors=COLOURS["minigrad"],
            linestyles="dotted",
            linewidth=1.4,
            label="goal of minigrad",
        )
    axes.set_xscale("log")
    axes.axvline(1, color=COLOURS["pytorch"], linewidth=1.2)
    axes.set_yticks(range(len(lines)), [_wrapped(title) for title, _, _ in lines], fontsize=8.5)
    axes.set_ylim(len(lines) - 0.4, -0.6)
    everything = [x for _, _, v in lines for x in v.values()]
    axes.set_xlim(min(everything) / 1.6, max(everything) * 1.6)
    axes.set_xlabel("time or bytes as a multiple of PyTorch eager's (left of the line is better)")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.grid(axis="x", color="#e5e7eb", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=len(peers) + 1, fontsize=9, frameon=False)
    figure.savefig(path, dpi=150)
    return True


def sweep(report, path):
    """Time over width, depth and batch, one panel each, both axes logarithmic."""
    figure = _figure(figsize=(12, 4))
    panels = report["sweeps"]
    for k, panel in enumerate(panels):
        axes = figure.add_subplot(1, len(panels), k + 1)
        for peer in report["peers"]:
            points = [
                (point["value"], 1e6 * point["results"][peer]["median"])
                for point in panel["points"]
                if peer in point["results"]
            ]
            if points:
                axes.plot(
                    *zip(*points, strict=True),
                    marker="o",
                    markersize=4,
                    color=COLOURS[peer],
                    label=PEERS[peer].title,
                )
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.tick_params(labelsize=8.5)
        axes.set_xlabel(panel["axis"])
        axes.set_title(panel["title"], fontsize=10)
        axes.grid(color="#e5e7eb", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
        if k == 0:
            axes.set_ylabel("µs per training step")
            axes.legend(fontsize=9)
    figure.savefig(path, dpi=150)
