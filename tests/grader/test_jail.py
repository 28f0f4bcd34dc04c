"""bubblewrap around the fork server: what it holds where workers build no walls of their own."""

import contextlib
import os
import subprocess
import sys

import pytest

from minigrad.cli import grading, strangers
from minigrad.devices.loader import cache_folder
from minigrad.grader import jail
from minigrad.grader.folder import CourseError, load_lesson
from minigrad.grader.launcher import PROCESSES, GraderError, Server
from minigrad.grader.limits import Limits
from minigrad.grader.run import Submission, grade_exercise
from minigrad.grader.sandbox import Ended, Worker
from tests.grader.attacks import AROUND, ENGINE, PLAIN
from tests.grader.test_attacks import ROOT, SOLUTION, with_places

WHY = jail.hindrance()
needs_bwrap = pytest.mark.skipif(WHY is not None, reason=f"no jail here: {WHY}")
# What a jail alone does not refuse, as it reaches nothing but what is inside. A fork server that is
# killed ends its jail; an answer may come before that.
HARMLESS = {
    "kills its parent around the guard",
    "kills a thread of its parent",
    "kills its parent by a queued signal",
    "has signals sent to its parent",
    "makes its parent wait",
    "makes its parent read last",
    "asks about memory that others see",
    "forks around the guard",
    "starts a program",
    "limits its parent",
    "slows its parent",
    "opens a socket",
    "opens a socket of the machine",
    "leaves memory that others see",
    "takes a place for asynchronous reading",
    "takes a place for watching files",
    "takes pages of the pipes of a user",
    "lists the root folder",
    "traces its parent",
}


@pytest.fixture
def jailed():
    with Server(jailed=True, kernels=str(cache_folder()), walled=False) as server:
        yield server


def grade(server, victim, source):
    exercise = load_lesson(victim.stem).exercises[victim.name]
    return grade_exercise(server, exercise, Submission(ROOT / "exercises" / "x.py", source), 3)


@needs_bwrap
@pytest.mark.parametrize("name", AROUND)
def test_a_jail_alone_keeps_what_is_outside(name, jailed, tmp_path):
    file = tmp_path / "classmate.py"
    file.write_text("the work of a week")
    before = file.stat()
    with contextlib.suppress(GraderError):  # the fork server inside may be gone
        result = grade(jailed, PLAIN, with_places(AROUND[name](PLAIN), victim=str(file)))
        assert result.points == 0 or name in HARMLESS
    after = file.stat()
    assert file.read_text() == "the work of a week"
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
    assert not (ROOT / "solutions" / "left_behind.txt").exists()


@needs_bwrap
def test_solutions_have_all_their_points_in_a_jail_with_walls():
    with Server(jailed=True, kernels=str(cache_folder())) as server:
        for victim in (PLAIN, ENGINE):
            path = ROOT / "solutions" / f"{victim.stem}.py"
            result = grade(server, victim, path.read_text(encoding="utf-8"))
            assert result.points == load_lesson(victim.stem).exercises[victim.name].points
            assert not result.limits_missing


@needs_bwrap
def test_what_a_file_sees_in_a_jail(jailed, tmp_path):
    source = (
        "import os\n\n\n"
        "def see(path):\n"
        "    pids = [name for name in os.listdir('/proc') if name.isdigit()]\n"
        "    with open('/proc/net/dev') as file:\n        links = file.read().count(':')\n"
        "    return [os.getuid(), len(pids), links, os.path.exists(path)]\n"
    )
    with Worker(jailed, source, "exercises/x.py") as worker:
        reply = worker.call("see", [str(tmp_path)]).content
        user, n_processes, n_links, is_there = reply["ok"]
        assert worker.cpu_seconds() is not None  # of the right process
    assert (user, n_links, is_there) == (65534, 1, False)
    assert n_processes <= 3


@needs_bwrap
def test_a_jail_has_one_place_to_write(jailed):
    source = (
        "import os\n\n\n"
        "def write(paths):\n"
        "    done = []\n"
        "    for path in paths:\n"
        "        try:\n"
        "            os.close(os.open(os.path.join(path, 'new'), os.O_CREAT | os.O_WRONLY))\n"
        "            done.append(path)\n"
        "        except OSError:\n            pass\n"
        "    return done\n"
    )
    hidden = [str(jail.PACKAGE / name) for name in jail.HIDDEN]
    paths = [".", "/", "/tmp", "/dev", "/dev/shm", "/proc", "/etc", *hidden]
    with Worker(jailed, source, "x.py") as worker:
        assert worker.call("write", [paths]).content["ok"] == ["."]


