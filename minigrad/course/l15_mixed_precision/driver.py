"""Runs beside the learner's code for the checks of lesson 15: a GradScaler, master copies."""

from typing import Any

import numpy as np

from minigrad.course.objects import Optimizer, Parameter


def plain(value):
    """Return a copy of an array; anything else unchanged."""
    return value.copy() if isinstance(value, np.ndarray) else value


class Variable:
    """A loss as the engine has it: it has arithmetic, also in place, and is no number."""

    def __init__(self, value, requires_grad=True):
        self.value = value
        self.requires_grad = requires_grad

    def __mul__(self, factor):
        """Return another Variable."""
        return Variable(self.value * factor, self.requires_grad)

    __rmul__ = __mul__

    def __truediv__(self, factor):
        """Return another Variable."""
        return Variable(self.value / factor, self.requires_grad)

    def detach(self):
        """Return another Variable, from which no backward pass goes on."""
        return Variable(self.value, False)

    def item(self):
        """Return the number."""
        return self.value

    def numpy(self):
        """Return the number in an array."""
        return np.array(self.value)

    def __imul__(self, factor):
        """Change this one."""
        self.value *= factor
        return self


class Stepper(Optimizer):
    """An Optimizer whose step returns something, as those of other libraries do."""

    def step(self) -> Any:
        """Update the parameters."""
        super().step()
        return "stepped"


def new_optimizer(n):
    """Return an Optimizer of n Parameters, these, and for each step, copies of the gradients."""
    parameters, seen = [Parameter(np.zeros(1)) for _ in range(n)], []
    optimizer = Stepper([*parameters])
    optimizer.update = lambda: seen.append([plain(p.grad) for p in parameters])
    return optimizer, parameters, seen


def iterate(mine, numbers, rounds):
    """Make a GradScaler, run iterations with it, and return a row for each.

    A round says what a script does in it: {"loss": number, "gradients": for each optimizer a list
    of arrays, into which is written, or None, "unscale": for each optimizer how often unscale_ is
    called before step, "limit": None, or to which size the script then cuts all entries of all
    gradients}.
    """
    scaler = mine.GradScaler(**numbers)
    made = [new_optimizer(len(one)) for one in rounds[0]["gradients"]]
    optimizers = [optimizer for optimizer, *_ in made]
    rows = []
    for now in rounds:
        loss = Variable(now["loss"])
        scaled = scaler.scale(loss)
        row: dict[str, Any] = {
            "loss": plain(scaler.scale(now["loss"])),
            "variable": plain(scaled.value) if isinstance(scaled, Variable) else None,
            "goes_on": isinstance(scaled, Variable) and scaled.requires_grad is True,
            "left": plain(loss.value),
            "optimizers": [],
            "returned": [],
        }
        held = []
        for (_, parameters, seen), gradients in zip(made, now["gradients"], strict=True):
            seen.clear()
            for p, g in zip(parameters, gradients, strict=True):
                p.grad = g
            held.append([p.grad for p in parameters])
        for (optimizer, parameters, _), calls in zip(made, now["unscale"], strict=True):
            one: dict[str, Any] = {"raised": None, "unscaled": None}
            for call in range(calls):
                if call:
                    try:
                        row["returned"].append(("unscale_", plain(scaler.unscale_(optimizer))))
                    except Exception as error:
                        one["raised"] = [kind.__name__ for kind in type(error).__mro__]
                else:
                    row["returned"].append(("unscale_", plain(scaler.unscale_(optimizer))))
                    one["unscaled"] = [plain(p.grad) for p in parameters]
            one["after_second"] = [plain(p.grad) for p in parameters]
            row["optimizers"].append(one)
        if now["limit"] is not None:
            for g in (g for arrays in held for g in arrays if g is not None):
                np.clip(g, -now["limit"], now["limit"], out=g)
        row["again"] = plain(scaler.scale(now["loss"]))  # a second loss, as of two models
        for (optimizer, parameters, seen), one, arrays in zip(
            made, row["optimizers"], held, strict=True
        ):
            row["returned"].append(("step", plain(scaler.step(optimizer))))
            one["steps"] = [list(gradients) for gradients in seen]
            one["after"] = [plain(p.grad) for p in parameters]
            one["held"] = [plain(g) for g in arrays]
            left = optimizer.parameters
            one["same"] = isinstance(left, list) and [*map(id, left)] == [*map(id, parameters)]
        is_dict = isinstance(scaler.found, dict)
        for optimizer, one in zip(optimizers, row["optimizers"], strict=True):
            bad = scaler.found.get(optimizer) if is_dict else None
            one["found"] = bool(bad) if isinstance(bad, bool | np.bool_ | int) else None
            one["entries"] = len(scaler.found) if is_dict else None
        another = mine.GradScaler(**numbers)  # made while this one is in an iteration
        row["another"] = {
            "get_scale()": plain(another.get_scale()),
            "growth_tracker": plain(another.growth_tracker),
            "len(found)": len(another.found) if isinstance(another.found, dict) else None,
            "raised": None,
        }
        for optimizer, parameters, _ in made[:1]:
            for p in parameters:
                p.grad = np.ones(1)
            try:
                another.unscale_(optimizer)
            except RuntimeError as error:
                row["another"]["raised"] = str(error)
        row["returned"].append(("update", plain(scaler.update())))
        row["scale"], row["tracker"] = plain(scaler.get_scale()), plain(scaler.growth_tracker)
        row["found"] = len(scaler.found) if isinstance(scaler.found, dict) else None
        rows.append(row)
    return rows


