"""Explains in one line, instead of a traceback, why a notebook's cell cannot run yet.

A cell that needs an exercise which is still a stub says which. So does a cell that needs a name
which a cell above failed to make. All other errors are shown in full.
"""

from __future__ import annotations

import sys
from pathlib import Path
from symtable import symtable
from types import TracebackType
from typing import Any

from minigrad.grader.folder import UnsolvedError, known_stems, loadable

lost: set[str] = set()  # names that cells did not make because of an error


def explain_in_notebooks() -> None:
    """Make the current notebook, if any, explain cells that cannot run yet."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is not None and shell.custom_exceptions == ():
        shell.set_custom_exc((NotImplementedError, NameError), _show)
        shell.events.register("post_run_cell", _remember)


def _show(
    shell: Any, kind: type, error: Any, trace: TracebackType, tb_offset: int | None = None
) -> None:
    """Show an error as IPython does, or in one line if something is merely missing."""
    why = _what_is_missing(error, trace)
    if why:
        error._render_traceback_ = lambda: [why]
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset, running_compiled_code=True)


def _what_is_missing(error: BaseException, trace: TracebackType) -> str | None:
    if isinstance(error, NameError):
        if error.name in lost:
            return f"This cell needs {error.name}, which a cell above makes once it has run."
        return None
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    path, function = Path(code.co_filename), code.co_qualname.partition(".")[0]
    if path.parent.name == "exercises" and path.stem in known_stems():
        for lesson in loadable([path.stem]):
            if exercise := lesson.exercises.get(function):
                return str(UnsolvedError(exercise.id))
    return None


def _remember(result: Any) -> None:
    """Note the names that a failed cell did not make; forget those that a cell made."""
    try:
        symbols = symtable(result.info.raw_cell, "cell", "exec").get_symbols()
    except (SyntaxError, ValueError):
        return
    names = {one.get_name() for one in symbols if one.is_assigned() or one.is_imported()}
    if result.success:
        lost.difference_update(names)
    else:
        lost.update(names)
