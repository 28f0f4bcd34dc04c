"""True processes of peers, and the command on a true row."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.peers import PEERS
from benchmarks.process import PeerError, Process

ROOT = Path(__file__).resolve().parent.parent


def test_process_that_ends_raises_with_its_last_words():
    process = Process("no-such-peer", 1)
    try:
        with pytest.raises(PeerError, match="no-such-peer"):
            process.ask("version")
    finally:
        process.close()


def test_worker_error_keeps_the_process_usable():
    process = Process("minigrad", 1)
    try:
        with pytest.raises(PeerError, match="before a case was built"):
            process.ask("round", seconds=0.0)
        assert process.ask("build", kind="no such kind", settings={}) == {"unsupported": True}
        assert process.ask("version")["version"]
    finally:
        process.close()


def test_command_runs_a_true_row_of_minigrad(tmp_path):
    done = subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks", "--peers", "minigrad", "--only", "mlp-64-32-10"),
            *("--rounds", "1", "--seconds", "0.01", "--output", str(tmp_path)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    (entry,) = found["rows"]
    assert entry["errors"] == {}
    assert entry["results"]["minigrad"]["median"] > 0
    losses = entry["numbers"]["minigrad"]
    assert losses == sorted(losses, reverse=True)


def test_peers_scripts_are_python():
    for peer in PEERS.values():
        compile(peer.imports, peer.name, "exec")
        compile(peer.first, peer.name, "exec")
