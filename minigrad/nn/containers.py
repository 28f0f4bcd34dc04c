"""Containers of modules: Sequential, ModuleList and ModuleDict."""

from collections.abc import Iterable

from minigrad.arguments import in_order, instance, short, shown, whole
from minigrad.errors import ArgumentError, ArgumentTypeError, BoundsError, MissingNameError
from minigrad.hints import teaching
from minigrad.nn.module import Module
from minigrad.nn.registry import Registry


class _Listed(Module):
    """Submodules with the names "0", "1", ..."""

    def _set(self, modules):
        for k, module in enumerate(modules):
            if not isinstance(module, Registry):
                raise ArgumentTypeError(
                    f"{type(self).__name__}: wanted Modules",
                    f"{type(module).__name__} at {k}",
                    f"{type(self).__name__}(*modules)"
                    if isinstance(module, (list, tuple))
                    else "a function such as mg.relu has a layer of its own: nn.ReLU()",
                )
            setattr(self, str(k), module)

    def __len__(self):
        return len(self._members)

    def __iter__(self):
        return self.children()

    @teaching
    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(*tuple(self.children())[index])
        return getattr(self, self._place(index))

    @teaching
    def __setitem__(self, index, module):
        setattr(self, self._place(index), module)

    def _place(self, index):
        index, count = whole(type(self).__name__, "an index", index), len(self)
        if not -count <= index < count:
            raise BoundsError(
                f"{type(self).__name__}: wanted an index from {-count} to {count - 1}", f"{index}"
            )
        return str(index % count)

    def append(self, module):
        """Adds a module at the end. Returns self."""
        instance(f"{type(self).__name__}.append", "module", module, Registry, "a Module")
        setattr(self, str(len(self)), module)
        return self


class Sequential(_Listed):
    """Calls modules one after another: Sequential(a, b)(x) is b(a(x)).

    >>> import minigrad as mg
    >>> model = mg.nn.Sequential(mg.nn.Linear(4, 3), mg.nn.ReLU(), mg.nn.Linear(3, 2))
    >>> [name for name, p in model.named_parameters()]
    ['0.weight', '0.bias', '2.weight', '2.bias']
    """

    def __init__(self, *modules):
        self._set(modules)

    def forward(self, x):
        """Returns the output of the last module."""
        for name in self._members:
            x = getattr(self, name)(x)
        return x


class ModuleList(_Listed):
    """A list of modules that is part of a model; it computes nothing itself.

    Takes modules or one iterable of them: ModuleList(a, b) or ModuleList([a, b]).
    """

    def __init__(self, *modules):
        is_one = len(modules) == 1 and not isinstance(modules[0], Registry)
        if is_one and isinstance(modules[0], Iterable):  # non-Modules are refused below
            modules = in_order("ModuleList", "Modules", modules[0], "ModuleList([a, b])")
        self._set(modules)

    def forward(self, *args):
        """Raises: define in your own forward how to use the modules."""
        raise ArgumentTypeError(
            "ModuleList: a list of modules cannot be called",
            fix="loop over it in forward, or use nn.Sequential",
        )


class ModuleDict(Module):
    """A dict of modules that is part of a model; it computes nothing itself.

    Takes a dict, pairs of name and module, or keywords. Names are strings without dots.

    >>> import minigrad as mg
    >>> heads = mg.nn.ModuleDict({"digit": mg.nn.Linear(4, 10), "sign": mg.nn.Linear(4, 1)})
    >>> heads["sign"](mg.zeros((2, 4))).shape, list(heads.keys())
    ((2, 1), ['digit', 'sign'])
    """

    def __init__(self, modules=(), **named):
        self.update(modules)
        self.update(named)

    @teaching
    def __setitem__(self, name, module):
        kind = type(self).__name__
        if not isinstance(name, str) or not name or "." in name:
            raise ArgumentTypeError(f"{kind}: wanted a str without dots as a name", short(name))
        if not isinstance(module, Registry):
            raise ArgumentTypeError(
                f"{kind}: wanted Modules", f"{type(module).__name__} at '{name}'"
            )
        if name not in self._members and (name in self.__dict__ or hasattr(type(self), name)):
            raise ArgumentError(
                f"{kind}: '{name}' is an attribute of every {kind}", fix="another name"
            )
        setattr(self, name, module)

    @teaching
    def __getitem__(self, name):
        if name not in self._members:
            raise MissingNameError(
                f"{type(self).__name__}: wanted one of its names",
                short(name),
                f"there is {', '.join(self._members) or 'none yet'}",
            )
        return getattr(self, name)

    def __delitem__(self, name):
        self[name]
        delattr(self, name)

    def __contains__(self, name):
        return name in self._members

    def __len__(self):
        return len(self._members)

    def __iter__(self):
        return iter(tuple(self._members))

    def keys(self):
        """Returns the names in order."""
        return tuple(self._members)

    def values(self):
        """Returns the modules in order."""
        return tuple(self.children())

    def items(self):
        """Returns (name, module) in order."""
        return tuple(self.named_children())

    def update(self, modules):
        """Sets the modules of a dict or of pairs."""
        wanted = "a dict or pairs of name and Module"
        if not hasattr(modules, "keys"):
            modules = in_order("ModuleDict", wanted, modules, "ModuleDict({'name': module})")
        try:
            modules = dict(modules)
        except (TypeError, ValueError):
            raise ArgumentTypeError(f"ModuleDict: wanted {wanted}", shown(modules)) from None
        for name, module in modules.items():
            self[name] = module

    def forward(self, *args, **kwargs):
        """Raises: define in your own forward how to use the modules."""
        raise ArgumentTypeError(
            "ModuleDict: a dict of modules cannot be called",
            fix="take one in forward: self.heads['name'](x)",
        )
