"""Lesson 08: who remembers the last step.

A model is here a dict, {name: Parameter}. A Parameter has `values` (a NumPy
array of floats), `grad` (an array of the same shape, or None),
`requires_grad` (False: frozen) and an `id` that no other Parameter has.
What an optimizer remembers of a Parameter between two steps, such as its
momentum, is its *state*. Python and NumPy are enough.
"""

import numpy as np

from minigrad.course.objects import Parameter


def sgd_update(algorithm, values, gradient, state, hyperparameters):
    """One step of SGD for one parameter, in place.

        d = gradient + weight_decay * values
        v = momentum * v + d
        values = values - learning_rate * v

    Args:
        algorithm: the text "SGD"; for any other text raise ValueError and
            change nothing, because this function knows no other algorithm.
        values: array of floats of any shape. Write the new values *into*
            it.
        gradient: array of values' shape; leave it as it is.
        state: dict. If momentum is not 0, state["momentum"] is an array of
            values' shape and holds v, zeros before the first step: write
            the new v *into* that array. If momentum is 0, state is empty;
            leave it so: v is just d then.
        hyperparameters: dict with the numbers "learning_rate", "momentum"
            and "weight_decay". There may be more in it, which you do not
            need.

    Returns:
        None: all results are in values and state.
    """
    raise NotImplementedError("sgd_update is yours to write")


class SGD:
    """Stochastic gradient descent. The optimizer owns the state.

    Args:
        parameters: the Parameters to update, a list or anything that a
            `for` walks over, such as model.values().
        learning_rate, momentum, weight_decay: numbers, as in sgd_update.

    Attributes:
        parameters: list of the Parameters.
        state: dict from the id of a Parameter to the state of it, a dict:
            {p.id: {"momentum": array}}. Empty before the first step.
    """

    def __init__(
        self, parameters, learning_rate, momentum=0.0, weight_decay=0.0
    ):
        self.parameters = list(parameters)
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.state = {}

    def step(self):
        """Update every parameter with a gradient, by a call of sgd_update.

        A parameter whose grad is None, or that is frozen (requires_grad is
        False, whatever its grad), is left alone: its values and its state
        stay as they are, and it gets no state if it has none.

        The state of a parameter is made at the first step that updates it
        (a momentum of zeros, of the shape and dtype of its values) and kept
        from then on. If momentum is 0, that dict is empty.

        p.values stays the same array with new numbers in it; p.grad is left
        as it is. Returns None.
        """
        raise NotImplementedError("step is yours to write")


def clip_grad_norm_(gradients, max_norm):
    """Scale all gradients by one factor, to a norm of at most max_norm.

    The norm is that of all arrays together: the square root of the sum of
    the squares of all their entries. Squares of float32 numbers, and their
    norm, may be too large for float32, so compute in float64.

    Args:
        gradients: list of arrays of floats (float32 or float64) of any
            shapes. If the norm is larger than max_norm, write the scaled
            numbers *into* these arrays: their norm is max_norm then,
            however small max_norm is (so add nothing to the norm).
            Otherwise leave every bit as it is.
        max_norm: float, larger than 0 (and not so small that the factor is
            0 in float32).

    Returns:
        float: the norm *before* clipping; 0.0 for an empty list.

    Raises:
        ValueError: the norm is infinite or nan. The gradients are as they
            were.
    """
    raise NotImplementedError("clip_grad_norm_ is yours to write")


def clip_weights_(model, low, high):
    """Cut the values of all parameters to the interval from low to high.

    Afterwards the model holds the very same Parameters (same objects, same
    ids), and each p.values is the very same array, with the new numbers in
    it: an optimizer that holds one of them can go on with it. Gradients
    stay as they are.

    Args:
        model: dict {name: Parameter}.
        low, high: floats, low <= high.

    Returns:
        None.
    """
    raise NotImplementedError("clip_weights_ is yours to write")


def state_dict(model, optimizer):
    """Return a copy of an optimizer's state, by the parameters' names.

    Args:
        model: dict {name: Parameter}.
        optimizer: an SGD over these parameters; optimizer.state is
            {id: {"momentum": array}}, with entries for some of them.

    Returns:
        dict {name: {"momentum": array}} with a name for each parameter of
        the model that has state, and no other. The arrays are copies: later
        steps do not change them.
    """
    raise NotImplementedError("state_dict is yours to write")


