"""What PyTorch's GradScaler does: `python tests/golden/scaler.py` writes scaler.json.

- "calls": every order of at most LONGEST calls on one scaler, SGD and one weight: which call
  raises first, and the scale, the growth tracker and the weight at the end, or before that call.
- "runs": the scale and the tracker after each of many iterations, some with gradients that are not
  finite, for several numbers.
"""

import itertools
import json
from pathlib import Path

import torch

LONGEST, WEIGHT, RATE = 4, 1.0, 0.25
CALLS = {  # a letter for each; "i" scales and differentiates a loss whose gradient is infinite
    "s": "scale and backward", "i": "the same, infinite", "u": "unscale_", "t": "step",
    "p": "update",
}  # fmt: skip
RUNS = [  # init_scale, growth_factor, backoff_factor, growth_interval
    (65536.0, 2.0, 0.5, 3),
    (8.0, 1.5, 0.25, 1),
    (1.0, 4.0, 0.125, 2),
    (2.0**126, 2.0, 0.5, 1),
]
INFINITE = {3, 4, 11, 12, 13, 20}
ITERATIONS = 24


def call(letter, scaler, optimizer, w):
    if letter in "si":
        loss = (w * (float("inf") if letter == "i" else 1.0)).sum()
        scaler.scale(loss).backward()
    elif letter == "p":
        scaler.update()
    else:
        {"u": scaler.unscale_, "t": scaler.step}[letter](optimizer)


def made(*numbers):
    w = torch.tensor([WEIGHT], requires_grad=True)
    scaler = torch.amp.GradScaler("cpu", *numbers)
    return scaler, torch.optim.SGD([w], lr=RATE), w


def outcome(calls):
    """[calls, the position of the call that raises or None, scale, tracker, weight]."""
    scaler, optimizer, w = made(4.0, 2.0, 0.5, 1)
    at = None
    for k, letter in enumerate(calls):
        try:
            call(letter, scaler, optimizer, w)
        except (RuntimeError, AssertionError):
            at = k
            break
    return [calls, at, scaler.get_scale(), scaler._get_growth_tracker(), w.item()]


def run(numbers):
    """[numbers, [(scale, tracker) after each iteration]]."""
    scaler, optimizer, w = made(*numbers)
    found = []
    for k in range(ITERATIONS):
        for letter in ("i" if k in INFINITE else "s", "t", "p"):
            call(letter, scaler, optimizer, w)
        optimizer.zero_grad()
        found.append([scaler.get_scale(), scaler._get_growth_tracker()])
    return [numbers, found]


def main():
    """Writes the file, a line for each order and run."""
    orders = ["".join(o) for n in range(1, LONGEST + 1) for o in itertools.product(CALLS, repeat=n)]
    found = {
        "made_with": torch.__version__.split("+")[0],
        "start": {"weight": WEIGHT, "rate": RATE, "infinite": sorted(INFINITE)},
        "calls": [outcome(o) for o in orders],
        "runs": [run(numbers) for numbers in RUNS],
    }
    parts = []
    for key, value in found.items():
        text = json.dumps(value)
        if isinstance(value, list):
            text = "[\n" + ",\n".join(json.dumps(row) for row in value) + "\n]"
        parts.append(f"{json.dumps(key)}: {text}")
    text = "{\n" + ",\n".join(parts) + "\n}\n"
    Path(__file__).with_suffix(".json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
