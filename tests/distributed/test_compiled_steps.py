"""Compiled steps whose programs sum over the ranks: equal to eager steps, and the same errors."""

import gc
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad import distributed as d
from minigrad import errors
from minigrad.distributed import membership
from tests.distributed.test_collectives import faults
from tests.distributed.test_data_parallel import cuts, examples

nn = mg.nn
N = 48
LIMIT = 100.0  # seconds; ranks that are threads compile one after the other


def run(work, ranks, *arguments):
    return d.run(work, ranks, *arguments, timeout=LIMIT)


def make(with_statistics=False, seed=1):
    """A model with the same values in every thread."""
    rng = np.random.default_rng(seed)
    middle = [nn.BatchNorm1d(8)] if with_statistics else []
    model = nn.Sequential(nn.Linear(6, 8), *middle, nn.Tanh(), nn.Linear(8, 4))
    for p in model.parameters():
        p.assign(mg.variable(rng.normal(scale=0.4, size=p.shape).astype("float32")))
    return model


def state_of(model):
    values = dict(model.named_parameters()) | dict(model.named_buffers())
    return {name: x.numpy().copy() for name, x in values.items()}


class Training:
    """A rank's model, and steps on its rows of the examples."""

    def __init__(self, optimizer="Adam", with_statistics=False, rows=None, **options):
        self.model = make(with_statistics)
        self.replica = d.DataParallel(self.model, **options)
        self.optimizer = getattr(mg.optim, optimizer)(self.model, learning_rate=0.05)
        x, y = examples(N)
        mine = cuts(N, d.size())[d.rank()] if rows is None else rows
        self.data = mg.variable(x[mine]), mg.variable(y[mine])

    def step(self, x, y):
        loss = mg.cross_entropy(self.replica(x), y)
        self.replica.backward(loss, weight=len(x))
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss

    def micro_batches(self, x, y):
        """The same, in two micro-batches of unequal size."""
        k = len(x) // 3 + 1
        with self.replica.no_sync():
            self.replica.backward(mg.cross_entropy(self.replica(x[:k]), y[:k]), weight=k)
        rest = mg.cross_entropy(self.replica(x[k:]), y[k:]) if len(x) > k else None
        self.replica.backward(rest, weight=len(x) - k)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def zeroed_first(self, x, y):
        self.optimizer.zero_grad()
        loss = mg.cross_entropy(self.replica(x), y)
        self.replica.backward(loss, weight=len(x))
        self.optimizer.step()
        return loss

    def clipped(self, x, y):
        loss = mg.cross_entropy(self.replica(x), y)
        self.replica.backward(loss, weight=len(x))
        norm = mg.optim.clip_grad_norm_(self.model.parameters(), 0.1)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss, norm


def trained(ranks, how, name="step", calls=5, **options):
    """Train; return the state of every rank's model, and the number of its programs."""

    def work():
        training = Training(**options)
        step = how(getattr(training, name))
        for _ in range(calls):
            step(*training.data)
        training.replica.check()
        return state_of(training.model), len(getattr(step, "traces", ()))

    return run(work, ranks)


def compared(*arguments, **options):
    """Check that compiled training gives what eager training gives."""
    eager = trained(*arguments[:1], lambda f: f, *arguments[1:], **options)
    compiled = trained(*arguments[:1], mg.compile, *arguments[1:], **options)
    for (wanted, _), (found, programs) in zip(eager, compiled, strict=True):
        assert programs
        for key, value in wanted.items():
            np.testing.assert_allclose(found[key], value, rtol=0, atol=1e-6, err_msg=key)


@pytest.mark.parametrize(
    ("ranks", "name"),
    [(1, "step"), (3, "step"), (3, "micro_batches"), (2, "zeroed_first"), (2, "clipped")],
)
def test_a_program_trains_as_eager_calls_do(ranks, name):
    compared(ranks, name)


@pytest.mark.parametrize(
    "options",
    [
        {"optimizer": "SGD"},
        {"optimizer": "SGD", "with_statistics": True, "rows": slice(0, 12)},
        {"bucket_bytes": 100},
    ],
    ids=["SGD", "running statistics", "buckets"],
)
def test_also_with(options):
    compared(2, "step", **options)


def test_a_rank_without_examples_has_a_program_too():
    def work(how):
        training = Training(rows=slice(0, 12 * (1 - d.rank())))

        def nothing():
            training.replica.backward(None, weight=0)
            training.optimizer.step()
            training.optimizer.zero_grad()

        step = how(nothing if d.rank() else training.step)
        for _ in range(4):
            step(*(() if d.rank() else training.data))
        training.replica.check()
        return state_of(training.model), len(getattr(step, "traces", ()))

    wanted = run(work, 2, lambda f: f)[0][0]
    for found, programs in run(work, 2, mg.compile):
        assert programs == 1
        for key, value in wanted.items():
            np.testing.assert_allclose(found[key], value, rtol=0, atol=1e-6)


