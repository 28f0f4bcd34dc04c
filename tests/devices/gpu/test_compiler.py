"""The compiler of CUDA kernels: types, facts, errors, cache. No GPU is needed, nor a driver."""

import errno
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import minigrad as mg
from minigrad.devices import cache_files, loader
from minigrad.devices.gpu import compiler
from minigrad.devices.gpu.driver import cubins as cuda_cubins
from minigrad.devices.gpu.kernel import GpuKernel
from minigrad.errors import CacheWarning, KernelError, MissingLibraryError
from tests.devices.gpu.needs import compiler_is_needed

compiler_is_needed()

SM90 = (9, 0)


def cubin_of(body, signature, includes=(), names="x, out, n"):
    text = f"def kernel({names}):\n    i = cuda.grid(1)\n{body}"
    kernel = GpuKernel(text, signature, includes)
    function = kernel.for_compiler()
    return compiler.compile_function(function, compiler.numba_types(signature), [SM90])[0]


def test_facts_of_a_kernel():
    cubin = cubin_of(
        "    s = cuda.shared.array(64, F4)\n"
        "    s[cuda.threadIdx.x] = x[i]\n"
        "    cuda.syncthreads()\n"
        "    out[i] = s[n]\n",
        "f4* f4* i8",
    )
    assert cubin.code.startswith(b"\x7fELF")
    assert (cubin.shared, cubin.barriers, cubin.doubles, cubin.spills) == (256, 1, 0, 0)
    assert 4 <= cubin.registers <= 32
    assert cubin.capability == SM90


def test_float64_arithmetic_is_counted():
    assert cubin_of("    out[i] = x[i] * 0.1 + 0.3\n", "f4* f4* i8").doubles > 0
    assert cubin_of("    out[i] = x[i] * F4(0.1) + F4(0.3)\n", "f4* f4* i8").doubles == 0


def test_local_memory_is_reported():
    cubin = cubin_of(
        "    a = cuda.local.array(64, F4)\n"
        "    for k in range(n):\n        a[(k * 7) % 64] = x[i + k]\n"
        "    out[i] = a[n % 63]\n",
        "f4* f4* i8",
    )
    assert cubin.stack >= 256


@pytest.mark.parametrize(("code", "wide"), [("f4", 1), ("i4", 1), ("u4", 1), ("f8", 2), ("i8", 2)])
def test_four_elements_are_accesses_of_sixteen_bytes(monkeypatch, code, wide):
    texts = []
    true_link = compiler.link
    monkeypatch.setattr(
        compiler, "link", lambda ptx, *rest: texts.append(ptx) or true_link(ptx, *rest)
    )
    cubin_of(
        "    a, b, c, d = load4(x, 4 * i)\n    store4(out, 4 * i, d, c, b, a)\n",
        f"{code}* {code}* i8",
    )
    each = 4 // wide
    for word in ("ld.global", "st.global"):
        assert texts[0].count(f"{word}.v{each}.") == wide
        assert texts[0].count(word) == wide


def test_wide_access_of_narrow_shared_memory_is_refused():
    body = (
        "    s = cuda.shared.array(128, F4{})\n    s[i] = x[i]\n    cuda.syncthreads()\n"
        "    a, b, c, d = load4(s, 4 * i)\n    store4(out, 4 * i, d, c, b, a)\n"
    )
    assert cubin_of(body.format(", alignment=16"), "f4* f4* i8").shared == 512
    with pytest.raises(KernelError, match="alignment=16"):
        cubin_of(body.format(""), "f4* f4* i8")


@pytest.mark.parametrize("code", ["f4", "f8", "i4", "i8", "u4"])
@pytest.mark.parametrize("name", ["atomic_add", "atomic_max", "atomic_min"])
def test_atomics_of_pointers_return_what_was_there(code, name):
    cubin = cubin_of(f"    out[i] = {name}(x, n, out[i])\n", f"{code}* {code}* i8")
    assert cubin.spills == 0


