"""What every device does in the same way: copies, which are programs of one input."""

from typing import Any

from minigrad.array.array import prepare_write
from minigrad.formulas.expression import IDENTITY


class Copies:
    """A part of the device table, over the device's `elementwise`, `empty` and `copy_buffer`."""

    elementwise: Any
    empty: Any
    copy_buffer: Any

    def copy(self, source, out):
        """out[...] = source, broadcast and converted; source may be a Python number."""
        self.elementwise(IDENTITY, (source,), (out,))

    def fill(self, out, value):
        """out[...] = value, a Python number."""
        self.copy(value, out)

    def contiguous(self, x):
        """x itself if its elements lie in C order, else a copy that does."""
        return x if x.is_contiguous else self.convert(x, x.dtype)

    def convert(self, x, dtype):
        """A contiguous copy in another dtype."""
        out = self.empty(x.shape, dtype)
        self.copy(x, out)
        return out

    def prepare_write(self, array, place=None):
        """Before every in-place write: bumps the version, un-shares a copy-on-write Buffer."""
        prepare_write(array, self.copy_buffer, place)
