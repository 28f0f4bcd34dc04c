"""Limits what a learner's file imports from minigrad while graded. Runs in the learner's process.

A `plain` exercise can import the plain objects and the machine that runs CUDA kernels
(`minigrad.simt`, under the names of `minigrad.cuda`), which holds no answers. An `engine` exercise
can import all but the course, the grader and the commands. In both, what would be the answer
raises, wherever this process holds it, and cannot be read again from its file. An `engine` exercise
is isolated less: its code shares a process with the engine and could change what is measured there.
Reports say so.
"""

from __future__ import annotations

import functools
import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import os
import pathlib
import pkgutil
import sys
import types
from typing import Any

from minigrad.grader import guard

OBJECTS = "minigrad.course.objects"
MACHINE, LANGUAGE = "minigrad.simt", "minigrad.cuda"
# the other modules of minigrad that the machine imports, and their packages
BELOW_MACHINE = ("array/__init__", "array/bits", "errors", "parsing")
CLOSED_WITH_ENGINE = ("minigrad.course", "minigrad.grader", "minigrad.cli")


class AnswerUsed(Exception):
    """Raised when the code calls what the exercise asks the learner to write."""


class Gate:
    """An import finder that opens only the parts of minigrad that an exercise may use.

    Args:
        package: the folder of minigrad.
        engine: whether the engine is open.
    """

    def __init__(self, package: str, engine: bool) -> None:
        self.package = package
        self.engine = engine

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return an open module's spec, None outside minigrad; raise ImportError for others."""
        del target
        if name != "minigrad" and not name.startswith("minigrad."):
            return None
        if name == OBJECTS:
            return importlib.util.spec_from_file_location(name, objects_file(self.package))
        if name == "minigrad.course":
            return importlib.util.spec_from_loader(name, loader=None, is_package=True)
        if not self.engine and (spec := self._machine(name)):
            return spec
        if not self.engine or name.startswith(CLOSED_WITH_ENGINE):
            raise ImportError(f"this exercise is graded without {name}", name=name)
        if name == "minigrad":
            return importlib.util.spec_from_file_location(
                name,
                os.path.join(self.package, "__init__.py"),
                submodule_search_locations=[self.package],
            )
        return importlib.machinery.PathFinder.find_spec(name, path)

    def _machine(self, name: str) -> Any:
        """Return the spec of a part of the machine, None for other modules.

        Looks files up by name, since this process cannot list minigrad's folders.
        """
        if name == LANGUAGE:
            return importlib.util.spec_from_loader(name, KernelLanguage())
        place = os.path.join(self.package, *name.split(".")[1:])
        below = [
            f"minigrad.{module.removesuffix('/__init__').replace('/', '.')}"
            for module in BELOW_MACHINE
        ]
        if name not in below and name != MACHINE and not name.startswith(f"{MACHINE}."):
            return None
        if os.path.isfile(f"{place}.py"):
            return importlib.util.spec_from_file_location(name, f"{place}.py")
        file = os.path.join(place, "__init__.py")
        if not os.path.isfile(file):
            return None
        return importlib.util.spec_from_file_location(
            name, file, submodule_search_locations=[place]
        )


class KernelLanguage(importlib.abc.Loader):
    """Builds a `minigrad.cuda` with the names that kernels use, without GPU or engine."""

    def exec_module(self, module: types.ModuleType) -> None:
        """Fill the module with those names and a `jit`."""
        language = importlib.import_module(f"{MACHINE}.language.language").cuda
        vars(module).update(vars(language))
        vars(module)["jit"] = jit


def jit(function: Any = None, *, device: bool = False, **_: Any) -> Any:
    """Return a kernel unchanged, since the driver launches it; mark functions that kernels call."""
    if function is None:
        return functools.partial(jit, device=device)
    if device:
        function.is_device = True  # the machine looks for this
    return function


def objects_file(package: str) -> str:
    """Return the file of the plain objects, open to every exercise."""
    return os.path.join(package, "course", "objects.py")


def opened_files(package: str) -> list[str]:
    """Return the files of minigrad that a plain exercise may open."""
    paths = [objects_file(package)]
    paths += [os.path.join(package, f"{module}.py") for module in BELOW_MACHINE]
    for folder, _, names in os.walk(os.path.join(package, "simt")):
        paths += [os.path.join(folder, name) for name in names]
    return paths


