"""Sliders of the lessons: what they draw stays right when the rest of the notebook has run."""

import ast
import symtable

import pytest

from tests.test_lessons import STEMS, cells_of


def globals_read_inside(source):
    """Return the names that functions and lambdas of a cell read from the notebook."""
    names, tables = set(), [symtable.symtable(source, "cell", "exec")]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        if table.get_type() == "function":
            names |= {s.get_name() for s in table.get_symbols() if s.is_global()}
    return names


def names_bound(source):
    """Return the names that a cell binds in the notebook, those of its functions left out."""
    table = symtable.symtable(source, "cell", "exec")
    return {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned()}


def read_by_slider(sources):
    """Return the names that the drawing of a slider in the last of these cells needs."""
    made_in = {name: source for source in sources for name in names_bound(source)}
    (call,) = (
        node
        for node in ast.walk(ast.parse(sources[-1]))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "scrub"
    )
    todo = {ast.unparse(call.args[0])}
    if isinstance(call.args[0], ast.Lambda):
        todo = globals_read_inside(ast.unparse(call.args[0]))
    seen = set()
    while todo:
        name = todo.pop()
        seen.add(name)
        for node in ast.parse(made_in.get(name, "")).body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                todo |= globals_read_inside(ast.unparse(node)) - seen
    return seen


def rebound_later(sources):
    """Return, for every slider of these cells, the names that a later cell gives a new value.

    `mine` is the learner's module in every cell.
    """
    return [
        read_by_slider(sources[: place + 1]) & names_bound(later) - {"mine"}
        for place, source in enumerate(sources)
        if "\nscrub(" in f"\n{source}"
        for later in sources[place + 1 :]
    ]


@pytest.mark.parametrize("stem", STEMS)
def test_a_slider_draws_the_same_after_all_cells_have_run(stem):
    sources = [cell.text for cell in cells_of(stem) if cell.kind == "code"]
    sliders = rebound_later(sources)
    assert sliders, "a lesson has a slider"
    names = set().union(*sliders)
    assert not names, f"a slider reads {names}, which a later cell binds anew"


def test_a_name_that_a_later_cell_binds_is_found():
    cells = [
        "grid = 1\ndef line(x):\n    return grid * x\ndef draw(axis, x):\n    axis.plot(line(x))",
        "scrub(lambda axis, x: draw(axis, x), [1], label='x', show=[1])",
        "for axis in range(3):\n    pass",
        "grid = 2",
    ]
    assert rebound_later(cells) == [set(), {"grid"}]
