"""einsum, joining, splitting, and the conventions of reductions: what no sample shows."""

import numpy as np
import pytest

import minigrad as mg
from tests.ops import numeric

EQUATIONS = {
    "ij,jk->ik": [(2, 3), (3, 4)],
    "ij,jk": [(2, 3), (3, 4)],
    "i,i->": [(3,), (3,)],
    "ii->i": [(3, 3)],
    "ii": [(3, 3)],
    "iji->j": [(2, 3, 2)],
    "...ij,...jk->...ik": [(5, 2, 3), (3, 4)],
    "...i->...": [(2, 3, 4)],
    "b...,b...->...": [(2, 3, 4), (2, 1, 4)],
    "ij,ij->ij": [(2, 3), (2, 3)],
    "ij->": [(2, 3)],
    "ijk->kji": [(2, 3, 4)],
    "i,j,k->ijk": [(2,), (3,), (4,)],
    "ij,jk,kl,lm->im": [(2, 5), (5, 3), (3, 6), (6, 2)],
    "bhqd,bkhd->bhqk": [(2, 2, 3, 4), (2, 5, 2, 4)],
    "ij,kj,ij->ik": [(2, 3), (4, 3), (2, 3)],
    ",ij->ij": [(), (2, 3)],
    "ij,jk->ki": [(0, 3), (3, 2)],
}


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum_equals_numpy_with_gradients_by_differences(equation):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s) for s in EQUATIONS[equation]]

    def function(*xs):
        return mg.einsum(equation, *xs)

    want = np.einsum(equation, *arrays)
    got = numeric.value_of(function, arrays)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
    numeric.check_first_order(function, arrays, [True] * len(arrays), rng)


def test_einsum_of_one_variable_with_itself_adds_both_gradients():
    x = mg.variable([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    mg.einsum("ij,ij->", x, x).backward()
    assert x.grad.tolist() == [[2.0, 4.0], [6.0, 8.0]]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 9])
def test_split_by_one_size_gives_parts_of_it_and_the_rest(size):
    a = np.arange(14.0).reshape(7, 2)
    parts = mg.split(mg.variable(a), sizes=size)
    wanted = [a[k : k + size] for k in range(0, 7, size)]
    assert [p.tolist() for p in parts] == [w.tolist() for w in wanted]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_repeat_and_split_equal_numpy(axis):
    a = np.arange(24.0).reshape(2, 3, 4)
    x = mg.variable(a)
    counts = list(range(a.shape[axis]))
    for repeats in (3, 0, counts):
        got, want = mg.repeat(x, repeats, axis=axis), np.repeat(a, repeats, axis)
        assert got.shape == want.shape
        np.testing.assert_array_equal(got.numpy(), want)
    np.testing.assert_array_equal(mg.repeat(x, 2).numpy(), np.repeat(a, 2))
    for sections in (1, 2, 3, 5):
        parts = mg.split(x, sections=sections, axis=axis)
        wanted = np.array_split(a, sections, axis)
        assert [p.shape for p in parts] == [w.shape for w in wanted]
        for part, want in zip(parts, wanted, strict=True):
            np.testing.assert_array_equal(part.numpy(), want)
    for cuts in ([1], [0, 2], [2, 1], [9], [-1]):
        parts = mg.split(x, sections=cuts, axis=axis)
        wanted = np.split(a, cuts, axis)
        assert [p.shape for p in parts] == [w.shape for w in wanted]


@pytest.mark.parametrize("widths", [1, ((1, 2), (1, 2)), ((1, 0), (0, 2))])
def test_pad_takes_numpys_forms_of_widths(widths):
    a = np.arange(6.0).reshape(2, 3)
    got = mg.pad(mg.variable(a), widths, -1.0)
    np.testing.assert_array_equal(got.numpy(), np.pad(a, widths, constant_values=-1.0))


def test_concatenate_promotes_dtypes_and_casts_gradients_back():
    x = mg.variable(np.ones(2, np.float32), requires_grad=True)
    y = mg.variable(np.ones(1), requires_grad=True)
    z = mg.concatenate([x, y, mg.variable([3])])
    assert z.dtype is mg.float64
    assert z.tolist() == [1.0, 1.0, 1.0, 3.0]
    z.sum().backward()
    assert x.grad.dtype is mg.float32
    assert y.grad.dtype is mg.float64


@pytest.mark.parametrize("count", [1, 3, 4, 20, 33, 50])
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
def test_many_parts_are_joined_anew_at_each_call(count, dtype):
    rng = np.random.default_rng(5)
    for _ in range(4):
        parts = [rng.integers(0, 99, (2, n % 3, 2)).astype(dtype) for n in range(count)]
        same = [rng.integers(0, 99, (2, 3)).astype(dtype) for _ in range(count)]
        mixed = [a if n % 5 else a.T.copy().T for n, a in enumerate(same)]  # some not contiguous
        y = mg.concatenate([mg.variable(a) for a in parts], axis=1)
        np.testing.assert_array_equal(y.numpy(), np.concatenate(parts, 1))
        for arrays in (same, mixed):
            given = [mg.variable(a) if a is b else mg.variable(a.T).T
                     for a, b in zip(arrays, same, strict=True)]  # fmt: skip
            for axis in (0, 1, 2):
                np.testing.assert_array_equal(mg.stack(given, axis).numpy(), np.stack(arrays, axis))


