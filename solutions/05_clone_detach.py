"""Lesson 05: whose bytes, and whose history?

Two things make a Variable, and they are independent of each other: the
bytes that it shows (its Storage) and how it came about (its Node). A Box
has these two and nothing else. Python and NumPy are enough.
"""

import weakref

import numpy as np

from minigrad.course.objects import Box, Node, Storage


def detach(box):
    """Return the same bytes without the history.

    Args:
        box: a Box; its node is a Node of any op, "leaf" too, or None.

    Returns:
        A new Box over the very same Storage object, whose node is None.

    `box` itself stays as it is.
    """
    ### BEGIN SOLUTION
    return Box(box.storage, None)
    ### END SOLUTION


def clone(box):
    """Return the same values in bytes of their own; history leads to box.

    Args:
        box: a Box; its node is a Node of any op, "leaf" too, or None.

    Returns:
        A new Box. Its Storage is a new one: a copy of the values, of their
        dtype, version 0. Its node is a new Node: op "clone", inputs a tuple
        with one entry, box.node; nothing is saved. Where box.node is None,
        no gradient flows: then its node is None too.

    `box` itself stays as it is.
    """
    ### BEGIN SOLUTION
    node = None if box.node is None else Node("clone", (box.node,))
    return Box(Storage(box.storage.data.copy()), node)
    ### END SOLUTION


def is_alias(a, b):
    """Say whether two arrays have a byte in common.

    Args:
        a, b: NumPy arrays of at most a few hundred elements, of any dtype
            and shape. They may be views of one array, in steps or backwards
            (a negative stride); they may be read-only, or empty.

    Returns:
        bool: True if some byte belongs to an element of a and to an element
        of b.

    `a.ctypes.data` is the address of the first byte of element [0, 0, ...],
    an int. Element [i, j, ...] begins i * a.strides[0] + j * a.strides[1] +
    ... bytes after it, and is a.itemsize bytes long. np.shares_memory and
    np.may_share_memory are closed here. Write to neither array, not even
    for a moment.
    """
    ### BEGIN SOLUTION
    shown = []
    for array in (a, b):
        addresses = np.array([array.ctypes.data])
        for n, stride in zip(array.shape, array.strides, strict=True):
            addresses = (addresses[:, None] + stride * np.arange(n)).ravel()
        shown.append(
            (addresses[:, None] + np.arange(array.itemsize)).ravel()
        )
    return not set(shown[0].tolist()).isdisjoint(shown[1].tolist())
    ### END SOLUTION


class CowBuffer:
    """An array that forks share until one of them writes: copy-on-write.

    Only write() ever copies, and only if another living buffer still shows
    the same array. The buffer that writes gets the copy, and is its only
    owner from then on. The last owner of an array writes to it without a
    copy; a fork that was dropped (`del b`) does not count.

    Python's weakref.WeakSet holds objects without keeping them alive: when
    nobody else holds an object, it leaves the set.
    """

    def __init__(self, array):
        """Own this very array, not a copy of it. It is a NumPy array."""
        ### BEGIN SOLUTION
        self._array = array
        self._owners = weakref.WeakSet([self])
        ### END SOLUTION

    def fork(self):
        """Return another CowBuffer that shows the same array; no copy."""
        ### BEGIN SOLUTION
        other = CowBuffer(self._array)
        other._owners = self._owners
        self._owners.add(other)
        return other
        ### END SOLUTION

    def read(self):
        """Return the values without a copy, as an array that is read-only.

        A view has `flags.writeable` of its own.
        """
        ### BEGIN SOLUTION
        view = self._array.view()
        view.flags.writeable = False
        return view
        ### END SOLUTION

    def write(self):
        """Return the array to write to; read() shows what is written there.

        No other buffer may show this array. Copies if it must, and only
        then.
        """
        ### BEGIN SOLUTION
        if len(self._owners) > 1:
            self._owners.remove(self)
            self._owners = weakref.WeakSet([self])
            self._array = self._array.copy()
        return self._array
        ### END SOLUTION


def target_sync(online, target):
    """Copy the values of one network into another, which keeps its memory.

    Args:
        online: dict, per name a Box; it is read only.
        target: dict, the same names, perhaps in another order, and Boxes of
            the same shapes, each with a Storage of its own. One may show
            online's own array: it stays so.

    Returns:
        None. Afterwards target shows online's values: in the same Boxes,
        the same Storages and the same arrays as before, with nodes as
        before. Each Storage of target counts one write more: its version
        has grown by 1.
    """
    ### BEGIN SOLUTION
    for name, box in target.items():
        box.storage.data[...] = online[name].storage.data
        box.storage.version += 1
    ### END SOLUTION


# --- Bug hunt -------------------------------------------------------------
# A target network is a frozen copy: it must not move while the online
# network trains. This one does. Its author tested all five layers on the
# transpose of an array, and all five were copies. Find the layer that still
# shows online's bytes, write its name ("embed", "w1", "b1", "w2" or "b2")
# into BUG, then repair it.

### BEGIN SOLUTION
BUG = ("layer", "w2")
### STARTS AS
# BUG = ("layer", None)
### END SOLUTION


def frozen(values):
    """Return a Box over these values, outside any graph."""
    return Box(Storage(values), None)


def make_target(online):
    """Return a target network: online's values, in memory of its own.

    Args:
        online: dict of Boxes of float64: "embed", "w1" and "w2" with two
            axes, "b1" and "b2" with one. It stays as it is.

    Returns:
        dict: per name a new Box with the same values and shape and no node,
        no byte of which is online's.
    """
    embed, w1, b1, w2, b2 = (
        online[name].storage.data
        for name in ("embed", "w1", "b1", "w2", "b2")
    )
    return {
        "embed": frozen(embed.copy()),
        "w1": frozen(np.array(w1)),
        "b1": frozen(b1.flatten()),
        ### BEGIN SOLUTION
        "w2": frozen(np.array(w2, order="C")),
        ### STARTS AS
        # "w2": frozen(np.ascontiguousarray(w2)),
        ### END SOLUTION
        "b2": frozen(b2.astype(np.float64)),
    }
