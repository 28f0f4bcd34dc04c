"""Tensor cores and asynchronous copies: fragments, results, waiting; compiled for GPUs, too."""

import re
from typing import Any

import numpy as np
import pytest

from minigrad import cuda, simt
from minigrad.array.bits import rounded, widened
from minigrad.cuda.compiled import translated
from minigrad.devices.gpu import compiler
from minigrad.errors import (
    DataRaceError,
    InactiveLaneError,
    KernelError,
    OutOfBoundsError,
    SimulationError,
)
from tests.simt.programs import define
from tests.simt.tensor_kernels import f2, f4, multiply

MULTIPLY: Any = multiply
RNG = np.random.default_rng(5)
NEEDS_COMPILER = pytest.mark.skipif(
    compiler.missing() is not None, reason="the CUDA compiler is not installed"
)
HALVES = """
def kernel(a, b, c, out):
    row, column = cuda.laneid // 4, cuda.laneid % 4 * 2
    x = (
        a[row, column], a[row, column + 1], a[row + 8, column], a[row + 8, column + 1],
        a[row, column + 8], a[row, column + 9], a[row + 8, column + 8], a[row + 8, column + 9],
    )
    y = b[column, row], b[column + 1, row], b[column + 8, row], b[column + 9, row]
    z = c[row, column], c[row, column + 1], c[row + 8, column], c[row + 8, column + 1]
    z = cuda.{}(x, y, z)
    out[row, column], out[row, column + 1] = z[0], z[1]
    out[row + 8, column], out[row + 8, column + 1] = z[2], z[3]
"""
WORDS = """
def kernel(a, b, c, out):
    row, within = cuda.laneid // 4, cuda.laneid % 4
    column = 2 * within
    x = a[row, within], a[row + 8, within], a[row, within + 4], a[row + 8, within + 4]
    y = b[within, row], b[within + 4, row]
    z = c[row, column], c[row, column + 1], c[row + 8, column], c[row + 8, column + 1]
    z = cuda.mma_tf32(x, y, z)
    out[row, column], out[row, column + 1] = z[0], z[1]
    out[row + 8, column], out[row + 8, column + 1] = z[2], z[3]
"""


def as_tf32(x):
    """Rounded to 11 significant bits, ties away from zero."""
    fraction, exponent = np.frexp(x.astype(np.float64))
    scaled = np.abs(fraction) * 2**11
    return (np.sign(x) * np.ldexp(np.floor(scaled + 0.5), exponent - 11)).astype(f4)


KINDS = {  # name: (text, depth, elements of float32 numbers, numbers of elements)
    "mma_f16": (HALVES.format("mma_f16"), 16, lambda x: x.astype(f2), lambda x: x.astype(f4)),
    "mma_bf16": (HALVES.format("mma_bf16"), 16, rounded, widened),
    "mma_tf32": (WORDS, 8, lambda x: x, as_tf32),
}


def in_order(a, b, c):
    """c + a @ b, the products added in the order of k, rounded each time."""
    total = c.copy()
    for k in range(a.shape[1]):
        total += np.outer(a[:, k], b[k])
    return total


@pytest.mark.parametrize("name", KINDS)
def test_a_product_is_that_of_the_rounded_numbers(name):
    text, depth, elements, numbers = KINDS[name]
    a, b, c = (RNG.standard_normal(n).astype(f4) for n in ((16, depth), (depth, 8), (16, 8)))
    a[0, 0] = b[0, 0] = 1 + 2.0**-11 + 2.0**-20  # no number of these types
    a, b, out = elements(a), elements(b), np.zeros((16, 8), f4)
    simt.launch(define(text)["kernel"], 1, 32, (a, b, c, out))
    a, b = numbers(a), numbers(b)
    np.testing.assert_array_equal(out, in_order(a, b, c))
    np.testing.assert_allclose(out, a.astype(f4) @ b + c, rtol=1e-5, atol=1e-5)


