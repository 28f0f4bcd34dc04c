"""Limits what a learner's file imports from minigrad while graded. Runs in the learner's process.

A `plain` exercise can import the plain objects and the machine that runs CUDA kernels
(`minigrad.simt`, under the names of `minigrad.cuda`), which holds no answers. An `engine` exercise
can import all but the course, the grader and the commands; names that would be the answer raise.
Code can find hidden Python objects (`gc`, `__globals__`), so the second is weaker: reports say so.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import pathlib
import pkgutil
import sys
import types
from typing import Any

from minigrad.grader import guard

OBJECTS = "minigrad.course.objects"
MACHINE, LANGUAGE = "minigrad.simt", "minigrad.cuda"
BELOW_MACHINE = ("errors", "parsing")  # what the machine imports of minigrad's own
CLOSED_WITH_ENGINE = ("minigrad.course", "minigrad.grader", "minigrad.cli")


class AnswerUsed(Exception):
    """The code called what the exercise asks the learner to write."""


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
        """Return an open module's spec, None outside minigrad; raise ImportError for the rest."""
        del target
        if name != "minigrad" and not name.startswith("minigrad."):
            return None
        if name == OBJECTS:
            place = os.path.join(self.package, "course", "objects.py")
            return importlib.util.spec_from_file_location(name, place)
        if name == "minigrad.course":
            return importlib.util.spec_from_loader(name, loader=None, is_package=True)
        if not self.engine and (found := self._machine(name)):
            return found
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

        Files are found by name, since this process cannot list minigrad's folders.
        """
        if name == LANGUAGE:
            return importlib.util.spec_from_loader(name, KernelLanguage())
        place = os.path.join(self.package, *name.split(".")[1:])
        below = [f"minigrad.{module}" for module in BELOW_MACHINE]
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
    """Makes a `minigrad.cuda` of the names that kernels use, without GPU or engine."""

    def exec_module(self, module: types.ModuleType) -> None:
        """Fill the module with these names and a `jit`."""
        language = importlib.import_module(f"{MACHINE}.language.language").cuda
        vars(module).update(vars(language))
        vars(module)["jit"] = jit


def jit(function: Any = None, *, device: bool = False, **_: Any) -> Any:
    """Return a kernel unchanged, as the driver launches it; mark functions that kernels call."""
    if function is None:
        return functools.partial(jit, device=device)
    if device:
        function.is_device = True  # the machine looks for this
    return function


def engine_files(package: str) -> list[str]:
    """Return the files and folders of minigrad that an engine exercise may open."""
    closed = {name.rpartition(".")[2] for name in CLOSED_WITH_ENGINE}
    names = [name for name in os.listdir(package) if name not in closed]
    return [os.path.join(package, name) for name in (*names, os.path.join("course", "objects.py"))]


def opened_files(package: str) -> list[str]:
    """Return the files of minigrad that a plain exercise may open."""
    found = [os.path.join(package, "course", "objects.py")]
    found += [os.path.join(package, f"{module}.py") for module in BELOW_MACHINE]
    for folder, _, names in os.walk(os.path.join(package, "simt")):
        found += [os.path.join(folder, name) for name in names]
    return found


def close(package: str, engine: dict | None, closed: list[str]) -> dict[str, int]:
    """Remove the grader from this process and open what the exercise may use.

    Args:
        package: the folder of minigrad.
        engine: None for a plain exercise; else `answers`, the dotted names that would be the
            answer; `environment`, the variables that locate the cache of compiled kernels;
            `kernels`, its folder where that is known and only read; and `keep_kernels`, whether
            what is compiled here is kept in it.
        closed: more folders whose files cannot be opened, such as that of the solutions.

    Returns:
        The number of calls of each answer, updated as they happen.
    """
    for name in [name for name in sys.modules if name.partition(".")[0] == "minigrad"]:
        del sys.modules[name]
    sys.meta_path.insert(0, Gate(package, engine is not None))
    if engine is None:
        empty = types.ModuleType("minigrad")
        empty.__path__ = []
        sys.modules["minigrad"] = empty
        guard.install([package, *closed], opened_files(package))
        return {}
    if engine["kernels"]:
        os.environ["MINIGRAD_CACHE"] = engine["kernels"]
        loader = vars(importlib.import_module("minigrad.devices.loader"))
        loader["cache_folder"] = lambda: pathlib.Path(engine["kernels"])  # though it is read-only
    else:
        _find_compiled_kernels(engine["environment"])
    if not engine["keep_kernels"]:
        vars(importlib.import_module("minigrad.devices.store"))["put"] = _keep_nothing
    calls = _bar(engine["answers"])
    folders = [os.path.join(package, name) for name in ("course", "grader")]
    guard.install([*folders, *closed], [os.path.join(package, "course", "objects.py")])
    return calls


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
    """Stand for the engine's `store.put`, and say that nothing was written."""
    del path, data
    return False


def _bar(answers: list[str]) -> dict[str, int]:
    """Replace each dotted name by a function that counts its calls and raises."""
    calls: dict[str, int] = {}
    for dotted in answers:
        owner_name, _, name = dotted.rpartition(".")
        owner = pkgutil.resolve_name(owner_name)
        if not hasattr(owner, name):
            raise ValueError(f"there is no {dotted} to close")
        calls[dotted] = 0
        setattr(owner, name, _barred(dotted, calls))
    return calls


def _barred(dotted: str, calls: dict[str, int]) -> Any:
    def barred(*_: Any, **__: Any) -> Any:
        calls[dotted] += 1
        raise AnswerUsed(f"{dotted} is what this exercise asks you to write")

    return barred
