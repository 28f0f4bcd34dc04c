"""Lesson 16's workers, its pictures, and what a notebook shows of ranks that it starts."""

import math
import subprocess
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest

from minigrad.course.l16_data_parallel import ranks
from minigrad.course.l16_data_parallel.drawing import Rounds, draw_waits
from minigrad.course.l16_data_parallel.driver import Post, StuckError, run_workers
from minigrad.course.objects import Worker
from minigrad.grader.folder import CourseError
from tests.test_seam_ranks import ring

mpl.use("Agg")
HELLO = """
from minigrad import distributed as d
from minigrad.course.l16_data_parallel.ranks import die, report

d.init()
d.barrier()
if d.rank() == 1 and DIES:
    die()
d.barrier()
report(rank=d.rank(), size=d.size())
"""


def script(dies=False):
    return HELLO.replace("DIES", repr(dies))


def without_mpi(monkeypatch):
    """`minigrad run` says that MPI is missing."""
    refused = SimpleNamespace(returncode=ranks.MISSING, stderr="minigrad run: ranks need mpiexec")
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: refused)


# -- workers -------------------------------------------------------------------------------------


def test_workers_run_in_the_same_order_each_time():
    def run():
        order = []

        def work(worker, x):
            order.append(worker.rank)
            total = ring(worker, x)
            order.append(worker.rank)
            return total

        results, errors, post = run_workers(work, [(np.arange(5.0) + r,) for r in range(4)])
        assert not errors
        return order, [one.tolist() for one in results], post.received

    first = run()
    assert first[1] == [[6.0, 10.0, 14.0, 18.0, 22.0]] * 4
    assert all(run() == first for _ in range(3))


def test_workers_of_which_nobody_can_go_on_are_named():
    results, errors, post = run_workers(
        lambda worker: worker.receive((worker.rank - 1) % 3), [()] * 3
    )
    assert post.stuck == {0: 2, 1: 0, 2: 1}
    assert results == [None] * 3
    assert {rank: str(error) for rank, error in errors.items()} == {
        0: "worker 0 waits for worker 2, which waits itself",
        1: "worker 1 waits for worker 0, which has given up",
        2: "worker 2 waits for worker 1, which has given up",
    }


@pytest.mark.parametrize(
    ("kind", "why"),
    [("ends", "has ended"), ("fails", "has failed"), ("dies", "has died")],
)
def test_worker_that_waits_for_one_that_is_gone_is_told(kind, why):
    def work(worker):
        if worker.rank == 1:
            worker.receive(0)
        elif kind == "fails":
            raise KeyError
        elif kind == "dies":
            worker.send(1, np.zeros(1))

    _, errors, post = run_workers(work, [()] * 2, {0: 0})
    assert isinstance(errors[1], StuckError)
    assert str(errors[1]) == f"worker 1 waits for worker 0, which {why}"
    assert not post.stuck


def test_worker_sends_arrays_as_they_are():
    def work(worker):
        x = np.full(2, float(worker.rank))
        worker.send(1 - worker.rank, x)
        x[...] = -1.0
        return worker.receive(1 - worker.rank).tolist()

    results, errors, _ = run_workers(work, [()] * 2)
    assert (results, errors) == ([[1.0, 1.0], [0.0, 0.0]], {})


@pytest.mark.parametrize("what", [[1.0], 1.0, None])
def test_worker_sends_arrays_alone(what):
    _, errors, _ = run_workers(lambda worker: worker.send(1 - worker.rank, what), [()] * 2)
    assert "not an array" in str(errors[0])


def test_worker_alone_has_no_others():
    with pytest.raises(ValueError, match="but the others are none"):
        Worker(0, 1, Post(1)).send(0, np.zeros(1))


# -- pictures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_rounds_say_whose_numbers_are_in_which_chunk(size):
    rounds = Rounds(ring, size)
    assert len(rounds.held) == len(rounds.moved) == 2 * (size - 1) + 1
    assert all(chunk == {r} for r, chunks in enumerate(rounds.held[0]) for chunk in chunks)
    middle = rounds.held[size - 1]
    assert all(sum(len(chunk) == size for chunk in chunks) == 1 for chunks in middle)
    assert all(chunk == {*range(size)} for chunks in rounds.held[-1] for chunk in chunks)
    assert rounds.moved[1] == [(r, (r + 1) % size, r) for r in range(size)]


