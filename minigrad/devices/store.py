"""Files of the cache of compiled code: each is whole and right, or it is as if it were not there.

A file begins with the SHA-256 of the rest, so that one that was cut short, or in which a bit has
flipped, is a miss like one that is lacking: code from it could do anything. Nothing here raises for
the state of a disk. What cannot be written (a full disk, a folder that is read-only) is compiled
again by the next process; the first time, a CacheWarning says so.
"""

import contextlib
import hashlib
import os
import pathlib
import tempfile
import time
import warnings

from minigrad.errors import CacheWarning

CHECK = hashlib.sha256().digest_size  # bytes
DRAFT = ".draft-"  # how files begin that are being written
LONGEST_WRITE = 3600.0  # seconds, after which a draft is what a killed process has left

_state = {"warned": False, "swept": False}


def read(path):
    """The bytes that `write` kept, None if they are not there or not those."""
    try:
        whole = pathlib.Path(path).read_bytes()
    except OSError:
        return None
    check, data = whole[:CHECK], whole[CHECK:]
    return data if check == hashlib.sha256(data).digest() else None


def write(path, data):
    """Keeps bytes for `read`; whether that could be done."""
    return put(path, hashlib.sha256(data).digest() + data)


def put(path, data):
    """Writes a file as it is; whether that could be done. The first failure warns."""
    path = pathlib.Path(path)
    try:
        write_whole(path, data)
    except OSError as error:
        _warn(path.parent, error)
        return False
    return True


def write_whole(path, data):
    """Writes bytes to a file: another process sees the whole file or none."""
    if path.is_dir():  # os.replace puts no file in its place
        path.rmdir()
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=DRAFT)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
    if not _state["swept"]:
        _state["swept"] = True
        _sweep(path.parent)


def _warn(folder, error):
    if _state["warned"]:
        return
    _state["warned"] = True
    warnings.warn(
        f"compiled kernels cannot be kept in {folder} ({error.strerror or error}): this process "
        "goes on without, and the next one compiles them again. Make room there, or set "
        "MINIGRAD_CACHE to a folder that can be written",
        CacheWarning,
        stacklevel=2,
    )


def _sweep(folder):
    """Takes away what killed processes have left, once a process that writes at all."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if entry.name.startswith(DRAFT):
                with contextlib.suppress(OSError):
                    if time.time() - entry.stat().st_mtime > LONGEST_WRITE:
                        os.unlink(entry.path)
