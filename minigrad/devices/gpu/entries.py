"""Hand-written kernels: functions of the files `source/gpu_*.py`, each for one element type."""

import ast
import functools

from minigrad.devices import loader
from minigrad.devices.gpu.kernel import gpu_kernel
from minigrad.parsing import tree_of

USES = {  # file -> the files it needs
    "gpu_indexing": ("gpu_rows",), "gpu_windows": ("gpu_rows",), "gpu_linalg": ("factors",),
}  # fmt: skip


@functools.cache
def _parameters(file):
    """Return {function: names of its parameters} of a file in `source/`."""
    tree = tree_of(loader.source(file))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {f.name: [a.arg for a in f.args.args] for f in functions}


@functools.cache
def entry(file, name, code, signature, includes=()):
    """Return the GpuKernel that calls one device function of a file in `source/`.

    Args:
        code: the code of the element type, which the file calls T: f4, f8, i4, i8, u1.
        signature: see GpuKernel; `T` in it stands for the code.
        includes: see GpuKernel; those that all functions of the file need are added.
    """
    includes = (*includes, *USES.get(file, ()))
    names = ", ".join(_parameters(file)[name])
    text = f"""{loader.source(f"{file}.{code}")}

def kernel({names}):
    {name}({names})
"""
    return gpu_kernel(text, signature.replace("T", code), includes)


def blocks_of(count, threads, most=2048):
    """Return how many blocks of `threads` a grid-stride kernel needs for `count` elements.

    At most `most`, which fill a GPU several times over.
    """
    return max(1, min(most, -(-count // threads)))
