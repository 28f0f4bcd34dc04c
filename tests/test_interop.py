"""NumPy and DLPack: what is shared, what is copied, who keeps the memory alive."""

import copy
import gc
import operator
import pickle

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import (
    ArgumentTypeError,
    DTypeError,
    GradientError,
    InPlaceError,
    SavedValueModifiedError,
)

DTYPES = [np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_]


def values(dtype=np.float32):
    return np.arange(6).reshape(2, 3).astype(dtype)


def leaf(data, **kwargs):
    return mg.variable(np.asarray(data, np.float32), requires_grad=True, **kwargs)


def address(array):
    return array.__array_interface__["data"][0]


# -- operators -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: a + b,
        lambda a, b: a - b,
        lambda a, b: a * b,
        lambda a, b: a / b,
        lambda a, b: a**b,
        lambda a, b: a < b,
        lambda a, b: a >= b,
        lambda a, b: a == b,
        lambda a, b: a != b,
        lambda a, b: a @ b.T,
    ],
)
@pytest.mark.parametrize("variable_is", ["left", "right"])
def test_operator_with_an_ndarray_on_either_side_gives_a_variable(function, variable_is):
    a, b = values() + 1, values()[::-1] + 2
    if variable_is == "left":
        result = function(mg.variable(a), b)
    else:
        result = function(a, mg.variable(b))
    assert type(result) is mg.Variable
    np.testing.assert_allclose(result.numpy(), function(a, b), rtol=1e-5)


@pytest.mark.parametrize("scalar", [np.float32(2), np.float64(2), np.int64(2), np.array(2.0)])
def test_numpy_scalar_on_the_left_keeps_the_dtype(scalar):
    x = mg.variable(values())
    for result in (scalar * x, scalar + x, scalar - x, scalar / (x + 1.0), x * scalar):
        assert type(result) is mg.Variable
        assert result.dtype is mg.float32
    np.testing.assert_array_equal((scalar - x).numpy(), 2 - values())


def test_logic_with_an_ndarray_on_the_left():
    a, b = np.array([True, False, True]), np.array([True, True, False])
    assert (a & mg.variable(b)).tolist() == (a & b).tolist()
    assert (a | mg.variable(b)).tolist() == (a | b).tolist()


def test_reflected_operator_is_recorded():
    w = leaf([[1.0, 2.0], [3.0, 4.0]])
    (np.array([[1.0, 0.0]], np.float32) @ w - w).sum().backward()
    np.testing.assert_array_equal(w.grad.numpy(), [[1, 1], [-1, -1]])


def test_float64_array_makes_a_float64_result():
    assert (values(np.float64) + mg.variable(values())).dtype is mg.float64


@pytest.mark.parametrize("function", [np.exp, np.maximum])
def test_numpy_ufunc_of_a_variable_is_a_type_error_that_names_it(function):
    x = mg.variable(values())
    with pytest.raises(TypeError, match="keeps no graph, and takes no Variables"):
        function(*[x] * function.nin)


def test_ndarray_changed_in_place_by_a_variable_is_a_type_error():
    a = values()
    with pytest.raises(TypeError, match="wanted NumPy's values"):
        a += mg.variable(values())
    np.testing.assert_array_equal(a, values())


# -- numpy(), __array__ --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_round_trip_keeps_dtype_and_values(dtype):
    x = mg.variable(values(dtype))
    assert x.numpy().dtype == dtype
    np.testing.assert_array_equal(x.numpy(), values(dtype))
    np.testing.assert_array_equal(np.asarray(x), values(dtype))


