"""The benchmark of several ranks: its arithmetic, its watchdog, and its page."""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

import minigrad as mg
from benchmarks import collective_costs as costs
from benchmarks import distributed as page
from benchmarks import fault_rounds
from benchmarks.collective_costs import Call, Link
from benchmarks.ranks import minigrad_train
from benchmarks.ranks.work import WORKS, Work, part

LINK = Link(3e-6, 2e-10)
SIZES = [1 << k for k in range(10, 25, 2)]


# -- The model -------------------------------------------------------------------------------------


def ring_of(data):
    """Sum data (ranks, ranks, piece) over the ranks in a ring; return it, and bytes per message."""
    n = len(data)
    data, messages = data.copy(), []
    for phase in ("sum", "copy"):
        for step in range(n - 1):
            sent = {}
            for rank in range(n):
                piece = (rank - step + (phase == "copy")) % n
                sent[(rank + 1) % n] = piece, data[rank, piece].copy()
            for rank, (piece, values) in sent.items():
                data[rank, piece] = values + (data[rank, piece] if phase == "sum" else 0)
            messages.append(values.nbytes)
    return data, messages


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_a_ring_costs_what_its_messages_do(ranks):
    data = np.random.default_rng(0).integers(0, 9, (ranks, ranks, 5)).astype(float)
    found, messages = ring_of(data)
    np.testing.assert_array_equal(found, np.broadcast_to(data.sum(0), data.shape))
    seconds = sum(LINK.latency + size * LINK.per_byte for size in messages)
    assert costs.ring(LINK, ranks, data[0].nbytes) == pytest.approx(seconds)


@pytest.mark.parametrize(("ranks", "levels"), [(2, 1), (3, 2), (4, 2), (8, 3), (1024, 10)])
def test_a_tree_sends_everything_up_and_down_each_level(ranks, levels):
    assert costs.tree(LINK, ranks, 1000) == pytest.approx(2 * levels * (3e-6 + 1000 * 2e-10))


def test_one_rank_sends_nothing():
    assert costs.ring(LINK, 1, 1e6) == costs.tree(LINK, 1, 1e6) == 0
    assert costs.all_reduce(Call(1e-5, 2e-5, 1e-10), LINK, 1, 1e6) == pytest.approx(1.1e-4)


def test_calls_are_told_to_all_other_ranks():
    added = costs.all_reduce(Call(1e-5, 2e-5, 0.0), LINK, 1024, 1e6) - costs.ring(LINK, 1024, 1e6)
    assert added == pytest.approx(1e-5 + 1023 * 2e-5)


def test_a_line_is_fitted_by_relative_errors():
    exact = [5e-6 + size * 3e-10 for size in SIZES]
    assert costs.fit_line(SIZES, exact) == pytest.approx((5e-6, 3e-10))
    off = [y * (1.1 if k % 2 else 0.9) for k, y in enumerate(exact)]
    a, b = costs.fit_line(SIZES, off)
    assert a == pytest.approx(5e-6, rel=0.15)  # though the largest time is a thousand times that
    assert b == pytest.approx(3e-10, rel=0.15)


def test_no_cost_is_below_0():
    assert costs.fit_line([1, 2, 4], [1e-6, 3e-6, 9e-6])[0] == 0
    a, b = costs.fit_line([1, 2, 4], [3e-6, 2e-6, 1e-6])
    assert b == 0
    assert 1e-6 < a < 3e-6


CALL = Call(1e-5, 2e-5, 4e-10)


BARRIERS = {1: 3e-5, 2: 5e-5, 4: 9e-5}


def sums():
    return {
        n: [[s, costs.all_reduce(CALL, LINK, n, s), costs.ring(LINK, n, s)] for s in SIZES]
        for n in (1, 2, 4)
    }


def test_noise_makes_no_cost_negative():
    _, call = costs.fitted(sums(), {1: 5e-5, 2: 4e-5})
    assert call.message == 0


def test_the_model_is_found_again_in_times_that_it_made():
    link, call = costs.fitted(sums(), BARRIERS)
    assert link == pytest.approx(LINK)
    assert call == pytest.approx(CALL)


# -- Training --------------------------------------------------------------------------------------


def test_parts_cover_the_rows_and_batches_divide():
    for size in (1, 2, 3, 4):
        rows = [k for rank in range(size) for k in range(10)[part(10, rank, size)]]
        assert rows == list(range(10))
    for work in WORKS.values():
        (x, y), _ = work.make()
        assert len(x) == len(y) >= work.batch
        assert all(work.batch % ranks == 0 for ranks, _ in page.PROCESSES)


@pytest.mark.parametrize("wrap", [lambda model: model, mg.compile])
def test_ranks_have_the_losses_of_one(wrap):
    def few():
        (x, y), arrays = WORKS["digits"].make()
        return (x[:416], y[:416]), arrays

    work = Work("few digits", few, ("mlp_loss", (2,)), 32, 1)
    alone, *others = (
        found
        for ranks in (1, 2)
        for found in mg.distributed.run(minigrad_train.run, ranks, work, wrap)
    )
    assert len(alone["losses"]) == 13
    assert alone["losses"][-1] < alone["losses"][0]
    assert alone["bytes"] == 4 * (64 * 32 + 32 + 32 * 10 + 10)
    for found in others:
        assert page.apart_by(found["losses"], alone["losses"]) < 1e-5
        assert found["seconds"] > 0


def turns():
    """Two turns of minigrad alone, with 1 and 2 processes."""
    return [
        {"ranks": ranks, "threads": 1, "found": {"minigrad": {
            name: {"seconds": seconds, "losses": [2.0, 1.0 + shift], "bytes": 800}
            for name in WORKS
        }}}
        for ranks, seconds, shift in [(1, 3e-3, 0), (2, 2e-3, 0), (1, 2e-3, 0), (2, 4e-3, -1e-4)]
    ]  # fmt: skip


