"""Runs programs on the CPU: finds the kernel and the loops for operands of any layout."""

import itertools

from minigrad.array.array import Array
from minigrad.array.dtypes import bool_, float64
from minigrad.array.layout import collapse, expand_strides, is_contiguous, size_of
from minigrad.devices import loader
from minigrad.devices.call_layout import by_stride, kind_of, remember, sides_of, stride_class
from minigrad.devices.table import Device
from minigrad.devices.threads import SPLIT, Cut, threads, work_of
from minigrad.formulas.codegen import elementwise_text
from minigrad.formulas.emitter import real_type
from minigrad.formulas.expression import IDENTITY, Program, symbol
from minigrad.formulas.reduce_codegen import reduce_text
from minigrad.formulas.row_codegen import rows_text
from minigrad.formulas.row_loops import SUMS
from minigrad.formulas.rows_apart import apart
from minigrad.formulas.sums import BLOCK, DENSE

BLOCKS, FEWEST = 8, 8  # blocks of rows that threads share; minimum rows per block
APART = 2 * SPLIT  # work from which blocks of a reduction are reduced apart
MANY = 1 << 12  # elements from which the order of axes in memory decides about loops and results
FEW, GRAIN = 512, 64  # columns: fewer are not split among threads; of a part, a multiple of these
QUOTIENT = Program(["x", "n"], [symbol("x") / symbol("n")])


