"""Facts about texts: what passed once, and passes while the texts that it depends on are the same.

A fact is what the tests of one file say, such as `compiler/test_ops.py`, or what they say of one
lesson: `grader/test_checks.py 04`. Its key is the hash of the texts that it depends on: the file's
own, all that it imports in turn, the data beside it, the lesson's texts, those of each lesson that
it names (a lesson is loaded by its name, `01_chain_rule`); the engine is one of them as a whole,
where the tests or the lesson import it themselves. Comments and docstrings of the engine count for
nothing: they can be improved without a proof. `facts.json` has the keys with which
facts were proved whole. Of a fact whose key stands there, `.ci/run` runs a tenth of the tests, the
next tenth with the next commit; of any other fact all. Quick tests run in any case.

    python -m tests.facts             proves the facts that are not known, writes down their keys
    python -m tests.facts 04 simt     those with one of these words in their name
    python -m tests.facts --check     proves nothing, and names those that are not known
"""

import argparse
import ast
import collections
import functools
import hashlib
import io
import json
import os
import pathlib
import re
import sys
import tokenize

import pytest

ROOT = pathlib.Path(__file__).parents[1]
KNOWN = ROOT / "tests" / "facts.json"
TEXTS = {".css", ".js", ".json", ".md", ".mplstyle", ".npz", ".py", ".toml", ".txt", ".xml"}
ALWAYS = ("pyproject.toml", "constraints.txt", "tests/conftest.py")  # what every fact depends on
APART = ("course", "grader", "cli")  # what of minigrad/ the engine does not know
PRAGMA = re.compile("# *(type|pyright):")  # begins a comment that type checkers obey
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

COURSE = ("minigrad", "start.py", "exercises", "lessons/source", "solutions")
GRADED = ("minigrad/grader", "minigrad/course/__init__.py")
FILES = {  # files and folders below tests/ with a fact for each file, and what it reads by name
    **dict.fromkeys(
        ("autograd", "compiler", "cuda", "devices", "formulas", "memory", "nn", "ops", "optim",
         "simt", "viz", "test_argument_types.py", "test_checkpoint.py", "test_data.py",
         "test_dtypes.py", "test_error_lines.py", "test_errors.py", "test_float16.py",
         "test_forks.py", "test_interop.py", "test_newcomer.py", "test_one_meaning.py",
         "test_random_programs.py", "test_seams.py", "test_semantics.py", "test_sliders.py",
         "test_typed.py"),
        (),
    ),
    **dict.fromkeys(("test_golden.py", "test_golden_special.py"), ("tests/golden",)),
    **dict.fromkeys(
        ("grader/test_attacks.py", "grader/test_hostile_folder.py", "grader/test_wire.py"), GRADED
    ),
    **dict.fromkeys(
        ("cli", "test_own_engine.py", "test_seam_kernels.py", "test_seam_memory.py",
         "test_small_compiler.py"),
        COURSE,
    ),
    "grader": (*COURSE, "tests/mutants"),
    **dict.fromkeys(
        ("test_benchmark_anatomy.py", "test_benchmark_limits.py", "test_benchmark_process.py",
         "test_benchmark_report.py", "test_benchmark_simulator.py", "test_benchmark_workloads.py",
         "test_benchmarks.py"),
        ("minigrad", "benchmarks"),
    ),
    "distributed": ("docs/distributed.md", "examples/ranks.py"),
    "distributed/test_processes.py": ("benchmarks",),
    "test_types.py": ("minigrad",),
}  # fmt: skip
READ = "read"  # the property of a report that lists what a test has read
LESSONS = {  # files with a fact for each lesson, and what it depends on besides CHECKED
    "grader/test_checks.py": ("tests/mutants/m{}_*",),
    "grader/test_mechanical.py": ("tests/mutants/equivalent.toml",),
    "grader/test_silly_answers.py": (),
    "readers/test_readers.py": (),
    "test_lessons.py": ("lessons/source/{}_*",),
}
CHECKED = ("solutions/{}_*", "minigrad/course/l{}_*")
NAMED = re.compile(r"\b(\d\d)_[a-z_]+")


def fact_of(nodeid):
    """The name of the fact that a test belongs to, or None."""
    path, _, case = nodeid.removeprefix("tests/").partition("::")
    if path in LESSONS:
        lesson = re.search(r"\[(?:[^\]]*-)?(\d\d)[._]", case)
        return f"{path} {lesson[1]}" if lesson else None
    return path if _listed(path) else None


def _listed(path):
    """The name in FILES of a file of tests, or None."""
    return next((name for name in (path, path.partition("/")[0]) if name in FILES), None)


