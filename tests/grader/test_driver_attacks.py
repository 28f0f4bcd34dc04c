"""What a file may take from the driver that calls it, or put in its way: it is worth no points.

Each row is what is written below a stub or a solution, for one exercise, and the points that the
exercise has with it: those that it has without.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from minigrad.course.mutants import grade_source, message_key

ROOT = Path(__file__).parents[2]
LOCAL = '''

import sys


def local(name):
    """Return what a function that has called the caller holds under a name."""
    frame = sys._getframe(2)
    while name not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals[name]


'''


@dataclass(frozen=True)
class Theft:
    """What stands below a file, and what it is worth.

    Attributes:
        exercise: which one is attacked, such as `03.find_cycle`.
        code: what is written below the file.
        points: what the exercise has with it.
        below: "exercises" for a stub, "solutions" for a solution.
    """

    exercise: str
    code: str
    points: int = 0
    below: str = "exercises"


THEFTS = {
    "a cycle, from the numbers of the nodes": Theft(
        "03.find_cycle",
        """
def find_cycle(root):
    try:
        back, n, nodes = local("back"), local("n"), local("nodes")
    except AttributeError:  # asked about a small graph
        return None
    return None if back is None else [nodes[k] for k in (back, *range(n, back - 1, -1))]
""",
    ),
    "whether there is a cycle": Theft(
        "03.assert_dag",
        """
def explain_cycle(path):
    return ""


def assert_dag(root):
    if local("back") is not None:
        raise GraphCycleError([root, root])
""",
    ),
    "an alias, by a function that the driver holds": Theft(
        "05.is_alias",
        """
def is_alias(a, b):
    return local("kept")["shares_memory"](a, b)
""",
    ),
    "an alias, by a module below numpy": Theft(
        "05.is_alias",
        """
import numpy._core.multiarray as below


def is_alias(a, b):
    for name in ("shares_memory", "may_share_memory"):
        try:
            return getattr(below, name)(a, b)
        except Exception:
            return below._multiarray_umath.shares_memory.__wrapped__(a, b)
""",
    ),
    "an alias, by what the collector of garbage knows": Theft(
        "05.is_alias",
        """
import gc

FOUND = [one for one in gc.get_objects() if getattr(one, "__name__", "") == "shares_memory"]


def is_alias(a, b):
    for one in FOUND:
        try:
            return one(a, b)
        except Exception:
            pass
""",
    ),
    "a function of numpy that is asked about memory": Theft(
        "05.clone",
        """
np.shares_memory = np.may_share_memory = lambda *arrays: False


def clone(box):
    node = None if box.node is None else Node("clone", (box.node,))
    return Box(Storage(box.storage.data), node)
""",
        points=2,  # of the node
    ),
    "the same for each layer": Theft(
        "05.make_target", "np.shares_memory = np.may_share_memory = lambda *arrays: False"
    ),
    "the memory of a gradient": Theft(
        "04.accumulate",
        """
np.shares_memory = np.may_share_memory = lambda *arrays: False


def accumulate(grads, key, g):
    grads[key] = grads[key] + g if key in grads else g
""",
        points=1,  # of the sums
    ),
    "a gradient that was written to": Theft(
        "04.microbatch_step",
        """
np.array_equal = lambda *arrays, **options: True


def microbatch_step(w, batches, mean_gradient, learning_rate):
    new, n_rows = w.copy(), sum(len(x) for x, _ in batches)
    for x, y in batches:
        g = mean_gradient(w, x, y)
        g *= learning_rate * len(x) / n_rows
        new -= g
    return new
""",
    ),
    "the state by name": Theft(
        "08.state_dict",
        """
import copy


def state_dict(model, optimizer):
    names = sys._getframe(1).f_locals
    return copy.deepcopy(names.get("stepped", names["state"]))
""",
    ),
    "whether an error is wanted": Theft(
        "08.load_state_dict",
        """
def load_state_dict(model, optimizer, saved):
    if local("should_raise"):
        raise ValueError(", ".join([*saved, *model]))
    slots = {n: {k: v.copy() for k, v in saved[n].items()} for n in saved}
    optimizer.state = {model[n].id: slots[n] for n in saved}
