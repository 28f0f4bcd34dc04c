"""Calls that all ranks make together: sums, broadcasts, gathers, barriers.

Each is two steps: the ranks compare what they ask for (`Group.agree`), then data moves.
"""

from typing import Any, NamedTuple

import numpy as np

from minigrad.arguments import choice, number, whole
from minigrad.array.dtypes import int64
from minigrad.devices.backend import device_named, values
from minigrad.distributed.membership import Group, current
from minigrad.errors import ArgumentError, DistributedError, DTypeError, GradientError
from minigrad.hints import teaching
from minigrad.ops.creation import variable
from minigrad.seams import seams
from minigrad.tape.modes import state
from minigrad.tape.variable import Variable

OPS = ("sum", "mean", "weighted")


@teaching
def all_reduce(x, op="sum", weight=None):
    """Combines the x of all ranks; returns the result, the same bits on every rank.

    (...) -> (...). Sums of ints and bools are int64. Sums of float16 are float32 until the end.
    Each run of a compiled step makes the call again.

    Args:
        x: a Variable, or data for one. Gradients do not flow through: it must not require any.
        op: "sum"; "mean", the sum divided by the number of ranks; or "weighted", the sum of
            weight * x divided by the sum of all weights. A rank with weight 0 does not count,
            whatever its x is.
        weight: for "weighted" a number of at least 0, such as the number of this rank's examples.

    Raises:
        DistributedError: on every rank, if a rank makes another call, has failed, or does not come.
        DTypeError: a mean of ints.
        GradientError: x requires gradients.

    >>> import minigrad as mg
    >>> def step():
    ...     r = mg.distributed.rank()
    ...     return mg.distributed.all_reduce(mg.variable([r + 1.0]), "weighted", weight=r).item()
    >>> mg.distributed.run(step, 3)  # (0 * 1 + 1 * 2 + 2 * 3) / 3
    [2.6666667461395264, 2.6666667461395264, 2.6666667461395264]
    """
    group = current("all_reduce", is_repeated=True)
    x = _operand("all_reduce", x)
    choice("all_reduce", "op", op, OPS)
    if (op == "weighted") != (weight is not None):
        raise ArgumentError(
            "all_reduce: wanted a weight for op 'weighted', and only there",
            f"op={op!r}, weight={weight!r}",
            "all_reduce(x, 'weighted', weight=len(batch))",
        )
    weight = 1.0 if weight is None else float(number("all_reduce", "weight", weight, 0.0))
    if op != "sum" and not x.dtype.is_float:
        raise DTypeError(f"all_reduce: wanted floats for a {op}", x.describe(), "x.to('float32')")
    wanted = x.shape, x.dtype if x.dtype.is_float else int64
    (reduced,) = seams.effects.each_run("all_reduce", _Reduced(group, op, weight), (x,), [wanted])
    return reduced


class _Reduced(NamedTuple):
    """A call of `all_reduce` by one rank, whose arguments were checked."""

    group: Group
    op: str
    weight: float

    def __call__(self, x):
        """Return [x, combined over the ranks]."""
        group, op, weight = self
        if current("all_reduce") is not group:
            raise DistributedError(
                "all_reduce: this compiled step belongs to another rank",
                fix="call mg.compile in the function that `run` calls, so that each rank has its "
                "own step",
            )
        head, weights = group.agree(f"all_reduce {op!r} of {_kind(x)}", weight)
        total = sum(weights)
        if not total:
            raise group.failed(
                ArgumentError(f"{head}: wanted a weight above 0 on some rank", f"{weights}")
            )
        wide: Any = x.dtype.arithmetic if x.dtype.is_float else int64
        data = np.array(values(x.array), dtype=wide.numpy, order="C")
        if op == "weighted":
            data[...] = data * data.dtype.type(weight / total) if weight else 0.0
        group.engine.sum(data, head)
        if op == "mean":
            data /= group.size
        return [_like(x, data, x.dtype if x.dtype.is_float else int64)]


@teaching
def broadcast(x, root=0):
    """Returns the x of one rank, on all ranks.  (...) -> (...).

    x must have the same shape and dtype everywhere, also where its values do not matter.

    Raises:
        DistributedError: on every rank, if a rank makes another call, has failed, or does not come.
        ArgumentError: there is no rank `root`.
    """
    group = current("broadcast")
    x = _operand("broadcast", x)
    root = whole("broadcast", "root", root, 0)
    if root >= group.size:
        raise ArgumentError(
            f"broadcast: wanted a root from 0 to {group.size - 1}, one of the ranks", str(root)
        )
    head, _ = group.agree(f"broadcast from rank {root} of {_kind(x)}")
    data = np.array(values(x.array), order="C")
    group.engine.broadcast(data, root, head)
    return _like(x, data, x.dtype)


@teaching
def all_gather(x):
    """Returns the x of all ranks, on all ranks, along a new first axis.  (...) -> (size, ...).

    Raises:
        DistributedError: on every rank, if a rank makes another call, has failed, or does not come.

    >>> import minigrad as mg
    >>> mg.distributed.run(lambda: mg.distributed.all_gather(mg.distributed.rank()).tolist(), 2)
    [[0, 1], [0, 1]]
    """
    group = current("all_gather")
    x = _operand("all_gather", x)
    head, _ = group.agree(f"all_gather of {_kind(x)}")
    parts = group.engine.gather(np.array(values(x.array), order="C"), head)
    return _like(x, np.stack(parts), x.dtype)


@teaching
def barrier():
    """Waits until all ranks have come here.

    Raises:
        DistributedError: on every rank, if a rank makes another call, has failed, or does not come.
    """
    current("barrier").agree("barrier")


def _operand(where, x):
    x = x if isinstance(x, Variable) else variable(x)
    if x.requires_grad and state.recording:
        raise GradientError(
            f"{where}: gradients do not flow from one rank to another",
            f"{x.describe()}, which requires gradients",
            f"{where}(x.detach()); DataParallel sums the gradients of a model",
        )
    return x


def _kind(x):
    return f"{x.dtype}{list(x.shape)}"


def _like(x, data, dtype):
    return Variable(device_named(x.device).from_numpy(data, dtype))
