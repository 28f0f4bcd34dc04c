"""What a hostile or broken file may do: it costs its own exercise, never the run."""

import contextlib
import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

import minigrad
from minigrad.cli import strangers
from minigrad.course.mutants import grade_source, message_key
from minigrad.devices.loader import cache_folder
from minigrad.grader import launcher, walls
from minigrad.grader.folder import load_lesson
from minigrad.grader.launcher import GraderError, Server
from minigrad.grader.limits import Limits
from minigrad.grader.rights import READ_SEARCH
from minigrad.grader.run import Submission, WorkerRunner, engine_of, grade_exercise
from minigrad.grader.sandbox import Worker
from tests.grader.attacks import AROUND, ATTACKS, ENGINE, HEAD, PLAIN, body

ROOT = Path(__file__).parents[2]
PLACES = {"solutions": str(ROOT / "solutions"), "package": str(Path(minigrad.__file__).parent)}
RIGHT = "    return (f(x + eps) - f(x - eps)) / (2 * eps)\n"
SOLUTION = f"{HEAD}def central_difference(f, x, eps):\n{RIGHT}"
SHORT = Limits(load_seconds=2.0, call_seconds=1.0, memory_bytes=2**30)
LIMITS = ["cpu", "memory", "file size", "open files"]  # what `limits.apply` sets
NO_PROCESS = 2**22 + 1  # more than any system counts up to
PATIENT = replace(SHORT, load_seconds=30.0, call_seconds=20.0)  # for what ends by itself


@contextlib.contextmanager
def with_limits(limits):
    exercises = [load_lesson(v.stem).exercises[v.name] for v in (PLAIN, ENGINE)]
    before = [exercise.limits for exercise in exercises]
    for exercise in exercises:
        is_plain = exercise.needs == "plain"
        exercise.limits = limits if is_plain else replace(limits, load_seconds=10.0)
    try:
        yield
    finally:
        for exercise, limits in zip(exercises, before, strict=True):
            exercise.limits = limits


@pytest.fixture
def short_limits():
    with with_limits(SHORT):
        yield


def with_places(source, **places):
    for name, place in {**PLACES, **places}.items():
        source = source.replace(f"{{{name}}}", place)
    return source


def source_of(attack, victim):
    return with_places(attack.source(victim))


def grade_attack(server, name, victim):
    exercise = load_lesson(victim.stem).exercises[victim.name]
    path = ROOT / "exercises" / f"{victim.stem}.py"
    submission = Submission(path, source_of(ATTACKS[name], victim))
    return grade_exercise(server, exercise, submission, seed=3)


@pytest.mark.parametrize("victim", [PLAIN, ENGINE], ids=["plain", "engine"])
@pytest.mark.parametrize("name", ATTACKS)
def test_attack_scores_nothing_and_is_told_in_words(name, victim, server):
    limit = ATTACKS[name].limit
    if limit and not has_limits():
        pytest.skip(f"this system sets no limit on {limit}")
    key = ATTACKS[name].key(victim)
    with with_limits(SHORT if "time" in key else PATIENT):
        result = grade_attack(server, name, victim)
    assert result.points == 0
    assert re.fullmatch(key, message_key(result) or "")
    lines = result.first_failure.message.lines()
    assert len(lines) <= 12
    assert all(len(line) <= 100 for line in lines)
    labels = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert labels == ["Given", "Expected", "Got", "Where", "Try"]


def test_victim_that_needs_the_engine_is_one_that_says_so():
    assert load_lesson(ENGINE.stem).exercises[ENGINE.name].needs == "engine"
    assert load_lesson(PLAIN.stem).exercises[PLAIN.name].needs == "plain"


def has_module(name):
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


def has_limits():
    return has_module("resource")


# attacks that use what Windows has not, and are tried where it is hidden (`as_on_windows.py`)
BY_MODULE = {"lifts its own limits": "resource", "takes pages of the pipes of a user": "fcntl"}


@pytest.fixture(scope="module")
def walled(server):
    with Worker(server, "", "x.py") as worker:
        if {"other files", "processes, signals and the network"} & {*worker.limits_missing}:
            pytest.skip("this system has no walls around a process")  # and its reports say so
    return server


