"""Passes that need less memory, what each must not touch; and all of them together."""

import time

import pytest

from minigrad.compiler.passes import simplify
from minigrad.compiler.passes.copies import without_copies
from minigrad.compiler.passes.helpers.algebra import is_copy
from minigrad.compiler.passes.localise import localise
from minigrad.compiler.program.printing import show
from minigrad.compiler.program.program import Ref
from minigrad.compiler.program.sketch import Sketch, transposed, view
from minigrad.compiler.trace.capture import capture
from tests.compiler.interpreter import execute, memory_of
from tests.compiler.outcomes import becomes, same, stays
from tests.compiler.test_steps import STEPS, Training


class TestLocalise:
    def test_parts_that_are_written_first(self):
        s = Sketch()
        x, flat = s.argument((2, 2)), s.captured("flat", (16,))
        a, b, c = (view(flat, (2, 2), offset=k) for k in (0, 4, 12))
        s.exp(x, out=a)
        s.add(b, a, out=b)  # what it held before
        s.tanh(x, out=transposed(c))
        y = s.mul(transposed(c), view(flat, (2,), offset=12))
        text = """
            %0 float32[2, 2] = exp x0
            flat[4:8] := add flat[4:8] %0
            %1{[2, 2] strides [1, 2]} = tanh x0
            %2 float32[2, 2] = mul %1{[2, 2] strides [1, 2]} %1[0:2]
            return %2
            """
        becomes(localise, s, text, [y], dead_slices=[(flat.value, 0, 16)])

    def test_a_whole_buffer_moves_as_one(self):
        s = Sketch()
        x, flat = s.argument((4,)), s.captured("flat", (8,))
        s.exp(x, out=view(flat, (4,)))
        s.tanh(x, out=view(flat, (4,), offset=4))
        z = s.neg(view(flat, (2,), offset=1))
        y = s.reduce("sum", flat, (0,))
        text = """
            %0[0:4] = exp x0
            %0[4:8] := tanh x0
            %1 float32[2] = neg %0[1:3]
            %2 float32[] = sum %0 over axes 0
            return %2, %1
            """
        slices = [(flat.value, 0, 4), (flat.value, 4, 4)]
        becomes(localise, s, text, [y, z], dead_slices=slices)

    def test_what_must_stay(self):
        s = Sketch()
        x, flat, i = s.argument((4,)), s.captured("flat", (32,)), s.argument((1,), "int64")
        parts = [view(flat, (4,), offset=4 * k) for k in range(8)]
        s.exp(x, out=parts[0])
        s.exp(view(flat, (4,), offset=2), out=parts[2])  # reads beyond what was written
        s.exp(x, out=parts[3])
        s.neg(view(flat, (4,), offset=14), out=x)  # reaches beyond the dead slice
        s.instruct("put", (view(x, (1, 1, 2)), i), view(flat, (1, 2, 2), offset=20))
        s.neg(parts[5], out=x)
        s.exp(x, out=parts[4])  # not dead
        s.exp(x, out=parts[7])
        s.exp(view(x, (2,)), out=view(flat, (2,), (2,), 24))
        s.exp(view(flat, (3,), (1,), 24), out=view(x, (3,)))  # one of these was not written
        slices = [(flat.value, k, 4) for k in (0, 4, 12, 20, 24, 28)]
        stays(localise, s, [parts[7]], dead_slices=slices)
        stays(localise, s)


