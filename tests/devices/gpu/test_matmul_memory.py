"""What the kernels of matrix products do to memory: barriers, coalescing, banks."""

import pytest

from minigrad import simt
from minigrad.array.dtypes import float32
from minigrad.devices.gpu.kernel import gpu_kernel
from minigrad.devices.gpu.product import matmul_plan, matmul_text
from minigrad.devices.gpu.product.matmul_plan import LARGE, SMALL, SMALL_8, ProductPlan
from minigrad.devices.gpu.product.matmul_text import ProductTile
from minigrad.devices.window import Window
from minigrad.errors import DataRaceError
from minigrad.simt.counts.counts import Counts
from tests.devices.gpu.machine import Machine, random
from tests.devices.gpu.products import RNG, close, lying, product

TALL = ProductTile(64, 128, 8, 8, 8)  # four warps: threads of one run in lock-step


@pytest.fixture(autouse=True)
def _nothing_is_remembered():
    matmul_plan.calls.cache_clear()
    yield
    matmul_plan.calls.cache_clear()


def planned(monkeypatch, plan):
    """A machine whose products are all computed in one way."""
    monkeypatch.setattr(matmul_plan, "plan", lambda *_: plan)
    return Machine()


@pytest.mark.parametrize("barrier", [0, 1])
def test_each_barrier_is_needed(monkeypatch, barrier):
    parts = matmul_text.text(TALL, "f4", False).split("cuda.syncthreads()")
    assert len(parts) == 3
    broken = "cuda.syncthreads()".join(parts[: barrier + 1]) + "pass"
    broken += "cuda.syncthreads()".join(parts[barrier + 1 :])
    kernel = gpu_kernel(broken, matmul_text.signature("f4"))
    monkeypatch.setattr(matmul_plan, "kernel", lambda *_: kernel)
    machine = planned(monkeypatch, ProductPlan(TALL, False, 1, 1 << 20))
    with pytest.raises(DataRaceError, match="_shared"):
        product(machine, random(RNG, (64, 40), "f4"), random(RNG, (40, 128), "f4"))


@pytest.fixture
def counts(monkeypatch):
    """The counts of all launches of a test."""
    found, run = Counts(), simt.launch
    monkeypatch.setattr(simt, "launch", lambda *given: run(*given[:5], False, found))
    return found


def wasteful(counts):
    """{array: efficiency} of accesses that take more sectors or passes than they have to."""
    assert {x.space for x in counts.accesses} == {"global", "shared"}
    found = [x for x in counts.accesses if x.efficiency < 1]
    return {(x.kind, x.array): x.efficiency for x in found}


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("tile", [LARGE, SMALL], ids=["large", "small"])
def test_accesses_are_coalesced_and_without_bank_conflicts(
    monkeypatch, counts, tile, whole, turned
):
    machine = planned(monkeypatch, ProductPlan(tile, whole, 1, 1 << 20))
    a = random(RNG, (tile.rows, 2 * tile.depth), "f4")
    b = random(RNG, (2 * tile.depth, tile.columns), "f4")
    close(product(machine, lying(a, turned), lying(b, turned)), a @ b)
    assert wasteful(counts) == {}


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("code", ["f8", "i8"])
def test_elements_of_8_bytes_meet_where_two_vectors_of_b_are_wider_than_the_banks(
    monkeypatch, counts, code, turned
):
    machine = planned(monkeypatch, ProductPlan(SMALL_8, False, 1, 1 << 20))
    a, b = random(RNG, (64, 16), code), random(RNG, (16, 64), code)
    close(product(machine, lying(a, turned), lying(b, turned)), a @ b)
    assert wasteful(counts) == {("load", "b_shared"): 0.5}


def test_copies_of_convolutions_are_without_bank_conflicts(counts):
    machine, window = Machine(), Window((3, 3), (1, 1), (1, 1), (1, 1))
    x, w = machine.of(random(RNG, (2, 4, 8, 8), "f4")), machine.of(random(RNG, (70, 4, 3, 3), "f4"))
    out = machine.empty((2, 70, 8, 8), float32)
    machine.convolve(x, w, None, out, window)
    machine.correlate(out, x, w, window)
    assert "shared" not in {x.space for x in counts.accesses if x.efficiency < 1}
    assert {x.array for x in counts.accesses if x.space == "shared"} == {"a_shared", "b_shared"}
