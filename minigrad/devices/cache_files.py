"""Files of the cache of compiled code: a damaged file counts as missing.

A file begins with the SHA-256 of the rest, so one that is truncated or has a flipped bit is a miss:
its code could do anything. No state of the disk raises an error here. If a file cannot be written
(full disk, read-only folder), one CacheWarning says so, and the next process compiles again.
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
DRAFT = ".draft-"  # prefix of files being written
LONGEST_WRITE = 3600.0  # seconds after which a draft belongs to a killed process

_state = {"warned": False, "swept": False}


def read(path):
    """Return the bytes that `write` stored, None if they are missing or damaged."""
    try:
        whole = pathlib.Path(path).read_bytes()
    except OSError:
        return None
    check, data = whole[:CHECK], whole[CHECK:]
    return data if check == hashlib.sha256(data).digest() else None


def write(path, data):
    """Store bytes for `read`; return whether that worked."""
    return put(path, hashlib.sha256(data).digest() + data)


def put(path, data):
    """Write a file without a checksum; return whether that worked. The first failure warns."""
    path = pathlib.Path(path)
    try:
        write_whole(path, data)
    except OSError as error:
        _warn(path.parent, error)
        return False
    return True


def write_whole(path, data):
    """Write bytes to a file so that other processes see the whole file or none."""
    if path.is_dir():  # os.replace does not replace it
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
    """Delete the drafts of killed processes, at the first write of a process."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if entry.name.startswith(DRAFT):
                with contextlib.suppress(OSError):
                    if time.time() - entry.stat().st_mtime > LONGEST_WRITE:
                        os.unlink(entry.path)