def test_numpy_is_a_read_only_view_that_follows_the_variable():
    x = mg.variable(values())
    seen = x.numpy()
    assert address(seen) == x.data_ptr()
    with pytest.raises(ValueError, match="read-only"):
        seen[0, 0] = 1
    with mg.no_grad():
        x.add_(10.0)
    np.testing.assert_array_equal(seen, values() + 10)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.T,
        lambda x: x[:, 1:],
        lambda x: x[::-1],
        lambda x: x.reshape(3, 2),
        lambda x: x[0].expand((4, 3)),
        lambda x: x[1:1],
        lambda x: x[1, 2],
    ],
)
def test_numpy_of_a_view_shows_the_same_memory(view):
    x = mg.variable(values())
    seen = view(x).numpy()
    np.testing.assert_array_equal(seen, np.array(view(mg.variable(values()))))
    with mg.no_grad():
        x.mul_(2.0)
    np.testing.assert_array_equal(seen, np.array(view(mg.variable(2 * values()))))


def test_numpy_of_a_clone_is_not_changed_by_the_original():
    x = mg.variable(values())
    y = x.clone()
    seen = y.numpy()
    with mg.no_grad():
        x.add_(1.0)
    np.testing.assert_array_equal(seen, values())
    assert not seen.flags.writeable


def test_numpy_then_clone_then_write_leaves_the_clone():
    x = mg.variable(values())
    writer = x.numpy(writable=True)
    y = x.clone()
    writer[:] = 7
    np.testing.assert_array_equal(x.numpy(), np.full((2, 3), 7))
    np.testing.assert_array_equal(y.numpy(), values())


def test_numpy_writable_writes_through_and_counts_as_a_write():
    x = mg.variable(values())
    before = x.version
    writer = x.numpy(writable=True)
    writer[0, 0] = 42
    assert x.version == before + 1
    assert x[0, 0].item() == 42
    assert (x + 0.0)[0, 0].item() == 42


def test_numpy_writable_of_a_leaf_that_requires_grad_raises():
    with pytest.raises(InPlaceError, match="leaf"):
        leaf([1.0]).numpy(writable=True)


def test_numpy_writable_of_a_broadcast_view_raises():
    x = mg.variable([1.0, 2.0])
    with pytest.raises(InPlaceError, match="broadcast view"):
        x.expand((3, 2)).numpy(writable=True)
    assert x.version == 0


def test_array_with_another_dtype_converts():
    x = mg.variable(values())
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="without a copy"):
        np.array(x, dtype=np.float64, copy=False)


def test_array_with_copy_is_independent():
    x = mg.variable(values())
    own = np.array(x)
    own[0, 0] = 9
    assert x[0, 0].item() == 0
    assert address(np.array(x, copy=False)) == x.data_ptr()


def test_array_of_a_variable_that_requires_grad_raises():
    with pytest.raises(GradientError, match="cannot carry a graph"):
        np.asarray(leaf([1.0]))
    with pytest.raises(GradientError, match="cannot carry a graph"):
        np.concatenate([leaf([1.0]), leaf([2.0])])


def test_numpy_functions_that_read_take_variables():
    x = mg.variable(values())
    np.testing.assert_array_equal(np.concatenate([x, x]), np.concatenate([values(), values()]))
    assert np.allclose(x, values())
    np.testing.assert_allclose(x, values())
    assert np.shape(x) == (2, 3)


def test_numpy_functions_take_variables_beside_arrays_of_other_libraries():
    class Tensor:  # as other libraries' have it
        requires_grad = False

        def __array__(self, dtype=None, copy=None):
            return values()

    together = np.concatenate([mg.variable(values()), Tensor()])
    np.testing.assert_array_equal(together, np.concatenate([values(), values()]))


# -- lifetime ------------------------------------------------------------------------------------


def test_numpy_view_keeps_the_memory_after_the_variable_is_gone():
    x = mg.variable(np.arange(1000, dtype=np.float32))
    place, seen = x.data_ptr(), x.numpy()
    del x
    gc.collect()
    with mg.memory.poison():
        others = [mg.zeros((1000,)) for _ in range(8)]
    assert place not in [o.data_ptr() for o in others]
    np.testing.assert_array_equal(seen, np.arange(1000))


