"""The course: checks, hints, and the functions that the lessons' notebooks call.

from minigrad.course import check, load, predict
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from minigrad.course.contents import overview as overview
    from minigrad.course.hints import hint as hint
    from minigrad.course.live import watch as watch
    from minigrad.course.notebook import check as check
    from minigrad.course.notebook import load as load
    from minigrad.course.notebook import needs as needs
    from minigrad.course.parts import engine as engine
    from minigrad.course.predictions import predict as predict
    from minigrad.course.scrubber import scrub as scrub
    from minigrad.course.tiles import light as light

HOMES = {
    "engine": "parts",
    "hint": "hints",
    "check": "notebook",
    "load": "notebook",
    "needs": "notebook",
    "overview": "contents",
    "predict": "predictions",
    "scrub": "scrubber",
    "light": "tiles",
    "watch": "live",
}


def __getattr__(name: str) -> object:
    """Load a part on first use, so that importing the course costs nothing."""
    from importlib import import_module

    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
