"""Hooks that backward calls on the gradient of a Variable, and handles to remove them."""

from minigrad.arguments import function
from minigrad.errors import GradientError
from minigrad.memory.interrupts import uninterrupted
from minigrad.tape.attribute_writes import hooked


class Handle:
    """Removes a hook: `handle.remove()`. is_lasting: whether the hook outlives a graph."""

    def __init__(self, hooks, key, is_lasting=True):
        self._hooks, self._key, self._is_lasting = hooks, key, is_lasting

    @uninterrupted
    def remove(self):
        """Removes the hook; a second call does nothing."""
        if self._hooks.pop(self._key, None) is not None and self._is_lasting:
            hooked()

    def __enter__(self):
        return self

    @uninterrupted
    def __exit__(self, *error):
        self.remove()


def register_hook(x, hook):
    """Registers hook(grad), to run when this gradient is complete, before its use.

    A hook that returns a Variable of the same shape replaces the gradient. Hooks run in order.
    Returns a handle, which removes the hook.
    """
    function("register_hook", "the hook", hook)
    if not x.requires_grad:
        raise GradientError("register_hook: this Variable gets no gradient", x.describe())
    owner = x.node or x
    if owner.hooks is None:
        owner.hooks = {}
    return _added(owner.hooks, hook, owner is x)


def register_post_accumulate_hook(x, hook):
    """Registers hook(leaf), to run after each update of the leaf's `.grad`. Returns a handle."""
    function("register_post_accumulate_hook", "the hook", hook)
    if x.node is not None or not x.requires_grad:
        raise GradientError(
            "register_post_accumulate_hook: wanted a leaf that requires gradients", x.describe()
        )
    if x.post_hooks is None:
        x.post_hooks = {}
    return _added(x.post_hooks, hook, True)


def _added(hooks, hook, is_lasting):
    key = object()
    hooks[key] = hook
    if is_lasting:
        hooked()
    return Handle(hooks, key, is_lasting)
