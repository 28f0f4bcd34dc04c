"""Sends values through a pipe as frames of JSON and raw array bytes. Never pickle, never stdout.

A frame is two big-endian 32-bit lengths, a JSON text, and the bytes of all arrays one after the
other. The reader of a reply trusts nothing in it: bytes, items and texts are bounded, so that no
answer costs more than a moment, and dtypes and shapes are checked first. A sender replaces parts
that are too large for a reply by a few words.
"""

from __future__ import annotations

import collections
import json
import math
import os
import struct
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad.grader.formula import Formula

HEADER = struct.Struct(">II")
MAX_DEPTH = 24
MAX_REQUEST_BYTES = 64 * 2**20  # of a frame that the grader sends
# Of a reply: bytes of JSON and of arrays, values in all, characters of one string.
MAX_JSON_BYTES = 4 * 2**20
MAX_ARRAY_BYTES = 16 * 2**20
MAX_ITEMS = 100_000
MAX_TEXT = 20_000
MAX_ALIKE = 64  # values with one hash; computed numbers share one in twos or threes
OWN_HASH = 2**61 - 1  # smaller ints have different hashes, but for -1 and -2
PARTS = 16  # of a reply, at most
NUMERIC_KINDS = "biufc"
SCALARS = bool | int | float | str


class GarbledError(Exception):
    """Raised for bytes that are not a frame."""


@dataclass(frozen=True)
class Other:
    """Stands for a value that cannot be sent: has only its type's name and a short repr."""

    type_name: str
    text: str


