"""start.py and the pins: what a person sees on machines where something is missing.

The failures are simulated: a copy of start.py runs in a folder with spaces and non-ASCII letters,
with a small .venv made beforehand, a PATH of our own, and a uv that says what the test wants.
"""

import ast
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from minigrad.cli.main import make_parser
from minigrad.devices.gpu import compiler
from minigrad.grader.folder import known_stems
from tests.devices.gpu.needs import compiler_is_needed

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ["start.py", "pyproject.toml", "constraints.txt", "minigrad/cli/main.py"]

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the simulations are shell scripts")


@pytest.fixture
def project(tmp_path):
    """A folder with start.py in it, and beside it an empty folder for commands."""
    folder = tmp_path / "Übungen für später" / "minigrad"
    folder.mkdir(parents=True)
    for name in SOURCES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (tmp_path / "commands").mkdir()
    (tmp_path / "home").mkdir()
    return folder


def make_venv(project):
    venv.create(project / ".venv", with_pip=False)


def add_command(project, name, script):
    path = project.parent.parent / "commands" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def start(project, *arguments, before="", **variables):
    """Run start.py, after Python statements `before`, with nothing inherited but `variables`."""
    top = project.parent.parent
    code = (
        "import errno, hashlib, importlib.util, io, os, re, runpy, shutil, signal, subprocess\n"
        "import sys, tempfile\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a background job ignores it
        f"{before}\nrunpy.run_path(sys.argv[0], run_name='__main__')"
    )
    environment = {
        "PATH": str(top / "commands"),
        "HOME": str(top / "home"),
        "PIP_CONFIG_FILE": os.devnull,
        **variables,
    }
    code = f"import sys; del sys.argv[0]\n{code}"
    return subprocess.run(
        [sys.executable, "-c", code, str(project / "start.py"), *arguments],
        env=environment,
        cwd=top,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def load_start(path=ROOT / "start.py"):
    spec = importlib.util.spec_from_file_location("start", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def advice(run):
    """The single line of a run that failed as it should."""
    assert run.returncode == 1, run.stderr
    assert "Traceback" not in run.stderr
    return run.stderr.splitlines()[-1]


# An unsuitable Python


def test_start_parses_on_a_python_too_old_to_run_it():
    text = (ROOT / "start.py").read_text(encoding="ascii")
    ast.parse(text, feature_version=(3, 4))


@pytest.mark.parametrize("version", [(2, 7), (3, 6), (3, 10), (3, 15)])
def test_start_on_an_unsuitable_python_says_so_in_one_line(project, version):
    run = start(project, "test", before=f"sys.version_info = {version} + (0, 'final', 0)")
    assert run.stderr.count("\n") == 1
    assert advice(run).startswith(
        f"minigrad needs Python 3.11 to 3.14, and this is {version[0]}.{version[1]}. Install one"
    )


def test_start_on_an_unsuitable_python_names_a_suitable_one(project):
    add_command(project, "python3.14", "exit 1")  # installed, but it does not start
    add_command(project, "python3.12", "exit 0")
    run = start(project, before="sys.version_info = (3, 9, 0, 'final', 0)")
    assert advice(run).endswith("You have one: python3.12 start.py")


def test_start_supports_the_pythons_that_pyproject_names():
    module = load_start()
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    newest = module.NEWEST[1] + 1
    assert wanted == f">=3.{module.OLDEST[1]},<3.{newest}"


# Something is missing


def test_start_without_any_pip_names_the_package_and_makes_nothing(project):
    before = "importlib.util.find_spec = lambda name: None"
    run = start(project, "test", before=before)
    assert run.stderr.count("\n") == 1
    assert re.match(r"pip is missing\. Install one package.*: .*pip", advice(run))
    assert not (project / ".venv").exists()


@pytest.mark.parametrize(
    ("system", "command"),
    [
        ('ID=debian\nNAME="Debian GNU/Linux"', "sudo apt install python3-pip"),
        ("ID=linuxmint\nID_LIKE=ubuntu", "sudo apt install python3-pip"),
        ("ID=fedora", "sudo dnf install python3-pip"),
        ("ID=alpine", "sudo apk add py3-pip"),
        (None, "python3-pip (its name on Debian, Ubuntu and Fedora)"),
    ],
)
def test_pip_package_is_named_as_the_system_names_it(monkeypatch, system, command):
    module = load_start()
    monkeypatch.setattr(module, "read", lambda path: system)
    assert module.pip_package() == command


@pytest.mark.skipif(not importlib.util.find_spec("pip"), reason="this environment has no pip")
def test_start_with_no_way_to_the_registry_tries_uv_then_pip_then_says_so(project):
    make_venv(project)
    add_command(project, "uv", "echo 'error: error sending request for url' >&2; exit 2")
    registry = "http://127.0.0.1:9/simple"  # nothing listens on the discard port
    run = start(project, "test", PIP_INDEX_URL=registry, PIP_RETRIES="0", PIP_NO_CACHE_DIR="1")
    assert advice(run).startswith("The package registry cannot be reached. Check the network")
    steps = run.stderr.splitlines()[:-1]
    assert [line for line in steps if not line.startswith(" ")] == [
        "Installing packages with uv",
        "Installing packages with pip",
    ]
    assert not (project / ".venv" / "minigrad-stamp").exists()


def test_start_on_a_full_disk_says_so_and_does_not_try_again(project):
    make_venv(project)
    add_command(project, "uv", "echo 'No space left on device (os error 28)' >&2; exit 2")
    run = start(project, "test")
    assert advice(run).startswith("The disk is full. Free about 1 GB (2 GB for the tests) where")
    assert str(project) in advice(run)
    assert "with pip" not in run.stderr


def test_an_installers_seconds_go_on_while_it_says_nothing(monkeypatch, tmp_path):
    module = load_start()
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(module, "LOG", str(tmp_path / "log"))
    code = "import time; print('Unpacking', flush=True); time.sleep(2.5); print('Done')"
    status, output = module.run_with_progress([sys.executable, "-c", code], dict(os.environ))
    assert (status, output) == (0, "Unpacking\nDone")
    assert (tmp_path / "log").read_text() == "Unpacking\nDone\n"
    shown = terminal.getvalue().split("\r\033[K")
    assert sum(line.endswith("s  Unpacking") for line in shown) >= 2


def test_start_when_an_installer_fails_otherwise_shows_its_error_and_the_log(project):
    make_venv(project)
    add_command(project, "uv", "echo 'error: the moon is in the way' >&2; exit 2")
    run = start(project, "test", before="importlib.util.find_spec = lambda name: None")
    assert advice(run) == (
        "The packages could not be installed: error: the moon is in the way "
        "(all of it: .venv/minigrad-setup.log)"
    )
    assert "the moon" in (project / ".venv" / "minigrad-setup.log").read_text()


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("OSError: [Errno 28] No space left on device", "The disk is full"),
        ("error: failed to write: Disk quota exceeded (os error 122)", "The disk is full"),
        ("OSError: [Errno 30] Read-only file system: '.venv'", "cannot be written"),
        ("Error: [Errno 13] Permission denied: '/opt/minigrad/.venv'", "cannot be written"),
        ("Temporary failure in name resolution", "registry cannot be reached"),
        ("SSLError(... CERTIFICATE_VERIFY_FAILED ...)", "registry cannot be reached"),
        ("ProxyError('Cannot connect to proxy.')", "registry cannot be reached"),
        ("no such option: --python", "pip is older than 22.3"),
        ("/usr/bin/python3: No module named pip", "pip is missing"),
        ("", "could not be done: no message"),
    ],
)
def test_explain_turns_what_was_printed_into_one_line(printed, said):
    with pytest.raises(SystemExit) as stopped:
        load_start().explain(printed, "It could not be done")
    line = str(stopped.value)
    assert said in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("number", "said"),
    [("ENOSPC", "The disk is full"), ("EROFS", "cannot be written"), ("EACCES", "cannot be")],
)
def test_set_up_turns_a_system_error_into_one_line(monkeypatch, number, said):
    import errno

    module = load_start()
    code = getattr(errno, number)

    def fail(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(module, "fingerprint", fail)
    with pytest.raises(SystemExit, match=said):
        module.set_up({}, [])


# HOME


def test_start_with_a_home_that_cannot_be_written_uses_a_place_of_its_own(project):
    make_venv(project)
    add_command(project, "uv", f'echo "$JUPYTER_CONFIG_DIR" > "{project}/seen"')
    run = start(project, "setup", HOME=os.devnull)
    assert run.returncode == 0
    assert run.stderr.startswith(f"HOME ({os.devnull}) cannot be written, so settings and caches")
    seen = Path((project / "seen").read_text().strip())
    assert seen == project / ".minigrad" / "home" / "jupyter"


def test_start_with_a_home_that_cannot_be_written_keeps_a_choice_already_made(monkeypatch):
    module = load_start()
    monkeypatch.setenv("HOME", os.devnull)
    monkeypatch.setenv("JUPYTER_DATA_DIR", "/chosen")
    environment = module.child_environment()
    assert environment["JUPYTER_DATA_DIR"] == "/chosen"
    assert environment["MPLCONFIGDIR"].startswith(module.SPARE_HOME)


def test_start_with_a_good_home_leaves_its_variables_alone(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    environment = load_start().child_environment()
    assert "XDG_CACHE_HOME" not in environment
    assert environment["HOME"] == str(tmp_path)
    assert capsys.readouterr().err == ""


# The second time


def count_installs(project):
    return (project / "installs").read_text().count("install")


@pytest.fixture
def installed(project):
    """A project whose first set-up, with a uv that only counts its calls, is done."""
    make_venv(project)
    add_command(project, "uv", f'echo "$@" >> "{project}/installs"')
    run = start(project, "setup")
    assert run.returncode == 0
    assert re.search(r"^Set up in \d+ seconds\.$", run.stderr, flags=re.MULTILINE)
    return project


def test_start_installs_the_project_with_its_extras_and_the_pins(installed):
    arguments = (installed / "installs").read_text().strip()
    assert arguments.endswith("--editable .[lab,test] --constraint constraints.txt")
    assert arguments.startswith("pip install --compile-bytecode --python")


@pytest.mark.parametrize(
    ("system", "machine", "is_taken"),
    [("linux", "x86_64", True), ("linux", "aarch64", False), ("darwin", "arm64", False)],
)
def test_start_takes_the_compiler_for_gpus_for_the_tests_alone(
    installed, system, machine, is_taken
):
    before = f"import platform; platform.machine = lambda: {machine!r}; sys.platform = {system!r}"
    python = installed / ".venv" / "bin" / "python"
    python.unlink()  # as in the test of what is started
    version = ".".join(map(str, sys.version_info[:3]))
    python.write_text(f'#!/bin/sh\n[ "$1" = -c ] && echo {version} && exit\n')
    python.chmod(0o755)
    start(installed, "lab", before=before)
    assert count_installs(installed) == 1
    for _ in range(2):
        start(installed, "test", before=before)
        assert count_installs(installed) == 1
    for _ in range(2):
        start(installed, "test", "--all", before=before)
        assert count_installs(installed) == 1 + is_taken
    last = (installed / "installs").read_text().splitlines()[-1]
    assert (".[lab,test,cuda] " in last) is is_taken
    start(installed, "lab", before=before)  # what is there stays
    assert count_installs(installed) == 1 + is_taken


def test_start_installs_the_compiler_as_skipped_tests_say_it_does(installed, monkeypatch):
    monkeypatch.delenv("MINIGRAD_CUBINS", raising=False)
    monkeypatch.setattr(compiler, "missing", lambda: "numba-cuda")
    with pytest.raises(pytest.skip.Exception) as skipped:
        compiler_is_needed()
    said = re.search(r"`python3 start\.py ([^`]+)` installs it on Linux", skipped.value.msg)
    before = "import platform; platform.machine = lambda: 'x86_64'; sys.platform = 'linux'"
    start(installed, *said[1].split(), before=before)
    assert ".[lab,test,cuda] " in (installed / "installs").read_text().splitlines()[-1]


def test_start_keeps_the_compiler_for_gpus_when_requirements_change(installed):
    stamp = installed / ".venv" / "minigrad-stamp"
    stamp.write_text(stamp.read_text().replace("lab,test", "lab,test,cuda"))
    with (installed / "constraints.txt").open("a") as file:
        file.write("\n# changed\n")
    assert start(installed, "setup").returncode == 0
    assert ".[lab,test,cuda] " in (installed / "installs").read_text().splitlines()[-1]
    assert stamp.read_text().endswith("\nlab,test,cuda\n")


def test_start_the_second_time_installs_nothing_and_says_nothing(installed):
    run = start(installed, "setup")
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    assert count_installs(installed) == 1


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_start_after_a_change_of_the_requirements_installs_again(installed, name):
    with (installed / name).open("a") as file:
        file.write("\n# changed\n")
    assert start(installed, "setup").returncode == 0
    assert count_installs(installed) == 2
    assert "Making the environment" not in start(installed, "setup").stderr


def test_start_in_a_folder_that_was_moved_makes_the_environment_again(installed):
    moved = installed.with_name("elsewhere")
    installed.rename(moved)
    (moved / ".venv" / "leftover").touch()
    before = "importlib.util.find_spec = lambda name: None"  # no ensurepip: quick
    add_command(moved, "uv", "exit 0")
    run = start(moved, "setup", before=before)
    assert run.returncode == 0
    assert "Making the environment .venv" in run.stderr
    assert not (moved / ".venv" / "leftover").exists()


def test_start_with_a_broken_environment_makes_it_again(installed):
    python = installed / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to("/nonexistent/python")
    run = start(installed, "setup", before="importlib.util.find_spec = lambda name: None")
    assert run.returncode == 0
    assert "Making the environment .venv" in run.stderr
    assert subprocess.run([python, "-c", ""], check=False).returncode == 0


def test_start_in_a_folder_with_another_name_finds_its_environment(installed):
    other = installed.parent.with_name("other")
    other.symlink_to(installed.parent)
    run = start(other / installed.name, "setup")
    assert (run.returncode, run.stderr, count_installs(installed)) == (0, "", 1)


def test_start_in_a_locale_without_umlauts_finds_its_environment(installed):
    ascii_alone = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    for variables in (ascii_alone, {}):
        (installed / ".venv" / "minigrad-stamp").unlink()
        for used in (variables, ascii_alone, {}):
            run = start(installed, "setup", **used)
            assert "Making the environment" not in run.stderr
    assert (run.stderr, count_installs(installed)) == ("", 3)


@pytest.mark.parametrize("is_link", [False, True])
def test_start_keeps_an_environment_until_another_works(installed, is_link):
    moved = installed.with_name("elsewhere")
    installed.rename(moved)
    venv = moved / ".venv"
    if is_link:
        venv.rename(moved / "other disk")
        venv.symlink_to(moved / "other disk")
    (venv / "mine").touch()
    for _ in range(2):
        add_command(moved, "uv", "echo 'error: the moon is in the way' >&2; exit 2")
        run = start(moved, "setup", before="importlib.util.find_spec = lambda name: None")
        assert advice(run).endswith("(all of it: .venv/minigrad-setup.log)")
        assert (venv / "minigrad-setup.log").read_text().count("the moon") == 1
        assert (venv / "mine").exists()
    add_command(moved, "uv", "exit 0")
    run = start(moved, "setup", before="importlib.util.find_spec = lambda name: None")
    assert (run.returncode, (venv / "mine").exists(), venv.is_symlink()) == (0, False, is_link)
    assert not list(moved.rglob("*-before"))


def test_start_when_a_file_is_in_the_environments_place_says_so(project):
    (project / ".venv").write_text("the name of an environment elsewhere")
    add_command(project, "uv", "exit 0")
    run = start(project, "setup")
    assert ".venv is no folder: rename it, then run this again." in advice(run)


@pytest.mark.parametrize("name", ["random", "copy", "types", "tempfile", "pip", "minigrad"])
def test_start_looks_for_no_module_among_the_learners_own_files(installed, name):
    (installed / f"{name}.py").write_text("raise SystemExit('a file of the learner')")
    (installed / ".venv" / "minigrad-stamp").unlink()
    path = str(installed.parent.parent / "commands")
    for command in (["setup"], ["check", "00"]):  # the second ends in the environment's Python
        run = subprocess.run(
            [sys.executable, installed / "start.py", *command], env={"PATH": path},
            cwd=installed, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "a file of the learner" not in run.stderr
    assert run.stderr.endswith(
        "while finding module specification for 'minigrad.cli.main' "
        "(ModuleNotFoundError: No module named 'minigrad')\n"
    ), run.stderr


# What is started


PYTEST = f"-P -m pytest {' '.join(load_start().side_by_side())}"


@pytest.mark.parametrize(
    ("arguments", "started"),
    [
        ([], "-P -m minigrad.cli.main lab"),
        (["lab"], "-P -m minigrad.cli.main lab"),
        (["lab", "02"], "-P -m minigrad.cli.main lab 02"),
        (["lab", "--no-browser"], "-P -m minigrad.cli.main lab --no-browser"),
        (["lab", "--port", "9000"], "-P -m minigrad.cli.main lab --port 9000"),
        (["--no-browser"], "-P -m minigrad.cli.main lab --no-browser"),
        (["test"], f"{PYTEST} -m quick"),
        (["test", "--all"], PYTEST),
        (["test", "-k", "two words"], f"{PYTEST} -m quick -k two words"),
        (["check", "00", "--json"], "-P -m minigrad.cli.main check 00 --json"),
        (["hint", "00.slope.2"], "-P -m minigrad.cli.main hint 00.slope.2"),
        (["status"], "-P -m minigrad.cli.main status"),
        (["reset", "00"], "-P -m minigrad.cli.main reset 00"),
        (["doctor"], "-P -m minigrad.cli.main doctor"),
    ],
)
def test_start_runs_what_was_asked_for_and_passes_its_status_on(installed, arguments, started):
    python = installed / ".venv" / "bin" / "python"
    version = ".".join(map(str, sys.version_info[:3]))
    python.unlink()  # a Python that knows its version, says what it is to run, and ends with 7
    python.write_text(f'#!/bin/sh\n[ "$1" = -c ] && echo {version} && exit\necho "$@"\nexit 7\n')
    python.chmod(0o755)
    run = start(installed, *arguments, before="sys.platform = 'other'")
    assert (run.stdout, run.returncode) == (f"{started}\n", 7)
    said = "To type minigrad and pytest in a terminal here: source .venv/bin/activate\n"
    assert run.stderr == (said if "main lab" in started else "")


@pytest.mark.parametrize(
    "arguments",
    [[], ["-x"], ["-k", "tests"], ["-x", "--lf", "-n", "3"], ["--ignore", "tests/nn"],
     ["-k", "tests", "-v"], ["--junitxml=start.py"], ["-c", "pyproject.toml"]],
)  # fmt: skip
def test_start_adds_arguments_of_pytest_to_the_quick_tests(arguments):
    assert load_start().selection(arguments) == ["-m", "quick", *arguments]


@pytest.mark.parametrize(
    "arguments",
    [["tests/nn"], ["-x", "tests/test_setup.py"], ["tests/test_data.py::test_of[a-b]", "-x"],
     ["-k", "tests", "tests"]],
)  # fmt: skip
def test_start_runs_the_tests_that_are_named_whole(arguments):
    assert load_start().selection(arguments) == arguments


def test_start_runs_all_tests_that_the_arguments_leave():
    assert load_start().selection(["--all"]) == []
    assert load_start().selection(["-x", "--all", "-k", "nn"]) == ["-x", "-k", "nn"]


def test_pytest_takes_the_last_of_several_marks(tmp_path):
    arguments = load_start().selection(["-m", "mine"])
    assert arguments == ["-m", "quick", "-m", "mine"]
    plain = "import pytest\n@pytest.mark.{0}\ndef test_{0}(): pass\n"
    (tmp_path / "test_marks.py").write_text(plain.format("quick") + plain.format("mine"))
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  quick\n  mine\n")
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "test_mine PASSED" in done.stdout
    assert "1 passed, 1 deselected" in done.stdout


@pytest.mark.parametrize("arguments", [["lab", "--bogus"], ["--bogus"], ["lab", "--port", "x"]])
def test_start_checks_arguments_before_it_installs(project, arguments):
    run = start(project, *arguments)
    assert run.returncode == 2
    assert "usage: start.py lab" in run.stderr
    assert not (project / ".venv").exists()


def test_start_takes_for_the_lab_what_minigrad_takes():
    for arguments in (["01", "--no-browser", "--port", "9000"], [], ["--port=9000", "02"]):
        assert make_parser().parse_args(["lab", *arguments]).command == "lab"
        assert load_start().check_lab_arguments(arguments) is None


def test_start_passes_on_every_command_of_minigrad():
    actions = [action for action in make_parser()._actions if action.choices]
    assert [*actions[0].choices] == load_start().commands()


@pytest.mark.parametrize(
    ("word", "advice"),
    [
        ("tset", "did you mean test?"),
        ("chek", "did you mean check?"),
        ("Check", "did you mean check?"),
        ("xyzzy", "--help lists them"),
    ],
)
def test_start_with_an_unknown_word_says_so_in_one_line(project, word, advice):
    run = start(project, word, "09")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == f"start.py: there is no command '{word}'; {advice}\n"
    assert not (project / ".venv").exists()  # a typo costs no set-up


@pytest.mark.parametrize("file", ["start.py", "docs/install.md"])
def test_what_is_kept_outside_the_environment_is_said(file):
    text = (ROOT / file).read_text()
    for place in ("undoes the installation", ".minigrad", "your user's cache", "doctor"):
        assert place in text


def test_start_shows_its_help(project):
    run = start(project, "--help")
    assert run.returncode == 0
    assert "python3 start.py test" in run.stdout


def test_start_that_is_stopped_says_what_the_same_command_does(project):
    make_venv(project)
    add_command(project, "uv", "kill -INT $PPID; sleep 5")
    run = start(project, "setup")
    assert run.stderr.splitlines()[-1] == "Stopped. The same command begins installing again."


def test_lab_without_a_lesson_is_the_first_one():
    assert make_parser().parse_args(["lab"]).lesson is None
    assert known_stems()[0] == "00_start"


# The pins


def test_constraints_hold_names_and_versions_alone():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    names = [re.fullmatch(r"([a-z0-9][a-z0-9._-]*)==[0-9][0-9a-z.+!]*", line)[1] for line in lines]
    assert names == sorted(set(names))


def test_constraints_pin_every_package_that_start_installs():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {line.split("==")[0] for line in lines}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["lab"], *extras["test"], *extras["cuda"]]
    names = {re.match(r"[\w-]+", line)[0] for line in wanted}
    assert {name.replace("_", "-") for name in names} <= pinned  # pip takes both for one


def test_core_dependencies_are_numpy_and_numba():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {re.match(r"[\w-]+", line)[0] for line in project["dependencies"]} == {"numba", "numpy"}
    assert "numpy==2.4." in (ROOT / "constraints.txt").read_text()


def test_image_copies_what_exists_and_what_the_package_is_built_from():
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    copied = [
        name
        for line in re.findall(r"(?m)^COPY (.+)$", text)
        for name in line.split()[:-1]  # the last is where they go
    ]
    assert [name for name in copied if not (ROOT / name).exists()] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = {"pyproject.toml", "constraints.txt", project["project"]["readme"]}
    needed |= set(project["project"]["license-files"])
    needed |= set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"])
    assert set(copied) == needed
    assert "lab" in project["project"]["optional-dependencies"]
    assert '"/src[lab]"' in text
    assert text.index("\nUSER ") < text.index("\nCMD ")  # nothing runs as root
