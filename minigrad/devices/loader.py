"""Kernel source text -> a real file named by the hash of all that decides its meaning -> Numba.

The file can be opened, tracebacks show it, and the machine code is kept beside it. A change of the
text, of Numba or of the flags changes the name, so no stale entry is ever used. `store.py` handles
damaged files and disks that cannot be written.
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

from minigrad.devices import store
from minigrad.memory.forks import Held, PoliteLock, hold
from minigrad.memory.interrupts import uninterrupted

MATHEMATICS = ("mathematics.f4", "mathematics.f8", "powers")  # files, to be included together
RANDOM = (*MATHEMATICS, "random_functions")
NEEDS = {  # the files whose functions a file in `source/` calls; .T: for its own type
    "random_functions": ("mathematics.f4", "mathematics.f8"),
    "random": ("lazy", "random_functions"),
    "gather": ("lazy",),
    "add_f4": ("lazy", "sums"),
    "scan": ("lazy", "sums"),
    "argsort": ("lazy",),
    "linalg": ("lazy", "factors"),
    "clipping": ("lazy",),
    "windows": ("lazy",),
    "direct": ("lazy", "sums", "tiles"),
    "blas": ("sums",),
    "product": ("step", "blas.T"),
}
# The types that a source file may be written over.
CODE = {"float32": "f4", "float64": "f8", "int32": "i4", "int64": "i8", "uint8": "u1", "bool": "u1"}
MOVED = {1: "u1", 4: "i4", 8: "i8"}  # as which type copies see an element of so many bytes

LONGEST_COMPILATION = 60.0  # seconds that a fork waits

# Held while kernels are loaded, so also during the first import of Numba: a module that another
# thread is importing at a fork stays locked in the child.
lock = PoliteLock()

_modules = {}
loaded = []  # names of the modules loaded, in order: how many kernels a process needed


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
    """The first folder that can be written: $MINIGRAD_CACHE, the user's cache, a temporary one.

    Where none can, a path at which nothing can be written: kernels live as long as the process.
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
    """The text of a file in `source/`; name: as `scan.f8`, for F8, if the file is over a type T.

    Such a file uses T, SIZE for its bytes and, on the CPU, T_at for its pointers; names of
    functions that are for one type end in _T.
    """
    file, _, code = name.partition(".")
    path = pathlib.Path(__file__).parent / "source" / f"{file}.py"
    text = path.read_text(encoding="utf-8")
    if not code:
        return text
    says = {"T": code.upper(), "T_at": f"{code}_at", "SIZE": code[1]}
    if "T_at" not in text:  # a GPU has no such pointers
        del says["T_at"]
    head = f"{', '.join(says)} = {', '.join(says.values())}\n\n"
    return head + re.sub(r"_T\b", f"_{code}", text)


OF_COMPILERS = {  # locks and destructors: Ctrl-C there would leave a lock taken, or be lost
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
    """Has forks wait for `lock`; to be called before it is first taken."""
    # Numba logs while it holds `lock`, and a fork takes logging's lock, too. A fork takes locks in
    # the reverse order of their registration: logging must come first, or two threads deadlock.
    import logging  # noqa: F401

    hold(Held(lock, LONGEST_COMPILATION))


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
    _mark_locks()
    python = ".".join(map(str, sys.version_info[:3]))
    return f"python {python}, numba {numba.__version__}, llvmlite {llvmlite.__version__}"


def load(text, includes=(), header="header"):
    """The module of kernel source `text`, after a header and an import of the included files.

    The included files are modules of their own, so that their functions are compiled once in a
    process and not for every kernel that calls them. header: the file of `source/` for the target.
    """
    key = (header, text, *includes)
    if key in _modules:
        return _modules[key]
    hold_over_forks()
    with lock:
        if key in _modules:  # another thread has loaded it
            return _modules[key]
        parts = [f"# Generated by minigrad for {_versions()}. Safe to delete.\n", source(header)]
        for name in includes:
            parts.append(f"from {load_source(name, header).__name__} import *")
        whole = "\n\n".join([*parts, text])
        digest = hashlib.sha256(whole.encode()).hexdigest()[:20]
        module = _modules[key] = _import(f"minigrad_kernel_{digest}", whole)
        return module


def load_source(name, header="header"):
    """The module of a file in `source/`; name: as for `source`."""
    file, _, code = name.partition(".")
    needs = tuple(x.replace(".T", f".{code}") for x in NEEDS.get(file, ()))
    return load(source(name), needs, header)


def _import(name, text):
    path = cache_folder() / f"{name}.py"
    if not _holds(path, text) and not store.put(path, text.encode()):
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
    """Python's code of a kernel file, which takes longer to compile than to read."""
    kept = path.with_suffix(".bytecode")
    data = store.read(kept)
    if data is not None:
        code = marshal.loads(data)
        if code.co_filename == str(path):  # else the folder was moved
            return code
    code = compile(text, str(path), "exec", dont_inherit=True)
    store.write(kept, marshal.dumps(code))
    return code


def entry(function):
    """The machine code of a kernel, called without Numba's dispatcher (180 against 300 ns)."""
    return next(iter(function.overloads.values())).entry_point


@functools.cache
def source_kernel(file, name, code=None):
    """The machine code of a kernel of a file in `source/`; code: of the type of a file over T.

    A kernel marked `lazy` is compiled here.
    """
    module = load_source(f"{file}.{code}" if code else file)
    kernel = getattr(module, f"{name}_{code}" if code else name)
    with lock:
        if not kernel.overloads:
            kernel.compile(kernel.wanted)
    return entry(kernel)
