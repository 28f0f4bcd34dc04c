"""Hoisting: run updates as early as possible, because they free their gradient's memory.

The optimizer comes last in a step, so all gradients are alive at the end of backward. But an update
needs to wait only for its gradient and for the last read of the old parameter.
"""

from minigrad.compiler.fuse.fused_loop import Loop
from minigrad.compiler.program.items import conflict

FEW = 8  # elements


def hoist(items):
    """Move Loops that free temporaries up; return the items."""
    last = {}
    for t, item in enumerate(items):
        for r in item.reads:
            last[r.value] = t
    order = []
    for t, item in enumerate(items):
        if type(item) is not Loop or not _frees(item, last, t):
            order.append(item)
            continue
        k = len(order)
        while k and not conflict(order[k - 1], item):
            k -= 1
        order.insert(k, item)
    return order


def _frees(loop, last, t):
    """Return whether a Loop is a temporary's last reader and makes none, or has few elements.

    The latter counts steps or computes rates that the updates need.
    """
    if loop.size <= FEW and not any(v.is_temporary for v, _, _ in loop.loads):
        return True
    if any(o.value.is_temporary for o in loop.outputs):
        return False
    return any(v.is_temporary and last[v] == t for v, _, _ in loop.loads)
