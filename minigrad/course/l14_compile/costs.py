"""Computes a program's costs: kernels, bytes moved, where and when each value lies in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from minigrad.course.objects import Op, Program

Groups = Sequence[Sequence[Op]]


def op_by_op(program: Program) -> list[list[Op]]:
    """Return the groups of a program without fusion: a kernel per operation."""
    return [[op] for op in program.ops]


def in_memory(program: Program, groups: Groups) -> set[str]:
    """Return the values written to memory: outputs, and values that another group reads.

    A value that only its own group reads stays in a register.
    """
    home = {op.output: number for number, group in enumerate(groups) for op in group}
    stored = {value for value in program.outputs if value in home}
    for number, group in enumerate(groups):
        for op in group:
            stored.update(x for x in op.inputs if isinstance(x, str) and home.get(x, -1) != number)
    return {value for value in stored if value in home}


def temporaries(program: Program, groups: Groups) -> list[str]:
    """Return the values in memory that are no outputs, in order of creation."""
    stored = in_memory(program, groups) - set(program.outputs)
    return [op.output for group in groups for op in group if op.output in stored]


def reads(group: Sequence[Op]) -> list[str]:
    """Return the values that a group reads from memory, each once, in order of appearance."""
    made = {op.output for op in group}
    values = {x: None for op in group for x in op.inputs if isinstance(x, str) and x not in made}
    return list(values)


def bytes_moved(program: Program, groups: Groups) -> int:
    """Return how many bytes all kernels together read from and write to memory."""
    stored = in_memory(program, groups)
    total = 0
    for group in groups:
        total += sum(map(program.nbytes, reads(group)))
        total += sum(program.nbytes(op.output) for op in group if op.output in stored)
    return total


@dataclass(frozen=True)
class Block:
    """A piece of memory that a value occupies for some time.

    Attributes:
        value: the value's name.
        kind: 'input', 'temporary' or 'output'.
        offset: its beginning, in bytes.
        nbytes: its size.
        start, stop: the first and the last kernel that need it; inputs begin at -1, outputs end
            with the number of kernels.
        over: the donated input whose memory it is, '' for memory of its own.
    """

    value: str
    kind: str
    offset: int
    nbytes: int
    start: int
    stop: int
    over: str = ""


def plan(program: Program, groups: Groups, taken: Mapping[str, str] | None = None) -> list[Block]:
    """Return where each value lies, such that no two live ones overlap.

    Inputs are the caller's: they stay until the end. Temporaries are freed after their last reader.
    `taken` maps outputs to the donated inputs whose memory they take. Inputs are placed first, then
    the others by size or by start, whichever needs less memory.
    """
    taken = taken or {}
    stored, n = in_memory(program, groups), len(groups)
    wanted = [Block(x, "input", 0, program.nbytes(x), -1, n) for x in program.inputs]
    over = []
    for number, group in enumerate(groups):
        for op in group:
            if op.output not in stored:
                continue
            size = program.nbytes(op.output)
            if op.output in program.outputs:
                block = Block(op.output, "output", 0, size, number, n, taken.get(op.output, ""))
            else:
                last = max(k for k, other in enumerate(groups) if op.output in reads(other))
                block = Block(op.output, "temporary", 0, size, number, last)
            (over if block.over else wanted).append(block)
    largest_first = placed(sorted(wanted, key=lambda b: (b.kind != "input", -b.nbytes)))
    first_first = placed(sorted(wanted, key=lambda b: (b.kind != "input", b.start)))
    best = min(largest_first, first_first, key=peak_bytes)
    at = {block.value: block.offset for block in best}
    return best + [moved(block, at[block.over]) for block in over]


def placed(blocks: Sequence[Block]) -> list[Block]:
    """Place the blocks in this order, each as low as possible."""
    done: list[Block] = []
    for block in blocks:
        beside = [b for b in done if b.start <= block.stop and block.start <= b.stop]
        done.append(moved(block, lowest_gap(block.nbytes, beside)))
    return done


def lowest_gap(nbytes: int, beside: list[Block]) -> int:
    """Return the lowest offset at which `nbytes` fit between these blocks."""
    offset = 0
    for block in sorted(beside, key=lambda b: b.offset):
        if offset + nbytes <= block.offset:
            break
        offset = max(offset, block.offset + block.nbytes)
    return offset


def moved(block: Block, offset: int) -> Block:
    """Return the block at another offset."""
    return Block(block.value, block.kind, offset, block.nbytes, block.start, block.stop, block.over)


def peak_bytes(blocks: Sequence[Block]) -> int:
    """Return how many bytes of memory a plan needs."""
    return max((block.offset + block.nbytes for block in blocks), default=0)
