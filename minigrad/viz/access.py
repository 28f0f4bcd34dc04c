"""Draws a kernel's memory accesses: the lanes of a warp, and the bytes that each one uses.

Global memory moves sectors of 32 bytes. A picture shows the sectors; bytes that no lane requested
stay empty. Shared memory has 32 banks. A picture stacks the different words of each bank; the
height of the stack is the number of passes. All pictures have one scale, so that two can be
compared.
"""

import html
from dataclasses import dataclass

import numpy as np

from minigrad.simt.counts.counts import Access
from minigrad.simt.counts.traffic import BANKS, SECTOR, WORD
from minigrad.simt.machine.lanes import WARP
from minigrad.simt.watch.counts_text import cost, remarks, size

WIDTH, LEFT, CELL = 720, 56, 20  # pixels; CELL: a lane or a bank
ROW, PER_ROW = 34, 16  # the height of a row in pixels, and its number of sectors
TOP, LANE, GAP = 46, 18, 92
STYLE = (
    ".mg-access{--mg-page:var(--jp-layout-color1,#fff);"
    "--mg-ink:var(--jp-content-font-color1,#1f2430);"
    "--mg-soft:var(--jp-content-font-color2,#59616f);"
    'font-family:ui-monospace,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace}'
    ".mg-access text{fill:var(--mg-soft);font-size:11px}"
    ".mg-access .mg-title{fill:var(--mg-ink);font-size:13px;font-weight:600}"
    ".mg-access .mg-mid{text-anchor:middle;font-size:9px;fill:var(--mg-ink)}"
    ".mg-page{fill:var(--mg-page)}"
    ".mg-lane{fill:#4c7bd924;stroke:#4c7bd9}.mg-idle{fill:none;stroke:#8a93a388}"
    ".mg-used{fill:#4c7bd9}.mg-moved{fill:#e0803038;stroke:#e08030;stroke-width:.7}"
    ".mg-bank{fill:none;stroke:#8a93a366}.mg-word{fill:#4c7bd9a0;stroke:#4c7bd9}"
    ".mg-clash{fill:#e08030b0;stroke:#e08030}"
    ".mg-way{fill:none;stroke:#4c7bd9;stroke-opacity:.45}"
)


@dataclass(frozen=True)
class AccessPicture:
    """One access of one warp, the costliest one at its place in the kernel."""

    access: Access

    def to_svg(self):
        """Returns a whole SVG document."""
        drawn = _banks(self.access) if self.access.space == "shared" else _sectors(self.access)
        return _document(self.access, *drawn)

    def _repr_html_(self):
        return f'<div style="overflow-x:auto">{self.to_svg()}</div>'


def pictures(counts):
    """Returns one picture for each access that a warp made."""
    return [AccessPicture(a) for a in counts.accesses if a.worst is not None]


def page(counts, title):
    """Returns HTML for a notebook: the numbers, then the pictures."""
    rows = "".join(
        f"<tr><td>{a.site.line}</td><td style='text-align:left'><code>{a.kind} "
        f"{html.escape(a.site.text)}</code></td><td>{a.warps:,}</td>"
        f"<td>{a.lanes / (WARP * max(a.warps, 1)):.0%}</td><td>{a.moved:,}</td>"
        f"<td>{cost(a)[0]}</td><td style='text-align:left'>{html.escape(cost(a)[1])}</td></tr>"
        for a in counts.accesses
    )
    said = "".join(f"<li>{html.escape(line)}</li>" for line in remarks(counts))
    head = "".join(
        f"<th style='text-align:{'left' if name == 'access' else 'right'}'>{name}</th>"
        for name in ("line", "access", "warps", "lanes", "bytes", "cost / fewest", "")
    )
    drawn = "".join(p._repr_html_() for p in pictures(counts))
    return (
        f"<div><b>{html.escape(title)}</b>: {size(counts)}"
        f"<table><tr>{head}</tr>{rows}</table><ul>{said}</ul>{drawn}</div>"
    )


def _document(access, parts, height, axis):
    sample = access.worst
    width = WIDTH + 2 * LEFT
    title = f"line {access.site.line}: {access.kind} {access.site.text}"
    title = title if len(title) <= 90 else title[:89] + "\u2026"
    of = f"warp {sample.warp} of block {sample.block}: {_cost_of(access)}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="mg-access" role="img" '
            f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
            f"<title>{html.escape(title)}</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="mg-page" width="{width}" height="{height}" rx="6"/>',
            f'<text class="mg-title" x="{LEFT}" y="20">{html.escape(title)}</text>',
            f'<text x="{LEFT}" y="36">{html.escape(of)}</text>',
            f'<text x="{LEFT - 6}" y="{TOP + 13}" text-anchor="end">lane</text>',
            *parts,
            f'<text x="{LEFT}" y="{height - 10}">{html.escape(axis)}</text>',
            "</svg>",
        ]
    )


