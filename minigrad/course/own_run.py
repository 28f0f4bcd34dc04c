"""Runs a learner's whole engine, all parts at once, beside the reference; finds who is at fault.

`report_of` runs in a process of its own, so that a part that never returns, or that ends Python,
does no harm: `python -m minigrad.course.own_run FOLDER ids...` writes what it found into FOLDER.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import mmap
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from minigrad import memory
from minigrad.course.parts import PARTS, arguments, functions
from minigrad.course.seam_kernels import ON_A_GPU
from minigrad.course.seam_parts import Part
from minigrad.course.seams import BELOW, use
from minigrad.course.tally import Tally, counted
from minigrad.course.tiles import agree
from minigrad.course.whole import RANKS, STEPS, Training, train, train_compiled, train_in_ranks
from minigrad.errors import SeamError
from minigrad.viz.memory_timeline import lifetimes

GPU_PARTS = {"13.k_softmax_row"}  # they run on a GPU, simulated here
COMPILED_STEPS = RANK_STEPS = 8
# The seams that have no work in the training of all others: where they have, and why not there.
ELSEWHERE = {
    "plan_reuse": (
        "compiled steps",
        "a compiled step, and a step is compiled only where no part above memory is replaced",
    ),
    "all_reduce": (f"steps of {RANKS} workers", "several workers, here threads of one process"),
}
MEMORY_STEPS = 2
NAMED_AT_PEAK = 4
LONGEST = 120.0  # seconds of one training, that of the compiler included
GRACE = 5.0  # seconds more for a part that does not return; then the process ends
LABEL_BYTES = 64
MOST_LETTERS = 500  # of an error
REPORT, RUNNING, TRACEBACK = "report.json", "running", "traceback"  # files of the process


def label_of(exercise_id: str) -> str:
    """Return the name of the seam that an exercise's function fills.

    >>> label_of("08.sgd_update"), label_of("10.Pool")
    ("update['SGD']", 'pool')
    """
    seam, key = PARTS[exercise_id]
    label = seam if key is None else f"{seam}[{key!r}]"
    return label + ON_A_GPU * (exercise_id in GPU_PARTS)


def is_elsewhere(exercise_id: str) -> bool:
    """Return whether an exercise's function runs in a training of its own."""
    return PARTS[exercise_id][0] in ELSEWHERE


@dataclass
class Run:
    """One training with a learner's parts, and the same one without.

    Attributes:
        ids: the exercises whose functions ran.
        steps: how many.
        mine, reference: the losses, one a step, and after the eager ones that of the best weights.
        seconds, reference_seconds: how long each took.
        calls: how often each of the learner's functions was called, by exercise.
        times: the seconds within each.
        own: how often minigrad's own parts were called, by label.
    """

    ids: list[str]
    steps: int
    mine: list[float]
    reference: list[float]
    seconds: float
    reference_seconds: float
    calls: dict[str, int]
    times: dict[str, float]
    own: dict[str, int]


@dataclass
class Memory:
    """The bytes in use after each alloc and free of a few steps; the largest at the peak, by op."""

    bytes_in_use: list[int] = field(default_factory=list)
    at_peak: list[list[Any]] = field(default_factory=list)


@dataclass
class Report:
    """What `report_of` found.

    Attributes:
        eager: the training of all parts that may stand together.
        others: those of ELSEWHERE that were needed, by what they do.
        left_out: why a part did not run, by exercise.
        memory: what the eager training took.
    """

    eager: Run | None = None
    others: dict[str, Run] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)

    def to_json(self) -> str:
        """Return the report as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Report:
        """Return the report that `to_json` has written."""
        data = json.loads(text)
        return cls(
            data["eager"] and Run(**data["eager"]),
            {what: Run(**one) for what, one in data["others"].items()},
            data["left_out"],
            Memory(**data["memory"]),
        )

    @property
    def runs(self) -> list[Run]:
        """Return the trainings in which a part of the learner's ran."""
        every = [*([self.eager] if self.eager else []), *self.others.values()]
        return [run for run in every if run.ids]


class Fault(Exception):
    """A training with a learner's parts that did not come to its end.

    `exercise_id` is the part at fault; None if that is not known.
    """

    def __init__(self, exercise_id: str | None, why: str) -> None:
        super().__init__(why)
        self.exercise_id = exercise_id


