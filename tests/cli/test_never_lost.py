"""Commands that write, broken at every step on disk: nothing of the learner's is lost."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="each step is broken in a fork")
CRASHING = Path(__file__).with_name("crashing.py")


def crash(template, work, how, *arguments, course=None):
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, str(CRASHING), *map(str, (template, work, course)), how, *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def is_safe(results):
    """Assert that nothing was lost at any step, and that running again completed the command."""
    assert [step for step in results if step["lost"]] == []
    assert [step for step in results if step["differs"]] == []


@pytest.mark.parametrize("how", ["kill", "full", "short"])
def test_update_broken_anywhere_loses_nothing_and_goes_on(learner, versions, tmp_path, how):
    from minigrad.grader import progress

    progress.record_hint(learner / ".minigrad", "00.hello", 1)
    results = crash(learner, tmp_path / "work", how, "update", "--from", str(versions[1]))
    is_safe(results)
    statuses = {step["status"] for step in results}
    if how == "kill":
        assert len(results) > 30
        assert statuses == {99}
    else:  # a disk that fills up at the last bookkeeping steps stops nothing
        assert 2 in statuses <= {0, 2}


@pytest.mark.parametrize("how", ["kill", "full", "short"])
def test_reset_broken_anywhere_loses_nothing_and_goes_on(learner, tmp_path, how):
    results = crash(learner, tmp_path / "work", how, "reset", "00")
    is_safe(results)
    statuses = {step["status"] for step in results}
    if how == "kill":
        assert len(results) > 6
        assert statuses == {99}
    else:
        assert 2 in statuses <= {0, 2}


@pytest.mark.parametrize("how", ["kill", "full", "short"])
def test_progress_broken_anywhere_is_the_old_or_the_new_one(learner, tmp_path, how):
    from minigrad.grader import progress

    progress.record_hint(learner / ".minigrad", "00.slope", 1)
    results = crash(learner, tmp_path / "work", how, "hint", "00.hello")  # reads it after each
    assert len(results) >= 4
    if how != "kill":
        assert {step["status"] for step in results} == {0}  # the hint is shown all the same


@pytest.mark.parametrize("how", ["kill", "full", "short"])
def test_start_broken_anywhere_is_completed_by_starting_again(tmp_path, versions, how):
    (tmp_path / "empty").mkdir()
    results = crash(tmp_path / "empty", tmp_path / "work", how, "start", ".", course=versions[0])
    is_safe(results)
    assert len(results) > 10
