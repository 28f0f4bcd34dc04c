"""benchmarks/results/gpu.md: what was checked and measured, on what, when."""

from pathlib import Path

from benchmarks import machine
from minigrad.devices.gpu.driver import matmul as cuda_matmul
from minigrad.devices.gpu.driver import state as cuda_state

RESULTS = Path(__file__).parents[1] / "results" / "gpu.md"
PACKAGES = (
    "numpy", "numba", "numba-cuda", "cuda-core", "cuda-bindings", "nvidia-nvvm", "nvidia-nvjitlink",
    "nvmath-python", "nvidia-cublas", "torch", "cupy-cuda13x",
)  # fmt: skip


def described():
    """Machine, versions and date, as one paragraph."""
    known = machine.describe()
    versions = [f"{name} {cuda_state.version(name)}" for name in PACKAGES]
    versions = [text for text in versions if not text.endswith(" none")]
    where = known["machine"]
    return (
        f"{cuda_state.gpu_name()}; {where['processor']}, {where['cores']} cores, "
        f"{where['system']}; {known['date']}; Python {known['versions']['python']}, "
        f"{', '.join(versions)}. Products by: {cuda_matmul.choice()}."
    )


def check_lines(checks):
    """A table of checks, and below it what failed."""
    lines = [
        "| check | comparisons | worst error, of the tolerance | failed |",
        "|---|---|---|---|",
    ]
    lines += [f"| {c.name} | {c.count} | {c.worst:.2g} | {len(c.failures)} |" for c in checks]
    failures = [f"- {c.name}: {line}" for c in checks for line in c.failures]
    return [*lines, "", *failures, ""] if failures else [*lines, ""]


def bench_lines(sections):
    """A table for each section; sections: title -> (Rows, what stopped it or None)."""
    lines = []
    for title, (rows, stopped) in sections.items():
        lines += [f"## {title}", ""]
        if rows:
            lines += ["| | | share | goal | |", "|---|---|---|---|---|"]
            lines += [_line(row) for row in rows]
            lines.append("")
        if stopped:
            lines += [f"Stopped by {stopped}", ""]
    return lines


def _line(row):
    share = "" if row.share is None else f"{row.share:.0%}"
    goal, met = "", row.is_met()
    if met is not None:
        wanted = f"at least {row.goal:.0%}" if row.share is not None else f"at most {row.goal:g}"
        goal = f"{wanted}: {'met' if met else 'missed'}"
    return f"| {row.what} | {row.value:.4g} {row.unit} | {share} | {goal} | {row.note} |"


def text(checks, memory, sections):
    """The whole page."""
    lines = ["# On a GPU", "", f"Made by `python -m benchmarks.gpu`. {described()}", ""]
    if checks:
        lines += ["## Correctness", "", *check_lines(checks)]
    if memory:
        lines += [memory, ""]
    lines += bench_lines(sections)
    return "\n".join(lines).rstrip() + "\n"
