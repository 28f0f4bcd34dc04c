"""Makes the errors for what a traced step cannot do, with the line and what to do instead."""

import sys

from minigrad.errors import ArgumentError, BoundsError, TraceError, is_ours
from minigrad.tape.function import Function
from minigrad.tape.function_plan import FunctionPlan
from minigrad.tape.node import place_line
from minigrad.tape.variable import Variable
from minigrad.viz.units import plural

PRINT = "return it from the step and print it outside"
NUMPY = "use the function of minigrad, or return it from the step and call NumPy outside"
NUMBER = (
    "to look at it, return it from the step and ask for the number outside; to compute with it, "
    "leave it a Variable, which operators take as they take numbers"
)
INDEX = (
    "compute the number outside the step and pass it as an argument; x[i] itself takes a Variable "
    "of one int, which each run reads"
)
SLICE = (
    "a slice decides a shape, and a compiled step has fixed ones: x[i + mg.arange(4)] has one, and "
    "each run reads i; or pass i as a Python int, each value of which has a program of its own"
)
FILL = "mg.ones(shape) * x, which computes with x as a Variable"
BRANCH = (
    "mg.where(condition, a, b) computes both sides and chooses; or compute the condition outside "
    "the step and pass it as an argument"
)
RATE = (
    "read optimizer.learning_rate outside the step; an array that follows it is "
    "optimizer.groups[0].learning_rate_array. To change it in the step, call a schedule's step()"
)
MASK = (
    "a mask as an index: how many elements it picks depends on values, and a compiled step has "
    "fixed shapes",
    "mg.where(mask, x, 0.0).sum() in the place of x[mask].sum(), and / mask.sum() for the mean; to "
    "write, x[mask] = 0.0 and x = mg.where(mask, x + y, x); or compute mg.variable(np.flatnonzero("
    "mask)) outside the step, and pass it as an argument",
)
CHANGED_COPY = (
    "an in-place write to y = x[i], with an i that only the run of a program knows: y is a copy "
    "there, and x would not change",
    "write to x itself: x[i] = y, or x[i] += 1",
)
STALE_COPY = (
    "y = x[i], with an i that only the run of a program knows, is used after x was written to: y "
    "is a copy there, and would not change",
    "take it again after the write: y = x[i]; to keep the old value, y = x[i].clone() before it",
)
WATCHERS = {
    "minigrad.autograd.anomaly": "debug.detect_anomaly()",
    "minigrad.autograd.records": "debug.record_grad_function()",
}
FORWARD = vars(Function)["apply"].__func__.__code__
BACKWARD = FunctionPlan.called.__code__
WAYS = {  # the engine's function that the user's line called -> (what it is, what to do)
    "__repr__": ("print or repr", PRINT),
    "formatted": ("an f-string", PRINT),
    "numpy": ("x.numpy()", NUMPY),
    "as_ndarray": ("NumPy", NUMPY),
    "array_function": ("NumPy", NUMPY),
    "dlpack": ("DLPack", NUMPY),
    "truth": ("if, while, and, or, not, bool()", BRANCH),
    "__float__": ("float()", NUMBER),
    "__int__": ("int()", NUMBER),
    "as_index": ("a Variable as an index or a size", INDEX),
    "get_item": ("a Variable in a slice", SLICE),
    "set_item": ("a Variable in a slice", SLICE),
    "item": ("x.item()", NUMBER),
    "full": ("mg.full", FILL),
    "full_like": ("mg.full_like", FILL),
    "tolist": ("x.tolist()", PRINT),
    "data_ptr": ("x.data_ptr()", "look at addresses outside the step"),
    "learning_rate": ("optimizer.learning_rate", RATE),
    "__getattr__": ("a hyperparameter", RATE),
}


def _entry():
    """Return (the engine function that the user's line called, the custom Function of that line).

    The second is the name of the `mg.Function` method that contains the line, or "".
    """
    frame = sys._getframe(1)
    name = ""
    while frame is not None and is_ours(frame.f_code.co_filename):
        name = frame.f_code.co_name
        if name in ("wrapper", "fast") and "function" in frame.f_locals:
            name = frame.f_locals["function"].__name__
        module = frame.f_globals.get("__name__")  # a generated function has none
        if module in WATCHERS:
            return WATCHERS[module], ""
        frame = frame.f_back
    while frame is not None:
        if frame.f_code is FORWARD:
            return name, f"{frame.f_locals['cls'].__name__}.forward"
        if frame.f_code is BACKWARD:
            return name, f"{frame.f_locals['self'].name}.backward"
        frame = frame.f_back
    return name, ""


