"""Gives the bug hunt's loop as the exercise file came, to draw it beside the fixed one."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from minigrad.course.copies import stub_of
from minigrad.grader.folder import find_folder

STEM = "06_memory_growth"


def loop_as_it_came() -> Callable[[Any], Any]:
    """Return fix_dqn_loop with its three leaks, whatever the learner's file has now."""
    text = stub_of(find_folder(), STEM)
    if text is None:
        raise FileNotFoundError(f"the exercises of {STEM} as they came")
    module = types.ModuleType(f"{STEM}_as_it_came")
    exec(compile(text, f"<{STEM}, as it came>", "exec", dont_inherit=True), module.__dict__)
    return module.fix_dqn_loop
