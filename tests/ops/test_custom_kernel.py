"""`mg.kernel`: functions of one's own as operations."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import ArgumentError, ArgumentTypeError, GradientError, KernelError, ShapeError


def make_scaled_square():
    @mg.kernel
    def scaled_square(x, factor, out):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                out[i, j] = factor * x[i, j] ** 2

    @scaled_square.gradient
    def gradient(dy, x, factor, dx, dfactor):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                dx[i, j] = dy[i, j] * 2 * factor * x[i, j]

    return scaled_square


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_kernel_with_gradient_acts_as_an_operation(dtype):
    values = np.arange(6.0).reshape(2, 3)
    x = mg.variable(values, dtype=dtype, requires_grad=True)
    y = make_scaled_square()(x.T, 3.0)  # strided: the kernel sees C order
    assert y.dtype is x.dtype
    np.testing.assert_allclose(y.numpy(), 3 * values.T**2)
    assert y.node.op == "scaled_square"
    (y * y).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * 3 * values**2 * 6 * values, rtol=1e-6)


def test_kernel_of_two_strided_inputs():
    @mg.kernel
    def difference(a, b, out):
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                out[i, j] = a[i, j] - b[i, j]

    a, b = np.random.default_rng(0).random((2, 40, 30))
    got = difference(mg.variable(a).T, mg.variable(b).T).numpy()  # a copy of each in C order
    np.testing.assert_array_equal(got, (a - b).T)


def test_kernel_gradient_equals_differences():
    square = make_scaled_square()
    x = mg.variable(np.random.default_rng(0).normal(size=(2, 3)), requires_grad=True)
    assert mg.debug.gradcheck(lambda v: square(v, 0.5), [x])


def test_kernel_of_other_shape():
    @mg.kernel(shape=lambda x: x[:1])
    def row_sums(x, out):
        for i in range(x.shape[0]):
            total = 0.0
            for j in range(x.shape[1]):
                total += x[i, j]
            out[i] = total

    assert row_sums(mg.ones((2, 5))).tolist() == [5.0, 5.0]


def test_kernel_without_gradient_says_so():
    @mg.kernel
    def twice(x, out):
        for i in range(x.size):
            out[i] = 2 * x[i]

    x = mg.ones((3,), requires_grad=True)
    y = twice(x)
    with pytest.raises(KernelError, match=r"no gradient[\s\S]*@twice.gradient"):
        y.sum().backward()


def test_kernel_that_does_not_compile_names_line_and_keeps_the_text():
    @mg.kernel
    def wrong(x, out):
        out[0] = x.no_such_thing

    with pytest.raises(KernelError) as caught:
        wrong(mg.ones((3,)))
    assert "x.no_such_thing" in caught.value.where
    assert "no_such_thing" in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 6
    assert "TypingError" in caught.value.full or "typing" in caught.value.full


def test_second_order_through_a_kernel_raises():
    x = mg.variable(np.ones((1, 1)), requires_grad=True)
    (y,) = mg.gradients(make_scaled_square()(x, 1.0).sum(), [x], create_graph=True)
    with pytest.raises(GradientError, match="once_differentiable"):
        y.sum().backward()


def copied(x, out):
    out[:] = x


@pytest.mark.parametrize(
    ("use", "match"),
    [
        (lambda: mg.kernel(fastmath=True), "leave it out: minigrad chooses Numba's options"),
        (lambda: mg.kernel(copied, nopython=True), "leave it out"),
        (lambda: mg.kernel(device="cpu"), r"no argument device[\s\S]*it takes shape"),
        (lambda: mg.kernel(copied, lambda x: x), r"wanted kernel\(function=None, \*, shape=None"),
        (lambda: mg.kernel()(copied, 3), r"wanted kernel\(function=None"),
        (lambda: mg.kernel(shape=(3,)), "wanted a function for shape"),
        (lambda: mg.kernel("void(f4[:], f4[:])"), "types are found at the call"),
        (lambda: mg.kernel()(mg.kernel(copied)), "wanted a Python function"),
        (lambda: mg.kernel(copied).gradient(None), "gradient of copied: wanted a Python function"),
        (lambda: mg.kernel(copied).gradient(), r"wanted gradient\(function\)"),
        (lambda: mg.kernel(copied).gradient(copied, cache=True), r"wanted gradient\(function\)"),
        (lambda: mg.kernel(copied)(x=mg.ones((2,))), r"by place, \(x\)[\s\S]*x="),
    ],
)
def test_a_decorator_that_is_used_otherwise_says_the_form_that_works(use, match):
    with pytest.raises(ArgumentTypeError, match=match):
        use()


def test_kernel_checks_what_it_gets():
    square = make_scaled_square()
    with pytest.raises(ArgumentTypeError, match="2 inputs"):
        square(mg.ones((1, 1)))
    with pytest.raises(ArgumentTypeError, match="a Variable among"):
        square(1.0, 2.0)
    with pytest.raises(ArgumentTypeError, match="function"):
        mg.kernel(3)
    with pytest.raises(ArgumentError, match="output to write"):
        mg.kernel(lambda out: None)
    with pytest.raises(ArgumentError, match="output to write"):
        mg.kernel(lambda x, *, out: None)
    with pytest.raises(ArgumentError, match="5 arguments"):
        square.gradient(lambda dy, x: None)
    with pytest.raises(ShapeError, match="tuple"):
        mg.kernel(lambda x, out: None, shape=lambda x: 3)(mg.ones((1,)))