Attempt = Callable[[list[str]], Run]


class Guard:
    """Is told when a training or one of the learner's parts begins; this one does nothing then."""

    def begin(self) -> None:
        """Take note that a training begins."""

    def enter(self, label: str) -> None:
        """Take note of the part that runs from now on, "" for none."""


class ProcessGuard(Guard):
    """Ends the process after too long a training; its folder then tells in which part and line."""

    def __init__(self, folder: Path) -> None:
        self._traceback = open(folder / TRACEBACK, "w")  # noqa: SIM115 - as long as the process
        (folder / RUNNING).write_bytes(bytes(LABEL_BYTES))
        with open(folder / RUNNING, "r+b") as file:
            self._running = mmap.mmap(file.fileno(), LABEL_BYTES)
        faulthandler.enable(self._traceback)

    def begin(self) -> None:
        """Give the training its time."""
        faulthandler.dump_traceback_later(LONGEST + GRACE, exit=True, file=self._traceback)

    def enter(self, label: str) -> None:
        """Write down the part that runs from now on."""
        self._running[:] = label.encode().ljust(LABEL_BYTES, b"\0")


def report_of(ids: list[str], guard: Guard | None = None) -> Report:
    """Run the engine with these exercises' functions, and leave out those that fail.

    Args:
        ids: exercises of PARTS.
        guard: watches the trainings.
    """
    report, trainings = Report(), Trainings(functions(ids), guard or Guard())
    eager = [one for one in ids if not is_elsewhere(one)]
    if eager:
        report.eager = settle(eager, trainings.eager, report.left_out)
        if report.eager.ids:
            report.memory = trainings.memory(report.eager.ids)
    for seam, (what, _) in ELSEWHERE.items():
        if seam not in (PARTS[one][0] for one in ids):
            continue
        beside = BELOW if seam in BELOW else {seam}
        some = [one for one in ids if PARTS[one][0] in beside and one not in report.left_out]
        report.others[what] = settle(some, getattr(trainings, seam), report.left_out)
    return report


class Trainings:
    """Trains with some of a learner's functions, and once without."""

    def __init__(self, loaded: dict[str, Any], guard: Guard) -> None:
        self.loaded, self.guard = loaded, guard
        self.on_gpu = not GPU_PARTS.isdisjoint(loaded)

    @cached_property
    def eager_reference(self) -> Training:
        """Return the eager training without the learner's functions."""
        self.guard.begin()
        train(2, on_gpu=self.on_gpu)  # what is compiled first takes no part of the time
        return train(STEPS, on_gpu=self.on_gpu)

    @cached_property
    def compiled_reference(self) -> Training:
        """Return the compiled training without the learner's functions."""
        self.guard.begin()
        return train_compiled(COMPILED_STEPS)

    @cached_property
    def rank_reference(self) -> Training:
        """Return the training of several workers without the learner's functions."""
        self.guard.begin()
        return train_in_ranks(RANK_STEPS)

    def eager(self, ids: list[str]) -> Run:
        """Train eagerly; raise Fault if a function fails."""
        reference = self.eager_reference
        with self._watched(ids) as tally:
            with self._engine_of(ids):
                train(2, on_gpu=self.on_gpu)  # Numba compiles the learner's kernels now
                tally.clear()
                with counted(tally):
                    mine = train(STEPS, on_gpu=self.on_gpu)
            for label, count in mine.optimizing.items():
                if label not in tally.mine:
                    tally.own[label] += count
        return _run(ids, mine, reference, tally)

    def plan_reuse(self, ids: list[str]) -> Run:
        """Train by a compiled step; raise Fault if a function fails."""
        reference = self.compiled_reference
        with self._watched(ids) as tally, self._engine_of(ids):
            mine = train_compiled(COMPILED_STEPS)
        return _run(ids, mine, reference, tally)

    def all_reduce(self, ids: list[str]) -> Run:
        """Train in several threads; raise Fault if a function fails. Count the calls of rank 0."""
        reference = self.rank_reference

        @contextmanager
        def each(rank: int) -> Iterator[None]:
            if rank == 0:
                tally.count_this_thread()
            with self._engine_of(ids):
                yield

        with self._watched(ids) as tally:
            mine = train_in_ranks(RANK_STEPS, each)
        return _run(ids, mine, reference, tally)

    def memory(self, ids: list[str]) -> Memory:
        """Return what a few eager steps take."""
        self.guard.begin()
        with self._engine_of(ids), memory.timeline() as events:
            train(MEMORY_STEPS, on_gpu=self.on_gpu)
        events = list(events)
        peak = max(events, key=lambda event: event.current_bytes)
        alive = [m for m in lifetimes(events) if m.op and m.start <= peak.index < m.stop]
        alive.sort(key=lambda one: -one.nbytes)
        return Memory(
            [event.current_bytes for event in events],
            [[one.op, one.nbytes] for one in alive[:NAMED_AT_PEAK]],
        )

    def _engine_of(self, ids: list[str]) -> Any:
        chosen = {one: self.loaded[one] for one in ids}
        return use(**arguments(chosen)) if ids else contextlib.nullcontext()

    @contextmanager
    def _watched(self, ids: list[str]) -> Iterator[Tally]:
        """Count the calls of the learner's functions; make a Fault of what they raise."""
        self.guard.begin()
        tally = Part.tally = Tally(LONGEST, self.guard.enter)
        try:
            yield tally
        except Exception as error:
            label = tally.slowest() if tally.is_late else tally.raised
            if not label and isinstance(error, SeamError):  # it returned something wrong
                label = tally.last
            matching = [one for one in ids if label_of(one) == label]
            raise Fault(matching[0] if matching else None, said(error)) from error
        finally:
            Part.tally = None


