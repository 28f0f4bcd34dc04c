"""Module: part of a model."""

from minigrad.arguments import flag
from minigrad.errors import ArgumentTypeError, DTypeError
from minigrad.hints import (
    explained,
    fails_at_the_call,
    refuse_unknown_arguments,
    teaching,
)
from minigrad.memory.interrupts import uninterrupted
from minigrad.nn import copies, state
from minigrad.nn.ownership import changes
from minigrad.nn.registry import Registry
from minigrad.ops.devices import one_target
from minigrad.tape.attribute_writes import written
from minigrad.tape.groups import regroup
from minigrad.tape.hooks import Handle

_hooked = set()  # while no module has ever had a hook, calls need not look for hooks


@uninterrupted
def _put(new):
    """Gives all these Variables their new Arrays, or none of them."""
    for x, array in new:
        x.array, x._grad = array, None
    regroup([x for x, _ in new])
    changes.note()


class Module(Registry):
    """Part of a model. Subclasses set attributes in `__init__` and define `forward`.

    Parameters, Buffers and Modules set as attributes are registered in that order.
    `super().__init__()` may be left out.

    >>> import minigrad as mg
    >>> class Scale(mg.nn.Module):
    ...     def __init__(self):
    ...         self.factor = mg.nn.Parameter([2.0])
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> model = Scale()
    >>> [name for name, p in model.named_parameters()], model(mg.variable([3.0])).tolist()
    (['factor'], [6.0])
    """

    def __init__(self):
        pass

    def forward(self, *args, **kwargs):
        """Computes the output. `model(x)` calls it."""
        raise NotImplementedError(f"{type(self).__name__}: define forward(self, ...)")

    _forward_hooks = None  # {key: hook} after the first registration

    def __call__(self, *args, **kwargs):
        try:
            out = self.forward(*args, **kwargs)
        except TypeError as error:
            if not fails_at_the_call(error):
                raise
            raise explained(self.forward, error, kwargs, type(self).__name__) from None
        if not _hooked:
            return out
        if self._forward_hooks:
            for hook in tuple(self._forward_hooks.values()):
                other = hook(self, args, out)
                out = out if other is None else other
        return out

    @uninterrupted
    def register_forward_hook(self, hook):
        """Registers hook(module, inputs, output), which runs after each call of the module.

        Copies of the module have no hooks. A `valid()` view runs them with itself as `module`.

        Args:
            hook: a function. `inputs` is the tuple of positional arguments, `output` the result of
                forward. A result other than None replaces the output.

        Returns:
            A handle: `handle.remove()`, or `with module.register_forward_hook(f):`.

        >>> import minigrad as mg
        >>> layer, shapes = mg.nn.Linear(3, 2), []
        >>> with layer.register_forward_hook(lambda module, inputs, y: shapes.append(y.shape)):
        ...     y = layer(mg.zeros((5, 3)))
        >>> shapes
        [(5, 2)]
        """
        if not callable(hook):
            raise ArgumentTypeError(
                "register_forward_hook: wanted a function", f"{type(hook).__name__}"
            )
        written(self, f"{type(self).__name__}.register_forward_hook")
        hooks = self.__dict__.setdefault("_forward_hooks", {})
        key = object()
        hooks[key] = hook
        _hooked.add(True)
        return Handle(hooks, key)

    # -- modes ---------------------------------------------------------------------------------

    @uninterrupted
    def train(self, mode=True):
        """Sets training behaviour (dropout, batch statistics) in this module and all below it."""
        mode = flag(f"{type(self).__name__}.train", "mode", mode)
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        """Sets evaluation behaviour. Calls are still recorded: model(x).requires_grad stays True.

        To stop recording as well, use `model.valid()` or `with mg.no_grad():`.
        """
        return self.train(False)

    @uninterrupted
    def requires_grad_(self, value=True):
        """Freezes (False) or unfreezes all parameters. Returns self."""
        value = flag("requires_grad_", "value", value)
        for p in self.parameters():
            p.requires_grad = value
        return self

    @uninterrupted
    def zero_grad(self, **unknown):
        """Sets every `.grad` to None. Takes no arguments."""
        if unknown:
            refuse_unknown_arguments("zero_grad", (), unknown, "layer")
        for p in self.parameters():
            p.grad = None

    @teaching
    def to(self, target=None, *, device=None, dtype=None):
        """Converts parameters and float buffers to a dtype, or moves all to a device, in place.

        Ids stay the same; every `.grad` becomes None. Optimizers convert or move their state at the
        next step. Give one target, by position or by keyword: device='simt' or dtype='float64'.
        Returns self.
        """
        place, dtype = one_target(target, device, dtype)
        if dtype is not None and not dtype.is_float:
            raise DTypeError(
                f"{type(self).__name__}.to: wanted a dtype of floats, as parameters have",
                f"{dtype}",
            )
        written(self, f"{type(self).__name__}.to({str(place or dtype)!r})")
        new = []
        for x in (*self.parameters(), *self.buffers()):
            array = x.detach().to(place or dtype).array if place or x.dtype.is_float else x.array
            if array is not x.array:
                new.append((x, array))
        _put(new)
        return self

    # -- state and copies ----------------------------------------------------------------------

    def state_dict(self):
        """Returns {name: Variable}, the current values of parameters and persistent buffers.

        The values are copy-on-write clones: training does not change them. Tied ones occur once.
        """
        return state.state_dict(self)

    @teaching
    def load_state_dict(self, values, strict=True):
        """Writes values by name; ids, optimizer state and names stay the same.

        States of PyTorch's modules load unchanged: a tied parameter may occur under each of its
        names, with equal values, and the batch counters of batch norms are ignored.

        Args:
            values: {name: Variable or ndarray}, as `state_dict` returns them.
            strict: require the same names on both sides; otherwise load only the matching ones.

        Returns:
            (missing, unexpected): lists of names, both empty when strict.

        Raises:
            StateError: names are missing or unexpected, or shapes differ; nothing was written.
        """
        return state.load_state_dict(self, values, flag("load_state_dict", "strict", strict))

    def valid(self):
        """Returns a live view for evaluation: same values and ids; calling it records nothing.

        The view switches dropout off and uses running statistics; the model itself keeps its mode
        and its frozen layers. `view.train()` returns the model.
        """
        return copies.view(self)

    def clone(self):
        """Returns a frozen copy in evaluation mode, whose parameters have the same ids.

        The values are separate: the first write to either copies the memory (copy-on-write). The
        copy takes no gradients, but you may write to it: `for t, p in zip(copy.parameters(),
        model.parameters()): t.copy_(p)` under `mg.no_grad()`, or `load_state_dict`. For a second
        model to train, use copy.deepcopy(model).
        """
        return copies.clone(self)

    def __deepcopy__(self, memo):
        return copies.deepcopy(self, memo)

    def __copy__(self):
        return copies.shallow(self)

    def __reduce_ex__(self, protocol):
        raise ArgumentTypeError(
            f"pickle: a {type(self).__name__} holds memory of the engine",
            fix="save {name: x.numpy() for name, x in model.state_dict().items()}, and load it "
            "into a model built anew",
        )

    # -- looking -------------------------------------------------------------------------------

    def extra_repr(self):
        """Returns the text that `repr` shows between the parentheses."""
        return ""

    def __repr__(self):
        head = type(self).__name__
        lines = []
        for name, child in self.named_children():
            lines.append(f"({name}): " + repr(child).replace("\n", "\n  "))
        if not lines:
            return f"{head}({self.extra_repr()})"
        return f"{head}({self.extra_repr()}\n  " + "\n  ".join(lines) + "\n)"
