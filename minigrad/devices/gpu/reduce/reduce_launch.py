"""The launches of a reduction: which threads take which elements, in one stage or two."""

from typing import NamedTuple

from minigrad.array.array import Array
from minigrad.array.dtypes import OF_KIND
from minigrad.array.layout import contiguous_strides, size_of
from minigrad.devices.call_layout import kind_of, sides_of
from minigrad.devices.gpu.binding import (
    MOST_BLOCKS,
    BoundLaunch,
    classes_of,
    fits,
    is_aligned,
    kernel_of,
    numbered,
    power_above,
    up,
)
from minigrad.devices.gpu.kernel_text import DENSE, LANES, SMALL, operations, space_numbers
from minigrad.devices.gpu.reduce.reduce_text import THREADS, ReduceForm, reduce_text
from minigrad.devices.gpu.thread_reduction import accumulator, formula_kind
from minigrad.formulas.emitter import real_type
from minigrad.formulas.expression import IDENTITY

ENOUGH = 1 << 18  # threads that fill a large GPU: 132 multiprocessors of 2,048
PER_THREAD = 16  # fewest elements per thread before a row is split into parts
DEPTH = 4  # fewest elements per thread across rows
SHORT = 1024  # longest row that part of a warp takes
LONG = 16  # operations from which a thread has fewer accesses in flight


class Stage(NamedTuple):
    """One launch of a reduction; scratch: (shape, dtype) of the output if it is temporary."""

    launch: BoundLaunch
    scratch: tuple | None


class Sides(NamedTuple):
    """Kept and reduced dimensions: their sizes, and each array's strides."""

    kept: tuple
    kept_strides: list
    reduced: tuple
    reduced_strides: list


def plan(program, how, operands, shape, axes):
    """Return the Stages of a reduction; none if the output is empty."""
    arrays, fields = [x for x in operands if isinstance(x, Array)], []
    largest = max(range(len(arrays) - 1), key=lambda k: arrays[k].size, default=0)
    for side in sides_of(operands, shape, axes, largest):
        dims, strides = zip(*(side or [(1, [0] * len(arrays))]), strict=True)
        fields += [dims, list(zip(*strides, strict=True))]
    sides = Sides(*fields)  # in the order of memory of the largest input
    if not size_of(sides.kept):
        return ()
    aligned = is_aligned(arrays[:-1])
    kinds = tuple(map(kind_of, operands))
    return _stages(program, how, kinds, sides, largest, aligned, size_of(sides.reduced))