def test_an_eager_rank_meets_one_that_runs_a_program():
    def work(how):
        rows = slice(d.rank() * 20, 24 + d.rank() * 20)
        training = Training("SGD", with_statistics=True, rows=rows)
        step = how[d.rank()](training.step)
        for _ in range(4):
            step(*training.data)
        training.replica.check()
        return state_of(training.model)

    wanted = run(work, 2, (lambda f: f, lambda f: f))[0]
    for found in run(work, 2, (mg.compile, lambda f: f)):
        for key, value in wanted.items():
            np.testing.assert_allclose(found[key], value, rtol=0, atol=1e-6)


def test_gradients_of_a_scaled_loss():
    def work(how):
        training = Training("SGD")
        scaler = mg.optim.GradScaler(init_scale=1024.0)

        def step(x, y):
            loss = mg.cross_entropy(training.replica(x), y)
            training.replica.backward(scaler.scale(loss), weight=len(x))
            scaler.step(training.optimizer)
            scaler.update()
            training.optimizer.zero_grad()

        step = how(step)
        for _ in range(4):
            step(*training.data)
        training.replica.check()
        return state_of(training.model)

    for wanted, found in zip(run(work, 2, lambda f: f), run(work, 2, mg.compile), strict=True):
        for key, value in wanted.items():
            np.testing.assert_allclose(found[key], value, rtol=0, atol=1e-6)


def test_the_report_shows_the_sum_with_its_bytes():
    def work():
        training = Training()
        step = mg.compile(training.step)
        for _ in range(2):
            step(*training.data)
        return step.report(), sum(p.nbytes for p in training.model.parameters())

    for report, nbytes in run(work, 2):
        (form,) = [f for f in report.forms if f.what == "all ranks"]
        assert (form.calls, form.read, form.written) == (1, nbytes + 4, nbytes)
        assert [name for name, _ in report.callbacks] == ["DataParallel.backward"]
        assert "DataParallel.backward (test_compiled_steps.py:" in str(report)


# -- Faults ----------------------------------------------------------------------------------------


def state_and_gradients(training):
    grads = {f"grad {n}": p.grad for n, p in training.model.named_parameters()}
    return state_of(training.model), grads


def assert_untouched(training, before):
    values, grads = state_and_gradients(training)
    for name, value in before[0].items():
        np.testing.assert_array_equal(values[name], value, err_msg=name)
    assert grads == before[1]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_loss_that_is_not_finite_raises_on_every_rank_and_all_can_go_on(bad):
    def work():
        training = Training(rows=slice(d.rank() * 12, d.rank() * 12 + 12))
        step = mg.compile(training.step)
        for _ in range(3):
            step(*training.data)
        before = state_and_gradients(training)
        x, y = training.data
        with pytest.raises(errors.NonFiniteError, match="on rank 1") as raised:
            step(x * bad if d.rank() == 1 else x * 1.0, y)
        assert "updated before the error: nothing" in "".join(raised.value.__notes__)
        assert_untouched(training, before)
        step(*training.data)
        training.replica.check()
        return True

    assert run(work, 3) == [True] * 3


@pytest.mark.parametrize("kind", ["raises", "ends", "order", "shape"])
def test_a_fault_of_one_rank_is_an_error_on_every_rank(kind):
    def work(rank):
        training = Training()
        step = mg.compile(training.step)
        for _ in range(3):
            step(*training.data)
        before = state_and_gradients(training)
        if rank == 1 and kind == "raises":
            raise ZeroDivisionError("no luck")
        if rank == 1 and kind == "ends":
            return
        if rank == 1 and kind == "order":
            d.barrier()
        if rank == 1 and kind == "shape":
            d.DataParallel(nn.Linear(2, 2))
        try:
            step(*training.data)
        finally:
            assert_untouched(training, before)

    found, _ = faults(work, 3, LIMIT)
    assert found.keys() >= {0, 2}
    for rank in (0, 2):
        assert isinstance(found[rank], errors.DistributedError)
        assert "rank 1" in str(found[rank])
        assert found[rank].ranks == (1,)


