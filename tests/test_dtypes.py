"""DTypes compare with what people write for them."""

import copy
import pickle

import ml_dtypes
import numpy as np
import pytest

import minigrad as mg
from minigrad.array.dtypes import DTYPES, as_dtype, promote


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtype_equals_its_name_and_numpys(dtype):
    assert dtype == dtype.name
    assert dtype == dtype.numpy
    assert dtype == dtype.numpy.type
    assert dtype.name == dtype
    assert as_dtype(dtype.name) is dtype
    assert [d for d in DTYPES if d == dtype.name] == [dtype]


def test_dtype_differs_from_others_and_from_nonsense():
    assert mg.float32 != "float64"
    assert mg.float32 != np.int32
    assert mg.float32 != "no dtype"
    assert mg.float32 != 3
    assert mg.ones((1,)).dtype == "float32"


def test_dtype_stays_the_one_object_of_its_name():
    assert pickle.loads(pickle.dumps(mg.int32)) is mg.int32
    assert copy.deepcopy(mg.int32) is mg.int32


def test_promote_is_symmetric_and_keeps_a_dtype_within_its_kind():
    for a in DTYPES:
        for b in DTYPES:
            assert promote(a, b) is promote(b, a)
            assert promote(a, b) in ((mg.float32,) if {a, b} == HALVES else (a, b))
    assert promote(mg.float32, mg.int64) is mg.float32
    assert promote(mg.uint8, mg.bool_) is mg.uint8


