"""What a hostile or broken file may try, and docs/generated/attacks.md, which says so.

A victim is an exercise and how a solution of it looks. Each attack is written for every victim by
its `source(victim)`; its row names the message's key for plain and for engine exercises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.pages import NOTE

HEAD = "import numpy as np\n\n\n"


@dataclass(frozen=True)
class Victim:
    """An exercise under attack: where it is, its parameters, an import that is the answer."""

    stem: str
    name: str
    parameters: str
    answer: str

    def function(self, *lines: str) -> str:
        """Return the text of a file whose function has this body."""
        body = "".join(f"    {line}\n" for line in lines)
        return f"{HEAD}def {self.name}({self.parameters}):\n{body}"


PLAIN = Victim(
    "00_start",
    "central_difference",
    "f, x, eps",
    "import minigrad as mg; return mg.grad(f)(x)",
)
ENGINE = Victim("07_functions", "hvp", "f, x, v", "import minigrad as mg; return mg.hvp(f, x, v)")


@dataclass(frozen=True)
class Attack:
    """One attack; `plain` and `engine` are the keys of the messages that it must get."""

    source: Callable[[Victim], str]
    plain: str
    engine: str = ""
    limit: str = ""  # the limit without which it is not tried

    def key(self, victim: Victim) -> str:
        """Return the key for this victim."""
        return self.plain if victim is PLAIN else self.engine or self.plain


def body(*lines: str) -> Callable[[Victim], str]:
    """Return an attack from inside the function."""
    return lambda victim: victim.function(*lines)


def at_import(text: str) -> Callable[[Victim], str]:
    """Return an attack from the file's outermost level."""
    return lambda victim: text


