"""A learner's GradScaler in the engine: it decides, and digits train as with the engine's own."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors

STEPS = 8


class Scaler:
    """PyTorch's state machine in plain NumPy; counts the calls of all its objects."""

    calls = {}

    def __init__(self, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, interval=2000):
        self.now, self.growth, self.backoff = init_scale, growth_factor, backoff_factor
        self.interval, self.growth_tracker, self.found = interval, 0, {}

    def count(self, name):
        self.calls[name] = self.calls.get(name, 0) + 1

    def get_scale(self):
        return self.now

    def scale(self, loss):
        self.count("scale")
        return loss * self.now

    def unscale_(self, optimizer):
        self.count("unscale_")
        if optimizer in self.found:
            raise RuntimeError("unscaled twice")
        self.found[optimizer] = False
        for p in optimizer.parameters:
            p.grad *= 1.0 / self.now
            self.found[optimizer] |= not np.isfinite(p.grad).all()

    def step(self, optimizer):
        self.count("step")
        if not self.found[optimizer]:
            optimizer.step()

    def update(self):
        self.count("update")
        if any(self.found.values()):
            self.now, self.growth_tracker = self.now * self.backoff, 0
        else:
            self.growth_tracker += 1
            if self.growth_tracker == self.interval:
                self.now, self.growth_tracker = self.now * self.growth, 0
        self.found = {}


def scaler_losses(scaler=None, clip=0.5):
    """Digits in float16, with a scale that is too large at first. Returns losses and scales."""
    images, labels = mg.data.load_digits()
    x, labels = images[:96].reshape(96, 64).astype(np.float32), labels[:96].astype(np.int64)
    mg.manual_seed(3)
    model = mg.nn.Sequential(mg.nn.Linear(64, 16), mg.nn.ReLU(), mg.nn.Linear(16, 10))
    optimizer = mg.optim.SGD(model, learning_rate=0.1, momentum=0.9)
    scaler = scaler or mg.optim.GradScaler(2.0**24, growth_interval=3)
    found = []
    for _ in range(STEPS):
        with mg.autocast("float16"):
            loss = mg.cross_entropy(model(mg.variable(x)), labels)
        scaler.scale(loss).backward()
        if clip is not None:
            scaler.unscale_(optimizer)
            mg.optim.clip_grad_norm_(model, clip, error_if_nonfinite=False)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        found += [loss.item(), scaler.get_scale()]
    return [*found, scaler.skipped_steps]


@pytest.fixture(autouse=True)
def no_calls(monkeypatch):
    monkeypatch.setattr(Scaler, "calls", {})


@pytest.mark.parametrize("clip", [None, 0.5])
def test_seam_grad_scaler_runs_while_digits_train_and_gives_the_same_losses(clip):
    reference = scaler_losses(clip=clip)
    assert 0 < reference[-1] < STEPS
    with mg.use(grad_scaler=Scaler):
        mine = scaler_losses(clip=clip)
    assert mine == reference
    assert Scaler.calls == dict.fromkeys(("scale", "unscale_", "step", "update"), STEPS)
    assert scaler_losses(clip=clip) == reference
    assert Scaler.calls["scale"] == STEPS


def test_seam_grad_scaler_decides():
    class Doubles(Scaler):
        def step(self, optimizer):
            pass

        def update(self):
            self.now, self.growth_tracker, self.found = 2 * self.now, 5, {}

    x = mg.nn.Parameter([1.0])
    optimizer, scaler = mg.optim.SGD([x], learning_rate=1.0), mg.optim.GradScaler(4.0)
    with mg.use(grad_scaler=Doubles):
        for _ in range(2):
            scaler.scale((x * 3.0).sum()).backward()
            scaler.step(optimizer)
            assert x.grad.tolist() == [3.0]
            scaler.update()
            optimizer.zero_grad()
    assert x.tolist() == [1.0]
    state = scaler.state_dict()
    assert (state["scale"], state["growth_tracker"], state["skipped_steps"]) == (16.0, 5, 2)


