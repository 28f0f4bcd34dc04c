"""Passes that compute less: what each does, and what it must not touch."""

import textwrap

import numpy as np

from minigrad.array.dtypes import int32
from minigrad.compiler.passes.common import share_common
from minigrad.compiler.passes.constants import fold_constants
from minigrad.compiler.passes.dead import eliminate_dead
from minigrad.compiler.passes.helpers.arithmetic import reduced, result, stored
from minigrad.compiler.program.printing import show
from minigrad.compiler.program.sketch import Sketch, transposed, view
from minigrad.formulas.expression import Program, exp, symbol, where
from tests.compiler.outcomes import becomes, stays


class TestShow:
    def test_names_layouts_and_writes(self):
        s = Sketch()
        x, w, k = s.argument((2, 3)), s.captured("w", (3, 2)), s.captured("", (4,))
        s.fill(0.5, out=view(k, (2,), offset=1))
        y = s.matmul(x, w)
        s.matmul(x, w, out=y, accumulate=True)
        s.mul(s.add(y, 1.0), transposed(y), out=y)
        s.check(x)
        s.reduce("max", x, (1,))
        assert (
            show(s.recording(y, x))
            == textwrap.dedent("""
            c0[1:3] := fill 0.5
            %0 float32[2, 2] = matmul x0 w
            %0 := %0 + matmul x0 w
            %1 float32[2, 2] = add %0 1.0
            %0 := mul %1 %0{[2, 2] strides [1, 2]}
            check x0 what='finite' low=0 high=0
            %2 float32[2] = max x0 over axes 1
            return %0, x0
            """).strip()
        )

    def test_a_formula_that_would_be_endless_is_named(self):
        e = symbol("x")
        for _ in range(200):
            e = e * e
        s = Sketch()
        s.elementwise(Program(["x"], [e]), (s.argument((2,)),))
        assert show(s.recording()) == "%0 float32[2] = formula x0"

    def test_equal_names_stay_apart(self):
        s = Sketch()
        s.add(s.captured("w", (2,)), s.captured("w", (2,)))
        assert show(s.recording()) == "%0 float32[2] = add w c0"


class TestDead:
    def test_the_unread_half_of_a_temporary_and_what_only_it_needs(self):
        s = Sketch()
        x, t = s.argument((2,)), s.temporary((4,))
        s.exp(s.neg(x), out=view(t, (2,)))
        s.tanh(x, out=view(t, (2,), offset=2))
        y = s.mul(view(t, (2,), offset=2), 2.0)
        text = """
            %0[2:4] = tanh x0
            %1 float32[2] = mul %0[2:4] 2.0
            return %1
            """
        becomes(eliminate_dead, s, text, [y])

    def test_every_other_element(self):
        s = Sketch()
        x, t = s.argument((2,)), s.temporary((4,))
        s.exp(x, out=view(t, (2,), (2,)))
        s.tanh(x, out=view(t, (2,), (2,), 1))
        y = s.mul(view(t, (2,), (2,), 1), 2.0)
        text = """
            %0{[2] strides [2] from 1} = tanh x0
            %1 float32[2] = mul %0{[2] strides [2] from 1} 2.0
            return %1
            """
        becomes(eliminate_dead, s, text, [y])

    def test_a_store_that_is_overwritten_in_pieces(self):
        s = Sketch()
        x, w = s.argument((2,)), s.captured("w", (5,))
        s.fill(0.0, out=view(w, (4,)))
        s.exp(x, out=view(w, (2,)))
        s.tanh(x, out=view(w, (2,), offset=2))
        becomes(eliminate_dead, s, "w[0:2] := exp x0\nw[2:4] := tanh x0")

    def test_undefined_slices_need_no_store(self):
        s = Sketch()
        x, w = s.argument((2,)), s.captured("w", (4,))
        s.exp(x, out=view(w, (2,)))
        s.tanh(x, out=view(w, (2,), offset=1))
        becomes(eliminate_dead, s, "w[1:3] := tanh x0", dead_slices=[(w.value, 0, 2)])

    def test_what_must_stay(self):
        s = Sketch()
        x, w, i = s.argument((2,)), s.captured("w", (4,)), s.argument((1,), "int64")
        s.fill(0.0, out=w)  # one element is read, one never overwritten
        s.exp(view(w, (1,)), out=view(w, (1,), offset=2))
        s.tanh(x, out=view(w, (2,)))
        s.check(x)
        t = s.fill(0.0, (1, 3, 2))  # put writes some rows
        s.instruct("put", (view(x, (1, 1, 2)), i), t)
        u = s.fill(0.0, (2, 2))
        s.matmul(view(x, (2, 1)), view(x, (1, 2)), out=u, accumulate=True)
        stays(eliminate_dead, s, [t, u])

    def test_what_lies_between_the_elements_of_a_write_stays(self):
        s = Sketch()
        x, odd, t = s.argument((2,)), s.captured("odd", (3,)), s.temporary((6,))
        s.fill(0.0, out=odd)
        s.exp(x, out=view(odd, (2,), (2,)))  # but not the element in the middle
        evens = view(t, (2,), (2,))
        s.exp(x, out=evens)
        s.exp(view(odd, (2,)), out=view(t, (2,), (2,), 1))
        s.exp(view(odd, (2,)), out=view(t, (2,), offset=4))
        y = s.neg(view(t, (3,), (2,), 1))
        stays(eliminate_dead, s, [s.neg(evens), y, s.neg(view(t, (2,), offset=4))])