@pytest.mark.parametrize("victim", [PLAIN, ENGINE], ids=["plain", "engine"])
@pytest.mark.parametrize("name", AROUND)
def test_walls_hold_what_gets_around_the_guard(name, victim, walled, tmp_path):
    if name in BY_MODULE and not has_module(BY_MODULE[name]):
        pytest.skip("this system has no such module")
    file = tmp_path / "classmate.py"
    file.write_text("the work of a week")
    exercise = load_lesson(victim.stem).exercises[victim.name]
    source = with_places(AROUND[name](victim), victim=str(file))
    submission = Submission(ROOT / "exercises" / f"{victim.stem}.py", source)
    result = grade_exercise(walled, exercise, submission, seed=3)
    assert result.points == 0
    assert message_key(result) == "closed"
    assert file.read_text() == "the work of a week"
    assert not (ROOT / "solutions" / "left_behind.txt").exists()


WAYS = """
import gc
import types

import minigrad as mg
from minigrad.nn.activation import Softmax
from minigrad.ops import attention, rows, softmax, table


def ways(x):
    x = mg.variable(x)
    hidden = [
        one
        for one in gc.get_objects()
        if isinstance(one, types.FunctionType)
        and one.__name__ in ("logsumexp", "log_softmax", "cross_entropy")
        and one.__module__.startswith("minigrad.")
    ]
    told = []
    for way in (
        mg.logsumexp,
        mg.Variable.logsumexp,
        softmax.logsumexp,
        table.functions["logsumexp"],
        rows.LogSumExpRow,
        attention.SoftmaxRow.apply,
        attention.SoftmaxRow.formula,
        Softmax(),
        *hidden,
    ):
        try:
            told.append(repr(way(x)))
        except Exception as error:
            told.append(type(error).__name__)
    return told
"""


def test_what_would_be_the_answer_raises_by_every_name(server):
    exercise = load_lesson("07_functions").exercises["LogSumExp"]
    with Worker(
        server, WAYS, "x.py", engine=engine_of(exercise), answers=exercise.answers
    ) as worker:
        told = worker.call("ways", [[1.0, 2.0]]).content["ok"]
    assert set(told) <= {"AnswerUsed", "ArgumentTypeError", "TypeError"}
    assert told[:8] == ["AnswerUsed"] * 8


COLLECTS = """

_own = fix_dqn_loop


def fix_dqn_loop(loop):
    result = _own(loop)
    {}
    return result
"""
BY_C = "import ctypes as c; [getattr(c.pythonapi, f'PyGC_{x}')() for x in ('Enable', 'Collect')]"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("import sys; sys.modules.pop('gc'); import gc; gc.collect()", "answer_used"),
        (BY_C, "answer_used"),
        ("pass", None),
    ],
)
def test_a_collection_of_garbage_is_seen_whoever_asks_for_it(text, key, server):
    solution = (ROOT / "solutions" / "06_memory_growth.py").read_text()
    source = solution + COLLECTS.format(text)
    result = grade_source(server, "06_memory_growth", "fix_dqn_loop", source, seed=1)
    assert message_key(result) == key


def test_a_count_is_not_taken_from_what_the_file_put_in_its_place(server):
    stub = (ROOT / "exercises" / "06_memory_growth.py").read_text()
    lie = "\nreal = mg.memory.stats\nmg.memory.stats = lambda: {**real(), 'live_nodes': 5}\n"
    result = grade_source(server, "06_memory_growth", "fix_dqn_loop", stub + lie, seed=1)
    assert result.points == 0


