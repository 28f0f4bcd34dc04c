"""Kernels compiled ahead: lessons find them, and a list that does not fit stops nothing."""

import json
import lzma
import os
import signal
import subprocess
import sys
import time

import pytest

from minigrad.cli import ahead
from minigrad.devices import loader
from tests.kernels import SOURCES, kernels_in, run_lesson

SCRIPT = "import minigrad as mg; x = mg.ones((3, 4)); (x + x).sum()"


@pytest.fixture
def cache(tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder


def run(cache, *arguments, **variables):
    """Run Python with this folder for kernels."""
    environment = {**os.environ, "MINIGRAD_CACHE": str(cache), **variables}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=300
    )


def with_list(tmp_path, entries):
    """Return Python's arguments that compile this list ahead."""
    path = tmp_path / "list.xz"
    path.write_bytes(lzma.compress(json.dumps(entries).encode()))
    code = (
        f"import pathlib; from minigrad.cli import ahead; ahead.LIST = pathlib.Path({str(path)!r})"
    )
    return ["-c", code + "; raise SystemExit(ahead.main())"]


def test_each_entry_names_what_the_engine_has():
    entries = ahead.recorded()
    assert len(entries) > 100
    for kernels in entries:
        assert kernels["functions"]
        for name in [kernels["source"]] if "source" in kernels else kernels["includes"]:
            assert loader.source(name)
        text = kernels.get("text") or loader.source(kernels["source"])
        assert all(
            f"def {name.rpartition('_')[0] or name}" in text for name in kernels["functions"]
        )


def test_what_is_compiled_ahead_is_found_by_the_next_process(cache, tmp_path):
    assert run(cache, "-c", SCRIPT).returncode == 0
    entries = list(kernels_in(cache))
    there = {path.name for path in cache.glob("*.code")}
    assert there
    other = tmp_path / "other"
    other.mkdir()
    done = run(other, *with_list(tmp_path, entries))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith(f"Compiling {len(entries)} kernels")
    assert {path.name for path in other.glob("*.code")} == there
    again = run(other, *with_list(tmp_path, entries))
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")


def test_an_entry_that_does_not_compile_stops_nothing(cache, tmp_path):
    broken = {"text": "kernel = no_such_name\n", "includes": [], "functions": ["kernel"]}
    good = {"source": "gather.u1", "functions": ["gather_u1"]}
    gone = [{"source": "no_such_file", "functions": []}, {"source": "gather", "functions": ["x"]}]
    done = run(cache, *with_list(tmp_path, [broken, *gone, good]))
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert list(cache.glob("*.gather_u1.*.code"))


def test_a_folder_that_cannot_be_written_ends_it_at_once(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    places = dict.fromkeys(("MINIGRAD_CACHE", "XDG_CACHE_HOME", "HOME", "TMPDIR"), str(file))
    done = run(file, *with_list(tmp_path, []), **places)
    assert (done.returncode, done.stdout) == (0, "")


def test_no_other_command_loads_the_compiler(cache):
    done = run(cache, "-c", "import sys, minigrad.cli.main; print(*sys.modules)")
    assert "minigrad.cli.lab" in done.stdout.split()
    assert "minigrad.compiler.cpu.cpu_plan" not in done.stdout.split()


def test_it_can_be_switched_off(monkeypatch):
    monkeypatch.setenv(ahead.SWITCH, "0")
    assert ahead.start() is None


@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
def test_ctrl_c_is_left_to_the_lab(monkeypatch, tmp_path):
    monkeypatch.delenv(ahead.SWITCH, raising=False)
    monkeypatch.setenv("MINIGRAD_CACHE", str(tmp_path))
    process = ahead.start()
    assert process is not None
    try:
        compiled(tmp_path, 1)
        process.send_signal(signal.SIGINT)
        compiled(tmp_path, 3)
        assert process.poll() is None
    finally:
        process.terminate()
        process.wait()


def compiled(folder, count):
    """Wait until so many kernels lie in a folder."""
    deadline = time.monotonic() + 120
    while len(list(folder.glob("*.code"))) < count:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_list_has_what_lessons_call(request, tmp_path):
    """One lesson in each turn. A tenth may be missing: few edits then ask for a new list."""
    source = SOURCES[(request.config.getoption("turn") or 0) % len(SOURCES)]
    cache = tmp_path / "cache"
    cache.mkdir()
    run_lesson(source.stem, cache, tmp_path / "course")
    known = {entry.get("source") or entry["text"] for entry in ahead.recorded()}
    called = [entry.get("source") or entry["text"] for entry in kernels_in(cache)]
    missing = [text for text in called if text not in known]
    assert len(missing) <= len(called) / 10, "python -m tests.kernels"
