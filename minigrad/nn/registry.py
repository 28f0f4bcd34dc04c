"""Registry: attributes that are parameters, buffers or modules, by name and in order."""

from typing import Any

from minigrad.arguments import instance, short
from minigrad.errors import ArgumentError, ArgumentTypeError, GradientError
from minigrad.hints import missing, refuse_misfit, refuse_unknown_arguments
from minigrad.memory.interrupts import uninterrupted
from minigrad.nn.hidden import refuse_hidden
from minigrad.nn.ownership import add_owner, changes, reference, remove_owner
from minigrad.nn.parameter import Buffer, Parameter
from minigrad.seams import seams
from minigrad.tape.attribute_writes import written
from minigrad.tape.variable import Variable

INTERNAL = {"_forward_hooks", "_members", "_owners", "_reference", "_walked", "training"}


class Registry:
    """The part of a Module that registers parameters, buffers and submodules."""

    training: bool
    _members: dict  # attribute -> 'parameter', 'buffer' or 'module', in order
    _owners: list
    _reference: object

    @uninterrupted
    def __new__(cls, *args, **kwargs):
        if kwargs:
            refuse_unknown_arguments(cls.__name__, cls.__init__, kwargs, "layer")
        refuse_misfit(cls, args, kwargs)
        return cls.blank()

    @classmethod
    @uninterrupted
    def blank(cls):
        """Makes a module without attributes, for `__new__` and for copies."""
        self = object.__new__(cls)
        self.__dict__.update(_members={}, _owners=[], _reference=reference(self), training=True)
        seams.effects.own(self)
        return self

    # -- attributes ----------------------------------------------------------------------------

    @uninterrupted
    def __setattr__(self, name, value: Any):
        before = self.__dict__.get(name)
        if before is value and value is not None:
            return  # m.w *= 2 writes in place and then sets the same object
        is_switch = name == "training" and type(before) is type(value) is bool
        is_number = type(value) in (float, int) and type(before) is type(value)
        number = name if is_number else None
        written(self, f"{type(self).__name__}.{name} = ...", is_switch, number)
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

    @uninterrupted
    def __delattr__(self, name):
        written(self, f"del {type(self).__name__}.{name}")
        known = self._members.pop(name, None)
        if known:
            self._let_go(name, self.__dict__[name], known)
        object.__delattr__(self, name)

    def _let_go(self, name, value, kind):
        if kind == "parameter":
            value.released_by(self, name)
        elif kind == "module":
            for _, p in value.named_parameters():
                p.last_name = p.name  # the full path, while it is still known
            value.__dict__["_owners"] = remove_owner(value._owners, self, name)
        changes.note()

    def __getattr__(self, name):
        registered = f"registered: {', '.join(self._members) or 'nothing'}"
        known = (*dir(type(self)), *self._members)
        text = f"{type(self).__name__} has no attribute"
        raise missing("Module", name, text, None, registered, known)

    def register_buffer(self, name, value, persistent=True):
        """Adds a Buffer: values that are part of the state but not trained."""
        _attribute("register_buffer", name)
        setattr(self, name, value if isinstance(value, Buffer) else Buffer(value, persistent))

    def register_parameter(self, name, value):
        """Adds a Parameter, or None for an omitted one: `self.name = value`."""
        _attribute("register_parameter", name)
        if value is not None:
            instance("register_parameter", "value", value, Parameter, "a Parameter or None")
        setattr(self, name, value)

    # -- walks ---------------------------------------------------------------------------------

    def named_children(self):
        """Yields (name, module) of the direct submodules."""
        for name, kind in tuple(self._members.items()):
            if kind == "module":
                yield name, getattr(self, name)

    def children(self):
        """Yields the direct submodules."""
        for _, module in self.named_children():
            yield module

    def named_modules(self):
        """Yields (dotted name, module) of this module, named "", and all below it, each once."""
        seen, stack = set(), [("", self)]
        while stack:
            prefix, module = stack.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            module._refuse_hidden()
            yield prefix, module
            below = [(f"{prefix}.{n}" if prefix else n, m) for n, m in module.named_children()]
            stack += reversed(below)

    def _refuse_hidden(self):
        refuse_hidden(self, INTERNAL, (Registry, Parameter))

    def modules(self):
        """Yields this module and all below it, each once."""
        for _, module in self.named_modules():
            yield module

    def _found(self, kind):
        """Returns [(dotted name, value)] of one kind, 'parameter' or 'buffer', each value once.

        The lists are cached until a module changes. They hold no modules: the cache would keep
        removed ones alive.
        """
        walked = self.__dict__.get("_walked")
        if walked is None or walked[0] != changes.count:
            lists, seen = {"parameter": [], "buffer": []}, set()
            for prefix, module in self.named_modules():
                for name, what in module._members.items():
                    value = getattr(module, name) if what != "module" else None
                    if value is not None and id(value) not in seen:
                        seen.add(id(value))
                        lists[what].append((f"{prefix}.{name}" if prefix else name, value))
            walked = self.__dict__["_walked"] = changes.count, lists
        return walked[1][kind]

    def named_parameters(self):
        """Yields (dotted name, Parameter); a tied parameter once, under its first name."""
        yield from self._found("parameter")

    def parameters(self):
        """Yields the Parameters, each once."""
        for _, p in self._found("parameter"):
            yield p

    def named_buffers(self):
        """Yields (dotted name, Buffer), each once."""
        yield from self._found("buffer")

    def buffers(self):
        """Yields the Buffers, each once."""
        for _, b in self._found("buffer"):
            yield b


def _attribute(where, name):
    if not isinstance(name, str) or not name.isidentifier():
        raise ArgumentTypeError(f"{where}: wanted the name of an attribute", short(name))


def _kind(value: Any):
    if isinstance(value, Parameter):
        return "parameter"
    if isinstance(value, Registry):
        return "module"
    return "buffer" if isinstance(value, Buffer) else None


def _raise_not_registered(module, name, known, value):
    """Raises the error for setting a registered attribute to a value of another kind."""
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