def _cost_of(access):
    """Returns the cost of the drawn access in words: `8 sectors of 32 bytes, 4 would do`."""
    sample, used = access.worst, int(access.worst.active.sum())
    lanes = f"{used} of {WARP} lanes active, " if used < WARP else ""
    one, several, of = "sector", "sectors", f"of {SECTOR} bytes"
    if access.space == "shared":
        one, several, of = "pass", "passes", "over the banks"
    enough = f"{sample.least} would do" if sample.cost > sample.least else "the fewest possible"
    return f"{lanes}{sample.cost} {one if sample.cost == 1 else several} {of}, {enough}"


def _lanes(sample):
    """Draws the row of lanes; those that take part are filled."""
    for lane in range(WARP):
        x, kind = LEFT + lane * CELL + 40, "mg-lane" if sample.active[lane] else "mg-idle"
        yield (
            f'<rect class="{kind}" x="{x}" y="{TOP}" width="{CELL - 3}" height="{LANE}" rx="3"/>'
            f'<text class="mg-mid" x="{x + CELL / 2 - 1.5}" y="{TOP + 12}">{lane}</text>'
        )


def _way(lane, x, y):
    """Draws the line from a lane down to a place."""
    x0, y0 = LEFT + lane * CELL + 40 + CELL / 2 - 1.5, TOP + LANE
    middle = (y0 + y) / 2
    return (
        f'<path class="mg-way" d="M{x0:.1f} {y0}C{x0:.1f} {middle:.1f} {x:.1f} {middle:.1f} '
        f'{x:.1f} {y:.1f}"/>'
    )


def _sectors(access):
    """Draws rows of sectors with the used bytes dark; returns (parts, height, axis)."""
    sample = access.worst
    lanes = np.flatnonzero(sample.active)
    first = sample.byte[lanes]
    touched = sorted(
        {int(s) for b in first for s in range(b // SECTOR, -(-(b + access.nbytes) // SECTOR))}
    )
    wide = WIDTH / PER_ROW
    place = {s: divmod(k, PER_ROW) for k, s in enumerate(touched)}
    top = TOP + LANE + GAP
    parts = list(_lanes(sample))
    pixel = (wide - 6) / SECTOR
    for lane, byte in zip(lanes.tolist(), first.tolist(), strict=True):
        row, column = place[byte // SECTOR]
        x = LEFT + column * wide + (byte % SECTOR + access.nbytes / 2) * pixel
        parts.append(_way(lane, x, top + row * ROW))
    for sector, (row, column) in place.items():
        x, y = LEFT + column * wide, top + row * ROW
        parts.append(
            f'<rect class="mg-moved" x="{x:.1f}" y="{y}" width="{wide - 6:.1f}" height="14"/>'
        )
        if column == 0:
            parts.append(
                f'<text x="{LEFT - 6}" y="{y + 11}" text-anchor="end">{sector * SECTOR}</text>'
            )
    for byte in sorted({int(b) for b in first}):
        row, column = place[byte // SECTOR]
        x = LEFT + column * wide + byte % SECTOR * pixel
        width = min(access.nbytes, SECTOR - byte % SECTOR) * pixel
        parts.append(
            f'<rect class="mg-used" x="{x:.1f}" y="{top + row * ROW + 2}" '
            f'width="{max(width - 0.6, 1):.1f}" height="10"/>'
        )
    rows = -(-len(touched) // PER_ROW)
    axis = (
        f"boxes: the sectors that are moved, at the left the first byte within {access.array}; "
        "filled: bytes asked for"
    )
    return parts, top + rows * ROW + 26, axis


def _banks(access):
    """Draws the 32 banks, each with the words that lanes use; returns (parts, height, axis)."""
    sample = access.worst
    lanes = np.flatnonzero(sample.active)
    top = TOP + LANE + GAP
    words = [[] for _ in range(BANKS)]
    ways = []
    for lane in lanes.tolist():
        for k in range(max(1, access.nbytes // WORD)):
            word = int(sample.byte[lane]) // WORD + k
            here = words[word % BANKS]
            if word not in here:
                here.append(word)
            ways.append((lane, word % BANKS, here.index(word)))
    high = max(map(len, words))  # at most 32: one word for each lane
    parts = list(_lanes(sample))
    step = 14
    for lane, bank, level in ways:
        parts.append(_way(lane, LEFT + bank * CELL + 40 + CELL / 2 - 1.5, top + level * step))
    for bank in range(BANKS):
        x = LEFT + bank * CELL + 40
        for level, word in enumerate(words[bank]):
            kind = "mg-clash" if level >= sample.least else "mg-word"
            parts.append(
                f'<rect class="{kind}" x="{x}" y="{top + level * step}" width="{CELL - 3}" '
                f'height="{step - 3}"><title>word {word}: bytes {word * WORD} to '
                f"{word * WORD + WORD - 1}</title></rect>"
            )
        y = top + high * step
        parts.append(
            f'<rect class="mg-bank" x="{x}" y="{y}" width="{CELL - 3}" height="{LANE}" rx="3"/>'
            f'<text class="mg-mid" x="{x + CELL / 2 - 1.5}" y="{y + 12}">{bank}</text>'
        )
    parts.append(f'<text x="{LEFT - 6}" y="{top + high * step + 13}" text-anchor="end">bank</text>')
    axis = "boxes above a bank: different words of it, one pass each (orange: conflicts)"
    return parts, top + high * step + LANE + 30, axis
