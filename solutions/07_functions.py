"""Lesson 07: operations of your own, and gradients of gradients.

A custom operation is a subclass of `mg.Function` with two static methods:

    forward(ctx, x, ...)    gets Variables (and plain numbers), computes
    with operations of mg,
                            returns one Variable; nothing in it is recorded;
    backward(ctx, dy)       gets the gradient of the output, a Variable, and
    returns one gradient
                            per argument of forward, None for a number.

`ctx.save_for_backward(x, ...)` keeps Variables, `ctx.saved` gives them back
in backward, as a list. Numbers may be kept as attributes: `ctx.n = n`. Each
call has a ctx of its own, and several calls may be made before any of them
goes backward. For second derivatives, backward itself is differentiated. So
backward, too, computes with operations of mg, from saved values: from the
inputs or the output of forward.

`MyFunction.apply(x)` runs it. `mg.gradients(y, x, dy, create_graph=True)`
gives the gradient of y with respect to x (times dy, if y has more than one
element) as a Variable that can be differentiated again; it writes no
`.grad`. It gives None where y does not depend on x, and raises where y has
no graph at all (y.requires_grad is False).
"""

import minigrad as mg


class Softplus(mg.Function):
    """y = log(1 + exp(x)), elementwise, with the slope 1 / (1 + exp(-x)).

    Softplus.apply(x) of a float64 Variable x of any shape gives y of x's
    shape. y, the gradient and the second derivative are right, and finite,
    for every x from -1000 to 1000. (exp(1000) is inf in float64. mg.exp,
    mg.log1p, mg.abs, mg.maximum, mg.sigmoid and others are there;
    mg.softplus is closed while this is graded.)

    backward returns one gradient, of x's shape, and can itself be
    differentiated. x is left as it was. Two calls may be made before either
    goes backward.
    """

    @staticmethod
    def forward(ctx, x):
        ### BEGIN SOLUTION
        ctx.save_for_backward(x)
        return mg.maximum(x, 0.0) + mg.log1p(mg.exp(-mg.abs(x)))
        ### END SOLUTION

    @staticmethod
    def backward(ctx, dy):
        ### BEGIN SOLUTION
        (x,) = ctx.saved
        return dy * mg.sigmoid(x)
        ### END SOLUTION


class LogSumExp(mg.Function):
    """y = log(sum(exp(x))) along one axis: a smooth maximum.

    LogSumExp.apply(x, axis): x is a float64 Variable of shape (..., n,
    ...), axis an int, also a negative one. y has x's shape without that
    axis. The gradient of y with respect to x is softmax(x) along the axis:
    exp(x - y), each times its dy.

    y, the gradient and the second derivative are right, and finite, for
    entries from -1000 to
    1000. backward returns one gradient per argument of forward, which are
    two, and can itself be differentiated. x is left as it was. (mg.max,
    mg.sum, mg.exp, mg.log, mg.unsqueeze(y, axis) and others are there;
    mg.logsumexp, mg.softmax and mg.log_softmax are closed while this is
    graded.)
    """

    @staticmethod
    def forward(ctx, x, axis):
        ### BEGIN SOLUTION
        largest = mg.max(x, axis=axis, keepdims=True)
        y = mg.log(mg.sum(mg.exp(x - largest), axis=axis)) + mg.squeeze(
            largest, axis
        )
        ctx.axis = axis
        ctx.save_for_backward(x, y)
        return y
        ### END SOLUTION

    @staticmethod
    def backward(ctx, dy):
        ### BEGIN SOLUTION
        x, y = ctx.saved
        softmax = mg.exp(x - mg.unsqueeze(y, ctx.axis))
        return mg.unsqueeze(dy, ctx.axis) * softmax, None
        ### END SOLUTION


class StraightThrough(mg.Function):
    """y = +1 where x >= 0, and -1 where x < 0, with a made-up gradient.

    The true slope of this step is 0 everywhere, so nothing before it would
    ever learn. Its backward is the straight-through estimator: dy passes
    unchanged where -1 <= x <= 1, and is 0 elsewhere.

    StraightThrough.apply(x) of a float64 Variable x of any shape gives y of
    x's shape and dtype. Nobody asks for a second derivative here.

    The attribute pseudo_gradient of the class says whether the gradient is
    a made-up one: True or False. It can be read before any call. A test
    that reads True expects gradcheck to fail, and complains if it does not.
    """

    ### BEGIN SOLUTION
    pseudo_gradient = True
    ### STARTS AS
    # pseudo_gradient = None
    ### END SOLUTION

    @staticmethod
    def forward(ctx, x):
        ### BEGIN SOLUTION
        ctx.save_for_backward(x)
        return mg.where(x >= 0, mg.ones_like(x), -mg.ones_like(x))
        ### END SOLUTION

    @staticmethod
    def backward(ctx, dy):
        ### BEGIN SOLUTION
        (x,) = ctx.saved
        return mg.where(mg.abs(x) <= 1, dy, mg.zeros_like(dy))
        ### END SOLUTION


