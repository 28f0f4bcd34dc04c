"""Parses Python source safely while other threads parse."""

from __future__ import annotations

import ast
import gc
import os
import sys
import threading
import time

_parsing = threading.Lock()
if hasattr(os, "register_at_fork"):  # a forked child must not inherit a held lock
    os.register_at_fork(
        before=_parsing.acquire,
        after_in_parent=_parsing.release,
        after_in_child=_parsing.release,
    )

PATIENCE = 1.0  # seconds
PARSERS = {("ast.py", "parse"), ("compilerop.py", "ast_parse")}  # Python's and IPython's


def tree_of(source: str, name: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of a source. Unlike `ast.parse`, it may run in several threads.

    Python before 3.11.8 and 3.12.2 counts the depth of all trees under construction in one number:
    two threads that parse at the same time get a SystemError (python/cpython issue 106905). A
    lesson's card parses a saved file while a cell runs. While a thread builds a tree, only the
    garbage collector can call Python code and let another thread run, so it is switched off here.

    Raises:
        SyntaxError: the source is not valid Python.
    """
    with _parsing:
        was_enabled = gc.isenabled()
        try:
            gc.disable()
            _wait_for_other_parsers()
            return ast.parse(source, name)
        finally:
            if was_enabled:
                gc.enable()


def _wait_for_other_parsers() -> None:
    """Wait until no other thread is building a tree, at most PATIENCE seconds."""
    until = time.monotonic() + PATIENCE
    while any(map(_is_parsing, _other_threads())) and time.monotonic() < until:
        time.sleep(0.001)


def _other_threads():
    here = threading.get_ident()
    return [frame for thread, frame in sys._current_frames().items() if thread != here]


def _is_parsing(frame) -> bool:
    while frame is not None:
        code = frame.f_code
        if (os.path.basename(code.co_filename), code.co_name) in PARSERS:
            return True
        frame = frame.f_back
    return False
