"""The syntax tree of a source, also while another thread makes one."""

from __future__ import annotations

import ast
import threading

PARSING = threading.Lock()


def tree_of(source: str, name: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of a source; as `ast.parse`, but several threads may make one.

    Python before 3.11.8 and 3.12.2 counts the depth of all trees in the making in one number, and
    raises SystemError where two threads make one (python/cpython issue 106905). A lesson's card
    parses what is saved while a cell runs. A parser that does not wait for this lock, such as
    IPython's, can still come in between; then a second try succeeds.

    Raises:
        SyntaxError: as Python says.
    """
    with PARSING:
        try:
            return ast.parse(source, name)
        except SystemError:
            return ast.parse(source, name)
