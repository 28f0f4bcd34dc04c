"""Run a small kernel one statement of one thread at a time, in a random order.

The simulator runs all threads in lock-step: one order of the many that a GPU may take. Here a
thread stops at every statement, and once more between computing a value and storing it; then we
draw the thread that goes on. A kernel with correct barriers gives the same result in every order.
One that lacks a barrier is right by luck, and here you can count how often. Made for pictures: it
is slow, has no shuffles, and does not watch memory.
"""

import random
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from minigrad.errors import DivergentBarrierError, EndlessLoopError, KernelError, describe_line
from minigrad.simt.watch.stops import generator_function

WARP = 32
MOST_STEPS = 1_000_000  # per block


def run_in_some_order(function, blocks, threads, arguments, *, seed=0, together=WARP, watch=None):
    """Run a kernel of one-dimensional blocks in an order that the seed draws.

    Args:
        function: a kernel as a Python function; its global `cuda` is the kernel language.
        blocks, threads: the number of blocks, and of threads per block.
        arguments: numbers, and NumPy arrays, which the kernel may write.
        seed: the same seed gives the same order.
        together: how many neighbouring threads run in lock-step: 32 as in the warps of GPUs
            before 2017, 1 for independent threads, which is all that CUDA has promised since.
        watch: called after each step with a `BarrierMoment`, or None.

    Raises:
        DivergentBarrierError: threads wait at a barrier that others will never reach.
        EndlessLoopError: a block is still running after MOST_STEPS steps.
        KernelError: the kernel uses something that is not supported here.
    """
    draw = random.Random(seed)
    order = list(range(blocks))
    draw.shuffle(order)
    language = _Language(blocks, threads)
    make = generator_function(function, language, {})
    for block in order:
        _Block(make, language, block, threads, arguments, draw, together, watch).run(function)


class BarrierMoment(NamedTuple):
    """The state of a block after one step: where its threads are, what its shared arrays hold."""

    lines: tuple  # per thread the number of its next line, or None if it has ended
    waits: tuple  # per thread whether it waits at a barrier
    moved: tuple  # the threads that have moved in this step
    shared: list  # copies of the shared arrays, in the order in which the kernel makes them


class _Language:
    """The names of the kernel language, for the running thread."""

    warpsize = WARP

    def __init__(self, blocks, threads):
        self.gridDim = SimpleNamespace(x=blocks, y=1, z=1)
        self.blockDim = SimpleNamespace(x=threads, y=1, z=1)
        self.shared = SimpleNamespace(array=self._shared_array)
        self.local = SimpleNamespace(array=np.zeros)
        self.atomic = SimpleNamespace(add=self._atomic_add, max=self._atomic_max)
        self.thread = self.block = 0
        self.arrays, self.calls = [], []

    @property
    def threadIdx(self):
        return SimpleNamespace(x=self.thread, y=0, z=0)

    @property
    def blockIdx(self):
        return SimpleNamespace(x=self.block, y=0, z=0)

    @property
    def laneid(self):
        return self.thread % WARP

    def grid(self, n):
        if n != 1:
            raise KernelError("orders are drawn for kernels of one dimension", f"cuda.grid({n})")
        return self.block * self.blockDim.x + self.thread

    def gridsize(self, n):
        return self.blockDim.x * self.gridDim.x

    def threadfence(self):
        """Do nothing: memory here is always in order."""

    threadfence_block = threadfence

    def _shared_array(self, shape, dtype):
        call = self.calls[self.thread]
        self.calls[self.thread] += 1
        if call == len(self.arrays):
            self.arrays.append(np.zeros(shape, dtype))
        return self.arrays[call]

    @staticmethod
    def _atomic_add(array, index, value):
        old = array[index]
        array[index] += value
        return old

    @staticmethod
    def _atomic_max(array, index, value):
        old = array[index]
        array[index] = max(old, value)
        return old


class _Block:
    """The threads of one block, each a generator that stops at every statement."""

    def __init__(self, make, language, number, threads, arguments, draw, together, watch):
        self.language, self.draw, self.together, self.watch = language, draw, together, watch
        language.block, language.arrays, language.calls = number, [], [0] * threads
        self.threads = [make(*arguments) for _ in range(threads)]
        self.lines: list = [0] * threads
        self.waits: list = [""] * threads

    def run(self, function):
        """Move groups of threads, drawn at random, until all have ended."""
        n = len(self.threads)
        groups = [range(k, min(k + self.together, n)) for k in range(0, n, self.together)]
        for thread in range(n):
            self.advance(thread)  # stops before its first statement
        ready: list = []
        steps = 0
        while ready or any(line is not None for line in self.lines):
            steps += 1
            if steps > MOST_STEPS:
                raise EndlessLoopError(
                    f"{function.__name__}: still running after {MOST_STEPS:,} steps of its warps",
                    fix="what changes from one round of the loop to the next?",
                )
            if ready:
                place = self.draw.randrange(len(ready))
                self.move(ready[place])
                if not any(map(self.can_move, ready[place])):
                    ready[place] = ready[-1]
                    ready.pop()
            elif ready := [group for group in groups if any(map(self.can_move, group))]:
                continue
            elif not self.release():
                stuck = next(k for k in range(n) if self.waits[k])
                raise DivergentBarrierError(
                    "a barrier that some threads of the block never reach",
                    f"thread {stuck} waits there, and others wait elsewhere",
                    "call it where all threads of the block come by",
                    where=describe_line(function.__code__.co_filename, self.lines[stuck]),
                )

    def can_move(self, thread):
        return self.lines[thread] is not None and not self.waits[thread]

    def move(self, group):
        """Move the threads of a group that can, by one statement each."""
        moved = [thread for thread in group if self.can_move(thread)]
        for thread in moved:
            self.advance(thread)
        if self.watch is not None:
            waits = tuple(bool(wait) for wait in self.waits)
            shared = [array.copy() for array in self.language.arrays]
            self.watch(BarrierMoment(tuple(self.lines), waits, tuple(moved), shared))

    def advance(self, thread):
        """Let a thread run until it stops again."""
        self.language.thread = thread
        try:
            self.lines[thread], self.waits[thread] = next(self.threads[thread])
        except StopIteration:
            self.lines[thread] = None

    def release(self):
        """Open the barriers that all have reached; return whether there was one."""
        n, opened = len(self.threads), False
        if all(self.waits[k] == "block" for k in range(n) if self.lines[k] is not None):
            self.waits = [""] * n
            return True
        for first in range(0, n, WARP):
            warp = [k for k in range(first, min(first + WARP, n)) if self.lines[k] is not None]
            if warp and all(self.waits[k] == "warp" for k in warp):
                for k in warp:
                    self.waits[k] = ""
                opened = True
        return opened
