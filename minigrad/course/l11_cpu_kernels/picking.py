"""Which kernel to call, by what was measured."""

from __future__ import annotations

import math

from minigrad.course.l11_cpu_kernels import lesson
from minigrad.grader.message import show, show_typed
from minigrad.grader.tester import Tester

pick_kernel = lesson.exercise(
    "pick_kernel",
    difficulty=2,
    minutes=15,
    returns="the name of a kernel",
    hints=(
        "Draw two points on paper whose axes go 1, 10, 100. What is half-way between 10 and "
        "1,000 there?",
        "Take the logarithm of all sizes and seconds, and of n. Find the two neighbours of n "
        "among the sizes; outside, the two nearest. A straight line through both gives log "
        "seconds.",
        "points = sorted(measured[name]); go on while points[k][0] < n, k from 1 to the last. "
        "With the logarithms of n, of both sizes and both seconds: before + (n - low) / (high - "
        "low) * (after - before). min(measured, key=...) gives the name.",
    ),
)
Points = dict[str, list[tuple[int, float]]]
POWERS = (
    "Far from two sizes that are close, times to a power are 0 or inf, though the time at n is "
    "neither. Which form of a line has no such powers?"
)
ROUNDED = "The two times are all but the same, and one of them is less. What rounds them?"


def on_a_line(n, low, before, high, after):
    """Return log(seconds) at n on the line through two points of a logarithmic drawing."""
    n, low, before, high, after = map(math.log, (n, low, before, high, after))
    return before + (n - low) / (high - low) * (after - before)


def neighbours(n, points):
    """Return the two points around n; beyond the ends, the two there."""
    points = sorted(points)
    k = 1
    while k < len(points) - 1 and points[k][0] < n:
        k += 1
    return (*points[k - 1], *points[k])


def right(n: int, measured: Points) -> str:
    """Return the quickest kernel's name."""
    return min(measured, key=lambda name: on_a_line(n, *neighbours(n, measured[name])))


@pick_kernel.mistake("slowest", "That one takes the most time.")
def _(n, measured):
    return max(measured, key=lambda name: on_a_line(n, *neighbours(n, measured[name])))


@pick_kernel.mistake("stops", "Beyond the last size the time stands still. Where does the line go?")
def _(n, measured):
    def seconds(name):
        points = sorted(measured[name])
        inside = min(max(n, points[0][0]), points[-1][0])
        return on_a_line(inside, *neighbours(inside, points))

    return min(measured, key=seconds)


@pick_kernel.mistake("stops", "Below the first size the time stands still. Where does the line go?")
def _(n, measured):
    def seconds(name):
        points = sorted(measured[name])
        inside = max(n, points[0][0])
        return on_a_line(inside, *neighbours(inside, points))

    return min(measured, key=seconds)


@pick_kernel.mistake("other_end", "Below the first size: which two points are the nearest ones?")
def _(n, measured):
    def seconds(name):
        points = sorted(measured[name])
        if n < points[0][0]:
            points = points[-2:]
        return on_a_line(n, *neighbours(n, points))

    return min(measured, key=seconds)


@pick_kernel.mistake("rising", "Times may fall with the size. Does your line go on down there?")
def _(n, measured):
    def seconds(name):
        low, before, high, after = neighbours(n, measured[name])
        if not low <= n <= high:
            after = max(before, after)
        return on_a_line(n, low, before, high, after)

    return min(measured, key=seconds)


@pick_kernel.mistake("two_nearest", "The nearest two sizes may both lie on one side of n.")
def _(n, measured):
    def seconds(name):
        low, high = sorted(measured[name], key=lambda point: abs(point[0] - n))[:2]
        return on_a_line(n, *low, *high)

    return min(measured, key=seconds)


@pick_kernel.mistake("anywhere", "That one is quickest at a size of its own. What is asked is n.")
def _(n, measured):
    return min(measured, key=lambda name: min(time for _, time in measured[name]))


