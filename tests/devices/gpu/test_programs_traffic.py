"""What generated kernels move: every element once, whole sectors, no bank conflicts, no float64."""

import numpy as np
import pytest

from minigrad import simt
from minigrad.devices.gpu.elementwise import programs
from minigrad.devices.gpu.rows import row_launch
from minigrad.devices.gpu.simt import Simt
from minigrad.formulas.expression import IDENTITY, Program, symbol
from minigrad.ops import rows as formulas
from minigrad.simt.counts.counts import Counts
from tests.devices.gpu.layouts import numbers, on

x, y = symbol("x"), symbol("y")
device = Simt()
LAYER_NORM_GRADIENT = Program(
    ["dy", "x", "w", "eps"],
    formulas.LayerNormRow.gradient(*map(symbol, ("dy", "x", "w", "eps"))),
)


@pytest.fixture
def counted(monkeypatch):
    """The counts of all launches of a test."""
    counts, launch = Counts(), simt.launch
    monkeypatch.setattr(simt, "launch", lambda *arguments: launch(*arguments, counts=counts))
    return counts


def array(*shape):
    return on(device, numbers(np.random.default_rng(0), shape, "f4"))


def moved(counts, kind):
    return sum(a.moved for a in counts.accesses if a.space == "global" and a.kind == kind)


def check(counts, loaded, stored, slack=0.0):
    """Bytes loaded and stored, as few sectors as they can lie in; slack: a share of both."""
    assert loaded <= moved(counts, "load") <= loaded * (1 + slack)
    assert stored <= moved(counts, "store") <= stored * (1 + slack)
    sectors = sum(a.sectors for a in counts.accesses)
    least = sum(a.least for a in counts.accesses)
    assert sectors <= least * (1 + slack)
    for access in counts.accesses:
        if access.space == "shared":
            assert access.turns == access.least_turns, f"bank conflicts at {access.site.text}"
    assert not counts.float64_operations


@pytest.mark.parametrize("few", [False, True])
def test_elementwise(counted, monkeypatch, few):
    if not few:
        monkeypatch.setattr(programs, "FEW", 0)
    n = 1 << 13
    a, b, out = array(n), array(n), array(n)
    device.elementwise(Program("xy", [x + y * 2.0]), (a, b), (out,))
    check(counted, 8 * n, 4 * n)
    branches = [branch for branch in counted.branches if branch.split]
    assert not branches, "warps part where all elements are alike"


def test_a_bias_is_added_in_accesses_of_four(counted, monkeypatch):
    monkeypatch.setattr(programs, "FEW", 0)
    a, b, out = array(128, 64), array(64), array(128, 64)
    device.elementwise(Program("xy", [x + y]), (a, b), (out,))
    check(counted, 2 * 4 * 128 * 64, 4 * 128 * 64)
    assert {access.nbytes for access in counted.accesses} == {16}


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_reductions_read_once(counted, axes):
    a = array(256, 128)
    kept = tuple(n for axis, n in enumerate(a.shape) if axis not in axes)
    device.reduce(IDENTITY, "sum", (a,), array(*kept), a.shape, axes)
    loads = moved(counted, "load")
    assert 4 * a.size <= loads <= 4 * a.size * 1.15  # and perhaps the parts
    for access in counted.accesses:
        assert access.efficiency > 0.99, access.site.text
    assert not counted.float64_operations


def test_a_few_columns_are_read_whole(counted):
    """Three columns: neighbouring threads take neighbouring rows too."""
    a = array(4096, 3)
    device.reduce(IDENTITY, "sum", (a,), array(3), a.shape, (0,))
    first = counted.accesses[0]
    assert first.array.startswith("s_x")
    assert first.efficiency > 0.9


@pytest.mark.parametrize("shape", [(64, 64), (16, 512), (4, 2048)])
def test_a_softmax_reads_and_writes_once(counted, shape):
    a, out = array(*shape), array(*shape)
    device.rows(formulas.SoftmaxRow.program, ("store",), (a,), (out,), shape)
    check(counted, 4 * a.size, 4 * a.size)


def test_long_rows_are_read_once_a_pass(counted, monkeypatch):
    monkeypatch.setattr(row_launch, "REGISTERS", 0)
    a, out = array(4, 2048), array(4, 2048)
    program = Program("x", formulas.SoftmaxRow.program.outputs)  # that remembers no other form
    device.rows(program, ("store",), (a,), (out,), a.shape)
    check(counted, 3 * 4 * a.size, 4 * a.size)


def test_sums_of_long_rows_are_kept_in_accesses_of_four(counted, monkeypatch):
    monkeypatch.setattr(row_launch, "REGISTERS", 0)
    a, total = array(32, 2048), array(2048)
    device.rows(Program("x", [x * 2.0]), ("columns",), (a,), (total,), a.shape)
    for access in counted.accesses:
        assert access.efficiency > 0.99, access.site.text


def test_the_gradient_of_a_layer_norm_reads_its_large_inputs_once(counted):
    rows, n = 256, 128
    a, dy, w = array(rows, n), array(rows, n), array(n)
    outs = (array(rows, n), array(n), array(n))
    modes = ("store", "columns", "columns")
    device.rows(LAYER_NORM_GRADIENT, modes, (dy, a, w, 1e-5), outs, a.shape)
    of_large = [s for s in counted.accesses if s.array in ("s_dy", "s_x") and s.nbytes == 16]
    first = [s for s in of_large if s.kind == "load"]
    assert first
    assert sum(s.moved for s in first) >= 2 * 4 * a.size
    teams = rows // row_launch.ROWS_EACH
    most = 3 * 4 * a.size + 3 * 2 * 4 * teams * n + 8 * n  # x, dy, w a row; the parts of two sums
    assert moved(counted, "load") <= most
    for access in counted.accesses:
        assert access.efficiency > 0.99, access.site.text