@functools.cache
def key_of(fact):
    """The hash of the texts that a fact depends on."""
    return _hash(texts_of(fact))


def texts_of(fact):
    """The paths of the texts that a fact depends on, without what every fact depends on."""
    path, _, lesson = fact.partition(" ")
    file = ROOT / "tests" / path
    own = {file} | (_data_in(file.parent) if "/" in path else set())
    if lesson:
        found = [p for x in (*CHECKED, *LESSONS[path]) for p in ROOT.glob(x.format(lesson))]
        own = own.union(*map(_below, found))
    needed = _closure(frozenset(own))
    if not lesson:
        needed = _closure(frozenset(needed | _lessons_named(needed)))
        needed = needed.union(*(_below(ROOT / name) for name in FILES[_listed(path)]))
    using = own | {p for p in needed if ROOT / "tests" in p.parents}
    uses_engine = any(_engine().intersection(_files_of(n)) for p in using for n in _imports(p))
    return needed | _engine() if uses_engine else needed


def is_known(fact, known=None):
    """Whether a fact was proved with the texts as they are."""
    return (_known() if known is None else known).get(fact) == key_of(fact)


@functools.cache
def _known():
    return json.loads(KNOWN.read_text(encoding="utf-8")) if KNOWN.exists() else {}


def _lessons_named(paths):
    """The texts of lessons whose names these files of tests say."""
    files = [p for p in paths if ROOT / "tests" in p.parents and p.suffix == ".py"]
    said = "\n".join(p.read_text(encoding="utf-8") for p in files)
    stems = {found[0]: found[1] for found in NAMED.finditer(said)}
    numbers = {stems[stem] for stem in stems if (ROOT / "solutions" / f"{stem}.py").exists()}
    found = [p for number in numbers for x in CHECKED for p in ROOT.glob(x.format(number))]
    return set().union(*map(_below, found))


@functools.cache
def _closure(first):
    """These files and all of minigrad and tests that they import, in functions, too."""
    found, todo = set(first), list(first)
    while todo:
        path = todo.pop()
        more = {p for name in _imports(path) for p in _files_of(name)} - found - _engine()
        found |= more
        todo += more
    return found


@functools.cache
def _imports(path):
    """Names of modules, or of what is in them, that a Python file imports."""
    names = set()
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {one.name for one in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module} | {f"{node.module}.{one.name}" for one in node.names}
    return {name for name in names if name.partition(".")[0] in ("minigrad", "tests")}


@functools.cache
def _files_of(name):
    """The file of a module, if the name is one."""
    base = ROOT.joinpath(*name.split("."))
    return [p for p in (base.with_suffix(".py"), base / "__init__.py") if p.exists()]


@functools.cache
def _engine():
    folder = ROOT / "minigrad"
    inside = [p for p in folder.iterdir() if p.is_dir() and p.name not in APART]
    return frozenset(folder.glob("*.py")).union(*map(_below, inside))


@functools.cache
def _below(path):
    """The texts below a folder, or a file itself."""
    found = path.rglob("*") if path.is_dir() else [path]
    return {p for p in found if p.suffix in TEXTS and "__pycache__" not in p.parts}


def _data_in(folder):
    """What tests read beside them without an import: data, and what pytest loads."""
    return {p for p in _below(folder) if p.suffix != ".py" or p.name == "conftest.py"}


@functools.cache
def _line(path):
    """A path and the hash of its text, whatever ends its lines."""
    text = path.read_bytes().replace(b"\r\n", b"\n")
    if path.suffix == ".py" and path in _engine():
        text = meaning_of(text.decode()).encode()
    return f"{path.relative_to(ROOT).as_posix()} {hashlib.sha256(text).hexdigest()}"


@functools.cache
def meaning_of(source):
    """Return a source of Python without docstrings and comments, but for those in PRAGMA."""
    lines, gone = source.split("\n"), set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not PRAGMA.match(token.string):
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip()
            if not lines[row - 1]:
                gone.add(row)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]
            if not lines[text.lineno - 1][: text.col_offset].strip():  # else `def f(): "Do it."`
                gone.update(range(text.lineno, text.end_lineno + 1))
    return "\n".join(line for row, line in enumerate(lines, 1) if row not in gone)


def _hash(paths):
    lines = sorted({_line(p) for p in paths} | {_line(ROOT / name) for name in ALWAYS})
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


# ---- the command ------------------------------------------------------------------------------


