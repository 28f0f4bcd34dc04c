"""A learner's sum over the ranks in the engine: digits train as with the engine's own."""

import json

import numpy as np
import pytest

import minigrad as mg
from minigrad import distributed as d
from minigrad import errors
from minigrad.distributed.engine import Head
from tests.distributed.test_processes import engine_with, launcher, run_ranks  # noqa: F401

RANKS, STEPS = 3, 6


def ring(worker, x):
    """A sum by a ring of workers."""
    k, rank = worker.size, worker.rank
    after, before = (rank + 1) % k, (rank - 1) % k
    chunks = np.array_split(x.ravel(), k)
    for step in range(k - 1):
        worker.send(after, chunks[(rank - step) % k])
        place = (rank - step - 1) % k
        chunks[place] = chunks[place] + worker.receive(before)
    for step in range(k - 1):
        worker.send(after, chunks[(rank + 1 - step) % k])
        chunks[(rank - step) % k] = worker.receive(before)
    return np.concatenate(chunks).reshape(x.shape)


def rank_losses():
    """Train on digits, each rank with its rows; return the losses of this rank's rows."""
    images, labels = mg.data.load_digits()
    x, labels = images[:96].reshape(96, 64).astype(np.float32), labels[:96].astype(np.int64)
    rng = np.random.default_rng(5)
    model = mg.nn.Sequential(mg.nn.Linear(64, 16), mg.nn.Tanh(), mg.nn.Linear(16, 10))
    for p in model.parameters():
        p.assign(mg.variable((0.2 * rng.normal(size=p.shape)).astype(np.float32)))
    replica = d.DataParallel(model, bucket_bytes=500)
    optimizer = mg.optim.SGD(model, learning_rate=0.1, momentum=0.9)
    found = []
    ((rows, targets),) = d.batches(x, labels, batch_size=96)  # this rank's
    for _ in range(STEPS):
        loss = mg.cross_entropy(model(mg.variable(rows)), mg.variable(targets))
        replica.backward(loss, weight=len(rows))
        optimizer.step()
        optimizer.zero_grad()
        found.append(loss.item())
    replica.check()
    return found


def run_with(part, work=rank_losses, ranks=RANKS, timeout=10.0):
    """Run work on ranks that are threads, each with a learner's sum."""

    def each():
        with mg.use(all_reduce=part):
            return work()

    return d.run(each, ranks, timeout=timeout)


def one_sum():
    return d.all_reduce(mg.variable([1.0 + d.rank()])).item()


def test_seam_all_reduce_runs_while_digits_train_and_gives_the_same_losses():
    calls = []

    def counted(worker, x):
        calls.append((worker.rank, worker.size, x.dtype))
        return ring(worker, x)

    reference = d.run(rank_losses, RANKS)
    mine = run_with(counted)
    assert len(reference[0]) == STEPS
    assert reference[0][-1] < reference[0][0]
    np.testing.assert_allclose(mine, reference, rtol=1e-5)
    assert {call[0] for call in calls} == {*range(RANKS)}
    assert len(calls) >= RANKS * STEPS * 2  # some buckets in every step
    assert {call[1:] for call in calls} == {(RANKS, np.dtype(np.float32))}


def test_seam_all_reduce_decides_about_floats():
    def twice(worker, x):
        return 2 * ring(worker, x)

    assert run_with(twice, one_sum) == [12.0] * RANKS
    assert run_with(twice, lambda: d.all_reduce(4).item()) == [12] * RANKS
    assert d.run(one_sum, RANKS) == [6.0] * RANKS


def test_seam_all_reduce_of_one_rank_gets_a_copy():
    def writes(worker, x):
        assert (worker.rank, worker.size) == (0, 1)
        x += 1.0
        return x - 1.0

    assert run_with(writes, one_sum, ranks=1) == [1.0]


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (lambda worker, x: x, "the same bits on every rank"),
        (lambda worker, x: None, "an array for the sum"),
        (lambda worker, x: ring(worker, x)[0], r"shape \(1,\) for the sum"),
        (lambda worker, x: worker.send(1 - worker.rank, "x"), "an array for send"),
    ],
)
def test_seam_all_reduce_with_a_wrong_sum_raises_seam_error(part, message):
    with pytest.raises(errors.SeamError, match=message):
        run_with(part, one_sum, ranks=2)


