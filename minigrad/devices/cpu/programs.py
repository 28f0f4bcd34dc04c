"""Runs programs on the CPU: finds the kernel and the loops for operands of any layout."""

import itertools

from minigrad.array.array import Array
from minigrad.array.layout import collapse, expand_strides, size_of
from minigrad.devices import loader
from minigrad.devices.call_layout import by_stride, kind_of, remember, sides_of, stride_class
from minigrad.devices.table import Device
from minigrad.devices.threads import SPLIT, threads
from minigrad.formulas.codegen import elementwise_text
from minigrad.formulas.expression import IDENTITY
from minigrad.formulas.reduce_codegen import reduce_text
from minigrad.formulas.row_codegen import rows_text
from minigrad.formulas.sums import BLOCK, DENSE

BLOCKS, FEWEST = 8, 8  # blocks of rows that threads share; minimum rows per block


class BoundKernel:
    """A kernel bound to layouts: its code, its integer arguments, and how it may be split.

    extra: the integers that follow the operands. steps: bytes that each operand advances per
    `grain` iterations of the outermost loop, or None if it must not be split. Splits fall on
    multiples of grain.
    """

    __slots__ = ("cuts", "entry", "extra", "grain", "size", "steps", "units", "work")

    def __init__(self, entry, extra, work, steps, grain=1):
        self.entry, self.extra, self.work, self.steps = entry, extra, work, steps
        self.size, self.grain, self.cuts = extra[0] if extra else 0, grain, {}
        self.units = -(-self.size // grain)

    def run(self, operands):
        """Run the kernel on addresses and scalars, in several threads if it is large."""
        if self.work < SPLIT or self.steps is None or threads.count == 1:
            self.entry(*operands, *self.extra)
            return
        threads.run(self.entry, self.calls(operands, min(threads.parts(self.work), self.units)))

    def calls(self, operands, parts):
        """Return the argument tuple of each part."""
        cuts = self.cuts.get(parts)
        if cuts is None:
            cuts = self.cuts[parts] = self._cut(parts)
        return [  # no 0 is added: that would take the sign of a number -0.0
            (*[x + d if d else x for x, d in zip(operands, more, strict=True)], *extra)
            for more, extra in cuts
        ]

    def _cut(self, parts):
        """Return for each part (what to add to each operand, integer arguments)."""
        cuts = [self.units * p // parts for p in range(parts + 1)]
        return [
            (
                [a * s for s in self.steps],
                (min(b * self.grain, self.size) - a * self.grain, *self.extra[1:]),
            )
            for a, b in itertools.pairwise(cuts)
        ]


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
        self.launch(program, bound, operands)
        entries = program.entry_in_place if in_place else program.entry
        if len(operands) == 3 and type(operands[1]) is float and not in_place:
            entries = program.entry_number
        dtype = outputs[0].dtype
        if entries[dtype.index] is None:
            self._keep_entry(program, entries, operands, dtype, len(outputs), in_place)
        if dtype.kind == "b" and not in_place and isinstance(inputs[0], Array):
            entries, dtype = program.entry_bool, inputs[0].dtype
            if entries[dtype.index] is None:
                self._keep_entry(program, entries, operands, dtype, len(outputs), in_place)

    def _keep_entry(self, program, entries, operands, dtype, n_outputs, in_place):
        """Keep one dtype's flat kernel for callers that check the layout themselves."""
        n_inputs = len(operands) - n_outputs
        inputs = (dtype, "f") if entries is program.entry_number else (dtype,) * n_inputs
        kinds = (*inputs, *[x.dtype for x in operands[n_inputs:]])
        found = program.kernels.get((kinds, 0, None, in_place))
        if found is not None:
            entries[dtype.index] = found

    def _bind_elementwise(self, program, key, operands, shape, in_place):
        arrays = [x for x in operands if isinstance(x, Array)]
        kinds = tuple(map(kind_of, operands))
        flat = all(x.shape == shape and x.is_contiguous for x in arrays)
        if flat:
            how = (kinds, 0, None, in_place)
            entry = self._kernel(program, how, elementwise_text, *how)
            steps = [x.dtype.itemsize if isinstance(x, Array) else 0 for x in operands]
            work = size_of(shape)
            return remember(program, key, BoundKernel(entry, (work,), work, steps))
        layouts = [expand_strides(x.shape, x.strides, shape) for x in arrays]
        dims, strides = collapse(shape, layouts)
        dims, strides = by_stride(dims, strides, len(arrays) - 1)
        dims, strides = dims or [1], strides or [[1] * len(arrays)]
        inner = tuple(stride_class(s) for s in strides[-1])
        how = (kinds, len(dims), inner, in_place)
        entry = self._kernel(program, how, elementwise_text, *how)
        extra = (*dims, *(s[k] for k in range(len(arrays)) for s in strides))
        call = BoundKernel(entry, extra, size_of(dims), self._steps(operands, strides[0]))
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
        self.launch(program, bound, operands)

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
        kinds = tuple(map(kind_of, operands))
        form = "register"
        if keeps_inner:
            is_sum = how in ("sum", "mean") and out.dtype.is_float
            is_long = is_sum and size_of(n for n, _ in reduced) > BLOCK
            form = "columns" if is_long else "output"
        key = (how, kinds, len(kept), len(reduced), form, inner)
        entry = self._kernel(program, key, reduce_text, *key)
        extra = [*dims]
        for k in range(len(arrays) - 1):
            extra += [s[k] for s in strides]
        extra += [s[-1] for _, s in kept] + ([inner_loop[1][-1]] if inner_loop else [])
        steps = self._steps(operands, strides[0]) if kept else None
        return BoundKernel(entry, tuple(extra), size_of(dims), steps)

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
        return BoundKernel(entry, tuple(extra), work, steps, grain)

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


def _rows_of_block(rows, work):
    """Return the rows per block, independent of the thread count so that results are too."""
    if work < SPLIT:
        return min(rows, BLOCK) or 1
    return min(max(-(-rows // BLOCKS), FEWEST), BLOCK)
