"""Plans of recordings made for one rule each, run by NumPy: orders, memory, edges."""

import random

import numpy as np
import pytest

from minigrad.compiler.cpu import schedule
from minigrad.compiler.fuse import epilogue, fused_loop, recompute, skinny
from minigrad.compiler.fuse.fuse import fuse
from minigrad.compiler.fuse.fused_loop import Loop
from minigrad.compiler.fuse.inplace import Sharing
from minigrad.compiler.program.sketch import Sketch, transposed, view
from minigrad.formulas.expression import Program, symbol
from tests.compiler.interpreter import execute
from tests.compiler.simulated import Simulation

N = 20  # rows and columns


@pytest.fixture(autouse=True)
def no_size_is_too_small(monkeypatch):
    """Small arrays are treated as large ones are, but products are none of formulas."""
    for module, names in (
        (schedule, ("SHARED", "WORTH")), (epilogue, ("WORTH", "FEWEST")), (recompute, ("LARGE",)),
    ):  # fmt: skip
        for name in names:
            monkeypatch.setattr(module, name, 0)
    monkeypatch.setattr(skinny, "WORTH", 1 << 30)


def agree(recording, n_threads=2):
    """The plan does what the interpreter does; returns it."""
    rng, data = np.random.default_rng(0), {}
    for kind in ("argument", "captured"):
        for v in recording.values(kind):
            data[v] = rng.standard_normal(v.size).astype(v.dtype.numpy)
    memory, mine = ({v: x.copy() for v, x in data.items()} for _ in range(2))
    for seed in range(4):
        plan = Simulation(recording, mine, n_threads, random.Random(seed))
        got, wanted = plan.run(), execute(recording, memory)
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
        for v in data:
            np.testing.assert_allclose(mine[v], memory[v], rtol=1e-4, atol=1e-4)
    return plan


def square(s):
    """(x, w, x @ w)."""
    x, w = s.argument((N, N)), s.captured("w", (N, N))
    return x, w, s.matmul(x, w)


