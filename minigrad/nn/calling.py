"""functional_call: runs a module with given values instead of its parameters."""

from minigrad.arguments import instance, shown
from minigrad.errors import ArgumentTypeError, MissingNameError, ShapeError
from minigrad.hints import teaching
from minigrad.nn.copies import _View
from minigrad.nn.module import Module
from minigrad.tape.variable import Variable


@teaching
def functional_call(model, parameters, *args, **kwargs):
    """Computes model(*args, **kwargs) with given values instead of its parameters and buffers.

    This makes a model a function of its parameters, as `grad`, `vjp`, `jvp` and `compile` need it.
    The model holds the given values while it runs, and its own again afterwards.

    Args:
        model: a Module.
        parameters: {name: Variable}, by the names and with the shapes of named_parameters() and
            named_buffers(). Those left out keep their own values.
        args: positional arguments for model.forward.
        kwargs: keyword arguments for model.forward.

    Returns:
        The result of the model; its graph leads to the given Variables.

    Raises:
        MissingNameError: a name that the model does not have.
        ShapeError: a value has another shape than the parameter.

    >>> import minigrad as mg
    >>> model, x = mg.nn.Linear(2, 1, bias=False), mg.variable([[1.0, 2.0]])
    >>> loss = lambda p: mg.functional_call(model, p, x).sum()
    >>> mg.grad(loss)(dict(model.named_parameters()))["weight"].tolist()
    [[1.0, 2.0]]
    """
    name = "functional_call"
    instance(name, "model", model, Module, "a Module")
    if isinstance(model, _View):
        raise ArgumentTypeError(
            f"{name}: a valid() view shows the model's own values, and records nothing",
            shown(model),
            "functional_call(view.train(), ...) with model.eval() before it",
        )
    instance(name, "parameters", parameters, dict, "a dict {name: Variable}")
    if len(args) == 1 and type(args[0]) is tuple:
        raise ArgumentTypeError(
            f"{name}: wanted the arguments of the model one after another",
            shown(args[0]),
            f"{name}(model, parameters, *args)",
        )
    own = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    instead = {}
    for key, value in parameters.items():
        if key not in own:
            raise MissingNameError(
                f"{name}: the model has no parameter {key!r}",
                fix=f"its names are {', '.join(own) or 'none'}",
            )
        instance(name, f"parameters[{key!r}]", value, Variable, "a Variable")
        if value.shape != own[key].shape:
            raise ShapeError(
                f"{name}: wanted {own[key].shape} for {key!r}, as the model has", f"{value.shape}"
            )
        instead[id(own[key])] = value
    before = []
    try:
        for module in model.modules():
            for attribute in module._members:
                held = module.__dict__[attribute]
                if id(held) in instead:
                    before.append((module.__dict__, attribute, held))
        for attributes, attribute, held in before:  # a tied parameter has several entries
            attributes[attribute] = instead[id(held)]
        return model(*args, **kwargs)
    finally:
        for attributes, attribute, held in before:
            attributes[attribute] = held
