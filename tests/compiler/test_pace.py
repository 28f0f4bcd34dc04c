"""Compiled steps on a busy machine: when several threads are tried, and when one alone."""

import random

import pytest

from minigrad.compiler.call.pace import FEWEST, MOST, TRIAL, Pace


def run(pace, together, alone, calls):
    """Make calls of these lengths; return their sum, and how many ran on one thread."""
    total, n_alone = 0.0, 0
    for _ in range(calls):
        seconds = alone() if pace.is_alone else together()
        n_alone += pace.is_alone
        total += seconds
        pace.note(seconds)
    return total, n_alone


def about(seconds, seed=0):
    rng = random.Random(seed)
    return lambda: seconds * rng.uniform(0.8, 1.2)


def calm_pace():
    pace = Pace()
    run(pace, about(1.0), about(1.6), 50)
    return pace


def test_on_a_calm_machine_all_calls_use_all_threads():
    pace = Pace()
    pace.note(50.0)  # the first call finds cold caches
    assert run(pace, about(1.0), about(1.6), 2000)[1] == 0


def test_calls_that_are_late_now_and_then_change_nothing():
    rng = random.Random(1)
    total, _ = run(calm_pace(), lambda: 5.0 if rng.random() < 0.05 else 1.0, about(1.6), 1000)
    assert total < 1.3 * 1000  # 1.2 are theirs


def test_on_a_busy_machine_one_thread_runs_nearly_all_calls():
    total, n_alone = run(calm_pace(), about(5.0), about(2.0), 1000)
    assert n_alone > 950
    assert total < 1.15 * 2.0 * 1000


def test_threads_come_back_when_the_machine_is_calm_again():
    pace = calm_pace()
    run(pace, about(5.0), about(2.0), 3000)
    run(pace, about(1.0), about(1.6), MOST)
    assert run(pace, about(1.0), about(1.6), 1000)[1] == 0


def test_a_machine_on_which_all_is_slow_now_stays_with_all_threads():
    n_alone = run(calm_pace(), about(10.0), about(16.0), 2000)[1]
    assert n_alone <= 6 * TRIAL  # ever fewer trials: after 8, 40, 104, ... calls


@pytest.mark.parametrize("seed", range(5))
def test_a_trial_that_is_disturbed_decides_for_a_few_calls_alone(seed):
    rng = random.Random(seed)
    pace = calm_pace()
    total, _ = run(
        pace,
        lambda: rng.choice([1.0, 3.0, 8.0]),  # who waits for a thread waits for its slice
        lambda: rng.choice([1.6, 1.6, 1.6, 8.0]),
        4000,
    )
    assert total / 4000 < 1.15 * 3.2  # the mean of one thread; of several: 4.0


@pytest.mark.parametrize("seconds", [0.0, float("inf")])
def test_clocks_that_stand_or_jump_do_no_harm(seconds):
    pace = calm_pace()
    for _ in range(FEWEST + 10):
        pace.note(seconds)
    run(pace, about(1.0), about(1.6), 2 * MOST)
    assert run(pace, about(1.0), about(1.6), 200)[1] in range(200)
