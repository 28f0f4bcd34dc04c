"""`book`: lessons as pages that need no Python, no network and no scripts."""

import asyncio
import json
import re
import shutil
from pathlib import Path
from queue import Empty

import pytest

from minigrad.cli import book
from minigrad.cli.main import main
from minigrad.cli.ranges import stems_in
from minigrad.course import executing, formulas, notebook_kernel
from minigrad.course.book import Page, make_page, write_book
from minigrad.course.percent import notebook_text
from minigrad.course.source import Source
from minigrad.grader.folder import CourseError

ROOT = Path(__file__).parents[2]
LESSON = """\
# %% [markdown]
# # 00 · A question?
#
# **You need** nothing, `code` and a formula, $\\frac{1}{x^2}$. In code it stays: `$HOME`.
#
# $$ y = \\sum_i x_i $$

# %%
print("computed", 6 * 7)

# %%
from minigrad.course import check, scrub

check("00.hello")

# %%
import matplotlib.pyplot as plt

plt.plot([1, 2])
plt.show()

# %% [markdown]
# **What to see.** A line that *rises*.

# %%
scrub(lambda axis, value: axis.plot([0, value]), [1, 2], label="n", show=[1], columns=1)
"""
ANSWER = "# %%\nprint('computed', 6 * 7)\n"
BROKEN = LESSON + "\n# %%\n1 / 0\n"


@pytest.fixture
def course(tmp_path, monkeypatch):
    """An installed course of two short lessons."""
    root = tmp_path / "course"
    (root / "lessons").mkdir(parents=True)
    for stem in ("00_start", "01_chain_rule"):
        text = LESSON.replace("00 · A", f"{stem[:2]} · A")
        (root / "lessons" / f"{stem}.ipynb").write_text(notebook_text(text, stem))
    shutil.copytree(ROOT / "solutions", root / "solutions")
    monkeypatch.setattr(book, "installed", lambda: Source(root))
    monkeypatch.chdir(tmp_path)
    return root


def test_book_has_pages_with_outputs_pictures_and_navigation(course, tmp_path, capsys):
    assert main(["book", "pages", "--lessons", "00-01"]) == 0
    pages = tmp_path / "pages"
    assert {path.name for path in pages.iterdir()} == {
        "index.html", "style.css", "dark.css", "00_start.html", "01_chain_rule.html",
    }  # fmt: skip
    first, second = (pages / f"{n}.html" for n in ("00_start", "01_chain_rule"))
    text = first.read_text()
    assert "computed 42" in text
    assert 'src="data:image/png;base64' in text
    assert "1 of 1 points" in text  # the card of a solved exercise
    assert text.count('<svg class="formula"') == 2
    assert "<code>$HOME</code>" in text
    assert '<a rel="next" href="01_chain_rule.html">' in text
    assert '<a rel="prev" href="00_start.html">' in second.read_text()
    assert "gardients" in text  # the exercises as they come
    assert 'alt="What to see. A line that rises."' in text
    assert "VBox" not in text  # a slider does nothing on a page
    index = (pages / "index.html").read_text()
    assert '<a href="00_start.html">00 · A question?</a>' in index
    assert "<b>You need</b> nothing, <code>code</code>" in index
    for page in pages.glob("*.html"):
        assert not re.findall(r"<script|(?:src|href)=[\"']https?:", page.read_text())
    assert main(["book", "--site", "pages", "--lessons", "00"]) == 0
    assert not second.exists()  # a page of the longer book would lead nowhere
    assert {"site.js", "search.js"} <= {path.name for path in pages.iterdir()}
    assert "computed 42" not in (pages / "search.js").read_text()  # outputs are not searched
    assert main(["book", "pages", "--lessons", "00"]) == 0
    assert not (pages / "site.js").exists()


