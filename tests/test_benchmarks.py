"""The harness of the benchmarks, with peers that are made up."""

import pytest

from benchmarks import case, fresh, harness, rows
from benchmarks.goals import Goal
from benchmarks.peers import PEERS, Peer
from benchmarks.process import PeerError


class FakeProcess:
    """Answers as a worker would; keeps the order of all calls of all peers."""

    calls: list

    def __init__(self, name, threads, caches):
        self.name, self.threads, self.is_closed = name, threads, False

    def ask(self, command, **arguments):
        FakeProcess.calls.append((self.name, command))
        return getattr(self, command)(**arguments)

    def version(self):
        if self.name == "jax":
            raise PeerError("its process ended: no such thing")
        return {"version": f"{self.name} 1.0"}

    def build(self, kind, settings):
        if kind == "only_pytorch" and self.name != "pytorch":
            return {"unsupported": True}
        if kind == "broken" and self.name == "minigrad":
            raise PeerError("ValueError: broken")
        wrong = kind == "wrong" and self.name == "minigrad"
        held = {"pytorch": 2_000_000, "minigrad": 1_500_000}[self.name]
        return {"first": 0.5, "numbers": [1.0, 3.0 if wrong else 2.0], "held": {"bytes": held}}

    def round(self, seconds):
        seen = sum(call == (self.name, "round") for call in FakeProcess.calls)
        unit = {"pytorch": 1e-3, "minigrad": 5e-4}[self.name]
        return {"median": seen * unit, "best": seen * unit / 2, "steps": 10}

    def drop(self):
        return {}

    def close(self):
        self.is_closed = True


@pytest.fixture
def fake(monkeypatch):
    """A harness over made-up peers, of which one is not installed and one does not start."""
    FakeProcess.calls = []
    packages = {"pytorch": "json", "minigrad": "csv", "jax": "html", "mygrad": "no_such_package"}
    peers = {
        name: Peer(name, name, package, "none", f"import {name}", f"first {name}", True)
        for name, package in packages.items()
    }
    for module in (harness, fresh):
        monkeypatch.setattr(module, "PEERS", peers)
    made = harness.Harness(
        packages,
        rounds=3,
        seconds=0.0,
        start=FakeProcess,
        once=lambda peer, row, threads, caches: {"pytorch": 2.0, "minigrad": 0.25}[peer],
        say=lambda line: None,
    )
    with made:
        yield made


def row(kind, **keywords):
    """A row of a kind that the made-up peers know."""
    return rows.Row(f"row-{kind}", f"row {kind}", kind, **keywords)


def test_run_rounds_interleave_peers(fake):
    fake.run(row("mlp"))
    order = [name for name, command in FakeProcess.calls if command == "round"]
    assert order == ["pytorch", "minigrad"] * 3


def test_run_all_peers_built_before_first_round(fake):
    fake.run(row("mlp"))
    commands = [command for _, command in FakeProcess.calls if command in ("build", "round")]
    assert commands == ["build"] * 2 + ["round"] * 6


def test_run_takes_median_of_rounds_and_best_of_all(fake):
    outcome = fake.run(row("mlp"))
    result = outcome["results"]["pytorch"]
    assert result["rounds"] == pytest.approx([1e-3, 2e-3, 3e-3])
    assert result["median"] == pytest.approx(2e-3)
    assert result["best"] == pytest.approx(5e-4)
    assert result["steps"] == 30


def test_status_names_missing_and_failing_peers(fake):
    assert fake.status["mygrad"] == "not installed"
    assert fake.status["jax"] == "does not start: its process ended: no such thing"
    assert list(fake.processes) == ["pytorch", "minigrad"]


def test_run_other_numbers_are_not_timed(fake):
    outcome = fake.run(row("wrong"))
    assert "number 1 is 3, pytorch has 2" in outcome["errors"]["minigrad"]
    assert list(outcome["results"]) == ["pytorch"]
    assert ("minigrad", "round") not in FakeProcess.calls


def test_run_failing_peer_leaves_the_others(fake):
    outcome = fake.run(row("broken"))
    assert outcome["errors"] == {"minigrad": "ValueError: broken"}
    assert list(outcome["results"]) == ["pytorch"]


def test_run_unsupported_row_is_no_error(fake):
    outcome = fake.run(row("only_pytorch"))
    assert outcome["errors"] == {}
    assert list(outcome["results"]) == ["pytorch"]


def test_run_stuck_peer_takes_no_part_in_later_rows(fake, monkeypatch):
    def stuck(self):
        if self.name == "minigrad":
            raise PeerError("no answer in 600 s")
        return {}

    monkeypatch.setattr(FakeProcess, "drop", stuck)
    process = fake.processes["minigrad"]
    fake.run(row("mlp"))
    assert process.is_closed
    assert list(fake.run(row("mlp"))["results"]) == ["pytorch"]


