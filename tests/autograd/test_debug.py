"""Records of backward passes, anomaly mode, gradient checks, hooks."""

import json

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors
from minigrad.tape.modes import state
from tests.functions import Two


def leaf(values, name=None):
    return mg.variable(np.asarray(values, np.float64), requires_grad=True, name=name)


# -- record_grad_function ------------------------------------------------------------------------


def test_records_of_functions_with_several_outputs_and_untracked_inputs():
    x, c = leaf([1.0, 2.0], name="x"), mg.variable([1.0, 1.0], dtype="float64")
    a, b = Two.apply(x)
    with mg.debug.record_grad_function() as log:
        (a * c + b).sum().backward()
    by_op = {r.op: r for r in log}
    assert by_op["mul"].input_shapes == ((2,), None)
    assert by_op["mul"].outgoing_norms[1] is None
    assert by_op["Two"].outgoing_norms[0] == pytest.approx(5 * np.sqrt(2))
    assert by_op["Two"].targets == ("x",)
    json.loads(log.to_json())
    assert log.to_dot().count("[label=") >= len(log)
    assert repr(log).count("\n") == len(log)


def test_records_of_create_graph_and_of_two_passes_follow_each_other():
    x = leaf([1.0, 2.0])
    with mg.debug.record_grad_function() as log:
        (g,) = mg.gradients([(x**3).sum()], [x], create_graph=True)
        first = len(log)
        g.sum().backward()
    assert len(log) > first > 0
    assert [r.index for r in log] == list(range(len(log)))


def test_records_of_non_finite_gradients_are_json():
    x = leaf([0.0])
    with mg.debug.record_grad_function() as log:
        mg.sqrt(x).backward()
    (record,) = json.loads(log.to_json())
    assert record["outgoing_norms"] == ["inf"]


def test_records_end_with_their_block_also_after_an_error_and_nest():
    x = leaf([1.0])
    with mg.debug.record_grad_function() as outer:
        inner = mg.debug.record_grad_function()
        with pytest.raises(ZeroDivisionError), inner:
            raise ZeroDivisionError((x * x).backward())
        (x * x).backward()
    (x * x).backward()
    assert (len(outer), len(inner)) == (2, 1)
    assert state.observers == ()


def test_records_find_the_layer_that_kills_the_gradient():
    x = leaf(np.linspace(-1, 1, 8))
    h = (x * 3.0).tanh()
    h = mg.relu(h - 10.0)  # dead
    with mg.debug.record_grad_function() as log:
        (h * 2.0).sum().backward()
    dead = next(r for r in log if r.incoming_norm > 0 and r.outgoing_norms[0] == 0.0)
    assert dead.op == "relu"
    assert "# dead" in dead.line


# -- detect_anomaly ------------------------------------------------------------------------------


def test_anomaly_lets_infinities_of_data_pass_but_no_nan():
    mask = mg.variable([[0.0, -np.inf]])
    with mg.debug.detect_anomaly():
        y = mg.softmax(mg.ones((2, 2)) + mask)
        assert y.tolist() == [[1.0, 0.0]] * 2
        with pytest.raises(errors.NonFiniteError, match="already"):
            mask * 0.0


@pytest.mark.parametrize(
    ("compute", "op"),
    [
        (lambda: mg.variable([1.0]) / mg.variable([0.0]), "div"),
        (lambda: mg.exp(mg.variable([1000.0])), "exp"),
        (lambda: mg.log(mg.variable([0.0])), "log"),
        (lambda: mg.sum(mg.variable([3e38, 3e38])), "sum"),
        (lambda: mg.variable([[3e38]]) @ mg.variable([[10.0]]), "matmul"),
        (lambda: mg.variable([1.0]).add_(mg.variable([np.nan])), "add_"),
        (lambda: mg.log_softmax(mg.variable([np.nan, 1.0])), "log_softmax"),
    ],
)
def test_anomaly_names_the_op_of_the_first_bad_value(compute, op):
    with np.errstate(all="ignore"):
        assert not np.isfinite(compute().numpy()).all()
        with mg.debug.detect_anomaly(), pytest.raises(errors.NonFiniteError, match=f"^{op}"):
            compute()


