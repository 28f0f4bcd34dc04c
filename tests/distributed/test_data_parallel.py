"""DataParallel over threads: equal to one process with the full batch, and what it refuses."""

import contextlib
import gc
import itertools
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad import distributed as d
from minigrad import errors
from minigrad.distributed import engine, rank_threads
from tests.distributed.test_collectives import faults

nn = mg.nn


def examples(n=24, dtype="float32", seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 6)).astype(dtype), rng.integers(0, 4, n)


def make_model(dtype="float32", seed=1):
    """The same values in every thread: the default generator is shared by all."""
    rng = np.random.default_rng(seed)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4))
    for p in model.parameters():
        p.assign(mg.variable(rng.normal(scale=0.4, size=p.shape).astype("float32")))
    return model.to(dtype)


def loss_of(model, x, y):
    return mg.cross_entropy(model(mg.variable(x)), mg.variable(y))


def gradients(model):
    return {name: p.grad.numpy().copy() for name, p in model.named_parameters()}


def full_batch(x, y, dtype="float32"):
    model = make_model(dtype)
    loss_of(model, x, y).backward()
    return gradients(model)


def assert_equal(found, wanted, tolerance=1e-6):
    assert found.keys() == wanted.keys()
    for name, g in wanted.items():
        scale = np.abs(g).max()
        np.testing.assert_allclose(found[name], g, rtol=0, atol=tolerance * scale, err_msg=name)


def cuts(n, ranks):
    """Very unequal shards that cover n rows."""
    edges = [0, *np.cumsum([2 ** (k + 1) - 1 for k in range(ranks - 1)]), n]
    return [slice(a, b) for a, b in itertools.pairwise(edges)]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-6), ("float64", 1e-14)])
def test_unequal_shards_give_the_gradient_of_the_full_batch(ranks, dtype, tolerance):
    x, y = examples(40, dtype)

    def work():
        model = make_model(dtype)
        replica = d.DataParallel(model)
        mine = cuts(40, ranks)[d.rank()]
        replica.backward(loss_of(replica, x[mine], y[mine]), weight=len(x[mine]))
        return gradients(model)

    results = d.run(work, ranks)
    for found in results:
        assert_equal(found, full_batch(x, y, dtype), tolerance)
        assert all((found[name] == results[0][name]).all() for name in found)
    if ranks == 1:
        for name, g in full_batch(x, y, dtype).items():
            np.testing.assert_array_equal(results[0][name], g)


@pytest.mark.parametrize("bucket_bytes", [1, 100, 1 << 20])
def test_the_size_of_buckets_changes_nothing(bucket_bytes):
    x, y = examples()

    def work():
        model = make_model()
        replica = d.DataParallel(model, bucket_bytes=bucket_bytes)
        mine = slice(d.rank() * 12, d.rank() * 12 + 12)
        replica.backward(loss_of(model, x[mine], y[mine]), 12)
        return gradients(model)

    for found in d.run(work, 2):
        assert_equal(found, full_batch(x, y))


@pytest.mark.parametrize("bucket_bytes", [1, 4 << 20])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_micro_batches_of_any_size_give_the_gradient_of_all_their_rows(ranks, bucket_bytes):
    x, y = examples(30)
    parts = np.array_split(np.arange(30), [3, 4, 11, 13, 21, 22, 28, 29])  # 9 parts

    def work():
        model = make_model()
        replica = d.DataParallel(model, bucket_bytes=bucket_bytes)
        mine = parts[d.rank() :: ranks]
        with replica.no_sync():
            for rows in mine[:-1]:
                replica.backward(loss_of(model, x[rows], y[rows]), weight=len(rows))
        alone = gradients(model)
        replica.backward(loss_of(model, x[mine[-1]], y[mine[-1]]), weight=len(mine[-1]))
        return alone, gradients(model)

    results = d.run(work, ranks)
    for _, found in results:
        assert_equal(found, full_batch(x, y))
    if ranks > 1:  # without a reduction they differ
        assert (results[0][0]["0.weight"] != results[1][0]["0.weight"]).any()


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
@pytest.mark.parametrize("make", ["SGD", "Adam"])
def test_training_equals_training_in_one_process(ranks, make):
    x, y = examples(50, "float64")

    def train(batches, backward_of, model):
        optimizer = getattr(mg.optim, make)(model, learning_rate=0.05)
        backward = backward_of(model)
        for epoch in range(2):
            for some, targets in batches(x, y, batch_size=16, seed=epoch):
                loss = loss_of(model, some, targets) if len(some) else None
                backward(loss, len(some))
                optimizer.step()
                optimizer.zero_grad()
        return {name: p.numpy().copy() for name, p in model.named_parameters()}

    alone = train(
        mg.data.batches, lambda model: lambda loss, n: loss.backward(), make_model("float64")
    )

    def work():
        return train(d.batches, lambda model: d.DataParallel(model).backward, make_model("float64"))

    results = d.run(work, ranks)
    for found in results:
        for name, value in alone.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-12)
            np.testing.assert_array_equal(found[name], results[0][name])


