"""What the check of lesson 17's target network sees, and that ways to write a right one pass it."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import minigrad as mg
from minigrad.course.l17_capstone import engine_driver
from minigrad.course.l17_capstone.pole import small_game, stands_still

MUTANTS = runpy.run_path(str(Path(__file__).parents[1] / "mutants" / "m17_capstone.py"))
STILL, MOVED = MUTANTS["STILL"], MUTANTS["MOVED"]
CLONE = "net.clone()"
SLOWLY = f"""{STILL}
            with mg.no_grad():
                for slow, quick in zip(target.parameters(), net.parameters(), strict=True):
                    slow.copy_(slow * 0.99 + quick * 0.01)"""
BY_ARRAYS = """one, two = target[0], target[2]
            hidden = np.maximum(there.numpy() @ one.weight.numpy().T + one.bias.numpy(), 0)
            best = mg.variable((hidden @ two.weight.numpy().T + two.bias.numpy()).max(axis=1))"""
DOUBLE = """with mg.no_grad():
                chosen = net(there).numpy().argmax(axis=1)[:, None]
                best = mg.gather(target(there), mg.variable(chosen), 1).squeeze(1)"""
BEHIND = """kept = target if step % 40 else net.clone()
            target.load_state_dict(kept.state_dict())
            with mg.no_grad(): best = target(there).max(axis=1)"""


class Failed(Exception):
    """The check failed; its text is the key."""


def verdict(target, ask):
    """Return the key with which the check refuses a way to write the target; '' if it does not."""
    names = {"mg": mg, "np": np}
    exec(MUTANTS["QUICK"].format(target=target, ask=ask, reset="seed=seed"), names)
    game = small_game(np.random.default_rng(0), 2, 2, (0, 9))
    told = engine_driver.balance_pole(SimpleNamespace(**names), game, 300, 1, 2, [], 1)

    def fail(key, *_):
        raise Failed(key)

    try:
        stands_still(SimpleNamespace(fail=fail), told["asked"])
    except Failed as failed:
        return str(failed)
    assert told["asked"]["steps"] > 20  # it saw the network learn
    return ""


@pytest.mark.parametrize(
    ("target", "ask"),
    [
        (CLONE, STILL),
        (CLONE, MOVED),
        (CLONE, SLOWLY),
        (CLONE, BY_ARRAYS),
        (CLONE, DOUBLE),
        ("copy.deepcopy(net)", STILL),
        ("copy.deepcopy(net)", BEHIND),
        ("copy.deepcopy(net)", SLOWLY),
        ("copy.deepcopy(net).requires_grad_(False)", MOVED),
        (CLONE, "best = target(there).detach().max(axis=1)"),
    ],
)
def test_target_with_memory_of_its_own_passes(target, ask):
    assert verdict(target, ask) == ""


@pytest.mark.parametrize(
    ("target", "ask", "key"),
    [
        ("net", DOUBLE, "target_shares"),
        ("net", STILL, "target_shares"),
        ("copy.deepcopy(net)", MOVED, "target_gradients"),
    ],
)
def test_target_that_moves_is_named(target, ask, key):
    assert verdict(target, ask) == key


def test_calls_of_modules_are_as_before_after_a_training_that_raises():
    before = mg.nn.Module.__call__
    with pytest.raises(NameError):
        verdict(CLONE, "best = no_such_name")
    assert mg.nn.Module.__call__ is before
