"""Central differences along random directions: an oracle that knows nothing of gradients."""

import numpy as np

import minigrad as mg

STEP = 1e-5


def leaves(arrays, needs):
    """Variables of float64 or int arrays; those that need gradients require them."""
    return [mg.variable(a, requires_grad=n) for a, n in zip(arrays, needs, strict=True)]


def directions(rng, arrays, needs):
    """A random direction of size 1 per input that needs a gradient, None for the others."""
    found = []
    for a, n in zip(arrays, needs, strict=True):
        v = rng.standard_normal(a.shape)
        found.append(v / max(1e-300, np.sqrt((v * v).sum())) if n else None)
    return found


def moved(arrays, direction, step):
    """The inputs, a step along a direction."""
    pairs = zip(arrays, direction, strict=True)
    return [a if v is None else a + step * v for a, v in pairs]


def inner(xs, ys):
    """The sum of products of two lists of arrays."""
    return sum(
        float((np.asarray(x) * np.asarray(y)).sum())
        for x, y in zip(xs, ys, strict=True)
        if x is not None and y is not None
    )


def gradients_of(function, arrays, needs, dy):
    """Gradients of the function's output, weighted by dy, by the engine."""
    inputs = leaves(arrays, needs)
    function(*inputs).backward(mg.variable(dy))
    return [x.grad.numpy() if n else None for x, n in zip(inputs, needs, strict=True)]


def value_of(function, arrays):
    """The function's output, by the engine, unrecorded."""
    with mg.no_grad():
        return function(*map(mg.variable, arrays)).numpy().copy()


def check_first_order(function, arrays, needs, rng, rtol=1e-6, atol=1e-7):
    """Raises if the gradients are not what central differences along a direction say."""
    y = value_of(function, arrays)
    dy = rng.standard_normal(y.shape)
    grads = gradients_of(function, arrays, needs, dy)
    for x, g, n in zip(arrays, grads, needs, strict=True):
        if n:
            assert g.shape == x.shape
            assert g.dtype == x.dtype
    if not any(a.size for a, n in zip(arrays, needs, strict=True) if n):
        return  # nothing that could move
    direction = directions(rng, arrays, needs)
    ahead, behind = (value_of(function, moved(arrays, direction, s)) for s in (STEP, -STEP))
    numeric = float((dy * (ahead - behind)).sum()) / (2 * STEP)
    np.testing.assert_allclose(inner(grads, direction), numeric, rtol=rtol, atol=atol)


def check_second_order(function, arrays, needs, rng, rtol=1e-5, atol=1e-6):
    """As check_first_order, of the gradients as functions of the inputs and of dy."""
    dy = rng.standard_normal(value_of(function, arrays).shape)
    weights = [
        rng.standard_normal(a.shape) if n else None for a, n in zip(arrays, needs, strict=True)
    ]
    inputs, upstream = leaves(arrays, needs), mg.variable(dy, requires_grad=True)
    function(*inputs).backward(upstream, create_graph=True)
    terms = [
        mg.sum(x.grad * mg.variable(w))
        for x, w in zip(inputs, weights, strict=True)
        if w is not None and x.grad.requires_grad
    ]
    for x in inputs:
        x.grad = None
    if terms:
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        total.backward()
    seconds = [x.grad for x in (*inputs, upstream)]
    seconds = [None if g is None else g.numpy() for g in seconds]
    direction = directions(rng, [*arrays, dy], [*needs, True])

    def weighted(step):
        *xs, upstream = moved([*arrays, dy], direction, step)
        return inner(gradients_of(function, xs, needs, upstream), weights)

    numeric = (weighted(STEP) - weighted(-STEP)) / (2 * STEP)
    np.testing.assert_allclose(inner(seconds, direction), numeric, rtol=rtol, atol=atol)
