"""Recordings evaluated by plain NumPy: what the passes and the generated code are held against.

    results = run(recording, arguments)

runs a step on copies of what it captured, so that nothing real changes, and gives its results.
`execute(recording, memory)` is the same over memory that the caller keeps: {Value: flat ndarray}.
"""

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from minigrad.array.array import Array, ndarray
from minigrad.array.overlap import span
from minigrad.compiler.program.program import TEMPORARY, Recording, Ref
from minigrad.devices.backend import device_named
from minigrad.tape.variable import Variable
from tests.compiler.formulas import Formula, stored

POISON = 0x7B  # fills temporaries: what is read before it is written shows


class Stopped(Exception):
    """A check did not hold; `instruction` is the one."""

    def __init__(self, instruction):
        super().__init__(repr(instruction))
        self.instruction = instruction


def run(recording: Recording, arguments=(), seed=0, counter=0):
    """The results of a step, as a list of ndarrays; nothing outside changes.

    arguments: per argument Value of the recording a Variable, Array or ndarray with all its
    elements. seed, counter: of the generator when the step begins.
    """
    return execute(recording, memory_of(recording, arguments), seed, counter)


def memory_of(recording, arguments=()):
    """{Value: flat ndarray}: copies of arguments (those left out: as they were traced), of what was
    captured, and of constants.
    """
    memory = {}
    for value, x in zip(recording.arguments, arguments, strict=False):
        memory[value] = values_of(x).copy()
    for kind in ("captured", "constant", "argument"):
        for value in recording.values(kind):
            if value not in memory:
                memory[value] = values_of(value.storage).copy()
    return memory


def values_of(x):
    """All elements of a Storage, flat."""
    if isinstance(x, Variable):
        x = x.array
    return (seen(x) if isinstance(x, Array) else np.asarray(x)).reshape(-1)


def seen(array):
    """A short-lived ndarray of an Array's elements, of bfloat16 also."""
    return ndarray(array).view(array.dtype.numpy)


def write_back(memory):
    """Copies memory into the Storages of captured Values and arguments, as a real run leaves it."""
    for value, data in memory.items():
        if value.kind in ("captured", "argument"):
            seen(value.storage).reshape(-1)[...] = data


def execute(recording, memory, seed=0, counter=0):
    """Runs the instructions over memory, which they change; returns copies of the results."""
    for k, instruction in enumerate(recording.instructions):
        for ref in (*instruction.reads, *instruction.writes):
            if ref.value.kind == TEMPORARY and ref.value not in memory:
                nbytes = ref.value.size * ref.dtype.itemsize
                memory[ref.value] = np.full(nbytes, POISON, np.uint8).view(ref.dtype.numpy)
            assert ref.value in memory, f"instruction {k}: {ref} is nowhere"
        Step(instruction, memory, seed, counter).run()
    return [view(ref, memory).copy() for ref in recording.results]


def view(ref: Ref, memory):
    """A writable ndarray over what a Ref shows."""
    if not ref.size:  # no instruction has made it
        return np.empty(ref.shape, ref.dtype.numpy)
    data = memory[ref.value]
    step = data.itemsize
    low, high = (ref.offset + bound for bound in span(ref.shape, ref.strides)[:2])
    assert low >= 0, f"{ref} with {ref.layout()} begins outside"
    assert high <= data.size, f"{ref} with {ref.layout()} ends outside"
    return as_strided(data[ref.offset :], ref.shape, tuple(s * step for s in ref.strides))


