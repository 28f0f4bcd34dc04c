"""The launch of a row kernel: how many threads share a row, and how much of it they keep."""

from typing import NamedTuple

from minigrad.array.array import Array
from minigrad.array.dtypes import DType
from minigrad.array.layout import collapse, expand_strides, size_of
from minigrad.devices.call_layout import kind_of, stride_class
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
from minigrad.devices.gpu.kernel_text import LANES, space_numbers
from minigrad.devices.gpu.rows.analysis import words_kept
from minigrad.devices.gpu.rows.row_text import RowsForm, row_text, rows_text
from minigrad.formulas.emitter import real_type

REGISTERS = 48  # 32-bit registers of a thread for kept values
MOST_KEPT = 32  # elements of a row that a thread keeps
LARGEST_TEAM = 512  # so that a thread can have 128 registers
MANY = 2048  # rows from which part of a warp takes a row of up to 1,024 elements
NARROW = 128  # columns up to which it does so in any case
ROWS_EACH = 8  # fewest rows that a team sums, if there are enough
MOST_TEAMS = 4096  # in a launch that sums over rows: each writes a row of partial sums


class RowCall(NamedTuple):
    """A launch of a row kernel; scratch: (shape, dtype) of the partial sums over rows, or None."""

    launch: BoundLaunch
    scratch: tuple | None


def _shares(rows, columns, width, words):
    """Return (threads of a team, accesses per thread and row; 0: the row is too long to keep)."""
    units = max(1, up(columns, width))
    most = min(MOST_KEPT, REGISTERS // max(1, words)) // width
    if units <= 32 * most and (rows >= MANY or columns <= NARROW):
        team = min(32, power_above(units))
        return team, up(units, team)
    for team in (32, 64, 128, 256, LARGEST_TEAM):
        each = up(units, team)
        if each <= min(most, max(1, 8 // width)) or (team == LARGEST_TEAM and each <= most):
            return team, each
    return LARGEST_TEAM, 0


def plan(program, modes, operands, shape, alias):
    """Return the RowCall of a program; None if there is nothing to do.

    alias: whether an output may share memory with an input.
    """
    leading, columns = shape[:-1], shape[-1]
    first_output = len(operands) - len(modes)
    summed = [k for k, mode in enumerate(modes, first_output) if mode == "columns"]
    if not size_of(leading) and not summed:
        return None
    arrays = [(k, x) for k, x in enumerate(operands) if isinstance(x, Array) and k not in summed]
    strides = [expand_strides(x.shape, x.strides, shape) for _, x in arrays]
    dims, steps = collapse(leading, [s[:-1] for s in strides])
    dims, steps = dims or [1], steps or [[0] * len(strides)]
    rows = size_of(dims)
    by_array = zip(*steps, strict=True) if arrays else ()
    full = [  # an array without elements counts as moving, so that it is not read ahead
        (*row, s[-1] if x.size else 1)
        for row, s, (_, x) in zip(by_array, strides, arrays, strict=True)
    ]
    layouts, numbers = numbered(full)
    lead = [x[:-1] for x in layouts]
    kinds = tuple(map(kind_of, operands))
    real = real_type(program, kinds)
    kinds = tuple(real if k in summed else kind for k, kind in enumerate(kinds))
    of_array = dict(zip([k for k, _ in arrays], numbers, strict=True))
    form = RowsForm(
        modes=modes,
        kinds=kinds,
        layouts=tuple(of_array.get(k, -1) for k, x in enumerate(kinds) if isinstance(x, DType)),
        rows=(len(dims), classes_of(dims, lead)),
        columns=tuple(stride_class(x[-1]) for x in layouts),
        team=1,
        units=1,
        vector=False,
        whole=False,
        alias=alias and "row" in modes,
        narrow=fits([*dims, columns], layouts),
    )
    form = form._replace(vector=_vectors(form, rows, columns, layouts, arrays, numbers))
    text = row_text(program, form)
    formulas = list(zip(text.formulas, text.outputs, modes, strict=True))
    words = words_kept(text.emitter, formulas)
    team, units = _shares(rows, columns, form.width, words)
    form = form._replace(team=team, units=units)
    covered = units * team * form.width == columns and rows % form.each == 0
    form = form._replace(whole=covered)
    blocks = up(rows, form.each)
    if summed:
        teams = max(1, min(rows // ROWS_EACH, MOST_TEAMS))
        blocks = max(1, min(blocks, up(teams, form.each)))
    blocks = min(blocks, MOST_BLOCKS)
    kernel = kernel_of(program, ("gpu rows", form), rows_text)
    numbers = (
        *(rows, columns),
        *space_numbers(dims, lead, form.rows[1], form.narrow),
        *(x[-1] for x, kind in zip(layouts, form.columns, strict=True) if kind == 2),
    )
    scratch = ((blocks * form.each, columns), real) if summed else None
    return RowCall(BoundLaunch(kernel, blocks, form.threads, numbers), scratch)


def _vectors(form, rows, columns, layouts, arrays, numbers):
    """Return whether rows can be read and written four elements at a time."""
    if columns % LANES or not columns:
        return False
    moving = [x for (_, x), n in zip(arrays, numbers, strict=True) if form.columns[n]]
    steady = all(
        kind == 0 or (kind == 1 and (rows == 1 or not any(s % LANES for s in x[:-1])))
        for x, kind in zip(layouts, form.columns, strict=True)
    )
    return steady and bool(moving) and is_aligned(moving)
