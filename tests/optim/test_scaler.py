"""GradScaler: the state machine of PyTorch's, compiled steps, marks on gradients, checkpoints."""

import copy
import gc
import json
import math
import pickle
import weakref
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    MinigradError,
    NonFiniteError,
    StateError,
    TraceError,
)
from tests.optim.reference import FEW

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "scaler.json").read_text(encoding="utf-8")
)
START = GOLDEN["start"]
INFINITE = set(START["infinite"])
STATE = optim.GradScaler().state_dict()


def weighted(*numbers):
    """A scaler, an optimizer and its one weight, as in tests/golden/scaler.py."""
    w = nn.Parameter([START["weight"]], name="w")
    return optim.GradScaler(*numbers), optim.SGD([w], learning_rate=START["rate"]), w


def call(letter, scaler, optimizer, w):
    if letter in "si":
        loss = (w * (math.inf if letter == "i" else 1.0)).sum()
        scaler.scale(loss).backward()
    elif letter == "p":
        scaler.update()
    else:
        {"u": scaler.unscale_, "t": scaler.step}[letter](optimizer)


def everything(scaler, optimizer, w):
    grad = None if w.grad is None else w.grad.tolist()
    return scaler.state_dict(), w.tolist(), grad, list(optimizer.state)


# -- the state machine -----------------------------------------------------------------------------


def is_stricter(calls, k):
    """Whether minigrad refuses call k, which PyTorch takes: it would train on wrong gradients."""
    now = calls[calls.rfind("p", 0, k) + 1 : k]  # the calls of this iteration
    is_unscaled_only = calls[k] in "ut" and not set(now) & set("si")
    is_scaled_again = (
        calls[k] == "t" and "u" in now and now.rfind("u") < max(now.rfind("s"), now.rfind("i"))
    )
    return is_unscaled_only or is_scaled_again


@pytest.mark.parametrize("first", "siutp")
def test_every_order_of_calls_does_what_pytorch_does(first):
    rows = [row for row in GOLDEN["calls"] if row[0][0] == first]
    assert len(rows) == 1 + 5 + 25 + 125
    stricter = 0
    for calls, at, *wanted in rows:
        scaler, optimizer, w = weighted(4.0, 2.0, 0.5, 1)
        for k, letter in enumerate(calls):
            before = everything(scaler, optimizer, w)
            if k == at or is_stricter(calls, k):
                stricter += k != at
                with pytest.raises(StateError):
                    call(letter, scaler, optimizer, w)
                assert everything(scaler, optimizer, w) == before, calls
                break
            call(letter, scaler, optimizer, w)
        else:
            found = scaler.state_dict()
            assert [found["scale"], found["growth_tracker"], w.item()] == wanted, calls
    assert (stricter > 0) == (first in "si")


