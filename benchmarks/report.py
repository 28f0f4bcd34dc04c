"""Results as JSON and as Markdown, and in the README."""

import json
from pathlib import Path

from benchmarks import tables

START, END = "<!-- benchmarks:start -->", "<!-- benchmarks:end -->"
SCHEMA = 2


def collected(described, harness, rows):
    """Everything as one JSON object."""
    return {
        "schema": SCHEMA,
        **described,
        "threads": harness.threads,
        "rounds": harness.rounds,
        "seconds_per_round": harness.seconds,
        "rates": harness.rates,
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


def write_json(report, path):
    """Writes a report as JSON."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(report, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def write(report, folder):
    """Writes results.json and table.md into `folder`."""
    folder = Path(folder)
    write_json(report, folder / "results.json")
    (folder / "table.md").write_text(tables.text(report), encoding="utf-8")


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
