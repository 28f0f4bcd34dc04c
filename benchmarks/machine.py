"""What the figures were measured on."""

import datetime
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ["numpy", "numba", "torch"]


def processor():
    """The processor's name as the system gives it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def memory_bytes():
    """Bytes of main memory, or None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def load():
    """Processes that wanted a processor in the last minute: figures of a busy machine are worse."""
    try:
        return round(os.getloadavg()[0], 2)
    except (AttributeError, OSError):
        return None


def describe():
    """Machine, versions and date, for the JSON file."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": {
            "processor": processor(),
            "architecture": platform.machine(),
            "cores": os.cpu_count(),
            "memory_bytes": memory_bytes(),
            "system": platform.system(),
        },
        "load_at_start": load(),
        "versions": versions,
    }


def in_words(described):
    """`processor, 2 cores, date, load at start 0.1`: of what `describe` found, for a note."""
    machine = described["machine"]
    return (
        f"{machine['processor']}, {machine['cores']} cores, {described['date']}, "
        f"load at start {described['load_at_start']}"
    )