@pick_kernel.mistake("first_sizes", "Each kernel has sizes of its own. Whose are these?")
def _(n, measured):
    names = [*measured]
    sizes = sorted(size for size, _ in measured[names[0]])
    k = 1
    while k < len(sizes) - 1 and sizes[k] < n:
        k += 1

    def seconds(name):
        times = [time for _, time in sorted(measured[name])]
        high = min(k, len(times) - 1)
        return on_a_line(n, sizes[k - 1], times[k - 1], sizes[k], times[high])

    return min(names, key=seconds)


@pick_kernel.mistake("unsorted", "In which order do the sizes come? Nobody has sorted them.")
def _(n, measured):
    def seconds(name):
        points, k = measured[name], 1
        while k < len(points) - 1 and points[k][0] < n:
            k += 1
        return on_a_line(n, *points[k - 1], *points[k])

    return min(measured, key=seconds)


@pick_kernel.mistake("nearest", "The nearest size is not n. What lies between two measured sizes?")
def _(n, measured):
    def seconds(name):
        return min(measured[name], key=lambda point: abs(math.log(point[0] / n)))[1]

    return min(measured, key=seconds)


@pick_kernel.mistake("nearest", "Nobody measured at n. What lies between the two sizes around it?")
def _(n, measured):
    def seconds(name):
        return min(measured[name], key=lambda point: abs(point[0] - n))[1]

    return min(measured, key=seconds)


@pick_kernel.mistake("straight", "A straight line on which paper? Both axes are logarithmic.")
def _(n, measured):
    def seconds(name):
        low, before, high, after = neighbours(n, measured[name])
        return before + (n - low) / (high - low) * (after - before)

    return min(measured, key=seconds)


@pick_kernel.mistake("half_logarithmic", "One axis is logarithmic here. And the other one?")
def _(n, measured):
    def seconds(name):
        low, before, high, after = neighbours(n, measured[name])
        return before + math.log(n / low) / math.log(high / low) * (after - before)

    return min(measured, key=seconds)


@pick_kernel.mistake("half_logarithmic", "The seconds are logarithmic here. And the sizes?")
def _(n, measured):
    def seconds(name):
        low, before, high, after = neighbours(n, measured[name])
        share = (n - low) / (high - low)
        return math.log(before) + share * (math.log(after) - math.log(before))

    return min(measured, key=seconds)


@pick_kernel.mistake("whole", "One line through the first and the last size. What of the others?")
def _(n, measured):
    def seconds(name):
        points = sorted(measured[name])
        return on_a_line(n, *points[0], *points[-1])

    return min(measured, key=seconds)


@pick_kernel.mistake("fit", "One line for all points may miss each. Which two does it join at n?")
def _(n, measured):
    def seconds(name):
        points = [[math.log(one) for one in point] for point in measured[name]]
        x, y = (sum(values) / len(points) for values in zip(*points, strict=True))
        rise = sum((a - x) * (b - y) for a, b in points)
        return y + rise / sum((a - x) ** 2 for a, _ in points) * (math.log(n) - x)

    return min(measured, key=seconds)


@pick_kernel.mistake("rounded", "The two times are close, and not the same. What rounds them?")
def _(n, measured):
    def seconds(name):
        return round(on_a_line(n, *neighbours(n, measured[name])), 2)

    return min(measured, key=seconds)


@pick_kernel.mistake("rounded", ROUNDED)
def _(n, measured):
    def seconds(name):
        return round(on_a_line(n, *neighbours(n, measured[name])), 9)

    return min(measured, key=seconds)


@pick_kernel.mistake(
    "rounded", "Times may be apart by far less than 1e-9 s. What makes whole numbers of them?"
)
def _(n, measured):
    def seconds(name):
        return int(1e9 * math.exp(on_a_line(n, *neighbours(n, measured[name]))))

    return min(measured, key=seconds)


@pick_kernel.mistake("at_size_1", "What is the time of this line at size 1? No float holds it.")
def _(n, measured):
    def seconds(name):
        low, before, high, after = neighbours(n, measured[name])
        slope = math.log(after / before) / math.log(high / low)
        try:
            return before / float(low) ** slope * float(n) ** slope
        except (OverflowError, ZeroDivisionError):
            return math.inf

    return min(measured, key=seconds)


