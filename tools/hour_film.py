"""Films a learner's hour: `python tools/hour_film.py FOLDER` writes numbered screenshots.

JupyterLab at 1280 x 800, from the page of all lessons to a lit tile, a graph that plays, and the
dark theme. The pictures are for looking at, after a change of what learners see. Without FOLDER
only docs/pictures/lesson.png is taken. It needs Chromium, playwright and JupyterLab.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.browser.lab import MINIGRAD, Lab  # noqa: E402 - from the folder above

SIZE = (1280, 800)
STEM, PLAYED = "01_chain_rule", "02_graph"
EMPTY = '    raise NotImplementedError("mul_backward is yours to write")\n'
WRONG = "    return dy * a, dy * b\n"
CARD = ".jp-LinkedOutputView"
TAGS = {"tags": ["raises-exception"]}
MISTAKE = "def halve(x):\n    return x / 0\n\n\nhalve(4.0)"


class Film:
    """Takes the pictures, and counts them."""

    def __init__(self, folder):
        self.folder, self.number = folder, 0

    def shoot(self, lab, name):
        """Writes the next picture."""
        self.number += 1
        lab.page.mouse.move(640, 2)  # nothing is hovered over
        lab.page.wait_for_timeout(700)
        lab.page.screenshot(path=str(self.folder / f"{self.number:02}_{name}.png"))


def theme(lab, name):
    """Chooses a theme in the menu."""
    lab.page.click(".lm-MenuBar-itemLabel:text-is('Settings')")
    lab.page.hover(".lm-Menu-itemLabel:text-is('Theme')")
    lab.page.click(f".lm-Menu-itemLabel:text-is('{name}')")
    lab.page.wait_for_timeout(1500)


def save_wrong(lab):
    """Saves an answer that is nearly right, and waits until the card has graded it."""
    exercise = lab.course / "exercises" / f"{STEM}.py"
    stub = exercise.read_text(encoding="utf-8")
    assert EMPTY in stub
    exercise.write_text(stub.replace(EMPTY, WRONG), encoding="utf-8")
    lab.page.locator(f"{CARD} :text('Expected')").first.wait_for(timeout=30_000)
    lab.page.wait_for_timeout(1500)  # the editor, too, shows the new file


def show_code(lab, text):
    """Scrolls the exercise's editor to a text."""
    line = lab.page.locator(f".jp-FileEditor .cm-line:has-text('{text}')").first
    line.evaluate("line => line.scrollIntoView({block: 'start'})")


def with_mistake(notebook):
    """Adds a cell with a mistake of the learner's to a notebook."""
    content = json.loads(notebook.read_text(encoding="utf-8"))
    cell = {"cell_type": "code", "id": "mistake", "metadata": TAGS, "source": MISTAKE}
    content["cells"].insert(3, cell | {"execution_count": None, "outputs": []})
    notebook.write_text(json.dumps(content), encoding="utf-8")


def hour(course, folder):
    """Takes the pictures of a learner's hour."""
    film = Film(folder)
    with Lab(course, "index", folder, size=SIZE) as lab:
        film.shoot(lab, "index")
    with_mistake(course / "lessons" / f"{STEM}.ipynb")
    with Lab(course, STEM, folder, size=SIZE) as lab:
        film.shoot(lab, "lesson")
        lab.run_all()
        lab.find("ZeroDivisionError")
        film.shoot(lab, "error")
        lab.find("What is the gradient of x in", ".jp-OutputArea")
        film.shoot(lab, "prediction")
        lab.page.locator(".jp-NotebookPanel input[placeholder='a number']").first.fill("9")
        lab.page.keyboard.press("Enter")
        film.shoot(lab, "prediction_made")
        save_wrong(lab)
        show_code(lab, "def mul_backward")
        film.shoot(lab, "failed_on_save")
        lab.page.click(f"{CARD} button:text-is('hint')")
        lab.page.wait_for_timeout(1000)
        film.shoot(lab, "hint")
        theme(lab, "JupyterLab Dark")
        film.shoot(lab, "hint_dark")
        theme(lab, "JupyterLab Light")
        exercise = course / "exercises" / f"{STEM}.py"
        shutil.copy(ROOT / "solutions" / f"{STEM}.py", exercise)
        lab.page.locator(f"{CARD} :text('21 of 21')").first.wait_for(timeout=60_000)
        film.shoot(lab, "solved_on_save")
        lab.page.click(f".lm-TabBar-tabLabel:text-is('{STEM}.ipynb')")  # the Run menu is its own
        lab.run_all()
        lab.find("You said 9", ".jp-OutputArea")
        film.shoot(lab, "prediction_judged")
        lab.find("runs the engine", ".jp-OutputArea")
        film.shoot(lab, "tile")
        theme(lab, "JupyterLab Dark")
        lab.find("Products of many slopes")
        film.shoot(lab, "figure_dark")
        lab.find("cheaper is reverse mode", ".jp-OutputArea")
        film.shoot(lab, "prediction_dark")
        lab.restart()
        lab.find("kernel that answered here has ended")
        film.shoot(lab, "reopened_dark")
    with Lab(course, "index", folder, size=SIZE) as lab:
        lab.run_all()
        film.shoot(lab, "index_lit")
    with Lab(course, PLAYED, folder, size=SIZE) as lab:
        lab.run_all()
        theme(lab, "JupyterLab Light")
        play(lab, film, "play")
        theme(lab, "JupyterLab Dark")
        play(lab, film, "play_dark")


def play(lab, film, name):
    """Goes to a step of the graph that plays, in the middle of its way back."""
    lab.find(".play()", ".jp-Cell")
    lab.page.evaluate("document.querySelector('.mg-s5').click()")
    lab.page.locator(".mg-steps").first.scroll_into_view_if_needed()
    film.shoot(lab, name)


def lesson_picture(course, folder):
    """Takes docs/pictures/lesson.png: an answer that is nearly right, and what the card says."""
    with Lab(course, STEM, folder, size=SIZE) as lab:
        lab.run_all()
        save_wrong(lab)
        show_code(lab, "def mul_backward")
        lab.find("2. Local derivative times what arrives")
        film = Film(folder)
        film.shoot(lab, "lesson")
        (folder / "01_lesson.png").replace(ROOT / "docs" / "pictures" / "lesson.png")


def main():
    """Writes the pictures into the folder that the command names."""
    with tempfile.TemporaryDirectory() as name:
        os.environ["JUPYTERLAB_SETTINGS_DIR"] = f"{name}/settings"  # its theme is nobody else's
        subprocess.run([str(MINIGRAD), "start", "course"], cwd=name, check=True)
        if len(sys.argv) > 1:
            folder = Path(sys.argv[1])
            folder.mkdir(parents=True, exist_ok=True)
            hour(Path(name) / "course", folder)
        else:
            lesson_picture(Path(name) / "course", Path(name))


if __name__ == "__main__":
    main()
