"""`book --site`: pages for any static host, searched and darkened by one script of their own."""

import itertools
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from minigrad.course.book import make_page, write_book
from minigrad.course.percent import notebook_text
from minigrad.course.sections import sections_of
from minigrad.course.source import Source

ROOT = Path(__file__).parents[2]
VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
BLOCKS = {"details", "div", "form", "h1", "h2", "h3", "ol", "p", "pre", "table", "ul"}
LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}
# As a figure with buttons: what it needs stands in the output, and nothing about it is changed.
PLAYED = """\
<form class="played"><style>.played:has(.two:checked) .said{font-weight:900}</style>
<input type="radio" name="step" class="one" checked><input type="radio" name="step" class="two">
<p class="said">where</p><button type="button">Make</button></form>
<script>document.querySelector(".played button").onclick = () =>
  document.querySelector(".said").innerHTML = "<table><tr><td>made</td></tr></table>";</script>
"""
LESSON = """\
# %% [markdown]
# # 99 · Played `<now>` & "then"
#
# **You need** nothing. **It takes** about an hour, in two. **At the end** you know *it*. Next: no.
#
# | a | b |
# |---|---|
# | 1 | [2](https://example.org) |
#
# ## 1. The zebra's *part*

# %%
print("unseen")

# %% [markdown]
# ### A part of a part
#
# Last words: quagga.
"""