@pick_kernel.mistake("powers", POWERS)
def _(n, measured):
    def power(base, exponent):
        try:
            return base**exponent
        except OverflowError:
            return math.inf

    def seconds(name):
        low, before, high, after = neighbours(n, measured[name])
        share = math.log(n / low) / math.log(high / low)
        return power(before, 1 - share) * power(after, share)

    return min(measured, key=seconds)


@pick_kernel.mistake("nameless", "The name '' is a name. How do you know that none was found yet?")
def _(n, measured):
    best, least = "", math.inf
    for name, points in measured.items():
        seconds = on_a_line(n, *neighbours(n, points))
        if not best or seconds < least:
            best, least = name, seconds
    return best


@pick_kernel.mistake(
    "only_measured", "Was nobody else measured near n? Their lines run there, too."
)
def _(n, measured):
    exact = [name for name in measured if n in dict(measured[name])]
    return min(exact or measured, key=lambda name: on_a_line(n, *neighbours(n, measured[name])))


@pick_kernel.mistake("in_range", "A kernel's line goes on beyond its sizes. Who is left out?")
def _(n, measured):
    names = [name for name, points in measured.items() if min(points)[0] <= n <= max(points)[0]]
    return min(names or measured, key=lambda name: on_a_line(n, *neighbours(n, measured[name])))


@pick_kernel.mistake("held_up", "A line may go below all that was measured. What holds yours up?")
def _(n, measured):
    def seconds(name):
        least = min(time for _, time in measured[name])
        return max(math.log(least), on_a_line(n, *neighbours(n, measured[name])))

    return min(measured, key=seconds)


@pick_kernel.mistake("by_seconds", "Two sizes may take the same time. Which one do you lose?")
def _(n, measured):
    def seconds(name):
        sizes = {time: size for size, time in sorted(measured[name])}
        points = [(size, time) for time, size in sizes.items()]
        return on_a_line(n, *neighbours(n, points if len(points) > 1 else measured[name]))

    return min(measured, key=seconds)


@pick_kernel.mistake("plus_one", "The logarithm is that of the size itself. What is added to it?")
def _(n, measured):
    def seconds(name):
        low, before, high, after = neighbours(n, measured[name])
        return on_a_line(n + 1, low + 1, before, high + 1, after)

    return min(measured, key=seconds)


@pick_kernel.mistake("type")
def _(n, measured):
    names = [*measured]
    times = [on_a_line(n, *neighbours(n, measured[name])) for name in names]
    return times.index(min(times))


def curve(t: Tester, sizes: list[int], start: float, rate: float) -> list[tuple[int, float]]:
    """Return measured points of a kernel: a time to begin, and one for each element."""
    noise = t.fixed.uniform(0.85, 1.15, len(sizes))
    points = [
        (n, float(f"{(start + n * rate) * k:.3g}")) for n, k in zip(sizes, noise, strict=True)
    ]
    order = t.fixed.permutation(len(points))
    return [points[k] for k in order]


Question = tuple[int, Points]


def ask(t: Tester, questions: list[Question]) -> None:
    """Fail unless the quickest kernel is picked each time; name the mistake that all show."""
    answers = []
    for n, measured in questions:
        got = t.call("pick_kernel", n, measured)
        say(t, n, measured)
        if got is None:
            t.none(repr(right(n, measured)))
        if not isinstance(got, str) or got not in measured:
            attempt = "Return the name, one of the keys of measured."
            t.fail("type", f"one of {', '.join(map(repr, measured))}", show_typed(got), attempt)
        answers.append(got)
    for (n, measured), got in zip(questions, answers, strict=True):
        if got != (wanted := right(n, measured)):
            say(t, n, measured)
            times, digits = shown_at(n, measured)
            key, attempt = mistaken(t, questions, answers)
            if key == "value" and digits > 5:
                key, attempt = "rounded", ROUNDED
            t.fail(key, f"{wanted!r} (at {n:,}: {times})", show(got), attempt)