@needs_bwrap
def test_an_endless_loop_in_a_jail_ends_in_its_time(jailed):
    limits = Limits(load_seconds=10.0, call_seconds=0.5)
    with (
        Worker(
            jailed, "def f():\n    while True:\n        pass\n", "x.py", limits=limits
        ) as worker,
        pytest.raises(Ended) as ended,
    ):
        worker.call("f", [])
    assert ended.value.key == "time"


@needs_bwrap
def test_nothing_of_a_jail_outlives_its_server():
    source = (
        "import ctypes\nimport time\n\n\n"
        "def f():\n"
        "    pid = ctypes.CDLL(None).fork()\n"
        "    if pid == 0:\n        time.sleep(60)\n"
        "    return pid\n"
    )
    with Server(jailed=True, kernels=str(cache_folder()), walled=False) as server:
        worker = Worker(server, source, "x.py")
        left = server.pid_here(worker.call("f", []).content["ok"])
        assert os.path.exists(f"/proc/{left}")
    assert not os.path.exists(f"/proc/{left}")
    assert not os.path.exists(server.folder)
    worker.close()


@needs_bwrap
def test_a_jail_has_few_processes(tmp_path, monkeypatch):
    user, why = strangers.other_user(jailed=True) if strangers.is_root() else (None, "")
    if why:
        pytest.skip(f"no limit on processes holds root, and no other user is here: {why}")
    source = (
        "import ctypes\nimport time\n\n\n"
        "def f():\n"
        "    fork = ctypes.CDLL(None).fork\n"
        "    for n in range(200):\n"
        "        pid = fork()\n"
        "        if pid == 0:\n            time.sleep(60)\n"
        "        if pid < 0:\n            return n\n"
        "    return 200\n"
    )
    monkeypatch.setattr(strangers, "cache_folder", lambda: tmp_path)
    with (
        strangers.kernels_for(user) as kernels,
        Server(jailed=True, kernels=kernels, walled=False, user=user) as server,
        Worker(server, source, "x.py") as worker,
    ):
        assert worker.call("f", []).content["ok"] < min(PROCESSES, 200)


@needs_bwrap
@pytest.mark.skipif(not jail.root_changes_user(), reason="only root changes the user in a jail")
def test_root_becomes_another_user_in_a_jail_and_keeps_no_right():
    source = (
        "import os\n\n\n"
        "def see():\n"
        "    with open('/proc/self/status') as file:\n        lines = file.read().split('\\n')\n"
        "    rights = [line.split()[1] for line in lines if line[:6] in ('CapEff', 'CapPrm')]\n"
        "    return [os.getresuid(), os.getresgid(), os.getgroups(), rights]\n"
    )
    user = strangers.USER
    kernels = str(cache_folder())
    with (
        Server(jailed=True, kernels=kernels, walled=False, user=user) as server,
        Worker(server, source, "x.py") as worker,
    ):
        users, groups, others, rights = worker.call("see", []).content["ok"]
    assert (users, groups, others) == ((user,) * 3, (user,) * 3, [])
    assert {int(one, 16) for one in rights} == {0}


@needs_bwrap
def test_nobody_counts_the_processes_of_root(monkeypatch):
    with Server(jailed=True, kernels="") as server:
        assert server.processes == (None if strangers.is_root() else PROCESSES)


def test_no_jail_without_the_program(monkeypatch):
    monkeypatch.setattr(jail, "PROGRAM", "no-such-program")
    assert "bubblewrap" in (jail.hindrance() or "")
    with pytest.raises(CourseError, match="--jail=bwrap cannot be used here"):
        grading.can_be_jailed(None)


@needs_bwrap
def test_grade_in_a_jail(tmp_path):
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / "00_start.py").write_text(SOLUTION)
    line = [sys.executable, "-m", "minigrad.cli.main", "grade", str(tmp_path), "--jail=bwrap"]
    done = subprocess.run(line, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1, done.stderr
    assert "jail of bubblewrap" in done.stdout