class _Packer:
    """Turns one value into a JSON tree and a list of array blobs."""

    def __init__(self, trusted: bool) -> None:
        self.trusted = trusted
        self.blobs: list[bytes] = []
        self.n_bytes = 0
        self._items = 0
        self._sent: dict[int, int] = {}  # id of an array or formula -> its number

    def pack(self, value: Any, depth: int = 0) -> Any:
        self._items += 1
        if depth > MAX_DEPTH:
            return {"other": type(value).__name__[:80], "text": "nested too deep to send"}
        if value is None or value is True or value is False:
            return value
        if self.trusted and isinstance(value, np.ndarray | Formula):
            if id(value) in self._sent:
                return {"again": self._sent[id(value)]}
            self._sent[id(value)] = len(self._sent)
        if isinstance(value, np.generic | np.ndarray):
            return self._pack_array(value)
        if type(value) is int:
            return value if abs(value) < 2**1024 else {"other": "int", "text": "a huge integer"}
        if type(value) is str and len(value) > MAX_TEXT and not self.trusted:
            return {"other": "str", "text": f"a text of {len(value):,} characters"}
        if type(value) in (float, str):
            return value
        if not self.trusted and self._items + _length(value) > MAX_ITEMS:
            text = f"{_length(value):,} items are too many to send"
            return {"other": type(value).__name__[:80], "text": text}
        if isinstance(value, list):  # or of a subclass; the same holds below
            return [self.pack(item, depth + 1) for item in list.__iter__(value)]
        if isinstance(value, tuple):
            return {"tuple": [self.pack(item, depth + 1) for item in tuple.__iter__(value)]}
        if isinstance(value, dict):
            pairs = [
                [self.pack(key, depth + 1), self.pack(item, depth + 1)]
                for key, item in dict.items(value)
            ]
            return {"dict": pairs}
        if isinstance(value, Formula) and self.trusted:
            return {"formula": value.text}
        if type(value) is Other:
            return {"other": value.type_name, "text": value.text}
        return other(value)

    def _pack_array(self, value: np.generic | np.ndarray) -> dict:
        array = np.asarray(value)
        if array.dtype.kind not in NUMERIC_KINDS:
            return {"other": type(value).__name__, "text": f"dtype {array.dtype}"}
        self.n_bytes += array.nbytes
        if self.n_bytes > (MAX_REQUEST_BYTES // 2 if self.trusted else MAX_ARRAY_BYTES):
            self.n_bytes -= array.nbytes
            return {"other": type(value).__name__, "text": f"{array.nbytes:,} bytes are too many"}
        self.blobs.append(np.ascontiguousarray(array).tobytes())
        tree = {
            "array": len(self.blobs[-1]),
            "dtype": array.dtype.newbyteorder("<").str,
            "shape": list(array.shape),
            "scalar": not isinstance(value, np.ndarray),
        }
        if self.trusted and not array.flags.c_contiguous:
            tree["steps"] = [step // array.itemsize for step in array.strides]
        return tree


def _length(value: Any) -> int:
    """Return how many values a list, tuple or dict holds, whatever a subclass claims."""
    if isinstance(value, dict):
        return 2 * dict.__len__(value)
    if isinstance(value, list):
        return list.__len__(value)
    return tuple.__len__(value) if isinstance(value, tuple) else 0


def other(value: Any) -> dict:
    """Return the JSON form of a value that cannot be sent."""
    try:
        text = repr(value)[:200]
    except BaseException:
        text = "its repr raised"
    return {"other": type(value).__name__[:80], "text": str(text)}


class _Unpacker:
    """Turns a JSON tree and the bytes behind it back into values."""

    def __init__(self, blob: bytes, trusted: bool) -> None:
        self.blob = blob
        self.trusted = trusted
        self.position = 0
        self._items = 0
        self.formulas: list[Formula] = []
        self._received: list[Any] = []  # arrays and formulas, by number
        self._different: set = set()  # the different values so far
        self._alike: collections.Counter[int] = collections.Counter()  # their number, by hash

    def unpack(self, tree: Any, depth: int = 0) -> Any:
        value = self._unpack(tree, depth)
        if not self.trusted:
            self._count_hash(value)
        return value

    def _count_hash(self, value: Any) -> None:
        """Refuse a value whose hash too many others have, such as k * (2**61 - 1).

        A check may turn any list into a set or a dict, where n such values cost n**2 steps.
        """
        if isinstance(value, str) or (type(value) is int and abs(value) < OWN_HASH):
            return
        try:
            number = hash(value)
        except TypeError:  # a list, a dict, an array, or a tuple that holds one
            return
        # Keep a tuple's repr: comparing nested tuples takes as many steps as they hold values.
        known = repr(value) if isinstance(value, tuple) else value
        if known not in self._different:
            self._alike[number] += 1
            if self._alike[number] > MAX_ALIKE:
                raise GarbledError(f"more than {MAX_ALIKE} different values with one hash")
            self._different.add(known)

    def _unpack(self, tree: Any, depth: int) -> Any:
        self._items += 1
        if depth > MAX_DEPTH + 1:
            raise GarbledError("nested too deep")
        if not self.trusted:
            if self._items > MAX_ITEMS:
                raise GarbledError(f"more than {MAX_ITEMS:,} values")
            if isinstance(tree, str) and len(tree) > MAX_TEXT:
                raise GarbledError(f"a text of {len(tree):,} characters")
        if tree is None or isinstance(tree, bool | int | float | str):
            return tree
        if isinstance(tree, list):
            return [self.unpack(item, depth + 1) for item in tree]
        if not isinstance(tree, dict):
            raise GarbledError("unknown kind of value")
        if "again" in tree and self.trusted:
            return self._received[tree["again"]]
        if "array" in tree:
            self._received.append(self._unpack_array(tree))
            return self._received[-1]
        if "tuple" in tree:
            return tuple(self.unpack(item, depth + 1) for item in tree["tuple"])
        if "dict" in tree:
            pairs = tree["dict"]
            return {self.unpack(k, depth + 1): self.unpack(v, depth + 1) for k, v in pairs}
        if "formula" in tree and self.trusted:
            self.formulas.append(Formula(str(tree["formula"])))
            self._received.append(self.formulas[-1])
            return self.formulas[-1]
        if "other" in tree:
            return Other(str(tree["other"])[:80], str(tree.get("text", ""))[:200])
        raise GarbledError("unknown kind of value")

    def _unpack_array(self, tree: dict) -> Any:
        dtype = np.dtype(str(tree["dtype"]))
        shape = tuple(int(n) for n in tree["shape"])
        n_bytes = int(tree["array"])
        if dtype.kind not in NUMERIC_KINDS or len(shape) > 32 or min(shape, default=0) < 0:
            raise GarbledError("not an array of numbers")
        if math.prod(max(n, 1) for n in shape) > MAX_REQUEST_BYTES:  # even if it has no bytes
            raise GarbledError(f"an array of shape {shape}")
        start, self.position = self.position, self.position + n_bytes
        if n_bytes != math.prod(shape) * dtype.itemsize or self.position > len(self.blob):
            raise GarbledError("array bytes do not fit their shape")
        array = np.frombuffer(self.blob[start : self.position], dtype).reshape(shape).copy()
        if self.trusted and "steps" in tree:
            return laid_out(array, tree["steps"])
        return array[()] if tree.get("scalar") and not shape else array


def laid_out(values: np.ndarray, steps: list[int]) -> np.ndarray:
    """Return these values as an array whose neighbours along axis i lie steps[i] items apart.

    Fills the gaps with nan (0 for integers), which code that follows the strides never reads.
    """
    if not values.size or not values.ndim:
        return values.copy()
    ends = [step * (n - 1) for step, n in zip(steps, values.shape, strict=True)]
    before = -sum(end for end in ends if end < 0)
    after = sum(end for end in ends if end > 0)
    gap = np.nan if values.dtype.kind in "fc" else 0
    memory = np.full(before + after + 1, gap, values.dtype)
    strides = [step * values.itemsize for step in steps]
    view = np.lib.stride_tricks.as_strided(memory[before:], values.shape, strides)
    view[...] = values
    return view


def encode(value: Any, *, trusted: bool = False) -> bytes:
    """Return `value` as one frame; what cannot be sent arrives as `Other`.

    The long parts of a reply that would be too long also arrive as `Other`.

    A `trusted` frame also holds formulas, and arrays with their strides; an array or formula that
    appears several times arrives as one object.
    """
    packer = _Packer(trusted)
    text = json.dumps(packer.pack(value)).encode()
    if len(text) > MAX_JSON_BYTES and not trusted:
        if type(value) is dict and len(value) <= PARTS:
            return encode({key: _shortened(item) for key, item in value.items()})
        return encode(Other(type(value).__name__[:80], f"{len(text):,} bytes are too many"))
    blob = b"".join(packer.blobs)
    return HEADER.pack(len(text), len(blob)) + text + blob


def _shortened(part: Any) -> Any:
    """Return a part of a reply, or an `Other` for a part larger than its share."""
    n_bytes = len(json.dumps(_Packer(trusted=False).pack(part)))
    if n_bytes < MAX_JSON_BYTES // (2 * PARTS):
        return part
    return Other(type(part).__name__[:80], f"{n_bytes:,} bytes are too many to send")


def decode(
    text: bytes, blob: bytes, *, formulas: list[Formula] | None = None, trusted: bool = False
) -> Any:
    """Return the value of a frame: `text` is its JSON, `blob` the bytes of its arrays.

    Formulas are code, so only a `trusted` frame may hold them; appends them to `formulas`. Ignores
    strides in other frames.

    Raises:
        GarbledError: the frame is not well formed.
    """
    unpacker = _Unpacker(blob, trusted)
    try:
        value = unpacker.unpack(json.loads(text))
    except GarbledError:
        raise
    except Exception as error:
        raise GarbledError(f"{type(error).__name__}: {error}"[:200]) from None
    if formulas is not None:
        formulas.extend(unpacker.formulas)
    return value


def as_if_received(value: Any) -> Any:
    """Return an answer as the grader would receive it: what cannot be sent becomes `Other`."""
    frame = encode(value)
    n_text, _ = HEADER.unpack_from(frame)
    return decode(frame[HEADER.size : HEADER.size + n_text], frame[HEADER.size + n_text :])


def leaves(value: Any, kind: type) -> list[Any]:
    """Return the values of this type inside lists, tuples and dicts, in order."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in leaves(item, kind)]
    return []


def memory_of(value: Any) -> int:
    """Estimate how many bytes a received value takes in this process."""
    parts: list[Any] = []
    if isinstance(value, dict):
        parts = [*value, *value.values()]
    elif isinstance(value, list | tuple):
        parts = [*value]
    return sys.getsizeof(value) + sum(map(memory_of, parts))


def as_if_sent(value: Any) -> Any:
    """Return the value as a worker would receive it: with new arrays and formulas."""
    frame = encode(value, trusted=True)
    n_text, _ = HEADER.unpack_from(frame)
    text, blob = frame[HEADER.size : HEADER.size + n_text], frame[HEADER.size + n_text :]
    return decode(text, blob, trusted=True)


def changed(before: Any, after: Any) -> bool:
    """Return whether two values differ in an array, a number or a text, wherever it stands in them.

    A list, a tuple or a dict that is longer or shorter differs, too; objects of classes do not.
    """
    if isinstance(before, np.ndarray):
        is_same = isinstance(after, np.ndarray) and np.array_equal(
            before, after, equal_nan=before.dtype.kind in "fc"
        )
        return not is_same
    if isinstance(before, dict) and isinstance(after, dict):
        if before.keys() == after.keys():
            after = {key: after[key] for key in before}
        before, after = list(before.values()), list(after.values())
    if isinstance(before, list | tuple):
        is_long = isinstance(after, list | tuple) and len(before) == len(after)
        return not is_long or any(map(changed, before, after))
    is_plain = isinstance(before, SCALARS) and isinstance(after, SCALARS)
    return is_plain and before == before != after  # nan is no change


class Channel:
    """Sends and receives frames over two file descriptors (for a socket the same one twice)."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self.read_fd = read_fd
        self.write_fd = write_fd

    def send(self, value: Any, *, trusted: bool = False) -> None:
        """Write one frame. Raises OSError if the other side is gone."""
        view = memoryview(encode(value, trusted=trusted))
        while view:
            view = view[os.write(self.write_fd, view) :]

    def receive(self, *, formulas: list[Formula] | None = None, trusted: bool = False) -> Any:
        """Read one frame. Raises EOFError if the other side is gone, GarbledError if it is bad."""
        n_text, n_blob = HEADER.unpack(self._read(HEADER.size))
        most = (MAX_REQUEST_BYTES,) * 2 if trusted else (MAX_JSON_BYTES, MAX_ARRAY_BYTES)
        if n_text > most[0] or n_blob > most[1]:
            raise GarbledError(f"a frame of {n_text + n_blob:,} bytes")
        return decode(self._read(n_text), self._read(n_blob), formulas=formulas, trusted=trusted)

    def _read(self, n_bytes: int) -> bytes:
        parts = []
        while n_bytes:
            try:
                part = os.read(self.read_fd, min(n_bytes, 2**20))
            except ConnectionError:
                part = b""
            if not part:
                raise EOFError
            parts.append(part)
            n_bytes -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Close both ends; a second call does nothing."""
        for fd in {self.read_fd, self.write_fd} - {-1}:
            os.close(fd)
        self.read_fd = self.write_fd = -1
