"""Runs the engine with its own parts, or with the learner's that have passed.

    with course.engine():
        train()

`MINIGRAD_USE=mine` (or `engine("mine")`) plugs in every function that passed its last check and has
not changed since; `MINIGRAD_USE=reference`, the default, plugs in nothing. So a mistake in one
lesson never blocks a later one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import wraps
from typing import Any

import numpy as np

from minigrad.course.notebook import load
from minigrad.course.seam_kernels import Lenient
from minigrad.course.seams import use
from minigrad.grader import progress
from minigrad.grader.again import grade_again
from minigrad.grader.folder import (
    CourseError,
    LessonError,
    find_exercises,
    find_folder,
    find_stem,
)
from minigrad.grader.run import Submission

MOMENTS = ("first_moment", "second_moment")


def as_update(step: Callable) -> Callable:
    """Adapt lesson 09's `adam_step` or `adamw_step` to `mg.use(update=...)`.

    Lesson 09's functions return a new parameter and a new state. The seam passes copies to write
    to, with the number of this step in state['step'].
    """

    @wraps(step)
    def update(
        algorithm: str, values: np.ndarray, gradient: np.ndarray, state: dict, numbers: dict
    ) -> None:
        before: dict[str, Any] = {}
        if state["step"] > 1:
            before = {name: state[name] for name in MOMENTS} | {"step": state["step"] - 1}
        more = (numbers["learning_rate"], numbers["betas"], numbers["eps"])
        if algorithm == "AdamW":
            more = (*more, numbers["weight_decay"])
        elif numbers["weight_decay"]:
            gradient = gradient + numbers["weight_decay"] * values
        values[...], after = step(values.copy(), gradient, before, *more)
        for name in MOMENTS:
            state[name][...] = after[name]

    return update


def as_sigmoid(fuse: Callable) -> Lenient:
    """Adapt lesson 11's `fuse`: its kernel for the four operations of a sigmoid."""
    return Lenient(fuse(["-x", "math.exp(x)", "1.0 + x", "1.0 / x"]))


# For each exercise the argument of `use` for its function: use(name=f) or use(name={key: f}).
PARTS: dict[str, tuple[str, str | None]] = {
    "01.mul_backward": ("gradients", "mul"),
    "01.tanh_backward": ("gradients", "tanh"),
    "02.topo_order": ("topological_order", None),
    "03.find_cycle": ("find_cycle", None),
    "04.unbroadcast": ("unbroadcast", None),
    "04.accumulate": ("accumulate", None),
    "05.CowBuffer": ("storage", None),
    "06.check_saved": ("check_saved", None),
    "08.sgd_update": ("update", "SGD"),
    "08.clip_grad_norm_": ("clip_grad_norm_", None),
    "09.adam_step": ("update", "Adam"),
    "09.adamw_step": ("update", "AdamW"),
    "10.Pool": ("pool", None),
    "10.plan_reuse": ("plan_reuse", None),
    "11.k_softmax_fused": ("kernels", "softmax"),
    "11.fuse": ("kernels", "sigmoid"),
    "11.k_matmul_blocked": ("kernels", "matmul"),
    "13.k_softmax_row": ("kernels", "softmax"),
    "15.GradScaler": ("grad_scaler", None),
    "16.ring_all_reduce": ("all_reduce", None),
}
# Adapters for exercises whose signature differs from their seam's.
ADAPTERS = {
    "09.adam_step": as_update,
    "09.adamw_step": as_update,
    "11.k_softmax_fused": Lenient,
    "11.fuse": as_sigmoid,
    "11.k_matmul_blocked": Lenient,
    "13.k_softmax_row": Lenient,
}


@contextmanager
def engine(which: str | None = None) -> Iterator[list[str]]:
    """Run the block with the reference or the learner's own parts.

    Args:
        which: 'mine' or 'reference'; None reads the environment variable MINIGRAD_USE.

    Yields:
        The ids of the plugged-in exercises; all other parts are the reference's.

    Raises:
        CourseError: `which` is neither, or there is no course here.
    """
    which = which or os.environ.get("MINIGRAD_USE") or "reference"
    if which not in ("mine", "reference"):
        raise CourseError(f"MINIGRAD_USE is 'mine' or 'reference', not {which!r}")
    ids = passed_parts() if which == "mine" else []
    with use(**replacements(ids)) if ids else nullcontext():
        yield ids


def passed_parts() -> list[str]:
    """Return the exercises of PARTS that passed with their present code."""
    folder = find_folder()
    grade_again(folder, sorted({find_stem(exercise_id[:2]) for exercise_id in PARTS}))
    remembered = progress.load(folder.state)["exercises"]
    passed = []
    for exercise_id in PARTS:
        entry = remembered.get(exercise_id, {})
        try:
            path = folder.exercise_file(find_stem(exercise_id[:2]))
            _, [exercise] = find_exercises(exercise_id)
        except (CourseError, LessonError):
            continue
        if entry.get("passed_hash") == Submission.read(path).fingerprint(exercise):
            passed.append(exercise_id)
    return passed


def replacements(ids: list[str]) -> dict[str, Any]:
    """Return the arguments of `use` for these exercises; load their functions by path."""
    return arguments(functions(ids))


def functions(ids: list[str]) -> dict[str, Any]:
    """Return for each exercise its function as its seam takes it; load the files by path."""
    modules = {number: load(number) for number in {exercise_id[:2] for exercise_id in ids}}
    by_id = {one: getattr(modules[one[:2]], one[3:]) for one in ids}
    return {one: ADAPTERS.get(one, _as_it_is)(function) for one, function in by_id.items()}


def _as_it_is(function: Any) -> Any:
    return function


def arguments(adapted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `use` for what `functions` has returned."""
    taken: dict[str, Any] = {}
    for exercise_id, function in adapted.items():
        seam, key = PARTS[exercise_id]
        if key is None:
            taken[seam] = function
        else:
            parts = taken.setdefault(seam, {})
            parts[key] = (parts[key], function) if key in parts else function
    return taken
