"""The baseline of capstone C: a count of which character follows which two."""

from __future__ import annotations

import numpy as np


def trigram_bits(tokens: np.ndarray, held_out: np.ndarray, n_kinds: int) -> float:
    """Return the mean of -log2 p(token | the two before it) over held-out tokens.

    The first two have no two before them, and do not count. p is counted in `tokens` and smoothed
    by Witten and Bell's rule: a context that was seen n times, with k different successors, gives
    n / (n + k) to its own counts and the rest to the shorter context's; below that of no context
    lies a uniform one.

    Args:
        tokens: (n,) ints from 0 to n_kinds - 1.
        held_out: (m,) ints, m of 3 or more.
        n_kinds: how many kinds of tokens there are.

    >>> tokens = np.array([0, 1, 2] * 100)
    >>> round(trigram_bits(tokens, tokens[:30], 3), 2)  # what follows is certain
    0.0
    """
    p = np.full((n_kinds, 1), 1 / n_kinds)  # p[next, context]
    for order in (1, 2, 3):
        n_contexts = n_kinds ** (order - 1)
        counts = np.zeros((n_kinds, n_contexts))
        np.add.at(counts, _successors(tokens, order, n_kinds), 1)
        seen, kinds = counts.sum(axis=0), (counts > 0).sum(axis=0)
        # A context is a number whose last digits are the shorter context.
        shorter = p[:, np.arange(n_contexts) % p.shape[1]]
        p = (counts + kinds * shorter) / np.maximum(seen + kinds, 1)
        p = np.where(seen > 0, p, shorter)
    return float(-np.log2(p[_successors(held_out, 3, n_kinds)]).mean())


def _successors(tokens: np.ndarray, order: int, n_kinds: int) -> tuple[np.ndarray, np.ndarray]:
    """Return each token that has `order` - 1 before it, and these as one number."""
    contexts = np.zeros(len(tokens) - order + 1, dtype=np.int64)
    for back in range(order - 1):
        contexts = contexts * n_kinds + tokens[back : back + len(contexts)]
    return tokens[order - 1 :], contexts
