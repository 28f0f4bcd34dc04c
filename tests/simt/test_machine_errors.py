"""What the machine refuses, and what it finds: the error names the line, the block, the thread."""

import numpy as np
import pytest

from minigrad import simt
from minigrad.errors import (
    ArgumentError,
    ArgumentTypeError,
    DivergentBarrierError,
    InactiveLaneError,
    NotInCudaError,
    OutOfBoundsError,
    SimulationError,
    UninitializedReadError,
)
from minigrad.simt.language.language import cuda
from tests.simt.programs import define


def run(body, blocks=2, threads=4, helpers="", **names):
    text = f"{helpers}\ndef kernel(x, m):\n    i = cuda.grid(1)\n{body}\n"
    x, m = np.zeros(8, np.int64), np.zeros((8, 2))
    simt.launch(define(text, **names)["kernel"], blocks, threads, (x, m))
    return x


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("    d = {}", "a dict"),
        ("    d = dict()", "dict cannot be called"),
        ("    d = [1, 2]", "a list"),
        ("    d = [a for a in range(3)]", "a list comprehension"),
        ("    f = lambda a: a", "lambda"),
        ("    print(f'{i}')", "an f-string"),
        ("    s = 'abc'.upper()", ".upper()"),
        ("    try:\n        x[i] = 1\n    finally:\n        pass", "`try`"),
        ("    with cuda:\n        pass", "`with`"),
        ("    import os", "`import`"),
        ("    def f():\n        pass", "`def` cannot be used in the simulator"),
        ("    global K\n    K = 1", "`global`"),
        ("    del x", "`del`"),
        ("    yield 3", "generator"),
        ("    x[i] = np.sum(x)", "np.sum cannot be called"),
        ("    x[i] = x.sum()", ".sum() cannot be called"),
        ("    x[i] = np.nothing", "there is no np.nothing"),
        ("    x[i] = nothing", "the name nothing is not defined"),
        ("    x[i] = nothing(3)", "the name nothing is not defined"),
        ("    x[i] = plain(3)", "plain is a plain Python function"),
        ("    x[i] = max(1, 2, key=3)", "by name"),
        ("    print(*m)", "`*`"),
        ("    kernel(x, m)", "kernel calls itself"),
        ("    x[i] = 99999999999999999999999", "99999999999999999999999"),
        ("    x[i] = 3j", "3j"),
        ("    y = x @ x", "operator @"),
        ("    x.shape = 3", "assigned"),
        ("    cuda.sync_threads()", "cuda.sync_threads is not known"),
        ("    x[i] = cuda.syncthreads.x", "cuda.syncthreads.x is not known"),
        ("    s = cuda.shared.array(i, np.float32)", "must be known"),
        ("    s = cuda.shared.array((SIDE, SIDE + 1), np.float32)", "not with names"),
        ("    s = cuda.local.array(2 * SIDE, np.float32)", "not with names"),
        ("    s = cuda.shared.array(4, 'nothing')", "no element type"),
        ("    s = cuda.shared.array(4)", "takes a shape and a dtype"),
        ("    a = cuda.grid(i)", "1, 2 or 3"),
        ("    cuda.syncthreads(1)", "takes 0 arguments, not 1"),
        ("    v = cuda.shfl_sync(1, 2)", "takes 3 arguments, not 2"),
        ("    cuda.atomic.add(x, 1)", "takes 3 arguments, not 2"),
        ("    v = math.exp(1.0, 2.0)", "takes 1 argument, not 2"),
        ("    v = abs()", "takes 1 argument, not 0"),
        ("    x[i] = helper(1)", "missing a required argument"),
    ],
)
def test_refused_before_anything_runs(body, words):
    helpers = "def helper(a, b):\n    return a\n\n\n"
    file = {}
    exec("def plain(a):\n    return a\n", file)
    with pytest.raises(NotInCudaError) as caught:
        run("    x[i] = 1\n" + body, helpers=helpers, plain=file["plain"], SIDE=4)
    assert words in str(caught.value)
    line = body.strip().split("\n")[0]
    assert line in caught.value.where  # the source text of the line


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("    x[i / 2] = 1", "an index must be an integer"),
        ("    x[i] = None", "None cannot be stored"),
        ("    y = x + 1", "an array + an int64"),
        ("    y = i << 1.5", "int64 << float64"),
        ("    a, b = (1, 2, 3)", "2 names for 3 values"),
        ("    a, b = i", "only a tuple"),
        ("    y = x if i > 2 else m", "different arrays"),
        ("    y = (1, 2) if i > 2 else 3", "a tuple of 2 in some"),
        ("    x[i, 2] = 1", "has 2 indices, the array 1 axis"),
        ("    x[i] = m[i, 1, 1]", "too many indices"),
        ("    x[i] = (1, 2)[i]", "the tuple has 2 elements"),
        ("    cuda.atomic.add(m, i, 1)", "one element"),
        ("    cuda.atomic.and_(m, (i, 0), 1)", "does not take elements of float64"),
        ("    cuda.atomic.inc(x, i, 1)", "does not take elements of int64"),
        ("    v = cuda.shfl_sync(0xF, i > 2, 1)", "cannot be shuffled"),
        ("    for a in i:\n        pass", "cannot go over"),
        ("    for k in range(0, 3, 0):\n        pass", "step of a range is 0"),
        ("    x[i] = 3 // (i - 2)", "divided by zero"),
        ("    assert i < 3", "assert fails"),
        ("    if i == 5:\n        raise ValueError('no')", "raises"),
        ("    return i", "must not return"),
        ("    x[i] = x.nothing", "no .nothing"),
    ],
)
def test_found_while_running(body, words):
    with pytest.raises(SimulationError) as caught:
        run(body)
    assert words in str(caught.value)
    assert caught.value.kernel == "kernel"
    assert "<kernel" in caught.value.where


