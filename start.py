"""Set everything up and go: needs nothing but Python 3.11 to 3.14.

    python3 start.py                     open JupyterLab on the page of all lessons
    python3 start.py lab 02              open lesson 02
    python3 start.py lab --no-browser    for servers: print the address instead
    python3 start.py test                the quick tests: a few minutes
    python3 start.py test --all          all tests, and the compiler that some need
    python3 start.py test -x -k shape    the quick tests with arguments of pytest
    python3 start.py test tests/nn       the files, folders or tests that are named, whole;
                                         with --all, that compiler is installed for them, too
    python3 start.py setup               only set up
    python3 start.py check 00            the same as minigrad check 00; so are next, watch, hint,
                                         status, reset and all other commands of minigrad

The environment is the folder .venv beside this file. A second run finds it up to date and is quick.
Deleting .venv undoes the installation. Your points and the copies of your files are in .minigrad,
and compiled kernels in your user's cache: python3 start.py doctor says where.
On Windows: py start.py
"""

# This file keeps to syntax that every Python 3, and 2.7, can read, so that an old Python gets as
# far as its one line of advice: no f-strings, no annotations.

import sys

# Python looks for modules beside this file first, and a learner's own random.py or copy.py is there
if __name__ == "__main__" and not getattr(sys.flags, "safe_path", False):
    sys.path.pop(0)

import difflib
import errno
import hashlib
import io
import os
import platform
import re
import shutil
import subprocess
import tempfile
import time

OLDEST, NEWEST = (3, 11), (3, 14)
ROOT = os.path.dirname(os.path.abspath(__file__))
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, *(("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")))
PLACE = os.path.realpath(VENV)  # .venv can be a link to another disk
BEFORE = PLACE + "-before"  # an environment that another is to take the place of
STAMP = os.path.join(VENV, "minigrad-stamp")
LOG = os.path.join(VENV, "minigrad-setup.log")
SPARE_HOME = os.path.join(ROOT, ".minigrad", "home")
KNOWN = ["lab", "test", "setup"]  # beside the commands of minigrad
EXTRAS = ["lab", "test"]
COMPILER = "cuda"  # what the tests of CUDA kernels compile with: 280 MB, and not for lessons

MODULE = ["-P", "-m"]  # -P: a learner's own random.py here must not hide Python's

# Options of pytest whose next word is no test to run, even where a file or folder has that name
VALUED = (
    "-c", "-k", "-m", "-o", "-p", "-W", "--basetemp", "--confcutdir", "--config-file", "--deselect",
    "--ignore", "--ignore-glob", "--junit-xml", "--junitxml", "--log-file", "--rootdir",
)  # fmt: skip
ACTIVATE = r".venv\Scripts\activate" if os.name == "nt" else "source .venv/bin/activate"

PIP_MISSING = "pip is missing. Install one package, then run this again: "

# What installers and the system print, in lower case, and what to do then. The first that fits.
DISK_FULL = "no space left on device|errno 28 |os error 28|disk quota exceeded"
UNREACHABLE = (
    "name resolution|name or service not known|dns error|new connection|connection refused"
    "|connection reset|timed out|max retries exceeded|proxyerror|network is unreachable"
    "|error sending request|certificate_verify_failed|from versions: none"
)
ADVICE = (
    (
        DISK_FULL,
        "The disk is full. Free about 1 GB (2 GB for the tests) where {root} and the temporary "
        "folder {temporary} are, then run this again",
    ),
    (
        UNREACHABLE,
        "The package registry cannot be reached. Check the network or the proxy (HTTPS_PROXY), or "
        "name a mirror (PIP_INDEX_URL, for uv UV_DEFAULT_INDEX), then run this again",
    ),
    (
        "read-only file system|permission denied|errno 13 |errno 30 ",
        "{root} cannot be written. Copy it to a folder of yours and start it there",
    ),
    (
        "no such option: --python",
        "pip is older than 22.3. Upgrade it (python3 -m pip install --user --upgrade pip), "
        "then run this again",
    ),
)


def main(arguments):
    """Set up, then run what was asked for; return its exit status."""
    check_python()
    command = arguments[0] if arguments else "lab"
    rest = arguments[1:]
    if command.startswith("-") and command not in ("-h", "--help"):
        command, rest = "lab", arguments
    if command in ("-h", "--help", "help"):
        print((__doc__ or "The top of start.py says what it takes.").strip())
        return 0
    if command not in KNOWN + commands():
        tell(unknown(command))
        return 2
    if command == "lab":
        check_lab_arguments(rest)  # before the minutes that a first set-up takes
    environment = child_environment()
    is_all = command == "test" and "--all" in rest
    is_new = set_up(environment, extras_for("test --all" if is_all else command))
    if command == "setup":
        if is_new:
            tell("Next: python3 start.py lab. To type minigrad in a terminal: " + ACTIVATE)
        return 0
    if command == "test":
        return hand_over(MODULE + ["pytest"] + side_by_side() + selection(rest), environment)
    if command == "lab":
        tell("To type minigrad and pytest in a terminal here: " + ACTIVATE)
    return hand_over(MODULE + ["minigrad.cli.main", command] + rest, environment)


