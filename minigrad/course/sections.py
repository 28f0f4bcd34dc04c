"""Reads a page's sections from its HTML, for tables of contents and for search."""

from __future__ import annotations

from dataclasses import dataclass
from html.parser import HTMLParser

HEADINGS = ("h1", "h2", "h3")
UNREAD = ("script", "style", "svg")
OUTPUT = "output_wrapper"  # nbconvert's class for outputs: numbers, which nobody searches for


@dataclass
class Section:
    """A heading, its id in the page, and the words from there to the next heading."""

    level: int
    id: str
    heading: str = ""
    text: str = ""


def sections_of(page: str) -> list[Section]:
    """Return the sections of a page; text before the first heading belongs to none."""
    reader = _Reader(convert_charrefs=True)
    reader.feed(page)
    reader.close()
    for section in reader.sections:
        section.heading = " ".join(section.heading.split())
        section.text = " ".join(section.text.split())
    return reader.sections


class _Reader(HTMLParser):
    """Collects sections; `unread` counts the open elements of the kind that is being skipped."""

    def __init__(self, **options: bool) -> None:
        super().__init__(**options)
        self.sections: list[Section] = []
        self.unread: list[str] = []
        self.in_heading = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        facts = dict(attrs)
        is_output = OUTPUT in (facts.get("class") or "").split()
        if self.unread[:1] == [tag] or (not self.unread and (tag in UNREAD or is_output)):
            self.unread.append(tag)
        elif tag in HEADINGS and not self.unread:
            self.sections.append(Section(int(tag[1]), facts.get("id") or ""))
            self.in_heading = True

    def handle_endtag(self, tag: str) -> None:
        if self.unread[:1] == [tag]:
            self.unread.pop()
        elif tag in HEADINGS and not self.unread:
            self.in_heading = False
        elif self.sections and not self.unread and tag in ("p", "li", "td", "th", "div", "pre"):
            self.sections[-1].text += " "  # separates the words of two blocks

    def handle_data(self, data: str) -> None:
        if not self.sections or self.unread:
            return
        if self.in_heading:
            self.sections[-1].heading += data
        else:
            self.sections[-1].text += data
