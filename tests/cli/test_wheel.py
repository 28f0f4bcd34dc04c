"""The package alone is enough: a wheel, installed into a fresh environment, starts a course."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command, cwd, ok=(0,), **options):
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        **options,
    )
    assert done.returncode in ok, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


def build(project, into):
    """Build a wheel of a copy of the project, by whatever pip finds hatchling with."""
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", into, project, cwd=into)
    return next(into.glob("*.whl"))


@pytest.fixture
def project(tmp_path):
    """A copy of what git knows, so that nothing built or half written comes along."""
    copy = tmp_path / "project"
    names = run("git", "ls-files", "-z", cwd=ROOT).split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
    return copy


def test_class_repository_can_be_installed_and_has_no_solutions(tmp_path):
    import zipfile

    run(sys.executable, "-m", "minigrad.cli.main", "release", "class", cwd=tmp_path)
    wheel = build(tmp_path / "class", tmp_path)
    names = zipfile.ZipFile(wheel).namelist()
    assert "minigrad/course/files/exercises/00_start.py" in names
    assert "minigrad/course/book.css" in names
    assert not [name for name in names if "solutions" in name or "mutants" in name]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no git checkout to build from")
def test_installed_wheel_starts_grades_and_updates_a_course(project, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    wheel = build(project, first)
    solutions = project / "solutions" / "00_start.py"
    text = solutions.read_text().replace("Estimate the derivative", "Estimate the slope")
    solutions.write_text(text + "\n\ndef added():\n    ### BEGIN SOLUTION\n    ### END SOLUTION\n")
    newer = build(project, second)

    venv.create(tmp_path / "venv", with_pip=True)
    binaries = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    # NumPy and Numba are those of this environment: what is installed here is minigrad alone.
    packages = Path(__import__("numpy").__file__).parents[1]
    site = run(
        binaries / "python", "-c", "import site; print(site.getsitepackages()[0])", cwd=tmp_path
    )
    for name in ("numpy", "numpy.libs", "numba", "llvmlite"):
        if (packages / name).exists():
            (Path(site.strip()) / name).symlink_to(packages / name)
    pip = (binaries / "python", "-m", "pip", "install", "--no-deps", "--no-index")
    run(*pip, wheel, cwd=tmp_path)
    minigrad = binaries / "minigrad"

    run(minigrad, "start", "course", cwd=tmp_path)
    course = tmp_path / "course"
    assert not (course / "solutions").exists()
    assert "gardients" in run(minigrad, "check", "00.hello", cwd=course, ok=(1,))
    path = course / "exercises" / "00_start.py"
    path.write_text(path.read_text().replace("gardients", "gradients"))
    run(minigrad, "check", "00.hello", cwd=course)
    run(*pip, "--force-reinstall", newer, cwd=tmp_path)
    run(minigrad, "update", cwd=course)
    updated = path.read_text()
    assert "hello, gradients" in updated
    assert "Estimate the slope" in updated
    assert "def added" in updated
    run(minigrad, "check", "00.hello", cwd=course)
