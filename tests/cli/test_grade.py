"""`grade`: a row a submission, whatever a submission is."""

import csv
import itertools
import json
import os
import re
import shutil
import tempfile
import unicodedata
from pathlib import Path

import pytest

from minigrad.cli import grading, strangers, submissions
from minigrad.cli.gradebook import Gradebook, Row
from minigrad.cli.grading import file_name
from minigrad.cli.main import main
from minigrad.cli.submissions import find_submissions
from minigrad.course.source import installed
from minigrad.grader.folder import load_lesson
from minigrad.grader.launcher import GraderError, Server
from minigrad.grader.limits import Limits
from minigrad.grader.message import without_command
from minigrad.grader.result import Result
from minigrad.grader.run import grade
from minigrad.grader.sandbox import Worker

ROOT = Path(__file__).parents[2]
SOLUTION = (ROOT / "solutions" / "00_start.py").read_text()
HALF = SOLUTION.replace("1e-5 * max(1.0, abs(x))", "1e-6")


@pytest.fixture
def handed_in(tmp_path, monkeypatch):
    """A class: somebody with all of it, somebody with half, and everything that goes wrong."""
    folder = tmp_path / "handed_in"
    monkeypatch.setenv("NO_COLOR", "1")

    def hand_in(who, text, place="exercises"):
        path = folder / who / place / "00_start.py"
        path.parent.mkdir(parents=True)
        path.write_text(text)
        return path

    hand_in("anna", SOLUTION)
    hand_in("ben", HALF, "course-main/exercises")
    hand_in("clara", "def hello(:\n", ".")
    hand_in("dora", "import os\nos._exit(0)\n")
    hand_in("emil", "").write_bytes(b"\xff\xfe\x00")
    (folder / "fritz").mkdir()
    secret = tmp_path / "secret.py"
    secret.write_text(SOLUTION)
    hand_in("gerd", "").unlink()
    (folder / "gerd" / "exercises" / "00_start.py").symlink_to(secret)
    hand_in("hanna", "x = 1\n" * 400_000)
    (folder / "ida" / "exercises" / "00_start.py").mkdir(parents=True)
    (folder / "jan_12345_00_start-1.py").write_text(SOLUTION)
    (folder / "klaus.zip").write_bytes(b"PK")
    (folder / "=lea").mkdir()
    (folder / "notes.txt").write_text("not a submission")
    return folder


def rows(tmp_path):
    with open(tmp_path / "grades.csv", encoding="utf-8-sig", newline="") as file:
        return {row["submission"]: row for row in csv.DictReader(file)}


def test_every_submission_is_a_row_whatever_it_is(handed_in, tmp_path, capsys):
    assert main(["grade", "--unsafe", str(handed_in), "--csv", str(tmp_path / "grades.csv")]) == 1
    found = rows(tmp_path)
    assert {*found} == {
        "anna", "ben", "clara", "dora", "emil", "fritz", "gerd", "hanna", "ida", "jan_12345",
        "klaus.zip", "'=lea",
    }  # fmt: skip
    assert (found["anna"]["points"], found["anna"]["status"]) == ("12", "graded")
    assert found["jan_12345"]["points"] == "12"
    assert 0 < int(found["ben"]["points"]) < 12
    assert [found[who]["points"] for who in ("clara", "dora", "emil")] == ["0"] * 3
    assert found["fritz"]["status"] == "incomplete"
    assert "00_start.py is missing" in found["fritz"]["notes"]
    assert "leads out of the submission" in found["gerd"]["notes"]
    assert "larger than" in found["hanna"]["notes"]
    assert "unpack it" in found["klaus.zip"]["notes"]
    assert found["anna"]["00.slope"] == "5"
    out = capsys.readouterr().out
    assert "12 of 12 graded" in out
    assert "hardest: " in out
    assert out.splitlines()[0].split() == ["submission", "00", "points", "of"]


def changed(old, new):
    assert old in SOLUTION
    return SOLUTION.replace(old, new).encode()


