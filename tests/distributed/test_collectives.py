"""Sums, broadcasts, gathers and barriers over ranks that are threads."""

import gc
import threading
import time
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad import distributed as d
from minigrad import errors
from minigrad.devices import loader
from minigrad.distributed import membership
from minigrad.distributed.engine import Head

DTYPES = ("float32", "float64", "float16", "int32", "int64", "uint8", "bool")


def data_of(rank, dtype, shape=(3, 2)):
    """Small whole numbers: their sums are exact in every dtype."""
    return np.random.default_rng(rank).integers(0, 9, shape).astype(dtype)


def variable(array, dtype):
    return mg.variable(array).to(dtype)


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_broadcasts_and_gathers_equal_numpy(ranks, dtype):
    def work():
        x = variable(data_of(d.rank(), dtype), dtype)
        return d.all_reduce(x), d.broadcast(x, ranks - 1), d.all_gather(x)

    data = [data_of(r, dtype) for r in range(ranks)]
    wide = data[0].dtype if np.issubdtype(data[0].dtype, np.floating) else np.int64
    for total, sent, all_of_them in d.run(work, ranks):
        for got, wanted in (
            (total, np.sum([one.astype(wide) for one in data], axis=0, dtype=wide)),
            (sent, data[-1]),
            (all_of_them, np.stack(data)),
        ):
            assert got.numpy().dtype == wanted.dtype
            np.testing.assert_array_equal(got.numpy(), wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_means_with_and_without_weights(ranks, dtype):
    weights = [3.0, 1.0, 0.5, 0.0, 2.0][:ranks]

    def work():
        x = variable(data_of(d.rank(), dtype), dtype)
        return d.all_reduce(x, "mean"), d.all_reduce(x, "weighted", weight=weights[d.rank()])

    data = np.stack([data_of(r, dtype) for r in range(ranks)]).astype(float)
    tolerance = 1e-3 if dtype == "float16" else 1e-6
    for mean, weighted in d.run(work, ranks):
        assert str(mean.dtype) == str(weighted.dtype) == dtype
        np.testing.assert_allclose(mean.numpy(), data.mean(0), rtol=tolerance)
        wanted = np.average(data, 0, weights)
        np.testing.assert_allclose(weighted.numpy(), wanted, rtol=tolerance)


def test_all_ranks_get_the_same_bits():
    def work():
        rng = np.random.default_rng(d.rank())
        x = mg.variable(rng.normal(size=1000).astype("float32"))
        found = [
            d.all_reduce(x),
            d.all_reduce(x, "mean"),
            d.all_reduce(x, "weighted", 1 + d.rank()),
        ]
        return [y.numpy().tobytes() for y in found]

    first, *others = d.run(work, 4)
    assert all(other == first for other in others)


def test_a_rank_of_weight_0_does_not_count_even_with_nan():
    def work():
        is_last = d.rank() == 2
        x = mg.variable([np.nan if is_last else 4.0])
        return d.all_reduce(x, "weighted", weight=0 if is_last else 8).item()

    assert d.run(work, 3) == [4.0] * 3


def test_sums_of_halves_do_not_overflow_on_the_way():
    def work():
        return d.all_reduce(mg.full((1,), 40000.0, dtype="float16"), "mean").item()

    assert d.run(work, 4) == [40000.0] * 4


def test_what_is_given_stays_as_it_was_and_no_rank_sees_later_writes():
    def work():
        x = mg.variable([1.0 + d.rank()])
        results = d.all_reduce(x), d.broadcast(x), d.all_gather(x)
        before = x.item()
        with mg.no_grad():
            x.mul_(100.0)
            for y in results:
                y.add_(d.rank())
        d.barrier()
        return before, [(y - d.rank()).tolist() for y in results]

    found = [[3.0], [1.0], [[1.0], [2.0]]]
    assert d.run(work, 2) == [(1.0, found), (2.0, found)]


def test_views_and_other_devices():
    def work():
        x = mg.arange(6, dtype="float32").reshape(2, 3).T + d.rank()
        with mg.device("simt"):
            y = x.to("simt")
        total = d.all_reduce(y)
        return total.device, d.all_reduce(x).tolist(), total.to("cpu").tolist()

    wanted = (2 * np.arange(6.0).reshape(2, 3).T + 1).tolist()
    assert d.run(work, 2) == [("simt", wanted, wanted)] * 2


def test_results_come_by_rank_and_arguments_are_passed_on():
    assert d.run(lambda a, b: (d.rank(), d.size(), a, b), 3, "a", 2) == [
        (k, 3, "a", 2) for k in range(3)
    ]


def test_a_barrier_waits_for_all():
    came, lock = [], threading.Lock()

    def work():
        time.sleep(0.03 * d.rank())
        with lock:
            came.append(d.rank())
        d.barrier()
        return len(came)

    assert d.run(work, 3) == [3, 3, 3]


def test_modes_of_the_caller_do_not_reach_ranks_but_its_default_device_does():
    mg.set_default_device("simt")
    try:
        with mg.no_grad():
            found = d.run(lambda: (mg.is_recording(), mg.zeros(1).device), 2)
    finally:
        mg.set_default_device("cpu")
    assert found == [(True, "simt")] * 2


# -- Faults ----------------------------------------------------------------------------------------


def faults(work, ranks=3, timeout=5.0):
    """What each rank raised, by rank, and what `run` raised."""
    found = {}

    def noting():
        try:
            work(d.rank())
        except BaseException as error:
            found[d.rank()] = error
            raise

    with pytest.raises(BaseException) as raised:  # noqa: PT011 - the tests look at it
        d.run(noting, ranks, timeout=timeout)
    return found, raised.value


@pytest.mark.parametrize("call", [d.init, d.rank, d.barrier])
def test_a_thread_that_a_rank_started_is_no_group_of_one(call):
    def work():
        def noting():
            try:
                call()
            except errors.DistributedError as error:
                found.append(str(error))

        thread = threading.Thread(target=noting)
        thread.start()
        thread.join()
        d.barrier()
        return d.size()

    found = []
    assert d.run(work, 2) == [2, 2]
    assert len(found) == 2
    for text in found:
        assert "this thread is no rank" in text
        assert "call it in the thread that run() started" in text
    assert not membership.runs


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (lambda: d.all_reduce(mg.zeros((3,))), "rank 1: all_reduce 'sum' of float32[3]"),
        (lambda: d.all_reduce(mg.zeros((4,), dtype="float64")), "rank 1: all_reduce 'sum' of fl"),
        (lambda: d.all_reduce(mg.zeros((4,)), "mean"), "rank 1: all_reduce 'mean' of float32[4]"),
        (lambda: d.broadcast(mg.zeros((4,))), "rank 1: broadcast from rank 0 of float32[4]"),
        (lambda: d.all_gather(mg.zeros((4,))), "rank 1: all_gather of float32[4]"),
        (lambda: d.barrier(), "rank 1: barrier"),
    ],
)
def test_another_call_of_one_rank_raises_on_every_rank_and_names_it(other, said):
    def work(rank):
        d.barrier()
        other() if rank == 1 else d.all_reduce(mg.zeros((4,)))

    found, _ = faults(work)
    assert sorted(found) == [0, 1, 2]
    for error in found.values():
        assert isinstance(error, errors.DistributedError)
        assert said in str(error)
        assert "ranks 0 and 2: all_reduce 'sum' of float32[4], test_collectives.py" in str(error)
        assert "call 2 of mg.distributed" in str(error)
        assert error.ranks == (1,)


