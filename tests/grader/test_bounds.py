"""No reply costs the grader more than a moment, and none ends the run, whatever its form."""

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from minigrad.course.mutants import message_key
from minigrad.grader import disk_usage, run, tester, wire
from minigrad.grader.fingerprint import file_hash
from minigrad.grader.folder import known_stems, load_lesson
from minigrad.grader.launcher import GraderError
from minigrad.grader.limits import Limits
from minigrad.grader.run import Submission, WorkerRunner, grade_exercise, hold_back, run_check
from minigrad.grader.sandbox import Ended, Reply, Worker
from minigrad.grader.wire import (
    HEADER,
    GarbledError,
    Other,
    as_if_received,
    decode,
    encode,
    leaves,
)

PRIME = 2**61 - 1  # by which Python takes numbers modulo for their hash

EXERCISES = [
    exercise for stem in known_stems() for exercise in load_lesson(stem).exercises.values()
]
FORGED = (
    None, True, -1, 10**30, float("nan"), "x", [], [[]], (), {}, {"raised": 1}, {"ok": None},
    Other("Program", "?"), np.zeros((0, 3)), np.array(7), [None] * 9, {"type": []}, {(): 1},
)  # fmt: skip
MALFORMED = ({}, {"ok": 1}, {"raised": None}, {"raised": {"kinds": 3}}, {"raised": {"frames": 1}})


# ---- what is sent is cut, by a worker that does as it should -------------------------------------


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (list(range(10**6)), "1,000,000 items are too many to send"),
        (tuple(range(10**6)), "1,000,000 items are too many to send"),
        (dict.fromkeys(range(10**5)), "200,000 items are too many to send"),
        ("x" * 10**6, "a text of 1,000,000 characters"),
        (np.zeros(10**7), "80,000,000 bytes are too many"),
        ([2**1000] * 50_000, "bytes are too many"),
    ],
    ids=["list", "tuple", "dict", "text", "array", "ints"],
)
def test_what_is_too_long_arrives_as_a_few_words(value, said):
    got = as_if_received(value)
    assert isinstance(got, Other)
    assert got.type_name == type(value).__name__
    assert said in got.text


def test_of_a_reply_that_is_too_long_the_short_parts_arrive():
    got = as_if_received({"ok": [2**1000] * 50_000, "n_calls": [3], "evaluated_at": []})
    assert isinstance(got["ok"], Other)
    assert got["n_calls"] == [3]


def test_a_list_that_is_just_short_enough_arrives():
    values = list(range(wire.MAX_ITEMS - 1))
    assert as_if_received(values) == values
    assert isinstance(as_if_received([*values, 0]), Other)


def test_arrays_arrive_while_their_bytes_together_are_few_enough():
    half = np.zeros(wire.MAX_ARRAY_BYTES // 2, np.uint8)
    first, second, third = as_if_received([half, half, half])
    assert first.nbytes == second.nbytes == half.nbytes
    assert isinstance(third, Other)


@pytest.mark.parametrize("around", [lambda x: [x], lambda x: (x,), lambda x: {"a": x}])
def test_what_is_nested_arrives_as_deep_as_it_may(around):
    value = 1
    for _ in range(wire.MAX_DEPTH):
        value = around(value)
    assert as_if_received(value) == value
    for _ in range(5):
        value = around(value)
    assert "nested too deep" in str(as_if_received(value))


def test_a_list_whose_class_lies_about_its_length_is_counted():
    class Short(list):
        def __len__(self):
            return 1

    assert isinstance(as_if_received(Short(range(10**6))), Other)


# ---- what comes is refused, from one that does not -----------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        b"[" + b"[]," * wire.MAX_ITEMS + b"0]",
        b'"' + b"x" * (wire.MAX_TEXT + 1) + b'"',
        b'{"dict": [["' + b"x" * (wire.MAX_TEXT + 1) + b'", 1]]}',
        b"[" * 10**5 + b"]" * 10**5,
        b"9" * 10**5,
        json.dumps({"dict": [[k * PRIME, None] for k in range(10_000)]}).encode(),
        json.dumps({"dict": [[{"tuple": [k * PRIME]}, None] for k in range(10_000)]}).encode(),
        json.dumps([k * PRIME for k in range(10_000)]).encode(),
        json.dumps([[{"tuple": [0, k * PRIME]}] for k in range(10_000)]).encode(),
        b'{"tuple": 3}',
        b'{"dict": [1]}',
        b'{"other": [], "text": {}, "again": 5, "array": null}',
    ],
    ids=[
        "items",
        "text",
        "key",
        "nested",
        "digits",
        "hash",
        "hash of tuples",
        "hash in a list",
        "hash of tuples in lists",
        "tuple",
        "dict",
        "array",
    ],
)
def test_a_forged_reply_is_garbled(text):
    with pytest.raises(GarbledError):
        decode(text, b"")


