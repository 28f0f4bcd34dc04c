"""`minigrad capstone NAME`: trains a capstone seed by seed, and keeps what each came to."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator

from minigrad.course import capstone as runs
from minigrad.grader.folder import CourseError, find_folder
from minigrad.grader.report import Style


def run(options: argparse.Namespace) -> int:
    """Train with the seeds that are missing; return 0 if the bar is reached, else 1."""
    folder, style = find_folder(), Style()
    if options.name is None:
        for name, capstone in runs.CAPSTONES.items():
            print(f"{name}: {capstone.title}; wanted: {capstone.bar}")
            for which in runs.ENGINES:
                print(f"  {which:<10} {runs.standing(folder, name, which)}")
        return 0
    capstone = runs.find_capstone(options.name)
    name = capstone.name
    which = "mine" if options.mine else os.environ.get("MINIGRAD_USE") or "reference"
    seeds = range(runs.N_SEEDS)
    whose = "your own engine" if which == "mine" else "the reference engine"
    print(f"{capstone.title}, on {whose}; wanted: {capstone.bar}")
    done = []
    try:
        for one, was_kept in runs.run_seeds(folder, name, which, seeds, _progress):
            done.append(one)
            print(_line(capstone, one, was_kept, style))
    except KeyboardInterrupt:
        print(
            f"\nCut off in seed {len(done)}. Finished seeds are kept; the same command goes "
            "on with this one."
        )
        return 130
    except CourseError as error:
        if done:
            print("Finished seeds are kept.")
        raise error
    print(f"{capstone.exercise_id} on {whose}: {runs.verdict(capstone, done)}")
    if done and done[-1].parts:
        print(f"your parts in this engine: {', '.join(done[-1].parts)}")
    return 0 if runs.is_passed(capstone, done) else 1


def _line(capstone: runs.Capstone, one: runs.Run, was_kept: bool, style: Style) -> str:
    """Return the line of a run."""
    is_good = one.score is not None and capstone.is_passed([one.score] * runs.N_SEEDS)
    sign = style.paint(style.signs["passed"], "passed") if is_good else " "
    took = "kept from before" if was_kept else f"{one.seconds:.1f} s"
    if one.score is not None:
        return f"{sign} seed {one.seed}: {capstone.shown(one.score)} {capstone.score} ({took})"
    last = f" after {one.curve[-1][1]:.4g}" if one.curve else ""
    return (
        f"  seed {one.seed}: diverged, {capstone.ylabel} is no number any more{last} ({took}). "
        "Is the learning rate too large?"
    )


@contextlib.contextmanager
def _progress(seed: int) -> Iterator[Callable[[float], None]]:
    """Show a bar while a seed trains, if tqdm is installed and somebody looks."""
    try:
        from tqdm import tqdm
    except ImportError:
        tqdm = None
    if tqdm is None or not sys.stderr.isatty():
        yield lambda value: None
        return
    with tqdm(desc=f"seed {seed}", unit=" records", leave=False) as bar:

        def report(value: float) -> None:
            bar.update()
            bar.set_postfix_str(f"{value:.4g}", refresh=False)

        yield report