def test_the_least_turn_counts_and_the_worst_loss():
    entry, _ = page.summarize(turns())
    assert (entry["work"], entry["way"]) == ("digits", "minigrad")
    assert entry["seconds"] == [None, 2e-3, 2e-3, None]
    assert entry["apart"] == pytest.approx(1e-4)


# -- Faults ----------------------------------------------------------------------------------------

FAULT = fault_rounds.FAULTS["exception"]


def note(folder, name, at, text="DistributedError: rank 1 raised ValueError"):
    (folder / f"{name}.json").write_text(json.dumps({"at": at, "text": text}))


def test_errors_that_do_not_come_or_do_not_name_the_rank_are_missing(tmp_path):
    for name, at in (("fault", 10.0), ("0", 10.5), ("1", 11.0), ("3", 9.0), ("4", 10.25)):
        note(tmp_path, name, at)
    note(tmp_path, "5", 10.5, "DistributedError: rank 10 has ended")
    wanted = [0.5, None, None, 0.25, None]
    assert fault_rounds.seconds(tmp_path, 6, FAULT) == wanted
    everywhere = FAULT._replace(everywhere=True)
    assert fault_rounds.seconds(tmp_path, 6, everywhere) == [0.5, 1.0, None, None, 0.25, None]
    found = fault_rounds.summary(
        [
            {"seconds": wanted, "hangs": True, "left": 2},
            {"seconds": [2.0] * 5, "hangs": False, "left": 0},
        ]
    )
    assert found == {
        "rounds": 2, "errors": 10, "median": 2.0, "worst": 2.0, "missing": 3, "hangs": 1, "left": 2
    }  # fmt: skip


def test_before_a_fault_there_is_no_time(tmp_path):
    note(tmp_path, "0", 1.0)
    assert fault_rounds.seconds(tmp_path, 2, FAULT) == [None]


@pytest.mark.skipif(os.name == "nt", reason="it ends a session of processes")
def test_the_watchdog_ends_a_command_and_what_it_started(tmp_path):
    started = tmp_path / "pid"
    child = f"import os, time; open({str(started)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    parent = f"import subprocess, sys; subprocess.call([sys.executable, '-c', {child!r}])"
    assert fault_rounds.watched([sys.executable, "-c", parent], 3.0)
    deadline = time.monotonic() + 10
    while fault_rounds.is_alive(int(started.read_text())) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not fault_rounds.is_alive(int(started.read_text()))
    assert not fault_rounds.watched([sys.executable, "-c", "pass"], 60.0)
    running = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert fault_rounds.is_alive(running.pid)
    running.communicate(b"\n")
    assert not fault_rounds.is_alive(running.pid)


@pytest.mark.skipif(os.name == "nt", reason="MPICH has no wheels for Windows")
@pytest.mark.parametrize(("fault", "errors"), [("exception", 1), ("nan", 2)])
def test_a_round_of_real_ranks(fault, errors):
    found = fault_rounds.round_of(fault, 2)
    assert (found["hangs"], found["left"], len(found["seconds"])) == (False, 0, errors)
    assert all(0 <= t < fault_rounds.TIMEOUT for t in found["seconds"])


# -- The page --------------------------------------------------------------------------------------


def test_the_page_says_what_was_found(tmp_path):
    pytest.importorskip("matplotlib")
    machine = {"machine": {"processor": "A CPU", "cores": 2}, "date": "today", "load_at_start": 0.1}
    machine["versions"] = {"python": "3.11"}
    found = {
        "steps": {
            "machine": machine,
            "turns": 1,
            "entries": page.summarize(turns()),
            "failed": ["pytorch_train, 1 process, turn 1: no module named torch"],
        },
        "sums": {
            "machine": machine,
            "turns": 5,
            "ranks": {
                f"{n}": {"barrier": BARRIERS[n], "sums": rows, "mpi": "MPI 4", "told": 150}
                for n, rows in sums().items()
            },
        },
    }
    page.write(found, tmp_path)
    text = (tmp_path / "distributed.md").read_text(encoding="utf-8")
    assert (
        "| digits, MLP 64-32-10, batch 32 | minigrad eager | – | 2 ms | 2 ms | – | 800 B |" in text
    )
    assert "a latency of 3 µs, and a bandwidth of 5 GB/s" in text
    assert "with 1 rank 10 µs, and copies at 2.5 GB/s; by the barriers 20 µs for each" in text
    assert "by 150 bytes to each other rank" in text
    assert "PyTorch was not measured" in text
    assert "\n\nFailed: pytorch_train, 1 process, turn 1: no module named torch.\n" in text
    assert "python 3.11, MPI 4." in text
    assert "Other programs ran" not in text
    assert "Other programs ran" in page.made({"machine": machine | {"load_at_start": 2.5}})
    assert "Faults" not in text
    assert (tmp_path / "distributed.png").stat().st_size > 10_000
    entry = fault_rounds.summary([{"seconds": [0.25, None], "hangs": False, "left": 0}])
    found["faults"] = {
        "machine": machine, "rounds": 1, "entries": [{"fault": "killed", "ranks": 4} | entry]
    }  # fmt: skip
    page.write(found, tmp_path)
    text = (tmp_path / "distributed.md").read_text(encoding="utf-8")
    assert "| SIGKILL | 4 | 250 ms | 250 ms | 2 | 1 | 0 | 0 |" in text
    assert json.loads((tmp_path / "distributed.json").read_text(encoding="utf-8")) == found
