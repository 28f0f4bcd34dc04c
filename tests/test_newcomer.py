"""What newcomers try first: it works as in NumPy and PyTorch, or the error says how it is here."""

import math
import subprocess
import sys
from operator import attrgetter

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import (
    ArgumentError,
    ArgumentTypeError,
    DeviceError,
    DTypeError,
    GradientError,
    MinigradError,
    OutOfMemoryError,
    ShapeError,
    StateError,
)

# -- shapes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "target", "wanted"),
    [
        ((3, 1), (3, -1), (3, 1)),
        ((3, 1), (-1, 4), (3, 4)),
        ((3, 1), (2, -1, 4), (2, 3, 4)),
        ((0, 1), (-1, 4), (0, 4)),
        ((), (), ()),
    ],
)
def test_expand_with_minus_one_keeps_the_size(shape, target, wanted):
    x = mg.ones(shape, requires_grad=True)
    y = x.expand(target)
    assert y.shape == wanted
    assert y.sum().item() == np.prod(wanted)
    y.sum().backward()
    copies = np.prod(wanted) / np.prod(shape) if np.prod(shape) else 0.0
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), np.full(shape, copies, "f4"))


@pytest.mark.parametrize("target", [(3, -2), (-1, 3, 4), (-1,), (-3, 1)])
def test_expand_to_a_negative_size_is_refused(target):
    with pytest.raises(ShapeError):
        mg.ones((3, 1)).expand(target)


# -- attributes ------------------------------------------------------------------------------------


def test_requires_grad_with_underscore_sets_and_returns_the_leaf():
    x = mg.ones((2,))
    assert x.requires_grad_() is x
    assert x.requires_grad
    assert not x.requires_grad_(False).requires_grad
    with pytest.raises(GradientError):
        (mg.ones((2,), requires_grad=True) * 2.0).requires_grad_(False)


# -- wrong numbers that nobody would see -----------------------------------------------------------


def ints(dtype="int64"):
    return mg.variable([1, 2, 3], dtype=dtype)


