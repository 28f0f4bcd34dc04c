"""Writes lessons as pages: HTML with their outputs, readable without Python, network or scripts.

A site has the same pages with a header: its one script searches, and switches to dark and back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from html import escape
from typing import Any

from minigrad.course import formulas
from minigrad.course.contents import FAST_TRACK
from minigrad.course.sections import sections_of

WIDGET = "application/vnd.jupyter.widget-view+json"
MARKDOWN_TABLE = re.compile(r"<table>\n<thead>.*?</table>", re.DOTALL)  # outputs scroll as a whole
SCRIPTS = ("site.js", "search.js")
GENERATOR = '<meta name="generator" content="minigrad book">'


@dataclass(frozen=True)
class Page:
    """One lesson of the book: its stem, title and first paragraph, and the HTML of its cells."""

    stem: str
    title: str
    opening: str
    body: str

    @property
    def file(self) -> str:
        """Return the page's file name."""
        return f"{self.stem}.html"


def title_of(notebook: Any) -> str:
    """Return a lesson's title: its first heading."""
    for line in "".join(notebook["cells"][0]["source"]).splitlines():
        if line.startswith("# "):
            return line[2:].strip()
    return "A lesson"


def opening_of(notebook: Any) -> str:
    """Return a lesson's first paragraph: what it needs, how long it takes, what it gives."""
    paragraphs = "".join(notebook["cells"][0]["source"]).split("\n\n")
    texts = [" ".join(text.split()) for text in paragraphs if not text.startswith("#")]
    return texts[0] if texts else ""


def said(opening: str, label: str) -> str:
    """Return the text after a bold label in a first paragraph, up to `Next:` or the next label."""
    match = re.search(rf"\*\*{label}\*\* (.*?)(?=\*\*[A-Z]|Next:|$)", opening)
    return match[1].strip().rstrip(".;") if match else ""


def make_page(stem: str, notebook: Any, exercises: str) -> Page:
    """Return the page of an executed lesson; `exercises` is the stub of its exercise file."""
    import nbformat
    from nbconvert import HTMLExporter

    drawn: list[str] = []

    def hold(formula: str, is_display: bool) -> str:
        drawn.append(formulas.draw(formula, is_display))
        mark = f"FORMULA{len(drawn) - 1}HERE"
        return f"\n\n{mark}\n\n" if is_display else mark

    copy = json.loads(json.dumps(notebook))
    copy["metadata"].pop("widgets", None)
    copy["cells"] = [one for one in copy["cells"] if "live" not in one["metadata"].get("tags", ())]
    said = f"A figure of the lesson {title_of(notebook)}"
    for cell in reversed(copy["cells"]):  # a figure's description comes after it
        if cell["cell_type"] == "markdown":
            text = "".join(cell["source"])
            said = _words(text) if text.startswith("**What to see.**") else said
            cell["source"] = formulas.replace(text, hold)
        else:
            cell["outputs"] = [one for one in map(_without_widget, cell["outputs"]) if one]
            for output in cell["outputs"]:
                for kind in output.get("data", {}):
                    if kind.startswith("image/"):
                        output.setdefault("metadata", {})[kind] = {"alt": said}
    exporter = HTMLExporter(
        template_name="basic",
        anchor_link_text="",
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )
    copied: Any = nbformat.from_dict(copy)
    body, _ = exporter.from_notebook_node(copied)
    for number, picture in enumerate(drawn):
        mark = f"FORMULA{number}HERE"
        if picture.startswith("<div"):
            body = body.replace(f"<p>{mark}</p>", picture)
        body = body.replace(mark, picture)
    body = MARKDOWN_TABLE.sub(r'<div class="wide">\g<0></div>', body)
    stub = (
        "<details><summary>The exercises of this lesson, as you would find them in "
        f"<code>exercises/{stem}.py</code></summary>{highlight(exercises)}</details>"
    )
    return Page(stem, title_of(notebook), opening_of(notebook), body + stub)


def highlight(source: str) -> str:
    """Return Python source as HTML."""
    import pygments
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    return pygments.highlight(source, PythonLexer(), HtmlFormatter(cssclass="highlight"))


def _without_widget(output: dict) -> dict | None:
    """Return an output without its widget, which needs a kernel; None if nothing is left.

    A question also has HTML, and `scrub` shows stills.
    """
    data = dict(output.get("data", {}))
    if data.pop(WIDGET, None) is None:
        return output
    return {**output, "data": data} if "text/html" in data else None


def _words(markdown: str) -> str:
    """Return a Markdown text's first paragraph as plain words, for screen readers."""
    text = re.sub(r"[*`$\\{}]", "", markdown.partition("\n\n")[0])
    return " ".join(text.split())


def _inline(markdown: str) -> str:
    """Return a paragraph of simple Markdown as HTML."""
    text = escape(markdown, quote=False)
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text)
    text = re.sub(r"\*(.+?)\*", r"<i>\1</i>", text)
    text = re.sub(r"`(.+?)`", r"<code>\1</code>", text)
    return re.sub(r"\[(.+?)\]\((.+?)\)", r"\1", text)


