"""The part of a row kernel that sums over rows: each team of threads has a sum a column.

They wait in registers where the row's values do; else in the output, a temporary array with a row
for each team. Another launch adds the teams' sums.
"""

from typing import Any

from minigrad.devices.gpu.text import LANES


class ColumnSums:
    """Writes it, as part of the writer of a row kernel."""

    text: Any  # of the writer
    form: Any
    emitter: Any
    summed: Any  # the outputs that are sums
    array: Any
    over: Any

    def add_to_columns(self, o, value, lines, after):
        """One element joins the sum of its column."""
        text = "sum_{}[e]" if self.form.units else "{}[team * n_j + j]"
        if self.form.units or not self.form.vector:
            lines.append(f"{text.format(o.name)} += {value}")
            return
        self.array(f"near_{o.name}", LANES, self.emitter.real)
        lines.append(f"near_{o.name}[v] = {value}")
        parts = [f"part{lane}" for lane in range(LANES)]
        after.append(f"{', '.join(parts)} = load4({o.name}, team * n_j + c)")
        sums = [f"{part} + near_{o.name}[{lane}]" for lane, part in enumerate(parts)]
        after.append(f"store4({o.name}, team * n_j + c, {', '.join(sums)})")

    def begin_columns(self, size):
        """The sums begin with 0. size: elements of a row that a thread keeps."""
        text, real = self.text, self.emitter.real
        if not self.summed:
            return
        text.line(1, f"team = cuda.blockIdx.x * {self.form.each} + mine")
        if size:
            for o in self.summed:
                self.array(f"sum_{o.name}", size, real)
            text.line(1, f"for e in range({size}):")
            for o in self.summed:
                text.line(2, f"sum_{o.name}[e] = {real}(0)")
            return
        self._columns_store({o.name: [f"{real}(0)"] * LANES for o in self.summed})

    def end_columns(self, size):
        """What waited in registers goes to the output."""
        if self.summed and size:
            places = [f"{LANES} * u + {lane}" for lane in range(LANES)]
            if not self.form.vector:
                places = ["u"]
            self._columns_store(
                {o.name: [f"sum_{o.name}[{p}]" for p in places] for o in self.summed}
            )

    def _columns_store(self, values):
        """Every thread writes the sums of its columns. values: {output: texts of one access}."""

        def write(indent):
            for name, texts in values.items():
                if self.form.vector:
                    self.text.line(indent, f"store4({name}, team * n_j + c, {', '.join(texts)})")
                else:
                    self.text.line(indent, f"{name}[team * n_j + c] = {texts[0]}")

        self.over(1, write, "n_j")