WRONG_NUMBERS = [
    ("int_to_a_negative_int", lambda: ints() ** -1, ArgumentError),
    ("int_to_negative_ints", lambda: ints() ** mg.variable([0, 1, -2]), ArgumentError),
    ("number_to_negative_ints", lambda: 2 ** mg.variable([-1]), ArgumentError),
    ("and_of_ints", lambda: ints() & mg.variable([1]), DTypeError),
    ("and_with_an_int", lambda: ints() & 1, DTypeError),
    ("or_of_a_reflected_int", lambda: 1 | ints(), DTypeError),
    ("or_of_bools_and_ints", lambda: (ints() > 1) | 4, DTypeError),
    ("not_of_ints", lambda: ~ints(), DTypeError),
    ("and_of_floats", lambda: mg.ones((2,)) & mg.ones((2,)), DTypeError),
    ("xor_of_ints", lambda: ints() ^ ints(), DTypeError),
    ("xor_of_a_reflected_int", lambda: 2 ^ ints(), DTypeError),
    ("a_size_beyond_int64", lambda: mg.zeros((2**64, 0)), OutOfMemoryError),
    ("compile_of_two_functions", lambda: mg.compile()(len, len), ArgumentTypeError),
    ("a_block_around_two_functions", lambda: mg.no_grad()(len, len), ArgumentTypeError),
    ("a_size_that_cannot_be_printed", lambda: mg.ones((3,)).reshape(10**5000), ArgumentError),
    ("a_size_beyond_floats", lambda: mg.zeros((10**400,)), OutOfMemoryError),
    ("reshape_to_a_size_beyond_int64", lambda: mg.zeros((0,)).reshape(2**64, 0), OutOfMemoryError),
    ("expand_beyond_addresses", lambda: mg.ones((1,)).expand(2**40, 2**40), OutOfMemoryError),
    ("repeat_without_end", lambda: mg.repeat(ints(), [2**60] * 3), OutOfMemoryError),
    ("repeat_once_without_end", lambda: mg.repeat(ints(), 2**70), OutOfMemoryError),
    ("split_without_end", lambda: mg.split(ints(), sections=2**70), ShapeError),
    ("one_hot_of_very_many", lambda: mg.one_hot([0], 2**50), OutOfMemoryError),
    ("index_of_a_ragged_list", lambda: ints()[[1, [0, 1]]], ArgumentTypeError),
    ("donate_an_array", lambda: mg.compile(mg.exp, donate=np.array(1.0)), ArgumentTypeError),
    ("exp_of_a_module", lambda: mg.exp(mg), ArgumentTypeError),
    ("index_write_of_an_int_too_large", lambda: ints("uint8").__setitem__(0, 300), DTypeError),
    ("index_write_of_a_negative_int", lambda: ints("uint8").__setitem__(0, -1), DTypeError),
    ("index_write_of_nan", lambda: ints().__setitem__(0, float("nan")), DTypeError),
    ("fill_with_an_int_too_large", lambda: ints("uint8").fill_(300), DTypeError),
    ("fill_with_infinity", lambda: ints().fill_(float("inf")), DTypeError),
    ("copy_of_an_int_too_large", lambda: ints("int32").copy_(2**40), DTypeError),
    ("add_of_an_int_too_large", lambda: ints("uint8") + 300, DTypeError),
    ("add_in_place_of_an_int_too_large", lambda: ints("uint8").add_(300), DTypeError),
    ("float_plus_an_int_too_large", lambda: mg.ones((2,)) + 10**400, DTypeError),
    ("float_filled_with_an_int_too_large", lambda: mg.ones((2,)).fill_(10**400), DTypeError),
    ("full_of_an_int_too_large", lambda: mg.full((2,), 300, dtype="uint8"), DTypeError),
    ("full_of_an_int_beyond_int64", lambda: mg.full((2,), 2**70), DTypeError),
    ("variable_of_an_int_too_large", lambda: mg.variable([1, 300], dtype="uint8"), DTypeError),
    ("variable_of_nan_as_ints", lambda: mg.variable([float("nan")], dtype="int64"), DTypeError),
    ("variable_of_an_int_beyond_int64", lambda: mg.variable([2**70]), ArgumentTypeError),
    ("arange_to_an_int_too_large", lambda: mg.arange(10**400), DTypeError),
    ("arange_to_nan", lambda: mg.arange(float("nan")), ArgumentError),
    ("arange_to_infinity", lambda: mg.arange(0, float("inf")), ArgumentError),
    ("arange_to_very_much", lambda: mg.arange(1e18), OutOfMemoryError),
    ("linspace_of_very_many", lambda: mg.linspace(0, 1, 2**60), OutOfMemoryError),
    ("linspace_to_an_int_too_large", lambda: mg.linspace(0, 10**400, 3), ArgumentError),
    ("eye_of_very_many", lambda: mg.eye(2**40), OutOfMemoryError),
    ("randint_to_an_int_too_large", lambda: mg.randint(0, 2**70, (3,)), DTypeError),
    ("clip_at_an_int_too_large", lambda: mg.ones((2,)).clip(0, 10**400), DTypeError),
]


@pytest.mark.parametrize(
    ("action", "error"), [r[1:] for r in WRONG_NUMBERS], ids=[r[0] for r in WRONG_NUMBERS]
)
def test_numbers_that_would_come_out_wrong_are_refused(action, error):
    with pytest.raises(error) as caught:
        action()
    assert isinstance(caught.value, MinigradError)
    assert "test_newcomer.py" in str(caught.value)


