"""Bad input: each row is refused with a clear error that names the line, and changes nothing."""

import gc
import re
import sys
import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors
from minigrad.errors import (
    ArgumentError,
    ArgumentTypeError,
    BoundsError,
    DeviceError,
    DonatedError,
    DTypeError,
    GradcheckError,
    GradientError,
    GraphCycleError,
    GraphFreedError,
    InPlaceError,
    NonFiniteError,
    OutOfMemoryError,
    SavedValueModifiedError,
    ShapeError,
    TraceError,
)
from minigrad.tape.modes import state


class Scene:
    """What the rows may break: every Variable here must come out as it went in."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.x = mg.variable(rng.normal(size=(3, 4)).astype("f4"), requires_grad=True, name="x")
        self.w = mg.variable(rng.normal(size=(4, 2)).astype("f4"), requires_grad=True)
        self.v = mg.variable([1.0, 2.0, 3.0, 4.0])
        self.d = mg.variable([1.0, 2.0], dtype="float64", requires_grad=True)
        self.i = mg.variable([0, 1, 2])
        self.b = mg.variable([True, False])
        self.empty = mg.zeros((0, 4))
        self.matrix = mg.ones((3, 4))
        self.y = self.x * 2.0
        self.loss = (self.x * self.x).sum()
        self.model = mg.nn.Linear(4, 2)
        self.gm = mg.GradManager()

    def variables(self):
        return {k: v for k, v in vars(self).items() if isinstance(v, mg.Variable)}

    def snapshot(self):
        gc.collect()
        found = {}
        for name, v in self.variables().items():
            found[name] = (
                v.tolist(), v.shape, v.version, v.refcount, v.requires_grad, v.node, v.data_ptr(),
                None if v._grad is None else v._grad.tolist(),
            )  # fmt: skip
        modes = (state.recording, state.path, state.watchers, state.spans, state.observers)
        return found, modes, mg.memory.stats()["live_nodes"]


def function(forward=None, backward=None):
    """A custom Function, applied."""
    parts = {
        "forward": staticmethod(forward or (lambda ctx, *xs: xs[0] * 1.0)),
        "backward": staticmethod(backward or (lambda ctx, dy: dy)),
    }
    return type("Custom", (mg.Function,), parts).apply


def twice(f, *args):
    """Calls a function of minigrad's compiler until it is traced."""
    step = mg.compile(f)
    step(*args)
    return step(*args)


def use_again(x):
    """Uses a value that has been donated."""
    mg.compile(lambda x: x * 2.0, donate=0)(x)
    return x + 1.0


def released(scene):
    """A loss whose span is over."""
    gm = mg.GradManager([mg.ones((1,))])
    with gm:
        return (gm.attached[0] * 2.0).exp().sum()


def freed(scene):
    y = (scene.v.detach() * 1.0).sum() + (scene.w * scene.w).sum()
    mg.gradients(y, scene.w)
    return y


def modified(scene):
    leaf = mg.variable([1.0, 2.0], requires_grad=True)
    y = (leaf * leaf).sum()
    with mg.no_grad():
        leaf.add_(1.0)
    return y


def cyclic(scene):
    y = scene.x.tanh()
    y.node.edges = (y.node,)
    return y.sum()


def stale_view(scene):
    base = mg.variable([1.0, 2.0], requires_grad=True) * 1.0
    view = base.reshape(2, 1)
    with mg.no_grad():
        base.add_(1.0)
    return view


def inferred(scene):
    with mg.inference():
        return scene.v * 2.0


def inside(block, action):
    with block:
        return action()