def test_a_rank_without_examples_gets_the_gradients_of_the_others():
    x, y = examples()

    def work():
        model = make_model()
        replica = d.DataParallel(model)
        if d.rank() == 1:
            replica.backward(None, weight=0)
        else:
            mine = slice(0, 8) if d.rank() == 0 else slice(8, 24)
            replica.backward(loss_of(model, x[mine], y[mine]), weight=len(x[mine]))
        return gradients(model)

    for found in d.run(work, 3):
        assert_equal(found, full_batch(x, y))


def test_values_and_buffers_are_those_of_rank_0_at_first():
    def work():
        mg_rank = d.rank()
        model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
        with mg.no_grad():
            for x in (*model.parameters(), *model.buffers()):
                x.copy_(mg.full(x.shape, 1.0 + mg_rank, dtype=x.dtype))
        d.DataParallel(model).check()
        return [x.numpy().ravel()[0] for x in (*model.parameters(), *model.buffers())]

    assert d.run(work, 3) == [[1.0] * 6] * 3


def test_parameters_and_buffers_of_no_dimension_are_sent_and_reduced():
    def work():
        model = nn.Module()
        model.p = nn.Parameter(mg.full((), 2.0 + d.rank()))
        model.register_buffer("seen", mg.full((), 5.0 + d.rank()))
        replica = d.DataParallel(model)
        replica.backward(model.p * (1.0 + d.rank()), weight=1)
        return [x.tolist() for x in (model.p, model.p.grad, model.seen)]

    assert d.run(work, 2) == [[2.0, 1.5, 5.0]] * 2


def test_running_statistics_stay_the_same_on_all_ranks():
    x, _ = examples()

    def work():
        model = nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3))
        replica = d.DataParallel(model)
        before = model[1].running_mean.numpy().copy()
        mine = x[d.rank() * 12 : d.rank() * 12 + 12]
        replica.backward(model(mg.variable(mine)).square().sum() / 12, weight=12)
        replica.check()
        return bool((model[1].running_mean.numpy() != before).any())

    assert d.run(work, 2) == [True, True]


def test_halves_are_summed_wide():
    rng = np.random.default_rng(0)
    data = rng.normal(size=(3, 500)).astype("float16")
    wanted = np.average(data.astype("float64"), axis=0, weights=[1, 2, 3])

    def work():
        model = nn.Module()
        model.p = nn.Parameter(mg.ones((500,), dtype="float16"))
        replica = d.DataParallel(model)
        replica.backward((model.p * mg.variable(data[d.rank()])).sum(), weight=1 + d.rank())
        return model.p.grad.numpy()

    for found in d.run(work, 3):
        units = np.spacing(np.abs(wanted).astype("float16")).astype("float64")
        assert (np.abs(found - wanted) <= 0.51 * units).all()  # rounded once


def test_gradients_of_a_scaled_loss_are_still_known_as_scaled():
    x, y = examples()

    def work():
        model = make_model()
        optimizer = mg.optim.SGD(model, learning_rate=0.1)
        scaler = mg.optim.GradScaler(init_scale=1024.0)
        replica = d.DataParallel(model)
        mine = slice(d.rank() * 12, d.rank() * 12 + 12)
        replica.backward(scaler.scale(loss_of(model, x[mine], y[mine])), weight=12)
        scaler.unscale_(optimizer)
        return gradients(model)

    for found in d.run(work, 2):
        assert_equal(found, full_batch(x, y))


