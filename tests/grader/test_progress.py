import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from minigrad.grader import progress
from minigrad.grader.atomic import place, write_atomically
from minigrad.grader.result import CheckResult, ExerciseResult, Result


def result(points_status="passed", exercise="00.hello"):
    check = CheckResult("text", "It works.", 2, points_status)
    return Result(7, [ExerciseResult(exercise, 1, 5, [check], fingerprint="abc")])


def test_record_keeps_points_best_and_hash(tmp_path):
    progress.record(tmp_path, result())
    progress.record(tmp_path, result("failed"))
    entry = progress.load(tmp_path)["exercises"]["00.hello"]
    assert (entry["points"], entry["best"], entry["of"], entry["runs"]) == (0, 2, 2, 2)
    assert entry["passed_hash"] is None
    progress.record(tmp_path, result())
    assert progress.load(tmp_path)["exercises"]["00.hello"]["passed_hash"] == "abc"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"version": 99}',
        b'{"version": 1, "exercises": 3}',
        b'{"version": 1, "exercises": {"00.hello": 3}, "predictions": {}, "engine": {}}',
        b'{"version": 1, "exercises": {"00.hello": {"points": "two"}}, "predictions": {},'
        b' "engine": {}}',
        b'{"version": 1, "exercises": {"00.hello": {"hash": 2}}, "predictions": {}, "engine": {}}',
        b'{"version": 1, "exercises": {}, "predictions": {"x": {"riwht": true}}, "engine": {}}',
    ],
    ids=["empty", "cut", "list", "null", "bytes", "deep", "version", "section", "entry", "points",
         "hash", "prediction"],
)  # fmt: skip
@pytest.mark.parametrize("first", ["load", "update"])
def test_unreadable_progress_is_set_aside_and_kept(tmp_path, content, first):
    (tmp_path / "progress.json").write_bytes(content)
    if first == "load":
        assert progress.load(tmp_path)["exercises"] == {}
    else:
        progress.record_hint(tmp_path, "00.hello", 1)
    aside = list(tmp_path.glob("progress.json.unreadable-*"))
    assert [path.read_bytes() for path in aside] == [content]
    progress.record(tmp_path, result())
    assert progress.load(tmp_path)["exercises"]["00.hello"]["points"] == 2


def test_two_unreadable_files_in_one_second_are_both_kept(tmp_path):
    for text in ("one", "two", "three"):
        (tmp_path / "progress.json").write_text(text)
        progress.load(tmp_path)
    texts = {path.read_text() for path in tmp_path.glob("progress.json.unreadable-*")}
    assert texts == {"one", "two", "three"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_in_the_place_of_progress_is_set_aside(tmp_path):
    os.mkfifo(tmp_path / "progress.json")
    assert progress.load(tmp_path)["exercises"] == {}
    assert len(list(tmp_path.glob("progress.json.unreadable-*"))) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.skipif(not progress.fcntl, reason="this system locks by other means")
def test_a_pipe_in_the_place_of_the_lock_is_refused(tmp_path):
    os.mkfifo(tmp_path / "progress.lock")
    with pytest.raises(OSError, match="no regular file"):
        progress.record(tmp_path, result())


def test_crash_while_writing_leaves_the_old_file(tmp_path, monkeypatch):
    progress.record(tmp_path, result())
    before = (tmp_path / "progress.json").read_bytes()

    def crash(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(OSError, match="No space"):
        progress.record(tmp_path, result("failed"))
    assert (tmp_path / "progress.json").read_bytes() == before
    lock = {"progress.lock"} if progress.fcntl else set()  # Windows locks by other means
    assert {path.name for path in tmp_path.iterdir()} == {"progress.json"} | lock


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


def test_unreadable_progress_that_cannot_be_set_aside_is_not_overwritten(tmp_path, monkeypatch):
    (tmp_path / "progress.json").write_text("damaged")

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", refuse)
    assert progress.load(tmp_path)["exercises"] == {}
    with pytest.raises(PermissionError):
        progress.record(tmp_path, result())
    assert (tmp_path / "progress.json").read_text() == "damaged"


def test_a_folder_in_the_place_of_progress_is_set_aside(tmp_path):
    (tmp_path / "progress.json" / "inside").mkdir(parents=True)
    progress.record(tmp_path, result())
    assert progress.load(tmp_path)["exercises"]["00.hello"]["points"] == 2
    (aside,) = tmp_path.glob("progress.json.unreadable-*")
    assert (aside / "inside").is_dir()


def test_progress_that_must_not_be_read_is_said_and_kept(tmp_path, monkeypatch, capsys):
    progress.record(tmp_path, result())

    def refuse(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(progress, "read_file", refuse)
        assert progress.load(tmp_path)["exercises"] == {}
        assert "cannot be read: [Errno 13] Permission denied" in capsys.readouterr().err
        with pytest.raises(PermissionError):
            progress.record(tmp_path, result())
    assert progress.load(tmp_path)["exercises"]["00.hello"]["points"] == 2


def test_two_processes_that_save_at_once_lose_nothing(tmp_path):
    code = (
        "import sys, pathlib; from minigrad.grader import progress\n"
        "for i in range(40):\n"
        "    progress.record_hint(pathlib.Path(sys.argv[1]), f'{sys.argv[2]}.{i}', 1)"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path), name]) for name in ("a", "b")
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert len(progress.load(tmp_path)["exercises"]) == 80


def test_file_keeps_its_permissions_and_a_link_stays_one(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640


def test_place_never_replaces(tmp_path):
    place(tmp_path / "file", b"first")
    with pytest.raises(FileExistsError):
        place(tmp_path / "file", b"second")
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    with pytest.raises(FileExistsError):
        place(tmp_path / "nowhere", b"third")
    assert (tmp_path / "file").read_bytes() == b"first"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "nowhere"]


def test_system_without_locks_remembers_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "fcntl", None)  # Windows
    progress.record(tmp_path, result())
    assert progress.load(tmp_path)["exercises"]["00.hello"]["points"] == 2


@pytest.mark.parametrize("name", [".minigrad", "progress.json", "progress.lock"])
def test_points_are_not_written_through_a_link(name, tmp_path):
    outside = tmp_path / "outside"
    state = tmp_path / "course" / ".minigrad"
    (outside if name == ".minigrad" else state).mkdir(parents=True)
    link = state if name == ".minigrad" else state / name
    link.parent.mkdir(exist_ok=True)
    if name != ".minigrad":
        outside.write_text("the work of a week")
    try:
        link.symlink_to(outside)
    except OSError:
        pytest.skip("this system makes no links here")
    with pytest.raises(OSError, match="is a link, and is not written through"):
        progress.update(state, lambda data: None)
    if name == ".minigrad":
        assert list(outside.iterdir()) == []
    else:
        assert outside.read_text() == "the work of a week"