def test_a_rank_that_fails_in_its_program_is_an_error_on_the_others():
    class Fails(mg.Function):
        """The identity, until its rank has no luck."""

        @staticmethod
        def forward(ctx, x):
            if x.numpy()[0, 0] > 1e6:
                raise ZeroDivisionError("no luck")
            return x.clone()

        @staticmethod
        def backward(ctx, dy):
            return dy

    def work(rank):
        training = Training(rows=slice(0, 12))
        step = mg.compile(lambda x, y: training.step(Fails.apply(x), y))
        x, y = training.data
        for _ in range(4):
            step(x * 1.0, y)
        before = state_and_gradients(training)
        try:
            step(x * 1.0 + (1e8 if rank == 1 else 0.0), y)
        finally:
            assert_untouched(training, before)

    found, raised = faults(work, 3, LIMIT)
    assert isinstance(raised, ZeroDivisionError)
    for rank in (0, 2):
        assert "rank 1 raised ZeroDivisionError: no luck" in str(found[rank])


def test_a_check_that_fails_after_the_sum_does_not_sum_again():
    """An eager call, as after other failed checks, would wait for ranks that do not come."""

    def work():
        training = Training("SGD")

        def step(x, y, limit):
            loss = mg.cross_entropy(training.replica(x), y)
            training.replica.backward(loss, weight=len(x))
            return mg.arange(4.0)[limit]

        step = mg.compile(step)
        for _ in range(3):
            step(*training.data, mg.variable(1))
            training.optimizer.zero_grad()
        count = training.replica._group.count
        with pytest.raises(errors.BoundsError, match=r"the other ranks, by DataParallel\.backward"):
            step(*training.data, mg.variable(7))
        assert training.replica._group.count == count + 2
        assert all(p.grad is None for p in training.model.parameters())
        return True

    assert run(work, 2) == [True] * 2


def test_parameters_without_a_gradient_are_an_error_on_every_rank():
    def work(rank):
        training = Training()
        head = training.model[-1]

        @mg.compile
        def step(x, y):
            loss = mg.cross_entropy(training.model(x), y)
            if rank == 1:
                loss = (head.weight * head.weight).sum()
            training.replica.backward(loss, weight=len(x))

        for _ in range(3):
            step(*training.data)

    found, _ = faults(work, 2, LIMIT)
    assert len(found) == 2
    for error in found.values():
        assert isinstance(error, errors.GradientError)
        assert "rank 1: none for 0.weight, 0.bias, 2.bias" in str(error)


# -- Refusals --------------------------------------------------------------------------------------


def test_no_sync_around_a_compiled_step():
    def work():
        training = Training()
        step = mg.compile(training.step)
        for _ in range(3):
            step(*training.data)
        with (
            training.replica.no_sync(),
            pytest.raises(errors.GradientError, match="wanted a reduction") as raised,
        ):
            step(*training.data)
        assert "compile a step with all of its micro-batches" in str(raised.value)
        step(*training.data)
        training.replica.check()
        return True

    assert run(work, 2) == [True] * 2


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("inside", "a compiled step inside `with replica.no_sync():`"),
        ("after", "a compiled step after no_sync() outside of it"),
        ("ends", "a compiled step that ends before the reduction"),
        ("unused", "DataParallel(allow_unused=True) in a compiled step"),
    ],
)
def test_a_part_of_a_reduction_is_refused(kind, said):
    def work(rank):
        training = Training(allow_unused=kind == "unused")
        x, y = training.data
        replica = training.replica

        def backward(x, y):
            replica.backward(mg.cross_entropy(training.model(x), y), weight=len(x))

        def ends(x, y):
            with replica.no_sync():
                backward(x, y)

        step = mg.compile(ends if kind == "ends" else backward)
        for _ in range(3):
            if kind == "after":
                with replica.no_sync():
                    backward(x, y)
            if kind == "inside":
                with replica.no_sync():
                    step(x, y)
            else:
                step(x, y)
            training.optimizer.zero_grad()

    found, _ = faults(work, 2, LIMIT)
    assert len(found) == 2
    for error in found.values():
        assert isinstance(error, errors.TraceError)
        assert said in str(error)


@pytest.mark.parametrize("call", ["rank", "size", "barrier", "all_gather", "broadcast"])
def test_other_calls_are_refused(call):
    def work():
        @mg.compile
        def step(x):
            getattr(d, call)(*([x] if call in ("all_gather", "broadcast") else []))
            return x * 2

        for _ in range(2):
            step(mg.ones((2,)))

    with pytest.raises(errors.TraceError, match="would run once, while tracing"):
        run(work, 1)


