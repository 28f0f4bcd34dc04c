"""mg.use: replaces parts of the engine by a learner's functions. One table, one row per seam."""

import inspect
from collections.abc import Callable

from minigrad.course.seam_graph import FindCycle, TopologicalOrder
from minigrad.course.seam_kernels import kernels
from minigrad.course.seam_memory import LearnersPool, PlanReuse
from minigrad.course.seam_parts import (
    Accumulate,
    CheckSaved,
    ClipGradNorm,
    GradientPlan,
    Gradients,
    Part,
    Unbroadcast,
    Update,
    UpdateByAlgorithm,
)
from minigrad.course.seam_ranks import LearnersSum
from minigrad.course.seam_scaler import SCALER_METHODS, LearnersScaler
from minigrad.course.seam_storage import CopyOnWrite
from minigrad.errors import SeamError
from minigrad.memory.blocks import Block
from minigrad.ops.base import Elementwise, RowWise
from minigrad.ops.table import registry  # the table fills it
from minigrad.seams import seams
from minigrad.tape import modes


def _part(name, function):
    if not callable(function) or inspect.isclass(function):
        raise SeamError(f"mg.use({name}=...): wanted a function", f"{function!r:.60}")
    return Part(name, function)


def _function(adapter):
    return lambda name, function: adapter(_part(name, function))


def _gradients(name, table):
    if not isinstance(table, dict):
        raise SeamError(
            f"mg.use({name}=...): wanted a dict", type(table).__name__, "gradients={'mul': f}"
        )
    known = {
        op_name: op
        for op_name, op in registry.items()
        if issubclass(op, Elementwise) and not issubclass(op, RowWise) and op.gradient_formulas
    }
    plans = {}
    for op_name, function in table.items():
        if op_name not in known:
            raise SeamError(
                f"mg.use({name}=...): wanted elementwise operations", f"{op_name!r}",
                f"one of {', '.join(sorted(known))}",
            )  # fmt: skip
        plans[op_name] = GradientPlan(known[op_name], _part(f"{name}[{op_name!r}]", function))
    return Gradients(plans)


def _class(adapter, *methods):
    def adapt(name, cls):
        missing = [m for m in methods if not callable(getattr(cls, m, None))]
        if not inspect.isclass(cls) or missing:
            wanted = f"{', '.join(methods[:-1])} and {methods[-1]}"
            raise SeamError(
                f"mg.use({name}=...): wanted a class with {wanted}",
                f"{cls!r:.60}" + (f" without {', '.join(missing)}" if missing else ""),
            )
        part = Part(name, cls.__init__)
        part.function, part.name = cls, cls.__name__
        return adapter(part)

    return adapt


def _update(name, part):
    if not isinstance(part, dict):
        return Update(_part(name, part))
    for algorithm in part:
        if algorithm not in ALGORITHMS:
            raise SeamError(
                f"mg.use({name}=...): wanted algorithms", f"{algorithm!r}",
                f"one of {', '.join(ALGORITHMS)}",
            )  # fmt: skip
    return UpdateByAlgorithm({key: Update(_part(f"{name}[{key!r}]", f)) for key, f in part.items()})


ALGORITHMS = ("SGD", "Adam", "AdamW", "RMSprop")

# For each argument of `use`: its name in `minigrad.seams`, and (name, learner's part) -> value.
SEAMS: dict[str, tuple[str, Callable]] = {
    "gradients": ("gradient_plan", _gradients),
    "topological_order": ("topological_order", _function(TopologicalOrder)),
    "find_cycle": ("find_cycle", _function(FindCycle)),
    "unbroadcast": ("unbroadcast", _function(Unbroadcast)),
    "accumulate": ("accumulate", _function(Accumulate)),
    "storage": ("storage", _class(CopyOnWrite, "read", "write", "fork")),
    "check_saved": ("check_saved", _function(CheckSaved)),
    "pool": ("pool", _class(LearnersPool, "alloc", "free")),
    "plan_reuse": ("plan_reuse", _function(PlanReuse)),
    "update": ("update", _update),
    "clip_grad_norm_": ("clip_grad_norm_", _function(ClipGradNorm)),
    "grad_scaler": ("grad_scaler", _class(LearnersScaler, *SCALER_METHODS)),
    "all_reduce": ("all_reduce", _function(LearnersSum)),
    "kernels": ("kernel", kernels),
}

# Seams below the fast paths; while others are open, steps run as they are and are not compiled.
BELOW = {"pool", "plan_reuse"}