def test_one_more_or_less_of_a_layout_is_another_call():
    a, b = np.arange(2.0, dtype=np.float32), np.arange(3.0, dtype=np.float32)
    for _ in range(3):
        for parts in ([a, a, b], [a, b, b], [a, b, a], [b, a, a], [a, a], [b, b, b], [a, b]):
            y = mg.concatenate([mg.variable(part) for part in parts])
            np.testing.assert_array_equal(y.numpy(), np.concatenate(parts))


def test_concatenate_of_the_same_variable_adds_its_gradients():
    x = mg.variable([1.0, 2.0], requires_grad=True)
    y = mg.concatenate([x, x * 2.0, x])
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]


def test_stack_second_order_equals_differences():
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((2, 3)), rng.standard_normal((2, 3))]
    numeric.check_second_order(
        lambda a, b: mg.square(mg.stack([a, b * a], 1)), arrays, [True] * 2, rng
    )


def test_prod_gradient_with_zeros_multiplies_the_others():
    x = mg.variable([[2.0, 0.0, 3.0], [0.0, 0.0, 5.0]], requires_grad=True)
    mg.prod(x, 1).sum().backward()
    assert x.grad.tolist() == [[0.0, 6.0, 0.0], [0.0, 0.0, 0.0]]


def test_max_shares_the_gradient_of_ties_and_norm_has_none_at_0():
    x = mg.variable([2.0, 2.0, 1.0], requires_grad=True)
    mg.max(x).backward()
    assert x.grad.tolist() == [0.5, 0.5, 0.0]
    z = mg.zeros((3,), requires_grad=True)
    mg.norm(z).backward()
    assert z.grad.tolist() == [0.0, 0.0, 0.0]


COPIES = {  # at sizes where a view of x would show the same numbers
    "repeat once": ((3,), lambda x: mg.repeat(x, 1)),
    "repeat once along an axis": ((2, 1), lambda x: mg.repeat(x, 1, axis=0)),
    "repeat an axis of one": ((2, 1), lambda x: mg.repeat(x, 3, axis=1)),
    "repeat by a list": ((2,), lambda x: mg.repeat(x, [1, 1])),
    "concatenate": ((3,), lambda x: mg.concatenate([x])),
    "stack": ((3,), lambda x: mg.stack([x])),
    "pad": ((3,), lambda x: mg.pad(x, 0)),
    "roll": ((3,), lambda x: mg.roll(x, 0)),
    "roll no axis": ((3,), lambda x: mg.roll(x, (), ())),
    "index": ((1,), lambda x: x[[0]]),
    "mask": ((1,), lambda x: x[mg.variable([True])]),
    "where": ((3,), lambda x: mg.where(True, x, x)),
    "sort": ((1,), lambda x: mg.sort(x)),
    "topk": ((1,), lambda x: mg.topk(x, 1)[0]),
    "cumsum": ((1,), lambda x: mg.cumsum(x, 0)),
    "cumprod": ((1,), lambda x: mg.cumprod(x, 0)),
    "cumprod along an axis of one": ((3, 1), lambda x: mg.cumprod(x, 1)),
    "sum": ((3, 1), lambda x: x.sum(axis=1)),
    "tril": ((1, 1), lambda x: mg.tril(x)),
    "clip": ((3,), lambda x: mg.clip(x, -9.0, 9.0)),
}


@pytest.mark.parametrize("dtype", ["float64", "int64"])
@pytest.mark.parametrize("name", COPIES)
def test_a_function_that_copies_in_numpy_copies_at_every_size(name, dtype):
    shape, function = COPIES[name]
    x = mg.ones(shape, dtype=dtype)
    y = function(x)
    y.fill_(2)
    assert x.numpy().min() == x.numpy().max() == 1
    x.fill_(3)
    assert y.numpy().min() == y.numpy().max() == 2


def test_argmax_takes_the_first_of_equals_and_the_first_nan():
    assert mg.argmax(mg.variable([1.0, 3.0, 3.0])).item() == 1
    assert mg.argmin(mg.variable([1.0, float("nan"), 0.0, float("nan")])).item() == 1


def test_cumsum_of_float32_stays_accurate():
    x = np.full(200_000, 0.1, np.float32)
    y = mg.cumsum(mg.variable(x), 0).numpy()
    np.testing.assert_allclose(y[-1], x.astype(float).sum(), rtol=1e-6)
