"""No reference cycles: what the engine makes goes when the last reference goes.

Each scenario runs with the garbage collector off; then the collector looks for what nothing but
itself would have freed. Cycles of the standard library and of NumPy do not count.

One circle is the user's own: a `.grad` with a graph, that of `backward(create_graph=True)`, leads
back to the Variable whose `.grad` it is, until that is set to None.
"""

import ast
import contextlib
import copy
import gc
import pathlib
import types
import warnings
from collections import Counter

import numpy as np
import pytest

import minigrad as mg
from minigrad import cuda, nn, optim
from minigrad.errors import is_ours
from tests.cuda.kernels import halve
from tests.ops import numeric
from tests.ops.cells import call, draw, public_ops, samples
from tests.ops.test_gradients import DIFFERENTIABLE, problem
from tests.optim.reference import FEW

ROOT = pathlib.Path(mg.__file__).parent


def is_of_the_engine(thing):
    """Whether an object is minigrad's, or would keep such an object alive."""
    if isinstance(thing, types.FunctionType | types.FrameType):
        code = thing.__code__ if isinstance(thing, types.FunctionType) else thing.f_code
        return is_ours(code.co_filename) or code.co_filename.startswith("<")
    kind = thing if isinstance(thing, type) else type(thing)
    return kind.__module__.partition(".")[0] == "minigrad"


@contextlib.contextmanager
def nothing_left():
    """Fails if the block leaves cycles of the engine's objects, bytes or nodes behind."""
    was_on = gc.isenabled()
    gc.disable()
    gc.collect()
    before = mg.memory.stats()
    try:
        yield
        after = mg.memory.stats()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        gc.set_debug(0)
        found = [
            f"{type(thing).__name__} {getattr(thing, '__qualname__', '')}".strip()
            for thing in gc.garbage
            if is_of_the_engine(thing)
        ]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        if was_on:
            gc.enable()
    assert not found, Counter(found)
    for what in ("current_bytes", "live_nodes", "saved_bytes"):
        assert after[what] == before[what], what


