"""Optimizer steps on a GPU: one launch updates several parameters.

A kernel takes the pointers of MANY parameters; block b works on the parameter whose range of blocks
it lies in. Where there are fewer parameters the rest have no blocks.
"""

import functools
import itertools
from typing import Any, NamedTuple

from minigrad.array.dtypes import float64
from minigrad.devices.gpu.entries import CODE
from minigrad.devices.gpu.kernel import gpu_kernel
from minigrad.devices.loader import source

MANY = 8  # parameters of a launch
THREADS, EACH, MOST = 256, 4, 512  # of a block; elements a thread at least; blocks a parameter


class Form(NamedTuple):
    """What a function of source/gpu_optimizers.py takes; numbers are of the element's type.

    Attributes:
        arrays: of each parameter, before (n, block, blocks).
        shared: pointers that all parameters have in common.
        own: numbers that each parameter has of its own.
        numbers: that all have in common.
        flags: ints that all have in common.
        is_indexed: whether it is told which of the launch's parameters it works on.
    """

    arrays: tuple
    shared: tuple = ()
    own: tuple = ()
    numbers: tuple = ()
    flags: tuple = ()
    is_indexed: bool = False


FORMS = {
    "sgd": Form(("p", "g"), numbers=("rate", "decay")),
    "momentum": Form(
        ("p", "g", "b"), numbers=("rate", "decay", "keep"), flags=("is_nesterov",)
    ),
    "adam": Form(
        ("p", "g", "m", "v"), ("factors",),
        numbers=("beta1", "rest1", "beta2", "rest2", "eps", "keep", "decay"), is_indexed=True,
    ),
    "rmsprop": Form(
        ("p", "g", "s", "b", "a"),
        numbers=("rate", "alpha", "rest", "eps", "decay", "keep"),
        flags=("has_momentum", "is_centred"),
    ),
    "squares": Form(("x",), ("sums",)),
    "scale": Form(("x",), own=("factor",)),
}  # fmt: skip


@functools.cache
def kernel(name, code):
    """The GpuKernel of one of FORMS for MANY parameters.

    Arguments: the arrays of each parameter, the shared pointers; elements and first block of each
    parameter, and the number of blocks; own numbers of each parameter, common numbers, flags.
    """
    form, every = FORMS[name], range(MANY)
    arrays = [[f"{a}{k}" for a in form.arrays] for k in every]
    own = [[f"{a}{k}" for a in form.own] for k in every]
    names = [
        *(a for each in arrays for a in each), *form.shared,
        *(f"n{k}" for k in every), *(f"first{k}" for k in range(MANY + 1)),
        *(a for each in own for a in each), *form.numbers, *form.flags,
    ]  # fmt: skip
    words = [
        *[f"{code}*"] * (MANY * len(form.arrays) + len(form.shared)),
        *["i8"] * (2 * MANY + 1),
        *[code] * (MANY * len(form.own) + len(form.numbers)),
        *["i8"] * len(form.flags),
    ]
    lines = ["    b = I8(cuda.blockIdx.x)"]
    for k in every:
        place = [f"n{k}", f"b - first{k}", f"first{k + 1} - first{k}"]
        index = [f"I8({k})"] if form.is_indexed else []
        more = [*form.shared, *index, *own[k], *form.numbers, *form.flags]
        lines.append(f"    {'elif' if k else 'if'} b < first{k + 1}:")
        lines.append(f"        {name}({', '.join([*arrays[k], *place, *more])})")
    return _of(code, names, words, lines)


@functools.cache
def counting_kernel(code):
    """Counts a step of MANY parameters at most and writes Adam's factors: see count_step."""
    steps = [f"steps{k}" for k in range(MANY)]
    names = [*steps, "factors", "rate", "beta1", "beta2", "count"]
    words = [*["f8*"] * MANY, f"{code}*", "f8", "f8", "f8", "i8"]
    lines = ["    k = cuda.grid(1)", "    if k >= count:", "        return"]
    for k, name in enumerate(steps):
        lines.append(f"    {'elif' if k else 'if'} k == {k}:")
        lines.append(f"        count_step({name}, factors, I8({k}), rate, beta1, beta2)")
    return _of(code, names, words, lines)


def _of(code, names, words, lines):
    head = [f"T = {code.upper()}\n", source("gpu_optimizers"), f"\ndef kernel({', '.join(names)}):"]
    return gpu_kernel("\n".join([*head, *lines, ""]), " ".join(words))