@pytest.mark.parametrize(
    "keys",
    [
        range(-20_000, 20_000),
        [k * 2**61 for k in range(20_000)],
        [k * 2.0**61 for k in range(20_000)],
        [2.0**k for k in range(-1074, 1024)],
        [2**k for k in range(1024)],
        [(k, -k) for k in range(-5_000, 5_000)],
        [np.float32(k / 8) for k in range(2_000)],
    ],
    ids=["ints", "large ints", "large floats", "powers", "powers of int", "pairs", "float32"],
)
def test_a_dict_that_somebody_computes_arrives(keys):
    values = dict.fromkeys(keys, 1)
    assert as_if_received(values) == values


def test_a_list_that_somebody_computes_arrives():
    values = [0, -1, -2, 0.0, True, None, "x", *([PRIME] * 500), (), (1, [2]), [(1, 2)] * 500]
    values += [float(k) for k in range(-2_000, 2_000)] + [2.0**k for k in range(-1074, 1024)]
    assert as_if_received(values) == values


def test_tuples_in_tuples_of_one_hash_are_refused_in_a_moment():
    tree: list = []
    for k in range(3_000):
        one = k * PRIME
        for _ in range(20):
            one = {"tuple": [one]}
        tree.append(one)
    started = time.process_time()
    with pytest.raises(GarbledError, match="64 different values with one hash"):
        decode(json.dumps(tree).encode(), b"")
    assert time.process_time() - started < 5.0


def test_things_that_look_alike_are_one_key():
    class Thing:
        def __repr__(self):
            return "a thing"

    assert len(as_if_received({Thing(): k for k in range(1_000)})) == 1


def test_a_request_may_be_as_long_as_it_is():
    values = list(range(200_000))
    frame = encode(values, trusted=True)
    assert decode(frame[HEADER.size :], b"", trusted=True) == values


# ---- what a check makes of a reply ---------------------------------------------------------------


class Forger(WorkerRunner):
    """A runner without a worker: every call returns the same."""

    def __init__(self, server, exercise, reply):
        submission = Submission(Path(f"exercises/{exercise.lesson.stem}.py"), "x = 1\n")
        super().__init__(server, submission, exercise)
        self.reply = reply

    def call(self, name, arguments, *, drive=False):
        if "ok" not in self.reply:
            return {"raised": run.checked_raised(self.reply.get("raised"))}
        return {"arguments_after": arguments, "evaluated_at": [], "n_calls": [], **self.reply}

    def get(self, name):
        return self.reply.get("ok")

    def alone(self, name, arguments):
        return None

    def printed(self):
        return ""