def test_cell_that_fails_is_shown_and_makes_the_exit_code_1(course, tmp_path, capsys):
    (course / "lessons" / "00_start.ipynb").write_text(notebook_text(BROKEN, "x"))
    assert main(["book", "pages", "--lessons", "00"]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().out
    assert "ZeroDivisionError" in (tmp_path / "pages" / "00_start.html").read_text()


def test_kernel_that_dies_does_not_stop_the_book(course, tmp_path, capsys):
    text = LESSON + "\n# %%\nimport os\n\nos._exit(1)\n"
    (course / "lessons" / "00_start.ipynb").write_text(notebook_text(text, "x"))
    assert main(["book", "pages", "--lessons", "00"]) == 1
    assert "DeadKernelError" in capsys.readouterr().out
    assert "computed 42" in (tmp_path / "pages" / "00_start.html").read_text()


def test_kernel_that_dies_leaves_its_last_words(course):
    text = LESSON + '\n# %%\nimport os\n\nos.write(2, b"out of threads")\nos.abort()\n'
    _, (died, *_) = executing.execute(notebook_text(text, "x"), course / "lessons")
    assert died.startswith("DeadKernelError")
    assert "out of threads" in died
    assert "Aborted" in died, "and where it was"


def test_notebook_that_is_none_is_named(learner, tmp_path, capsys):
    (learner / "lessons" / "00_start.ipynb").write_text("{")
    assert main(["book", str(tmp_path / "pages"), "--mine", "--lessons", "00"]) == 2
    assert "00_start: this is no notebook" in capsys.readouterr().err


def test_book_into_a_folder_with_something_else_writes_nothing(tmp_path, capsys):
    (tmp_path / "index.html").write_text("mine")
    assert main(["book", str(tmp_path)]) == 2
    assert "holds no book" in capsys.readouterr().err
    assert main(["book", str(tmp_path / "index.html")]) == 2
    assert (tmp_path / "index.html").read_text() == "mine"


def test_book_of_mine_runs_the_learners_own(learner, tmp_path, capsys):
    path = learner / "lessons" / "00_start.ipynb"
    path.write_text(notebook_text(LESSON.replace("A question", "My question"), "x"))
    assert main(["book", str(tmp_path / "pages"), "--mine", "--lessons", "0"]) == 0
    text = (tmp_path / "pages" / "00_start.html").read_text()
    assert "My question?" in text
    assert "1 of 1 points" in text


def test_book_without_the_packages_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["book", "nowhere"]) == 2
    assert 'pip install "minigrad[lab]"' in capsys.readouterr().err


def test_every_formula_of_the_lessons_can_be_drawn():
    found = []

    def keep(formula, is_display):
        found.append((formula, formulas.draw(formula, is_display)))
        return ""

    for text in Source(ROOT).notebooks().values():
        for cell in json.loads(text)["cells"]:
            if cell["cell_type"] == "markdown":
                formulas.replace("".join(cell["source"]), keep)
    assert len(found) > 10
    assert [formula for formula, drawn in found if "<path" not in drawn] == []


def test_formula_that_is_none_stays_as_code():
    assert formulas.draw(r"\nonsense{x}") == r"<code>\nonsense{x}</code>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a $x$ b", "a [x] b"),
        ("`$x$` and ``$y$``", "`$x$` and ``$y$``"),
        ("```sh\necho $x$\n```\n$y$", "```sh\necho $x$\n```\n[y]"),
        ("$5 and $6", "$5 and $6"),
        ("$$\na\n  b\n$$", "{a b}"),
        ("$a\nb$", "[a b]"),
    ],
)
def test_formulas_are_found_outside_code(text, expected):
    def show(formula, is_display):
        return f"{{{formula}}}" if is_display else f"[{formula}]"

    assert formulas.replace(text, show) == expected


def test_texts_from_outside_are_escaped():
    page = Page("00_start", "<script>", "", "")
    assert "<script>" not in write_book([page])["index.html"]
    notebook = json.loads(notebook_text("# %% [markdown]\n# # T\n#\n# a <b> $<x>$\n", "x"))
    assert "<x>" not in make_page("00_start", notebook, "").body