def test_numbers_that_fit_are_taken():
    x = ints("uint8")
    x[0] = 255
    x[1] = 2.9  # cut towards 0, as NumPy does
    x[2] = True
    assert x.tolist() == [255, 2, 1]
    assert x.fill_(7).copy_(0).add_(250).tolist() == [250] * 3
    assert (x < 300).tolist() == [True] * 3
    assert (ints() ** 2).tolist() == [1, 4, 9]
    assert (ints() ** mg.variable([0, 1, 2])).tolist() == [1, 2, 9]
    assert (ints().to("float32") ** -1).tolist() == pytest.approx([1, 0.5, 1 / 3])
    assert (ints() ** mg.variable([])[:0].sum()).tolist() == [1.0] * 3


def test_truth_values_take_and_or_not():
    a, b = mg.variable([True, True, False]), mg.variable([True, False, False])
    assert (a & b).tolist() == [True, False, False]
    assert (a | b).tolist() == [True, True, False]
    assert (~a).tolist() == [False, False, True]
    assert (a & True).tolist() == (True & a).tolist() == a.tolist()
    assert (a & np.array([False] * 3)).tolist() == [False] * 3
    assert (a | [False, False, True]).tolist() == [True] * 3
    assert (a ^ b).tolist() == [False, True, False]
    assert (a ^ True).tolist() == (True ^ a).tolist() == (np.array([True] * 3) ^ a).tolist()


def test_functions_of_python_round_and_cut():
    x = mg.variable([1.5, -2.5, 2.75])
    assert round(x).tolist() == x.round().tolist() == [2.0, -2.0, 3.0]
    assert math.trunc(x[2]) == 2


def test_diagonals_far_outside_are_taken():
    x = mg.ones((2, 3))
    for far in (2**70, 10**400):
        assert mg.tril(x, far).tolist() == mg.triu(x, -far).tolist() == x.tolist()
        assert not mg.tril(x, -far).any()
        assert not mg.triu(x, far).any()
    for k in range(-4, 6):
        assert mg.tril(x, k).tolist() == np.tril(np.ones((2, 3)), k).tolist()
        assert mg.triu(x, k).tolist() == np.triu(np.ones((2, 3)), k).tolist()


def test_what_has_an_array_of_another_library_is_data():
    class Series:
        array = np.ones(2)

        def __array__(self, dtype=None, copy=None):
            return np.zeros(2)

    assert mg.exp(Series()).tolist() == [1.0, 1.0]


# -- calls -----------------------------------------------------------------------------------------


class Nothing(mg.Function):
    pass


