"""Writes a ProgramReport as text, at most 100 columns wide."""

import textwrap

from minigrad.viz.units import format_bytes, plural

WIDTH = 100
MOST_FORMS = 40  # lines of the table
MOST_NOTES = 8  # lines of a list of notes
MOST_NAMES = 16  # parameters that are named
SIZE = 10  # columns for bytes
NAME = 22  # columns for a function


def text_of(r):
    """Return the report on one program."""
    lines = [*_paragraph("traced for", ", ".join(r.traced) or "no arguments"), ""]
    lines += _before_and_after(r)
    lines.append("")
    for title, text in (
        ("passes", _passes(r)),
        ("calls", _calls(r)),
        ("memory", _memory(r)),
        ("compiled in", _seconds(r)),
    ):
        lines += _paragraph(title, text)
    lines += ["", *_table(r)]
    for title, notes in (
        ("calls back into Python", [f"{name} ({place})" for name, place in r.callbacks]),
        ("written in place", _aliases(r)),
        ("memory reused", [f"{a}: in the place of {b}" for a, b in r.taken_over]),
        ("not reused", [f"{x.other}, for {x.name}: {x.why}" for x in r.refused]),
        ("donated", [f"{name}: {text}" for name, text in r.donated]),
    ):
        if notes:
            lines += ["", *_notes(title, notes)]
    return "\n".join(lines)


def _before_and_after(r):
    """Return the table of what fusion and planning save."""
    rows = [
        ("", "one by one", "compiled"),
        ("instructions, calls", f"{r.instructions_before:,}", f"{r.calls:,}"),
        ("bytes read", *map(format_bytes, (r.bytes_before[0], r.bytes_after[0]))),
        ("bytes written", *map(format_bytes, (r.bytes_before[1], r.bytes_after[1]))),
        ("peak, with results", format_bytes(r.peak_before), format_bytes(r.peak_after)),
    ]
    return [f"{name:<22}{before:>12}{after:>12}".rstrip() for name, before, after in rows]


def _paragraph(title, text, indent=18):
    return textwrap.wrap(
        text, WIDTH, initial_indent=f"{title:<{indent}}", subsequent_indent=" " * indent,
        break_long_words=False,
    )  # fmt: skip


def _notes(title, notes):
    shown = few(counted(notes), MOST_NOTES)
    return [x for k, note in enumerate(shown) for x in _paragraph("" if k else title, note)]


def _passes(r):
    text = f"{r.instructions_before} instructions recorded, {r.instructions_after} left"
    changed = [f"{name} {a} -> {b}" for name, a, b in r.passes]
    return f"{text}: {', '.join(changed)}" if changed else text


def _calls(r):
    loops = [f for f in r.forms if f.kind == "loop"]
    parts = []
    if r.products:
        more = f" ({r.epilogues} with an epilogue)" if r.epilogues else ""
        parts.append(plural(r.products, "matrix product") + more)
    if loops:
        n = sum(f.calls for f in loops)
        parts.append(f"{plural(n, 'call')} of {plural(len(loops), 'generated kernel')}")
    if r.opaque:
        parts.append(f"{plural(r.opaque, 'call')} of hand-written kernels")
    by = "by one thread" if r.threads == 1 else f"by {r.threads} threads"
    if r.device != "cpu":
        by = f"on {r.device}"
    return f"{r.calls}: {', '.join(parts)}; {by}" if parts else "none"


def _memory(r):
    return (
        f"an arena of {format_bytes(r.arena)} ({format_bytes(r.separate)} if each temporary had a "
        f"place of its own), results of {format_bytes(r.results)}; parameters, state and arguments "
        f"that it touches: {format_bytes(r.outside)}"
    )


def _seconds(r):
    if r.from_cache is None:
        return f"{r.planning_seconds:.2f} s, passes, fusion and memory; kernels when first run"
    where = "from the disk cache" if r.from_cache else "compiled by Numba"
    return (
        f"{r.seconds:.2f} s: {r.planning_seconds:.2f} s passes, fusion and memory, "
        f"{r.machine_code_seconds:.2f} s machine code ({where})"
    )


def _table(r):
    """Return a line per form of call, and their sum."""
    lines = [_row(r, "function", "runs", "calls", "cut", "read", "written")]
    forms, rest = r.forms, []
    if len(forms) > MOST_FORMS:
        largest = sorted(forms, key=lambda f: -f.read - f.written)[: MOST_FORMS - 1]
        forms = [f for f in r.forms if f in largest]
        rest = [f for f in r.forms if f not in largest]
    for f in forms:
        moved = map(format_bytes, (f.read, f.written))
        lines.append(_row(r, f.function, f.what, f.calls, f.cut, *moved))
    for title, summed in ((f"{len(rest)} smaller ones", rest), ("all", r.forms)):
        if summed:
            columns = zip(*(f[3:] for f in summed), strict=True)
            calls, cut, *moved = map(sum, columns)
            lines.append(_row(r, "", title, calls, cut, *map(format_bytes, moved)))
    return lines


def _name_width(r):
    return max([NAME, *(len(f.function) for f in r.forms)])


def _row(r, function, what, calls, cut, read, written):
    numbers = f"{calls:>6}" + (f"{cut:>5}" if r.threads > 1 else "")
    numbers += f" {read:>{SIZE}} {written:>{SIZE}}"
    begin = f"{function:<{_name_width(r)}} "
    room = WIDTH - len(begin) - len(numbers)
    what = what if len(what) < room else what[: room - 2] + "\u2026"
    return f"{begin}{what:<{room}}{numbers}"


def _aliases(r):
    parts = []
    for how, text in (("in and out", "in and out, aliased"), ("out", "out")):
        mine = [a for a in r.aliases if a.how == how]
        if mine:
            nbytes = format_bytes(sum(a.nbytes for a in mine))
            parts.append(f"{text} ({nbytes}): {', '.join(_grouped([a.name for a in mine]))}")
    return parts


def _grouped(names):
    """Group names: "Adam's state of w" of many w becomes one."""
    groups = {}
    for name in names:
        head, of, tail = name.rpartition(" of ")
        groups.setdefault(head if of else "", []).append(tail if of else name)
    alone = groups.pop("", [])
    shown = alone if len(alone) <= MOST_NAMES else alone[: MOST_NAMES - 1]
    if len(shown) < len(alone):
        shown = [*shown, f"{len(alone) - len(shown)} more"]
    for head, tails in groups.items():
        shown.append(f"{head} of {tails[0] if len(tails) == 1 else f'{len(tails)} arrays'}")
    return shown


def counted(notes):
    """Return each distinct note once, with its count."""
    counts = {}
    for note in notes:
        counts[note] = counts.get(note, 0) + 1
    return [f"{n} x {note}" if n > 1 else note for note, n in counts.items()]


def few(lines, most):
    """Return at most `most` lines; the last one says how many more there are."""
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], f"and {len(lines) - most + 1} more"]
