"""mg.autocast: which functions compute in which dtype, and what a block leaves alone."""

import gc
import threading
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors
from minigrad.array.dtypes import DTYPES
from minigrad.memory.monitor import pool_of
from minigrad.ops.autocast import FLOAT32, LOWER, RULES, TABLE, WIDEST
from minigrad.ops.table import functions
from minigrad.tape.modes import RECORD, state
from minigrad.tape.variable import Variable

HALVES = [d.name for d in DTYPES if d.is_narrow]
DEVICES = ("cpu", "numpy", "simt")
LABELS = [1, 0]


def filled(*shape, dtype="float32"):
    count = int(np.prod(shape))
    data = np.linspace(0.25, 1.0, count, dtype=np.float32).reshape(shape)
    return mg.variable(data, "float32").to(dtype)


CALLS = {  # a call of each function with arguments made by `of`
    "matmul": lambda f, of: f(of(2, 3), of(3, 2)),
    "linear": lambda f, of: f(of(2, 3), of(4, 3), of(4)),
    "conv1d": lambda f, of: f(of(1, 2, 5), of(3, 2, 2), of(3)),
    "conv2d": lambda f, of: f(of(1, 2, 4, 4), of(3, 2, 2, 2), b=of(3)),
    "einsum": lambda f, of: f("ij,jk->i", of(2, 3), of(3, 2)),
    "outer": lambda f, of: f(of(2), of(3)),
    "scaled_dot_product_attention": lambda f, of: f(of(2, 3, 4), of(2, 3, 4), of(2, 3, 4)),
    "layer_norm": lambda f, of: f(of(2, 3), of(3), of(3)),
    "rms_norm": lambda f, of: f(of(2, 3), of(3)),
    "normalize": lambda f, of: f(of(2, 3), axis=-1),
    "cross_entropy": lambda f, of: f(of(2, 3), mg.variable(LABELS)),
    "mse": lambda f, of: f(of(2, 3), of(2, 3)),
    "huber": lambda f, of: f(of(2, 3), of(2, 3)),
    "bce_with_logits": lambda f, of: f(of(2, 3), of(2, 3)),
    "var": lambda f, of: f(of(2, 3), ddof=0),
    "std": lambda f, of: f(of(2, 3), ddof=0),
    "pow": lambda f, of: f(of(2, 3), 3.0),
    "cumsum": lambda f, of: f(of(2, 3), 1),
    "cumprod": lambda f, of: f(of(2, 3), 1),
    "scatter_add": lambda f, of: f(of(3), mg.variable(LABELS), of(2), axis=0),
    "index_add": lambda f, of: f(of(3), mg.variable(LABELS), of(2), axis=0),
    "stack": lambda f, of: f([of(2), of(2)]),
    "concatenate": lambda f, of: f([of(2), of(2)]),
} | dict.fromkeys(
    [
        "exp", "expm1", "log", "log1p", "log2", "reciprocal", "rsqrt", "tan", "softplus", "sum",
        "mean", "prod", "norm", "logsumexp", "softmax", "log_softmax",
    ],
    lambda f, of: f(of(2, 3)),
)  # fmt: skip


def alternating(*dtypes, target=None):
    """A maker of Variables whose dtypes take turns, then cast to a target if there is one."""
    made = []

    def make(*shape):
        x = filled(*shape, dtype=dtypes[len(made) % len(dtypes)])
        made.append(x if target is None else x.to(target))
        return made[-1]

    return make


def network():
    mg.manual_seed(0)
    model = mg.nn.Sequential(mg.nn.Linear(6, 16), mg.nn.ReLU(), mg.nn.Linear(16, 3))
    return model, filled(4, 6), mg.variable([0, 2, 1, 1])


def gradients(model):
    found = [p.grad for p in model.parameters()]
    for p in model.parameters():
        p.grad = None
    return found


def bits(variables):
    return [v.detach().to("cpu").to("float64").numpy().tobytes() for v in variables]


# -- the table -------------------------------------------------------------------------------------


def test_the_table_names_functions_once_and_each_has_a_call_here():
    assert RULES.keys() == CALLS.keys()
    assert RULES.keys() <= functions.keys()
    assert sum(map(len, TABLE.values())) == len(RULES)


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("name", CALLS)
def test_each_function_computes_in_the_dtype_that_the_table_says(name, half):
    call, function, rule = CALLS[name], functions[name], RULES[name]
    for dtype in ("float32", half):
        wanted = {LOWER: half, FLOAT32: "float32", WIDEST: dtype}[rule]
        with mg.autocast(half):
            y = call(function, alternating(dtype))
        by_hand = call(function, alternating(dtype, target=wanted))
        assert y.dtype == wanted
        assert bits([y]) == bits([by_hand])
    with mg.autocast(half):
        y = call(function, alternating("float32", half))
    assert y.dtype == (half if rule is LOWER else "float32")


