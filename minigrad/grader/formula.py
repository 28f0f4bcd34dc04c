"""Makes functions that can be sent: a formula in x as text, callable on both sides of the pipe."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

NAMES = {
    name: getattr(np, name) for name in ("exp", "log", "sin", "cos", "tanh", "sqrt", "cosh", "sinh")
}
MAX_RECORDED_CALLS = 64


class Formula:
    """A scalar formula in `x`, such as `"sin(2.5*x) + x**2"`, that records where it is evaluated.

    Works elementwise and keeps the dtype of its argument. `str(formula)` is the text. The text is
    evaluated as Python, so it must come from a check, never from a learner.

    >>> f = Formula("3*x**2")
    >>> float(f(2.0)), [float(x) for x in f.evaluated_at]
    (12.0, [2.0])
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.n_calls = 0
        self.evaluated_at: list[np.ndarray] = []
        self._function: Callable = eval(f"lambda x: {text}", {"__builtins__": {}, **NAMES})

    def __call__(self, x):
        """Return the value at x; x may be a number or an array."""
        self.n_calls += 1
        if len(self.evaluated_at) < MAX_RECORDED_CALLS:
            self.evaluated_at.append(np.array(x))
        return self.value(x)

    def value(self, x):
        """Return the value at x without recording it; nan and inf raise no warning."""
        with np.errstate(all="ignore"):
            return self._function(x)

    def forget(self) -> None:
        """Drop the text in the learner's process, where it would be the answer.

        The numbers remain in the compiled code, as in any function's.
        """
        self.text = "…"

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Formula({self.text!r})"