def test_anomaly_sees_custom_functions_forward_and_backward():
    class Bad(mg.Function):
        @staticmethod
        def forward(ctx, x, forward):
            ctx.is_bad = not forward
            return x * np.inf if forward else x * 1.0

        @staticmethod
        def backward(ctx, dy):
            return dy * np.nan, None

    x = leaf([1.0, 2.0])
    with mg.debug.detect_anomaly():
        with pytest.raises(errors.NonFiniteError):
            Bad.apply(x, True)
        y = Bad.apply(x, False)
        with pytest.raises(errors.NonFiniteError) as caught:
            y.sum().backward()
    assert "return dy * np.nan" in caught.value.where
    assert x.grad is None


def test_anomaly_ends_with_its_block_and_costs_nothing_outside():
    path = state.path
    with mg.debug.detect_anomaly(), mg.debug.detect_anomaly():
        pass
    assert (state.observers, state.op_observers, state.path) == ((), (), path)
    assert np.isnan(mg.log(mg.variable([-1.0])).item())


def test_anomaly_under_no_grad_checks_forward():
    with mg.debug.detect_anomaly(), mg.no_grad(), pytest.raises(errors.NonFiniteError):
        mg.log(leaf([-1.0]))


# -- gradcheck -----------------------------------------------------------------------------------


def wrong(scale_of_one_entry):
    class Wrong(mg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, dy):
            scale = np.ones(ctx.saved[0].shape)
            scale[(0,) * scale.ndim] = scale_of_one_entry
            return dy * 2.0 * ctx.saved[0] * mg.variable(scale)

    return Wrong.apply


@pytest.mark.parametrize("error", [1e-4, -1e-3, 1.0, np.nan])
def test_gradcheck_finds_one_wrong_entry_of_many(error):
    x = leaf(np.random.default_rng(0).uniform(0.5, 1.0, size=(5, 6)))
    assert mg.debug.gradcheck(wrong(1.0), [x])
    with pytest.raises(errors.GradcheckError, match=r"input 0 \[0, 0\]"):
        mg.debug.gradcheck(wrong(1.0 + error), [x])


def test_gradcheck_finds_a_wrong_entry_of_huge_values():
    x = leaf(np.random.default_rng(0).uniform(0.5, 1.0, size=(3, 4)))
    assert mg.debug.gradcheck(lambda x: wrong(1.0)(x) * 1e200, [x])
    with pytest.raises(errors.GradcheckError, match=r"input 0 \[0, 0\]"):
        mg.debug.gradcheck(lambda x: wrong(2.0)(x) * 1e200, [x])


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_gradcheck_refuses_results_that_are_not_finite(value):
    x = leaf([0.5, 1.0])
    bad = mg.variable(np.array([1.0, value]))
    with pytest.raises(errors.GradcheckError, match=r"(?s)not finite.*output 0 \[1\]"):
        mg.debug.gradcheck(lambda x: x * bad, [x])


def test_gradcheck_shows_an_entry_that_is_nan_first():
    x = leaf(np.random.default_rng(0).uniform(0.5, 1.0, size=(20,)))
    scale = np.linspace(2.0, 3.0, 20)
    scale[17] = np.nan

    class Wrong(mg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, dy):
            return dy * mg.variable(scale)

    with pytest.raises(errors.GradcheckError, match=r"error\n +input 0 \[17\] +nan"):
        mg.debug.gradcheck(Wrong.apply, [x])


def test_gradcheck_takes_constants_numbers_and_several_outputs():
    x, c = leaf([0.5, 1.5]), mg.variable([2.0, 3.0])
    assert mg.debug.gradcheck(lambda x, c, n: (x * c * n, x.sum(), x > 1.0), [x, c, 3.0])
    assert mg.debug.gradcheck(mg.tanh, x)
    assert mg.debug.gradgradcheck(lambda x, c: (x**3 * c, x.exp()), [x, c])
    assert mg.debug.gradgradcheck(lambda x: x * 2.0, [x])
    assert x.grad is None


def test_gradcheck_of_a_large_table_looks_at_some_entries():
    x = leaf(np.random.default_rng(0).uniform(0.5, 1.0, size=(40, 40)))
    with pytest.raises(errors.GradcheckError, match="worst") as caught:
        mg.debug.gradcheck(lambda x: wrong(1.0)(x) + x.detach() * x, [x])
    assert len(str(caught.value).splitlines()) < 16


