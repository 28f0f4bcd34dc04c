"""The values of a model on all ranks: compared, or sent from one rank to all."""

import hashlib

import numpy as np

from minigrad.devices.backend import device_named, values
from minigrad.distributed.engine import named
from minigrad.errors import DistributedError
from minigrad.memory.interrupts import uninterrupted
from minigrad.tape.modes import no_grad
from minigrad.tape.variable import Variable


def values_of(model):
    """Return {name: Variable} of the parameters and buffers."""
    return dict(model.named_parameters()) | dict(model.named_buffers())


def compare_kinds(group, what, variables):
    """Check that all ranks have the same names, dtypes and shapes."""
    kinds = {name: f"{x.dtype}{list(x.shape)}" for name, x in variables.items()}
    _compare(group, what, kinds, "the same parameters and buffers")


def compare_bits(group, what, variables):
    """Check that the values have the same bits on all ranks."""
    digests = {
        name: hashlib.sha256(np.ascontiguousarray(values(x.array)).tobytes()).hexdigest()[:16]
        for name, x in variables.items()
    }
    _compare(group, what, digests, "the same bits of every value")


def _compare(group, what, mine, wanted):
    """Compare {name: text} over the ranks."""
    head, notes = group.agree(what, mine)
    names = dict.fromkeys(name for one in notes for name in one)
    differ, ranks, rows = [], set(), []
    for name in names:
        parties = {}
        for r, one in enumerate(notes):
            parties.setdefault(one.get(name, "none"), []).append(r)
        if len(parties) > 1:
            differ.append(name)
            most = max(parties.values(), key=lambda party: (len(party), -party[0]))
            ranks.update(r for r in range(len(notes)) if r not in most)
            rows.append((name, "; ".join(f"{named(r)}: {x}" for x, r in parties.items())))
    if differ:
        raise DistributedError(
            f"call {head.number} of mg.distributed, {what}: wanted {wanted} on every rank",
            f"{named(sorted(ranks))} with another {some(differ)}",
            "seed every rank alike before the model is made, or DataParallel(model), which "
            "takes over the values of rank 0; then change them on all ranks alike",
            details=rows[:5],
            ranks=sorted(ranks),
            call=what,
        )


def send(group, variables, root, what):
    """Give the values of one rank to all; variables: {name: Variable}."""
    mine = [*variables.values()]
    new = zip(mine, sent(group, mine, root, what), strict=True)
    copy(new)


def sent(group, variables, root, what):
    """Return the values that Variables have on one rank, as new ones; there, those themselves."""
    if not variables or group.size == 1:
        return variables
    head, _ = group.agree(f"{what} of rank {root}")
    arrays = [np.require(values(x.array), requirements="C") for x in variables]
    data = np.concatenate([a.reshape(-1).view(np.uint8) for a in arrays])
    group.engine.broadcast(data, root, head)
    if group.rank == root:
        return variables
    new, start = [], 0
    for x, a in zip(variables, arrays, strict=True):
        piece = data[start : start + a.nbytes].view(a.dtype).reshape(a.shape)
        new.append(Variable(device_named(x.device).from_numpy(piece, x.dtype)))
        start += a.nbytes
    return new


@uninterrupted
def copy(new):
    """Give Variables these values; new: [(Variable, its value)]."""
    with no_grad():
        for x, value in new:
            if value is not x:
                x.copy_(value)


def some(names):
    """Return at most five names, in words."""
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