class TestConstants:
    def test_numbers_are_rounded_as_stored(self):
        s = Sketch()
        x, x64 = s.argument((2,)), s.argument((2,), "float64")
        third = s.div(s.fill(1.0, (2,)), 3.0)
        small = s.fill(300, (2,), dtype="uint8")
        y = s.add(third, x)
        z = s.add(third, x64, dtype="float64")
        u = s.add(small, x, dtype="float32")
        text = """
            %0 float32[2] = add 0.3333333432674408 x0
            %1 float64[2] = add 0.3333333432674408 x1
            %2 float32[2] = add 44 x0
            return %0, %1, %2
            """
        becomes(lambda r: eliminate_dead(fold_constants(r)), s, text, [y, z, u])

    def test_parts_of_what_was_filled(self):
        s = Sketch()
        x, flat = s.argument((2,)), s.captured("flat", (6,))
        s.fill(0.0, out=flat)
        for offset in (0, 4):
            slice_ = view(flat, (2,), offset=offset)
            s.add(slice_, x, out=slice_)
        y = s.neg(flat)
        text = """
            flat := fill 0.0
            flat[0:2] := add 0.0 x0
            flat[4:6] := add 0.0 x0
            %0 float32[6] = neg flat
            return %0
            """
        becomes(fold_constants, s, text, [y])

    def test_reductions_without_rounding(self):
        s = Sketch()
        total = s.reduce("sum", s.fill(2.0, (3, 5)), (0, 1))
        inexact = s.reduce("sum", s.fill(0.1, (3, 5)), (1,))
        mean = s.reduce("mean", s.fill(7.0, (3, 5)), (1,))
        most = s.reduce("max", s.fill(0.1, (3, 5)), (1,))
        text = """
            %0 float32[] = fill 30.0
            %1 float32[3] = sum 0.10000000149011612 over axes 1
            %2 float32[3] = fill 7.0
            %3 float32[3] = fill 0.10000000149011612
            return %0, %1, %2, %3
            """
        simplified = [total, inexact, mean, most]
        becomes(lambda r: eliminate_dead(fold_constants(r)), s, text, simplified)

    def test_algebra_that_is_exact(self):
        s = Sketch()
        x, n = s.argument((2,)), s.argument((2,), "int64")
        s.mul(x, 1.0)
        s.div(x, 1)
        s.sub(x, 0.0)
        s.add(x, -0.0)
        s.add(n, 0)
        s.where(True, x, n)
        a, b = symbol("a"), symbol("b")
        s.elementwise(Program(["a", "b"], [exp(a * b) / b]), (x, 1.0))
        text = """
            %0 float32[2] = copy x0
            %1 float32[2] = copy x0
            %2 float32[2] = copy x0
            %3 float32[2] = copy x0
            %4 int64[2] = copy x1
            %5 float32[2] = copy x0
            %6 float32[2] = exp x0
            """
        becomes(fold_constants, s, text)

    def test_what_must_stay(self):
        s = Sketch()
        x, n = s.argument((2, 2)), s.argument((2,), "int64")
        one = s.fill(1.0, (2, 2))
        s.matmul(one, x)  # reads memory
        s.exp(0.5, shape=(2,))  # our own polynomial, not the C library's
        s.add(x, 0.0)  # makes 0.0 of -0.0
        s.mul(x, 0.0)  # NaN for an infinity
        s.sub(x, -0.0)
        s.mul(n, 1.0, dtype="float32")  # a float, not n
        t = s.fill(1.0, (2, 2))
        s.exp(view(x, (2,)), out=view(t, (2,), offset=1))
        s.mul(t, x)  # not all of it is 1
        wide = s.fill(0.1, (2, 2), dtype="float64")
        s.add(x, wide, dtype="float32")  # with a number it would be computed in float32
        s.where(True, x, s.argument((2, 2), "float64"), dtype="float32")  # and so would this
        gaps = s.captured("gaps", (3,))
        s.fill(1.0, out=view(gaps, (2,), (2,)))
        s.exp(gaps)  # not all of it is 1
        stays(fold_constants, s)

    def test_numbers_that_are_left_to_kernels(self):
        assert stored(np.float32(3e9), int32) is None
        assert stored(np.float32("nan"), int32) is None
        assert reduced(np.float32(1.1), "prod", 3, np.float32) is None
        assert reduced(np.float32(3), "sum", 1 << 23, np.float32) is None
        assert reduced(np.float32(3), "max", 0, np.float32) is None
        x = symbol("x")
        assert result(where(x < 1, x + 1, exp(x)), {"x": 0}, np.float32) is None


