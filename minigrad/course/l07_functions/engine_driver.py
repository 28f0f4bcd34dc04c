"""Calls the learner's Functions in the engine, in their process, for the checks of lesson 07.

Every function returns plain data; the engine's complaints about a Function are data too.
"""

import linecache
import traceback
import warnings
from typing import Any

import minigrad

mg: Any = minigrad  # its names appear on first use
gradcheck = mg.debug.gradcheck  # taken before the learner's file, which could replace it


def not_static(mine, name=None):
    """Return the report of `told` on a Function whose methods are not static, None if they are."""
    function = getattr(mine, name, None) if isinstance(name, str) else None
    for part in ("forward", "backward"):
        method = vars(function).get(part) if isinstance(function, type) else None
        if method is not None and not isinstance(method, staticmethod):
            text = f"{name}.{part} is no static method: its ctx would be the object"
            return {"raised": "TypeError", "text": text, "got": "", "fix": "", "line": None}
    return None


def told(work):
    """Decorate a driver to return the engine's errors as {"raised", "text", "fix", "line"}."""

    def run(mine, *arguments):
        if (refused := not_static(mine, *arguments[:1])) is not None:
            return refused
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return work(mine, *arguments)
            except mg.errors.MinigradError as error:
                lines = [line.strip() for line in str(error).splitlines()]
                parts = {}
                for line in lines[1:]:
                    label, _, text = line.partition(": ")
                    parts[label] = text
                path = str(getattr(mine, "__file__", ""))
                own = [
                    (line, linecache.getline(path, line).strip())
                    for frame, line in traceback.walk_tb(error.__traceback__)
                    if frame.f_code.co_filename == path
                ]
                return {
                    "raised": type(error).__name__,
                    "text": lines[0],
                    "got": parts.get("got", ""),
                    "fix": parts.get("try", ""),
                    "line": list(own[-1]) if own else None,
                }

    return run


def plain(value):
    """Return a Variable's values as an array; anything else unchanged."""
    return value.numpy().copy() if isinstance(value, mg.Variable) else value


def leaf(values):
    """Return a Variable that requires gradients."""
    return mg.variable(values, requires_grad=True)


def with_gradient(values):
    """Return a leaf that already has a gradient: 2 for each entry."""
    x = leaf(values)
    (x * 2.0).sum().backward()
    return x


DECLARED: dict = {}  # what classes declared before their first use


def declared(mine, name):
    """Return a class's pseudo_gradient from before its first call."""
    function = getattr(mine, name)
    return DECLARED.setdefault(function, getattr(function, "pseudo_gradient", None))


@told
def first(mine, name, x, numbers, dy):
    """Run a Function and go backward once."""
    declared(mine, name)
    x = leaf(x)
    y = getattr(mine, name).apply(x, *numbers)
    if y.shape != dy.shape or y.dtype != x.dtype:
        return {"y": plain(y), "dx": None, "x": plain(x)}
    [dx] = mg.gradients([y], [x], dy=[mg.variable(dy)])
    return {"y": plain(y), "dx": plain(dx), "x": plain(x)}


@told
def second(mine, name, x, numbers, dy, v):
    """Differentiate sum(dx * v) by x and by dy, None where it does not depend on it."""
    x, dy = leaf(x), leaf(dy)
    y = getattr(mine, name).apply(x, *numbers)
    [dx] = mg.gradients([y], [x], dy=[dy], create_graph=True)
    if dx is None or not dx.requires_grad:
        return {"dx": plain(dx), "by_x": None, "by_dy": None}
    by_x, by_dy = mg.gradients((dx * mg.variable(v)).sum(), [x, dy])
    return {"dx": plain(dx), "by_x": plain(by_x), "by_dy": plain(by_dy)}


@told
def two_calls(mine, name, calls, dy, order):
    """Call a Function with [x, numbers] twice, then go backward in an order such as [2, 1].

    Return the gradient of each, and the first call's result before and after the second call.
    """
    function, xs, gradients = getattr(mine, name), [leaf(x) for x, _ in calls], {}
    ys = [function.apply(xs[0], *calls[0][1])]
    first = ys[0].numpy().copy()
    ys.append(function.apply(xs[1], *calls[1][1]))
    later = ys[0].numpy().copy()
    for which in order:
        gradients[which] = plain(mg.gradients(ys[which - 1], xs[which - 1], mg.variable(dy)))
    return [gradients[1], gradients[2], first, later]