def shown_at(n: int, measured: Points) -> tuple[str, int]:
    """Return the times at n for a message, and how many digits tell them apart."""
    times = [math.exp(on_a_line(n, *neighbours(n, points))) for points in measured.values()]
    digits = 3
    while digits < 12 and len({f"{time:.{digits}g}" for time in times}) < len(times):
        digits += 1
    pairs = zip(measured, times, strict=True)
    return "; ".join(f"{name or repr(name)} {time:.{digits}g} s" for name, time in pairs), digits


def say(t: Tester, n: int, measured: Points) -> None:
    """Let messages show a question."""
    lines = [f"{name!r}: {points}" for name, points in measured.items()]
    t.given = f"pick_kernel({n:,}, {{{', '.join(lines)}}})"


def mistaken(t: Tester, questions: list[Question], answers: list[str]) -> tuple[str, str]:
    """Return the key and the Try line of a mistake that gives all these answers."""
    by_key: dict[str, list[object]] = {}
    for question in questions:
        for one in t.mistakes(*question):
            by_key.setdefault(f"{one.key}\n{one.attempt}", []).append(one.value)
    for text, values in by_key.items():
        if values == answers:
            key, _, attempt = text.partition("\n")
            return key, attempt
    first: dict[int, str] = {}
    if all(
        first.setdefault(n, right(n, measured)) == got
        for (n, measured), got in zip(questions, answers, strict=True)
    ):
        attempt = "This n had the answer before, with other measurements. What outlives a call?"
        return "remembered", attempt
    return "value", "Which time does each of them take at n? Draw the points."


def both_ways(n: int, measured: Points) -> list[Question]:
    """Return a question, and the same with the kernels in the other order."""
    return [(n, measured), (n, dict(reversed(measured.items())))]


def between(n: int, first: tuple[float, float], second: tuple[float, float]) -> Question:
    """Return a question between the sizes 10 and 1,000."""
    return n, {
        "one": [(10, first[0]), (1000, first[1])],
        "two": [(1000, second[1]), (10, second[0])],
    }


def unchanging(first: float, second: float, names: tuple[str, str] = ("one", "two")) -> Points:
    """Return two kernels whose times do not change with the size."""
    return {name: [(1000, s), (10, s)] for name, s in zip(names, (first, second), strict=True)}


@pick_kernel.check(points=2)
def inside(t: Tester) -> None:
    """Between measured sizes, the line on logarithmic axes decides."""
    scale = float(f"{t.random.uniform(1, 9):.2g}")
    questions = []
    for n, measured in (
        # at 100, half-way: the roots of the products, 1e-5 and 1.22e-5
        between(100, (1e-6, 1e-4), (1.2e-5, 1.25e-5)),
        between(100, (1e-6, 2e-4), (1.2e-5, 1.25e-5)),
        between(100, (1e-6, 1e-3), (5e-5, 5.2e-5)),
        between(800, (1e-6, 1e-4), (6.5e-5, 8.7e-5)),
        between(500, (1e-6, 1e-3), (5e-5, 5.2e-5)),
        (300, {"one": [(10, 1e-8), (100, 9e-6), (1000, 3e-5)], "two": [(10, 1e-5), (900, 2e-5)]}),
        (30, {"one": [(10, 1e-6), (100, 9e-6), (1000, 9e-6)], "two": [(10, 2e-6), (1000, 6e-5)]}),
        (300, {"one": [(1000, 3e-5), (100, 9e-6), (10, 1e-8)], "two": [(10, 1e-5), (900, 2e-5)]}),
        (90, {"one": [(1, 1e-3), (100, 1e-6), (9000, 1e-3)], "two": [(1, 1e-5), (9000, 1e-5)]}),
        (30, {"one": [(1, 1e-6), (10, 1e-6), (100, 1e-6), (999, 1e-3)],
              "two": [(1, 1.5e-5), (999, 1.5e-5)]}),
        between(900, (1e-6, 1e-3), (2e-4, 2.1e-4)),
        between(100, (1e-6, 1e-4), (9.99e-6, 9.99e-6)),
        between(30, (1e-6, 1e-4), (3.01e-6, 3.01e-6)),
        between(30, (1e-6, 1e-2), (2e-6, 2e-6)),
        between(100, (5e3, 5e5), (6e4, 6e4)),
    ):  # fmt: skip
        scaled = {
            name: [(size, float(f"{seconds * scale:.4g}")) for size, seconds in points]
            for name, points in measured.items()
        }
        questions += both_ways(n, scaled)
    # by no n that came before: who remembers by n alone is told so above
    questions += both_ways(77, unchanging(scale * 1e-5, scale * 1.7e-5, ("", "two")))
    for first, second in (
        (1e-5, (1 + 1e-10) * 1e-5),  # rounding moves it by 1e-14
        ((1 + 1e-10) * 1e-5, 1e-5),
        (1e-12, 1.5e-12),
        (1e-99, 1.5e-99),
        (1e98, 1.5e98),
    ):
        questions += both_ways(100, unchanging(scale * first, scale * second))
    ask(t, questions)


