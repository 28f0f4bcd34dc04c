"""Plans: compute the gradients of a recorded elementwise op.

There is one plan per op and set of inputs that need gradients. For first-order gradients it runs
one fused kernel over Arrays for gradients of the result's shape, and a reduction for each broadcast
input. For higher orders it evaluates the same formulas with Variables.
"""

from minigrad.array.layout import broadcast_shapes, contiguous_strides, size_of
from minigrad.devices.backend import device_of, like
from minigrad.devices.threads import SPLIT, work_of
from minigrad.formulas.expression import IDENTITY, Expression, Program, call, evaluate, symbols_of
from minigrad.ops.routes import RoutedPlan, gradients
from minigrad.seams import seams
from minigrad.tape.saved import saved_variable
from minigrad.tape.variable import Variable


def is_dy(formula):
    """Returns whether a gradient is dy itself."""
    return isinstance(formula, Expression) and formula.op == "symbol" and formula.args[0] == "dy"


def reduced_axes(shape, target):
    """Returns the axes of `shape` to sum over to reach `target`, which broadcasts to `shape`."""
    pad = len(shape) - len(target)
    return tuple(d for d, n in enumerate(shape) if d < pad or (target[d - pad] == 1 and n != 1))


def sum_program(device, program, inputs, shape, target, dtype):
    """Sums a formula over the axes along which an operand was broadcast: shape -> target."""
    axes = reduced_axes(shape, target)
    kept = tuple(n for d, n in enumerate(shape) if d not in axes)
    out = device.empty(kept, dtype)
    device.reduce(program, "sum", inputs, out, shape, axes)
    return out if kept == target else reshaped(out, target)


def reshaped(array, shape):
    """Gives a new contiguous Array another shape of the same size."""
    array.shape, array.strides = shape, contiguous_strides(shape)
    return array


def sum_to(array, shape, dtype=None):
    """Sums an Array to a shape that broadcasts to its own; returns it if the shapes are equal."""
    dtype = dtype or array.dtype
    if array.shape == shape:
        return array if array.dtype is dtype else device_of(array).convert(array, dtype)
    if seams.unbroadcast is not None:
        return seams.unbroadcast(array, shape, dtype)
    return sum_program(device_of(array), IDENTITY, (array,), array.shape, shape, dtype)