def test_out_of_bounds_names_line_and_thread():
    with pytest.raises(OutOfBoundsError) as caught:
        run("    x[i] = 1\n    x[i + 2] = 1")
    error = caught.value
    assert (error.block, error.thread) == ((1, 0, 0), (2, 0, 0))
    assert error.got == "index 8 along axis 0, which has 8 elements"
    assert error.where.endswith("x[i + 2] = 1")


@pytest.mark.parametrize("place", ["x[-9]", "m[i, 2]", "m[i, -3]", "m[8, 0]", "x[i * 10**15]"])
def test_out_of_bounds(place):
    with pytest.raises(OutOfBoundsError):
        run(f"    if i > 5:\n        x[0] = {place}")


def test_inactive_threads_may_compute_what_is_out_of_bounds():
    x = run("    if i < 3:\n        x[i] = m[i + 5, 0] + 1\n    elif i + 5 < 8 or m[i, 0] == 0:\n"
            "        x[i] = 2")  # fmt: skip
    assert x.tolist() == [1, 1, 1, 2, 2, 2, 2, 2]


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("    if i % 4 < 3:\n        cuda.syncthreads()", "if i % 4 < 3:"),
        ("    k = 0\n    while k < i:\n        cuda.syncthreads()\n        k += 1", "while k < i:"),
        ("    for k in range(i):\n        cuda.syncthreads()", "for k in range(i):"),
        ("    if i != 2:\n        barrier()", "if i != 2:"),
        ("    early(i)", "return 7"),
        ("    if i % 2:\n        cuda.syncthreads_count(1)\n    else:\n        pass", "if i % 2:"),
    ],
)
def test_divergent_barrier(body, line):
    helpers = (
        "def barrier():\n    cuda.syncthreads()\n\n\n"
        "def early(i):\n    for k in range(4):\n        if i == 2 and k == 1:\n"
        "            return 7\n        cuda.syncthreads()\n    return 8\n\n\n"
    )
    with pytest.raises(DivergentBarrierError) as caught:
        run(body, helpers=helpers)
    rows = dict(caught.value.details)
    assert rows["went another way at"].endswith(line)
    assert "of 4 threads" in str(caught.value)
    assert caught.value.where.endswith(("cuda.syncthreads()", "cuda.syncthreads_count(1)"))
    missing, present = rows["missing"], rows["thread"]
    assert missing != present


def test_barrier_in_a_branch_of_whole_blocks_is_fine():
    run("    if cuda.blockIdx.x == 1:\n        cuda.syncthreads()")
    run("    for k in range(cuda.blockIdx.x):\n        cuda.syncthreads()")


