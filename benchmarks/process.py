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


def environment(threads):
    """Variables for a peer: the number of threads, and no GPU."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        **dict.fromkeys(THREAD_VARIABLES, str(threads)),
        "CUDA_VISIBLE_DEVICES": "",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join(paths),
    }


class Process:
    """Runs `benchmarks.worker` for one peer; `ask` sends a command and waits for the answer."""

    def __init__(self, peer, threads, patience=600.0):
        self.patience = patience
        self.child = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", peer, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(threads),
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


def time_script(script, threads):
    """Seconds that a fresh process takes for `script`, start of Python not counted."""
    timed = (
        f"import time; start = time.perf_counter()\n{script}\nprint(time.perf_counter() - start)"
    )
    done = subprocess.run(
        [sys.executable, "-c", timed],
        capture_output=True,
        text=True,
        check=False,
        env=environment(threads),
    )
    if done.returncode:
        raise PeerError(done.stderr.strip().splitlines()[-1])
    return float(done.stdout.split()[-1])
