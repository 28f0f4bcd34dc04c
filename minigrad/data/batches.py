"""Splits a data set into training and held-out parts, and into batches."""

from collections.abc import Iterator

import numpy as np

from minigrad.arguments import flag, number, shown, whole
from minigrad.errors import ArgumentError, ArgumentTypeError
from minigrad.hints import teaching

Pair = tuple[np.ndarray, np.ndarray]


def stratified_split(
    inputs: np.ndarray, labels: np.ndarray, held_out: float = 0.2, seed: int = 0
) -> tuple[Pair, Pair]:
    """Splits at random, keeping the share of each class.

    Shapes: inputs (n, ...), labels (n,) of integers or strings. Of a class with c members,
    ``round(c * held_out)`` are held out. The same seed gives the same split.

    Returns:
        (inputs, labels) for training, and (inputs, labels) held out. Both parts are copies in
        random order.

    Raises:
        ArgumentTypeError: inputs or labels are not an ndarray with rows, or labels are not (n,).
        ArgumentError: the lengths differ, or held_out is not strictly between 0 and 1.

    >>> inputs, labels = np.arange(10), np.array([0, 1] * 5)
    >>> (x, y), (x_held_out, y_held_out) = stratified_split(inputs, labels)
    >>> len(x), sorted(y_held_out.tolist())
    (8, [0, 1])
    """
    inputs, labels = _pair("stratified_split", inputs, labels)
    if labels.ndim > 1 or labels.dtype == object:
        raise ArgumentTypeError(
            "stratified_split: wanted labels (n,), an integer or a string for each input",
            f"an ndarray {labels.shape} of {labels.dtype}",
            "labels.argmax(axis=1) for one-hot rows, labels.ravel() for a column",
        )
    held_out = number("stratified_split", "held_out", held_out, above=0.0, below=1.0)
    rng = np.random.default_rng(whole("stratified_split", "seed", seed, 0))
    is_held_out = np.zeros(len(labels), dtype=bool)
    classes = np.unique(labels, return_inverse=True)[1]  # NaN is a class like any other
    for k in range(classes.max(initial=-1) + 1):
        members = np.flatnonzero(classes == k)
        chosen = rng.permutation(members)[: round(len(members) * held_out)]
        is_held_out[chosen] = True
    training = rng.permutation(np.flatnonzero(~is_held_out))
    testing = rng.permutation(np.flatnonzero(is_held_out))
    return (inputs[training], labels[training]), (inputs[testing], labels[testing])


@teaching
def batches(
    *arrays: np.ndarray, batch_size: int, seed: int | None = None, drop_last: bool = False
) -> Iterator[tuple[np.ndarray, ...]]:
    """Yields tuples with the same batch_size rows of each array, until each row has occurred once.

    Shapes: each array is (n, ...), its part of a batch (batch_size, ...) of the same dtype. With a
    seed the rows are shuffled (use another seed in each epoch); without one they keep their order.
    If batch_size does not divide n, the last batch is smaller, or omitted with drop_last.

    Raises:
        ArgumentTypeError: something is not an ndarray with rows.
        ArgumentError: the lengths differ, or batch_size is below 1.

    >>> for x, y in batches(np.arange(5), np.arange(5) % 2, batch_size=2):
    ...     print(x.tolist(), y.tolist())
    [0, 1] [0, 1]
    [2, 3] [0, 1]
    [4] [0]
    """
    names = ("inputs", "labels") if len(arrays) == 2 else [f"array {k}" for k in range(len(arrays))]
    if not arrays:
        raise ArgumentTypeError(
            "batches: wanted at least one array", "none", "batches(x, y, batch_size=32)"
        )
    for name, array in zip(names, arrays, strict=True):
        _check_rows("batches", name, array)
    if len({len(array) for array in arrays}) > 1:
        gap = " " if len(arrays) == 2 else " in "
        counts = [f"{len(a)}{gap}{name}" for name, a in zip(names, arrays, strict=True)]
        raise ArgumentError("batches: wanted arrays with equally many rows", " and ".join(counts))
    batch_size = whole("batches", "batch_size", batch_size, 1)
    drop_last = flag("batches", "drop_last", drop_last)
    seed = seed if seed is None else whole("batches", "seed", seed, 0)
    return _batches(arrays, batch_size, seed, drop_last)


def _batches(
    arrays: tuple[np.ndarray, ...], batch_size: int, seed: int | None, drop_last: bool
) -> Iterator[tuple[np.ndarray, ...]]:
    n_rows = len(arrays[0])
    order = np.arange(n_rows) if seed is None else np.random.default_rng(seed).permutation(n_rows)
    stop = n_rows - n_rows % batch_size if drop_last else n_rows
    for start in range(0, stop, batch_size):
        rows = order[start : start + batch_size]
        yield tuple(array[rows] for array in arrays)


def _check_rows(name: str, what: str, array: object) -> None:
    if not isinstance(array, np.ndarray) or not array.ndim:
        raise ArgumentTypeError(
            f"{name}: wanted for {what} an ndarray with a row for each example",
            shown(array),
            f"np.asarray({what.replace(' ', '_')}), or x.numpy() for a Variable",
        )


def _pair(name: str, inputs: np.ndarray, labels: np.ndarray) -> Pair:
    for what, given in (("inputs", inputs), ("labels", labels)):
        _check_rows(name, what, given)
    if len(inputs) != len(labels):
        raise ArgumentError(
            f"{name}: wanted one label for each input",
            f"{len(inputs)} inputs and {len(labels)} labels",
        )
    return inputs, labels
