"""Correctness on a device: everything against the CPU, which computes it in float64.

Each check returns a Checked: how many comparisons it made, the worst error, what failed.
"""

import contextlib
import sys
from dataclasses import dataclass, field

import numpy as np

import minigrad as mg
from benchmarks.peers import minigrad_cases as cases
from tests.ops.cells import DTYPE_NAMES, RANDOM, call, draw, public_ops, reason, samples

TOLERANCE = {"float32": 2e-4, "float64": 1e-9}  # of the largest element, at least 1
APART = {*RANDOM, "move"}  # ops that are checked by themselves


@dataclass
class Checked:
    """What one check found.

    Attributes:
        name: of the check.
        count: comparisons made.
        worst: the largest error seen, as a share of its tolerance.
        failures: a line for each comparison that failed.
    """

    name: str
    count: int = 0
    worst: float = 0.0
    failures: list = field(default_factory=list)

    def compare(self, what, got, wanted, dtype):
        """Counts one comparison; integers and truth values have to be equal."""
        self.count += 1
        got, wanted = np.asarray(got), np.asarray(wanted)
        if got.shape != wanted.shape:
            self.failures.append(f"{what}: shape {got.shape}, wanted {wanted.shape}")
            return
        if got.dtype.kind != "f":
            if not np.array_equal(got, wanted.astype(got.dtype)):
                self.failures.append(f"{what}: {int((got != wanted).sum())} elements differ")
            return
        same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
        scale = max(1.0, float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0)))
        with np.errstate(invalid="ignore"):
            off = np.where(same, 0.0, np.abs(got.astype(np.float64) - wanted)) / scale
        error = float(np.nan_to_num(off, nan=np.inf).max(initial=0)) / TOLERANCE[dtype]
        self.worst = max(self.worst, error)
        if error > 1:
            self.failures.append(f"{what}: {error:.3g} times the tolerance")

    @contextlib.contextmanager
    def attempt(self, what):
        """What is raised within the block is a failure."""
        try:
            yield
        except Exception as error:  # whatever it is, the other checks go on
            text = str(error).splitlines() or [""]
            self.failures.append(f"{what}: {type(error).__name__}: {text[0]}")


def host(x):
    """A Variable's elements as an ndarray."""
    return x.detach().to("cpu").numpy()


def results(op, arrays, attributes, device):
    """Output and gradients of an op of the registry, on the host; None for no gradient."""
    inputs = [mg.variable(a, device=device, requires_grad=a.dtype.kind == "f") for a in arrays]
    y = call(op, inputs, attributes)
    y = y[0] if isinstance(y, tuple) else y
    if y.requires_grad:
        weights = np.random.default_rng(7).uniform(0.5, 1.5, y.shape)
        y.backward(mg.variable(weights, dtype=y.dtype, device=y.device))
    return [host(y), *(None if x.grad is None else host(x.grad) for x in inputs)]


def checked_ops():
    """name -> op of those that `operations` checks."""
    return {name: op for name, op in public_ops().items() if name not in APART}


def operations(device, names=None, is_quick=False):
    """Every op of the registry and its gradients, in every dtype that it takes."""
    found = Checked("operations and gradients")
    for name, op in checked_ops().items():
        if names is not None and name not in names:
            continue
        for dtype in DTYPE_NAMES[: 1 if is_quick else None]:
            if reason(op, dtype, "contiguous") is not None:
                continue
            for shapes, attributes in samples(op)[: None if dtype == "float32" else 1]:
                what = f"{name} {dtype} {shapes} {attributes}"
                with found.attempt(what):
                    arrays = draw(op, shapes, attributes, dtype)
                    wide = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays]
                    got = results(op, arrays, attributes, device)
                    wanted = results(op, wide, attributes, "cpu")
                    kind = "float64" if dtype == "float64" else "float32"
                    for part, mine, other in zip(range(len(got)), got, wanted, strict=True):
                        if (mine is None) != (other is None):
                            found.failures.append(f"{what}: a gradient is missing")
                        elif mine is not None:
                            label = f"{what}, gradient {part - 1}" if part else what
                            found.compare(label, mine, other, kind)
                if is_quick:
                    break
    return found


LARGE = {  # shapes for which kernels are others than for small ones
    "exp": lambda a: mg.exp(a((1 << 18,))),
    "add and multiply": lambda a: a((512, 1024)) * a((1024,)) + a((512, 1)),
    "transposed": lambda a: a((300, 500)) + a((500, 300)).T,
    "sum": lambda a: mg.sum(a((1 << 20,))),
    "sum of rows": lambda a: mg.sum(a((500, 1300)), axis=1),
    "sum of columns": lambda a: mg.sum(a((1300, 500)), axis=0),
    "largest of rows": lambda a: mg.max(a((8, 70000)), axis=1),
    "softmax": lambda a: mg.softmax(a((64, 5000)), axis=-1),
    "softmax of long rows": lambda a: mg.softmax(a((3, 40000)), axis=-1),
    "log of sums": lambda a: mg.logsumexp(a((64, 1000)), axis=-1),
    "layer norm": lambda a: mg.layer_norm(a((64, 1000)), a((1000,)), a((1000,))),
    "matmul": lambda a: a((257, 300)) @ a((300, 129)),
    "matmul, transposed": lambda a: a((300, 257)).T @ a((129, 300)).T,
    "matmul, batches": lambda a: a((5, 1, 64, 70)) @ a((3, 70, 33)),
    "matmul, long": lambda a: a((16, 20000)) @ a((20000, 16)),
    "running sum": lambda a: mg.cumsum(a((70000,)), axis=0),
    "place of the largest": lambda a: mg.argmax(a((100, 3000)), axis=1),
    "convolution": lambda a: mg.conv2d(a((4, 3, 32, 32)), a((8, 3, 3, 3)), padding=1),
}


