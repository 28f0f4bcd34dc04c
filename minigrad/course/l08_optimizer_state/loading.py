"""State by name, loaded into another model that is declared in another order."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.course.l08_optimizer_state import lesson
from minigrad.course.l08_optimizer_state.common import (
    drive,
    is_same,
    listed,
    nothing_returned,
    numbers,
    value_error,
)
from minigrad.course.l08_optimizer_state.saving import (
    mixed_values,
    random_state,
    random_values,
)
from minigrad.grader.message import show, show_both
from minigrad.grader.tester import Tester

load_state_dict = lesson.exercise(
    "load_state_dict",
    difficulty=3,
    minutes=20,
    returns="None: the state is put into the optimizer",
    hints=(
        "model tells the id that belongs to a name: model[name].id. Walk over the names of what "
        "you are given, and never use the place in a list.",
        "Build the new state in a dict of your own and look for everything that does not fit on "
        "the way: what is put into optimizer.state at the very end is complete or not at all.",
        "For each name in saved: raise ValueError if it is not in the model, or if an array has "
        "another shape than model[name].values; then state[model[name].id] = copies of its arrays. "
        "After the loop, optimizer.state = state.",
    ),
)


def ask(
    t: Tester, values: dict, state: dict, saved: dict, note: str = "", should_raise: bool = False
) -> dict[str, Any]:
    """Call load_state_dict; fail if it writes into `saved`."""
    names = f"the names {', '.join(values)} (the last one frozen)"
    given = f"load_state_dict(model, optimizer, saved) with {names}"
    given += f"{note}; saved = {show(saved, bare=True)}"
    if state:
        given += f"; state before {show(state, bare=True)}"
    got = drive(t, "load", values, state, saved, False, should_raise=should_raise, given=given)
    if not is_same(got["kept"], saved):
        t.fail(
            "changed_saved",
            "saved as it was",
            f"saved = {show_both(saved, got['kept'])[1]}",
            "Someone may want to load it a second time. Which line writes to it?",
        )
    return got


def check_state(t: Tester, got: dict[str, Any], saved: dict, values: dict, before: dict) -> None:
    """Check the optimizer's state after loading."""
    wanted, found_text = show_both(saved, got["state"])
    expected = f"{wanted}, under the ids of these names"
    if got["raised"] is not None:
        t.fail(
            "raised",
            expected,
            f"ValueError: {got['raised']['text'][:80]}",
            "Every name and every shape fits here. Which condition is wrong?",
        )
    loaded = got["state"]
    if not isinstance(loaded, dict):
        t.fail("no_dict", expected, show(loaded), "optimizer.state is a dict, by id.")
    if got["strangers"]:
        by_name = set(got["strangers"]) <= set(values)
        t.fail(
            "key_is_name" if by_name else "strange_key",
            expected,
            f"the keys {', '.join(got['strangers'])}, ids of no parameter of this model",
            "step() looks for p.id. How do you come from a name to the id of today?",
        )
    if is_same(loaded, saved):
        nothing_returned(t, got["returned"])
        return
    slots = [slots.get("momentum") for slots in loaded.values() if isinstance(slots, dict)]
    if any(isinstance(array, np.generic) for array in slots):
        attempt = "An array without axes is an array, too. Which copy makes a number of it?"
        t.fail("number", expected, "a NumPy number in the place of an array", attempt)
    shown, wanted = (
        {name: str(s.get("momentum")) for name, s in state.items() if isinstance(s, dict)}
        for state in (loaded, saved)
    )
    placed = dict(zip(values, saved.values(), strict=False))
    key, attempt = "value", "Bit for bit: which numbers, shapes and dtypes are not those of saved?"
    if is_same(loaded, placed) or (
        shown != wanted and sorted(shown.values()) == sorted(wanted.values())
    ):
        key, attempt = "by_place", "The state of one went to another, of the same shape. No error!"
    elif before and is_same(loaded, before | saved):
        key, attempt = "left_over", "What saved does not name has kept what it had before the call."
    elif is_same(loaded, before):
        key, attempt = "not_loaded", "Nothing has arrived in optimizer.state. Where did you put it?"
    elif loaded.keys() - saved.keys():
        key, attempt = "too_many", "A name that is not in saved starts anew: without an entry."
    t.fail(key, expected, found_text, attempt)


