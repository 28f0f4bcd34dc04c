"""The table of optimizers that tests take their cases from, with the formulas in plain NumPy.

A formula gets one parameter, its gradient, a dict for what it keeps, and hyperparameters.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import minigrad as mg


def sgd(p, g, s, rate, momentum=0.0, nesterov=False, weight_decay=0.0):
    g = g + weight_decay * p
    if momentum:
        s["v"] = momentum * s.get("v", 0.0) + g
        g = g + momentum * s["v"] if nesterov else s["v"]
    return p - rate * g


def adam(p, g, s, rate, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    return _adam(p, g + weight_decay * p, s, rate, betas, eps)


def adamw(p, g, s, rate, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
    return _adam(p - rate * weight_decay * p, g, s, rate, betas, eps)


def _adam(p, g, s, rate, betas, eps):
    t = s["t"] = s.get("t", 0) + 1
    s["m"] = betas[0] * s.get("m", 0.0) + (1 - betas[0]) * g
    s["v"] = betas[1] * s.get("v", 0.0) + (1 - betas[1]) * g * g
    mean, square = s["m"] / (1 - betas[0] ** t), s["v"] / (1 - betas[1] ** t)
    return p - rate * mean / (np.sqrt(square) + eps)


def rmsprop(
    p, g, s, rate, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False
):  # fmt: skip
    g = g + weight_decay * p
    square = s["q"] = alpha * s.get("q", 0.0) + (1 - alpha) * g * g
    if centered:
        s["a"] = alpha * s.get("a", 0.0) + (1 - alpha) * g
        square = np.maximum(square - s["a"] ** 2, 0.0)
    g = g / (np.sqrt(square) + eps)
    if momentum:
        s["b"] = g = momentum * s.get("b", 0.0) + g
    return p - rate * g


def adagrad(p, g, s, rate, rate_decay=0.0, weight_decay=0.0, eps=1e-10):
    g = g + weight_decay * p
    t = s["t"] = s.get("t", 0) + 1
    s["q"] = s.get("q", 0.0) + g * g
    return p - rate / (1 + (t - 1) * rate_decay) * g / (np.sqrt(s["q"]) + eps)


def lion(p, g, s, rate, betas=(0.9, 0.99), weight_decay=0.0):
    m = s.get("m", 0.0)
    s["m"] = betas[1] * m + (1 - betas[1]) * g
    return p * (1 - rate * weight_decay) - rate * np.sign(betas[0] * m + (1 - betas[0]) * g)


class Row(NamedTuple):
    """An optimizer of mg.optim, its formula, and hyperparameters besides the learning rate."""

    kind: str
    formula: Callable
    options: dict

    def __str__(self):
        return f"{self.kind}-{'-'.join(self.options) or 'plain'}"

    def make(self, parameters, learning_rate=0.01):
        """The optimizer, for a Module, Parameters or groups."""
        return getattr(mg.optim, self.kind)(parameters, learning_rate, **self.options)


CASES = [  # the last row of an optimizer has all that its formula has
    Row("SGD", sgd, {}),
    Row("SGD", sgd, {"weight_decay": 0.1}),
    Row("SGD", sgd, {"momentum": 0.9}),
    Row("SGD", sgd, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    Row("Adam", adam, {}),
    Row("Adam", adam, {"betas": (0.5, 0.9), "eps": 1e-3, "weight_decay": 0.1}),
    Row("AdamW", adamw, {}),
    Row("AdamW", adamw, {"betas": (0.8, 0.99), "weight_decay": 0.3}),
    Row("RMSprop", rmsprop, {}),
    Row("RMSprop", rmsprop, {"alpha": 0.9, "eps": 1e-4, "weight_decay": 0.1}),
    Row("RMSprop", rmsprop, {"momentum": 0.9}),
    Row("RMSprop", rmsprop, {"centered": True}),
    Row("RMSprop", rmsprop, {"centered": True, "momentum": 0.5, "weight_decay": 0.1, "eps": 1e-3}),
    Row("Adagrad", adagrad, {}),
    Row("Adagrad", adagrad, {"rate_decay": 0.1, "weight_decay": 0.1, "eps": 1e-3}),
    Row("Lion", lion, {}),
    Row("Lion", lion, {"betas": (0.5, 0.8), "weight_decay": 0.1}),
]
# For tests that take long: the last row of each, and SGD that keeps nothing.
FEW = {row.kind: row for row in CASES}
FEW |= {"momentum": FEW["SGD"], "SGD": CASES[0]}
