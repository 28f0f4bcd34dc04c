"""Counts and formulas at their edges: bytes of what is read twice, many norms, roots below zero."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.compiler.cpu.schedule import ScheduledCall
from minigrad.compiler.fuse.fuse import fuse
from minigrad.compiler.program.sketch import Sketch
from minigrad.compiler.program.traffic import instruction_bytes
from minigrad.compiler.report.report import _summed
from minigrad.compiler.trace.capture import capture
from tests.compiler.formulas import Formula
from tests.compiler.replay import replay


def test_a_value_that_is_read_twice_is_counted_once():
    s = Sketch()
    x = s.argument((100,))
    s.mul(x, x)
    assert instruction_bytes(s.instructions[0]) == (400, 400)


def test_calls_that_are_not_cut_are_not_counted_as_cut():
    s = Sketch()
    (item,) = fuse(s.recording(s.exp(s.argument((100,)))))
    calls = [ScheduledCall("loop", item, item.reads, item.writes, 0) for _ in range(3)]
    calls[1].is_cut = True
    form = _summed(("kernel0", "loop"), calls)
    assert (form.calls, form.cut, form.read, form.written) == (3, 1, 1200, 1200)


@pytest.mark.parametrize("count", [15, 16, 17, 18, 33])
def test_the_norm_of_many_gradients_has_all_of_them(count):
    ws = [nn.Parameter([1.0]) for _ in range(count)]

    def step(x):
        sum((w * x).sum() for w in ws).backward()
        norm = optim.clip_grad_norm_(ws, 100.0)
        for w in ws:
            w.grad = None
        return norm

    assert replay(step, mg.variable([2.0])) == pytest.approx(2.0 * count**0.5)


def test_a_centred_average_that_rounding_pushes_below_zero_is_zero():
    rule = optim.RMSprop([nn.Parameter([1.0])], 0.5, alpha=0.99, eps=1.0, centered=True)
    update, numbers = rule.groups[0].update(), rule.groups[0].numbers()
    values = {f"n{k}": update.number(k, numbers) for k in range(len(update.numbers))}
    values |= {"p": 1.0, "g": 1.0, "s0": 1.0, "s1": 1.001}
    formula = Formula(values, np.float32, ())
    assert formula(update.program.outputs[0]) == 0.5  # 1 - 0.5 * 1 / (0 + 1)


def test_a_capture_puts_back_where_an_array_was_written():
    h = mg.zeros((2,))
    h.add_(1.0)
    before = h.array.written_at
    capture(lambda: h.mul_(2.0))
    assert h.array.written_at == before
