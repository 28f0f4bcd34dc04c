"""state_dict and load_state_dict: read the values of a model by name, and write them back."""

import difflib
import functools
from typing import NamedTuple

import numpy as np

from minigrad.devices.backend import device_of
from minigrad.devices.backend import values as values_of
from minigrad.errors import ArgumentTypeError, StateError
from minigrad.memory.interrupts import uninterrupted
from minigrad.ops.operands import constant
from minigrad.tape.modes import no_grad
from minigrad.tape.variable import Variable


class LoadResult(NamedTuple):
    """The names that load_state_dict(strict=False) did not load."""

    missing: list
    unexpected: list


def entries(module):
    """Returns {dotted name: Parameter or persistent Buffer}, in order."""
    by_name = dict(module.named_parameters())
    by_name |= {name: b for name, b in module.named_buffers() if b.is_persistent}
    return by_name


def state_dict(module):
    """Module.state_dict."""
    pairs = entries(module).items()
    return {name: Variable(device_of(x.array).share(x.array)) for name, x in pairs}


def load_state_dict(module, state, strict=True):
    """Module.load_state_dict."""
    write, result = prepared(module, state, strict)
    write()
    return result


def prepared(module, state, strict=True):
    """Checks a state; returns (the function that writes it into the module, LoadResult)."""
    if not hasattr(state, "items"):
        raise ArgumentTypeError(
            "load_state_dict: wanted a dict of names and values", f"{type(state).__name__}"
        )
    wanted, main = entries(module), _main_names(module)
    names = [str(name) for name in state]
    given, unexpected = {}, []  # first name of a value -> [(name in the state, value)]
    for name, value in zip(names, state.values(), strict=True):
        if main.get(name) in wanted:
            given.setdefault(main[name], []).append((name, value))
        elif not _is_counter(name, main):
            unexpected.append(name)
    missing = [name for name in wanted if name not in given]
    problems, values = [], {}
    if strict:
        problems += [f"missing: {name}{_close(name, unexpected)}" for name in missing]
        problems += [f"unexpected: {name}" for name in unexpected]
    for name, pairs in given.items():
        known = wanted[name]
        for said, value in pairs:
            value = value if isinstance(value, Variable) else constant(value, said, known)
            before = values.setdefault(name, value)
            if value.shape != known.shape:
                problems.append(f"{said}: shape {value.shape}, the model has {known.shape}")
            elif value.dtype.kind != known.dtype.kind:
                problems.append(f"{said}: dtype {value.dtype}, the model has {known.dtype}")
            elif value is not before and not _are_equal(value, before):
                problems.append(f"{said}: other values than {pairs[0][0]}, its tied name")
    if problems:
        raise StateError(
            f"load_state_dict: the state does not fit this {type(module).__name__}; "
            "nothing was written",
            "; ".join(problems),
            _advice(names, main, strict),
        )
    new = [(wanted[name], v.detach().to(wanted[name].device)) for name, v in values.items()]
    return functools.partial(_write, new), LoadResult(missing, unexpected)


@uninterrupted
def _write(new):
    """Writes all values. Ctrl-C waits until it is done."""
    with no_grad():
        for x, value in new:
            x.copy_(value)


def _main_names(module):
    """Returns {every dotted name: the first name of its value}; tied values have several names."""
    first, names, stack = {}, {}, [("", module)]
    while stack:
        prefix, part = stack.pop()
        for name, kind in part._members.items():
            value = getattr(part, name)
            if kind != "module" and value is not None:
                names[prefix + name] = value
        stack += [(f"{prefix}{name}.", child) for name, child in part.named_children()]
    for pairs in (module.named_parameters(), module.named_buffers()):
        first |= {id(value): name for name, value in pairs}
    return {name: first.get(id(value), name) for name, value in names.items()}


def _is_counter(name, known):
    """Returns whether a name is PyTorch's counter of batches, beside running statistics."""
    prefix, _, last = name.rpartition(".")
    beside = f"{prefix}.running_mean" if prefix else "running_mean"
    return last == "num_batches_tracked" and beside in known


def _are_equal(a, b):
    x, y = values_of(a.array), values_of(b.array)
    return x.shape == y.shape and bool(np.array_equal(x, y, equal_nan=a.dtype.is_float))


def _advice(names, known, strict):
    """Returns what to do. A prefix on every name means that the saved model was wrapped."""
    for prefix in ("module.", "_orig_mod.", "model."):
        is_wrapped = bool(names) and all(n.startswith(prefix) for n in names)
        if is_wrapped and not any(n in known for n in names):
            return (
                f"the names have the prefix of a wrapper: load {{name.removeprefix({prefix!r}): "
                "value for name, value in state.items()}"
            )
    more = ", or pass strict=False to load what fits by name" if strict else ""
    return f"build the model as it was when the state was saved{more}"


def _close(name, others):
    near = difflib.get_close_matches(name, others, 1, 0.7)
    return f" (is it '{near[0]}'?)" if near else ""
