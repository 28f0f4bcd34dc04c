"""A learner's sum over the ranks in the engine's place: it sends arrays from rank to rank."""

import hashlib
import weakref

import numpy as np

from minigrad.course.objects import Worker
from minigrad.course.seam_parts import Adapter
from minigrad.errors import DistributedError


class LearnersSum(Adapter):
    """all_reduce=f: f(worker, x) -> the sum of the x of all workers, the same bits on each."""

    def __init__(self, part):
        super().__init__(part)
        self.made = weakref.WeakKeyDictionary()  # {engine: _Summing}

    def __call__(self, engine):
        """Return an engine that moves data as `engine` does, and sums as the learner does."""
        if engine not in self.made:
            self.made[engine] = _Summing(weakref.proxy(engine), self.part)
        return self.made[engine]


class _Summing:
    """An engine of `minigrad.distributed` whose sums of floats are the learner's."""

    def __init__(self, engine, part):
        self.engine, self.part = engine, part
        self.count = 0  # of the learner's sums so far

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def sum(self, data, head):
        """Replace data by its sum over the ranks."""
        self.finish_sum(self.start_sum(data), head)

    def start_sum(self, data):
        """Note what is to be summed; the learner's function runs when the sum is needed."""
        return data, None if data.dtype.kind == "f" else self.engine.start_sum(data)

    def advance(self):
        """Do nothing: no sum of the learner's is under way."""

    def finish_sum(self, started, head):
        """Have the learner's function sum; check that all ranks got the same bits."""
        data, engines = started
        if data.dtype.kind != "f":
            self.engine.finish_sum(engines, head)
            return
        self.count += 1
        post = _Post(self.engine, self.part, head, self.count)
        total = self.part(Worker(self.engine.rank, self.engine.size, post), data.copy())
        total = self.part.checked(total, data.shape, "the sum").astype(data.dtype)
        digest = np.frombuffer(hashlib.sha256(total.tobytes()).digest(), np.uint8)
        digests = self.engine.gather(digest, head)
        others = [r for r, one in enumerate(digests) if not np.array_equal(one, digests[0])]
        if others:
            self.part.refuse(
                "the same bits on every rank",
                f"other ones on rank {others[0]} than on rank 0",
                "is each entry of the sum added up in one place, and then sent to all?",
            )
        data[...] = total


class _Post:
    """Carries a learner's arrays, each with the number of the sum that it belongs to."""

    def __init__(self, engine, part, head, count):
        self.engine, self.part, self.head, self.count = engine, part, head, count

    def send(self, rank, to, array):
        """Send a copy of an array."""
        self.engine.send((self.count, self.part.checked(array, np.shape(array), "send")), to)

    def receive(self, rank, source):
        """Return the next array from a rank."""
        try:
            count, array = self.engine.receive(source, self.head)
        except DistributedError as error:
            error.add_note(f"worker {rank} was to receive an array from worker {source}")
            raise
        if count != self.count:
            self.part.refuse(
                "every array that is sent to be received, in the same sum",
                f"one from rank {source} that sum {count} left over, in sum {self.count}",
            )
        return array
