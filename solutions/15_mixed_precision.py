"""Lesson 15: numbers of two bytes, and what keeps a training alive in them.

float16 has 11 bits of precision. Its largest number is 65504, its smallest
normal one 2**-14; below that are the subnormal numbers, down to 2**-24,
which have fewer bits the smaller they are. NumPy rounds to the nearest:
`x.astype(np.float16)`. Python and NumPy are enough.
"""

import numpy as np


def sum_f16_acc32(x, axis):
    """Sum float16 numbers along an axis: add in float32, round once.

    Sums on the way may be larger than float16 allows; only the result is
    rounded to float16.

    Args:
        x: array of float16, all finite, with at least one axis. An axis may
            have length 0; the sum of nothing is 0.
        axis: int, the axis to sum over; -1 is the last one.

    Returns:
        float16: an array of x's shape without that axis (a number, if x has
        one axis only). It is inf or -inf where the sum is too large for
        float16.
    """
    ### BEGIN SOLUTION
    return x.sum(axis=axis, dtype=np.float32).astype(np.float16)
    ### END SOLUTION


def find_underflow(gradients, scale=1.0):
    """Count what float16 would do to gradients of a scaled loss.

    Each entry times scale, computed in float32, is rounded to float16.

    Args:
        gradients: dict, name -> array of float32, all finite, of any shape,
            such as () or (0, 3).
        scale: float, the factor on the loss.

    Returns:
        dict, name -> {"zero": n, "subnormal": n, "inf": n}, three ints:

            zero       entries that are not 0 here and become 0
            subnormal  entries that become a number whose size is above 0
                       and below 2**-14
            inf        entries that become inf or -inf
    """
    ### BEGIN SOLUTION
    counts = {}
    for name, g in gradients.items():
        half = (g * scale).astype(np.float16)
        size = np.abs(half)
        counts[name] = {
            "zero": np.sum((half == 0) & (g != 0)),
            "subnormal": np.sum((size > 0) & (size < 2**-14)),
            "inf": np.sum(np.isinf(half)),
        }
    return counts
    ### END SOLUTION


class GradScaler:
    """Scales a loss, and learns how large the scale may be.

    This is how one iteration of a training uses it:

        scaler.scale(loss)          once for each loss; then the backward
                                    pass of the result
        scaler.unscale_(optimizer)  only if gradients are looked at, such as
                                    for clipping; once for each optimizer
        scaler.step(optimizer)      once for each optimizer
        scaler.update()             ends the iteration

    An optimizer has `parameters`, a list of Parameters, and `step()`. A
    Parameter has `grad`, an array of float32 or float64, or None.

    Args:
        init_scale: float, the scale at first.
        growth_factor: float above 1.
        backoff_factor: float between 0 and 1.
        growth_interval: int, 1 or more.

    Attributes:
        factor: float, the scale now.
        growth_tracker: int, how many iterations in a row were good, since
            the scale last changed.
        found: dict, optimizer -> whether one of its gradients is inf, -inf
            or nan; of the optimizers whose gradients were unscaled in this
            iteration. Empty when an iteration begins.
    """

    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
    ):
        self.factor = init_scale
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.growth_tracker = 0
        self.found = {}

    def get_scale(self):
        """Return the scale."""
        return self.factor

    def scale(self, loss):
        """Return the loss times the scale.

        The loss is a number or a Variable, and stays as it is.
        """
        ### BEGIN SOLUTION
        return loss * self.factor
        ### END SOLUTION

    def unscale_(self, optimizer):
        """Divide the optimizer's gradients by the scale, in place.

        The numbers are written *into* the arrays p.grad. A gradient that is
        None stays None. Whether an entry is inf, -inf or nan is kept in
        `found`. Returns None.

        Raises:
            RuntimeError: this scaler unscaled the optimizer's gradients
                already in this iteration. They stay as they are then.
        """
        ### BEGIN SOLUTION
        if optimizer in self.found:
            raise RuntimeError("these gradients are unscaled already")
        self.found[optimizer] = False
        for p in optimizer.parameters:
            if p.grad is not None:
                p.grad /= self.factor
                if not np.isfinite(p.grad).all():
                    self.found[optimizer] = True
        ### END SOLUTION

    def step(self, optimizer):
        """Make the optimizer's step, if all its gradients are finite.

        If unscale_ was not called for this optimizer in this iteration, do
        that first. Then call optimizer.step(), once, or leave it out if one
        of its gradients was inf, -inf or nan when they were unscaled.
        (Clipping may have hidden that since.) Returns None.
        """
        ### BEGIN SOLUTION
        if optimizer not in self.found:
            self.unscale_(optimizer)
        if not self.found[optimizer]:
            optimizer.step()
        ### END SOLUTION

    def update(self):
        """End the iteration: lower the scale, raise it, or keep it.

        If an optimizer had a gradient that was not finite: multiply the
        scale by backoff_factor (once, for however many), and growth_tracker
        is 0. Otherwise the iteration was good and counts: when
        growth_interval good ones in a row are reached, multiply the scale
        by growth_factor, and growth_tracker is 0 again. In both cases
        `found` is empty afterwards. Returns None.
        """
        ### BEGIN SOLUTION
        if any(self.found.values()):
            self.factor *= self.backoff_factor
            self.growth_tracker = 0
        else:
            self.growth_tracker += 1
            if self.growth_tracker == self.growth_interval:
                self.factor *= self.growth_factor
                self.growth_tracker = 0
        self.found = {}
        ### END SOLUTION


