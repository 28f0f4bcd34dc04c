"""A learner's GradScaler under the engine's: it decides, the engine's checks the order of calls.

The learner's object sees plain Optimizers, whose Parameters have gradients and nothing else.
"""

import weakref

from minigrad.course.objects import Optimizer, Parameter
from minigrad.course.seam_parts import Adapter, Part

SCALER_METHODS = ("scale", "unscale_", "step", "update", "get_scale")
SAME = 1e-6  # relative; the engine keeps the scale in float32


class _Mine:
    """A learner's object for one GradScaler of the engine.

    is_open: whether it has unscaled gradients since its last update. numbers: the scale and the
    tracker at that time. optimizers: the plain object for each optimizer of the engine.
    """

    def __init__(self, part, saved):
        keys = ("scale", "growth_factor", "backoff_factor", "growth_interval")
        self.scaler = part(*(saved[key] for key in keys))
        self.scaler.growth_tracker = saved["growth_tracker"]
        self.is_open, self.numbers = False, (saved["scale"], saved["growth_tracker"])
        self.optimizers = weakref.WeakKeyDictionary()

    def continues(self, saved):
        """Return whether the engine's numbers are those of the last update."""
        scale, tracker = self.numbers
        is_near = abs(saved["scale"] - scale) <= SAME * scale
        return not self.is_open and is_near and saved["growth_tracker"] == tracker


class LearnersScaler(Adapter):
    """grad_scaler=GradScaler: a class with the methods of `mg.optim.GradScaler`."""

    def __init__(self, part):
        super().__init__(part)
        self.made = weakref.WeakKeyDictionary()  # {scaler of the engine: _Mine}

    def _call(self, mine, method, *args):
        return Part(f"grad_scaler ({method})", getattr(mine.scaler, method))(*args)

    def _of(self, scaler):
        if scaler not in self.made:
            self.made[scaler] = _Mine(self.part, scaler.state_dict())
        return self.made[scaler]

    def _positive(self, value, what):
        number = float(self.part.checked(value, (), what))
        if not 0.0 < number < float("inf"):
            self.part.refuse(f"a positive number for {what}", f"{number}")
        return number

    def scale(self, scaler, is_first):
        """Return the factor for a loss."""
        mine = self._of(scaler)
        if is_first and not mine.continues(scaler.state_dict()):  # set by somebody else since
            del self.made[scaler]
            mine = self._of(scaler)
        return self._positive(self._call(mine, "scale", 1.0), "scale(1.0)")

    def unscale_(self, scaler, optimizer, gradients):
        """Divide the gradients, in place."""
        mine = self._of(scaler)
        mine.is_open = True
        plain = mine.optimizers.setdefault(optimizer, Optimizer([]))
        plain.parameters[:] = [Parameter(None, g) for g in gradients]
        self._call(mine, "unscale_", plain)
        for p, g in zip(plain.parameters, gradients, strict=True):
            g[...] = self.part.checked(p.grad, g.shape, "the gradient after unscale_")

    def step(self, scaler, optimizer, step):
        """Make the optimizer's step, once or not at all."""
        mine, calls = self._of(scaler), []

        def once():
            calls.append(1)
            if len(calls) > 1:
                self.part.refuse("one call of optimizer.step(), or none", "a second one")
            step()

        plain = mine.optimizers[optimizer]
        plain.update = once
        self._call(mine, "step", plain)

    def update(self, scaler):
        """Return the scale and the tracker for the next iteration."""
        mine = self._of(scaler)
        self._call(mine, "update")
        scale = self._positive(self._call(mine, "get_scale"), "get_scale()")
        tracker = self.part.checked(
            getattr(mine.scaler, "growth_tracker", None), (), "growth_tracker"
        )
        if tracker != int(tracker) or tracker < 0:
            self.part.refuse("a count for growth_tracker", f"{tracker}")
        mine.is_open, mine.numbers = False, (scale, int(tracker))
        return mine.numbers