class use(Block):
    """Runs the engine with a learner's functions for some of its parts, in this thread.

    It works in eager mode, on the CPU (kernels: on simt and cuda, too), to first order. Blocks
    nest. With pool and plan_reuse alone, steps are compiled as well. The parts, and how each
    function is called:

    - gradients={'mul': f}: f(dy, a, b) -> (da, db) for elementwise operations that are called
      inside the block. Arguments after dy are matched by the names of the op's inputs, or `y` for
      its output, else by the order in which the op keeps them. Arrays have the output's shape; the
      engine sums what was broadcast.
    - topological_order=f: f(root) -> all nodes, each once, inputs before consumers or reversed.
    - find_cycle=f: f(root) -> None, or a list of nodes that ends where it begins.
    - unbroadcast=f: f(g, shape) -> the sum of g in that shape.
    - accumulate=f: f(grads, key, g) adds g to grads[key].
    - storage=CowBuffer: CowBuffer(array), .fork(), .write() -> the array to write to, .read().
    - check_saved=f: f(ctx) raises if a Storage in ctx.saved has another version than ctx.versions.
    - pool=Pool: Pool(system) with .alloc(nbytes) -> an address, .free(address); it has
      system.take(nbytes) -> the address of a segment, system.give_back(address). New memory of the
      CPU comes from it; what was taken before the block goes back to the engine's pool.
    - plan_reuse=f: f([(nbytes, first, last), ...]) -> the offset of each in the memory for the
      temporaries of a step that is compiled inside the block.
    - update=f: f(algorithm, values, gradient, state, hyperparameters) is an optimizer's step for
      one parameter: it writes to values and state, flat copies, in place. A dict {'SGD': f}
      replaces only these algorithms.
    - clip_grad_norm_=f: f(gradients, max_norm) -> the norm before; scales them in place.
    - grad_scaler=GradScaler: every mg.optim.GradScaler asks one of these, which is made by
      GradScaler(init_scale, growth_factor, backoff_factor, growth_interval) and has .scale(loss),
      .unscale_(optimizer), .step(optimizer), .update(), .get_scale(), .growth_tracker. Its loss is
      1.0, its optimizers have .step() and .parameters with .grad alone.
    - all_reduce=f: f(worker, x) -> the sum of the x of all ranks of `mg.distributed`, arrays of
      floats, the same bits on every rank; worker has .rank, .size, .send(to, array) and
      .receive(source). Opened on every rank.
    - kernels={'softmax': f}: f is a CUDA kernel f(x, out) of float32 (rows, n), launched on the
      devices "simt" and "cuda" with a block of 128 threads per row; `launches` counts it. Or f is
      compiled by Numba (@njit): then it runs on the CPU, with rows of float32 or float64. So do
      {'sigmoid': f}, f(x, out) of (n,), and {'matmul': f}, f(a, b, c) of two axes and any strides.
      A tuple (f, g) has one kernel for GPUs, one for the CPU.

    Nodes are `minigrad.course.objects.Node`, leaves have op='leaf'; arrays are NumPy's, read-only.

    Raises:
        SeamError: an unknown name, or a result of a wrong type, length or shape; it names the
            function and its line.

    >>> import minigrad as mg
    >>> x = mg.variable([3.0], requires_grad=True)
    >>> with mg.use(gradients={"mul": lambda dy, a, b: (100 * dy * b, dy * a)}):
    ...     (x * 2.0).backward()
    >>> x.grad.tolist()
    [200.0]
    """

    _setting = "parts"

    def __init__(self, **parts):
        if not parts:
            raise SeamError("mg.use: wanted at least one part", "none", f"one of {_names()}")
        self._parts = {}
        for name, part in parts.items():
            if name not in SEAMS:
                raise SeamError(
                    "mg.use: wanted the name of a seam", f"{name!r}", f"one of {_names()}"
                )
            field, adapt = SEAMS[name]
            self._parts[field] = adapt(name, part)
        self._watches = not self._parts.keys() <= BELOW
        self.launches = getattr(self._parts.get("kernel"), "launches", {})

    def _begin(self):
        if self._watches:
            modes.watch(+1)  # takes every op off the fast path, which has no seams
        if pool := self._parts.get("pool"):
            pool.begin()
        return seams.replace(**self._parts)

    def _end(self, before, is_error):
        if self._watches:
            modes.watch(-1)
        seams.replace(**before)


def _names():
    return ", ".join(SEAMS)
