"""Writes calls of hand-written kernels: their arguments, and the range that threads may split."""

from typing import Any, NamedTuple

from minigrad.array.dtypes import float32
from minigrad.array.layout import size_of
from minigrad.devices.cpu import direct
from minigrad.formulas.sums import scratch_to_add


class OwnPart(NamedTuple):
    """A place in each thread's scratch: begin for thread 0, step in bytes to the next thread's."""

    begin: Any
    step: int


class OpaqueText(NamedTuple):
    """A call of a function. before, after: its arguments around the range [b, e) of `extent`.

    include: the file of `devices/source` with the function. is_check: whether it returns the
    position of the first violation, or -1.
    """

    function: str
    before: list
    after: list
    extent: int
    include: str
    is_check: bool = False


def opaque_text(i, at, own=None):
    """Return the OpaqueText of an instruction.

    at(Ref): its address. own(elements): a place in the thread's scratch; None if `scratch_of` says
    that the instruction needs none.
    """
    return _WRITERS[i.op](i, at) if own is None else _WITH_SCRATCH[i.op](i, at, own)


def scratch_of(i, parts):
    """Return how many float32 elements of scratch each of `parts` threads needs."""
    if i.op == "convolve":
        sizes = _sizes(i, i.inputs[0], i.outputs[0])
        return direct.convolution_scratch(*sizes[1:])
    if i.op == "correlate":
        return _totals(i, parts) + _correlation(i, parts)[0]
    if i.op == "scatter_add" and i.outputs[0].dtype is float32:
        return _sums_by_index(i, parts)[0]
    return 0


def work_of(i):
    """Return the floating-point operations of a convolution; 0 for other instructions."""
    if i.op == "convolve":
        return 2 * i.inputs[0].shape[1] * size_of(i.attributes["window"].kernel) * i.outputs[0].size
    if i.op == "correlate":
        return 2 * i.inputs[0].size * size_of(i.outputs[0].shape[1:])
    return 0


def _typed(file, name, code, before, after, extent, is_check=False):
    """Return the OpaqueText of a kernel from a file that is generic over a type."""
    return OpaqueText(f"{name}_{code}", before, after, extent, f"{file}.{code}", is_check)


def _gather(i, at):
    (x, index), (out,) = i.inputs, i.outputs
    (outer, n, r), m = x.shape, out.shape[1]
    before = [at(x), at(index), at(out), outer, n, m, r]
    return _typed("gather", "gather", out.dtype.moved, before, [], m)


def _put(i, at):
    before, n = _to_targets(i, at)
    return _typed("gather", "put", i.outputs[0].dtype.moved, before, [], n)


def _add(i, at, own=None):
    before, n = _to_targets(i, at)
    code = i.outputs[0].dtype.code
    if code != "f4":
        return _typed("gather", "add", code, before, [], n)
    scratch = [own(0), _sums_by_index(i, own.parts)[1]] if own else [0, 0]
    return OpaqueText("add_f4", [*before, *scratch], [], n, "add_f4")


