"""Kernels of lesson 13 that are right and cost too much: what each of the checks of costs says.

The mutants of an exercise are at most ten, and are taken up by mistakes that give wrong results.
"""

import runpy
from pathlib import Path

import pytest

from minigrad.course.mutants import grade_source, message_key

ROOT = Path(__file__).parents[2]
STEM = "13_cuda_kernels"
changed = runpy.run_path(str(ROOT / "tests" / "mutants" / f"m{STEM}.py"))["changed"]
IN_SHARED_MEMORY = (
    "    s = cuda.shared.array(THREADS, np.float32)\n"
    "    row = cuda.grid(1) // WARP\n"
    "    s[cuda.threadIdx.x] = np.float32(0)\n"
)
EACH_ALL = "    for k in range(THREADS):\n        largest = max(largest, s[k])\n"
READ_B = "            tile_b[ty, tx] = b[start + ty, column]\n"
# Exercise, check, key of the message, what is changed in the solution.
CASES = [
    ("k_block_sum", "together", "reads", ("        s[t] = x[i]\n", "        s[t] = x[i]\n" * 2)),
    (
        "k_warp_sum",
        "side_by_side",
        "shared",
        ("    row = cuda.grid(1) // WARP\n", IN_SHARED_MEMORY),
    ),
    ("k_softmax_row", "costs", "serial", ("    largest = s[0]\n", EACH_ALL)),
    ("k_matmul_tiled", "reads", "reads", (READ_B, READ_B * 2)),
]


@pytest.mark.parametrize(("name", "check", "key", "change"), CASES)
def test_right_and_too_costly(name, check, key, change, server):
    solution = (ROOT / "solutions" / f"{STEM}.py").read_text(encoding="utf-8")
    result = grade_source(server, STEM, name, f"{solution}\n\n{changed(name, change)}\n", seed=5)
    assert message_key(result) == key
    assert [one.name for one in result.checks if one.status == "failed"] == [check]
