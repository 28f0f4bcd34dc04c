"""What is installed, and in which version: one finding each, with a remedy."""

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
    """One line of the report: whether it is fine, what was found, and a remedy if it is not."""

    fine: bool
    what: str
    remedy: str = ""


def setup_command(extra: str = "lab") -> str:
    """Return the command that installs what is missing in this kind of installation."""
    if SHIPPED.is_dir():
        return f'pip install --upgrade "minigrad[{extra}]"'
    return "python3 start.py setup"


def numpy_fault() -> str:
    """Return why NumPy does not import and what to do, "" if it does. Every command needs it."""
    try:
        importlib.import_module("numpy")
    except Exception as error:  # whatever a broken installation raises
        said = str(error).rpartition("Original error was:")[2].strip()  # after a page of NumPy's
        why = f"{type(error).__name__}: {said}".splitlines()[0]
        remedy = f"{setup_command()}, in a fresh environment if that fails"
        return f"NO  numpy does not import: {why}\n      do: {remedy}"
    return ""


def python_version() -> Finding:
    """Whether this is a Python that the project is tested on."""
    what = f"Python {platform.python_version()} ({sys.executable})"
    if OLDEST <= sys.version_info[:2] <= NEWEST:
        return Finding(True, what)
    return Finding(False, what, "install Python 3.11 to 3.14 and set minigrad up with it")


def package(name: str, extra: str = "lab") -> Finding:
    """Whether a package is installed, in a version that minigrad requires."""
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
    """Return the versions that minigrad requires of a package, such as `>=2.2,<2.5`; '' for any."""
    try:
        lines = importlib.metadata.requires("minigrad") or []
    except importlib.metadata.PackageNotFoundError:
        return ""  # run from a folder that is not installed
    for line in lines:
        requirement = line.partition(";")[0].strip()
        match = re.fullmatch(r"([A-Za-z0-9._-]+)\s*(.*)", requirement)
        if match and match[1].lower() == name:
            return match[2].strip("() ")
    return ""


def fits(version: str, bounds: str) -> bool:
    """Whether a version such as 2.4.6 lies within bounds such as `>=2.2,<2.5`."""
    have = numbers(version)
    return all(HOLDS[sign](have, numbers(bound)) for sign, bound in BOUND.findall(bounds))


def numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def kernel() -> Finding:
    """Whether a notebook started from here can run this Python."""
    if importlib.util.find_spec("ipykernel") is None:
        return Finding(False, "no notebook kernel", setup_command())
    if sys.prefix != sys.base_prefix:
        return Finding(True, f"notebooks run the Python of {sys.prefix}")
    return Finding(True, "notebooks run the system's Python")
