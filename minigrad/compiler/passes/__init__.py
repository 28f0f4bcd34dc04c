"""Passes turn a Recording into a simpler one that does the same."""

from typing import Any

from minigrad.compiler.passes.common import share_common
from minigrad.compiler.passes.constants import fold_constants
from minigrad.compiler.passes.copies import without_copies
from minigrad.compiler.passes.dead import eliminate_dead
from minigrad.compiler.passes.localise import localise

MOST_ROUNDS = 6
ORDER: tuple[Any, ...] = (
    eliminate_dead,
    fold_constants,
    share_common,
    without_copies,
    eliminate_dead,  # localise cannot part the slices of a buffer that is filled as a whole
    localise,
)
TAKE_SLICES = {eliminate_dead, localise}


def simplify(recording, dead_slices=()):
    """Run the passes in order, repeatedly, until none changes anything.

    Args:
        dead_slices: (Value, offset, size) of captured memory that is undefined after the step.

    Returns:
        (recording, [(name of the pass, instructions before, instructions after), ...]).
    """
    steps = []
    for _ in range(MOST_ROUNDS):
        changed = False
        for apply in ORDER:
            before = recording
            recording = apply(before, dead_slices) if apply in TAKE_SLICES else apply(before)
            if recording is not before:
                changed = True
                counts = len(before.instructions), len(recording.instructions)
                steps.append((apply.__name__, *counts))
        if not changed:
            break
    return recording, steps