def test_numpy_view_of_a_view_keeps_the_memory():
    x = mg.variable(np.arange(1000, dtype=np.float32))
    seen = x[10:20].numpy()[::2]
    del x
    others = [mg.zeros((1000,)) for _ in range(8)]
    np.testing.assert_array_equal(seen, np.arange(10, 20, 2))
    del others


def test_memory_returns_to_the_pool_when_the_last_view_is_gone():
    gc.collect()  # what earlier tests left must not go away in between
    before = mg.memory.stats()["current_bytes"]
    x = mg.variable(np.zeros(1000, np.float32))
    seen = x.numpy()
    del x
    assert mg.memory.stats()["current_bytes"] > before
    del seen
    assert mg.memory.stats()["current_bytes"] == before


def test_dlpack_export_keeps_the_memory():
    x = mg.variable(np.arange(1000, dtype=np.float32))
    place, seen = x.data_ptr(), np.from_dlpack(x)
    del x
    others = [mg.zeros((1000,)) for _ in range(8)]
    assert place not in [o.data_ptr() for o in others]
    np.testing.assert_array_equal(seen, np.arange(1000))


def test_from_numpy_keeps_the_array_alive():
    source = np.arange(1000, dtype=np.float32)
    x = mg.from_numpy(source)
    del source
    gc.collect()
    junk = [np.full(1000, -1, np.float32) for _ in range(8)]
    np.testing.assert_array_equal(x.numpy(), np.arange(1000))
    del junk


# -- from_numpy ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_from_numpy_shares_both_ways(dtype):
    a = np.zeros((2, 3), dtype)
    x = mg.from_numpy(a)
    assert x.data_ptr() == address(a)
    a[0, 1] = 1
    assert x.tolist()[0][1] == 1
    with mg.no_grad():
        x.fill_(True if dtype is np.bool_ else 1)
    np.testing.assert_array_equal(a, np.ones((2, 3), dtype))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (), (1,), (2, 3, 4)])
def test_from_numpy_any_shape_computes(shape):
    a = np.full(shape, 2.0, np.float32)
    np.testing.assert_array_equal((mg.from_numpy(a) * 3.0).numpy(), a * 3)


@pytest.mark.parametrize("kind", ["transposed", "strided", "read-only"])
def test_from_numpy_of_what_cannot_be_shared_copies(kind):
    a = values()
    if kind == "read-only":
        a.flags.writeable = False
    b = {"transposed": a.T, "strided": a[:, ::2], "read-only": a}[kind]
    x = mg.from_numpy(b)
    assert x.data_ptr() != address(b)
    np.testing.assert_array_equal(x.numpy(), b)


@pytest.mark.parametrize("dtype", [np.int8, np.complex64, ">f4", object, "U3", "M8[s]"])
def test_from_numpy_of_a_dtype_that_is_not_taken_lists_those_that_are(dtype):
    with pytest.raises(DTypeError, match="float32, float64"):
        mg.from_numpy(np.zeros(2, dtype))


@pytest.mark.parametrize("wrong", [[1.0], 3.0, None, "abc"])
def test_from_numpy_of_no_ndarray_raises(wrong):
    with pytest.raises(ArgumentTypeError, match="wanted an ndarray"):
        mg.from_numpy(wrong)


def test_autograd_is_safe_from_writes_of_numpy_to_shared_memory():
    a = np.array([1.0, 2.0, 3.0], np.float32)
    x = mg.from_numpy(a)
    w = leaf([1.0, 1.0, 1.0])
    y = (w * x).sum()
    a[:] = 100  # unseen by the version counter: what was saved is a copy
    y.backward()
    assert w.grad.tolist() == [1.0, 2.0, 3.0]


def test_autograd_is_safe_from_writes_of_numpy_through_a_view_of_shared_memory():
    a = values()
    x = mg.from_numpy(a)[1:]
    w = leaf(np.ones((1, 3)))
    y = (w * x).sum()
    a[:] = 100
    y.backward()
    assert w.grad.tolist() == [[3.0, 4.0, 5.0]]