HELLO = '    return "hello, gradients"'
NO_ANSWERS = {
    "empty": (b"", "00_start.py does not define hello, central_difference, slope"),
    "renamed": (changed("def slope", "def slop"), "00_start.py does not define slope"),
    "unparsed": (b"def f()\n    pass\n", "does not load: SyntaxError: expected ':' (line 1)"),
    "latin_1": (SOLUTION.encode() + b"# gr\xfc\xdfe\n", "holds a byte that is not utf-8"),
    "torch": (b"import torch\n", "does not load: torch cannot be imported (ModuleNotFound"),
    "torch_inside": (changed(HELLO, f"    import torch\n{HELLO}"), "00.hello: torch cannot be"),
    "exits": (b"x = 1\nraise SystemExit\n", "does not load: SystemExit: the code asked Python to "
              "stop (line 2)"),
    "exits_inside": (changed(HELLO, f"    exit()\n{HELLO}"), "00.hello: SystemExit: "),
    "ends": (b"import os\nos._exit(3)\n", "does not load: the process ended itself with exit"),
    "never_ends": (changed(HELLO, "    while True:\n        pass"), "00.hello: no answer within"),
}  # fmt: skip


def test_the_row_of_a_file_that_gives_no_answers_says_why(tmp_path, monkeypatch):
    for who, (content, _) in NO_ANSWERS.items():
        path = tmp_path / "class" / who / "00_start.py"
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    assert (
        main(["grade", "--unsafe", str(tmp_path / "class"), "--csv", str(tmp_path / "grades.csv")])
        == 1
    )
    found = rows(tmp_path)
    for who, (_, why) in NO_ANSWERS.items():
        assert why in found[who]["notes"]
        assert found[who]["notes"].count(";") == 0


def test_full_marks_of_all_is_exit_0_and_json_stands_alone(handed_in, capsys):
    for path in handed_in.iterdir():
        if path.name != "anna":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert main(["grade", "--unsafe", str(handed_in), "--json", "-", "--seed", "5"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["schema_version"], data["seed"], data["of"]) == (1, 5, 12)
    (anna,) = data["submissions"]
    assert (anna["name"], anna["points"], anna["status"]) == ("anna", 12, "graded")
    assert anna["results"]["00_start"]["exercises"][0]["id"] == "00.hello"


def test_fault_of_the_grader_is_no_zero_and_the_rest_is_graded(
    handed_in, tmp_path, monkeypatch, capsys
):
    true_grade = grading.grade

    def sometimes(server, lesson, path, **options):
        if "anna" in str(path):
            raise GraderError("the fork server is gone")
        if "ben" in str(path):
            raise MemoryError
        return true_grade(server, lesson, path, **options)

    monkeypatch.setattr(grading, "grade", sometimes)
    options = ["--csv", str(tmp_path / "grades.csv"), "--gradescope", str(tmp_path / "scope")]
    assert main(["grade", "--unsafe", str(handed_in), *options]) == 3
    found = rows(tmp_path)
    assert (found["anna"]["points"], found["anna"]["status"]) == ("", "error")
    assert "the fork server is gone" in found["anna"]["notes"]
    assert found["ben"]["points"] == ""
    assert found["jan_12345"]["points"] == "12"
    assert "NOT GRADED" in capsys.readouterr().out
    assert not (tmp_path / "scope" / "anna.json").exists()
    assert (tmp_path / "scope" / "jan_12345.json").exists()


def test_a_submission_has_so_many_minutes_and_the_next_one_has_its_own(tmp_path, capsys):
    for name, text in (("eve", f"import time\ntime.sleep(4)\n{SOLUTION}"), ("zoe", SOLUTION)):
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / "00_start.py").write_text(text)
    options = ["--minutes", "0.1", "--csv", str(tmp_path / "grades.csv")]
    assert main(["grade", "--unsafe", str(tmp_path / "in"), *options]) == 1
    found = rows(tmp_path)
    assert found["zoe"]["points"] == "12"
    assert (found["eve"]["status"], found["eve"]["00.slope"]) == ("graded", "0")
    assert re.search(r"00_start.py: no time was left for .*slope", found["eve"]["notes"])
    assert float(found["eve"]["seconds"]) < 20


@pytest.mark.parametrize("minutes", ["0", "-1", "nan"])
def test_minutes_that_are_none(minutes, tmp_path, capsys):
    (tmp_path / "in" / "ada").mkdir(parents=True)
    (tmp_path / "in" / "ada" / "00_start.py").write_text("")
    assert main(["grade", "--unsafe", f"--minutes={minutes}", str(tmp_path / "in")]) == 2
    assert "a submission needs more than none" in capsys.readouterr().err