def hvp(f, x, v):
    """Multiply the Hessian of f at x by v, without making the Hessian.

    The Hessian H holds all second derivatives of f. Entry i of H @ v is the
    derivative of sum(g * v) with respect to x[i], where g is the gradient
    of f at x: two backward passes.

    Args:
        f: takes a Variable of x's shape, returns a Variable of one element.
        x: float64 Variable of any shape; it may require gradients or not.
        v: float64 Variable of x's shape, which requires no gradient; it may
            be x itself.

    Returns:
        H @ v, a Variable of x's shape; zeros where f has no second
        derivative (f is linear, so that g does not depend on x).

    f is called once, with a Variable that has x's values; it goes backward
    twice, however large x is. Afterwards x, its .grad and its
    .requires_grad are as before, and so are the .grad of other Variables
    that f uses. (x.detach() is a new leaf with x's values. mg.hvp, mg.jvp,
    mg.hessian and mg.jacobian are closed while this is graded.)
    """
    ### BEGIN SOLUTION
    x = x.detach()  # a leaf of our own: the caller's stays as it is
    x.requires_grad = True
    g = mg.gradients(f(x), x, create_graph=True)
    found = mg.gradients((g * v).sum(), x) if g.requires_grad else None
    return mg.zeros_like(x) if found is None else found
    ### END SOLUTION


def gradient_penalty(critic, x):
    """The penalty that keeps a critic's slopes near 1 (Wasserstein GANs).

    Row i of x gets the score critic(x)[i]. The gradient of that score with
    respect to row i is a vector of d entries; n_i is its Euclidean norm.
    The penalty is the mean of (n_i - 1)**2 over the rows.

    Args:
        critic: takes a Variable of shape (rows, d), returns one of shape
            (rows,). The score of a row depends on that row alone. It uses
            Variables of its own, its weights.
        x: float64 Variable of shape (rows, d); it may require gradients or
            not.

    Returns:
        The penalty, a Variable of one element. penalty.backward() gives the
        weights of the critic their gradients. Where n_i is 0, the gradient
        of n_i counts as 0 and nothing becomes nan (mg.norm(g, axis=1) does
        it so; the gradient of mg.sqrt at 0 is inf).

    Until backward is called, no .grad changes. x and its .requires_grad
    stay as they were. Its .grad is not written, not even by
    penalty.backward(): x.detach() is a new leaf with x's values.
    """
    ### BEGIN SOLUTION
    x = x.detach()
    x.requires_grad = True
    g = mg.gradients(critic(x).sum(), x, create_graph=True)
    return ((mg.norm(g, axis=1) - 1.0) ** 2).mean()
    ### END SOLUTION


# --- Bug hunt -------------------------------------------------------------
# `deep` runs five operations in a row, each a Function. Its author tested
# each alone, at numbers near 0, and it passed. In `deep`, hardly any
# gradient arrives at x: one of the five loses it. (An operation may shrink
# the gradient, if it shrinks its values as much in the forward pass.) Find
# the operation with mg.debug.record_grad_function, write its name into BUG,
# then repair its backward, which can itself be differentiated, as all five.

### BEGIN SOLUTION
BUG = ("op", "Softcap")
### STARTS AS
# BUG = ("op", None)
### END SOLUTION


class Widen(mg.Function):
    """y = scale * x."""

    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx, dy):
        return dy * ctx.scale, None


class Softcap(mg.Function):
    """y = cap * tanh(x / cap): small values pass, others do not."""

    @staticmethod
    def forward(ctx, x, cap):
        ctx.cap = cap
        ctx.save_for_backward(x)
        return cap * mg.tanh(x / cap)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved
        ### BEGIN SOLUTION
        t = mg.tanh(x / ctx.cap)
        ### STARTS AS
        # t = mg.tanh(x)
        ### END SOLUTION
        return dy * (1.0 - t * t), None


class Scaled(mg.Function):
    """y = x / r; r is the root of the mean square along the last axis."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x / mg.sqrt(mg.mean(x * x, axis=-1, keepdims=True))

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved
        r = mg.sqrt(mg.mean(x * x, axis=-1, keepdims=True))
        y = x / r
        return (dy - y * mg.mean(dy * y, axis=-1, keepdims=True)) / r


class Leaky(mg.Function):
    """y = x where x > 0, and 0.2 * x elsewhere."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return mg.where(x > 0, x, 0.2 * x)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved
        return mg.where(x > 0, dy, 0.2 * dy)


class Swish(mg.Function):
    """y = x * sigmoid(x)."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * mg.sigmoid(x)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved
        s = mg.sigmoid(x)
        return dy * (s + x * s * (1.0 - s))


def deep(x):
    """Run the five operations in a row: (rows, d) -> (rows, d)."""
    x = Widen.apply(x, 40.0)
    x = Softcap.apply(x, 50.0)
    x = Scaled.apply(x)
    x = Leaky.apply(x)
    return Swish.apply(x)


def deep_gradient(x, dy):
    """Return deep's gradient with respect to x, given dy; all Variables."""
    x = x.detach()
    x.requires_grad = True
    return mg.gradients(deep(x), x, dy)
