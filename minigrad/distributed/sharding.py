"""Batches of which each rank gets a part."""

import numpy as np

from minigrad import data
from minigrad.distributed.membership import current
from minigrad.hints import teaching


@teaching
def batches(*arrays, batch_size, seed=None, drop_last=False):
    """Yields this rank's rows of each batch that `mg.data.batches` yields with these arguments.

    All ranks together have every row of every batch once, so the parts of an epoch cover each
    example exactly once. The parts of a batch differ by at most one row. If the last batch has
    fewer rows than there are ranks, some ranks get arrays without rows: give
    `DataParallel.backward` weight 0 there.

    Args:
        arrays: the same (n, ...) on every rank.
        batch_size: the rows of all ranks together.
        seed: as in `mg.data.batches`, the same on every rank.
        drop_last: as in `mg.data.batches`.

    Raises:
        DistributedError: on every rank, if the arguments differ.

    >>> import minigrad as mg
    >>> def parts():
    ...     rows = mg.distributed.batches(np.arange(5), batch_size=3)
    ...     return [x.tolist() for (x,) in rows]
    >>> mg.distributed.run(parts, 2)
    [[[0], [3]], [[1, 2], [4]]]
    """
    group = current("batches")
    data.batches(*arrays, batch_size=batch_size, seed=seed, drop_last=drop_last)
    n = len(arrays[0])
    group.agree(f"batches of {n} rows, {batch_size=}, {seed=}, {drop_last=}")
    rows = data.batches(np.arange(n), batch_size=batch_size, seed=seed, drop_last=drop_last)
    return _parts(arrays, rows, group.rank, group.size)


def _parts(arrays, batches_of_rows, rank, size):
    for (rows,) in batches_of_rows:
        mine = rows[len(rows) * rank // size : len(rows) * (rank + 1) // size]
        yield tuple(array[mine] for array in arrays)
