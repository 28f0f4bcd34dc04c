"""Every exception a user can meet: wanted, got, where (the user's line), what to do."""

import linecache
import os
import sys
import sysconfig
import traceback
from collections.abc import Sequence
from types import TracebackType

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_GENERATED = ("minigrad_kernel_", "<the call of ")  # kernels; the code around a program
_LIBRARIES = tuple(sysconfig.get_paths()[kind] + os.sep for kind in ("stdlib", "purelib"))


def is_ours(filename: str) -> bool:
    """Returns whether a source file belongs to minigrad: its package or its generated kernels."""
    is_import = filename.startswith("<frozen importlib")  # while our modules are imported
    return is_import or filename.startswith(_PACKAGE) or is_generated(filename)


def is_generated(filename: str) -> bool:
    """Returns whether a source file is one of minigrad's generated kernels."""
    return os.path.basename(filename).startswith(_GENERATED)


def user_frame():
    """Returns the innermost frame outside minigrad, and outside libraries if there is one."""
    stack = traceback.walk_stack(sys._getframe(1))
    others = [f for f, _ in stack if not is_ours(f.f_code.co_filename)]
    own = (f for f in others if not f.f_code.co_filename.startswith(_LIBRARIES))
    return next(own, others[0] if others else None)


def _ipython():
    """Returns the shell of the running notebook or IPython, or None."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def _shown_name(filename):
    """Returns a file's name without folders, or IPython's name of a notebook cell: `In[3]`."""
    shell = _ipython()
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", lambda name: None)
    named = name_of(filename)
    return named[1] if named else os.path.basename(filename)


def describe_line(filename: str, number: int) -> str:
    """Returns `file:line  source text`, for error messages."""
    text = linecache.getline(filename, number).strip()
    place = f"{_shown_name(filename)}:{number}"
    return f"{place}  {text}" if text else place


def user_line() -> str:
    """Returns the user's line that is running, or an empty string."""
    frame = user_frame()
    return "" if frame is None else describe_line(frame.f_code.co_filename, frame.f_lineno)


def show_all(is_on=True):
    """Sets whether IPython and notebooks show minigrad's own frames in a traceback.

    By default they show only the user's frames and the message.
    """
    MinigradError._shows_all = bool(is_on)


def _of_user(trace):
    """Returns the user's part of a traceback, or None if it has none.

    It omits the frames of minigrad, of libraries that it calls, and of those that called the user.
    """
    kept, was_left = [], True
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        was_left = is_ours(name) or (was_left and name.startswith(_LIBRARIES))
        if not was_left:
            kept.append(trace)
        trace = trace.tb_next
    part = None
    for trace in reversed(kept):
        part = TracebackType(part, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)
    return part


class MinigradError(Exception):
    """The base class of minigrad's errors.

    Args:
        wanted: one sentence: what was wanted, or what went wrong.
        got: what came instead.
        fix: what to do about it.
        where: `file:line` of the user's code; by default from the call stack.
        details: further labelled lines, such as ("saved at", "train.py:3").
    """

    _shows_all = False

    def __init__(self, wanted, got=None, fix=None, where=None, details=()):
        self.wanted, self.got, self.fix = wanted, got, fix
        self.where = user_line() if where is None else where
        self.details = tuple(details)
        super().__init__(self._text())

    def _text(self):
        rows = [("got", self.got), *self.details, ("where", self.where), ("try", self.fix)]
        return self.wanted + "".join(f"\n  {label}: {text}" for label, text in rows if text)

    def _render_traceback_(self):
        """Returns the traceback that IPython shows: the user's frames, or all after `show_all`."""
        shell, part = _ipython(), _of_user(self.__traceback__)
        if shell is None:
            return traceback.format_exception(self)
        show = shell.InteractiveTB.structured_traceback
        if self._shows_all or part is None:
            return show(type(self), self, self.__traceback__)
        cause, is_hidden = self.__cause__, self.__suppress_context__
        before = cause or (None if is_hidden else self.__context__)
        trace = getattr(before, "__traceback__", None)
        try:
            if before is not None and (users := _of_user(trace)) is not None:
                before.__traceback__ = users
            else:
                self.__cause__ = None  # the cause is internal; this also hides the context
            return show(type(self), self, part, tb_offset=0)
        finally:
            self.__cause__, self.__suppress_context__ = cause, is_hidden
            if before is not None:
                before.__traceback__ = trace


class ShapeError(MinigradError, ValueError):
    """Shapes do not match, or an axis does not exist."""


