"""The results as Markdown: times, goals, and what compiling costs."""

import sys

from benchmarks.peers import PEERS

SCALES = {
    "s": [(1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")],
    "B": [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")],
}


def digits(value):
    """Three significant digits, never with an exponent."""
    text = f"{value:.3g}"
    return f"{value:.0f}" if "e" in text else text


def quantity(value, unit, *others):
    """A figure with three significant digits: `123 µs`, `7.8 MB`; with others `123 (118) µs`."""
    # Compared after rounding: 999.9 µs is 1 ms.
    scales = SCALES[unit]
    scale, name = next((s for s in scales if float(f"{value:.3g}") >= s[0]), scales[-1])
    more = f" ({', '.join(digits(v / scale) for v in others)})" if others else ""
    return f"{digits(value / scale)}{more} {name}"


def shown(report):
    """The peers that were measured, in the order of the table."""
    return [name for name, peer in report["peers"].items() if peer["status"] == "measured"]


def table(titles, lines):
    """Lines of a Markdown table, figures to the right."""
    rule = "|---|" + "---:|" * (len(titles) - 1)
    return [f"| {' | '.join(titles)} |", rule, *(f"| {' | '.join(line)} |" for line in lines)]


def publish(path, lines, note):
    """Write a table, and a note below it, to a file, and print both."""
    text = "\n".join([*lines, "", note]) + "\n"
    path.write_text(text, encoding="utf-8")
    sys.stdout.write(text)


def time_of(entry, peer):
    """Median and best of one peer in one row."""
    if peer in entry["errors"]:
        return "failed"
    result = entry["results"].get(peer)
    return "–" if result is None else quantity(result["median"], "s", result["best"])


def limit_of(entry):
    """The limit, and what sets it: (b)ytes or (o)perations."""
    limit = entry["limit"]
    return "–" if limit is None else f"{quantity(limit['seconds'], 's')} {limit['by'][0]}"


def times(report):
    """A line for each row: every peer's time, and the limit."""
    names = shown(report)
    lines = [
        [entry["title"], *(time_of(entry, name) for name in names), limit_of(entry)]
        for entry in report["rows"]
    ]
    return table(["work", *(PEERS[name].title for name in names), "limit"], lines)


def measured(goal):
    """What a goal's figure came to, in the words of the goal; in brackets from best times."""
    if goal["ratio"] is None:
        return "–"
    if goal["kind"] == "under":
        return quantity(goal["ratio"], "s", goal["ratio_of_best"])
    figures = f"{digits(goal['ratio'])} ({digits(goal['ratio_of_best'])})"
    return f"{figures} × {PEERS[goal['against']].title}"


def goals(report):
    """A line for each goal."""
    lines = [
        [
            entry["title"],
            PEERS[goal["who"]].title.removeprefix("minigrad "),
            goal["text"],
            measured(goal),
            {True: "yes", False: "no", None: "–"}[goal["met"]],
        ]
        for entry in report["rows"]
        for goal in entry["goals"]
    ]
    return table(["work", "minigrad", "goal", "measured", "met"], lines)


def _results(report, peer):
    """What was measured of a peer, row by row."""
    return [entry["results"][peer] for entry in report["rows"] if peer in entry["results"]]


def costs(report):
    """A line for each row that compiles or holds bytes."""

    def cell(entry, peer, figure, unit):
        result = entry["results"].get(peer, {})
        value, allocated = result.get(figure), result.get("allocated")
        if unit == "B" and allocated is not None:
            return (
                f"({quantity(allocated, unit)})"
                if value is None
                else quantity(value, unit, allocated)
            )
        return "–" if value is None else quantity(value, unit)

    compilers = [name for name in shown(report) if PEERS[name].compiles]
    weighed = [n for n in shown(report) if any("bytes" in r for r in _results(report, n))]
    behind = [n for n in shown(report) if any("waited" in r for r in _results(report, n))]
    lines = [
        [
            entry["title"],
            *(cell(entry, name, "first", "s") for name in compilers),
            *(cell(entry, name, "waited", "s") for name in behind),
            *(cell(entry, name, "bytes", "B") for name in weighed),
        ]
        for entry in report["rows"]
        if any("first" in result for result in entry["results"].values())
    ]
    titles = ["work", *(f"first calls, {PEERS[name].title}" for name in compilers)]
    titles += [f"each step waited for, {PEERS[name].title}" for name in behind]
    return table([*titles, *(f"peak bytes, {PEERS[name].title}" for name in weighed)], lines)


def failures(report):
    """A line for each peer that is missing, and for each row that failed."""
    lines = []
    for name, peer in report["peers"].items():
        if peer["status"] != "measured":
            lines.append(f"- {PEERS[name].title}: {peer['status']}")
    for entry in report["rows"]:
        for name, what in entry["errors"].items():
            lines.append(f"- {entry['name']}, {PEERS[name].title}: {what}")
    return lines


def note(report):
    """One paragraph: machine, versions, date and method."""
    machine, versions = report["machine"], dict(report["versions"])
    libraries = [f"Python {versions.pop('python')}"]
    libraries += [f"{name} {number}" for name, number in versions.items()]
    libraries += [
        f"{PEERS[name].title} {peer['version']}"
        for name, peer in report["peers"].items()
        if peer.get("version") and name not in ("compiled", "inductor")
    ]
    rates = report.get("rates")
    machine_does = ""
    if rates:
        copies = ", ".join(f"{r / 1e9:.0f} at {quantity(n, 'B')}" for n, r in rates["copy"])
        machine_does = (
            f"limit: the greater of bytes that must move (b) over the copy bandwidth ({copies}, in "
            "GB/s, read and written) and operations of the products (o) over the BLAS rate "
            f"({rates['blas'] / 1e9:.0f} Gflop/s), both measured in this run and counted as "
            "`benchmarks/limits.py` says. "
        )
    return (
        f"{machine['processor']}, {report['threads']} threads, {report['date']}; "
        f"{', '.join(libraries)}. Times: median of {report['rounds']} interleaved rounds, in "
        "brackets the best; each peer in a process of its own, denormals flushed, parameters reset "
        "each round; all start from the same values and must compute the same numbers. Lower is "
        f"better; `–`: not offered by this peer or not measured. {machine_does}"
        "First calls: seconds of the first two, compilation included, caches cold. JAX runs behind "
        "the caller: its times are of several steps and one wait. Peak bytes "
        "count activations, gradients and optimizer state: minigrad's by its allocator, PyTorch's "
        "by what its graph saves (in brackets, by its allocator), JAX's by XLA's plan. "
        "Made by `python -m benchmarks`."
    )


BRIEF = ("mlp-64-32-10", "mlp-784-512-512-10", "cnn-step", "transformer-step", "tiny-ops")


def brief(report):
    """A few rows for the README: minigrad beside the fastest peer, and what compiling costs."""
    entries = {entry["name"]: entry for entry in report["rows"]}
    lines = []
    for entry in (entries[name] for name in BRIEF if name in entries):
        results = entry["results"]
        peers = {n: r["median"] for n, r in results.items() if n not in ("minigrad", "compiled")}
        best = min(peers, key=peers.__getitem__, default=None)
        cells = [_median(results, name) for name in ("minigrad", "compiled")]
        first = results.get("compiled", {}).get("first")
        cells.append("–" if first is None else quantity(first, "s"))
        cells.append("–" if best is None else f"{_median(results, best)}, {PEERS[best].title}")
        lines.append([entry["title"], *cells])
    titles = ["work", "eager", "compiled", "its first calls", "fastest peer"]
    return "\n".join(table(titles, lines)) + "\n"


def _median(results, name):
    return quantity(results[name]["median"], "s") if name in results else "–"


def text(report):
    """The Markdown of a whole run."""
    parts = [times(report)]
    if any(entry["goals"] for entry in report["rows"]):
        parts.append(goals(report))
    if any("first" in r for entry in report["rows"] for r in entry["results"].values()):
        parts.append(costs(report))
    parts.append([note(report)])
    failed = failures(report)
    return "\n\n".join("\n".join(part) for part in (*parts, *([failed] if failed else []))) + "\n"
