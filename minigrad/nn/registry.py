"""Registry: attributes that are parameters, buffers or modules, by name and in order."""

import inspect
from typing import Any

from minigrad.errors import ArgumentError, ArgumentTypeError, GradientError
from minigrad.graph.variable import Variable
from minigrad.nn.hidden import refuse_hidden
from minigrad.nn.ownership import add_owner, changes, reference, remove_owner
from minigrad.nn.parameter import Buffer, Parameter

INTERNAL = {"_members", "_owners", "_reference", "_walked", "training"}

KNOWN_AS = {  # what people who come from PyTorch try first
    "in_features": "inputs", "out_features": "outputs", "in_channels": "inputs",
    "out_channels": "outputs", "kernel_size": "size", "num_embeddings": "count",
    "embedding_dim": "size", "padding_idx": "padding_index", "normalized_shape": "size",
    "num_features": "channels", "embed_dim": "size", "num_heads": "heads",
    "negative_slope": "slope", "dim": "axis",
}  # fmt: skip


class Registry:
    """The part of a Module that knows what it is made of."""

    training: bool
    _members: dict  # attribute -> 'parameter', 'buffer' or 'module', in order
    _owners: list
    _reference: object

    def __new__(cls, *args, **kwargs):
        if not KNOWN_AS.keys().isdisjoint(kwargs):
            _hint(cls, kwargs)
        self = object.__new__(cls)
        self.__dict__.update(_members={}, _owners=[], _reference=reference(self), training=True)
        return self

    # -- attributes ----------------------------------------------------------------------------

    def __setattr__(self, name, value: Any):
        before = self.__dict__.get(name)
        if before is value and value is not None:
            return  # m.w *= 2 writes in place, and then sets the same object
        kind = _kind(value)
        known = self._members.get(name)
        if known and not kind and value is not None:
            _raise_not_registered(self, name, known, value)
        if not kind and isinstance(value, Variable) and value.requires_grad and value.is_leaf:
            raise ArgumentTypeError(
                f"{type(self).__name__}.{name}: a plain Variable that requires gradients would not "
                "be among the parameters",
                value.describe(),
                f"self.{name} = nn.Parameter(value)",
            )
        if kind:
            self._take(name, value, kind)
        elif known:
            del self._members[name]
        if known:
            self._let_go(name, before, known)
        self.__dict__[name] = value

    def _take(self, name, value, kind):
        if kind == "parameter":
            value.owned_by(self._reference, name)
        elif kind == "module":
            if any(m is self for m in value.modules()):
                raise ArgumentError(f"{type(self).__name__}.{name}: a module cannot contain itself")
            value.__dict__["_owners"] = add_owner(value._owners, self._reference, name)
        self._members[name] = kind
        changes.note()

    def __delattr__(self, name):
        known = self._members.pop(name, None)
        if known:
            self._let_go(name, self.__dict__[name], known)
        object.__delattr__(self, name)

    def _let_go(self, name, value, kind):
        if kind == "parameter":
            value.released_by(self, name)
        elif kind == "module":
            for _, p in value.named_parameters():
                p.last_name = p.name  # the whole path, while it is still known
            value.__dict__["_owners"] = remove_owner(value._owners, self, name)
        changes.note()

    def __getattr__(self, name):
        kind = type(self).__name__
        raise AttributeError(
            f"{kind} has no attribute '{name}'; registered: {', '.join(self._members) or 'nothing'}"
        )

    def register_buffer(self, name, value, persistent=True):
        """Adds a Buffer: values that are part of the state but not trained."""
        setattr(self, name, value if isinstance(value, Buffer) else Buffer(value, persistent))

    def register_parameter(self, name, value):
        """Adds a Parameter, or None for one that is left out: `self.name = value`."""
        setattr(self, name, value)

    # -- walks ---------------------------------------------------------------------------------

    def named_children(self):
        """(name, module) of the direct submodules."""
        for name, kind in tuple(self._members.items()):
            if kind == "module":
                yield name, getattr(self, name)

    def children(self):
        """The direct submodules."""
        for _, module in self.named_children():
            yield module

    def named_modules(self):
        """(dotted name, module) of this module ("") and all below, each once."""
        seen, stack = set(), [("", self)]
        while stack:
            prefix, module = stack.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            refuse_hidden(module, INTERNAL, (Registry, Parameter))
            yield prefix, module
            below = [(f"{prefix}.{n}" if prefix else n, m) for n, m in module.named_children()]
            stack += reversed(below)

    def modules(self):
        """This module and all below, each once."""
        for _, module in self.named_modules():
            yield module

    def _found(self, kind):
        """[(dotted name, value)] of a kind, each value once; remembered while no module changes.

        Modules are not remembered: that would keep those alive that were taken out.
        """
        found = self.__dict__.get("_walked")
        if found is None or found[0] != changes.count:
            lists, seen = {"parameter": [], "buffer": []}, set()
            for prefix, module in self.named_modules():
                for name, what in module._members.items():
                    value = getattr(module, name) if what != "module" else None
                    if value is not None and id(value) not in seen:
                        seen.add(id(value))
                        lists[what].append((f"{prefix}.{name}" if prefix else name, value))
            found = self.__dict__["_walked"] = changes.count, lists
        return found[1][kind]

    def named_parameters(self):
        """(dotted name, Parameter); a tied one once, under its first name."""
        yield from self._found("parameter")

    def parameters(self):
        """The Parameters, each once."""
        for _, p in self._found("parameter"):
            yield p

    def named_buffers(self):
        """(dotted name, Buffer), each once."""
        yield from self._found("buffer")

    def buffers(self):
        """The Buffers, each once."""
        for _, b in self._found("buffer"):
            yield b


def _hint(cls, keywords):
    """Says what a keyword of PyTorch's layers is called here, if the layer does not know it."""
    known = inspect.signature(cls.__init__).parameters
    for name in keywords:
        ours = KNOWN_AS.get(name)
        if ours in known and name not in known:
            raise ArgumentTypeError(
                f"{cls.__name__}: there is no argument {name}", fix=f"{ours}=, as it is called here"
            )


def _kind(value: Any):
    if isinstance(value, Parameter):
        return "parameter"
    if isinstance(value, Registry):
        return "module"
    return "buffer" if isinstance(value, Buffer) else None


def _raise_not_registered(module, name, known, value):
    """A registered attribute is set to something that is none of its kind."""
    where = f"{type(module).__name__}.{name}"
    if isinstance(value, Variable) and value.node is not None:
        raise GradientError(
            f"{where} is a {known}, and the new value carries a graph",
            f"the output of {value.node.op}",
            f"self.{name}.map(f) or self.{name}.assign(value.detach()): same parameter, new values",
            details=[("made at", value.node.line)],
        )
    fixes = {
        "parameter": f"self.{name}.assign(value) keeps it; nn.Parameter(value) replaces it",
        "buffer": f"self.{name}.copy_(value) keeps it; nn.Buffer(value) replaces it",
        "module": f"del self.{name} first",
    }
    raise ArgumentTypeError(f"{where}: wanted a {known}", f"{type(value).__name__}", fixes[known])
