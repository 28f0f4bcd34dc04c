"""What Ctrl-C is tried on: see tests/interrupts.py."""

import copy
import types

import numpy as np

import minigrad as mg
from minigrad import nn, optim
from minigrad.tape.backward import commit
from tests.interrupts import Scenario
from tests.optim.reference import FEW

SCENARIOS = {}


def scenario(function):
    """Names a scenario after the function that makes it."""
    SCENARIOS[function.__name__] = lambda: Scenario(function.__name__, *function())
    return function


def world(**parts):
    return types.SimpleNamespace(**parts)


def values(*xs):
    return [None if x is None else x.detach().tolist() for x in xs]


def seeded(make):
    def made():
        mg.manual_seed(0)
        return make()

    return made


def network():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def grads(w):
    return values(*[p.grad for p in w.model.parameters()])


def nothing(w):
    return 0


# -- operations ------------------------------------------------------------------------------------


@scenario
def forward():
    def make():
        x = mg.variable([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        return world(x=x, y=mg.variable([[1.0, 0.5], [2.0, 1.5]]))

    def run(w):
        h = (w.x * w.y + 1.0).exp().tanh()
        h = mg.softmax(h @ w.y, 1) + h.sum(0)
        h = mg.concatenate([h, h[0:1]], 0).reshape((6,))
        float(h.max().detach())

    return make, [run], nothing


@scenario
def views_and_new_ones():
    def make():
        return world(x=mg.variable([[1.0, 2.0], [3.0, 4.0]]))

    def run(w):
        w.x.T[0].clone()
        w.x.numpy().sum()
        mg.zeros((3,)).to("float64")
        copy.deepcopy(w.x)
        w.x[mg.variable([1, 0])]
        mg.from_numpy(np.ones(3, "f4"))
        repr(w.x)

    return make, [run], nothing


@scenario
def random_numbers():
    def make():
        return world(generator=mg.Generator(3))

    def run(w):
        mg.randn((3,), generator=w.generator)

    return make, [run], lambda w: w.generator.counter


@scenario
def in_place():
    def make():
        x = mg.variable([1.0, 2.0, 3.0])
        return world(x=x, clone=x.clone(), w=mg.variable([2.0, 2.0, 2.0], requires_grad=True))

    def look(w):
        return [*values(w.x, w.clone), w.x.requires_grad]

    stages = [
        lambda w: w.x.add_(1.0),
        lambda w: w.x.__setitem__(0, 7.0),
        lambda w: w.x.__setitem__(mg.variable([1, 2]), mg.variable([5.0, 6.0])),
        lambda w: w.clone.mul_(w.x),
        lambda w: w.clone.zero_(),
        lambda w: w.x.mul_(w.w),
        lambda w: w.x.copy_(w.clone),
    ]
    return make, stages, look


# -- backward --------------------------------------------------------------------------------------


def _trained(prepare=lambda w: None):
    def make():
        mg.manual_seed(0)
        w = world(model=network(), x=mg.ones((2, 3)))
        prepare(w)
        return w

    return make


def _loss(w):
    return (w.model(w.x) ** 2).mean()


@scenario
def backward():
    return _trained(), [lambda w: _loss(w).backward()], grads


@scenario
def backward_twice():
    def twice(w):
        y = _loss(w)
        y.backward(retain_graph=True)

    return _trained(), [twice, lambda w: _loss(w).backward()], grads


@scenario
def backward_with_hooks():
    def run(w):
        h = w.model(w.x)
        h.register_hook(lambda g: g * 2.0)
        (h * h).sum().backward()

    def prepare(w):
        w.model[0].weight.register_hook(lambda g: g * 0.5)

    return _trained(prepare), [run], grads


@scenario
def backward_of_second_order():
    def run(w):
        x = mg.variable([[0.1, 0.2, 0.3]], requires_grad=True)
        dx = mg.gradients(w.model(x).sum(), x, create_graph=True)
        (dx * dx).sum().backward()

    return _trained(), [run], grads


@scenario
def backward_with_a_graph():
    def run(w):
        _loss(w).backward(create_graph=True)

    return _trained(), [run, lambda w: w.model.zero_grad()], grads


def halved(p, g):
    return g * 0.5


def whole(group, flat):
    return flat * 0.5


whole.whole_group = True


def _managed(*callbacks):
    def prepare(w):
        w.manager = mg.GradManager(w.model.parameters(), list(callbacks), keep_empty_grad=True)

    def run(w):
        with w.manager:
            w.manager.backward(_loss(w))

    def after(w):
        w.manager.release()

    return _trained(prepare), [run, run, after], lambda w: [grads(w), w.manager._span is None]


@scenario
def manager():
    return _managed()


@scenario
def manager_with_callbacks():
    return _managed(halved, whole)


@scenario
def transforms():
    x, v = [1.0, 2.0], mg.variable([1.0, 0.5])

    def cube(x):
        return (x * x * x).sum()

    def run(w):
        mg.grad(cube)(x)
        mg.hvp(cube, mg.variable(x), v)
        mg.jvp(lambda x: x * x, mg.variable(x), v)

    return world, [run], nothing


# -- optimizers ------------------------------------------------------------------------------------


def _stepping(make_optimizer, *more):
    def prepare(w):
        w.optimizer = make_optimizer(w.model)
        w.schedule = optim.CosineDecay(w.optimizer, 10)

    def step(w):
        w.optimizer.step()

    def look(w):
        kept = [values(*w.optimizer.state.get(p.id, {}).values()) for p in w.optimizer.parameters]
        kept = [k for k in kept if any(np.any(v) for v in k)]  # made, but zero, is as not there
        rates = [w.optimizer.learning_rate, w.schedule.t]
        return [grads(w), values(*w.model.parameters()), kept, rates]

    def scheduled(w):
        w.schedule.step()

    def again(w):
        w.model.zero_grad()
        new = {p: mg.full(p.shape, float(k + 1)) for k, p in enumerate(w.model.parameters())}
        commit({p: g.array for p, g in new.items()})

    def zero(w):
        w.optimizer.zero_grad()

    return _trained(prepare), [again, *more, step, scheduled, zero, again, step, zero], look


def _optimizer(name, make):
    def made():
        return Scenario(name, *_stepping(make))

    SCENARIOS[name] = made


for _name, _row in FEW.items():
    _optimizer(_name.lower(), _row.make)


@scenario
def clipping():
    def prepare(w):
        for k, p in enumerate(w.model.parameters()):
            p.grad = mg.full(p.shape, float(k + 1))

    def look(w):
        return [grads(w), values(*w.model.parameters())]

    stages = [
        lambda w: optim.clip_grad_norm_(w.model, 1.0),
        lambda w: optim.clip_grad_norm_per_param_(w.model, 0.3),
        lambda w: optim.clip_grad_value_(w.model, 0.1),
        lambda w: optim.clip_params_(w.model, -0.2, 0.2),
    ]
    return _trained(prepare), stages, look


@scenario
def scaling():
    def prepare(w):
        w.optimizer, w.scaler = optim.Adam(w.model, 0.1), optim.GradScaler(4.0, growth_interval=1)
        w.scaler.scale(_loss(w)).backward()

    def look(w):
        now = w.scaler._iteration
        done = now.is_begun, list(now.found.values()), len(now.stepped)
        return [grads(w), values(*w.model.parameters()), w.scaler.state_dict(), done]

    stages = [
        lambda w: w.scaler.unscale_(w.optimizer),
        lambda w: w.scaler.step(w.optimizer),
        lambda w: w.scaler.update(),
    ]
    return _trained(prepare), stages, look


@scenario
def plateau():
    def prepare(w):
        w.optimizer = optim.SGD(w.model, 0.5)
        w.schedule = optim.ReduceOnPlateau(w.optimizer, patience=0)

    def step(w):
        w.schedule.step(1.0)

    return _trained(prepare), [step, step, step], lambda w: (
        w.optimizer.learning_rate, w.schedule.t, w.schedule.state_dict(),
    )  # fmt: skip


@scenario
def optimizers_that_change():
    def prepare(w):
        w.optimizer = optim.Adam(w.model, 0.1)
        _loss(w).backward()
        w.optimizer.step()
        w.new = nn.Parameter([1.0, 2.0])
        w.saved = w.optimizer.state_dict()
        w.optimizer.step()

    def look(w):
        kept = [
            values(*state.values()) for state in map(w.optimizer.state.get, [
                p.id for p in w.model.parameters()]) if state
        ]  # fmt: skip
        return kept, len(w.optimizer.parameters), w.optimizer.learning_rate

    def rate(w):
        w.optimizer.learning_rate = 0.3

    stages = [
        lambda w: w.optimizer.load_state_dict(w.saved),
        rate,
        lambda w: any(p is w.new for p in w.optimizer.parameters) or w.optimizer.add(w.new),
    ]
    return _trained(prepare), stages, look


# -- models ----------------------------------------------------------------------------------------


@scenario
def models():
    def prepare(w):
        other = network()
        w.saved = other.state_dict()

    def look(w):
        w.model.state_dict()
        return [values(*w.model.parameters()), [m.training for m in w.model.modules()],
                [str(p.dtype) for p in w.model.parameters()],
                [p.requires_grad for p in w.model.parameters()]]  # fmt: skip

    stages = [
        lambda w: w.model.eval(),
        lambda w: w.model.valid()(w.x),
        lambda w: w.model.clone()(w.x),
        lambda w: copy.deepcopy(w.model),
        lambda w: copy.copy(w.model),
        lambda w: w.model.train(),
        lambda w: w.model.load_state_dict(w.saved),
        lambda w: w.model[0].weight.map(lambda v: v * 2.0),
        lambda w: w.model[0].weight.assign(mg.ones((4, 3))),
        lambda w: w.model.requires_grad_(False),
        lambda w: w.model.to("float64"),
    ]
    return _trained(prepare), stages, look


@scenario
def modules_made_and_changed():
    def make():
        w = world(model=network())
        w.extra = nn.Parameter([1.0])
        return w

    def put(w):
        w.model.extra = w.extra

    def drop(w):
        if "extra" in w.model.__dict__:
            del w.model.extra

    def look(w):
        return [name for name, _ in w.model.named_parameters()], list(w.model._members)

    return make, [put, drop, lambda w: network()], look


# -- modes -----------------------------------------------------------------------------------------


@scenario
def modes_and_blocks():
    def make():
        return world(x=mg.variable([1.0, 2.0], requires_grad=True))

    @mg.no_grad()
    def unrecorded(x):
        return x * 2.0

    def run(w):
        x = w.x
        with mg.no_grad():
            x * x
            with mg.enable_grad():
                x * x
        with mg.inference():
            x * x
        unrecorded(x)
        with mg.device("cpu"):
            mg.ones((2,))
        with mg.memory.timeline():
            x * x
        with mg.memory.poison(), mg.memory.copy_on_saved_write():
            x * x
        with mg.memory.assert_no_growth(nodes=9, nbytes=1 << 20):
            x * x
        with mg.debug.detect_anomaly(), mg.debug.record_grad_function():
            mg.gradients((x * x).sum(), x)

    return make, [run], nothing


@scenario
def functions_of_ones_own():
    class Double(mg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2.0

        @staticmethod
        def backward(ctx, dy):
            return dy * 2.0

    def make():
        return world(x=mg.variable([1.0, 2.0], requires_grad=True))

    return make, [lambda w: Double.apply(w.x).sum().backward()], lambda w: values(w.x.grad)


@scenario
def seams():
    def update(algorithm, values, gradient, kept, hyperparameters):
        values -= 0.1 * gradient

    def prepare(w):
        w.optimizer = optim.SGD(w.model, 0.1)

    def grad(w):
        with mg.use(gradients={"mul": lambda dy, a, b: (dy * b, dy * a)}):
            (w.model[0].weight * 2.0).sum().backward()

    def step(w):
        with mg.use(update=update):
            w.optimizer.step()

    return _trained(prepare), [grad, step], lambda w: [grads(w), values(*w.model.parameters())]


# -- memory ----------------------------------------------------------------------------------------


@scenario
def allocation():
    """The engine's own arrays, of sizes that split, merge, flush and trim."""

    def run(w):
        held = []
        for n in (10, 3000, 10, 300_000, 50, 600_000, 2000, 10):
            held.append(mg.zeros((n,)))
            if len(held) > 3:
                held.pop(0)
        held.clear()
        mg.memory.empty_cache()
        mg.zeros((700,))

    return world, [run], nothing


@scenario
def a_limit_and_poison():
    def run(w):
        with mg.memory.poison():
            mg.zeros((1000,)) + mg.zeros((1000,))
        reserved = mg.memory.stats()["reserved_bytes"]
        mg.memory.set_limit(reserved + (1 << 22))
        mg.zeros((100_000,))
        mg.memory.set_limit(None)

    return world, [run], nothing


# -- compiled steps --------------------------------------------------------------------------------


def _compiled(times):
    """A step that was called so often already."""

    def prepare(w):
        w.optimizer = optim.Adam(w.model, 0.1)
        model, optimizer = w.model, w.optimizer

        @mg.compile
        def step(x):
            loss = (model(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        w.step = step
        for _ in range(times):
            step(w.x)

    def look(w):
        kept = [values(*w.optimizer.state.get(p.id, {}).values()) for p in w.model.parameters()]
        return [grads(w), values(*w.model.parameters()), kept]

    return _trained(prepare), [lambda w: w.step(w.x)], look


@scenario
def compiled_calls():
    return _compiled(3)


@scenario
def compiled_and_compared():
    return _compiled(2)


@scenario
def compiling():
    return _compiled(1)
