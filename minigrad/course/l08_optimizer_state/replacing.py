"""Replacing a parameter on purpose, with and without its state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from minigrad.course.l08_optimizer_state import lesson
from minigrad.course.l08_optimizer_state.common import (
    drive,
    is_same,
    listed,
    numbers,
    value_error,
)
from minigrad.course.l08_optimizer_state.saving import random_state
from minigrad.grader.message import show, show_both
from minigrad.grader.tester import Tester

replace_parameter = lesson.exercise(
    "replace_parameter",
    difficulty=3,
    minutes=15,
    returns="the new Parameter",
    hints=(
        "Who knows the old one? The model by its name, the optimizer's list by the object, and the "
        "optimizer's state by the id. All three have to hear of it.",
        "dict.pop(key, None) takes an entry out and hands it to you, None if there was none. Look "
        "at the shapes before you change anything.",
        "new = Parameter(values); model[name] = new; in optimizer.parameters, put new where `p is "
        "old`; state = optimizer.state.pop(old.id, None); if keep_state and it is not None, it "
        "goes to optimizer.state[new.id]. Return new.",
    ),
)


def ask(
    t: Tester,
    values: dict,
    state: dict,
    name: str,
    new: np.ndarray,
    keep: bool,
    should_raise: bool = False,
) -> dict[str, Any]:
    """Call replace_parameter."""
    given = f"replace_parameter(model, optimizer, {name!r}, {show(new, bare=True)}, {keep}) with "
    given += f"{listed(values)}; optimizer.parameters holding {', '.join(reversed(values))}; "
    given += f"state {show(state, bare=True)}"
    arguments = (values, state, name, new, keep)
    return drive(t, "replace", *arguments, should_raise=should_raise, given=given)


def check_held(t: Tester, got: dict[str, Any], values: dict, name: str, new: np.ndarray) -> None:
    """Check who holds which Parameter afterwards."""
    wanted = f"a new Parameter in the model, with {name} = {show(new, bare=True)}"
    if got["raised"] is not None:
        text = f"ValueError: {got['raised']['text'][:80]}"
        t.fail("raised", wanted, text, "This is a legal replacement. Which condition is wrong?")
    if got["is_old"]:
        changed = not is_same(got["old_values"], values[name])
        t.fail(
            "same_object",
            wanted,
            "the old Parameter" + (" with new numbers in it" if changed else ""),
            "Asked for is another Parameter with an id of its own: Parameter(values) makes one.",
        )
    if not got["is_parameter"]:
        t.fail("no_parameter", wanted, f"{show(got['values'])} there", "Is it a Parameter?")
    if got["names"] != list(values):
        t.fail(
            "names",
            f"a model with the names {', '.join(values)}, in this order",
            f"{', '.join(map(str, got['names']))}",
            "Writing to a key that exists keeps its place in a dict.",
        )
    say = "The new one has the values that were given."
    t.close(got["values"], new, what=name, attempt=say)
    t.dtype(got["values"], new.dtype, say)
    if not got["id_is_new"]:
        t.fail(
            "old_id",
            "a new Parameter with an id of its own",
            "a new Parameter with an id that another one has",
            "Parameter(values) gives it an id. Why hand one over?",
        )
    if got["holds"] != list(values)[::-1]:
        key, attempt = "order", "Put it at the place of the old one."
        if "the old one" in got["holds"]:
            key = "orphan" if name not in got["holds"] else "both"
            attempt = (
                "step() would look after a Parameter that the model does not use any more."
                if key == "orphan"
                else "The old one is still in the list. By what did you find the place of the new?"
            )
        elif name not in got["holds"]:
            key, attempt = "not_held", "What is not in this list is never stepped."
        elif got["holds"].count(name) > 1 and len(got["holds"]) == len(values):
            key = "others"
            attempt = "It stands for others, too. Who may have the same numbers as the old one?"
        t.fail(
            key,
            f"optimizer.parameters holding {', '.join(reversed(values))}, the new one for {name}",
            f"holding {', '.join(got['holds'])}",
            attempt,
        )
    if not is_same(got["old_values"], values[name]):
        before, after = show_both(values[name], got["old_values"])
        t.fail(
            "old_changed",
            f"the old Parameter as it was, {before}",
            after,
            "Two names for one array: into which one do you write?",
        )
    if name in got["touched"]:
        say = "The old Parameter is as it was before: id, values, grad and requires_grad."
        t.fail("old_changed", "the old Parameter as it was before", "something new in it", say)
    if not got["returned_it"]:
        if got["returned"] is None:
            t.none("the new Parameter")
        t.fail(
            "returned",
            "the new Parameter",
            f"{show(got['returned'])}",
            "Return the very one that stands in the model.",
        )
    if got["grad"] is not None:
        t.fail("grad", "grad None", show(got["grad"]), "Whose gradient is that?")
    if not got["others_stay"] or got["touched"]:
        t.fail(
            "others",
            "the other parameters as they were, with values, grad and requires_grad",
            f"something new in {', '.join(got['touched'])}"
            if got["others_stay"]
            else "others in their places",
            "Only one of them is to be replaced.",
        )


def check_state(t: Tester, got: dict[str, Any], expected: dict, state: dict, name: str) -> None:
    """Check the optimizer's state afterwards."""
    wanted, found_text = show_both(expected, got["state"])
    if got["old_id_in_state"]:
        t.fail(
            "stale",
            f"state {wanted}, and none under the old id",
            f"state {found_text}, and some under the old id",
            "Nobody will ask for the old id again. Who takes its entry out?",
        )
    if got["strangers"]:
        t.fail(
            "strange_key",
            f"state {wanted}, under ids",
            f"the keys {', '.join(got['strangers'])}",
            "optimizer.state goes by p.id.",
        )
    if is_same(got["state"], expected):
        return
    state_after = got["state"]
    key, attempt = "value", "Whose state has changed, and in which line?"
    if not isinstance(state_after, dict) or is_same(state_after, {}):
        key, attempt = "all_lost", "The other parameters need theirs."
    elif name in expected and name not in state_after:
        key, attempt = "lost", "keep_state is True: under which id will step() look for it now?"
    elif name in state_after and name not in expected:
        had = name in state
        key = "kept" if had else "invented"
        attempt = (
            "keep_state is False: the new one begins without a past."
            if had
            else "The old one had no state. What is there to take over?"
        )
    t.fail(key, f"state {wanted}", f"state {found_text}", attempt)


