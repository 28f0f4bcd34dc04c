"""Instructions that are no formula: what a step calls on one device, it calls on another."""

import inspect

from minigrad.compiler.gpu.calls import _CALLS as GPU
from minigrad.devices.cpu import kernel_calls

CPU_ALONE = {"convolve", "correlate", "pack", "wrap_index"}  # a GPU's steps have none of these
FORMULAS = {"elementwise", "rows", "reduce"}  # written by `fuse` on the CPU


def test_every_call_of_a_step_has_a_row_for_both_devices():
    functions = inspect.getmembers(kernel_calls, inspect.isfunction)
    ours = {name for name, f in functions if f.__module__ == kernel_calls.__name__}
    cpu = {name for name in ours if not name.startswith("_")}
    assert cpu - CPU_ALONE == set(GPU) - FORMULAS
