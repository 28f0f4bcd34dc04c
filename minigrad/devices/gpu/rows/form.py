"""What decides the text of a row kernel, and where its operands lie."""

from typing import NamedTuple

from minigrad.devices.gpu.text import LANES, GpuText


class RowsForm(NamedTuple):
    """What decides the text of a row kernel.

    Attributes:
        modes: per output 'store', 'row' or 'columns'.
        kinds: per input and output its DType, or 'f' / 'i' for a scalar.
        layouts: per array the number of its layout; for those summed over rows, -1.
        rows: (rank, classes) of the Space of the leading dimensions.
        columns: per layout its stride class along the row.
        team: threads of a row: a power of two.
        units: accesses of a thread in a row where values are kept, 0 where they are read again.
        vector: whether accesses are of four elements.
        whole: whether every team always has a row, and every thread of it all its accesses.
        alias: whether an output of one value a row may be an input.
        narrow: whether indices and strides fit in 32 bits.
    """

    modes: tuple
    kinds: tuple
    layouts: tuple
    rows: tuple
    columns: tuple
    team: int
    units: int
    vector: bool
    whole: bool
    alias: bool
    narrow: bool

    @property
    def threads(self):
        """Threads of a block."""
        return self.team if self.team > 32 else 128

    @property
    def each(self):
        """Rows that a block takes at once."""
        return self.threads // self.team

    @property
    def guards_rows(self):
        """Whether a team may be without a row."""
        return self.each > 1 and not self.whole

    @property
    def width(self):
        """Elements of an access."""
        return LANES if self.vector else 1


def row_text(program, form):
    """The GpuText of a row kernel; `at0` is where the row of layout 0 begins."""

    def place(number):
        kind = 1 if number < 0 else form.columns[number]
        along = ("", " + j", f" + j * j_step_{number}")[kind]
        return f"at{number}{along}", kind != 0

    return GpuText(program, form, place)
