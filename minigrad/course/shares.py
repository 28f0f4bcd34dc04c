"""Says whose share of a training is how large: rows for the table of `status --engine`."""

from __future__ import annotations

from collections import Counter

from minigrad.course.own_run import Run, label_of
from minigrad.course.parts import PARTS

KNOWN = {label_of(one) for one in PARTS}


def rows_of(run: Run) -> list[tuple[str, str, int, str, str]]:
    """Return the rows of the table: part, whose, calls, percent of calls, percent of time."""
    own: Counter[str] = Counter()
    for label, calls in run.own.items():
        is_part = label in KNOWN and label not in map(label_of, run.calls)
        own[label if is_part else f"{label.partition('[')[0]}, others"] += calls
    of = sum(run.calls.values()) + own.total()

    def row(part: str, whose: str, calls: int, seconds: float | None):
        share = "" if seconds is None else f"{percent(seconds, run.seconds)} %"
        return (part, whose, calls, f"{percent(calls, of)} %", share)

    mine, seconds = sum(run.calls.values()), sum(run.times.values())
    return [
        *(row(label_of(one), one, calls, run.times[one]) for one, calls in run.calls.items()),
        *(row(label, "minigrad", calls, None) for label, calls in sorted(own.items())),
        row("together", "yours", mine, seconds),
        row("together", "minigrad", of - mine, run.seconds - seconds),
    ]


def percent(part: float, whole: float) -> str:
    """Return a share in percent.

    >>> percent(1, 3), percent(1, 1), percent(1, 10**6), percent(0, 3)
    ('33.3', '100', '<0.1', '0')
    """
    share = 100 * part / whole if whole else 0.0
    if 0 < share < 0.1:
        return "<0.1"
    return f"{share:.1f}".removesuffix(".0")