class NoBackward(mg.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2.0


class WithoutCtx(mg.Function):
    @staticmethod
    def forward(x):
        return x * 2.0


class BackwardWithoutCtx(mg.Function):
    @staticmethod
    def forward(ctx, x, k=1.0):
        return x * k

    @staticmethod
    def backward(dy):
        return dy


def method_of_objects():
    class OfObjects(mg.Function):
        def forward(self, ctx, x):
            return x


class NoForward(mg.Function):
    @staticmethod
    def backward(ctx, dy):
        return dy


CALLS = [
    ("zeros_of_sizes", lambda x: mg.zeros(2, 3), "zeros((2, 3))"),
    ("ones_of_sizes", lambda x: mg.ones(2, 3), "ones((2, 3))"),
    ("rand_of_sizes", lambda x: mg.rand(2, 3), "rand((2, 3))"),
    ("randn_of_sizes", lambda x: mg.randn(2, 3), "randn((2, 3))"),
    ("randn_of_four_sizes", lambda x: mg.randn(2, 3, 4, 5), "randn((2, 3))"),
    ("full_of_sizes", lambda x: mg.full(2, 3, 0.5), "full((2, 3), 0.5)"),
    ("zeros_of_many_sizes", lambda x: mg.zeros(1, 2, 3, 4, 5, 6), "zeros((2, 3))"),
    ("randint_without_a_shape", lambda x: mg.randint(0, 3), "randint(low, high, shape"),
    ("randint_between_floats", lambda x: mg.randint(0.5, 3, (2,)), "wanted ints"),
    ("linspace_from_a_string", lambda x: mg.linspace("a", 1, 3), "wanted numbers"),
    ("arange_by_keyword", lambda x: mg.arange(0, end=3), "stop="),
    ("grad_at_once", lambda x: mg.grad(mg.sum, x), "mg.grad(f)(x)"),
    ("grad_of_a_variable", lambda x: mg.grad(x, x), "mg.gradients(y, x)"),
    ("value_and_grad_at_once", lambda x: mg.value_and_grad(mg.sum, x), "value_and_grad(f)(x)"),
    ("jacobian_at_once", lambda x: mg.jacobian(mg.exp, x), "mg.jacobian(f)(x)"),
    ("hessian_at_once", lambda x: mg.hessian(mg.sum, x), "mg.hessian(f)(x)"),
    ("hessian_at_an_array", lambda x: mg.hessian(mg.sum, np.ones(2)), "mg.hessian(f)(x)"),
    (
        "randn_that_requires_gradients",
        lambda x: mg.randn((2,), requires_grad=True),
        "randn(...).requires_grad_()",
    ),
    ("gradients_of_no_input", lambda x: mg.gradients(x), "gradients(outputs, inputs"),
    ("gradients_grad_outputs", lambda x: mg.gradients(x, x, grad_outputs=x), "dy="),
    ("jvp_without_tangents", lambda x: mg.jvp(mg.exp, x), "jvp(f, inputs, tangents)"),
    ("seed_of_nothing", lambda x: mg.manual_seed(), "manual_seed(seed)"),
    ("variable_of_a_list", lambda x: mg.Variable([1.0, 2.0]), "mg.variable(data)"),
    ("function_without_parts", lambda x: Nothing.apply(x), "Nothing: wanted a static method"),
    (
        "function_without_backward",
        lambda x: NoBackward.apply(x.requires_grad_()),
        "method backward",
    ),
    ("function_without_forward", lambda x: NoForward.apply(x), "method forward"),
    ("function_without_ctx", lambda x: WithoutCtx.apply(x), "def forward(ctx, x)"),
    (
        "function_whose_backward_lacks_ctx",
        lambda x: BackwardWithoutCtx.apply(x.requires_grad_()).sum().backward(),
        "def backward(ctx, *dys)",
    ),
    ("function_that_is_not_static", lambda x: method_of_objects(), "@staticmethod, def forward"),
    ("function_by_name", lambda x: BackwardWithoutCtx.apply(x, k=3), "apply(x, 3)"),
    ("function_object_by_name", lambda x: BackwardWithoutCtx()(x, k=3), "apply(x, 3)"),
    ("function_made_of_an_operand", lambda x: WithoutCtx(x), "WithoutCtx()(x)"),
    ("round_to_digits", lambda x: round(x, 1), "mg.round(x * 100) / 100"),
    ("bits_to_the_left", lambda x: x << 1, "a * 2**n"),
    ("bits_to_the_right", lambda x: 1 >> x, "a // 2**n"),
    ("picture_of_a_number", lambda x: mg.viz.memory(3), "mg.memory.timeline()"),
    ("where_of_a_condition", lambda x: mg.where(x > 0), "3 operands, c, a, b"),
    ("maximum_of_one", lambda x: mg.maximum(x), "2 operands, a, b"),
    ("erf_of_two", lambda x: mg.erf(x, x), "1 operand, x"),
    ("sum_dim", lambda x: x.sum(dim=0), "axis=, as it is called here"),
    ("mean_keepdim", lambda x: mg.mean(x, 0, keepdim=True), "keepdims="),
    ("clip_min", lambda x: x.clip(min=0.0), "low="),
    ("clip_max", lambda x: x.clip(max=0.0), "high="),
    ("softmax_dim", lambda x: mg.softmax(x, dim=0), "axis="),
    ("flatten_start_dim", lambda x: x.flatten(start_dim=1), "start_axis="),
    ("backward_gradient", lambda x: x.backward(gradient=x), "dy="),
    ("var_unbiased", lambda x: x.var(unbiased=True), "ddof=1"),
    ("transpose_of_two_axes", lambda x: x.transpose(0, 1), "x.permute"),
    ("conv2d_of_one", lambda x: mg.conv2d(x), "conv2d(x, w, b=None"),
    ("add_in_place_of_nothing", lambda x: x.add_(), "add_(x, other)"),
    ("fill_of_nothing", lambda x: x.fill_(), "fill_(x, value)"),
    ("gather_in_another_order", lambda x: mg.gather(x, 1, ints()), "gather(x, index, axis)"),
    ("max_of_two", lambda x: x.max(x), "mg.maximum(a, b)"),
    ("max_along_a_text", lambda x: mg.max(x, axis="0"), "try: the number of the axis: axis=0"),
    ("number_of_a_dtype", lambda x: mg.bfloat16(3.3), "mg.variable(3.3, dtype=mg.bfloat16)"),
    ("bool_of_a_dtype", lambda x: mg.bool_(1), "mg.variable(1, dtype=mg.bool_)"),
    ("optimizer_of_a_variable", lambda x: mg.optim.Adam([x]), "Adam: wanted nn.Parameters, as"),
    ("sum_over_a_variable", lambda x: x.sum(x), "wanted an int for axis"),
]


def test_a_function_without_backward_runs_where_nothing_is_recorded():
    x = mg.ones((2,), requires_grad=True)
    with mg.no_grad():
        assert NoBackward.apply(x).tolist() == [2.0, 2.0]


@pytest.mark.parametrize(("action", "says"), [r[1:] for r in CALLS], ids=[r[0] for r in CALLS])
def test_calls_with_other_arguments_say_what_is_wanted(action, says):
    with pytest.raises(ArgumentTypeError) as caught:
        action(mg.ones((2, 3)))
    assert says in str(caught.value)
    assert "test_newcomer.py" in caught.value.where


def test_a_type_error_of_a_hook_comes_through_as_it_is():
    def hook(grad):
        raise TypeError("hook() takes 0 positional arguments")

    x = mg.ones((2,), requires_grad=True)
    x.register_hook(hook)
    with pytest.raises(TypeError, match=r"^hook"):
        x.sum().backward()


@pytest.mark.parametrize("target", ["int8", "foo", "gpu"])
def test_conversion_to_an_unknown_name_lists_dtypes_and_devices(target):
    with pytest.raises(DeviceError, match=r"float32, .*or a device, cpu"):
        mg.ones((2,)).to(target)


MAKERS = {  # by the name of the message
    "zeros": lambda dtype: mg.zeros((2,), dtype),
    "full": lambda dtype: mg.full((2,), 1.0, dtype),
    "variable": lambda dtype: mg.variable(1.0, dtype),
    "randn": lambda dtype: mg.randn((2,), dtype),
    "eye": lambda dtype: mg.eye(2, dtype),
    "arange": lambda dtype: mg.arange(2, dtype=dtype),
    "linspace": lambda dtype: mg.linspace(0, 1, 2, dtype),
    "one_hot": lambda dtype: mg.one_hot([1], 2, dtype=dtype),
    "to": lambda dtype: mg.ones((2,)).to(dtype),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_dtype_spelled_otherwise_names_the_function_and_the_dtype(name):
    for spelling, near in [("bf16", "bfloat16"), ("BFloat16", "bfloat16"), ("floot32", "float32")]:
        with pytest.raises(MinigradError, match=rf"^{name}: wanted (.|\n)*try: '{near}'$"):
            MAKERS[name](spelling)
    with pytest.raises(MinigradError, match="the smallest floats that there are"):
        MAKERS[name]("float8_e5m2")


def test_topk_of_too_many_says_what_to_write():
    with pytest.raises(ArgumentError, match=r"k of at most 3(.|\n)*topk\(x, min\(k, 3\)\).*axis=0"):
        mg.topk(mg.ones((2, 3)), 5)


def test_what_has_a_device_is_not_the_name_of_one():
    place, x = mg.device("simt"), mg.ones((2,))
    for ask in (x.to, mg.nn.Linear(2, 3).to, lambda device: mg.ones((2,), device=device)):
        with pytest.raises(MinigradError, match="give the name alone, 'simt'") as caught:
            ask(place)
        assert caught.value.got == "mg.device('simt')"
        with pytest.raises(MinigradError, match=r"give its \.device or its \.dtype"):
            ask(x)


def test_a_plain_attribute_stays_where_it_is_when_a_model_moves():
    model = mg.nn.Linear(2, 2)
    model.mask = mg.ones((2,))
    model.register_buffer("scale", mg.ones((2,)))
    y = model.to("simt")(mg.ones((1, 2), device="simt")) * model.scale
    with pytest.raises(DeviceError, match=r"model\.to\('simt'\), which moves .* register_buffer"):
        y * model.mask


def test_in_place_errors_name_the_method():
    with pytest.raises(ShapeError, match=r"^copy_: "):
        mg.ones((2,)).copy_(mg.ones((3,)))
    with pytest.raises(MinigradError, match=r"^fill_: "):
        mg.ones((2,), requires_grad=True).fill_(1.0)
    with pytest.raises(DTypeError, match=r"^add in place: wanted a result of int64"):
        ints().add_(0.5)


# -- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("tensor", "mg.variable(data)"),
        ("cat", "mg.concatenate"),
        ("clamp", "mg.clip"),
        ("as_tensor", "mg.variable"),
        ("bf16", "mg.bfloat16"),
        ("cast", "x.to(dtype)"),
        ("set_default_dtype", "model.to(dtype)"),
        ("get_autocast_dtype", "block.dtype"),
    ],
)
def test_names_of_other_libraries_in_the_module_say_what_they_are_called_here(name, says):
    with pytest.raises(AttributeError) as caught:
        getattr(mg, name)
    assert f"no attribute '{name}'; here it is called" in str(caught.value)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("t", "x.T"),
        ("mT", "x.permute"),
        ("cuda", "x.to('cuda')"),
        ("astype", "x.to(dtype)"),
        ("retain_grad", "mg.gradients"),
        ("sort", "mg.sort(x, axis=axis)"),
        ("unsqueeze_", "x = x.unsqueeze("),
        ("gather", "mg.gather(x, ...)"),
    ],
)
def test_names_of_other_libraries_on_a_variable_say_what_they_are_called_here(name, says):
    with pytest.raises(AttributeError) as caught:
        getattr(mg.ones((2,)), name)
    assert f"no attribute '{name}'; here it is called" in str(caught.value)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("place", "name", "says"),
    [
        (mg, "sofmax", "did you mean softmax?"),
        (mg, "zzz", r"dir\(mg\) lists it all"),
        (mg.ones((2,)), "sigmoyd", "did you mean sigmoid?"),
        (mg.ones((2,)), "zzz", r"dir\(x\) lists it all"),
        (mg.nn.Linear(2, 2), "paramters", "did you mean parameters?"),
        (mg.nn.Linear(2, 2), "wieght", "did you mean weight?"),
        (mg.nn.Linear(2, 2), "zzz", "registered: weight, bias"),
        (mg, "float8_e4m3fn", "there is no float8; float16 and bfloat16 are the smallest floats"),
        (mg.cuda, "amp", "mg.autocast"),
        (mg.nn, "SyncBatchNorm", "each rank's own batch"),
        (mg.data, "DataLoader", "mg.data.batches"),
        (mg.data, "batch", "did you mean batches?"),
    ],
    ids=str,
)
def test_a_name_that_is_misspelt_says_which_one_is_near(place, name, says):
    with pytest.raises(AttributeError, match=says):
        getattr(place, name)


