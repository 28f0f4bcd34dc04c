"""A peer's process as seen from the harness."""

import json
import os
import queue
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
THREAD_VARIABLES = [
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "MINIGRAD_THREADS",
]


class PeerError(RuntimeError):
    """A peer failed at a row, or its process ended or did not answer in time."""


def limit_processors(threads):
    """Keeps this process on so many processors, where the system can do that."""
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, allowed[:threads])


def environment(threads, caches=None):
    """Variables for a peer: the number of threads, no GPU, and where it caches what it compiles.

    Args:
        threads: for whatever the peer computes with.
        caches: folder for caches that survive a process; None leaves everything as it is.
    """
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    kept = {}
    if caches is not None:
        kept = {
            "MINIGRAD_CACHE": str(Path(caches) / "minigrad"),
            "TORCHINDUCTOR_CACHE_DIR": str(Path(caches) / "torch"),
            "JAX_COMPILATION_CACHE_DIR": str(Path(caches) / "jax"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
    return {
        **os.environ,
        **dict.fromkeys(THREAD_VARIABLES, str(threads)),
        **kept,
        "CUDA_VISIBLE_DEVICES": "",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join(paths),
    }


class Process:
    """Runs `benchmarks.worker` for one peer; `ask` sends a command and waits for the answer."""

    def __init__(self, peer, threads, caches=None, patience=600.0):
        self.patience = patience
        self.child = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", peer, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(threads, caches),
            text=True,
            encoding="utf-8",
        )
        self.answers: queue.Queue = queue.Queue()
        self.complaints: deque = deque(maxlen=20)
        self.readers = [
            threading.Thread(target=self._read_answers, daemon=True),
            threading.Thread(target=self._read_complaints, daemon=True),
        ]
        for reader in self.readers:
            reader.start()

    def _read_answers(self):
        assert self.child.stdout is not None
        for line in self.child.stdout:
            self.answers.put(line)
        self.answers.put(None)

    def _read_complaints(self):
        assert self.child.stderr is not None
        self.complaints.extend(self.child.stderr)

    def ask(self, command, **arguments):
        """The answer, a dict. Raises PeerError if the peer failed."""
        assert self.child.stdin is not None
        try:
            self.child.stdin.write(json.dumps({"command": command, **arguments}) + "\n")
            self.child.stdin.flush()
            line = self.answers.get(timeout=self.patience)
        except queue.Empty:
            self.child.kill()
            raise PeerError(f"no answer in {self.patience:g} s") from None
        except OSError:
            line = None
        if line is None:
            self.readers[1].join(timeout=5)
            last = self.complaints[-1].strip() if self.complaints else "no message"
            raise PeerError(f"its process ended: {last}")
        answer = json.loads(line)
        if "error" in answer:
            raise PeerError(answer["error"]) from RuntimeError(answer["traceback"])
        return answer

    def close(self):
        """Ends the process."""
        assert self.child.stdin is not None
        try:
            self.child.stdin.close()
            self.child.wait(timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            self.child.kill()
            self.child.wait()
        for reader in self.readers:
            reader.join(timeout=5)
        for stream in (self.child.stdout, self.child.stderr):
            if stream is not None:
                stream.close()


def last_line(arguments, threads, caches=None):
    """The last line that a fresh Python process prints. Raises PeerError if it fails."""
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment(threads, caches),
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise PeerError(lines[-1] if lines else f"ended with {done.returncode}")
    return done.stdout.strip().splitlines()[-1]