def test_autograd_is_safe_from_writes_through_a_writable_view():
    x = mg.variable([1.0, 2.0])
    writer = x.numpy(writable=True)
    w = leaf([1.0, 1.0])
    y = (w * x).sum()
    writer[:] = 100
    y.backward()
    assert w.grad.tolist() == [1.0, 2.0]


def test_autograd_matmul_is_safe_from_writes_through_dlpack():
    x = mg.variable(values())
    writer = np.from_dlpack(x)
    w = leaf(np.ones((3, 1)))
    y = (x @ w).sum()
    writer[:] = 100
    y.backward()
    assert w.grad.tolist() == [[3.0], [5.0], [7.0]]


def test_writable_view_taken_after_saving_is_noticed_by_backward():
    w = leaf([1.0, 2.0])
    h = w.exp()
    y = (h * h).sum()
    h.detach().numpy(writable=True)[:] = 0
    with pytest.raises(SavedValueModifiedError, match="written at"):
        y.backward()


def test_shared_memory_that_nobody_can_write_any_more_is_saved_without_a_copy():
    x = mg.variable(values())
    writer = x.numpy(writable=True)
    del writer
    w = leaf(np.ones((2, 3)))
    y = w * x
    assert any(a.storage is x.array.storage for a in y.node.saved.values())


# -- DLPack --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_dlpack_to_numpy_and_back_shares(dtype):
    x = mg.variable(values(dtype))
    seen = np.from_dlpack(x)
    assert seen.dtype == dtype
    assert address(seen) == x.data_ptr()
    again = mg.from_dlpack(x)
    assert again.data_ptr() == x.data_ptr()
    assert again.dtype is x.dtype


def test_dlpack_of_a_view_keeps_its_strides():
    x = mg.variable(values())
    seen = np.from_dlpack(x.T)
    assert seen.strides == (4, 12)
    np.testing.assert_array_equal(seen, values().T)


def test_dlpack_with_copy_is_independent():
    x = mg.variable(values())
    own = np.from_dlpack(x, copy=True)
    own[:] = 9
    np.testing.assert_array_equal(x.numpy(), values())


def test_dlpack_counts_as_a_write():
    x = mg.variable(values())
    np.from_dlpack(x)
    assert x.version == 1


def test_dlpack_of_a_variable_that_requires_grad_raises():
    with pytest.raises(GradientError, match="cannot carry a graph"):
        np.from_dlpack(leaf([1.0]))
    assert np.from_dlpack(leaf([1.0]).detach())[0] == 1


def test_dlpack_device_is_the_cpu():
    assert mg.ones((1,)).__dlpack_device__() == (1, 0)


def test_from_dlpack_of_an_ndarray_shares():
    a = values()
    assert mg.from_dlpack(a).data_ptr() == address(a)


@pytest.mark.parametrize("wrong", [3.0, [1.0], None])
def test_from_dlpack_of_something_else_raises(wrong):
    with pytest.raises(ArgumentTypeError, match="DLPack"):
        mg.from_dlpack(wrong)


class Foreign:
    """An array of another library that does not want to be exported."""

    def __init__(self, error):
        self.error = error

    def __dlpack__(self, **kwargs):
        raise self.error

    def __dlpack_device__(self):
        return (1, 0)


@pytest.mark.parametrize("error", [BufferError("it has a graph"), RuntimeError("odd dtype")])
@pytest.mark.parametrize("function", [mg.from_dlpack, mg.variable])
def test_dlpack_import_that_is_refused_says_why(function, error):
    with pytest.raises(ArgumentTypeError, match=str(error)):
        function(Foreign(error))