@load_state_dict.check(points=3)
def another_order(t: Tester) -> None:
    """It loads by name into a model of another order, bit for bit, and shares no array."""
    for order in ("cab", "bca"):
        values = random_values(t, order)
        load(t, values, random_state(t, dict(sorted(values.items()))))
        a, b = ({name: values[name]} for name in "ab")
        load(t, values, random_state(t, b), random_state(t, a | b))
        load(t, values, {}, random_state(t, a))
    values = mixed_values(t)
    load(t, values, random_state(t, {name: values[name] for name in "dbca"}))
    values = {"body.w": numbers(t, 2), "head.w": numbers(t, 2), "b": numbers(t, 2)}
    load(t, values, random_state(t, {name: values[name] for name in ("head.w", "body.w", "b")}))
    single = {name: array.astype(np.float32) for name, array in values.items()}
    load(t, single, random_state(t, values), random_state(t, single))
    load(t, single, random_state(t, values))  # bit for bit, even in a dtype other than the values'
    odd = {"momentum": np.array([-0.0, np.nan])}
    load(t, values, {"b": odd})
    replaced(t, values, random_state(t, values))
    alike = dict.fromkeys("cab", np.zeros(2))  # equal numbers do not reveal their owner
    load(t, alike, random_state(t, {name: alike[name] for name in "bac"}))


def replaced(t: Tester, values: dict, saved: dict) -> None:
    """Load into an optimizer that remembers a parameter which has left the model."""
    given = f"load_state_dict(model, optimizer, saved) with {listed(values)}; optimizer.state has "
    given += "an entry of a parameter that was replaced"
    got = drive(t, "load", values, {}, saved, True, given=given)
    if got["strangers"]:
        attempt = "Whatever saved does not name has no entry afterwards. Who clears the old ones?"
        key, wanted = "left_over", "optimizer.state with the ids of this model's parameters alone"
        t.fail(key, wanted, "the entry of the one that was replaced, too", attempt)
    check_state(t, got, saved, values, {})


def load(t: Tester, values: dict, saved: dict, before: dict | None = None) -> None:
    """Load something that fits, and check the state afterwards."""
    got = ask(t, values, before or {}, saved)
    check_state(t, got, saved, values, before or {})
    if not is_same(got["later"], saved):
        t.fail(
            "alias",
            "saved as it was, also after the next step",
            f"{show_both(saved, got['later'])[1]} in saved, after the next step",
            "The next step wrote into the checkpoint. Whose arrays are in optimizer.state?",
        )


@load_state_dict.check(points=2)
def what_does_not_fit(t: Tester) -> None:
    """A name or a shape that does not fit raises ValueError, and nothing is written."""
    good, bad = "body.0.weight", "q7.weight"  # names that no text contains by chance
    for right in ((2,), (2, 3)):
        values = {good: numbers(t, 2), bad: numbers(t, *right)}
        for wrong in ("q8.weight", "q7", "body.q7.weight", "module.q7.weight", "Q7.weight"):
            like = {good: values[good], wrong: values[bad]}
            refused(t, values, like, wrong, "is not in the model")
        for shape in ((3,), (1,), (2, 1), (1, 2), (3, 2), ()):
            for names in ((good, bad), (bad, good)):
                like = values | {bad: numbers(t, *shape)}
                like = {name: like[name] for name in names}
                refused(t, values, like, bad, "has another shape")


def refused(t: Tester, values: dict, like: dict, wrong: str, why: str) -> None:
    """Load something that does not fit: a state for `like`, with the name `wrong` at fault."""
    first = {name: array for name, array in values.items() if name != wrong}
    before, saved = random_state(t, first), random_state(t, like)
    got = ask(t, values, before, saved, f" and {listed(values)}", should_raise=True)
    what, kind = f"{wrong} {why}", "shape" if wrong in values else "name"
    if got["raised"] is None:
        t.fail(
            f"accepted_{kind}",
            f"a ValueError: {what}",
            "no error",
            "(2,) and (2, 1) have as many entries, and are not equal. What do you compare, of whom?"
            if kind == "shape"
            else "Loaded quietly, it is never used. Whose names have to be among whose?",
        )
    value_error(t, got["raised"], f"a ValueError: {what}")
    if wrong not in got["raised"]["text"]:
        t.fail(
            "unnamed",
            f"a ValueError whose text has {wrong!r} in it",
            f"ValueError: {got['raised']['text'][:80]}",
            "Whoever reads it has a thousand parameters. What do they want to know first?",
        )
    if got["strangers"] or not is_same(got["state"], before):
        wanted, actual = show_both(before, got["state"])
        t.fail(
            "half_loaded",
            f"after the error, the state as before: {wanted}",
            actual,
            "The error came after something had been written. In which order do you work?",
        )