def failing_step(mine):
    """Make a step of an optimizer that raises an ArithmeticError; return whether that arrives."""
    optimizer, (p,), _ = new_optimizer(1)
    p.grad = np.ones(1)
    optimizer.update = lambda: 1 // 0
    try:
        mine.GradScaler().step(optimizer)
    except ArithmeticError:
        return True
    return False


def master_steps(mine, half, gradients, learning_rate, writes, anew=()):
    """Call master_step once for each gradient; return a row for each call.

    writes: {number of a call: array}, what somebody writes to the parameter before that call; nan
    leaves an entry as it is. anew: the calls before which the state is a new {}. Between the calls
    another parameter of the same shape, with a state of its own, makes its steps.
    """
    state, rows = {}, []
    other, others_state = np.full(half.shape, 5, np.float16), {}
    for call, gradient in enumerate(gradients):
        if call in anew:
            state = {}
        new = writes.get(call)
        if new is not None:
            half[...] = np.where(np.isnan(new), half, new)
        returned = mine.master_step(half, gradient, state, learning_rate)
        rows.append(
            {
                "half": half.copy(),
                "master": plain(state.get("master")) if isinstance(state, dict) else None,
                "names": sorted(map(str, state)) if isinstance(state, dict) else None,
                "is_half": state.get("master") is half if isinstance(state, dict) else False,
                "gradient": gradient.copy(),
                "returned": plain(returned),
            }
        )
        mine.master_step(other, np.full(half.shape, 0.5, np.float32), others_state, learning_rate)
        now = [half, state.get("master") if isinstance(state, dict) else None]
        rows[-1]["now"] = [plain(x) for x in now]
    return rows


def many_master_steps(mine, half, gradient, learning_rate, n):
    """Call master_step n times with the same gradient; return the parameter afterwards."""
    state = {}
    for _ in range(n):
        mine.master_step(half, gradient, state, learning_rate)
    return half


def stage(mine, place, s):
    """Run one stage of the bug hunt alone; return what it leaves in s."""
    mine.STAGES[place](s)
    return {name: plain(value) for name, value in s.items()}


def again(mine, g, names, scale, factor):
    """Call find_underflow three times with one array under several names; return all counts.

    The second call has another scale. Before the third the array is multiplied by a factor.
    """
    gradients = dict.fromkeys(names, g)
    counts = [mine.find_underflow(gradients), mine.find_underflow(gradients, scale)]
    g *= factor
    return [*counts, mine.find_underflow(gradients)]
