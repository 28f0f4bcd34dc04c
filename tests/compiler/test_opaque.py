"""Instructions that are no formula: what a step calls on one device, it calls on another."""

from minigrad.compiler.cpu.opaque_text import _WRITERS as CPU
from minigrad.compiler.gpu.calls import _CALLS as GPU

CPU_ALONE = {"convolve", "correlate", "pack", "wrap_index"}  # a GPU's steps have none of these
FORMULAS = {"elementwise", "rows", "reduce"}  # written by `fuse` on the CPU


def test_every_call_of_a_step_has_a_row_for_both_devices():
    assert set(CPU) - CPU_ALONE == set(GPU) - FORMULAS
