"""Files of the cache: damaged, unreadable, cut off by a kill; full and read-only disks."""

import errno
import linecache
import os
import pathlib
import subprocess
import sys
import time
import traceback
import warnings

import pytest

from minigrad.devices import cache_files, loader
from minigrad.errors import CacheWarning

DATA = bytes(range(256)) * 3
TEXT = '@jit("i8(i8)")\ndef kernel(x):\n    return x + {}\n'


@pytest.fixture
def fresh_state(monkeypatch):
    """As in a process that has written nothing yet."""
    monkeypatch.setattr(cache_files, "_state", {"warned": False, "swept": False})


@pytest.fixture
def empty_loader(tmp_path, monkeypatch, fresh_state):
    """The loader of this process with an empty cache of its own."""
    monkeypatch.setattr(loader, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(loader, "_modules", {})
    monkeypatch.setattr(loader, "loaded", [])
    return tmp_path


def refuse(number):
    """A function that fails as the system does."""

    def refused(*_, **__):
        raise OSError(number, os.strerror(number))

    return refused


# ---- files -------------------------------------------------------------------------------------


def test_what_was_written_is_read(tmp_path):
    path = tmp_path / "one"
    assert cache_files.write(path, DATA)
    assert cache_files.read(path) == DATA
    assert cache_files.write(path, b"")
    assert cache_files.read(path) == b""
    assert os.listdir(tmp_path) == ["one"]


def test_a_file_cut_at_any_length_is_not_there(tmp_path):
    path = tmp_path / "one"
    cache_files.write(path, DATA)
    whole = path.read_bytes()
    for n in range(len(whole)):
        path.write_bytes(whole[:n])
        assert cache_files.read(path) is None, n
    path.write_bytes(whole + b"\0")
    assert cache_files.read(path) is None


def test_a_file_with_any_bit_flipped_is_not_there(tmp_path):
    path = tmp_path / "one"
    cache_files.write(path, DATA[:64])
    whole = bytearray(path.read_bytes())
    for bit in range(8 * len(whole)):
        whole[bit // 8] ^= 1 << bit % 8
        path.write_bytes(whole)
        assert cache_files.read(path) is None, bit
        whole[bit // 8] ^= 1 << bit % 8


def test_a_folder_in_the_place_of_a_file_is_replaced(tmp_path):
    path = tmp_path / "one"
    path.mkdir()
    assert cache_files.read(path) is None
    assert cache_files.write(path, DATA)
    assert cache_files.read(path) == DATA


def test_a_file_that_cannot_be_opened_is_not_there(tmp_path, monkeypatch):
    path = tmp_path / "one"
    cache_files.write(path, DATA)
    monkeypatch.setattr(pathlib.Path, "read_bytes", refuse(errno.EACCES))
    assert cache_files.read(path) is None


class FullFile:
    """A file on a full disk: it opens, and takes no byte."""

    def __init__(self, descriptor, mode):
        self.descriptor = descriptor

    def __enter__(self):
        return self

    def __exit__(self, *error):
        os.close(self.descriptor)

    def write(self, data):
        os.write(self.descriptor, data[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_keeps_the_old_file_warns_once_and_leaves_nothing(
    tmp_path, monkeypatch, fresh_state
):
    path = tmp_path / "one"
    cache_files.write(path, DATA)
    monkeypatch.setattr(cache_files.os, "fdopen", FullFile)
    with pytest.warns(CacheWarning, match="No space left on device.*MINIGRAD_CACHE") as caught:
        assert [cache_files.write(tmp_path / name, b"new") for name in ("one", "two")] == [
            False
        ] * 2
    assert len(caught) == 1
    assert cache_files.read(path) == DATA
    assert os.listdir(tmp_path) == ["one"]


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOENT, errno.EDQUOT])
def test_a_folder_that_takes_no_file_warns_once(tmp_path, monkeypatch, fresh_state, number):
    monkeypatch.setattr(cache_files.tempfile, "mkstemp", refuse(number))
    with pytest.warns(CacheWarning, match=os.strerror(number)) as caught:
        assert not any(cache_files.write(tmp_path / "one", DATA) for _ in range(3))
    assert len(caught) == 1


WRITER = """
import os, pathlib, sys
from minigrad.devices import cache_files
path = pathlib.Path(sys.argv[1])
print("ready", flush=True)
while True:
    cache_files.write(path, os.urandom(400_000))
"""


def test_a_process_killed_while_it_writes_leaves_a_whole_file(tmp_path, monkeypatch, fresh_state):
    path = tmp_path / "one"
    assert cache_files.write(path, DATA)
    for k in range(8):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout.readline() == "ready\n"
        time.sleep(0.01 + 0.007 * k)
        writer.kill()
        writer.communicate()
        data = cache_files.read(path)
        assert data == DATA or len(data) == 400_000
    drafts = [*tmp_path.glob(f"{cache_files.DRAFT}*")]
    (tmp_path / f"{cache_files.DRAFT}now").write_bytes(b"of another process, at work")
    (old := tmp_path / f"{cache_files.DRAFT}old").write_bytes(b"left")
    for draft in (*drafts, old):
        os.utime(draft, (1e9, 1e9))
    monkeypatch.setitem(cache_files._state, "swept", False)
    cache_files.write(path, DATA)
    assert {*os.listdir(tmp_path)} == {"one", f"{cache_files.DRAFT}now"}


# ---- kernels -----------------------------------------------------------------------------------

DAMAGE = {
    "empty": lambda data: b"",
    "one byte": lambda data: data[:1],
    "the check": lambda data: data[: cache_files.CHECK],
    "the check and a byte": lambda data: data[: cache_files.CHECK + 1],
    "half": lambda data: data[: len(data) // 2],
    "all but a byte": lambda data: data[:-1],
    "a byte more": lambda data: data + b"\0",
    "zeros": lambda data: bytes(len(data)),
    "a bit of the check": lambda data: flipped(data, 3),
    "a bit of the pickle": lambda data: flipped(data, cache_files.CHECK + 40),
    "a bit of the code": lambda data: flipped(data, len(data) // 2),
    "the last bit": lambda data: flipped(data, len(data) - 1),
    "another version": lambda data: b"minigrad" + data,
}


def flipped(data, place):
    """The data with a bit flipped."""
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("suffix", ["code", "bytecode", "py"])
@pytest.mark.filterwarnings("error")
def test_a_damaged_file_of_a_generated_kernel_heals(empty_loader, suffix, damage):
    assert loader.load(TEXT.format(7)).kernel(1) == 8
    (file,) = empty_loader.glob(f"*.{suffix}")
    data, times = file.read_bytes(), file.stat()
    file.write_bytes(DAMAGE[damage](data))
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # as if it had not been touched
    loader._modules.clear()
    assert loader.load(TEXT.format(7)).kernel(1) == 8
    loader._modules.clear()
    kernel = loader.load(TEXT.format(7)).kernel
    assert sum(kernel.stats.cache_hits.values()) == 1
    if suffix != "code":  # Numba's pickles differ from one to the next
        assert file.read_bytes() == data


@pytest.mark.parametrize("suffix", ["code", "bytecode", "py"])
@pytest.mark.filterwarnings("error")
def test_a_folder_in_the_place_of_a_kernel_file_heals(empty_loader, suffix):
    assert loader.load(TEXT.format(7)).kernel(1) == 8
    (file,) = empty_loader.glob(f"*.{suffix}")
    file.unlink()
    file.mkdir()
    loader._modules.clear()
    assert loader.load(TEXT.format(7)).kernel(1) == 8
    assert file.is_file()


@pytest.mark.filterwarnings("error")
def test_machine_code_that_cannot_be_built_again_is_compiled(empty_loader, monkeypatch):
    assert loader.load(TEXT.format(7)).kernel(1) == 8
    (file,) = empty_loader.glob("*.code")
    cache_files.write(file, b"\x80no pickle, and yet the right check")
    loader._modules.clear()
    assert loader.load(TEXT.format(7)).kernel(1) == 8
    cache_files.write(file, __import__("pickle").dumps((1, 2, 3)))
    loader._modules.clear()
    assert loader.load(TEXT.format(7)).kernel(1) == 8


# Kernels that are generated, written by hand, compiled when first called; and a compiled step.
PROGRAM = """
import sys
import minigrad as mg
from minigrad import nn
mg.manual_seed(0)
{before}
w = nn.Parameter(mg.randn(3, dtype="float32"))
optimizer = mg.optim.SGD([w], learning_rate=0.1)
def train(x):
    optimizer.zero_grad()
    loss = ((w * x).exp() - 1.0).sum()
    loss.backward()
    optimizer.step()
    return loss
x = mg.ones((3,))
losses = [float(train(x))] + [float(step(x)) for step in [mg.compile(train)] for _ in range(3)]
print(losses)
"""
FULL = """
import errno, os
from minigrad.devices import cache_files
def full(path, data):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
cache_files.write_whole = full
"""
NOWHERE = """
import tempfile
from minigrad.devices import loader
def nowhere(*_, **__):
    raise FileNotFoundError(2, "No usable temporary directory found")
loader._candidates = lambda: iter(())
tempfile.mkdtemp = nowhere
assert loader.cache_folder().parent.name == "null"
"""


def run(folder, before="", flags=()):
    """What a new process prints, and what it says on its other stream."""
    env = os.environ | {"MINIGRAD_CACHE": str(folder)}
    done = subprocess.run(
        [sys.executable, *flags, "-c", PROGRAM.format(before=before)],
        capture_output=True, text=True, env=env, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A cache that one process has filled, and what that process printed."""
    folder = tmp_path_factory.mktemp("filled")
    return folder, run(folder, flags=("-W", "error"))


def test_every_file_cut_or_flipped_heals(filled):
    folder, first = filled
    files = sorted(folder.iterdir())
    assert len(files) > 20
    assert {file.suffix for file in files} == {".py", ".bytecode", ".code"}
    for number, file in enumerate(files):
        damage = ("half", "a bit of the code", "empty", "the last bit")[number % 4]
        file.write_bytes(DAMAGE[damage](file.read_bytes()))
    assert run(folder, flags=("-W", "error")) == first
    assert all(cache_files.read(file) is not None for file in files if file.suffix != ".py")


@pytest.mark.parametrize("before", [FULL, NOWHERE], ids=["full", "read-only"])
def test_without_a_disk_it_runs_and_warns_once(filled, tmp_path, before):
    out, err = run(tmp_path, before)
    assert out == filled[1][0]
    assert err.count("CacheWarning") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_traceback_shows_a_kernel_that_is_on_no_disk(empty_loader, monkeypatch):
    monkeypatch.setattr(cache_files, "write_whole", refuse(errno.ENOSPC))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CacheWarning)
        module = loader.load("def kernel(x):\n    return 1 // x\n")
    linecache.checkcache()
    with pytest.raises(ZeroDivisionError) as caught:
        module.kernel(0)
    assert traceback.extract_tb(caught.tb)[-1].line == "return 1 // x"


def test_a_cache_that_was_moved_is_used_and_names_its_new_place(empty_loader, monkeypatch):
    loader.load(TEXT.format(7))
    moved = empty_loader.with_name("moved")
    empty_loader.rename(moved)
    monkeypatch.setattr(loader, "cache_folder", lambda: moved)
    loader._modules.clear()
    kernel = loader.load(TEXT.format(7)).kernel
    assert sum(kernel.stats.cache_hits.values()) == 1
    assert pathlib.Path(kernel.py_func.__code__.co_filename).parent == moved
