"""Splitting a data set into training and held-out parts, and into batches."""

from collections.abc import Iterator

import numpy as np

from minigrad.arguments import flag, number, shown, whole
from minigrad.errors import ArgumentError, ArgumentTypeError

Pair = tuple[np.ndarray, np.ndarray]


def stratified_split(
    inputs: np.ndarray, labels: np.ndarray, held_out: float = 0.2, seed: int = 0
) -> tuple[Pair, Pair]:
    """Split at random, keeping the share of each class: (training pair), (held-out pair).

    Shapes: inputs (n, ...), labels (n,) of any integers. Of a class with c members,
    ``round(c * held_out)`` are held out. Both parts are in random order. The same seed yields
    the same split; the returned arrays are copies.

    Raises:
        ArgumentError: the lengths differ, or held_out is not strictly between 0 and 1.

    >>> inputs, labels = np.arange(10), np.array([0, 1] * 5)
    >>> (x, y), (x_held_out, y_held_out) = stratified_split(inputs, labels)
    >>> len(x), sorted(y_held_out.tolist())
    (8, [0, 1])
    """
    inputs, labels = _pair("stratified_split", inputs, labels)
    held_out = number("stratified_split", "held_out", held_out, above=0.0, below=1.0)
    rng = np.random.default_rng(whole("stratified_split", "seed", seed, 0))
    is_held_out = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        chosen = rng.permutation(members)[: round(len(members) * held_out)]
        is_held_out[chosen] = True
    training = rng.permutation(np.flatnonzero(~is_held_out))
    testing = rng.permutation(np.flatnonzero(is_held_out))
    return (inputs[training], labels[training]), (inputs[testing], labels[testing])


def batches(
    inputs: np.ndarray,
    labels: np.ndarray,
    batch_size: int,
    seed: int | None = None,
    drop_last: bool = False,
) -> Iterator[Pair]:
    """Yield (inputs, labels) pairs of batch_size rows; each row occurs once.

    Shapes: inputs (n, ...), labels (n, ...). With a seed the rows are shuffled (use another
    seed in each epoch); without one they keep their order. If batch_size does not divide n, the
    last batch is smaller, or omitted with drop_last.

    Raises:
        ArgumentError: the lengths differ, or batch_size is below 1.

    >>> [x.tolist() for x, y in batches(np.arange(5), np.zeros(5), batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """
    inputs, labels = _pair("batches", inputs, labels)
    batch_size = whole("batches", "batch_size", batch_size, 1)
    drop_last = flag("batches", "drop_last", drop_last)
    seed = seed if seed is None else whole("batches", "seed", seed, 0)
    return _batches(inputs, labels, batch_size, seed, drop_last)


def _batches(
    inputs: np.ndarray, labels: np.ndarray, batch_size: int, seed: int | None, drop_last: bool
) -> Iterator[Pair]:
    n_rows = len(inputs)
    order = np.arange(n_rows) if seed is None else np.random.default_rng(seed).permutation(n_rows)
    stop = n_rows - n_rows % batch_size if drop_last else n_rows
    for start in range(0, stop, batch_size):
        rows = order[start : start + batch_size]
        yield inputs[rows], labels[rows]


def _pair(name: str, inputs: np.ndarray, labels: np.ndarray) -> Pair:
    for what, given in (("inputs", inputs), ("labels", labels)):
        if not isinstance(given, np.ndarray) or not given.ndim:
            raise ArgumentTypeError(
                f"{name}: wanted for {what} an ndarray with a row for each example",
                shown(given),
                f"np.asarray({what}), or x.numpy() for a Variable",
            )
    if len(inputs) != len(labels):
        raise ArgumentError(
            f"{name}: wanted one label for each input",
            f"{len(inputs)} inputs and {len(labels)} labels",
        )
    return inputs, labels