def test_of_a_reply_only_what_a_worker_sends_is_kept(server):
    exercise = load_lesson("00_start").exercises["hello"]
    fields = {"ok": 1, "arguments_after": [], "evaluated_at": [], "n_calls": [], "earlier": 2}
    content = {**fields, "more": np.zeros(wire.MAX_ARRAY_BYTES // 8)}
    runner = WorkerRunner(server, Submission(Path("exercises/00_start.py"), ""), exercise)
    runner.start = lambda: SimpleNamespace(call=lambda *_, **__: Reply(content, 0.0))  # type: ignore
    assert runner.call("hello", []) == {**fields, "answers_used": []}


def test_replies_to_a_check_take_little_memory(server):
    exercise = load_lesson("00_start").exercises["hello"]
    runner = Forger(server, exercise, {"ok": np.zeros(2**20), "earlier": None})
    t = tester.Tester(exercise, "text", runner, seed=1)
    for _ in range(40):
        t.call("hello", np.zeros(2**20))
        kept = [*leaves(t.replies, np.ndarray)]
        assert sum(array.nbytes for array in kept) <= tester.MAX_KEPT


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_a_forged_reply_fails_checks_and_ends_nothing(exercise, server):
    replies = [{"ok": value} for value in FORGED] + list(MALFORMED)
    replies += [{"ok": 1, "n_calls": value, "evaluated_at": value} for value in ([], ["x"], [None])]
    for reply in replies:
        runner = Forger(server, exercise, reply)
        outcomes = [run_check(exercise, check, runner, seed=1) for check in exercise.checks]
        hold_back(exercise, outcomes)
        assert any(outcome.status == "failed" for outcome in outcomes), reply
        for outcome in outcomes:
            if outcome.message is not None:
                assert outcome.message.lines(), reply


# ---- what a worker does with time ----------------------------------------------------------------

SAYS = """
import json, os, struct, time
def central_difference(f, x, eps):
    k = 0
    while True:
        text = json.dumps({{"dict": [["compiling", {what}]]}}).encode()
        for fd in range(3, 20):
            try:
                os.write(fd, struct.pack(">II", len(text), 0) + text)
            except OSError:
                pass
        k += 1
        time.sleep(0.05)
"""
LARGE = """
import os, struct
def central_difference(f, x, eps):
    for fd in range(3, 20):
        try:
            os.write(fd, struct.pack(">II", {n}, 0) + b"[" * 100)
        except OSError:
            pass
"""


def graded(server, source, monkeypatch, **limits):
    exercise = load_lesson("00_start").exercises["central_difference"]
    monkeypatch.setattr(exercise, "limits", Limits(**limits))
    return grade_exercise(server, exercise, Submission(Path("exercises/00_start.py"), source), 1)


@pytest.mark.parametrize(
    ("what", "key"),
    [
        ("True", "garbled"),
        ("k % 2 == 0", "compile_time"),
        ("k % 8 != 7", "garbled"),
        ("3", "garbled"),
    ],
)
def test_a_worker_that_compiles_for_ever_ends(what, key, server, monkeypatch):
    limits = {"call_seconds": 5.0, "compile_seconds": 0.5}
    result = graded(server, SAYS.format(what=what), monkeypatch, **limits)
    assert result.points == 0
    assert message_key(result) == key


def test_a_reply_longer_than_any_is_not_waited_for(server, monkeypatch):
    result = graded(server, LARGE.format(n=wire.MAX_JSON_BYTES + 1), monkeypatch)
    assert message_key(result) == "garbled"


SLOW = """
import time
def central_difference(f, x, eps):
    time.sleep(0.4)
    return (f(x + eps) - f(x - eps)) / (2 * eps)
"""


def test_all_calls_of_an_exercise_share_one_budget(server, monkeypatch):
    result = graded(server, SLOW, monkeypatch, total_seconds=2.0, call_seconds=4.0)
    assert not result.passed
    assert message_key(result) == "time"
    assert "all calls together took more than 2 s" in result.first_failure.message.got


# ---- what a worker writes ------------------------------------------------------------------------

HIDES = {
    "in a folder of which no name can be read": "os.mkdir('a', 0o300)\nwhile True: fill('a')",
    "in folders in each other": "while True:\n    os.mkdir('d' * 200)\n    os.chdir('d' * 200)",
    "in a folder that gets other names": (
        "os.mkdir('a')\n"
        "def move():\n"
        "    while True:\n"
        "        os.rename('a', 'b')\n"
        "        os.rename('b', 'a')\n"
        "threading.Thread(target=move, daemon=True).start()\n"
        "while True: fill('a')"
    ),
    "between calls": (
        "def later():\n    while True: fill('.')\n"
        "threading.Thread(target=later, daemon=True).start()\n"
    ),
}
WRITES = """
import contextlib, itertools, os, threading, time
names = itertools.count()
def fill(folder):
    with contextlib.suppress(OSError):
        with open(f'{folder}/{next(names)}', 'wb') as file:
            file.write(bytes(2**20))
def write():
    exec(TEXT, globals())
def f():
    while True: time.sleep(1)
"""


@pytest.mark.parametrize("name", HIDES)
def test_files_that_are_hidden_are_found(name, server):
    source = f"TEXT = {HIDES[name]!r}\n{WRITES}"

    def write():
        worker.call("write", [])
        worker.call("f", [])

    with Worker(server, source, "x.py") as worker, pytest.raises(Ended) as ended:
        write()
    assert ended.value.key == "files"


def test_a_few_files_are_no_excess(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    for k in range(5):
        (tmp_path / "a" / f"{k}").write_bytes(bytes(10_000))
    assert disk_usage.excess(str(tmp_path), 100_000, 7) == ""
    assert "more than 6 files and folders" in disk_usage.excess(str(tmp_path), 100_000, 6)
    assert "more than 40,000 bytes" in disk_usage.excess(str(tmp_path), 40_000, 7)


def test_a_file_with_gaps_takes_what_lies_on_the_disk(tmp_path):
    with open(tmp_path / "gap", "wb") as file:
        file.truncate(10**9)
    if not hasattr(os.stat_result, "st_blocks") or (tmp_path / "gap").stat().st_blocks:
        pytest.skip("files have no gaps here")
    assert disk_usage.excess(str(tmp_path), 100_000, 7) == ""


def test_a_folder_that_always_vanishes_is_too_much(tmp_path):
    assert "moved its folders" in disk_usage.excess(str(tmp_path / "gone"), 100, 7)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs limits of the system's")
def test_what_is_removed_and_still_open_has_a_bound(server):
    source = (
        "import os\n\n\n"
        "def f():\n"
        "    kept = []\n"
        "    try:\n"
        "        while True:\n"
        "            kept.append(open('x', 'w'))\n"
        "            os.unlink('x')\n"
        "    except OSError:\n"
        "        return len(kept)\n"
    )
    with Worker(server, source, "x.py") as worker:
        assert 0 < worker.call("f", []).content["ok"] < Limits().open_files


def test_a_very_long_file_is_one_part():
    exercise = load_lesson("00_start").exercises["hello"]
    long = Submission(Path("exercises/00_start.py"), "x = (" + "()," * 100_000 + ")\n")
    assert long.fingerprint(exercise) == file_hash(f"hello\n{long.source}")
    assert long.uses(exercise) == []


def test_a_check_that_breaks_where_no_worker_is_is_the_graders_fault():
    exercise = load_lesson("00_start").exercises["hello"]

    class Here:
        def call(self, name, arguments, *, drive=False):
            raise ZeroDivisionError("a bug")

        def line_of(self, name):
            return ""

    with pytest.raises(GraderError, match=r"broke: ZeroDivisionError: a bug"):
        run_check(exercise, exercise.checks[0], Here(), seed=1)
