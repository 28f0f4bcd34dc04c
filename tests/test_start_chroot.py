"""start.py on a bare Debian: Python without ensurepip, a pip that refuses system-wide installs.

Slow (minutes) and in need of root, debootstrap, Linux namespaces and the network, so it runs only
when asked for:

    sudo MINIGRAD_CHROOT=new .venv/bin/python -m pytest tests/test_start_chroot.py
    sudo MINIGRAD_CHROOT=/srv/debian ...      with one that tools/make_chroot.sh made before
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ASKED = os.environ.get("MINIGRAD_CHROOT", "")
PLACE = "srv/Übung macht den Meister/minigrad"
COPY_TO = "tar -c --exclude=.venv . | tar -x -C "
LEFT_OUT = shutil.ignore_patterns(".venv", ".git", ".minigrad", "__pycache__", ".*_cache")


def why_not():
    """The reason why this cannot run here, or an empty text."""
    if not ASKED:
        return "takes minutes and the network; asked for by MINIGRAD_CHROOT=new"
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "needs root, to make a chroot"
    for command in ("debootstrap", "unshare", "chroot"):
        if ASKED == "new" and not shutil.which(command):
            return f"needs the command {command}"
    return ""


pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())


@pytest.fixture(scope="module")
def debian(tmp_path_factory):
    """A bare Debian with this project in it, in a path with spaces and non-ASCII letters."""
    if ASKED == "new":
        folder = tmp_path_factory.mktemp("chroot") / "debian"
        subprocess.run([ROOT / "tools" / "make_chroot.sh", folder], check=True)
    else:
        folder = Path(ASKED)
    project = folder / PLACE
    shutil.rmtree(project, ignore_errors=True)
    shutil.copytree(ROOT, project, ignore=LEFT_OUT)
    yield folder
    if ASKED == "new":
        shutil.rmtree(folder)


def run(debian, command, mounts=""):
    """Run a shell command in the project's folder inside; mounts end with the command."""
    project = debian / PLACE
    script = (
        f'set -e; cd "{project}"; mount -t proc proc "{debian}/proc"; {mounts}\n'
        f'exec chroot "{debian}" /bin/sh -c \'cd "/{PLACE}"; {command}\''
    )
    passed_on = ("PIP_INDEX_URL", "http_proxy", "https_proxy", "HTTPS_PROXY", "no_proxy")
    environment = {name: os.environ[name] for name in passed_on if name in os.environ}
    return subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script],
        env={**environment, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.fixture(scope="module")
def first(debian):
    """The first `start.py test` on it, of a few tests that need the package and its data."""
    return run(debian, "python3 start.py test -q tests/test_data.py")


def test_the_debian_is_bare(debian):
    assert "ensurepip is not" in run(debian, "python3 -m venv /tmp/plain").stdout
    refused = run(debian, "python3 -m pip install minigrad-is-not-reached")
    assert "externally-managed-environment" in refused.stderr


def test_start_test_sets_up_and_runs_the_tests(first):
    assert first.returncode == 0, first.stderr
    assert "Making the environment .venv" in first.stderr
    assert re.search(r"Set up in \d+ seconds", first.stderr)
    assert re.search(r"^\d+ passed", first.stdout, flags=re.MULTILINE)


def test_start_leaves_the_system_as_it_was(first, debian):
    listed = run(debian, "python3 -m pip list --format=freeze").stdout
    assert "numpy" not in listed
    assert "jupyterlab" not in listed


def test_start_the_second_time_is_silent(first, debian):
    again = run(debian, "python3 start.py setup")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")


def test_start_lab_without_browser_prints_the_address(first, debian):
    lab = run(debian, "timeout --preserve-status 40 python3 start.py lab --no-browser 2>&1")
    assert re.search(r"http://(localhost|127\.0\.0\.1):\d+/lab\S*", lab.stdout), lab.stdout


def test_start_with_a_read_only_home_says_so_and_goes_on(first, debian):
    read_only = f'mount -t tmpfs -o ro none "{debian}/root"'
    again = run(debian, "python3 start.py test -q tests/test_data.py", read_only)
    assert again.stderr.startswith("HOME (/root) cannot be written")
    assert again.returncode == 0


def test_start_on_a_full_disk_says_so_in_one_line(first, debian):
    small = f'mkdir -p "{debian}/srv/small"; mount -t tmpfs -o size=40m none "{debian}/srv/small"'
    full = run(debian, f"{COPY_TO}/srv/small; python3 /srv/small/start.py setup", small)
    assert full.returncode == 1
    assert full.stderr.splitlines()[-1].startswith("The disk is full. Free about 1 GB")


def test_start_in_a_read_only_folder_says_so_in_one_line(first, debian):
    copy = f'mkdir -p "{debian}/srv/fixed"; cp *.py *.toml *.txt "{debian}/srv/fixed"'
    fixed = f'{copy}; cd "{debian}/srv"; mount --bind fixed fixed; mount -o remount,ro,bind fixed'
    refused = run(debian, "python3 /srv/fixed/start.py setup", fixed)
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1].startswith("/srv/fixed cannot be written")


def test_start_without_network_says_so_in_one_line(first, debian):
    start = "PIP_NO_CACHE_DIR=1 unshare --net python3 /srv/offline/start.py setup"
    offline = run(debian, f"mkdir -p /srv/offline; {COPY_TO}/srv/offline; {start}")
    assert offline.returncode == 1
    assert offline.stderr.splitlines()[-1].startswith("The package registry cannot be reached")


def test_start_without_pip_names_the_package(first, debian):
    hidden = f'mount -t tmpfs none "{debian}/usr/lib/python3/dist-packages"'
    copy = "mkdir -p /srv/bare; cp *.py *.toml *.txt /srv/bare; "
    bare = run(debian, copy + "python3 /srv/bare/start.py setup", hidden)
    assert bare.returncode == 1
    assert bare.stderr == (
        "pip is missing. Install one package, then run this again: sudo apt install python3-pip\n"
    )
