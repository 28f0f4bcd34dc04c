"""What the exercises of lesson 05 share."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.grader.message import show
from minigrad.grader.tester import Tester

HISTORIES = ("mul", "leaf", None)
INPLACE = "The caller goes on using its own Box: leave it as it is, and make a new one."


def entries(array: Any) -> str:
    """Return a small array as its entries alone; anything else as `show` has it."""
    if isinstance(array, np.ndarray) and array.ndim <= 2 and array.size <= 12:
        return str(array.tolist())
    return show(array)


def box_text(values: np.ndarray, version: int, history: str | None) -> str:
    """Return how the Box that an exercise is given looks in Python."""
    node = None if history is None else f'Node("{history}")'
    if history not in (None, "leaf"):
        node = f'Node("{history}", (Node("leaf"),))'
    return f"Box(Storage(array({entries(values)}), version={version}), node={node})"


def ask(t: Tester, name: str, history: str | None) -> tuple[np.ndarray, int, dict]:
    """Call detach or clone on a random Box; return its values, its version and what came back."""
    values = np.round(t.random.uniform(-2, 2, 3), 1)
    version = int(t.random.integers(2, 6))
    given = f"{name}({box_text(values, version, history)})"
    facts = t.drive("apart", name, values, version, history, given=given)
    return values, version, facts


def check_box(t: Tester, facts: dict) -> None:
    """Fail unless a new Box came back and the given one is as it was."""
    if "made" in facts:
        if facts["made"] is None:
            t.none("a new Box")
        t.fail("type", "a new Box", f"a {facts['type']}", "Box(storage, node) makes a Box.")
    if "storage" in facts:
        attempt = (
            "A Box holds a Storage, not its array: box.storage is one, Storage(array) a new one."
        )
        t.fail("no_storage", "a Box over a Storage", f"a Box over a {facts['storage']}", attempt)
    source = facts["source"]
    if not facts["new_box"]:
        changed = "" if source["same_node"] else "; its node was changed"
        t.fail("same_box", "a new Box", f"the given Box itself{changed}", INPLACE)
    if not (source["same_node"] and source["same_inputs"]):
        t.fail("source", "the given Box with its node", "its node was changed", INPLACE)
    if not source["same_storage"]:
        t.fail("source", "the given Box with its Storage", "its storage was changed", INPLACE)


def node_text(node: dict) -> str:
    """Return what a node is, in words."""
    if node["is"] == "none":
        return "node None"
    if node["is"] == "same":
        return "the node of the given Box"
    if node["is"] == "other":
        return f"a {node['type']} for a node"
    names = {"source": "box.node", "none": "None"}
    whose = [names.get(one, f"a {one}") for one in node["inputs"]]
    inputs = f"{whose[0]}," if len(whose) == 1 else ", ".join(whose)
    if node["inputs_type"] != "tuple":
        inputs = f"a {node['inputs_type']}"
    return f"a new Node {show(node['op'])} with inputs ({inputs})"