def _stages(program, how, kinds, sides, largest, aligned, count, may_split=True):
    """Return the Stages. count: the divisor of a mean. may_split: whether two are allowed."""
    rows, length = size_of(sides.kept), size_of(sides.reduced)
    layouts, numbers = numbered(
        [(*k, *r) for k, r in zip(sides.kept_strides, sides.reduced_strides, strict=True)]
    )
    split = len(sides.kept)
    kept, reduced = [x[:split] for x in layouts], [x[split:] for x in layouts]
    kept_classes, reduced_classes = classes_of(sides.kept, kept), classes_of(sides.reduced, reduced)
    across = is_across(sides, largest)
    vector = not across and aligned and _vectors(sides, kept, reduced, reduced_classes, numbers)
    width = LANES if vector else 1
    inner = sides.kept[-1]
    team, parts = _shares(rows, length, width, across, inner)
    if not may_split:
        team, parts = (_deep(rows, length, inner) if across else team), 1
    step = team * width
    part = up(up(length, parts), step) * step if parts > 1 else length
    parts = max(1, up(length, part)) if length else 1
    narrow = fits(sides.kept, kept) and fits(sides.reduced, reduced) and rows * parts < SMALL
    dtype = _scratch_dtype(program, how, kinds) if parts > 1 else kinds[-1]
    form = ReduceForm(
        how="sum" if parts > 1 and how == "mean" else how,  # only the second stage divides
        kinds=(*kinds[:-1], dtype),
        layouts=numbers,
        kept=(len(sides.kept), kept_classes),
        reduced=(len(sides.reduced), reduced_classes),
        across=across,
        team=team,
        vector=vector,
        ragged=vector and length % LANES != 0,
        units=_units(length, step, width, program),
        partial=parts > 1,
        narrow=narrow,
    )
    kernel = kernel_of(program, ("gpu reduce", form), reduce_text)
    extra = (
        *(rows, length, part, float(count)),
        *space_numbers(sides.kept, kept, kept_classes, narrow),
        *space_numbers(sides.reduced, reduced, reduced_classes, narrow),
    )
    blocks = min(up(rows, THREADS // team), MOST_BLOCKS)
    launch = BoundLaunch(kernel, (blocks, parts), THREADS, extra)
    if parts == 1:
        return (Stage(launch, None),)
    return (
        Stage(launch, ((parts, rows), dtype)),
        *_stages(
            IDENTITY,
            how,
            (dtype, kinds[-1]),
            Sides(
                sides.kept,
                [contiguous_strides(sides.kept), sides.kept_strides[-1]],
                (parts,),
                [(rows,), (0,)],
            ),
            0,
            True,
            count,
            may_split=False,
        ),
    )


def is_across(sides, largest):
    """Return whether rows are closer to each other in memory than the elements of a row."""
    row, element = sides.kept_strides[largest][-1], sides.reduced_strides[largest][-1]
    return row != 0 and size_of(sides.reduced) > 1 and abs(row) < abs(element)


def _vectors(sides, kept, reduced, classes, numbers):
    """Return whether rows can be read four elements at a time."""
    if len(sides.reduced) > 1 and sides.reduced[-1] % LANES:
        return False
    several = size_of(sides.kept) > 1
    for number in set(numbers[:-1]):
        if classes[number] in DENSE:
            outer = (*reduced[number][:-1], *(kept[number] if several else ()))
            if any(s % LANES for s in outer):
                return False
        elif any(reduced[number]) and reduced[number][-1] != 0:
            return False
    dense = [classes[number] in DENSE for number in numbers[:-1]]
    return any(dense)


def _shares(rows, length, width, across, inner):
    """Return (threads of a team, parts of a row)."""
    units = max(1, up(length, width))
    if across:
        beside = min(32, power_above(inner))  # rows that a warp's threads take side by side
        team = min(THREADS // beside, power_above(up(units, DEPTH)))
        while team > 1 and rows * team // 2 >= ENOUGH:
            team //= 2
    elif units * width <= SHORT and (rows * 32 >= ENOUGH // 2 or units <= 32):
        team = min(32, power_above(up(units, 2)))
    elif units > 32:
        team = THREADS
    else:
        team = 32
    blocks = up(rows, THREADS // team)
    wanted = up(ENOUGH // THREADS, blocks)
    parts = max(1, min(wanted, length // (team * PER_THREAD)))
    return team, parts if blocks * THREADS < ENOUGH else 1


def _deep(rows, length, inner):
    """Return how many threads share a row of parts, across rows: as many as have work.

    Eight neighbouring rows fill a sector of memory, 32 bytes.
    """
    beside = min(32, power_above(inner))
    team = min(THREADS // beside, power_above(up(length, DEPTH)))
    while beside > 8 and team * DEPTH < length and rows * team < ENOUGH:
        beside, team = beside // 2, team * 2
    return team


def _units(length, step, width, program):
    """Return how many accesses of a thread are in flight at once."""
    most = 2 if width > 1 or operations(program) > LONG else 4
    return min(most, power_above(max(1, length // step)))


def _scratch_dtype(program, how, kinds):
    """Return the dtype of partial results."""
    real = real_type(program, kinds)
    kind = accumulator(how, formula_kind(program, kinds, real.text), kinds[-1], real.text).kind
    return real if kind == "f" else OF_KIND[kind]