def test_a_device_with_a_number_says_that_there_is_one():
    for ask in (lambda: mg.zeros((1,), device="cuda:0"), lambda: mg.ones((1,)).to("cuda:0")):
        with pytest.raises(mg.errors.DeviceError, match="without a number"):
            ask()


def test_float_labels_say_how_they_become_ints():
    with pytest.raises(mg.errors.ShapeError, match=r"float32 labels \(2,\)(.|\n)*to\('int64'\)"):
        mg.cross_entropy(mg.zeros((2, 3)), mg.variable([0.0, 1.0]))


@pytest.mark.parametrize("before", ["", "mg.debug; mg.functional; "])
def test_the_package_autograd_is_there_whatever_was_used_before(before):
    asks = "mg.autograd.functional.grad is mg.grad, mg.autograd.debug is mg.debug"
    text = f"import minigrad as mg; {before}print({asks}, mg.autograd.gradcheck.__name__)"
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert run.stdout.split() == ["True", "True", "minigrad.autograd.gradcheck"], run.stderr


def test_names_of_derivatives_elsewhere_say_what_they_are_called_here():
    with pytest.raises(AttributeError, match=r"mg\.autograd has no 'grad'; .* mg\.gradients"):
        mg.autograd.grad  # noqa: B018
    with pytest.raises(AttributeError, match=r"'gradcheck'; .* mg\.debug\.gradcheck"):
        mg.gradcheck  # noqa: B018


