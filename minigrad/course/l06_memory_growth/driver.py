"""What the checks of lesson 06 do in the learner's process: writes, blocks, generators."""

import numpy as np

from minigrad.course.objects import Ctx, Storage, View

ACCIDENTS = (
    NotImplementedError,
    TypeError,
    AttributeError,
    NameError,
    LookupError,
    ImportError,
    RecursionError,
)


def under_views(storage, depth):
    """Return the Storage under `depth` Views, one upon the other."""
    shown = storage
    for _ in range(depth):
        shown = View(shown, slice(1, None))
    return shown


def bump(mine, version, depth, times):
    """Bump what lies under some Views, several times; return what is seen afterwards."""
    storage = Storage(np.arange(8.0), version)
    shown = under_views(storage, depth)
    try:
        for _ in range(times):
            mine.bump_version(shown)
    except AttributeError as error:
        if "setter" not in str(error):
            raise
        return {"refused": str(error)}
    return {
        "storage": storage.version,
        "seen": shown.version,
        "same_values": np.array_equal(storage.data, np.arange(8.0)),
    }


def saved(mine, op, line, versions, depths, writes, is_freed):
    """Save Storages under Views, write to some, let backward free them; check what was saved.

    Returns what came back, or the kinds and the text of what was raised.
    """
    storages = [Storage(np.zeros(8), version) for version in versions]
    shown = tuple(under_views(s, depth) for s, depth in zip(storages, depths, strict=True))
    ctx = Ctx(op, shown, tuple(x.version for x in shown), line)
    for place, times in writes:
        storages[place].data[...] += 1.0
        storages[place].version += times
    if is_freed:
        ctx.saved = None
    try:
        returned = mine.check_saved(ctx)
    except Exception as error:
        if isinstance(error, ACCIDENTS) and not (is_freed and isinstance(error, TypeError)):
            raise
        return {"raised": [kind.__name__ for kind in type(error).__mro__], "text": str(error)}
    return {"returned": returned}


def block(mine, outside):
    """Enter a block and leave it; return the mode inside and after, and what `as` gave."""
    mine.mode.recording = outside
    manager = mine.no_grad()
    with manager as entered:
        inside = mine.mode.recording
    return {"inside": inside, "after": mine.mode.recording, "is_self": entered is manager}


def nested(mine, outside, same):
    """Nest two blocks; return the mode after the inner and after the outer one."""
    mine.mode.recording = outside
    outer = mine.no_grad()
    inner = outer if same else mine.no_grad()
    with outer:
        with inner:
            deepest = mine.mode.recording
        between = mine.mode.recording
    return {"deepest": deepest, "between": between, "after": mine.mode.recording}


def left_by_an_exception(mine, outside):
    """Raise inside a block; return whether it passed through, and the mode after."""
    mine.mode.recording = outside
    passed = False
    try:
        with mine.no_grad():
            raise KeyError("on purpose")
    except KeyError:
        passed = True
    return {"passed": passed, "after": mine.mode.recording}


def decorated(mine, outside, a, b):
    """Decorate a function; call it, let it raise; return what was seen."""
    mine.mode.recording = outside
    modes = []

    @mine.no_grad()
    def area(a, *, b, fails=False):
        modes.append(mine.mode.recording)
        if fails:
            raise KeyError("on purpose")
        return a * b

    seen = {"name": getattr(area, "__name__", None), "result": area(a, b=b)}
    seen["inside"], seen["after"] = list(modes), mine.mode.recording
    seen["passed"] = False
    try:
        area(a, b=b, fails=True)
    except KeyError:
        seen["passed"] = True
    seen["after_error"] = mine.mode.recording
    return seen


def generator(mine, outside, values):
    """Decorate a generator function; walk it, send into it; return what both sides saw."""
    mine.mode.recording = outside
    inside, received, caller, yielded = [], [], [], []

    @mine.no_grad()
    def each(values):
        for value in values:
            inside.append(mine.mode.recording)
            received.append((yield value))
        inside.append(mine.mode.recording)
        return "the end"

    running, end = each(values), None
    try:
        yielded.append(next(running))
        for n in range(len(values) + 1):
            caller.append(mine.mode.recording)
            yielded.append(running.send(n))
    except StopIteration as stop:
        end = stop.value
    except RuntimeError as error:
        if not isinstance(error.__cause__, StopIteration):
            raise
        return {"not_ended": str(error)}
    return {
        "inside": inside,
        "received": received,
        "caller": caller,
        "yielded": yielded,
        "end": end,
        "after": mine.mode.recording,
    }
