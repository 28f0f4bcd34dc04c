"""The cells of the table op x dtype x layout: inputs, layouts, what is left out and why.

Everything is read from the registry: an operation that is added gets its cells without another line
here, and the tests fail until it has an oracle.
"""

import zlib
from typing import NamedTuple

import ml_dtypes
import numpy as np

import minigrad as mg
from minigrad.array.dtypes import DTYPES, float32
from minigrad.ops.base import Elementwise, RowWise, registry

DTYPE_NAMES = tuple(d.name for d in DTYPES)
LAYOUTS = ("contiguous", "transposed", "strided", "reversed", "broadcast", "offset", "mixed")
REDUCTIONS = ("sum", "mean", "prod", "max", "min", "any", "all", "var", "norm", "argmax", "argmin")
ADJOINT = "is used by gradients alone, which are floats"
FLOATS = "takes floats; the public function raises DTypeError for others"
CONVERTED = "takes floats; the public function makes float32 of others"
NOT_FLOATS = ("int32", "int64", "uint8", "bool")
LEFT_OUT = {  # reason -> ops that take floats alone
    ADJOINT: ("take_adjoint", "fold", "conv_input", "conv_weight"),
    FLOATS: ("unfold", "largest", "conv2d", "batch_norm", "cross_entropy", "attention"),
    CONVERTED: ("least_squares", "cholesky_factor"),
}
SINGULAR = "takes matrices of full rank"
SINGLE = "has a single input"
LAID_OUT = {  # whose layouts are run on every device: one of each way to find an element
    "add", "where", "sum", "max", "argmax", "cumsum", "softmax_row", "layer_norm_row", "matmul",
    "linear", "take", "take_adjoint", "setitem", "conv2d", "cross_entropy", "concatenate",
}  # fmt: skip
RANDOM = {"dropout"}  # tested by test_random.py, not against a formula


def public_ops():
    """The registry as minigrad defines it: tests may define operations of their own."""
    assert mg.exp
    return {n: op for n, op in registry.items() if op.__module__.startswith("minigrad.")}


class Cell(NamedTuple):
    """One op in one dtype and layout."""

    op: str
    dtype: str
    layout: str


def samples(op):
    """[(input shapes, attributes)] of an op."""
    found = []
    for sample in op.samples:
        if op.name == "concatenate":
            found.append((sample, (len(sample[0]) - 1,)))
        elif issubclass(op, Elementwise):
            found.append((sample, tuple(getattr(op, "numbers", ()))))
        elif op.name in REDUCTIONS:
            found += [(sample, (axis, keep)) for axis, keep in _axes(op, sample[0])]
        elif op.name == "cumsum":
            found += [(sample, (axis,)) for axis in range(len(sample[0]))]
        else:
            n = op.n_inputs - len(op.numbers)
            found.append((sample[:n], sample[n:]))
    return found


def _axes(op, shape):
    """Axes to reduce: all, the first, the last (kept), two of three."""
    found = [(None, False)]
    if shape:
        found += [(0, False), (len(shape) - 1, True)]
    if len(shape) == 3 and op.name not in ("argmax", "argmin"):
        found.append(((0, 2), False))
    if op.name in ("max", "min", "argmax", "argmin"):
        found = [(a, k) for a, k in found if 0 not in shape]
    return found


def domains(op, count):
    """(low, high) per input."""
    if hasattr(op, "domains"):
        return list(op.domains)
    return [getattr(op, "domain", (-2.0, 2.0))] * count


def draw(op, shapes, attributes, dtype):
    """Random inputs: the same for the same op, shapes and dtype."""
    seed = zlib.crc32(repr((op.name, shapes, dtype)).encode())
    rng = np.random.default_rng(seed)
    arrays = []
    for k, (shape, (low, high)) in enumerate(zip(shapes, domains(op, len(shapes)), strict=True)):
        most = getattr(op, "integer_inputs", {}).get(k)
        if most is not None:
            arrays.append(rng.integers(0, most, shape))
        elif (op.name == "where" and k == 0) or dtype == "bool":
            arrays.append(rng.random(shape) < 0.5)
        elif "float" in dtype:
            values = rng.uniform(low, high, shape)
            arrays.append(np.round(values * 4096) / 4096 if dtype == "float32" else values)
        else:
            whole = low == int(low)
            least = 0 if dtype == "uint8" or (op.name == "pow" and k == 1) else -9
            first = max(int(np.ceil(low)) * (3 if whole else 1), least)
            arrays.append(rng.integers(first, max(first + 1, int(high) * 3), shape))
    if op.name in ("floor_divide", "remainder") and dtype == "bool":
        arrays[1] = np.ones_like(arrays[1])  # ints are not divided by 0
    if op.name == "least_squares":  # far from singular
        arrays[0] = arrays[0] + 4.0 * np.eye(*arrays[0].shape[1:])
    if op.name == "cholesky_factor":
        arrays[0] = arrays[0] @ np.swapaxes(arrays[0], 1, 2) + np.eye(arrays[0].shape[1])
    if op.name == "batch_norm":
        arrays[4] = np.abs(arrays[4]) + 0.5  # a variance
    return [
        a if a.dtype.kind == "b" or getattr(op, "integer_inputs", {}).get(k) else a.astype(dtype)
        for k, a in enumerate(arrays)
    ]


