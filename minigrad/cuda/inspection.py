"""inspect: counts and draws the memory accesses of a launch, for each place in the kernel."""

from minigrad.cuda import arguments
from minigrad.cuda.jit import Kernel, Launch
from minigrad.errors import ArgumentTypeError
from minigrad.simt.counts.counts import Counts
from minigrad.simt.watch.counts_text import text
from minigrad.viz.access import page, pictures


class Report:
    """The result of `inspect`: JupyterLab shows it with pictures, `print` as text.

    Attributes:
        counts: the numbers, a `minigrad.simt.counts.counts.Counts`.
        launch: the inspected launch.
        pictures: a list of one AccessPicture per access, in the order of the lines.
    """

    def __init__(self, launch, counts):
        self.launch, self.counts = launch, counts
        self.title = f"{launch.kernel.__name__}[{_short(launch.blocks)}, {_short(launch.threads)}]"

    @property
    def pictures(self):
        """A list of one AccessPicture per access."""
        return pictures(self.counts)

    def save(self, path):
        """Writes an HTML page with all pictures."""
        with open(path, "w", encoding="utf-8") as file:
            file.write('<!doctype html><meta charset="utf-8">\n' + self._repr_html_())

    def __str__(self):
        return text(self.counts, self.title)

    __repr__ = __str__

    def _repr_html_(self):
        return page(self.counts, self.title)


def inspect(launch, *values):
    """Counts what a kernel does to memory: `mg.cuda.inspect(kernel[blocks, threads], x, out)`.

    The kernel runs in the simulator, on copies of the arguments, and changes none of them.
    Variables may be on any device and may require gradients.

    Args:
        launch: `kernel[blocks, threads]`, not called.
        values: the kernel's arguments.

    Returns:
        A `Report`. For each load, store and atomic operation it has the number of warp accesses and
        of bytes, and the 32-byte sectors or passes over the banks beside the fewest possible. It
        also has the places where warps split, barriers, and operations in float64.
    """
    if not isinstance(launch, Launch):
        called = isinstance(launch, Kernel)
        raise ArgumentTypeError(
            "inspect: wanted kernel[blocks, threads]",
            "a kernel without blocks and threads" if called else type(launch).__name__,
            "mg.cuda.inspect(kernel[blocks, threads], x, out): the arguments follow, uncalled",
        )
    arguments.check(launch.kernel, values)
    counts = Counts()
    launch.simulate(arguments.copies(values), counts)
    return Report(launch, counts)


def _short(extents):
    """Shortens extents: (8, 1, 1) to 8, (4, 4, 1) to (4, 4)."""
    parts = list(extents)
    while len(parts) > 1 and parts[-1] == 1:
        parts.pop()
    return parts[0] if len(parts) == 1 else tuple(parts)
