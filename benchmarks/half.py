"""Loss curves of training in half precision beside float32: `python -m benchmarks.half`.

It trains three small models on digits from the same values in the same order, with compiled steps,
and writes results/half.md. Ways: float32; autocast with a GradScaler; and, without either, a model
whose parameters are halves, of which the optimizer keeps float32 copies. A second table times what
is limited by memory, on arrays that no cache holds.
"""

from pathlib import Path

import minigrad as mg
from benchmarks import machine, tables
from benchmarks.alternate import medians
from minigrad import nn
from minigrad.array.dtypes import DTYPES

RESULTS = Path(__file__).parent / "results" / "half.md"
HALVES = [d.name for d in DTYPES if d.is_narrow]
WAYS = ["float32", *(f"{how} {d}" for d in HALVES for how in ("autocast", "parameters in"))]
SHOWN = (1, 2, 4, 8)  # epochs
EPOCHS = SHOWN[-1]


class Transformer(nn.Module):
    """Reads the rows of an image as tokens (batch, 8, 8), and takes the mean over them."""

    def __init__(self, width=32):
        self.embed = nn.Linear(8, width)
        self.block = nn.TransformerBlock(width, 4)
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        return self.head(mg.mean(self.block(self.embed(x)), axis=1))


MODELS = {  # {name: (shape of one example, a function that makes the model)}
    "MLP": ((64,), lambda: nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))),
    "CNN": (
        (1, 8, 8),
        lambda: nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(8 * 16, 10),
        ),
    ),
    "transformer": ((8, 8), Transformer),
}  # fmt: skip


def trained(model, shape, way, epochs=EPOCHS, count=None):
    """Trains a model; returns (mean loss of each epoch, share of new digits read, steps left out).

    count: how many digits to train on; all by default.
    """
    images, labels = mg.data.load_digits()
    (x, y), (x_new, y_new) = mg.data.stratified_split(images.reshape(-1, *shape), labels, seed=1)
    how, _, half = way.rpartition(" ")
    is_auto, dtype = how == "autocast", half if how == "parameters in" else "float32"
    if dtype != "float32":
        model.to(dtype)
    optimizer = mg.optim.Adam(model, learning_rate=2e-3)
    scaler = mg.optim.GradScaler(enabled=is_auto)
    lower = mg.autocast(half if is_auto else HALVES[0], enabled=is_auto)

    @mg.compile
    def step(inputs, targets):
        with lower:
            loss = mg.cross_entropy(model(inputs), targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        return loss

    curve = []
    for epoch in range(epochs):
        losses = [
            step(mg.variable(inputs).to(dtype), mg.variable(targets)).item()
            for inputs, targets in mg.data.batches(
                x[:count], y[:count], batch_size=32, seed=epoch, drop_last=True
            )
        ]
        curve.append(sum(losses) / len(losses))
    with lower, mg.no_grad():
        answers = model.valid()(mg.variable(x_new).to(dtype)).to("float32").numpy()
    return curve, (answers.argmax(axis=1) == y_new).mean(), scaler.skipped_steps


def rows(epochs=EPOCHS, count=None):
    """Returns (model, way, result of `trained`) of each pair; all ways begin with equal values."""
    found = []
    for name, (shape, make) in MODELS.items():
        for way in WAYS:
            mg.manual_seed(0)
            found.append((name, way, trained(make(), shape, way, epochs, count)))
    return found


def table(found):
    """The page's table of what `rows` found."""
    shown = [k for k in SHOWN if k <= len(found[0][2][0])]
    head = ["model", "way", *(f"loss, epoch {k}" for k in shown), "new digits read", "left out"]
    lines = ["| " + " | ".join(head) + " |", "|---|---|" + "---:|" * (len(head) - 2)]
    for name, way, (curve, share, skipped) in found:
        losses = [f"{curve[k - 1]:.4f}" for k in shown]
        lines.append(
            f"| {' | '.join([name, way, *losses, f'{100 * share:.1f} %', str(skipped)])} |"
        )
    return "\n".join(lines)


def large(n=10_000_000, turns=5):
    """Times work on n elements: lines (work, bytes per element, ms, ...) for float32 and halves."""
    chain = mg.compile(lambda x, y: mg.relu(x * y + x))
    works = {"x * y": [], "relu(x * y + x), compiled": [], "Adam.step": []}
    for dtype in ("float32", *HALVES):
        x, y = (mg.randn((n,)).to(dtype) for _ in range(2))
        weight = nn.Parameter(x.clone())
        optimizer = mg.optim.Adam([weight])
        weight.grad = y
        works["x * y"].append(lambda x=x, y=y: x * y)
        works["relu(x * y + x), compiled"].append(lambda x=x, y=y: chain(x, y))
        works["Adam.step"].append(optimizer.step)
    moved = {
        "Adam.step": ("28", "28")
    }  # two moments, and a master copy or the weight: read, written
    for name, functions in works.items():
        one, *halves = medians(functions, turns)
        cells = [f"{1e3 * h:.1f} ms, {one / h:.1f} ×" for h in halves]
        yield [name, *moved.get(name, ("12", "6")), f"{1e3 * one:.1f} ms", *cells]


if __name__ == "__main__":
    curves = table(rows())
    titles = ["10 million elements", "bytes each", "of a half", "float32", *HALVES]
    notes = (
        "Loss: the mean over the steps of an epoch. Left out: steps that the GradScaler left out. "
        f"Adam, compiled steps, one seed. {machine.processor()}. `python -m benchmarks.half`.",
        "Times: the median of 5 turns; ×: how many times as fast as float32. A half moves half the "
        "bytes. Adam moves as many: its moments, and the copy of the weight that it updates, stay "
        "in float32.",
    )
    tables.publish(RESULTS, [curves, "", *tables.table(titles, large())], "\n\n".join(notes))
