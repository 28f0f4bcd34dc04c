"""Row kernels on the CPU: their layouts, and how they are cut over threads."""

from minigrad.array.array import Array
from minigrad.array.layout import collapse, expand_strides
from minigrad.devices.cpu import programs
from minigrad.devices.cpu.binding import kind_of, remember, stride_class
from minigrad.devices.cpu.programs import BoundKernel, Programs, is_in_place
from minigrad.formulas.expression import IDENTITY
from minigrad.formulas.row_codegen import rows_text
from minigrad.formulas.sums import BLOCK, DENSE

BLOCKS, FEWEST = 8, 8  # blocks of rows that threads share, and the least rows of a block


class RowPrograms(Programs):
    """The function of the device table for formulas with row reductions."""

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
                self._run_rows(call, modes, inputs, outputs)
                return
            bound = remember(program, key, self._bind_rows(program, modes, operands, layout))
        self._run_rows(bound, modes, inputs, outputs)

    def _dense(self, x, shape, is_whole):
        """A contiguous copy, broadcast to `shape` if is_whole or if rows repeat."""
        x = self.contiguous(x)
        repeats = len(x.shape) > 1 and x.shape != shape and x.shape[-1] != 1
        if is_whole or repeats:
            x = self.contiguous(x.view(shape, expand_strides(x.shape, x.strides, shape)))
        return x

    def _row_layout(self, modes, operands, shape):
        """(rows, columns, row strides, column strides), or None."""
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
            if grain < rows:  # then totals of blocks are added, see _run_rows
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

    def _run_rows(self, call, modes, inputs, outputs):
        """Runs it. Where many rows are summed, every block of rows has its own sum."""
        operands = [x.address if isinstance(x, Array) else x for x in (*inputs, *outputs)]
        if "columns" not in modes:
            call.run(operands)
            return
        if call.units < 2:
            call.entry(*operands, *call.extra)
            return
        totals = []
        for k, mode in enumerate(modes):
            if mode == "columns":
                out = outputs[k]
                total = self.empty((call.units, *out.shape), out.dtype)
                totals.append((total, out))
                operands[len(inputs) + k] = total.address
        call.run(operands)
        for total, out in totals:
            self.reduce(IDENTITY, "sum", (total,), out, total.shape, (0,))


def _rows_of_block(rows, work):
    """Rows of a block, for any number of threads: results do not depend on it."""
    if work < programs.SPLIT:
        return min(rows, BLOCK) or 1
    return min(max(-(-rows // BLOCKS), FEWEST), BLOCK)
