"""A learner's path in JupyterLab: run a lesson, fail an exercise, solve it, see the points.

Screenshots go to `test-screenshots/`, which git ignores.
"""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.browser.lab import MINIGRAD, Lab, find_chromium

ROOT = Path(__file__).parents[2]
SHOTS = ROOT / "test-screenshots"
# The lesson, and the exercise whose part of the engine must run at its end, if there is one.
LESSONS = {
    "02_graph": "02.topo_order",
    "03_cycles": "03.find_cycle",
    "05_clone_detach": "05.CowBuffer",
    "08_optimizer_state": "08.clip_grad_norm_",
    "13_cuda_kernels": "13.k_softmax_row",
    "14_compile": None,  # nothing in the engine is replaced: it has a compiler of its own
}
DRAWS_GRAPHS = ("02_graph", "03_cycles", "05_clone_detach", "13_cuda_kernels", "14_compile")
MISSING = [
    *([] if find_chromium() else ["Chromium (Debian: apt install chromium)"]),
    *([] if importlib.util.find_spec("playwright") else ["playwright (pip install playwright)"]),
    *(
        []
        if importlib.util.find_spec("jupyterlab")
        else ['JupyterLab (pip install "minigrad[lab]")']
    ),
]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {' and '.join(MISSING)}")


def minigrad(course, *arguments):
    return subprocess.run(
        [str(MINIGRAD), *arguments], cwd=course, capture_output=True, text=True, timeout=120
    )


@pytest.fixture
def course(tmp_path):
    """A course folder as `minigrad start` writes it."""
    SHOTS.mkdir(exist_ok=True)
    done = minigrad(tmp_path, "start", "course")
    assert done.returncode == 0, done.stderr
    return tmp_path / "course"


def data_of(cells):
    return [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]


def cards_of(cells):
    return [
        "".join(data["text/plain"])
        for cell in cells
        if "exercise" in cell["metadata"].get("tags", [])
        for output in cell.get("outputs", [])
        if (data := output.get("data"))
    ]


def text_of(cells):
    parts = []
    for cell in cells:
        for output in cell.get("outputs", []):
            parts.append("".join(output.get("text", [])))
            parts.append("".join(output.get("data", {}).get("text/plain", [])))
    return "\n".join(parts)


@pytest.mark.parametrize("stem", LESSONS)
def test_learner_fails_solves_and_sees_points_and_the_lit_tile(stem, course):
    part = LESSONS[stem]
    with Lab(course, stem, SHOTS) as lab:
        cells = lab.run_all()
        cards = cards_of(cells)
        assert cards
        assert "nothing yet: this part is still a stub" in cards[0]
        lab.look("1_failed", "nothing yet: this part is still a stub")

        shutil.copy(ROOT / "solutions" / f"{stem}.py", course / "exercises" / f"{stem}.py")
        cells = lab.run_all()
        assert not [
            output
            for cell in cells
            for output in cell.get("outputs", [])
            if output["output_type"] == "error"
        ]
        cards = cards_of(cells)
        assert len(cards) >= 3
        assert all("everything passes" in card for card in cards)
        lab.look("2_solved", "points")
        kinds = [kind for data in data_of(cells) for kind in data]
        assert "image/png" in kinds
        if stem in DRAWS_GRAPHS:
            drawn = "".join(str(data) for data in data_of(cells))
            assert "<svg" in drawn or "image/svg+xml" in kinds
        if part is not None:
            assert f"■ {part} runs the engine" in text_of(cells)
            lab.look("3_engine", f"■ {part} runs the engine")
        assert lab.errors == []
    status = minigrad(course, "status")
    assert status.returncode == 0
    (SHOTS / f"{stem}_status.txt").write_text(status.stdout, encoding="utf-8")
    if part is not None:
        line = next(line for line in status.stdout.splitlines() if f" {part[3:]} " in line)
        assert "■" in line
