"""no_grad as a block and as a decorator of functions and generators."""

from __future__ import annotations

from minigrad.course.l06_memory_growth import lesson
from minigrad.grader.message import show
from minigrad.grader.tester import Tester

no_grad = lesson.exercise(
    "no_grad",
    difficulty=4,
    minutes=25,
    returns="a class whose objects are blocks and decorators",
    hints=(
        "Write down what mode.recording was before you change it. Where, so that two blocks of "
        "the same object do not overwrite each other's note? There is a list in __init__.",
        "A decorator returns a new function that runs the old one inside `with no_grad():`. "
        "functools.wraps keeps the name. For generators: calling one only makes an object; "
        "its body runs in each send. So the block belongs around each send.",
        "If inspect.isgeneratorfunction(function): running = function(*args, **kwargs), resume = "
        "running.send, value = None; for ever: inside `with no_grad():` value = resume(value), and "
        "on StopIteration as stop: return stop.value; outside the block: value = yield value, with "
        "resume = running.send; on an error that the yield raises, resume = running.throw with it.",
    ),
)
SWALLOWED = "What does Python do with an exception when __exit__ returns something true?"


def expect(t: Tester, what: str, got: object, wanted: object, key: str, attempt: str) -> None:
    """Fail unless the observed value is the wanted one."""
    if got != wanted or type(got) is not type(wanted):
        t.fail(key, f"{what}: {show(wanted)}", f"{what}: {show(got)}", attempt)


@no_grad.check(points=1)
def block(t: Tester) -> None:
    """Inside a block nothing is recorded; after it, the mode is what it was before."""
    for outside, changes in ((True, False), (False, False), (False, True)):
        body = "mode.recording = True" if changes else "…"
        made = f"mode.recording = {not outside}; block = no_grad()"
        given = f"{made}; mode.recording = {outside}; with block as x: {body}"
        seen = t.drive("block", outside, changes, given=given)
        inside = "What must mode.recording be while the block runs?"
        expect(t, "mode.recording inside", seen["inside"], False, "inside", inside)
        before = "What was it before the block? Not everybody comes from True."
        expect(t, "mode.recording after", seen["after"], outside, "after", before)
        given_by_as = "`with … as x` gives x what __enter__ returns."
        expect(t, "x is the no_grad object", seen["is_self"], True, "entered", given_by_as)


@no_grad.check(points=1)
def nesting(t: Tester) -> None:
    """Blocks nest, also two of the same object."""
    for same, changes in ((False, False), (True, False), (True, True)):
        inner = "the same object" if same else "another no_grad()"
        body = "mode.recording = True; " * changes
        given = f"mode.recording = True; x = no_grad(); with x: {body}with {inner}: …"
        seen = t.drive("nested", True, same, changes, given=given)
        attempt = "Follow mode.recording and your notes through two __enter__ and two __exit__."
        if same:
            attempt = (
                "Two blocks, one object: where is the note of the first while the second runs?"
            )
        key = "nested_same" if same else "nested"
        expect(t, "mode.recording inside both", seen["deepest"], False, key, attempt)
        expect(t, "mode.recording after the inner", seen["between"], changes, key, attempt)
        expect(t, "mode.recording after both", seen["after"], True, key, attempt)
    in_two_threads(t, "with no_grad()", "block")


def in_two_threads(t: Tester, block: str, kind: str) -> None:
    """Fail unless blocks in two threads may overlap."""
    given = f"{block} in each of two threads, recording is on in A, off in B: A enters, B enters, "
    seen = t.drive("overlapping", kind, given=given + "A leaves, B leaves")
    attempt = "Where are the notes: does the block of one thread find those of another's?"
    what = "mode.recording afterwards, in A and in B"
    expect(t, what, list(t.pair(seen, 2, "A, B")), [True, False], "threads", attempt)


@no_grad.check(points=1, only_with=("block",))
def exceptions(t: Tester) -> None:
    """An exception passes through, and the mode is put back."""
    for outside, error in ((True, "KeyError"), (False, "KeyError"), (True, "KeyboardInterrupt")):
        given = f"mode.recording = {outside}; with no_grad(): raise {error}"
        seen = t.drive("left_by_an_exception", outside, error, given=given)
        out = f"the {error} comes out of the block"
        expect(t, out, seen["passed"], True, "swallowed", SWALLOWED)
        attempt = "Is the mode put back on every way out of the block?"
        expect(t, "mode.recording after", seen["after"], outside, "not_restored", attempt)