def large(device):
    """Operations on larger arrays."""
    found = Checked("large arrays")
    for name, function in LARGE.items():
        with found.attempt(name):
            values = {}
            for place, dtype in ((device, "float32"), ("cpu", "float64")):
                rng = np.random.default_rng(3)

                def array(shape, rng=rng, dtype=dtype, place=place):
                    drawn = rng.standard_normal(shape).astype(np.float32)
                    return mg.variable(drawn.astype(dtype), device=place)

                values[place] = host(function(array))
            found.compare(name, values[device], values["cpu"], "float32")
    return found


def random_numbers(device):
    """A seed gives the same numbers as on the CPU."""
    found = Checked("random numbers")
    draws = {
        "uniform float32": lambda place: mg.rand((1001,), device=place),
        "uniform float64": lambda place: mg.rand((1001,), dtype="float64", device=place),
        "normal float32": lambda place: mg.randn((1001,), device=place),
        "normal float64": lambda place: mg.randn((1001,), dtype="float64", device=place),
        "integers": lambda place: mg.randint(-5, 1000, (1001,), device=place),
    }
    for name, function in draws.items():
        with found.attempt(name):
            values = []
            for place in (device, "cpu"):
                mg.manual_seed(11)
                values.append(host(function(place)))
            found.compare(name, *values, "float64" if "64" in name else "float32")
    return found


def training(device, steps=5):
    """Losses of training steps, eager and compiled: those of the CPU."""
    found = Checked("training steps")
    models = {
        "digits MLP": lambda wrap: cases.mlp(wrap, [64, 32, 10], 64),
        "transformer": lambda wrap: cases.transformer(wrap, 32, 2, 16, 4, 1, 50),
        "convolutions": lambda wrap: cases.cnn(wrap, 4, (4, 8), 12),
    }
    for name, make in models.items():
        for how, wrap in (("eager", lambda f: f), ("compiled", mg.compile)):
            with found.attempt(f"{name}, {how}"):
                values = []
                for place in (device, "cpu"):
                    with mg.device(place):
                        case = make(wrap if place == device else (lambda f: f))
                        values.append([float(case.step()) for _ in range(steps)])
                found.compare(f"{name}, {how}", *map(np.array, values), "float32")
    return found


BLOCK = 64


@mg.cuda.jit
def block_sums(x, out):
    """out[0] += the sum of x, by blocks in shared memory."""
    held = mg.cuda.shared.array(BLOCK, mg.float32)
    thread, i = mg.cuda.threadIdx.x, mg.cuda.grid(1)
    held[thread] = x[i] if i < x.size else mg.float32(0)
    mg.cuda.syncthreads()
    step = BLOCK // 2
    while step > 0:
        if thread < step:
            held[thread] += held[thread + step]
        mg.cuda.syncthreads()
        step //= 2
    if thread == 0:
        mg.cuda.atomic.add(out, 0, held[0])


def own_kernels(device):
    """A kernel of one's own, with shared memory, barriers and an atomic."""
    found = Checked("kernels of one's own")
    with found.attempt("sums of blocks"):
        values = np.random.default_rng(5).standard_normal(1000).astype(np.float32)
        x, out = mg.variable(values, device=device), mg.zeros((1,), device=device)
        block_sums[-(-1000 // BLOCK), BLOCK](x, out)
        found.compare("sums of blocks", host(out), [values.astype(np.float64).sum()], "float32")
    return found


def exchange(device):
    """Memory shared with CuPy and PyTorch, where they are installed, and let go again."""
    found = Checked("other libraries")
    x = mg.variable(np.arange(12, dtype=np.float32).reshape(3, 4), device=device)
    for library in ("cupy", "torch"):
        try:
            module = __import__(library)
        except ImportError:
            continue
        wait = module.cuda.synchronize if library == "torch" else module.cuda.Device().synchronize
        with found.attempt(library), letting_go(found, library):
            _share(found, library, module, wait, x)
    return found


def _share(found, library, module, wait, x):
    theirs = module.from_dlpack(x)
    theirs += 1
    wait()
    found.compare(f"{library}, written there", host(x)[0, 0], np.float32(1), "float32")
    back = mg.from_dlpack(theirs)
    found.compare(f"{library}, back", host(back), host(x), "float32")
    theirs -= 1
    wait()


@contextlib.contextmanager
def letting_go(found, what):
    """Errors of destructors within the block are failures: Python itself only prints them."""
    before = sys.unraisablehook
    sys.unraisablehook = lambda seen: found.failures.append(f"{what}, let go: {seen.exc_value!r}")
    try:
        yield
    finally:
        sys.unraisablehook = before


def all_checks(device, names=None, is_quick=False):
    """Every check, one after the other."""
    yield operations(device, names, is_quick)
    yield random_numbers(device)
    yield own_kernels(device)
    if not is_quick:
        yield large(device)
        yield training(device)
    if device == "cuda" and not is_quick:
        yield exchange(device)