def shares(sizes):
    """[first block of each, ..., all blocks] for parameters of these sizes."""
    firsts = [0]
    for n in sizes:
        blocks = max(1, min(MOST, -(-n // (THREADS * EACH)))) if n else 0
        firsts.append(firsts[-1] + blocks)
    return firsts


class Updates:
    """Updates of parameters of one dtype that have the same hyperparameters."""

    def update(self, name, rows, values):
        """One step of SGD, Adam, AdamW or RMSprop.

        Args:
            name: 'sgd', 'adam' or 'rmsprop'.
            rows: per parameter (p, g, slots, steps): Arrays, contiguous, of one dtype and size; the
                slots as the optimizer orders them; steps: float64, the steps taken, or None.
            values: the hyperparameters as the optimizer's `numbers` lists them.
        """
        for first in range(0, len(rows), MANY):
            part = rows[first : first + MANY]
            {"sgd": self._sgd, "adam": self._adam, "rmsprop": self._rmsprop}[name](part, values)

    def _sgd(self, rows, values):
        rate, momentum, nesterov, decay = values
        arrays = [(p, g, *slots) for p, g, slots, _ in rows]
        if momentum:
            self._run("momentum", arrays, (), (), (rate, decay, momentum, int(nesterov)))
        else:
            self._run("sgd", [each[:2] for each in arrays], (), (), (rate, decay))

    def _adam(self, rows, values):
        rate, beta1, beta2, eps, decay, decoupled = values
        dtype = rows[0][0].dtype
        factors = self.empty((MANY, 2), dtype)
        steps = [row[3] for row in rows]
        steps += [steps[0]] * (MANY - len(rows))
        operands = (*steps, factors, rate, beta1, beta2, len(rows))
        self.launch(counting_kernel(CODE[dtype.name]), 1, 32, operands)
        keep, decay = (1.0 - rate * decay, 0.0) if decoupled else (1.0, decay)
        numbers = (beta1, 1.0 - beta1, beta2, 1.0 - beta2, eps, keep, decay)
        self._run("adam", [(p, g, *slots) for p, g, slots, _ in rows], (factors,), (), numbers)

    def _rmsprop(self, rows, values):
        rate, alpha, eps, decay, momentum, centred = values
        numbers = (rate, alpha, 1.0 - alpha, eps, decay, momentum)
        arrays = []
        for p, g, slots, _ in rows:
            s, b = slots[0], slots[1 if momentum else 0]
            arrays.append((p, g, s, b, slots[-1]))
        flags = (int(bool(momentum)), int(bool(centred)))
        self._run("rmsprop", arrays, (), (), (*numbers, *flags))

    def squares(self, arrays):
        """The sum of squares of each of contiguous Arrays of one dtype, floats. Waits for the GPU.

        A block sums in the arrays' dtype, the blocks' sums are added in float64.
        """
        found = []
        for first in range(0, len(arrays), MANY):
            part = arrays[first : first + MANY]
            firsts = shares([x.size for x in part])
            sums = self.empty((max(1, firsts[-1]),), part[0].dtype)
            self._run("squares", [(x,) for x in part], (sums,), (), ())
            whole = self.to_numpy(sums).astype(float64.numpy)
            found += [float(whole[a:b].sum()) for a, b in itertools.pairwise(firsts)]
        return found

    def scale(self, arrays, factors):
        """Multiplies contiguous Arrays of one dtype by a float each."""
        for first in range(0, len(arrays), MANY):
            part = arrays[first : first + MANY]
            own = factors[first : first + MANY]
            self._run("scale", [(x,) for x in part], (), own, ())

    def _run(self, name, arrays, shared, own, common):
        """One launch of `kernel`; arrays: per parameter, the first of them says its size."""
        sizes = [each[0].size for each in arrays]
        firsts = shares(sizes)
        if not firsts[-1]:
            return
        empty = MANY - len(arrays)
        operands = (
            *(a for each in arrays for a in each), *arrays[0] * empty, *shared,
            *sizes, *[0] * empty, *firsts, *firsts[-1:] * empty,
            *own, *[0.0] * (empty if own else 0), *common,
        )  # fmt: skip
        self.launch(kernel(name, CODE[arrays[0][0].dtype.name]), firsts[-1], THREADS, operands)

    launch: Any  # these the device gives
    empty: Any
    to_numpy: Any
