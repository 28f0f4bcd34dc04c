"""What a compiled step on a GPU does besides numbers: donation, views, random numbers, devices."""

import gc
import re
import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import DonatedError, RetraceWarning, TraceError
from minigrad.ops.creation import generator
from tests.compiler.quick_gpu import QUICK
from tests.compiler.test_gpu_checks import data, trainer
from tests.compiler.twins import elements

pytestmark = pytest.mark.usefixtures("on_quick")


def test_random_numbers_go_on_from_call_to_call_and_follow_the_seed():
    @mg.compile
    def noise(x):
        return x + mg.randn((3, 5)), mg.rand((7,)), mg.randint(0, 9, (4,))

    def four():
        mg.manual_seed(5)
        return [[elements(v) for v in noise(mg.zeros((3, 5)))] for _ in range(4)], generator.counter

    first, second = four(), four()
    mg.manual_seed(5)
    eager = [[elements(v) for v in noise.function(mg.zeros((3, 5)))] for _ in range(4)]
    assert first[1] == second[1] == generator.counter
    for a, b, c in zip(first[0], second[0], eager, strict=True):
        for x, y, z in zip(a, b, c, strict=True):
            assert np.array_equal(x, y)
            np.testing.assert_allclose(x, z, rtol=1e-6)
    assert not np.array_equal(first[0][2][0], first[0][3][0])


def test_arguments_written_in_place_views_of_them_and_clones():
    @mg.compile
    def add(x, part, by):
        x.add_(by)
        return part.sum()

    x = mg.zeros((4, 3))
    for k in range(4):
        clone = x.clone()
        total = add(x, x[1:3], mg.ones((3,)))
        assert total.item() == 6 * (k + 1)
        assert np.all(elements(x) == k + 1)
        assert np.all(elements(clone) == k)
        assert x.version == k + 1


def test_gradients_accumulate_in_whatever_array_they_lie():
    w = mg.ones((3,), requires_grad=True)

    @mg.compile
    def add(x):
        (w * x).sum().backward()

    x = mg.variable([1.0, 2.0, 3.0])
    for k in range(5):
        if k == 3:
            w.grad = mg.zeros((3,))
        held = None if w.grad is None else w.grad.clone()
        before = None if held is None else elements(held)
        add(x)
        count = k + 1 if k < 3 else k - 2
        assert np.array_equal(elements(w.grad), elements(x) * count), k
        assert held is None or np.array_equal(elements(held), before)


def test_donation():
    @mg.compile(donate="x")
    def shift(x, by):
        return x + by

    x, by = mg.zeros((3,)), mg.ones((3,))
    for k in range(4):
        old, kept = x, x.clone()
        x = shift(x, by)
        assert np.all(elements(x) == k + 1)
        assert np.all(elements(kept) == k)
        with pytest.raises(DonatedError):
            old.sum()
    assert "result 0 is written over it" in str(shift.report())


def test_steps_without_arguments_find_their_device_in_what_they_read():
    with mg.device("cpu"):
        on_cpu = mg.ones((3,))
    there = mg.ones((3,)) * 2.0

    @mg.compile
    def look():
        return there * 3.0

    with mg.device("cpu"):
        for _ in range(3):
            assert look().device == QUICK.name
        assert on_cpu.device == "cpu"
    assert look.traces[0].plan.device == QUICK.name


def test_the_device_of_arguments_decides_which_program_runs():
    @mg.compile
    def double(x):
        return x * 2.0

    for _ in range(3):
        for device in ("cpu", QUICK.name):
            y = double(mg.ones((3,), device=device))
            assert y.device == device
            assert np.all(elements(y) == 2)
    assert sorted(t.plan.device for t in double.traces) == ["cpu", QUICK.name]


def test_moving_inside_a_step_names_the_line():
    @mg.compile
    def step(x):
        return x.to("cpu") * 2.0

    x = mg.ones((2,))
    step(x)
    with pytest.raises(TraceError, match="runs on one device"):
        step(x)