def test_hints_name_what_exists():
    from minigrad.hints import NAMES

    model = mg.nn.Linear(2, 2)
    places = {
        "mg": mg, "mg.nn": mg.nn, "mg.optim": mg.optim, "mg.cuda": mg.cuda, "mg.data": mg.data,
        "mg.distributed": mg.distributed, "mg.autograd": mg.autograd,
        "Module": model, "Variable": mg.ones((2,)), "Optimizer": mg.optim.SGD(model, 0.1),
        "GradScaler": mg.optim.GradScaler(),
    }  # fmt: skip
    for place, hints in NAMES.items():
        assert not [name for name in hints if hasattr(places[place], name)], place
    for hint in NAMES["mg"].values():
        if hint.startswith("mg.") and "(" in hint:
            assert callable(attrgetter(hint[3 : hint.index("(")])(mg)), hint


# -- looking ---------------------------------------------------------------------------------------


def test_an_empty_variable_prints_its_shape():
    assert str(mg.zeros((0, 3))) == "Variable([], shape=(0, 3))"
    assert str(mg.zeros((0,))) == "Variable([])"


def test_rows_line_up_with_the_first():
    rows = str(mg.ones((2, 2), requires_grad=True)).splitlines()
    assert rows == ["Variable([[1., 1.],", "          [1., 1.]], requires_grad=True)"]
    rows = str(mg.nn.Parameter(np.ones((2, 2), "f4"))).splitlines()
    assert rows[0].index("[1") == rows[1].index("[1")