def test_torch_shares_memory_both_ways():
    torch = pytest.importorskip("torch", reason="torch is not installed (extra 'bench')")
    x = mg.variable(values())
    t = torch.from_dlpack(x)
    t += 1
    np.testing.assert_array_equal(x.numpy(), values() + 1)
    y = mg.from_dlpack(t)
    assert y.data_ptr() == t.data_ptr()
    np.testing.assert_array_equal(mg.variable(torch.ones(3)).numpy(), np.ones(3))
    halves = torch.tensor([1.0, 3.1, -2.0], dtype=torch.bfloat16)
    z = mg.from_dlpack(halves)
    z[0] = 5.0
    assert halves.tolist() == z.tolist() == [5.0, 3.09375, -2.0]
    assert torch.from_dlpack(z).dtype == torch.bfloat16
    with pytest.raises(ArgumentTypeError, match="dtype"):
        mg.from_dlpack(torch.ones(3, dtype=torch.complex64).real.to(torch.float8_e5m2))
    with pytest.raises(ArgumentTypeError, match="detach"):
        mg.variable(torch.ones(3, requires_grad=True))


# -- Python --------------------------------------------------------------------------------------


def test_format_of_one_element_takes_a_form():
    loss = mg.variable([1.23456]).sum()
    assert f"{loss:.3f}" == "1.235"
    assert f"{mg.variable(7):05d}" == "00007"
    assert f"{loss}" == str(loss)
    with pytest.raises(ArgumentTypeError, match="wanted one element"):
        f"{mg.ones((2,)):.3f}"


def test_deepcopy_of_a_leaf_has_memory_of_its_own():
    x = leaf([1.0, 2.0], name="x")
    (x * x).sum().backward()
    y = copy.deepcopy(x)
    assert (y.name, y.requires_grad, y.grad.tolist()) == ("x", True, [2.0, 4.0])
    with mg.no_grad():
        y.add_(10.0)
        y.grad.zero_()
    assert x.tolist() == [1.0, 2.0]
    assert x.grad.tolist() == [2.0, 4.0]


def test_deepcopy_of_a_list_keeps_what_is_the_same_the_same():
    x = leaf([1.0])
    a, b = copy.deepcopy([x, x])
    assert a is b


def test_deepcopy_of_a_result_raises():
    with pytest.raises(GradientError, match="wanted a leaf"):
        copy.deepcopy(leaf([1.0]).exp())


def test_copy_is_a_clone_with_memory_of_its_own_in_the_graph():
    x = mg.variable([1.0, 2.0], requires_grad=True)
    y = copy.copy(x)
    assert y.node is not None
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    z = copy.copy(x.detach())
    z.add_(1.0)
    assert (x.tolist(), z.tolist()) == ([1.0, 2.0], [2.0, 3.0])


def test_pickle_says_what_to_do_instead():
    x = mg.ones((2,))
    with pytest.raises(ArgumentTypeError, match=r"x\.detach\(\)\.numpy\(\)"):
        pickle.dumps(x)


def test_iteration_gives_rows_and_numbers_give_python_values():
    x = mg.variable(values())
    assert [row.tolist() for row in x] == values().tolist()
    assert (float(x[0, 1]), int(x[1, 0]), bool(x[0, 0])) == (1.0, 3, False)
    assert [10, 20, 30][mg.variable(1)] == 20


def test_numpy_functions_take_values_outside_the_graph():
    x = mg.variable([[1.0, 2.0], [3.0, 4.0]])
    assert np.sum(x) == 10.0
    np.testing.assert_array_equal(np.mean(x, axis=0), [2.0, 3.0])
    assert np.concatenate([x, x]).shape == (4, 2)
    assert np.allclose(x, x.numpy())


def test_numpy_functions_refuse_what_requires_gradients_and_name_the_way_out():
    x = mg.variable([1.0], requires_grad=True)
    with pytest.raises(GradientError, match=r"np\.sum cannot carry a graph[\s\S]*mg\.sum"):
        np.sum(x)


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (lambda x, a: np.exp(x), "mg.exp"),
        (lambda x, a: np.maximum(x, 0.0), "mg.maximum"),
        (lambda x, a: np.add(x, a), "mg.add"),
        (lambda x, a: np.add.reduce(x), "np.add"),
        (lambda x, a: np.hypot(a, x), "np.hypot"),
        (lambda x, a: np.arctan2(x, a), "mg.atan2"),
        (lambda x, a: a.__iadd__(x), "array \\+= x.detach"),
    ],
)
def test_functions_of_numpy_raise_and_say_what_to_write(function, wanted):
    x, a = mg.variable([1.0, 2.0], requires_grad=True), np.ones(2, "f4")
    with pytest.raises(ArgumentTypeError, match=wanted):
        function(x, a)
    assert a.tolist() == [1.0, 1.0]


