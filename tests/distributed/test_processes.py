"""Ranks that are real processes: MPI by mpi4py, `minigrad run`, and every fault that ends a run."""

import gc
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import minigrad as mg
from benchmarks.fault_rounds import is_alive
from minigrad import errors
from minigrad.cli import run as command
from minigrad.cli.main import main
from minigrad.distributed import membership, mpi, notes, supervisor
from minigrad.distributed.engine import Head
from tests.distributed.test_data_parallel import assert_equal, examples, full_batch

ROOT = Path(__file__).parents[2]
LIMIT = 150  # seconds; a run takes two to four, on a machine with nothing else to do
N = 3

pytestmark = pytest.mark.skipif(os.name == "nt", reason="MPICH has no wheels for Windows")


@pytest.fixture(scope="module")
def launcher():
    found = command.find_launcher()
    assert found, "no mpiexec: pip install -e '.[test]' -c constraints.txt brings one"
    assert importlib.util.find_spec("mpi4py"), "no mpi4py: see above"  # no reason to skip
    return found


def environment(**more):
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "", **more}


def execute(words, folder, **more):
    return subprocess.run(
        words,
        cwd=folder,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def run_ranks(script, folder, *arguments, ranks=N):
    path = folder / "train.py"
    path.write_text(script, encoding="utf-8")
    words = [sys.executable, "-m", "minigrad.cli.main", "run", "-n", f"{ranks}", str(path)]
    return execute([*words, *arguments], folder)


def engine_with(**calls):
    """An MpiEngine of two ranks whose communicator has these calls besides."""
    comm = SimpleNamespace(
        rank=0, size=2, Set_errhandler=lambda handler: None, Iprobe=lambda rank, tag: False,
        Isend=lambda *args: NEVER, **calls,
    )  # fmt: skip
    world = SimpleNamespace(Dup=lambda: comm)
    return mpi.MpiEngine(
        SimpleNamespace(COMM_WORLD=world, ERRORS_RETURN=0, IN_PLACE=0, BYTE=0), timeout=0.01
    )


NEVER = SimpleNamespace(Test=lambda: False)


def test_what_mpi_may_still_write_into_is_kept_after_a_timeout():
    """Of a rank whose data never comes; the engine lives until the process ends."""
    engine = engine_with(
        **dict.fromkeys(("Iallreduce", "Ibcast", "Iallgather"), lambda *args: NEVER)
    )
    head = Head(1, "all_reduce", "")
    for move in (engine.sum, lambda data, head: engine.broadcast(data, 0, head), engine.gather):
        data = np.ones(3)
        kept = weakref.ref(data)
        with pytest.raises(errors.DistributedError, match=r"moved no data for 0\.01 s"):
            move(data, head)
        del data
        gc.collect()
        assert kept() is not None


def test_mpi_moves_data_of_the_first_sum_that_is_not_complete():
    """MPI does nothing where it looks at a complete one."""
    seen, complete = [], [True, False, False]

    def begin(place, data):
        def look():
            seen.append(data.item())
            return complete[data.item()]

        return SimpleNamespace(Test=look)

    engine, head = engine_with(Iallreduce=begin), Head(1, "all_reduce", "")
    started = [engine.start_sum(np.array(k)) for k in range(3)]
    engine.advance()
    assert seen == [0, 1]
    engine.finish_sum(started[0], head)
    seen.clear()
    engine.advance()
    assert seen == [1]


TRAIN = """
import sys
import numpy as np
import minigrad as mg
from minigrad import distributed as d
from tests.distributed.test_data_parallel import cuts, examples, loss_of, make_model

d.init()
rank, size = d.rank(), d.size()
found = {"rank": rank, "size": size}
for dtype in ("float32", "float64", "float16", "int32", "int64", "bool"):
    data = np.random.default_rng(rank).integers(0, 9, (3, 2)).astype(dtype)
    x = mg.variable(data)
    found |= {f"sum {dtype}": d.all_reduce(x), f"sent {dtype}": d.broadcast(x, 1)}
    found |= {f"all {dtype}": d.all_gather(x), f"data {dtype}": x}
found["weighted"] = d.all_reduce(mg.variable([rank + 1.0]), "weighted", weight=rank)
d.barrier()

x, y = examples(24)
model = make_model(seed=rank)  # other values on each rank, until rank 0's are taken over
replica = d.DataParallel(model, bucket_bytes=100)
with mg.no_grad():
    for p, q in zip(model.parameters(), make_model().parameters()):
        p.copy_(q)
mine = cuts(24, size)[rank]
replica.backward(loss_of(model, x[mine], y[mine]), weight=len(x[mine]))
replica.check()
found |= {name: p.grad for name, p in model.named_parameters()}
optimizer = mg.optim.Adam(model, learning_rate=0.05)
optimizer.step()
optimizer.zero_grad()
for some, targets in d.batches(x, y, batch_size=7, seed=2):
    with replica.no_sync():
        replica.backward(loss_of(model, some, targets), weight=len(some))
    replica.backward(loss_of(model, some, targets), weight=len(some))
    optimizer.step()
    optimizer.zero_grad()
replica.check()  # the same bits on all ranks
np.savez(f"{rank}.npz", **{k: v.numpy() if hasattr(v, "numpy") else v for k, v in found.items()})
"""


def test_processes_compute_what_threads_and_one_process_do(launcher, tmp_path):
    done = run_ranks(TRAIN, tmp_path)
    assert done.returncode == 0, done.stderr
    found = [np.load(tmp_path / f"{k}.npz") for k in range(N)]
    x, y = examples(24)
    for k, one in enumerate(found):
        assert (one["rank"], one["size"]) == (k, N)
        for dtype in ("float32", "float64", "float16", "int32", "int64", "bool"):
            data = np.stack([other[f"data {dtype}"] for other in found])
            wide = data.dtype if np.issubdtype(data.dtype, np.floating) else np.int64
            np.testing.assert_array_equal(one[f"sum {dtype}"], data.astype(wide).sum(0))
            np.testing.assert_array_equal(one[f"sent {dtype}"], data[1])
            np.testing.assert_array_equal(one[f"all {dtype}"], data)
        assert one["weighted"] == np.float32(8 / 3)
        wanted = full_batch(x, y)
        assert_equal({name: one[name] for name in wanted}, wanted)


# -- Faults ----------------------------------------------------------------------------------------

# The device "numpy" needs no Numba: the processes start sooner.
FAULT = """
import os, signal, sys
from pathlib import Path
import minigrad as mg
from minigrad import distributed as d

kind, timeout = sys.argv[1], float(sys.argv[2])
mg.set_default_device("numpy")
d.init(timeout=timeout)
d.barrier()
try:
    if d.rank() == 1:
        if kind == "raises":
            raise ValueError("no such batch")
        if kind == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if kind == "stopped":
            os.kill(os.getpid(), signal.SIGSTOP)
        if kind == "exits":
            sys.exit(3)
        if kind == "shape":
            d.all_reduce(mg.zeros((3,)))
        if kind == "order":
            d.barrier()
    d.all_reduce(mg.zeros((4,)))
except BaseException as error:
    Path(f"{d.rank()}.error").write_text(f"{type(error).__name__}: {error}")
    raise
"""
CALL = "call 2 of mg.distributed, all_reduce 'sum' of float32[4]: rank 1 "


DISAGREE = "DistributedError: call 2 of mg.distributed: wanted the same call on every rank"


@pytest.mark.parametrize(
    ("kind", "timeout", "said", "last_words"),
    [
        ("raises", 20, CALL + "raised ValueError: no such batch", "ValueError: no such batch"),
        ("killed", 20, CALL + "was killed by SIGKILL", "killed by SIGKILL"),
        ("stopped", 5, CALL + "did not come within 5 s", r"rank \d says: .* within 5 s"),
        ("exits", 20, CALL + "has ended", "exit status 3"),
        ("shape", 20, "rank 1: all_reduce 'sum' of float32[3], train.py:", DISAGREE),
        ("order", 20, "rank 1: barrier, train.py:", DISAGREE),
    ],
)
def test_a_fault_of_one_rank_is_an_error_on_every_other_that_names_it(
    launcher, tmp_path, kind, timeout, said, last_words
):
    done = run_ranks(FAULT, tmp_path, kind, f"{timeout}")
    assert done.returncode == 1, done.stdout + done.stderr
    for rank in {0, 2} | ({1} if kind in ("shape", "order") else set()):
        told = (tmp_path / f"{rank}.error").read_text()
        assert told.startswith("DistributedError: call 2 of mg.distributed")
        assert said in told
        assert said in done.stderr
    if kind == "raises":
        assert "ValueError: no such batch" in done.stderr
        assert "runpy" not in done.stderr, "a traceback begins in the script"
    cause, *others = found = rows(done.stderr)
    assert cause[0] == 1
    place = "" if kind in ("killed", "exits") else r" \(train\.py:\d+\)"
    assert re.fullmatch(last_words + place, cause[2]), cause
    assert "call 1, barrier, train.py:" in cause[3] or kind in ("shape", "order")
    assert [(rank, words) for rank, _, words, _ in others] == [
        (0, "heard of it"),
        (2, "heard of it"),
    ]
    assert not [process for _, process, *_ in found if is_alive(process)]


BACKWARD = """
import os, sys
import minigrad as mg
from minigrad import distributed as d

mg.set_default_device("numpy")
d.init()
model = mg.nn.Sequential(mg.nn.Linear(3, 2), mg.nn.Linear(2, 1))
replica = d.DataParallel(model, bucket_bytes=1)
hidden = model[0](mg.ones((1, 3)))
if d.rank() == 1:
    hidden.register_hook(lambda g: 1 / 0 if sys.argv[1] == "raises" else os.kill(os.getpid(), 9))
replica.backward(model[1](hidden).sum(), weight=1)
"""


@pytest.mark.parametrize(
    ("kind", "said", "last_words"),
    [
        ("raises", "raised ZeroDivisionError: division by", "ZeroDivisionError: division by zero"),
        ("killed", "was killed by SIGKILL", "killed by SIGKILL"),
    ],
)
def test_a_rank_that_fails_while_gradients_are_on_their_way(
    launcher, tmp_path, kind, said, last_words
):
    done = run_ranks(BACKWARD, tmp_path, kind)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"DataParallel: gradients: rank 1 {said}" in done.stderr
    (rank, _, words, _), *others = rows(done.stderr)
    assert rank == 1
    assert words.startswith(last_words)
    assert [words for _, _, words, _ in others] == ["heard of it"] * 2


COMPILED = """
import os
from pathlib import Path
import numpy as np
import minigrad as mg
from minigrad import distributed as d
from tests.distributed.test_data_parallel import cuts, examples

d.init(timeout=60)
x, y = examples(24)
mine = cuts(24, d.size())[d.rank()]
data = mg.variable(x[mine]), mg.variable(y[mine])

def trained(how):
    mg.manual_seed(0)
    model = mg.nn.Linear(6, 4)
    replica, optimizer = d.DataParallel(model), mg.optim.SGD(model, learning_rate=0.1)

    def step(x, y):
        loss = mg.cross_entropy(replica(x), y)
        replica.backward(loss, weight=len(x))
        optimizer.step()
        optimizer.zero_grad()
        return d.all_reduce(loss.detach(), "weighted", weight=len(x))

    step = how(step)
    losses = [step(*data).item() for _ in range(4)]
    replica.check()
    return losses, step

found, step = trained(mg.compile)
assert len(step.traces) == 1
np.testing.assert_allclose(found, trained(lambda f: f)[0], rtol=1e-6)
Path(f"{d.rank()}.equal").write_text("")
if d.rank() == 1:
    os.kill(os.getpid(), 9)
step(*data)
"""


def test_compiled_steps_reduce_and_hear_of_a_rank_that_was_killed(launcher, tmp_path):
    done = run_ranks(COMPILED, tmp_path, ranks=2)
    assert sorted(path.name for path in tmp_path.glob("*.equal")) == ["0.equal", "1.equal"], done
    assert done.returncode == 1
    said = "DataParallel.backward to 2 parameters of 28 elements: rank 1 was killed by SIGKILL"
    assert said in done.stderr
    assert [(rank, words) for rank, _, words, _ in rows(done.stderr)] == [
        (1, "killed by SIGKILL"),
        (0, "heard of it"),
    ]


def rows(text):
    """Return (rank, process, last words, last call) of each line of the report."""
    found = re.findall(
        r"^  rank (\d) \(process (\d+)\): (.*); last call: (.*)$", text, re.MULTILINE
    )
    return [(int(rank), int(process), *words) for rank, process, *words in found]


def test_without_minigrad_run_and_without_m_mpi4py_an_exception_ends_all_ranks(launcher, tmp_path):
    (tmp_path / "train.py").write_text(FAULT, encoding="utf-8")
    words = [launcher, "-n", "2", sys.executable, "train.py", "raises", "20"]
    done = execute(words, tmp_path)
    assert done.returncode != 0
    assert (tmp_path / "0.error").read_text().startswith("DistributedError: " + CALL)
    assert "ValueError: no such batch" in done.stdout + done.stderr


# -- The command, the supervisor, the notes --------------------------------------------------------


def test_the_command_refuses_what_it_cannot_run(tmp_path, monkeypatch, capsys):
    script = tmp_path / "train.py"
    script.write_text("")
    assert main(["run", "-n", "0", str(script)]) == 2
    assert main(["run", str(tmp_path / "none.py")]) == 2
    assert "there is no file" in capsys.readouterr().err
    monkeypatch.setattr(command, "find_launcher", lambda: None)
    monkeypatch.setattr(command.importlib.util, "find_spec", lambda name: None)
    assert main(["run", str(script)]) == 3
    said = capsys.readouterr().err
    assert "ranks need mpiexec, which MPI has and the package mpi4py" in said
    assert "pip install 'minigrad[distributed]'" in said


def test_the_command_passes_arguments_on_and_shares_the_cores(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text("")
    calls = []

    def call(words, env):
        calls.append((words, env))
        return 0

    monkeypatch.setattr(command.subprocess, "call", call)
    monkeypatch.setattr(command, "find_launcher", lambda: "/opt/mpiexec")
    monkeypatch.setattr(command.importlib.util, "find_spec", lambda name: True)
    monkeypatch.setattr(command.os, "sched_getaffinity", lambda who: set(range(8)), raising=False)
    for name in command.THREADS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert main(["run", "-n", "3", str(tmp_path / "train.py"), "-n", "5", "--epochs", "2"]) == 0
    words, env = calls[0]
    assert words[:3] == ["/opt/mpiexec", "-n", "3"]
    inside = [command.sys.executable, supervisor.__file__, supervisor.INSIDE]
    assert words[-8:] == [*inside, str(tmp_path / "train.py"), "-n", "5", "--epochs", "2"]
    assert env["MINIGRAD_THREADS"] == env["NUMBA_NUM_THREADS"] == "2"
    assert env["OMP_NUM_THREADS"] == "7"


def test_the_launcher_of_the_environment_comes_first(tmp_path, monkeypatch):
    for folder in ("environment", "system"):
        (tmp_path / folder).mkdir()
    for name in ("environment/python", "system/mpiexec"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(command.sys, "executable", str(tmp_path / "environment" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "system"))
    assert command.find_launcher() == str(tmp_path / "system" / "mpiexec")
    shutil.copy(tmp_path / "system" / "mpiexec", tmp_path / "environment")
    assert command.find_launcher() == str(tmp_path / "environment" / "mpiexec")


def test_the_supervisor_returns_its_childs_code_and_notes_how_it_died(tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor, "STAYS", 0.0)
    monkeypatch.setenv(supervisor.FOLDER, str(tmp_path))
    monkeypatch.setenv("PMI_RANK", "4")
    before = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        assert supervisor.main([sys.executable, "-c", "raise SystemExit(5)"]) == 5
        assert notes.died(tmp_path) == {}
        suicide = "import os; os.kill(os.getpid(), 9)"
        assert supervisor.main([sys.executable, "-c", suicide]) == 128 + 9
        assert notes.processes(tmp_path).keys() == {4}
        assert notes.ends(tmp_path)[4].text == "exit status 5"  # the first end counts
        (tmp_path / f"4{supervisor.ENDED}").unlink()
        assert notes.ends(tmp_path)[4].text == "killed by SIGKILL"
        (tmp_path / f"4{supervisor.DIED}").unlink()
        stopped = "import os, signal; os.kill(os.getppid(), 15); signal.pause()"
        assert supervisor.main([sys.executable, "-c", stopped]) == 128 + 15
        assert notes.ends(tmp_path) == {}  # whoever ends the supervisor needs no note
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert notes.calls_of(tmp_path) == {}


def test_the_report_begins_with_the_first_cause():
    ended = {
        0: notes.End(30, "DistributedError: rank 2 raised", (2,)),
        1: notes.End(10, "exit status 1"),
        2: notes.End(20, "ValueError: no such file (train.py:14)"),
        4: notes.End(40, "DistributedError: call 3: rank 3 did not come", (3,)),
    }
    calls = {0: "call 2, barrier", 3: "call 2, barrier"}
    header, *found = command.report(calls, dict.fromkeys(range(6), 77), ended)
    assert header == "minigrad run: the ranks have failed."
    assert found == [
        "  rank 2 (process 77): ValueError: no such file (train.py:14); last call: none",
        "  rank 3 (process 77): rank 4 says: DistributedError: call 3: rank 3 did not come; "
        "last call: call 2, barrier",
        "  rank 1 (process 77): exit status 1; last call: none",
        "  rank 0 (process 77): heard of it; last call: call 2, barrier",
        "  rank 4 (process 77): heard of it; last call: none",
        "  rank 5 (process 77): no error of its own; last call: none",
    ]


@pytest.mark.parametrize(
    ("script", "status", "said"),
    [
        ("", 0, "none of the 2 processes called mg.distributed.init(): 2 copies of one program"),
        ("d.init()", 0, "the 2 ranks called mg.distributed.init(), and nothing of it that ranks"),
        ("d.init(); d.barrier()", 0, None),
        ("x = open('none.npz')", 1, "): FileNotFoundError: [Errno 2] No such file or directory"),
        ("d.init(); d.rank() or sys.exit('no data')", 1, "rank 0 (process"),
    ],
)
def test_the_last_words_of_short_scripts(launcher, tmp_path, script, status, said):
    done = run_ranks(
        f"import sys\nfrom minigrad import distributed as d\n{script}", tmp_path, ranks=2
    )
    assert done.returncode == status, done.stderr
    lines = [line for line in done.stderr.splitlines() if "minigrad run: " in line]
    assert len(lines) == (said is not None)
    assert said is None or said in done.stderr
    if "FileNotFound" in f"{said}":
        assert "(train.py:3); last call: none" in done.stderr
    if "sys.exit" in script:
        assert "): sys.exit('no data'); last call: none" in done.stderr


def test_without_mpi_init_says_what_to_install(monkeypatch):
    monkeypatch.setattr(membership, "_of_process", [])
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(errors.MissingLibraryError, match=r"pip install 'minigrad\[distributed\]'"):
        mg.distributed.init("mpi")
    monkeypatch.setenv("PMI_RANK", "0")
    with pytest.raises(errors.MissingLibraryError):
        mpi.start(1.0)
    with pytest.raises(errors.MissingLibraryError):
        mg.distributed.init()
