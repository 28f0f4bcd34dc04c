"""Writes kernel source to a file, named by the hash of all that affects it; loads it for Numba.

The file can be opened, tracebacks show it, and the machine code is kept beside it. Any change of
the text, Numba or the flags changes the name, so no stale entry is ever used. `cache_files.py`
handles damaged files and disks that cannot be written.
"""

import contextlib
import functools
import hashlib
import importlib
import linecache
import marshal
import operator
import os
import pathlib
import re
import sys
import tempfile
import types

from minigrad.array.dtypes import DTYPES
from minigrad.devices import cache_files
from minigrad.memory.forks import Held, PoliteLock, hold
from minigrad.memory.interrupts import uninterrupted

MATHEMATICS = ("mathematics.f4", "mathematics.f8", "powers")  # files to include together
RANDOM = (*MATHEMATICS, "random_functions")
NEEDS = {  # the files whose functions a file in `source/` calls; .T: for its own type
    "random_functions": ("mathematics.f4", "mathematics.f8"),
    "in_float64": ("mathematics.f4", "mathematics.f8"),
    "random": ("lazy", "random_functions"),
    "gather": ("lazy",),
    "add_f4": ("lazy", "sums"),
    "scan": ("lazy", "sums", "extremes"),
    "argsort": ("lazy", "sums"),
    "linalg": ("lazy", "factors"),
    "clipping": ("lazy",),
    "windows": ("lazy",),
    "direct": ("lazy", "sums", "tiles"),
    "blas": ("sums",),
    "product": ("step", "blas.T"),
    "led_calls": ("step",),
    "storage_f2": ("rounding", "storage"),
    "storage_b2": ("rounding", "storage"),
}
# {word: the file that defines it}, for types that the CPU's header does not name: only kernels in
# which one of these words occurs import the file.
APART = {
    word: file
    for d in DTYPES if d.is_narrow
    for word, file in (
        (d.text, f"storage_{d.code}"),
        (d.pointer, f"storage_{d.code}"),
        (f"{d.moved}_at", "storage"),
    )
}  # fmt: skip
REALS = {d.code: d.arithmetic.code for d in DTYPES if d.is_narrow}

LONGEST_COMPILATION = 60.0  # seconds that a fork waits at most

# Held while kernels are loaded, and so during the first import of Numba: a module that another
# thread is importing during a fork stays locked in the child.
lock = PoliteLock()

_of_numba = []  # Numba's own lock, once forks wait for it
_modules = {}
_compiled = {}  # {entry: what Numba knows of it}
loaded = []  # names of loaded modules, in order: shows how many kernels a process needed


def _candidates():
    chosen = os.environ.get("MINIGRAD_CACHE")
    if chosen:
        yield pathlib.Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    if base:
        yield pathlib.Path(base) / "minigrad"
    with contextlib.suppress(RuntimeError):  # no HOME and no entry in the password database
        yield pathlib.Path.home() / ".cache" / "minigrad"
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    shared = pathlib.Path(tempfile.gettempdir()) / f"minigrad-{user}"
    if not shared.exists() or shared.stat().st_uid == user or not hasattr(os, "getuid"):
        yield shared  # another user's folder could hold anybody's code


@functools.cache
def cache_folder():
    """Return the first writable folder: $MINIGRAD_CACHE, the user's cache, a temporary one.

    If none is writable, return an unwritable path: kernels then live as long as the process.
    """
    with contextlib.suppress(OSError):  # no temporary folder either
        for folder in _candidates():
            with contextlib.suppress(OSError):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                with tempfile.NamedTemporaryFile(dir=folder):
                    return folder
        return pathlib.Path(tempfile.mkdtemp(prefix="minigrad-"))
    return pathlib.Path(os.devnull, "minigrad")


@functools.cache
def source(name):
    """Return the text of a file in `source/`, such as `scan.f8` for a file over type T = F8.

    Such a file uses T, SIZE for T's bytes and, on the CPU, T_at for pointers to T; also REAL, the
    type in which elements of a float type T are computed. Its functions for one type have names
    that end in _T.
    """
    file, _, code = name.partition(".")
    path = pathlib.Path(__file__).parent / "source" / f"{file}.py"
    text = path.read_text(encoding="utf-8")
    if not code:
        return text
    says = {"T": code.upper(), "T_at": f"{code}_at", "SIZE": code[1]}
    if "T_at" not in text:  # a GPU has no such pointers
        del says["T_at"]
    if "REAL" in text:
        says["REAL"] = REALS.get(code, code).upper()
    head = f"{', '.join(says)} = {', '.join(says.values())}\n\n"
    return head + re.sub(r"_T\b", f"_{code}", text)


OF_COMPILERS = {  # locks and destructors: Ctrl-C there would leave a lock held, or be lost
    "numba.core.compiler_lock": ("_CompilerLock.__enter__", "_CompilerLock.__exit__"),
    "llvmlite.binding.ffi": (
        "_LLVMLock.__enter__", "_LLVMLock.__exit__", "_lib_fn_wrapper.__call__",
        "OutputString.__del__", "ObjectRef.__del__",
    ),
}  # fmt: skip


def _mark_locks():
    for module, names in OF_COMPILERS.items():
        for name in names:
            with contextlib.suppress(AttributeError):  # in another version
                uninterrupted(operator.attrgetter(name)(importlib.import_module(module)))


