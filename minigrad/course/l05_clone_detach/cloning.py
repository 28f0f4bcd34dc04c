"""clone: bytes of its own, and a history that leads back."""

from __future__ import annotations

import numpy as np

from minigrad.course.l05_clone_detach import lesson
from minigrad.course.l05_clone_detach.common import asked, entries, has_moved, node_text
from minigrad.grader.message import show
from minigrad.grader.tester import Tester

clone = lesson.exercise(
    "clone",
    difficulty=2,
    minutes=8,
    returns="a new Box over a new Storage, with a node of its own",
    hints=(
        "clone is the opposite of detach: it parts the bytes and keeps the history. But is the "
        "clone made by the same operation as its source?",
        "A new Storage over a copy of the array; its version starts anew. A new Node whose op is "
        '"clone" and whose one input is the Node of the source.',
        "Mind the Box whose node is None: what flows back from its clone? Write "
        "None if box.node is None else Node(…).",
    ),
)


@clone.check(points=2)
def own_bytes(t: Tester) -> None:
    """It shows a copy of the values, in a new Storage that nobody has written to."""
    for values, _, facts in asked(t, "clone"):
        if facts["same_storage"] or has_moved(facts["data"], facts["later"]):
            what = "the same Storage" if facts["same_storage"] else "a new Storage, the same array"
            t.fail(
                "shared",
                "a copy of the array in a new Storage",
                what,
                "Write 100 into the result. What does the source show then?",
            )
        got = facts["data"]
        if not isinstance(got, np.ndarray):
            t.fail(
                "no_array",
                f"a Storage over array({entries(values)})",
                f"a Storage over {show(got)}",
                "Storage(data) wants the array of the new values itself.",
            )
        t.close(got, values, attempt="The values are those of the given Box.", rtol=0, atol=0)
        t.dtype(got, values.dtype, "A copy keeps the dtype. Which function gives one of its own?")
        if facts["version"] != 0:
            t.fail(
                "version",
                "version 0",
                f"version {show(facts['version'])}",
                "The version says how often these bytes were written to in place. The new ones?",
            )


@clone.check(points=2)
def own_node(t: Tester) -> None:
    """Its node is a new one that leads back to the source's, and None where that is None."""
    for _, history, facts in asked(t, "clone"):
        node = facts["node"]
        if history is None:
            if node["is"] != "none":
                t.fail(
                    "recorded",
                    "node None, as the source's is None",
                    node_text(node),
                    "No gradient flows to this source. What would the clone's Node lead to?",
                )
            continue
        wanted = "a new Node 'clone' with inputs (box.node,)"
        if node["is"] == "none":
            t.fail(
                "cut_off",
                wanted,
                "node None",
                "A gradient that arrives at the clone must find its way back to the source.",
            )
        if node["is"] == "same":
            t.fail(
                "same_node",
                wanted,
                node_text(node),
                "That Node made the source. Which operation made the clone?",
            )
        if node["is"] == "other" or node["inputs"] != ["source"] or node["inputs_type"] != "tuple":
            t.fail(
                "inputs",
                wanted,
                node_text(node),
                "Node(op, inputs): inputs is a tuple of Nodes. One in a tuple is written (one,).",
            )
        if node["op"] != "clone":
            name = "The op says by which operation it was made: clone."
            t.fail("op", wanted, node_text(node), name)
        if node["n_saved"]:
            t.fail(
                "saved",
                "a Node that saved nothing",
                f"a Node that saved {node['n_saved']} value(s)",
                "The gradient of a copy is what arrives. Which value would it need for that?",
            )
