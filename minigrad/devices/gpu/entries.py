"""Kernels written by hand: functions of the files `source/gpu_*.py`, each for one element type."""

import ast
import functools

from minigrad.devices import loader
from minigrad.devices.gpu.kernel import gpu_kernel
from minigrad.devices.loader import CODE as CODE
from minigrad.parsing import tree_of

USES = {  # files that a file needs
    "gpu_indexing": ("gpu_rows",), "gpu_windows": ("gpu_rows",), "gpu_linalg": ("factors",),
}  # fmt: skip


@functools.cache
def _parameters(file):
    """{function: names of its parameters} of a file in `source/`."""
    tree = tree_of(loader.source(file))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {f.name: [a.arg for a in f.args.args] for f in functions}


@functools.cache
def entry(file, name, code, signature, includes=()):
    """The GpuKernel that calls one device function of a file in `source/`.

    Args:
        code: of the element type, which the file calls T: f4, f8, i4, i8, u1.
        signature: as of GpuKernel; `T` in it stands for the code.
        includes: as of GpuKernel, besides those that the file needs for all its functions.
    """
    includes = (*includes, *USES.get(file, ()))
    names = ", ".join(_parameters(file)[name])
    text = f"""{loader.source(f"{file}.{code}")}

def kernel({names}):
    {name}({names})
"""
    return gpu_kernel(text, signature.replace("T", code), includes)


def blocks_of(count, threads, most=2048):
    """How many blocks of `threads` for `count` elements, in a kernel that strides over the grid.

    At most `most`, which fill a GPU several times over.
    """
    return max(1, min(most, -(-count // threads)))