class TestSharing:
    def test_what_is_read_at_two_places_is_not_written_over(self):
        s = Sketch()
        _, w, h = square(s)
        sum_ = s.add(h, transposed(h))
        plan = agree(s.recording(s.matmul(sum_, w)))
        assert not plan.owner
        reasons = {why for _, _, why in Sharing(plan.items, plan.results).refused}
        assert "it is read at several places" in reasons

    def test_a_result_is_not_written_over(self):
        s = Sketch()
        _, w, h = square(s)
        y = s.matmul(s.tanh(h), w)
        assert not agree(s.recording(h, y)).owner

    def test_what_is_read_later_is_not_written_over(self):
        s = Sketch()
        _, w, h = square(s)
        agree(s.recording(s.add(s.matmul(s.tanh(h), w), h)))

    def test_of_two_that_could_take_it_over_one_does(self):
        s = Sketch()
        _, w, h = square(s)
        plan = agree(s.recording(s.matmul(s.tanh(h), s.exp(h)), s.matmul(w, w)))
        assert len(plan.owner) == 1

    def test_a_donated_argument_that_is_read_later_is_not_written_over(self):
        s = Sketch()
        x = s.argument((N, N))
        y = s.exp(x)
        recording = s.recording(y, s.matmul(x, y))
        recording.donated = frozenset([x.value])
        assert not agree(recording).owner

    def test_what_another_loop_has_begun_to_write_keeps_its_memory(self, monkeypatch):
        monkeypatch.setattr(fused_loop, "MOST_ARRAYS", 2)
        s = Sketch()
        x, w = s.argument((N, N)), s.captured("w", (N, N))
        half, middle, t = (N // 2, N), N // 2 * N, s.temporary((N, N))
        s.exp(view(w, half), out=view(t, half))
        h = s.matmul(x, w)
        s.tanh(view(h, half, offset=middle), out=view(t, half, offset=middle))
        agree(s.recording(s.matmul(t, w)))

    def test_a_chain_has_the_memory_of_its_first(self, monkeypatch):
        monkeypatch.setattr(fused_loop, "MOST_ARRAYS", 3)
        s = Sketch()
        _, w, h = square(s)
        for _ in range(3):
            h = s.add(h, s.reduce("sum", h, (0, 1)))
        plan = agree(s.recording(s.matmul(h, w)))
        assert len(plan.owner) == 3
        assert plan.arena.size < 2 * N * N * 4


class TestLoops:
    def test_a_write_waits_for_what_is_read_elsewhere_in_the_same_pass(self):
        s = Sketch()
        x, w = s.argument((N,)), s.captured("w", (N,))
        back = s.mul(view(w, (N,), (-1,), N - 1), x)
        s.add(back, w, out=w)
        agree(s.recording(back))

    def test_two_writes_to_one_place_of_which_the_second_is_a_row(self):
        s = Sketch()
        x, w = s.argument((6, 1)), s.captured("w", (6,))
        s.exp(view(x, (6,)), out=w)
        s.reduce("max", s.mul(x, 2.0), (1,), out=w)
        agree(s.recording())

    def test_numbers_of_two_widths_are_rounded_where_they_are_stored(self):
        s = Sketch()
        wide = s.argument((N,), "float64")
        small = s.mul(wide, 1.0 / 3.0, dtype="float32")
        wide_again = s.sub(small, wide, dtype="float64")
        narrow = s.mul(small, 1.1)  # float32's 1.1
        recording = s.recording(wide_again, narrow)
        data = np.full(N, 1e8)  # rounding to float32 is seen
        memory = {wide.value: data}
        got = Simulation(recording, dict(memory), 1, random.Random(0)).run()
        for a, b in zip(got, execute(recording, dict(memory)), strict=True):
            np.testing.assert_array_equal(a, b)

    def test_a_formula_of_whole_sums_and_rows(self):
        s = Sketch()
        x = s.argument((N, 8))
        rows = s.reduce("sum", s.mul(x, x), (1,))
        total = s.reduce("sum", rows, (0,))
        shares = s.div(x, view(rows, (N, 1)))
        means = s.reduce("mean", s.exp(rows), (0,))
        agree(s.recording(rows, total, shares, means))

    def test_sums_of_everything_and_then_of_a_row_for_each_element(self):
        s = Sketch()
        few, x = s.argument((N,)), s.argument((N, 8))
        total = s.reduce("sum", few, (0,))
        y = s.mul(x, view(few, (N, 1)))
        agree(s.recording(total, y, s.reduce("sum", y, (0,))))


class TestEpilogues:
    @pytest.mark.parametrize("which", [0, 1])
    def test_what_a_product_reads_is_not_written_block_by_block(self, which):
        s = Sketch()
        operands = s.captured("a", (2 * N, 2 * N)), s.captured("b", (2 * N, 2 * N))
        target = operands[which]
        s.add(s.matmul(*operands), target, out=target)
        agree(s.recording())

    @pytest.mark.parametrize("form", ["new", "in place", "both"])
    @pytest.mark.parametrize("operands", ["rw", "wr", "rr", "tw", "wt", "wx"])
    def test_what_a_product_reads_is_not_taken_over_block_by_block(self, operands, form):
        s = Sketch()
        x, w = s.argument((2 * N, 2 * N)), s.captured("w", (2 * N, 2 * N))
        r = s.tanh(x)
        found = {"r": r, "w": w, "t": transposed(r), "x": x}
        h = s.matmul(*map(found.__getitem__, operands))
        results = [h]
        if form == "in place":
            s.add(h, r, out=h)
        else:
            results = [s.add(r, h), *([s.sub(r, h)] if form == "both" else [])]
        plan = agree(s.recording(*(s.matmul(y, w) for y in results)))
        assert any(getattr(i, "epilogue", None) is not None for i in plan.items)
        assert operands == "wx" or r.value not in plan.owner.values()
        assert form == "in place" or plan.owner, "what can be taken over is"

    def test_an_epilogue_reads_rows_of_its_own_block_alone(self):
        s = Sketch()
        x, w = s.argument((2 * N, 2 * N)), s.captured("w", (2 * N, 2 * N))
        h = s.matmul(x, w)
        agree(s.recording(s.add(h, transposed(h))))

    def test_a_product_that_adds_has_none(self):
        s = Sketch()
        x, w, acc = s.argument((2 * N, N)), s.captured("w", (N, N)), s.captured("acc", (2 * N, N))
        s.matmul(x, w, out=acc, accumulate=True)
        plan = agree(s.recording(s.tanh(acc)))
        assert all(getattr(i, "epilogue", None) is None for i in plan.items)

    def test_a_write_between_a_product_and_what_follows_it(self):
        s = Sketch()
        x, w, b = s.argument((2 * N, N)), s.captured("w", (N, N)), s.captured("b", (N,))
        h = s.matmul(x, w)
        s.matmul(view(x, (1, N)), w, out=view(b, (1, N)))
        agree(s.recording(s.add(h, b)))


class TestProducts:
    @pytest.mark.parametrize("accumulate", [False, True])
    def test_sums_of_nothing(self, accumulate):
        s = Sketch()
        x, y, out = s.argument((4, 0)), s.argument((0, 3)), s.captured("out", (4, 3))
        s.matmul(x, y, out=out, accumulate=accumulate)
        agree(s.recording())

    def test_a_target_that_blas_cannot_write(self):
        s = Sketch()
        x, w, out = s.argument((N, 4)), s.argument((4, N)), s.captured("out", (N, N))
        s.matmul(x, w, out=transposed(out), accumulate=True)
        agree(s.recording())

    @pytest.mark.parametrize("shape", [(64, 3, 40), (3, 64, 40), (64, 40, 3)])
    @pytest.mark.parametrize("turn", [False, True])
    def test_small_sides_within_larger_memory(self, monkeypatch, shape, turn):
        monkeypatch.setattr(skinny, "WORTH", 0)
        (m, k, n), s = shape, Sketch()
        big = s.captured("big", (2 * m * k + 5,)), s.captured("also", (2 * k * n + 5,))
        a, b = view(big[0], (m, k), offset=5), view(big[1], (k, n), offset=3)
        if turn:
            a, b = view(big[0], (m, k), (1, m), 5), view(big[1], (k, n), (1, k), 3)
        plan = agree(s.recording(s.matmul(a, b)))
        assert all(type(item) is Loop for item in plan.items)

    @pytest.mark.parametrize("shape", [(64, 3, 40), (3, 64, 40), (64, 40, 3)])
    def test_small_sides_that_are_added(self, monkeypatch, shape):
        monkeypatch.setattr(skinny, "WORTH", 0)
        (m, k, n), s = shape, Sketch()
        out = s.captured("out", (m, n))
        s.matmul(s.argument((m, k)), s.argument((k, n)), out=out, accumulate=True)
        agree(s.recording())

    def test_products_of_integers_within_larger_memory(self):
        s = Sketch()
        big = s.argument((100,), "int64")
        y = s.matmul(view(big, (3, 4), offset=7), view(big, (4, 5), offset=31))
        agree(s.recording(s.add(y, 0)))


class TestRecomputing:
    def wide(self, s):
        """(x, a hidden layer of it)."""
        x, w = s.captured("x", (64, 1)), s.argument((1, 64))
        return x, s.maximum(s.mul(x, w), 0.0)

    def test_is_done(self):
        s = Sketch()
        _, h = self.wide(s)
        columns = s.reduce("sum", h, (0,))
        y = s.mul(h, s.reduce("sum", columns, (0,)))
        items = agree(s.recording(y)).items
        assert h is not None
        assert not any(h.value is r.value for i in items for r in i.writes), "it is nowhere"

    def test_is_not_done_of_what_was_written_since(self):
        s = Sketch()
        x, h = self.wide(s)
        total = s.reduce("sum", s.reduce("sum", h, (0,)), (0,))
        s.mul(x, total, out=x)
        agree(s.recording(s.mul(h, s.reduce("sum", x, (0, 1)))))

    def test_is_not_done_of_a_layer_that_was_written_since(self):
        s = Sketch()
        _, h = self.wide(s)
        total = s.reduce("sum", s.reduce("sum", h, (0,)), (0,))
        s.mul(h, total, out=h)
        total = s.reduce("sum", s.reduce("sum", h, (0,)), (0,))
        agree(s.recording(s.mul(h, total)))

    def test_is_not_done_of_what_a_product_has_written_since(self):
        s = Sketch()
        _, h = self.wide(s)
        total = s.reduce("sum", s.reduce("sum", h, (0,)), (0,))
        s.matmul(s.argument((64, 64)), s.argument((64, 64)), out=h)
        agree(s.recording(s.mul(h, total)))

    def test_is_not_done_at_other_places(self):
        s = Sketch()
        _, h = self.wide(s)
        total = s.reduce("sum", s.reduce("sum", h, (0,)), (0,))
        agree(s.recording(s.mul(transposed(h), total)))


def test_checks_of_what_the_step_writes_stay_behind_the_write():
    s = Sketch()
    x, w = s.argument((4,)), s.captured("w", (4,))
    s.exp(x, out=w)
    s.check(w)
    s.check(x)
    items = fuse(s.recording())
    kinds = [getattr(i, "instruction", None) and i.instruction.inputs[0] for i in items]
    assert kinds == [x, None, w]


def test_reductions_of_one_element_and_of_none():
    s = Sketch()
    x, none = s.argument((4, 1)), s.argument((4, 0))
    found = [s.reduce(how, x, (1,), dtype="bool") for how in ("any", "all")]
    found += [s.reduce(how, none, (1,)) for how in ("sum", "prod", "mean")]
    double = Program(["x"], [symbol("x") * 2.0])
    found.append(s.reduce("sum", x, (1,), program=double))
    agree(s.recording(*found))