@pytest.mark.parametrize("name", CALLS)
def test_float64_stays(name):
    with mg.autocast(HALVES[0]):
        y = CALLS[name](functions[name], lambda *shape: filled(*shape, dtype="float64"))
    assert y.dtype == "float64"


def test_operators_methods_and_layers_are_the_functions_that_they_call():
    x, array = filled(2, 2), np.ones((2, 2), np.float32)
    half = x.to("float16")
    convolution = mg.nn.Conv2d(1, 1, 2)
    with mg.autocast("float16"):
        lower = [
            x @ x, x.matmul(x), x @ array, array @ x, half @ x, mg.nn.Linear(2, 1)(x),
            convolution(x.reshape(1, 1, 2, 2)),
        ]  # fmt: skip
        wide = [
            half**2, half.exp(), half.sum(), half.softmax(), mg.nn.LayerNorm(2)(half), half + x,
            half * x, mg.where(half > 0.0, half, x),
        ]  # fmt: skip
        as_given = [half + half, half.relu(), half.T, mg.maximum(half, 1.0), half * 2.0]
    assert {v.dtype for v in lower} == {mg.float16}
    assert {v.dtype for v in wide} == {mg.float32}
    assert {v.dtype for v in as_given} == {mg.float16}


def test_a_reflected_power_is_pow():
    half = filled(2).to("float16")
    with mg.autocast("float16"):
        found = [2.0**half, np.ones(2, np.float32) ** half, 2**half]
        wanted = mg.pow(2.0, half)
    assert [y.dtype for y in found] == ["float32"] * 3
    assert bits(found[:1]) == bits([wanted])
    with pytest.raises(errors.ArgumentTypeError, match="pow: wanted"):
        _ = "a" ** half


@pytest.mark.parametrize("other", [np.ones((2, 2)), "a Variable"])
def test_products_with_float64_are_refused_with_the_dtypes_that_were_passed(other):
    other = mg.ones((2, 2), dtype="float64") if isinstance(other, str) else other
    for product in (mg.matmul, lambda a, b: a @ b, lambda a, b: mg.einsum("ij,jk", a, b)):
        with pytest.raises(errors.DTypeError) as outside:
            product(filled(2, 2), other)
        with mg.autocast("float16"), pytest.raises(errors.DTypeError) as inside:
            product(filled(2, 2), other)
        assert "float32 and float64" in str(inside.value)
        assert "float32 and float64" in str(outside.value)


def test_ints_and_bools_stay():
    x = mg.arange(4).reshape(2, 2)
    with mg.autocast("float16"):
        assert (x @ x).dtype == mg.int64
        assert x.sum().dtype == mg.int64
        assert mg.stack([x, x]).dtype == mg.int64


# -- a whole step ----------------------------------------------------------------------------------


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("device", DEVICES)
def test_a_step_has_the_bits_of_one_that_casts_by_hand(device, half):
    with mg.device(device):
        model, x, labels = network()
        for _ in range(3):  # routes are made at the second call
            with mg.autocast(half):
                y = model(x)
                loss = mg.cross_entropy(y, labels)
            loss.backward()
            found = [y, loss, *gradients(model)]
        first, _, second = model
        h = mg.relu(mg.linear(x.to(half), first.weight.to(half), first.bias.to(half)))
        y = mg.linear(h, second.weight.to(half), second.bias.to(half))
        loss = mg.cross_entropy(y.to("float32"), labels)
        loss.backward()
        assert bits(found) == bits([y, loss, *gradients(model)])
    assert [v.dtype for v in found] == [half] + ["float32"] * 5


@pytest.mark.parametrize("is_inside", [False, True])
def test_a_compiled_step_has_the_bits_of_an_eager_one(is_inside):
    model, x, labels = network()

    def step(x, labels):
        if is_inside:
            with mg.autocast("float16"):
                y = model(x)
                loss = mg.cross_entropy(y, labels)
        else:
            y = model(x)
            loss = mg.cross_entropy(y, labels)
        loss.backward()
        return y, loss

    def run(step):
        if is_inside:
            return bits([*step(x, labels), *gradients(model)])
        with mg.autocast("float16"):
            out = step(x, labels)
        return bits([*out, *gradients(model)])

    compiled = mg.compile(step)
    assert [run(compiled) for _ in range(3)] == [run(step)] * 3