def test_a_root_that_differs_raises_on_every_rank():
    found, _ = faults(lambda rank: d.broadcast(mg.zeros((1,)), root=int(rank == 2)))
    assert [e.ranks for e in found.values()] == [(2,)] * 3


def test_an_exception_of_one_rank_is_raised_and_the_others_name_it():
    def work(rank):
        if rank == 2:
            raise ValueError("no such batch")
        d.all_reduce(mg.zeros((4,)))

    found, raised = faults(work)
    assert raised is found[2]
    assert raised.__notes__ == ["raised in rank 2 of 3"]
    for rank in (0, 1):
        error = found[rank]
        assert isinstance(error, errors.DistributedError)
        assert "rank 2 raised ValueError: no such batch" in str(error)
        assert "call 1 of mg.distributed, all_reduce 'sum' of float32[4]" in str(error)
        assert error.ranks == (2,)


def test_wrong_arguments_of_one_rank_are_an_error_on_all():
    found, raised = faults(lambda rank: d.all_reduce(mg.zeros((2,)), "avg" if rank else "sum"), 2)
    assert isinstance(raised, errors.ArgumentError)
    assert "rank 1 raised ArgumentError: all_reduce: wanted op 'sum', 'mean'" in str(found[0])


def test_a_rank_that_has_returned_is_named():
    found, _ = faults(lambda rank: d.barrier() if rank != 1 else None)
    assert sorted(found) == [0, 2]
    assert all("rank 1 has ended" in str(error) for error in found.values())


