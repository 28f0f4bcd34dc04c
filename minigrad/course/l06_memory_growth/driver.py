"""Runs in the learner's process for the checks of lesson 06: writes, blocks, generators."""

import inspect
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from minigrad.course.objects import Ctx, Storage, View

OTHERS = 3
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
    """Return a Storage under a chain of `depth` Views."""
    shown = storage
    for _ in range(depth):
        shown = View(shown, slice(1, None))
    return shown


def chain(shown):
    """Return the Views from this one to its Storage, with their parts, and the Storage's values."""
    links = []
    while isinstance(shown, View):
        links += [shown, shown.index]
        shown = shown.base
    return [*links, shown, shown.data]


def storage_under(shown):
    """Return the Storage under some Views; no driver holds it, since that would be the answer."""
    return chain(shown)[-2]


BUMPED = []  # kept, so that new objects have new ids: code that goes by ids fails in bump_in_turn


def bump(mine, version, depth, times, size, late, place):
    """Bump the Storage under some Views several times; return its state afterwards.

    Then set the version to `late`, as if somebody else had written, and bump once more. The Storage
    is made in this place among OTHERS more, to which nobody may write.
    """
    others = [Storage(np.arange(float(size)), version) for _ in range(OTHERS + 1)]
    kept = [*others, *(other.data for other in others)]  # what they are does not tell which is it
    shown = under_views(others.pop(place), depth)
    del place
    before, returned = list(map(id, chain(shown))), None
    BUMPED.append((kept, chain(shown)[:-2]))
    try:
        for _ in range(times):
            returned = mine.bump_version(shown)
        version_after, storage_under(shown).version = storage_under(shown).version, late
        mine.bump_version(shown)
    except AttributeError as error:
        if "setter" not in str(error):
            raise
        return {"refused": str(error)}
    return {
        "storage": version_after,
        "later": storage_under(shown).version,
        "values": storage_under(shown).data,
        "others": [other.version for other in others],
        "same_objects": list(map(id, chain(shown))) == before,
        "returned": returned,
    }


def saved(mine, op, line, versions, depths, writes, is_freed, same, looked):
    """Save Storages under Views, write to some, let backward free them; call check_saved.

    With `same`, all show one Storage, which was written to until the last of them was saved. With
    `looked`, call it before the writes as well. Returns the result, or the kinds and text of the
    error, and whether a second call differs.
    """
    one = Storage(np.zeros(64), versions[-1]) if same else None
    storages = [one or Storage(np.zeros(64), version) for version in versions]
    shown = tuple(under_views(s, depth) for s, depth in zip(storages, depths, strict=True))
    known = tuple(int(str(n)) for n in versions)  # equal to the version, but not the same object
    ctx = Ctx(op, shown, known, line)
    if looked:
        mine.check_saved(ctx)
    write(storages, writes)
    del writes  # they tell whether an error is wanted
    if is_freed:
        ctx.saved = None
    before, outcomes = facts(ctx, storages), []
    for _ in range(2):
        try:
            outcomes.append({"returned": mine.check_saved(ctx)})
        except Exception as error:
            if isinstance(error, ACCIDENTS) and not (is_freed and isinstance(error, TypeError)):
                raise
            kinds = [kind.__name__ for kind in type(error).__mro__]
            outcomes.append({"raised": kinds, "text": str(error)})
    outcome, again = outcomes
    return {**outcome, "changed": facts(ctx, storages) != before or again.keys() != outcome.keys()}


def write(storages, writes):
    """Write to Storages; a write is (place, times)."""
    for place, times in writes:
        storages[place].data[...] += 1.0
        storages[place].version += times


def dropped_views(mine, count):
    """Call check_saved on one temporary View after another, before and after a write to each.

    Returns whether each call raised.
    """
    raised = []
    for version in range(count):
        storage = Storage(np.zeros(3), version)
        ctx = Ctx("mul", (View(storage),), (version,), "model.py:3")
        raised.append(raises(mine, ctx))
        write([storage], [(0, 1)])
        raised.append(raises(mine, ctx))
    return raised


