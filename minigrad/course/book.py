"""A lesson as a page: HTML with its outputs, readable without Python, network or scripts."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from html import escape
from typing import Any

from minigrad.course import formulas

WIDGET = "application/vnd.jupyter.widget-view+json"
GENERATOR = '<meta name="generator" content="minigrad book">'


@dataclass(frozen=True)
class Page:
    """One lesson of the book: its stem, its title, and the HTML of its cells."""

    stem: str
    title: str
    opening: str
    body: str

    @property
    def file(self) -> str:
        """The page's file name."""
        return f"{self.stem}.html"


def title_of(notebook: Any) -> str:
    """Return a lesson's title: its first heading."""
    for line in "".join(notebook["cells"][0]["source"]).splitlines():
        if line.startswith("# "):
            return line[2:].strip()
    return "A lesson"


def opening_of(notebook: Any) -> str:
    """Return a lesson's first paragraph: what it needs, how long it takes."""
    paragraphs = "".join(notebook["cells"][0]["source"]).split("\n\n")
    texts = [" ".join(text.split()) for text in paragraphs if not text.startswith("#")]
    return texts[0] if texts else ""


def make_page(stem: str, notebook: Any, exercises: str) -> Page:
    """Return the page of a lesson that has run; `exercises` is the stub of its exercise file."""
    import nbformat
    from nbconvert import HTMLExporter

    drawn: list[str] = []

    def hold(formula: str, is_display: bool) -> str:
        drawn.append(formulas.draw(formula, is_display))
        mark = f"FORMULA{len(drawn) - 1}HERE"
        return f"\n\n{mark}\n\n" if is_display else mark

    copy = json.loads(json.dumps(notebook))
    copy["metadata"].pop("widgets", None)
    said = f"A figure of the lesson {title_of(notebook)}"
    for cell in reversed(copy["cells"]):  # a figure's description comes after it
        if cell["cell_type"] == "markdown":
            text = "".join(cell["source"])
            said = _words(text) if text.startswith("**What to see.**") else said
            cell["source"] = formulas.replace(text, hold)
        else:
            cell["outputs"] = [one for one in cell["outputs"] if not _is_slider(one)]
            for output in cell["outputs"]:
                for kind in output.get("data", {}):
                    if kind.startswith("image/"):
                        output.setdefault("metadata", {})[kind] = {"alt": said}
    exporter = HTMLExporter(template_name="basic", anchor_link_text="")
    copied: Any = nbformat.from_dict(copy)
    body, _ = exporter.from_notebook_node(copied)
    for number, picture in enumerate(drawn):
        mark = f"FORMULA{number}HERE"
        if picture.startswith("<div"):
            body = body.replace(f"<p>{mark}</p>", picture)
        body = body.replace(mark, picture)
    body = body.replace("<table", '<div class="wide"><table').replace("</table>", "</table></div>")
    stub = (
        "<details><summary>The exercises of this lesson, as you would find them in "
        f"<code>exercises/{stem}.py</code></summary>{highlight(exercises)}</details>"
    )
    return Page(stem, title_of(notebook), _inline(opening_of(notebook)), body + stub)


def highlight(source: str) -> str:
    """Return Python source as HTML."""
    import pygments
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    return pygments.highlight(source, PythonLexer(), HtmlFormatter(cssclass="highlight"))


def _is_slider(output: dict) -> bool:
    """Whether an output is a slider, which is dead without a kernel; `scrub` also shows stills."""
    return WIDGET in output.get("data", {})


def _words(markdown: str) -> str:
    """Return the first paragraph of a Markdown text as plain words, for screen readers."""
    text = re.sub(r"[*`$\\{}]", "", markdown.partition("\n\n")[0])
    return " ".join(text.split())


def _inline(markdown: str) -> str:
    """Return a paragraph of simple Markdown as HTML."""
    text = escape(markdown, quote=False)
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text)
    text = re.sub(r"\*(.+?)\*", r"<i>\1</i>", text)
    text = re.sub(r"`(.+?)`", r"<code>\1</code>", text)
    return re.sub(r"\[(.+?)\]\((.+?)\)", r"\1", text)


def write_book(pages: list[Page]) -> dict[str, str]:
    """Return the files of a book by name: an index, a page per lesson, one style sheet."""
    files = {"style.css": style()}
    for number, page in enumerate(pages):
        before = pages[number - 1] if number else None
        after = pages[number + 1] if number + 1 < len(pages) else None
        links = _navigation(before, after)
        files[page.file] = _frame(page.title, f"{links}<main>{page.body}</main>{links}")
    rows = "".join(
        f'<li><a href="{page.file}">{escape(page.title)}</a><p>{page.opening}</p></li>'
        for page in pages
    )
    head = "<h1>minigrad</h1><p>The lessons with their outputs, for reading. To do them, and to "
    head += "have your own code run the engine, install minigrad and run <code>minigrad start"
    head += "</code>.</p>"
    files["index.html"] = _frame(
        "minigrad: the lessons", f'<main class="index">{head}<ul>{rows}</ul></main>'
    )
    return files


def _navigation(before: Page | None, after: Page | None) -> str:
    left = f'<a rel="prev" href="{before.file}">← {escape(before.title)}</a>' if before else ""
    right = f'<a rel="next" href="{after.file}">{escape(after.title)} →</a>' if after else ""
    middle = '<a href="index.html">Contents</a>'
    return f"<nav><span>{left}</span><span>{middle}</span><span>{right}</span></nav>"


def _frame(title: str, body: str) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'{GENERATOR}<title>{escape(title)}</title><link rel="stylesheet" href="style.css">'
        f"</head>\n<body>{body}</body></html>\n"
    )


def style() -> str:
    """Return the style sheet, light and dark."""
    from importlib.resources import files

    from pygments.formatters import HtmlFormatter

    own = files("minigrad.course").joinpath("book.css").read_text(encoding="utf-8")
    light = HtmlFormatter(style="default").get_style_defs(".highlight")
    dark = HtmlFormatter(style="github-dark").get_style_defs(".highlight")
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n{own}"
