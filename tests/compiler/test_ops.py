"""Every operation of the registry, traced: dtypes, layouts, first and second derivatives."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.compiler.trace.capture import capture
from minigrad.devices.cpu.device import cpu
from tests.compiler.replay import run_captured
from tests.ops.cells import arranged, call, cells, draw, public_ops, samples, shown
from tests.ops.test_gradients import DIFFERENTIABLE, problem

OPS = public_ops()
REFUSED = "move"  # a step runs on one device: tests/devices/gpu/test_device.py
RUN = [cell for cell, why in cells() if why is None and cell.op != REFUSED]
WIDE = {"float32": 1e-5, "float64": 1e-9}  # Adam's and the interpreter's exp are not NumPy's


def compare(found, wanted):
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    error = WIDE.get(str(wanted.dtype), 0.0)
    np.testing.assert_allclose(shown(found), shown(wanted), error, error)


def traced(step):
    """Runs a step as a recording; the CPU's pool is left alone while it is captured."""
    captured = capture(step)
    constants = captured.recording.values("constant")
    takes = cpu.pool.takes
    again = capture(step)
    assert cpu.pool.takes - takes <= len(constants)
    assert list(map(repr_of, again.recording.instructions)) == list(
        map(repr_of, captured.recording.instructions)
    )
    assert captured.escaped() is None
    return run_captured(captured)


def repr_of(instruction):
    """What an instruction does, without the names of its memory."""
    refs = [getattr(x, "layout", lambda x=x: x)() for x in instruction.inputs]
    return instruction.op, refs, [r.layout() for r in instruction.outputs], instruction.name


@pytest.mark.parametrize("cell", RUN, ids=lambda c: f"{c.op}-{c.dtype}-{c.layout}")
def test_forward_in_every_dtype_and_layout(cell):
    op = OPS[cell.op]
    for shapes, attributes in samples(op):
        pairs = arranged(draw(op, shapes, attributes, cell.dtype), cell.layout)
        inputs = [variable for variable, _ in pairs]
        wanted = call(op, inputs, attributes)
        compare(traced(lambda: call(op, inputs, attributes)), wanted)  # noqa: B023 - as above


@pytest.mark.parametrize("name", [name for name in DIFFERENTIABLE if name != REFUSED])
def test_gradients_of_every_sample(name):
    for which in range(len(samples(OPS[name]))):
        function, arrays, needs, rng = problem(name, which)
        if name == "dropout":
            continue  # with the default generator: test_steps.py
        inputs = [mg.variable(a, requires_grad=n) for a, n in zip(arrays, needs, strict=True)]
        leaves = [x for x in inputs if x.requires_grad]
        dy = mg.variable(rng.normal(size=function(*inputs).shape))

        def first():
            for x in leaves:  # noqa: B023 - called at once
                x.grad = None
            function(*inputs).backward(dy)  # noqa: B023 - as above
            return [x.grad for x in leaves]  # noqa: B023 - as above

        def second():
            y = function(*inputs)  # noqa: B023 - as above
            grads = mg.gradients(y, leaves, dy, create_graph=True)  # noqa: B023 - as above
            total = sum((g * g).sum() for g in grads if g is not None)
            found = [g for g in grads if g is not None]
            if total.requires_grad:
                found += [g for g in mg.gradients(total, leaves) if g is not None]  # noqa: B023
            return found

        for step in (first, second) if which == 0 else (first,):
            for found, wanted in zip(traced(step), step(), strict=True):
                compare(found, wanted)