ATTACKS: dict[str, Attack] = {
    # ---- time and memory --------------------------------------------------------------------
    "endless loop": Attack(body("while True:", "    pass"), "time"),
    "endless loop at import": Attack(at_import("while True:\n    pass\n"), "time"),
    "sleeps": Attack(body("import time", "time.sleep(60)"), "time"),
    "ignores signals and loops": Attack(
        body(
            "import signal",
            "for s in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM, signal.SIGXCPU):",
            "    signal.signal(s, signal.SIG_IGN)",
            "while True:",
            "    pass",
        ),
        "time",
    ),
    "memory bomb": Attack(body("return bytearray(8 * 2**30)"), "memory", limit="memory"),
    "many small blocks": Attack(
        body("blocks = []", "while True:", "    blocks.append(np.empty(2**26))"),
        "memory",
        limit="memory",
    ),
    "endless printing": Attack(
        body("while True:", "    print('x' * 1000)"), "output", limit="file size"
    ),
    "endless recursion": Attack(
        lambda victim: victim.function(f"return {victim.name}({victim.parameters})"), "recursion"
    ),
    "recursion with the limit lifted": Attack(
        lambda victim: victim.function(
            "import sys",
            "sys.setrecursionlimit(10**9)",
            f"return {victim.name}({victim.parameters}) + 1",
        ),
        "killed|memory|time|recursion",
        limit="memory",
    ),
    "many files": Attack(
        body(
            "for k in range(10**6):",
            "    with open(f'{k}', 'wb') as file:",
            "        file.write(bytes(2**20))",
        ),
        "files",
    ),
    "many empty files": Attack(
        body("for k in range(10**7):", "    open(f'{k}', 'wb').close()"), "files"
    ),
    # ---- leaving, lying, forging --------------------------------------------------------------
    "os._exit(0)": Attack(body("import os", "os._exit(0)"), "exit"),
    "os._exit(0) at import": Attack(at_import("import os\nos._exit(0)\n"), "exit"),
    "sys.exit(0)": Attack(body("import sys", "sys.exit(0)"), "exit"),
    "sys.exit(0) at import": Attack(at_import("import sys\nsys.exit(0)\n"), "exit"),
    "crashes the interpreter": Attack(body("import os", "os.kill(os.getpid(), 11)"), "killed"),
    "kills its own group": Attack(
        body("import os", "os.killpg(0, 9)"), "killed", limit="process group"
    ),
    "patches numpy.testing": Attack(
        lambda victim: (
            "import numpy\nnumpy.testing.assert_allclose = lambda *a, **k: None\n"
            "numpy.allclose = lambda *a, **k: True\n" + victim.function("return 0.0 * x + 1.0")
        ),
        "value",
        "value|type|raised|not_variable",
    ),
    "an object equal to everything": Attack(
        lambda victim: (
            "class Yes:\n    __eq__ = lambda self, other: True\n    __hash__ = None\n\n\n"
            + victim.function("return Yes()")
        ),
        "type",
        "type|raised|not_variable",
    ),
    "forged output on every descriptor": Attack(
        body(
            "import os",
            "for fd in range(64):",
            "    try:",
            "        os.write(fd, b'{\"ok\": 1}' * 50)",
            "    except OSError:",
            "        pass",
            "os._exit(0)",
        ),
        "garbled",
    ),
    "a forged frame": Attack(
        body(
            "import os, struct, json",
            "text = json.dumps({'ok': None, 'points': 99}).encode()",
            "for fd in range(3, 64):",
            "    try:",
            "        os.write(fd, struct.pack('>II', len(text), 0) + text)",
            "    except OSError:",
            "        pass",
            "os._exit(0)",
        ),
        "garbled",
    ),
    "writes into its arguments": Attack(
        body("for one in (x,):", "    np.ndarray.__setitem__(one, ..., 0.0)", "return x"),
        "raised|value",
        "raised|value|type|not_variable",
    ),
    "an array of many rows without columns": Attack(
        body("return np.zeros((3_000_000, 0))"), "shape", "shape|type|raised|not_variable"
    ),
    "more rows than memory has, without columns": Attack(
        body("return np.zeros((2**31 - 1, 0))"), "garbled", "garbled|type|raised|not_variable"
    ),
    "an error that reads like Numba's, at length": Attack(
        lambda victim: (
            "class TypingError(Exception):\n    pass\n\n\n"
            + victim.function(
                "text = 'No implementation of function Function(<f ' + 'a' * 8000",
                "raise TypingError(text + ') found for signature: >>> a(' * 200 + 'b' * 4000)",
            )
        ),
        "numba",
    ),
    "cuts its prints short": Attack(
        body(
            "import os",
            "print('x' * 1500, flush=True)",
            "os.ftruncate(1, len(os.listdir('.')))",
            "return 0.0 * x + 7.0",
        ),
        "value",
        "value|type|raised|not_variable",
    ),
    "forges what loading found": Attack(
        at_import(
            "import sys\nimport numpy as np\nframe = sys._getframe()\n"
            "while 'channel' not in frame.f_locals:\n    frame = frame.f_back\n"
            "found = {'lines': {}, 'names': [np.zeros(2)]}\n"
            "frame.f_locals['channel'].send({'ok': found})\n"
        ),
        "garbled",
    ),
    # ---- the answer from elsewhere ------------------------------------------------------------
    "answer from minigrad": Attack(
        lambda victim: victim.function(victim.answer), "imports_minigrad", "answer_used"
    ),
    "answer from minigrad, error caught": Attack(
        lambda victim: victim.function(
            "try:", f"    {victim.answer}", "except BaseException:", "    return 0.0 * x"
        ),
        "value",
        "answer_used",
    ),
    "imports the check": Attack(body("import minigrad.course.l00_start"), "imports_minigrad"),
    "imports the grader": Attack(body("import minigrad.grader.run"), "imports_minigrad"),
    "takes the finder away, imports again": Attack(
        lambda victim: victim.function(
            "import sys, importlib",
            "sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != 'Gate']",
            "for name in [n for n in sys.modules if n.startswith('minigrad')]:",
            "    del sys.modules[name]",
            "importlib.invalidate_caches()",
            "import minigrad.course.l00_start",
            victim.answer,
        ),
        "raised|import|closed|imports_minigrad",
    ),
    "looks through sys.modules": Attack(
        body(
            "import sys",
            "found = [m for n, m in sys.modules.items() if 'solution' in n or '.l0' in n "
            "or 'tester' in n or 'grader.run' in n]",
            "return found[0].answer(x)",
        ),
        "raised",
    ),
    "looks through gc": Attack(
        lambda victim: victim.function(
            "import gc, types",
            "found = [o for o in gc.get_objects() if isinstance(o, types.FunctionType) and "
            f"o.__name__ == '{victim.name}' and 'f' in o.__code__.co_varnames "
            f"and o is not {victim.name}]",
            f"return found[0]({victim.parameters})",
        ),
        "raised",
        "raised|answer_used",
    ),
    "opens solutions/ beside it": Attack(
        lambda victim: victim.function(f"return open('solutions/{victim.stem}.py').read()"),
        "raised",
    ),
    "opens solutions/ by its full path": Attack(
        lambda victim: victim.function(f"return open('{{solutions}}/{victim.stem}.py').read()"),
        "closed",
    ),
    "runs solutions/ by its full path": Attack(
        lambda victim: victim.function(
            "import runpy",
            f"return runpy.run_path('{{solutions}}/{victim.stem}.py')['{victim.name}']"
            f"({victim.parameters})",
        ),
        "closed",
    ),
    "links solutions/ to its own folder": Attack(
        lambda victim: victim.function(
            "import os", f"os.symlink('{{solutions}}/{victim.stem}.py', 'mine.py')"
        ),
        "closed",
    ),
    "opens the check's source": Attack(
        body("return open('{package}/course/l00_start/hello.py').read()"), "closed"
    ),
    "opens the installed package": Attack(
        body("return open('{package}/autograd/functional.py').read()"), "closed"
    ),
    "loads the package by its path": Attack(
        body(
            "import importlib.util as u",
            "spec = u.spec_from_file_location('other', '{package}/__init__.py')",
            "other = u.module_from_spec(spec)",
            "spec.loader.exec_module(other)",
            "return other.hvp(f, x, x)",
        ),
        "closed",
        "answer_used|raised|imports_minigrad",
    ),
    "loads the engine's module again": Attack(
        body(
            "import importlib, minigrad.autograd.functional as engine",
            "return importlib.reload(engine).hvp(f, x, x)",
        ),
        "imports_minigrad",
        "closed",
    ),
    "runs the text of the engine's module": Attack(
        body(
            "import inspect, minigrad.autograd.functional as engine",
            "names = dict(vars(engine))",
            "exec(inspect.getsource(engine), names)",
            "return names['hvp'](f, x, x)",
        ),
        "imports_minigrad",
        "raised",
    ),
    "lists the course's folder": Attack(
        body("import os", "return os.listdir('{package}/course')"), "closed"
    ),
    # ---- other processes ----------------------------------------------------------------------
    "starts a process": Attack(
        body("import subprocess", "return subprocess.check_output(['cat', '{solutions}/x'])"),
        "closed",
    ),
    "forks": Attack(body("import os", "os.fork()", "os._exit(0)"), "closed", limit="forks"),
    "kills its parent": Attack(body("import os", "os.kill(os.getppid(), 9)"), "closed"),
    # ---- broken, not hostile ------------------------------------------------------------------
    "raises at import": Attack(at_import("raise RuntimeError('no')\n"), "raised"),
    "null byte": Attack(at_import("x = '\0'\n"), "syntax"),
    "syntax error": Attack(at_import("def central_difference(f, x:\n    return 0\n"), "syntax"),
    "asks for input": Attack(body("input()"), "input"),
    "returns None": Attack(body("pass"), "none", "none|type|raised|not_variable"),
    "an array of objects": Attack(
        body("return np.array([object()])"), "type", "type|raised|not_variable"
    ),
    "no such function": Attack(at_import("x = 1\n"), "missing"),
    "not a function": Attack(lambda victim: f"{victim.name} = 3\n", "raised"),
    "wrong number of arguments": Attack(
        lambda victim: f"def {victim.name}(f, x):\n    return 0.0\n", "signature"
    ),
}