def situations(t: Tester) -> Iterator[tuple[dict, dict, str]]:
    """Yield a model's values, state for two of its three parameters, and one of those two."""
    for name, values in (
        ("a", {name: numbers(t, 2) for name in "abc"}),
        ("b", {name: numbers(t, 2) for name in "abc"}),
        ("b", dict.fromkeys("abc", np.zeros(2))),  # such as three biases
    ):
        yield values, random_state(t, {n: values[n] for n in (name, "c")}), name


@replace_parameter.check(points=2)
def with_state(t: Tester) -> None:
    """With keep_state, the new one takes the old one's place and its state."""
    for values, state, name in situations(t):
        other = next(n for n in values if n not in state)
        for which in (name, other, "c"):
            new = numbers(t, 2)
            got = ask(t, values, state, which, new, True)
            check_held(t, got, values, which, new)
            check_state(t, got, state, state, which)


@replace_parameter.check(points=1)
def without_state(t: Tester) -> None:
    """Without, the new one starts anew, in another shape or dtype if need be."""
    for values, state, name in situations(t):
        rest = {n: slots for n, slots in state.items() if n != name}
        for new in (numbers(t, 2), numbers(t, 3), numbers(t, 2, 3), numbers(t).astype(np.float32)):
            got = ask(t, values, state, name, new, False)
            check_held(t, got, values, name, new)
            check_state(t, got, rest, state, name)


@replace_parameter.check(points=1, only_with=("with_state", "without_state"))
def state_that_does_not_fit(t: Tester) -> None:
    """With keep_state, values of another shape raise ValueError, and nothing is changed."""
    for values, state, name in situations(t):
        for shape in ((3,), (1,), (2, 1), (1, 2), ()):
            refused(t, values, state, name, numbers(t, *shape))
        refused(t, values, state, next(n for n in values if n not in state), numbers(t, 3))
    values = {name: numbers(t, 2, 3) for name in "abc"}
    refused(t, values, random_state(t, values), "a", numbers(t, 3, 2))


def refused(t: Tester, values: dict, state: dict, name: str, new: np.ndarray) -> None:
    """Check that keep_state refuses values that do not fit."""
    got = ask(t, values, state, name, new, True, should_raise=True)
    if got["raised"] is None:
        t.fail(
            "accepted_shape",
            f"a ValueError: {name} has the shape {values[name].shape}, values have {new.shape}",
            "no error",
            "With keep_state, two shapes have to fit. When is the right time to look?"
            if name in state
            else "With keep_state, two shapes have to fit, also where there is no state so far.",
        )
    wanted = f"a ValueError: {name} has the shape {values[name].shape}, values have {new.shape}"
    value_error(t, got["raised"], wanted)
    if not got["is_old"] or got["holds"] != list(values)[::-1]:
        t.fail(
            "half_done",
            "after the error, model and optimizer as they were",
            f"optimizer.parameters holding {', '.join(got['holds'])}, with the "
            f"{'old' if got['is_old'] else 'new'} one in the model",
            "First look whether it can be done, then do it.",
        )
    if not is_same(got["state"], state):
        before, after = show_both(state, got["state"])
        t.fail(
            "half_done",
            f"after the error, the state {before}",
            after,
            "First look whether it can be done, then do it.",
        )
