"""Blocks (modes, devices, observers): threads, several uses, generators, what is decorated."""

import contextlib
import copy
import gc
import threading
import weakref

import pytest

import minigrad as mg
from minigrad import errors

MODES = {"no_grad": mg.no_grad, "inference": mg.inference, "enable_grad": mg.enable_grad}
INSIDE = {
    "no_grad": (mg.no_grad, lambda: not mg.is_recording()),
    "inference": (mg.inference, lambda: not mg.is_recording()),
    "autocast": (
        lambda: mg.autocast("float16"),
        lambda: (mg.ones((1, 1)) @ mg.ones((1, 1))).dtype == "float16",
    ),
    "device": (lambda: mg.device("simt"), lambda: mg.get_default_device() == "simt"),
    "use": (
        lambda: mg.use(gradients={"tanh": lambda dy, y: (dy * 0 + 7,)}), lambda: slope() == 7.0,
    ),
    "copy_on_saved_write": (mg.memory.copy_on_saved_write, lambda: not raises(written)),
    "detect_anomaly": (
        mg.debug.detect_anomaly, lambda: raises(lambda: mg.log(mg.variable([-1.0]))),
    ),
}  # fmt: skip


def slope():
    x = mg.variable([0.0], requires_grad=True)
    mg.tanh(x).sum().backward()
    return x.grad.item()


def written():
    x = mg.variable([3.0], requires_grad=True)
    y = (x * x).sum()
    with mg.no_grad():
        x += 1.0
    y.backward()


def raises(function):
    try:
        function()
    except errors.MinigradError:
        return True
    return False


@pytest.fixture(params=INSIDE)
def block(request):
    return INSIDE[request.param]


def test_one_object_is_entered_by_two_threads(block):
    make, is_inside = block
    shared, entered, left, seen = make(), threading.Event(), threading.Event(), {}

    def other():
        with make():
            with shared:
                entered.set()
                left.wait(60)
            seen["other"] = is_inside()

    thread = threading.Thread(target=other)
    with shared:
        thread.start()
        entered.wait(60)
    seen["main"] = is_inside()
    left.set()
    thread.join()
    assert seen == {"main": False, "other": True}


def test_one_object_nests_in_itself_and_is_used_again(block):
    make, is_inside = block
    again = make()
    for _ in range(2):
        with again:
            with again:
                assert is_inside()
            assert is_inside()
        assert not is_inside()


def test_blocks_of_generators_that_end_out_of_order_leave_nothing(block):
    make, is_inside = block

    def holding():
        with make():
            yield

    first, second = holding(), holding()
    next(first)
    next(second)
    first.close()
    assert is_inside()  # the second one's block is open still
    second.close()
    assert not is_inside()


def test_a_decorated_body_runs_inside_and_its_caller_outside(block):
    make, is_inside = block
    seen = []

    @make()
    def body():
        seen.append(is_inside())
        try:
            got = yield "first"
            seen.append((got, is_inside()))
            yield "second"
        except ValueError:
            seen.append(("thrown", is_inside()))
            yield "third"
        finally:
            seen.append(("finally", is_inside()))
        return "unreached"

    running = body()
    assert next(running) == "first"
    assert not is_inside()
    assert running.send("sent") == "second"
    assert not is_inside()
    assert running.throw(ValueError) == "third"
    assert not is_inside()
    running.close()
    assert not is_inside()
    assert seen == [True, ("sent", True), ("thrown", True), ("finally", True)]


@mg.no_grad()
def catching():
    try:
        yield 1
    except ValueError as error:
        return f"caught {error}"


def test_throw_may_end_a_generator_with_its_value():
    running = catching()
    next(running)
    with pytest.raises(StopIteration) as stop:
        running.throw(ValueError("it"))
    assert stop.value.value == "caught it"

    def outer():
        return (yield from catching())

    running = outer()
    next(running)
    with pytest.raises(StopIteration) as stop:
        running.throw(ValueError("it"))
    assert stop.value.value == "caught it"