@pytest.mark.parametrize("is_compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize(("numbers", "wanted"), GOLDEN["runs"])
def test_growth_and_backoff_are_those_of_pytorch(numbers, wanted, is_compiled):
    scaler, optimizer, w = weighted(*numbers)

    def step(factor):
        scaler.scale((w * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()

    run, found = mg.compile(step) if is_compiled else step, []
    for k in range(len(wanted)):
        run(mg.variable([math.inf if k in INFINITE else 1.0]))
        numbers = scaler.state_dict()
        found.append([numbers["scale"], numbers["growth_tracker"]])
    assert found == wanted
    assert scaler.skipped_steps == len(INFINITE)
    assert w.item() == START["weight"] - START["rate"] * (len(wanted) - len(INFINITE))


def test_the_scale_keeps_an_inverse():
    scaler, optimizer, w = weighted(1e-37)
    for _ in range(5):
        for letter in "itp":
            call(letter, scaler, optimizer, w)
        optimizer.zero_grad()
    assert scaler.get_scale() == 2.0**-126
    for letter in "stp":
        call(letter, scaler, optimizer, w)
    assert w.item() == START["weight"] - START["rate"]


def test_update_takes_a_new_scale_and_ends_the_iteration():
    scaler, optimizer, w = weighted()
    call("s", scaler, optimizer, w)
    scaler.unscale_(optimizer)
    scaler.update(16)
    assert (scaler.get_scale(), scaler.skipped_steps) == (16.0, 0)
    with pytest.raises(StateError, match="no scale"):
        scaler.step(optimizer)


def test_lists_of_losses_keep_their_type():
    scaler, _, w = weighted(8.0)
    assert [y.item() for y in scaler.scale([w.sum(), 2.0 * w.sum()])] == [8.0, 16.0]
    assert type(scaler.scale((w.sum(),))) is tuple


def test_a_scaler_that_is_not_enabled_does_nothing():
    scaler, optimizer, w = weighted()
    scaler = optim.GradScaler(enabled=False)
    loss = w.sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert w.item() == START["weight"] - START["rate"]
    assert (scaler.get_scale(), repr(scaler)) == (1.0, "GradScaler(enabled=False)")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_finite_gradients_are_not_left_out(dtype):
    w = nn.Parameter(mg.variable([1.0, 1.0], dtype=dtype))
    scaler, optimizer = optim.GradScaler(1.0), optim.SGD([w], learning_rate=0.0)
    large = {"float32": 3e38, "float64": 1.5e308}[dtype]
    for run in (lambda f: f, mg.compile):

        def step(factor):
            scaler.scale((w * factor).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()

        run(step)(mg.variable([large, large], dtype=dtype))
    assert scaler.skipped_steps == 0


# -- compiled --------------------------------------------------------------------------------------


class Run:
    """A small training run with a scaler; some batches make infinite gradients."""

    def __init__(self, name="Adam", is_compiled=False, device="cpu"):
        mg.manual_seed(3)
        self.device = device
        with mg.device(device):
            self.model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
            self.optimizer = FEW[name].make(self.model)
        self.scaler = optim.GradScaler(growth_interval=2)
        self.step = mg.compile(self.one_step) if is_compiled else self.one_step

    def one_step(self, x, y):
        error = self.model(x) - y
        self.scaler.scale((error * error).mean()).backward()
        self.scaler.unscale_(self.optimizer)
        norm = optim.clip_grad_norm_(self.model, 0.5, error_if_nonfinite=False)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        return norm

    def train(self, first, last):
        for k in range(first, last):
            random = np.random.default_rng(k)
            x, y = (random.standard_normal((4, n)).astype("f4") for n in (3, 2))
            x[0, 0] = math.inf if k in (3, 4, 7) else x[0, 0]
            self.step(*(mg.variable(a).to(self.device) for a in (x, y)))
        return self

    @property
    def parts(self):
        return {"model": self.model, "optimizer": self.optimizer, "scaler": self.scaler}

    def everything(self):
        arrays = {k: v.to("cpu").numpy() for k, v in self.model.state_dict().items()}
        for name, slots in self.optimizer.state_dict()["state"].items():
            arrays |= {f"{name} {slot}": v.to("cpu").numpy() for slot, v in slots.items()}
        return arrays, self.scaler.state_dict()


def assert_same(a, b):
    (arrays, numbers), (others, its) = a.everything(), b.everything()
    assert numbers == its
    assert arrays.keys() == others.keys()
    for name in arrays:
        np.testing.assert_allclose(arrays[name], others[name], 2e-5, 1e-6, err_msg=name)


@pytest.mark.parametrize("name", FEW)
def test_a_compiled_step_does_what_the_eager_one_does(name):
    eager, compiled = Run(name), Run(name, is_compiled=True)
    for k in range(10):
        assert_same(eager.train(k, k + 1), compiled.train(k, k + 1))
    assert eager.scaler.skipped_steps == 3
    assert eager.scaler.get_scale() > 65536.0 / 4


@pytest.mark.parametrize("is_compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", FEW)
def test_a_step_that_is_left_out_changes_no_bit(name, is_compiled):
    run = Run(name, is_compiled).train(0, 3)
    before, numbers = run.everything()
    run.train(3, 5)
    after, its = run.everything()
    assert its["skipped_steps"] - numbers["skipped_steps"] == 2
    assert {k: v.tobytes() for k, v in after.items()} == {k: v.tobytes() for k, v in before.items()}


def test_on_the_simulator():
    eager, compiled = Run(device="simt"), Run(is_compiled=True, device="simt")
    assert_same(eager.train(0, 5), Run().train(0, 5))
    assert_same(eager, compiled.train(0, 5))


def test_scale_and_backward_alone_may_be_compiled():
    scaler, optimizer, w = weighted(4.0)
    scaled = mg.compile(lambda factor: scaler.scale((w * factor).sum()).backward())
    for size in (1.0, 2.0, math.inf, 4.0):
        scaled(mg.variable([size]))
        scaled(mg.variable([size]))
        with pytest.raises(StateError, match="unscaled"):
            optim.clip_grad_norm_([w], 1.0)
        scaler.unscale_(optimizer)
        if math.isfinite(size):
            assert optim.clip_grad_norm_([w], 100.0) == 2.0 * size
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    assert (scaler.get_scale(), scaler.skipped_steps) == (2.0, 1)
    assert w.item() == START["weight"] - START["rate"] * 2.0 * (1.0 + 2.0 + 4.0)


REFUSED = {  # a part of an iteration: the calls before it, in it and after it
    "no update": ("", "st", "p"),
    "no scale": ("s", "tp", ""),
    "no step": ("s", "u", "tp"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_compiled_step_has_whole_iterations(name):
    scaler, optimizer, w = weighted(4.0)
    before, inside, after = REFUSED[name]

    def some(letters):
        for letter in letters:
            call(letter, scaler, optimizer, w)

    step = mg.compile(lambda: some(inside))
    some(before)
    step()  # the first call runs eagerly
    some(after)
    optimizer.zero_grad()
    some(before)
    known = everything(scaler, optimizer, w)
    with pytest.raises(TraceError, match="part of an iteration") as caught:
        step()
    assert "scale()" in caught.value.fix
    assert everything(scaler, optimizer, w) == known
    optimizer.zero_grad()
    some("sutp")  # and the scaler goes on


@pytest.mark.parametrize(
    "use",
    [
        lambda s: s.get_scale(),
        lambda s: s.skipped_steps,
        lambda s: s.load_state_dict(s.state_dict()),
        lambda s: s.load_state_dict(STATE),
        repr,
    ],
)
def test_no_program_reads_the_numbers(use):
    scaler = optim.GradScaler()
    step = mg.compile(lambda: use(scaler))
    step()
    with pytest.raises(TraceError):
        step()


def test_two_iterations_in_one_compiled_step():
    scaler, optimizer, w = weighted(4.0, 2.0, 0.5, 1)

    def step():
        for _ in range(2):
            for letter in "stp":
                call(letter, scaler, optimizer, w)
            optimizer.zero_grad()

    step = mg.compile(step)
    for _ in range(4):
        step()
    assert (scaler.get_scale(), w.item()) == (4.0 * 2**8, START["weight"] - 8 * START["rate"])


# -- several optimizers ----------------------------------------------------------------------------


@pytest.mark.parametrize("is_compiled", [False, True], ids=["eager", "compiled"])
def test_each_of_several_optimizers_is_unscaled_once_and_left_out_alone(is_compiled):
    scaler = optim.GradScaler(16.0)
    a, b = nn.Parameter([1.0]), nn.Parameter([1.0])
    first, second = optim.SGD([a], learning_rate=0.5), optim.SGD([b], learning_rate=0.5)

    def step(x, y):
        scaler.scale((a * x + b * y).sum()).backward()
        scaler.unscale_(first)
        scaler.step(second)
        scaler.step(first)
        scaler.update()
        first.zero_grad()
        second.zero_grad()

    run = mg.compile(step) if is_compiled else step
    run(mg.variable([1.0]), mg.variable([1.0]))
    run(mg.variable([1.0]), mg.variable([math.nan]))
    assert (a.item(), b.item()) == (0.0, 0.5)
    assert (scaler.skipped_steps, scaler.get_scale()) == (1, 8.0)


# -- marks on gradients ----------------------------------------------------------------------------

CLIPPINGS = [
    optim.clip_grad_norm_, optim.clip_grad_norm_per_param_, optim.clip_grad_value_
]  # fmt: skip


def by_manager(make):
    def backward(w, scaler):
        with mg.GradManager([w]) as manager:
            manager.backward(make(w, scaler))

    return backward


WAYS = {
    "loss": lambda w, s: s.scale((w * w).sum()).backward(),
    "mean of a vector": lambda w, s: s.scale(w * w).mean().backward(),
    "sum of two": lambda w, s: (s.scale(w.sum()) + s.scale((w * w).sum())).backward(),
    "with a graph": lambda w, s: s.scale((w * w).sum()).backward(create_graph=True),
    "manager": by_manager(lambda w, s: s.scale((w * w).sum())),
    "accumulated": lambda w, s: (s.scale(w.sum()).backward(), w.sum().backward()),
    "compiled loss": lambda w, s: mg.compile(lambda x: s.scale((x * x).sum()))(w).backward(),
    "compiled model": lambda w, s: s.scale(mg.compile(lambda x: (x * x).sum())(w)).backward(),
}


@pytest.mark.parametrize("clip", CLIPPINGS)
@pytest.mark.parametrize("way", WAYS)
def test_clipping_refuses_gradients_that_are_still_scaled(way, clip):
    w = nn.Parameter([1.0, 2.0], name="w")
    scaler, optimizer = optim.GradScaler(8.0), optim.SGD([w])
    for _ in range(2):
        WAYS[way](w, scaler)
        before = w.grad.tolist()
        with pytest.raises(StateError, match="'w'") as caught:
            clip([w], 0.1)
        assert "unscale_(optimizer)" in caught.value.fix
        assert w.grad.tolist() == before
        scaler.unscale_(optimizer)
        clip([w], 0.1)
        scaler.update()
        optimizer.zero_grad()


@pytest.mark.parametrize("rule", [optim.SGD, optim.Adam])
@pytest.mark.parametrize("wrap", [lambda f: f, mg.compile], ids=["eager", "compiled"])
def test_an_optimizer_refuses_to_step_on_gradients_that_are_still_scaled(wrap, rule):
    w = nn.Parameter([1.0, 2.0], name="w")
    other = nn.Parameter([1.0], name="other")
    optimizer, scaler = rule([other, w], learning_rate=0.5), optim.GradScaler()

    @wrap
    def step(is_scaled):
        loss = (w * w).sum()
        (scaler.scale(loss) if is_scaled else loss).backward()
        optimizer.step()
        optimizer.zero_grad()

    with pytest.raises(StateError, match=r"(?s)step: wanted unscaled.*'w'.*scaler.step"):
        step(True)
    assert w.tolist() == [1.0, 2.0]
    assert not optimizer.state
    w.grad = None
    step(False)  # one that is not scaled steps as ever
    assert w.tolist() != [1.0, 2.0]


def test_an_optimizer_steps_on_unscaled_gradients_without_the_scaler():
    w = nn.Parameter([1.0])
    optimizer, scaler = optim.SGD([w], learning_rate=0.5), optim.GradScaler()
    scaler.scale((w * w).sum()).backward()
    scaler.unscale_(optimizer)
    optimizer.step()
    assert w.tolist() == [0.0]


def test_clipping_inside_a_compiled_step_refuses_them_too():
    scaler, optimizer, w = weighted()

    def step():
        call("s", scaler, optimizer, w)
        if is_clipped:
            optim.clip_grad_norm_([w], 1.0)
        scaler.step(optimizer)
        scaler.update()

    step = mg.compile(step)
    is_clipped = False
    step()
    is_clipped = True
    with pytest.raises(StateError, match="unscaled"):
        step()


@pytest.mark.parametrize("is_managed", [False, True])
def test_a_mark_goes_with_its_gradient(is_managed):
    w = nn.Parameter([1.0])
    manager, scaler = mg.GradManager([w] if is_managed else None), optim.GradScaler()
    scaler.scale(w.sum()).backward()
    w.grad = None
    w.sum().backward()
    assert optim.clip_grad_norm_([w], 1.0) == 1.0
    assert len(manager.attached) == is_managed


def test_another_model_that_is_not_scaled_is_clipped_as_ever():
    scaler, _, w = weighted()
    other = nn.Parameter([1.0])
    scaler.scale(w.sum()).backward()
    other.sum().backward()
    assert optim.clip_grad_norm_([other], 1.0) == 1.0


def test_after_unscaling_infinite_gradients_clip_only_if_asked():
    scaler, optimizer, w = weighted()
    for letter in "iu":
        call(letter, scaler, optimizer, w)
    with pytest.raises(NonFiniteError):
        optim.clip_grad_norm_([w], 1.0)
    assert optim.clip_grad_norm_([w], 1.0, error_if_nonfinite=False) == math.inf
    scaler.step(optimizer)
    assert (w.item(), scaler.skipped_steps) == (START["weight"], 1)


# -- errors ----------------------------------------------------------------------------------------

BAD = {
    "growth of 1": (lambda s, o, w: optim.GradScaler(growth_factor=1.0), ArgumentError, "growth_f"),
    "no growth": (lambda s, o, w: optim.GradScaler(growth_factor=math.nan), ArgumentError, "above"),
    "backoff of 1": (lambda s, o, w: optim.GradScaler(backoff_factor=1), ArgumentError, "below 1"),
    "backoff of 0": (lambda s, o, w: optim.GradScaler(backoff_factor=0.0), ArgumentError, "above"),
    "interval of 0": (lambda s, o, w: optim.GradScaler(growth_interval=0), ArgumentError, "least"),
    "half an interval": (
        lambda s, o, w: optim.GradScaler(growth_interval=1.5), ArgumentTypeError, "an int",
    ),
    "infinite scale": (lambda s, o, w: optim.GradScaler(math.inf), ArgumentError, "init_scale"),
    "negative scale": (lambda s, o, w: optim.GradScaler(-1.0), ArgumentError, "init_scale"),
    "scale beyond float32": (lambda s, o, w: optim.GradScaler(1e39), ArgumentError, "init_scale"),
    "new scale": (lambda s, o, w: s.update(math.nan), ArgumentError, "new_scale"),
    "ints": (lambda s, o, w: s.scale(mg.variable([1])), DTypeError, "floating point"),
    "ints in a list": (lambda s, o, w: s.scale([w, mg.variable([1])]), DTypeError, "floating"),
    "a number": (lambda s, o, w: s.scale(1.0), ArgumentTypeError, "a Variable"),
    "a model": (lambda s, o, w: s.step(nn.Linear(2, 1)), ArgumentTypeError, "an optimizer"),
    "update first": (lambda s, o, w: s.update(), StateError, "looked at"),
    "step first": (lambda s, o, w: s.step(o), StateError, "was scaled"),
    "unscale_ first": (lambda s, o, w: s.unscale_(o), StateError, "was scaled"),
    "no gradients": (lambda s, o, w: (s.scale(w.sum()), s.step(o)), StateError, "none has one"),
    "none to unscale": (
        lambda s, o, w: (s.scale(w.sum()), s.unscale_(o)), StateError, "none has one",
    ),
    "a closure": (lambda s, o, w: s.step(o, w.sum), ArgumentTypeError, r"step\(optimizer\)"),
    "another name": (
        lambda s, o, w: optim.GradScaler(growth=2), ArgumentTypeError, "growth_factor=2.0",
    ),
    "not a state": (lambda s, o, w: s.load_state_dict([1.0]), ArgumentTypeError, "state_dict"),
    "empty state": (lambda s, o, w: s.load_state_dict({}), StateError, "wanted scale"),
    "PyTorch's state": (
        lambda s, o, w: s.load_state_dict({"scale": 1.0, "_growth_tracker": 0}), StateError, "_gr",
    ),
    "a bad number": (
        lambda s, o, w: s.load_state_dict({**s.state_dict(), "growth_factor": 0.5}),
        ArgumentError, "growth_factor",
    ),
    "tracker below 0": (
        lambda s, o, w: s.load_state_dict({**s.state_dict(), "growth_tracker": -1}),
        ArgumentError, "growth_tracker",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_an_error_and_changes_nothing(name):
    scaler, optimizer, w = weighted()
    use, kind, words = BAD[name]
    before = everything(scaler, optimizer, w)
    with pytest.raises(kind, match=words) as caught:
        use(scaler, optimizer, w)
    assert isinstance(caught.value, MinigradError)
    assert caught.value.got
    assert caught.value.where
    assert everything(scaler, optimizer, w) == before


@pytest.mark.parametrize("name", ["step", "unscale_"])
def test_a_call_without_the_optimizer_says_how_to_call_it(name):
    with pytest.raises(ArgumentTypeError) as raised:
        getattr(mg.optim.GradScaler(), name)()
    assert raised.value.fix == f"scaler.{name}(optimizer), after scaler.scale(loss).backward()"


@pytest.mark.skipif(not hasattr(mg, "float16"), reason="minigrad has no float16 yet")
def test_gradients_of_half_precision_are_refused():
    w = nn.Parameter(mg.variable([1.0], dtype="float16"))
    scaler, optimizer = optim.GradScaler(2.0), optim.SGD([w])
    scaler.scale(w.sum()).backward()
    with pytest.raises(DTypeError, match="float32 or float64") as raised:
        scaler.unscale_(optimizer)
    assert "`with mg.autocast('float16'):`" in raised.value.fix


# -- saving, copies --------------------------------------------------------------------------------


@pytest.mark.parametrize("is_compiled", [False, True], ids=["eager", "compiled"])
def test_a_resumed_run_equals_the_uninterrupted_one_bit_for_bit(is_compiled, tmp_path):
    path = tmp_path / "run.safetensors"
    wanted = Run(is_compiled=is_compiled).train(0, 10).everything()
    mg.save(path, **Run(is_compiled=is_compiled).train(0, 5).parts)
    resumed = Run(is_compiled=is_compiled).train(20, 21)
    mg.load(path, **resumed.parts)
    arrays, numbers = resumed.train(5, 10).everything()
    assert numbers == wanted[1]
    assert {k: v.tobytes() for k, v in arrays.items()} == {
        k: v.tobytes() for k, v in wanted[0].items()
    }


def test_a_checkpoint_returns_the_numbers_and_refuses_another_part(tmp_path):
    path, scaler = tmp_path / "x.safetensors", Run().train(0, 5).scaler
    mg.save(path, scaler=scaler, model=nn.Linear(1, 1))
    assert mg.load(path)["scaler"] == scaler.state_dict()
    with pytest.raises(StateError, match="scaler"):
        mg.load(path, model=optim.GradScaler())
    with pytest.raises(StateError, match="scaler"):
        mg.load(path, scaler=nn.Linear(1, 1))


def test_loading_begins_a_new_iteration():
    scaler, optimizer, w = weighted()
    for letter in "su":
        call(letter, scaler, optimizer, w)
    scaler.load_state_dict(scaler.state_dict())
    for letter in "sutp":
        call(letter, scaler, optimizer, w)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_have_the_numbers_and_go_their_own_way(copied):
    scaler, optimizer, w = weighted(4.0, 2.0, 0.5, 1)
    for letter in "itp":
        call(letter, scaler, optimizer, w)
    found = copied(scaler)
    assert found.state_dict() == scaler.state_dict()
    found.update(32.0)
    assert scaler.get_scale() == 2.0


def test_repr_shows_scale_growth_and_skipped_steps():
    scaler, optimizer, w = weighted()
    for letter in "itp":
        call(letter, scaler, optimizer, w)
    assert repr(scaler) == (
        "GradScaler(scale=32768.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, "
        "growth_tracker=0, skipped_steps=1)"
    )


def test_scaler_and_optimizer_are_freed_with_their_last_reference():
    scaler, optimizer, w = weighted()
    for letter in "sutps":
        call(letter, scaler, optimizer, w)
    found = weakref.ref(scaler), weakref.ref(optimizer)
    gc.disable()
    try:
        del optimizer
        assert found[1]() is None
        del scaler
        w.grad = None  # its mark is the scaler
        assert found[0]() is None
    finally:
        gc.enable()


def test_names_of_pytorch_say_what_to_write():
    with pytest.raises(AttributeError, match=r"scaler\.enabled"):
        optim.GradScaler().is_enabled()
    with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'"):
        _ = optim.GradScaler().nonsense
