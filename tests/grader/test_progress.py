import json
import os

import pytest

from minigrad.grader import progress
from minigrad.grader.result import CheckResult, ExerciseResult, Result


def result(points_status="passed", exercise="00.hello"):
    check = CheckResult("text", "It works.", 2, points_status)
    return Result(7, [ExerciseResult(exercise, 1, 5, [check])], {"00_start": "abc"})


def test_record_keeps_points_best_and_hash(tmp_path):
    progress.record(tmp_path, result())
    progress.record(tmp_path, result("failed"))
    entry = progress.load(tmp_path)["exercises"]["00.hello"]
    assert (entry["points"], entry["best"], entry["of"], entry["runs"]) == (0, 2, 2, 2)
    assert entry["passed_hash"] is None
    progress.record(tmp_path, result())
    assert progress.load(tmp_path)["exercises"]["00.hello"]["passed_hash"] == "abc"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"version": 99}', '{"version": 1, "exercises": 3}']
)
def test_unreadable_progress_is_set_aside_and_kept(tmp_path, text):
    (tmp_path / "progress.json").write_text(text)
    assert progress.load(tmp_path)["exercises"] == {}
    aside = list(tmp_path.glob("progress.json.unreadable-*"))
    assert [path.read_text() for path in aside] == [text]
    progress.record(tmp_path, result())
    assert progress.load(tmp_path)["exercises"]["00.hello"]["points"] == 2


def test_two_unreadable_files_in_one_second_are_both_kept(tmp_path):
    for text in ("one", "two", "three"):
        (tmp_path / "progress.json").write_text(text)
        progress.load(tmp_path)
    texts = {path.read_text() for path in tmp_path.glob("progress.json.unreadable-*")}
    assert texts == {"one", "two", "three"}


def test_crash_while_writing_leaves_the_old_file(tmp_path, monkeypatch):
    progress.record(tmp_path, result())
    before = (tmp_path / "progress.json").read_bytes()

    def crash(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(OSError, match="No space"):
        progress.record(tmp_path, result("failed"))
    assert (tmp_path / "progress.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["progress.json"]


def test_hints_are_counted_and_cost_nothing(tmp_path):
    progress.record(tmp_path, result())
    progress.record_hint(tmp_path, "00.hello", 2)
    progress.record_hint(tmp_path, "00.hello", 1)
    entry = progress.load(tmp_path)["exercises"]["00.hello"]
    assert (entry["hints"], entry["points"]) == (2, 2)


def test_result_as_json_has_a_schema_version():
    data = json.loads(json.dumps(result("failed").as_dict()))
    assert data["schema_version"] == 1
    assert (data["points"], data["of"]) == (0, 2)
    assert data["exercises"][0]["checks"][0]["status"] == "failed"