def commands():
    """The commands of minigrad, read from its source: it cannot be imported before the set-up.

    A word that is none of them is thus refused before the minutes that a first set-up takes.
    """
    source = read(os.path.join(ROOT, "minigrad", "cli", "main.py")) or ""
    return re.findall(r'\badd\(\s*"(\w+)"', source)


def unknown(command):
    """One line about a word that is no command."""
    meant = difflib.get_close_matches(command.lower(), KNOWN + commands(), 1)
    advice = "did you mean {0}?".format(meant[0]) if meant else "--help lists them"
    return "start.py: there is no command '{0}'; {1}".format(command, advice)


def selection(arguments):
    """Pytest's arguments for these of `start.py test`: the quick tests unless they choose others.

    A `-m` among them chooses by itself, as pytest takes the last one.
    """
    chosen = [x for x in arguments if x != "--all"]
    if len(chosen) < len(arguments) or names_tests(chosen):
        return chosen
    return ["-m", "quick"] + chosen


def names_tests(arguments):
    """Whether one of pytest's arguments is a file, a folder or a test in a file."""
    before = [""] + list(arguments)
    return any(
        not x.startswith("-")
        and last not in VALUED
        and os.path.exists(os.path.join(ROOT, x.split("::")[0]))
        for last, x in zip(before, arguments)  # noqa: B905 (Python 2.7 has no strict)
    )


def side_by_side():
    """Pytest's arguments for processes that share the tests: one more than cores, as many wait.

    A file's tests stay together, and the files are begun as `tests/conftest.py` orders them.
    """
    return ["-n", str((os.cpu_count() or 1) + 1), "--dist", "loadfile", "--no-loadscope-reorder"]


def check_lab_arguments(arguments):
    """Stop with the usage unless `minigrad lab` takes these arguments."""
    import argparse

    parser = argparse.ArgumentParser(prog="start.py lab")
    parser.add_argument("lesson", nargs="?", help="such as 01 (default: the page of all)")
    parser.add_argument("--no-browser", action="store_true", help="print the address only")
    parser.add_argument("--port", type=int, help="the first port to try")
    parser.parse_args(arguments)


def check_python():
    """Stop with one line unless this Python is one that minigrad runs on."""
    version = tuple(sys.version_info[:2])
    if OLDEST <= version <= NEWEST:
        return
    advice = "Install one (python.org, or your system's packages) and start with it"
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        name = "python3.{0}".format(minor)
        if succeeds([name, "--version"]):
            advice = "You have one: {0} start.py".format(name)
            break
    sys.exit(
        "minigrad needs Python 3.{0} to 3.{1}, and this is {2}.{3}. {4}".format(
            OLDEST[1], NEWEST[1], version[0], version[1], advice
        )
    )


def extras_for(command):
    """Which extras of the project a command needs, by name.

    Some tests compile CUDA kernels, which needs no GPU; elsewhere than on Linux on x86-64 they are
    skipped.
    """
    is_usual = sys.platform.startswith("linux") and platform.machine() in ("x86_64", "AMD64")
    return EXTRAS + [COMPILER] if command == "test --all" and is_usual else EXTRAS


def succeeds(command, environment=None):
    """Whether a command can be started and ends well."""
    try:
        with open(os.devnull, "w") as nowhere:
            return subprocess.call(command, stdout=nowhere, stderr=nowhere, env=environment) == 0
    except OSError:
        return False


def child_environment():
    """The variables for everything started here, with places that can be written."""
    environment = dict(os.environ)
    for name in ("PYTHONHOME", "PYTHONPATH", "PIP_TARGET", "PIP_PREFIX"):
        environment.pop(name, None)
    environment.update(PIP_USER="0", PIP_REQUIRE_VIRTUALENV="0", PIP_DISABLE_PIP_VERSION_CHECK="1")
    home = os.path.expanduser("~")
    if not can_write(home):
        tell(
            "HOME ({0}) cannot be written, so settings and caches go to .minigrad/home here; "
            "to keep your own, set HOME to a folder you may write.".format(home)
        )
        places = {
            "XDG_CACHE_HOME": "cache",
            "XDG_DATA_HOME": "data",
            "IPYTHONDIR": "ipython",
            "JUPYTER_CONFIG_DIR": "jupyter",
            "JUPYTER_DATA_DIR": "jupyter-data",
            "JUPYTER_RUNTIME_DIR": "jupyter-runtime",
            "MPLCONFIGDIR": "matplotlib",
        }
        for name in places:
            environment.setdefault(name, os.path.join(SPARE_HOME, places[name]))
    return environment


