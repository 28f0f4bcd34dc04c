"""Matrix products on the simulated GPU: tiles and their edges, layouts, batches, sums, races."""

import itertools

import numpy as np
import pytest

from minigrad.array.dtypes import as_dtype
from minigrad.devices.gpu.product import matmul_plan
from minigrad.devices.gpu.product.matmul_plan import LARGE, SMALL, SMALL_8, ProductPlan
from minigrad.devices.gpu.product.matmul_text import ProductTile
from tests.devices.gpu.machine import Machine, random
from tests.devices.gpu.products import close, lying, product

RNG = np.random.default_rng(0)
TINY, TALL = ProductTile(16, 32, 8, 4, 4), ProductTile(64, 128, 8, 8, 8)  # one warp, and four


@pytest.fixture
def machine():
    matmul_plan.calls.cache_clear()
    yield Machine()
    matmul_plan.calls.cache_clear()  # what a test has changed must not stay


@pytest.fixture
def plan(monkeypatch):
    """Sets how the next products are computed."""

    def choose(tile, is_whole, splits=1, per_split=1 << 20):
        monkeypatch.setattr(
            matmul_plan, "plan", lambda *_: ProductPlan(tile, is_whole, splits, per_split)
        )

    return choose


# -- tiles ---------------------------------------------------------------------------------------

SIZES = [(16, 32, 8), (1, 1, 1), (15, 33, 7), (17, 31, 9), (33, 65, 17), (4, 4, 64), (40, 5, 1)]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("tile", [TINY, TALL], ids=["4x4", "8x8"])
@pytest.mark.parametrize("turned", list(itertools.product([False, True], repeat=2)), ids=str)
def test_single_elements_of_any_size_equal_numpy(machine, plan, tile, size, turned):
    plan(tile, False)
    m, n, k = size
    a, b = random(RNG, (m, k), "float32"), random(RNG, (k, n), "float32")
    close(product(machine, lying(a, turned[0]), lying(b, turned[1])), a @ b)


@pytest.mark.parametrize("size", [(16, 32, 8), (4, 4, 4), (20, 36, 12), (12, 68, 40), (36, 28, 4)])
@pytest.mark.parametrize("tile", [TINY, TALL], ids=["4x4", "8x8"])
@pytest.mark.parametrize("turned", list(itertools.product([False, True], repeat=2)), ids=str)
def test_vectors_of_four_equal_numpy(machine, plan, tile, size, turned):
    plan(tile, True)
    m, n, k = size
    a, b = random(RNG, (m, k), "float32"), random(RNG, (k, n), "float32")
    close(product(machine, lying(a, turned[0]), lying(b, turned[1])), a @ b)


@pytest.mark.parametrize(
    ("tile", "dtype", "is_whole"),
    [
        (LARGE, "float32", True), (SMALL, "float32", True), (SMALL, "float32", False),
        (SMALL_8, "float64", False), (SMALL_8, "int64", False),
    ],
)  # fmt: skip
def test_real_tiles_equal_numpy_at_their_edges(machine, plan, tile, dtype, is_whole):
    plan(tile, is_whole)
    step = 4 if is_whole else 1
    for m, n, k in ((tile.rows, tile.columns, tile.depth), (tile.rows + step, 12, 5 * step)):
        a, b = random(RNG, (m, k), dtype), random(RNG, (k, n), dtype)
        close(product(machine, a, b), a @ b)
        close(product(machine, lying(a, True), lying(b, True)), a @ b)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("is_whole", [False, True])
def test_what_lies_beside_an_operand_is_not_read_into_a_result(machine, plan, bad, is_whole):
    plan(TINY, is_whole)
    around_a, around_b = np.full((24, 40), bad, "f4"), np.full((40, 48), bad, "f4")
    a, b = around_a[4:16, 4:24], around_b[4:24, 8:28]
    a[...], b[...] = random(RNG, a.shape, "f4"), random(RNG, b.shape, "f4")
    whole_a, whole_b = machine.of(around_a), machine.of(around_b)
    out = machine.zeros((12, 20), "float32")
    machine.matmul(
        whole_a.view(a.shape, (40, 1), 4 * 40 + 4), whole_b.view(b.shape, (48, 1), 4 * 48 + 8), out
    )
    close(machine.to_numpy(out), a @ b)


def test_nan_and_infinities_stay_in_their_rows(machine):
    a, b = np.ones((9, 6), "f4"), np.eye(6, dtype="f4")
    a[2, 3], a[5, 1] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(product(machine, a, b), a @ b)


# -- layouts, batches, what is added --------------------------------------------------------------