def test_matplotlib_draws_variables():
    figure = pytest.importorskip("matplotlib.figure", reason="needs the extra 'lab'")
    axes = figure.Figure().add_subplot()
    (line,) = axes.plot(mg.arange(3), mg.variable([1.0, 2.0, 4.0]))
    assert list(line.get_ydata()) == [1.0, 2.0, 4.0]


# -- what they would expect to be there ------------------------------------------------------------


def test_full_like_takes_shape_and_dtype():
    x = mg.full_like(mg.zeros((2, 3), dtype="float64"), 2)
    assert (x.shape, x.dtype, x.tolist()) == ((2, 3), mg.float64, [[2.0] * 3] * 2)
    assert mg.full_like(x, 1, dtype="int64").dtype is mg.int64


@pytest.mark.parametrize("fill", [mg.full, lambda shape, v: mg.full_like(mg.ones(shape), v)])
def test_full_refuses_to_lose_a_graph(fill):
    x = mg.variable(2.0, requires_grad=True)
    for value in (x.detach(), x.detach(), x.detach()):  # the same layout, routed or not
        assert fill((2,), value).tolist() == [2.0, 2.0]
    with pytest.raises(GradientError, match=r"^full: the value becomes a constant(.|\n)*detach"):
        fill((2,), x)
    with mg.no_grad():
        assert fill((2,), x).tolist() == [2.0, 2.0]