def then_right(*lines: str) -> Callable[[Victim], str]:
    """Return an attack that has the right answer once its lines have done what they try."""
    return body(*lines, "return (f(x + eps) - f(x - eps)) / (2 * eps)")


LIBRARY = "import ctypes, os; c = ctypes.CDLL(None, use_errno=True)"
FAILS = "if {} < 0: raise PermissionError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))"


def by_library(call: str) -> Callable[[Victim], str]:
    """Return an attack that calls the C library, past the guard, and then has the right answer."""
    return then_right(LIBRARY, FAILS.format(f"c.{call}"))


# What gets around the guard; the walls of the kernel hold it (walls.py).
AROUND: dict[str, Callable[[Victim], str]] = {
    "reads a solution through a folder's descriptor": then_right(
        "import os",
        "root = os.open('/', os.O_RDONLY | os.O_DIRECTORY)",
        "os.open('{solutions}/00_start.py'[1:], os.O_RDONLY, dir_fd=root)",
    ),
    "reads a solution": by_library("open(b'{solutions}/00_start.py', 0)"),
    "reads a check": by_library("open(b'{package}/course/l00_start/central_difference.py', 0)"),
    "writes beside the solutions": by_library("open(b'{solutions}/left_behind.txt', 0o101, 0o600)"),
    "empties a file": by_library("truncate(b'{victim}', 0)"),
    "removes a file": by_library("unlink(b'{victim}')"),
    "gives a file another name": by_library("rename(b'{victim}', b'{victim}.moved')"),
    "links a file into its own folder": by_library("link(b'{victim}', b'mine')"),
    "reads its parent's environment": by_library(
        "open(b'/proc/' + str(os.getppid()).encode() + b'/environ', 0)"
    ),
    "writes into its parent's memory": by_library(
        "open(b'/proc/' + str(os.getppid()).encode() + b'/mem', 2)"
    ),
    "traces its parent": by_library("ptrace(16, os.getppid(), 0, 0)"),
    "forks around the guard": by_library("fork()"),
    "starts a program": by_library("execl(b'/bin/true', b'true', None)"),
    "kills its parent around the guard": by_library("kill(os.getppid(), 9)"),
    "kills its parent by a queued signal": by_library(
        "syscall(297, os.getppid(), os.getppid(), 9, bytes([9, *7 * [0], *4 * [255]]) + bytes(116))"
    ),
    "has signals sent to its parent": by_library(
        "ioctl(3, 0x8901, ctypes.byref(ctypes.c_int(os.getppid())))"
    ),
    "makes its parent wait": by_library(
        "sched_setscheduler(os.getppid(), 5, (ctypes.c_int * 1)(0))"
    ),
    "makes its parent read last": by_library("syscall(251, 1, os.getppid(), 3 << 13)"),
    "asks about memory that others see": by_library(
        "shmctl(0, 3, ctypes.create_string_buffer(256))"
    ),
    "kills a thread of its parent": by_library("syscall(234, os.getppid(), os.getppid(), 9)"),
    "limits its parent": by_library("prlimit(os.getppid(), 7, (ctypes.c_ulong * 2)(0, 0), None)"),
    "slows its parent": by_library("setpriority(0, os.getppid(), 19)"),
    "opens a socket": by_library("socket(2, 1, 0)"),
    "opens a socket of the machine": by_library("socket(1, 1, 0)"),
    "leaves memory that others see": by_library("shmget(77, 4096, 0o1666)"),
    "takes a place for asynchronous reading": by_library(
        "syscall(206, 1, ctypes.byref(ctypes.c_ulong(0)))"
    ),
    "takes a place for watching files": by_library("inotify_init1(0)"),
    "takes pages of the pipes of a user": then_right(
        "import fcntl, os", "fcntl.fcntl(os.pipe()[1], 1031, 2**20)"
    ),
    "lists the root folder": then_right(
        "import os", "os.listdir(os.open('/', os.O_RDONLY | os.O_DIRECTORY))"
    ),
    "takes the rights to a file away": by_library("chmod(b'{victim}', 0)"),
    "makes a device of the machine's memory": by_library("mknod(b'memory', 0o020600, 0x101)"),
    "lifts its own limits": by_library("setrlimit(9, (ctypes.c_ulong * 2)(2**62, 2**62))"),
    "makes a file old": by_library("utimes(b'{victim}', None)"),
}

