"""no_grad as a block and as a decorator of functions and generators."""

from __future__ import annotations

from minigrad.course.l06_memory_growth.lesson import lesson
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
        "If inspect.isgeneratorfunction(function): running = function(*args, **kwargs), value = "
        "None; for ever: inside `with no_grad():` value = running.send(value), and on "
        "StopIteration as stop: return stop.value; outside the block: value = yield value.",
    ),
)
SWALLOWED = "What does Python do with an exception when __exit__ returns something true?"


def expect(t: Tester, what: str, got: object, wanted: object, key: str, attempt: str) -> None:
    """Fail unless what was seen is what is wanted."""
    if got != wanted or type(got) is not type(wanted):
        t.fail(key, f"{what}: {show(wanted)}", f"{what}: {show(got)}", attempt)


@no_grad.check(points=1)
def block(t: Tester) -> None:
    """Inside a block nothing is recorded; after it, the mode is what it was before."""
    for outside in (True, False):
        given = f"mode.recording = {outside}, then: with no_grad() as x: …"
        seen = t.drive("block", outside, given=given)
        inside = "What must mode.recording be while the block runs?"
        expect(t, "mode.recording inside", seen["inside"], False, "inside", inside)
        before = "What was it before the block? Not everybody comes from True."
        expect(t, "mode.recording after", seen["after"], outside, "after", before)
        given_by_as = "`with … as x` gives x what __enter__ returns."
        expect(t, "x is the no_grad object", seen["is_self"], True, "entered", given_by_as)


@no_grad.check(points=1)
def nesting(t: Tester) -> None:
    """Blocks nest, also two of the same object."""
    for same in (False, True):
        inner = "the same object" if same else "another no_grad()"
        given = f"mode.recording = True; x = no_grad(); with x: with {inner}: …"
        seen = t.drive("nested", True, same, given=given)
        attempt = "Follow mode.recording and your notes through two __enter__ and two __exit__."
        if same:
            attempt = (
                "Two blocks, one object: where is the note of the first while the second runs?"
            )
        key = "nested_same" if same else "nested"
        expect(t, "mode.recording inside both", seen["deepest"], False, key, attempt)
        expect(t, "mode.recording after the inner", seen["between"], False, key, attempt)
        expect(t, "mode.recording after both", seen["after"], True, key, attempt)


@no_grad.check(points=1, only_with=("block",))
def exceptions(t: Tester) -> None:
    """An exception passes through, and the mode is put back."""
    outside = bool(t.random.random() < 0.5)
    given = f"mode.recording = {outside}; with no_grad(): raise KeyError"
    seen = t.drive("left_by_an_exception", outside, given=given)
    expect(t, "the KeyError comes out of the block", seen["passed"], True, "swallowed", SWALLOWED)
    attempt = "Is the mode put back on every way out of the block?"
    expect(t, "mode.recording after", seen["after"], outside, "not_restored", attempt)


@no_grad.check(points=2)
def decorator(t: Tester) -> None:
    """A decorated function gives the same, without recording, and keeps its name."""
    for outside in (True, False):
        a, b = (int(n) for n in t.random.integers(2, 9, 2))
        shown = f"@no_grad() def area(a, *, b): return a * b; area({a}, b={b})"
        given = f"mode.recording = {outside}; {shown}"
        seen = t.drive("decorated", outside, a, b, given=given)
        handed = "What does your wrapper do with the arguments, and with what comes back?"
        expect(t, "result", seen["result"], a * b, "result", handed)
        inside = "When does your block begin and end: at decoration, or at each call?"
        expect(t, "mode.recording inside", seen["inside"], [False], "inside", inside)
        after = "And when the function is done?"
        expect(t, "mode.recording after", seen["after"], outside, "after", after)
        name = "help() and tracebacks show __name__. functools has something for this."
        expect(t, "area.__name__", seen["name"], "area", "name", name)
        t.given = f"mode.recording = {outside}; @no_grad() def area(…): raise KeyError; area(…)"
        expect(
            t, "the KeyError comes out of the call", seen["passed"], True, "swallowed", SWALLOWED
        )
        way_out = "When the function raises, which of your lines are not reached?"
        expect(t, "mode.recording after", seen["after_error"], outside, "not_restored", way_out)


def seen_by_a_generator(t: Tester) -> tuple[list, bool, dict]:
    """Walk a decorated generator; return its values, the mode outside, and what was seen."""
    values = [int(v) for v in t.random.integers(10, 99, 3)]
    outside = True
    given = (
        f"mode.recording = True; @no_grad() on a generator function that yields {values}; "
        f"next(g), then g.send(0), g.send(1), g.send(2)"
    )
    seen = t.drive("generator", outside, values, given=given)
    if "not_ended" in seen:
        attempt = "When the body is at its end, send raises StopIteration. What must yours do then?"
        wanted = "it ends after its last value, and returns what the body returns"
        t.fail("not_ended", wanted, f"RuntimeError: {seen['not_ended']}", attempt)
    return values, outside, seen


@no_grad.check(points=2)
def generators(t: Tester) -> None:
    """In a decorated generator nothing is recorded; between two values the mode is the caller's."""
    values, outside, seen = seen_by_a_generator(t)
    expect(t, "values", seen["yielded"], values, "values", "Where do its values get lost?")
    body = (
        "Calling a generator function runs nothing of its body yet. When does the body run, "
        "and is your block open then?"
    )
    expect(t, "mode.recording in its body", seen["inside"], [False] * 4, "generator_records", body)
    leak = "While the generator waits, the caller's code runs. In whose mode?"
    expect(
        t, "mode.recording in the caller", seen["caller"], [outside] * 3, "generator_leaks", leak
    )
    expect(t, "mode.recording after", seen["after"], outside, "generator_leaks", leak)


@no_grad.check(points=1, only_with=("generators",))
def two_way_generators(t: Tester) -> None:
    """What is sent into a decorated generator, and what it returns, goes through."""
    values, _, seen = seen_by_a_generator(t)
    expect(t, "values", seen["yielded"], values, "values", "Where do its values get lost?")
    sent = "g.send(value) is the value of a yield: of which one, in your code?"
    expect(t, "what the body received", seen["received"], [0, 1, 2], "sent", sent)
    end = "A generator's return value is in the StopIteration that ends it."
    expect(t, "what it returned", seen["end"], "the end", "end", end)
