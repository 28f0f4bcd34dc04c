"""What the exercises of lesson 05 share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from minigrad.grader import samples
from minigrad.grader.message import a_kind, show
from minigrad.grader.tester import Tester

HISTORIES = ("mul", "leaf", None)
NODES = {None: "None", "leaf": 'Node("leaf")'}
INPLACE = "The caller goes on using its own Box: leave it as it is, and make a new one."


def entries(array: Any) -> str:
    """Return a small array's entries as text; anything else as `show` does."""
    if isinstance(array, np.ndarray) and array.ndim <= 2 and array.size <= 12:
        return str(array.tolist())
    return show(array)


def asked(t: Tester, name: str) -> Iterator[tuple[np.ndarray, str | None, dict]]:
    """Call detach or clone on Boxes of every kind; fail unless each call returns a new Box.

    Yields:
        (the Box's values, its history, the result).
    """
    plain = [(history, samples.numbers(t.random, (3,))) for history in HISTORIES]
    kinds = samples.arrays(t.random, dtypes=("float64", "float32", "int64", "bool"))
    for history, values in (*plain, *(("tanh", values) for values in kinds)):
        version = int(t.random.integers(2, 6))
        is_plain = values.dtype == np.float64 and values.flags.c_contiguous and values.size
        numbers = f"array({entries(values)})" if is_plain else show(values)
        node = NODES.get(history, f'Node("{history}", (Node("leaf"),), (2.0,))')
        given = f"{name}(Box(Storage({numbers}, version={version}), node={node}))"
        facts = t.drive("apart", name, values, version, history, given=given)
        if not np.array_equal(facts["source"], values):
            facts["changed"].append("array")
        check_box(t, facts)
        yield values, history, facts


def has_moved(before: Any, later: Any) -> bool:
    """Return whether an array shows others' writes: its values changed with them."""
    return isinstance(before, np.ndarray) and not np.array_equal(before, later)


def check_box(t: Tester, facts: dict) -> None:
    """Fail unless the result is a new Box and the given one is unchanged."""
    if "made" in facts:
        if facts["made"] is None:
            t.none("a new Box")
        t.fail("type", "a new Box", a_kind(facts["type"]), "Box(storage, node) makes a Box.")
    if "storage" in facts:
        attempt = (
            "A Box holds a Storage, not its array: box.storage is one, Storage(array) a new one."
        )
        t.fail("no_storage", "a Box over a Storage", f"a Box over a {facts['storage']}", attempt)
    changed = facts["changed"]
    if not facts["new_box"]:
        also = "; its node was changed" if "node" in changed else ""
        t.fail("same_box", "a new Box", f"the given Box itself{also}", INPLACE)
    if facts["kept"]:
        t.fail(
            "kept",
            "a new Box in each call, and a new one of each thing that is its own",
            "a Box, a node, a Storage or an array that another call had given already",
            "What outlives a call in your code: a default argument, a global, an attribute?",
        )
    if changed:
        t.fail("source", "the given Box as it was", f"its {changed[0]} was changed", INPLACE)


def node_text(node: dict) -> str:
    """Return in words what a node is."""
    if node["is"] == "none":
        return "node None"
    if node["is"] == "same":
        return "the node of the given Box"
    if node["is"] == "other":
        return f"{a_kind(node['type'])} for a node"
    names = {"source": "box.node", "none": "None"}
    whose = [names.get(one, a_kind(one)) for one in node["inputs"]]
    inputs = f"{whose[0]}," if len(whose) == 1 else ", ".join(whose)
    if node["inputs_type"] != "tuple":
        inputs = a_kind(node["inputs_type"])
    return f"a new Node {show(node['op'])} with inputs ({inputs})"
