"""DataParallel: several ranks compute the gradients of one batch, each of its part."""

from weakref import ref

from minigrad.arguments import flag, instance, number, whole
from minigrad.distributed.engine import absent, named
from minigrad.distributed.membership import current
from minigrad.distributed.reduction import Reduction, from_sums, write
from minigrad.distributed.replicas import (
    compare_bits,
    compare_kinds,
    copy,
    send,
    sent,
    some,
    values_of,
)
from minigrad.distributed.supervisor import first_line
from minigrad.distributed.traced import (
    Counts,
    TracedCounts,
    is_looked_at,
    not_finite,
    record_backward,
)
from minigrad.errors import (
    ArgumentError,
    ArgumentTypeError,
    DistributedError,
    GradientError,
    NonFiniteError,
)
from minigrad.hints import missing, teaching, teaching_class
from minigrad.memory.interrupts import block
from minigrad.nn.module import Module
from minigrad.optim.scaled import (
    ELSEWHERE,
    mark,
    mark_alone,
    mark_reduced,
    scaled_of,
)
from minigrad.seams import seams
from minigrad.tape.backward import backward_telling
from minigrad.tape.modes import state
from minigrad.tape.upstream import upstream
from minigrad.tape.variable import Variable, filled

BUCKET_BYTES = 4 << 20
FIX = "replica.backward(loss, weight=len(x)), in `with replica.no_sync():` for micro-batches"
SOME_GONE = "the gradients of no_sync() on all ranks, or zero_grad() on all"


