"""A learner's path in JupyterLab: find a lesson, run it, fail an exercise, solve it.

Screenshots go to `test-screenshots/`, which git ignores.
"""

import importlib.util
import json
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


def errors_of(cells):
    return [
        output
        for cell in cells
        for output in cell.get("outputs", [])
        if output["output_type"] == "error"
    ]


def text_of(cells):
    parts = []
    for cell in cells:
        for output in cell.get("outputs", []):
            parts.append("".join(output.get("text", [])))
            parts.append("".join(output.get("data", {}).get("text/plain", [])))
    return "\n".join(parts)


def assert_ran_to_the_end(cells, stem):
    """Every cell of an unsolved lesson has run; one that could not says in a line what it needs."""
    assert all(cell["execution_count"] for cell in cells if cell["cell_type"] == "code")
    errors = errors_of(cells)
    assert errors
    for error in errors:
        assert len(error["traceback"]) == 1, f"{error['ename']}: {error['evalue']}"
        (line,) = error["traceback"]
        assert line.startswith(f"This cell needs {stem[:2]}.")
        assert "\n" not in line
    assert " points. Open: " in cards_of(cells)[-1]


@pytest.mark.parametrize("stem", LESSONS)
def test_learner_fails_solves_and_sees_points_and_the_lit_tile(stem, course):
    part = LESSONS[stem]
    with Lab(course, stem, SHOTS) as lab:
        cells = lab.run_all()
        assert_ran_to_the_end(cells, stem)
        cards = cards_of(cells)
        assert cards
        assert "nothing yet: this part is still a stub" in cards[0]
        lab.look("1_failed", "nothing yet: this part is still a stub")

        shutil.copy(ROOT / "solutions" / f"{stem}.py", course / "exercises" / f"{stem}.py")
        cells = lab.run_all()
        assert errors_of(cells) == []
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


def test_prediction_is_a_click_and_its_verdict_comes_after_it(course):
    with Lab(course, "03_cycles", SHOTS) as lab:
        before = text_of(lab.run_all())
        assert "yes or no?\nMeasured: no. (You made no prediction.)" in before
        lab.find("recurrent loop", ".jp-OutputArea")
        outputs = lab.page.locator(".jp-NotebookPanel .jp-OutputArea-output")
        assert not outputs.filter(has_text="Measured: no.").count()
        lab.page.click(".jp-NotebookPanel button:text-is('yes') >> nth=0")
        outputs.filter(has_text="You said yes. Measured: no.").first.wait_for()
        lab.page.screenshot(path=str(SHOTS / "03_prediction.png"))
        kept = json.loads((course / ".minigrad" / "progress.json").read_text())["predictions"]
        assert kept["03.loop"]["said"] == "yes"
        assert kept["03.loop"]["right"] is False
        lab.restart()
        lab.find("The kernel that answered here has ended.")
        assert lab.errors == []


def test_clone_whose_lessons_ran_has_no_changes(tmp_path):
    SHOTS.mkdir(exist_ok=True)
    for name in (".gitignore", "pyproject.toml", "minigrad/__init__.py", "exercises/00_start.py",
                 "lessons/00_start.ipynb", "lessons/source/00_start.py"):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)

    def git(*arguments):
        line = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments]
        return subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    git("init")
    git("add", ".")
    git("commit", "-m", "a clone")
    with Lab(tmp_path, "00_start", SHOTS, place="work") as lab:
        assert cards_of(lab.run_all())
    assert "outputs" in (tmp_path / "work" / "00_start.ipynb").read_text()
    assert git("status", "--porcelain") == ""


TERMINAL = """async ([root, token]) => {
  const headers = {Authorization: `token ${token}`};
  const made = await fetch(`${root}api/terminals`, {method: "POST", headers});
  const address = `${root.replace("http", "ws")}terminals/websocket/${(await made.json()).name}`;
  const socket = new WebSocket(`${address}?token=${token}`);
  let seen = "";
  socket.onmessage = event => {
    const [kind, text] = JSON.parse(event.data);
    if (kind === "stdout") seen += text;
  };
  await new Promise(resolve => { socket.onopen = resolve; });
  socket.send(JSON.stringify(["stdin", "command -v minigrad; command -v python; echo d''one\\r"]));
  for (let i = 0; i < 200 && !seen.includes("done"); i++)
    await new Promise(resolve => setTimeout(resolve, 100));
  return seen;
}"""


def test_page_of_all_lessons_shows_what_is_next_and_opens_it(course):
    with Lab(course, "index", SHOTS) as lab:
        tiles = lab.page.locator(".jp-OutputArea-output")
        assert "Next: 00.hello" in tiles.first.inner_text()
        assert "0 of 12 points" in tiles.first.inner_text()
        lab.page.screenshot(path=str(SHOTS / "index.png"))
        shutil.copy(ROOT / "solutions" / "00_start.py", course / "exercises" / "00_start.py")
        assert minigrad(course, "check", "00").returncode == 0
        cells = lab.run_all()
        assert "12 of 12 points, solved" in text_of(cells)
        assert "Next: 01." in text_of(cells)
        for link, opened in (("01 Local", "01_chain_rule.ipynb"), ("exercises", "00_start.py")):
            lab.page.click(".lm-TabBar-tabLabel:text-is('index.ipynb')")
            lab.page.click(f".jp-OutputArea-output a:has-text('{link}') >> visible=true >> nth=0")
            lab.page.wait_for_selector(f".lm-TabBar-tabLabel:text-is('{opened}')", timeout=30_000)
        seen = lab.page.evaluate(TERMINAL, [lab.root, lab.token])
        for name in ("minigrad", "python"):
            assert f"{MINIGRAD.with_name(name)}\r\n" in seen
        assert lab.errors == []


def test_what_is_saved_is_graded_beside_the_editor(course):
    file = course / "exercises" / "00_start.py"
    with Lab(course, "00_start", SHOTS) as lab:
        page = lab.page
        page.click(".jp-Notebook .jp-CodeCell >> nth=0")
        page.keyboard.press("Shift+Enter")
        card = page.locator(".jp-LinkedOutputView")
        card.locator(":text('Save exercises/00_start.py')").first.wait_for()
        # Another program saves; the editor's tab, without changes of its own, shows it.
        file.write_text(file.read_text().replace("gardients", "gradientz"))
        card.locator(":text(\"'hello, gradientz'\")").first.wait_for(timeout=30_000)
        for label in ("Given", "Expected", "Got", "Where", "Try", "0 of 12 points in lesson 00"):
            assert label in card.inner_text()
        editor = page.locator(".jp-FileEditor .cm-content")
        editor.locator(":text('gradientz')").first.wait_for(timeout=30_000)
        assert page.locator(".jp-Dialog").count() == 0
        card.locator("button:text-is('hint')").click()
        card.locator(":text('Hint 1 of 3 for 00.hello')").first.wait_for(timeout=30_000)
        page.screenshot(path=str(SHOTS / "saved_failed.png"))
        # The learner saves, in the editor.
        editor.locator(":text('gradientz')").first.dblclick()
        page.keyboard.type("gradients")
        page.keyboard.press("Control+s")
        card.locator(":text('1 of 12 points in lesson 00')").first.wait_for(timeout=30_000)
        assert "everything passes" in card.inner_text()
        page.screenshot(path=str(SHOTS / "saved_passed.png"))
        assert page.locator(".jp-Dialog").count() == 0
        assert lab.errors == []