@no_grad.check(points=2)
def decorator(t: Tester) -> None:
    """A decorated function gives the same, without recording, and keeps its name."""
    for outside in (True, False):
        a, b = (int(n) for n in t.random.integers(2, 9, 2))
        shown = f"@no_grad() def area(a, *, b): return a * b; mode.recording = {outside}"
        given = f"mode.recording = {not outside}; {shown}; area({a}, b={b})"
        seen = t.drive("decorated", outside, a, b, given=given)
        handed = "What does your wrapper do with the arguments, and with what comes back?"
        expect(t, "result", seen["result"], a * b, "result", handed)
        inside = "When does your block begin and end: at decoration, or at each call?"
        expect(t, "mode.recording inside", seen["inside"], [False], "inside", inside)
        after = "And when the function is done?"
        expect(t, "mode.recording after", seen["after"], outside, "after", after)
        name = "help() and tracebacks show __name__. functools has something for this."
        expect(t, "area.__name__", seen["name"], "area", "name", name)
        t.given = f"mode.recording = {outside}; a decorated function that calls itself twice"
        what = "mode.recording at the end of each call, and after"
        nested = "Each call is a block of its own. Which mode does the inner one put back?"
        expect(t, what, seen["recursive"], [False] * 3 + [outside], "recursive", nested)
        for error, passed, after_error in seen["errors"]:
            t.given = f"mode.recording = {outside}; @no_grad() def area(…): raise {error}; area(…)"
            out = f"the {error} comes out of the call"
            expect(t, out, passed, True, "swallowed", SWALLOWED)
            way_out = "When the function raises, which of your lines are not reached?"
            expect(t, "mode.recording after", after_error, outside, "not_restored", way_out)
        given = f"mode.recording = {outside}; off = no_grad(); both decorated by off, none() gives "
        given += "0 and first(1, function=2) gives 1; Square().area(), a decorated method, gives 9 "
        given += "and sets mode.recording = True inside"
        results, modes, now = t.drive("decorated_others", outside, given=given)
        expect(t, "results", list(results), [0, 1, 9], "result", handed)
        expect(t, "mode.recording inside", list(modes), [False] * 3, "inside", inside)
        expect(t, "mode.recording after", now, outside, "after", after)
    in_two_threads(t, "a call of one decorated function", "function")


def seen_by_a_generator(t: Tester) -> dict:
    """Iterate a decorated generator; return the driver's report, if its values are right."""
    values = [int(t.random.integers(10, 99)), None, 0]
    given = (
        f"@no_grad() on a generator function that yields {values}; "
        "next(g), then g.send(0), g.send(1), g.send(2); mode.recording is set before each"
    )
    seen = t.drive("generator", values, given=given)
    if "not_ended" in seen:
        attempt = "When the body is at its end, send raises StopIteration. What must yours do then?"
        wanted = "it ends after its last value, and returns what the body returns"
        t.fail("not_ended", wanted, f"RuntimeError: {seen['not_ended']}", attempt)
    expect(t, "values", seen["yielded"], values, "values", "Where do its values get lost?")
    expect(t, "values of a second one", seen["second"], [-1, -2], "values", "Whose is which value?")
    return seen


@no_grad.check(points=2)
def generators(t: Tester) -> None:
    """In a decorated generator nothing is recorded; between two values the mode is the caller's."""
    seen = seen_by_a_generator(t)
    body = (
        "Calling a generator function runs nothing of its body yet. When does the body run, "
        "and is your block open then?"
    )
    leak = "While the generator waits, the caller's code runs. In whose mode?"
    before, after = ([pair[i] for pair in seen["caller"]] for i in range(2))
    expect(t, "mode.recording in the caller", after, before, "generator_leaks", leak)
    expect(t, "mode.recording in its body", seen["inside"], [False] * 4, "generator_records", body)
    name = "help() and tracebacks show __name__. functools has something for this."
    expect(t, "its __name__", seen["name"], "each", "name", name)
    kind = "inspect.isgeneratorfunction asks whether the function itself has a yield."
    expect(t, "it is a generator function", seen["is_one"], True, "no_generator", kind)
    for outside in (True, False):
        events = [["body ended", False], ["caller got KeyError", outside]]
        interrupted(t, outside, "raise", events, "an error in its body, in the second next(g)")


def interrupted(t: Tester, outside: bool, how: str, wanted: list, what: str) -> None:
    """Fail unless a generator that ends early does what it must."""
    given = f"mode.recording = {outside}; next(g) of a decorated generator; then {what}"
    seen = t.drive("interrupted", outside, how, given=given)
    said = "What your caller does to your generator, yours has to do to the body: at which line?"
    observed = [list(event) for event in seen["events"]]
    bodies = [[e for e in events if e[0].startswith("body")] for events in (observed, wanted)]
    if bodies[0] == bodies[1]:
        said = "The body does what it should. What of it, and when, reaches your caller?"
    expect(t, "what happened, in which mode", observed, wanted, "interrupted", said)
    leak = "However a generator ends, the mode afterwards is the caller's."
    expect(t, "mode.recording after", seen["after"], outside, "generator_leaks", leak)


@no_grad.check(points=1, only_with=("generators",))
def two_way_generators(t: Tester) -> None:
    """What is sent or thrown into a decorated generator, and what it returns, goes through."""
    seen = seen_by_a_generator(t)
    sent = "g.send(value) is the value of a yield: of which one, in your code?"
    expect(t, "what the body received", seen["received"], [0, 1, 2], "sent", sent)
    end = "A generator's return value is in the StopIteration that ends it."
    expect(t, "what it returned", seen["end"], "the end", "end", end)
    for outside in (True, False):
        events = []
        for kind, turn in (("ValueError", 2), ("KeyboardInterrupt", 4)):
            events += [[f"body got {kind}('a', 1)", False], [f"caller got {turn}", outside]]
            events += [[f"caller got {turn + 1}", outside]]
        thrown = "g.throw and next(g), twice: the body catches ValueError and KeyboardInterrupt"
        interrupted(t, outside, "throw", events, thrown)
        events = [
            event
            for n in (2, 1, 0)
            for event in ([f"body at {n}", False], [f"caller got {n}", outside])
        ]
        itself = "a loop over one that goes on with `yield from` itself"
        interrupted(t, outside, "recurse", events, itself)
        events = [["body got ValueError('a', 1)", False], ["body ended", False]]
        events += [["caller got the end", outside]]
        returns = "g.throw(ValueError('a', 1)), at which the body returns 'the end'"
        interrupted(t, outside, "stop", events, returns)
        interrupted(t, outside, "close", [["body ended", False]], "g.close()")
    in_two_threads(t, "one decorated generator function", "generator")
