"""The types of the package are right, as pyright checks them."""

import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]


def test_pyright_finds_nothing():
    pyright = shutil.which("pyright", path=str(pathlib.Path(sys.executable).parent))
    if pyright is None:
        pytest.skip("pyright is not installed")
    command = [pyright, "--threads", "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