class ElementwisePlan(RoutedPlan):
    """Computes gradients of an elementwise op for one set of inputs.

    number: the name of the operand that is a float on the fast path, or None.
    """

    number: str | None = None

    def __init__(self, op, mask):
        super().__init__(op, mask)
        stated = dict(enumerate(op.gradient_formulas))
        self.formulas = [stated.get(k) if mask >> k & 1 else None for k in range(len(op.inputs))]
        used = set().union(*(symbols_of(e) for e in self.formulas if isinstance(e, Expression)))
        self.saved_names = tuple(n for n in (*op.inputs, "y") if n in used)
        self.saved_index = tuple(-1 if n == "y" else op.inputs.index(n) for n in self.saved_names)
        self.arguments = ("dy", *self.saved_names)
        self.leave_out()

    def leave_out(self):
        self.formulas = [e if self.mask >> k & 1 else None for k, e in enumerate(self.formulas)]
        own = [k for k, e in enumerate(self.formulas) if e is not None and not is_dy(e)]
        self.programs = {}
        self.program = self._program(tuple(own)) if own else None
        self.backward = self._fast_path(own)

    def _program(self, which):
        program = self.programs.get(which)
        if program is None:
            formulas = [self.formulas[k] for k in which]
            program = self.programs[which] = Program(self.arguments, formulas)
        return program

    def _fast_path(self, own):
        """Generates the backward for contiguous operands of one shape and dtype, without loops."""
        names = [f"s{k}" for k in range(len(self.saved_names))]
        results = [f"r{k}" for k in range(len(own))]
        is_numbered = self.number in self.saved_names
        targets = ", ".join(
            "None" if e is None else "dy" if is_dy(e) else results[own.index(k)]
            for k, e in enumerate(self.formulas)
        )
        uniform = "node.wanted is None and " if self.number is None else ""
        alone = SPLIT // work_of(self.program) if own else SPLIT
        lines = ["def backward(node, dy):", f"    if {uniform}dy.is_flat and dy.size < {alone}:"]
        if own:
            number = names[self.saved_names.index(self.number)] if is_numbered else None
            flat = " and ".join(f"{n}.is_flat" for n in names if n != number)
            lines.append("        entry = entries[dy.dtype.index]")
            if names:
                lines.append(f"        {', '.join(names)}, = node.kept")
            lines.append(f"        if entry is not None{' and ' + flat if flat else ''}:")
            lines += [f"            {r} = like(dy)" for r in results]
            arguments = ", ".join(
                n if n == number else f"{n}.buffer.address" for n in ["dy", *names, *results]
            )
            lines.append(f"            entry({arguments}, dy.size)")
            lines.append(f"            return ({targets},)")
        else:
            lines.append(f"        return ({targets},)")
        lines.append("    return general(node, dy)")
        scope = {"like": like, "general": self.general}
        if self.program is not None:
            program = self.program
            scope["entries"] = program.entry_number if is_numbered else program.entry
        exec("\n".join(lines), scope)
        return scope["backward"]

    def general(self, node, dy):
        """Computes gradients for any layout."""
        return gradients(self, node, dy, lambda *inputs: self.slow_path(node.wanted, *inputs))

    def slow_path(self, wanted, *inputs):
        """Computes gradients of dy's shape in one kernel, and sums broadcast ones.

        wanted: (shape, dtype) of each input, or None if all are dy's. inputs: dy, saved values.
        """
        dy = inputs[0]
        device, shape = device_of(dy), dy.shape
        wanted = wanted or ((shape, dy.dtype),) * len(self.formulas)
        results = [None] * len(self.formulas)
        together = []
        for k, e in enumerate(self.formulas):
            if e is None:
                continue
            target, dtype = wanted[k]
            if is_dy(e):
                results[k] = sum_to(dy, target, dtype)
            elif target == shape:
                together.append(k)
            elif seams.unbroadcast is not None:
                whole = device.empty(shape, dtype)
                device.elementwise(self._program((k,)), inputs, (whole,))
                results[k] = sum_to(whole, target, dtype)
            else:
                program = self._program((k,))
                results[k] = sum_program(device, program, inputs, shape, target, dtype)
        if together:
            outs = [device.empty_beside(inputs, shape, wanted[k][1]) for k in together]
            device.elementwise(self._program(tuple(together)), inputs, outs)
            for k, out in zip(together, outs, strict=True):
                results[k] = out
        return results

    def backward_graph(self, node, dy):
        """Computes gradients as Variables with a graph of their own."""
        values = zip(self.saved_names, self.saved_index, node.kept, strict=True)
        known = {name: saved_variable(node, k, value) for name, k, value in values}
        known["dy"] = dy
        results = []
        for k, e in enumerate(self.formulas):
            g = None if e is None else evaluate(e, known)
            if g is not None and not isinstance(g, Variable):
                g = call("where", False, dy, g)  # a constant formula
            if g is not None and node.wanted is not None:
                g = fitted(g, *node.wanted[k])
            results.append(g)
        return results


class NumberPlan(ElementwisePlan):
    """Computes gradients of a binary op with one operand that is a float."""

    def __init__(self, op, mask):
        self.number = op.inputs[1 if mask == 1 else 0]
        super().__init__(op, mask)


def fitted(g, shape, dtype):
    """Sums, expands and casts a gradient Variable to an input's shape and dtype."""
    if g.shape != shape:
        shrinks = broadcast_shapes("gradient", g.shape, shape) == g.shape
        g = call("sum_to" if shrinks else "expand_to", g, shape)
    if g.dtype is not dtype:
        g = g.to(dtype)
    return g


class RowPlan(ElementwisePlan):
    """Computes gradients of a row op by kernels over rows; for an (n,) operand they sum columns."""

    def _fast_path(self, own):
        return self.general

    def slow_path(self, wanted, *inputs):
        dy = inputs[0]
        device = device_of(dy)
        shape, _ = wanted[0] if wanted else (dy.shape, None)
        results, modes, outs, which = [None] * len(self.formulas), [], [], []
        for k, e in enumerate(self.formulas):
            if e is None:
                continue
            target, dtype = wanted[k] if wanted else (shape, dy.dtype)
            mode = "columns" if target == shape[-1:] and len(shape) > 1 else "store"
            modes.append(mode)
            which.append(k)
            if mode == "columns":
                outs.append(device.empty(target, dtype))
            else:
                outs.append(device.empty_rows(inputs, shape, dtype))
        if dy.size and size_of(shape):
            device.rows(self._program(tuple(which)), tuple(modes), inputs, outs, shape)
        else:
            for out in outs:
                device.fill(out, 0.0)
        for k, out in zip(which, outs, strict=True):
            results[k] = out if not wanted else sum_to(out, wanted[k][0])
        return results
