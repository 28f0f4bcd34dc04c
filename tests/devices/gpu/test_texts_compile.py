"""Generated kernels through the real compiler, for two generations of GPUs, without a GPU.

The forms that texts come in: no local memory is left of the arrays that stand for registers, wide
accesses are where the texts ask for them, and indices are not divided. What holds for every kernel
that operations launch is in docs/generated/cubins.md.
"""

import re

import pytest

from minigrad.array.dtypes import float32, float64, int64
from minigrad.devices.gpu import binding, compiler
from minigrad.devices.gpu.elementwise import programs
from minigrad.devices.gpu.simt import Simt
from minigrad.formulas import expression as e
from minigrad.formulas.expression import IDENTITY, Program, symbol
from minigrad.ops import rows as formulas

pytestmark = pytest.mark.skipif(compiler.missing() is not None, reason="no CUDA compiler here")
CAPABILITIES = [(8, 0), (9, 0)]
x, y, s = symbol("x"), symbol("y"), symbol("s")


class Recorder(Simt):
    """A device that runs nothing: it keeps what was to be launched."""

    def __init__(self):
        super().__init__()
        self.kernels = []

    def launch(self, kernel, blocks, threads, operands, shared=0):
        self.kernels.append((kernel, threads))


def array(device, *shape, dtype=float32):
    return device.empty(shape, dtype)


def elementwise(program, *shapes, out):
    def record(device):
        inputs = [array(device, *n) if isinstance(n, tuple) else n for n in shapes]
        device.elementwise(program, inputs, (array(device, *out),))

    return record


def turned(shape):
    def record(device):
        rows, columns = shape
        source = array(device, columns, rows).view(shape, (1, rows))
        device.elementwise(Program("x", [x * 2.0]), (source,), (array(device, *shape),))

    return record


def reduction(how, shape, axes, program=IDENTITY):
    def record(device):
        kept = tuple(n for axis, n in enumerate(shape) if axis not in axes)
        device.reduce(program, how, (array(device, *shape),), array(device, *kept), shape, axes)

    return record


def rows(program, modes, *inputs, shape):
    def record(device):
        full = {"store": shape, "row": (*shape[:-1], 1), "columns": shape[-1:]}
        given = [array(device, *n) if isinstance(n, tuple) else n for n in inputs]
        device.rows(program, modes, given, [array(device, *full[m]) for m in modes], shape)

    return record


LAYER_NORM_GRADIENT = Program(
    ["dy", "x", "w", "eps"],
    formulas.LayerNormRow.gradient(*map(symbol, ("dy", "x", "w", "eps"))),
)
BIG = (1 << 18,)
CASES = {
    "flat": elementwise(Program("xys", [x + y * s]), BIG, BIG, 2.0, out=BIG),
    "bias": elementwise(Program("xy", [e.maximum(x + y, 0.0)]), (9000, 64), (64,), out=(9000, 64)),
    "odd bias": elementwise(Program("xy", [x + y]), (9000, 63), (63,), out=(9000, 63)),
    "turned": turned((1000, 300)),
    "sum of all": reduction("sum", (3_000_001,), (0,), Program("x", [x * x])),
    "sum of columns": reduction("sum", (4096, 768), (0,)),
    "mean of channels": reduction("mean", (32, 64, 28, 28), (0, 2, 3)),
    "softmax": rows(formulas.SoftmaxRow.program, ("store",), (4096, 1024), shape=(4096, 1024)),
    "long softmax": rows(formulas.SoftmaxRow.program, ("store",), (9, 50_000), shape=(9, 50_000)),
    "layer norm gradient": rows(
        LAYER_NORM_GRADIENT, ("store", "columns", "columns"), (4096, 768), (4096, 768), (768,),
        1e-5, shape=(4096, 768),
    ),
}  # fmt: skip
READ = {"sum of all", "mean of channels"}  # by accesses of four
WRITTEN = {"flat", "bias", "softmax", "layer norm gradient", "long softmax"}


def compiled(record, capabilities, monkeypatch):
    """[(cubin, PTX, threads)] of the kernels that a call launches."""
    device, texts, found = Recorder(), [], []
    link = compiler.link
    monkeypatch.setattr(compiler, "link", lambda ptx, *rest: texts.append(ptx) or link(ptx, *rest))
    record(device)
    assert device.kernels
    for kernel, threads in device.kernels:
        arguments = compiler.numba_types(kernel.signature)
        texts.clear()
        made = compiler.compile_function(kernel.for_compiler(), arguments, capabilities)
        found += [(cubin, ptx, threads) for cubin, ptx in zip(made, texts, strict=True)]
    return found


@pytest.mark.parametrize("name", CASES)
def test_kernels_compile_as_meant(name, monkeypatch):
    made = compiled(CASES[name], CAPABILITIES, monkeypatch)
    for cubin, ptx, threads in made:
        assert cubin.doubles == 0, "float64 arithmetic in a float32 kernel"
        assert cubin.spills == 0
        assert cubin.stack == 0, "an array of registers went to memory"
        assert threads <= cubin.most_threads
        assert not re.search(r"\b(div|rem)\.[su](32|64)", ptx), "a division of integers"
    _, first, _ = made[0]
    assert ("ld.global.v4.f32" in first) == (name in READ | WRITTEN)
    assert ("st.global.v4.f32" in first) == (name in WRITTEN)


@pytest.mark.parametrize("dtype", [float64, int64], ids=str)
def test_other_dtypes_and_wide_indices_compile(dtype, monkeypatch):
    monkeypatch.setattr(binding, "SMALL", 0)
    monkeypatch.setattr(programs, "FEW", 0)

    def record(device):
        a, b = array(device, 40, 12, dtype=dtype), array(device, 40, 1, dtype=dtype)
        device.elementwise(Program("xy", [e.maximum(x, y)]), (a, b), (array(device, 40, 12),))
        out = array(device, 300, dtype=dtype)
        device.reduce(
            Program("x", [x]), "max", (array(device, 40, 300, dtype=dtype),), out, (40, 300), (0,)
        )
        program = Program("xy", [x - e.row_max(x) * y, x])
        outs = (array(device, 40, 12, dtype=dtype), array(device, 12, dtype=dtype))
        device.rows(program, ("store", "columns"), (a, b), outs, (40, 12))

    for cubin, _, threads in compiled(record, CAPABILITIES[:1], monkeypatch):
        assert cubin.doubles == 0 or dtype is float64
        assert cubin.spills == cubin.stack == 0
        assert threads <= cubin.most_threads