LAYOUTS = {
    "plain": lambda x: x,
    "transposed": lambda x: lying(x, True),
    "part of wider rows": lambda x: np.concatenate([x, x, x], -1)[..., : x.shape[-1]],
    "every second column": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "backwards": lambda x: np.ascontiguousarray(x[..., ::-1, ::-1])[..., ::-1, ::-1],
    "rows last": lambda x: np.moveaxis(np.ascontiguousarray(np.moveaxis(x, -2, 0)), 0, -2),
}


def placed(machine, x):
    """An Array with exactly the strides of an ndarray, of which it holds all of the base."""
    base = x if x.base is None else x.base
    while base.base is not None:
        base = base.base
    first = (x.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // x.itemsize
    flat = machine.from_numpy(base.reshape(-1), as_dtype(x.dtype))
    return flat.view(x.shape, tuple(s // x.itemsize for s in x.strides), first)


@pytest.mark.parametrize("layouts", list(itertools.product(LAYOUTS, LAYOUTS)), ids=" @ ".join)
def test_any_layouts_equal_numpy(machine, layouts):
    for shapes in (((5, 8), (8, 4)), ((3, 5, 7), (3, 7, 4))):
        a, b = (random(RNG, s, "float32") for s in shapes)
        x, y = (LAYOUTS[name](v.copy()) for name, v in zip(layouts, (a, b), strict=True))
        out = machine.empty((*a.shape[:-1], b.shape[-1]), as_dtype("float32"))
        machine.matmul(placed(machine, x), placed(machine, y), out)
        close(machine.to_numpy(out), a @ b)


BATCHES = [
    ((3, 5, 8), (8, 4)), ((5, 8), (3, 8, 4)), ((2, 3, 5, 8), (3, 8, 4)), ((2, 1, 4, 8), (3, 8, 4)),
    ((2, 3, 2, 4, 8), (2, 1, 2, 8, 4)), ((1, 2, 1, 3, 4), (2, 1, 3, 4, 5)), ((4, 1, 8), (8, 12)),
    ((3, 1, 1), (3, 1, 1)), ((2, 3, 4), (1, 4, 1)),
]  # fmt: skip


@pytest.mark.parametrize("shapes", BATCHES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_batches_broadcast(machine, shapes, dtype):
    a, b = (random(RNG, s, dtype) for s in shapes)
    close(product(machine, a, b), a @ b)
    bias = random(RNG, (b.shape[-1],), dtype)
    close(product(machine, a, b, bias), a @ b + bias)


def test_one_matrix_for_a_whole_batch_is_one_product(machine):
    a, b = random(RNG, (6, 4, 8), "f4"), random(RNG, (8, 4), "f4")
    (found,) = matmul_plan.products(a.shape, (32, 8, 1), b.shape, (4, 1), (6, 4, 4), (16, 4, 1))
    assert (found[-1].m, found[-1].batch) == (24, ())


def test_heads_of_a_permuted_projection_need_no_copies(machine):
    qkv = random(RNG, (2, 5, 2, 3, 8), "f4").transpose(2, 0, 3, 1, 4)  # 2 of (2, 3, 5, 8)
    q, k = qkv
    out = machine.empty((2, 3, 5, 5), as_dtype("float32"))
    machine.matmul(placed(machine, q), placed(machine, k.swapaxes(-1, -2)), out)
    assert len(machine.launched) == 1
    close(machine.to_numpy(out), q @ k.swapaxes(-1, -2))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("batch", [(3,), (2, 3), (2, 3, 2)])
def test_accumulating_adds_and_sums_over_axes_of_stride_0(machine, dtype, batch):
    a, b = random(RNG, (*batch, 4, 8), dtype), random(RNG, (*batch, 8, 12), dtype)
    start = random(RNG, (4, 12), dtype)
    each = (a @ b).astype(dtype)
    for summed in itertools.product([False, True], repeat=len(batch)):
        axes = tuple(d for d, s in enumerate(summed) if s)
        shape = tuple(1 if s else n for n, s in zip(batch, summed, strict=True))
        out = machine.from_numpy(np.broadcast_to(start, (*shape, 4, 12)), as_dtype(dtype))
        strides = tuple(
            0 if s else t for s, t in zip((*summed, False, False), out.strides, strict=True)
        )
        machine.matmul(machine.of(a), machine.of(b), out.view((*batch, 4, 12), strides), None, True)
        close(machine.to_numpy(out), start + each.sum(axes, keepdims=True))


def test_sums_over_a_batch_whose_axes_follow_one_another_are_one_long_product(machine):
    x, dy = (2, 3, 8, 4), (2, 3, 8, 12)
    (found,) = matmul_plan.products(
        (2, 3, 4, 8), (96, 32, 1, 4), dy, (288, 96, 12, 1), (2, 3, 4, 12), (0, 0, 12, 1)
    )
    assert (found[-1].k, found[-1].folds) == (48, 1)
    assert x[-1] == found[-1].m


@pytest.mark.parametrize("mode", ["plain", "bias", "accumulate"])
@pytest.mark.parametrize("is_whole", [False, True])
def test_pieces_of_k_are_added_in_a_second_pass(machine, plan, mode, is_whole):
    a, b = random(RNG, (2, 20, 44), "f4"), random(RNG, (2, 44, 36), "f4")
    bias, start = random(RNG, (36,), "f4"), random(RNG, (2, 20, 36), "f4")
    want = a @ b + (bias if mode == "bias" else start if mode == "accumulate" else 0)
    plan(TINY, is_whole, 3, 2)  # steps of 8: 2, 2 and 2 of the 6
    out = machine.of(start)
    given = machine.of(bias) if mode == "bias" else None
    machine.matmul(machine.of(a), machine.of(b), out, given, mode == "accumulate")
    assert len(machine.launched) == 2
    close(machine.to_numpy(out), want)


def test_long_thin_products_are_cut_into_pieces_that_fill_a_gpu():
    (found,) = matmul_plan.products((8, 65536), (65536, 1), (65536, 8), (8, 1), (8, 8), (8, 1))
    how = matmul_plan.plan(found[-1], as_dtype("float32"), 0, 0)
    assert how.splits == matmul_plan.BUSY
    assert how.splits * how.per_split * how.tile.depth >= 65536


def test_large_products_take_the_large_tile_where_vectors_can_be_read():
    for k, remainder, tile in ((512, 0, LARGE), (511, 0, SMALL), (512, 4, SMALL)):
        (found,) = matmul_plan.products(
            (2048, k), (k, 1), (k, 2048), (2048, 1), (2048, 2048), (2048, 1)
        )
        assert matmul_plan.plan(found[-1], as_dtype("float32"), remainder, 0).tile is tile


def test_batches_too_large_for_a_grid_are_cut(machine, monkeypatch):
    monkeypatch.setattr(matmul_plan, "MOST_BLOCKS", 5)
    a, b = random(RNG, (7, 3, 2, 4, 5), "f4"), random(RNG, (7, 3, 2, 5, 3), "f4")
    x = np.ascontiguousarray(a.transpose(1, 2, 0, 3, 4)).transpose(2, 0, 1, 3, 4)
    out = machine.empty((7, 3, 2, 4, 3), as_dtype("float32"))
    machine.matmul(placed(machine, x), placed(machine, b), out)
    assert len(machine.launched) > 8
    close(machine.to_numpy(out), a @ b)


@pytest.mark.parametrize("dtype", ["float32", "int64", "int32"])
def test_empty_sums_are_zeros_or_the_bias(machine, dtype):
    a, b = np.zeros((3, 0), dtype), np.zeros((0, 4), dtype)
    close(product(machine, a, b), a @ b)
    bias = random(RNG, (4,), dtype)
    close(product(machine, a, b, bias), a @ b + bias)
    if dtype == "float32":
        out = machine.of(np.ones((3, 4), dtype))
        machine.matmul(machine.of(a), machine.of(b), out, None, True)
        close(machine.to_numpy(out), np.ones((3, 4), dtype))


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_integers_are_exact_and_wrap_as_numpy(machine, dtype):
    high = {"int64": 2**40, "int32": 2**20, "uint8": 256}[dtype]
    a, b = (RNG.integers(0, high, s).astype(dtype) for s in ((3, 5, 7), (7, 4)))
    want = (a.astype("int64") @ b.astype("int64")).astype(dtype)
    np.testing.assert_array_equal(product(machine, a, b), want)


@pytest.mark.parametrize("accumulate", [False, True])
def test_output_whose_rows_are_not_contiguous(machine, accumulate):
    a, b = random(RNG, (2, 5, 8), "f4"), random(RNG, (2, 8, 6), "f4")
    start = random(RNG, (6, 5), "f4")
    out = machine.of(start)
    strides = (0, 1, 5) if accumulate else (30, 1, 5)
    if not accumulate:
        out = machine.empty((2, 6, 5), as_dtype("float32"))
    machine.matmul(machine.of(a), machine.of(b), out.view((2, 5, 6), strides), None, accumulate)
    want = start + (a @ b).sum(0).T if accumulate else (a @ b).swapaxes(1, 2)
    close(machine.to_numpy(out), want)