FORGES = """

import sys

frame, driver = sys._getframe(), None
while frame is not None and driver is None:
    driver = frame.f_locals.get("drive")
    frame = frame.f_back
{}
"""
BY_NAME = "driver.{} = {}"
IN_ITS_NAMES = """
for cell in driver.__closure__:
    if isinstance(cell.cell_contents, dict):
        cell.cell_contents["{}"] = {}
"""
FORGED = {
    "fix_dqn_loop": ("counter_of_nodes", "lambda: lambda: 5"),
    "no_grad": ("overlapping", "lambda mine, kind: [True, False]"),
}
ONE_NOTE_FOR_ALL = """

def one_block_for_all_calls(self, function):
    if inspect.isgeneratorfunction(function):
        return decorate(self, function)

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        with self:
            return function(*args, **kwargs)

    return wrapper


decorate, no_grad.__call__ = no_grad.__call__, one_block_for_all_calls
"""
WHILE_IT_MEASURES = """

leaking = fix_dqn_loop


def fix_dqn_loop(loop):
    import sys
    names = sys._getframe().f_back.f_globals
    names.update(stats=lambda: {"live_nodes": 5}, live_nodes=lambda: 5, n_live=lambda: 5)
    return leaking(loop)
"""
BELOW = """

import sys
for module in list(sys.modules.values()):
    if getattr(module, "__name__", "").startswith("minigrad.tape"):
        vars(module).update({} if "live_nodes" not in vars(module) else {"live_nodes": list})
"""


@pytest.mark.parametrize("lie", [WHILE_IT_MEASURES, BELOW], ids=["while it measures", "below"])
def test_no_measure_is_replaced_where_it_is_looked_up(lie, server):
    stub = (ROOT / "exercises" / "06_memory_growth.py").read_text()
    result = grade_source(server, "06_memory_growth", "fix_dqn_loop", stub + lie, seed=1)
    assert result.checks[3].name == "no_growth"
    assert result.points == 0
    assert message_key(result) != "raised"


@pytest.mark.parametrize("way", [BY_NAME, IN_ITS_NAMES], ids=["by name", "in its names"])
@pytest.mark.parametrize("name", FORGED)
def test_a_driver_is_not_replaced_by_the_file_that_it_drives(name, way, server):
    stem = "06_memory_growth"
    if name == "no_grad":
        source = (ROOT / "solutions" / f"{stem}.py").read_text() + ONE_NOTE_FOR_ALL
    else:
        source = (ROOT / "exercises" / f"{stem}.py").read_text()
    expected = grade_source(server, stem, name, source, seed=1)
    forged = source + FORGES.format(way.format(*FORGED[name]))
    result = grade_source(server, stem, name, forged, seed=1)
    assert result.points == expected.points < result.of


STOLEN_ORDER = """

def stolen_order(root):
    import sys
    frame = sys._getframe()
    while "nodes" not in frame.f_locals:
        frame = frame.f_back
    known, waiting = {{id(root)}}, [root]
    while waiting:
        new = [one for one in waiting.pop().inputs if one and id(one) not in known]
        known.update(map(id, new))
        waiting += new
    return [node for node in frame.f_locals["nodes"] if id(node) in known][::{}]


{} = stolen_order
"""


@pytest.mark.parametrize(("name", "step", "points"), [("topo_order", 1, 0), ("hasty_order", -1, 2)])
def test_no_order_is_taken_from_the_driver(name, step, points, server):
    solution = (ROOT / "solutions" / "02_graph.py").read_text()
    source = solution + STOLEN_ORDER.format(step, name)
    result = grade_source(server, "02_graph", name, source, seed=1)
    assert result.points == points  # of hasty_order, those of the counterexample
    assert message_key(result) not in ("raised", "missing")


def test_a_call_tried_alone_takes_from_the_same_budget(server, monkeypatch):
    budgets = []
    call = WorkerRunner.call

    def note(self, *arguments, **options):
        budgets.append(self.spent)
        return call(self, *arguments, **options)

    monkeypatch.setattr(WorkerRunner, "call", note)
    wrong = "n = 0\n" + body("global n", "n += 1", "return 0.0 * x + n")(PLAIN)
    assert grade_source(server, PLAIN.stem, PLAIN.name, wrong, seed=1).points == 0
    assert len({id(spent) for spent in budgets}) == 1