@told
def declaration(mine, name, x):
    """Return pseudo_gradient before and after a call, and whether gradcheck passes."""
    function = getattr(mine, name)
    report = {"pseudo_gradient": declared(mine, name), "gradcheck": True}
    try:
        gradcheck(function.apply, [leaf(x)])
    except mg.errors.GradcheckError:
        report["gradcheck"] = False
    return {**report, "later": getattr(function, "pseudo_gradient", None)}


MOST_SEEN = 8  # how many of the points of f's calls are returned


class Probe(mg.Function):
    """The identity; counts its backward passes."""

    @staticmethod
    def forward(ctx, x, counts):
        ctx.counts = counts
        return x + 0.0

    @staticmethod
    def backward(ctx, dy):
        ctx.counts["backward"] += 1
        return dy * 1.0, None


def scalar_function(kind, w):
    """Return f(x), a function with a result of one element; the check writes it out."""
    return {
        "cubes": lambda x: (w[0] * x**3.0).sum(),
        "one_row": lambda x: (w[0] * x**3.0).sum().reshape(1),
        "quadratic": lambda x: (x * (w[0] @ x)).sum() * 0.5,
        "sine": lambda x: mg.sin((w[0] * x).sum()),
        "linear": lambda x: (w[0] * x).sum(),
        "network": lambda x: (mg.tanh(w[0] @ x) ** 2.0 * w[1]).sum(),
    }[kind]


@told
def product(mine, kind, weights, x, v, requires_grad):
    """Call hvp; report what it did to x, and how often f was called and went backward.

    Without a v, pass x for v as well.
    """
    f = scalar_function(kind, [mg.variable(one) for one in weights])
    counts, seen = {"forward": 0, "backward": 0}, []
    given = with_gradient(x) if requires_grad else mg.variable(x)

    def counted(x):
        counts["forward"] += 1
        seen.append(x.detach())
        return f(Probe.apply(x, counts))

    hv = mine.hvp(counted, given, given if v is None else mg.variable(v))
    return {
        "found": plain(hv),
        "type": type(hv).__name__,
        "counts": counts,
        "seen": [plain(one) for one in seen[:MOST_SEEN]],
        "x": plain(given),
        "grad": plain(given.grad),
        "requires_grad": given.requires_grad,
    }


@told
def product_beside_weights(mine, kind, w, x, v):
    """Call hvp for an f whose weights require gradients and already have one."""
    weights = with_gradient(w)
    before = plain(weights.grad)
    hv = mine.hvp(scalar_function(kind, [weights]), mg.variable(x), mg.variable(v))
    return {"found": plain(hv), "before": before, "after": plain(weights.grad)}


def score(kind, weights, x):
    """Return the critic's scores, one per row."""
    inner, outer = weights
    hidden = {"tanh": mg.tanh, "relu": mg.relu}[kind](x @ inner)
    return hidden @ outer


@told
def penalty(mine, kind, inner, outer, x, requires_grad):
    """Call gradient_penalty, go backward from it, and return every gradient."""
    weights = leaf(inner), leaf(outer)
    given = with_gradient(x) if requires_grad else mg.variable(x)
    result = mine.gradient_penalty(lambda x: score(kind, weights, x), given)
    if not isinstance(result, mg.Variable) or result.size != 1:
        return {"penalty": plain(result), "type": type(result).__name__}
    early = [plain(one.grad) for one in (*weights, given)]
    if result.requires_grad:
        result.backward()
    return {
        "penalty": float(result.item()),
        "type": "one Variable",
        "recorded": result.requires_grad,
        "early": early,
        "gradients": [plain(one.grad) for one in weights],
        "x": plain(given),
        "grad": plain(given.grad),
        "requires_grad": given.requires_grad,
    }


@told
def deep_gradient(mine, x, dy):
    """Call deep_gradient."""
    return plain(mine.deep_gradient(mg.variable(x), mg.variable(dy)))


@told
def value(mine, name, x, numbers):
    """Return the result of one of the five operations."""
    return plain(getattr(mine, name).apply(mg.variable(x), *numbers))


@told
def alone(mine, name, x, numbers, dy):
    """Go backward through one of the five operations."""
    x = leaf(x)
    return plain(mg.gradients(getattr(mine, name).apply(x, *numbers), x, mg.variable(dy)))