# -- all_reduce ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "bool"])
def test_a_program_sums_over_the_ranks(dtype):
    def work():
        @mg.compile
        def step(x):
            return d.all_reduce(x * 1 if dtype != "bool" else ~x) + 1

        data = np.arange(6).reshape(2, 3).astype(dtype)
        found = [step(mg.variable(data + (k if dtype != "bool" else False))) for k in range(4)]
        assert len(step.traces) == 1
        return [(x.dtype.name, x.tolist()) for x in found]

    first, second = run(work, 2)
    assert first == second
    wide = dtype if dtype.startswith("float") else "int64"
    for k, (name, found) in enumerate(first):
        data = np.arange(6).reshape(2, 3).astype(dtype)
        mine = ~data if dtype == "bool" else data + k
        assert name == wide
        np.testing.assert_array_equal(found, 2 * mine.astype(wide) + 1)


@pytest.mark.parametrize("op", ["mean", "weighted"])
def test_a_program_computes_means_over_the_ranks(op):
    def work():
        @mg.compile
        def step(x, weight):
            y = d.all_reduce(x.detach(), op, *([weight] if op == "weighted" else []))
            return (x - y).square().sum()

        return [step(mg.variable([1.0 + d.rank()]), w + d.rank()).item() for w in (1.0, 2.0, 3.0)]

    for r, found in enumerate(run(work, 2)):
        for k, value in enumerate(found):
            weights = np.array([1.0 + k, 2.0 + k]) if op == "weighted" else np.ones(2)
            mean = np.average([1.0, 2.0], weights=weights)
            np.testing.assert_allclose(value, (1.0 + r - mean) ** 2, rtol=1e-5)


def test_a_sum_in_a_step_is_not_dropped_merged_or_repeated():
    def work():
        @mg.compile
        def step(x):
            d.all_reduce(x)
            return d.all_reduce(x) + d.all_reduce(x)

        counts = []
        for _ in range(4):
            before = membership.current("rank").count
            step(mg.ones((2,)))
            counts.append(membership.current("rank").count - before)
        return counts

    assert run(work, 2) == [[3] * 4] * 2


def test_a_backward_outside_does_not_sum_again():
    def work():
        w = nn.Parameter(mg.full((2,), 2.0))
        step = mg.compile(lambda x: (w * x * d.all_reduce(x)).sum())
        for k in range(3):
            w.grad = None
            before = membership.current("rank").count
            step(mg.full((2,), 1.0 + k)).backward()
            assert membership.current("rank").count == before + 1
        return w.grad.tolist()

    assert run(work, 2) == [[18.0, 18.0]] * 2


def test_a_program_belongs_to_one_rank():
    step = mg.compile(lambda x: d.all_reduce(x))
    run(lambda: [step(mg.ones((2,))) for _ in range(3)], 1)
    with pytest.raises(errors.DistributedError, match="belongs to another rank"):
        run(lambda: step(mg.ones((2,))), 1)


def test_ranks_that_share_a_step_get_an_error_and_none_waits_for_ever():
    step = mg.compile(lambda x: d.all_reduce(x))
    found, _ = faults(lambda rank: step(mg.ones((2,))), 2, timeout=1.0)
    assert len(found) == 2
    assert all(isinstance(error, errors.DistributedError) for error in found.values())
    assert any("did not come within 1 s" in str(error) for error in found.values())


def test_a_program_of_a_dataparallel_that_is_gone():
    def work():
        training = Training()
        kept = [training.replica]
        training.replica = None

        @mg.compile
        def step(x, y):
            kept[0].backward(mg.cross_entropy(training.model(x), y), weight=len(x))
            training.optimizer.step()
            training.optimizer.zero_grad()

        for _ in range(3):
            step(*training.data)
        kept.clear()
        with pytest.raises(errors.StateError, match="nothing holds it any more"):
            step(*training.data)
        kept.append(d.DataParallel(training.model))
        step(*training.data)
        kept[0].check()
        return True

    assert run(work, 2) == [True] * 2


def test_a_step_on_the_simulator_runs_eagerly():
    def work():
        step = mg.compile(lambda x: d.all_reduce(x) + 1.0)
        x = mg.full((2,), 1.0 + d.rank(), device="simt")
        return [step(x).tolist() for _ in range(3)]

    with pytest.warns(errors.RetraceWarning, match="all_reduce is Python"):
        assert run(work, 2) == [[[4.0, 4.0]] * 3] * 2


def test_a_program_keeps_no_model_alive():
    alive = []

    def work():
        training = Training()
        step = mg.compile(training.step)
        for _ in range(3):
            step(*training.data)
        alive.append(weakref.ref(training.model))

    run(work, 2)
    gc.collect()
    assert [found() for found in alive] == [None, None]