def test_a_rank_that_does_not_come_is_named_by_all_that_wait():
    release = threading.Event()

    def work(rank):
        if rank == 1:
            release.wait(20)
        d.all_reduce(mg.zeros((4,)))

    began = time.monotonic()
    try:
        found, _ = faults(work, timeout=1.0)
        waited = time.monotonic() - began
        assert {0, 2} <= set(found)
        for rank in (0, 2):
            assert "call 1 of mg.distributed, all_reduce 'sum'" in str(found[rank])
            assert "rank 1 did not come within 1 s" in str(found[rank])
        assert waited < 15  # not until the rank comes
    finally:
        release.set()


def numba_lock():
    """Numba's own, which a kernel of a user holds while it compiles."""
    from numba.core.compiler_lock import global_compiler_lock

    loader.load_source("sums")  # only then is it looked at
    return global_compiler_lock


@pytest.mark.parametrize("lock", [lambda: loader.lock, numba_lock], ids=["minigrad", "numba"])
@pytest.mark.parametrize("call", ["barrier", "receive"])
def test_a_rank_that_compiles_is_waited_for_beyond_the_timeout(lock, call):
    held, its_lock = threading.Event(), lock()

    def meet():
        if call == "barrier":
            return d.barrier()
        engine = membership.current("test").engine
        return engine.receive(1, Head(1, "test", "")) if d.rank() == 0 else engine.send("x", 0)

    def work():
        if d.rank() == 0:
            assert held.wait(20)
            return meet()
        with its_lock:
            held.set()
            time.sleep(1.0)  # ten timeouts
            return meet()  # inside: the clock of rank 0 never runs

    assert d.run(work, 2, timeout=0.1) == [None if call == "barrier" else "x", None]


def test_the_clock_runs_on_once_a_rank_has_compiled():
    held, release = threading.Event(), threading.Event()

    def work(rank):
        if rank == 0:
            assert held.wait(20)
            d.barrier()
            return
        with loader.lock:
            held.set()
            time.sleep(0.3)
        release.wait(20)  # hangs, though it has compiled before

    try:
        found, _ = faults(work, ranks=2, timeout=0.1)
    finally:
        release.set()
    assert "rank 1 did not come within 0.1 s" in str(found[0])


def test_a_rank_that_comes_after_the_others_gave_up_is_told():
    found, _ = faults(lambda rank: (time.sleep(0.6 * rank), d.barrier()), ranks=2, timeout=0.2)
    assert sorted(found) == [0, 1]
    assert "rank 1 did not come within 0.2 s" in str(found[1])


def test_after_a_failure_every_call_says_so():
    def work(rank):
        with pytest.raises(errors.DistributedError):
            d.barrier() if rank else d.all_reduce(mg.zeros((1,)))
        d.barrier()

    found, _ = faults(work, 2)
    assert all("has failed before" in str(error) for error in found.values())


