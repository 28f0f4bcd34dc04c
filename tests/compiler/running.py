"""Plans on memory of the test's own: what `compiled` does for real, without its guards."""

from array import array

import numpy as np

from minigrad.compiler.cpu.cpu_plan import Plan
from minigrad.devices.threads import threads
from tests.compiler.interpreter import memory_of


class Stopped(Exception):
    """A check failed; number: which."""

    def __init__(self, number):
        super().__init__(str(number))
        self.number = number


class Run:
    """A plan bound to copies of what it captured; `once()` runs it and gives its results."""

    def __init__(self, recording, arguments=(), dead_slices=(), n_threads=1, memory=None):
        self.plan = Plan(recording, dead_slices, n_threads)
        self.memory = memory_of(recording, arguments) if memory is None else memory
        self.results = [np.full(r.size, 77, r.dtype.numpy) for r in self.plan.results]
        self.sync = np.zeros(64, np.int64)
        self.table, self._kept = array("q"), []
        for what, *which in self.plan.slots:
            if what == "sync":
                address = self.sync.ctypes.data
            elif what == "arena":
                memory = np.full(which[0] + 64, 0xFF, np.uint8)  # NaN: nobody may rely on zeros
                self._kept.append(memory)
                address = -(-memory.ctypes.data // 64) * 64
            elif what == "result":
                address = self.results[which[0]].ctypes.data
            elif what in ("seed", "counter"):
                address = 0
            else:
                address = self.memory[which[0]].ctypes.data
            self.table.append(address)

    def once(self):
        """The results, as ndarrays of their shapes."""
        self.sync[:] = 0
        at, n = self.table.buffer_info()[0], self.plan.threads
        function, more = self.plan.machine_code
        found = []  # all parts or none: where the workers are busy, one thread does it alone
        parts = [(t, n, at, *more) for t in range(n)]
        if n == 1 or not threads.together(function, parts, found):
            found = [function(-1 if n > 1 else 0, n, at, *more)]
        status = found[-1]
        if status:
            raise Stopped(status)
        pairs = zip(self.results, self.plan.results, strict=True)
        return [x.reshape(r.shape).copy() for x, r in pairs]
