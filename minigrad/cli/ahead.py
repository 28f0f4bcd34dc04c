"""Compiles the kernels that the lessons call before they are needed; `minigrad lab` starts it.

A kernel is compiled at its first call and kept on disk. A learner who opens lesson 07 first would
wait for a hundred and fifty of them. `kernels.xz` lists what lessons and their checks call, in the
order of the lessons; this module compiles it at the lowest priority. Kernels that the list lacks,
or that the engine now writes differently, are compiled at their first call, as always.
`python -m tests.kernels` writes the list.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import lzma
import os
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from minigrad.compiler.cpu.cpu_plan import find_yield
from minigrad.devices import loader
from minigrad.devices.cpu.blas import find_blas

LIST = Path(__file__).with_name("kernels.xz")
SWITCH = "MINIGRAD_AHEAD"  # 0: nothing is compiled ahead


def start() -> subprocess.Popen | None:
    """Start compiling in a process of its own, in parallel to this one."""
    if os.environ.get(SWITCH) == "0":
        return None
    with contextlib.suppress(OSError):  # lessons go without
        return subprocess.Popen([sys.executable, "-P", "-m", __name__], stdin=subprocess.DEVNULL)
    return None


def recorded() -> list[dict]:
    """Return the list: for each kernel file its text, or its name in `devices/source/`.

    Each has `source` (as for `loader.load_source`) or `text` and `includes` (as for `loader.load`),
    and `functions`, the names of its kernels that were called.
    """
    return json.loads(lzma.decompress(LIST.read_bytes()))


def compilable() -> list[dict]:
    """Return the entries of the list that can be compiled here.

    LLVM ends a process whose kernel calls an unknown symbol, and products call BLAS by symbol.
    """
    find_yield()
    if find_blas() is not None:
        return recorded()
    products = {"blas", "product"}
    return [
        kernels
        for kernels in recorded()
        if products.isdisjoint(
            name.partition(".")[0] for name in kernels.get("includes", [kernels.get("source")])
        )
    ]


def compile_one(kernels: dict) -> None:
    """Compile the kernels of one file, or load them from disk."""
    if "source" in kernels:
        module = loader.load_source(kernels["source"])
    else:
        module = loader.load(kernels["text"], tuple(kernels["includes"]))
    for name in kernels["functions"]:
        kernel: Any = getattr(module, name, None)
        if hasattr(kernel, "wanted") and not kernel.overloads:  # marked `lazy`
            with loader.lock:
                kernel.compile(kernel.wanted)


def done() -> Path:
    """Return the file that marks all of this list as compiled."""
    digest = hashlib.sha256(LIST.read_bytes())
    devices = Path(loader.__file__).parent
    how = ("machine_code_cache.py", "numba_pipelines.py", "called_by_symbol.py")
    for path in [*(devices / name for name in how), *sorted((devices / "source").glob("*.py"))]:
        digest.update(path.read_bytes())
    digest.update(f"{sys.version} {version('numba')} {version('llvmlite')}".encode())
    return loader.cache_folder() / f"ahead-{digest.hexdigest()[:16]}"


def main() -> int:
    """Compile what the cache lacks; say what is under way and how long it took."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the lab, which ends this process
    with contextlib.suppress(OSError, AttributeError):  # Windows has no such call
        os.nice(19)
    if not loader.cache_folder().is_dir() or done().exists():
        return 0
    todo, started = compilable(), time.monotonic()
    tell(f"Compiling {len(todo)} kernels for the lessons in the background, at low priority.")
    for kernels in todo:
        with contextlib.suppress(Exception):  # an entry that this engine cannot compile any more
            compile_one(kernels)
    with contextlib.suppress(OSError):
        done().touch()
    tell(f"Kernels for the lessons are compiled, after {time.monotonic() - started:.0f} s.")
    return 0


def tell(text: str) -> None:
    """Print a message to standard error: it is no result."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
