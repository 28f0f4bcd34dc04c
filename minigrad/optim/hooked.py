"""Runs optimizers and GradScalers with a learner's parts: `update`, `grad_scaler` of `Seams`."""

from typing import Any

import numpy as np

from minigrad.array.array import Array
from minigrad.devices.backend import device_of, set_values
from minigrad.devices.backend import values as values_of
from minigrad.errors import SeamError
from minigrad.formulas.update import MASTER
from minigrad.memory.interrupts import uninterrupted
from minigrad.optim.traced import cast
from minigrad.tape.node import user_place


def updated_by_hook(optimizer, update):
    """Calls `update` with copies for each parameter with a gradient, then writes the results.

    Returns False, and does nothing, if `update` is for other algorithms.
    """
    if optimizer.algorithm not in getattr(update, "algorithms", (optimizer.algorithm,)):
        return False
    pairs = []
    for group in optimizer.groups:
        hyperparameters = group.as_dict()
        for p in group.parameters:
            if p.grad is None or not p.requires_grad:
                continue
            kept = optimizer.state_for(p, group) or {}
            values, gradient = (_wide(v.array, p.dtype).flatten() for v in (p, p.grad))
            state = {k: values_of(v.array).flatten() for k, v in kept.items() if k != "step"}
            master = state.pop(MASTER, None)
            if master is not None:  # see formulas.update.exact
                near = _wide(kept[MASTER].array, p.dtype).flatten()
                values = np.where(near == values, master, values)
            given: dict[str, Any] = dict(state)
            if "step" in kept:
                given["step"] = int(kept["step"].item()) + 1
            update(optimizer.algorithm, values, gradient, given, hyperparameters)
            for name, before in state.items():
                if given.get(name) is not before:
                    raise SeamError(
                        f"update: wanted state['{name}'] written in place",
                        "another object under that name",
                        f"state['{name}'][:] = ...",
                    )
            if not np.isfinite(values).all() and np.isfinite(gradient).all():
                raise SeamError(
                    f"update: non-finite values for '{p.name}' from a finite gradient",
                    f"{values[~np.isfinite(values)][:3]}",
                )
            if master is not None:
                pairs.append((kept[MASTER].array, values))
            pairs.append((p.array, values if master is None else kept[MASTER].array))
            pairs += [(kept[name].array, value) for name, value in state.items()]
            if "step" in kept:
                pairs.append((kept["step"].array, np.array(given["step"])))
    write(pairs, user_place())
    return True


def unscaled_by_hook(scaler, optimizer, pairs, hook):
    """Has a `grad_scaler` divide copies of gradients, then writes them back.

    pairs: [(parameter, gradient)]. Returns whether one of them was NaN or infinite before.
    """
    copies = [values_of(g.array).flatten() for _, g in pairs]
    is_found = not all(np.isfinite(copy).all() for copy in copies)
    hook.unscale_(scaler, optimizer, copies)
    write([(g.array, copy) for (_, g), copy in zip(pairs, copies, strict=True)], user_place())
    return is_found


def stepped_by_hook(scaler, optimizer, hook):
    """Has a `grad_scaler` make an optimizer's step. Returns whether it was made."""
    made = []
    hook.step(scaler, optimizer, lambda: made.append(optimizer.step()))
    return bool(made)


def _wide(array, dtype):
    """Returns the values of an Array, rounded to a dtype, in the type that kernels compute in."""
    device = device_of(array)
    return values_of(cast(device, cast(device, array, dtype), dtype.arithmetic))


@uninterrupted
def write(pairs, place):
    """Writes to each Array the ndarray or the Array beside it. Writes all or none."""
    for array, values in pairs:
        device_of(array).prepare_write(array, place)
        if isinstance(values, Array):
            device_of(array).copy(values, array)
        else:
            set_values(array, values.reshape(array.shape))
