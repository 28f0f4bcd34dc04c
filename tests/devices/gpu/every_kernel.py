"""Every kernel of the engine, collected by running what makes it, with how it is launched.

Small shapes run on the simulator. What depends on the size (wide loads, two stages, long rows) is
only asked for, with launches that do nothing.
"""

import contextlib
import itertools
import math
import re
from collections import defaultdict

import numpy as np

import minigrad as mg
from benchmarks.peers import minigrad_cases
from minigrad.array.array import Array
from minigrad.devices import backend
from minigrad.ops.base import Elementwise
from tests.ops.cells import DTYPE_NAMES, RANDOM, REDUCTIONS, call, draw, public_ops, reason, samples
from tests.optim.reference import FEW

ANY_DTYPE = (  # ops whose kernels are written by hand, for every dtype
    "matmul", "linear", "take", "take_adjoint", "setitem", "cumsum", "argmax", "conv2d", "unfold",
    "fold", "largest", "concatenate",
)  # fmt: skip


class Used:
    """How a kernel was launched: by what, with at most how many threads, shared bytes, elements.

    elements: of the largest array that it was given.
    """

    def __init__(self, label, kernel):
        self.label, self.signature = label, kernel.signature
        self.threads = self.shared = self.elements = 0


class Collector:
    """Notes every launch on the device `simt`; `kernels`: GpuKernel -> Used."""

    def __init__(self):
        self.device = backend.device_named("simt")
        self.kernels, self.label, self.is_running = {}, "", True

    def launch(self, kernel, blocks, threads, operands, shared=0):
        """In place of the device's own."""
        used = self.kernels.setdefault(kernel, Used(_by_hand(kernel) or self.label, kernel))
        used.threads = max(used.threads, math.prod(np.atleast_1d(threads).tolist()))
        used.shared = max(used.shared, shared)
        arrays = [x.size for x in operands if isinstance(x, Array)]
        used.elements = max(used.elements, *arrays)
        if self.is_running:
            self.run(self.device, kernel, blocks, threads, operands, shared)

    @contextlib.contextmanager
    def attached(self, is_running):
        """Sees the launches while the block lasts; whether they are run."""
        self.is_running = is_running
        kind = type(self.device)  # not the object: who writes launches down takes its attributes
        self.run = kind.launch
        kind.launch = lambda device, *launched: self.launch(*launched)
        if not is_running:
            self.device.all_within = lambda x, low, high: True
        try:
            yield
        finally:
            kind.launch = self.run
            self.device.__dict__.pop("has_tensor_cores", None)
            self.device.__dict__.pop("all_within", None)


def _by_hand(kernel):
    """`file.function dtype` of a kernel that is one function of a file in `source/`."""
    found = re.fullmatch(
        r'T, SIZE = (\w+), \d\n\n"""(?P<first>.*?)\n.*def kernel\(.*\):\n    (\w+)\(.*\)\n',
        kernel.text,
        re.DOTALL,
    )
    return f"{found[3]} {found[1].lower()}" if found else ""


def collect():
    """GpuKernel -> Used."""
    found = Collector()
    with found.attached(is_running=True):
        _operations(found)
        _other_dtypes(found)
        _others(found)
    with found.attached(is_running=False), mg.device("simt"):
        _large(found)
    return found.kernels


def by_label():
    """label -> [(GpuKernel, Used)], sorted by label."""
    groups = defaultdict(list)
    for kernel, used in collect().items():
        groups[used.label].append((kernel, used))
    return dict(sorted(groups.items()))


def _variables(op, shapes, attributes, dtype):
    arrays = draw(op, shapes, attributes, dtype)
    return [mg.variable(a, device="simt", requires_grad=a.dtype.kind == "f") for a in arrays]


def _run(found, name, op, shapes, attributes, dtype):
    found.label = f"{name}, forward" if dtype == "float32" else f"{name} {dtype}, forward"
    y = call(op, _variables(op, shapes, attributes, dtype), attributes)
    y = y[0] if isinstance(y, tuple) else y
    if y.requires_grad:
        found.label = found.label.replace("forward", "backward")
        y.backward(mg.ones(y.shape, dtype=y.dtype, device=y.device))


def _operations(found):
    """Every op of the registry, contiguous float32; how inputs broadcast is seen with one alone."""
    for name, op in sorted(public_ops().items()):  # as registered would be as imported
        is_one_of_many = issubclass(op, Elementwise) and name not in ("add", "maximum", "where")
        is_reduction = name in REDUCTIONS and name not in ("sum", "max", "norm")
        most = 1 if is_one_of_many else 3 if is_reduction else None
        for shapes, attributes in samples(op)[:most]:
            _run(found, name, op, shapes, attributes, "float32")