@teaching_class
class DataParallel:
    """Makes the models of all ranks one: the same values at first, the same gradients in each step.

    `replica.backward(loss, weight)` takes the place of `loss.backward()`. Afterwards every
    parameter has on every rank, to the same bits, the gradient of the mean over the examples of all
    ranks. Everything else is as in one process: the optimizer belongs to the model, and each rank
    steps its own.

    Parameters and buffers are those of rank 0 at the beginning. After each reduction the buffers
    (running statistics) are those of the first rank that had examples.

    Args:
        model: a Module with the same parameters on every rank.
        broadcast: whether to take over rank 0's values. False checks that all ranks have the same.
        bucket_bytes: how many bytes of gradients are reduced at a time, while backward runs.
        allow_unused: whether a loss may leave out parameters. Then these count as zeros where
            another rank has a gradient, and stay without one if no rank has any.

    Raises:
        DistributedError: on every rank, if the models differ; the error names the ranks and values.

    >>> import minigrad as mg
    >>> def step():
    ...     model = mg.nn.Linear(1, 1, bias=False)
    ...     replica = mg.distributed.DataParallel(model)
    ...     x = mg.ones((1 + mg.distributed.rank(), 1))  # 1 example, and 2
    ...     replica.backward((model(x) * (1 + mg.distributed.rank())).mean(), weight=len(x))
    ...     return model.weight.grad.item()
    >>> mg.distributed.run(step, 2)  # (1 * 1 + 2 * 2) / (1 + 2)
    [1.6666667461395264, 1.6666667461395264]
    """

    def __init__(self, model, broadcast=True, bucket_bytes=BUCKET_BYTES, allow_unused=False):
        self.model = instance("DataParallel", "model", model, Module, "a Module")
        self._bucket_bytes = whole("DataParallel", "bucket_bytes", bucket_bytes, 1)
        self._allow_unused = flag("DataParallel", "allow_unused", allow_unused)
        is_sent = flag("DataParallel", "broadcast", broadcast)
        self._group = current("DataParallel")
        self._is_running, self._outer_pass, self._reduction = False, None, None
        self._counts, self._traced = Counts(), None
        values = values_of(model)
        compare_kinds(self._member("of a model"), "DataParallel of a model", values)
        if is_sent:
            send(self._group, values, 0, "DataParallel: values")
        else:
            self.check()
        mine = ref(self)
        for p in model.parameters():
            if p.requires_grad:
                p.register_post_accumulate_hook(lambda leaf: _refuse_alone(mine(), leaf))

    def __call__(self, *args, **kwargs):
        return self.model(*args, **kwargs)

    def __getattr__(self, name):
        own = f"replica.model.{name}" if hasattr(self.__dict__.get("model"), name) else None
        raise missing("DataParallel", name, "DataParallel has no attribute", own)

    def __reduce_ex__(self, protocol):
        raise ArgumentTypeError(
            "pickle, copy: a DataParallel belongs to a group of ranks",
            fix="save or copy replica.model",
        )

    # -- gradients -----------------------------------------------------------------------------

    @teaching
    def backward(self, loss, weight):
        """Adds the gradients of a loss to `.grad`, and reduces them over all ranks.

        Afterwards `.grad` is that of the mean over all examples since the last reduction: of all
        ranks, and of all micro-batches in `no_sync()`, each counted by its weight. In a compiled
        step each run of the program does so; the step must have all of its micro-batches.

        Args:
            loss: a Variable of one element, the mean over this rank's examples. None or any value
                with weight 0.
            weight: the number of these examples, len(x); 0 for a rank without any.

        Raises:
            NonFiniteError: on every rank, if the loss of one is NaN or infinite; no gradient was
                written. A loss of half precision, or one that a GradScaler has scaled, is not
                looked at: its gradients are, in scaler.step.
            GradientError: on every rank, if parameters got no gradient on one; the error names
                them, and all gradients are None. So if some gradients of `no_sync()` are gone, and
                others are not. Also if there are gradients from before, or it is called in a hook
                of its own pass.
            DistributedError: on every rank, if a rank makes another call, has failed, or does not
                come. If a rank's backward raises, on the others.
        """
        self._member("backward", is_repeated=True)
        if self._is_running:
            raise GradientError(
                "DataParallel.backward inside of another one of the same model: its gradients are "
                "on their way to the other ranks",
                fix="add what the hook computes to the loss, or call it after the first one",
            )
        weight = float(number("DataParallel.backward", "weight", weight, 0.0))
        parameters = [(name, p) for name, p in self.model.named_parameters() if p.requires_grad]
        lost, counts = self._check_begun(parameters), self._now
        if lost and counts.weight and not (counts.is_synced and counts is self._counts):
            raise self._given_up(parameters, SOME_GONE, f"none for {some(lost)}")
        if seams.effects.is_tracing:
            record_backward(self, loss, weight, parameters)
            return
        bad = ""
        if weight:
            upstream(loss, None)
            bad = not_finite(loss) if is_looked_at(loss) else ""
        if not counts.is_synced:
            if bad:
                raise NonFiniteError("DataParallel.backward: wanted a finite loss", bad)
            self._run(loss, weight)
            return
        weights = self._compare(parameters, counts.weight + weight, bad, lost, counts.weight)
        self._reduce(loss, weight, parameters, weights)
        counts.forget()
        buffers = [x for _, x in self.model.named_buffers()]
        copy(zip(buffers, self._sent(buffers, weights), strict=True))

    @block
    def no_sync(self):
        """Leaves out the reduction inside the block: `backward` then adds to this rank's `.grad`.

        The next `backward` outside reduces all. Before it, optimizers do not step.
        """
        counts = self._now
        before, counts.is_synced = counts.is_synced, False
        try:
            yield
        finally:
            counts.is_synced = before

    @property
    def _now(self):
        """Return the counts, or while a step is traced those of the trace."""
        if not seams.effects.is_tracing:
            return self._counts
        if self._traced is None or self._traced.trace() is not seams.effects:
            self._traced = TracedCounts(self)
        return self._traced

    def _check_begun(self, parameters):
        """Check that gradients are those since the last reduction.

        Return the names of the counted ones that are gone. If all are, their weight does not count.
        """
        counts = self._now
        lost = [name for name, p in counts.parameters.items() if p.grad is None]
        if lost and len(lost) == len(counts.parameters):
            counts.forget()
        old = [name for name, p in parameters if p.grad is not None] if not counts.weight else []
        if old:
            raise GradientError(
                "DataParallel.backward: wanted no gradients from before",
                f"{some(old)} has one" if len(old) == 1 else f"{some(old)} have them",
                "optimizer.zero_grad() after each step; `with replica.no_sync():` accumulates",
            )
        return lost

    def _compare(self, parameters, weight, bad, lost=(), kept=0.0):
        """Compare a call with those of the other ranks; return the weights of all.

        weight: of this rank's examples; bad: its loss in words if it is not finite; lost: the names
        of counted gradients that are gone; kept: the weight of those that are there.
        """
        size = sum(p.size for _, p in parameters)
        what = f"DataParallel.backward to {len(parameters)} parameters of {size} elements"
        head, notes = self._group.agree(what, (weight, bad, lost, kept))
        if any(lost for _, _, lost, _ in notes) and any(kept for *_, kept in notes):
            by_rank = [lost for _, _, lost, _ in notes]
            raise self._given_up(parameters, SOME_GONE, _missing(by_rank))
        if any(bad for _, bad, *_ in notes):
            at_fault = {r: bad for r, (_, bad, *_) in enumerate(notes) if bad}
            raise NonFiniteError(
                f"call {head.number} of mg.distributed, {what}: wanted a finite loss on every rank",
                ", ".join(f"{loss} on {named([r])}" for r, loss in at_fault.items()),
                "no gradient was written: leave the batch out on all ranks, or look for its cause "
                "with mg.debug.detect_anomaly()",
            )
        weights = [weight for weight, *_ in notes]
        if not sum(weights):
            raise ArgumentError(f"{what}: wanted a weight above 0 on some rank", f"{weights}")
        return weights

    def _given_up(self, parameters, wanted, got, fix=""):
        """Set all gradients to None; return the error."""
        for _, p in parameters:
            p.grad = None
        self._now.forget()
        fix = f"{fix}. All gradients are None now" if fix else "all gradients are None now"
        return GradientError(f"DataParallel.backward: wanted {wanted}", got, fix)

    def _run(self, loss, weight, on_final=None):
        """Run this rank's backward. `.grad` is then the sum of weight / unit times gradients."""
        if not weight:
            return
        counts = self._now
        unit = counts.unit or weight  # 1 for a single batch, so that nothing is rounded
        self._is_running, self._outer_pass = True, state.backward_pass
        try:
            dy = Variable(filled(loss.array, weight / unit))
            backward_telling(loss, dy, on_final)
        finally:
            self._is_running, self._outer_pass = False, None
            mark_alone(self.model.parameters())  # until the reduction
        counts.unit, counts.weight = unit, counts.weight + weight
        named_ones = self.model.named_parameters()
        counts.parameters = {name: p for name, p in named_ones if p.grad is not None}

    def _reduce(self, loss, weight, parameters, weights):
        """Run this rank's backward, and write the gradients of all ranks into `.grad`."""
        counts = self._counts
        factor = (counts.unit or weight) / sum(weights)
        ones = [p for _, p in parameters]
        reduction = Reduction(self._group.engine, ones, self._bucket_bytes, factor)
        self._reduction = reduction
        try:
            self._run(loss, weight, reduction.put)
        except Exception as error:
            self._tell(reduction, first_line(error))
            raise
        except BaseException:
            if self._group.size > 1:  # sums are under way, and this rank takes no part in more
                self._group.failed(DistributedError("DataParallel.backward was interrupted"))
            raise
        finally:
            self._reduction = None
        reduction.put_rest({p: p.grad for p in ones if p.grad is not None})
        missing = [name for name, p in parameters if p.grad is None] if counts.weight else []
        sums, is_any_scaled = self._finish(
            reduction, parameters, missing, bool(scaled_of(ones)), weights
        )
        write(from_sums(sums))
        mark_reduced(self.model.parameters())
        if is_any_scaled:
            mark([p for p in sums if p.grad.mark is None], ELSEWHERE)

    def _finish(self, reduction, parameters, missing, is_scaled, weights):
        """Wait for the sums, all of which have begun, if no rank has failed.

        Return ({parameter: its sum, an ndarray}, whether the gradients of any rank are scaled).
        missing: the names of parameters without a gradient on this rank.
        """
        head, notes = self._group.agree("DataParallel: gradients", (missing, is_scaled, ""))
        sums = reduction.finish(head)
        if failed := _failed(head, notes):
            raise self._group.failed(failed)
        by_rank = [missing for missing, *_ in notes]
        if any(by_rank) and not self._allow_unused:
            raise self._given_up(
                parameters,
                "a gradient for every parameter",
                _missing(by_rank),
                "use them in the loss, freeze them (requires_grad = False), or "
                "DataParallel(model, allow_unused=True)",
            )
        everywhere = set.intersection(*(set(f) for f, w in zip(by_rank, weights, strict=True) if w))
        reduced = {p: sums[p] for name, p in parameters if name not in everywhere}
        return reduced, any(is_marked for _, is_marked, _ in notes)

    def _sent(self, buffers, weights):
        """Return the values that buffers have on the first rank with examples."""
        root = next(r for r, weight in enumerate(weights) if weight)
        return sent(self._group, buffers, root, "DataParallel: buffers")

    def _tell(self, reduction, text):
        """Tell the others that backward has failed on this rank, once it has begun every sum.

        Else they would wait for the sums that are under way.
        """
        reduction.put_rest({})
        try:
            head, notes = self._group.agree("DataParallel: gradients", ([], False, text))
            reduction.finish(head)
        except DistributedError:
            return  # the error of this rank says more
        if not all(text for *_, text in notes):  # else all may go on
            self._group.failed(_failed(head, notes))

    # -- replicas ------------------------------------------------------------------------------

    def check(self):
        """Checks that parameters and buffers have the same bits on all ranks.

        Raises:
            DistributedError: on every rank; it names the values and the ranks whose copy differs.
        """
        compare_bits(self._member("check"), "DataParallel.check", values_of(self.model))

    def _member(self, where, is_repeated=False):
        """Return the group; raise on a thread of another rank. is_repeated: as for `current`."""
        if current(f"DataParallel.{where}", is_repeated) is not self._group:
            raise DistributedError(
                "DataParallel: this model belongs to another rank",
                fix="make the model and its DataParallel, and compile its step, in the function "
                "that `run` calls",
            )
        return self._group


def _refuse_alone(replica, leaf):
    """Raise if a backward pass of a model in DataParallel is none of its `backward`.

    Also if it runs inside of that one, and comes too late.
    """
    if replica is None:
        return
    reduction = replica._reduction
    is_inside = state.backward_pass is not replica._outer_pass  # a pass that a hook began
    if reduction is not None and is_inside and reduction.has(leaf):
        raise GradientError(
            "backward inside of DataParallel.backward: the gradient of this parameter is on its "
            "way to the other ranks already",
            leaf.describe(),
            "add what the hook computes to the loss",
        )
    if not replica._is_running:
        raise GradientError(
            "backward of a model in DataParallel: these gradients are this rank's alone",
            fix=FIX,
        )


def _failed(head, notes):
    """Return the error for ranks whose backward has failed, or None."""
    texts = {r: text for r, (*_, text) in enumerate(notes) if text}
    return absent(head, [*texts], f"raised {next(iter(texts.values()))}") if texts else None


def _missing(by_rank):
    """Return, in words, which gradients are missing; by_rank: their names, by rank."""
    return "; ".join(
        f"{named([r])}: none for {some(names)}" for r, names in enumerate(by_rank) if names
    )
