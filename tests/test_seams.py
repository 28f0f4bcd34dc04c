"""A learner's functions in the place of the engine's parts: each really runs."""

import inspect
import itertools
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors
from minigrad.course.parts import as_update
from minigrad.course.seams import SEAMS
from minigrad.seams import seams
from minigrad.tape.modes import state

STEPS = 6


def digits():
    images, labels = mg.data.load_digits()
    return images[:96].reshape(96, 64).astype(np.float32), labels[:96].astype(np.int64)


def losses(during=None):
    """The losses of a small network on digits: mul, tanh, broadcasts, a diamond, a clone a step."""
    x, labels = digits()
    rng = np.random.default_rng(7)
    parameters = [
        mg.variable((rng.normal(size=s) * 0.2).astype(np.float32), requires_grad=True)
        for s in ((64, 16), (16,), (16,), (16, 10), (10,))
    ]
    w1, b1, scale, w2, b2 = parameters
    data, found, kept = mg.variable(x), [], []
    for _ in range(STEPS):
        h = (data @ w1 + b1).tanh()
        h = h * scale + h  # a diamond, and a broadcast
        loss = mg.cross_entropy(h @ w2 + b2, labels)
        loss.backward()
        found.append(loss.item())
        kept.append(w1.clone().detach())
        with mg.no_grad():
            for p in parameters:
                p.add_(p.grad * -0.5)
                p.grad = None
        if during is not None:
            during()
    snapshots = [k.numpy().copy() for k in kept]
    assert all(np.any(a != b) for a, b in itertools.pairwise(snapshots))
    return found


class Counted:
    """A function that counts its calls."""

    def __init__(self, function):
        self.calls = 0

        def counted(*args):
            self.calls += 1
            return function(*args)

        counted.__signature__ = inspect.signature(function)
        counted.__name__ = function.__name__
        self.function = counted


# -- what a learner writes ---------------------------------------------------------------------


def mul_backward(dy, a, b):
    return dy * b, dy * a


def tanh_backward(dy, y):
    return dy * (1 - y * y)


def add_backward(dy):
    return dy, dy


def topo_order(root):
    order, seen, stack = [], {root}, [(root, iter(root.inputs))]
    while stack:
        node, inputs = stack[-1]
        for i in inputs:
            if i is not None and i not in seen:
                seen.add(i)
                stack.append((i, iter(i.inputs)))
                break
        else:
            order.append(node)
            stack.pop()
    return order


def topo_order_reversed(root):
    return topo_order(root)[::-1]


def find_cycle(root):
    done, path, on_path, stack = set(), [root], {root}, [iter(root.inputs)]
    while stack:
        for i in stack[-1]:
            if i is None or i in done:
                continue
            if i in on_path:
                return [*path[path.index(i) :], i]
            path.append(i)
            on_path.add(i)
            stack.append(iter(i.inputs))
            break
        else:
            node = path.pop()
            on_path.discard(node)
            done.add(node)
            stack.pop()
    return None


def unbroadcast(g, shape):
    while g.ndim > len(shape):
        g = g.sum(axis=0)
    axes = tuple(d for d, n in enumerate(shape) if n == 1 and g.shape[d] != 1)
    return g.sum(axis=axes, keepdims=True) if axes else g


def accumulate(grads, key, g):
    if key in grads:
        grads[key] = grads[key] + g
    else:
        grads[key] = g.copy()


def check_saved(ctx):
    for storage, version in zip(ctx.saved, ctx.versions, strict=True):
        if storage.version != version:
            raise RuntimeError(f"{ctx.op} at {ctx.line}: a saved value was written to")


class CowBuffer:
    """Copy-on-write: a count of owners that forks share."""

    copies = writes = 0

    def __init__(self, array, owners=None):
        self.array, self.owners = array, owners or [1]

    def read(self):
        return self.array

    def fork(self):
        self.owners[0] += 1
        return CowBuffer(self.array, self.owners)

    def write(self):
        CowBuffer.writes += 1
        if self.owners[0] > 1:
            CowBuffer.copies += 1
            self.owners[0] -= 1
            self.array, self.owners = self.array.copy(), [1]
        return self.array


