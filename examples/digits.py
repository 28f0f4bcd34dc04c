"""Train a classifier of handwritten digits: `python examples/digits.py --seed 0 --plot digits.png`.

With `--checkpoint run.safetensors` each epoch is saved, and a killed run goes on from there.

1,797 real 8 x 8 images, four fifths for training, a fifth held out (the same share of each digit).
It prints the share of held-out digits that are told right, and draws how it got there.
"""

import argparse
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

import minigrad as mg
from minigrad import nn
from minigrad.data import batches, load_digits, stratified_split

BATCH, UNITS = 32, 128


class Result(NamedTuple):
    """What a training run gave; `losses` and `accuracies` have one entry an epoch."""

    model: nn.Module
    accuracy: float
    losses: list
    accuracies: list
    wrong: tuple  # images, labels and predictions of the held-out digits that were told wrong
    seconds: float


def classifier():
    """Images (batch, 8, 8) -> scores of the ten digits (batch, 10)."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, UNITS), nn.ReLU(), nn.Linear(UNITS, 10))


def predict(model, images):
    """The digit with the highest score for each image: NumPy (n, 8, 8) -> (n,)."""
    return model.valid()(mg.variable(images)).numpy().argmax(axis=1)


def train(seed=0, epochs=30, report=lambda epoch, loss, accuracy: None, checkpoint=None):
    """One run: split, initialisation and order of the batches all follow from the seed.

    report(epoch, mean training loss, held-out accuracy) is called after each epoch. The held-out
    digits are only looked at: nothing is chosen by them. checkpoint: the file that each epoch is
    saved in; if it is there, the run goes on from it.
    """
    start = time.perf_counter()
    mg.manual_seed(seed)
    training, (images, labels) = stratified_split(*load_digits(), held_out=0.2, seed=seed)
    model = classifier()
    optimizer = mg.optim.AdamW(model, learning_rate=6e-3, weight_decay=0.1)
    steps = epochs * -(-len(training[0]) // BATCH)
    schedule = mg.optim.WarmupCosine(optimizer, warmup=steps // 20, steps=steps)
    parts = {"model": model, "optimizer": optimizer, "schedule": schedule}
    losses, accuracies = [], []
    if checkpoint is not None and checkpoint.exists():
        saved = mg.load(checkpoint, **parts)
        if saved["run"] != [seed, epochs]:
            raise SystemExit(f"{checkpoint} is of another run: seed and epochs {saved['run']}")
        losses, accuracies = saved["losses"], saved["accuracies"]
    for epoch in range(len(losses), epochs):
        total = 0.0
        for x, y in batches(*training, batch_size=BATCH, seed=seed * epochs + epoch):
            optimizer.zero_grad()
            scores = model(mg.variable(x))
            loss = mg.cross_entropy(scores, mg.variable(y), label_smoothing=0.1)
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(x)
        losses.append(total / len(training[0]))
        accuracies.append(float((predict(model, images) == labels).mean()))
        if checkpoint is not None:
            run = {"run": [seed, epochs], "losses": losses, "accuracies": accuracies}
            mg.save(checkpoint, **parts, **run)
        report(epoch, losses[-1], accuracies[-1])
    found = predict(model, images)
    missed = found != labels
    wrong = images[missed], labels[missed], found[missed]
    seconds = time.perf_counter() - start
    return Result(model, accuracies[-1], losses, accuracies, wrong, seconds)


def progress_bar(epochs):
    """(report function, function that ends it): tqdm where it is installed, else a line of text."""
    try:
        from tqdm import tqdm
    except ImportError:

        def report(epoch, loss, accuracy):
            done = "#" * (20 * (epoch + 1) // epochs)
            shown = f"loss {loss:.3f}  held out {accuracy:.1%}"
            print(f"\r[{done:<20}] {epoch + 1}/{epochs}  {shown}", end="", flush=True)

        return report, print
    bar = tqdm(total=epochs, unit="epoch", ncols=80, disable=None)

    def report(epoch, loss, accuracy):
        bar.set_postfix(loss=f"{loss:.3f}", held_out=f"{accuracy:.1%}")
        bar.update()

    return report, bar.close


def plot(result, path):
    """Loss, accuracy and the digits told wrong, drawn into a file. False without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    epochs = np.arange(1, len(result.losses) + 1)
    left.plot(epochs, result.losses, color="#c2410c", label="training loss")
    left.set(xlabel="epoch", ylabel="cross entropy")
    other = left.twinx()
    other.plot(epochs, 100 * np.array(result.accuracies), color="#1d4ed8", label="held out")
    other.set(ylabel="held-out accuracy (%)")
    figure.legend(loc="outside upper left", ncols=2, frameon=False)
    images, labels, found = (part[:12] for part in result.wrong)
    strip = np.ones((3 * 10, 4 * 10), np.float32) * np.nan
    for k, image in enumerate(images):
        row, column = divmod(k, 4)
        strip[10 * row + 1 : 10 * row + 9, 10 * column + 1 : 10 * column + 9] = image
        text = f"{labels[k]} taken for {found[k]}"
        right.text(10 * column + 4.5, 10 * row + 9.6, text, ha="center", va="center", fontsize=7)
    right.imshow(strip, cmap="gray_r")
    right.set_axis_off()
    right.set_title(f"wrong: {len(result.wrong[1])} of the held-out digits", fontsize=9)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return True


def main(argv=None):
    """Trains, prints the accuracy, draws."""
    parser = argparse.ArgumentParser(description="Train a classifier of handwritten digits.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument(
        "--plot",
        type=Path,
        default=Path("digits.png"),
        help="where to draw it (git ignores digits.png)",
    )
    parser.add_argument(
        "--checkpoint", type=Path, help="a file to save each epoch in, and to go on from"
    )
    options = parser.parse_args(argv)
    print("the first run on a machine compiles kernels; on a busy one it may take a minute")
    report, close = progress_bar(options.epochs)
    result = train(options.seed, options.epochs, report, options.checkpoint)
    close()
    print(f"held-out accuracy {result.accuracy:.2%} (seed {options.seed}, {result.seconds:.1f} s)")
    if plot(result, options.plot):
        print(f"drawn: {options.plot.resolve()}")
    else:
        print("no picture: matplotlib is not installed")


if __name__ == "__main__":
    main()
