"""`doctor`: says what is wrong with an installation, and what to do about it."""

import importlib.metadata
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from minigrad.cli import doctor, findings
from minigrad.cli.main import main
from minigrad.devices.gpu.driver import state as cuda_state
from minigrad.grader.launcher import GraderError


def lines_of(capsys):
    capsys.readouterr()
    status = main(["doctor"])
    return status, capsys.readouterr().out.splitlines()


def after(lines, text):
    """The line with this text, and the one that follows it."""
    place = next(i for i, line in enumerate(lines) if text in line)
    return lines[place].strip(), lines[place + 1].strip()


def test_healthy_installation_is_exit_0(learner, capsys):
    main(["update"])  # brings the lessons that the first version lacks
    status, lines = lines_of(capsys)
    assert (status, lines[-1]) == (0, "all is well"), "\n".join(lines)
    text = "\n".join(lines)
    for seen in ("numpy", "numba", "jupyterlab", "cores", "compiled kernels", "the engine runs"):
        assert f"ok  {seen}" in text or seen in text
    assert "GPU" in text or "device='cuda' works" in text


def test_a_jail_whose_processes_nobody_counts_is_named(monkeypatch):
    monkeypatch.setattr(doctor.strangers, "is_root", lambda: True)
    monkeypatch.setattr(doctor, "hindrance", lambda: None)

    def none_inside(*, jailed):
        return (None, "no CAP_SYS_ADMIN") if jailed else (61234, "")

    monkeypatch.setattr(doctor.strangers, "other_user", none_inside)
    assert doctor.jail().what.endswith("no limit counts their processes: no CAP_SYS_ADMIN")
    monkeypatch.setattr(doctor, "root_changes_user", lambda: True)
    monkeypatch.setattr(doctor.strangers, "other_user", lambda **_: (61234, ""))
    assert doctor.jail().what.endswith("grade --jail=bwrap works here")


def test_missing_lesson_names_its_remedy(learner, capsys):
    status, lines = lines_of(capsys)
    assert status == 1
    seen, remedy = after(lines, "lacks lessons 01")
    assert seen.startswith("NO")
    assert remedy == "do: minigrad update"
    assert main(["update"]) == 0
    assert (learner / "exercises" / "01_chain_rule.py").is_file()


@pytest.mark.parametrize("place", ["random.py", "lessons/numpy.py", "types/__init__.py"])
def test_file_that_hides_a_module_is_named(learner, place):
    assert doctor.hidden() is None
    path = learner / place
    path.parent.mkdir(exist_ok=True)
    path.write_text("x = 1\n")
    finding = doctor.hidden()
    name = place.removesuffix("/__init__.py").rpartition("/")[2]
    assert (finding.fine, finding.remedy) == (False, f"rename {name}")
    assert f"/{name} hides " in finding.what


def test_missing_package_names_the_command(learner, monkeypatch, capsys):
    true_version = importlib.metadata.version

    def without_jupyterlab(name):
        if name == "jupyterlab":
            raise importlib.metadata.PackageNotFoundError(name)
        return true_version(name)

    monkeypatch.setattr(importlib.metadata, "version", without_jupyterlab)
    _, lines = lines_of(capsys)
    seen, remedy = after(lines, "jupyterlab")
    assert seen == "NO  jupyterlab is not installed"
    assert remedy == "do: python3 start.py setup"


def test_wheel_is_repaired_with_pip(monkeypatch, tmp_path):
    monkeypatch.setattr(findings, "SHIPPED", tmp_path)
    assert findings.setup_command("test") == 'pip install --upgrade "minigrad[test]"'


def test_version_out_of_bounds_is_named(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "9.9")
    finding = findings.package("numpy")
    assert not finding.fine
    assert "numpy 9.9, but" in finding.what
    assert "<2.5" in finding.what


@pytest.mark.parametrize(
    ("version", "bounds", "expected"),
    [
        ("2.4.6", ">=2.2,<2.5", True),
        ("2.5.0", "<2.5,>=2.2", False),
        ("2.1", ">=2.2", False),
        ("10.0", ">=9.3", True),
        ("4.2.0rc1", ">=4.2", True),
        ("1.0", "", True),
    ],
)
def test_versions_fit_their_bounds(version, bounds, expected):
    assert findings.fits(version, bounds) is expected