def test_weights_that_are_all_0_raise_on_every_rank():
    found, _ = faults(lambda rank: d.all_reduce(mg.ones((1,)), "weighted", weight=0))
    assert len(found) == 3
    assert all("a weight above 0 on some rank" in str(error) for error in found.values())


def test_ctrl_c_in_the_caller_ends_the_ranks(monkeypatch):
    ended = []

    def interrupt(threads, errors):
        raise KeyboardInterrupt

    def work():
        try:
            while True:
                d.barrier()
        finally:
            ended.append(d.rank())

    monkeypatch.setattr(d.rank_threads, "_wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        d.run(work, 2)
    deadline = time.monotonic() + 10
    while len(ended) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert sorted(ended) == [0, 1]


# -- Arguments -------------------------------------------------------------------------------------


def test_before_init_calls_say_what_to_do(monkeypatch):
    monkeypatch.setattr(membership, "_of_process", [])
    for call in (d.rank, d.size, d.barrier, lambda: d.all_reduce(1.0)):
        with pytest.raises(errors.DistributedError, match=r"mg\.distributed\.init\(\) first"):
            call()


def test_alone_a_process_is_a_group_of_one(monkeypatch):
    monkeypatch.setattr(membership, "_of_process", [])
    d.init("alone")
    d.init()
    assert (d.rank(), d.size()) == (0, 1)
    x = mg.variable([1.0, 2.0])
    assert d.all_reduce(x, "mean").tolist() == d.broadcast(x).tolist() == [1.0, 2.0]
    assert d.all_gather(x).tolist() == [[1.0, 2.0]]
    d.barrier()


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda: d.all_reduce(1.0, "weighted"), errors.ArgumentError, "wanted a weight"),
        (lambda: d.all_reduce(1.0, "mean", weight=2), errors.ArgumentError, "wanted a weight"),
        (lambda: d.all_reduce(1.0, "weighted", -1), errors.ArgumentError, "weight at least 0"),
        (lambda: d.all_reduce(3, "mean"), errors.DTypeError, "wanted floats"),
        (lambda: d.broadcast(1.0, root=1), errors.ArgumentError, "a root from 0 to 0"),
        (lambda: d.broadcast(1.0, root=-1), errors.ArgumentError, "root of at least 0"),
        (lambda: d.run(lambda: None, 2), errors.DistributedError, "is a rank already"),
        (lambda: d.init(timeout=0), errors.ArgumentError, "timeout above 0"),
        (lambda: d.init("gloo"), errors.ArgumentError, "wanted engine"),
        (
            lambda: d.all_reduce(mg.variable([1.0], requires_grad=True)),
            errors.GradientError,
            "gradients do not flow",
        ),
    ],
)
def test_wrong_arguments_raise(call, kind, said):
    with pytest.raises(kind, match=said):
        d.run(call, 1)


@pytest.mark.parametrize(("function", "ranks"), [(3, 2), (lambda: None, 0), (lambda: None, 1.5)])
def test_run_checks_what_it_is_given(function, ranks):
    with pytest.raises((errors.ArgumentTypeError, errors.ArgumentError)):
        d.run(function, ranks)


def test_no_grad_lets_a_parameter_through():
    def work():
        with mg.no_grad():
            return d.all_reduce(mg.variable([1.0], requires_grad=True)).item()

    assert d.run(work, 2) == [2.0, 2.0]


def test_names_of_other_libraries_are_explained():
    with pytest.raises(AttributeError, match=r"mg\.distributed\.size\(\)"):
        _ = d.get_world_size


def test_a_rank_that_fails_keeps_nothing_alive():
    alive = []

    def work():
        model = mg.nn.Linear(3, 2)
        alive.append(weakref.ref(model))
        if d.rank() == 1:
            raise KeyError("no such digit")
        d.barrier()

    gc.collect()
    gc.disable()
    try:
        for _ in range(2):
            with pytest.raises(KeyError):
                d.run(work, 3)
        assert len(alive) == 6
        assert [ref() for ref in alive] == [None] * 6
    finally:
        gc.enable()
