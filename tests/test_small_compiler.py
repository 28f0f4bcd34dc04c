"""What lesson 14 gives its learners: a machine for programs, plans of memory, generated kernels."""

import runpy
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from minigrad.course.l14_compile import costs, generate, machine
from minigrad.course.l14_compile.programs import Draft, arrays_for, random_program
from minigrad.course.objects import result_shape

ROOT = Path(__file__).parents[1]
mine = SimpleNamespace(**runpy.run_path(str(ROOT / "solutions" / "14_compile.py")))


def programs(n, **options):
    """Random programs that return some of their values."""
    random = np.random.default_rng(5)
    t = SimpleNamespace(random=random, fixed=random)
    return [(t, random_program(t, 10, 2, **options)) for _ in range(n)]


def every_operation():
    """A program with each operation in it, and operands of all shapes."""
    d = Draft(x=(4, 3), w=(3, 2), b=(1, 2), s=(1, 1))
    z = d.op("add", d.op("matmul", "x", "w"), "b")
    h = d.op("mul", d.op("greater", z, 0.0), d.op("tanh", z))
    e = d.op("exp", d.op("neg", h))
    p = d.op("div", e, d.op("sum", e))
    back = d.op("matmul", d.op("transpose", "x"), d.op("sub", p, 0.5))
    new = d.op("sub", "w", d.op("mul", back, "s"))
    return d.returns(p, d.op("sum_rows", d.op("sub", z, p)), new)


def test_generated_kernels_give_what_numpy_gives_in_donated_memory():
    program = every_operation()
    arrays = arrays_for(SimpleNamespace(random=np.random.default_rng(1)), program)
    right = machine.run(program, arrays)
    groups = mine.fuse(program)
    fused = machine.in_order_of(groups, program)
    taken, refused = mine.donate(fused, ["w"])
    assert taken == {program.outputs[2]: "w"}
    assert not refused
    compiled = generate.Compiled(fused, groups, taken)
    given = {name: array.copy() for name, array in arrays.items()}
    results = compiled(*given.values())
    for found, wanted in zip(results, right, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    assert results[2] is given["w"] or np.shares_memory(results[2], given["w"])
    assert len(groups) < len(program.ops)


@pytest.mark.parametrize("fuse", [mine.fuse, costs.op_by_op], ids=["fused", "op by op"])
def test_groups_run_as_loops_give_what_numpy_gives(fuse):
    for t, program in programs(6):
        arrays = arrays_for(t, program)
        for found, wanted in zip(
            machine.run_groups(program, fuse(program), arrays),
            machine.run(program, arrays),
            strict=True,
        ):
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


def test_sum_that_is_read_in_its_own_loop_is_what_was_added_so_far():
    d = Draft(x=(1, 3))
    program = d.returns(d.op("div", "x", d.op("sum", "x")))
    [found] = machine.run_groups(program, [list(program.ops)], {"x": np.array([[1.0, 1.0, 2.0]])})
    np.testing.assert_allclose(found, [[1, 1 / 2, 2 / 4]])


@pytest.mark.parametrize(("name", "is_safe"), [("tanh", True), ("transpose", False)])
def test_run_in_place_shows_what_is_overwritten_too_early(name, is_safe):
    d = Draft(a=(2, 2))
    output = d.op(name, "a")
    program, arrays = d.returns(output), {"a": np.array([[1.0, 2.0], [3.0, 4.0]])}
    [found], [right] = (
        machine.run_in_place(program, arrays, {output: "a"}),
        machine.run(program, arrays),
    )
    assert np.allclose(found, right) == is_safe


def test_no_two_values_of_a_plan_overlap_while_both_live():
    for _, program in programs(8, same_size=True):
        groups = mine.fuse(program)
        fused = machine.in_order_of(groups, program)
        taken, _ = mine.donate(fused, list(program.inputs))
        blocks = costs.plan(fused, groups, taken)
        assert {b.value for b in blocks} == {*program.inputs, *costs.in_memory(program, groups)}
        for a, b in combinations(blocks, 2):
            apart = a.offset + a.nbytes <= b.offset or b.offset + b.nbytes <= a.offset
            in_turn = a.stop < b.start or b.stop < a.start
            assert apart or in_turn or b.value == a.over or a.value == b.over
        assert costs.peak_bytes(blocks) <= costs.peak_bytes(costs.plan(fused, groups))


def test_fusing_moves_fewer_bytes_by_what_stays_in_registers():
    d = Draft(a=(2, 2))
    program = d.returns(d.op("tanh", d.op("neg", "a")))
    apart, together = costs.op_by_op(program), [list(program.ops)]
    assert costs.bytes_moved(program, apart) - costs.bytes_moved(program, together) == 2 * 32
    assert costs.temporaries(program, apart) == ["t0"]
    assert costs.temporaries(program, together) == []


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="3 is not 2"):
        result_shape("matmul", (2, 3), (2, 3))
    with pytest.raises(ValueError, match="do not fit"):
        result_shape("add", (2, 3), (3, 2))
    assert result_shape("mul", (2, 1), (1, 3)) == (2, 3)
