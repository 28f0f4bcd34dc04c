"""DataParallel while a step is traced: each run of the program sums its gradients over the ranks.

A trace records this rank's backward, then a call of `_Sums` between the kernels. That call compares
and sums as an eager `replica.backward` does, by the same messages, so that ranks whose call is
eager, such as those that trace the step later, can meet ranks that run a program.
"""

import weakref
from typing import Any, NamedTuple

import numpy as np

from minigrad.devices.backend import values
from minigrad.distributed.reduction import Reduction, from_sums, write
from minigrad.distributed.replicas import copy
from minigrad.errors import GradientError, NonFiniteError, StateError
from minigrad.optim.scaled import is_scaled, mark_reduced, scaled_of
from minigrad.seams import seams
from minigrad.tape.upstream import upstream

WHOLE = (
    "compile a step with all of its micro-batches, in `with replica.no_sync():`, and the "
    "replica.backward that reduces them; or compile the model or the loss alone"
)


class Counts:
    """What a replica has counted since the last reduction.

    is_synced: whether the next backward reduces. weight: of the examples; unit: of the first ones.
    parameters: {name: parameter} of the gradients that hold them.
    """

    def __init__(self):
        self.is_synced = True
        self.forget()

    def forget(self):
        """Begin anew: no example is counted."""
        self.weight = self.unit = 0.0
        self.parameters: dict[str, Any] = {}


class TracedCounts(Counts):
    """Those of the running trace, which begins and ends with nothing counted."""

    def __init__(self, replica):
        super().__init__()
        self._replica, self.trace = weakref.ref(replica), weakref.ref(seams.effects)
        if not replica._counts.is_synced:
            seams.effects.refuse("a compiled step inside `with replica.no_sync():`", WHOLE)
        if any(p.grad is not None for p in replica._counts.parameters.values()):
            seams.effects.refuse("a compiled step after no_sync() outside of it", WHOLE)
        seams.effects.at_end(self._end)

    def _end(self):
        if self.weight:
            seams.effects.refuse("a compiled step that ends before the reduction", WHOLE)
        seams.effects.later(_Forget(self._replica), [])


class _Forget(NamedTuple):
    """What the replica itself counts, after each run; its gradients were gone before."""

    replica: weakref.ref

    def __call__(self):
        replica = self.replica()
        if replica is not None:
            replica._counts.forget()


def record_backward(replica, loss, weight, parameters):
    """Record `replica.backward(loss, weight)`; parameters: [(name, parameter)]."""
    if replica._allow_unused:
        seams.effects.refuse(
            "DataParallel(allow_unused=True) in a compiled step: whether a parameter has a "
            "gradient may differ at each run",
            "use every parameter in the loss; or compile the model or the loss alone",
        )
    losses, counts = [], replica._now
    if weight:
        upstream(loss, None)
        losses = [loss] if is_looked_at(loss) else []
    if not counts.is_synced:
        for x in losses:
            seams.effects.check_finite(x.array, _not_finite)
        replica._run(loss, weight)
        return
    replica._run(loss, weight)
    grads = {name: p.grad for name, p in parameters if p.grad is not None}
    buffers = [x for _, x in replica.model.named_buffers()] if replica._group.size > 1 else []
    call = _Sums(
        weakref.ref(replica),
        counts.unit,
        counts.weight,
        tuple(name for name, _ in parameters),
        tuple(grads),
        len(losses),
        bool(scaled_of([p for _, p in parameters])),
    )
    inputs = [*losses, *grads.values(), *buffers]
    wanted = [(x.shape, x.dtype) for x in (*(p for _, p in parameters), *buffers)]
    sums = seams.effects.each_run("DataParallel.backward", call, inputs, wanted)
    write(dict(zip([p for _, p in parameters], sums, strict=False)))
    copy(zip(buffers, sums[len(parameters) :], strict=True))
    mark_reduced(replica.model.parameters())
    counts.forget()


def is_looked_at(loss):
    """Return whether a loss must be finite; else its gradients are looked at, in scaler.step."""
    return not (loss.dtype.is_narrow or is_scaled(loss))


def not_finite(loss):
    """Return a loss of one element in words if it is not finite, else an empty string."""
    return "" if np.isfinite(values(loss.array)).all() else f"{loss.item()}"


def _not_finite():
    return NonFiniteError("DataParallel.backward: wanted a finite loss", "NaN or an infinity")


class _Sums(NamedTuple):
    """The call that each run makes: (loss, gradients, buffers) -> (gradients, buffers) of all.

    unit, weight: see `Counts`. names: of the parameters; found: of those with a gradient on this
    rank. losses: how many losses are passed, 0 or 1.
    """

    replica: weakref.ref
    unit: float
    weight: float
    names: tuple
    found: tuple
    losses: int
    is_scaled: bool

    def __call__(self, *given):
        replica: Any = self.replica()
        if replica is None:
            raise StateError(
                "DataParallel.backward in a compiled step: wanted the DataParallel of its trace",
                "nothing holds it any more",
                "keep it where the step finds it, as it keeps what the ranks count",
            )
        group = replica._member("backward")
        if not replica._counts.is_synced:
            raise GradientError(
                "DataParallel.backward: wanted a reduction, which this compiled step makes",
                "a call of the step in `with replica.no_sync():`",
                WHOLE,
            )
        losses, rest = given[: self.losses], given[self.losses :]
        gradients, buffers = rest[: len(self.found)], rest[len(self.found) :]
        known = dict(replica.model.named_parameters())
        parameters = [(name, known[name]) for name in self.names]
        bad = "".join(map(not_finite, losses))
        weights = replica._compare(parameters, self.weight, bad)
        reduction = Reduction(
            group.engine,
            [p for _, p in parameters],
            replica._bucket_bytes,
            self.unit / sum(weights),
        )
        reduction.put_rest({known[name]: g for name, g in zip(self.found, gradients, strict=True)})
        missing = [name for name in self.names if name not in self.found] if self.weight else []
        sums, is_any_scaled = replica._finish(
            reduction, parameters, missing, self.is_scaled, weights
        )
        if is_any_scaled and not self.is_scaled:
            raise StateError(
                "DataParallel.backward in a compiled step: wanted a scaled loss, as on the other "
                "ranks",
                "gradients of a loss that no GradScaler has scaled, or of no loss",
                "scale the loss on every rank; a rank without examples leaves the step uncompiled",
            )
        return [*from_sums(sums).values(), *replica._sent(buffers, weights)]