def test_an_infinite_loss_that_is_scaled_is_left_to_the_scaler():
    x, y = examples()

    def work():
        model = make_model()
        optimizer, scaler = mg.optim.SGD(model, learning_rate=0.1), mg.optim.GradScaler()
        replica = d.DataParallel(model)
        before = [p.numpy().copy() for p in model.parameters()]
        with mg.autocast("float16"):
            loss = loss_of(replica, x, y) * (np.inf if d.rank() == 1 else 1.0)
        assert loss.dtype == mg.float32
        replica.backward(scaler.scale(loss), weight=24)
        scaler.step(optimizer)
        scaler.update()
        for p, old in zip(model.parameters(), before, strict=True):
            assert (p.numpy() == old).all()
        return scaler.skipped_steps, scaler.get_scale()

    assert d.run(work, 2) == [(1, 32768.0)] * 2


def test_a_rank_without_examples_steps_by_its_scaler_too():
    x, y = examples()

    def work():
        model = make_model()
        optimizer, scaler = mg.optim.SGD(model, learning_rate=1.0), mg.optim.GradScaler()
        replica = d.DataParallel(model)
        before = {name: p.numpy().copy() for name, p in model.named_parameters()}
        for k in range(2):
            with mg.autocast("float16"):
                loss = loss_of(replica, x, y)
            mine = d.rank() == k  # the other one has no examples in this step
            replica.backward(scaler.scale(loss) if mine else None, weight=24 if mine else 0)
            with pytest.raises(errors.StateError, match="wanted unscaled gradients"):
                optimizer.step()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            with pytest.raises(errors.StateError, match=r"no scale\(\) since"):
                scaler.step(optimizer)
        replica.check()
        after = {name: p.numpy() for name, p in model.named_parameters()}
        return {name: before[name] - after[name] for name in after}, scaler.state_dict()

    results = d.run(work, 2)
    for moved, numbers in results:
        assert numbers["growth_tracker"] == 2
        assert all((moved[name] == results[0][0][name]).all() for name in moved)
        assert any((m != 0).any() for m in moved.values())


def test_a_model_on_the_simulator_is_reduced_by_way_of_the_host():
    def work():
        model = nn.Linear(2, 1, bias=False).to("simt")
        replica = d.DataParallel(model)
        x = mg.full((1, 2), 1.0 + d.rank(), device="simt")
        replica.backward(model(x).sum(), weight=1)
        return model.weight.grad.device, model.weight.grad.to("cpu").tolist()

    assert d.run(work, 2) == [("simt", [[1.5, 1.5]])] * 2


def test_a_compiled_forward_can_be_reduced():
    x, y = examples()

    def work():
        model = make_model()
        replica = d.DataParallel(model)
        step = mg.compile(lambda a, b: mg.cross_entropy(model(a), b))
        mine = slice(d.rank() * 12, d.rank() * 12 + 12)
        for _ in range(3):
            for p in model.parameters():
                p.grad = None
            replica.backward(step(mg.variable(x[mine]), mg.variable(y[mine])), weight=12)
        return gradients(model)

    for found in d.run(work, 2):
        assert_equal(found, full_batch(x, y))


# -- While backward runs ---------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_last_layers_are_on_their_way_while_the_first_go_backward(ranks, monkeypatch):
    x, y = examples()
    engines = (rank_threads.ThreadEngine, engine.Engine)
    for one in engines:
        start = one.start_sum

        def noting(self, data, start=start):
            begun[d.rank()].append(data.size)
            return start(self, data)

        monkeypatch.setattr(one, "start_sum", noting)
    begun = {r: [] for r in range(ranks)}

    def work():
        model = make_model()
        replica = d.DataParallel(model, bucket_bytes=1)  # a bucket for each parameter
        seen = []
        hidden = model[0](mg.variable(x))
        hidden.register_hook(lambda g: seen.append([*begun[d.rank()]]))
        loss = mg.cross_entropy(model[2](model[1](hidden)), mg.variable(y))
        replica.backward(loss, weight=24)
        assert seen == [[4, 32]]  # bias and weight of the last layer
        assert begun[d.rank()] == [4, 32, 8, 48]
        return gradients(model)

    for found in d.run(work, ranks):
        assert_equal(found, full_batch(x, y))


