"""state_dict: the values of a model by name, and writing them back."""

import difflib
from typing import NamedTuple

from minigrad.errors import ArgumentTypeError, StateError
from minigrad.graph.modes import no_grad
from minigrad.graph.variable import Variable
from minigrad.kernels.backend import device_of
from minigrad.ops.operands import constant


class LoadResult(NamedTuple):
    """What load_state_dict(strict=False) left aside."""

    missing: list
    unexpected: list


def entries(module):
    """{dotted name: Parameter or persistent Buffer} in order."""
    found = dict(module.named_parameters())
    found |= {name: b for name, b in module.named_buffers() if b.is_persistent}
    return found


def state_dict(module):
    """Module.state_dict."""
    return {
        name: Variable(device_of(x.array).share(x.array)) for name, x in entries(module).items()
    }


def load_state_dict(module, state, strict=True):
    """Module.load_state_dict."""
    if not hasattr(state, "items"):
        raise ArgumentTypeError(
            "load_state_dict: wanted a dict of names and values", f"{type(state).__name__}"
        )
    wanted = entries(module)
    missing = [name for name in wanted if name not in state]
    unexpected = [name for name in state if name not in wanted]
    values = {
        name: value if isinstance(value, Variable) else constant(value, name)
        for name, value in state.items()
        if name in wanted
    }
    problems = []
    if strict:
        problems += [f"missing: {name}{_close(name, unexpected)}" for name in missing]
        problems += [f"unexpected: {name}" for name in unexpected]
    for name, value in values.items():
        if value.shape != wanted[name].shape:
            problems.append(f"{name}: shape {value.shape}, the model has {wanted[name].shape}")
        elif value.dtype.kind != wanted[name].dtype.kind:
            problems.append(f"{name}: dtype {value.dtype}, the model has {wanted[name].dtype}")
    if problems:
        raise StateError(
            f"load_state_dict: the state does not fit this {type(module).__name__}; "
            "nothing was written",
            "; ".join(problems),
            "build the model as it was when the state was saved"
            + (", or pass strict=False to load what fits by name" if strict else ""),
        )
    with no_grad():
        for name, value in values.items():
            wanted[name].copy_(value.detach().to(wanted[name].device))
    return LoadResult(missing, unexpected)


def _close(name, others):
    found = difflib.get_close_matches(name, others, 1, 0.7)
    return f" (is it '{found[0]}'?)" if found else ""