def raises(mine, ctx):
    """Return whether check_saved raises its error."""
    try:
        mine.check_saved(ctx)
    except mine.SavedValueModifiedError:
        return True
    return False


def grown(mine, lines, limits):
    """Call max_batch for one function whose model grows between the calls."""
    now = [0, 0]

    def measure(batch):
        return now[0] + now[1] * batch

    batches = []
    for line, limit in zip(lines, limits, strict=True):
        now[:] = line
        batches.append(mine.max_batch(measure, limit))
    return batches


def bump_in_turn(mine, versions):
    """Bump Storages in turn, each under a temporary View; return their versions."""
    storages = [Storage(np.zeros(3), version) for version in versions]
    for _ in map(mine.bump_version, map(View, storages)):  # no name here refers to the Storage
        pass
    return [storage.version for storage in storages]


def facts(ctx, storages):
    """Return all that reading a Ctx must not change."""
    return ctx.saved, ctx.versions, [(s.version, s.data.tolist()) for s in storages]


def block(mine, outside, changes):
    """Enter and leave a block; return the mode inside and after, and the value of `as`.

    Makes the object in the other mode. With `changes`, the body changes the mode.
    """
    mode = mine.mode  # the object that all others hold
    mode.recording = not outside
    manager = mine.no_grad()
    mode.recording = outside
    del outside  # noting the mode is the job of the learner's block
    with manager as entered:
        inside = mode.recording
        if changes:
            mode.recording = True
    return {"inside": inside, "after": mode.recording, "is_self": entered is manager}


def nested(mine, outside, same, changes):
    """Nest two blocks; return the mode after the inner and after the outer one.

    With `changes`, the body switches recording on before the inner block, and inside a second one.
    """
    mine.mode.recording = outside
    del outside  # as in `block`
    outer = mine.no_grad()
    inner = outer if same else mine.no_grad()
    with outer:
        mine.mode.recording = changes
        with inner:
            deepest = mine.mode.recording
        between = mine.mode.recording
        with inner:
            mine.mode.recording = changes
    return {"deepest": deepest, "between": between, "after": mine.mode.recording}


def overlapping(mine, kind):
    """Begin a block here, begin one in a second thread, end the first, then the second.

    Returns the modes afterwards: here, where it was on before, and there, where it was off. With
    the kind "function" or "generator", the blocks are calls of one decorated function.
    """
    began, go_on, there = threading.Event(), threading.Event(), []

    def body(here):
        if here:
            there.append(pool.submit(run, False))
            began.wait(1)
        else:
            began.set()
            go_on.wait(1)

    def block(here):
        with mine.no_grad():
            body(here)

    def run(here):
        mine.mode.recording = here
        try:
            work(here)
        finally:
            (go_on if here else began).set()
        return mine.mode.recording

    def steps(here):
        yield body(here)

    walked = mine.no_grad()(steps)
    function = mine.no_grad()(body)
    work = {"function": function, "generator": lambda here: list(walked(here))}.get(kind, block)
    with ThreadPoolExecutor(1) as pool:
        return [run(True), there[0].result()]


ERRORS = {"KeyError": KeyError, "KeyboardInterrupt": KeyboardInterrupt}


def left_by_an_exception(mine, outside, name):
    """Raise inside a block; return whether the exception passed through, and the mode after."""
    mine.mode.recording = outside
    del outside  # as in `block`
    passed = False
    try:
        with mine.no_grad():
            raise ERRORS[name]("on purpose")
    except ERRORS[name]:
        passed = True
    return {"passed": passed, "after": mine.mode.recording}