def sgd_update(algorithm, values, gradient, state, hyperparameters):
    values -= hyperparameters["learning_rate"] * gradient


def clip_grad_norm(gradients, max_norm):
    norm = float(np.sqrt(sum(np.sum(g.astype(np.float64) ** 2) for g in gradients)))
    if norm > max_norm:
        for g in gradients:
            g *= max_norm / norm
    return norm


GRAPH_PARTS = [
    ("gradients", {"mul": mul_backward}),
    ("gradients", {"tanh": tanh_backward}),
    ("gradients", {"add": add_backward}),
    ("topological_order", topo_order),
    ("topological_order", topo_order_reversed),
    ("find_cycle", find_cycle),
    ("unbroadcast", unbroadcast),
    ("accumulate", accumulate),
    ("check_saved", check_saved),
]


def test_seams_know_the_operations_in_a_fresh_process():
    code = (
        "from minigrad.course.seams import use; use(gradients={'mul': lambda dy, a, b: (dy, dy)})"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(("name", "part"), GRAPH_PARTS)
def test_seam_of_the_graph_runs_while_digits_train_and_gives_the_same_losses(name, part):
    reference = losses()
    if isinstance(part, dict):
        op, function = next(iter(part.items()))
        counted = Counted(function)
        part = {op: counted.function}
    else:
        counted = Counted(part)
        part = counted.function
    with mg.use(**{name: part}):
        mine = losses()
    assert counted.calls >= STEPS
    np.testing.assert_allclose(mine, reference, rtol=1e-5)
    calls = counted.calls
    assert losses() == reference
    assert counted.calls == calls


def test_seam_storage_copies_each_snapshot_once_and_gives_the_same_losses():
    reference = losses()
    CowBuffer.copies = CowBuffer.writes = 0
    with mg.use(storage=CowBuffer):
        mine = losses()
    assert mine == reference
    assert CowBuffer.writes >= STEPS
    assert CowBuffer.copies == STEPS


def test_seam_storage_is_asked_before_each_write():
    CowBuffer.copies = CowBuffer.writes = 0
    a, step = mg.ones((4,)), mg.ones((4,))
    a.add_(1.0)  # has its kernel bound, as have later writes
    a.sub_(step)
    with mg.use(storage=CowBuffer):
        b = a.clone()
        del b
        a.add_(2.0)
        a.sub_(step)
    assert CowBuffer.writes == 2
    assert a.tolist() == [2.0] * 4


def test_seam_storage_last_owner_writes_without_a_copy():
    CowBuffer.copies = CowBuffer.writes = 0
    with mg.use(storage=CowBuffer):
        a = mg.ones((4,))
        b = a.clone()
        assert CowBuffer.copies == 0
        b.add_(1.0)
        a.add_(2.0)
        a.add_(2.0)
    assert CowBuffer.copies == 1
    assert CowBuffer.writes == 3
    assert a.tolist() == [5.0] * 4
    assert b.tolist() == [2.0] * 4
    b.add_(1.0)  # what the learner's class allocated lives on
    assert b.tolist() == [3.0] * 4


def test_seams_together_give_the_same_losses():
    reference = losses()
    with (
        mg.use(gradients={"mul": mul_backward, "tanh": tanh_backward}, accumulate=accumulate),
        mg.use(topological_order=topo_order, unbroadcast=unbroadcast, check_saved=check_saved),
    ):
        np.testing.assert_allclose(losses(), reference, rtol=1e-5)


def module_losses(clip=None, algorithm="SGD", **numbers):
    """Digits with nn and optim."""
    x, labels = digits()
    mg.manual_seed(3)
    model = mg.nn.Sequential(mg.nn.Linear(64, 16), mg.nn.ReLU(), mg.nn.Linear(16, 10))
    optimizer = getattr(mg.optim, algorithm)(model, learning_rate=0.1, **numbers)
    found = []
    for _ in range(STEPS):
        loss = mg.cross_entropy(model(mg.variable(x)), labels)
        optimizer.zero_grad()
        loss.backward()
        if clip is not None:
            found.append(float(mg.optim.clip_grad_norm_(model.parameters(), clip)))
        optimizer.step()
        found.append(loss.item())
    return found


def test_seam_update_runs_while_digits_train_and_gives_the_same_losses():
    reference, counted = module_losses(), Counted(sgd_update)
    with mg.use(update=counted.function):
        mine = module_losses()
    assert counted.calls == 4 * STEPS
    np.testing.assert_allclose(mine, reference, rtol=1e-5)


def test_seam_update_of_one_algorithm_leaves_the_others_to_the_engine():
    reference, counted = module_losses(), Counted(sgd_update)
    with mg.use(update={"SGD": counted.function}):
        p = mg.nn.Parameter([1.0, 2.0])
        optimizer = mg.optim.Adam([p], learning_rate=0.5)
        (p * p).sum().backward()
        optimizer.step()
        assert counted.calls == 0
        np.testing.assert_allclose(p.tolist(), [0.5, 1.5], rtol=1e-5)
        np.testing.assert_allclose(module_losses(), reference, rtol=1e-5)
    assert counted.calls == 4 * STEPS


def adam_step(p, g, state, learning_rate, betas, eps):
    t = state.get("step", 0) + 1
    m = betas[0] * state.get("first_moment", 0 * p) + (1 - betas[0]) * g
    v = betas[1] * state.get("second_moment", 0 * p) + (1 - betas[1]) * g * g
    step = m / (1 - betas[0] ** t) / (np.sqrt(v / (1 - betas[1] ** t)) + eps)
    return p - learning_rate * step, {"first_moment": m, "second_moment": v, "step": t}


def adamw_step(p, g, state, learning_rate, betas, eps, weight_decay):
    return adam_step(p * (1 - learning_rate * weight_decay), g, state, learning_rate, betas, eps)


@pytest.mark.parametrize(("algorithm", "step"), [("Adam", adam_step), ("AdamW", adamw_step)])
def test_seam_update_takes_steps_that_return_new_arrays(algorithm, step):
    counted = Counted(as_update(step))
    reference = module_losses(algorithm=algorithm, weight_decay=0.3)
    with mg.use(update={algorithm: counted.function}):
        mine = module_losses(algorithm=algorithm, weight_decay=0.3)
    assert counted.calls == 4 * STEPS
    np.testing.assert_allclose(mine, reference, rtol=1e-4)


def test_seam_clip_grad_norm_runs_while_digits_train_and_gives_the_same_losses():
    reference, counted = module_losses(clip=0.3), Counted(clip_grad_norm)
    with mg.use(clip_grad_norm_=counted.function):
        mine = module_losses(clip=0.3)
    assert counted.calls == STEPS
    np.testing.assert_allclose(mine, reference, rtol=1e-5)


def test_seam_unbroadcast_runs_for_linear_layers():
    reference, counted = module_losses(), Counted(unbroadcast)
    with mg.use(unbroadcast=counted.function):
        mine = module_losses()
    assert counted.calls >= 2 * STEPS
    np.testing.assert_allclose(mine, reference, rtol=1e-5)


def test_every_seam_has_a_test_here():
    tested = {name for name, _ in GRAPH_PARTS} | {"storage", "update", "clip_grad_norm_"}
    tested |= {"kernels"}  # in test_seam_kernels.py
    tested |= {"pool", "plan_reuse"}  # in test_seam_memory.py
    tested |= {"grad_scaler"}  # in test_seam_scaler.py
    tested |= {"all_reduce"}  # in test_seam_ranks.py
    assert tested == set(SEAMS)


def test_seam_find_cycle_finds_a_cycle_made_by_surgery():
    x = mg.variable([1.0, 2.0], requires_grad=True)
    a = x.tanh()
    b = a.exp()
    a.node.edges = (b.node,)
    with mg.use(find_cycle=find_cycle), pytest.raises(errors.GraphCycleError, match="->") as caught:
        b.sum().backward()
    assert {n.op for n in caught.value.path} == {"tanh", "exp"}
    assert x.grad is None
    a.node.edges = (x,)


def test_seam_check_saved_raises_the_learners_error():
    x = mg.variable([1.0, 2.0], requires_grad=True)
    with mg.use(check_saved=check_saved):
        y = (x * x).sum()
        with mg.no_grad():
            x.add_(1.0)
        with pytest.raises(RuntimeError, match="mul at test_seams") as caught:
            y.backward()
    assert "check_saved, which runs in the engine" in caught.value.__notes__[0]


def test_seam_is_of_its_thread_only():
    counted, results = Counted(mul_backward), []

    def other():
        x = mg.variable([2.0], requires_grad=True)
        (x * x).backward()
        results.append(x.grad.item())

    with mg.use(gradients={"mul": counted.function}):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert results == [4.0]
    assert counted.calls == 0


def test_seam_inner_block_wins_and_outer_returns():
    def wrong(dy, a, b):
        return 10 * dy, 10 * dy

    x = mg.variable([3.0], requires_grad=True)
    with mg.use(gradients={"mul": wrong}):
        with mg.use(gradients={"mul": mul_backward}):
            (x * 2.0).backward()
        assert x.grad.item() == 2.0
        x.grad = None
        (x * 2.0).backward()
        assert x.grad.item() == 10.0


def test_seam_gradient_of_power_takes_the_learners_names():
    def pow_backward(dy, x, n):
        return dy * n * x ** (n - 1)

    x = mg.variable([2.0, 3.0], requires_grad=True)
    with mg.use(gradients={"pow": pow_backward}):
        (x**3).sum().backward()
    assert x.grad.tolist() == [12.0, 27.0]


def test_seam_block_leaves_no_reference_to_what_was_made_in_it():
    with mg.use(accumulate=accumulate, storage=CowBuffer):
        x = mg.variable([1.0, 2.0], requires_grad=True)
        y = x * x + x
        y.sum().backward()
        z = x.clone()
    ref = weakref.ref(y.node)
    del y
    assert ref() is None
    assert z.tolist() == [1.0, 2.0]


def in_engine(**parts):
    x = mg.variable([[1.0, 2.0]], requires_grad=True)
    b = mg.variable([1.0, 2.0], requires_grad=True)
    with mg.use(**parts):
        y = x * x + mg.variable([[1.0], [2.0]]) * b
        if "storage" in parts:
            z = b.clone().detach()
            z.add_(1.0)
        y.sum().backward()


class NoCopy(CowBuffer):
    """Never copies: every fork writes to the same array."""

    def fork(self):
        return NoCopy(self.array)

    def write(self):
        return self.array


BAD = [
    ({"gradients": {"mul": lambda dy, a, b: dy * b}}, "2 gradients for mul"),
    ({"gradients": {"mul": lambda dy, a, b: (dy, dy, dy)}}, "2 gradients for mul"),
    ({"gradients": {"mul": lambda dy, a, b: (dy.sum(), dy)}}, "shape"),
    ({"gradients": {"mul": lambda dy, a, b: ("no", "no")}}, "an array"),
    ({"gradients": {"mul": lambda dy, a, b, c: (dy, dy)}}, "at most 3 arguments"),
    ({"gradients": {"mull": mul_backward}}, "elementwise operations"),
    ({"gradients": {"matmul": mul_backward}}, "elementwise operations"),
    ({"gradients": mul_backward}, "a dict"),
    ({"topological_order": lambda root: None}, "a list"),
    ({"topological_order": lambda root: [root]}, "nodes once"),
    ({"topological_order": lambda root: topo_order(root) * 2}, "nodes once"),
    ({"topological_order": lambda root: [*topo_order(root)[1:], "x"]}, "of the graph"),
    ({"topological_order": lambda root: topo_order(root)[1:] + topo_order(root)[:1]}, "side"),
    ({"find_cycle": lambda root: [root, root]}, "along inputs"),
    ({"find_cycle": lambda root: True}, "ends where it begins"),
    ({"unbroadcast": lambda g, shape: g}, "shape"),
    ({"unbroadcast": lambda g, shape: None}, "an array"),
    ({"accumulate": lambda grads, key, g: None}, "no such key"),
    ({"accumulate": lambda grads, key, g: grads.update({key: g.sum()})}, "shape"),
    ({"storage": NoCopy}, "a copy"),
    ({"storage": dict}, "read, write and fork"),
    ({"update": 3}, "a function"),
    ({"update": {"SGD": 3}}, "a function"),
    ({"update": {"Adagrad": sgd_update}}, "wanted algorithms"),
    ({"no_such_part": mul_backward}, "the name of a seam"),
    ({}, "at least one part"),
]


@pytest.mark.parametrize(("parts", "message"), BAD)
def test_seam_with_a_wrong_part_raises_seam_error(parts, message):
    with pytest.raises(errors.SeamError, match=message) as caught:
        in_engine(**parts)
    assert "test_seams.py:" in str(caught.value)
    assert mg.is_recording()
    assert not seams.in_backward
    assert state.watchers == 0


def test_seam_check_saved_with_a_false_alarm_raises_seam_error():
    def alarm(ctx):
        raise RuntimeError("modified")

    with pytest.raises(errors.SeamError, match="no error where nothing was written"):
        in_engine(check_saved=alarm)


def test_seam_check_saved_that_sees_nothing_raises_seam_error():
    x = mg.variable([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    with mg.no_grad():
        x.add_(1.0)
    with mg.use(check_saved=lambda ctx: None), pytest.raises(errors.SeamError, match="written to"):
        y.backward()


def test_seam_accumulating_into_the_upstream_gradient_raises():
    def aliased(grads, key, g):
        if key in grads:
            grads[key] += g
        else:
            grads[key] = g

    with pytest.raises(ValueError, match="read-only"):
        in_engine(accumulate=aliased)


def test_seam_under_create_graph_raises_seam_error():
    x = mg.variable([2.0], requires_grad=True)
    with mg.use(gradients={"mul": mul_backward}), pytest.raises(errors.SeamError, match="first"):
        (x * x).backward(create_graph=True)
    assert x.grad is None


def test_seam_error_of_the_learner_says_where_it_ran():
    def broken(dy, a, b):
        raise ZeroDivisionError("oops")

    with pytest.raises(ZeroDivisionError) as caught:
        in_engine(gradients={"mul": broken})
    assert caught.value.__notes__ == [
        "(raised by broken, which runs in the engine as gradients['mul'])"
    ]


def test_type_error_of_a_learners_accumulate_is_told_as_it_is():
    with pytest.raises(TypeError, match="has no len"):
        in_engine(accumulate=lambda grads, key, g: len(3))


@pytest.mark.parametrize("name", ["topological_order", "unbroadcast", "accumulate", "find_cycle"])
def test_seam_runs_in_a_grad_manager_with_flat_gradients(name):
    x, labels = digits()

    def manager_losses():
        mg.manual_seed(5)
        model = mg.nn.Sequential(mg.nn.Linear(64, 16), mg.nn.Tanh(), mg.nn.Linear(16, 10))
        gm = mg.GradManager(model.parameters())
        optimizer = mg.optim.Adam(model, learning_rate=0.01)
        found = []
        for _ in range(STEPS):
            with gm:
                loss = mg.cross_entropy(model(mg.variable(x)), labels)
                gm.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            found.append(loss.item())
        return found

    reference, counted = manager_losses(), Counted(dict(GRAPH_PARTS)[name])
    with mg.use(**{name: counted.function}):
        mine = manager_losses()
    assert counted.calls >= STEPS
    np.testing.assert_allclose(mine, reference, rtol=1e-5)
