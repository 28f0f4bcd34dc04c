"""What becomes one kernel: softmax, layer norm, cross entropy, Adam, chains; and what must not."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.compiler.cpu.cpu_plan import Plan
from minigrad.compiler.fuse.fused_loop import Loop
from minigrad.compiler.program.items import MatMul, Opaque
from minigrad.compiler.trace.capture import capture
from tests.compiler.interpreter import execute, memory_of
from tests.compiler.running import Run


def variable(*shape, requires_grad=False):
    data = np.random.default_rng(0).standard_normal(shape).astype("f4")
    return mg.variable(data, requires_grad=requires_grad)


def plan_of(f, *args, n_threads=1):
    found = capture(f, args)
    return Plan(found.recording, found.idle, n_threads)


def loops(plan):
    return [item for item in plan.items if type(item) is Loop]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: mg.softmax(x, -1),
        lambda x: mg.log_softmax(x, -1),
        lambda x: (
            mg.exp(x - x.max(axis=-1, keepdims=True))
            / mg.exp(x - x.max(axis=-1, keepdims=True)).sum(-1, True)
        ),
        lambda x: (
            (x - x.mean(-1, True)) / (x.var(-1, ddof=0, keepdims=True) + 1e-5).sqrt() * 2.0 + 1.0
        ),
        lambda x: mg.tanh(x * 2.0 + 1.0) * mg.sigmoid(x),
        lambda x: mg.gelu(x).reshape((-1,)) * 2.0,
        lambda x: (x * x).sum(),
        lambda x: (x * x).sum(0),
        lambda x: ((x * x).sum(0), (x * x).sum(1), (x * x).mean()),
        lambda x: (x // 3.0, x % 3.0),  # an operation has one output, a kernel several
        lambda x: (x.to("float16").to("float32") * 2.0 + x).to("float16"),
    ],
)
def test_one_kernel(f):
    x = variable(6, 5)
    plan = plan_of(f, x)
    assert len(plan.items) == 1, plan.text
    assert len(plan.kernels) == 1


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_the_casts_of_autocast_are_part_of_the_kernels_beside_them(half):
    layer, x = nn.Linear(5, 6), variable(8, 5)

    def forward(x):
        with mg.autocast(half):
            return mg.softmax(mg.tanh(layer(x)) * 2.0 + 1.0, -1)

    items = plan_of(forward, x).items
    (product,) = [k for k, item in enumerate(items) if type(item) is MatMul]
    assert len(items) == product + 2, "all behind the product is one kernel"


def test_layer_norm_and_its_gradient_are_a_kernel_each():
    norm, x = nn.LayerNorm(5), variable(6, 5, requires_grad=True)
    gm = mg.GradManager([*norm.parameters(), x])

    def step(x):
        x.grad = None
        with gm:
            gm.backward(norm(x), mg.ones((6, 5)))

    plan = plan_of(step, x)
    assert len(plan.items) == 1


def test_cross_entropy_its_gradient_and_the_bias_before_it_are_one_kernel():
    layer, x = nn.Linear(7, 5), variable(6, 7)
    labels = mg.variable(np.arange(6) % 5)
    gm = mg.GradManager(layer.parameters())

    def step(x, y):
        with gm:
            loss = mg.cross_entropy(layer(x), y)
            gm.backward(loss)
        return loss

    plan = plan_of(step, x, labels)
    (loop,) = loops(plan)
    names = {i.name for i in loop.instructions}
    assert {"linear", "cross_entropy", "cross_entropy backward", "linear backward"} <= names
    assert sum(type(item) is MatMul for item in plan.items) == 2  # nobody wants x's gradient
    assert sum(type(item) is Opaque for item in plan.items) == 1
    assert type(plan.items[0]) is Opaque, "the check of the labels comes first"


def test_adam_is_one_kernel_for_all_parameters():
    model = nn.Sequential(nn.Linear(7, 5), nn.Tanh(), nn.Linear(5, 3))
    optimizer = mg.optim.Adam(model)
    x = variable(6, 7)

    def step(x):
        optimizer.zero_grad()
        (model(x) * model(x)).sum().backward()
        optimizer.step()

    step(x)
    plan = plan_of(step, x)
    updates = [
        item for item in loops(plan) if len(item.outputs) == 3 and item.dims != () and
        {i.name for i in item.instructions} == {"Adam.step"}
    ]  # fmt: skip
    assert len(updates) == 4, "one call for each parameter"
    calls = [c for region in plan.regions for c in region if c.item in updates]
    assert len({c.kernel.text for c in calls}) == 1, "of one kernel"


def test_a_product_between_stops_fusion_and_a_transpose_too():
    x = variable(6, 6)
    assert len(plan_of(lambda x: mg.tanh(x) @ mg.exp(x), x).items) == 2
    assert len(plan_of(lambda x: mg.tanh(mg.tanh(x) @ x), x).items) == 3
    plan = plan_of(lambda x: mg.exp(x) + mg.exp(x).T, x)
    assert len(loops(plan)) == 2, "the second reads what the first stores, at other places"


def test_a_write_to_what_is_read_keeps_its_order():
    state = variable(4, 3)

    def f(x):
        before = state * 2.0
        state.copy_(x)
        return before, state * 1.0

    x = variable(4, 3)
    found = capture(f, (x,))
    plan = Run(found.recording, (x,))
    wanted = execute(found.recording, memory_of(found.recording, (x,)))
    for a, b in zip(plan.once(), wanted, strict=True):
        np.testing.assert_array_equal(a, b)


BESIDE = [  # what is written, what is read, both views of 32 numbers
    (lambda x: x[0:16:4], lambda x: x[1:9:2]),  # other steps, with no element in common
    (lambda x: x[1::2], lambda x: x[::2]),
    (lambda x: x.reshape(4, 8)[:, 0:3], lambda x: x.reshape(4, 8)[:, 5:8]),
    (lambda x: x.reshape(2, 4, 4)[:, ::2], lambda x: x.reshape(2, 4, 4)[:, 1::2, ::-1]),
    (lambda x: x.reshape(4, 8)[1:3], lambda x: x.reshape(4, 8)[0, ::-1]),
    (lambda x: x.reshape(4, 8)[:, 1], lambda x: x[::8]),
    (lambda x: x, lambda x: x[::-1]),  # these meet
    (lambda x: x[2:], lambda x: x[:-2]),
]


def test_writes_beside_what_is_read_and_over_it():
    def step(states, x):
        for state, (target, source) in zip(states, BESIDE, strict=True):
            target(state).add_(source(state))
            target(state).mul_(x)
        return [source(state) * 2.0 for state, (_, source) in zip(states, BESIDE, strict=True)]

    states = [
        [mg.variable(np.arange(32.0, dtype="f4")) for _ in BESIDE] for _ in ("eager", "compiled")
    ]
    compiled = mg.compile(lambda x: step(states[1], x))
    for k in (1.5, -0.5, 2.0):
        x = mg.variable(np.float32(k))
        for a, b in zip(step(states[0], x), compiled(x), strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
        for a, b in zip(*states, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize(
    "f",
    [
        lambda ints, x: ((ints > 16777216.0).to("float64") * x,),
        lambda ints, x: (ints.to("float64") * x, ints >= 16777217.0),
    ],
)
def test_ints_beside_a_float_number_are_float32_whatever_stands_around(f):
    ints = mg.variable(np.array([16777217, 16777216, 3]))
    x = mg.variable(np.ones(3), dtype="float64")
    got = Run(capture(f, (ints, x)).recording, (ints, x)).once()
    for a, b in zip(got, f(ints, x), strict=True):
        np.testing.assert_array_equal(a, b.numpy())


def test_ints_alone_have_no_type_of_reals():
    ints, x = mg.variable(np.arange(3)), mg.variable(np.ones(3), dtype="float64")
    assert len(plan_of(lambda ints, x: (ints > 1).to("float64") * x, ints, x).items) == 1


def test_a_temporary_takes_over_what_is_read_for_the_last_time():
    x = variable(64, 8)
    w = variable(8, 8)
    plan = plan_of(lambda x: mg.tanh(x @ w) @ w, x)
    assert plan.arena.size == 64 * 8 * 4, "tanh writes over the product"
    assert len(plan.owner) == 1


def test_what_is_read_later_is_not_written_over_and_the_plan_says_why():
    x, w = variable(64, 8), variable(8, 8)

    def f(x):
        h = x @ w
        return mg.tanh(h) @ w + h

    plan = plan_of(f, x)
    assert not plan.owner
    assert any("read later" in why for _, _, why in plan.refused)


def test_equal_kernels_are_one_function():
    w = variable(8, 8)

    def f(x):
        for _ in range(5):
            x = mg.tanh(x @ w)
        return x

    plan = plan_of(f, variable(64, 8))
    assert len(loops(plan)) == 5
    assert len(plan.kernels) <= 2, "in the arena, or into the result"


def test_a_large_hidden_layer_of_few_inputs_is_computed_again():
    model = nn.Sequential(nn.Linear(4, 4096), nn.ReLU(), nn.Linear(4096, 4))
    gm = mg.GradManager(model.parameters())
    x, y = variable(64, 4), mg.variable(np.arange(64) % 4)

    def step(x, y):
        with gm:
            loss = mg.cross_entropy(model(x), y)
            gm.backward(loss)
        return loss

    plan = plan_of(step, x, y)
    assert not any(type(item) is MatMul for item in plan.items), "skinny products are formulas"
    assert plan.arena.size < 64 * 4096 * 4, "the hidden layer is nowhere"
    got = Run(capture(step, (x, y)).recording, (x, y)).once()
    np.testing.assert_allclose(got[0], step(x, y).item(), rtol=1e-5)


def test_updates_come_as_early_as_they_may_so_gradients_do_not_live_together():
    model = nn.Sequential(*[nn.Linear(40, 40) for _ in range(6)])
    optimizer = mg.optim.SGD(model, learning_rate=0.1)
    gm = mg.GradManager(model.parameters())
    x = variable(4, 40)

    def step(x):
        with gm:
            loss = mg.mse(model(x), x)
            gm.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    step(x)
    plan = plan_of(step, x)
    weight = 40 * 40 * 4
    assert plan.arena.separate > 6 * weight, "every gradient is a temporary"
    assert plan.arena.size < 3 * weight, "but few live at the same time"


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("block", [1 << 18, 64 * 160])
def test_bias_and_activation_are_an_epilogue_of_the_product(monkeypatch, n_threads, block):
    monkeypatch.setattr("minigrad.compiler.cpu.schedule.SHARED", 0)
    monkeypatch.setattr("minigrad.compiler.fuse.epilogue.BLOCK", block)
    layer, norm, x = nn.Linear(40, 160), nn.LayerNorm(160), variable(150, 40)

    def f(x):
        with mg.no_grad():
            return mg.relu(layer(x)), norm(layer(x * 2.0)), mg.exp(layer(x * 3.0)).sum()

    found = capture(f, (x,))
    run = Run(found.recording, (x,), n_threads=n_threads)
    products = [item for item in run.plan.items if type(item) is MatMul]
    assert [item.epilogue is not None for item in products] == [True, True, False]
    assert "def tile0" in run.plan.text
    for _ in range(2):
        for a, b in zip(run.once(), f(x), strict=True):
            np.testing.assert_allclose(a, b.detach().numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_epilogue_does_not_write_over_what_the_next_block_multiplies(monkeypatch, n_threads):
    monkeypatch.setattr("minigrad.compiler.cpu.schedule.SHARED", 0)
    monkeypatch.setattr("minigrad.compiler.fuse.epilogue.BLOCK", 64 * 128)
    x, w = variable(128, 128), variable(128, 128)

    def f(x):
        r = mg.tanh(x)
        return (r + w @ r) @ w

    run = Run(capture(f, (x,)).recording, (x,), n_threads=n_threads)
    assert "def tile0" in run.plan.text
    assert any("block by block" in why for _, _, why in run.plan.refused)
    np.testing.assert_allclose(run.once()[0], f(x).numpy(), rtol=1e-3, atol=1e-3)