def test_interrupted_run_keeps_what_it_has(handed_in, tmp_path, monkeypatch, capsys):
    true_grade = grading.grade

    def until_ben(server, lesson, path, **options):
        if "ben" in str(path):
            raise KeyboardInterrupt
        return true_grade(server, lesson, path, **options)

    monkeypatch.setattr(grading, "grade", until_ben)
    assert main(["grade", "--unsafe", str(handed_in), "--csv", str(tmp_path / "grades.csv")]) == 130
    assert rows(tmp_path)["anna"]["points"] == "12"


def test_gradescope_results_of_one_submission(tmp_path, capsys):
    path = tmp_path / "submission" / "00_start.py"
    path.parent.mkdir()
    path.write_text(HALF)
    target = tmp_path / "results.json"
    options = ["--lessons", "00-01", "--gradescope", str(target), "--seed", "3"]
    assert main(["grade", "--unsafe", str(path.parent), *options]) == 1
    data = json.loads(target.read_text())
    assert data["score"] == sum(test["score"] for test in data["tests"])
    assert "seed" not in target.read_text()  # students read this file
    assert {"score", "execution_time", "output", "visibility", "stdout_visibility"} <= {*data}
    allowed = {"name", "score", "max_score", "status", "output", "visibility", "number"}
    assert all({*test} == allowed for test in data["tests"])
    failed = [test for test in data["tests"] if test["status"] == "failed"]
    assert all(test["score"] == 0 for test in failed)
    assert any("Expected" in test["output"] for test in failed)
    assert failed[-1]["output"] == "01_chain_rule.py was not handed in."
    assert sum(test["max_score"] for test in data["tests"]) == 12 + failed[-1]["max_score"]


def test_clone_of_a_release_is_graded_by_its_exercises_and_not_by_the_package(tmp_path):
    clone = tmp_path / "all" / "anna"
    for place in ("exercises", "minigrad/course/files/exercises", ".venv/exercises", "solutions"):
        (clone / place).mkdir(parents=True)
        (clone / place / "00_start.py").write_text(place)
    (handed,) = find_submissions(clone.parent)
    assert handed.files["00_start"] == clone / "exercises" / "00_start.py"
    assert handed.notes == []


def test_of_two_files_the_one_in_exercises_is_graded_and_it_is_said(tmp_path):
    for place in ("", "copy/exercises", "copy/old/exercises"):
        (tmp_path / "all" / "anna" / place).mkdir(parents=True, exist_ok=True)
        (tmp_path / "all" / "anna" / place / "00_start.py").write_text("")
    (handed,) = find_submissions(tmp_path / "all")
    assert handed.files["00_start"].parent.parent.name == "copy"
    assert "3 times" in handed.notes[0]


def test_file_that_a_platform_numbered_is_graded_and_it_is_said(tmp_path):
    (tmp_path / "all" / "anna").mkdir(parents=True)
    for number, name in enumerate(("00_start-1.py", "00_start (2).py")):
        path = tmp_path / "all" / "anna" / name
        path.write_text(name)
        os.utime(path, (1000 + number, 1000 + number))
    (handed,) = find_submissions(tmp_path / "all")
    assert handed.files["00_start"].name == "00_start (2).py"
    assert handed.notes == ["graded 00_start (2).py, not 00_start-1.py"]


ALIKE = {  # what one student hands in, and what the row says of it
    ("00_start.py.txt",): "00_start.py.txt is not graded: only 00_start.py would be",
    ("00_start.PY",): "00_start.PY is not graded: only 00_start.py would be",
    ("00_START.py",): "00_START.py is not graded: only 00_start.py would be",
    ("00_start - Kopie.py",): "00_start - Kopie.py is not graded: only 00_start.py would be",
    ("00_start.py", "00_start (1).py"): "graded 00_start.py, not 00_start (1).py",
    ("00_start_3.py",): "graded 00_start_3.py",
}
IN_FOLDERS = ALIKE | {
    ("work.zip",): "work.zip is packed: unpack it",
    ("00_start.py", "sub/Work.TAR.GZ"): "Work.TAR.GZ is packed: unpack it",
    ("00_start.ipynb",): "00_start.ipynb is a notebook, not exercises",
    ("exercises/00_start.py", "lessons/00_start.ipynb", "README.md"): "",
}