def one_iteration(scaler, optimizer, x, size=1.0):
    scaler.scale((x * size).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()


def test_seam_grad_scaler_takes_over_numbers_and_gives_them_back():
    x = mg.nn.Parameter([1.0])
    optimizer, scaler = mg.optim.SGD([x], 0.1), mg.optim.GradScaler(64.0, growth_interval=3)
    one_iteration(scaler, optimizer, x)
    block = mg.use(grad_scaler=Scaler)
    with block:
        one_iteration(scaler, optimizer, x)
    one_iteration(scaler, optimizer, x)
    assert scaler.get_scale() == 128.0
    with block:
        one_iteration(scaler, optimizer, x, math.inf)
        assert scaler.get_scale() == 64.0
        scaler.scale(x.sum()).backward()
        scaler.unscale_(optimizer)
        scaler.update(32.0)
        one_iteration(scaler, optimizer, x)
        assert (scaler.get_scale(), scaler.state_dict()["growth_tracker"]) == (32.0, 1)
        scaler.scale(x.sum()).backward()
        scaler.unscale_(optimizer)
        scaler.load_state_dict(scaler.state_dict())  # the same numbers, and a new iteration
        optimizer.zero_grad()
        one_iteration(scaler, optimizer, x)
        assert scaler.state_dict()["growth_tracker"] == 2


def test_seam_grad_scaler_of_two_optimizers_leaves_out_one_step():
    x, y = mg.nn.Parameter([1.0]), mg.nn.Parameter([1.0])
    one, two = (mg.optim.SGD([p], learning_rate=1.0) for p in (x, y))
    scaler = mg.optim.GradScaler(8.0)
    with mg.use(grad_scaler=Scaler):
        scaler.scale((x * 2.0).sum() + (y * math.inf).sum()).backward()
        scaler.step(one)
        scaler.step(two)
        scaler.update()
    assert (x.tolist(), y.tolist(), scaler.get_scale()) == ([-1.0], [1.0], 4.0)


def changed(**methods):
    return type("Changed", (Scaler,), methods)


def lost_gradients(self, optimizer):
    self.found[optimizer] = False
    for p in optimizer.parameters:
        p.grad = None


def two_steps(self, optimizer):
    optimizer.step()
    optimizer.step()


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (dict, "scale, unscale_, step, update and get_scale"),
        (Scaler(), "a class with"),
        (changed(scale=lambda self, loss: None), "an array for scale"),
        (changed(scale=lambda self, loss: 0.0), "a positive number for scale"),
        (changed(unscale_=lost_gradients), "an array for the gradient"),
        (changed(step=two_steps), "one call of optimizer.step"),
        (changed(get_scale=lambda self: math.inf), "a positive number for get_scale"),
        (changed(update=lambda self: setattr(self, "growth_tracker", 0.5)), "a count for growth"),
        (changed(update=lambda self: setattr(self, "growth_tracker", None)), "an array for growth"),
    ],
)
def test_seam_grad_scaler_with_a_wrong_part_raises_seam_error(part, message):
    x = mg.nn.Parameter([1.0])
    optimizer, scaler = mg.optim.SGD([x], 0.1), mg.optim.GradScaler()
    with pytest.raises(errors.SeamError, match=message), mg.use(grad_scaler=part):
        one_iteration(scaler, optimizer, x)
    assert mg.is_recording()


def test_seam_grad_scaler_keeps_the_engines_order_of_calls():
    x = mg.nn.Parameter([1.0])
    optimizer, scaler = mg.optim.SGD([x], 0.1), mg.optim.GradScaler()
    with mg.use(grad_scaler=Scaler):
        scaler.scale(x.sum()).backward()
        with pytest.raises(errors.StateError, match="unscaled gradients"):
            optimizer.step()
        scaler.unscale_(optimizer)
        with pytest.raises(errors.StateError, match="called already"):
            scaler.unscale_(optimizer)
    assert Scaler.calls == {"scale": 1, "unscale_": 1}


def test_seam_grad_scaler_error_of_the_learner_says_where_it_ran():
    def fail(self):
        raise ZeroDivisionError

    x = mg.nn.Parameter([1.0])
    optimizer, scaler = mg.optim.SGD([x], 0.1), mg.optim.GradScaler()
    with pytest.raises(ZeroDivisionError) as caught, mg.use(grad_scaler=changed(update=fail)):
        one_iteration(scaler, optimizer, x)
    assert "runs in the engine as grad_scaler (update)" in "".join(caught.value.__notes__)
