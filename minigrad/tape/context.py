"""Context: carries values from the forward of a custom Function to its backward."""

from minigrad.errors import ArgumentTypeError, GradientError
from minigrad.tape.promises import held_by
from minigrad.tape.saved import protected
from minigrad.tape.variable import Variable


class Context:
    """Carries values from forward to backward.

    `save_for_backward` keeps Variables. Other attributes may hold numbers and flags, which count as
    constants. A second derivative raises if they hold arrays of floats other than arguments of
    forward.
    """

    own = frozenset()  # the names of the attributes that every Context has

    def __init__(self, name, needs_input_grad):
        self.name = name
        self.needs_input_grad = needs_input_grad
        self.materializes = True
        self.has_left_graph = False
        self._to_save, self._saved = [], None
        self._dirty, self._non_differentiable = (), ()
        self._hidden = None  # the attribute that `promises.hidden_intermediate` found

    def __setattr__(self, attribute, value):
        held = next((v for v in held_by(value) if isinstance(v, Variable)), None)
        if held is not None:
            kind, name = f"a {type(value).__name__} with a Variable", "..."
            if held is value:
                kind, name = "Variable", attribute
            raise ArgumentTypeError(
                f"ctx.{attribute} = {kind}: an output kept on ctx would keep the graph alive "
                "in a circle, and no write to it would be noticed",
                held.describe(),
                f"ctx.save_for_backward({name}), and ctx.saved in backward",
            )
        object.__setattr__(self, attribute, value)

    def save_for_backward(self, *values):
        """Keeps Variables (or None) for backward: inputs, outputs or intermediates.

        Raises:
            ArgumentTypeError: a value is something else; keep a number by `ctx.n = n`.
        """
        for v in values:
            if v is not None and not isinstance(v, Variable):
                raise ArgumentTypeError(
                    "save_for_backward: wanted Variables",
                    f"{type(v).__name__}",
                    "keep numbers as attributes: ctx.n = n",
                )
        self.__dict__["_to_save"] = [
            (None, None, None) if v is None else (v, protected(v.array), v.array.version)
            for v in values
        ]

    @property
    def saved(self):
        """The saved Variables, as a list in the order of `save_for_backward`.

        Raises:
            GradientError: read outside backward.
        """
        if self._saved is None:
            raise GradientError(f"{self.name}: ctx.saved exists in backward only")
        return self._saved

    saved_tensors = saved

    def mark_dirty(self, *inputs):
        """Declares that forward wrote in place to these inputs, which it must also return.

        A recorded call raises InPlaceError if forward does not return an input declared here. It
        also does if forward writes to an undeclared input that takes a gradient or is returned.
        """
        self.__dict__["_dirty"] = inputs

    def mark_non_differentiable(self, *outputs):
        """Declares that these outputs take no gradient."""
        self.__dict__["_non_differentiable"] = outputs

    def set_materialize_grads(self, value):
        """Sets whether backward gets zeros (the default) or None for missing upstream gradients."""
        self.materializes = bool(value)


Context.own = frozenset(vars(Context("", ())))
