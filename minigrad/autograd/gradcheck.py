"""Compares gradients with differences along random directions. A failure shows a table of entries.

Each try has a random direction v and a random upstream gradient u, in float64. <u, J v> from the
backward pass must equal <u, f(x + e v) - f(x - e v)> / 2e. A wrong J passes with probability 0.
"""

import numpy as np

from minigrad.arguments import function, number, shown, whole
from minigrad.devices.backend import values as values_of
from minigrad.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    GradcheckError,
    GradientError,
)
from minigrad.hints import teaching
from minigrad.ops.creation import variable
from minigrad.ops.operands import from_data
from minigrad.tape.backward import gradients as backward_gradients
from minigrad.tape.modes import enable_grad
from minigrad.tape.variable import Variable

EPSILON = 1e-6
MOST = 1_000_000  # directions
MOST_ENTRIES = 512  # entries to check for the table; of more, random ones
MOST_ROWS = 8  # rows of the table


@teaching
def gradcheck(f, inputs, *, eps=EPSILON, rtol=1e-6, atol=1e-9, directions=3, seed=0):
    """Compares f's gradients with central differences; returns True or raises GradcheckError.

    Args:
        f: takes the inputs, returns a Variable or several. It is called about ten times.
        inputs: a Variable or a sequence of arguments. Those that require gradients are checked and
            must be float64: in float32, rounding alone exceeds the tolerance.
        eps: the step of the differences.
        rtol, atol: the relative and absolute tolerance, to which the rounding error of f is added.
        directions: the number of random directions to try.
        seed: the seed of the directions and upstream gradients.

    Raises:
        GradcheckError: the gradients differ (the message has a table of the worst entries), or x is
            within eps of a non-smooth point, or two calls of f give different results.

    >>> import minigrad as mg
    >>> x = mg.variable([0.3, -2.0], dtype="float64", requires_grad=True)
    >>> mg.debug.gradcheck(mg.tanh, [x])
    True
    """
    inputs = _arguments("gradcheck", inputs)
    return _Check("gradcheck", f, inputs, eps, rtol, atol, directions, seed).run()


@teaching
def gradgradcheck(
    f, inputs, dy=None, *, eps=EPSILON, rtol=1e-6, atol=1e-9, directions=3, seed=0
):  # fmt: skip
    """Like `gradcheck`, for second derivatives: checks the gradient function of f.

    It checks the gradient as a function of the inputs and of the upstream gradients. It also
    compares the gradient's values with those without create_graph.

    Args:
        dy: upstream gradients at which to check, one per output; random by default.
    """
    inputs = _arguments("gradgradcheck", inputs)
    check = _Check("gradgradcheck", f, inputs, eps, rtol, atol, directions, seed)
    outputs = check.outputs(check.values)
    if dy is None:
        dys = [np.asarray(check.random.standard_normal(y.shape)) for y in outputs]
    else:
        given = dy if isinstance(dy, (list, tuple)) else [dy]
        dys = [
            values_of(d.array) if isinstance(d, Variable) else from_data("gradgradcheck", d)[0]
            for d in given
        ]
    if len(dys) != len(outputs):
        raise ArgumentError(f"gradgradcheck: wanted {len(outputs)} for dy", f"{len(dys)}")

    def gradient(*args):
        xs, us = args[: len(inputs)], args[len(inputs) :]
        ys = [y for y in _several(f(*xs)) if y.dtype.is_float]
        wanted = [xs[k] for k in check.which]
        pairs = [(y, u) for y, u in zip(ys, us, strict=True) if y.requires_grad]
        grads = backward_gradients(
            [y for y, _ in pairs], [u for _, u in pairs], create_graph=True, only=set(wanted)
        )
        return tuple(grads[x] for x in wanted if x in grads)

    pairs = list(zip(dys, outputs, strict=True))
    dys = [variable(d, "float64", y.device, requires_grad=True) for d, y in pairs]
    _same_values(check, gradient, dys)
    second = _Check("gradgradcheck", gradient, [*inputs, *dys], eps, rtol, atol, directions, seed)
    second.labels[len(inputs) :] = [f"dy {k}" for k in range(len(dys))]
    return second.run()


def _same_values(check, gradient, dys):
    """Raises unless gradients with a graph equal those without a graph, which training uses."""
    plain = check.analytic([values_of(d.array) for d in dys])
    args = list(check.inputs)
    for k, v in zip(check.which, check.values, strict=True):
        args[k] = variable(v, device=check.inputs[k].device, requires_grad=True)
    recorded = gradient(*args, *(d.detach() for d in dys))
    reached = [g for g in plain if np.any(g)] if len(recorded) != len(plain) else plain
    for k, (a, b) in enumerate(zip(reached, recorded, strict=False)):
        b = values_of(b.array)
        if not np.allclose(a, b, rtol=1e-9, atol=1e-12 * np.max(np.abs(a), initial=1.0)):
            raise GradcheckError(
                f"gradgradcheck: with create_graph=True the gradient of input {check.which[k]} "
                "is different",
                f"{b.reshape(-1)[:4]}, without it {a.reshape(-1)[:4]}",
                "backward must not depend on whether a graph is built",
            )


