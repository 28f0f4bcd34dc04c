"""The passes of an optimizer's step. Each updates all parameters of one dtype and device."""

from array import array as integers

from minigrad.array.array import Array
from minigrad.devices.backend import device_named, device_of
from minigrad.devices.cpu.updates import (
    COUNTERS,
    HYPERPARAMETERS,
    PARAMETER,
    ROW,
    SIZE,
    SLOT,
    STATE,
    kernel,
)
from minigrad.devices.threads import threads

GRAIN = 64  # elements; cuts are multiples, so that threads share no cache line


class UpdatePass:
    """The CPU's pass: one kernel call with a table of addresses.

    Each step first writes the addresses of parameters and gradients into the table. They change:
    unsharing a copy-on-write clone moves a buffer, and every step has new gradients.

    Args:
        update: the formulas.Update of all rows.
        rows: (parameter, state, group); the state is None before the first gradient.
    """

    def __init__(self, update, dtype, rows):
        self.kernel = kernel(update, dtype)
        self.table = integers("q", bytes(8 * ROW * len(rows)))
        self.entries, self.kept = [], []
        for k, (p, state, group) in enumerate(rows):
            block = state.block if state is not None else None
            is_ready = state is not None or not update.has_state
            self.entries.append((p, p.array, block, state, is_ready))
            base = k * ROW
            self.table[base + PARAMETER] = p.array.address
            self.table[base + SIZE] = p.size
            self.table[base + HYPERPARAMETERS] = group.address
            if state is not None:
                self.table[base + STATE] = state.block.address
                self.table[base + SLOT] = state.slot
                if state.counters is not None:
                    self.table[base + COUNTERS] = state.counters.address
        sizes = [p.size for p, _, _ in rows]
        self.pieces, self.ranges = cut(sizes, threads.parts(sum(sizes)))
        self.table_at, self.pieces_at = (x.buffer_info()[0] for x in (self.table, self.pieces))

    def prepare(self, place):
        """Writes the addresses and increments versions. Returns False if the table is out of date.

        place: the user's line, for errors about values saved before this step.
        """
        table, k, kept = self.table, 0, []
        for p, array, block, state, is_ready in self.entries:
            g = p._grad
            if g is None or not p._requires_grad:
                table[k + 1] = 0
                k += ROW
                continue
            if p.array is not array or not is_ready:
                return False
            buffer = array.buffer
            if buffer.owners > 1:  # a clone shares the memory
                device_of(array).prepare_write(array, place)
                buffer = array.buffer
            else:
                array.version += 1
                array.written_at = place
            if block is not None:
                block.version += 1
            if state is not None and state.counters is not None:
                state.counters.version += 1
            table[k] = buffer.address
            a = g.array
            if type(a) is Array:
                table[k + 1] = a.buffer.address
            else:
                if not a.is_contiguous:
                    a = device_of(a).contiguous(a)
                    kept.append(a)
                table[k + 1] = a.address
            k += ROW
        self.kept = kept
        return True

    def run(self):
        """Calls the kernel once, or once per range."""
        rows, table, pieces = len(self.entries), self.table_at, self.pieces_at
        if len(self.ranges) == 1:
            self.kernel(table, rows, pieces, 0, self.ranges[0][1])
        else:
            self.kernel(table, rows, pieces, 0, 0)  # only counts the steps, once
            threads.run(self.kernel, [(table, 0, pieces, a, b) for a, b in self.ranges])
        self.kept = []


class DevicePass:
    """Like `UpdatePass`, for a device other than the CPU, with one call per group."""

    def __init__(self, update, device, rows):
        self.update, self.device, self.place = update, device_named(device), None
        self.entries = [
            (p, p.array, state, group, state is not None or not update.has_state)
            for p, state, group in rows
        ]

    def prepare(self, place):
        """Returns whether the rows are still valid. place: the user's line."""
        self.place = place
        return all(
            p._grad is None or not p._requires_grad or (p.array is array and is_ready)
            for p, array, _, _, is_ready in self.entries
        )

    def run(self):
        """Updates each parameter that has a gradient, with one call per group."""
        device, by_group = self.device, {}
        for p, array, state, group, _ in self.entries:
            if p._grad is None or not p._requires_grad:
                continue
            device.prepare_write(array, self.place)
            slots, steps = (), None
            if state is not None:
                device.prepare_write(state.block)
                steps = state.counters
                slots = [state[name].array for name in state if name != "step"]
                if steps is not None:
                    device.prepare_write(steps)
            row = array, device.contiguous(p._grad.array), slots, steps
            by_group.setdefault(id(group), (group, []))[1].append(row)
        for group, rows in by_group.values():
            device.update(self.update, rows, group.numbers())


def pass_of(update, dtype, device, rows):
    """Makes the pass of an Update for one dtype and device. rows: (parameter, state, group)."""
    if device == "cpu":
        return UpdatePass(update, dtype, rows)
    return DevicePass(update, device, rows)


def cut(sizes, parts):
    """Cuts rows into pieces, and divides the pieces among parts of equal work.

    Returns ([row, first element, count, ...], [range of pieces of each part]).

    >>> cut([100, 300], 2)
    (array('q', [0, 0, 100, 1, 0, 192, 1, 192, 108]), [(0, 2), (2, 3)])
    """
    share = -(-sum(sizes) // (parts * GRAIN)) * GRAIN or GRAIN
    pieces, ranges, left, start = [], [], share, 0
    for row, size in enumerate(sizes):
        first = 0
        while first < size:
            if left <= 0 and len(ranges) < parts - 1:
                ranges.append((start, len(pieces) // 3))
                start, left = len(pieces) // 3, share
            room = -(-left // GRAIN) * GRAIN if len(ranges) < parts - 1 else size
            n = min(size - first, room)
            pieces += (row, first, n)
            first, left = first + n, left - n
    ranges.append((start, len(pieces) // 3))
    return integers("q", pieces), ranges