class DTypeError(MinigradError, TypeError):
    """The operation does not accept this element type."""


class DeviceError(MinigradError, ValueError):
    """A device is unknown, or operands are on different devices."""


class ArgumentError(MinigradError, ValueError):
    """An argument has the right type but an invalid value."""


class ArgumentTypeError(MinigradError, TypeError):
    """An argument has the wrong type."""


class BoundsError(MinigradError, IndexError):
    """An index is beyond the end of its axis."""


class MissingNameError(MinigradError, KeyError):
    """A name does not exist."""

    __str__ = Exception.__str__  # KeyError's would escape the line breaks


class GradientError(MinigradError, RuntimeError):
    """A gradient cannot be computed: no graph, no upstream gradient, or a wrong shape."""


class GraphCycleError(MinigradError, RuntimeError):
    """A node is its own ancestor; `path` lists the nodes of the cycle."""

    path = ()


class GraphFreedError(MinigradError, RuntimeError):
    """A second backward needs values that the first one has freed."""


class SavedValueModifiedError(MinigradError, RuntimeError):
    """A value saved for backward was written to before backward used it."""


class InPlaceError(MinigradError, RuntimeError):
    """Autograd cannot record an in-place write, or the memory must not be written."""


class NonFiniteError(MinigradError, ArithmeticError):
    """A value is NaN or infinite where a finite number was wanted."""


class GradcheckError(MinigradError, AssertionError):
    """A gradient is not the derivative of its function, or cannot be checked at this point."""


class OrphanParameterError(MinigradError, RuntimeError):
    """An optimizer holds a parameter that no live module owns any more; `parameters` lists them."""

    parameters: Sequence = ()


class StateError(MinigradError, ValueError):
    """A state_dict does not fit: names are missing or unexpected, or shapes differ."""


class OutOfMemoryError(MinigradError, MemoryError):
    """The pool's limit or the machine's memory is used up."""


class DonatedError(MinigradError, RuntimeError):
    """A value was used after its memory was donated to a compiled step."""


class RetraceWarning(UserWarning):
    """A compiled step is retraced repeatedly, which takes far longer than running it."""


class CacheWarning(UserWarning):
    """Compiled kernels cannot be kept on disk: each process will compile them again."""


class SeamError(MinigradError, RuntimeError):
    """A learner's function was plugged in where it cannot run."""


class TraceError(MinigradError, TypeError):
    """A step cannot become one program, or behaves differently than when it was traced."""


class MissingLibraryError(MinigradError, ImportError):
    """An optional library is not installed."""


class KernelError(MinigradError, TypeError):
    """A user's kernel does not compile, or lacks a gradient; `full`: Numba's whole message."""

    full = ""


class SimulationError(MinigradError, RuntimeError):
    """A kernel made a mistake that the simulator detects and a GPU may not.

    `kernel` is its name; `block` and `thread` are (x, y, z) of one faulty thread, or None.
    """

    kernel = ""
    block = thread = None


class OutOfBoundsError(SimulationError, IndexError):
    """A kernel accessed memory before the beginning or beyond the end of an array."""


class UninitializedReadError(SimulationError):
    """A kernel read shared or local memory that no thread had written."""


class DataRaceError(SimulationError):
    """Two threads used one cell, at least one wrote, and nothing orders the accesses.

    `other_block`, `other_thread`: the thread of the earlier access; `other_line`: its line number.
    """

    other_block = other_thread = None
    other_line = 0


class DivergentBarrierError(SimulationError):
    """Some threads of the block, or lanes of the warp, never reach a barrier."""


class InactiveLaneError(SimulationError):
    """A shuffle or vote names lanes of the warp that do not take part in it."""


class EndlessLoopError(SimulationError):
    """A kernel's loop exceeded the simulator's limit of steps."""


class NotInCudaError(SimulationError, KernelError):
    """Numba's CUDA target or the simulator does not compile a construct; the error has its line."""


class DistributedError(MinigradError, RuntimeError):
    """Ranks of `mg.distributed` disagree, or one of them failed or did not come.

    Args:
        ranks: the numbers of the ranks at fault, as far as known.
        call: the call, in words.
        parts, more: as for MinigradError.
    """

    def __init__(self, *parts, ranks: Sequence = (), call="", **more):
        super().__init__(*parts, **more)
        self.ranks, self.call = tuple(ranks), call


class GpuError(MinigradError, RuntimeError):
    """A GPU or its driver refused or failed; `code`: the driver's name of the error."""

    code = ""
