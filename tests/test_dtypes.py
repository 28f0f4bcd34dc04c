"""DTypes compare with what people write for them."""

import copy
import pickle

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
            assert promote(a, b) in (a, b)
    assert promote(mg.float32, mg.int64) is mg.float32
    assert promote(mg.uint8, mg.bool_) is mg.uint8
