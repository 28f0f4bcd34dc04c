"""Timelines, growth, poison, who holds what."""

import csv
import ctypes
import gc
import io

import numpy as np
import pytest

import minigrad as mg
from minigrad.memory import monitor
from minigrad.memory.monitor import Event, Probe, register_probe
from minigrad.tape.modes import state


def test_timeline_pairs_allocs_with_frees_and_names_ops_lines_and_buffers():
    x = mg.ones((1000,), requires_grad=True)
    with mg.memory.timeline() as t:
        y = x.exp()  # the exp
        z = y * 2.0
        del y, z
    allocs = [e for e in t if e.kind == "alloc"]
    frees = [e for e in t if e.kind == "free"]
    assert [e.op for e in allocs] == ["exp", "mul"]
    assert "# the exp" in allocs[0].line
    assert sorted(e.buffer for e in frees) == [0, 1]
    assert all(e.bytes >= 4000 and e.device == "cpu" for e in t)
    levels = [e.current_bytes for e in t]
    for before, event in zip(levels, t.events[1:], strict=False):
        step = event.bytes if event.kind == "alloc" else -event.bytes
        assert event.current_bytes == before + step
    assert len(t) == 4


def test_timeline_names_creation_in_place_copies_and_backward():
    x = mg.ones((64,), requires_grad=True)
    with mg.memory.timeline() as t:
        a = mg.zeros((64,))
        b = a.clone()
        b.add_(1.0)
        a[0] = 3.0
        (x * x).sum().backward()
    ops = [e.op for e in t if e.kind == "alloc"]
    assert ops[0] == "full"
    assert ops[1] == "add_"  # the copy of copy-on-write
    assert any(op.startswith("mul") and "backward" in op for op in ops)
    assert all(e.op and e.line for e in t if e.kind == "alloc")


def test_timeline_nests_and_ends():
    with mg.memory.timeline() as outer:
        mg.ones((4,))
        with mg.memory.timeline() as inner:
            mg.ones((4,))
    mg.ones((4,))
    assert (len(outer), len(inner)) == (4, 2)
    assert state.watchers == 0


def test_timeline_as_csv_has_a_line_an_event():
    with mg.memory.timeline() as t:
        mg.ones((4,)) * 2.0
    rows = list(csv.DictReader(io.StringIO(t.to_csv())))
    assert list(rows[0]) == list(Event._fields)
    assert [int(r["bytes"]) for r in rows] == [e.bytes for e in t]


def test_assert_no_growth_passes_where_nothing_stays():
    w = mg.ones((8,), requires_grad=True)
    w.grad = mg.zeros((8,))

    @mg.memory.assert_no_growth()
    def step():
        (w * w).sum().backward()

    step()
    step()


def test_assert_no_growth_counts_bytes_without_nodes_and_allows_what_is_said():
    kept = []
    with pytest.raises(mg.memory.MemoryGrowthError, match="bytes in use"):
        keep_in_block(kept, mg.memory.assert_no_growth())
    keep_in_block(kept, mg.memory.assert_no_growth(nbytes=4096))
    w = mg.ones((8,), requires_grad=True)
    with mg.memory.assert_no_growth(nodes=1, nbytes=4096):
        kept.append(w * 2.0)


def keep_in_block(kept, block):
    with block:
        kept.append(mg.ones((100,)))


def test_assert_no_growth_counts_what_only_the_collector_would_free():
    w = mg.ones((8,), requires_grad=True)
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(mg.memory.MemoryGrowthError, match="survivor: mul"):
            leak_in_block(w)
    finally:
        gc.enable()


def leak_in_block(w):
    with mg.memory.assert_no_growth():
        circle = [w * w]
        circle.append(circle)
        del circle


def test_assert_no_growth_does_not_hide_an_error():
    with pytest.raises(ZeroDivisionError), mg.memory.assert_no_growth():
        raise ZeroDivisionError(mg.ones((1000,)))


def test_poison_fills_freed_floats_with_nan_and_ints_with_minus_one():
    with mg.memory.poison():
        for dtype, kind, check in (
            ("float32", ctypes.c_float, np.isnan),
            ("float64", ctypes.c_double, np.isnan),
            ("int64", ctypes.c_int64, lambda v: v == -1),
            ("uint8", ctypes.c_uint8, lambda v: v == 255),
        ):
            x = mg.ones((37,), dtype=dtype)
            raw = (kind * 37).from_address(x.data_ptr())
            assert raw[36] == 1
            del x
            assert check(raw[0])
            assert check(raw[36])


def test_poison_shows_use_after_free_of_a_view_without_an_owner():
    with mg.memory.poison():
        x = mg.ones((100,))
        array = x.array
        array.buffer.owners += 1  # a second owner that the pool is not told of when it goes
        alias = np.ctypeslib.as_array(
            ctypes.cast(x.data_ptr(), ctypes.POINTER(ctypes.c_float)), (100,)
        )
        assert alias.sum() == 100.0
        array.buffer.owners -= 1
        del x, array
        assert np.isnan(alias).all()


def test_poison_does_not_disturb_training_and_ends_with_its_block():
    def losses():
        rng = np.random.default_rng(0)
        w = mg.variable(rng.normal(size=(8, 8)), requires_grad=True)
        x, found = mg.variable(rng.normal(size=(4, 8))), []
        for _ in range(5):
            loss = ((x @ w).tanh() ** 2).mean()
            loss.backward()
            with mg.no_grad():
                w.sub_(w.grad)
            w.grad = None
            found.append(loss.item())
        return found

    plain = losses()
    with mg.memory.poison():
        assert losses() == plain
    x = mg.ones((100,))
    raw = (ctypes.c_float * 100).from_address(x.data_ptr())
    del x
    assert raw[0] == 1.0


def test_probe_registered_late_takes_over_open_blocks():
    class Late(Probe):
        def __init__(self):
            self.deltas = []

        def watch(self, delta):
            self.deltas.append(delta)

    early, late, real = Probe(), Late(), monitor.probe
    try:
        register_probe(early)
        early.watch(2)
        register_probe(late)
        assert late.deltas == [0, 2] or late.deltas == [2]
    finally:
        register_probe(real)
    assert state.watchers == 0


def test_live_nodes_and_saved_bytes_count_each_storage_once():
    before = mg.memory.stats()
    x = mg.ones((100,), requires_grad=True)
    y = x * x
    z = y * x
    after = mg.memory.stats()
    assert after["live_nodes"] - before["live_nodes"] == 2
    assert after["saved_bytes"] - before["saved_bytes"] == x.nbytes + y.nbytes
    del y, z
