"""Splitting a data set into training and held-out parts, and into batches."""

from collections.abc import Iterator

import numpy as np

Pair = tuple[np.ndarray, np.ndarray]


def stratified_split(
    inputs: np.ndarray, labels: np.ndarray, held_out: float = 0.2, seed: int = 0
) -> tuple[Pair, Pair]:
    """Split at random, keeping the share of each class: (training pair), (held-out pair).

    Shapes: inputs (n, ...), labels (n,) of any integers. Of a class with c members,
    ``round(c * held_out)`` are held out. Both parts come in random order. The same seed gives
    the same split; the arrays returned are copies.

    Raises:
        ValueError: the lengths differ, or held_out is not strictly between 0 and 1.

    >>> inputs, labels = np.arange(10), np.array([0, 1] * 5)
    >>> (x, y), (x_held_out, y_held_out) = stratified_split(inputs, labels)
    >>> len(x), sorted(y_held_out.tolist())
    (8, [0, 1])
    """
    _check_pair(inputs, labels)
    if not 0 < held_out < 1:
        raise ValueError(
            f"stratified_split: wanted held_out between 0 and 1 (0.2 holds out a fifth), "
            f"got {held_out}"
        )
    rng = np.random.default_rng(seed)
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
    """Yield (inputs, labels) pairs of batch_size rows, together each row once.

    Shapes: inputs (n, ...), labels (n, ...). With a seed the rows are shuffled (give another
    seed in each epoch); without one they keep their order. The last batch is smaller when
    batch_size does not divide n, and left out with drop_last.

    Raises:
        ValueError: the lengths differ, or batch_size is below 1.

    >>> [x.tolist() for x, y in batches(np.arange(5), np.zeros(5), batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """
    _check_pair(inputs, labels)
    if batch_size < 1:
        raise ValueError(f"batches: wanted batch_size of at least 1, got {batch_size}")
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


def _check_pair(inputs: np.ndarray, labels: np.ndarray) -> None:
    if len(inputs) != len(labels):
        raise ValueError(
            f"wanted one label for each input, got {len(inputs)} inputs and {len(labels)} labels"
        )