def settle(ids: list[str], attempt: Attempt, left_out: dict[str, str]) -> Run:
    """Return the first training whose losses are right; leave out one part after another till then.

    Args:
        ids: the parts to begin with.
        attempt: trains with some of them.
        left_out: takes, for each part that is left out, why.
    """
    some = list(ids)
    while True:
        try:
            run = attempt(some)
        except Fault as fault:
            culprit, why = fault.exercise_id, str(fault)
        else:
            if agree(run.mine, run.reference):
                return run
            culprit, why = None, f"the losses are others: {first_difference(run)}"
        if not some:
            raise RuntimeError(f"minigrad's own training fails: {why}")
        if culprit is None:
            culprit, how = blame(some, attempt)
            why = f"{why} ({how})"
        left_out[culprit] = why
        some.remove(culprit)


def blame(ids: list[str], attempt: Attempt) -> tuple[str, str]:
    """Return the part at fault, and how that was found: parts are switched off one by one."""
    for one in ids:
        if _is_right([other for other in ids if other != one], attempt):
            return one, "without this part they are right"
    for one in ids:
        if not _is_right([one], attempt):
            return one, "with this part alone they are wrong as well"
    return ids[-1], "each part alone is right, so two of them do not fit together"


def _is_right(ids: list[str], attempt: Attempt) -> bool:
    try:
        run = attempt(ids)
    except Fault:
        return False
    return agree(run.mine, run.reference)


def first_difference(run: Run) -> str:
    """Return in words where two trainings part."""
    pairs = enumerate(zip(run.mine, run.reference, strict=True))
    step, (mine, reference) = next(pair for pair in pairs if not agree(pair[1][:1], pair[1][1:]))
    return f"{mine:.6g} at step {step + 1}, where minigrad's has {reference:.6g}"


def said(error: BaseException) -> str:
    """Return an error's type and text on one line."""
    text = "; ".join(line.strip() for line in f"{error}".splitlines() if line.strip())
    return f"{type(error).__name__}: {text}"[:MOST_LETTERS] if text else type(error).__name__


def _run(ids: list[str], mine: Training, reference: Training, tally: Tally) -> Run:
    names = {label_of(one): one for one in ids}
    return Run(
        ids=ids,
        steps=len(mine.losses),
        mine=mine.all_losses,
        reference=reference.all_losses,
        seconds=mine.seconds,
        reference_seconds=reference.seconds,
        calls={one: tally.mine[label] for label, one in names.items()},
        times={one: tally.seconds.get(label, 0.0) for label, one in names.items()},
        own=dict(tally.own),
    )


def main(folder: str, *ids: str) -> None:
    """Write the report of these exercises into a folder."""
    guard = ProcessGuard(Path(folder))
    guard.begin()
    report = report_of([*ids], guard)
    faulthandler.cancel_dump_traceback_later()
    (Path(folder) / REPORT).write_text(report.to_json(), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