def test_a_program_is_of_the_block_that_it_was_traced_in():
    model, x, _ = network()
    compiled = mg.compile(lambda x: model(x))
    for _ in range(2):
        assert compiled(x).dtype == "float32"
        for half in HALVES:
            with mg.autocast(half):
                assert compiled(x).dtype == half
                with mg.autocast(half, enabled=False):
                    assert compiled(x).dtype == "float32"
    assert "2 programs" in repr(compiled) if len(HALVES) == 1 else "programs" in repr(compiled)


def test_what_a_block_has_cast_is_no_part_of_a_program():
    model, x, _ = network()
    compiled = mg.compile(lambda x: model(x))
    with mg.autocast("float16"):
        model(x)  # casts the weights
        before = compiled(x)
        with mg.no_grad():
            model[0].weight.fill_(0.0)
            model[0].bias.fill_(0.0)
        assert bits([compiled(x)]) == bits([model(x)]) != bits([before])


@pytest.mark.parametrize("is_inside", [False, True])
def test_backward_has_the_dtypes_of_forward(is_inside):
    seen = []

    class Twice(mg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, dy):
            wide = mg.ones((2, 2)) @ mg.ones((2, 2))
            seen.append((dy.dtype, wide.dtype))
            return dy * 2.0

    w = mg.variable([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    with mg.autocast("float16"):
        loss = Twice.apply(w @ w).sum()
        if is_inside:
            loss.backward()
    if not is_inside:
        loss.backward()
    assert seen == [("float16", "float32")]  # the product in backward is not cast
    assert w.grad.dtype == "float32"
    assert w.grad.tolist() == [[14.0, 22.0], [18.0, 26.0]]


def test_gradients_of_gradients():
    w = mg.variable([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    with mg.autocast("float16"):
        (first,) = mg.gradients([(w @ w).sum()], [w], create_graph=True)
        (second,) = mg.gradients([(first * first).sum()], [w])
    assert (first.dtype, second.dtype) == ("float32", "float32")
    wide = w.detach().to("float64")
    wide.requires_grad = True
    (exact,) = mg.gradients([(wide @ wide).sum()], [wide], create_graph=True)
    (exact,) = mg.gradients([(exact * exact).sum()], [wide])
    np.testing.assert_allclose(second.numpy(), exact.numpy(), rtol=1e-2)


def test_training_with_a_scaler_learns():
    model, x, labels = network()
    optimizer, scaler = mg.optim.Adam(model, learning_rate=0.05), mg.optim.GradScaler()
    losses = []
    for _ in range(30):
        with mg.autocast("float16"):
            loss = mg.cross_entropy(model(x), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    assert {p.dtype for p in model.parameters()} == {mg.float32}


# -- casts of weights ------------------------------------------------------------------------------


def test_a_weight_is_cast_once_in_a_block_until_it_is_written():
    model, x, _ = network()
    with mg.autocast("float16"):
        for _ in range(3):
            model(x)
        assert len(state.casts) == 4
        halves = {k: found.half for k, found in state.casts.items()}
        model(x)
        assert all(state.casts[k].half is half for k, half in halves.items())
        with mg.no_grad():
            model[2].bias += 1.0
        y = model(x)
        assert state.casts[id(model[2].bias)].half is not halves[id(model[2].bias)]
        with mg.autocast("float16"):
            assert bits([model(x)]) == bits([y])
    assert state.casts is None
    with mg.autocast("float16"):
        assert not state.casts
        assert bits([model(x)]) == bits([y])


def test_the_casts_of_a_block_are_freed_with_it_without_the_garbage_collector():
    layer, x = mg.nn.Linear(64, 64), mg.randn((4, 64))

    def forward():
        with mg.autocast("bfloat16"), mg.autocast("float16"):
            layer(x)
        return pool_of("cpu").current_bytes

    gc.collect()
    gc.disable()
    try:
        forward()
        assert len({forward() for _ in range(5)}) == 1
    finally:
        gc.enable()


def test_two_losses_of_one_block_go_backward_each_with_its_own_casts():
    model, x, labels = network()
    with mg.autocast("float16"):
        with mg.no_grad():
            model(x)
        losses = [mg.cross_entropy(model(x * k), labels) for k in (1.0, 0.5)]
        for loss in losses:
            loss.backward()
    found = gradients(model)
    for k in (1.0, 0.5):
        with mg.autocast("float16"):
            loss = mg.cross_entropy(model(x * k), labels)
        loss.backward()
    assert bits(found) == bits(gradients(model))


def test_a_write_to_a_view_of_a_cast_weight_changes_no_other_result():
    model, x, _ = network()
    with mg.autocast("float16"):
        wanted = bits([model(x)])
        y = model(x)
        for equation in ("ij->ji", "ij->ij"):
            with mg.no_grad():
                v = mg.einsum(equation, model[0].weight)
                v *= 0.0
        assert bits([model(x)]) == wanted
        with mg.no_grad():
            Variable(state.casts[id(model[0].weight)].half).fill_(0.0)
        assert bits([model(x)]) == wanted
    model[0].weight.grad = None
    with mg.autocast("float16"):
        y = model(x)
        with mg.no_grad():
            v = mg.einsum("ij->ji", model[0].weight)
            v *= 0.0
    y.sum().backward()  # the values that it saved are not those of v
    assert any(v for row in model[0].weight.grad.tolist() for v in row)


@pytest.mark.parametrize("is_exported", [False, True])
def test_a_weight_in_the_memory_of_numpy_is_cast_anew_each_time(is_exported):
    array, x = np.ones((2, 2), np.float32), filled(2, 2)
    w = mg.from_numpy(array, requires_grad=True) if not is_exported else mg.nn.Parameter(array)
    with mg.autocast("float16"):
        first = (x @ w).tolist()
        view = w.detach().numpy(writable=True) if is_exported else array
        view *= 2.0
        assert (x @ w).tolist() == [[2.0 * v for v in row] for row in first]
        view *= 2.0
        assert (x @ w).tolist() == [[4.0 * v for v in row] for row in first]


def test_a_weight_that_dies_in_a_block_is_forgotten():
    x, kept = filled(2, 2), mg.nn.Linear(2, 2, bias=False)
    with mg.autocast("float16"):
        kept(x)
        for _ in range(3):
            layer = mg.nn.Linear(2, 2)
            layer(x)
            gone = weakref.ref(layer.weight)
            del layer
            gc.collect()
            assert gone() is None
        assert list(state.casts) == [id(kept.weight)]


# -- blocks ----------------------------------------------------------------------------------------


def product():
    return (filled(2, 2) @ filled(2, 2)).dtype


def test_nothing_stays_after_a_block():
    with pytest.raises(ZeroDivisionError), mg.autocast("float16"):
        _ = 1 / 0
    with pytest.raises(errors.ShapeError), mg.autocast("float16"):
        filled(2, 3) @ filled(2, 3)
    assert product() == "float32"
    assert (state.path, state.autocast, state.casts) == (RECORD, None, None)


def test_blocks_nest_and_an_inner_one_may_be_off():
    with mg.autocast("float16"):
        with mg.autocast("float16", enabled=False):
            assert product() == "float32"
            with mg.autocast("float16"):
                assert product() == "float16"
            assert product() == "float32"
        assert product() == "float16"
        with mg.no_grad(), mg.inference():
            assert product() == "float16"
    assert product() == "float32"


def test_a_block_decorates_functions_and_generators():
    @mg.autocast("float16")
    def whole():
        return product()

    @mg.autocast("float16")
    def parts():
        yield product()
        yield product()

    assert whole() == "float16"
    running = parts()
    assert [next(running), product(), next(running)] == ["float16", "float32", "float16"]
    running.close()
    assert product() == "float32"


def test_a_block_is_of_its_thread():
    found = []
    with mg.autocast("float16"):
        thread = threading.Thread(target=lambda: found.append(product()))
        thread.start()
        thread.join()
    assert found == ["float32"]


@pytest.mark.parametrize("wrong", ["float32", "float64", "int64", "cuda", "float8", 3, None])
def test_a_dtype_that_is_no_half_is_an_error(wrong):
    with pytest.raises(errors.DTypeError, match="autocast: wanted a dtype of half precision"):
        mg.autocast(wrong)


@pytest.mark.parametrize(
    ("wrong", "meant"), [("bf16", "bfloat16"), ("fp16", "float16"), ("float32", "float16")]
)
def test_the_error_proposes_the_half_that_was_meant(wrong, meant):
    with pytest.raises(errors.DTypeError, match=rf"with mg.autocast\('{meant}'\)"):
        mg.autocast(wrong)


def test_spellings():
    assert repr(mg.autocast(mg.float16)) == "mg.autocast('float16')"
    assert repr(mg.autocast(np.float16, enabled=False)) == "mg.autocast('float16', enabled=False)"