class Recorder:
    """A plugin that notes for each fact whether all of its tests passed, and what they read."""

    def __init__(self, asked=()):
        self.asked = asked
        self.outcomes = collections.defaultdict(set)
        self.read = collections.defaultdict(set)

    def pytest_configure(self, config):
        """Asks for facts, which are too many for a command line."""
        config.option.facts = ",".join(self.asked)

    def pytest_runtest_logreport(self, report):
        """Notes an outcome; `report.skipped` counts as neither. A failure is shown at once."""
        if report.failed:
            sys.stdout.write(f"\nFAILED {report.nodeid}\n{report.longreprtext[-1000:]}\n")
            sys.stdout.flush()
        fact = fact_of(report.nodeid)
        self.outcomes[fact].add(report.outcome)
        self.read[fact].update(*(paths for what, paths in report.user_properties if what == READ))

    def missing(self, fact):
        """The texts that the tests of a fact read, and that its key does not depend on.

        A file of tests is imported, and reads, for all of its lessons at once.
        """
        together = {f for f in all_facts() if f.split()[0] == fact.split()[0]}
        texts = set().union(*map(texts_of, together), (ROOT / name for name in ALWAYS))
        return sorted(
            str(p.relative_to(ROOT))
            for p in set(map(_source, self.read[fact]))
            if p and p not in texts
        )


class Reads:
    """The files below ROOT that this process has opened since `taken` was last called."""

    def __init__(self):
        self._paths = set()
        sys.addaudithook(self._note)

    def _note(self, event, arguments):
        if event == "open" and isinstance(arguments[0], str):
            self._paths.add(arguments[0])

    def taken(self):
        """Return what was opened, and begin anew."""
        found, self._paths = self._paths, set()
        return sorted(path for path in found if path.startswith(f"{ROOT}{os.sep}"))


def _source(path):
    """The text of the repository that a file is or was compiled from; None for any other file."""
    path = pathlib.Path(path)
    if path.suffix == ".pyc":
        path = path.parents[1] / f"{path.name.partition('.')[0]}.py"
    inside = path.relative_to(ROOT).parts
    is_text = path.suffix in TEXTS and path.exists() and path != KNOWN
    return (
        path
        if is_text and not any(part.startswith((".", "__pycache__")) for part in inside)
        else None
    )


def all_facts():
    """The names of all facts."""
    found = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        name = path.relative_to(ROOT / "tests").as_posix()
        if name in LESSONS:
            lessons = sorted(p.name[:2] for p in (ROOT / "solutions").glob("[0-9][0-9]_*.py"))
            found += [f"{name} {lesson}" for lesson in lessons]
        elif fact_of(f"tests/{name}::"):
            found.append(name)
    return found


def write(known):
    """Write down keys, those alone of facts that there are."""
    lines = [
        f" {json.dumps(name)}: {json.dumps(known[name])}" for name in all_facts() if name in known
    ]
    KNOWN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main(arguments=None):
    """Prove what is not known; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.facts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("words", nargs="*", metavar="WORD", help="such as 04 or simt")
    parser.add_argument("--check", action="store_true", help="only name what is not known")
    options = parser.parse_args(arguments)
    asked = [f for f in all_facts() if not options.words or any(w in f for w in options.words)]
    stale = [fact for fact in asked if not is_known(fact)]
    if options.check or not stale:
        sys.stdout.write("".join(f"{x}\n" for x in stale) or f"All {len(asked)} are known.\n")
        return 1 if stale else 0
    keys = {fact: key_of(fact) for fact in stale}
    recorder = Recorder(stale)
    files = sorted({f"tests/{fact.partition(' ')[0]}" for fact in stale})
    status = pytest.main(
        [*files, "-q", "-n", str((os.cpu_count() or 1) + 1), "--dist", "loadfile",
         "--no-loadscope-reorder"],
        plugins=[recorder],
    )  # fmt: skip
    if status not in (0, 1):
        return int(status)
    proved = {f: keys[f] for f in stale if "failed" not in recorder.outcomes[f]}
    for fact in [f for f in proved if recorder.missing(f)]:
        del proved[fact]
        text = f"{fact} reads what its key does not depend on: {recorder.missing(fact)}"
        sys.stdout.write(f"{text}\n")
        status = 1
    changed = [f for f in proved if _hash_now(f) != keys[f]]  # while the tests ran
    write(_known() | {f: key for f, key in proved.items() if f not in changed})
    sys.stdout.write(f"{len(proved) - len(changed)} facts are known now.\n")
    return int(status) or bool(changed)


def _hash_now(fact):
    for cached in (_line, _imports, _closure, _below, _engine, key_of):
        cached.cache_clear()
    return key_of(fact)


if __name__ == "__main__":
    sys.exit(main())