def test_infinities_and_nan_pass_through_tf32():
    a, b, c = np.zeros((16, 8), f4), np.ones((8, 8), f4), np.zeros((16, 8), f4)
    a[0, 0], a[1, 1], a[2, 2] = np.inf, -np.inf, np.uint32(0x7FFFFFFF).view(f4)
    out = np.zeros((16, 8), f4)
    simt.launch(define(WORDS)["kernel"], 1, 32, (a, b, c, out))
    assert out[:4, 0].tolist()[:2] == [np.inf, -np.inf]
    assert np.isnan(out[2]).all()
    assert not out[3:].any()


def test_each_warp_multiplies_its_own():
    text = (
        HALVES.format("mma_f16")
        .replace("[row", "[16 * w + row")
        .replace("[column", "[16 * w + column")
    )
    text = text.replace(
        "\n    row, column",
        "\n    w = cuda.threadIdx.x // 32 + 2 * cuda.blockIdx.x\n    row, column",
        1,
    )
    a, b, c = (RNG.integers(-9, 9, (96, n)).astype(f4) for n in (16, 8, 8))
    out = np.zeros((96, 8), f4)
    simt.launch(define(text)["kernel"], 3, 64, (a.astype(f2), b.astype(f2), c, out))
    wanted = [a[k : k + 16] @ b[k : k + 16] for k in range(0, 96, 16)]
    np.testing.assert_array_equal(out, np.concatenate(wanted) + c)


@pytest.mark.parametrize(("m", "k", "n"), [(16, 16, 16), (48, 80, 32)])
def test_the_example_multiplies(m, k, n):
    a, b = (RNG.standard_normal(shape).astype(f2) for shape in ((m, k), (k, n)))
    out = np.zeros((m, n), f4)
    MULTIPLY[(n // 16, m // 16), 32](a, b, out)
    wanted = np.concatenate(
        [
            in_order(a.astype(f4), b[:, j : j + 1].astype(f4), np.zeros((m, 1), f4))
            for j in range(n)
        ],
        axis=1,
    )
    np.testing.assert_array_equal(out, wanted)


def test_a_report_counts_products_and_copies():
    a, out = np.ones((16, 16), f2), np.zeros((16, 16), f4)
    report = str(cuda.inspect(MULTIPLY[1, 32], a, a, out))
    assert report.count("product of a tensor core, passed once by one warp") == 2
    assert len(re.findall(r"load cuda.ldmatrix.* 4 / 4 passes ", report)) == 2
    assert len(re.findall(r"store cuda.cp_async.* 512  4 / 4 passes ", report)) == 2
    assert len(re.findall(r"load cuda.cp_async.* 512  16 / 16 sectors ", report)) == 2
    assert not out.any()


def refused(body, error, *parts, threads=32, x=None, **names):
    """The error of a kernel with a shared tile, which must say these parts."""
    text = f"def kernel(x, out):\n    tile = cuda.shared.array((16, 24), np.float16, 16)\n{body}"
    x = np.ones((16, 24), f2) if x is None else x
    with pytest.raises(error) as caught:
        simt.launch(define(text, **names)["kernel"], 1, threads, (x, np.zeros((16, 24), f2)))
    for part in parts:
        assert part in str(caught.value)
    return caught.value


ZEROS = "    z = np.float32(0)\n    h = np.float16(0)\n"


def test_a_product_needs_whole_warps():
    call = "cuda.mma_f16((h, h, h, h, h, h, h, h), (h, h, h, h), (z, z, z, z))\n"
    refused(ZEROS + f"    c = {call}", InactiveLaneError, "32 lanes", "48 threads", threads=48)
    body = f"    if cuda.laneid == 7:\n        return\n    c = {call}"
    found = refused(ZEROS + body, InactiveLaneError, "31 of them", "(7, 0, 0)")
    assert found.thread == (0, 0, 0)
    refused("    cuda.laneid\n    v = cuda.ldmatrix(tile, (0, 0))\n", InactiveLaneError, threads=16)


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ("(h, h), (h, h, h, h), (z, z, z, z)", ("a is a tuple of 8", "float16, a float16")),
        ("(h, h, h, h, h, h, h, h), z, (z, z, z, z)", ("b is a tuple of 4", "a float32")),
        ("(h, h, h, h, h, h, h, h), (h, h, h, h), (h, h, h, h)", ("c is a tuple", "of float32")),
        ("(z, z, z, z, z, z, z, z), (h, h, h, h), (z, z, z, z)", ("of float16, not a float32",)),
    ],
)
def test_fragments_of_another_kind_are_refused(given, parts):
    refused(ZEROS + f"    c = cuda.mma_f16({given})\n", SimulationError, *parts)


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("cuda.cp_async(x, (0, 0), x, (1, 0))", ("from global to shared", "in global memory")),
        ("cuda.cp_async(tile, (0, 4), x, (0, 0))", ("multiple of 16 bytes", "element 4")),
        ("cuda.cp_async(tile, (0, 0), x.T, (0, 0))", ("side by side",)),
        ("cuda.cp_async(tile, (0, 0), 3, 0)", ("needs arrays, not an int64",)),
        ("cuda.cp_async(tile, 0, x, (0, 0))", ("one index per axis",)),
        ("v = cuda.ldmatrix(x, (0, 0))", ("shared memory, not float16 in global memory",)),
        ("cuda.cp_async_wait(cuda.laneid)", ("must be known when",)),
        ("cuda.cp_async_wait(0.5)", ("must be known when",)),
    ],
)
def test_what_copies_and_loads_refuse(line, parts):
    error = refused(f"    {line}\n", SimulationError, *parts)
    assert line in error.where