@pytest.mark.parametrize("kind", ["hook", "post hook"])
def test_hooks_of_parameters_run_before_their_gradients_are_reduced(kind):
    def halved(leaf):
        leaf.grad = leaf.grad * 0.5

    def work():
        model = nn.Linear(2, 1, bias=False)
        replica = d.DataParallel(model, bucket_bytes=1)
        if kind == "hook":
            model.weight.register_hook(lambda g: g * 0.5)
        else:
            model.weight.register_post_accumulate_hook(halved)
        replica.backward(model(mg.full((1, 2), 2.0 + 4.0 * d.rank())).sum(), weight=1)
        return model.weight.grad.tolist()

    assert d.run(work, 2) == [[[2.0, 2.0]]] * 2


def test_a_parameter_that_is_used_twice_is_reduced_after_both():
    def work():
        model = nn.Module()
        model.p, model.q = nn.Parameter(mg.full((2,), 3.0)), nn.Parameter(mg.full((2,), 5.0))
        replica = d.DataParallel(model, bucket_bytes=1)
        y = ((model.p * model.q).exp().log() * model.p).sum() * (1.0 + d.rank())
        replica.backward(y, weight=1)
        return model.p.grad.tolist(), model.q.grad.tolist()

    for p, q in d.run(work, 2):  # d/dp of p^2 q = 2 p q, d/dq = p^2; the mean of 1 and 2 is 1.5
        np.testing.assert_allclose([p, q], [[45.0] * 2, [13.5] * 2], rtol=1e-5)


def test_a_loss_that_is_a_parameter_is_reduced():
    def work():
        model = nn.Module()
        model.p = nn.Parameter(mg.full((1,), 3.0))
        d.DataParallel(model, bucket_bytes=1).backward(model.p, weight=1 + d.rank())
        return model.p.grad.tolist()

    assert d.run(work, 2) == [[1.0]] * 2


def test_micro_batches_may_each_use_other_parameters():
    def work():
        model = TwoHeads()
        replica = d.DataParallel(model, bucket_bytes=1)
        with replica.no_sync():
            replica.backward(model(mg.ones((1, 2)), "a").sum(), weight=1)
        replica.backward(model(mg.ones((1, 2)), "b").sum(), weight=3)
        return [p.grad.numpy().ravel().tolist() for p in model.parameters()]

    assert d.run(work, 2) == [[[0.25] * 2, [0.25], [0.75] * 2, [0.75]]] * 2


def model_with_a_hook(hook):
    """A model whose backward calls the hook between its two layers."""
    x, y = examples()
    model = make_model()
    replica = d.DataParallel(model, bucket_bytes=1)
    hidden = model[0](mg.variable(x))
    hidden.register_hook(lambda g: hook(model))
    return model, replica, mg.cross_entropy(model[2](model[1](hidden)), mg.variable(y))


def test_a_backward_inside_adds_to_what_is_not_on_its_way_yet():
    def work():
        other = []
        model, replica, loss = model_with_a_hook(lambda model: other.pop().backward())
        other.append(model[0].bias.sum())
        replica.backward(loss, weight=24)
        return gradients(model)

    wanted = full_batch(*examples())
    wanted["0.bias"] += 1.0
    for found in d.run(work, 2):
        assert_equal(found, wanted)


def test_a_backward_inside_that_comes_too_late_is_refused():
    def work(rank):
        other = []
        model, replica, loss = model_with_a_hook(lambda model: other.pop().backward())
        other.append(model[2].bias.sum())
        replica.backward(loss, weight=24)

    found, _ = faults(work, 2)
    assert len(found) == 2
    for error in found.values():
        assert isinstance(error, errors.GradientError)
        assert "on its way to the other ranks already" in str(error)


@pytest.mark.parametrize("is_reduced", [False, True])
def test_in_a_hook_of_another_backward(is_reduced):
    """Of another model, which is reduced as well, or not."""
    x, y = examples()

    def work():
        outer, inner = make_model(), make_model()
        replica = d.DataParallel(inner, bucket_bytes=1)
        mine = slice(d.rank() * 12, d.rank() * 12 + 12)
        other = d.DataParallel(outer, bucket_bytes=1) if is_reduced else None
        hidden = outer[0](mg.variable(x[mine]))
        inside = loss_of(inner, x[mine], y[mine])
        hidden.register_hook(lambda g: replica.backward(inside, weight=12))
        loss = mg.cross_entropy(outer[2](outer[1](hidden)), mg.variable(y[mine]))
        if other is None:
            loss.backward()
        else:
            other.backward(loss, weight=12)
            assert_equal(gradients(outer), full_batch(x, y))
        return gradients(inner)

    for found in d.run(work, 2):
        assert_equal(found, full_batch(x, y))


