"""Finds out what is installed, in which version: a finding each, with a remedy."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import platform
import re
import sys
from dataclasses import dataclass

from minigrad.course.source import SHIPPED

OLDEST, NEWEST = (3, 11), (3, 14)
BOUND = re.compile(r"(>=|<=|<|>|==)\s*([\d.]+)")
HOLDS = {
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "==": lambda a, b: a == b,
}


@dataclass(frozen=True)
class Finding:
    """One line of the report: whether it is fine, what is the case, and a remedy if needed."""

    fine: bool
    what: str
    remedy: str = ""


def setup_command(extra: str = "lab") -> str:
    """Return the command that installs what is missing in this kind of installation."""
    if SHIPPED.is_dir():
        return f'pip install --upgrade "minigrad[{extra}]"'
    return "python3 start.py setup"


def numpy_fault() -> str:
    """Return why NumPy cannot be imported and what to do, "" if it can. Every command needs it."""
    try:
        importlib.import_module("numpy")
    except Exception as error:  # a broken installation may raise anything
        said = str(error).rpartition("Original error was:")[2].strip()  # after NumPy's advice
        why = f"{type(error).__name__}: {said}".splitlines()[0]
        remedy = f"{setup_command()}, in a fresh environment if that fails"
        return f"NO  numpy does not import: {why}\n      do: {remedy}"
    return ""


def python_version() -> Finding:
    """Return whether the project is tested on this Python."""
    what = f"Python {platform.python_version()} ({sys.executable})"
    if OLDEST <= sys.version_info[:2] <= NEWEST:
        return Finding(True, what)
    return Finding(False, what, "install Python 3.11 to 3.14 and set minigrad up with it")


def package(name: str, extra: str = "lab") -> Finding:
    """Return whether a package is installed in a version that minigrad accepts."""
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Finding(False, f"{name} is not installed", setup_command(extra))
    wanted = wanted_bounds(name)
    if not fits(version, wanted):
        return Finding(
            False, f"{name} {version}, but minigrad needs {wanted}", setup_command(extra)
        )
    return Finding(True, f"{name} {version}")


def wanted_bounds(name: str) -> str:
    """Return the versions of a package that minigrad accepts, such as `>=2.2,<2.5`; '' for any."""
    try:
        lines = importlib.metadata.requires("minigrad") or []
    except importlib.metadata.PackageNotFoundError:
        return ""  # minigrad runs from a folder without being installed
    for line in lines:
        requirement = line.partition(";")[0].strip()
        match = re.fullmatch(r"([A-Za-z0-9._-]+)\s*(.*)", requirement)
        if match and match[1].lower() == name:
            return match[2].strip("() ")
    return ""


def fits(version: str, bounds: str) -> bool:
    """Return whether a version such as 2.4.6 lies within bounds such as `>=2.2,<2.5`."""
    have = numbers(version)
    return all(HOLDS[sign](have, numbers(bound)) for sign, bound in BOUND.findall(bounds))


def numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def kernel() -> Finding:
    """Return whether a notebook started from here can run this Python."""
    if importlib.util.find_spec("ipykernel") is None:
        return Finding(False, "no notebook kernel", setup_command())
    if sys.prefix != sys.base_prefix:
        return Finding(True, f"notebooks run the Python of {sys.prefix}")
    return Finding(True, "notebooks run the system's Python")
