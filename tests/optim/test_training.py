"""Whole training: memory stays flat, and the worked example reaches its accuracy."""

import gc
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import minigrad as mg
from minigrad import nn
from tests.optim.reference import CASES

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name):
    """A script of examples/ as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", sorted({row.kind for row in CASES}))
def test_training_keeps_nodes_and_bytes_flat(kind):
    gc.collect()
    before = mg.memory.stats()["live_nodes"]  # what other tests still hold
    marks = load("steady").measure(kind, steps=1000, every=250)
    assert len(marks) == 4
    assert {mark.live_nodes for mark in marks} == {before}
    assert len({mark.current_bytes for mark in marks}) == 1
    assert len({mark.reserved_bytes for mark in marks}) == 1
    assert len({mark.system_allocations for mark in marks}) == 1


def test_training_with_clones_and_clipping_makes_no_system_allocation():
    gc.collect()  # what earlier tests left must not go away in between
    model, x = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), mg.ones((16, 4))
    optimizer = mg.optim.Adam(model, learning_rate=1e-3)
    seen = []
    for _ in range(30):
        optimizer.zero_grad()
        (model(x) ** 2).mean().backward()
        mg.optim.clip_grad_norm_(model, 0.1)
        optimizer.step()
        target = model.clone()
        target(x)
        model.valid()(x)
        seen.append(mg.memory.stats())
    assert len({s["system_allocations"] for s in seen[3:]}) == 1
    assert len({s["current_bytes"] for s in seen[3:]}) == 1


def test_a_dropped_model_and_optimizer_free_their_memory_at_once():
    x = mg.ones((16, 4))

    def run():
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        optimizer = mg.optim.Adam(model, learning_rate=1e-3)
        for _ in range(2):
            optimizer.zero_grad()
            (model(x) ** 2).mean().backward()
            optimizer.step()
        model.valid()(x)

    run()
    gc.collect()
    before = mg.memory.stats()["current_bytes"]
    gc.disable()
    try:
        run()
        gc.collect()
        assert mg.memory.stats()["current_bytes"] == before
    finally:
        gc.enable()


@pytest.mark.parametrize("seed", range(5))
def test_digits_are_told_apart(seed):
    result = load("digits").train(seed)
    assert result.accuracy >= 0.97
    assert len(result.wrong[1]) == round(360 * (1 - result.accuracy))
    assert result.losses[-1] < result.losses[0] / 2


def test_digits_example_runs_as_a_script_and_draws(tmp_path):
    picture = tmp_path / "digits.png"
    script = [sys.executable, EXAMPLES / "digits.py", "--epochs", "2", "--plot", picture]
    done = subprocess.run(script, capture_output=True, text=True, check=True, timeout=300)
    assert "held-out accuracy 9" in done.stdout
    assert picture.stat().st_size > 10_000


def test_digits_example_reports_in_text_without_tqdm(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    report, close = load("digits").progress_bar(4)
    report(1, 0.5, 0.9)
    close()
    assert "[##########          ] 2/4  loss 0.500  held out 90.0%" in capsys.readouterr().out


def test_digits_example_says_when_it_cannot_draw(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert load("digits").plot(None, "nowhere.png") is False
