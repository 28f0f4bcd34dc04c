"""Runs a learner's file and answers calls, on the untrusted side. Holds no expected value.

Requests and replies are wire frames (`wire.py`). A reply is `{"ok": value, ...}`, or
`{"raised": {...}}` with the learner's own stack frames only.
"""

from __future__ import annotations

import builtins
import contextlib
import getpass
import io
import linecache
import os
import re
import sys
import time
import traceback
import types
from collections.abc import Callable
from typing import Any

from minigrad.grader import gate, rights, walls
from minigrad.grader import limits as limits_module
from minigrad.grader.wire import Channel, GarbledError

MODULE_NAME = "exercise"
MAX_FULL = 20_000


def work(read_fd: int, write_fd: int) -> None:
    """Load the file from the first request, then answer calls until the channel closes."""
    channel = Channel(read_fd, write_fd)
    first = channel.receive(trusted=True)
    missing = limits_module.apply(limits_module.Limits(**first["limits"]))
    try:
        os.chdir(first["folder"])
        os.environ["HOME"] = first["folder"]
        answer_calls, closed = gate.close(
            first["package"], first["engine"], first["answers"], first["closed"]
        )
        drive = _load_driver(first["driver"])
        missing += _build_walls(first, closed)
    except Exception as error:  # no line of the learner's has run: the grader's own fault
        channel.send({"fault": f"{type(error).__name__}: {error}"})
        return
    channel.send({"limits_missing": missing})
    exercise, reply = _load(first["source"], first["path"])
    channel.send(reply)
    recording = False
    while True:
        try:
            formulas: list = []
            request = channel.receive(formulas=formulas, trusted=True)
        except (EOFError, GarbledError):
            return
        for formula in formulas:
            formula.forget()
        if not recording:
            recording = _report_compiling(channel)
        reply = _answer(exercise, drive, request, formulas, first["path"])
        _flush()
        channel.send({**reply, "answer_calls": answer_calls})


def _build_walls(first: dict, closed: list[str]) -> list[str]:
    """Close off what this process does not need; return the names of what cannot be closed here.

    `closed` are the parts of minigrad that `gate.py` closes.
    """
    folder, package, engine = first["folder"], first["package"], first["engine"]
    os.environ["TMPDIR"] = folder
    if not first["walled"]:
        rights.must_not_read_as_root(["anything"])
        return ["anything: it has no walls"]
    readable, listed = walls.libraries(package)
    writable = [folder]
    if engine is None:
        readable += gate.opened_files(package)
    else:
        opened, on_the_way = walls.around(package, closed)
        readable += [*opened, gate.objects_file(package)]
        listed += on_the_way
        (readable if engine["kernels"] else writable).append(os.environ["MINIGRAD_CACHE"])
    missing = walls.build(readable, listed, writable)
    rights.must_not_read_as_root(missing)
    return missing


def _load(source: str, path: str) -> tuple[types.ModuleType, dict]:
    exercise = types.ModuleType(MODULE_NAME)
    exercise.__file__ = path
    sys.modules[MODULE_NAME] = exercise
    lines = [f"{line}\n" for line in source.split("\n")]  # as in Python, not at form feeds
    linecache.cache[path] = (len(source), None, lines, path)
    _write(source, path)
    # These would block forever, so they raise instead.
    builtins.input = _refused("input")
    sys.breakpointhook = _refused("breakpoint")
    getpass.getpass = _refused("getpass")
    try:
        # dont_inherit: the annotations import of this file must not hold for the learner's.
        code = compile(source, path, "exec", dont_inherit=True)
        exec(code, exercise.__dict__)
    except BaseException as error:
        _flush()
        return exercise, {"raised": describe(error, path)}
    functions = {
        name: value.__code__.co_firstlineno
        for name, value in list(vars(exercise).items())
        if isinstance(value, types.FunctionType) and value.__code__.co_filename == path
    }
    names = [name for name in vars(exercise) if isinstance(name, str)]
    _flush()
    return exercise, {"ok": {"lines": functions, "names": names}}


def _write(source: str, path: str) -> None:
    """Write the file at its path below the current folder: Numba's `cache=True` looks for it there.

    This also lets the file read itself and write next to itself.
    """
    if os.path.isabs(path) or os.path.normpath(path).startswith(os.pardir):
        return  # write in the worker's folder only
    with contextlib.suppress(OSError, ValueError):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(source)