@pytest.mark.parametrize(
    ("names", "note", "form"),
    [(*row, "anna/{}") for row in IN_FOLDERS.items()]
    + [(*row, "anna_{}") for row in ALIKE.items()],
)
def test_no_file_that_looks_like_an_exercise_is_passed_over_in_silence(tmp_path, names, note, form):
    for name in names:
        path = tmp_path / form.format(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (handed,) = find_submissions(tmp_path)
    assert handed.name == "anna"
    assert "; ".join(handed.notes).replace("anna_", "") == note
    is_graded = "graded 00" in note or any(name.endswith("00_start.py") for name in names)
    assert bool(handed.files) == is_graded


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_named_pipe_does_not_stop_the_batch(tmp_path):
    (tmp_path / "all" / "anna").mkdir(parents=True)
    os.mkfifo(tmp_path / "all" / "anna" / "00_start.py")
    (handed,) = find_submissions(tmp_path / "all")
    assert handed.files == {}
    assert handed.notes == ["00_start.py is not a file"]


@pytest.mark.parametrize("what", ["empty", "missing", "file", "nothing to grade"])
def test_nothing_to_grade_is_wrong_usage(tmp_path, what, capsys):
    folder = tmp_path / "all"
    if what != "missing":
        folder.mkdir()
    if what == "file":
        folder = folder / "x"
        folder.write_text("")
    if what == "nothing to grade":
        (folder / "anna").mkdir()
    assert main(["grade", "--unsafe", str(folder)]) == 2
    capsys.readouterr()


def test_table_fits_names_and_says_unknown_points(monkeypatch):
    from minigrad.grader.report import Style

    book = Gradebook(["00_start"], 1)
    line = book.line(Row("x" * 50, fault="gone", missing=["00_start"]), 12, Style(plain=True))
    assert line == "xxxxxxxxxxx…    –       ?   12  NOT GRADED: gone; 00_start.py is missing"


# ---- one submission costs its own row and nothing else ------------------------------------------

ODD_NAMES = [
    "a b",
    "a_b",
    "A_b",
    "-rf",
    "--help",
    "o'hara",
    '"quoted"',
    "größe я 量",
    "new\nline",
    "tab\tand\rreturn",
    "\x1b[2Jcleared",
    os.fsdecode(b"not\xffutf8"),
    "per%cent {brace} $HOME `id` ;",
    "x" * 200,
    "back\\slash",
    "#comment",
    "con",
    " blank ",
]


def hand_in(folder, who, text):
    (path := folder / who / "exercises").mkdir(parents=True)
    (path / "00_start.py").write_text(text)


def test_odd_names_are_rows_of_one_line_each_and_files_of_their_own(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NO_COLOR", "1")
    folder, results = tmp_path / "handed in", tmp_path / "results"
    for name in ODD_NAMES:
        hand_in(folder, name, SOLUTION)
    (folder / "flat\nname_00_start.py").write_text(SOLUTION)
    table = tmp_path / "grades.csv"
    options = ["--csv", str(table), "--gradescope", str(results), "--json", str(tmp_path / "all")]
    assert main(["grade", "--unsafe", str(folder), *options]) == 0
    found = rows(tmp_path)
    n = len(ODD_NAMES) + 1
    assert len(found) == n
    assert {row["points"] for row in found.values()} == {"12"}
    shown = {"new\\nline", "\\x1b[2Jcleared", "not\\xffutf8", "flat\\nname", "größe я 量"}
    assert shown <= {*found}
    lines = capsys.readouterr().out.splitlines()
    of_rows = [line.partition("  its file is ")[0].split() for line in lines]
    assert sum(words[-3:] == ["12", "12", "12"] for words in of_rows) == n
    assert all(line.isprintable() for line in lines)
    assert len(json.loads((tmp_path / "all").read_text())["submissions"]) == n
    assert len([*results.iterdir()]) == n
    assert all(json.loads(path.read_text())["score"] == 12 for path in results.iterdir())


ALIKE = [
    "Rene\u0301",
    "Ren\xe9",
    "ada",
    "\u0430da",
    "ada ",
    "a\ufe0fda",
    "\uff41da",
    "\x1b[2Jx",
    "\\x1b[2Jx",
    "\x9b",
    os.fsdecode(b"\x9b"),
    "\\x9b",
    "=1+1",
    "'=1+1",
    "x" * 60 + "1",
    "x" * 60 + "2",
    "a b",
    "a_b",
]


def test_names_that_look_alike_are_told_apart_everywhere(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NO_COLOR", "1")
    folder, results = tmp_path / "in", tmp_path / "results"
    try:
        for name in ALIKE:
            (folder / name).mkdir(parents=True)
            (folder / name / "00_start.py").write_text("")
    except OSError:
        pytest.skip("this file system knows fewer names")
    if len([*folder.iterdir()]) < len(ALIKE):
        pytest.skip("this file system takes some for one")
    monkeypatch.setattr(grading, "grade", lambda *_, **__: Result(1))
    options = ["--gradescope", str(results), "--csv", str(tmp_path / "grades.csv"), "--json"]
    main(["grade", "--unsafe", "--seed", "1", str(folder), *options, str(tmp_path / "all")])
    lines = capsys.readouterr().out.splitlines()[1 : len(ALIKE) + 1]
    of_json = [one["name"] for one in json.loads((tmp_path / "all").read_text())["submissions"]]
    with open(tmp_path / "grades.csv", encoding="utf-8-sig", newline="") as file:
        of_csv = [row["submission"] for row in csv.DictReader(file)]
    of_terminal = [re.split(r" +– ? +0 +12| +0 +0 +12", line)[0] for line in lines]
    for names in (of_json, of_csv, of_terminal):
        shown = {unicodedata.normalize("NFKC", name).strip() for name in names}
        assert len(shown) == len(ALIKE), names
        assert all(name.isprintable() for name in names)
    assert {"ada", r"\xd0\xb0da", r"ada\x20", r"Rene\xcc\x81", r"Ren\xc3\xa9"} <= {*of_json}
    assert {r"\x1b[2Jx", r"\x5cx1b[2Jx"} <= {*of_json}
    assert len({path.name.casefold() for path in results.iterdir()}) == len(ALIKE)
    assert any("its file is a_b-2.json" in line for line in lines)


def test_two_names_are_never_shown_as_one():
    pieces = [b"a", b"\\", b"x1b", b"\x1b", b"\n", b"n", b"\xff", b"\xc3\xbf", b"y\xcc\x88", b" "]
    pieces += [b"\xc2\x9b", b"\x9b", b"\xc2", b"'", b"="]
    names = {os.fsdecode(b"".join(some)) for some in itertools.product(pieces, repeat=3)}
    assert len({*submissions.told_apart(names).values()}) == len(names)


LOOP = "while True:\n    pass\n"
LOOPS_INSIDE = "    while True:\n        pass\n"
GONE = "import os, shutil\nshutil.rmtree(os.getcwd())\n"
LOCKED = "import os\nos.makedirs('a/b')\nos.chmod('a/b', 0)\nos.chmod('a', 0)\nos.chmod('.', 0)\n"
LITTER = (
    "import os\nassert os.listdir('.') == ['exercises'], 'litter'\n"
    "open('numpy.py', 'w').write('1 // 0')\n"
)


def has_walls():
    with Server() as server, Worker(server, "", "x.py") as worker:
        return "other files" not in worker.limits_missing


def test_a_loop_and_a_deleted_folder_cost_their_own_row(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NO_COLOR", "1")
    lesson = load_lesson("00_start")
    for exercise in lesson.exercises.values():
        monkeypatch.setattr(exercise, "limits", Limits(load_seconds=0.5, call_seconds=0.5))
    folder = tmp_path / "handed_in"
    texts = {
        "a right": SOLUTION,
        "b loops at import": LOOP + SOLUTION,
        "c loops": SOLUTION.replace('    return "hello', LOOPS_INSIDE + '    return "hello', 1),
        "d deletes its folder": GONE + SOLUTION,
        "e locks its folder": LOCKED + SOLUTION,
        "f leaves files": LITTER + SOLUTION,
        "g leaves files": LITTER + SOLUTION,
        "h right": SOLUTION,
    }
    for who, text in texts.items():
        hand_in(folder, who, text)
    temporary = tmp_path / "temporary"  # its own: other tests use the common one meanwhile
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    assert main(["grade", "--unsafe", str(folder), "--csv", str(tmp_path / "grades.csv")]) == 1
    found = {who: (row["status"], row["points"]) for who, row in rows(tmp_path).items()}
    assert found.pop("b loops at import") == ("graded", "0")
    assert found.pop("c loops") == ("graded", "11")
    gone = ("graded", "0") if has_walls() else ("graded", "12")  # they hold its folder
    assert found.pop("d deletes its folder") == found.pop("e locks its folder") == gone
    assert {*found.values()} == {("graded", "12")}
    assert os.listdir(temporary) == []


def test_a_file_that_loops_at_import_is_waited_for_once(tmp_path, monkeypatch):
    lesson = load_lesson("00_start")
    for exercise in lesson.exercises.values():
        monkeypatch.setattr(exercise, "limits", Limits(load_seconds=0.2))
    hand_in(tmp_path, "anna", LOOP + SOLUTION)
    started, new_folder = [], Server.new_folder

    def counted(server):
        started.append(server)
        return new_folder(server)

    monkeypatch.setattr(Server, "new_folder", counted)
    with Server() as server:
        result = grade(server, lesson, tmp_path / "anna" / "exercises" / "00_start.py", seed=3)
    assert len(started) == 1
    assert {e.first_failure.message.key for e in result.exercises} == {"time"}


def test_a_file_that_cannot_be_read_is_not_graded_and_says_why(tmp_path, monkeypatch):
    hand_in(tmp_path, "anna", SOLUTION)

    def refuse(path, *_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(submissions, "open_file", refuse)
    [anna] = find_submissions(tmp_path)
    assert anna.files == {}
    assert anna.fault == "00_start.py cannot be read: Permission denied"


PARSED_TO_DEATH = {
    "minus": b"x = " + b"-" * 50_000 + b"1\n",
    "elif": b"if 0:\n    pass\n" + b"elif 0:\n    pass\n" * 15_000,
    "digits": b"x = 0x" + b"f" * 5000 + b"\n",
    "default": b"def hello(x=0x" + b"f" * 5000 + b"):\n    pass\n",
    "surrogate": b'# coding: unicode_escape\nx = "\\ud800"\n',
    "utf7": b'# coding: utf-7\nx = "+2AA-"\n',
}


def test_files_that_break_a_parser_are_rows_like_others(tmp_path, capsys):
    for who, content in PARSED_TO_DEATH.items():
        (tmp_path / "class" / who).mkdir(parents=True)
        (tmp_path / "class" / who / "00_start.py").write_bytes(content)
    table = tmp_path / "grades.csv"
    assert main(["grade", "--unsafe", str(tmp_path / "class"), "--csv", str(table)]) == 1
    with open(table, encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["submission"]: row["status"] for row in rows} == dict.fromkeys(
        PARSED_TO_DEATH, "graded"
    )
    assert {row["points"] for row in rows} == {"0"}


def test_a_file_that_becomes_a_link_before_it_is_read_earns_nothing(tmp_path):
    for name in ("ada", "eve"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "00_start.py").write_text(SOLUTION)
    (tmp_path / "fay_00_start.py").write_text(SOLUTION)
    found = {one.name: one for one in find_submissions(tmp_path)}
    for path in (tmp_path / "eve" / "00_start.py", tmp_path / "fay_00_start.py"):
        path.unlink()
        path.symlink_to(tmp_path / "ada" / "00_start.py")
    for name, points in (("ada", load_lesson("00_start").points), ("eve", 0), ("fay", 0)):
        one = found[name]
        path, within = one.files["00_start"], one.within["00_start"]
        with Server() as server:
            result = grade(server, load_lesson("00_start"), path, seed=3, within=within)
        assert result.points == points


def test_a_link_beside_others_files_earns_nothing(tmp_path):
    (tmp_path / "ada_00_start.py").write_text(SOLUTION)
    (tmp_path / "eve_00_start.py").symlink_to(tmp_path / "ada_00_start.py")
    ada, eve = find_submissions(tmp_path)
    assert list(ada.files) == ["00_start"]
    assert eve.files == {}
    assert "link" in eve.notes[0]


def test_root_is_refused_where_files_would_have_its_rights(tmp_path, monkeypatch, capsys):
    hand_in(tmp_path, "ada", SOLUTION)
    monkeypatch.setattr(strangers, "is_root", lambda: True)
    monkeypatch.setattr(strangers, "other_user", lambda **_: (None, "it cannot read Python"))
    assert main(["grade", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "you are root" in said
    assert "it cannot read Python" in said
    assert main(["grade", str(tmp_path), "--unsafe"]) in (0, 1)
    assert "each file ran as root" in capsys.readouterr().out


@pytest.mark.parametrize("links", [True, False])
def test_another_user_can_read_the_kernels(links, tmp_path, monkeypatch):
    (tmp_path / "kernel").write_bytes(b"code")
    (tmp_path / "kernel").chmod(0o600)
    if not links:

        def link(*_):
            raise OSError(18, "Invalid cross-device link")

        monkeypatch.setattr(os, "link", link)
    monkeypatch.setattr(strangers, "cache_folder", lambda: tmp_path)
    with strangers.kernels_for(None) as folder:
        assert folder == str(tmp_path)
    with strangers.kernels_for(strangers.USER) as folder:
        copy = Path(folder) / "kernel"
        assert copy.read_bytes() == b"code"
        if os.name == "posix":
            assert [path.stat().st_mode & 0o777 for path in (copy.parent, copy)] == [0o755, 0o644]
        assert os.path.samefile(copy, tmp_path / "kernel") == links
    assert not copy.exists()
    assert (tmp_path / "kernel").read_bytes() == b"code"


@pytest.mark.parametrize("has_solutions", [True, False])
def test_kernels_are_compiled_by_what_is_trusted(has_solutions, tmp_path, monkeypatch, capsys):
    servers, graded = [], []

    def serve(**options):
        servers.append(options.get("kernels") is None)
        return Server(**options)

    monkeypatch.setattr(grading, "Server", serve)
    monkeypatch.setattr(strangers, "is_root", lambda: False)
    grade_all = grading.grade

    def note(server, lesson, path, **options):
        graded.append((path, options.get("names")))
        return grade_all(server, lesson, path, **{"names": ["Softplus"], **options, "seed": 1})

    monkeypatch.setattr(grading, "grade", note)
    if not has_solutions:
        monkeypatch.setattr(type(installed()), "solution", lambda self, stem: None)
    solution = installed().root / "solutions" / "07_functions.py"
    (tmp_path / "class" / "ada").mkdir(parents=True)
    handed = tmp_path / "class" / "ada" / solution.name
    handed.write_bytes(solution.read_bytes())
    main(["grade", "--unsafe", str(tmp_path / "class")])
    assert servers == [True, not has_solutions]
    assert [path for path, _ in graded] == ([solution] if has_solutions else []) + [handed]
    assert ("cache of kernels" in capsys.readouterr().err) == (not has_solutions)
    if has_solutions:
        assert "Softplus" in graded[0][1]


def test_a_system_without_walls_is_named(tmp_path):
    path = tmp_path / "00_start.py"
    path.write_text(SOLUTION)
    with Server() as server:
        result = grade(server, load_lesson("00_start"), path, names=["hello"], seed=1)
    result.exercises[0].limits_missing[:] = ["other files", "memory"]
    book = Gradebook(["00_start"], 1, [Row("ada", results={"00_start": result})])
    assert book.summary()[-1] == "this system sets no limit on: memory, other files"
    result.exercises[0].limits_missing.clear()
    assert "limit" not in "".join(book.summary())


# ---- whose file is it? ---------------------------------------------------------------------------


def found_in(folder):
    return {one.name: one for one in find_submissions(folder)}


def test_a_link_to_a_classmate_earns_nothing(tmp_path):
    hand_in(tmp_path, "ada", SOLUTION)
    (tmp_path / "zed").symlink_to(tmp_path / "ada", target_is_directory=True)
    found = found_in(tmp_path)
    assert found["ada"].files
    assert not found["zed"].files
    assert found["zed"].notes == ["is a link to a folder: not followed"]


@pytest.mark.parametrize("name", ["tests", ".eve", "solutions", "minigrad"])
def test_a_student_may_be_called_anything(name, tmp_path):
    hand_in(tmp_path, name, SOLUTION)
    hand_in(tmp_path, "ada", SOLUTION)
    (tmp_path / ".git").mkdir()
    (tmp_path / "__MACOSX").mkdir()
    assert sorted(found_in(tmp_path)) == sorted(["ada", name])


def test_a_file_beside_a_folder_does_not_replace_what_is_in_it(tmp_path):
    hand_in(tmp_path, "bob", SOLUTION)
    (tmp_path / "bob_00_start.py").write_text("x = 1\n")
    [bob] = find_submissions(tmp_path)
    assert bob.files["00_start"].parent == tmp_path / "bob" / "exercises"
    assert "bob_00_start.py beside it" in bob.notes[0]


def test_exercises_beside_submissions_make_the_class_no_single_row(tmp_path):
    for who in ("ada", "bob"):
        hand_in(tmp_path, who, SOLUTION)
    hand_in(tmp_path, "exercises", SOLUTION)
    (tmp_path / "00_start.py").write_text(SOLUTION)
    found = found_in(tmp_path)
    assert sorted(found) == ["00_start.py", "ada", "bob", "exercises"]
    assert "nobody knows whose" in found["00_start.py"].notes[0]


@pytest.mark.parametrize("mark", ["lessons", ".minigrad"])
def test_a_course_folder_with_old_copies_is_one_submission(mark, tmp_path):
    (tmp_path / mark).mkdir()
    hand_in(tmp_path, ".", SOLUTION)
    hand_in(tmp_path, "old", SOLUTION)
    [one] = find_submissions(tmp_path)
    assert one.files["00_start"].parent == tmp_path / "exercises"


@pytest.mark.parametrize("has_file", [False, True])
def test_what_cannot_be_read_is_not_graded_instead_of_0(has_file, tmp_path, monkeypatch, capsys):
    hand_in(tmp_path / "class", "ada", SOLUTION)
    locked = tmp_path / "class" / "ada" / "data"
    locked.mkdir()
    if not has_file:
        (tmp_path / "class" / "ada" / "exercises").rename(locked / "exercises")
    scan = os.scandir

    def refuse(path):
        if str(path) == str(locked):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)  # the superuser may read all there is
    [ada] = find_submissions(tmp_path / "class")
    said = "data cannot be read: Permission denied"
    assert (ada.fault, ada.notes) == (("", [said]) if has_file else (said, []))
    status = main(["grade", "--unsafe", str(tmp_path / "class"), "--lessons", "00"])
    assert status == (0 if has_file else 3)
    assert ("NOT GRADED: " + said in capsys.readouterr().out) == (not has_file)


def test_file_names_for_gradescope_keep_every_script():
    rows = [Row(name) for name in ("王伟", "李娜", ".eve", "a/b", "a_b", "ж" * 300)]
    names = [file_name(Gradebook(["00_start"], 1, rows[: n + 1])) for n in range(len(rows))]
    assert names == [
        "王伟.json", "李娜.json", "eve.json", "a_b.json", "a_b-2.json", "ж" * 60 + ".json"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("file", "who"),
    [
        ("smith_12_00_start.py", "smith_12"),
        ("team_07_start_00_start.py", "team_07_start"),
        ("02_graph_00_start.py", "02_graph"),
        ("smith_12_00_start (1).py", "smith_12"),
        ("smith_12-00_start.py", "smith_12"),
    ],
)
def test_a_name_with_digits_before_the_stem_is_a_name(file, who, tmp_path):
    (tmp_path / file).write_text(SOLUTION)
    [handed] = find_submissions(tmp_path)
    assert handed.name == who
    assert handed.files == {"00_start": tmp_path / file}
    assert handed.notes == ([f"graded {file}"] if "(1)" in file else [])


def test_two_files_for_one_name_are_told_by_their_names(tmp_path):
    for file in ("jones-00_start.py", "jones_00_start.py"):
        (tmp_path / file).write_text(SOLUTION)
    [jones] = find_submissions(tmp_path)
    assert jones.files["00_start"].name == "jones-00_start.py"
    assert jones.notes == [
        "graded jones-00_start.py, not jones_00_start.py: both are 00_start.py of jones"
    ]


@pytest.mark.parametrize("name", ["::stop-commands::pwn", " ::error::pwn", "##[error]pwn"])
def test_no_name_is_a_command_of_a_workflow(name):
    from minigrad.grader.report import Style

    line = Gradebook(["00_start"], 1).line(Row(name), 32, Style(plain=True))
    assert "pwn" in line
    assert without_command(line) == line


def test_notes_of_a_row_fit_into_a_cell_of_a_spreadsheet():
    book = Gradebook(["00_start"], 1)
    book.rows = [Row("anna", notes=[f"{number}.py is not graded" for number in range(9999)])]
    [_, row] = csv.reader(book.as_csv().splitlines())
    assert len(row[-1]) <= 2000
    assert row[-1].endswith(" …")