def test_a_copy_stays_inside_its_row():
    refused("    cuda.cp_async(tile, (0, 16), x, (0, 20))\n", OutOfBoundsError, "axis 1", "27")


def test_what_a_thread_copies_it_has_to_wait_for_itself():
    begin = (
        "    t = cuda.threadIdx.x\n    if t < 16:\n        cuda.cp_async(tile, (t, 0), x, (t, 0))\n"
    )
    commit, wait = "    cuda.cp_async_commit()\n", "    cuda.cp_async_wait(0)\n"
    read = "    if t < 16:\n        out[t, 0] = tile[t, 1]\n"
    text = "def kernel(x, out):\n    tile = cuda.shared.array((16, 24), np.float16, 16)\n"
    x, out = RNG.standard_normal((16, 24)).astype(f2), np.zeros((16, 24), f2)
    simt.launch(define(text + begin + commit + wait + read)["kernel"], 1, 32, (x, out))
    np.testing.assert_array_equal(out[:, 0], x[:, 1])
    for middle in (commit, wait, wait + commit, "    cuda.syncthreads()\n" + commit):
        found = refused(
            begin + middle + read, DataRaceError, "nothing has waited", "begun the copy"
        )
        assert found.thread == found.other_thread == (0, 0, 0)
        assert "cp_async_wait(0)" in str(found.fix)


def test_an_element_on_its_way_may_not_be_overwritten():
    begin = (
        "    t = cuda.threadIdx.x\n    if t < 16:\n        cuda.cp_async(tile, (t, 0), x, (t, 0))\n"
    )
    refused(
        begin + "    if t == 3:\n        tile[3, 2] = 1.0\n", DataRaceError, "nothing has waited"
    )
    refused(begin + begin, DataRaceError, "nothing has waited")  # two copies, in no order


def test_the_source_may_not_change_before_the_wait():
    body = (
        "    t = cuda.threadIdx.x\n    if t < 16:\n        cuda.cp_async(tile, (t, 0), x, (t, 0))\n"
        "    cuda.cp_async_commit()\n    cuda.syncthreads()\n"
        "    if t == 20:\n        x[0, 0] = 1.0\n    cuda.cp_async_wait(0)\n"
    )
    refused(body, DataRaceError, "(20, 0, 0) has written it")