@pytest.mark.parametrize("is_synced", [False, True])
def test_in_a_hook_of_itself_it_is_refused_on_every_rank(is_synced):
    def work(rank):
        x, y = examples()
        model = make_model()
        replica = d.DataParallel(model)
        hidden, inside = model[0](mg.variable(x)), loss_of(model, x, y)

        def backward_again(g):
            with contextlib.nullcontext() if is_synced else replica.no_sync():
                replica.backward(inside, weight=24)

        if rank == 1:
            hidden.register_hook(backward_again)
        replica.backward(mg.cross_entropy(model[2](model[1](hidden)), mg.variable(y)), 24)

    found, _ = faults(work, 2)
    assert isinstance(found[1], errors.GradientError)
    assert "inside of another one of the same model" in str(found[1])
    assert isinstance(found[0], errors.DistributedError)
    assert "rank 1 raised GradientError: DataParallel.backward inside" in str(found[0])


@pytest.mark.parametrize("kind", [ZeroDivisionError, KeyboardInterrupt])
def test_a_rank_that_fails_while_others_reduce_is_an_error_on_all(kind):
    def fail(model):
        if d.rank() == 1:
            raise kind("no luck")

    def work(rank):
        model, replica, loss = model_with_a_hook(fail)
        try:
            replica.backward(loss, weight=24)
        finally:
            if rank == 1:
                assert all(p.grad is None for p in model.parameters())
            with pytest.raises(errors.DistributedError, match="has failed before"):
                d.barrier()

    found, raised = faults(work)
    assert isinstance(raised, kind)
    assert isinstance(found.pop(1), kind)
    assert len(found) == 2
    for error in found.values():
        assert isinstance(error, errors.DistributedError)
        assert error.ranks == (1,)
        assert f"DataParallel: gradients: rank 1 raised {kind.__name__}: no luck" in str(error)


def test_ranks_that_all_fail_in_backward_can_go_on():
    def fail(model):
        if turns[d.rank()] == 0:
            raise ZeroDivisionError

    def work():
        model, replica, loss = model_with_a_hook(fail)
        with pytest.raises(ZeroDivisionError):
            replica.backward(loss, weight=24)
        turns[d.rank()] = 1
        replica.backward(loss_of(model, *examples()), weight=24)
        return gradients(model)

    turns = [0, 0]
    for found in d.run(work, 2):
        assert_equal(found, full_batch(*examples()))


# -- Refusals --------------------------------------------------------------------------------------


def test_a_plain_backward_is_refused():
    x, y = examples()

    def work(rank):
        model = make_model()
        d.DataParallel(model)  # kept alive by nobody: then the model is as any other
        loss_of(model, x, y).backward()
        replica = d.DataParallel(model)
        for p in model.parameters():
            p.grad = None
        loss_of(replica, x, y).backward()

    found, _ = faults(work, 2)
    for error in found.values():
        assert isinstance(error, errors.GradientError)
        assert "this rank's alone" in str(error)
        assert "replica.backward(loss, weight=len(x))" in str(error)


def test_a_plain_backward_in_a_compiled_step_is_refused():
    x, y = examples()

    def work(rank):
        model = make_model()
        replica = d.DataParallel(model)

        @mg.compile
        def step(a, b):
            loss = mg.cross_entropy(replica(a), b)
            loss.backward()
            return loss

        with pytest.raises(errors.GradientError, match="this rank's alone"):
            step(mg.variable(x), mg.variable(y))
        for p in model.parameters():
            p.grad = None
        step(mg.variable(x), mg.variable(y))

    found, _ = faults(work, 2)
    assert len(found) == 2
    for error in found.values():
        assert isinstance(error, errors.GradientError)
        assert "replica.backward(loss, weight=len(x))" in str(error)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_loss_that_is_not_finite_raises_on_every_rank_and_writes_nothing(bad):
    x, y = examples()

    def work(rank):
        model = make_model()
        replica = d.DataParallel(model)
        loss = loss_of(model, x, y)
        with pytest.raises(errors.NonFiniteError) as raised:
            replica.backward(loss * bad if rank == 1 else loss, weight=3)
        assert all(p.grad is None for p in model.parameters())
        replica.backward(loss_of(model, x, y), weight=3)  # the ranks can go on
        assert_equal(gradients(model), full_batch(x, y))
        raise raised.value

    found, _ = faults(work)
    assert len(found) == 3
    for error in found.values():
        assert f"{bad} on rank 1" in str(error)
        assert "DataParallel.backward to 4 parameters" in str(error)