class TestCommon:
    def test_chains_and_checks(self):
        s = Sketch()
        x = s.argument((2, 2))
        for _ in range(2):
            s.check(x)
            y = s.exp(s.mul(transposed(x), 2.0))
        text = """
            check x0 what='finite' low=0 high=0
            %0 float32[2, 2] = mul x0{[2, 2] strides [1, 2]} 2.0
            %1 float32[2, 2] = exp %0
            return %1
            """
        becomes(share_common, s, text, [y])

    def test_writes_elsewhere_do_not_matter(self):
        s = Sketch()
        w = s.captured("w", (4,))
        a = s.exp(view(w, (2,)))
        s.fill(0.0, out=view(w, (2,), offset=2))
        b = s.exp(view(w, (2,)))
        text = """
            %0 float32[2] = exp w[0:2]
            w[2:4] := fill 0.0
            %1 float32[2] = add %0 %0
            return %1
            """
        becomes(share_common, s, text, [s.add(a, b)])

    def test_what_must_stay(self):
        s = Sketch()
        x, w = s.argument((2,)), s.captured("w", (2,))
        s.exp(w)
        s.add(w, 1.0, out=w)
        s.exp(w)  # of something else
        s.mul(x, 1)
        s.mul(x, 1.0)
        s.mul(x, -1.0)
        s.sub(x, 0.0)
        s.sub(x, -0.0)
        s.mul(x, 2.0, dtype="float64")
        s.mul(x, 2.0)
        s.mul(x, 2.0, shape=(3, 2))
        for counter in (0, 0):
            s.instruct(
                "random", (), ((2,), x.dtype), kind="uniform", low=0, high=0, counter=counter
            )
        a, b = s.tanh(x), s.tanh(x)  # one of them is written later
        s.add(b, 1.0, out=b)
        c, d = s.neg(x), s.neg(x)  # each result has memory of its own
        stays(share_common, s, [a, c, d])

    def test_three_of_which_two_are_results(self):
        s = Sketch()
        x = s.argument((2,))
        a, b, c = s.exp(x), s.exp(x), s.exp(x)
        text = """
            %0 float32[2] = exp x0
            %1 float32[2] = exp x0
            %2 float32[2] = add %0 %1
            return %0, %1, %2
            """
        becomes(share_common, s, text, [b, c, s.add(a, c)])