def close(
    package: str, engine: dict | None, answers: list[str], closed: list[str]
) -> tuple[dict[str, int], list[str]]:
    """Remove the grader from this process and open what the exercise may use.

    Args:
        package: the folder of minigrad.
        engine: None for a plain exercise; else a dict. Its `environment` has the variables that
            locate the user's cache of compiled kernels. Its `kernels` is a folder of kernels to
            read only, or None: then kernels compiled here go into the user's cache.
        answers: the dotted names that would be the answer.
        closed: more folders whose files cannot be opened, such as that of the solutions.

    Returns:
        The number of calls of each answer, updated as they happen; and the folders and files of
        minigrad that stay closed.
    """
    for name in [name for name in sys.modules if name.partition(".")[0] == "minigrad"]:
        del sys.modules[name]
    sys.meta_path.insert(0, Gate(package, engine is not None))
    if engine is None:
        empty = types.ModuleType("minigrad")
        empty.__path__ = []
        sys.modules["minigrad"] = empty
        calls = _bar(answers)
        guard.install([package, *closed], opened_files(package))
        return calls, [package]
    if engine["kernels"]:
        os.environ["MINIGRAD_CACHE"] = engine["kernels"]
        loader = vars(importlib.import_module("minigrad.devices.loader"))
        loader["cache_folder"] = lambda: pathlib.Path(engine["kernels"])  # though it is read-only
        vars(importlib.import_module("minigrad.devices.cache_files"))["put"] = _keep_nothing
    else:
        _find_compiled_kernels(engine["environment"])
    closed_parts = [os.path.join(package, n.rpartition(".")[2]) for n in CLOSED_WITH_ENGINE]
    closed_parts += _files_of_answers(package, answers)
    calls = _bar(answers)
    guard.install([*closed_parts, *closed], [objects_file(package)])
    return calls, closed_parts


def _find_compiled_kernels(environment: dict[str, str]) -> None:
    """Let the engine find the kernels that the user's own processes compiled."""
    here = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    folder = importlib.import_module("minigrad.devices.loader").cache_folder()
    for name, value in here.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value
    os.environ["MINIGRAD_CACHE"] = str(folder)


def _keep_nothing(path: Any, data: bytes) -> bool:
    """Stand in for the engine's `cache_files.put`: write nothing and return False."""
    del path, data
    return False


def _bar(answers: list[str]) -> dict[str, int]:
    """Replace each answer by a function that counts its calls and raises.

    Replaces every reference that this process holds, not only the name: also in the table of
    operations, say, and the function below a decorator. For an operation's class it also replaces
    the formulas, and for a NumPy function the one in C below the public one.
    """
    calls: dict[str, int] = {}
    stand_ins: dict[int, tuple[Any, Any]] = {}
    for dotted, owner, name in map(_resolve, answers):
        if not hasattr(owner, name):
            raise ValueError(f"there is no {dotted} to close")
        calls[dotted] = 0
        stand_in, answer = _barred(dotted, calls), getattr(owner, name)
        setattr(owner, name, stand_in)
        for part in OF_AN_OPERATION:
            if isinstance(answer, type) and hasattr(answer, part):
                setattr(answer, part, stand_in)
        while callable(answer) and not isinstance(answer, type):
            stand_ins[id(answer)] = answer, stand_in
            answer = getattr(answer, "__wrapped__", None)
    own = [stand_ins, *stand_ins.values()]
    for holder in gc.get_referrers(*[answer for answer, _ in stand_ins.values()]):
        if not any(holder is one for one in own):
            _replace_in(holder, stand_ins)
    return calls


OF_AN_OPERATION = ("apply", "forward", "backward", "formula", "gradient")


def _resolve(dotted: str) -> tuple[str, Any, str]:
    """Return a dotted name, the object that owns its last part, and that part."""
    owner, _, name = dotted.rpartition(".")
    return dotted, pkgutil.resolve_name(owner), name


def _replace_in(holder: Any, stand_ins: dict[int, tuple[Any, Any]]) -> None:
    """Replace functions in a dict, a list, a set or a closure's cell."""
    if isinstance(holder, types.CellType):
        if id(holder.cell_contents) in stand_ins:
            holder.cell_contents = stand_ins[id(holder.cell_contents)][1]
    elif isinstance(holder, set):
        for value in [value for value in holder if id(value) in stand_ins]:
            holder.remove(value)
            holder.add(stand_ins[id(value)][1])
    elif isinstance(holder, dict | list):
        places = holder.items() if isinstance(holder, dict) else enumerate(holder)
        for place, value in list(places):
            if id(value) in stand_ins:
                holder[place] = stand_ins[id(value)][1]


def _files_of_answers(package: str, answers: list[str]) -> list[str]:
    """Return the files of minigrad that define the answers, compiled ones included.

    Code that could read one of them, or load its module again, would have the answer.
    """
    files = []
    for _, owner, name in map(_resolve, answers):
        answer = inspect.unwrap(getattr(owner, name))
        module = sys.modules.get(getattr(answer, "__module__", None) or "")
        code = getattr(answer, "__code__", None)
        for path in (getattr(module, "__file__", None), code and code.co_filename):
            if path and path.startswith(package + os.sep):
                files += [path, importlib.util.cache_from_source(path)]
    return list(dict.fromkeys(files))


def _barred(dotted: str, calls: dict[str, int]) -> Any:
    def barred(*_: Any, **__: Any) -> Any:
        calls[dotted] += 1
        raise AnswerUsed(f"{dotted} is what this exercise asks you to write")

    return barred
