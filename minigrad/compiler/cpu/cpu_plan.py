"""Turns a Recording into a Plan: passes, fusion, memory, text, machine code."""

import time

from minigrad.compiler.cpu.python_step import PythonStep
from minigrad.compiler.cpu.schedule import regions_of
from minigrad.compiler.cpu.step_text import StepText
from minigrad.compiler.fuse.arena import Arena
from minigrad.compiler.fuse.fuse import fuse
from minigrad.compiler.fuse.inplace import Sharing
from minigrad.compiler.passes import simplify
from minigrad.compiler.program.plan_base import PlanBase
from minigrad.compiler.program.traffic import lives_of
from minigrad.devices import loader
from minigrad.devices.cpu.blas import find_blas
from minigrad.devices.threads import find_yield
from minigrad.devices.threads import threads as pool


class Plan(PlanBase):
    """A compiled step; n_threads: the most that it may use (default: the pool's count).

    machine_code: (function, its arguments after t, T and the table's address). The function runs
    thread t's part of T, or all parts if t is -1, and returns 0, or k if checks[k - 1] failed; see
    `step_text`.
    slots: the entries of the table of int64: ('sync',): the address of 128 zeroed bytes; ('arena',
    nbytes); (kind, Value) for captured memory, arguments and constants; ('result', k); ('seed',)
    and ('counter',) of the random numbers.
    threads: how many it may use; they share one table.
    """

    device = "cpu"

    def __init__(self, recording, dead_slices=(), n_threads=None):
        began = time.perf_counter()
        self.before = recording
        recording, self.passes = simplify(recording, dead_slices)
        super().__init__(recording)
        has_products = any(i.op == "matmul" for i in recording.instructions)
        has_blas = not has_products or find_blas() is not None
        self.items = fuse(recording, has_blas)
        sharing = Sharing(self.items, self.results, recording.donated)
        self.owner, self.refused, self.taken = sharing.owner, sharing.refused, sharing.taken
        n_threads = pool.count if n_threads is None and has_blas else n_threads or 1
        if any(i.op == "callback" for i in recording.instructions):
            n_threads = 1  # Python runs between the kernels
        self.regions, self.threads = regions_of(self.items, self.owner, n_threads)
        results = {r.value: k for k, r in enumerate(self.results)}
        self.arena = Arena(lives_of(self.regions, results))
        built = StepText(self.regions, self.arena, self.threads, results, self.owner, has_blas)
        self.text, self.slots, self.checks = built.text, built.slots, built.checks
        self.kernels, self.code = built.functions, built.code
        self.has_products = built.has_products
        self.planning_seconds = time.perf_counter() - began
        find_yield()
        self.module = loader.load(built.text, built.ordered_includes())
        self.machine_code = self._bound(built)
        self.seconds = time.perf_counter() - began

    def _bound(self, built):
        """Return (function, its arguments after t, T and the table)."""
        function, code_at = loader.entry(self.module.step), self.code.buffer_info()[0]
        if built.in_pieces:
            pieces = built.pieces, built.place, self.owner, built.checks
            return PythonStep(function, code_at, *pieces), ()
        return function, (code_at, 0, len(self.code)) if self.code else (code_at,)

    @property
    def from_cache(self):
        """Return whether machine code came from the disk cache."""
        return bool(self.module.step.stats.cache_hits)