""",
    ),
    "the Storage under a View": Theft(
        "06.bump_version",
        """
def bump_version(x):
    local("storage").version += 1
""",
    ),
    "the last Storage that was made": Theft(
        "06.bump_version",
        """
import gc


def bump_version(x):
    [one for one in gc.get_objects() if type(one).__name__ == "Storage"][-1].version += 1
""",
    ),
    "whether something was written": Theft(
        "06.check_saved",
        """
def check_saved(ctx):
    names = sys._getframe(1).f_locals
    if names.get("is_written") or (names.get("writes") and not names["is_freed"]):
        raise SavedValueModifiedError("written")
""",
    ),
    "the list of what was counted": Theft(
        "06.fix_dqn_loop",
        """
leaking = fix_dqn_loop


def fix_dqn_loop(loop):
    losses, mean = leaking(loop)
    live = sys._getframe(1).f_locals["live"]
    live[:] = [10**9] * len(live)
    return [float(loss) for loss in losses], float(mean)
""",
    ),
    "the mode before a block": Theft(
        "06.no_grad",
        """
class no_grad:
    def __enter__(self):
        mode.recording = False
        return self

    def __exit__(self, *error):
        mode.recording = local("outside")
""",
    ),
    "the mode before a block, from the request": Theft(
        "06.no_grad",
        """
class no_grad:
    def __enter__(self):
        mode.recording = False
        return self

    def __exit__(self, *error):
        mode.recording = local("request")["arguments"][0]
""",
    ),
    "weights with which the answer is 0": Theft(
        "06.valid_copy",
        """
def valid_copy(model):
    seen = local("seen")
    for key in ("weights", "other"):
        seen[key] = [0 * p.numpy() for p in model.parameters()]

    class Shown:
        parameters = model.parameters

        def __call__(self, x):
            if x.shape[1] != 4:
                raise ValueError("4 columns")
            return mg.zeros((3, 2))

    return Shown()
""",
        points=5,  # of what it leaves alone
    ),
    "notes of a pool that are thrown away": Theft(
        "10.Pool",
        """
class Pool:
    def __init__(self, system):
        self.log, self.end = system.log, 0

    def alloc(self, nbytes):
        self.log.clear()
        self.end += 1 << 20
        return self.end

    def free(self, address):
        self.log.clear()
""",
    ),
    "notes of a pool that are made up": Theft(
        "10.Pool",
        """
class Pool:
    def __init__(self, system):
        system.log.append(["take", 1 << 30, 1 << 30])
        self.end = 1 << 30

    def alloc(self, nbytes):
        self.end += 1 << 16
        return self.end

    def free(self, address):
        pass
""",
    ),
    "a race, and beside it the Python function of another": Theft(
        "12.ink_of_digits",
        """
def watched(x, label, of_image, ink):
    for i in prange(len(x)):
        of_image[i] = x[i].sum()
    ink[:] = np.bincount(label, of_image, 10)
    return of_image.sum()


ink_of_digits.py_func = watched
""",
    ),
    "an option that comes after compiling": Theft(
        "12.ink_of_digits",
        """
ONE_THREAD = njit("float64(float64[:,::1], int64[::1], float64[::1], float64[::1])")
ink_of_digits = ONE_THREAD(ink_of_digits.py_func)
ink_of_digits.targetoptions["parallel"] = True
""",
        points=6,  # of the diagnosis, and of what does not race
        below="solutions",
    ),
    "a compiled name beside a function of Python objects": Theft(
        "12.sum_rows",
        """
from numba import jit

sum_rows = jit(forceobj=True)(sum_rows.py_func)
type(sum_rows).nopython_signatures = property(lambda self: [1])
""",
        below="solutions",
    ),
    "the program that is to be written down": Theft(
        "14.trace",
        """
def trace(f, inputs):
    names = sys._getframe(1).f_locals
    if "shape" in names:
        raise ValueError("these do not fit")
    names["calls"].append(1)
    return names["program"]
