"""SGD, Adam, AdamW and RMSprop: signatures, defaults and state. Formulas are in the kernels.

Semantics and defaults are those of PyTorch, whose `lr` is `learning_rate` here.
"""

from minigrad.errors import ArgumentError
from minigrad.optim.optimizer import Optimizer


class SGD(Optimizer):
    """p -= learning_rate * v, with v the gradient or, with momentum, v = momentum v + gradient.

    Args:
        parameters: a Module, Parameters, or a list of dicts with 'parameters' and hyperparameters.
        momentum: 0 keeps no state.
        nesterov: uses gradient + momentum v in the place of v.
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

    kernel = "sgd"
    hyperparameters = ("learning_rate", "momentum", "nesterov", "weight_decay")

    def __init__(
        self, parameters, learning_rate=1e-3, momentum=0.0, nesterov=False, weight_decay=0.0,
        on_orphan="raise",
    ):  # fmt: skip
        super().__init__(
            parameters, on_orphan, learning_rate=learning_rate, momentum=momentum,
            nesterov=nesterov, weight_decay=weight_decay,
        )  # fmt: skip

    def slots_of(self, values):
        """Names of the arrays kept for a parameter."""
        return ("momentum",) if values["momentum"] else ()

    def numbers(self, values):
        """As the kernel reads them."""
        if values["nesterov"] and not values["momentum"]:
            raise ArgumentError(
                "SGD: wanted momentum above 0 with nesterov=True", "momentum 0", "momentum=0.9"
            )
        return [
            values["learning_rate"], values["momentum"], values["nesterov"], values["weight_decay"],
        ]  # fmt: skip


class Adam(Optimizer):
    """Steps of about learning_rate, by moving averages of the gradient and its square.

    m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2;
    p -= learning_rate * m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps), where t counts the steps of
    that parameter.

    Args:
        parameters: a Module, Parameters, or a list of dicts with 'parameters' and hyperparameters.
        weight_decay: adds weight_decay * p to the gradient (AdamW decays the parameter itself).
        on_orphan: 'raise', 'warn' or 'ignore' when a parameter no longer belongs to a module.

    State: first_moment, second_moment, step.
    """

    kernel = "adam"
    hyperparameters = ("learning_rate", "betas", "eps", "weight_decay")
    counts_steps = True
    is_decoupled = 0.0

    def __init__(
        self, parameters, learning_rate=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0,
        on_orphan="raise",
    ):  # fmt: skip
        super().__init__(
            parameters, on_orphan, learning_rate=learning_rate, betas=betas, eps=eps,
            weight_decay=weight_decay,
        )  # fmt: skip

    def slots_of(self, values):
        """Names of the arrays kept for a parameter."""
        return ("first_moment", "second_moment")

    def numbers(self, values):
        """As the kernel reads them."""
        return [
            values["learning_rate"], *values["betas"], values["eps"], values["weight_decay"],
            self.is_decoupled,
        ]  # fmt: skip


class AdamW(Adam):
    """Adam with decoupled decay: p *= 1 - learning_rate * weight_decay before each step.

    Arguments and state as Adam; weight_decay is 0.01 unless given.
    """

    is_decoupled = 1.0

    def __init__(
        self, parameters, learning_rate=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01,
        on_orphan="raise",
    ):  # fmt: skip
        super().__init__(parameters, learning_rate, betas, eps, weight_decay, on_orphan)


class RMSprop(Optimizer):
    """The gradient divided by the root of a moving average of its square.

    s = alpha s + (1 - alpha) g^2; p -= learning_rate * g / (sqrt(s) + eps). Centred: s minus the
    square of a moving average of g, under the root. With momentum: of the quotient.

    Args:
        parameters: a Module, Parameters, or a list of dicts with 'parameters' and hyperparameters.
        weight_decay: adds weight_decay * p to the gradient.
        on_orphan: 'raise', 'warn' or 'ignore' when a parameter no longer belongs to a module.

    State: square_average; momentum if it is not 0; gradient_average if centered.
    """

    kernel = "rmsprop"
    hyperparameters = ("learning_rate", "alpha", "eps", "weight_decay", "momentum", "centered")

    def __init__(
        self, parameters, learning_rate=1e-2, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0,
        centered=False, on_orphan="raise",
    ):  # fmt: skip
        super().__init__(
            parameters, on_orphan, learning_rate=learning_rate, alpha=alpha, eps=eps,
            weight_decay=weight_decay, momentum=momentum, centered=centered,
        )  # fmt: skip

    def slots_of(self, values):
        """Names of the arrays kept for a parameter."""
        return (
            "square_average",
            *(("momentum",) if values["momentum"] else ()),
            *(("gradient_average",) if values["centered"] else ()),
        )

    def numbers(self, values):
        """As the kernel reads them."""
        return [values[name] for name in self.hyperparameters]