def test_what_does_not_fit_runs_eagerly_with_one_warning():
    with mg.device("cpu"):
        counts = mg.zeros((3,))

    @mg.compile
    def step(x):
        counts.add_(1.0)  # on the CPU, beside what runs on the GPU
        return x * 2.0

    x = mg.ones((3,))
    with pytest.warns(RetraceWarning, match="runs as usual: it writes to .* on the CPU"):
        step(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            assert np.all(elements(step(x)) == 2)
    assert counts.tolist() == [4.0] * 3
    assert not step.traces


def test_values_of_two_devices_keep_them():
    x, y = mg.ones((3,), device="cpu"), mg.ones((3,))

    @mg.compile
    def both(a, b):
        return a.sum(), b.sum()

    with mg.device("cpu"):
        outside = mg.ones((3,))

    @mg.compile
    def another(b):
        return outside.sum(), b.sum()

    with pytest.warns(RetraceWarning, match="'x'|argument 0 .* lies on cpu"):
        found = both(x, y)
    assert [z.device for z in found] == ["cpu", QUICK.name]
    with pytest.warns(RetraceWarning, match="it reads an array"):
        found = another(y)
    assert [z.device for z in found] == ["cpu", QUICK.name]


def test_a_step_that_finds_nothing_runs_on_the_default_device():
    @mg.compile
    def make():
        return mg.ones((3,)) * 2.0

    for device in ("cpu", QUICK.name, "cpu", QUICK.name):
        with mg.device(device):
            for _ in range(3):
                assert make().device == device


def test_a_model_that_is_moved_has_another_program():
    model = mg.nn.Linear(3, 2)

    @mg.compile
    def look():
        return model.weight.detach().sum()

    for device in (QUICK.name, "cpu", QUICK.name):
        model.to(device)
        for _ in range(3):
            total = look()
            assert total.device == device
        np.testing.assert_allclose(elements(total), elements(model.weight).sum(), rtol=1e-6)


@pytest.mark.parametrize("mode", ["0", "check"])
def test_modes(monkeypatch, mode):
    monkeypatch.setenv("MINIGRAD_COMPILE", mode)
    scale = [1.0]

    @mg.compile
    def step(x):
        return x * sum(scale)

    for _ in range(3):
        step(mg.ones((3,)))
    scale[0] = 2.0
    if mode == "0":
        assert np.all(elements(step(mg.ones((3,)))) == 2)
    else:
        with pytest.raises(TraceError, match="the number that is an operand of"):
            step(mg.ones((3,)))


def test_a_program_that_is_dropped_gives_its_memory_back():
    step, *_ = trainer()
    for _ in range(3):
        step(*data())
    gc.collect()
    held = QUICK.pool.current_bytes
    del step
    gc.collect()
    assert QUICK.pool.current_bytes < held


def test_results_have_memory_of_their_own():
    @mg.compile
    def twice(x):
        return x * 2.0, (x * 2.0).reshape(3, 1)

    found = [twice(mg.ones((3,)) * float(k)) for k in range(4)]
    for k, (a, b) in enumerate(found):
        assert np.all(elements(a) == 2 * k)
        assert elements(b).shape == (3, 1)
        assert not mg.memory.shares_storage(a, b)


def test_looking_at_a_program():
    step, *_ = trainer()
    for _ in range(3):
        step(*data())
    report = step.report()
    assert report.calls < report.instructions_before
    assert "cross_entropy" in str(report)
    assert f"; on {QUICK.name}" in str(report)
    assert (report.device, report.from_cache) == (QUICK.name, None)
    assert not re.search("machine code| thread", str(report))
    text = step.source()
    assert f"kernels on {QUICK.name}" in text
    assert "the host looks at what checks found after 2" in text
    assert "def elementwise" in text
    assert "linear" in str(step.graph())
    assert "temporaries" in str(step.memory_plan())