class OtherDevice(TraceError):
    """Raised for an array on a device other than the trace's: the step is retraced for `found`."""

    def __init__(self, found, wanted):
        super().__init__(
            f"a compiled step with arrays on {found} and on {wanted}: a program runs on one device",
            fix="move them to one device outside the step: x.to(...)",
        )
        self.found = found


def read_error(array, value, running):
    """Return the error for reading elements while tracing.

    value: the Value of an Array without memory, or None. running: (name, place) of the op.
    """
    name, function = _entry()
    if name in WATCHERS.values():
        what, fix = name, "debug the step without compiling it: MINIGRAD_COMPILE=0"
    else:
        other = running[0] or name, "compute it outside the step and pass it in"
        what, fix = WAYS.get(name, other)
    if function:
        what = f"{function}, by {what},"
    whose = "made in the step" if value is not None else "that can differ at the next call"
    details = [] if value is None else [("made by", f"{value.name or 'the engine'}, {value.line}")]
    return TraceError(
        f"{what} needs the elements of a value {whose}: while a compiled step is traced they are "
        "not known",
        f"{array.dtype}{list(array.shape)}",
        fix,
        details=details,
    )


def outside_error(value):
    """Return the error for reading an Array without memory, or using it after its trace."""
    return TraceError(
        "a value that was made while a step was traced has no memory: it is a name in a program",
        f"{value.dtype}, {plural(value.size, 'element')}",
        "return it from the step, or write it in place into an array from outside: h.copy_(new)",
        details=[("made by", f"{value.name or 'the engine'}, {value.line}")],
    )


def kept_error(where):
    """Return the error for an argument that the step keeps."""
    return TraceError(
        f"{where} is kept by the compiled step, where later calls would not renew it",
        fix="write it in place into an array from outside: self.last.copy_(x), or return it",
    )


def change_error(variable, what):
    """Return the error for changing an outside Variable's node or requires_grad in a step."""
    return TraceError(
        f"{what}: the Variable lives on after the compiled step, and later calls would not do it",
        variable.describe(),
        "do it outside the step; or write under mg.no_grad(), or to x.detach()",
    )


def of_write(owner, what):
    """Return (wanted, fix) of the error for setting an attribute inside a step."""
    if isinstance(owner, Variable):
        fix = "do it outside the step"
    elif "training" in what:
        fix = "call train() and eval() outside the step: each call looks at them"
    else:
        fix = (
            "set it outside the step; keep what changes with every call in an array, and write it "
            "in place: self.h.copy_(new)"
        )
    return f"{what} inside a compiled step would be done once, while tracing", fix


def escaped_error(values):
    """Return the error for values that are kept outside the step; it names the first."""
    value = values[0]
    more = f" and {len(values) - 1} more" if len(values) > 1 else ""
    return TraceError(
        f"a value made in the step{more} is kept outside it, where later calls would not renew it",
        f"{value.dtype}, {plural(value.size, 'element')}",
        "return it, and keep what the call returns: losses.append(step(x)). If the next call needs "
        "it, write it in place into an array from outside: self.h.copy_(new). What was kept has no "
        "elements: set it anew",
        where=value.line,
        details=[("made by", value.name or "the engine")],
    )


def between_error(place):
    """Return the error for a schedule that steps between two uses of the learning rate."""
    return TraceError(
        "a schedule's step() between two uses of the learning rate in one compiled step",
        fix="call schedule.step() after the last optimizer.step(), or outside the step",
        where=place_line(place),
    )


def span_error():
    """Return the error for a GradManager that only begins or only ends inside the step."""
    return TraceError(
        "a GradManager begins to record inside a compiled step, or ends it there, but not both",
        fix="with gm: ... inside the step, or around it",
    )


def stop_error(op, name, attributes, line):
    """Return the error for a check that failed while the program ran."""
    if op == "wrap_index":
        n = attributes["n"]
        wanted = f"an index from {-n} to {n - 1}" if n else "no index, as the size is 0"
        return BoundsError(f"{name}: wanted {wanted}", "one that lies outside", where=line)
    low, high, wanted = (attributes[key] for key in ("low", "high", "wanted"))
    if wanted is not None:
        return ArgumentError(wanted, where=line)
    return BoundsError(
        f"{name}: wanted values from {low} to {high}", "one that lies outside", where=line
    )