def load_state_dict(model, optimizer, saved):
    """Put what state_dict returned into an optimizer, by name.

    Afterwards optimizer.state has an entry (under the id that this model's
    parameter has now) for each name in saved, bit for bit as saved, and no
    other: parameters that saved does not name start anew. The model may
    have its names in another order than the one that was saved. Store
    copies: later steps do not change saved.

    Args:
        model: dict {name: Parameter}.
        optimizer: an SGD over these parameters; it may have state already.
        saved: dict {name: {"momentum": array}}; leave it as it is.

    Returns:
        None.

    Raises:
        ValueError: a name in saved is not in the model, or an array of it
            has another shape than that parameter's values. The text says
            which name. The optimizer's state is then as it was before the
            call.
    """
    raise NotImplementedError("load_state_dict is yours to write")


def replace_parameter(model, optimizer, name, values, keep_state):
    """Put a new Parameter in the place of another, wherever that was held.

    Afterwards the new Parameter (with an id of its own and no gradient)
    stands in the model under that name, and in optimizer.parameters at the
    place of the old one. The old Parameter is held by neither of them, is
    as it was before, and optimizer.state has no entry for its id any more.
    All other parameters and their state stay as they are.

    Args:
        model: dict {name: Parameter}.
        optimizer: an SGD; all parameters of the model are in its
            parameters.
        name: text, the name of the parameter to replace.
        values: array of floats, the values of the new one.
        keep_state: True: the new parameter takes over the state of the old
            one, if it has any. False: it starts without state.

    Returns:
        The new Parameter.

    Raises:
        ValueError: keep_state is True and values has another shape than the
            old parameter's values. Nothing has been changed then.
    """
    raise NotImplementedError("replace_parameter is yours to write")


# --- Bug hunt -------------------------------------------------------------
# A model is trained for a while; then a part of it is frozen and the rest
# is tuned further. The frozen part must not move any more, yet it does: it
# drifts on for a while and then decays towards 0. The four functions below
# do the work of a training step, and three of them do what their docstrings
# promise. Write the name of the fourth into BUG, then repair that function.

BUG = ("function", None)


def tiny_model():
    """Return a model to try the four functions on."""
    return {
        "body.w": Parameter(np.array([1.0, -2.0])),
        "head.w": Parameter(np.array([0.5, 1.0])),
    }


def freeze(model, prefix):
    """Freeze what starts with prefix: it gets no more gradients."""
    for name, p in model.items():
        if name.startswith(prefix):
            p.requires_grad = False


def forget_gradients(model):
    """Afterwards no parameter of the model has a gradient."""
    for p in model.values():
        if p.grad is not None:
            p.grad = np.zeros_like(p.grad)


def deliver_gradients(model, gradients):
    """Add the gradients of a backward pass, {name: array}, to the model's.

    Frozen parameters get nothing. A name that is missing was not reached:
    its parameter gets nothing either.
    """
    for name, gradient in gradients.items():
        p = model[name]
        if p.requires_grad:
            p.grad = (
                gradient.copy() if p.grad is None else p.grad + gradient
            )


def step_all(model, velocity):
    """Move every parameter with a gradient: SGD, momentum, weight decay.

    velocity holds the momentum, {id: array}; a missing one is zeros.
    """
    for p in model.values():
        if p.grad is None:
            continue
        v = velocity.setdefault(p.id, np.zeros_like(p.values))
        v *= 0.8
        v += p.grad + 0.2 * p.values
        p.values -= 0.05 * v


def fine_tune(model, batches, prefix, after):
    """Train a model; then freeze a part of it, and train the rest further.

    In each step, what is frozen, and what this step's gradients do not
    reach, frozen or not, stays bit for bit as it is. Each of the four
    functions also does by itself what its docstring promises.

    Args:
        model: dict {name: Parameter}.
        batches: list with a dict {name: array} for each step: the
            gradients.
        prefix: text; parameters whose name starts with it are frozen.
        after: int, the number of steps before they are frozen.
    """
    velocity = {}
    for number, gradients in enumerate(batches):
        if number == after:
            freeze(model, prefix)
        forget_gradients(model)
        deliver_gradients(model, gradients)
        step_all(model, velocity)