def test_a_bad_loss_among_micro_batches_is_an_error_on_all():
    x, y = examples()

    def work(rank):
        model = make_model()
        replica = d.DataParallel(model)
        with replica.no_sync():
            loss = loss_of(model, x, y)
            replica.backward(loss * np.nan if rank == 1 else loss, weight=3)
        replica.backward(loss_of(model, x, y), weight=3)

    found, raised = faults(work, 2)
    assert isinstance(raised, errors.NonFiniteError)
    assert "rank 1 raised NonFiniteError" in str(found[0])


class TwoHeads(nn.Module):
    def __init__(self):
        self.a, self.b = nn.Linear(2, 1), nn.Linear(2, 1)

    def forward(self, x, head):
        return (self.a if head == "a" else self.b)(x)


def test_parameters_without_a_gradient_are_named_in_the_same_step():
    def work(rank):
        model = TwoHeads()
        replica = d.DataParallel(model)
        x = mg.ones((3, 2))
        loss = model(x, "a").sum() + (0.0 if rank == 1 else model(x, "b").sum())
        try:
            replica.backward(loss, weight=3)
        finally:
            assert all(p.grad is None for p in model.parameters())

    found, _ = faults(work)
    assert len(found) == 3
    for error in found.values():
        assert isinstance(error, errors.GradientError)
        assert "rank 1: none for b.weight, b.bias" in str(error)


def test_unused_parameters_count_as_zeros_where_allowed():
    def work():
        model = TwoHeads()
        model.c = nn.Linear(1, 1)  # no rank uses it
        replica = d.DataParallel(model, allow_unused=True)
        replica.backward(model(mg.ones((1, 2)), "ab"[d.rank()]).sum(), weight=1 + 2 * d.rank())
        return [
            None if p.grad is None else p.grad.numpy().ravel().tolist() for p in model.parameters()
        ]

    assert d.run(work, 2) == [[[0.25] * 2, [0.25], [0.75] * 2, [0.75], None, None]] * 2


@pytest.mark.parametrize("is_scaled", [False, True])
@pytest.mark.parametrize(
    ("step", "where"),
    [
        (lambda model, optimizer, scaler: optimizer.step(), "SGD.step"),
        (lambda model, optimizer, scaler: mg.optim.clip_grad_norm_(model, 1.0), "clip_grad_norm_"),
        (lambda model, optimizer, scaler: scaler.step(optimizer), "GradScaler.step"),
        (lambda model, optimizer, scaler: scaler.unscale_(optimizer), "GradScaler.unscale_"),
    ],
)
def test_gradients_of_one_rank_are_refused_until_they_are_reduced(step, where, is_scaled):
    x, y = examples()

    def work():
        model = make_model()
        optimizer, scaler = mg.optim.SGD(model, learning_rate=0.1), mg.optim.GradScaler(4.0)
        replica = d.DataParallel(model)
        scale = scaler.scale if is_scaled else lambda loss: loss
        before = model[0].weight.numpy().copy()
        for _ in range(2):
            with replica.no_sync():
                replica.backward(scale(loss_of(model, x, y)), weight=24)
            with pytest.raises(errors.StateError, match=r"are this rank's alone") as raised:
                step(model, optimizer, scaler)
            assert f"{where}: wanted gradients of all ranks" in str(raised.value)
            assert "one replica.backward outside no_sync() before the step" in str(raised.value)
            assert (model[0].weight.numpy() == before).all()
        replica.backward(scale(loss_of(model, x, y)), weight=24)
        if is_scaled:
            scaler.unscale_(optimizer)
        assert_equal(gradients(model), full_batch(x, y))
        optimizer.step()

    d.run(work, 2)


def test_a_step_after_a_reduction_that_failed_is_refused():
    def work(rank):
        model = nn.Linear(2, 1)
        replica = d.DataParallel(model)
        if rank == 1:
            model.weight.register_hook(lambda g: 1 / 0)
        with pytest.raises((errors.DistributedError, ZeroDivisionError)) as raised:
            replica.backward(model(mg.ones((1, 2))).sum(), weight=1)
        if rank == 0:
            with pytest.raises(errors.StateError, match="this rank's alone"):
                mg.optim.SGD(model, learning_rate=0.1).step()
            refused.append(rank)
        raise raised.value

    refused = []
    faults(work, 2)
    assert refused == [0]