class TestCopies:
    def test_makers_write_to_the_slot(self):
        s = Sketch()
        x, w, flat = s.argument((2, 3)), s.argument((3, 2)), s.captured("flat", (9,))
        t = s.matmul(x, w)
        s.add(t, 1.0, out=t)
        s.copy(t, out=view(flat, (2, 2), offset=4))
        y = s.exp(transposed(t))
        text = """
            flat[4:8] := matmul x0 x1
            flat[4:8] := add flat[4:8] 1.0
            %0 float32[2, 2] = exp flat{[2, 2] strides [1, 2] from 4}
            return %0
            """
        becomes(without_copies, s, text, [y])

    def test_an_update_happens_in_place(self):
        s = Sketch()
        w, g = s.captured("w", (2, 3)), s.argument((2, 3))
        s.copy(s.sub(w, g), out=w)
        becomes(without_copies, s, "w := sub w x0")

    def test_readers_read_the_source(self):
        s = Sketch()
        x = s.argument((3, 4, 2))
        turned = s.copy(view(x, (4, 3, 2), (2, 8, 1)))
        y = s.mul(view(turned, (2, 2), (12, 1), 2), 2.0)
        z = s.reduce("sum", turned, (0,))
        spread = s.copy(view(x, (1, 2)), out=s.temporary((5, 2)))
        assert spread is None
        u = s.mul(s.instructions[-1].outputs[0], 3.0)
        text = """
            %0 float32[2, 2] = mul x0{[2, 2] strides [4, 1] from 8} 2.0
            %1 float32[3, 2] = sum x0{[4, 3, 2] strides [2, 8, 1]} over axes 0
            %2 float32[5, 2] = mul x0{[5, 2] strides [0, 1]} 3.0
            return %0, %1, %2
            """
        becomes(without_copies, s, text, [y, z, u])

    def test_a_chain_goes_altogether(self):
        s = Sketch()
        x, slot = s.argument((3,)), s.captured("slot", (3,))
        s.copy(s.copy(s.copy(s.exp(x))), out=slot)
        becomes(without_copies, s, "slot := exp x0")

    def test_a_product_reads_what_blas_can(self):
        s = Sketch()
        x, y = s.argument((3, 4)), s.argument((8, 8))
        a = s.matmul(s.copy(transposed(x)), x)
        b = s.matmul(s.copy(view(y, (4, 4), (16, 2))), s.copy(view(y, (4, 4))))
        text = """
            %0 float32[4, 4] = matmul x0{[4, 3] strides [1, 4]} x0
            %1 float32[4, 4] = copy x1{[4, 4] strides [16, 2]}
            %2 float32[4, 4] = matmul %1 x1[0:16]
            return %0, %2
            """
        becomes(without_copies, s, text, [a, b])

    def test_a_written_copy_is_made_at_once(self):
        s = Sketch()
        x = s.argument((3,))
        t = s.copy(s.exp(x))
        s.add(t, 1.0, out=t)
        text = """
            %0 float32[3] = exp x0
            %0 := add %0 1.0
            return %0
            """
        becomes(without_copies, s, text, [t])

    def test_sources_that_change(self):
        s = Sketch()
        x, w, v = s.argument((3,)), s.captured("w", (3,)), s.captured("v", (3,))
        before = s.copy(w)
        s.add(w, x, out=w)
        y = s.mul(before, 2.0)  # the old w
        t = s.copy(v)
        s.add(t, 1.0, out=t)  # not v
        z = s.mul(t, 3.0)
        s.copy(x, out=w)  # not ours to replace
        u = s.copy(v)
        s.mul(view(u, (2,), offset=1), 2.0, out=view(v, (2,)))  # would read what it has written
        stays(without_copies, s, [y, z, s.copy(x)])

    def test_a_copy_to_a_part(self):
        s = Sketch()
        x, t = s.argument((2,)), s.temporary((4,))
        s.copy(x, out=view(t, (2,), offset=2))
        stays(without_copies, s, [s.exp(view(t, (1,), offset=3))])

    def test_slots_that_are_wanted_before(self):
        s = Sketch()
        x, slot = s.argument((3,)), s.captured("slot", (3,))
        t = s.exp(x)
        y = s.neg(slot)
        s.copy(t, out=slot)
        u = s.exp(s.reduce("sum", view(slot, (3, 1)), (1,)))  # reads the slot as it writes u
        s.copy(u, out=slot)
        v = s.exp(x)
        s.copy(v, out=slot)
        s.fill(0.0, out=slot)
        z = s.mul(v, 2.0)  # the slot holds something else by now
        turned = s.exp(view(slot, (3,), (-1,), 2))
        s.copy(turned, out=slot)  # would read what it has just written
        r = s.reduce("sum", view(x, (3, 1)), (1,))
        s.copy(r, out=slot)  # a result has memory of its own
        m = s.exp(x)
        s.copy(m, out=slot)
        s.add(m, 1.0, out=m)  # the slot must not follow
        recording = s.recording(y, z, r, s.neg(m))
        after = without_copies(recording)
        assert copies_in(recording) == 6
        assert copies_in(after) == 5
        assert "slot := exp" in show(after)  # u alone

    def test_a_slot_that_is_written_in_between(self):
        s = Sketch()
        x, slot = s.argument((3,)), s.captured("slot", (3,))
        t = s.exp(x)
        s.fill(0.0, out=view(slot, (2,)))
        s.copy(t, out=slot)
        stays(without_copies, s)

    def test_products_are_not_made_in_the_place_of_what_they_read(self):
        s = Sketch()
        x, w, v = s.argument((2, 2)), s.captured("w", (2, 2)), s.captured("v", (2, 2))
        s.copy(s.matmul(w, x), out=w)
        s.matmul(s.copy(v), x, out=v)
        stays(without_copies, s)

    def test_nothing_outside_is_written_before_a_check(self):
        s = Sketch()
        x, slot = s.argument((3,)), s.captured("slot", (3,))
        t = s.exp(x)
        s.check(t)
        s.copy(t, out=slot)
        stays(without_copies, s)

    def test_other_dtypes_and_layouts_that_do_not_fit(self):
        s = Sketch()
        x, n = s.argument((3, 4)), s.argument((2,), "int64")
        y = s.exp(s.copy(x, dtype="float64"))
        flat = s.copy(transposed(x))
        z = s.exp(view(flat, (12,)))  # no layout over x
        picked = s.instruct(
            "gather", (s.copy(view(x, (1, 4, 3), (0, 1, 4))), n), ((1, 2, 3), x.dtype)
        )
        far = s.copy(transposed(x))
        a, b = s.exp(far), s.tanh(far)  # walking across memory twice costs more than the copy
        slot = s.captured("slot", (4, 4))
        product = s.matmul(transposed(x), x)
        s.copy(product, out=transposed(slot))  # BLAS writes rows
        stays(without_copies, s, [y, z, picked, a, b])