def check(scenario):
    """Runs a scenario twice: first kernels are compiled and things are made that stay."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scenario()
        with nothing_left():
            scenario()


def network():
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))


def loss_of(model):
    return (model(mg.ones((2, 4))) ** 2).mean()


def test_the_checker_sees_a_cycle():
    def leaking():
        x = mg.variable([1.0], requires_grad=True)
        (x * x).backward(create_graph=True)  # and x.grad leads to x

    with pytest.raises(AssertionError, match="Variable"):
        check(leaking)
    with pytest.raises(AssertionError, match="current_bytes"), nothing_left():
        kept = mg.ones((3,))
    del kept


# -- operations ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_operations_forward_backward_and_second_order(name):
    def scenario():
        function, arrays, needs, _ = problem(name)
        inputs = numeric.leaves(arrays, needs)
        function(*inputs).sum().backward()
        for x in inputs:
            x.grad = None
        y = function(*inputs)
        y.backward(mg.variable(np.ones(y.shape), requires_grad=True), create_graph=True)
        grads = [x.grad for x in inputs if x.grad is not None and x.grad.requires_grad]
        for x in inputs:
            x.grad = None
        if grads:
            mg.add(sum(g.sum() for g in grads), 0.0).backward()
        for x in inputs:
            x.grad = None

    check(scenario)


def test_operations_without_gradients():
    def scenario():
        for name, op in public_ops().items():
            if name not in DIFFERENTIABLE:
                shapes, attributes = samples(op)[0]
                arrays = draw(op, shapes, attributes, "float32")
                call(op, [mg.variable(a) for a in arrays], attributes)

    check(scenario)


def test_views_writes_and_exports():
    def scenario():
        x = mg.variable([[1.0, 2.0], [3.0, 4.0]])
        x[0].add_(1.0)
        x.clone().mul_(2.0)
        x[0] = 1.0
        x[mg.variable([0])] = 2.0
        x.numpy(writable=True)[0] = 1.0
        np.from_dlpack(x)
        np.concatenate([x, x])
        mg.from_numpy(np.ones(3, "f4")) + copy.deepcopy(x)[0, 0]
        y = mg.variable([1.0, 2.0], requires_grad=True)
        z = y * 1.0
        z += 1.0
        z.mul_(y)
        z.sum().backward()
        repr(x), x.tolist(), x.to("float64")

    check(scenario)


# -- derivatives -----------------------------------------------------------------------------------


def cube(x):
    return (x * x * x).sum()


def test_transforms():
    x, v = [1.0, 2.0], [1.0, 0.5]

    def scenario():
        a, b = mg.variable(x), mg.variable(v)
        mg.grad(cube)(a)
        mg.grad(mg.grad(lambda x: x * x * x))(2.0)
        mg.value_and_grad(cube)(a)
        _, pull = mg.vjp(lambda x: x * x, a)
        pull(b), pull(a)
        mg.jvp(lambda x: x * x, a, b)
        mg.hvp(cube, a, b)
        mg.jacobian(lambda x: x * x)(a)
        mg.hessian(cube)(a)
        c = mg.variable(x, requires_grad=True)
        h = c * c
        mg.gradients((3.0 * h).sum(), [c, h], create_graph=True)
        mg.gradients(mg.gradients((h * h).sum(), c, create_graph=True).sum(), c)

    check(scenario)


def test_hooks_managers_and_modes():
    def whole(group, flat):
        return flat * 0.5

    whole.whole_group = True

    def scenario():
        x = mg.variable([1.0, 2.0], requires_grad=True)
        x.register_hook(lambda g: g * 1.0)
        x.register_post_accumulate_hook(lambda leaf: None)
        for create_graph in (False, True):
            y = x * x
            y.register_hook(lambda g: g * 2.0)
            y.sum().backward(create_graph=create_graph)
            x.grad = None
        model = network()
        model.register_forward_hook(lambda module, inputs, y: y * 2.0)
        for callback in (whole, lambda p, g: g * 0.5):
            manager = mg.GradManager(model.parameters(), [callback], keep_empty_grad=True)
            with manager:
                manager.backward(loss_of(model))
            manager.record()
            loss = loss_of(model)
            manager.release()
        with mg.no_grad(), mg.enable_grad(), mg.inference():
            loss = loss_of(model)
        del loss

    check(scenario)


class Double(mg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2.0

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved
        return dy * 2.0 + 0.0 * x


class Two(mg.Function):
    @staticmethod
    def forward(ctx, x):
        a = x * 2.0
        ctx.save_for_backward(a)
        return a, x * 3.0

    @staticmethod
    def backward(ctx, da, db):
        return da * 2.0 + db * 3.0 + 0.0 * ctx.saved[0]


class ByNumPy(mg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return mg.variable(np.exp(x.numpy()))

    @staticmethod
    def backward(ctx, dy):
        return mg.variable(dy.numpy() * np.exp(ctx.saved[0].numpy()))


class Writing(mg.Function):
    @staticmethod
    def forward(ctx, x):
        x.add_(1.0)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, dy):
        return dy


@pytest.mark.parametrize("function", [Double, Two, ByNumPy, Writing])
def test_functions(function):
    def scenario():
        for create_graph in (False, True):
            x = mg.variable([1.0, 2.0], requires_grad=True)
            y = function.apply(x * 1.0)
            y = y[0] * y[1] if isinstance(y, tuple) else y
            y.sum().backward(create_graph=create_graph)
            x.grad = None

    check(scenario)


# -- models and optimizers -------------------------------------------------------------------------

LAYERS = [
    (lambda: nn.Linear(4, 3), (2, 4)),
    (lambda: nn.Conv2d(2, 3, 3), (1, 2, 5, 5)),
    (lambda: nn.Conv1d(2, 3, 3), (1, 2, 5)),
    (lambda: nn.LayerNorm(4), (2, 4)),
    (lambda: nn.RMSNorm(4), (2, 4)),
    (lambda: nn.BatchNorm1d(4), (3, 4)),
    (lambda: nn.BatchNorm2d(2), (2, 2, 4, 4)),
    (lambda: nn.Dropout(0.5), (2, 4)),
    (lambda: nn.MultiHeadAttention(8, 2), (1, 3, 8)),
    (lambda: nn.TransformerBlock(8, 2), (1, 3, 8)),
    (lambda: nn.MaxPool2d(2), (1, 1, 4, 4)),
    (lambda: nn.ModuleDict({"a": nn.ModuleList([nn.Linear(2, 2)])})["a"][0], (2, 2)),
]


@pytest.mark.parametrize(("make", "shape"), LAYERS)
def test_layers_and_their_copies(make, shape):
    def scenario():
        model, x = make(), mg.variable(np.ones(shape, "f4"), requires_grad=True)
        model(x).sum().backward()
        model.valid()(x)
        model.clone()(x)
        copy.deepcopy(model), copy.copy(model), repr(model), list(model.named_parameters())
        model.eval().load_state_dict(model.state_dict())
        model.train().to("float64")

    check(scenario)


def test_modules_that_change():
    def scenario():
        model = network()
        model[0] = nn.Linear(4, 3)
        model.extra = model.shared = nn.Parameter(np.ones(2, "f4"))
        model.kept = nn.Buffer(np.ones(2, "f4"))
        del model.extra

    check(scenario)


SCHEDULES = [
    lambda o: optim.CosineDecay(o, 10),
    lambda o: optim.StepDecay(o, 2),
    lambda o: optim.ExponentialDecay(o, 0.9),
    lambda o: optim.LinearWarmup(o, 3),
    lambda o: optim.WarmupCosine(o, 2, 6),
]


@pytest.mark.parametrize("name", FEW)
def test_optimizers_schedules_and_clipping(name):
    def scenario():
        for schedule in SCHEDULES:
            model = network()
            groups = [{"parameters": model[0]}, {"parameters": model[2], "learning_rate": 0.5}]
            for given in (model, list(model.parameters()), groups):
                optimizer = FEW[name].make(given)
                rate = schedule(optimizer)
                loss_of(model).backward()
                optim.clip_grad_norm_(model, 1.0)
                optim.clip_grad_norm_per_param_(model, 1.0)
                optim.clip_grad_value_(model, 0.1)
                optimizer.step()
                rate.step()
                optimizer.zero_grad()
                optimizer.load_state_dict(optimizer.state_dict())
                optim.clip_params_(model, -1.0, 1.0)
            new = [nn.Parameter(np.ones(2, "f4")) for _ in range(2)]
            optimizer.add(new[0])
            optimizer.replace(*new)

    check(scenario)


# -- looking on ------------------------------------------------------------------------------------


def test_tools():
    def scenario():
        x = mg.variable([3.0, 4.0], dtype="float64", requires_grad=True)
        with mg.memory.timeline() as timeline:
            (x * x).sum().backward()
        timeline.to_csv(), mg.memory.snapshot(), mg.viz.memory(timeline)
        with mg.debug.record_grad_function() as log:
            (x * x).sum().backward()
        log.to_json(), log.to_dot(), repr(log)
        with mg.debug.detect_anomaly(), mg.memory.poison(), mg.memory.copy_on_saved_write():
            (x * x).sum().backward()
        with mg.memory.assert_no_growth(nodes=100, nbytes=1 << 30):
            (x * x).sum()
        mg.debug.gradcheck(mg.exp, [x]), mg.debug.gradgradcheck(mg.exp, [x])
        picture = mg.viz.graph((x * x + x).sum())
        picture.to_dot(), picture.to_mermaid(), picture.to_svg()
        x.grad = None

    check(scenario)


def test_the_simulated_gpu():
    def scenario():
        with mg.device("simt"):
            model = network()
            optimizer = optim.Adam(model, 0.1)
            (model(mg.ones((2, 4))) ** 2).mean().backward()
            optimizer.step()
        x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
        halve[1, 8](x, out)
        cuda.inspect(halve[1, 8], x, out)
        with pytest.raises(mg.errors.OutOfBoundsError):
            halve[1, 8](x[:4], out)

    check(scenario)


# -- errors ----------------------------------------------------------------------------------------


def orphaned():
    model = network()
    optimizer = optim.SGD(list(model.parameters()), 0.1)
    model[0] = nn.Linear(4, 3)
    optimizer.step()


def in_span(callback):
    x = mg.variable([1.0], requires_grad=True)
    manager = mg.GradManager([x], [callback])
    with manager:
        manager.backward((x * x).sum())


def written():
    x = mg.variable([1.0, 2.0], requires_grad=True)
    y = x.exp()
    z = (y * y).sum()
    with mg.no_grad():
        y.add_(1.0)
    z.backward()


def twice():
    y = mg.variable([1.0], requires_grad=True) * 2.0
    y.backward()
    y.backward()


def hooked():
    y = mg.variable([1.0], requires_grad=True) * 2.0
    y.register_hook(lambda g: 1 / 0)
    y.backward()


def anomalous():
    with mg.debug.detect_anomaly():
        mg.log(mg.variable([-1.0]))


def beyond():
    mg.memory.set_limit(10_000_000)
    try:
        mg.ones((10_000_000,))
    finally:
        mg.memory.set_limit(None)


def not_finite():
    model = network()
    for p in model.parameters():
        p.grad = mg.full(p.shape, float("nan"))
    optim.clip_grad_norm_(model, 1.0)


def grown():
    with mg.memory.assert_no_growth():
        kept = mg.ones((100,))
    del kept


FAILING = [
    lambda: mg.variable([1.0, 2.0], requires_grad=True).backward(),
    lambda: mg.ones((2,)) + mg.ones((3,)),
    lambda: mg.variable([1.0], requires_grad=True).add_(1.0),
    lambda: mg.ones((2,)).nonsense,
    lambda: mg.variable("a"),
    lambda: mg.ones((2,))[5],
    lambda: mg.matmul(mg.ones((2,)), mg.ones((3, 3))),
    lambda: optim.SGD([], 1.0),
    lambda: nn.Linear(2, 2)(mg.ones((3, 3))),
    lambda: network().load_state_dict({}),
    lambda: Double.apply(mg.ones((2,)), 1.0),
    lambda: mg.grad(lambda x: x)(mg.ones((2,))),
    lambda: mg.hvp(lambda x: 1 / 0, mg.ones((2,)), mg.ones((2,))),
    lambda: in_span(lambda p, g: 1 / 0),
    lambda: mg.debug.gradcheck(
        lambda x: x * x.detach(), [mg.variable([1.0], dtype="float64", requires_grad=True)]
    ),
    orphaned, written, twice, hooked, anomalous, beyond, not_finite, grown,
]  # fmt: skip


@pytest.mark.parametrize("fail", FAILING)
def test_errors_that_were_caught(fail):
    def scenario():
        try:
            fail()
        except Exception:
            return
        raise AssertionError("it raised nothing")

    check(scenario)


# -- compiled steps --------------------------------------------------------------------------------


def trained(model, loss_of=lambda model, x: (model(x) ** 2).mean(), device="cpu"):
    """A compiled training step that was called often enough to be traced again."""
    optimizer = optim.Adam(model, 0.1)

    @mg.compile
    def step(x):
        loss = loss_of(model, x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    for rows in (2, 2, 2, 2, 2, 3, 3):
        step(mg.ones((rows, 4), device=device))
    return step


def second_order(model, x):
    h = mg.hvp(lambda x: model(x).sum(), x, mg.ones(x.shape))
    return (h * h).mean() + (model(x) ** 2).mean()


def test_compiled_steps_that_are_dropped():
    def scenario():
        trained(network())
        step = trained(network(), second_order)
        str(step.report()), step.source(), step.memory_plan(), repr(step.graph())
        model = network()
        evaluate = mg.compile(model)
        with mg.no_grad():
            for k in range(6):
                model.train(k % 2 == 0)
                evaluate(mg.ones((2, 4)))
        taking = mg.compile(lambda x: x * 2.0, donate=0)
        for _ in range(3):
            taking(mg.ones((2, 4)))

    check(scenario)


def test_compiled_steps_of_the_simulated_gpu():
    def scenario():
        with mg.device("simt"):
            model = nn.Linear(4, 2)
        trained(model, device="simt")

    check(scenario)


def branching(x):
    return x if x.sum() > 1.0 else x * 2.0


def test_compiled_steps_that_fail():
    kept = []

    def keeping(x):
        kept.append(x * 2.0)
        return x

    def drifting(x):
        kept.append(0.0)
        return x * float(len(kept))

    def raising(x):
        raise ValueError("as it says")

    def picking(x, at):
        return x[at]

    def refusing(x):
        return mg.cross_entropy(x, mg.variable([0, 1 + 2 * (len(kept) > 2)]))

    def scenario():
        for function in (branching, keeping, drifting, raising, refusing):
            step = mg.compile(function)
            for _ in range(4):
                with contextlib.suppress(ValueError, mg.errors.MinigradError):
                    step(mg.ones((2, 3)))
            kept.clear()
        step, total = mg.compile(picking), mg.ones((3,))
        for at in (0, 1, 1, 7):
            with contextlib.suppress(mg.errors.MinigradError):
                step(total, mg.variable([at]))

    check(scenario)


# -- the text --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def functions():
    """[(path, node)] of all functions of the engine."""
    return [
        (path, node)
        for path in sorted(ROOT.rglob("*.py"))
        if path.relative_to(ROOT).parts[0] not in ("course", "grader", "cli")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    ]


def inner_functions(function):
    """{name: node} of the functions that a function defines itself."""
    found, waiting = {}, list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif not isinstance(node, ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
    return found


def test_no_inner_function_calls_itself(functions):
    """It would find itself through a cell that it holds, and take all that it sees along."""
    found = []
    for path, function in functions:
        inner = inner_functions(function)
        uses = {
            name: {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} & set(inner)
            for name, node in inner.items()
        }
        for name in inner:
            seen, waiting = set(), list(uses[name])
            while waiting:
                other = waiting.pop()
                if other not in seen:
                    seen.add(other)
                    waiting += uses[other]
            if name in seen:
                found.append(f"{path}:{inner[name].lineno} {name}")
    assert not found


def of_frame(function):
    """Yields the nodes of a function without those of the functions in it."""
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)


def test_no_frame_keeps_the_error_that_it_raises(functions):
    """`raise error` of a local name: the traceback holds the frame, which holds the error."""
    found = []
    for path, function in functions:
        inside = list(of_frame(function))
        dropped = {h.name for h in inside if isinstance(h, ast.ExceptHandler)}  # Python drops these
        for attempt in inside:
            if isinstance(attempt, ast.Try):
                for line in attempt.finalbody:
                    if isinstance(line, ast.Delete):
                        dropped |= {t.id for t in line.targets if isinstance(t, ast.Name)}
        for node in inside:
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Name):
                name = node.exc.id
                if name[0].islower() and name not in dropped:
                    found.append(f"{path}:{node.lineno} raise {name}")
    assert not found
