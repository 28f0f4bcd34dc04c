"""The gradients of a model on their way to their sums over all ranks, in buckets."""

from typing import Any

import numpy as np

from minigrad.array.dtypes import float32
from minigrad.devices.backend import device_named, values
from minigrad.distributed.replicas import copy
from minigrad.memory.interrupts import uninterrupted
from minigrad.tape.variable import Variable


class Bucket:
    """The gradients of some parameters, of one dtype, as one flat array that is summed at once."""

    def __init__(self, wide, parameters):
        ends = np.cumsum([p.size for p in parameters]).tolist()
        self.starts = dict(zip(parameters, [0, *ends], strict=False))
        self.waiting = dict.fromkeys(parameters)  # whose gradient is not in the data yet
        self.data: Any = np.zeros(ends[-1], wide.numpy)

    def part(self, p):
        """Return the part of the data that belongs to a parameter, in its shape."""
        start = self.starts[p]
        return self.data[start : start + p.size].reshape(p.shape)


class Reduction:
    """One sum of all gradients over the ranks; it begins while backward runs.

    Every rank begins the buckets in one order, the last parameters first, for their gradients are
    complete first: a bucket when it and those before it are full, the others at the end.

    Args:
        engine: of the group.
        parameters: the same ones on all ranks.
        bucket_bytes: about how many bytes a bucket has.
        factor: of this rank's gradients, or 0 if it has none.
    """

    def __init__(self, engine, parameters, bucket_bytes, factor):
        self._engine, self._factor = engine, factor
        self._buckets = [Bucket(*one) for one in divided(parameters, bucket_bytes)]
        self._bucket_of = {p: bucket for bucket in self._buckets for p in bucket.starts}
        self._started = []

    def put(self, p, g):
        """Take over a gradient of backward, together with `.grad` from before."""
        bucket = self._bucket_of.get(p)
        if bucket is None or len(p.post_hooks or ()) > 1:  # a hook may change `.grad`: later
            return
        part = bucket.part(p)
        part[...] = values(g)
        if p.grad is not None:
            part += values(p.grad.array)
        del bucket.waiting[p]
        for first in self._buckets[len(self._started) :]:
            if first.waiting:
                break
            self._start(first)
        self._engine.advance()

    def has(self, p):
        """Return whether the gradient of a parameter was taken over before the end."""
        return p in self._bucket_of and p not in self._bucket_of[p].waiting

    def put_rest(self, gradients):
        """Begin the sums that are left; gradients: {parameter: Variable}, else 0."""
        for bucket in self._buckets[len(self._started) :]:
            for p in bucket.waiting:
                if self._factor and p in gradients:
                    bucket.part(p)[...] = values(gradients[p].array)
            self._start(bucket)

    def _start(self, bucket):
        if self._factor != 1.0:
            bucket.data *= bucket.data.dtype.type(self._factor)
        self._started.append(self._engine.start_sum(bucket.data))

    def finish(self, head):
        """Wait for all sums; return {parameter: its sum, an ndarray}."""
        for one in self._started:
            self._engine.finish_sum(one, head)
        return {p: bucket.part(p) for p, bucket in self._bucket_of.items()}


def divided(parameters, bucket_bytes):
    """Return [(dtype to sum in, parameters)] of about bucket_bytes, the last parameters first."""
    buckets, open_ones = [], {}
    for p in reversed([*parameters]):
        wide = float32 if p.dtype.is_narrow else p.dtype
        bucket = open_ones.setdefault(wide, [])
        bucket.append(p)
        if sum(q.size for q in bucket) * wide.itemsize >= bucket_bytes:
            buckets.append((wide, open_ones.pop(wide)))
    return [*buckets, *open_ones.items()]


def from_sums(sums):
    """Return {parameter: a gradient for it}; sums: {parameter: ndarray}."""
    return {p: Variable(device_named(p.device).from_numpy(x, p.dtype)) for p, x in sums.items()}


@uninterrupted
def write(new):
    """Write {parameter: gradient} into `.grad`: all of them, or none."""
    copy([(p.grad, g) for p, g in new.items() if p.grad is not None])
    for p, g in new.items():
        if p.grad is None:
            p.grad = g