def test_what_has_no_atomic_is_refused():
    with pytest.raises(KernelError, match="no atomic operation on uint8"):
        cubin_of("    atomic_add(x, i, out[i])\n", "u1* u1* i8")


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_elementary_functions_are_device_functions(dtype):
    names = ("exp", "expm1", "tanh", "sigmoid", "log", "log1p", "log2", "erf", "sin", "cos")
    total = " + ".join(f"{name}_{dtype}(x[i])" for name in names)
    cubin = cubin_of(f"    out[i] = {total}\n", f"{dtype}* {dtype}* i8", loader.MATHEMATICS)
    assert cubin.spills == 0
    assert (cubin.doubles == 0) == (dtype == "f4")


def test_random_functions_are_device_functions():
    includes = (*loader.MATHEMATICS, "random_functions")
    body = "    a, b, c, d = normal_block_f4(i, n)\n    store4(out, 4 * i, a, b, c, d)\n"
    assert cubin_of(body, "f4* f4* i8", includes).doubles == 0
    body = "    a, b = integer_block_i8(i, n, I8(3), U8(n))\n    out[i] = a + b\n"
    assert cubin_of(body, "i8* i8* i8", includes).doubles == 0


# -- errors


def unknown_attribute(x, out):
    i = mg.cuda.grid(1)
    out[i] = x[i].size


def unknown_name(x, out):
    out[0] = nothing_of_this_name(x[0])  # noqa: F821


def too_many_indices(x, out):
    out[0] = x[0, 0]


def returns(x, out):
    return 3


@pytest.mark.parametrize(
    ("function", "said", "line"),
    [
        (unknown_attribute, "size", "x[i].size"),
        (unknown_name, "nothing_of_this_name", "def unknown_name"),
        (too_many_indices, "with 2 indices", "def too_many_indices"),
        (returns, "return", "return 3"),
    ],
)
def test_kernels_of_ones_own_fail_with_their_line(function, said, line):
    from minigrad.cuda.compiled import translated

    array = compiler.array_type(np.dtype("float32"), 1, True)
    with pytest.raises(KernelError) as caught:
        compiler.compile_function(translated(function), [array, array], [SM90])
    assert said in str(caught.value)
    assert line in caught.value.where
    assert "x: array(float32, 1d, C)" in caught.value.got
    assert caught.value.full


def test_missing_packages_are_named(monkeypatch):
    compiler.names.cache_clear()
    monkeypatch.setattr(compiler, "missing", lambda: "numba-cuda")
    try:
        with pytest.raises(MissingLibraryError, match=r"minigrad\[cuda\]"):
            compiler.names()
    finally:
        compiler.names.cache_clear()


# -- kernels of one's own, compiled with arrays


@mg.cuda.jit(device=True)
def doubled(x):
    return x * mg.float32(2)


@mg.cuda.jit
def scaled(x, out, a):
    i = mg.cuda.grid(1)
    held = mg.cuda.shared.array(32, mg.float32)
    held[mg.cuda.threadIdx.x] = x[i, 0]
    mg.cuda.syncthreads()
    if i < x.shape[0]:
        mg.cuda.atomic.add(out, 0, doubled(held[0]) * a)


def test_kernels_of_ones_own_are_launched_with_what_they_unpack(monkeypatch):
    from minigrad.cuda import compiled
    from minigrad.devices import backend

    launches = []
    driver = SimpleNamespace(load=lambda cubin: cubin, launch=lambda *a: launches.append(a))
    device = SimpleNamespace(capability=SM90, driver=driver)
    x = mg.ones((5, 3)).array
    out = mg.ones((4,)).array
    monkeypatch.setattr(backend, "device_named", lambda name: device)
    part = x.view((5, 2), (3, 1), 1)
    configured = SimpleNamespace(kernel=scaled, blocks=2, threads=32, shared=0)
    for first in (x, part):
        compiled.launch(configured, [first, out, np.float32(0.5)])
    (cubin, blocks, threads, shared, words), (other, *_, others) = launches
    assert (blocks, threads, shared) == (2, 32, 0)
    assert words == [
        0, 0, 15, 4, x.address, 5, 3, 12, 4, 0, 0, 4, 4, out.address, 4, 4, np.float32(0.5),
    ]  # fmt: skip
    assert others[:9] == [0, 0, 10, 4, x.address + 4, 5, 2, 12, 4]
    assert cubin is not other, "with gaps and without are two kernels"
    assert (cubin.doubles, cubin.shared) == (0, 128)
    assert parameters(cubin) == len(words)


