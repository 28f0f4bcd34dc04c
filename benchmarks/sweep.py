"""Training steps of a multi-layer perceptron over width, depth and batch: `--sweep`."""

from benchmarks.rows import Row

SWEEPS = [
    (
        "width",
        "2 hidden layers, batch 32",
        [16, 32, 64, 128, 256, 512, 1024, 2048],
        lambda v: {"sizes": [64, v, v, 10], "batch": 32},
    ),
    (
        "depth",
        "hidden layers of 32, batch 32",
        [1, 2, 4, 8, 16, 32, 64],
        lambda v: {"sizes": [64, *[32] * v, 10], "batch": 32},
    ),
    (
        "batch",
        "64-128-10",
        [1, 4, 16, 64, 256, 1024, 4096],
        lambda v: {"sizes": [64, 128, 10], "batch": v},
    ),
]


def run(harness, quick=False):
    """Measures all points; with `quick` only the smallest two of each sweep."""
    panels = []
    for axis, title, values, settings in SWEEPS:
        points = []
        for value in values[:2] if quick else values:
            row = Row(f"{axis}-{value}", f"{axis} {value}", "mlp", settings(value))
            harness.say(f"{row.name} ...")
            points.append({"value": value, **harness.run(row)})
            for name, what in points[-1]["errors"].items():
                harness.say(f"  {name}: {what}")
        panels.append({"axis": axis, "title": f"MLP, {title}", "points": points})
    return panels