@pytest.mark.parametrize(
    ("f", "at"),
    [
        (mg.relu, [0.0]),
        (mg.abs, [0.0]),
        (mg.abs, [3e-7]),
        (lambda x: x.max(), [1.0, 1.0]),
        (lambda x: mg.clip(x, -1.0, 1.0), [1.0]),
        (lambda x: mg.maximum(x, 0.5) * 1e6, [0.5]),
    ],
)
def test_gradcheck_names_kinks(f, at):
    with pytest.raises(errors.GradcheckError, match="non-smooth point"):
        mg.debug.gradcheck(f, [leaf(at)])


@pytest.mark.parametrize(
    ("f", "at"),
    [
        (lambda x: (x * 1000.0).tanh(), [1e-4, 2e-3]),
        (lambda x: x**4 * 1e6, [0.01, 2.0]),
        (lambda x: 1.0 / x, [1e-2]),
        (mg.relu, [1e-4, -1e-4]),
        (mg.log, [1e-3]),
    ],
)
def test_gradcheck_does_not_take_a_bend_for_a_kink(f, at):
    assert mg.debug.gradcheck(f, [leaf(at)], rtol=1e-4)


def test_gradgradcheck_finds_a_backward_that_forgets_its_input():
    class Forgets(mg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, dy):
            return dy * ctx.saved[0].detach().cos()

    x = leaf([0.3, 1.0])
    assert mg.debug.gradcheck(Forgets.apply, [x])
    with pytest.raises(errors.GradcheckError, match="gradgradcheck"):
        mg.debug.gradgradcheck(Forgets.apply, [x])


# -- hooks ---------------------------------------------------------------------------------------


def test_hook_writes_in_place_take_effect():
    x = leaf([1.0, 2.0])
    y = x * 3.0

    def halve(g):
        g.mul_(0.5)

    y.register_hook(halve)
    y.backward(mg.variable([1.0, 1.0], dtype="float64"))
    assert x.grad.tolist() == [1.5, 1.5]


def test_hook_on_a_leaf_runs_once_on_the_sum_before_it_is_accumulated():
    x, seen = leaf([1.0]), []
    x.register_hook(lambda g: seen.append(g.item()))
    (x * 2.0 + x * 3.0).backward()
    (x * 2.0).backward()
    assert seen == [5.0, 2.0]
    assert x.grad.item() == 7.0


def test_hook_result_of_another_type_raises_and_leaves_gradients():
    x = leaf([1.0])
    handle = x.register_hook(lambda g: 3.0)
    with pytest.raises(errors.ArgumentTypeError, match="hook"):
        (x * 2.0).backward()
    assert x.grad is None
    handle.remove()
    (x * 2.0).backward()
    assert x.grad.item() == 2.0


def test_hook_handle_is_a_block_too():
    x, seen = leaf([1.0]), []
    with x.register_hook(seen.append):
        (x * 2.0).backward()
    (x * 2.0).backward()
    assert len(seen) == 1


def test_hook_under_create_graph_is_part_of_the_graph():
    x = leaf([3.0])
    y = x * x
    y.register_hook(lambda g: g * x)
    (g,) = mg.gradients([y], [x], create_graph=True)  # 2 x * x
    assert g.item() == 18.0
    g.backward()
    assert x.grad.item() == 12.0


def test_post_accumulate_hook_can_free_the_gradient_it_was_called_for():
    x, seen = leaf([1.0]), []

    def step(p):
        seen.append(p.grad.item())
        p.grad = None

    x.register_post_accumulate_hook(step)
    for _ in range(3):
        (x * 2.0).backward()
    assert seen == [2.0] * 3
    assert x.grad is None


@pytest.mark.parametrize(
    "keep",
    [
        lambda g, kept: kept.append(g),
        lambda g, kept: kept.append(g.detach()),
        lambda g, kept: kept.append(g.reshape(2, 1)),
        lambda g, kept: kept.append(g.numpy()),
        lambda g, kept: kept.append(g * 1.0) or kept[0],
    ],
)
def test_what_a_hook_keeps_stays_as_it_was(keep):
    x, kept = leaf([1.0, 2.0]), []
    h = x + 0.0
    h.register_hook(lambda g: keep(g, kept))
    (h * 1.0 + h * 2.0).sum().backward()
    (x * 5.0).sum().backward()
    assert np.ravel(kept[0].tolist()).tolist() == [3.0, 3.0]
    assert x.grad.tolist() == [8.0, 8.0]