def test_rounds_of_a_wrong_sum_are_drawn_all_the_same():
    import matplotlib.pyplot as plt

    def gossip(worker, x):
        worker.send((worker.rank + 1) % worker.size, x)
        return x + worker.receive((worker.rank - 1) % worker.size)

    rounds = Rounds(gossip, 3)
    figure, axis = plt.subplots()
    for step in range(len(rounds.held)):
        axis.clear()
        rounds.draw(axis, step)
    figure.canvas.draw()
    plt.close(figure)


def test_waits_are_drawn_as_long_as_they_were_and_steps_where_they_begin():
    import matplotlib.pyplot as plt
    from matplotlib.collections import LineCollection

    figure, axis = plt.subplots()
    events = [
        [{"source": 1, "begun": 10.0, "ended": 10.5}, {"to": 1, "at": 10.0, "nbytes": 8}],
        [{"source": 0, "begun": 10.5, "ended": 13.0}, {"source": 0, "begun": 14.0, "ended": 15.0}],
    ]
    draw_waits(axis, events, [[9.0, 10.5], [10.75, 12.0]], 10.25, 1.0)
    drawn = [
        (isinstance(one, LineCollection), path.get_extents())
        for one in axis.collections
        for path in one.get_paths()
    ]
    spans = sorted((round(b.x0, 6), round(b.width, 6)) for is_line, b in drawn if not is_line)
    assert spans == [(0.0, 250.0), (250.0, 750.0)]
    begun = [(round(b.x0, 6), round((b.y0 + b.y1) / 2)) for is_line, b in drawn if is_line]
    assert begun == [(250.0, 0), (500.0, 1)]
    plt.close(figure)


# -- ranks ---------------------------------------------------------------------------------------


def test_ranks_that_end_well_report():
    done = ranks.launch(script(), 3)
    assert (done.error, done.advice) == ("", ""), done
    assert done.needed() == [{"rank": r, "size": 3} for r in range(3)]
    assert "3 processes have ended well" in repr(done)
    assert "3 processes have ended well" in done._repr_html_()


def test_rank_that_is_killed_is_an_error_and_no_hang():
    done = ranks.launch(script(dies=True), 3)
    assert done.reports == [None] * 3
    with pytest.raises(CourseError, match="no report of rank 0, 1, 2"):
        done.needed()
    assert "rank 1 (process" in done.error
    assert "killed" in done.error
    assert done.seconds < 60
    assert "processes have failed" in repr(done)


def test_ranks_are_threads_where_mpi_is_missing(monkeypatch):
    without_mpi(monkeypatch)
    done = ranks.launch(script(), 3)
    assert done.error == ""
    assert done.reports == [{"rank": r, "size": 3} for r in range(3)]
    assert "3 threads have ended well" in repr(done)
    assert "ranks need mpiexec\nUntil then this lesson runs with threads." in done.advice
    dead = ranks.launch(script(dies=True), 3)
    assert dead.reports == [None] * 3
    assert "rank 1 was killed" in dead.error


def test_ranks_that_do_not_end_are_ended():
    done = ranks.launch("import time\ntime.sleep(600)", 2, timeout=2.0)
    assert "did not end within 2 s" in done.error
    assert math.isclose(done.seconds, 2.0, abs_tol=15.0)


def test_output_of_ranks_is_cut_to_what_minigrad_says_at_its_end():
    text = f"Traceback\nnoise\n{ranks.FAILURE}\n  rank 1: was killed\n  rank 0: heard of it\n"
    assert ranks.told(text) == "rank 1: was killed\n  rank 0: heard of it"
    assert ranks.told("  boom\n") == "boom"


def test_timed_notes_what_is_sent_and_for_whom_a_worker_waits():
    events = [[], []]

    def work(worker, x):
        return ranks.timed(ring, events[worker.rank])(worker, x)

    results, errors, _ = run_workers(work, [(np.ones(4),)] * 2)
    assert not errors
    assert results[1].tolist() == [2.0] * 4
    for rank, mine in enumerate(events):
        assert [one["to"] for one in mine if "to" in one] == [1 - rank] * 2
        assert [one["nbytes"] for one in mine if "to" in one] == [16, 16]
        waits = [one for one in mine if "source" in one]
        assert [one["source"] for one in waits] == [1 - rank] * 2
        assert all(one["begun"] <= one["ended"] for one in waits)