def copies_in(recording):
    """How many instructions copy from memory to memory."""
    return sum(is_copy(i) and isinstance(i.inputs[0], Ref) for i in recording.instructions)


class TestSimplify:
    def test_a_gradient_goes_from_the_product_to_the_update(self):
        s = Sketch()
        x, w, flat = s.argument((5, 3)), s.captured("w", (3, 2)), s.captured("flat", (6,))
        g = view(flat, (3, 2))
        s.fill(0.0, out=flat)
        dy = s.mul(s.fill(1.0, (5, 2)), s.tanh(s.matmul(x, w)))
        s.copy(s.matmul(transposed(x), dy), out=g)
        s.copy(s.sub(w, s.mul(g, 0.5)), out=w)
        text = """
            %0 float32[5, 2] = matmul x0 w
            %1 float32[5, 2] = tanh %0
            %2 float32[3, 2] = matmul x0{[3, 5] strides [1, 3]} %1
            %3 float32[3, 2] = mul %2 0.5
            w := sub w %3
            """
        becomes(lambda r: simplify(r, [(flat.value, 0, 6)])[0], s, text)

    def test_what_each_pass_did(self):
        s = Sketch()
        x = s.argument((2,))
        s.exp(x)
        recording = s.recording(s.copy(s.mul(x, 2.0)))
        after, steps = simplify(recording)
        assert len(after.instructions) == 1
        assert steps == [("eliminate_dead", 3, 2), ("without_copies", 2, 1)]

    def test_long_recordings_do_not_take_long(self):
        """2,400 instructions over slices of one buffer take at most 10 times as long as 480."""
        seconds = []
        for steps in (20, 100):
            s = Sketch()
            x, flat = s.argument((8,)), s.captured("flat", (64,))
            for _ in range(steps):
                for k in range(8):
                    part = view(flat, (8,), offset=8 * k)
                    s.copy(s.mul(part, s.exp(x)), out=part)
            start = time.process_time()
            simplify(s.recording(), [(flat.value, 0, 64)])
            seconds.append(time.process_time() - start)
        assert seconds[1] < 10 * max(seconds[0], 0.01)


@pytest.mark.parametrize("name", STEPS)
def test_steps_that_train_mean_the_same(name):
    case = Training(*STEPS[name])
    case.step(*case.data)
    captured = capture(case.step, case.data)
    after, _ = simplify(captured.recording, captured.idle)
    assert len(after.instructions) < len(captured.recording.instructions)
    outcomes = []
    for recording in (captured.recording, after):
        memory = memory_of(captured.recording)
        found = execute(recording, memory)
        for value, offset, size in captured.idle:
            memory[value][offset : offset + size] = 0
        outcomes.append([*found, *(x for v, x in memory.items() if not v.is_temporary)])
    assert same(*outcomes)
