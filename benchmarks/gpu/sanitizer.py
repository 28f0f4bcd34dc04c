"""NVIDIA's memory checker over the checks, where it is installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

PLACES = ("/usr/local/cuda/bin", "/opt/cuda/bin")
SECONDS = 240
FOUND = 9  # the exit status when something was found


def find():
    """The program compute-sanitizer, or None."""
    return shutil.which("compute-sanitizer", path=os.pathsep.join((os.environ["PATH"], *PLACES)))


def run(seconds=SECONDS):
    """(what was found in one line, whether that is fine); fine where there is no checker.

    seconds: how long it may take at most.
    """
    program = find()
    if program is None:
        return "compute-sanitizer is not installed: memory was not checked", True
    command = [program, "--tool", "memcheck", "--error-exitcode", str(FOUND)]
    command += ["--report-api-errors", "no"]  # what libraries try and do without is no fault
    command += [sys.executable, "-m", "benchmarks.gpu", "--check", "--quick"]
    root = Path(__file__).parents[2]
    try:
        done = subprocess.run(
            command, cwd=root, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return f"compute-sanitizer was not done after {seconds:.0f} s: nothing is known", False
    lines = [line for line in done.stdout.splitlines() if "ERROR SUMMARY" in line]
    last = lines[-1].strip("= ") if lines else f"ended with {done.returncode}"
    return f"compute-sanitizer, quick checks: {last}", done.returncode == 0