def decorated(mine, outside, a, b):
    """Decorate a function; call it, let it call itself, let it raise; return what happened.

    Decorates it in the opposite mode to that of the calls.
    """
    mine.mode.recording = not outside
    modes = []

    @mine.no_grad()
    def area(a, *, b, depth=0, error=None):
        if depth:
            area(a, b=b, depth=depth - 1)
        modes.append(mine.mode.recording)
        if error:
            raise error("on purpose")
        return a * b

    mine.mode.recording = outside
    seen = {"name": getattr(area, "__name__", None), "result": area(a, b=b)}
    seen["inside"], seen["after"] = list(modes), mine.mode.recording
    modes.clear()
    area(a, b=b, depth=2)
    seen["recursive"] = [*modes, mine.mode.recording]
    seen["errors"] = []
    for name, error in ERRORS.items():
        mine.mode.recording, passed = outside, False
        try:
            area(a, b=b, error=error)
        except error:
            passed = True
        seen["errors"].append((name, passed, mine.mode.recording))
    return seen


def decorated_others(mine, outside):
    """Call other decorated functions; return their results, and the modes inside and after.

    Two come from one object and take no or two arguments; one is a method; one changes the mode.
    """
    mine.mode.recording, modes, both = outside, [], mine.no_grad()

    @both
    def none():
        modes.append(mine.mode.recording)
        return 0

    @both
    def first(a, function):
        modes.append(mine.mode.recording)
        return a

    class Square:
        side = 3

        @mine.no_grad()
        def area(self):
            modes.append(mine.mode.recording)
            mine.mode.recording = True
            return self.side**2

    return [none(), first(1, function=2), Square().area()], modes, mine.mode.recording


def generator(mine, values):
    """Decorate a generator function; iterate it, send into it; return what both sides saw.

    The caller changes its mode before each value, and iterates a second generator in between.
    """
    mine.mode.recording = True
    inside, received, caller, yielded = [], [], [], []

    @mine.no_grad()
    def each(values, *, end):
        for value in values:
            inside.append(mine.mode.recording)
            received.append((yield value))
        inside.append(mine.mode.recording)
        return end

    running, end = each(values, end="the end"), None
    caller.append((True, mine.mode.recording))
    other = each([-1, -2], end="")
    try:
        for n in range(-1, len(values) + 1):
            before = mine.mode.recording = n % 2 == 0
            try:
                yielded.append(next(running) if n < 0 else running.send(n))
            finally:
                caller.append((before, mine.mode.recording))
            if n == 0:
                seen = inside.copy(), received.copy()
                second = [next(other), next(other)]
                inside[:], received[:] = seen
    except StopIteration as stop:
        end = stop.value
    except RuntimeError as error:
        if not isinstance(error.__cause__, StopIteration):
            raise
        return {"not_ended": str(error)}
    return {
        "name": getattr(each, "__name__", None),
        "is_one": inspect.isgeneratorfunction(each),
        "inside": list(inside),  # a copy, since the second generator ends later
        "received": list(received),
        "caller": caller,
        "yielded": yielded,
        "second": second,
        "end": end,
    }


def interrupted(mine, outside, how):
    """Throw into a decorated generator, close it, or let its body raise; return what happened."""
    mine.mode.recording = outside
    events = []

    def happened(what):
        events.append((what, mine.mode.recording))

    @mine.no_grad()
    def each():
        try:
            for turn in range(1, 6):
                try:
                    yield turn
                    if how == "raise":
                        raise KeyError("from the body")
                except (ValueError, KeyboardInterrupt) as error:
                    happened(f"body got {error!r}")
                    if how == "stop":
                        return "the end"
        finally:
            happened("body ended")

    @mine.no_grad()
    def down(n):
        happened(f"body at {n}")
        yield n
        if n:
            yield from down(n - 1)

    running = each()
    next(running)
    try:
        if how == "throw":
            for kind in (ValueError, KeyboardInterrupt):
                happened(f"caller got {running.throw(kind('a', 1))}")
                happened(f"caller got {next(running)}")
        elif how == "stop":
            running.throw(ValueError("a", 1))
        elif how == "close":
            running.close()
        elif how == "recurse":
            for n in down(2):
                happened(f"caller got {n}")
        else:
            next(running)
    except StopIteration as stop:
        happened(f"caller got {stop.value}")
    except (ValueError, KeyError, KeyboardInterrupt, RuntimeError) as error:
        happened(f"caller got {type(error).__name__}")
    mine_after = mine.mode.recording
    return {"events": list(events), "after": mine_after}
