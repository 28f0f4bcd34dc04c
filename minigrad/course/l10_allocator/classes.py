"""Size classes: few sizes, so that what was freed fits again."""

from __future__ import annotations

import math
from typing import Any

from minigrad.course.l10_allocator import lesson
from minigrad.grader.message import show, show_typed
from minigrad.grader.tester import Tester

size_class = lesson.exercise(
    "size_class",
    difficulty=2,
    minutes=10,
    returns="an int, the size of a block",
    hints=(
        "Of what is the answer a multiple, for 500, for 600, for 1,100? What is this step between "
        "two powers of two?",
        "Find the power of two p with p < nbytes <= 2p. The step is p / 8, and at least 64. Then "
        "round nbytes up to a multiple of the step.",
        "nbytes.bit_length() is the number of its binary digits: 1 << that is the first power of "
        "two above nbytes. A sixteenth of it, and at least 64, is the step; for a power of two "
        "itself that is twice the step of hint 2, which does as well. -(-nbytes // step) * step "
        "rounds up. And 0?",
    ),
)


def rounded_up(nbytes, step):
    """Return the next multiple of a step; 0 becomes a step."""
    return max(1, -(-nbytes // step)) * step


def step_of(nbytes):
    """Return the distance of the sizes around a request."""
    return max(64, (1 << nbytes.bit_length()) // 16)


def right(nbytes: int) -> int:
    """Return the size of the block for a request."""
    return rounded_up(nbytes, step_of(nbytes))


@size_class.mistake(
    "powers", "That is a power of two: a request just above one wastes nearly half of its block."
)
def _(nbytes):
    return max(64, 1 << max(0, nbytes - 1).bit_length())


@size_class.mistake(
    "always_64", "Multiples of 64 everywhere are thousands of sizes: when does a block fit again?"
)
def _(nbytes):
    return rounded_up(nbytes, 64)


HOLDS = "Does that block hold the request? To which side do you round?"
EXACT = "It fits exactly already. What do you add, and for whom?"


@size_class.mistake("down", HOLDS)
def _(nbytes):
    return max(64, nbytes // step_of(nbytes) * step_of(nbytes))


@size_class.mistake("too_large", EXACT)
def _(nbytes):
    return (nbytes // step_of(nbytes) + 1) * step_of(nbytes)


@size_class.mistake("sixteen", "Count the sizes after 1,024, up to 2,048: there are to be eight.")
def _(nbytes):
    return rounded_up(nbytes, max(64, 1 << max(0, (nbytes - 1).bit_length() - 5)))


@size_class.mistake("four", "Count the sizes after 1,024, up to 2,048: there are to be eight.")
def _(nbytes):
    return rounded_up(nbytes, max(64, 1 << max(0, (nbytes - 1).bit_length() - 3)))


@size_class.mistake("halves", "Up to 512 all sizes are multiples of 64. Is this one?")
def _(nbytes):
    step = 64 if nbytes <= 256 else max(32, (1 << (nbytes - 1).bit_length()) // 16)
    return rounded_up(nbytes, step)


@size_class.mistake("nothing")
def _(nbytes):
    return -(-nbytes // step_of(nbytes)) * step_of(nbytes)


@size_class.mistake("inexact")
def _(nbytes):
    step = step_of(nbytes)
    return max(64, math.ceil(nbytes / step) * step)


@size_class.mistake("inexact")
def _(nbytes):
    step = max(64, 2 ** (math.ceil(math.log2(max(nbytes, 1))) - 4))
    return rounded_up(nbytes, step)


@size_class.mistake("type")
def _(nbytes):
    return float(rounded_up(nbytes, step_of(nbytes)))


FAR = 1 << 50  # bytes: beyond all that the first checks ask for


def ask(t: Tester, *requests: int) -> None:
    """Fail unless each request gets the size of its block, an int."""
    for nbytes in requests:
        wanted = right(nbytes)
        got = whole(t, t.call("size_class", nbytes), wanted)
        attempt = f"Of what are the sizes around {nbytes:,} multiples, and which is the next?"
        if got < nbytes:
            attempt = HOLDS
        elif nbytes == wanted:
            attempt = EXACT
        t.close(
            got,
            wanted,
            attempt=attempt,
            mistakes=t.mistakes(nbytes),
            rtol=0.0,
            atol=0.0,
        )


def whole(t: Tester, got: Any, wanted: int) -> int:
    """Fail unless this is an int; return it."""
    if got is None and wanted > FAR:
        attempt = (
            "Smaller requests get their size, and this one none. What ends where in your code?"
        )
        t.fail("none", f"{wanted:,}", "None", attempt)
    if got is None:
        t.none(f"{wanted:,}")
    if type(got) is not int:
        attempt = "Bytes are whole. Which operator makes something else of them?"
        t.fail("type", f"{wanted:,}, an int", show_typed(got), attempt)
    if got.bit_length() > wanted.bit_length() + 8:  # NumPy could not compare it
        attempt = "Which step makes it so large? Compute the step for this request by hand."
        t.fail("value", f"{wanted:,}", f"an int of {got.bit_length():,} binary digits", attempt)
    return got


@size_class.check(points=1, only_with=("between_powers",))
def small(t: Tester) -> None:
    """Up to 512 it is the next multiple of 64."""
    ask(t, *(int(n) for n in t.random.integers(65, 512, 4)), 64, 448, 512, 1)
    ask(t, *(64 * k + int(t.random.integers(1, 33)) for k in range(8)))  # nearer to the size below
    if (got := whole(t, t.call("size_class", 0), 64)) != 64:
        attempt = "A block has an address, even if nobody writes to it. How large is the least?"
        t.fail("nothing", "64", show(got), attempt)


@size_class.check(points=2)
def between_powers(t: Tester) -> None:
    """Beyond, there are eight sizes between two powers of two."""
    for power in (512, 1024, 4096, 1 << 20):
        inside = t.random.integers(power + 1, 2 * power, 3)
        ask(t, power + 1, *(int(n) for n in inside), 2 * power - 1, 2 * power)
        ask(t, power + power // 8, power + power // 8 + 1, power + power // 16)
    ask(t, *(4096 + (1 << k) for k in range(12)))  # one digit alone says that it is more


@size_class.check(points=1, only_with=("between_powers",))
def huge(t: Tester) -> None:
    """It is exact for requests of any size."""
    for digits in (56, 60, 80):
        for more in (1, 1 << (digits - 3), (1 << (digits - 3)) + 1, -1, 1 << (digits - 4)):
            nbytes = (1 << digits) + more
            wanted = right(nbytes)
            if (got := whole(t, t.call("size_class", nbytes), wanted)) != wanted:
                attempt = "A float has 16 digits, and these bytes more. Which operators stay exact?"
                t.fail("inexact", f"{wanted:,}", f"{got:,}"[:120], attempt)
