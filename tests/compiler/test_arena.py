"""Domains, lifetimes and schedules: what must hold of every plan."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from minigrad.array.dtypes import float32
from minigrad.compiler.cpu.schedule import regions_of
from minigrad.compiler.fuse.arena import Arena
from minigrad.compiler.fuse.fuse import fuse
from minigrad.compiler.fuse.inplace import Sharing
from minigrad.compiler.program.domain import refine, spread
from minigrad.compiler.program.items import conflict
from minigrad.compiler.program.program import TEMPORARY, Value, whole
from minigrad.compiler.program.traffic import lives_of
from tests.compiler.random_recordings import recordings


class Use:
    """What an arena asks of a call."""

    def __init__(self, reads, writes):
        self.reads, self.writes = reads, writes


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 300), st.integers(0, 12), st.integers(0, 6)), max_size=25))
def test_what_lives_at_the_same_time_does_not_overlap(lives):
    regions = [[] for _ in range(20)]
    values = []
    for size, first, length in lives:
        v = Value(TEMPORARY, float32, size)
        values.append((v, first, first + length))
        regions[first].append(Use([], [whole(v)]))
        regions[first + length].append(Use([whole(v)], []))
    arena = Arena(lives_of(regions))
    for v, first, last in values:
        begin, end = arena.offsets[v], arena.offsets[v] + v.nbytes
        assert begin % 64 == 0
        assert end <= arena.size
        for w, low, high in values:
            if w is not v and low <= last and first <= high:
                assert arena.offsets[w] + w.nbytes <= begin or end <= arena.offsets[w]


@settings(deadline=None, max_examples=40)
@given(recordings())
def test_calls_that_run_side_by_side_touch_nothing_in_common(made):
    recording, _ = made
    items = fuse(recording)
    sharing = Sharing(items, recording.results)
    import minigrad.compiler.cpu.schedule as schedule

    worth, schedule.SHARED = schedule.SHARED, 0
    try:
        regions, n_threads = regions_of(items, sharing.owner, 2)
    finally:
        schedule.SHARED = worth
    assert n_threads == 2
    for region in regions:
        for k, a in enumerate(region):
            for b in region[k + 1 :]:
                assert not conflict(a, b)


@settings(deadline=None)
@given(st.lists(st.integers(1, 4), max_size=4), st.data())
def test_a_refined_domain_visits_the_same_elements_in_the_same_order(dims, data):
    dims = tuple(n for n in dims if n != 1)
    strides = tuple(data.draw(st.integers(-5, 5)) for _ in dims)
    size = int(np.prod(dims)) if dims else 1
    finer = refine(dims, (size,) if size > 1 else ())
    assert finer is not None
    moved = spread(dims, strides, finer)
    visit = [int(np.dot(i, strides)) for i in np.ndindex(*dims)]
    again = [int(np.dot(i, moved)) for i in np.ndindex(*finer)]
    assert visit == again
