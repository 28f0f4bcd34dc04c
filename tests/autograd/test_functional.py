"""grad, value_and_grad, vjp, jvp, hvp, jacobian, hessian, gradients: exact, nested, recorded."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors


def leaf(values, requires_grad=True):
    return mg.variable(np.asarray(values, np.float64), requires_grad=requires_grad)


def f(x):
    return (x.tanh() * x).sum()


def g(x):
    """(n,) -> (2, n)."""
    return mg.stack([x.sin() * x.sum(), x * x], 0)


def jacobian_by_differences(function, x, eps=1e-6):
    columns = []
    for k in range(x.size):
        step = np.zeros(x.shape)
        step[np.unravel_index(k, x.shape)] = eps
        plus, minus = (function(leaf(x + s, False)).numpy() for s in (step, -step))
        columns.append((plus - minus) / (2 * eps))
    return np.stack(columns, -1).reshape(*columns[0].shape, *x.shape)


X = np.array([0.3, -1.2, 2.0])


def test_grad_of_grad_of_a_number_is_the_third_derivative_of_its_power():
    def cube(x):
        return x**3

    first, second, third = mg.grad(cube), mg.grad(mg.grad(cube)), mg.grad(mg.grad(mg.grad(cube)))
    assert [h(2.0).item() for h in (first, second, third)] == [12.0, 12.0, 6.0]
    assert first(2.0).dtype is mg.float32


def test_grad_takes_argnums_and_auxiliary_results():
    def h(a, b, scale):
        return (a * b).sum() * scale, {"b": b}

    (da, db), aux = mg.grad(h, argnums=(0, -2), has_aux=True)([1.0, 2.0], [3.0, 4.0], 10.0)
    assert da.tolist() == [30.0, 40.0]
    assert db.tolist() == [10.0, 20.0]
    assert aux.keys() == {"b"}
    (value, aux), d = mg.value_and_grad(h, has_aux=True)([1.0, 2.0], [3.0, 4.0], 10.0)
    assert value.item() == 110.0
    assert d.tolist() == [30.0, 40.0]


def test_grad_does_not_confuse_its_argument_with_the_same_variable_outside():
    x = leaf([2.0])
    inner = mg.grad(lambda y: (x * y).sum())(x)
    assert inner.tolist() == [2.0]  # d(x y)/dy = x, not 2x
    inner.backward()
    assert x.grad.tolist() == [1.0]


def test_grad_belongs_to_the_graph_of_what_it_used():
    w, x = leaf([3.0]), leaf([2.0], False)
    penalty = (mg.grad(lambda x: (w * x * x).sum())(x) ** 2).sum()  # (2 w x)^2
    penalty.backward()
    assert w.grad.tolist() == [8 * 3.0 * 4.0]
    assert x.grad is None


def test_grad_of_constants_under_no_grad_records_nothing():
    w, x = leaf([3.0]), leaf([2.0])
    with mg.no_grad():
        value, d = mg.value_and_grad(lambda x: (w * x * x).sum())(x)
    assert not value.requires_grad
    assert not d.requires_grad
    assert (value.item(), d.item()) == (12.0, 12.0)
    d = mg.grad(f)(leaf(X, False))
    assert not d.requires_grad
    assert w.grad is None
    assert x.grad is None


def test_grad_is_zero_where_the_result_does_not_depend_on_the_argument():
    da, db = mg.grad(lambda a, b: (a * a).sum(), (0, 1))(leaf(X, False), leaf([1.0, 2.0], False))
    assert db.tolist() == [0.0, 0.0]
    assert da.tolist() == (2 * X).tolist()
    assert mg.grad(lambda a: mg.ones((1,)))([1.0]).tolist() == [0.0]
    assert mg.hessian(lambda a: a.sum() * 3.0)([1.0, 2.0]).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_grad_does_not_touch_dot_grad_or_the_graph_outside():
    x = leaf(X)
    h = x * 2.0
    mg.grad(f)(h)
    assert x.grad is None
    h.sum().backward()  # what h saved is still there
    assert x.grad.tolist() == [2.0] * 3


def test_vjp_pulls_back_as_often_as_asked():
    y, pull = mg.vjp(g, leaf(X, False))
    jacobian = jacobian_by_differences(g, X)
    rng = np.random.default_rng(0)
    for _ in range(3):
        u = rng.normal(size=y.shape)
        got = pull(mg.variable(u)).numpy()
        np.testing.assert_allclose(got, np.tensordot(u, jacobian, 2), rtol=1e-7, atol=1e-8)
    assert not y.requires_grad


def test_vjp_of_several_arguments_and_results():
    def h(a, b):
        return a * b, a.sum()

    (p, s), pull = mg.vjp(h, [1.0, 2.0], [3.0, 4.0])
    assert p.tolist() == [3.0, 8.0]
    assert s.item() == 3.0
    da, db = pull((mg.variable([1.0, 1.0]), mg.variable(10.0)))
    assert da.tolist() == [13.0, 14.0]
    assert db.tolist() == [1.0, 2.0]


def test_jvp_equals_the_jacobian_times_the_tangent():
    rng = np.random.default_rng(0)
    v = rng.normal(size=3)
    y, dy = mg.jvp(g, leaf(X, False), leaf(v, False))
    np.testing.assert_allclose(y.numpy(), g(leaf(X)).detach().numpy())
    np.testing.assert_allclose(dy.numpy(), jacobian_by_differences(g, X) @ v, rtol=1e-7, atol=1e-8)
    (a, b), (da, db) = mg.jvp(lambda a, b: (a * b, b), (leaf([2.0]), leaf([3.0])),
                              (leaf([1.0]), leaf([10.0])))  # fmt: skip
    assert (a.item(), da.item(), b.item(), db.item()) == (6.0, 23.0, 3.0, 10.0)


def test_jvp_where_the_derivative_is_infinite_or_nothing_depends():
    y, dy = mg.jvp(mg.sqrt, leaf([4.0, 0.0], False), leaf([1.0, 1.0], False))
    assert dy.tolist() == [0.25, np.inf]
    _, dy = mg.jvp(lambda x: mg.ones((2,)), leaf([4.0], False), leaf([1.0], False))
    assert dy.tolist() == [0.0, 0.0]
    del y


def test_jvp_passes_a_saved_intermediate_that_second_order_refuses():
    class Square(mg.Function):
        @staticmethod
        def forward(ctx, x):
            twice = x * 2.0
            ctx.save_for_backward(twice)
            return x * x

        @staticmethod
        def backward(ctx, dy):
            return dy * ctx.saved[0]

    _, dy = mg.jvp(Square.apply, leaf([3.0], False), leaf([10.0], False))
    assert dy.tolist() == [60.0]
    with pytest.raises(errors.GradientError):
        mg.grad(mg.grad(lambda x: Square.apply(x).sum()))(leaf([3.0], False))


def test_hvp_is_symmetric_and_equals_the_hessian():
    def h(x):
        return (x.exp() * x.sum()).sum() + (x[0] * x[1]).sum()

    x, rng = leaf(X, False), np.random.default_rng(0)
    hessian = mg.hessian(h)(x).numpy()
    for _ in range(3):
        u, v = rng.normal(size=3), rng.normal(size=3)
        hv = mg.hvp(h, x, leaf(v, False)).numpy()
        hu = mg.hvp(h, x, leaf(u, False)).numpy()
        np.testing.assert_allclose(u @ hv, v @ hu, rtol=1e-12)
        np.testing.assert_allclose(hv, hessian @ v, rtol=1e-12)
    by_differences = jacobian_by_differences(mg.grad(h), X)
    np.testing.assert_allclose(hessian, by_differences, rtol=1e-6, atol=1e-7)


def test_hessian_of_several_arguments_has_blocks():
    blocks = mg.hessian(lambda a, b: (a * a * b).sum(), (0, 1))([2.0], [3.0])
    assert [[b.tolist() for b in row] for row in blocks] == [[[[6.0]], [[4.0]]], [[[4.0]], [[0.0]]]]


def test_jacobian_has_the_shape_of_result_and_argument_and_can_be_differentiated():
    x = np.arange(6.0).reshape(2, 3) / 7
    j = mg.jacobian(lambda x: x.sin() @ x.T)(leaf(x, False))
    assert j.shape == (2, 2, 2, 3)
    np.testing.assert_allclose(
        j.numpy(), jacobian_by_differences(lambda x: x.sin() @ x.T, x), rtol=1e-7, atol=1e-8
    )
    assert mg.jacobian(lambda x: x * 2.0)(mg.zeros((0,))).shape == (0, 0)
    x = leaf(X)
    mg.jacobian(lambda x: x * x)(x).sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_gradients_of_several_outputs_and_inputs_in_one_pass():
    x, w, unused = leaf(X), leaf([2.0]), leaf([1.0])
    h = x * w
    a, b = h.sum(), (h * h).sum()
    with mg.debug.record_grad_function() as log:
        dx, dh, dw, none = mg.gradients([a, b], [x, h, w, unused], [leaf(3.0, False), None])
    assert len({r.node for r in log}) == len(log)
    np.testing.assert_allclose(dh.numpy(), 3 + 2 * (X * 2))
    np.testing.assert_allclose(dx.numpy(), 2 * (3 + 4 * X))
    np.testing.assert_allclose(dw.numpy(), [np.sum(X * (3 + 4 * X))])
    assert none is None
    assert x.grad is None


def test_gradients_of_an_output_with_respect_to_itself_is_dy_in_bytes_of_its_own():
    x = leaf([1.0, 2.0])
    y = x * 2.0
    dy = leaf([5.0, 6.0], False)
    found = mg.gradients(y, y, dy)
    assert found.tolist() == [5.0, 6.0]
    assert not mg.memory.is_alias(found, dy)
    a, b = mg.gradients(y + y, [x, y], dy)
    assert not mg.memory.is_alias(a, b)


def test_gradients_visit_only_what_leads_to_the_inputs():
    x, w = leaf(X), leaf(X)
    side = (w * w).exp()
    y = (x.tanh() * side).sum()
    hooked = []
    side.register_hook(hooked.append)
    with mg.debug.record_grad_function() as log:
        mg.gradients(y, x, retain_graph=True)
    assert [r.op for r in log] == ["sum", "mul", "tanh"]
    assert not hooked
    y.backward()
    assert len(hooked) == 1


def test_gradients_with_a_graph_give_every_order():
    x = leaf([2.0])
    d = x**5
    for wanted in (80.0, 160.0, 240.0, 240.0, 120.0, 0.0):
        d = mg.gradients(d, x, create_graph=True)
        assert d.item() == pytest.approx(wanted)


def test_transforms_name_the_function_they_were_made_of():
    assert mg.grad(f).__name__ == "gradient_of_f"
    assert "of f" in mg.jacobian(f).__doc__


def test_gradients_with_a_graph_of_empty_arrays_broadcast_against_scalars():
    x, s = leaf(np.zeros((0, 3))), leaf(2.0)
    dx, ds = mg.gradients((x.tanh() * s + s).sum(), [x, s], create_graph=True)
    assert (dx.shape, ds.shape) == ((0, 3), ())
    assert ds.item() == 0.0
