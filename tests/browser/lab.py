"""JupyterLab as a learner has it, `minigrad lab`, under a headless Chromium that a test drives."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import Request, urlopen

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-background-networking",
]  # fmt: skip
ADDRESS = re.compile(r"(http://\S+?)lab/workspaces/\S+?\?token=(\w+)")
MINIGRAD = Path(sys.executable).with_name("minigrad")


def find_chromium() -> str | None:
    """Return where Chromium is, None where it is not installed."""
    return next(filter(None, map(shutil.which, CHROMIUM)), None)


class Lab:
    """`minigrad lab NN` in a course folder, and one browser page on it.

    Args:
        course: the learner's folder.
        stem: the lesson, such as `02_graph`; `index` for the page of all lessons.
        shots: the folder for screenshots.
        place: the folder of the notebooks, `work` in a clone.
        size: of the page, in pixels.
    """

    def __init__(
        self,
        course: Path,
        stem: str,
        shots: Path,
        place: str = "lessons",
        size: tuple[int, int] = (1700, 1050),
    ) -> None:
        self.course, self.stem, self.shots, self.size = course, stem, shots, size
        self.notebook = course / place / f"{stem}.ipynb"
        self.errors: list[str] = []
        self.executed = 0  # cells that this kernel has executed

    def __enter__(self) -> Lab:
        from playwright.sync_api import sync_playwright

        port = 8900 + os.getpid() % 90
        lesson = [] if self.stem == "index" else [self.stem[:2]]
        self.server = subprocess.Popen(
            [str(MINIGRAD), "lab", *lesson, "--no-browser", "--port", str(port)],
            cwd=self.course, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, "MINIGRAD_AHEAD": "0"},  # which would load the machine for a minute
        )  # fmt: skip
        try:
            address = self._address()
            # With its kernel started first, the page does not ask which kernel to use.
            self._api(
                "api/sessions",
                {
                    "path": f"{self.notebook.parent.name}/{self.notebook.name}", "name": self.stem,
                    "type": "notebook", "kernel": {"name": "python3"},
                },
            )  # fmt: skip
            self.playwright = sync_playwright().start()
            self.browser = self.playwright.chromium.launch(
                executable_path=find_chromium(), headless=True, args=FLAGS
            )
            self.page = self.browser.new_page(
                viewport={"width": self.size[0], "height": self.size[1]}
            )
            self.page.on("pageerror", lambda error: self.errors.append(str(error)))
            self.page.goto(address)
            self.page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=90_000)
            self.page.wait_for_selector("#jupyterlab-splash", state="detached", timeout=90_000)
            self.page.click(".jp-Notebook .jp-MarkdownCell >> nth=0")
            self._wait_until_idle(1.0)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if hasattr(self, "browser"):
            self.browser.close()
        if hasattr(self, "playwright"):
            self.playwright.stop()
        self.server.terminate()
        self.server.wait(30)
        assert self.server.stdout is not None
        self.server.stdout.close()

    def _address(self) -> str:
        assert self.server.stdout is not None
        for line in self.server.stdout:
            if match := ADDRESS.search(line):
                self.root, self.token = match.groups()
                return match[0]
        raise AssertionError(f"minigrad lab ended with {self.server.wait()}")

    def _api(self, path: str, data: dict | None = None) -> list | dict:
        request = Request(
            f"{self.root}{path}",
            data=None if data is None else json.dumps(data).encode(),
            headers={"Authorization": f"token {self.token}", "Content-Type": "application/json"},
        )
        with urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def _wait_until_idle(self, seconds: float, timeout: float = 300) -> None:
        """Wait until the notebook's kernel has been idle for this long."""
        idle_since, end = None, time.monotonic() + timeout
        while time.monotonic() < end:
            states = [session["kernel"]["execution_state"] for session in self._api("api/sessions")]
            idle_since = (idle_since or time.monotonic()) if set(states) == {"idle"} else None
            if idle_since and time.monotonic() - idle_since >= seconds:
                return
            self.page.wait_for_timeout(100)
        raise AssertionError(f"the kernel was still busy after {timeout} s")

    def run_all(self) -> list[dict]:
        """Click Run All Cells, wait for the end, save; return the saved notebook's cells."""
        self.page.click(".lm-MenuBar-itemLabel:text-is('Run')")
        self.page.click(".lm-Menu-itemLabel:text-is('Run All Cells')")
        end = time.monotonic() + 300
        while True:
            self.page.wait_for_timeout(500)
            self._wait_until_idle(2.0)
            cells = self._saved()
            counts = [c["execution_count"] or 0 for c in cells if "execution_count" in c]
            if min(counts) > self.executed:
                self.executed = max(counts)
                return cells
            assert time.monotonic() < end, f"not every cell has run: {counts}"

    def _saved(self) -> list[dict]:
        """Save the notebook; return its cells."""
        before = self.notebook.stat().st_mtime_ns
        end = time.monotonic() + 60
        while self.notebook.stat().st_mtime_ns == before:
            assert time.monotonic() < end, "the notebook was not saved"
            self.page.keyboard.press("Control+s")
            self.page.wait_for_timeout(500)
        self.page.wait_for_timeout(500)
        return json.loads(self.notebook.read_text(encoding="utf-8"))["cells"]

    def restart(self) -> None:
        """Restart the kernel and open the page again, as on another day."""
        for session in self._api("api/sessions"):
            self._api(f"api/kernels/{session['kernel']['id']}/restart", {})
        self.executed = 0
        self.page.reload()
        self.page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=90_000)
        self.page.wait_for_timeout(9000)

    def look(self, name: str, text: str) -> None:
        """Scroll until the text is seen, and take a screenshot."""
        self.find(text)
        self.page.screenshot(path=str(self.shots / f"{self.stem}_{name}.png"))

    def find(self, text: str, within: str = "") -> None:
        """Scroll until the text is seen; `within` is a selector, such as `.jp-OutputArea`.

        Cells far away are not in the page, so it is searched from the top.
        """
        panel = ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-WindowedPanel-outer"
        quoted = json.dumps(text, ensure_ascii=False)
        self.page.evaluate("s => document.querySelector(s).scrollTop = 0", panel)
        for _ in range(300):
            self.page.wait_for_timeout(500 if within else 200)  # widgets are drawn late
            found = self.page.locator(f"{panel} {within} :text({quoted}) >> visible=true")
            if found.count():
                found.first.scroll_into_view_if_needed()
                self.page.wait_for_timeout(500)
                break
            moved = self.page.evaluate(
                "s => {const e = document.querySelector(s), b = e.scrollTop; e.scrollTop += 300; "
                "return e.scrollTop > b}",
                panel,
            )
            if not moved:
                raise AssertionError(f"{text!r} is nowhere in {self.stem}")
