"""Records the kernels that lessons call: `python -m tests.kernels` writes `cli/kernels.xz`.

To be run after a change of what kernels are made of; it takes some minutes.
"""

import itertools
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from minigrad.array.dtypes import DTYPES
from minigrad.cli.ahead import LIST
from minigrad.course import executing
from minigrad.course.percent import notebook_text
from minigrad.devices import loader

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "lessons" / "source").glob("[0-9][0-9]_*.py"))
LAZY = re.compile(r"^@lazy\(.*\)\ndef (\w+)\(", re.MULTILINE)
INCLUDE = re.compile(r"from (minigrad_kernel_\w+) import \*\n\n")


def run_lesson(stem, cache, course):
    """Run a lesson's notebook and its checks, all solved, with an empty folder for kernels."""
    shutil.copytree(ROOT / "solutions", course / "exercises")
    (course / "lessons").mkdir()
    source = ROOT / "lessons" / "source" / f"{stem}.py"
    text = notebook_text(source.read_text(encoding="utf-8"), source.name)
    before = os.environ.get("MINIGRAD_CACHE")
    os.environ["MINIGRAD_CACHE"] = str(cache)
    try:
        executing.execute(text, course / "lessons")
        check = [sys.executable, "-m", "minigrad.cli.main", "check", stem[:2]]
        subprocess.run(check, cwd=course, check=True, stdout=subprocess.DEVNULL)
    finally:
        os.environ.pop("MINIGRAD_CACHE")
        if before is not None:
            os.environ["MINIGRAD_CACHE"] = before


def sources():
    """The text of each file of `devices/source/`, for each type -> its name."""
    names = [path.stem for path in Path(loader.__file__).with_name("source").glob("*.py")]
    typed = itertools.product(names, {d.code for d in DTYPES})
    return {loader.source(name): name for name in [*names, *map(".".join, typed)]}


def kernels_in(cache):
    """What `ahead.recorded` describes, of a folder of compiled kernels."""
    header, called, texts = loader.source("header") + "\n\n", {}, {}
    for path in cache.glob("*.code"):
        module, function, _ = path.name.split(".", 2)
        called.setdefault(module, set()).add(function)
    for path in sorted(cache.glob("minigrad_kernel_*.py")):
        _, _, text = path.read_text(encoding="utf-8").partition("\n\n\n")  # after versions
        if text.startswith(header):  # else for another target
            text, includes = text.removeprefix(header), []
            while found := INCLUDE.match(text):
                includes.append(found[1])
                text = text[found.end() :]
            texts[path.stem] = text, includes
    known = sources()
    for module, functions in sorted(called.items()):
        text, includes = texts[module]
        if text in known:
            yield {"source": known[text], "functions": sorted(functions)}
        else:
            names = [known[texts[one][0]] for one in includes]
            yield {"text": text, "includes": names, "functions": sorted(functions)}


def single_precision():
    """All kernels of `devices/source/` for float32 that are compiled when called."""
    for path in sorted(Path(loader.__file__).with_name("source").glob("*.py")):
        name = path.stem
        if any(function.endswith("_T") for function in LAZY.findall(loader.source(name))):
            name += ".f4"
        functions = LAZY.findall(loader.source(name))
        if functions and not name.startswith("gpu_"):
            yield {"source": name, "functions": sorted(functions)}


def record():
    """The kernels of all lessons, in their order, and of models in float32; each file once."""
    found = {}

    def add(some):
        for kernels in some:
            key = kernels.get("source") or (kernels["text"], *kernels["includes"])
            there = found.setdefault(key, kernels)
            there["functions"] = sorted({*there["functions"], *kernels["functions"]})

    for source in SOURCES:
        with tempfile.TemporaryDirectory() as name:
            cache, course = Path(name) / "cache", Path(name) / "course"
            run_lesson(source.stem, cache, course)
            add(kernels_in(cache))
        sys.stderr.write(f"{source.stem}: {len(found)} files of kernels so far\n")
    add(single_precision())
    return list(found.values())


if __name__ == "__main__":
    LIST.write_bytes(lzma.compress(json.dumps(record()).encode(), preset=9))
