"""Optimizers over NumPy arrays in place, for peers that bring none that works in place."""

import numpy as np


class Adam:
    """Adam with the usual settings.

    Args:
        values: the parameters, arrays that `step` changes in place.
    """

    def __init__(self, values):
        self.values = values
        self.start = [v.copy() for v in values]
        self.m = [np.zeros_like(v) for v in values]
        self.v = [np.zeros_like(v) for v in values]
        self.work = [np.empty_like(v) for v in values]
        self.steps = 0

    def reset(self):
        """Back to the initial values."""
        for value, start in zip(self.values, self.start, strict=True):
            value[...] = start
        for moment in (*self.m, *self.v):
            moment[...] = 0
        self.steps = 0

    def step(self, gradients):
        """One step, without a new array."""
        self.steps += 1
        first, second = 1 - 0.9**self.steps, 1 - 0.999**self.steps
        root = second**0.5
        groups = zip(self.values, self.m, self.v, self.work, gradients, strict=True)
        for p, m, v, work, g in groups:
            np.multiply(g, 0.1, out=work)
            m *= 0.9
            m += work
            np.multiply(g, g, out=work)
            work *= 0.001
            v *= 0.999
            v += work
            np.sqrt(v, out=work)
            work /= root
            work += 1e-8
            np.divide(m, work, out=work)
            work *= 1e-3 / first
            p -= work


class SGD:
    """Gradient descent without momentum; `values` as for Adam."""

    def __init__(self, values):
        self.values = values
        self.start = [v.copy() for v in values]

    def reset(self):
        """Back to the initial values."""
        for value, start in zip(self.values, self.start, strict=True):
            value[...] = start

    def step(self, gradients):
        """One step."""
        for p, g in zip(self.values, gradients, strict=True):
            p -= np.float32(0.1) * g
