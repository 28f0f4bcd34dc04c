"""`python -m benchmarks.gpu`: its checks on the simulator, its figures over a driver's double."""

import re

import pytest

from benchmarks.gpu import __main__ as command
from benchmarks.gpu import (
    ahead,
    bandwidth,
    check,
    launches,
    products,
    report,
    sanitizer,
    steps,
    timing,
)
from minigrad.devices.gpu.driver import state as cuda_state
from tests.devices.gpu.doubles import doubled

PLAIN = ["--check", "--dry-run", "--quick", "--ops", "tanh", "matmul", "softmax_row", "take"]


def test_without_a_gpu_it_says_so_and_records_nothing(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(cuda_state, "why_not", lambda: "no GPU at all")
    out = tmp_path / "gpu.md"
    assert command.main(["--check", "--bench", "--out", str(out)]) == 2
    assert "nothing is recorded: no GPU at all" in capsys.readouterr().out
    assert not out.exists()


def test_dry_run_checks_on_the_simulator(capsys):
    assert command.main(PLAIN) == 0
    said = capsys.readouterr().out
    assert re.search(r"operations and gradients: [5-9]\d* comparisons, ok", said)
    assert "random numbers: 5 comparisons, ok" in said
    assert "kernels of one's own: 1 comparisons, ok" in said
    assert "Correct" in said


def test_dry_run_finds_what_is_wrong(monkeypatch, capsys):
    true_results = check.results

    def off(op, arrays, attributes, device):
        found = true_results(op, arrays, attributes, device)
        return [found[0] * (1.001 if device == "simt" else 1), *found[1:]]

    monkeypatch.setattr(check, "results", off)
    assert command.main(PLAIN) == 1
    said = capsys.readouterr().out
    assert "WRONG" in said
    assert "tanh float32" in said


def test_dry_run_finds_gradients_that_are_missing(monkeypatch, capsys):
    true_results = check.results

    def without(op, arrays, attributes, device):
        found = true_results(op, arrays, attributes, device)
        return found if device == "cpu" else [found[0], *(None for _ in found[1:])]

    monkeypatch.setattr(check, "results", without)
    assert command.main(["--check", "--dry-run", "--quick", "--ops", "tanh"]) == 1
    assert "a gradient is missing" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [[], ["--bench", "--dry-run"], ["--check", "--dry-run", "--ops", "tnah"]]
)
def test_arguments_that_make_no_sense_are_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        command.main(arguments)
    assert capsys.readouterr().err


def test_kernels_are_compiled_ahead_where_everything_is_checked_on_a_gpu(monkeypatch, tmp_path):
    done = []
    monkeypatch.setattr(cuda_state, "why_not", lambda: None)
    monkeypatch.setattr(ahead, "compile_all", lambda place, names: done.append((place, names)))
    monkeypatch.setattr(command, "run_checks", lambda place, options: done.append("checks") or [])
    monkeypatch.setattr(sanitizer, "run", lambda seconds: ("", True))
    monkeypatch.setattr(report, "described", lambda: "A GPU.")
    for arguments in (["--check"], ["--check", "--quick"], ["--check", "--dry-run"]):
        command.main([*arguments, "--out", str(tmp_path / "gpu.md")])
    assert done == [("cuda", None), "checks", "checks", "checks"]


@pytest.fixture
def device(monkeypatch):
    """A device over a double, on which every measurement runs the work once."""

    def once(device, function, *_):
        function()
        device.synchronize()
        return 1e-3

    for module in (bandwidth, products, launches):
        for name in ("seconds_on_gpu", "seconds_to_ask"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, once)
    monkeypatch.setattr(bandwidth, "ELEMENTS", 1 << 15)
    monkeypatch.setattr(products, "SHAPES", ((8, 4, 8),))
    monkeypatch.setattr(launches, "_packed", lambda device: lambda: None)
    monkeypatch.setattr(launches, "_by_numba", lambda: lambda: None)
    monkeypatch.setattr(steps, "STEPS", {"tiny": ("mlp", ([4, 3, 2], 2))})
    monkeypatch.setattr(steps, "SECONDS", 0.01)
    monkeypatch.setattr(steps.importlib.util, "find_spec", lambda name: None)
    with doubled() as found:
        yield found


def test_every_section_of_figures_runs_and_is_written(device, monkeypatch):
    sections = command.run_bench(device, started=1e18)
    assert {title: stopped for title, (_, stopped) in sections.items()} == dict.fromkeys(
        command.SECTIONS
    )
    monkeypatch.setattr(cuda_state, "gpu_name", lambda: "A GPU")
    found = check.Checked("a check", 3, 0.5, ["x: wrong"])
    page = report.text([found], "memory is clean", sections)
    assert page.startswith("# On a GPU\n")
    for part in ("A GPU; ", "| a check | 3 | 0.5 | 1 |", "- a check: x: wrong", "memory is clean"):
        assert part in page
    assert "| x + y | 0.3932 GB/s | 150% | at least 85%: met |  |" in page
    assert "at most 15: missed" in page