def limited(scene):
    reserved = mg.memory.stats()["reserved_bytes"]
    mg.memory.set_limit(reserved + (1 << 20))
    try:
        return mg.zeros((reserved // 4 + (1 << 20),))  # more than all that is cached
    finally:
        mg.memory.set_limit(None)


NAN = float("nan")
ROWS = [
    # shapes
    ("add_of_shapes_that_do_not_broadcast", lambda s: s.x + mg.ones((3,)), ShapeError),
    ("mul_with_another_size", lambda s: s.v * mg.ones((3,)), ShapeError),
    ("matmul_with_unequal_inner_sizes", lambda s: s.x @ s.x, ShapeError),
    ("matmul_of_a_scalar", lambda s: s.x @ mg.variable(1.0), ShapeError),
    ("matmul_of_batches_that_do_not_broadcast",
     lambda s: mg.ones((2, 3, 4)) @ mg.ones((3, 4, 2)), ShapeError),
    ("linear_with_transposed_weights", lambda s: mg.linear(s.x, s.w), ShapeError),
    ("linear_with_a_wrong_bias",
     lambda s: mg.linear(s.x, s.w.T, mg.ones((3,))), ShapeError),
    ("reshape_to_another_number_of_elements", lambda s: s.x.reshape(5, 2), ShapeError),
    ("reshape_with_two_unknown_sizes", lambda s: s.x.reshape(-1, -1), ShapeError),
    ("reshape_to_a_float", lambda s: s.x.reshape(2.0, 6), ArgumentTypeError),
    ("expand_to_a_smaller_shape", lambda s: s.x.expand(4), ShapeError),
    ("permute_with_an_axis_twice", lambda s: s.x.permute(0, 0), ShapeError),
    ("squeeze_of_an_axis_that_is_not_1", lambda s: s.x.squeeze(0), ShapeError),
    ("more_than_eight_axes", lambda s: mg.ones((1,) * 8).unsqueeze(0), ShapeError),
    ("mse_of_two_shapes", lambda s: mg.mse(s.x, s.v), ShapeError),
    ("concatenate_of_other_sizes", lambda s: mg.concatenate([s.x, s.w], 0), ShapeError),
    ("concatenate_of_nothing", lambda s: mg.concatenate([], 0), ArgumentError),
    ("stack_of_two_shapes", lambda s: mg.stack([s.x, s.w], 0), ShapeError),
    ("item_of_many", lambda s: s.x.item(), ShapeError),
    ("truth_of_many", lambda s: bool(s.x > 0), ArgumentError),
    ("len_of_a_scalar", lambda s: len(mg.variable(1.0)), ArgumentTypeError),
    ("layer_norm_with_a_wrong_weight",
     lambda s: mg.layer_norm(s.x, mg.ones((3,)), mg.ones((3,))), ShapeError),
    ("conv2d_with_other_channels",
     lambda s: mg.conv2d(mg.ones((1, 3, 5, 5)), mg.ones((2, 4, 3, 3))), ShapeError),
    # axes
    ("sum_over_an_axis_too_many", lambda s: s.x.sum(axis=2), ShapeError),
    ("sum_over_an_axis_twice", lambda s: s.x.sum(axis=(0, -2)), ShapeError),
    ("sum_over_a_float_axis", lambda s: s.x.sum(axis=1.0), ArgumentTypeError),
    ("softmax_over_an_axis_too_many", lambda s: mg.softmax(s.x, axis=5), ShapeError),
    ("unsqueeze_too_far", lambda s: s.x.unsqueeze(4), ShapeError),
    # dtypes
    ("matmul_of_two_float_dtypes", lambda s: s.v @ mg.ones((4, 2), dtype="float64"), DTypeError),
    ("matmul_of_floats_and_ints", lambda s: s.v @ mg.arange(4), DTypeError),
    ("complex_numbers", lambda s: mg.variable(np.ones(2, complex)), ArgumentTypeError),
    ("strings", lambda s: mg.variable(["a", "b"]), ArgumentTypeError),
    ("ragged_lists", lambda s: mg.variable([[1.0], [1.0, 2.0]]), ArgumentTypeError),
    ("an_object", lambda s: mg.variable(object()), ArgumentTypeError),
    ("none_as_data", lambda s: mg.variable(None), ArgumentTypeError),
    ("an_unknown_dtype", lambda s: mg.zeros((2,), dtype="float8"), DTypeError),
    ("other_halves", lambda s: mg.variable([1.0], dtype="float8_e4m3fn"), DTypeError),
    ("ints_that_require_gradients", lambda s: mg.variable([1, 2], requires_grad=True), DTypeError),
    ("random_ints_as_floats", lambda s: mg.rand((2,), dtype="int64"), DTypeError),
    ("add_of_a_string", lambda s: mg.exp("a"), ArgumentTypeError),
    ("float_index", lambda s: s.x[1.0], (ArgumentTypeError, BoundsError)),
    ("a_float_as_an_index", lambda s: [1, 2][s.v.sum()], ArgumentTypeError),
    ("int_parameter", lambda s: mg.nn.Parameter([1, 2]), DTypeError),
    # devices
    ("an_unknown_device", lambda s: mg.zeros((2,), device="tpu"), DeviceError),
    ("to_an_unknown_device", lambda s: s.x.to("tpu"), (DTypeError, DeviceError)),
    # indices and labels
    ("index_out_of_range", lambda s: s.x[3], BoundsError),
    ("negative_index_out_of_range", lambda s: s.x[-4], BoundsError),
    ("too_many_indices", lambda s: s.x[0, 0, 0], BoundsError),
    ("array_index_out_of_range", lambda s: s.x[np.array([0, 7])], BoundsError),
    ("boolean_index_of_another_size", lambda s: s.x[s.b], (ShapeError, BoundsError)),
    ("label_out_of_range", lambda s: mg.cross_entropy(s.x, np.array([0, 4, 1])), BoundsError),
    ("negative_label", lambda s: mg.cross_entropy(s.x, np.array([0, -1, 1])), BoundsError),
    ("too_few_labels", lambda s: mg.cross_entropy(s.x, np.array([0, 1])), ShapeError),
    ("probabilities_of_another_shape", lambda s: mg.cross_entropy(s.x, s.v), ShapeError),
    ("embedding_out_of_range", lambda s: mg.embedding(s.w, np.array([4])), BoundsError),
    ("one_hot_out_of_range", lambda s: mg.one_hot(s.i, 2), BoundsError),
    # empty inputs
    ("max_of_nothing", lambda s: s.empty.max(), ShapeError),
    ("argmin_of_nothing", lambda s: s.empty.argmin(axis=0), ShapeError),
    ("backward_of_nothing", lambda s: (s.empty * s.v).backward(), GradientError),
    # values
    ("clip_without_bounds", lambda s: mg.clip(s.x), ArgumentError),
    ("huber_with_a_negative_delta", lambda s: mg.huber(s.x, s.x, delta=-1.0), ArgumentError),
    ("an_unknown_reduction", lambda s: mg.mse(s.x, s.x, reduction="median"), ArgumentError),
    ("an_unknown_gelu", lambda s: mg.gelu(s.x, approximate="cubic"), ArgumentError),
    ("a_negative_size", lambda s: mg.zeros((-1, 2)), ArgumentError),
    ("a_range_with_step_0", lambda s: mg.arange(0, 3, 0), ArgumentError),
    ("randint_upside_down", lambda s: mg.randint(3, 3, (2,)), ArgumentError),
    ("a_seed_that_is_no_int", lambda s: mg.manual_seed(1.5), ArgumentTypeError),
    ("dropout_above_1", lambda s: mg.dropout(s.x, 1.5), ArgumentError),
    ("randn_of_a_negative_size", lambda s: mg.randn((-1,)), ArgumentError),
    ("eye_of_a_negative_size", lambda s: mg.eye(-1), ArgumentError),
    ("linspace_of_a_negative_count", lambda s: mg.linspace(0, 1, -1), ArgumentError),
    ("randperm_of_a_negative_count", lambda s: mg.randperm(-1), ArgumentError),
    ("range_of_a_string", lambda s: mg.arange("a"), ArgumentTypeError),
    ("full_of_none", lambda s: mg.full((2,), None), ArgumentTypeError),
    ("shape_that_is_a_float", lambda s: mg.ones(2.5), ArgumentTypeError),
    ("more_bytes_than_an_address_counts", lambda s: mg.zeros((2**62, 2**10)), OutOfMemoryError),
    ("an_int_that_int64_does_not_hold", lambda s: s.i + 2**70, DTypeError),
    ("to_none", lambda s: s.x.to(None), DTypeError),
    ("linear_of_a_string", lambda s: mg.linear(s.x, "w"), ArgumentTypeError),
    ("dropout_of_a_string", lambda s: mg.dropout(s.x, "a"), ArgumentTypeError),
    ("a_hook_that_is_no_function", lambda s: s.x.register_hook("a"), ArgumentTypeError),
    ("manager_of_none", lambda s: s.gm.attach(None), ArgumentTypeError),
    ("manager_with_a_number_as_callback", lambda s: s.gm.attach([s.v], 3), ArgumentTypeError),
    ("memory_limit_that_is_a_string", lambda s: mg.memory.set_limit("1 GB"),
     ArgumentTypeError),
    ("alias_of_a_number", lambda s: mg.memory.is_alias(s.x, 3), ArgumentTypeError),
    # backward
    ("backward_of_many_without_dy", lambda s: s.y.backward(), GradientError),
    ("backward_of_a_constant", lambda s: s.v.sum().backward(), GradientError),
    ("backward_under_no_grad", lambda s: mg.no_grad()(lambda: s.x.sum())().backward(),
     GradientError),
    ("backward_of_ints", lambda s: s.i.sum().backward(), GradientError),
    ("dy_of_another_shape", lambda s: s.y.backward(mg.ones((3,))), ShapeError),
    ("dy_of_another_dtype", lambda s: s.y.backward(mg.ones((3, 4), dtype="float64")), DTypeError),
    ("dy_as_a_list", lambda s: s.y.backward([1.0]), ArgumentTypeError),
    ("backward_through_a_freed_graph", lambda s: freed(s).backward(), GraphFreedError),
    ("backward_of_a_released_span", lambda s: released(s).backward(), GraphFreedError),
    ("backward_after_a_write", lambda s: modified(s).backward(), SavedValueModifiedError),
    ("backward_through_a_cycle", lambda s: cyclic(s).backward(), GraphCycleError),
    ("manager_backward_outside_its_span", lambda s: s.gm.backward(s.loss), GradientError),
    ("manager_attaching_ints", lambda s: s.gm.attach([s.i]), DTypeError),
    ("manager_attaching_a_result", lambda s: s.gm.attach([s.y]), GradientError),
    ("manager_attaching_a_number", lambda s: s.gm.attach([3.0]), ArgumentTypeError),
    ("gradients_of_a_constant_input", lambda s: mg.gradients(s.loss, s.v), GradientError),
    ("gradients_with_too_few_dys", lambda s: mg.gradients([s.loss, s.y], s.x, [None]), ShapeError),
    ("gradients_of_a_number", lambda s: mg.gradients(3.0, s.x), ArgumentTypeError),
    ("gradients_of_no_inputs", lambda s: mg.gradients(s.loss, []), ArgumentError),
    ("grad_of_no_function", lambda s: mg.grad(3.0), ArgumentTypeError),
    ("grad_of_many_outputs", lambda s: mg.grad(lambda x: x * 2.0)(s.x), GradientError),
    ("grad_of_no_variable", lambda s: mg.grad(lambda x: 1.0)(s.x), ArgumentTypeError),
    ("grad_of_ints", lambda s: mg.grad(lambda x: x.sum())(s.i), DTypeError),
    ("grad_with_a_wrong_argnum", lambda s: mg.grad(lambda x: x.sum(), 1)(s.x), ArgumentError),
    ("grad_of_what_left_the_graph", lambda s: mg.grad(lambda x: mg.variable(x.numpy().sum()))(s.x),
     GradientError),
    ("jvp_with_another_shape", lambda s: mg.jvp(mg.tanh, s.x, s.v), ShapeError),
    ("hvp_with_another_dtype",
     lambda s: mg.hvp(lambda x: x.sum(), s.x, mg.ones((3, 4), dtype="float64")), DTypeError),
    # leaves and results
    ("requires_grad_of_a_result", lambda s: setattr(s.y, "requires_grad", False), GradientError),
    ("requires_grad_of_ints", lambda s: setattr(s.i, "requires_grad", True), DTypeError),
    ("requires_grad_of_a_number",
     lambda s: setattr(s.v, "requires_grad", 1), ArgumentTypeError),
    ("grad_of_another_shape", lambda s: setattr(s.x, "grad", s.v), ShapeError),
    ("grad_of_another_dtype",
     lambda s: setattr(s.v, "grad", mg.ones((4,), dtype="float64")), DTypeError),
    ("grad_as_an_array", lambda s: setattr(s.v, "grad", np.ones(4, "f4")), ArgumentTypeError),
    ("a_result_as_a_value_of_numpy", lambda s: np.asarray(s.x), GradientError),
    ("a_result_to_dlpack", lambda s: np.from_dlpack(s.x), GradientError),
    ("a_hook_on_a_constant", lambda s: s.v.register_hook(print), GradientError),
    ("a_post_hook_on_a_result", lambda s: s.y.register_post_accumulate_hook(print), GradientError),
    # in place
    ("write_to_a_leaf", lambda s: s.x.add_(1.0), InPlaceError),
    ("index_write_to_a_leaf", lambda s: s.x.__setitem__(0, 1.0), InPlaceError),
    ("copy_to_a_leaf", lambda s: s.x.copy_(s.x), InPlaceError),
    ("zero_a_leaf", lambda s: s.x.zero_(), InPlaceError),
    ("write_to_a_view_of_a_leaf", lambda s: s.x.T.mul_(2.0), InPlaceError),
    ("numpy_of_a_leaf_to_write_to", lambda s: s.x.numpy(writable=True), InPlaceError),
    ("write_a_larger_shape", lambda s: s.v.add_(mg.ones((2, 4))), ShapeError),
    ("write_floats_to_ints", lambda s: s.i.add_(0.5), DTypeError),
    ("write_to_a_broadcast_view", lambda s: mg.ones((1,)).expand(3).add_(1.0), InPlaceError),
    ("recorded_write_to_a_view", lambda s: s.v.reshape(2, 2).mul_(s.w[0]), InPlaceError),
    ("index_write_of_another_shape",
     lambda s: s.matrix.__setitem__(0, mg.ones((3,))), ShapeError),
    ("index_write_out_of_range", lambda s: s.matrix.__setitem__(3, 1.0), BoundsError),
    ("use_of_a_stale_view", lambda s: stale_view(s) * 2.0, InPlaceError),
    ("inference_result_in_a_graph", lambda s: inferred(s) * s.x, GradientError),
    # custom Functions
    ("function_that_returns_an_array",
     lambda s: function(lambda ctx, x: np.ones(3))(s.x), ArgumentTypeError),
    ("function_with_too_many_gradients",
     lambda s: function(backward=lambda ctx, dy: (dy, dy))(s.x).sum().backward(), GradientError),
    ("function_with_too_few_gradients",
     lambda s: function()(s.x, s.v).sum().backward(), GradientError),
    ("function_with_a_gradient_of_another_shape",
     lambda s: function(backward=lambda ctx, dy: dy.sum())(s.x).sum().backward(), ShapeError),
    ("function_with_a_gradient_of_another_dtype",
     lambda s: function(backward=lambda ctx, dy: dy.to("float64"))(s.x).sum().backward(),
     DTypeError),
    ("function_with_an_array_as_a_gradient",
     lambda s: function(backward=lambda ctx, dy: dy.numpy())(s.x).sum().backward(),
     ArgumentTypeError),
    ("function_that_saves_a_number",
     lambda s: function(lambda ctx, x: ctx.save_for_backward(3.0))(s.x), ArgumentTypeError),
    ("function_that_keeps_an_output",
     lambda s: function(lambda ctx, x: setattr(ctx, "y", x * 2.0))(s.x), ArgumentTypeError),
    ("saved_values_in_forward",
     lambda s: function(lambda ctx, x: ctx.saved)(s.x), GradientError),
    # debugging, memory
    ("gradcheck_of_float32", lambda s: mg.debug.gradcheck(mg.tanh, [s.x]), DTypeError),
    ("gradcheck_of_constants", lambda s: mg.debug.gradcheck(mg.tanh, [s.v]), GradientError),
    ("gradcheck_of_a_number", lambda s: mg.debug.gradcheck(mg.tanh, 3.0), ArgumentTypeError),
    ("gradcheck_of_an_unused_input",
     lambda s: mg.debug.gradcheck(lambda x: s.v * 1.0, [s.d]), GradientError),
    ("gradcheck_at_a_kink",
     lambda s: mg.debug.gradcheck(lambda x: abs(x - 1.0), [s.d]), GradcheckError),
    ("nan_in_forward",
     lambda s: inside(mg.debug.detect_anomaly(), lambda: mg.log(s.x - 100.0)), NonFiniteError),
    ("more_memory_than_the_limit", limited, OutOfMemoryError),
    ("a_negative_memory_limit", lambda s: mg.memory.set_limit(-1), ArgumentError),
    ("statistics_of_no_device", lambda s: mg.memory.stats("tpu"), DeviceError),
    # nn and optim
    ("layer_with_another_input", lambda s: s.model(mg.ones((3, 5))), ShapeError),
    ("optimizer_of_nothing", lambda s: mg.optim.SGD([], learning_rate=0.1), ArgumentError),
    ("optimizer_of_arrays",
     lambda s: mg.optim.SGD([np.ones(3)], learning_rate=0.1), ArgumentTypeError),
    ("negative_learning_rate", lambda s: mg.optim.Adam(s.model, learning_rate=-1.0), ArgumentError),
    ("nan_as_learning_rate", lambda s: mg.optim.Adam(s.model, learning_rate=NAN), ArgumentError),
    ("clipping_to_a_negative_norm",
     lambda s: mg.optim.clip_grad_norm_(s.model, -1.0), ArgumentError),
    # compiled steps
    ("compile_a_number", lambda s: mg.compile(3), ArgumentTypeError),
    ("compile_a_generator", lambda s: mg.compile(lambda: (yield)), ArgumentTypeError),
    ("compile_twice", lambda s: mg.compile(mg.compile(mg.exp)), ArgumentTypeError),
    ("donate_what_is_not_there", lambda s: mg.compile(mg.exp, donate="y"), ArgumentError),
    ("compiled_numpy_array", lambda s: mg.compile(mg.exp)(np.ones(3)), TraceError),
    ("compiled_iterator", lambda s: mg.compile(list)(iter([s.x])), TraceError),
    ("compiled_branch", lambda s: twice(lambda v: v if v.sum() > 0 else -v, s.v), TraceError),
    ("compiled_item", lambda s: twice(lambda v: v.sum().item(), s.v), TraceError),
    ("compiled_kept_value", lambda s: twice(lambda v, h=[]: h.append(v * 2.0), s.v), TraceError),
    ("compiled_shapes", lambda s: mg.compile(mg.matmul)(s.v, s.matrix), ShapeError),
    ("donate_a_parameter",
     lambda s: mg.compile(mg.exp, donate=0)(s.model.weight), ArgumentError),
    ("donate_a_leaf", lambda s: mg.compile(mg.exp, donate=0)(s.x), ArgumentError),
    ("donate_twice",
     lambda s: mg.compile(lambda a, b: a + b, donate=(0, 1))(s.v, s.v), ArgumentError),
    ("donate_a_part", lambda s: mg.compile(lambda a: a + 1, donate=0)(s.v[1:]), ArgumentError),
    ("donate_a_number", lambda s: mg.compile(lambda a, n: a * n, donate=1)(s.v, 2), ArgumentError),
    ("use_of_what_was_donated", lambda s: use_again(mg.ones((3,))), DonatedError),
]  # fmt: skip


@pytest.fixture
def scene():
    return Scene()


@pytest.mark.parametrize(("action", "error"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS])
def test_bad_input_raises_a_clear_error_and_changes_nothing(scene, action, error):
    before = scene.snapshot()
    with pytest.raises(error) as caught:
        action(scene)
    assert isinstance(caught.value, errors.MinigradError)
    text = str(caught.value)
    where = re.search(r"where: (.*)", text)
    assert where, f"no line in: {text}"
    place = re.match(r"test_errors\.py:(\d+)  \S", where.group(1))
    assert place, f"another line than the user's: {text}"
    assert len(text) < 1200
    assert "Traceback" not in text
    del caught  # its traceback holds what the frames held
    assert scene.snapshot() == before


def test_rows_are_different():
    assert len({row[0] for row in ROWS}) == len(ROWS) > 100


def test_every_error_is_a_minigrad_error_and_a_built_in_one():
    for name, kind in vars(errors).items():
        is_error = isinstance(kind, type) and issubclass(kind, Exception)
        if is_error and not issubclass(kind, Warning) and name != "MinigradError":
            assert issubclass(kind, errors.MinigradError)
            assert any(b.__module__ == "builtins" for b in kind.__mro__[2:-3]), name


def test_the_error_names_the_line_of_the_call():
    with pytest.raises(ShapeError) as caught:
        mg.ones((2,)) + mg.ones((3,))  # exactly here
    assert "# exactly here" in caught.value.where


def test_an_error_in_a_lambda_of_the_user_names_the_innermost_user_line():
    def inner():
        return mg.ones((2,)) @ mg.ones((3,))  # inner

    with pytest.raises(ShapeError) as caught:
        inner()
    assert "# inner" in caught.value.where


def test_an_op_that_raises_in_mid_backward_leaves_gradients_and_spends_the_graph(scene):
    broken = function(backward=lambda ctx, dy: dy / 0)
    scene.x.grad = mg.ones((3, 4))
    y = (broken(scene.x.tanh()) * scene.x).sum()
    raising = function(backward=lambda ctx, dy: {}["no"])
    y = (raising(scene.x.tanh()) * scene.x).sum()
    with pytest.raises(KeyError):
        y.backward()
    assert scene.x.grad.tolist() == [[1.0] * 4] * 3
    with pytest.raises(GraphFreedError):
        y.backward()


def test_threads_that_go_back_through_one_graph_get_a_result_or_a_clear_error():
    x = mg.variable(np.ones(64, "f4"), requires_grad=True)
    results, interval = [], sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    for _ in range(20):
        h = x
        for _ in range(300):
            h = h.tanh() * 1.01 + x
        loss, start, outcomes = h.sum(), threading.Barrier(2), []

        def go(loss=loss, start=start, outcomes=outcomes):
            start.wait()
            try:
                loss.backward()
                outcomes.append("done")
            except errors.MinigradError as error:
                outcomes.append(type(error).__name__)

        threads = [threading.Thread(target=go) for _ in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        results += outcomes
    sys.setswitchinterval(interval)
    assert len(results) == 40
    assert set(results) == {"GraphFreedError", "done"}