HALVES = {mg.float16, mg.bfloat16}
SPELLINGS = {
    "float32": (mg.float32, "float32", "float", float, "single", "f4", np.float32, "torch.float32"),
    "float64": (mg.float64, "float64", "double", "f8", np.float64, np.dtype("d"), "torch.double"),
    "float16": (mg.float16, "float16", "half", "f2", np.float16, "torch.float16", "torch.half"),
    "bfloat16": (mg.bfloat16, "bfloat16", np.dtype(ml_dtypes.bfloat16), "torch.bfloat16"),
    "int32": (mg.int32, "int32", "i4", np.int32, "torch.int32"),
    "int64": (mg.int64, "int64", "int", int, "long", "i8", np.int64, np.dtype("q"), "torch.long"),
    "uint8": (mg.uint8, "uint8", "u1", np.uint8, "torch.uint8"),
    "bool": (mg.bool_, "bool", bool, "?", np.bool_, "torch.bool"),
}
MAKERS = {
    "variable": lambda d: mg.variable([1], dtype=d),
    "variable of a Variable": lambda d: mg.variable(mg.variable([1]), dtype=d),
    "zeros": lambda d: mg.zeros((1,), d),
    "ones": lambda d: mg.ones((1,), d),
    "full": lambda d: mg.full((1,), 1, d),
    "full_like": lambda d: mg.full_like(mg.ones((1,)), 1, d),
    "arange": lambda d: mg.arange(1, dtype=d),
    "linspace": lambda d: mg.linspace(0, 1, 2, d),
    "eye": lambda d: mg.eye(1, d),
    "one_hot": lambda d: mg.one_hot([0], 1, d),
    "to": lambda d: mg.variable([1]).to(d),
    "to by name": lambda d: mg.variable([1]).to(dtype=d),
}
OF_FLOATS = {
    "rand": lambda d: mg.rand((1,), d),
    "randn": lambda d: mg.randn((1,), d),
    "Linear": lambda d: mg.nn.Linear(1, 1, dtype=d).weight,
    "Module.to": lambda d: mg.nn.Linear(1, 1).to(d).weight,
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_every_function_reads_every_spelling_of_a_dtype_alike(name):
    wanted = as_dtype(name)
    makers = MAKERS | (OF_FLOATS if wanted.is_float else {})
    for spelling in SPELLINGS[name]:
        assert as_dtype(spelling) is wanted, spelling
        assert wanted == spelling
        for maker, make in makers.items():
            assert make(spelling).dtype is wanted, (maker, spelling)


@pytest.mark.parametrize("maker", MAKERS | OF_FLOATS)
def test_every_function_refuses_what_is_no_dtype(maker):
    for nonsense in ("float8", "complex64", "", 3.5, np.dtype("f4,f4"), object, [], mg.zeros((1,))):
        with pytest.raises(mg.errors.MinigradError):
            (MAKERS | OF_FLOATS)[maker](nonsense)


def test_to_takes_each_kind_of_target_under_its_own_name_alone():
    x = mg.ones((1,))
    assert x.to(device="cpu") is x
    with pytest.raises(mg.errors.DeviceError, match="wanted a device"):
        x.to(device="float64")
    with pytest.raises(mg.errors.DTypeError, match="wanted a dtype"):
        x.to(dtype="simt")
    with pytest.raises(mg.errors.DTypeError, match="as parameters have"):
        mg.nn.Linear(1, 1).to("int64")


BIG, SMALL = np.float64(1e300), 1e-300
WIDE = mg.variable(1e300, dtype="float64")
KEPT = {  # data -> dtype
    "NumPy scalars": ([BIG], "float64"),
    "nested": ([[BIG, 1.0], (2, True)], "float64"),
    "a Variable": ([WIDE], "float64"),
    "Variables and numbers": ([[WIDE, 1], [2.0, True]], "float64"),
    "arrays": ([np.array([1e300]), np.array([1.0], np.float32)], "float64"),
    "float32 and Python's": ([np.float32(1.0), 0.1], "float32"),
    "float64 and Python's ints": ([2, BIG], "float64"),
    "float32 and Python's ints": ([[np.float32(1.5), 2], (3, 4)], "float32"),
    "a Variable and ints": ([WIDE, 2, True], "float64"),
    "rows of floats and of ints": ([np.array([0.5, 1.0]), [3, 4]], "float64"),
    "ints and Python's floats": ([np.int32(1), 0.5], "float32"),
    "int32": ([np.int32(1), 2], "int32"),
    "narrow ints": ([np.int8(1), np.uint16(2)], "int64"),
    "half floats": ([np.float16(0.5), 2], "float16"),
    "bools and ints": ([True, 2], "int64"),
    "bools and floats": ([True, 0.5], "float32"),
    "nothing": ([[], []], "float32"),
    "a range": (range(3), "int64"),
}


@pytest.mark.parametrize("name", KEPT)
def test_lists_keep_the_dtype_of_what_has_one(name):
    data, dtype = KEPT[name]
    found = mg.variable(data)
    assert found.dtype == dtype
    wanted = np.array(np.asarray(data), dtype)
    np.testing.assert_array_equal(found.numpy(), wanted)
    assert mg.sum(data).dtype == ("int64" if found.dtype.kind != "f" else dtype)
    assert mg.nn.Buffer(data).dtype == dtype


def test_lists_keep_float64_through_the_transforms():
    a, b = mg.variable(3.0, dtype="float64"), np.float64(4.0)
    assert mg.grad(lambda x: (x * x).sum())([3.0, b]).dtype == "float64"
    assert mg.grad(lambda x, y: x * y)(a, 0.1).item() == 0.1
    value, _ = mg.vjp(lambda x: x * 1e-300, [np.float64(1e300)])
    assert value.tolist() == [1.0]


def test_numbers_beside_a_float64_variable_are_not_rounded_to_float32():
    x = mg.zeros((2,), "float64")
    assert mg.add(x, [0.1, 0.2]).tolist() == [0.1, 0.2]
    x[0], x[1:] = 0.1, [0.2]
    assert x.tolist() == [0.1, 0.2]
    assert x.copy_([0.3, 0.4]).tolist() == [0.3, 0.4]
    assert mg.nn.Parameter(x).assign([0.1, 0.2]).tolist() == [0.1, 0.2]
    assert mg.full((1,), WIDE).tolist() == [1e300]
    assert mg.arange(0.0, np.float64(0.2), 0.1).tolist() == [0.0, 0.1]


REFUSED = {
    "variable": lambda: mg.variable([1e300]),
    "a scalar": lambda: mg.variable(-1e300),
    "beside infinity": lambda: mg.variable([np.inf, 1e300]),
    "said": lambda: mg.variable([1.0, 1e39], dtype="float32"),
    "full": lambda: mg.full((2,), 1e300),
    "fill_": lambda: mg.zeros((2,)).fill_(1e300),
    "set": lambda: mg.zeros((2,)).__setitem__(0, 1e300),
    "operand": lambda: mg.add(mg.zeros((1,)), [1e300]),
    "Parameter": lambda: mg.nn.Parameter([1e300]),
    "ints": lambda: mg.variable([2**63]),
    "ints that NumPy makes floats": lambda: mg.variable([2**63, -1]),
    "more bits": lambda: mg.variable([2**70]),
    "bytes": lambda: mg.variable([256], dtype="uint8"),
    "long doubles": lambda: mg.variable([np.longdouble(1.0)]),
    "ragged": lambda: mg.sum([[1], [1, 2]]),
    "a graph": lambda: mg.variable([mg.ones((), requires_grad=True)]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_numbers_that_a_dtype_does_not_hold_are_refused(name):
    if name == "long doubles" and np.dtype(np.longdouble) == np.float64:
        pytest.skip("they are float64 here")
    with pytest.raises(mg.errors.MinigradError):
        REFUSED[name]()


def test_arrays_are_converted_as_numpy_does_and_infinity_stays():
    with pytest.warns(RuntimeWarning, match="overflow"):
        assert mg.variable(np.array([1e300]), dtype="float32").tolist() == [np.inf]
    assert mg.variable([np.inf, -np.inf]).tolist() == [np.inf, -np.inf]
    assert mg.variable([3.4028235e38]).tolist() == [float(np.finfo(np.float32).max)]
