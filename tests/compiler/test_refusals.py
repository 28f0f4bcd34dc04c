"""What a traced step cannot do: a TraceError with the person's line and what to do instead."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.compiler.trace.capture import capture
from minigrad.errors import MinigradError, TraceError
from minigrad.ops.creation import generator


class Counting(nn.Module):
    """Counts its calls, and keeps what it computed."""

    def __init__(self):
        self.weight, self.calls, self.last = nn.Parameter([1.0, 2.0]), 0, None

    def forward(self, x):
        return x * self.weight


class Tools:
    """What steps use from outside."""

    def __init__(self):
        mg.manual_seed(0)
        self.model = Counting()
        self.optimizer = optim.SGD(self.model, learning_rate=0.1, momentum=0.9)
        self.plateau = optim.ReduceOnPlateau(self.optimizer)
        self.schedule = optim.CosineDecay(self.optimizer, 10)
        self.manager = mg.GradManager(self.model.parameters())
        self.h = mg.zeros((2,))
        self.labels = mg.variable([0, 1])
        self.generator = mg.Generator(3)
        self.array = np.ones(2, np.float32)
        self.other = nn.Parameter([1.0])


SEEN = mg.zeros((2,))


class ByNumpy(mg.Function):
    """Leaves minigrad in forward, after it has written to memory outside."""

    @staticmethod
    def forward(ctx, x):
        SEEN.copy_(x)
        return mg.variable(np.sin(x.numpy()))


class BackByNumpy(mg.Function):
    """Leaves minigrad in backward."""

    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, dy):
        SEEN.add_(1.0)
        return mg.variable(dy.numpy() * 2.0)


def use(t, x):
    return (t.model(x) ** 2).sum()


def train(t, x):
    with t.manager:
        t.manager.backward(use(t, x))
    t.optimizer.step()


def branch(t, x):
    if use(t, x) > 1.0:
        return x
    return -x


def swallow(t, x):
    try:
        float(use(t, x))
    except Exception:
        return x


def in_backward(t, x):
    with t.manager:
        t.manager.backward(BackByNumpy.apply(t.model(x)).sum())


def keep_attribute(t, x):
    t.model.last = x * 2.0


def count(t, x):
    t.model.calls += 1


def twice(t, x):
    train(t, x)
    t.schedule.step()
    train(t, x)


def into_adopted(t, x):
    y = mg.from_numpy(t.array)
    y += x
    return y


def left_open(t, x):
    t.manager.record()
    return use(t, x)


def set_rate(t, x):
    t.optimizer.learning_rate = 0.2


def set_momentum(t, x):
    t.optimizer.groups[0].momentum = 0.5


def freeze(t, x):
    t.model.weight.requires_grad = False


def recorded_write(t, x):
    t.h += t.model.weight
    return t.h.sum()


def new_buffer(t, x):
    return mg.GradManager([t.other])


def watched(t, x):
    with mg.debug.detect_anomaly():
        return use(t, x)


CASES = {  # what is done -> (the step, part of the message, part of the advice)
    "print": (lambda t, x: str(use(t, x)), "print or repr", "print it outside"),
    "print from outside": (lambda t, x: str(t.h), "print or repr", "print it outside"),
    "print an argument": (lambda t, x: str(x), "print or repr", "print it outside"),
    "f-string": (lambda t, x: f"{use(t, x):.2f}", "an f-string", "print it outside"),
    "numpy()": (lambda t, x: use(t, x).detach().numpy(), "x.numpy()", "function of minigrad"),
    "numpy() outside": (lambda t, x: t.h.numpy(), "x.numpy()", "function of minigrad"),
    "writable": (lambda t, x: t.h.numpy(writable=True), "x.numpy()", "function of minigrad"),
    "np.asarray": (lambda t, x: np.asarray(x * 2.0), "NumPy needs", "function of minigrad"),
    "np.sum": (lambda t, x: np.sum(x * 2.0), "NumPy needs", "function of minigrad"),
    "dlpack": (lambda t, x: np.from_dlpack(x), "DLPack", "function of minigrad"),
    "float()": (lambda t, x: float(use(t, x)), "float()", "leave it a Variable"),
    "int()": (lambda t, x: int(t.h[0]), "int()", "leave it a Variable"),
    "item()": (lambda t, x: use(t, x).item(), "x.item()", "leave it a Variable"),
    "tolist()": (lambda t, x: t.h.tolist(), "x.tolist()", "return it"),
    "range": (lambda t, x: list(range(t.labels[1])), "as an index or a size", "pass it as"),
    "if": (branch, "if, while", "mg.where(condition, a, b)"),
    "data_ptr()": (lambda t, x: t.h.data_ptr(), "data_ptr", "outside the step"),
    "address": (lambda t, x: (x * 2.0).array.address, "has no memory", "h.copy_(new)"),
    "swallowed": (swallow, "float()", "leave it a Variable"),
    "mask": (lambda t, x: x[x > 0.0], "a mask as an index", "mg.where(mask, x, 0.0)"),
    "Function": (lambda t, x: ByNumpy.apply(x), "ByNumpy.forward, by x.numpy()", "minigrad"),
    "backward of Function": (in_backward, "BackByNumpy.backward, by x.numpy()", "minigrad"),
    "generator": (lambda t, x: mg.rand((2,), generator=t.generator), "a custom", "default"),
    "own dropout": (lambda t, x: mg.dropout(x, 0.5, generator=t.generator), "a custom", "default"),
    "manual_seed": (lambda t, x: mg.manual_seed(1), "manual_seed", "outside the step"),
    "from_numpy": (into_adopted, "from_numpy shares", "pass it as an argument"),
    "attribute": (count, "Counting.calls = ...", "self.h.copy_(new)"),
    "kept attribute": (keep_attribute, "Counting.last = ...", "self.h.copy_(new)"),
    "del": (lambda t, x: delattr(t.model, "calls"), "del Counting.calls", "outside the step"),
    "eval()": (lambda t, x: t.model.eval(), "Counting.training", "train() and eval() outside"),
    "to()": (lambda t, x: t.model.to("float64"), "Counting.to", "outside the step"),
    "requires_grad": (freeze, "parameter 'weight'.requires_grad = False", "outside the step"),
    "learning rate": (set_rate, "learning_rate = ... of SGD", "a schedule"),
    "read rate": (lambda t, x: x * t.optimizer.learning_rate, "learning_rate", "rate_array"),
    "repr": (lambda t, x: repr(t.optimizer), "repr", "outside"),
    "momentum": (set_momentum, "SGD.momentum = ...", "outside the step"),
    "add": (lambda t, x: t.optimizer.add(t.other), "SGD.add", "outside the step"),
    "attach": (lambda t, x: t.manager.attach([t.other]), "GradManager.attach", "outside the step"),
    "new buffer": (new_buffer, "makes a gradient buffer", "before the step"),
    "between": (twice, "between two uses of the learning rate", "after the last"),
    "plateau": (lambda t, x: t.plateau.step(1.0), "ReduceOnPlateau.step()", "outside the step"),
    "span": (left_open, "begins to record", "inside the step, or around it"),
    "result": (lambda t, x: {"a": object()}, "wanted it to return", "return the Variables"),
    "recorded write": (recorded_write, "add in place, recorded", "mg.no_grad()"),
    "anomalies": (watched, "debug.detect_anomaly()", "MINIGRAD_COMPILE=0"),
    "allclose": (lambda t, x: mg.allclose(x, t.h), "allclose needs", "outside the step"),
    "state of an optimizer": (lambda t, x: t.optimizer.state_dict(), "needs", "outside"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_refusal_teaches(name):
    step, message, advice = CASES[name]
    tools, x = Tools(), mg.variable([1.0, 2.0])
    for _ in range(2):
        train(tools, x)
    before = generator.counter, tools.h.node, tools.model.weight.version, tools.h.version
    values = tools.model.weight.tolist()
    with pytest.raises(TraceError) as caught:
        capture(step, (tools, x))
    error = caught.value
    assert isinstance(error, MinigradError)
    assert isinstance(error, TypeError)
    assert message in error.wanted
    assert advice in error.fix
    if name != "result":
        assert "test_refusals.py:" in error.where
    after = generator.counter, tools.h.node, tools.model.weight.version, tools.h.version
    assert after == before
    assert not tools.h.array.is_foreign
    assert tools.h.array.buffer.pins == 0
    assert tools.model.weight.tolist() == values
    if name != "span":  # a manager that was left recording stays so
        train(tools, x)
    assert mg.is_recording()


def test_the_line_is_the_one_that_asks():
    def step(x):
        y = x * 2.0
        z = y.sum()
        return x * float(z)

    with pytest.raises(
        TraceError, match=r"where: test_refusals.py:\d+  return x \* float\(z\)"
    ) as e:
        capture(step, (mg.variable([1.0]),))
    label, text = e.value.details[0]
    assert label == "made by"
    assert text.startswith("sum, ")
    assert "z = y.sum()" in text


@pytest.mark.parametrize("name", ["full", "full_like"])
def test_a_constant_of_a_value_of_the_step(name):
    first = {"full": (2,), "full_like": mg.zeros((2,))}[name]
    fill = getattr(mg, name)
    with pytest.raises(TraceError, match=rf"^mg\.{name} needs the elements(.|\n)*mg\.ones"):
        capture(lambda x: fill(first, x.sum()), (mg.variable([1.0]),))


def test_an_error_of_the_function_goes_through():
    def step(x):
        x = x * 2.0
        raise KeyError("mine")

    x = mg.variable([1.0])
    with pytest.raises(KeyError, match="mine"):
        capture(step, (x,))
    assert (x * 2.0).tolist() == [2.0]
    with pytest.raises(mg.errors.ShapeError):
        capture(lambda a: a @ a, (mg.ones((2, 3)),))


def test_setting_what_is_so_already_is_no_write():
    tools, x = Tools(), mg.variable([1.0, 2.0])

    def step(x):
        tools.model.train()
        tools.model.weight.requires_grad = True
        tools.manager.attach(tools.model.weight)
        return nn.Dropout(0.5)(tools.model(x))  # a module that the step itself makes

    assert capture(step, (x,)).escaped() is None


def test_requires_grad_of_a_variable_of_the_step():
    w = mg.variable([1.0, 2.0])

    def step(x):
        own = x.detach().requires_grad_()
        (own * w).sum().backward()
        return own.grad

    x = mg.variable([1.0, 2.0])
    captured = capture(step, (x,))
    assert captured.escaped() is None
    assert not captured.grads
    assert capture(lambda x: (x.requires_grad_() * w).sum(), (x,)).flags == {0: True}
    assert not x.requires_grad
    with pytest.raises(TraceError, match="requires_grad = True"):
        capture(lambda x: (x * w.requires_grad_()).sum(), (x,))
    assert not w.requires_grad