def test_gradients_from_before_are_refused():
    x, y = examples()

    def work(rank):
        replica = d.DataParallel(make_model())
        replica.backward(loss_of(replica, x, y), weight=1)
        replica.backward(loss_of(replica, x, y), weight=1)

    found, _ = faults(work, 2)
    assert all("zero_grad() after each step" in str(error) for error in found.values())


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("is_synced", [True, False])
def test_gradients_that_are_gone_do_not_count(ranks, is_synced):
    x, y = examples()

    def work():
        model = make_model()
        replica = d.DataParallel(model)
        optimizer = mg.optim.SGD(model, learning_rate=0.1)
        with replica.no_sync():
            replica.backward(loss_of(model, -x, y), weight=2 + d.rank())
            optimizer.zero_grad()
            if not is_synced:
                replica.backward(loss_of(model, x, y), weight=7)
        replica.backward(loss_of(model, x, y), weight=4)
        return gradients(model)

    for found in d.run(work, ranks):
        assert_equal(found, full_batch(x, y))


@pytest.mark.parametrize("gone", ["one rank", "one parameter", "one parameter, in no_sync"])
def test_gradients_that_are_gone_in_part_are_an_error_on_all_ranks(gone):
    x, y = examples()

    def work(rank):
        model = make_model()
        replica = d.DataParallel(model)
        with replica.no_sync():
            replica.backward(loss_of(model, x, y), weight=2)
            if rank == 1:
                for p in [*model.parameters()][: None if gone == "one rank" else 1]:
                    p.grad = None
            if gone == "one parameter, in no_sync":
                replica.backward(loss_of(model, x, y), weight=2)
        try:
            replica.backward(loss_of(model, x, y), weight=4)
        except errors.GradientError:
            assert all(p.grad is None for p in model.parameters())
            raise

    found, raised = faults(work)
    assert len(found) == 3
    assert isinstance(raised, errors.GradientError)
    assert "none for 0.weight" in str(raised)
    if gone != "one parameter, in no_sync":
        for error in found.values():
            assert "rank 1: none for 0.weight" in str(error)
            assert "all gradients are None now" in str(error)


def test_models_that_differ_are_named_with_their_ranks():
    def work(rank):
        d.DataParallel(nn.Linear(300, 301 if rank == 2 else 302))

    found, _ = faults(work)
    for error in found.values():
        assert error.ranks == (2,)
        assert "rank 2 with another weight, bias" in str(error)
        assert "ranks 0 and 1: float32[302, 300]; rank 2: float32[301, 300]" in str(error)


@pytest.mark.parametrize(
    ("seeds", "others"), [((1, 2, 3), (1, 2)), ((2, 1, 1), (0,)), ((1, 2, 1, 2), (1, 3))]
)
def test_all_ranks_apart_from_most_are_named(seeds, others):
    def work(rank):
        d.DataParallel(make_model(seed=seeds[rank]), broadcast=False)

    found, _ = faults(work, len(seeds))
    assert {error.ranks for error in found.values()} == {others}


def test_replicas_that_drift_apart_are_named_with_their_ranks():
    def work(rank):
        model = make_model()
        replica = d.DataParallel(model, broadcast=False)
        replica.check()
        if rank == 1:
            with mg.no_grad():
                model[2].bias.add_(1e-7)
        replica.check()

    found, _ = faults(work)
    assert len(found) == 3
    for error in found.values():
        assert error.ranks == (1,)
        assert "rank 1 with another 2.bias\n" in str(error)


def test_without_a_broadcast_models_must_come_from_one_seed():
    found, _ = faults(lambda rank: d.DataParallel(make_model(seed=rank), broadcast=False), 2)
    assert all("seed every rank alike" in str(error) for error in found.values())