def _sums_by_index(i, parts):
    _, n, r = i.outputs[0].shape
    return scratch_to_add(-(-n // parts), i.inputs[0].shape[1], r)


def _to_targets(i, at):
    (source, index), (out,) = i.inputs, i.outputs
    (outer, n, r), m = out.shape, source.shape[1]
    return [at(source), at(index), at(out), outer, n, m, r], n


def _wrap(i, at):
    (index,), (out,) = i.inputs, i.outputs
    before = [at(index), at(out), index.size, i.attributes["n"]]
    return _typed("gather", "wrap", index.dtype.code, before, [], 0, is_check=True)


def _check(i, at):
    (x,) = i.inputs
    if i.attributes["what"] == "within":
        before = [at(x), x.size, i.attributes["low"], i.attributes["high"]]
        return OpaqueText("first_outside_i8", before, [], 0, "checks", is_check=True)
    name = f"first_nonfinite_{x.dtype.code}"
    return OpaqueText(name, [at(x), x.size], [], 0, "step", is_check=True)


def _along(name):
    def writer(i, at):
        (x,), (out,) = i.inputs, i.outputs
        axis, shape = i.attributes["axis"], x.shape
        outer, n, inner = size_of(shape[:axis]), shape[axis], size_of(shape[axis + 1 :])
        more = [int(i.attributes["is_max"])] if name == "arg" else []
        before = [at(x), at(out), outer, n, inner]
        return _typed("scan", name, x.dtype.code, before, more, inner)

    return writer


def _argsort(i, at):
    (x,), (out, other) = i.inputs, i.outputs
    before = [at(x), at(out), at(other), x.shape[1]]
    return _typed("argsort", "argsort", x.dtype.code, before, [], x.shape[0])


def _solve(i, at):
    (a, b), (count, m, n) = i.inputs, i.inputs[0].shape
    before = [*map(at, (a, b, *i.outputs)), m, n, b.shape[2]]
    return OpaqueText("solve", before, [], count, "linalg")


def _cholesky(i, at):
    (a,), (out,) = i.inputs, i.outputs
    return OpaqueText("cholesky", [at(a), at(out), a.shape[2]], [], a.shape[0], "linalg")


def _random(i, at):
    (out,) = i.outputs
    kind = i.attributes["kind"]
    limits = [i.attributes["low"], i.attributes["high"]] if kind == "integers" else []
    more = [*limits, "seed", "counter"]  # the run's counter plus the instruction's own
    code = out.dtype.code
    return _typed("random", f"random_{kind}", code, [at(out)], more, out.size)


def _windows(name):
    def writer(i, at):
        (source,), (out,), window = i.inputs, i.outputs, i.attributes["window"]
        images, columns = (out, source) if name == "fold" else (source, out)
        more = [*window.sizes(images.shape)]
        if name != "largest":
            more = [images.shape[1], *more, columns.strides[1], columns.strides[0]]
        before, count = [at(source), at(out)], images.shape[0] * images.shape[1]
        return _typed("windows", name, images.dtype.code, before, more, count)

    return writer


def _pack(i, at):
    (w,), (out,) = i.inputs, i.outputs
    shape, strides, offset = w.layout()
    if i.attributes["is_turned"]:
        shape, strides, offset = direct.turned(shape, strides, offset)
    before = [at(w._replace(offset=offset)), 0, at(out)]
    return OpaqueText("pack_f4", before, [*shape, *strides], out.shape[0], "direct")


def _sizes(i, x, y):
    """Return (shape of images, shape of kernels, output size, dilation)."""
    window = i.attributes["window"]
    return x.shape, (y.shape[1], x.shape[1], *window.kernel), y.shape[2:], window.dilation


def _geometry(i, x, y):
    (_, *images), (o, _, *kernel), counts, dilation = _sizes(i, x, y)
    return [*images, o, *counts, *kernel, *i.attributes["window"].padding, *dilation]


def _convolve(i, at, own):
    (x, packed), (out,) = i.inputs, i.outputs
    before = [at(x), at(packed), at(out), own(0)]
    return OpaqueText("convolve_f4", before, _geometry(i, x, out), x.shape[0], "direct")


def _totals(i, parts):
    """Return the elements of scratch for one thread's sums; 0 for a single thread."""
    return direct.up(i.outputs[0].size, 16) if parts > 1 else 0


def _correlation(i, parts):
    (g, x), n = i.inputs, i.inputs[0].shape[0]
    return direct.correlation_scratch(*_sizes(i, x, g), -(-n // parts))


def _correlate(i, at, own):
    (g, x), (out,) = i.inputs, i.outputs
    parts = own.parts
    total = own(0) if parts > 1 else at(out)
    before = [at(g), at(x), total, own(_totals(i, parts))]
    more = [*_geometry(i, x, g), _correlation(i, parts)[2]]
    return OpaqueText("correlate_f4", before, more, x.shape[0], "direct")


_WITH_SCRATCH = {"convolve": _convolve, "correlate": _correlate, "scatter_add": _add}
_WRITERS = {
    "gather": _gather,
    "scatter_add": _add,
    "put": _put,
    "wrap_index": _wrap,
    "check": _check,
    "cumsum": _along("cumsum"),
    "arg_reduce": _along("arg"),
    "argsort": _argsort,
    "solve": _solve,
    "cholesky": _cholesky,
    "random": _random,
    "unfold": _windows("unfold"),
    "fold": _windows("fold"),
    "largest": _windows("largest"),
    "pack": _pack,
}