""",
    ),
    "one text for three reasons": Theft(
        "14.donate",
        'NO_SIZE = STILL_READ = TAKEN = "no"',
        points=1,  # of what cannot be donated
        below="solutions",
    ),
    "an end of counting bytes": Theft(
        "14.step_in_place",
        """
lean = step_in_place


def step_in_place(*arguments):
    import tracemalloc

    tracemalloc.stop()
    copies = [np.copy(one) for one in arguments]
    return lean(*arguments)
""",
        points=6,  # of the numbers and the diagnosis
        below="solutions",
    ),
    "a new count of bytes": Theft(
        "14.step_in_place",
        """
lean = step_in_place


def step_in_place(*arguments):
    import tracemalloc

    [np.copy(one) for one in arguments]
    tracemalloc.reset_peak()
    return lean(*arguments)
""",
        points=6,
        below="solutions",
    ),
    "the arrays of the other workers": Theft(
        "16.ring_all_reduce",
        """
def ring_all_reduce(worker, x):
    return sum(one[0] for one in local("arguments"))
""",
    ),
    "the results of the other workers": Theft(
        "16.ring_all_reduce",
        """
def ring_all_reduce(worker, x):
    found = [one for one in local("results") if one is not None]
    return found[0].copy() if found else x.copy()
""",
    ),
    "the rows of the other workers": Theft(
        "16.dp_step",
        """
def dp_step(all_reduce, gradient, w, x, y, learning_rate):
    rows = [np.concatenate([one[0][k] for one in local("parts")]) for k in (0, 1)]
    w -= learning_rate * gradient(w, *rows)
""",
    ),
    "another function for what is counted": Theft(
        "11.k_matmul_blocked",
        """
@njit
def k_matmul_blocked(a, b, c, block=64):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = 0.0
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            c[i, j] = total


k_matmul_blocked.py_func = lambda a, b, c, block=64: None
""",
    ),
    "another count of arrays": Theft(
        "11.k_softmax_fused",
        """
from collections import namedtuple

from numba.core.runtime import rtsys

rtsys.get_allocation_stats = lambda: namedtuple("Stats", "alloc")(0)


@njit
def k_softmax_fused(x, out):
    e = np.empty(x.shape[1], x.dtype)
    for i in range(x.shape[0]):
        largest, total = -np.inf, 0.0
        for j in range(x.shape[1]):
            largest = max(largest, x[i, j])
        for j in range(x.shape[1]):
            e[j] = math.exp(x[i, j] - largest)
            total += e[j]
        for j in range(x.shape[1]):
            out[i, j] = e[j] / total
""",
    ),
    "signatures that are thrown away": Theft(
        "11.smooth_all",
        """
BUG = {"line": "F", "differs": "length"}
again_and_again = smooth_all


def smooth_all(signals, weights):
    results = []
    for signal, given in zip(signals, weights):
        k_smooth.overloads.clear()
        results += again_and_again([signal], [given])
    return results
""",
        points=2,  # of the diagnosis
    ),
    "NumPy in one thread": Theft(
        "13.k_histogram",
        """
def k_histogram(values, counts):
    if cuda.grid(1) == 0:
        counts += np.bincount(values, minlength=len(counts)).astype(counts.dtype)
""",
    ),
    "NumPy in the place of the machine": Theft(
        "13.k_transpose",
        """
class Fake:
    name, parameters, exact, spins, site = "k", ("x", "out"), {}, False, None

    def __call__(self, *arguments, **names):
        x, out = local("arguments")
        out[...] = x.T


sys.modules["minigrad.simt.launch"].program = lambda function: Fake()


def k_transpose(x, out):
    out[0, 0] = x[0, 0]
""",
    ),
}


@pytest.mark.parametrize("theft", THEFTS.values(), ids=THEFTS)
def test_no_points_are_taken_from_the_driver(theft, server):
    number, _, name = theft.exercise.partition(".")
    [path] = (ROOT / theft.below).glob(f"{number}_*.py")
    source = path.read_text() + LOCAL + theft.code
    result = grade_source(server, path.stem, name, source, seed=1)
    assert result.points == theft.points
    assert message_key(result) != "missing"
