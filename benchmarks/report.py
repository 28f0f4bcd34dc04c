"""Results as a Markdown table, as JSON, and in the README."""

import json
from pathlib import Path

from benchmarks.peers import PEERS

START, END = "<!-- benchmarks:start -->", "<!-- benchmarks:end -->"
SCHEMA = 1


def quantity(value, unit):
    """A figure with three significant digits: `123 µs`, `4.56 ms`, `7.8 MB`."""
    scales = {
        "s": [(1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")],
        "B": [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")],
    }[unit]
    # Compared after rounding: 999.9 µs is 1 ms.
    scale, name = next((s for s in scales if float(f"{value:.3g}") >= s[0]), scales[-1])
    digits = f"{value / scale:.3g}"
    if "e" in digits:
        digits = f"{value / scale:.0f}"
    return f"{digits} {name}"


def cell(entry, peer):
    """What the table says about one peer in one row."""
    if peer in entry["errors"]:
        return "failed"
    result = entry["results"].get(peer)
    return "–" if result is None else quantity(result["median"], entry["unit"])


def table(report):
    """The Markdown table, with a note of what was measured how, and with what failed."""
    shown = [name for name, peer in report["peers"].items() if peer["status"] == "measured"]
    others = {name: peer for name, peer in report["peers"].items() if name not in shown}
    titles = [PEERS[name].title for name in shown]
    lines = [
        "| work | " + " | ".join(titles) + " | to PyTorch (of best) | goal | met |",
        "|---|" + "---:|" * (len(shown) + 1) + "---|---|",
    ]
    for entry in report["rows"]:
        ratio = (
            "–"
            if entry["ratio"] is None
            else f"{entry['ratio']:.2f} ({entry['ratio_of_best']:.2f})"
        )
        met = {True: "yes", False: "no", None: "–"}[entry["goal_met"]]
        cells = [cell(entry, name) for name in shown]
        lines.append(f"| {' | '.join([entry['title'], *cells, ratio, entry['goal'], met])} |")
    lines += ["", note(report)]
    for name, peer in others.items():
        lines.append(f"- {PEERS[name].title}: {peer['status']}")
    for entry in report["rows"]:
        for name, what in entry["errors"].items():
            lines.append(f"- {entry['name']}, {PEERS[name].title}: {what}")
    return "\n".join(lines) + "\n"


def note(report):
    """One paragraph: machine, versions, date and method."""
    machine, versions = report["machine"], dict(report["versions"])
    libraries = [f"Python {versions.pop('python')}"]
    libraries += [f"{name} {number}" for name, number in versions.items()]
    libraries += [
        f"{PEERS[name].title} {peer['version']}"
        for name, peer in report["peers"].items()
        if peer.get("version")
    ]
    return (
        f"{machine['processor']}, {report['threads']} threads, {report['date']}; "
        f"{', '.join(libraries)}. Median of {report['rounds']} interleaved rounds, each peer in "
        "a process of its own; all start from the same values and must compute the same "
        "numbers. The ratio is of medians, in brackets of the best. Lower is better; `–`: not "
        "offered by this peer or not measured. "
        "Peak bytes count activations, gradients and optimizer state. "
        "Made by `python -m benchmarks`.\n"
    )


def collected(described, harness, rows):
    """Everything as one JSON object."""
    return {
        "schema": SCHEMA,
        **described,
        "threads": harness.threads,
        "rounds": harness.rounds,
        "seconds_per_round": harness.seconds,
        "peers": {
            name: {"status": status, "version": harness.versions.get(name)}
            for name, status in harness.status.items()
        },
        "rows": rows,
    }


def merged(old, new):
    """`new` with the rows that only `old` has, in the order of the table.

    Rows of another machine or another set of peers are not kept: figures compare only within
    one machine.
    """
    same = all(old.get(key) == new[key] for key in ("schema", "machine", "threads"))
    if not same or set(old["peers"]) != set(new["peers"]):
        return new
    fresh = {entry["name"]: entry for entry in new["rows"]}
    kept = [fresh.pop(entry["name"], entry) for entry in old["rows"]]
    return {**new, "rows": [*kept, *fresh.values()]}


def write(report, folder):
    """Writes results.json and table.md into `folder`."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(report, indent=1, ensure_ascii=False)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")
    (folder / "table.md").write_text(table(report), encoding="utf-8")


def update_readme(path, text):
    """Puts `text` between the two marks of the README. Raises ValueError if they are not there."""
    path = Path(path)
    content = path.read_text(encoding="utf-8")
    if content.count(START) != 1 or content.count(END) != 1:
        raise ValueError(f"{path.name} needs exactly one {START} and one {END}")
    before, rest = content.split(START)
    if END not in rest:
        raise ValueError(f"{path.name} has {END} before {START}")
    after = rest.split(END)[1]
    path.write_text(f"{before}{START}\n{text}{END}{after}", encoding="utf-8")
