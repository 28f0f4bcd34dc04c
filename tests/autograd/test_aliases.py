"""Writes in place whose operand shows the bytes that they overwrite."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors
from tests.autograd.aliases import ALIASES, WRITES, compare, computed, leaf, text

RIGHT = [alias for alias in ALIASES if alias != "h * h"]  # its history saved the target


def test_every_cell_of_the_table_is_a_number_or_an_error_that_says_so():
    page = text()
    assert page.count("| raises") == len(WRITES)
    assert page.count("| ✓") == len(WRITES) * len(RIGHT)


@pytest.mark.parametrize("column", ["h *= y, h.mul_(y)", "h[:, 1:] = y"])
def test_a_compiled_step_gives_the_same_numbers(column):
    aliases = ("h", "h.detach()", "h[::-1]", "h.detach().T")

    @mg.compile
    def step(x):
        return [computed(WRITES[column][0], alias, x) for alias in aliases]

    for _ in range(3):
        for alias, found in zip(aliases, step(leaf()), strict=True):
            compare(found, column, alias)
    assert len(step.traces) == 1


@pytest.mark.parametrize("alias", RIGHT)
@pytest.mark.parametrize("column", WRITES)
def test_unrecorded_writes_read_before_they_write(column, alias):
    for write in WRITES[column]:
        for dtype in ("float32", "int64"):
            if dtype == "int64" and ("/" in column or alias == "h + 1"):
                continue  # floats, which an int cannot hold
            start = np.arange(1, 10).reshape(3, 3).astype(dtype)
            h, frozen = mg.variable(start), mg.variable(start)
            write(h, lambda h=h: ALIASES[alias](h))
            expected = mg.variable(start)
            write(expected, lambda y=frozen: ALIASES[alias](y))
            assert h.tolist() == expected.tolist(), (column, alias)


def test_an_operand_under_another_name_is_saved_as_it_was():
    """Two Variables over one NumPy array: nobody can see that they share bytes."""
    a = np.array([1.0, 2.0, 3.0])
    h, same = mg.from_numpy(a), mg.from_numpy(a)
    w = mg.variable([2.0, 2.0, 2.0], dtype="float64", requires_grad=True)
    h.mul_(w)
    before = same.numpy().copy()
    h.mul_(same)
    h.sum().backward()
    assert w.grad.tolist() == (before * np.array([1.0, 2.0, 3.0])).tolist()


SHIFTED = [
    (slice(1, None), slice(None, -1), np.int64, np.int64),
    (slice(None, -1), slice(1, None), np.float64, np.float64),
    (slice(1, 5), slice(None, 4), np.float32, np.float64),  # bytes of another dtype
]
INTO = {
    "add_": (lambda h, y: h.add_(y), lambda h, y: h + y),
    "copy_": (lambda h, y: h.copy_(y), lambda h, y: y),
    "x[:] = y": (lambda h, y: h.__setitem__(slice(None), y), lambda h, y: y),
    "x[index] = y": (lambda h, y: h.__setitem__([*range(len(h))], y), lambda h, y: y),
}


@pytest.mark.parametrize("name", INTO)
@pytest.mark.parametrize(("to", "of", "dtype", "other"), SHIFTED)
def test_memory_of_numpy_that_overlaps_is_read_before_it_is_written(name, to, of, dtype, other):
    in_place, out_of_place = INTO[name]
    a = np.arange(10).astype(dtype)
    h, y = a[to], a.view(other)[of]
    wanted = out_of_place(h, y.astype(dtype))
    x, source = mg.from_numpy(h), mg.from_numpy(y)
    assert mg.memory.is_alias(x, source)
    if dtype is np.float32 and name == "add_":  # float64 and float32 make float64
        source, wanted = source.to("float32"), out_of_place(h, y.astype(np.float32))
    in_place(x, source)
    np.testing.assert_array_equal(x.numpy(), wanted)


def test_memory_of_numpy_that_lies_apart_is_no_alias():
    a = np.zeros((4, 4))
    x, y, z = mg.from_numpy(a[:2]), mg.from_numpy(a[2:]), mg.from_numpy(np.zeros(4))
    assert not mg.memory.is_alias(x, y)
    assert not mg.memory.is_alias(x, z)
    assert mg.memory.is_alias(x, mg.from_numpy(a)[1])
    assert not mg.memory.is_alias(x, mg.from_numpy(a)[2])


def test_a_view_that_somebody_else_holds_is_refused_and_one_that_was_the_operand_is_stale():
    x = leaf()
    h = x * x
    v = h[0]
    with pytest.raises(errors.InPlaceError, match="a view of this Variable is alive"):
        h.mul_(x)
    h.mul_(v)
    with pytest.raises(errors.InPlaceError, match="recorded before its base was written"):
        _ = v * 2.0


class Times(mg.Function):
    """x *= y; `saves` says when y is saved."""

    saves = "after"

    @classmethod
    def forward(cls, ctx, x, y):
        if cls.saves == "before":
            ctx.save_for_backward(x, y)
        old = x.clone()
        x.mul_(y)
        ctx.mark_dirty(x)
        if cls.saves == "after":
            ctx.save_for_backward(old, y)
        return x

    @staticmethod
    def backward(ctx, dy):
        x, y = ctx.saved
        return dy * y, dy * x


class TimesSavedBefore(Times):
    saves = "before"


@pytest.mark.parametrize(
    ("function", "operand"),
    [
        (TimesSavedBefore, lambda h, w: w),  # saved x, then wrote to it
        (Times, lambda h, w: h),  # saved y after the write, as it was not any more
        (Times, lambda h, w: h.detach()),
        (Times, lambda h, w: h[0]),
    ],
)
def test_a_function_that_saves_what_it_overwrote_raises_in_backward(function, operand):
    x = leaf()
    h = x * 1.0
    y = function.apply(h, operand(h, mg.variable(np.full((3, 3), 2.0))))
    with pytest.raises(errors.SavedValueModifiedError, match="Times"):
        y.sum().backward()
    assert x.grad is None


def test_a_function_may_save_what_it_did_not_overwrite():
    x = leaf()
    y = Times.apply(x * 1.0, mg.variable(np.full((3, 3), 2.0)))
    y.sum().backward()
    assert x.grad.tolist() == [[2.0] * 3] * 3


def test_a_dirty_argument_that_is_saved_after_the_write_is_the_output_to_every_order():
    class Exp(mg.Function):
        @staticmethod
        def forward(ctx, x):
            x.copy_(mg.exp(x))
            ctx.mark_dirty(x)
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, dy):
            return dy * ctx.saved[0]

    x = leaf()
    (first,) = mg.gradients([Exp.apply(x * 2.0).sum()], [x], create_graph=True)
    (second,) = mg.gradients([first.sum()], [x])
    np.testing.assert_allclose(first.numpy(), 2.0 * np.exp(2.0 * x.detach().numpy()), 1e-12)
    np.testing.assert_allclose(second.numpy(), 4.0 * np.exp(2.0 * x.detach().numpy()), 1e-12)


def triple_of(forward):
    """A Function of this forward, with the gradient of 3 x for its first argument."""

    def backward(ctx, *dys):
        return dys[0] * 3.0, *[None] * (len(ctx.needs_input_grad) - 1)

    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Triple", (mg.Function,), methods)


def unmarked(ctx, x):
    return x.mul_(3.0)


def unmarked_and_not_returned(ctx, x):
    return x.mul_(3.0) * 1.0


def through_a_view(ctx, x):
    x[0].mul_(3.0)
    return x


def through_a_detached_alias(ctx, x):
    x.detach()[1:].fill_(3.0)
    return x[1:]


def marked_and_not_returned(ctx, x):
    ctx.mark_dirty(x)
    return x.mul_(3.0) * 1.0


def marked_under_another_name(ctx, x):
    y = x.detach().mul_(3.0)
    ctx.mark_dirty(y)
    return y


BROKEN = [
    unmarked,
    unmarked_and_not_returned,
    through_a_view,
    through_a_detached_alias,
    marked_and_not_returned,
    marked_under_another_name,
]


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("forward", BROKEN)
def test_a_forward_whose_writes_autograd_cannot_record_raises(forward, is_compiled):
    function = triple_of(forward)

    def step(a):
        h = a * 1.0
        function.apply(h)
        return mg.gradients(h.sum(), [a])

    wanted = errors.ArgumentTypeError if "name" in forward.__name__ else errors.InPlaceError
    with pytest.raises(wanted, match="Triple") as caught:
        (mg.compile(step) if is_compiled else step)(leaf())
    if wanted is errors.InPlaceError:
        assert "written at: test_aliases.py" in str(caught.value)


def test_a_forward_that_writes_to_a_leaf_or_to_a_view_raises():
    function = triple_of(unmarked)
    with pytest.raises(errors.InPlaceError, match="Triple"):
        function.apply(leaf())

    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(3.0)

    h = leaf() * 1.0
    with pytest.raises(errors.InPlaceError, match="base would not know"):
        triple_of(forward).apply(h[0])


def test_a_forward_may_write_to_what_takes_no_gradient_and_is_not_returned():
    def forward(ctx, x, mean):
        mean.copy_(x.mean(axis=0))
        return x * 3.0

    x, mean = leaf(), mg.zeros((3,), dtype="float64")
    for step in (triple_of(forward).apply, mg.compile(triple_of(forward).apply)):
        assert mg.gradients(step(x, mean.zero_()).sum(), [x])[0].tolist() == [[3.0] * 3] * 3
        assert mean.tolist() == x.detach().mean(axis=0).tolist()
    with mg.no_grad():
        assert triple_of(unmarked).apply(x).tolist() == x.tolist()


def test_a_compiled_step_does_not_lose_what_a_forward_writes_with_numbers():
    def forward(ctx, x, count):
        count.add_(float(x.numpy().size))
        return x * 3.0

    x, count = leaf(), mg.zeros(())
    step = mg.compile(triple_of(forward).apply)
    step(x, count)  # eager
    with pytest.raises(errors.TraceError, match="writes to its input"):
        step(x, count)


@pytest.mark.parametrize(
    "forward",
    [
        lambda ctx, x: x,
        lambda ctx, x: x.detach(),
        lambda ctx, x: x.T,
        lambda ctx, x: (y := x * 3.0, y),
        lambda ctx, x: (y := x * 3.0, y[0]),
    ],
)
def test_memory_that_two_variables_of_a_function_show_is_not_written_unnoticed(forward):
    x = leaf()
    h = x * 1.0
    found = triple_of(forward).apply(h)
    first, second = found if isinstance(found, tuple) else (h, found)
    (g,) = mg.gradients(
        found[0].sum() if isinstance(found, tuple) else found.sum(), [x], retain_graph=True
    )
    assert g.numpy().max() == 3.0
    for y in (first, second):
        with pytest.raises(errors.InPlaceError, match="view"):
            y.mul_(2.0)
    with mg.no_grad():
        first.mul_(2.0)
    with pytest.raises(errors.InPlaceError, match="recorded before its base was written"):
        _ = second * 2.0


def test_copies_on_saved_writes_hold_within_a_function_too():
    with mg.memory.copy_on_saved_write():
        x = leaf()
        y = TimesSavedBefore.apply(x * 1.0, mg.variable(np.full((3, 3), 2.0)))
        y.sum().backward()
    assert x.grad.tolist() == [[2.0] * 3] * 3


@mg.kernel
def through_an_index(x, out):
    for i in range(x.size):
        out[i] = x[i]
        x[i] = 0.0


@mg.kernel
def through_flat(x, out):
    for i in range(x.size):
        out.flat[i] = x.flat[i]
        x.flat[i] = 0.0


@mg.kernel
def through_an_operator(x, out):
    out[:] = x
    x += out


@mg.kernel
def through_another_name(x, out):
    flat = x.reshape(x.size)
    out[:] = x
    flat[0] = 0.0


@pytest.mark.parametrize(
    "kernel", [through_an_index, through_flat, through_an_operator, through_another_name]
)
def test_a_kernel_that_writes_to_its_input_is_refused(kernel):
    x = mg.variable([1.0, 2.0])
    with pytest.raises(errors.KernelError):
        kernel(x)
    assert x.tolist() == [1.0, 2.0]


def test_a_kernel_may_give_a_name_of_an_input_to_a_value_of_its_own():
    @mg.kernel
    def doubled(x, out):
        x = x * 2.0
        x[0] = 7.0
        out[:] = x

    x = mg.variable([1.0, 2.0])
    assert doubled(x).tolist() == [7.0, 4.0]
    assert x.tolist() == [1.0, 2.0]
