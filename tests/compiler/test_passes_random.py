"""All passes on compositions and on random recordings: results and memory stay what they are.

Each pass of ORDER must change one of them at least: what never fires has not been tested.
"""

from collections import Counter

import numpy as np
from hypothesis import HealthCheck, given, settings

from minigrad.compiler import passes
from minigrad.compiler.program.printing import show
from tests.compiler.compositions import COMPOSITIONS, SUMS
from tests.compiler.outcomes import differing, outcome, same
from tests.compiler.pass_recordings import composed, recordings


def keep_the_meaning(recording, data, dead=()):
    """Asserts that the passes keep what a recording means; the names of those that changed it."""
    before = [*recording.instructions], [*recording.results]
    after, steps = passes.simplify(recording, dead)
    assert before == (recording.instructions, recording.results), "a pass changed its argument"
    assert after.donated == recording.donated, "a pass forgot what the step may overwrite"
    if not same(meaning(recording, data, dead), meaning(after, data, dead)):
        raise AssertionError(first_wrong(recording, data, dead))
    return [name for name, _, _ in steps]


def meaning(recording, data, dead):
    """What a recording does to memory, but for what is undefined after it."""
    donated = [(value, 0, value.size) for value in recording.donated]
    return outcome(recording, data, [*dead, *donated])


def first_wrong(recording, data, dead):
    """Says which pass was the first that changed what a recording means, and how."""
    wanted = meaning(recording, data, dead)
    for _ in range(passes.MOST_ROUNDS):
        for apply in passes.ORDER:
            after = apply(recording, dead) if apply in passes.TAKE_SLICES else apply(recording)
            got = meaning(after, data, dead)
            if not same(wanted, got):
                return (
                    f"{apply.__name__} changed what a recording means: {_difference(wanted, got)}"
                    f"\n\nbefore:\n{show(recording)}\n\nafter:\n{show(after)}"
                )
            recording = after
    return "the passes together changed what a recording means, but no pass alone did"


def _difference(wanted, got):
    """The first element that differs."""
    for k, (a, b) in enumerate(zip(wanted, got, strict=True)):
        if a.dtype != b.dtype:
            return f"array {k} is {b.dtype}, not {a.dtype}"
        places = np.argwhere(differing(a, b))
        if len(places):
            where = tuple(places[0])
            return f"array {k} at {list(map(int, where))} is {b[where]}, not {a[where]}"
    return "nothing"


def keep_the_meaning_of(compositions, special=True):
    """`keep_the_meaning` of many compositions; of a failure, the first alone that shows it."""
    try:
        return keep_the_meaning(*composed(compositions, special))
    except AssertionError as error:
        whole = error  # its listing has thousands of lines
    for one in compositions:
        keep_the_meaning(*composed([one], special))
    raise whole


def all_fired(fired):
    """Asserts that each pass of ORDER is among the names of those that changed something."""
    names = dict.fromkeys(apply.__name__ for apply in passes.ORDER)
    never = [name for name in names if name not in fired]
    assert not never, (
        f"{' and '.join(never)} changed none of the recordings, so nothing here has tested it: add "
        "what it looks for to tests/compiler/compositions.py, or to the Builder in "
        "tests/compiler/pass_recordings.py"
    )


def test_compositions_and_recordings_mean_the_same_and_reach_every_pass():
    fired = Counter()
    for kind, compositions in COMPOSITIONS.items():
        fired.update(keep_the_meaning_of(compositions))
        if kind in SUMS:
            fired.update(keep_the_meaning_of(compositions, special=False))

    @settings(
        max_examples=120,
        deadline=None,
        derandomize=True,  # so that a pass is not reached by luck
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(recordings())
    def check(made):
        fired.update(keep_the_meaning(*made))

    check()
    all_fired(fired)


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(recordings())
def test_random_recordings_mean_the_same(made):
    keep_the_meaning(*made)