@pick_kernel.check(points=2, only_with=("inside",))
def beyond(t: Tester) -> None:
    """Beyond the measured sizes, the last line goes on, on both sides."""
    flat, steep = [(10, 1e-6), (100, 1e-6), (1000, 5e-6)], [(10, 8e-6), (1000, 9e-6)]
    low, lower = [(9, 1e-6), (99, 1e-6)], [(9, 5e-7), (99, 5e-7)]
    early, late = [(10, 1e-6), (1000, 2e-5)], [(10, 1e-6), (500, 9e-6), (1000, 4e-5)]
    questions = [
        *both_ways(100_000, {"one": flat, "two": steep}),
        *both_ways(2, {"one": [(10, 5e-6), (100, 9e-6)], "two": [(10, 6e-6), (100, 6e-5)]}),
        *both_ways(2, {"one": [(10, 5e-6), (100, 9e-6), (1000, 9e-2)], "two": flat}),
        *both_ways(1, {"one": [(1000, 2e-5), (100, 4e-6)], "two": [(1000, 6e-5), (100, 4.1e-6)]}),
        *both_ways(50_000, {"two": early, "one": late}),
        *both_ways(50_000, {"one": [(10, 1e-3), (1000, 1e-5)], "two": [(10, 2e-6), (99, 2e-6)]}),
        *both_ways(2, {"one": [(10, 5e-6), (99, 5e-6), (999, 5e-3)], "two": low}),
        *both_ways(2, {"one": [(10, 9e-7), (90, 9e-6), (999, 1e-5)], "two": lower}),
        # the line of "one" is 1e-3150 at size 1
        *both_ways(10**17, {"one": [(10**18, 1e90), (10**17, 1e-90)], "two": low}),
        # the points of "one" are close: a line through them is a product of powers of 1e205,000
        *both_ways(10**18, {"one": [(999, 9.99e-7), (1000, 1e-6)], "two": [(1, 1), (1000, 1)]}),
        *both_ways(10**18, {"one": [(999, 9.99), (1000, 10.0)], "two": [(1, 1e20), (1000, 1e20)]}),
    ]
    ask(t, questions)
    measured, point = unchanging(1e-6, 5e-6), (200, 9e-5)
    given = f"pick_kernel(100, measured), measured = {measured}; then {point} is appended to 'one'"
    seen = t.drive("picked_as_it_grows", 100, measured, "one", point, given=given)
    if seen != ["one", "two"]:
        attempt = "Between two calls the lists may grow. What do you keep of the first call?"
        t.fail("remembered", "'one', then 'two'", show(seen), attempt)


@pick_kernel.check(points=2, only_with=("inside",))
def everywhere(t: Tester) -> None:
    """Three kernels, and sizes of all orders."""
    for _ in range(4):
        measured = {
            "plain": curve(t, [16, 256, 4096, 65536], 2e-7, 1e-9),
            "threads": curve(t, [64, 1024, 65536, 1 << 20], 3e-5, 4e-10),
            "library": curve(t, [32, 512, 8192], 3e-6, 7e-10),
        }
        sizes = (1, 64, 700, 4096, 7000, 50_000, 100_000, 400_000, 1 << 22)
        ask(t, [(n, measured) for n in sizes])
