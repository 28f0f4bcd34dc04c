"""docs/simt.md: prose, and what the simulator finds and counts."""

import inspect
import pathlib

import numpy as np

from minigrad import cuda
from minigrad.simt.language import loops
from minigrad.simt.launch import WAVE
from minigrad.simt.watch.ordering import MOST_LOGGED
from tests.pages import NOTE, filled
from tests.simt.faults import FAULTS
from tests.simt.planted import found, line_of, marked, runs_clean
from tests.simt.tensor_kernels import multiply

PROSE = pathlib.Path(__file__).with_name("page.md")
SIDE = 32
PADDED = SIDE + 1
f4 = np.float32


@cuda.jit
def transpose(x, out):
    """By a tile whose columns lie in one bank."""
    tile = cuda.shared.array((SIDE, SIDE), f4)
    column, row = cuda.threadIdx.x, cuda.threadIdx.y
    tile[row, column] = x[row, column]
    cuda.syncthreads()
    out[row, column] = tile[column, row]


@cuda.jit
def transpose_padded(x, out):
    """By a tile whose rows are one element longer than they need to be."""
    tile = cuda.shared.array((SIDE, PADDED), f4)
    column, row = cuda.threadIdx.x, cuda.threadIdx.y
    tile[row, column] = x[row, column]
    cuda.syncthreads()
    out[row, column] = tile[column, row]


def report(kernel):
    """What inspect prints of a transpose."""
    x = np.zeros((SIDE, SIDE), f4)
    return str(cuda.inspect(kernel[1, (SIDE, SIDE)], x, x.copy()))


def is_found(case, error):
    """Whether an error is the one that the planted fault must raise."""
    return type(error) is case.error and line_of(error) in marked(case)


def rows():
    """The detection table, how many faults were found, and how many twins raised an alarm."""
    lines = ["| planted fault | found as | on the line | clean twin |", "|---|---|---|---|"]
    hits = alarms = 0
    for case in FAULTS:
        error = found(case)
        hit, clean = is_found(case, error), runs_clean(case)
        hits, alarms = hits + hit, alarms + (not clean)
        line = marked(case)[line_of(error)].split("# fault")[0].strip() if hit else ""
        named = f"`{type(error).__name__}`" if hit else "**not found**"
        lines.append(
            f"| {case.what.replace('|', chr(92) + '|')} | {named} | `{line}` "
            f"| {'right, no alarm' if clean else '**alarm**'} |"
        )
    return "\n".join(lines), hits, alarms


def example(what):
    """The text of the error of a planted fault that is called so at its beginning."""
    case = next(c for c in FAULTS if c.what.startswith(what))
    error = found(case)
    return f"{type(error).__name__}: {error}"


def text():
    """The whole page."""
    table, hits, alarms = rows()
    page = filled(
        PROSE.read_text(encoding="utf-8"),
        note=NOTE,
        error=example("no barrier after"),
        late=example("asynchronous copy without"),
        tensor=inspect.getsource(multiply.py_func),
        table=table,
        found=hits,
        alarms=alarms or "no",
        naive=report(transpose),
        padded=report(transpose_padded),
        logged=f"{MOST_LOGGED:,}",
        rounds=f"{loops.LOOP_LIMIT:,}",
        seconds=f"{loops.LOOP_SECONDS:.0f}",
        spins=f"{loops.SPIN_LIMIT:,}",
        wave=f"{WAVE:,}",
    )
    return page.replace("{planted}", str(len(FAULTS)))
