"""docs/generated/cubins.md: what the assembler says of each kernel.

Needs numba-cuda, and no GPU.
"""

import re
import textwrap

from minigrad.devices.gpu.driver import cubins as cuda_cubins
from tests.devices.gpu.every_kernel import by_label
from tests.devices.gpu.needs import compiler_is_needed
from tests.pages import NOTE

CAPABILITIES = [(8, 0), (9, 0)]
HEAD = """# CUDA kernels, compiled

{note}

Every kernel of the `cuda` device is compiled for GPUs of compute capability 8.0 (`sm_80`) and 9.0
(`sm_90`) whenever the tests run, without a GPU, where the compiler is installed: {count} kernels.
Tests hold that none spills registers to memory, that the largest block it is launched with fits
into a multiprocessor, and that none of float32 has an instruction on float64 (`.f64` in the PTX),
which most GPUs execute 32 or 64 times slower. Besides rows named float64 or f8, casts and linear
algebra, which computes in float64, one kernel of each step of Adam has some: it counts the steps
and computes the two factors of a parameter, once a step, and touches no element of one.
Compiled by
{versions}.

A row is what made the kernels: an operation (contiguous float32 unless a dtype is named), its
gradient, shapes that take another kernel, or the name of one written by hand with its element type.
Kernels that several rows use stand in the first. Numbers are the largest of a row: registers of a
thread, bytes of static and dynamic shared memory of a block, threads of a block in these launches,
`.f64` in the PTX.

| made by | kernels | threads | registers, sm_80 | sm_90 | shared | `.f64` |
|---|---|---|---|---|---|---|
"""


def compiled():
    """label -> [(Used, its Cubins, one for each capability)]."""
    return {
        label: [(used, cuda_cubins.cubins(kernel, CAPABILITIES)) for kernel, used in kernels]
        for label, kernels in by_label().items()
    }


def page(made):
    """The text of the page."""
    rows = []
    for label, kernels in made.items():
        old, new = (max(cubins[k].registers for _, cubins in kernels) for k in (0, 1))
        threads = max(used.threads for used, _ in kernels)
        shared = max(used.shared + max(c.shared for c in cubins) for used, cubins in kernels)
        doubles = max(c.doubles for _, cubins in kernels for c in cubins)
        rows.append(
            f"| {label} | {len(kernels)} | {threads} | {old} | {new} | {shared} | {doubles} |"
        )
    count = sum(map(len, made.values()))
    return HEAD.format(note=NOTE, count=count, versions=versions()) + "\n".join(rows) + "\n"


def versions():
    """What compiled them."""
    text = re.sub(r", [\w-]+ none", "", cuda_cubins.compiler_versions())
    return textwrap.fill(text, 100, break_on_hyphens=False)


def rows_of(text):
    """label -> (kernels, threads, registers for both) of the table in a page."""
    found = re.findall(r"^\| (.*?) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|", text, re.MULTILINE)
    return {label: tuple(map(int, numbers)) for label, *numbers in found}


def text():
    """The whole page."""
    compiler_is_needed()
    return page(compiled())


def same(written, made):
    """Whether two pages have the same kernels, and registers as from a changed line at most."""
    old, new = rows_of(written), rows_of(made)
    if {k: v[:2] for k, v in old.items()} != {k: v[:2] for k, v in new.items()}:
        return False
    if written.split("Compiled by")[0] != made.split("Compiled by")[0]:
        return False
    if versions() not in written:
        return True
    pairs = [p for k in new for p in zip(new[k][2:], old[k][2:], strict=True)]
    return all(abs(mine - theirs) <= max(12, theirs // 4) for mine, theirs in pairs)