def test_errors_and_close_do_as_without_the_decorator():
    def refusing():
        try:
            yield
        except GeneratorExit:
            yield

    def raising():
        yield
        raise KeyError("mine")

    for function, ask in (
        (refusing, lambda g: g.close()),
        (raising, next),
        (raising, lambda g: g.throw(OSError("thrown"))),
        (raising, lambda g: g.throw(StopIteration(3))),
        (raising, lambda g: g.throw(GeneratorExit)),
    ):
        seen = []
        for each in (function, mg.no_grad()(function)):
            running = each()
            next(running)
            with pytest.raises(BaseException) as error:  # noqa: PT011 - compared below
                ask(running)
            seen.append((type(error.value), str(error.value)))
            with contextlib.suppress(RuntimeError):
                running.close()
        assert seen[0] == seen[1]
        assert mg.is_recording()


def test_what_a_decorated_body_holds_open_is_its_own():
    @mg.no_grad()
    def body():
        with mg.enable_grad(), mg.device("simt"):
            for _ in range(2):
                yield mg.is_recording(), mg.get_default_device()
        yield mg.is_recording(), mg.get_default_device()

    first, second = body(), body()
    with mg.no_grad():
        seen = [next(g) for g in (first, second)]
        assert (mg.is_recording(), mg.get_default_device()) == (False, "cpu")
    seen += [next(g) for g in (second, first)]
    assert seen == [(True, "simt")] * 4
    assert (mg.is_recording(), mg.get_default_device()) == (True, "cpu")
    assert [next(g) for g in (first, second)] == [(False, "cpu")] * 2
    assert mg.is_recording()


def test_a_thrown_error_is_not_kept():
    class Mine(Exception):
        pass

    @mg.no_grad()
    def body():
        yield

    running, error = body(), Mine()
    next(running)
    died = weakref.ref(error)
    gc.disable()
    try:
        with contextlib.suppress(Mine):
            running.throw(error)
        del running, error
        assert died() is None
    finally:
        gc.enable()


async def coroutine():
    pass


async def asynchronous():
    yield


class Called:
    async def __call__(self):
        pass


@pytest.mark.parametrize(
    ("thing", "says"),
    [
        (coroutine, "an async function"),
        (asynchronous, "an async generator"),
        (Called(), "an async function"),
        (Called, "decorate its methods"),
        (classmethod(lambda cls: 0), "@classmethod belongs above"),
        (3, "3 of type int"),
    ],
)
def test_what_no_block_can_decorate_is_refused(block, thing, says):
    with pytest.raises(errors.ArgumentTypeError, match=says):
        block[0]()(thing)


def test_growth_is_not_measured_in_parts():
    with pytest.raises(errors.ArgumentTypeError, match="without yield"):
        mg.memory.assert_no_growth()(catching)


BLOCKS = [
    mg.no_grad, mg.enable_grad, mg.inference, mg.autocast, mg.device, mg.use,
    mg.memory.timeline, mg.memory.assert_no_growth, mg.memory.copy_on_saved_write, mg.memory.poison,
    mg.debug.detect_anomaly, mg.debug.record_grad_function,
]  # fmt: skip


@pytest.mark.parametrize("kind", BLOCKS)
def test_missing_parentheses_are_named(kind):
    with pytest.raises(errors.ArgumentTypeError, match="parentheses"), kind:
        pass
    for function in (slope, catching):
        with pytest.raises(errors.MinigradError):
            kind(function)


def test_a_block_ends_in_its_own_thread():
    def holding():
        with mg.no_grad():
            yield

    running, seen = holding(), []
    next(running)

    def other():
        with pytest.raises(errors.StateError, match="in the thread in which it began"):
            next(running)
        seen.append(mg.is_recording())

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen == [True]
    mg.enable_grad().__enter__()  # this thread's block can no longer end


def test_observers_count_each_thing_once():
    x = mg.variable([1.0], requires_grad=True)
    log, line = mg.debug.record_grad_function(), mg.memory.timeline()
    with log, line:
        with log, line:
            (x * x).sum().backward()
        (x * x).sum().backward()
    (x * x).sum().backward()
    assert [r.op for r in log] == ["sum", "mul"] * 2
    allocations = [e.buffer for e in line if e.kind == "alloc"]
    assert len(allocations) == len(set(allocations)) > 0


def test_growth_is_measured_by_each_block():
    x = mg.variable([1.0], requires_grad=True)
    check = mg.memory.assert_no_growth()

    def growing():
        with check:
            y = x * x
            with check:
                x * x
        return y

    with pytest.raises(mg.memory.MemoryGrowthError):
        growing()


def test_blocks_are_copied():
    for each in (mg.no_grad(), mg.device("simt")):
        with copy.deepcopy(each):
            assert mg.is_recording() != (mg.get_default_device() == "cpu")
