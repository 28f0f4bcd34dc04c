"""Runs the fork server: a clean, single-threaded process with NumPy loaded that forks workers.

It takes two orders, one line of JSON each, over a Unix socket: `start` (with two file descriptors:
the worker's channel and the file that catches its prints) and `end` (kill and report). A worker is
reaped only on `end`, so that no other process gets its process id earlier.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket

from minigrad.grader import worker

PR_SET_DUMPABLE = 4  # of prctl(2)


def serve(control_fd: int) -> None:
    """Obey orders until the other side closes the socket, then kill the remaining workers."""
    _close_to_others()
    control = socket.socket(fileno=control_fd)
    children: set[int] = set()
    while True:
        order, fds = _receive(control)
        if order is None:
            break
        if order["do"] == "start":
            pid = os.fork()
            if pid == 0:
                _become_worker(control, *fds)
            for fd in fds:
                os.close(fd)
            children.add(pid)
            answer = {"pid": pid}
        else:
            answer = _end(order["pid"])
            children.discard(order["pid"])
        control.sendall(json.dumps(answer).encode() + b"\n")
    for pid in children:
        _end(pid)


def _close_to_others() -> None:
    """Hide this process's memory and environment from others of its user, on Linux."""
    with contextlib.suppress(Exception):  # without such a call, the walls must hold
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0)


def _receive(control: socket.socket) -> tuple[dict | None, list[int]]:
    text, fds = b"", []
    while not text.endswith(b"\n"):
        part, new_fds, _, _ = socket.recv_fds(control, 4096, 2)
        fds.extend(new_fds)
        if not part:
            return None, fds
        text += part
    return json.loads(text), fds


def _become_worker(control: socket.socket, channel_fd: int, output_fd: int) -> None:
    status = 1
    try:
        os.setsid()
        control.close()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(output_fd, 1)
        os.dup2(output_fd, 2)
        worker.work(channel_fd, channel_fd)
        status = 0
    finally:
        os._exit(status)


def _end(pid: int) -> dict:
    for kill in (os.killpg, os.kill):  # the group exists only once the worker has created it
        with contextlib.suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)
    try:
        return {"status": os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}
    except ChildProcessError:
        return {"status": None}