@pytest.mark.parametrize(
    "body",
    [
        "    if i < 2:\n        v = cuda.shfl_sync(0xFFFFFFFF, i, 1)",
        "    if i < 2:\n        v = cuda.shfl_sync(0x3, i, 3)",
        "    v = cuda.shfl_xor_sync(0xFFFFFFFF, i, 8)",
        "    v = cuda.shfl_sync(0x7, i, 1)",
        "    if i % 4 == 1:\n        v = cuda.ballot_sync(0xFFFFFFFF, 1)",
    ],
)
def test_shuffles_from_lanes_that_are_not_there(body):
    with pytest.raises(InactiveLaneError) as caught:
        run(body)
    assert caught.value.thread is not None


def test_syncwarp_of_part_of_a_warp():
    with pytest.raises(DivergentBarrierError):
        run("    if i < 2:\n        cuda.syncwarp()")
    run("    if i % 4 < 2:\n        cuda.syncwarp(0x3)\n    else:\n        cuda.syncwarp(0xC)")


@pytest.mark.parametrize(
    "body",
    [
        "    if i > 2:\n        v = 3\n    x[i] = v",
        "    if i > 2:\n        x[i] = v\n    v = 1",
        "    for k in range(i):\n        v = k\n    x[i] = v",
        "    s = cuda.local.array(2, np.int64)\n    s[0] = 1\n    x[i] = s[1]",
        "    s = cuda.local.array(2, np.int64)\n    if i > 3:\n        s[0] = 1\n    x[i] = s[0]",
        "    s = cuda.local.array(2, np.int64)\n    s[i % 2] = 1\n    x[i] = s[0]",
    ],
)
def test_values_that_a_thread_never_gave(body):
    with pytest.raises(UninitializedReadError) as caught:
        run(body)
    assert caught.value.thread is not None


def test_variables_that_only_their_threads_read_are_fine():
    x = run("    if i > 2:\n        v = i\n    if i > 4:\n        v += 1\n    if i > 3:\n"
            "        x[i] = v")  # fmt: skip
    assert x.tolist() == [0, 0, 0, 0, 4, 6, 7, 8]


def test_launches_that_make_no_sense():
    kernel = define("def kernel(x):\n    x[cuda.grid(1)] = 1\n")["kernel"]
    x = np.zeros(4)
    for blocks, threads in ((0, 1), (1, 0), (1, 2048), (1, (32, 64)), (1, (1, 1, 65)), (1, (-1,))):
        with pytest.raises(ArgumentError):
            simt.launch(kernel, blocks, threads, (x,))
    for blocks, threads in ((1.5, 1), ("1", 1), (1, (1, 1, 1, 1)), (True, 1)):
        with pytest.raises(ArgumentTypeError):
            simt.launch(kernel, blocks, threads, (x,))
    for arguments in ((), (x, x), ("text",), ([1, 2],), (x.astype(complex),), (None,)):
        with pytest.raises(ArgumentTypeError):
            simt.launch(kernel, 1, 4, arguments)
    with pytest.raises(NotInCudaError):
        simt.launch(3, 1, 1, ())
    with pytest.raises(NotInCudaError):
        simt.launch(max, 1, 1, ())


def test_arrays_that_must_not_be_written():
    x = np.zeros(4)
    x.flags.writeable = False
    kernel = define("def kernel(x):\n    x[cuda.grid(1)] = 1\n")["kernel"]
    with pytest.raises(SimulationError):
        simt.launch(kernel, 1, 4, (x,))
    table = np.zeros(4)
    kernel = define("def kernel(x):\n    T[cuda.grid(1)] = 1\n", T=table)["kernel"]
    with pytest.raises(SimulationError):
        simt.launch(kernel, 1, 4, (x,))


def test_names_outside_of_kernels():
    for use in (lambda: cuda.grid(1), lambda: cuda.syncthreads(), lambda: cuda.atomic.add(1, 2, 3)):
        with pytest.raises(SimulationError, match="outside of a kernel"):
            use()
    with pytest.raises(SimulationError, match="has no cuda"):
        _ = cuda.nothing
    assert not hasattr(cuda, "nothing")
    assert not hasattr(cuda.atomic, "_repr_html_")


def test_a_lambda_is_no_kernel():
    with pytest.raises(NotInCudaError, match="was not found"):
        simt.launch(lambda x: None, 1, 1, (np.zeros(1),))