@pytest.mark.parametrize(
    ("values", "is_wrong"),
    [([1.0, 2.0], False), ([1.0005, 2.0], False), ([1.01, 2.0], True), ([1.0], True)],
)
def test_disagreements_tolerates_rounding_only(values, is_wrong):
    found = harness.disagreements({"pytorch": [1.0, 2.0], "minigrad": values})
    assert bool(found) == is_wrong


def test_disagreements_nan_is_wrong():
    assert harness.disagreements({"pytorch": [1.0], "minigrad": [float("nan")]})


def test_run_keeps_first_calls_and_bytes(fake):
    result = fake.run(row("mlp"))["results"]["minigrad"]
    assert (result["first"], result["bytes"]) == (0.5, 1_500_000)


def test_run_all_judges_goals(fake):
    wanted = [
        Goal("minigrad", at_most=0.6, over=("pytorch",)),
        Goal("minigrad", at_most=0.4, over=("pytorch",)),
        Goal("minigrad", faster=1.9),
        Goal("minigrad", faster=2.1),
        Goal("minigrad", at_most=1, over=("pytorch",), figure="bytes"),
        Goal("minigrad", at_most=1, over=("pytorch", "jax")),  # jax does not start
        Goal("compiled", faster=1),
    ]
    (entry,) = fake.run_all([row("mlp", goals=tuple(wanted))])
    told = entry["goals"]
    assert [goal["met"] for goal in told] == [True, False, True, False, True, None, None]
    assert told[0]["ratio"] == told[0]["ratio_of_best"] == pytest.approx(0.5)
    assert told[2]["ratio"] == pytest.approx(2)
    assert told[2]["against"] == "pytorch"
    assert told[4]["ratio"] == pytest.approx(0.75)


def test_run_all_judges_seconds_of_fresh_processes(fake):
    goals = (Goal("minigrad", under=0.5), Goal("minigrad", under=0.2))
    (entry,) = fake.run_all([row("import", goals=goals)])
    assert [goal["met"] for goal in entry["goals"]] == [True, False]
    assert entry["results"]["pytorch"]["rounds"] == [2.0] * 3


def test_fresh_counts_the_first_figure_only_if_it_is_to_be_cold(fake, monkeypatch):
    asked = []
    monkeypatch.setattr(fake, "once", lambda peer, row, *_: asked.append(peer) or 1.0)
    fake.run(row("calls", settings={"cold": True}, rounds=2))
    assert len(asked) == 4
    fake.run(row("calls", settings={"cold": False}, rounds=2))
    assert len(asked) == 10


def test_exit_closes_processes(fake):
    processes = list(fake.processes.values())
    with fake:
        pass
    assert all(process.is_closed for process in processes)


def test_measure_times_steps_by_the_clock():
    now = 0.0

    def step():
        nonlocal now
        now += 0.25

    resets = []
    made = case.Case(step, lambda: resets.append(now), list)
    found = case.measure(made, 2.0, clock=lambda: now)
    assert resets == [0.0]
    assert found["median"] == found["best"] == pytest.approx(0.25)
    assert found["steps"] == 8


def test_measure_waits_for_work_behind_the_caller():
    now, waiting = 0.0, 0

    def step():
        nonlocal waiting
        waiting += 1

    def finish():
        nonlocal now, waiting
        now, waiting = now + 0.5 * waiting, 0

    made = case.Case(step, case.nothing, list, finish)
    found = case.measure(made, 3.0, clock=lambda: now)
    assert found["median"] == found["waited"] == pytest.approx(0.5)


def test_training_numbers_start_from_a_reset():
    state = {"loss": 3.0}

    def step():
        state["loss"] /= 2
        return state["loss"]

    made = case.training(step, lambda: state.update(loss=16.0))
    step()
    assert made.numbers() == [8.0, 4.0, 2.0, 1.0, 0.5]


def test_first_calls_takes_two_and_waits():
    now, waiting = 0.0, 0

    def step():
        nonlocal waiting
        waiting += 1

    def finish():
        nonlocal now, waiting
        now, waiting = now + 0.5 * waiting, 0

    made = case.Case(step, case.nothing, list, finish)
    assert case.first_calls(made, clock=lambda: now) == pytest.approx(1.0)


def test_rows_have_unique_names_and_goals_over_known_peers():
    names = [entry.name for entry in rows.ROWS]
    assert len(set(names)) == len(names)
    assert {p for entry in rows.ROWS for goal in entry.goals for p in goal.over} <= set(PEERS)


def test_chosen_unknown_row_names_the_known_ones():
    with pytest.raises(SystemExit, match="no row named x; there are: tiny-ops"):
        rows.chosen(["x"], quick=False)