def test_all_around_a_closed_folder_is_open(tmp_path):
    for name in ("lib/site/minigrad/course", "lib/site/numpy", "lib/other"):
        (tmp_path / name).mkdir(parents=True)
    site = tmp_path / "lib" / "site"
    readable, on_the_way = walls.around(str(tmp_path / "lib"), [str(site / "minigrad")])
    assert sorted(readable) == [str(tmp_path / "lib" / "other"), str(site / "numpy")]
    assert on_the_way == [str(tmp_path / "lib"), str(site)]
    minigrad = [str(site / "minigrad")]
    assert walls.around(str(site / "numpy"), minigrad) == ([str(site / "numpy")], [])
    assert walls.around(minigrad[0], minigrad) == ([], [])
    (tmp_path / "lib" / "other" / "link").symlink_to(site / "minigrad")
    readable, _ = walls.around(str(tmp_path / "lib"), [*minigrad, str(tmp_path / "lib/other/x")])
    assert readable == [str(site / "numpy")]


def test_kernels_of_strangers_are_not_kept(walled):
    write = "open(os.environ['MINIGRAD_CACHE'] + '/planted', 'w').close()"
    source = body("import os", write, "return x")(ENGINE)
    with Server(kernels=str(cache_folder())) as server:
        result = grade_source(server, ENGINE.stem, ENGINE.name, source, seed=1)
        assert (result.points, message_key(result)) == (0, "closed")
        solution = (ROOT / "solutions" / f"{ENGINE.stem}.py").read_text()
        assert grade_source(server, ENGINE.stem, ENGINE.name, solution, seed=1).passed


@pytest.fixture
def other_user():
    """Return the user that `grade` gives strangers' files where root grades."""
    if not strangers.is_root():
        pytest.skip("only root can run learners' code as another user")
    user, why = strangers.other_user(jailed=False)
    return user or pytest.skip(why)


RIGHTS = """
import os


def f(path):
    try:
        with open(path) as file:
            return file.read()
    except PermissionError:
        with open("/dev/null"):
            return [os.getpid(), os.getuid(), os.getgid(), os.getgroups()]
"""


