"""Cubins of the engine's kernels: compiled at most once per kind of GPU, kept on disk.

A file's name is the hash of all that decides its meaning: the kernel's text, the header, the
included files, the argument types, the compute capability, the compiler's versions and
`compiler.py`, which calls it. So no file is stale, and a damaged one is compiled again
(`cache_files.py`). If there is a cubin, Numba's CUDA target is not imported.
"""

import dataclasses
import functools
import hashlib
import json
import pathlib

from minigrad.devices import cache_files, loader
from minigrad.devices.gpu import compiler
from minigrad.devices.gpu.compiler import Cubin
from minigrad.devices.gpu.driver.state import version

PARTS = (
    "numba", "numba-cuda", "llvmlite", "nvidia-nvvm", "nvidia-nvjitlink", "cuda-core",
    "nvidia-cuda-nvcc-cu12", "nvidia-nvjitlink-cu12",  # of CUDA 12, whose nvcc holds NVVM
)  # fmt: skip


def cubin(kernel, capability):
    """Return the Cubin of a GpuKernel for a compute capability (major, minor)."""
    return kernel.compiled.get(capability) or cubins(kernel, [capability])[0]


def cubins(kernel, capabilities):
    """Return a GpuKernel's Cubins for several compute capabilities, compiled together."""
    paths = {c: loader.cache_folder() / f"minigrad_{digest(kernel, c)}.cubin" for c in capabilities}
    for capability, path in paths.items():
        kernel.compiled[capability] = kernel.compiled.get(capability) or _read(path)
    lacking = [c for c in capabilities if kernel.compiled[c] is None]
    if lacking:
        _compile(kernel, lacking, paths)
    return [kernel.compiled[c] for c in capabilities]


@functools.cache
def compiler_versions():
    """Return the versions of everything that turns a kernel into a cubin, as one text."""
    return ", ".join(f"{part} {version(part)}" for part in PARTS)


@functools.cache
def _compiler_text():
    return pathlib.Path(compiler.__file__).read_text(encoding="utf-8")


def digest(kernel, capability):
    """Return the name of a cubin: a hash of all that decides its meaning."""
    whole = [kernel.text, kernel.signature, "sm_{}{}".format(*capability), compiler_versions()]
    whole += [loader.source(name) for name in ("gpu_cuda", *kernel.includes)]
    whole.append(_compiler_text())
    return hashlib.sha256("\0".join(whole).encode()).hexdigest()[:24]


def _compile(kernel, capabilities, paths):
    function = kernel.for_compiler()
    made = compiler.compile_function(
        function,
        compiler.numba_types(kernel.signature),
        capabilities,
        function.__globals__.get("MOST_THREADS"),  # a kernel may limit its blocks
    )
    for one in made:
        facts = {k: v for k, v in dataclasses.asdict(one).items() if k != "code"}
        cache_files.write(paths[one.capability], json.dumps(facts).encode() + b"\n" + one.code)
        kernel.compiled[one.capability] = one


def _read(path):
    data = cache_files.read(path)
    if data is None:
        return None
    line, _, code = data.partition(b"\n")
    facts = json.loads(line)
    facts["capability"] = tuple(facts["capability"])
    return Cubin(code=code, **facts)
