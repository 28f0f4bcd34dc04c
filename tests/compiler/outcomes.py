"""What passes make of a recording: its listing, and what it does to memory in NumPy."""

import textwrap

import numpy as np

from minigrad.compiler.program.printing import show
from tests.compiler.interpreter import execute


def outcome(recording, data, dead=()):
    """Results, then captured memory and arguments, but for dead slices, after a run."""
    memory = {value: values.copy() for value, values in data.items()}
    results = execute(recording, memory)
    for value, offset, size in dead:
        memory[value][offset : offset + size] = 0
    return [*results, *(memory[value] for value in data)]


def same(before, after):
    """Whether two outcomes agree to the last bit, NaN for NaN, -0 for -0."""
    pairs = zip(before, after, strict=True)
    return all(a.dtype == b.dtype and not differing(a, b).any() for a, b in pairs)


def differing(a, b):
    """At which elements two arrays of one dtype differ."""
    if a.dtype.kind != "f":
        return a != b
    both_nan = (a != a) & (b != b)
    return ((a != b) | (np.signbit(a) != np.signbit(b))) & ~both_nan


def becomes(apply, sketch, text, results=(), **more):
    """Asserts that a pass turns a sketch into a listing, and leaves the sketch as it was."""
    recording = sketch.recording(*results)
    before = show(recording)
    after = apply(recording, **more)
    assert show(recording) == before
    assert show(after) == textwrap.dedent(text).strip()


def stays(apply, sketch, results=(), **more):
    """Asserts that a pass gives back the recording itself."""
    recording = sketch.recording(*results)
    assert apply(recording, **more) is recording, show(apply(recording, **more))
