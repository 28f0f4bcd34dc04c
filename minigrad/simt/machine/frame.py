"""The state of a running kernel: the wave of its lanes, and a frame for each call."""

import numpy as np

from minigrad.errors import SimulationError, UninitializedReadError
from minigrad.simt.machine.faults import fault, offender
from minigrad.simt.machine.masks import DEAD, UNSET, merge, outside, split, union
from minigrad.simt.machine.promotion import truth


class Wave:
    """Blocks that run together.

    Attributes:
        lanes, memory: see `lanes` and `memory`.
        exited: mask of the lanes that have returned from the kernel, DEAD if there are none.
        trail: (site, mask before, mask within) of the divergent branches that lanes are in.
        returns: (site, mask) of the lanes that have returned from device functions still running.
        arrays: shared arrays by the site of their declaration, and constant arrays.
        dynamic: bytes of dynamic shared memory per block; `dynamic_region` once it is used.
        counts: the object that counts events for a report, or None.
        copies: asynchronous copies that are on their way; commits: int64 (lanes.count,), how many
            groups of them each lane has closed. See `language.copies`.
    """

    def __init__(self, lanes, memory, dynamic, constants, counts=None):
        self.lanes, self.memory, self.dynamic, self.counts = lanes, memory, dynamic, counts
        self.exited = DEAD
        self.trail, self.returns = [], []
        self.arrays, self.copies = {}, []
        self.commits = np.zeros(lanes.count, np.int64)
        self.constants = constants
        self.dynamic_region = None
        self.block_dim = tuple(np.int32(n) for n in lanes.extents)
        self.grid_dim = tuple(np.int32(n) for n in lanes.grid)


class Frame:
    """One call of a kernel or device function.

    Attributes:
        env: the local variables; known: per variable the lanes that have given it a value.
        live: mask of the lanes that have entered and not yet returned.
        value, returned: the value of the lanes that have returned, and their mask.
        loop: the innermost loop's [lanes at `break`, lanes at `continue`].
    """

    __slots__ = ("env", "known", "live", "loop", "returned", "top", "value", "wave")

    def __init__(self, wave, slots, arguments, mask, top):
        count = len(arguments)
        self.env = [*arguments, *[UNSET] * (slots - count)]
        self.known = [None] * count + [DEAD] * (slots - count)
        self.wave, self.live, self.top = wave, mask, top
        self.value, self.returned, self.loop = UNSET, DEAD, None

    def assign(self, slot, value, mask):
        """Assign to a local variable in the lanes of a mask."""
        if mask is None or mask is self.live:  # no other lane will read this variable
            self.env[slot] = value
            self.known[slot] = None
            return
        self.env[slot] = merge(mask, value, self.env[slot])
        if self.known[slot] is not None:
            self.known[slot] = union(self.known[slot], mask)

    def leave(self, value, mask, site):
        """Return a value from the lanes of a mask."""
        if not self.top:
            self.wave.returns.append((site, mask))
        self.value = merge(mask, value, self.value)
        self.returned = union(self.returned, mask)
        self.live = outside(self.live, mask)
        if self.top:
            self.wave.exited = union(self.wave.exited, mask)

    def settle(self, mask):
        """Make a mask that has all live lanes `live` after returns, so that `is` tells."""
        if mask is DEAD or mask is None or self.live is DEAD or self.live is None:
            return
        if np.count_nonzero(mask) == np.count_nonzero(self.live):
            self.live = mask

    def check_known(self, slot, mask, name, site):
        """Raise if an active lane reads a local variable before giving it a value."""
        missing = outside(mask, self.known[slot])
        if missing is DEAD:
            return
        lanes = self.wave.lanes
        raise fault(
            UninitializedReadError,
            f"the variable {name} has no value in this thread",
            site,
            lanes,
            offender(lanes, missing, True),
            fix="give it a value on every path that leads here",
        )


def decide(f, mask, test, site):
    """Split a mask by the value of a closure into (lanes where it is true, the others)."""
    condition = truth(test(f, mask))
    counts = f.wave.counts
    if counts is not None:
        counts.branch(site, mask, condition)
    return split(mask, condition)


def taken(mask):
    """Return a mask as bools, for counts."""
    return np.True_ if mask is None else np.False_ if mask is DEAD else mask


class KernelProgram:
    """A compiled function; call it with a wave, arguments and a mask to get its result.

    Attributes:
        parameters: their names, in order.
        used: names from outside that it depends on; see `names.Scope`.
        spins: whether a loop may wait for a lock, so that blocks must run one by one.
        exact: whether it has a `syncwarp` or a `threadfence`; see `memory.Memory`.
    """

    exact = spins = False

    def __init__(self, name, slots, body, used, site, parameters):
        self.name, self.slots, self.body, self.used = name, slots, body, used
        self.site, self.parameters = site, parameters

    def __call__(self, wave, arguments, mask, top=False):
        frame = Frame(wave, self.slots, arguments, mask, top)
        depth = len(wave.returns)
        after = self.body(frame, mask)
        del wave.returns[depth:]
        if frame.value is UNSET:
            return None
        if after is not DEAD and frame.value is not None:
            raise SimulationError(
                f"{self.name} returns a value on some paths and none on others",
                where=self.site.where,
                fix="end every path with return and a value of one type",
            )
        return frame.value