def _arguments(name, inputs):
    inputs = [inputs] if isinstance(inputs, Variable) else inputs
    if not isinstance(inputs, (list, tuple)):
        raise ArgumentTypeError(
            f"{name}: wanted a Variable or a sequence for inputs", type(inputs).__name__
        )
    return list(inputs)


def _norm(x):
    """Returns the Euclidean norm of an array, without overflow for large entries."""
    largest = float(np.max(np.abs(x), initial=0.0))
    if not 0.0 < largest < np.inf:
        return largest
    return largest * float(np.sqrt(np.sum((x / largest) ** 2)))


def _several(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


class _Check:
    """One function at one point."""

    def __init__(self, name, f, inputs, eps, rtol, atol, directions, seed):
        self.name, self.f, self.inputs = name, function(name, "f", f), inputs
        self.eps = number(name, "eps", eps, above=0.0)
        self.rtol, self.atol = number(name, "rtol", rtol, 0.0), number(name, "atol", atol, 0.0)
        self.directions = whole(name, "directions", directions, 1)
        if self.directions > MOST:
            raise ArgumentError(
                f"{name}: wanted at most {MOST:,} directions, each of which evaluates f twice",
                shown(self.directions),
                "the default of 3 finds nearly all errors",
            )
        self.random = np.random.default_rng(whole(name, "seed", seed, 0))
        self.labels = [f"input {k}" for k in range(len(inputs))]
        self.which = [
            k for k, x in enumerate(inputs) if isinstance(x, Variable) and x.requires_grad
        ]
        if not self.which:
            raise GradientError(
                f"{name}: wanted an input that requires gradients",
                "none does",
                "make it with mg.variable(..., dtype='float64', requires_grad=True)",
            )
        for k in self.which:
            if inputs[k].dtype.name != "float64":
                raise DTypeError(
                    f"{name}: wanted float64 inputs",
                    f"input {k} is {inputs[k].describe()}",
                    "differences of float32 results are good to 3 digits at best: make the inputs "
                    "(and the parameters inside f) float64 with x.to('float64')",
                )
        self.values = [values_of(inputs[k].array).copy() for k in self.which]

    def outputs(self, values):
        """Returns f's floating point results at these values, recorded."""
        args = list(self.inputs)
        self.leaves = []
        for k, v in zip(self.which, values, strict=True):
            args[k] = variable(v, device=self.inputs[k].device, requires_grad=True)
            self.leaves.append(args[k])
        with enable_grad():
            results = _several(self.f(*args))
        for y in results:
            if not isinstance(y, Variable):
                raise ArgumentTypeError(
                    f"{self.name}: wanted f to return Variables", type(y).__name__
                )
        return [y for y in results if y.dtype.is_float]

    def at(self, values):
        """Returns f's results as NumPy arrays."""
        return [values_of(y.array).copy() for y in self.outputs(values)]

    def analytic(self, upstream):
        """Returns the gradients of sum <u, f> at the point, zeros for missing ones."""
        ys = self.outputs(self.values)
        pairs = [(y, u) for y, u in zip(ys, upstream, strict=True) if y.requires_grad]
        if not pairs:
            raise GradientError(
                f"{self.name}: f's result does not depend on the inputs that require gradients",
                fix="use the arguments that f is called with, not variables from outside",
            )
        dys = [variable(u, dtype=y.dtype, device=y.device) for y, u in pairs]
        # without targets, as in training, so that the pass takes the fast path
        grads = backward_gradients([y for y, _ in pairs], dys)
        return [
            values_of(grads[x]).copy() if x in grads else np.zeros(x.shape) for x in self.leaves
        ]

    def along(self, steps, upstream, eps=None):
        """Returns (right slope, left slope, central slope, rounding error) of <u, f>."""
        eps = eps or self.eps
        right = [x + eps * s for x, s in zip(self.values, steps, strict=True)]
        left = [x - eps * s for x, s in zip(self.values, steps, strict=True)]
        plus, here, minus = (self.at(v) for v in (right, self.values, left))
        slopes, noise = [0.0, 0.0, 0.0], 0.0
        for u, a, b, c in zip(upstream, plus, here, minus, strict=True):
            slopes[0] += float(np.sum(u * (a - b))) / eps
            slopes[1] += float(np.sum(u * (b - c))) / eps
            slopes[2] += float(np.sum(u * (a - c))) / (2 * eps)
            resolution = np.finfo(b.dtype).eps
            noise += _norm(u * b) * resolution / eps
        return (*slopes, noise)

    def run(self):
        """Checks every direction. Raises at the first difference."""
        with np.errstate(over="ignore", invalid="ignore"):  # the report shows these values
            return self._run()

    def _run(self):
        self._deterministic()
        shapes = [y.shape for y in self.outputs(self.values)]
        for _ in range(self.directions):
            upstream = [np.asarray(self.random.standard_normal(s)) for s in shapes]
            steps = [self._step(x) for x in self.values]
            gradients = self.analytic(upstream)
            expected = sum(float(np.sum(g * s)) for g, s in zip(gradients, steps, strict=True))
            right, left, slope, noise = self.along(steps, upstream)
            sizes = sum(_norm(g * s) for g, s in zip(gradients, steps, strict=True))
            allowed = self.atol + self.rtol * max(sizes, abs(slope)) + 10 * noise
            bends = self._is_kink(right, left, noise, sizes, steps, upstream)
            # the tolerance must be finite, because inf <= inf holds
            if bends or not abs(expected - slope) <= allowed < np.inf:
                self._fail(upstream, gradients, expected, slope)
        return True

    def _is_kink(self, right, left, noise, size, steps, upstream):
        """Returns whether the slope jumps at the point instead of changing smoothly."""
        jump = abs(right - left)
        if not jump > 1e-5 * max(abs(right), abs(left), size) + 40 * noise:
            return False
        wide_right, wide_left, *_ = self.along(steps, upstream, 100 * self.eps)
        # the effect of curvature grows with the step, that of a jump does not
        return abs(wide_right - wide_left) < 30 * jump

    def _step(self, x):
        """Returns a random direction d with x + eps d and x - eps d exact in floating point."""
        step = self.random.standard_normal(x.shape)
        return ((x + self.eps * step) - x) / self.eps

    def _deterministic(self):
        first, second = self.at(self.values), self.at(self.values)
        for k, (a, b) in enumerate(zip(first, second, strict=True)):
            if not np.isfinite(a).all():
                place = tuple(int(i) for i in np.argwhere(~np.isfinite(a))[0])
                raise GradcheckError(
                    f"{self.name}: f is not finite here, where differences mean nothing",
                    f"output {k} {list(place)} = {a[place]}",
                    "choose inputs at which f is finite, or leave such entries out of its result",
                )
            scale = np.max(np.abs(a), initial=1.0)
            if a.shape != b.shape or not np.all(np.abs(a - b) <= 1e-12 * scale):
                raise GradcheckError(
                    f"{self.name}: f is not deterministic: two calls gave different results",
                    f"output {k} differs",
                    "switch dropout off (model.eval()), or seed the generator inside f",
                )

    def _fail(self, upstream, gradients, expected, slope):
        """Raises the error: with a table, or about a kink that explains the difference."""
        rows, kinks = self._entries(upstream, gradients)
        if kinks:
            k, index, value = kinks[0]
            raise GradcheckError(
                f"{self.name}: x is within eps of a non-smooth point, where differences mislead",
                f"{self.labels[k]} at {list(index)} = {value:.6g}: the slopes to the left and to "
                f"the right differ (eps = {self.eps:g})",
                "move the inputs away from kinks (relu and abs at 0, ties in max)",
            )
        rows.sort(key=lambda row: -np.nan_to_num(row[-1], nan=np.inf))
        lines = [f"{'entry':<24}{'backward':>14}{'difference':>14}{'error':>12}"]
        for k, index, g, d, error in rows[:MOST_ROWS]:
            lines.append(
                f"{f'{self.labels[k]} {list(index)}':<24}{g:>14.6g}{d:>14.6g}{error:>12.2g}"
            )
        raise GradcheckError(
            f"{self.name}: the gradient is not that of the function",
            f"{expected:.10g} along a random direction, wanted {slope:.10g}",
            "look at the backward of the entries above",
            details=[("worst", "\n    ".join(lines))],
        )

    def _entries(self, upstream, gradients):
        """Returns (input, index, gradient, difference, error) of each entry, and those at kinks."""
        places = [(n, i) for n, x in enumerate(self.values) for i in np.ndindex(x.shape)]
        if len(places) > MOST_ENTRIES:
            chosen = self.random.choice(len(places), MOST_ENTRIES, replace=False)
            places = [places[c] for c in chosen]
        rows, kinks = [], []
        for n, index in places:
            steps = [np.zeros(x.shape) for x in self.values]
            steps[n][index] = 1.0
            right, left, slope, noise = self.along(steps, upstream)
            g = float(gradients[n][index])
            error = abs(g - slope)
            rows.append((self.which[n], index, g, slope, error))
            if self._is_kink(right, left, noise, abs(g), steps, upstream):
                kinks.append((self.which[n], index, float(self.values[n][index])))
        return rows, kinks
