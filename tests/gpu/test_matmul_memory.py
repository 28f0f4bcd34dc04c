"""What the kernels of matrix products do to memory: barriers, coalescing, banks."""

import pytest

from minigrad import simt
from minigrad.errors import DataRaceError
from minigrad.kernels.gpu import matmul_plan, matmul_text
from minigrad.kernels.gpu.kernel import gpu_kernel
from minigrad.kernels.gpu.matmul_plan import LARGE, SMALL, Plan
from minigrad.kernels.gpu.matmul_text import Tile
from minigrad.simt.counts import Counts
from tests.gpu.machine import Machine, random
from tests.gpu.products import RNG, close, lying, product

TALL = Tile(64, 128, 8, 8, 8)  # four warps: threads of one run in lock-step


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
    machine = planned(monkeypatch, Plan(TALL, False, 1, 1 << 20))
    with pytest.raises(DataRaceError, match="_shared"):
        product(machine, random(RNG, (64, 40), "f4"), random(RNG, (40, 128), "f4"))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("tile", [LARGE, SMALL], ids=["large", "small"])
def test_accesses_are_coalesced_and_without_bank_conflicts(monkeypatch, tile, turned):
    machine = planned(monkeypatch, Plan(tile, True, 1, 1 << 20))
    counts, run = Counts(), simt.launch
    monkeypatch.setattr(simt, "launch", lambda *given: run(*given[:5], False, counts))
    a = random(RNG, (tile.rows, 2 * tile.depth), "f4")
    b = random(RNG, (2 * tile.depth, tile.columns), "f4")
    close(product(machine, lying(a, turned), lying(b, turned)), a @ b)
    assert {x.space for x in counts.accesses} == {"global", "shared"}
    wasteful = [x for x in counts.accesses if x.efficiency < 1]
    found = {x.site.text.split("[")[0]: x.efficiency for x in wasteful}
    turning = "b_shared" if turned else "a_shared"  # its copy turns rows into columns
    assert found == ({} if tile is LARGE else {turning: 0.5})