def test_full_of_several_elements_names_itself():
    with pytest.raises(ArgumentTypeError, match=r"^full: wanted a number for value(.|\n)*expand"):
        mg.full((2,), mg.variable([2.0, 3.0]))


def test_outer_is_the_product_of_all_pairs_and_differentiable():
    rng = np.random.default_rng(0)
    a, b = (mg.variable(rng.normal(size=n), requires_grad=True) for n in (3, 4))
    np.testing.assert_array_equal(mg.outer(a, b).detach().numpy(), np.outer(a.tolist(), b.tolist()))
    assert mg.debug.gradcheck(mg.outer, [a, b])
    with pytest.raises(ShapeError):
        mg.outer(mg.ones((2, 2)), b)


def test_allclose_compares_within_tolerances_as_numpy():
    a = mg.variable([1.0, float("inf")], requires_grad=True)
    assert mg.allclose(a, [1.000001, float("inf")]) is True
    assert mg.allclose(a, [1.1, float("inf")]) is False
    assert mg.allclose(a, [1.1, float("inf")], relative=0.2)
    assert not mg.allclose([float("nan")], [float("nan")])
    assert mg.allclose([float("nan")], [float("nan")], equal_nan=True)
    assert mg.allclose(mg.ones((2, 2)), 1.0)
    with pytest.raises(ShapeError):
        mg.allclose(mg.ones((2,)), mg.ones((3,)))
    with pytest.raises(ArgumentTypeError, match="absolute="):
        mg.allclose(a, a, atol=1.0)
    with pytest.raises(ArgumentError):
        mg.allclose(a, a, absolute=-1.0)


def test_a_transposed_view_is_written_in_place():
    x = mg.variable([[1.0, 2.0], [3.0, 4.0]])
    x.T += mg.variable([[0.0, 1.0], [0.0, 0.0]])
    assert x.tolist() == [[1.0, 2.0], [4.0, 4.0]]
    for value in (5.0, x, x.clone().T):
        with pytest.raises(ArgumentTypeError, match=r"x.copy_\(y.T\)"):
            x.T = value
    assert x.tolist() == [[1.0, 2.0], [4.0, 4.0]]


def test_an_error_inside_a_library_names_the_line_that_called_it():
    losses = [mg.ones(2, requires_grad=True) * 2.0]
    with pytest.raises(GradientError, match=r"where: test_newcomer.py:\d+  np.atleast_1d\(losses"):
        np.atleast_1d(losses)


def test_checkpoints_say_what_is_wrong_with_a_path(tmp_path):
    with pytest.raises(StateError, match=r"mkdir\(parents=True\)"):
        mg.save(tmp_path / "new" / "run.safetensors", model=mg.nn.Linear(2, 2))
    with pytest.raises(StateError, match="it is a folder"):
        mg.load(tmp_path)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("from minigrad import Tensor", "here it is called mg.variable"),
        ("from minigrad import nn, tensor", "here it is called mg.variable"),
        ("from minigrad.nn import functional as F", "mg itself that has functions"),
        ("from minigrad.optim import Adm", "did you mean Adam?"),
        ("from minigrad.data import DataLoader", "mg.data.batches"),
    ],
)
def test_an_import_of_a_missing_name_gives_its_hint(line, hint):
    with pytest.raises(ImportError, match=hint):
        exec(line, {})
