"""How a step's time grows: `python -m benchmarks.growth` measures and draws it.

Layers, width and batch of a multi-layer perceptron trained with Adam, and Adam alone over a number
of parameters. It writes growth.json and growth.png.
"""

import argparse
import sys
from pathlib import Path

from benchmarks import machine, report
from benchmarks.__main__ import order
from benchmarks.harness import Harness
from benchmarks.peers import PEERS
from benchmarks.plot import COLOURS, new_figure
from benchmarks.rows import Row

HERE = Path(__file__).resolve().parent
COMPARED = ("minigrad", "compiled", "pytorch", "inductor", "jax")
PANELS = [
    (
        "hidden layers",
        "step, hidden layers of 32, batch 32",
        "mlp",
        [1, 2, 4, 8, 16, 32],
        lambda v: {"sizes": [64, *[32] * v, 10], "batch": 32},
    ),
    (
        "width",
        "step, 2 hidden layers, batch 32",
        "mlp",
        [16, 64, 256, 1024],
        lambda v: {"sizes": [64, v, v, 10], "batch": 32},
    ),
    (
        "batch",
        "step, MLP 64-128-10",
        "mlp",
        [1, 8, 64, 512, 4096],
        lambda v: {"sizes": [64, 128, 10], "batch": v},
    ),
    (
        "parameters",
        "Adam alone, 4 arrays",
        "adam",
        [1_000, 10_000, 100_000, 1_000_000, 10_000_000],
        lambda v: {"shapes": [[1, v // 4]] * 4},
    ),
]


def measured(harness, quick=False):
    """All points of all panels, as the JSON file holds them; `quick`: the smallest two of each."""
    found = []
    for axis, title, kind, values, settings in PANELS:
        points = []
        for value in values[:2] if quick else values:
            row = Row(f"{axis} {value}", title, kind, settings(value))
            harness.say(f"{row.name} ...")
            points.append({"value": value, **harness.run(row)})
            for name, what in points[-1]["errors"].items():
                harness.say(f"  {name}: {what}")
        found.append({"axis": axis, "title": title, "points": points})
    return found


def draw(panel, axes, peers):
    """One panel: time over the axis, both logarithmic."""
    for peer in peers:
        points = [
            (point["value"], 1e6 * point["results"][peer]["median"])
            for point in panel["points"]
            if peer in point["results"]
        ]
        if points:
            line = zip(*points, strict=True)
            style = {"marker": "o", "markersize": 4, "color": COLOURS[peer]}
            axes.plot(*line, **style, label=PEERS[peer].title)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(panel["axis"])
    axes.set_title(panel["title"], fontsize=10)
    axes.set_ylabel("µs")
    axes.tick_params(labelsize=8.5)
    axes.grid(color="#e5e7eb", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)


def picture(found, path):
    """Draws all panels into a PNG."""
    figure = new_figure(figsize=(9.5, 7.5))
    for k, panel in enumerate(found["panels"]):
        draw(panel, figure.add_subplot(2, 2, k + 1), found["peers"])
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=5, fontsize=9, frameon=False)
    figure.savefig(path, dpi=150)


def parser():
    """The command line."""
    p = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    p.add_argument("--peers", nargs="+", metavar="PEER", choices=COMPARED, default=COMPARED)
    p.add_argument("--rounds", type=int, default=5, help="turns of each peer per point (5)")
    p.add_argument("--seconds", type=float, default=0.1, help="length of a turn (0.1)")
    p.add_argument("--threads", type=int, default=2, help="threads of each peer (2)")
    p.add_argument("--quick", action="store_true", help="the smallest two points of each panel")
    p.add_argument("--output", type=Path, default=HERE / "results", help="folder of the results")
    return p


def main(argv=None):
    """Measures, writes, draws; 1 if a peer failed, or computed something else."""
    arguments = parser().parse_args(argv)
    described = machine.describe()
    names = order(arguments.peers)
    with Harness(names, arguments.rounds, arguments.seconds, arguments.threads) as harness:
        panels = measured(harness, arguments.quick)
        found = report.collected(described, harness, [])
    del found["rows"]
    found["panels"] = panels
    arguments.output.mkdir(parents=True, exist_ok=True)
    report.write_json(found, arguments.output / "growth.json")
    try:
        picture(found, arguments.output / "growth.png")
    except ImportError:
        print("no plot: matplotlib is not installed")
    return int(any(point["errors"] for panel in panels for point in panel["points"]))


if __name__ == "__main__":
    sys.exit(main())
