"""Takes docs/pictures/lesson.png: `python tools/lesson_picture.py`.

A learner's folder, lesson 01 in JupyterLab with its exercises beside it, and a check of an answer
that is nearly right. It needs Chromium, playwright and JupyterLab.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.browser.lab import MINIGRAD, Lab  # noqa: E402 - from the folder above

STEM = "01_chain_rule"
EMPTY = '    raise NotImplementedError("mul_backward is yours to write")\n'
WRONG = "    return dy * a, dy * b\n"


def main():
    """Writes the picture."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([str(MINIGRAD), "start", "course"], cwd=folder, check=True)
        exercise = folder / "course" / "exercises" / f"{STEM}.py"
        stub = exercise.read_text(encoding="utf-8")
        assert EMPTY in stub
        exercise.write_text(stub.replace(EMPTY, WRONG), encoding="utf-8")
        with Lab(folder / "course", STEM, folder) as lab:
            lab.run_all()
            lab.look("lesson", "mul_backward")
            pictures = ROOT / "docs" / "pictures"
            pictures.mkdir(exist_ok=True)
            (folder / f"{STEM}_lesson.png").replace(pictures / "lesson.png")


if __name__ == "__main__":
    main()