def test_nothing_stands_before_the_wait_without_the_watch():
    text = (
        "def kernel(x, out):\n    tile = cuda.shared.array((16, 24), np.float16, 16)\n"
        "    t = cuda.threadIdx.x\n    if t < 16:\n        cuda.cp_async(tile, (t, 0), x, (t, 0))\n"
        "        cuda.cp_async_commit()\n        out[t, 0] = tile[t, 0]\n"
        "        cuda.cp_async_wait(0)\n        out[t, 1] = tile[t, 0]\n"
    )
    x, out = np.ones((16, 24), f2), np.zeros((16, 24), f2)
    simt.launch(define(text)["kernel"], 1, 32, (x, out), watch=False)
    assert np.isnan(out[:, 0]).all()
    assert (out[:, 1] == 1).all()


# ---- compiled ------------------------------------------------------------------------------------


def compiled(monkeypatch, function, arrays, capabilities=((8, 0), (9, 0))):
    """(PTX texts, Cubins) of a kernel for both kinds of GPUs."""
    texts, link = [], compiler.link
    monkeypatch.setattr(compiler, "link", lambda ptx, *rest: texts.append(ptx) or link(ptx, *rest))
    types = [compiler.array_type(np.dtype(d), n, True) for d, n in arrays]
    return texts, compiler.compile_function(translated(function), types, list(capabilities))


@NEEDS_COMPILER
def test_the_example_compiles_to_the_instructions_of_tensor_cores(monkeypatch):
    arrays = (f2, 2), (f2, 2), (f4, 2)
    texts, cubins = compiled(monkeypatch, MULTIPLY.py_func, arrays)
    assert [c.capability for c in cubins] == [(8, 0), (9, 0)]
    for text, cubin in zip(texts, cubins, strict=True):
        for word in (
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
            "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
            "cp.async.cg.shared.global",
            "cp.async.commit_group",
            "cp.async.wait_group 1;",
        ):
            assert word in text
        assert (cubin.shared, cubin.spills, cubin.stack, cubin.doubles) == (3072, 0, 0, 0)


@NEEDS_COMPILER
@pytest.mark.parametrize("name", KINDS)
def test_products_of_all_kinds_compile(monkeypatch, name):
    kind = {"mma_f16": f2, "mma_bf16": np.uint16, "mma_tf32": f4}[name]
    kernel = define(KINDS[name][0])["kernel"]
    texts, cubins = compiled(monkeypatch, kernel, ((kind, 2), (kind, 2), (f4, 2), (f4, 2)))
    word, shape = name.removeprefix("mma_"), f"m16n8k{KINDS[name][1]}"
    for text, cubin in zip(texts, cubins, strict=True):
        assert f"mma.sync.aligned.{shape}.row.col.f32.{word}.{word}.f32" in text
        assert text.count("cvt.rna.tf32.f32") == (6 if name == "mma_tf32" else 0)
        assert (cubin.spills, cubin.stack) == (0, 0)


@NEEDS_COMPILER
@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("cuda.cp_async(tile, 0, x, 0)", "alignment=16"),
        ("v = cuda.ldmatrix(tile, 0); x[0] = v[0]", "alignment=16"),
        ("cuda.cp_async(tile, (0, 0), x, 0)", "one index for each of 1 axes, got 2"),
        ("cuda.cp_async_wait(x.size)", "known when compiling"),
        ("v = cuda.mma_f16((x[0], x[1]), x[2], x[3])", "a is a tuple of 8 numbers of float16"),
    ],
)
def test_what_does_not_compile(monkeypatch, body, why):
    text = f"def kernel(x):\n    tile = cuda.shared.array(64, np.float16)\n    {body}\n"
    with pytest.raises(KernelError, match=why):
        compiled(monkeypatch, define(text)["kernel"], ((f2, 1),), [(8, 0)])


@NEEDS_COMPILER
def test_older_gpus_have_no_such_instructions(monkeypatch):
    with pytest.raises(KernelError, match=r"cp_async: wanted a GPU of compute capability 8\.0"):
        compiled(monkeypatch, MULTIPLY.py_func, ((f2, 2), (f2, 2), (f4, 2)), [(7, 5)])