@pytest.mark.parametrize(
    ("text", "chosen"),
    [(None, "abcd"), ("0", "a"), ("00-02", "abc"), ("01,3", "bd"), ("2-9", "cd")],
)
def test_ranges_of_lessons(text, chosen):
    stems = ["00_a", "01_b", "02_c", "03_d"]
    assert [stem[-1] for stem in stems_in(text, stems)] == list(chosen)


@pytest.mark.parametrize("text", ["x", "7", "1-", "02_c", ""])
def test_range_that_names_no_lesson_is_refused(text):
    with pytest.raises(CourseError, match="lesson"):
        stems_in(text, ["00_a", "02_c"])


def test_book_in_a_browser(course, tmp_path, capsys):
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no Chromium is installed")
    assert main(["book", "pages"]) == 0
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 420, "height": 900})
        problems = []
        page.on("requestfailed", lambda request: problems.append(request.url))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto((tmp_path / "pages" / "index.html").as_uri())
        page.click("text=00 · A question?")
        assert page.inner_text("h1").startswith("00 · A question?")
        page.click("nav >> nth=0 >> a[rel=next]")
        assert page.url.endswith("01_chain_rule.html")
        assert page.evaluate("document.documentElement.scrollWidth") <= 420
        assert page.evaluate("[...document.images].every(image => image.naturalWidth > 0)")
        browser.close()
    assert problems == []


def test_kernels_are_spoken_to_by_files_where_their_names_are_short_enough(tmp_path, monkeypatch):
    monkeypatch.setattr(notebook_kernel.sys, "platform", "linux")
    assert notebook_kernel.connection("/tmp/x") == {
        "transport": "ipc",
        "connection_file": "/tmp/x/kernel.json",
    }
    assert notebook_kernel.connection("/" + "x" * notebook_kernel.SOCKET_PATH) == {}
    monkeypatch.setattr(notebook_kernel.sys, "platform", "win32")
    assert notebook_kernel.connection("/tmp/x") == {}


@pytest.mark.parametrize("path", [5, notebook_kernel.SOCKET_PATH])  # by ports, and by files
def test_a_notebook_runs_either_way(path, tmp_path, monkeypatch):
    monkeypatch.setattr(notebook_kernel, "SOCKET_PATH", path)
    waits, get_msg = [], notebook_kernel.Channel.get_msg

    async def counted(channel, timeout=None):
        waits.append(timeout)
        return await get_msg(channel, timeout)

    monkeypatch.setattr(notebook_kernel.Channel, "get_msg", counted)
    notebook, errors = executing.execute(notebook_text(ANSWER, "x"), tmp_path)
    assert not errors
    assert "computed 42" in str(notebook.cells)
    assert {None, executing.CELL_SECONDS} <= set(waits)  # for outputs, and for the cell's end


class Deaf:
    """A socket whose messages are seen by those alone who look again."""

    def __init__(self, looks):
        self.looks = looks

    async def poll(self, timeout=None):
        self.looks -= 1
        await asyncio.sleep(0 if self.looks == 0 else min(timeout, 20) / 1000)
        return self.looks == 0


def channel_of(socket):
    channel = notebook_kernel.Channel.__new__(notebook_kernel.Channel)
    channel.socket = socket
    return channel


@pytest.mark.parametrize("timeout", [None, 60])
def test_a_message_whose_event_was_missed_is_found_within_a_second(timeout, monkeypatch):
    monkeypatch.setattr(notebook_kernel.Channel, "_recv", lambda self: asyncio.sleep(0, "answer"))
    assert asyncio.run(channel_of(Deaf(3)).get_msg(timeout)) == "answer"


def test_who_waits_for_nothing_stops_in_time(monkeypatch):
    monkeypatch.setattr(notebook_kernel, "LOOK_SECONDS", 0.01)
    with pytest.raises(Empty):
        asyncio.run(channel_of(Deaf(-1)).get_msg(0.03))
