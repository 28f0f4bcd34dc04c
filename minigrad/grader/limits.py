"""Sets resource limits in a learner's process before a line of its file runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of one worker. Compiling (Numba) has a budget of its own, outside `call_seconds`.

    `compile_seconds` and `total_seconds` are for all calls of an exercise together.
    `processes` counts all processes of the worker's user, so it needs a user of its own.
    `file_bytes` holds for each file. `folder_bytes` and `folder_files` hold for all files together:
    the parent measures them while the worker runs (`disk_usage.py`). Files that were removed but
    are still open or mapped escape that; `open_files` and `memory_bytes` bound them.
    """

    load_seconds: float = 20.0
    call_seconds: float = 4.0
    compile_seconds: float = 60.0
    total_seconds: float = 240.0
    cpu_seconds: int = 20
    memory_bytes: int = 2 * 2**30
    file_bytes: int = 2**20
    folder_bytes: int = 64 * 2**20
    folder_files: int = 500
    open_files: int = 128
    processes: int | None = None


def apply(limits: Limits) -> list[str]:
    """Set the limits on this process; return the names of those that this system lacks."""
    try:
        import resource
    except ImportError:  # Windows: only the parent's clock limits a worker
        return ["cpu", "memory", "file size", "open files"]
    missing = []
    hard_cpu = int(limits.cpu_seconds + limits.compile_seconds)
    wanted = [
        ("cpu", "RLIMIT_CPU", limits.cpu_seconds, hard_cpu),
        ("memory", "RLIMIT_AS", limits.memory_bytes, limits.memory_bytes),
        ("file size", "RLIMIT_FSIZE", limits.file_bytes, limits.file_bytes),
        ("open files", "RLIMIT_NOFILE", limits.open_files, limits.open_files),
        ("core file", "RLIMIT_CORE", 0, 0),
    ]
    if limits.processes is not None:
        wanted.append(("processes", "RLIMIT_NPROC", limits.processes, limits.processes))
    for name, constant, soft, hard in wanted:
        try:
            resource.setrlimit(getattr(resource, constant), (soft, hard))
        except (AttributeError, ValueError, OSError):
            missing.append(name)
    return missing


def allow_more_cpu(seconds: float) -> None:
    """Move the CPU limit by `seconds` (negative: back), so that compiling does not use it up."""
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if soft != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_CPU, (min(int(soft + seconds), hard), hard))