class BoundKernel:
    """A kernel bound to layouts: its code, its integer arguments, and how it may be split.

    extra: the integers that follow the operands. steps: bytes that each operand advances per
    `grain` iterations of one loop, or None if it must not be split. Splits fall on multiples of
    grain. loop: the place of that loop's size in extra; mostly it is the outermost loop.
    """

    __slots__ = ("cuts", "entry", "extra", "grain", "loop", "size", "steps", "units", "work")

    def __init__(self, entry, extra, work, steps, grain=1, loop=0):
        self.entry, self.extra, self.work, self.steps = entry, extra, work, steps
        self.size, self.grain, self.loop = extra[loop] if extra else 0, grain, loop
        self.units, self.cuts = -(-self.size // grain), {}

    def run(self, operands):
        """Run the kernel on addresses and scalars, in several threads if it is large."""
        if self.work < SPLIT or self.steps is None or threads.count == 1:
            self.entry(*operands, *self.extra)
            return
        threads.share(self.cut(min(threads.parts(self.work), self.units)), operands)

    def cut(self, parts):
        """Return the calls of so many parts."""
        cut = self.cuts.get(parts)
        if cut is None:
            cut = self.cuts[parts] = Cut(self.entry, self._cut(parts))
        return cut

    def _cut(self, parts):
        """Return the rows of a Cut."""
        cuts, rows = [self.units * p // parts for p in range(parts + 1)], []
        for a, b in itertools.pairwise(cuts):
            extra = list(self.extra)
            extra[self.loop] = min(b * self.grain, self.size) - a * self.grain
            rows.append(([a * s for s in self.steps], tuple(extra)))
        return rows


class BlockKernel(BoundKernel):
    """A kernel that reduces each block of `grain` iterations to an output of its own.

    The blocks do not depend on the number of threads, so that the results do not either. dtype:
    that of the outputs.
    """

    __slots__ = ("dtype",)

    def run(self, operands):
        """Run the kernel on each block."""
        cut = self.cut(self.units)
        if threads.count > 1:
            threads.share(cut, operands)
            return
        for call in cut.calls(operands):
            self.entry(*call)


def is_in_place(inputs, outputs):
    """Return whether the first output is the first input.

    Its kernel then reads and writes through one pointer. With two, every vector loop would detect
    the overlap at run time and fall back to single elements.
    """
    return bool(inputs) and inputs[0] is outputs[0]


class Programs(Device):
    """The functions of the device table that run generated kernels."""

    def launch(self, program, bound, operands):
        """Run a program's kernel on Arrays and numbers."""
        bound.run(
            [
                x.buffer.address + x.offset * x.dtype.itemsize if isinstance(x, Array) else x
                for x in operands
            ]
        )

    def elementwise(self, program, inputs, outputs):
        operands, in_place = (*inputs, *outputs), is_in_place(inputs, outputs)
        key = tuple(
            [(x.shape, x.strides, x.dtype) if isinstance(x, Array) else type(x) for x in operands]
        )
        if in_place:
            key = ("in place", *key)
        bound = program.layouts.get(key)
        if bound is None:
            bound = self._bind_elementwise(program, key, operands, outputs[0].shape, in_place)
            self._keep_entries(program, operands, len(outputs), in_place)
        self.launch(program, bound, operands)

    def _keep_entries(self, program, operands, n_outputs, in_place):
        """Keep flat kernels, if the program has them, for callers that check layouts themselves."""
        dtype, entries = operands[-n_outputs].dtype, program.entry
        if len(operands) == 3 and type(operands[1]) is float:
            entries = program.entry_number_in_place if in_place else program.entry_number
        elif in_place:
            entries = program.entry_in_place
        self._keep_entry(program, entries, operands, dtype, n_outputs, in_place)
        if dtype.kind == "b" and not in_place and isinstance(operands[0], Array):
            dtype = operands[0].dtype
            self._keep_entry(program, program.entry_bool, operands, dtype, n_outputs, in_place)

    def _keep_entry(self, program, entries, operands, dtype, n_outputs, in_place):
        """Keep one dtype's flat kernel for callers that check the layout themselves."""
        n_inputs = len(operands) - n_outputs
        is_numbered = entries is program.entry_number or entries is program.entry_number_in_place
        inputs = (dtype, "f") if is_numbered else (dtype,) * n_inputs
        kinds = (*inputs, *[x.dtype for x in operands[n_inputs:]])
        kernel = program.kernels.get((kinds, 0, None, in_place))
        if kernel is not None:
            entries[dtype.index] = kernel

    def _bind_elementwise(self, program, key, operands, shape, in_place):
        arrays = [x for x in operands if isinstance(x, Array)]
        kinds = tuple(map(kind_of, operands))
        flat = all(x.shape == shape and x.is_contiguous for x in arrays)
        if flat:
            how = (kinds, 0, None, in_place)
            entry = self._kernel(program, how, elementwise_text, *how)
            steps = [x.dtype.itemsize if isinstance(x, Array) else 0 for x in operands]
            size = size_of(shape)
            bound = BoundKernel(entry, (size,), size * work_of(program), steps)
            return remember(program, key, bound)
        layouts = [expand_strides(x.shape, x.strides, shape) for x in arrays]
        dims, strides = collapse(shape, layouts)
        dims, strides = by_stride(dims, strides, len(arrays) - 1)
        dims, strides = dims or [1], strides or [[1] * len(arrays)]
        inner = tuple(stride_class(s) for s in strides[-1])
        how = (kinds, len(dims), inner, in_place)
        entry = self._kernel(program, how, elementwise_text, *how)
        extra = (*dims, *(s[k] for k in range(len(arrays)) for s in strides))
        work = size_of(dims) * work_of(program)
        call = BoundKernel(entry, extra, work, self._steps(operands, strides[0]))
        return remember(program, key, call)

    def _steps(self, operands, strides):
        moves = iter(strides)
        return [next(moves) * x.dtype.itemsize if isinstance(x, Array) else 0 for x in operands]

    def _kernel(self, program, key, writer, *arguments):
        entry = program.kernels.get(key)
        if entry is None:
            text, includes = writer(program, *arguments)
            entry = program.kernels[key] = loader.entry(loader.load(text, includes).kernel)
        return entry

    def reduce(self, program, how, inputs, out, shape, axes):
        operands = (*inputs, out)
        key = (
            how,
            shape,
            axes,
            *((x.shape, x.strides, x.dtype) if isinstance(x, Array) else type(x) for x in operands),
        )
        bound = program.layouts.get(key)
        if bound is None:
            bound = remember(program, key, self._bind_reduce(program, how, operands, shape, axes))
        if type(bound) is not BlockKernel:
            self.launch(program, bound, operands)
            return
        parts = self.empty((bound.units, *out.shape), bound.dtype)
        self.launch(program, bound, (*inputs, parts))
        if how != "mean":
            self.reduce(IDENTITY, how, (parts,), out, parts.shape, (0,))
            return
        total = self.empty(out.shape, float64)
        self.reduce(IDENTITY, "sum", (parts,), total, parts.shape, (0,))
        self.elementwise(QUOTIENT, (total, float(size_of(shape) // size_of(out.shape))), (out,))

    def _bind_reduce(self, program, how, operands, shape, axes):
        out, arrays = operands[-1], [x for x in operands if isinstance(x, Array)]
        kept, reduced = sides_of(operands, shape, axes, 0)
        last_kept = kept[-1] if kept else None
        last_reduced = reduced[-1] if reduced else None
        keeps_inner = bool(
            last_kept
            and len(arrays) > 1
            and (last_reduced is None or abs(last_kept[1][0]) < abs(last_reduced[1][0]))
        )
        inner_loop = kept.pop() if keeps_inner else None
        if not reduced:
            reduced = [(1, [0] * len(arrays))]
        order = [*kept, *reduced, *([inner_loop] if inner_loop else [])]
        dims, strides = [n for n, _ in order], [s for _, s in order]
        inner = tuple(map(stride_class, strides[-1]))
        if not keeps_inner:
            inner = (*inner[:-1], 0)  # the output does not move in the innermost loop
        work, is_sum = size_of(dims) * work_of(program), how in SUMS and out.dtype.is_float
        columns = dims[-1] if keeps_inner else 0
        is_apart = not kept and columns < FEW and work >= APART
        dtype = float64 if is_apart and is_sum else out.dtype
        kinds = tuple(map(kind_of, operands))
        if dtype is not out.dtype:  # only the sum becomes wider, not what is summed
            program = Program(program.inputs, program.outputs, real_type(program, kinds))
            kinds = (*kinds[:-1], dtype)
        form = "register"
        if keeps_inner:
            is_long = is_sum and size_of(n for n, _ in reduced) > BLOCK
            form = "columns" if is_long else "output"
        what = "sum" if is_apart and is_sum else how
        key = (what, kinds, len(kept), len(reduced), form, inner)
        entry = self._kernel(program, key, reduce_text, *key)
        extra = [*dims]
        for k in range(len(arrays) - 1):
            extra += [s[k] for s in strides]
        extra += [s[-1] for _, s in kept] + ([inner_loop[1][-1]] if inner_loop else [])
        if kept:
            steps = self._steps(operands, strides[0])
            return BoundKernel(entry, tuple(extra), work, steps)
        if is_apart:
            grain = -(-dims[0] // BLOCKS)
            steps = [s * grain for s in self._steps(operands, strides[0])]
            steps[-1] = out.size * dtype.itemsize
            bound = BlockKernel(entry, tuple(extra), work, steps, grain)
            bound.dtype = dtype
            return bound
        steps = None
        if columns >= FEW:
            steps = [s * GRAIN for s in self._steps(operands, strides[-1])]
        return BoundKernel(entry, tuple(extra), work, steps, GRAIN, len(dims) - 1)

    def rows(self, program, modes, inputs, outputs, shape):
        operands = (*inputs, *outputs)
        key = (
            modes,
            shape,
            is_in_place(inputs, outputs),
            *((x.shape, x.strides, x.dtype) if isinstance(x, Array) else type(x) for x in operands),
        )
        bound = program.layouts.get(key)
        if bound is None:
            is_safe = not outputs[1:] or not is_in_place(inputs, outputs)
            is_of_columns = is_safe and _of_columns(modes, inputs, shape) is not None
            if is_of_columns and (parts := apart(program)) is not None:
                self._rows_apart(parts, program, modes, inputs, outputs, shape)
                return
            layout = self._row_layout(modes, operands, shape)
            if layout is None:  # leading axes do not merge into one loop for every operand
                for is_whole in (False, True):
                    if layout is None:
                        inputs = [
                            self._dense(x, shape, is_whole) if isinstance(x, Array) else x
                            for x in inputs
                        ]
                        layout = self._row_layout(modes, (*inputs, *outputs), shape)
                call = self._bind_rows(program, modes, (*inputs, *outputs), layout)
                self._run_rows(program, call, modes, inputs, outputs)
                return
            bound = remember(program, key, self._bind_rows(program, modes, operands, layout))
        self._run_rows(program, bound, modes, inputs, outputs)

    def empty_rows(self, inputs, shape, dtype):
        return self._empty_as(_of_columns(("store",), inputs, shape), shape, dtype)

    def empty_beside(self, inputs, shape, dtype):
        return self._empty_as(_alike(inputs, shape), shape, dtype)

    def _empty_as(self, x, shape, dtype):
        """Return an Array with the order of x's axes in memory, if x is dense; else in C order."""
        if x is None:
            return self.empty(shape, dtype)
        order = sorted(range(len(shape)), key=lambda d: -abs(x.strides[d]))
        dense = tuple(shape[d] for d in order)
        if not is_contiguous(dense, [x.strides[d] for d in order]):
            return self.empty(shape, dtype)
        return self.empty(dense, dtype).view(shape, x.strides)

    def _rows_apart(self, parts, program, modes, inputs, outputs, shape):
        """Run each reduction along rows for all rows at once, and then the formulas of outputs."""
        values = dict(zip(program.inputs, inputs, strict=True))
        real = real_type(program, tuple(map(kind_of, inputs)))
        for name, how, part in parts.steps:
            operands = [values[n] for n in part.inputs]
            out = self.empty(shape[:-1], bool_ if how in ("any", "all") else real)
            values[name] = column = out.view((*out.shape, 1), (*out.strides, 0))
            if how is None:
                self.elementwise(part, operands, (column,))
            else:
                self.reduce(part, how, operands, out, shape, (len(shape) - 1,))
        for part, out in zip(parts.outputs, outputs, strict=True):
            self.elementwise(part, [values[n] for n in part.inputs], (out,))

    def _dense(self, x, shape, is_whole):
        """Return x contiguous, and broadcast to `shape` if is_whole or if its rows repeat."""
        x = self.contiguous(x)
        repeats = len(x.shape) > 1 and x.shape != shape and x.shape[-1] != 1
        if is_whole or repeats:
            x = self.contiguous(x.view(shape, expand_strides(x.shape, x.strides, shape)))
        return x

    def _row_layout(self, modes, operands, shape):
        """Return (rows, columns, row strides, column strides), or None if rows do not merge."""
        mode_of = dict(zip(range(len(operands) - len(modes), len(operands)), modes, strict=True))
        layouts = []
        for k, x in enumerate(operands):
            if isinstance(x, Array):
                if mode_of.get(k) == "columns":
                    layouts.append((0,) * (len(shape) - 1) + x.strides[-1:])
                else:
                    layouts.append(expand_strides(x.shape, x.strides, shape))
        dims, strides = collapse(shape[:-1], [x[:-1] for x in layouts])
        if len(dims) > 1:
            return None
        rows = dims[0] if dims else 1
        return rows, shape[-1], strides[0] if dims else [0] * len(layouts), [x[-1] for x in layouts]

    def _bind_rows(self, program, modes, operands, layout):
        rows, columns, row_strides, column_strides = layout
        work, grain = rows * columns, 1
        arrays = [k for k, x in enumerate(operands) if isinstance(x, Array)]
        first_output = len(operands) - len(modes)
        in_place = operands[0] is operands[first_output]
        if "columns" in modes:
            grain = _rows_of_block(rows, work)
            if grain < rows:  # then _run_rows adds the sums of the blocks
                row_strides, column_strides = list(row_strides), list(column_strides)
                for place, k in enumerate(arrays):
                    if k >= first_output and modes[k - first_output] == "columns":
                        row_strides[place], column_strides[place] = columns, 1
        kinds, inner = tuple(map(kind_of, operands)), tuple(map(stride_class, column_strides))
        block = BLOCK if 2 in inner else DENSE
        how = (modes, kinds, inner, in_place, block if columns > block else 0)
        entry = self._kernel(program, how, rows_text, *how)
        extra = [rows, columns, *([grain] if "columns" in modes else [])]
        for pair in zip(row_strides, column_strides, strict=True):
            extra += pair
        steps = self._steps(operands, row_strides)
        for k in range(len(operands)):
            if k < first_output or modes[k - first_output] != "columns":
                steps[k] *= grain
        return BoundKernel(entry, tuple(extra), work * work_of(program), steps, grain)

    def _run_rows(self, program, call, modes, inputs, outputs):
        """Run a row kernel. If there are several blocks of rows, sum each and add their sums."""
        targets, totals = list(outputs), []
        if call.units > 1:
            for k, mode in enumerate(modes):
                if mode == "columns":
                    out = outputs[k]
                    targets[k] = self.empty((call.units, *out.shape), out.dtype)
                    totals.append((targets[k], out))
        self.launch(program, call, (*inputs, *targets))
        for total, out in totals:
            self.reduce(IDENTITY, "sum", (total,), out, total.shape, (0,))


def _of_columns(modes, inputs, shape):
    """Return the first input whose rows are columns of memory, and many, or None.

    So it is along another axis than the last.
    """
    x = next((x for x in inputs if isinstance(x, Array) and x.shape == shape), None)
    if x is None or x.size < MANY or "columns" in modes:
        return None
    along = abs(x.strides[-1])
    across = [abs(s) for s, n in zip(x.strides[:-1], shape, strict=False) if s and n > 1]
    return x if min(across, default=along) < along else None


def _alike(inputs, shape):
    """Return one of the inputs of a shape, where all have one layout, not in C order; or None.

    Inputs that repeat elements do not count, nor do small ones.
    """
    whole = [x for x in inputs if isinstance(x, Array) and x.shape == shape and 0 not in x.strides]
    if not whole or whole[0].size < MANY or whole[0].is_contiguous:
        return None
    return whole[0] if len({x.strides for x in whole}) == 1 else None


def _rows_of_block(rows, work):
    """Return the rows per block, independent of the thread count so that results are too."""
    if work < SPLIT:
        return min(rows, BLOCK) or 1
    return min(max(-(-rows // BLOCKS), FEWEST), BLOCK)
