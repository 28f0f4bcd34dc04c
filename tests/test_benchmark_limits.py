"""What the benchmarks count, measure and promise about the machine, apart from the peers."""

import pytest

from benchmarks import denormals, fresh, limits, rates, rows
from benchmarks.goals import Goal
from benchmarks.process import last_line


def test_goal_in_words():
    assert Goal("compiled", faster=18, over=("pytorch",)).text == "18 × faster than PyTorch eager"
    assert Goal("compiled", faster=1).text == "faster than every peer"
    assert Goal("minigrad", under=0.5).text == "under 0.5 s"


def test_limit_of_a_step_by_hand():
    # 3 inputs, 2 outputs, 5 rows: 8 parameters. Forward and the gradient of the weights are 60
    # operations each; each parameter and its two moments are read and written.
    work = limits.mlp([3, 2], 5)
    assert work == (5 * (3 * 4 + 8) + 8 * 24, 120)
    made = rows.Row("r", "r", "mlp", {"sizes": [3, 2], "batch": 5})
    machine = {"copy": [[100, 1e3], [200, 1e2], [300, 1e1]], "blas": 1e6}
    told = limits.limit(made, machine)
    assert told["seconds"] == pytest.approx(292 / 1e2)
    assert told["by"] == "bytes"
    assert limits.limit(made, {**machine, "blas": 1.0})["seconds"] == pytest.approx(120)


def test_every_row_with_a_builder_has_a_limit_but_the_tiny_ops():
    machine = {"copy": [[1, 1e9]], "blas": 1e9}
    without = {r.kind for r in rows.ROWS if limits.limit(r, machine) is None}
    assert without == {"chain", *fresh.KINDS}


def test_rates_of_this_machine_are_positive():
    assert rates.copy_bandwidth(rates.to_another, 2**20, 1, seconds=0.0) > 0
    assert rates.copy_bandwidth(rates.to_itself, 2**20, 2, seconds=0.0) > 0
    assert rates.blas_rate(seconds=0.0) > 0


def test_flush_makes_denormals_zero():
    script = (
        "from benchmarks import denormals; done = denormals.flush(); import numpy as np; "
        "tiny = np.full(9, 1e-40, np.float32) * np.float32(1); print(done == (not tiny.any()))"
    )
    assert last_line(["-W", "ignore", "-c", script], 1) == "True"
    assert denormals.FLUSH == 1 << 15 | 1 << 6  # FTZ and DAZ


def test_flush_makes_denormals_zero_in_compiled_steps():
    script = (
        "from benchmarks import denormals; done = denormals.flush(); import minigrad as mg; "
        "step = mg.compile(lambda x: x * 1.5); x = mg.full((9,), 1e-40); step(x); "
        "print(done == (not step(x).numpy().any()))"
    )
    assert last_line(["-W", "ignore", "-c", script], 1) == "True"