def laid_out(array, layout, requires_grad=False, device="cpu"):
    """(Variable, values) of an array in a layout. broadcast shows one value along the last axis."""

    def base(values):
        return mg.variable(values, device=device, requires_grad=requires_grad)

    if layout == "broadcast" and array.ndim:
        array = np.ascontiguousarray(np.broadcast_to(array[..., :1], array.shape))
    if not array.ndim or layout == "contiguous" or not array.size:
        return base(array), array
    if layout == "transposed":
        return base(np.ascontiguousarray(array.T)).T, array
    if layout == "strided":
        return base(np.repeat(array, 2, -1))[..., ::2], array
    if layout == "reversed":
        return base(np.ascontiguousarray(array[..., ::-1]))[..., ::-1], array
    if layout == "offset":
        return base(np.concatenate([array[:1], array]))[1:], array
    assert layout == "broadcast"
    return base(array[..., :1].copy()).expand(array.shape), array


def arranged(arrays, layout, device="cpu"):
    """[(Variable, values)] of all inputs; 'mixed': the first contiguous, the others transposed."""
    kinds = [layout] * len(arrays)
    if layout == "mixed":
        kinds = ["contiguous", *["transposed"] * (len(arrays) - 1)]
    return [laid_out(a, kind, device=device) for a, kind in zip(arrays, kinds, strict=True)]


def call(op, variables, attributes):
    """Runs an op of the registry."""
    if op.name == "move":
        attributes = (attributes[0], variables[0].device)
    if op.name == "concatenate":
        return op.apply(list(variables), *attributes)
    return op.apply(*variables, *attributes)


def reason(op, dtype, layout):
    """Why a cell is not run, or None. dtypes are run contiguous, layouts in float32."""
    if op.name in RANDOM:
        return "draws random numbers: tested by tests/ops/test_random.py"
    for why, names in LEFT_OUT.items():
        if op.name in names and dtype in NOT_FLOATS:
            return why
    if layout == "broadcast" and op.name in ("least_squares", "cholesky_factor"):
        return SINGULAR
    if layout == "mixed" and len(samples(op)[0][0]) < 2:
        return SINGLE
    return None


def cells():
    """Every cell of the plan: all dtypes contiguous, all layouts in float32."""
    for name, op in public_ops().items():
        for dtype in DTYPE_NAMES:
            yield Cell(name, dtype, "contiguous"), reason(op, dtype, "contiguous")
        for layout in LAYOUTS[1:]:
            yield Cell(name, "float32", layout), reason(op, "float32", layout)


def device_cells():
    """Every cell that is run on devices other than the CPU too: all dtypes, layouts of some ops."""
    for cell, why in cells():
        if cell.layout == "contiguous" or cell.op in LAID_OUT:
            yield cell, why


def promoted(a, b):
    """The dtype of a + b, by name. NumPy's own rules are others for halves beside ints."""
    floats = {d for d in (a, b) if "float" in d}
    if floats == {"float16", "bfloat16"}:
        return "float32"
    if floats:
        return max(floats, key=lambda d: np.dtype(d).itemsize)
    return np.promote_types(a, b).name


def shown(x):
    """A Variable's values; those of bfloat16 as float32, with which NumPy's tests compute."""
    values = x.to("cpu").numpy()
    return values.astype(np.float32) if values.dtype == ml_dtypes.bfloat16 else values


def expected_dtype(op, variables, attributes):
    """The dtype of a result by the rules of the documentation."""
    if op.name == "cast":
        return str(attributes[0])
    if op.name in ("argmax", "argmin", "largest", "order_of_rows"):
        return "int64"
    if op.name in ("any", "all"):
        return "bool"
    dtypes = [v.dtype for v in variables]
    if op.name in ("where",):
        dtypes = dtypes[1:]
    if op.name in ("take", "take_adjoint", "copy_of", "setitem", "cross_entropy") or issubclass(
        op, RowWise
    ):
        dtypes = dtypes[:1]
    dtype = dtypes[0]
    for other in dtypes[1:]:
        dtype = next(d for d in DTYPES if d.name == promoted(dtype.name, other.name))
    real = issubclass(op, Elementwise) and op.result == "real"
    if issubclass(op, Elementwise) and op.result == "bool":
        return "bool"
    if real or op.name in ("mean", "var", "norm", "cross_entropy"):
        return dtype.name if dtype.is_float else float32.name
    counts = issubclass(op, Elementwise) and not op.takes_bool and dtype.kind == "b"
    if op.name in ("sum", "prod", "cumsum"):
        return dtype.name if dtype.is_float else "int64"
    if counts or (op.name in ("matmul", "linear") and dtype.kind == "b"):
        return "int64"
    return dtype.name