@pytest.mark.parametrize("part", [int, 3, "ring"])
def test_seam_all_reduce_wants_a_function(part):
    with pytest.raises(errors.SeamError, match="wanted a function"):
        mg.use(all_reduce=part)


def test_seam_all_reduce_refuses_a_message_that_an_earlier_sum_left():
    def sends_twice(worker, x):
        worker.send(1 - worker.rank, x)
        worker.send(1 - worker.rank, x)
        return x + worker.receive(1 - worker.rank)

    with pytest.raises(errors.SeamError, match="left over, in sum 2"):
        run_with(sends_twice, lambda: [one_sum(), one_sum()], ranks=2)


def test_seam_all_reduce_sends_arrays_as_they_are():
    def writes_after(worker, x):
        worker.send(1 - worker.rank, x)
        mine = x.copy()
        x[...] = 100.0
        return mine + worker.receive(1 - worker.rank)

    assert run_with(writes_after, one_sum, ranks=2) == [3.0, 3.0]


@pytest.mark.parametrize(
    ("to", "kind", "message"),
    [
        (0, ValueError, "worker 0: send to worker 0, but the others are 1"),
        (2, ValueError, "send to worker 2, but the others are 1"),
        (1.0, TypeError, "a rank is an int"),
    ],
)
def test_seam_all_reduce_worker_refuses_ranks_that_are_none(to, kind, message):
    def part(worker, x):
        worker.send(to if worker.rank == 0 else 0, x)
        return x

    with pytest.raises(kind, match=message) as caught:
        run_with(part, one_sum, ranks=2)
    assert "runs in the engine as all_reduce" in "".join(caught.value.__notes__)


def test_seam_all_reduce_that_waits_for_ever_is_an_error():
    def waits(worker, x):
        return worker.receive((worker.rank - 1) % worker.size)

    with pytest.raises(errors.DistributedError, match=r"sent nothing within 0\.3 s") as caught:
        run_with(waits, one_sum, timeout=0.3)
    assert "was to receive an array from worker" in "".join(caught.value.__notes__)


def test_seam_all_reduce_with_a_rank_that_fails_is_an_error_on_all():
    heard = []

    def fails(worker, x):
        if worker.rank == 1:
            raise ZeroDivisionError("rank 1 has no rows")
        try:
            return ring(worker, x)
        except errors.DistributedError as error:
            heard.append((worker.rank, error.ranks))
            raise

    with pytest.raises(ZeroDivisionError):
        run_with(fails, one_sum)
    assert sorted(heard) == [(0, (1,)), (2, (1,))]


def test_mpi_receive_gives_up_after_its_timeout():
    with pytest.raises(errors.DistributedError, match=r"rank 1 sent nothing within 0\.01 s"):
        engine_with().receive(1, Head(1, "all_reduce", ""))


SCRIPT = """
import json, os, signal, sys
import minigrad as mg
from minigrad import distributed as d
from tests.test_seam_ranks import rank_losses, ring

d.init(timeout=30)
calls = []

def mine(worker, x):
    calls.append(1)
    if sys.argv[1] == "dies" and worker.rank == 1 and len(calls) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return ring(worker, x)

with mg.use(all_reduce=mine):
    losses = rank_losses()
with open(f"{d.rank()}.json", "w") as file:
    json.dump([losses, len(calls)], file)
"""


def test_seam_all_reduce_runs_on_three_processes(launcher, tmp_path):  # noqa: F811
    done = run_ranks(SCRIPT, tmp_path, "trains")
    assert done.returncode == 0, done.stderr
    found = [json.loads((tmp_path / f"{k}.json").read_text()) for k in range(RANKS)]
    np.testing.assert_allclose([one[0] for one in found], d.run(rank_losses, RANKS), rtol=1e-5)
    assert all(calls >= STEPS * 2 for _, calls in found)


def test_seam_all_reduce_with_a_killed_process_is_an_error(launcher, tmp_path):  # noqa: F811
    done = run_ranks(SCRIPT, tmp_path, "dies")
    assert done.returncode == 1
    assert "rank 1 was killed by SIGKILL" in done.stderr
    assert not [*tmp_path.glob("*.json")]
