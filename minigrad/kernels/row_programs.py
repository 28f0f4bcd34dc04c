"""Row kernels on the CPU: their layouts, and how they are cut over threads."""

from typing import Any

from minigrad.array.array import Array
from minigrad.array.layout import collapse, expand_strides
from minigrad.kernels import programs
from minigrad.kernels.binding import kind_of, remember, stride_class
from minigrad.kernels.expression import IDENTITY
from minigrad.kernels.programs import Call, Programs, is_in_place
from minigrad.kernels.row_codegen import rows_text
from minigrad.kernels.threads import threads


class RowPrograms(Programs):
    """The function of the device table for formulas with row reductions."""

    empty: Any  # of the device

    def rows(self, program, modes, inputs, outputs, shape):
        """outputs = program(inputs), formulas that reduce along the last axis of `shape`.

        modes: per output 'store' (shape), 'row' (shape[:-1] + (1,)) or 'columns' (shape[-1:], the
        sum over all rows).
        """
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
            if layout is None:  # leading axes that are no single loop for every operand
                inputs = [x if not isinstance(x, Array) else self.contiguous(x) for x in inputs]
                inputs = [
                    self.contiguous(x.view(shape, expand_strides(x.shape, x.strides, shape)))
                    if isinstance(x, Array)
                    and len(x.shape) > 1
                    and x.shape != shape
                    and x.shape[-1] != 1
                    else x
                    for x in inputs
                ]
                layout = self._row_layout(modes, (*inputs, *outputs), shape)
                if layout is None:
                    inputs = [
                        self.contiguous(x.view(shape, expand_strides(x.shape, x.strides, shape)))
                        if isinstance(x, Array)
                        else x
                        for x in inputs
                    ]
                    layout = self._row_layout(modes, (*inputs, *outputs), shape)
                call = self._bind_rows(program, modes, (*inputs, *outputs), layout)
                self._run_rows(call, modes, inputs, outputs)
                return
            bound = remember(program, key, self._bind_rows(program, modes, operands, layout))
        self._run_rows(bound, modes, inputs, outputs)

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
        kinds, inner = tuple(map(kind_of, operands)), tuple(map(stride_class, column_strides))
        in_place = operands[0] is operands[len(operands) - len(modes)]
        how = (modes, kinds, inner, in_place)
        entry = self._kernel(program, how, rows_text, *how)
        extra = [rows, columns]
        for pair in zip(row_strides, column_strides, strict=True):
            extra += pair
        return Call(entry, tuple(extra), rows * columns, self._steps(operands, row_strides))

    def _run_rows(self, call, modes, inputs, outputs):
        """Runs it. Where rows are summed each thread makes a sum of its own; these are added."""
        operands = [x.address if isinstance(x, Array) else x for x in (*inputs, *outputs)]
        if "columns" not in modes:
            call.run(operands)
            return
        parts = min(threads.count, call.size) if call.work >= programs.SPLIT else 1
        summed = [k for k, mode in enumerate(modes) if mode == "columns"]
        if parts < 2 or not all(outputs[k].is_contiguous for k in summed):
            call.entry(*operands, *call.extra)
            return
        calls = [list(arguments) for arguments in call.calls(operands, parts)]
        totals = []
        for k in summed:
            out, place = outputs[k], len(inputs) + k
            total = self.empty((parts, *out.shape), out.dtype)
            totals.append((total, out))
            for p, arguments in enumerate(calls):
                arguments[place] = total.address + p * out.nbytes
        threads.run(call.entry, calls)
        for total, out in totals:
            self.reduce(IDENTITY, "sum", (total,), out, total.shape, (0,))