def parameters(cubin):
    """How many arguments a cubin's kernel takes: entries of 12 bytes in its section .nv.info."""
    return cubin.code.count(b"\x04\x17\x0c\x00")


# -- the cache on disk


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setattr(loader, "cache_folder", lambda: tmp_path)
    return tmp_path


def a_kernel():
    return GpuKernel("def kernel(x):\n    x[cuda.grid(1)] = F4(1)\n", "f4*", ())


def test_second_time_reads_what_the_first_has_written(folder, monkeypatch):
    first = cuda_cubins.cubin(a_kernel(), SM90)
    monkeypatch.setattr(compiler, "compile_function", None)
    assert cuda_cubins.cubin(a_kernel(), SM90) == first


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d[:-1],
        lambda d: b"",
        lambda d: d[::-1],
        lambda d: d.replace(b'"spills": 0', b'"spills": 8'),
        lambda d: d[:-9] + bytes([d[-9] ^ 1]) + d[-8:],
    ],
)
def test_damaged_cubin_is_compiled_again(folder, damage):
    first = cuda_cubins.cubin(a_kernel(), SM90)
    (path,) = folder.glob("*.cubin")
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert path.read_bytes() != whole
    again = cuda_cubins.cubin(a_kernel(), SM90)
    assert len(again.code) == len(first.code)
    assert (again.registers, again.spills) == (first.registers, first.spills)
    assert cache_files.read(path) is not None


def test_cubin_that_cannot_be_kept_is_used_and_warns(folder, monkeypatch):
    def full(path, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(cache_files, "write_whole", full)
    monkeypatch.setitem(cache_files._state, "warned", False)
    with pytest.warns(CacheWarning, match="No space left") as caught:
        assert all(cuda_cubins.cubin(a_kernel(), sm).code for sm in (SM90, (8, 0)))
    assert len(caught) == 1


def test_name_of_a_cubin_depends_on_all_that_decides_its_meaning(monkeypatch):
    kernel = a_kernel()
    names = {
        cuda_cubins.digest(kernel, SM90),
        cuda_cubins.digest(kernel, (8, 0)),
        cuda_cubins.digest(GpuKernel(kernel.text, "f8*", ()), SM90),
        cuda_cubins.digest(GpuKernel(kernel.text + "\n", "f4*", ()), SM90),
        cuda_cubins.digest(GpuKernel(kernel.text, "f4*", ("powers",)), SM90),
    }
    monkeypatch.setattr(cuda_cubins, "compiler_versions", lambda: "another")
    names.add(cuda_cubins.digest(kernel, SM90))
    monkeypatch.setattr(cuda_cubins, "_compiler_text", lambda: "called otherwise")
    names.add(cuda_cubins.digest(kernel, SM90))
    assert len(names) == 7


@pytest.mark.parametrize(
    "library", ["nvidia-nvvm", "nvidia-nvjitlink", "nvidia-cuda-nvcc-cu12", "nvidia-nvjitlink-cu12"]
)
def test_versions_of_both_cudas_compilers_count(monkeypatch, library):
    before = cuda_cubins.compiler_versions()
    monkeypatch.setattr(cuda_cubins, "version", lambda part: "7" if part == library else "none")
    assert f"{library} 7" in cuda_cubins.compiler_versions.__wrapped__()
    assert f"{library} 7" not in before


# -- what importing costs


def test_importing_minigrad_loads_no_cuda():
    code = (
        "import sys, minigrad as mg, minigrad.devices.gpu.driver.state as s\n"
        "mg.ones((2,)).sum()\n"
        "found = [m for m in sys.modules if m.startswith(('cuda', 'numba.cuda', 'nvmath'))]\n"
        "assert not found, found\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