def master_step(half, gradient, state, learning_rate):
    """One step of SGD for a float16 parameter, with a float32 master copy.

        master = master - learning_rate * gradient      in float32
        half   = master, rounded to float16

    Before the first step the master copy is the parameter in float32. If
    somebody has written to the parameter since the last step (loaded it, or
    clipped it), that counts: an entry of half that is not what its master
    rounds to is the new value of its master, before the step.

    Args:
        half: array of float16, of any shape, such as () or (0, 3): the
            parameter. Write the new values *into* it.
        gradient: array of float32 of half's shape; leave it as it is.
        state: dict, {} before the first step. Keep the master copy, an
            array of float32, in state["master"]. You may keep more there.
        learning_rate: float.

    Returns:
        None: all results are in half and state.
    """
    ### BEGIN SOLUTION
    if "master" not in state:
        state["master"] = half.astype(np.float32)
    master = state["master"]
    is_written = master.astype(np.float16) != half
    master[is_written] = half[is_written]
    master -= learning_rate * gradient
    half[...] = master
    ### END SOLUTION


# --- Bug hunt -------------------------------------------------------------
# A training step in float16, in six stages. Its gradients are scaled,
# clipped to a norm, checked, and used. It trains without an error and
# without a nan, and it never diverges. It only learns very slowly: the same
# training in float32 is hundreds of times as fast. Each stage does what its
# docstring says, and one of them is called too early. Write its place in
# STAGES (0 to 5) into BUG, then repair the training.

### BEGIN SOLUTION
BUG = ("stage", 1)
### STARTS AS
# BUG = ("stage", None)
### END SOLUTION


def backward(s):
    """The backward pass of the scaled loss, in float16: s['g'].

    s['slope'] is what a backward pass in float32, of the loss itself, would
    give.
    """
    half = (s["slope"] * np.float32(s["scale"])).astype(np.float16)
    s["g"] = half.astype(np.float32)


def clip(s):
    """Shorten s['g'] to the norm s['max_norm'], if it is longer."""
    norm = float(np.sqrt(np.sum(s["g"].astype(np.float64) ** 2)))
    if norm > s["max_norm"]:
        s["g"] = s["g"] * np.float32(s["max_norm"] / norm)


def unscale(s):
    """Divide s['g'] by the scale."""
    s["g"] = s["g"] / np.float32(s["scale"])


def look(s):
    """Set s['is_finite']: whether all entries of s['g'] are finite."""
    s["is_finite"] = bool(np.isfinite(s["g"]).all())


def move(s):
    """Make a step of SGD, but none if a gradient is not finite."""
    if s["is_finite"]:
        s["w"] = s["w"] - np.float32(s["learning_rate"]) * s["g"]


def adapt(s):
    """Halve the scale if a gradient is not finite."""
    if not s["is_finite"]:
        s["scale"] = s["scale"] / 2


### BEGIN SOLUTION
STAGES = [backward, unscale, clip, look, move, adapt]
### STARTS AS
# STAGES = [backward, clip, unscale, look, move, adapt]
### END SOLUTION


def train_clipped(w, slopes, scale, max_norm=1.0, learning_rate=0.1):
    """Make one training step for each of the slopes.

    A step is that of a training in float32 with clipped gradients, up to
    the rounding of gradients to float16. Where a scaled gradient is too
    large for float16, the step is left out, and the scale is halved.

    Args:
        w: array (n,) of float32, the weights at first; stays as it is.
        slopes: array (steps, n) of float32: for each step the gradient of
            the loss.
        scale: float, the factor on the loss at first.
        max_norm: float, the greatest norm of a gradient.
        learning_rate: float.

    Returns:
        array (steps, n) of float32: the weights after each step.
    """
    s = {"w": w, "scale": scale, "max_norm": max_norm}
    s["learning_rate"] = learning_rate
    path = []
    with np.errstate(all="ignore"):
        for slope in slopes:
            s["slope"] = slope
            for stage in STAGES:
                stage(s)
            path.append(s["w"].copy())
    return np.array(path)