def write_book(
    pages: list[Page], is_site: bool = False, fast: Collection[str] = ()
) -> dict[str, str]:
    """Return the files of a book by name: an index, a page per lesson, and the files they load.

    `fast` are the stems of the lessons that the index marks as the fast track.
    """
    files = {"style.css": style("book", "default"), "dark.css": style("dark", "github-dark")}
    if is_site:
        files |= dict(zip(SCRIPTS, (_own(SCRIPTS[0]), search_index(pages)), strict=True))
    for number, page in enumerate(pages):
        before = pages[number - 1] if number else None
        after = pages[number + 1] if number + 1 < len(pages) else None
        links = _navigation(before, after)
        text = f'{links}<div class="columns">{_contents(page)}<main id="text">{page.body}</main>'
        files[page.file] = _frame(page.title, f"{text}</div>{links}", is_site)
    head = "<h1>minigrad</h1><p>The lessons with their outputs, for reading. To do them, and to "
    head += "have your own code run the engine, install minigrad and run <code>minigrad start"
    head += "</code>.</p>"
    tiles = "".join(_tile(page, page.stem in fast) for page in pages)
    body = f'<main id="text" class="index">{head}<ol>{tiles}</ol></main>'
    files["index.html"] = _frame("minigrad: the lessons", body, is_site)
    return files


def search_index(pages: list[Page]) -> str:
    """Return all sections as a script, which even a page opened as a file can load."""
    rows = [
        [page.file, page.title, section.id, section.heading, section.text]
        for page in pages
        for section in sections_of(page.body)
    ]
    return f"const SECTIONS = {json.dumps(rows, ensure_ascii=False, indent=0)};\n"


def _navigation(before: Page | None, after: Page | None) -> str:
    left = f'<a rel="prev" href="{before.file}">← {escape(before.title)}</a>' if before else ""
    right = f'<a rel="next" href="{after.file}">{escape(after.title)} →</a>' if after else ""
    middle = '<a href="index.html">All lessons</a>'
    spans = f"<span>{left}</span><span>{middle}</span><span>{right}</span>"
    return f'<nav class="way" aria-label="Lessons">{spans}</nav>'


def _contents(page: Page) -> str:
    """Return a page's table of contents: its headings below the title."""
    rows = "".join(
        f'<li class="level{one.level}"><a href="#{escape(one.id)}">{escape(one.heading)}</a></li>'
        for one in sections_of(page.body)
        if one.level > 1
    )
    shown = f"<details open><summary>In this lesson</summary><ul>{rows}</ul></details>"
    return f'<nav class="contents" aria-label="In this lesson">{shown}</nav>'


def _tile(page: Page, is_fast: bool) -> str:
    """Return a lesson's entry in the index: its title, how long it takes, what it teaches."""
    takes = [re.split("[,;]", said(page.opening, "It takes"))[0], FAST_TRACK * is_fast]
    texts = [f'<a href="{page.file}">{escape(page.title)}</a>']
    if any(takes):
        texts.append(f'<span class="takes">{escape(", ".join(filter(None, takes)))}</span>')
    for label in ("At the end", "You need"):
        text = said(page.opening, label)
        texts += [f"<p><b>{label}</b> {_inline(text)}.</p>"] if text else []
    return f"<li>{''.join(texts)}</li>"


HEADER = """\
<a class="skip" href="#text">Skip to the text</a>
<header>
<a class="home" href="index.html">minigrad</a>
<form role="search" hidden>
<input type="search" placeholder="Search (press /)" aria-label="Search all lessons"
 autocomplete="off" spellcheck="false">
<div class="found" hidden><output></output><ul></ul></div>
</form>
<button type="button" hidden>Dark</button>
</header>
"""


def _frame(title: str, body: str, is_site: bool) -> str:
    script = '<script src="site.js"></script>' if is_site else ""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{GENERATOR}<title>{escape(title)}</title>"
        '<link rel="stylesheet" href="style.css"><link rel="stylesheet" href="dark.css" id="dark" '
        f'media="(prefers-color-scheme: dark)">{script}'
        f"</head>\n<body>{HEADER if is_site else ''}{body}</body></html>\n"
    )


def style(name: str, code: str) -> str:
    """Return one of the two style sheets: that of all pages, or the changes for dark mode.

    Args:
        name: the sheet's file name, beside this file.
        code: Pygments' name for the code's colours.
    """
    from pygments.formatters import HtmlFormatter

    return HtmlFormatter(style=code).get_style_defs(".highlight") + "\n" + sheet(name)


def sheet(name: str) -> str:
    """Return a style sheet beside this file, without the colours of code."""
    return _own(f"{name}.css")


def _own(name: str) -> str:
    """Return the text of a file beside this one."""
    from importlib.resources import files

    return files("minigrad.course").joinpath(name).read_text(encoding="utf-8")
