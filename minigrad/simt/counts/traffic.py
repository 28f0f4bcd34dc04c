"""Pure functions that compute the cost of one memory access of a warp.

A *table* is int64 (warps, 32): for every lane of every participating warp, the first byte it
accesses, or -1 if the lane is inactive.
"""

import numpy as np

from minigrad.simt.machine.lanes import WARP

SECTOR = 32  # bytes that global memory moves at a time
BANKS, WORD = 32, 4  # shared memory: 32 banks side by side, each 4 bytes wide


def by_warp(byte, active, lanes):
    """Return (table, numbers of the warps in it): only warps with an active lane have a row."""
    table = np.full((lanes.warps, WARP), -1, np.int64)
    if active is None:
        table[lanes.warp, lanes.position] = byte
    else:
        on = np.flatnonzero(active)
        table[lanes.warp[on], lanes.position[on]] = byte if byte.ndim == 0 else byte[on]
    used = np.flatnonzero((table >= 0).any(1))
    return table[used], used


def lanes_per_warp(where, active, lanes):
    """Count the active lanes of each warp that fulfil a condition: int64 (lanes.warps,)."""
    chosen = np.broadcast_to(where, (lanes.count,))
    if active is not None:
        chosen = chosen & active
    return np.bincount(lanes.warp[chosen], minlength=lanes.warps)


def sectors(table, nbytes):
    """Count (sectors touched, fewest that could hold the same bytes), each int64 (warps,).

    An address that several lanes use counts once: one load serves them all.
    """
    first = table // SECTOR  # -1 stays -1
    last = np.where(table >= 0, (table + nbytes - 1) // SECTOR, -1)
    reach = int((last - first).max(initial=0)) + 1  # most sectors that one lane touches: usually 1
    touched = np.concatenate([np.minimum(first + k, last) for k in range(reach)], 1)
    least = -(-distinct(table) * nbytes // SECTOR)
    return distinct(touched), least


def distinct(table):
    """Count the different entries >= 0 of each row: int64 (rows,)."""
    ordered = np.sort(table, 1)
    new = ordered[:, 1:] != ordered[:, :-1]
    return (ordered[:, 0] >= 0) + (new & (ordered[:, 1:] >= 0)).sum(1)


def meetings(table):
    """Return the most lanes of each warp that use one address: int64 (warps,)."""
    ordered = np.sort(table, 1)
    run = np.zeros(len(table), np.int64)
    longest = np.zeros(len(table), np.int64)
    before = np.full(len(table), -1, np.int64)
    for column in ordered.T:
        run = np.where(column < 0, 0, np.where(column == before, run + 1, 1))
        longest, before = np.maximum(longest, run), column
    return longest


def bank_turns(table, nbytes):
    """Count (passes that shared memory needs, fewest passes), each int64 (warps,).

    In one pass every bank serves one word of 4 bytes to any number of lanes. A warp splits
    accesses of 8 bytes per lane into two halves, and those of 16 bytes into four quarters.
    """
    words = max(1, nbytes // WORD)  # per lane
    parts = min(words, 4)
    rows = len(table)
    split = table.reshape(rows * parts, WARP // parts)
    first = np.where(split >= 0, split // WORD, -1)
    used = np.concatenate([np.where(first >= 0, first + k, -1) for k in range(words)], 1)
    turns = _most_words_in_a_bank(used).reshape(rows, parts)
    return turns.sum(1), (turns > 0).sum(1)


def _most_words_in_a_bank(words):
    """Return each row's largest number of different words in a bank: int64 (rows,); -1: no word."""
    ordered = np.sort(words, 1)
    new = np.ones(ordered.shape, bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    row, column = np.nonzero(new & (ordered >= 0))
    bank = ordered[row, column] % BANKS
    return np.bincount(row * BANKS + bank, minlength=len(words) * BANKS).reshape(-1, BANKS).max(1)