def _load_driver(driver: dict | None) -> Callable[..., Any]:
    """Load the lesson's driver, which runs beside the learner's code (`Tester.drive`).

    Return a function that calls one of its functions by name, with the arguments of a request. Each
    call restores the names as they were before the learner's file was loaded, in case that file
    replaced them. The request keeps no arguments: the learner's code can inspect all that its
    callers' frames hold, and what a driver deletes must really be gone.
    """
    names: dict[str, Any] = {"__name__": "driver"}
    if driver is not None:
        exec(compile(driver["source"], driver["path"], "exec", dont_inherit=True), names)
    kept = tuple(names.items())  # a tuple, so that nobody can replace a value

    def drive(mine: types.ModuleType, request: dict) -> Any:
        names.clear()
        names.update(kept)
        return names[request["name"]](mine, *request.pop("arguments"))

    return drive


def _refused(name: str) -> Callable[..., Any]:
    def refused(*_: object, **__: object) -> str:
        raise EOFError(f"{name}() cannot be used here: nobody can type into a graded process")

    return refused


_earlier: dict = {}  # the result of the last call of the learner's function


def _answer(
    exercise: types.ModuleType,
    drive: Callable[..., Any],
    request: dict,
    formulas: list,
    path: str,
) -> dict:
    try:
        if request["do"] == "get":
            return {"ok": getattr(exercise, request["name"], None)}
        if request["do"] == "drive":
            value, arguments = drive(exercise, request), []
        else:
            arguments = request["arguments"]
            value = getattr(exercise, request["name"])(*arguments)
    except BaseException as error:
        return {"raised": describe(error, path)}
    earlier, kept = _earlier.get("value"), request["do"] == "call"
    if kept:
        _earlier["value"] = value
    return {
        "ok": value,
        "arguments_after": arguments,
        "earlier": earlier if kept else None,
        "evaluated_at": [formula.evaluated_at for formula in formulas],
        "n_calls": [formula.n_calls for formula in formulas],
    }


def describe(error: BaseException, path: str) -> dict:
    """Return an exception's type, text and frames in the file `path`, innermost last."""
    frames = []
    with contextlib.suppress(Exception):
        for frame, line in traceback.walk_tb(error.__traceback__):
            if frame.f_code.co_filename == path:
                text = linecache.getline(path, line).strip()
                frames.append([line, frame.f_code.co_name, text[:200]])
    if isinstance(error, SyntaxError) and error.filename == path:
        frames.append([error.lineno or 0, "", (error.text or "").strip()[:200]])
    try:
        said = str(error.msg if isinstance(error, SyntaxError) else error)
    except BaseException:
        said = ""
    notes = ""
    with contextlib.suppress(Exception):  # what a driver adds by `add_note`
        notes = "; ".join(str(note) for note in getattr(error, "__notes__", ()))
    # Numba's text names the line that it could not compile; the frames end at the call.
    if lines := re.findall(rf'File "[^"]*{re.escape(os.path.basename(path))}", line (\d+)', said):
        frames.append([int(lines[-1]), "", linecache.getline(path, int(lines[-1])).strip()[:200]])
    kinds = [kind.__name__ for kind in type(error).__mro__ if kind is not object]
    return {
        "type": kinds[0],
        "kinds": kinds,
        "text": (said.strip().splitlines() or [""])[0][:300],
        "said": said[:MAX_FULL],
        "notes": notes[:300],
        "full": _full_text(error)[-MAX_FULL:],
        "frames": [frames[0], *frames[-3:]] if len(frames) > 4 else frames,
        "n_frames": len(frames),
    }


def _full_text(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error))
    except BaseException:
        return ""


def _report_compiling(channel: Channel) -> bool:
    """Tell the parent when Numba compiles, to stop its clock; return True once installed."""
    if "numba" not in sys.modules:
        return False
    from numba.core import event

    class Reporter(event.Listener):
        depth = 0

        def on_start(self, event):
            self.depth += 1
            if self.depth == 1:
                limits_module.allow_more_cpu(60)
                self.started = time.perf_counter()
                channel.send({"compiling": True})

        def on_end(self, event):
            self.depth -= 1
            if self.depth == 0:
                seconds = time.perf_counter() - self.started
                limits_module.allow_more_cpu(seconds - 60)
                channel.send({"compiling": False})

    event.register("numba:compile", Reporter())
    return True


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError, io.UnsupportedOperation):
            stream.flush()
