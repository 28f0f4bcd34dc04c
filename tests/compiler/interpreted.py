"""Plans that a plain interpreter runs: what calls of compiled steps are tested with.

They show the outside of `compiler.plan.Plan`, cost no compilation, and take over the memory of
donated arguments wherever a result has their size and dtype.
"""

import ctypes

import numpy as np

from minigrad.compiler.program.program import CONSTANT
from tests.compiler.interpreter import Stopped, execute, values_of


class InterpretedPlan:
    """See `compiler.plan.Plan`."""

    threads = 1
    has_products = False
    refused = ()

    def __init__(self, recording, dead_slices=(), n_threads=None):
        self.recording, self.results = recording, recording.results
        self.checks = [i for i in recording.instructions if i.stops]
        self.values = [v for kind in ("captured", "argument") for v in recording.values(kind)]
        self.taken = self._taken()
        self.slots = [("sync",), ("arena", 256), ("seed",), ("counter",)]
        self.slots += [(v.kind, v) for v in self.values]
        self.slots += [("result", k) for k in range(len(self.results))]
        self.text = "\n".join(map(repr, recording.instructions))
        self.runs = 0
        self.machine_code = self.step, ()

    def _taken(self):
        found = {}
        for value in self.recording.arguments:
            if value in self.recording.donated:
                for k, r in enumerate(self.results):
                    if k not in found and (r.size, r.dtype) == (value.size, value.dtype):
                        found[k] = value
                        break
        return found

    @property
    def written(self):
        """Captured memory and arguments that the step writes."""
        return self._written_by(self.recording.instructions)

    def written_before(self, check):
        """The same, of the instructions before a check."""
        stop = self.recording.instructions.index(self.checks[check - 1])
        return self._written_by(self.recording.instructions[:stop])

    def results_before(self, check):
        """None: results are copied out in the end."""
        return {}

    def _written_by(self, instructions):
        found = {r.value: None for i in instructions for r in i.writes}
        return [v for v in found if not v.is_temporary]

    def step(self, t, T, table_at):
        """Interprets the instructions over the memory of the table."""
        self.runs += 1
        table = np.frombuffer((ctypes.c_int64 * len(self.slots)).from_address(table_at), np.int64)
        where = dict(zip(self.slots, table.tolist(), strict=True))
        memory = {v: array_at(where[v.kind, v], v.size, v.dtype) for v in self.values}
        memory |= {v: values_of(v.storage).copy() for v in self.recording.values(CONSTANT)}
        try:
            seed, counter = where["seed",], where["counter",]
            results = execute(self.recording, memory, seed, counter)
        except Stopped as stopped:
            return 1 + self.checks.index(stopped.instruction)
        for k, (r, data) in enumerate(zip(self.results, results, strict=True)):
            array_at(where["result", k], r.size, r.dtype)[:] = data.reshape(-1)
        return 0


def array_at(address, size, dtype):
    """A flat ndarray over memory."""
    memory = (ctypes.c_char * (size * dtype.itemsize)).from_address(address)
    return np.frombuffer(memory, dtype.numpy)