def test_frozen_parameters_are_left_alone():
    x, y = examples()

    def work():
        model = make_model()
        model[0].requires_grad_(False)
        replica = d.DataParallel(model)
        replica.backward(loss_of(model, x, y), weight=24)
        return [name for name, p in model.named_parameters() if p.grad is not None]

    assert d.run(work, 2) == [["2.weight", "2.bias"]] * 2


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda r: d.DataParallel(3), errors.ArgumentTypeError),
        (lambda r: d.DataParallel(make_model(), bucket_bytes=0), errors.ArgumentError),
        (lambda r: r.backward(mg.ones((2,)), 1), errors.GradientError),
        (lambda r: r.backward(r(mg.ones((2, 6))), 1), errors.GradientError),
        (lambda r: r.backward(3.0, 1), errors.ArgumentTypeError),
        (lambda r: r.backward(r(mg.ones((2, 6))).sum(), -1), errors.ArgumentError),
        (lambda r: r.backward(r(mg.ones((2, 6))).sum()), errors.ArgumentTypeError),
        (lambda r: r.backward(None, 0), errors.ArgumentError),
        (lambda r: r.parameters(), AttributeError),
    ],
)
def test_wrong_arguments_raise(call, kind):
    with pytest.raises(kind):
        d.run(lambda: call(d.DataParallel(make_model())), 1)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda r: mg.DataParallel, "mg.distributed.DataParallel(model)"),
        (lambda r: nn.DataParallel, "mg.distributed.DataParallel(model)"),
        (lambda r: d.SUM, "op='sum'"),
        (lambda r: d.ReduceOp, "op='sum'"),
        (lambda r: r.backward(r(mg.ones((2, 6))).sum()), "weight=len(x)"),
        (lambda r: d.batches(np.arange(3)), "mg.distributed.batches(x, y, batch_size=32)"),
        (lambda r: d.batches(np.arange(3), shuffle=1), "mg.distributed.batches(x, y, batch_size"),
        (lambda r: mg.data.batches(np.arange(3)), "mg.data.batches(x, y, batch_size=32)"),
    ],
)
def test_errors_say_what_to_write_here(call, said):
    with pytest.raises((AttributeError, errors.ArgumentTypeError)) as raised:
        d.run(lambda: call(d.DataParallel(make_model())), 1)
    assert said in str(raised.value)


def test_a_replica_belongs_to_its_rank():
    def work(rank):
        mine = d.DataParallel(make_model())
        shared.append(mine)
        d.barrier()
        shared[0].check() if shared[0] is not mine else shared[1].check()

    shared = []
    found, _ = faults(work, 2)
    assert all("belongs to another rank" in str(error) for error in found.values())


def test_nothing_is_kept_alive():
    def work():
        model = make_model()
        replica = d.DataParallel(model)
        replica.backward(loss_of(model, *examples()), weight=24)
        kept.extend(map(weakref.ref, (model, replica)))

    kept, was_on = [], gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        d.run(work, 2)
        assert [one() for one in kept] == [None] * 4
    finally:
        if was_on:
            gc.enable()


# -- Batches ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
@pytest.mark.parametrize(("n", "batch_size"), [(20, 6), (7, 7), (11, 4), (3, 16)])
@pytest.mark.parametrize("seed", [None, 3])
def test_parts_of_batches_join_to_the_batches_of_one_process(ranks, n, batch_size, seed):
    x, y = np.arange(n), np.arange(n) * 10

    def work():
        return list(d.batches(x, y, batch_size=batch_size, seed=seed))

    results = d.run(work, ranks)
    wanted = list(mg.data.batches(x, y, batch_size=batch_size, seed=seed))
    assert {len(one) for one in results} == {len(wanted)}
    for k, whole in enumerate(wanted):
        sizes = [len(one[k][0]) for one in results]
        assert max(sizes) - min(sizes) <= 1
        for array in (0, 1):
            np.testing.assert_array_equal(
                np.concatenate([one[k][array] for one in results]), whole[array]
            )
    rows = np.concatenate([part for one in results for part, _ in one])
    assert sorted(rows.tolist()) == list(range(n))


def test_batches_with_another_seed_on_one_rank_are_refused():
    found, _ = faults(lambda rank: d.batches(np.arange(4), batch_size=2, seed=rank // 2))
    for error in found.values():
        assert error.ranks == (2,)
        assert "rank 2: batches of 4 rows, batch_size=2, seed=1" in str(error)


def test_batches_check_their_arguments_as_those_of_one_process():
    with pytest.raises(errors.ArgumentError, match="equally many rows"):
        d.run(lambda: d.batches(np.arange(3), np.arange(4), batch_size=2), 1)