def test_an_array_on_the_left_of_an_operator_is_the_variables_operand():
    x, a = mg.variable([1.0, 2.0], requires_grad=True), np.array([3.0, 1.0], "f4")
    assert [(a + x).tolist(), (a - x).tolist(), (a @ x).item()] == [[4.0, 3.0], [2.0, -1.0], 5.0]
    assert [(a < x).tolist(), (a == x).tolist()] == [[False, True], [False, False]]
    assert (np.float64(2.0) ** x).tolist() == [2.0, 4.0]
    (a * x).sum().backward()
    assert x.grad.tolist() == [3.0, 1.0]


HIDDEN = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])


@pytest.mark.parametrize(
    "take",
    [
        lambda: mg.variable(HIDDEN),
        lambda: mg.variable([HIDDEN, HIDDEN]),
        lambda: mg.variable([1.0, np.ma.masked]),
        lambda: mg.from_numpy(HIDDEN),
        lambda: mg.from_dlpack(HIDDEN),
        lambda: mg.nn.Parameter(HIDDEN),
        lambda: mg.zeros((3,)) + HIDDEN,
        lambda: mg.exp(HIDDEN),
        lambda: mg.zeros((3,)).copy_(HIDDEN),
        lambda: mg.zeros((3,)).fill_(np.ma.masked),
        lambda: mg.zeros((3,))[np.ma.array([0, 1], mask=[False, True])],
        *(
            lambda calculate=calculate: calculate(HIDDEN, mg.ones((3,)))
            for calculate in (
                operator.add,
                operator.sub,
                operator.mul,
                operator.truediv,
                operator.floordiv,
                operator.mod,
                operator.pow,
                operator.matmul,
                divmod,
                np.add,
            )
        ),
        lambda: np.ma.masked + mg.ones((3,)),
    ],
)
def test_an_array_with_masked_elements_is_refused(take):
    with pytest.raises(ArgumentTypeError, match=r"x\.filled\(0\.0\)"):
        take()


def test_a_masked_array_that_hides_nothing_is_an_array():
    assert mg.variable(np.ma.array([1.0, 2.0])).tolist() == [1.0, 2.0]
    assert mg.variable(HIDDEN.filled(0.0)).tolist() == [1.0, 0.0, 3.0]
    shown, x = np.ma.array([1.0, 2.0]), mg.variable([3.0, 4.0], "float64", requires_grad=True)
    (shown * x + x / shown).sum().backward()
    assert x.grad.tolist() == [2.0, 2.5]
    shared = mg.from_numpy(shown)
    shared += 1.0
    assert shown.tolist() == [2.0, 3.0]


def test_what_numpy_computes_of_masked_arrays_takes_values_but_no_graph():
    x = mg.variable([1.0, 5.0, 2.0])
    for compute in (operator.eq, operator.lt, operator.iadd, np.ma.add):
        found = compute(HIDDEN.copy(), x)
        assert isinstance(found, np.ma.MaskedArray)
        assert found.mask.tolist() == [False, True, False]
        with pytest.raises(GradientError, match="NumPy cannot carry a graph"):
            compute(HIDDEN.copy(), x.clone().requires_grad_())


def test_numpy_takes_a_dtype():
    for dtype in (mg.float32, mg.uint8, mg.bool_):
        assert np.zeros(1, dtype).dtype == np.dtype(dtype.name)
        assert np.dtype(dtype.name) == dtype