def test_engine_that_does_not_import_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "minigrad", None)
    finding = doctor.engine()
    assert not finding.fine
    assert "does not run" in finding.what


@pytest.mark.parametrize("command", ["doctor", "check"])
def test_numpy_that_does_not_import_is_two_lines(tmp_path, command):
    page = "PLEASE READ THIS\\n\\nOriginal error was: DLL load failed: no module\\n"
    (tmp_path / "numpy.py").write_text(f"raise ImportError('\\n{page}')")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    line = [sys.executable, "-m", "minigrad.cli.main", command]
    run = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 3
    said, remedy = run.stderr.splitlines()
    assert said == "NO  numpy does not import: ImportError: DLL load failed: no module"
    assert remedy.strip().startswith("do: python3 start.py setup")


def test_grader_that_does_not_start_is_reported(monkeypatch):
    def broken(*_, **__):
        raise GraderError("no fork server")

    monkeypatch.setattr(doctor, "Worker", broken)
    assert "no fork server" in doctor.grading().what


def test_full_disk_is_reported(monkeypatch):
    usage = doctor.shutil.disk_usage(".")._replace(free=1000)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: usage)
    assert "nearly full" in doctor.disk().what


def test_cache_that_does_not_last_is_reported(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.delenv("MINIGRAD_CACHE", raising=False)
    monkeypatch.setattr(doctor, "cache_folder", lambda: tmp_path / "minigrad-x")
    finding = doctor.kernel_cache()
    assert "does not last" in finding.what
    assert "MINIGRAD_CACHE" in finding.remedy
    monkeypatch.setenv("MINIGRAD_CACHE", str(tmp_path))
    assert doctor.kernel_cache().fine  # it was asked for


def test_cache_that_can_be_written_nowhere_is_reported(monkeypatch):
    monkeypatch.setattr(doctor, "cache_folder", lambda: Path(os.devnull, "minigrad"))
    assert "cannot be kept" in doctor.kernel_cache().what
    assert doctor.disk().what


def test_limited_threads_are_named(monkeypatch):
    for name in doctor.THREADS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert "limited by OMP_NUM_THREADS=1" in doctor.threads().what


def give_hindrance(monkeypatch, *arguments, **named):
    found = cuda_state.Hindrance(*arguments, **named) if arguments else None
    monkeypatch.setattr(cuda_state, "hindrance", lambda: found)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo NVIDIA GPU", "GPU: NVIDIA GPU; not used, because a part is missing. Try: get it"),
        ("exit 9", "no GPU found, and none is needed: device='simt' runs its kernels (a part is"),
    ],
)
def test_gpu_that_is_not_used_is_named_with_the_reason(monkeypatch, tmp_path, script, said):
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    give_hindrance(monkeypatch, "a part is missing", "get it")
    finding = doctor.gpu()
    assert finding.fine
    assert said in finding.what


def test_gpu_that_its_driver_names_is_said_to_be_unused(monkeypatch):
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    give_hindrance(monkeypatch, "the driver is old", "a newer one", has_gpu=True)
    assert doctor.gpu().what == "a GPU is not used, because the driver is old. Try: a newer one"


def test_gpu_that_works_is_named(monkeypatch):
    give_hindrance(monkeypatch)
    monkeypatch.setattr(cuda_state, "gpu_name", lambda: "NVIDIA Thing")
    assert doctor.gpu() == findings.Finding(True, "device='cuda' works: NVIDIA Thing")


def test_damaged_points_are_reported_and_their_remedy_works(learner, capsys):
    (learner / ".minigrad" / "progress.json").write_text("{")
    _, lines = lines_of(capsys)
    seen, remedy = after(lines, "damaged file of points")
    assert seen.startswith("NO")
    assert "minigrad check" in remedy
    (aside,) = (learner / ".minigrad").glob("progress.json.unreadable-*")
    aside.unlink()
    _, lines = lines_of(capsys)
    assert any("points are remembered" in line for line in lines)


def test_folder_that_cannot_be_written_is_reported(learner, monkeypatch):
    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(doctor.tempfile, "TemporaryFile", refuse)
    finding = doctor.memory_of_points()
    assert finding is not None
    assert "cannot be remembered" in finding.what
