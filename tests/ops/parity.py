"""docs/generated/parity.md: which cells of operations, dtypes and layouts the tests run."""

from tests.ops.cells import (
    DTYPE_NAMES,
    LAID_OUT,
    LAYOUTS,
    cells,
    device_cells,
    public_ops,
    samples,
)
from tests.ops.test_gradients import DIFFERENTIABLE
from tests.pages import NOTE

HEAD = f"""# Operations, dtypes, layouts

{NOTE}

Every operation of the registry is run against a NumPy formula (`tests/ops/oracles.py`) in each
dtype with contiguous inputs, and in each layout with float32 inputs, not in each pair of the two:
how an operation reads its inputs does not depend on what they mean, and each pair would be a kernel
to compile. `✓` is a cell that is run; a number is the reason, below the table, for which it is not.

Layouts: **transposed** reads a transposed view, **strided** every second element of the last axis,
**reversed** the last axis backwards (a negative stride), **broadcast** one value along the last
axis (stride 0), **offset** a view that begins at the second row, **mixed** a contiguous first input
with transposed others. Each operation also runs on all of its sample shapes (scalars, size 1 and
size 0 among them), elementwise ones on NaN and infinities; what has **gradients** is held against
central differences to first and second order in float64, through transposed views as well.

"""


DEVICES = """
## Devices

The table above is of `cpu`. On every other device the same tests run the cells below, contiguous
and in each dtype; of one operation for each way in which kernels find an element also the layouts
in float32; and every sample shape in float32. **Gradients** of first and second order in float32
are held against those of `cpu` in float64. `numpy` runs what `simt` runs: NumPy's own functions,
with no kernels. `simt` is the simulated GPU: its kernels are those of
`cuda`, the same source, and run here with the search for data races on. `cuda` needs a GPU, which
the tests do not have: `gpu` marks what `python -m benchmarks.gpu --check` compares on a machine
with one. Numbers as above.

"""


def marked(cells_of):
    """({cell: mark}, reasons) of cells with the reasons why some are not run."""
    reasons, found = [], {}
    for cell, why in cells_of:
        if why is not None and why not in reasons:
            reasons.append(why)
        found[cell] = "✓" if why is None else str(reasons.index(why) + 1)
    return found, reasons


def devices_text(found):
    """The table of the other devices; found: the marks of all cells."""
    columns = [*(f"simt {dtype}" for dtype in DTYPE_NAMES), "layouts", "gradients", "cuda"]
    lines = [DEVICES + "| operation | " + " | ".join(columns) + " |"]
    lines.append("|---" * (len(columns) + 1) + "|")
    run = [cell for cell, _ in device_cells()]
    for name in sorted(public_ops()):
        row = [found[name, dtype, "contiguous"] for dtype in DTYPE_NAMES]
        assert all((name, dtype, "contiguous") in run for dtype in DTYPE_NAMES)
        row.append("✓" if name in LAID_OUT else "")
        row.append("✓" if name in DIFFERENTIABLE else "none")
        lines.append(f"| {name} | " + " | ".join(row) + " | gpu |")
    count = sum(found[cell] == "✓" for cell in run)
    lines.append(f"\n{len(run)} cells a device, {count} of them run.")
    return "\n".join(lines) + "\n"


def text():
    """The whole document."""
    # by name: operations register in the order in which modules are imported
    found, reasons = marked(sorted(cells(), key=lambda entry: entry[0]))
    columns = [*DTYPE_NAMES, *LAYOUTS[1:]]
    lines = [HEAD + "| operation | inputs | " + " | ".join(columns) + " | gradients |"]
    lines.append("|---" * (len(columns) + 3) + "|")
    for name, op in sorted(public_ops().items()):
        row = [found[name, dtype, "contiguous"] for dtype in DTYPE_NAMES]
        row += [found[name, "float32", layout] for layout in LAYOUTS[1:]]
        shapes = ", ".join(str(s).replace(",)", ")").replace(" ", "") for s in samples(op)[0][0])
        gradients = "none" if name not in DIFFERENTIABLE else "✓"
        lines.append(f"| {name} | {shapes} | " + " | ".join(row) + f" | {gradients} |")
    lines.append("")
    lines += [f"{k}. The operation {why}." for k, why in enumerate(reasons, 1)]
    count, left = len(found), sum(mark != "✓" for mark in found.values())
    lines.append(f"\n{len(public_ops())} operations, {count} cells, {count - left} of them run.")
    return "\n".join(lines) + "\n" + devices_text(found)
