"""The optimizers: each has its defaults, the arrays it keeps per parameter, and one formula.

formula(p, g, state, h) returns the new parameter and the new state, in the order of `slots_of`. h
has the hyperparameters and h.t, the number of steps of this parameter including the current one.
`"momentum" in h` tests whether a number is not 0, so that the formula can omit its term. Of the
formula are made the kernels, which update all parameters at once, and compiled steps.

Semantics and defaults are those of PyTorch, whose `lr` is `learning_rate` here.
"""

from minigrad.errors import ArgumentError
from minigrad.formulas import expression as e
from minigrad.optim.optimizer import Optimizer


class SGD(Optimizer):
    """p -= learning_rate * v, with v the gradient or, with momentum, v = momentum v + gradient.

    Args:
        parameters: a Module, Parameters, or a list of dicts with 'parameters' and hyperparameters.
        learning_rate: the size of a step. You or a schedule may set it later.
        momentum: 0 keeps no state (Sutskever et al. 2013).
        nesterov: uses gradient + momentum v instead of v.
        weight_decay: adds weight_decay * p to the gradient.
        on_orphan: 'raise', 'warn' or 'ignore' when a parameter no longer belongs to a module.

    State: momentum.

    >>> import minigrad as mg
    >>> p = mg.nn.Parameter([1.0])
    >>> optimizer = mg.optim.SGD([p], learning_rate=0.5)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p.tolist()
    [0.0]
    """

    defaults = {"learning_rate": 1e-3, "momentum": 0.0, "nesterov": False, "weight_decay": 0.0}

    def slots_of(self, values):
        return ("momentum",) if values["momentum"] else ()

    def check(self, values):
        if values["nesterov"] and not values["momentum"]:
            raise ArgumentError(
                "SGD: wanted momentum above 0 with nesterov=True", "momentum 0", "momentum=0.9"
            )

    def formula(p, g, state, h):
        if "weight_decay" in h:
            g = g + h.weight_decay * p
        if "momentum" not in h:
            return p - h.learning_rate * g
        speed = h.momentum * state[0] + g
        return p - h.learning_rate * (g + h.momentum * speed if h.nesterov else speed), speed


class Adam(Optimizer):
    """Steps of about learning_rate, from moving averages of the gradient and its square.

    m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2;
    p -= learning_rate * m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps), where t counts the steps of
    that parameter (Kingma, Ba 2015).

    Args:
        parameters, learning_rate, on_orphan: as for SGD.
        betas: b1 and b2, below 1. The larger they are, the slower the averages change.
        eps: added to the root, so that the quotient is finite where v is 0.
        weight_decay: adds weight_decay * p to the gradient (AdamW decays the parameter itself).

    State: first_moment, second_moment, step.
    """

    defaults = {"learning_rate": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0}
    slots = ("first_moment", "second_moment")

    def formula(p, g, state, h):
        if "weight_decay" in h:
            g = g + h.weight_decay * p
        return adam(p, g, state, h)


class AdamW(Adam):
    """Adam with decoupled decay: p *= 1 - learning_rate * weight_decay before each step.

    Arguments and state as in Adam; weight_decay is 0.01 by default (Loshchilov, Hutter 2019).
    """

    defaults = {**Adam.defaults, "weight_decay": 0.01}

    def formula(p, g, state, h):
        if "weight_decay" in h:
            p = (1.0 - h.learning_rate * h.weight_decay) * p
        return adam(p, g, state, h)


def adam(p, g, state, h):
    """Computes the step that Adam and AdamW share."""
    (beta1, beta2), (first, second) = h.betas, state
    first = beta1 * first + (1.0 - beta1) * g
    second = beta2 * second + (1.0 - beta2) * g * g
    size, correction = h.learning_rate / (1.0 - beta1**h.t), 1.0 / e.sqrt(1.0 - beta2**h.t)
    return p - size * first / (e.sqrt(second) * correction + h.eps), first, second


class RMSprop(Optimizer):
    """Divides the gradient by the root of a moving average of its square.

    s = alpha s + (1 - alpha) g^2; p -= learning_rate * g / (sqrt(s) + eps) (Tieleman, Hinton 2012).

    Args:
        parameters, learning_rate, weight_decay, on_orphan: as for SGD.
        alpha: below 1. The larger it is, the slower the average changes.
        eps: added to the root.
        momentum: applies to the quotient.
        centered: subtracts from s, under the root, the square of a moving average of g (Graves
            2013).

    State: square_average; momentum if it is not 0; gradient_average if centered.
    """

    defaults = {
        "learning_rate": 1e-2, "alpha": 0.99, "eps": 1e-8, "weight_decay": 0.0, "momentum": 0.0,
        "centered": False,
    }  # fmt: skip
    below_one = ("alpha",)

    def slots_of(self, values):
        momentum = ("momentum",) if values["momentum"] else ()
        return ("square_average", *momentum, *(["gradient_average"] if values["centered"] else []))

    def formula(p, g, state, h):
        if "weight_decay" in h:
            g = g + h.weight_decay * p
        square = under = h.alpha * state[0] + (1.0 - h.alpha) * g * g
        kept = [square]
        if h.centered:
            average = h.alpha * state[-1] + (1.0 - h.alpha) * g
            under = square - average * average
            under = e.where(under > 0.0, under, 0.0)  # rounding can make it negative
        step = g / (e.sqrt(under) + h.eps)
        if "momentum" in h:
            step = h.momentum * state[1] + step
            kept.append(step)
        if h.centered:
            kept.append(average)
        return p - h.learning_rate * step, *kept


class Adagrad(Optimizer):
    """p -= learning_rate * g / (sqrt(s) + eps), with s the sum of all g^2 (Duchi et al. 2011).

    Args:
        parameters, learning_rate, weight_decay, on_orphan: as for SGD.
        rate_decay: step t uses learning_rate / (1 + (t - 1) * rate_decay).
        eps: added to the root.

    State: square_sum, step.
    """

    defaults = {"learning_rate": 1e-2, "rate_decay": 0.0, "weight_decay": 0.0, "eps": 1e-10}
    slots = ("square_sum",)

    def formula(p, g, state, h):
        g = g + h.weight_decay * p if "weight_decay" in h else g
        total = state[0] + g * g
        rate = h.learning_rate / (1.0 + (h.t - 1.0) * h.rate_decay)
        return p - rate * g / (e.sqrt(total) + h.eps), total


class Lion(Optimizer):
    """Steps of learning_rate along the sign of an average (Chen et al. 2023).

    p -= learning_rate * sign(b1 m + (1 - b1) g); m = b2 m + (1 - b2) g.

    Args:
        parameters, learning_rate, on_orphan: as for SGD.
        betas: b1 and b2, below 1.
        weight_decay: as in AdamW.

    State: momentum.
    """

    defaults = {"learning_rate": 1e-4, "betas": (0.9, 0.99), "weight_decay": 0.0}
    slots = ("momentum",)

    def formula(p, g, state, h):
        (beta1, beta2), (m,) = h.betas, state
        p = p * (1.0 - h.learning_rate * h.weight_decay) if "weight_decay" in h else p
        step = e.sign(beta1 * m + (1.0 - beta1) * g)
        return p - h.learning_rate * step, beta2 * m + (1.0 - beta2) * g