# the message's key: what the learner is told
TOLD = {
    "answer_used": "the engine's own answer was used",
    "closed": "this is closed while an exercise is graded",
    "exit": "the process ended itself",
    "garbled": "the process answered with something else than a value",
    "files": "too much was written",
    "import": "this import is closed here",
    "imports_minigrad": "minigrad is not to be used here",
    "input": "input() cannot be used here",
    "killed": "the process was killed",
    "memory": "MemoryError",
    "missing": "no such name",
    "none": "the answer is None",
    "not_variable": "the answer is no Variable",
    "output": "too much was printed",
    "raised": "the code raised an error",
    "recursion": "RecursionError",
    "numba": "Numba could not compile it",
    "shape": "the answer has a wrong shape",
    "signature": "the parameters are not those of the stub",
    "syntax": "SyntaxError",
    "time": "no answer in time",
    "type": "the answer is of a wrong type",
    "value": "the answer is wrong",
}
PAGE = """# What a file may try

{note}

Each file below is graded as an answer to a plain exercise, which may not use minigrad, and to one
that needs the engine. `tests/grader/test_attacks.py` holds each to a score of 0, and to the message
that its row names: which of several comes depends on the system, or on how the exercise asks.
`tests/grader/test_hostile_folder.py` does the same for folders that bring a `conftest.py`,
`pytest.ini`, `numpy.py` and their like: `minigrad check` never sees them, and pytest refuses the
folder where it would obey them.

| the file | a plain exercise says | one that needs the engine |
|---|---|---|
{attacks}

What gets around the audit hook, by the C library or by descriptors of folders, stops at walls that
the process builds around itself before it loads the file (Landlock and seccomp, `grader/walls.py`).
Without them each could have full points, and do harm; with them all score 0:

{around}

Only Linux has such walls, on x86-64 and arm64. Where one is missing, every report says what is not
closed, and so does `minigrad doctor`. `grade --jail=bwrap` puts a jail of bubblewrap's around
them, which alone keeps all files and processes outside from each of these
(`tests/grader/test_jail.py`). `python -m benchmarks.attacks` tries each of them behind the hook
alone, walls, a jail, and both: [what came of it](../../benchmarks/results/attacks.md).
"""


def told(keys: str) -> str:
    """Return in words what the keys of a row stand for."""
    return ", or ".join(TOLD[key] for key in keys.split("|"))


def text() -> str:
    """Return the whole page."""
    attacks = [
        f"| {name} | {told(attack.key(PLAIN))} | {told(attack.key(ENGINE))} |"
        for name, attack in ATTACKS.items()
    ]
    around = [f"- {name}" for name in AROUND]
    return PAGE.format(note=NOTE, attacks="\n".join(attacks), around="\n".join(around))
