"""Checks that saved values are unchanged when backward uses them."""

from minigrad.errors import GraphFreedError, SavedValueModifiedError
from minigrad.seams import seams
from minigrad.tape.variable import written_line


def check(node):
    """Raises if a node's saved values were freed or written to."""
    kept = node.kept
    if kept is None:
        raise GraphFreedError(
            f"backward through {node.op} a second time: what it saved was freed by the first",
            fix="pass retain_graph=True to the first backward, or compute the result again",
            details=[("made at", node.line)],
        )
    if seams.check_saved is not None:
        seams.check_saved(node)
        return
    for value, version in zip(kept, node.versions, strict=True):
        if version is not None and value.version != version:
            raise_modified(node, value, version)


def raise_modified(node, value, version):
    """Raises the error for a saved value that was written to."""
    names = [n for n, k in zip(node.plan.saved_names, node.kept, strict=False) if k is value]
    edge = node.edge_of(names[0]) if names else None
    name = getattr(edge, "name", None) or (names[0] if names else "?")
    raise SavedValueModifiedError(
        f"{node.op} saved {name} ({value.dtype}{list(value.shape)}) for backward, "
        "and it was written to in place before backward used it",
        f"version {value.version}, saved at version {version}",
        "write out of place (y = y + 1 instead of y += 1), or after backward",
        details=[("saved at", node.line), ("written at", written_line(value))],
    )