@functools.cache
def hold_over_forks():
    """Make fork() wait for `lock`. Call before the lock is first acquired."""
    # Numba logs while it holds `lock`, and fork() also takes logging's lock. It takes locks in
    # reverse order of registration, so logging must register first, or two threads deadlock.
    import logging  # noqa: F401

    hold(Held(lock, LONGEST_COMPILATION))


def is_compiling():
    """Return whether another thread loads or compiles a kernel.

    Also one of a user, once minigrad has loaded a kernel: only then do forks wait for Numba's lock.
    """
    hold_over_forks()
    return not all(map(_is_free, (lock, *_of_numba)))


@uninterrupted
def _is_free(one):
    is_free = one.acquire(timeout=0)
    if is_free:
        one.release()
    return is_free


@functools.cache
def _versions():
    import llvmlite  # only with the first kernel: importing minigrad stays quick
    import llvmlite.binding as llvm
    import numba
    from numba.core.compiler_lock import global_compiler_lock

    locks = [lock, global_compiler_lock._lock]
    if (foreign := getattr(llvm.ffi.lib, "_lock", None)) is not None:
        locks.append(foreign._lock)
    hold(*(Held(one, LONGEST_COMPILATION) for one in locks))
    _of_numba.append(global_compiler_lock._lock)
    _mark_locks()
    python = ".".join(map(str, sys.version_info[:3]))
    return f"python {python}, numba {numba.__version__}, llvmlite {llvmlite.__version__}"


def load(text, includes=(), header="header"):
    """Return the module of kernel source `text`, after a header and imports of `includes`.

    Included files are separate modules, so that their functions are compiled once per process, not
    for every kernel that calls them. header: the target's file in `source/`.
    """
    key = (header, text, *includes)
    if key in _modules:
        return _modules[key]
    hold_over_forks()
    with lock:
        if key in _modules:  # another thread has loaded it
            return _modules[key]
        parts = [f"# Generated by minigrad for {_versions()}. Safe to delete.\n", source(header)]
        for name in (*includes, *(_apart(text) if header == "header" else ())):
            parts.append(f"from {load_source(name, header).__name__} import *")
        whole = "\n\n".join([*parts, text])
        digest = hashlib.sha256(whole.encode()).hexdigest()[:20]
        module = _modules[key] = _import(f"minigrad_kernel_{digest}", whole)
        return module


def _apart(text):
    """Return the files of APART that a text needs, but not the file that it is itself."""
    files = {file for word, file in APART.items() if re.search(rf"\b{word}\b", text)}
    return sorted(file for file in files if source(file) != text)


def load_source(name, header="header"):
    """Return the module of a file in `source/`. name: as for `source`."""
    file, _, code = name.partition(".")
    needs = tuple(x.replace(".T", f".{code}") for x in NEEDS.get(file, ()))
    return load(source(name), needs, header)


def _import(name, text):
    path = cache_folder() / f"{name}.py"
    if not _holds(path, text) and not cache_files.put(path, text.encode()):
        lines = text.splitlines(keepends=True)
        linecache.cache[str(path)] = len(text), None, lines, str(path)  # for tracebacks
    module = types.ModuleType(name)
    module.__file__ = str(path)
    code = _bytecode(path, text)
    sys.modules[name] = module  # before it runs: machine code refers to it
    try:
        exec(code, module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    loaded.append(name)
    return module


def _holds(path, text):
    try:
        return path.read_bytes() == text.encode()
    except OSError:
        return False


def _bytecode(path, text):
    """Return the Python code object of a kernel file, cached: reading beats compiling."""
    kept = path.with_suffix(".bytecode")
    data = cache_files.read(kept)
    if data is not None:
        code = marshal.loads(data)
        if code.co_filename == str(path):  # else the folder was moved
            return code
    code = compile(text, str(path), "exec", dont_inherit=True)
    cache_files.write(kept, marshal.dumps(code))
    return code


def entry(function):
    """Return a kernel's machine code, callable without Numba's dispatcher (180 vs. 300 ns)."""
    compiled = next(iter(function.overloads.values()))
    _compiled[compiled.entry_point] = compiled
    return compiled.entry_point


@functools.cache
def machine_code(kernel):
    """Return (address, number of arguments, which of them are floats, as bits) of an entry.

    Return None for another function, one that returns a value, or one with arguments that are no
    numbers of 8 bytes.
    """
    compiled = _compiled.get(kernel)
    if compiled is None or str(compiled.signature.return_type) != "none":
        return None
    kinds = compiled.signature.args
    if any(getattr(kind, "bitwidth", None) != 64 for kind in kinds):
        return None
    address = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
    floats = sum(1 << k for k, kind in enumerate(kinds) if str(kind).startswith("float"))
    return address, len(kinds), floats


@functools.cache
def source_kernel(file, name, code=None):
    """Return the machine code of a kernel in `source/`. code: the type, for a file over T.

    Compile it first if it is marked `lazy`.
    """
    module = load_source(f"{file}.{code}" if code else file)
    kernel = getattr(module, f"{name}_{code}" if code else name)
    with lock:
        if not kernel.overloads:
            kernel.compile(kernel.wanted)
    return entry(kernel)
