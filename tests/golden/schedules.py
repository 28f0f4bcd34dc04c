"""What PyTorch's schedules do together: `python tests/golden/schedules.py` writes schedules.json.

Every ordered pair of schedules that PyTorch has as minigrad does, both made on one optimizer of two
groups and both stepped; and, but for the plateau, one after the other as SequentialLR. Their
starts are above 0 and minima 0, since PyTorch's recursive forms depend on the order otherwise.
"""

import itertools
import json
import warnings
from pathlib import Path

import torch
from torch.optim import lr_scheduler

PEAKS, STEPS, MILESTONE = (0.1, 0.02), 12, 5
KINDS = {
    "Constant": ("ConstantLR", {"factor": 0.5, "total_iters": 4}),
    "StepDecay": ("StepLR", {"step_size": 3, "gamma": 0.5}),
    "ExponentialDecay": ("ExponentialLR", {"gamma": 0.9}),
    "CosineDecay": ("CosineAnnealingLR", {"T_max": 20}),
    "LinearWarmup": ("LinearLR", {"start_factor": 0.25, "total_iters": 4}),
    "ReduceOnPlateau": ("ReduceLROnPlateau", {"factor": 0.5, "patience": 1, "min_lr": 1e-4}),
}
LOSSES = [3.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5]


def _made(optimizer, name):
    kind, keywords = KINDS[name]
    return getattr(lr_scheduler, kind)(optimizer, **keywords)


def _optimizer():
    groups = [{"params": [torch.zeros(1, requires_grad=True)], "lr": rate} for rate in PEAKS]
    return torch.optim.SGD(groups)


def _rates(optimizer, schedules):
    seen = []
    for loss in LOSSES:
        seen.append([group["lr"] for group in optimizer.param_groups])
        optimizer.step()
        for schedule in schedules:
            is_watching = isinstance(schedule, lr_scheduler.ReduceLROnPlateau)
            schedule.step(*[loss] if is_watching else [])
    return seen


def chained(names):
    """The rates of both groups at each step when all are made and all are stepped."""
    optimizer = _optimizer()
    return _rates(optimizer, [_made(optimizer, name) for name in names])


def sequential(names):
    """The same when the second follows the first."""
    optimizer = _optimizer()
    parts = [_made(optimizer, name) for name in names]
    return _rates(optimizer, [lr_scheduler.SequentialLR(optimizer, parts, [MILESTONE])])


def written(value):
    """JSON with one line per pair."""
    if not isinstance(value, dict):
        return json.dumps(value)
    lines = [f"{json.dumps(name)}: {json.dumps(rates)}" for name, rates in value.items()]
    return "{\n  " + ",\n  ".join(lines) + "\n }"


def main():
    """Writes the file."""
    warnings.simplefilter("ignore")
    found = {"peaks": PEAKS, "losses": LOSSES, "milestone": MILESTONE, "chained": {}}
    found["sequential"] = {}
    for pair in itertools.product(KINDS, repeat=2):
        found["chained"][" ".join(pair)] = chained(pair)
        if "ReduceOnPlateau" not in pair:
            found["sequential"][" ".join(pair)] = sequential(pair)
    lines = [f"{json.dumps(name)}: {written(value)}" for name, value in found.items()]
    text = "{" + ",\n ".join(lines) + "}"
    Path(__file__).with_suffix(".json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