def _other_dtypes(found):
    ops = public_ops()
    for name in ANY_DTYPE:
        for dtype in DTYPE_NAMES[1:]:
            if name not in RANDOM and reason(ops[name], dtype, "contiguous") is None:
                shapes, attributes = samples(ops[name])[0]
                _run(found, name, ops[name], shapes, attributes, dtype)


def _others(found):
    """What is no op: random numbers, optimizers, places of what is not 0."""
    with mg.device("simt"):
        for dtype in ("float32", "float64"):
            found.label = f"random numbers {dtype}"
            mg.rand((5,), dtype=dtype)
            mg.randn((5,), dtype=dtype)
        found.label = "random integers"
        mg.randint(0, 9, (5,))
        for dtype in DTYPE_NAMES:
            found.label = f"indexing by a mask {dtype}"
            x = mg.ones((4, 3), dtype=dtype)
            _ = x[x > 0]
        for kind, dtype in itertools.product(FEW, ("float32", "float64")):
            found.label = f"step of {kind}" + (f" {dtype}" if dtype == "float64" else "")
            weight = mg.nn.Parameter(mg.ones((5, 4), dtype=dtype))
            optimizer = FEW[kind].make([weight])
            (weight * weight).sum().backward()
            mg.optim.clip_grad_norm_([weight], 0.5)
            optimizer.step()

    for name, make in (
        ("an MLP", lambda: minigrad_cases.mlp(mg.compile, [4, 3, 2], 2)),
        ("a transformer", lambda: minigrad_cases.transformer(mg.compile, 8, 2, 4, 2, 1, 5)),
    ):
        found.label = f"step of {name}, compiled by mg.compile"
        with mg.device("simt"):
            case = make()
            for _ in range(4):
                case.step()


def _large(found):
    """Shapes from which a kernel is another one."""
    many = mg.ones((1 << 18,))
    for name in ("exp", "tanh", "relu"):
        found.label = f"{name}, large"
        getattr(mg, name)(many)
    found.label = "add, large"
    _ = many + many
    grid = mg.ones((512, 1024))
    found.label = "add, large, broadcast"
    _ = grid + mg.ones((1024,)) + mg.ones((512, 1))
    for dtype in DTYPE_NAMES:
        found.label = f"fill, large, {dtype}"
        filled = mg.ones((1024, 512), dtype=dtype)
        found.label = f"copy, large, transposed, {dtype}"
        filled.T.clone()
    found.label = "multiply, large, transposed"
    _ = grid * mg.ones((1024, 512)).T
    for name in ("sum", "max", "mean", "prod"):
        for shape, axis in (
            ((1 << 20,), None),
            ((512, 1024), 1),
            ((512, 1024), 0),
            ((8, 70000), 1),
        ):
            found.label = f"{name}, large"
            getattr(mg, name)(mg.ones(shape), axis=axis)
    for length in (33, 100, 1000, 5000, 40000):
        rows = mg.ones((64, length))
        for name in ("softmax", "log_softmax", "logsumexp"):
            found.label = f"{name}, long rows"
            getattr(mg, name)(rows, axis=-1)
        found.label = "layer_norm, long rows"
        mg.layer_norm(rows, mg.ones((length,)), mg.ones((length,)))
        found.label = "cross_entropy, long rows"
        mg.cross_entropy(rows, mg.zeros((64,), dtype="int64"))
    found.label = "matmul, large"
    for m, k, n in (
        (512, 512, 512),
        (64, 4096, 64),
        (1, 512, 512),
        (512, 512, 1),
        (130, 70, 33),
        (1024, 64, 1024),
    ):
        _ = mg.ones((m, k)) @ mg.ones((k, n))
        _ = mg.ones((k, m)).T @ mg.ones((n, k)).T
    found.device.has_tensor_cores = True
    for dtype, n in itertools.product(("float16", "bfloat16"), (64, 65)):
        found.label = f"matmul {dtype}, tensor cores"
        x = mg.ones((n, n), dtype=dtype)
        for left, right in itertools.product((x, x.T), repeat=2):
            _ = left @ right
    found.label = "cumsum, large"
    for shape, axis in (((1 << 16,), 0), ((4096, 64), 0), ((64, 4096), 1)):
        mg.cumsum(mg.ones(shape), axis=axis)
        mg.argmax(mg.ones(shape), axis=axis)