def can_write(folder):
    """Whether a file can be made in this folder (as root, permission bits alone do not tell)."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError as error:
        return error.errno == errno.ENOSPC  # a full disk is another matter, with its own message


def set_up(environment, extras):
    """Bring .venv up to date; do nothing, at once, when it is. Return whether it was not."""
    try:
        stamp = (read(STAMP) or "").splitlines()
        there = stamp[3].split(",") if len(stamp) > 3 else []
        if stamp[:2] == fingerprint() and not has_moved() and set(extras) <= set(there):
            return False
        started = time.time()
        installers = find_installers()
        wanted = extras + [name for name in there if name == COMPILER and name not in extras]
        try:
            make_venv(installers, environment)
            install(installers, environment, ",".join(wanted))
            place = os.fsencode(ROOT).decode("utf-8", "surrogateescape")  # in every locale
            with io.open(STAMP, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write("\n".join(fingerprint() + [place, ",".join(wanted), ""]))
        except BaseException:
            bring_back()
            raise
        shutil.rmtree(BEFORE, ignore_errors=True)
        tell("Set up in {0:.0f} seconds.".format(time.time() - started))
        return True
    except OSError as error:
        explain("errno {0} {1}".format(error.errno, error.strerror), "The set-up failed")


def fingerprint():
    """What an environment depends on, as lines: a changed one is installed again."""
    digest = hashlib.sha256()
    for name in ("pyproject.toml", "constraints.txt"):
        with open(os.path.join(ROOT, name), "rb") as file:
            digest.update(file.read())
    return [digest.hexdigest(), venv_version()]


def venv_version():
    """The version of the Python in .venv, or an empty text when there is none that runs."""
    command = [PYTHON, "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"]
    try:
        return subprocess.check_output(command, stderr=subprocess.STDOUT).decode().strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def find_installers():
    """The ways to install on this machine, best first; stop with one line if there is none."""
    import importlib.util

    installers = []
    if shutil.which("uv"):
        installers.append("uv")
    if importlib.util.find_spec("ensurepip"):
        installers.append("ensurepip")  # makes a .venv with a pip of its own
    elif importlib.util.find_spec("pip"):
        installers.append("pip")  # one pip can fill another environment
    if not installers:
        sys.exit(PIP_MISSING + pip_package())
    return installers


def pip_package():
    """The command that installs pip on this system."""
    system = (read("/etc/os-release") or "").lower()
    for names, command in (
        (("debian", "ubuntu"), "sudo apt install python3-pip"),
        (("fedora", "rhel", "centos"), "sudo dnf install python3-pip"),
        (("suse",), "sudo zypper install python3-pip"),
        (("arch",), "sudo pacman -S python-pip"),
        (("alpine",), "sudo apk add py3-pip"),
    ):
        if any(name in system for name in names):
            return command
    return "python3-pip (its name on Debian, Ubuntu and Fedora)"


def make_venv(installers, environment):
    """Make .venv unless a Python that minigrad runs on is in it already."""
    version = tuple(int(part) for part in venv_version().split(".") if part)[:2]
    is_kept = OLDEST <= version <= NEWEST and os.path.exists(os.path.join(VENV, "pyvenv.cfg"))
    if is_kept and not has_moved():
        return
    put_aside()
    tell("Making the environment .venv with Python " + sys.version.split()[0])
    base = getattr(sys, "_base_executable", None) or sys.executable
    command = [base] + MODULE + ["venv", "--clear"]
    ways = [command + [PLACE]] if "ensurepip" in installers else []
    for way in ways + [command + ["--without-pip", PLACE]]:
        output = ""
        try:
            subprocess.check_output(way, stderr=subprocess.STDOUT, cwd=ROOT, env=environment)
            return
        except subprocess.CalledProcessError as error:
            output = error.output.decode("utf-8", "replace")
    explain(output, "Python could not make .venv")


def has_moved():
    """Whether .venv was made for another place: its scripts then point at nothing.

    A folder can have several names: by links, mounts, and letters that a locale does not know.
    """
    stamp = read(STAMP)
    made_for = b"\n".join((stamp or "").encode("utf-8", "surrogateescape").splitlines()[2:3])
    try:
        return stamp is not None and not os.path.samefile(made_for, ROOT)
    except (OSError, ValueError):
        return True


def put_aside():
    """Make room for another environment; this one comes back unless the other works."""
    if os.path.lexists(VENV) and not os.path.isdir(VENV):
        sys.exit(VENV + " is no folder: rename it, then run this again. The environment goes there")
    if os.path.exists(STAMP):  # complete, so what an interrupted set-up left counts no more
        shutil.rmtree(BEFORE, ignore_errors=True)
    if not os.path.exists(BEFORE) and os.path.isdir(PLACE) and os.listdir(PLACE):
        os.rename(PLACE, BEFORE)
        os.mkdir(PLACE)


def bring_back():
    """Undo a set-up that failed, but for its log."""
    if os.path.isdir(BEFORE) and not os.path.exists(STAMP):
        if os.path.exists(LOG):
            shutil.copy(LOG, BEFORE)
        shutil.rmtree(PLACE, ignore_errors=True)
        os.rename(BEFORE, PLACE)


def install(installers, environment, extras):
    """Install minigrad with what lessons and tests need, by the first installer that can."""
    output = ""
    wanted = ["--editable", ".[{0}]".format(extras), "--constraint", "constraints.txt"]
    for installer in installers:
        if installer == "uv":
            command = ["uv", "pip", "install", "--compile-bytecode", "--python", PYTHON]
        elif succeeds([PYTHON] + MODULE + ["pip", "--version"], environment):
            command = [PYTHON] + MODULE + ["pip", "install"]
        else:
            command = [sys.executable] + MODULE + ["pip", "--python", PYTHON, "install"]
        tell("Installing packages with {0}".format("uv" if installer == "uv" else "pip"))
        status, output = run_with_progress(command + wanted, environment)
        if status == 0:
            return
        if re.search(DISK_FULL, output.lower()):
            break
    explain(output, "The packages could not be installed")


def run_with_progress(command, environment):
    """Run an installer, showing how far it is; return (status, output) and keep a log.

    Installers say nothing for minutes where they download or unpack much: the seconds go on.
    """
    import queue  # not by this name in Python 2.7
    import threading

    lines = []
    said = queue.Queue()
    step = "starting"
    shown = started = time.time()
    with io.open(LOG, "a", encoding="utf-8") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        reader = threading.Thread(target=hear, args=(process.stdout, said))
        reader.daemon = True
        reader.start()
        try:
            while step is not None:
                try:
                    step = said.get(timeout=1)
                except queue.Empty:
                    pass
                else:
                    lines += [] if step is None else [step]
                    log.write("" if step is None else step + "\n")
                now = time.time()
                text = "  {0:3.0f} s  {1}".format(now - started, (step or "").strip()[:64])
                if sys.stderr.isatty():
                    sys.stderr.write("\r\033[K" + text)  # one line, written over
                    sys.stderr.flush()
                elif step and now - shown > 10:
                    tell(text)
                    shown = now
            status = process.wait()
        finally:
            if process.poll() is None:
                process.kill()
            reader.join(5)  # what the installer has started may live on, and hold the other end
            if not reader.is_alive():
                process.stdout.close()
            if sys.stderr.isatty():
                sys.stderr.write("\r\033[K")
    return status, "\n".join(lines)


def hear(stream, said):
    """Put each line of a stream into a queue, and None at its end."""
    for raw in stream:
        said.put(raw.decode("utf-8", "replace").rstrip())
    said.put(None)


def explain(output, what_failed):
    """Stop with the one line that fits what an installer printed."""
    text = output.lower()
    for pattern, advice in ADVICE:
        if re.search(pattern, text):
            sys.exit(advice.format(root=ROOT, temporary=tempfile.gettempdir()))
    if "no module named pip" in text:
        sys.exit(PIP_MISSING + pip_package())
    errors = [line for line in output.splitlines() if "error" in line.lower()]
    last = (errors or output.strip().splitlines() or ["no message"])[-1].strip()
    log = " (all of it: {0})".format(os.path.relpath(LOG, ROOT)) if os.path.exists(LOG) else ""
    sys.exit("{0}: {1}{2}".format(what_failed, last, log))


def hand_over(arguments, environment):
    """Run the environment's Python in this process's place (on Windows: as a child)."""
    command = [PYTHON] + arguments
    os.chdir(ROOT)
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "nt":
        return subprocess.call(command, env=environment)
    return os.execve(PYTHON, command, environment)


def read(path):
    """The text of a file, or None when there is none."""
    try:
        with io.open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except (OSError, IOError):
        return None


def tell(text):
    """Say something that is no result: on standard error."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("\nStopped. The same command begins installing again.")