class Reader(HTMLParser):
    """What a page has, and what is wrong with its HTML."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.loaded, self.faults = [], [], [], [], []
        self.feed(text)
        self.close()
        self.faults += [f"<{tag}> is never closed" for tag in self.open]
        self.faults += [f"id {one} twice" for one in set(self.ids) if self.ids.count(one) > 1]

    def note(self, tag, attributes):
        facts = dict(attributes)
        self.ids += [facts["id"]] if "id" in facts else []
        self.links += [facts["href"]] if tag == "a" and "href" in facts else []
        self.loaded += [facts[LOADED[tag]]] if LOADED.get(tag) in facts else []
        if len(facts) < len(attributes):
            self.faults.append(f"<{tag}> has an attribute twice, line {self.getpos()[0]}")
        if tag in BLOCKS and "p" in self.open:
            self.faults.append(f"<{tag}> within <p>, line {self.getpos()[0]}")

    def handle_starttag(self, tag, attrs):
        self.note(tag, attrs)
        self.open += [] if tag in VOID else [tag]

    def handle_startendtag(self, tag, attrs):
        self.note(tag, attrs)

    def handle_endtag(self, tag):
        if self.open[-1:] == [tag]:
            self.open.pop()
        else:
            self.faults.append(f"</{tag}> closes {self.open[-1:]}, line {self.getpos()[0]}")


@pytest.fixture(scope="module")
def pages():
    """A page of each lesson as it comes, and one with an interactive figure."""
    nbformat = pytest.importorskip("nbformat", reason="the packages of the lab are not installed")
    pytest.importorskip("nbconvert", reason="the packages of the lab are not installed")
    texts = Source(ROOT).notebooks() | {"99_played": notebook_text(LESSON, "99_played")}
    notebooks = {stem: nbformat.reads(text, as_version=4) for stem, text in texts.items()}
    for cell in notebooks["99_played"].cells:
        if cell.cell_type == "code":
            cell.outputs = [nbformat.v4.new_output("display_data", {"text/html": PLAYED})]
    return [make_page(stem, notebook, "a = 1\n") for stem, notebook in notebooks.items()]


@pytest.fixture(scope="module")
def site(pages):
    return write_book(pages, is_site=True, fast={pages[0].stem})


@pytest.fixture(scope="module")
def read(site):
    return {name: Reader(text) for name, text in site.items() if name.endswith(".html")}


def rows_of(site):
    return json.loads(site["search.js"].removeprefix("const SECTIONS = ").removesuffix(";\n"))


def test_pages_are_well_formed(read):
    assert {name: one.faults for name, one in read.items() if one.faults} == {}


def test_every_link_leads_to_a_page_and_a_place_that_exist(read):
    lost = []
    for name, one in read.items():
        for link in one.links:
            parts = urlsplit(link)
            page = parts.path or name
            ids = read[page].ids if page in read else []
            if not parts.scheme and (
                page not in read
                or (parts.fragment and not {parts.fragment, unquote(parts.fragment)} & set(ids))
            ):
                lost.append((name, link))
    assert lost == []
    assert "https://example.org" in read["99_played.html"].links


def test_every_page_is_reached_from_the_index_and_from_its_neighbours(pages, site, read):
    files = [page.file for page in pages]
    assert read["index.html"].links[-len(files) :] == files
    assert set(files) | {"index.html"} == set(read)
    for before, after in itertools.pairwise(files):
        assert site[before].count(f'<a rel="next" href="{after}">') == 2
        assert site[after].count(f'<a rel="prev" href="{before}">') == 2


def test_nothing_is_loaded_from_elsewhere(site, read):
    for name, one in read.items():
        own = [address for address in one.loaded if not address.startswith("data:")]
        assert set(own) <= set(site), name
    for name in ("style.css", "dark.css"):
        assert not re.search(r"@import|url\(|https?:", site[name])
    assert not re.search(r"https?:|fetch\(|XMLHttp|import\(", site["site.js"])


def test_contents_and_search_have_every_heading(pages, site):
    rows = {(file, id, heading) for file, _, id, heading, _ in rows_of(site)}
    for page in pages:
        found = re.findall(r'<h[123][^>]* id="', page.body)
        sections = sections_of(page.body)
        assert len(sections) == len(found) > 1
        for one in sections:
            assert (page.file, one.id, one.heading) in rows
    assert len(rows) == len(rows_of(site))
    contents = site["99_played.html"].split('<nav class="contents"')[1].split("</nav>")[0]
    assert re.findall(r">([^<>]+)</a>", contents) == [
        "1. The zebra&#x27;s part",
        "A part of a part",
    ]


def test_sections_have_the_text_and_code_below_their_heading_without_outputs(pages):
    title, zebra, last = sections_of(pages[-1].body)
    assert title.heading == '99 · Played <now> & "then"'
    assert title.text.endswith("a b 1 2")
    assert (zebra.level, zebra.heading, zebra.text) == (2, "1. The zebra's part", 'print("unseen")')
    assert (last.level, last.heading) == (3, "A part of a part")
    assert last.text.startswith("Last words: quagga.")


def test_tiles_say_what_a_lesson_teaches_and_how_long_it_takes(site):
    tile = site["index.html"].split("<li>")[-1]
    assert '<span class="takes">about an hour</span>' in tile
    assert "<b>At the end</b> you know <i>it</i>.</p>" in tile
    assert "<b>You need</b> nothing.</p>" in tile
    assert ", fast track</span>" in site["index.html"]
    assert site["index.html"].count("fast track") == 1
    takes = re.findall(r'class="takes">([^<]*\d[^<]*|[^<]*hour[^<]*)<', site["index.html"])
    assert len(takes) == site["index.html"].count("<li>")


def test_tables_of_the_text_scroll_and_figures_stay_as_they_are(pages):
    body = pages[-1].body
    assert body.count('<div class="wide"><table>') == 1
    for tag in ("script", "style"):
        assert f"<{tag}>{PLAYED.split(f'<{tag}>')[1].split(f'</{tag}>')[0]}</{tag}>" in body


def test_book_without_scripts_has_neither_header_nor_scripts(pages):
    files = write_book(pages[-1:])
    assert set(files) == {"index.html", "99_played.html", "style.css", "dark.css"}
    assert "<script" not in files["index.html"]
    assert "<header" not in files["99_played.html"]


@pytest.fixture
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no Chromium is installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.mark.parametrize("width", [400, 1280])
def test_site_in_a_browser_without_a_server(site, browser, width, tmp_path):
    for name, text in site.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme="light")
    problems = []
    page.on("requestfailed", lambda request: problems.append(request.url))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto((tmp_path / "index.html").as_uri())

    def background():
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    light = background()
    page.click("header button")  # the dark lasts, on other pages too
    assert background() != light
    assert page.inner_text("header button") == "Light"
    dark = background()

    page.keyboard.press("/")
    page.keyboard.type("QUAGGA last")
    page.wait_for_selector(".found li")
    assert page.inner_text(".found output") == "1 section"
    assert page.locator(".found mark").all_inner_texts() == ["Last", "quagga"]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/99_played.html#*")
    assert page.locator("[id='A-part-of-a-part']").is_visible()
    assert background() == dark

    page.check(".two")
    assert page.evaluate("getComputedStyle(document.querySelector('.said')).fontWeight") == "900"
    page.click(".played button")
    assert page.inner_text(".said") == "made"

    page.fill("input[type=search]", "<b>no such</b>")
    page.get_by_text("0 sections", exact=True).wait_for()  # search.js is loaded first
    page.keyboard.press("Escape")
    assert page.locator(".found").is_hidden()
    contents = page.locator(".contents details")
    assert contents.evaluate("one => one.open") == (width > 1000)
    for name in site:
        if name.endswith(".html"):
            page.goto((tmp_path / name).as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.click("header button")
    assert background() == light
    assert problems == []