class Step:
    """One instruction, as it reads and writes ndarrays."""

    def __init__(self, instruction, memory, seed, counter):
        self.instruction, self.seed, self.counter = instruction, seed, counter
        self.inputs: list[Any] = [
            view(x, memory) if isinstance(x, Ref) else x for x in instruction.inputs
        ]
        self.outputs: list[Any] = [view(x, memory) for x in instruction.outputs]
        self.attributes = instruction.attributes

    def run(self):
        """Does it."""
        with np.errstate(all="ignore"):
            getattr(self, self.instruction.op)()

    # -- formulas ------------------------------------------------------------------------------

    def formulas(self, shape):
        """The values of the program's outputs over a shape, all reads before any write."""
        arrays = [x for x in (*self.inputs, *self.outputs) if isinstance(x, np.ndarray)]
        real = np.float64 if any(x.dtype == np.float64 for x in arrays) else np.float32
        program = self.attributes["program"]
        symbols = dict(zip(program.inputs, self.inputs, strict=True))
        return [Formula(symbols, real, shape)(e) for e in program.outputs]

    def elementwise(self):
        values = self.formulas(self.outputs[0].shape)
        for out, value in zip(self.outputs, values, strict=True):
            out[...] = stored(value, out.dtype)

    def rows(self):
        modes = self.attributes["modes"]
        for out, value, mode in zip(
            self.outputs, self.formulas(self.attributes["shape"]), modes, strict=True
        ):
            if mode == "row":
                value = value[..., :1]
            elif mode == "columns":
                value = value.reshape(-1, value.shape[-1]).sum(0, dtype=np.float64)
            out[...] = stored(value, out.dtype)

    def reduce(self):
        a = self.attributes
        value, axes, how = self.formulas(a["shape"])[0], a["axes"], a["how"]
        if how in ("any", "all"):
            value = getattr(np, how)(value, axis=axes)
        elif how in ("sum", "mean", "prod"):
            wide = np.float64 if value.dtype.kind == "f" or how == "mean" else np.int64
            empty = how == "mean" and not value.size  # NumPy warns
            value = getattr(np, "sum" if empty else how)(value, axis=axes, dtype=wide)
            value = value * np.nan if empty else value
        else:
            value = getattr(np, how)(value, axis=axes)
        self.outputs[0][...] = stored(np.asarray(value), self.outputs[0].dtype)

    # -- products, indices, windows --------------------------------------------------------------

    def matmul(self):
        a, b, out = *self.inputs, self.outputs[0]
        product = np.matmul(a.copy(), b.copy())  # in C order: BLAS rounds by the layout
        if not self.attributes["accumulate"]:
            out[...] = product
            return
        product = np.broadcast_to(product, out.shape)
        summed = tuple(d for d, s in enumerate(out.strides[:-2]) if s == 0)
        target = out[tuple(0 if d in summed else slice(None) for d in range(out.ndim))]
        target += product.sum(summed) if summed else product

    def gather(self):
        x, index = self.inputs
        self.outputs[0][...] = x[:, index, :]

    def scatter_add(self):
        source, index = self.inputs
        for o in range(source.shape[0]):
            np.add.at(self.outputs[0][o], index, source[o])

    def put(self):
        source, index = self.inputs
        for k, i in enumerate(index):
            self.outputs[0][:, i, :] = source[:, k, :]

    def wrap_index(self):
        index, n = self.inputs[0].astype(np.int64), self.attributes["n"]
        if ((index < -n) | (index >= n)).any():
            raise Stopped(self.instruction)
        self.outputs[0][...] = np.where(index < 0, index + n, index)

    def check(self):
        a, x = self.attributes, self.inputs[0]
        if a["what"] == "within":
            fine = ((x >= a["low"]) & (x <= a["high"])).all()
        else:
            fine = np.isfinite(x).all()
        if not fine:
            raise Stopped(self.instruction)

    def cumsum(self):
        out = self.outputs[0]
        out[...] = np.cumsum(self.inputs[0], axis=self.attributes["axis"], dtype=out.dtype)

    def arg_reduce(self):
        find = np.argmax if self.attributes["is_max"] else np.argmin
        self.outputs[0][...] = find(self.inputs[0], axis=self.attributes["axis"])

    def argsort(self):
        x, size = self.inputs[0], self.outputs[0].shape[1]
        if self.attributes["descending"]:  # flipped twice, so that equals keep their order
            order = x.shape[1] - 1 - np.argsort(x[:, ::-1], kind="stable")[:, ::-1]
        else:
            order = np.argsort(x, kind="stable")
        self.outputs[0][...] = order[:, :size]

    def solve(self):
        (a, b), (out, factors, _) = self.inputs, self.outputs
        for one, right, x, kept in zip(a, b, out, factors, strict=True):
            x[...] = np.linalg.lstsq(one, right)[0]
            tall = one if one.shape[0] >= one.shape[1] else one.T
            kept[-1] = np.diagonal(np.linalg.qr(tall)[1])

    def cholesky(self):
        self.outputs[0][...] = np.linalg.cholesky(self.inputs[0])

    def random(self):
        out, a, cpu = self.outputs[0], self.attributes, device_named("cpu")
        ref = self.instruction.outputs[0]
        drawn = cpu.empty(ref.shape, ref.dtype)
        cpu.random(drawn, a["kind"], self.seed, self.counter + a["counter"], a["low"], a["high"])
        out[...] = seen(drawn)

    def _windows(self, x):
        """(kernel row, kernel column, the elements there of each window) over padded images."""
        (kh, kw), (sh, sw), (ph, pw), (dh, dw) = window = self.attributes["window"]
        oh, ow = window.counts((x.shape[2] - 2 * ph, x.shape[3] - 2 * pw))
        for i in range(kh):
            for j in range(kw):
                rows, columns = i * dh, j * dw
                part = x[:, :, rows : rows + (oh - 1) * sh + 1 : sh, :]
                yield i, j, part[:, :, :, columns : columns + (ow - 1) * sw + 1 : sw]

    def _padded(self, x, value):
        ph, pw = self.attributes["window"].padding
        return np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)), constant_values=value)

    def unfold(self):
        x, out, (kh, kw) = self.inputs[0], self.outputs[0], self.attributes["window"].kernel
        n, c = x.shape[:2]
        found = np.empty((n, c, kh, kw, out.shape[2]), x.dtype)
        for i, j, part in self._windows(self._padded(x, 0)):
            found[:, :, i, j] = part.reshape(n, c, -1)
        out[...] = found.reshape(out.shape)

    def fold(self):
        columns, out = self.inputs[0], self.outputs[0]
        window = self.attributes["window"]
        (kh, kw), (ph, pw) = window.kernel, window.padding
        n, c, h, w = out.shape
        total = self._padded(np.zeros(out.shape, out.dtype), 0)
        parts = columns.reshape(n, c, kh, kw, *window.counts((h, w)))
        for i, j, place in self._windows(total):
            place += parts[:, :, i, j]
        out[...] = total[:, :, ph : ph + h, pw : pw + w]

    def pack(self):
        w, out = self.inputs[0], self.outputs[0]
        o, rows = w.shape[0], w[0].size
        blocks = np.zeros((out.shape[0] * 4, 1 + rows), out.dtype)
        blocks[:o, 1:] = w.reshape(o, rows)
        out[...] = blocks.reshape(-1, 4, 1 + rows).transpose(0, 2, 1).reshape(out.shape)

    def convolve(self):
        (x, packed), out = self.inputs, self.outputs[0]
        (o, c), (kh, kw) = (out.shape[1], x.shape[1]), self.attributes["window"].kernel
        blocks = packed.reshape(-1, 1 + c * kh * kw, 4).transpose(0, 2, 1)
        w = blocks.reshape(-1, 1 + c * kh * kw)[:o, 1:].reshape(o, c, kh, kw)
        total = np.zeros(out.shape)
        for i, j, part in self._windows(self._padded(x, 0)):
            total += np.einsum("nchw,oc->nohw", part, w[:, :, i, j])
        out[...] = total

    def correlate(self):
        (g, x), out = self.inputs, self.outputs[0]
        for i, j, part in self._windows(self._padded(x, 0)):
            out[:, :, i, j] = np.einsum("nohw,nchw->oc", g, part)

    def largest(self):
        x, out = self.inputs[0], self.outputs[0]
        places = np.arange(x.size).reshape(x.shape)
        values = np.stack([p for *_, p in self._windows(self._padded(x, -np.inf))])
        indices = np.stack([p for *_, p in self._windows(self._padded(places, -1))])
        best = values.argmax(0)
        out[...] = np.take_along_axis(indices, best[None], 0)[0]
