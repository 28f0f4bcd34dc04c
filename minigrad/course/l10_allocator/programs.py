"""What is asked of a pool: programs of requests and releases, those of a training among them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

FLOAT = 4  # bytes
# ("alloc", nbytes), ("free", which request), or ("at", which request, bytes beyond its address)
Step = tuple[str, int] | tuple[str, int, int]
BESIDE = (64, -64, 1, 128, 1 << 20)  # bytes beyond an address, where mostly no block begins
Life = tuple[int, int, int]  # nbytes, and the first and last moment at which they are needed


class Draft:
    """A program that is being written."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.n_requests = 0

    def alloc(self, nbytes: int) -> int:
        """Ask for memory; return the number of the request."""
        self.steps.append(("alloc", int(nbytes)))
        self.n_requests += 1
        return self.n_requests - 1

    def free(self, request: int) -> None:
        """Free what a request got."""
        self.steps.append(("free", request))


def written(text: str) -> list[Step]:
    """Return the program of words: a number asks for so many bytes, `-k` frees request k."""
    steps: list[Step] = []
    for word in text.split():
        steps.append(("free", int(word[1:])) if word[0] == "-" else ("alloc", int(word)))
    return steps


def at_random(
    random: np.random.Generator, n: int, most: int, largest: int, misuse: float = 0.0
) -> list[Step]:
    """Return n steps in which at most `most` blocks are in use; at the end none is.

    misuse: the share of steps that free something else: what was freed before, mostly.
    """
    draft, alive = Draft(), []
    for _ in range(n):
        if misuse and draft.n_requests and random.random() < misuse:
            request = int(random.integers(draft.n_requests))
            if request in alive:
                draft.steps.append(("at", request, int(random.choice(BESIDE))))
            else:
                draft.free(request)
        elif alive and (len(alive) == most or random.random() < 0.45):
            draft.free(alive.pop(int(random.integers(len(alive)))))
        else:
            alive.append(draft.alloc(int(random.integers(1, largest))))
    for request in alive:
        draft.free(request)
    return draft.steps


def in_little(random: np.random.Generator, n: int, room: int) -> list[Step]:
    """Return n steps of small blocks in the `room` bytes that are left of a full segment.

    The blocks in use never take more than that. What gets lost in between is missing soon.
    """
    draft, alive = Draft(), []
    for nbytes in (61440, 4096 - room):
        draft.alloc(nbytes)
    for _ in range(n):
        size = 64 * int(random.integers(1, 6))
        if sum(n for _, n in alive) + size <= room:
            alive.append((draft.alloc(size), size))
        else:
            draft.free(alive.pop(int(random.integers(len(alive))))[0])
    return draft.steps


def nearly_alike(random: np.random.Generator, nbytes: int, n: int) -> list[Step]:
    """Return steps that free n pieces in any order, of nbytes and a few units of 64 bytes more.

    Then each request for nbytes is to get the smallest of those that are left.
    """
    draft = Draft()
    pieces = []
    for units in random.permutation(n):
        pieces.append([draft.alloc(size) for size in (*[64] * int(units), nbytes)])
        draft.alloc(64)  # keeps it apart from the next one
    for k in random.permutation(n):
        for request in pieces[k]:
            draft.free(request)
    for _ in range(n):
        draft.alloc(nbytes)
    return draft.steps


def refused(n: int, beyond: int) -> list[Step]:
    """Return steps in which as many calls are refused as blocks are in use, n, before a take.

    beyond: the bytes beyond the first block's address that are freed; if 0, it was freed before.
    """
    draft = Draft()
    for _ in range(n + (not beyond)):
        draft.alloc(300)
    if not beyond:
        draft.free(0)
    draft.steps += [("at", 0, beyond) if beyond else ("free", 0)] * n
    for nbytes in (70_000, 100):
        draft.alloc(nbytes)
    return draft.steps


def training(widths: Sequence[int], batches: Sequence[int]) -> list[Step]:
    """Return what the training of a network asks for; a step for each size of the batch.

    Each layer is a product and a tanh: the product is dropped, the tanh saved for backward. Then
    each weight gets a gradient, and the update a temporary.
    """
    draft = Draft()
    layers = list(itertools.pairwise(widths))
    for inputs, outputs in layers:  # the weights stay
        draft.alloc(FLOAT * inputs * outputs)
    for batch in batches:
        rows, saved = FLOAT * batch, []
        for _, outputs in layers:
            product = draft.alloc(rows * outputs)
            saved.append(draft.alloc(rows * outputs))
            draft.free(product)
        loss, upstream, gradients = draft.alloc(FLOAT), draft.alloc(rows * widths[-1]), []
        for inputs, outputs in reversed(layers):
            slope = draft.alloc(rows * outputs)
            draft.free(saved.pop())
            gradients.append(draft.alloc(FLOAT * inputs * outputs))
            below = draft.alloc(rows * inputs)
            draft.free(slope)
            draft.free(upstream)
            upstream = below
        draft.free(upstream)
        draft.free(loss)
        for gradient in gradients:
            draft.free(draft.alloc(draft.steps[0][1]))
            draft.free(gradient)
    return draft.steps


def lives_in(steps: Sequence[Step]) -> list[Life]:
    """Return the lives of what a program asks for; what it never frees is needed to the end."""
    lives: list[list[int]] = []
    for moment, (what, number, *_) in enumerate(steps):
        if what == "alloc":
            lives.append([number, moment, len(steps)])
        else:
            lives[number][2] = moment
    return [(nbytes, first, last) for nbytes, first, last in lives]