def test_copy_is_counted_both_ways_and_gives_its_memory_back(device):
    assert bandwidth.copy_rate(device) == 8 * bandwidth.ELEMENTS / 1e-3
    assert device.pool.current_bytes == 0
    assert not device.pool.in_use()


def test_section_that_fails_leaves_the_others(monkeypatch):
    def stops(device):
        yield timing.Row("one", 1.0, "s")
        raise RuntimeError("a fault")

    monkeypatch.setattr(command, "SECTIONS", {"A": stops, "B": lambda device: []})
    sections = command.run_bench(None, started=1e18)
    assert sections["A"][1] == "RuntimeError: a fault"
    assert [row.what for row in sections["A"][0]] == ["one"]
    assert sections["B"] == ([], None)


def test_goals_are_shares_or_limits():
    assert timing.Row("", 1, "", 0.9, 0.85).is_met()
    assert not timing.Row("", 1, "", 0.8, 0.85).is_met()
    assert timing.Row("", 14, "µs", None, 15).is_met()
    assert timing.Row("", 14, "µs").is_met() is None


@pytest.mark.parametrize(
    ("status", "printed", "is_fine"),
    [
        (0, "========= ERROR SUMMARY: 0 errors", True),
        (9, "========= ERROR SUMMARY: 2 errors", False),
        (1, "", False),
    ],
)
def test_memory_checker_is_believed(monkeypatch, tmp_path, status, printed, is_fine):
    program = tmp_path / "compute-sanitizer"
    program.write_text(f"#!/bin/sh\necho '{printed}'\nexit {status}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    said, fine = sanitizer.run()
    assert fine is is_fine
    assert (printed.strip("= ") or "ended with 1") in said


@pytest.mark.parametrize(
    ("memory", "stopped", "status"),
    [(True, None, 0), (False, None, 1), (True, "RuntimeError: a fault", 1)],
)
def test_exit_status_tells_whether_all_went_well(monkeypatch, tmp_path, memory, stopped, status):
    monkeypatch.setattr(cuda_state, "why_not", lambda: None)
    monkeypatch.setattr(ahead, "compile_all", lambda place, names: None)
    monkeypatch.setattr(command, "run_checks", lambda place, options: [check.Checked("sums", 3)])
    monkeypatch.setattr(command, "run_bench", lambda device, started: {"Launches": ([], stopped)})
    monkeypatch.setattr(sanitizer, "run", lambda seconds: ("what the checker says", memory))
    monkeypatch.setattr(report, "described", lambda: "A GPU.")
    with doubled():
        arguments = ["--check", "--bench", "--out", str(tmp_path / "gpu.md")]
        assert command.main(arguments) == status


def test_checks_are_recorded_before_anything_is_measured(monkeypatch, tmp_path):
    out = tmp_path / "gpu.md"

    def killed(device, started):
        raise KeyboardInterrupt

    monkeypatch.setattr(cuda_state, "why_not", lambda: None)
    monkeypatch.setattr(ahead, "compile_all", lambda place, names: None)
    monkeypatch.setattr(command, "run_checks", lambda place, options: [check.Checked("sums", 3)])
    monkeypatch.setattr(command, "run_bench", killed)
    monkeypatch.setattr(sanitizer, "run", lambda seconds: ("memory is fine", True))
    monkeypatch.setattr(report, "described", lambda: "A GPU.")
    with doubled(), pytest.raises(KeyboardInterrupt):
        command.main(["--check", "--bench", "--out", str(out)])
    assert "| sums | 3 |" in out.read_text()
    assert "memory is fine" in out.read_text()


def test_memory_checker_that_takes_too_long_is_ended(monkeypatch, tmp_path):
    program = tmp_path / "compute-sanitizer"
    program.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    said, fine = sanitizer.run(0.1)
    assert not fine
    assert "nothing is known" in said


@pytest.mark.parametrize(("passed", "allowed"), [(0, sanitizer.SECONDS), (500, 40), (900, 0)])
def test_memory_checker_gets_what_is_left_of_the_time(monkeypatch, tmp_path, passed, allowed):
    clock, given = iter([0, 0]), []
    monkeypatch.setattr(command.time, "perf_counter", lambda: next(clock, passed))
    monkeypatch.setattr(cuda_state, "why_not", lambda: None)
    monkeypatch.setattr(ahead, "compile_all", lambda place, names: None)
    monkeypatch.setattr(command, "run_checks", lambda place, options: [])
    monkeypatch.setattr(sanitizer, "run", lambda seconds: (given.append(seconds), True))
    monkeypatch.setattr(command, "record", lambda *page: None)
    command.main(["--check"])
    assert given == [allowed]


def test_missing_memory_checker_is_said(monkeypatch):
    monkeypatch.setattr(sanitizer, "find", lambda: None)
    assert sanitizer.run() == ("compute-sanitizer is not installed: memory was not checked", True)