def test_worker_of_another_user_grades_alike(other_user, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("of root's")
    secret.chmod(0o600)
    with Server(user=other_user) as server:
        assert grade_source(server, "00_start", PLAIN.name, SOLUTION, seed=1).passed
        solution = (ROOT / "solutions" / f"{ENGINE.stem}.py").read_text()
        assert grade_source(server, ENGINE.stem, ENGINE.name, solution, seed=1).passed
        with Worker(server, RIGHTS, "x.py") as worker:
            pid, *whose = worker.call("f", [str(secret)]).content["ok"]
            assert whose == [other_user, other_user, []]
            assert worker.limits_missing == ([] if has_limits() else LIMITS)
            status = Path(f"/proc/{pid}/status").read_text()
            for which in ("Inh", "Prm", "Eff", "Bnd", "Amb"):
                held = int(re.search(rf"^Cap{which}:\t(\w+)$", status, re.M)[1], 16)
                assert held & ~(1 << READ_SEARCH) == 0


def test_root_with_all_its_rights_has_another_user_to_grade_as():
    """Else a mistake there would only skip the tests that ask for that user."""
    rights = Path("/proc/self/status")
    held = re.search(r"^CapEff:\t(\w+)$", rights.read_text(), re.M) if rights.exists() else None
    needed = sum(1 << right for right in (0, READ_SEARCH, 6, 7, 8))  # chown, set: gid, uid, pcap
    if held is None or needed & ~int(held[1], 16) or not walls.can_close_files():
        pytest.skip("needs root with all its rights, and walls")
    assert strangers.other_user(jailed=False)[1] == ""


def test_nobody_reads_as_root_without_walls(other_user):
    with Server(user=other_user, walled=False) as server:
        if not walls.can_close_files():
            pytest.skip("no Landlock here, so nobody reads as root in any case")
        with pytest.raises(GraderError, match="no wall can be built against"):
            Worker(server, RIGHTS, "x.py")


def test_missing_wall_is_noticed_behind_those_that_stand(other_user):
    program = f"""
import errno
from minigrad.grader import rights, walls

def fails(libc):
    raise OSError(errno.ENOSYS, "no seccomp")

walls._close_calls = fails
rights.become({other_user}, reading=walls.can_close_files())
print(rights.reads_as_root())
rights.must_not_read_as_root(walls.build([], [], []))
print("went on")
"""
    environment = {**os.environ, **dict.fromkeys(launcher.THREADS, "1")}
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert run.stdout == "False\nwent on\n" or (
        run.stdout == "True\n" and "no wall can be built against processes" in run.stderr
    )


def is_readable_by(user):
    command = [sys.executable, "-c", "import minigrad.grader.worker"]
    try:
        done = subprocess.run(command, capture_output=True, **launcher.other_user(user))
    except OSError:
        return False
    return done.returncode == 0


@pytest.mark.parametrize(
    ("lacking", "why"),
    [
        ("dac_read_search", "another user cannot read this Python"),  # so in many containers
        ("setpcap", None),
        ("setuid", "root may not become another user"),
        ("chown", "not permitted"),
    ],
)
def test_root_without_one_of_its_rights(lacking, why, other_user):
    if shutil.which("setpriv") is None:
        pytest.skip("there is no setpriv to take rights away")
    program = "from minigrad.cli import strangers; print(*strangers.other_user(jailed=False))"
    line = ["setpriv", f"--bounding-set=-{lacking}", "--inh-caps=-all", sys.executable]
    done = subprocess.run([*line, "-c", program], capture_output=True, text=True, check=True)
    if lacking == "dac_read_search" and is_readable_by(other_user):
        why = None
    if why is None:
        assert done.stdout == f"{other_user} \n"
    else:
        assert done.stdout.startswith("None ")
        assert why in done.stdout


@pytest.mark.skipif(os.name != "posix", reason="folders in folders beyond what Windows allows")
def test_folders_within_folders_are_removed(tmp_path):
    here = os.getcwd()
    (tmp_path / "deep").mkdir()
    try:
        os.chdir(tmp_path / "deep")
        for _ in range(3000):
            os.mkdir("f")
            os.chdir("f")
    finally:
        os.chdir(here)
    launcher.remove(str(tmp_path / "deep"))
    assert not (tmp_path / "deep").exists()


@pytest.mark.skipif(not hasattr(os, "O_DIRECT"), reason="no O_DIRECT here")
def test_output_that_is_read_in_blocks_only_is_nothing():
    source = (
        "import fcntl\nimport os\n\n\ndef f():\n    print('x', flush=True)\n"
        "    return fcntl.fcntl(1, fcntl.F_SETFL, os.O_DIRECT)\n"
    )
    with Server() as server, Worker(server, source, "x.py") as worker:
        worker.call("f", [])
        assert worker.printed() in ("", "x\n")  # some file systems take the flag and ignore it


def test_attack_then_solution_both_are_graded_by_one_server(server, short_limits):
    loop = ATTACKS["endless loop"].source(PLAIN)
    assert grade_source(server, "00_start", PLAIN.name, loop, seed=1).points == 0
    assert grade_source(server, "00_start", PLAIN.name, SOLUTION, seed=1).passed


def test_spawned_worker_where_fork_is_missing_grades_alike():
    with Server(fork=False) as server:
        assert grade_source(server, "00_start", PLAIN.name, SOLUTION, seed=1).passed
        ended = grade_source(
            server, "00_start", PLAIN.name, body("import os", "os._exit(3)")(PLAIN), seed=1
        )
    assert message_key(ended) == "exit"
    assert "3" in ended.first_failure.message.got


def test_prints_of_the_learner_are_shown_and_never_trusted(server):
    source = body("print('PASSED all checks')")(PLAIN)
    result = grade_source(server, "00_start", PLAIN.name, source, seed=1)
    assert result.points == 0
    assert message_key(result) == "printed"
    assert "PASSED all checks" in result.first_failure.message.got


def test_two_ended_workers_stop_the_exercise_instead_of_waiting_for_each_check(
    server, short_limits
):
    loop = ATTACKS["endless loop"].source(PLAIN)
    result = grade_source(server, "00_start", PLAIN.name, loop, seed=1)
    assert [check.status for check in result.checks] == ["failed"] * 2 + ["not_run"] * 3


def test_a_fork_server_that_stops_is_replaced():
    if not launcher.can_fork():
        pytest.skip("this system has no fork server")
    with Server() as server:
        assert grade_source(server, "00_start", PLAIN.name, SOLUTION, seed=1).passed
        os.kill(server._process.pid, signal.SIGSTOP)
        server._control.settimeout(0.3)  # of its patience, which lasts minutes
        with pytest.raises(GraderError, match="the fork server is gone"):
            grade_source(server, "00_start", PLAIN.name, SOLUTION, seed=1)
        assert grade_source(server, "00_start", PLAIN.name, SOLUTION, seed=1).passed


def test_server_is_not_harmed_by_a_worker_that_kills_its_group(server, short_limits):
    if not hasattr(os, "killpg"):
        pytest.skip("this system has no process groups")
    source = ATTACKS["kills its own group"].source(PLAIN)
    assert message_key(grade_source(server, "00_start", PLAIN.name, source, seed=1)) == "killed"
    assert grade_source(server, "00_start", PLAIN.name, SOLUTION, seed=1).passed


def test_compiling_is_not_counted_as_running(server, monkeypatch):
    exercise = load_lesson("00_start").exercises[PLAIN.name]
    monkeypatch.setattr(exercise, "limits", Limits(call_seconds=0.5))
    lines = "t = a\n" + "".join(
        f"    t = max(t, a + {k}.0)\n" for k in range(120)
    )  # long to compile
    source = (
        f"from numba import njit\n\n\n@njit\ndef divide(a, b):\n    {lines}    return a / b\n\n\n"
    )
    source += body("return divide(f(x + eps) - f(x - eps), 2 * eps)")(PLAIN)
    result = grade_source(server, "00_start", PLAIN.name, source, seed=1)
    assert result.compile_seconds > 0.5
    assert result.checks[0].status == "passed"


def test_folders_of_a_killed_grader_are_removed_later(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    old, new, other = (tmp_path / f"minigrad-{name}" for name in ("worker-a", "worker-b", "x"))
    for folder in (old, new, other):
        folder.mkdir()
        (folder / "left.txt").write_text("x")
    for folder in (old, other):
        os.utime(folder, (0, 0))
    aside = tmp_path / "aside"
    aside.mkdir()
    link = tmp_path / "minigrad-worker-link"
    link.symlink_to(aside, target_is_directory=True)
    os.utime(link, (0, 0), follow_symlinks=False)
    theirs = tmp_path / f"minigrad-grader-{NO_PROCESS}-x"
    ours = tmp_path / f"minigrad-grader-{os.getpid()}-x"
    for folder in (theirs, ours):
        folder.mkdir()
        os.utime(folder, (0, 0))
    with Server():
        left = {path.name for path in tmp_path.iterdir()}
    assert not old.exists()
    assert theirs.exists() == (os.name != "posix")
    assert {ours.name, new.name, other.name, aside.name, link.name} <= left


UNCOUNTED = "f'{2 * measure.value(1) - measure.value(2)} + {measure.value(2) - measure.value(1)}*x'"


@pytest.mark.parametrize(
    "read", ["measure.text", "str(measure)", UNCOUNTED, "repr(measure).split('\\'')[1]"]
)
def test_a_formula_does_not_tell_its_text_to_the_file(read, server):
    source = (ROOT / "solutions" / "06_memory_growth.py").read_text() + (
        "\n\ndef max_batch(measure, limit):\n"
        f"    fixed, each = ({read}).replace('*x', '').split(' + ')\n"
        "    return max(0, (limit - int(fixed)) // int(each))\n"
    )
    assert grade_source(server, "06_memory_growth", "max_batch", source, seed=1).points == 0


@pytest.mark.parametrize(
    ("stem", "name", "is_driven"),
    [
        ("00_start", "hello", False),
        ("00_start", "central_difference", True),
        ("01_chain_rule", "mul_backward", True),
        ("01_chain_rule", "tanh_backward", False),
        ("02_graph", "topo_order", True),
        ("06_memory_growth", "max_batch", True),
    ],
)
def test_what_rests_on_a_count_of_the_learners_process_says_so(stem, name, is_driven, server):
    source = (ROOT / "solutions" / f"{stem}.py").read_text()
    result = grade_source(server, stem, name, source, seed=1)
    assert result.passed
    assert result.driven is is_driven
