"""State by name, saved: copies, under names and not under ids or places."""

from __future__ import annotations

import numpy as np

from minigrad.course.l08_optimizer_state import lesson
from minigrad.course.l08_optimizer_state.common import is_same, numbers
from minigrad.grader.compare import agree
from minigrad.grader.message import show, show_both
from minigrad.grader.tester import Tester

state_dict = lesson.exercise(
    "state_dict",
    difficulty=2,
    minutes=10,
    returns="a dict {name: {'momentum': array}}",
    hints=(
        "The state goes by id, and what you return goes by name. Who knows both, the id and the "
        "name of a parameter?",
        "Walk over model.items(): p.id tells whether there is state for this name. If there is "
        "none, the name is left out.",
        "For each name and p of the model, where p.id is in optimizer.state: a new dict with a "
        "copy of each array in optimizer.state[p.id].",
    ),
)


def random_values(t: Tester, names: str = "abc") -> dict[str, np.ndarray]:
    """Return a model's values: arrays of one shape, so that shapes do not reveal a mix-up."""
    return {name: numbers(t, 2) for name in names}


def mixed_values(t: Tester) -> dict[str, np.ndarray]:
    """Return a model's values, of different shapes and dtypes."""
    dtypes = {"a": (2, 3), "b": (), "c": (2,), "d": (1, 2)}
    values = {name: numbers(t, *shape) for name, shape in dtypes.items()}
    return values | {"c": values["c"].astype(np.float32)}


def random_state(t: Tester, like: dict[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """Return momentum for these values."""
    return {
        name: {"momentum": np.asarray(t.random.standard_normal(array.shape)).astype(array.dtype)}
        for name, array in like.items()
    }


@state_dict.check(points=2)
def saved_by_name(t: Tester) -> None:
    """It gives copies of the state, by name, for those that have some."""
    values = random_values(t)
    check(t, values, random_state(t, {name: values[name] for name in "ca"}))
    values = mixed_values(t)
    state = random_state(t, {name: values[name] for name in "dabc"})
    state["d"]["momentum"] *= 0
    check(t, values, state, "b")
    check(t, values, {})
    alike = dict.fromkeys("abc", np.zeros(2))  # equal numbers do not reveal their owner
    check(t, alike, random_state(t, {name: alike[name] for name in "ca"}))


def check(t: Tester, values: dict, state: dict, frozen: str = "") -> None:
    """Save a model's state and compare it."""
    given = f"state_dict(model, optimizer): names {', '.join(values)}"
    given += f" ({frozen} is frozen)" if frozen else ""
    given += f"; state (by name): {show(state, bare=True)}"
    got = t.drive("save", values, state, list(frozen), given=given)
    wanted = {name: state[name] for name in values if name in state}
    saved = got["saved"]
    if saved is None:
        t.none(show(wanted, bare=True))
    if not isinstance(saved, dict):
        t.fail("no_dict", show(wanted, bare=True), show(saved), "Return a dict.")
    if got["mixed"]:
        t.fail(
            "kept",
            show(wanted, bare=True),
            "what a call for another model returned is in it",
            "What outlives a call in your code: a default argument, a global?",
        )
    if not is_same(saved, wanted):
        key, attempt = "value", "Which name belongs to which id? The model tells."
        kinds = {
            type(value).__name__
            for slots in saved.values()
            if isinstance(slots, dict)
            for value in slots.values()
        }
        if saved.keys() & got["ids"].values():
            key = "by_id"
            attempt = "These keys are ids. In tomorrow's process the parameters have other ids."
        elif any(isinstance(name, int) for name in saved):
            key = "by_place"
            attempt = "These keys are places in a list. What if the order is another tomorrow?"
        elif set(saved) == set(values) != set(wanted):
            key, attempt = "too_many", "A parameter without state is left out. Which one is it?"
        elif not all(isinstance(slots, dict) for slots in saved.values()):
            key, attempt = "flat", "Per name a dict, {'momentum': array}: Adam keeps more than one."
        elif saved.keys() == wanted.keys() and kinds - {"ndarray"}:
            t.fail(
                "no_array",
                f"{show(wanted, bare=True)} with arrays in it",
                f"{' and '.join(sorted(kinds))} in place of the arrays",
                "A copy of an array is an array: a.copy().",
            )
        elif is_same(saved, {name: wanted[name] for name in wanted if name in saved}):
            key, attempt = "missing", "Whatever has state is saved. What sets apart what is not?"
        elif len(saved) > 1 and any(
            is_same(saved, dict.fromkeys(saved, slots)) for slots in wanted.values()
        ):
            key, attempt = "one_for_all", "All names show one state. How many inner dicts are made?"
        elif saved.keys() == wanted.keys() and all(
            agree(saved[name].get("momentum"), wanted[name]["momentum"], rtol=1e-3)
            for name in wanted
        ):
            key, attempt = "rounded", "A copy is the same bit for bit. Which digits has yours lost?"
            for name in wanted:
                copied, right = saved[name]["momentum"], wanted[name]["momentum"]
                if copied.dtype != right.dtype:
                    here = f"{name}: momentum of dtype"
                    attempt = "A copy has the dtype of what it copies. What else does your call do?"
                    t.fail("dtype", f"{here} {right.dtype}", f"{here} {copied.dtype}", attempt)
        t.fail(key, *show_both(wanted, saved), attempt)
    if not is_same(got["later"], wanted):
        kept, changed = show_both(wanted, got["later"])
        t.fail(
            "alias",
            f"{kept}, also after the next step",
            f"{changed} after the next step",
            "The next step wrote into your checkpoint. Whose arrays are in it?",
        )
    stepped = {
        name: {"momentum": np.asarray(slots["momentum"] + 1.0, slots["momentum"].dtype)}
        for name, slots in state.items()
    }
    t.given += "; then a step, and state_dict again"
    if not is_same(got["kept"], stepped):
        before, after = show_both(stepped, got["kept"])
        t.fail(
            "state_lost",
            f"optimizer.state as the step made it: {before}",
            after,
            "Training goes on after a checkpoint. Which line takes something away?",
        )
    if not is_same(got["again"], {name: stepped[name] for name in wanted}):
        t.fail(
            "kept",
            *show_both(stepped, got["again"]),
            "It is called for each checkpoint. What of the first one does it go on returning?",
        )
