"""Tables, JSON, README and pictures of the benchmarks, from results that are made up."""

import json
from types import SimpleNamespace

import pytest

from benchmarks import harness, machine, plot, report, rows

HARNESS = SimpleNamespace(
    threads=2,
    rounds=5,
    seconds=0.4,
    status={"minigrad": "measured", "pytorch": "measured", "mygrad": "not installed"},
    versions={"minigrad": "0.1", "pytorch": "2.0"},
)


def result(median):
    """What the harness says of one peer in one row."""
    return {"median": median, "best": median / 2, "rounds": [median] * 5, "steps": 10}


def entry(name, medians, errors=(), **keywords):
    """One row as the harness returns it."""
    row = rows.Row(name, f"title of {name}", "mlp", **keywords)
    outcome = {
        "results": {peer: result(median) for peer, median in medians.items()},
        "errors": dict(errors),
        "numbers": {},
    }
    known = {
        "name": name,
        "title": row.title,
        "kind": row.kind,
        "unit": row.unit,
        "goal": row.goal,
        "goal_ratio": row.ratio,
    }
    return {**known, **outcome, **harness.judged(row, outcome["results"])}


def collected(*entries):
    """The report of a run with these rows."""
    return report.collected(machine.describe(), HARNESS, list(entries))


FAST = entry("fast", {"minigrad": 1e-3, "pytorch": 2e-3}, ratio=0.6)
LONE = entry("lone", {"pytorch": 5e-3})
BROKEN = entry("broken", {"pytorch": 8e-6}, {"minigrad": "ValueError: broken"}, ratio=1.0)
LARGE = entry("large", {"minigrad": 3e6, "pytorch": 2e6}, unit="B", ratio=1.0)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.234, "s", "1.23 s"),
        (0.0123456, "s", "12.3 ms"),
        (0.9999e-3, "s", "1 ms"),
        (0.9996e-3, "s", "1 ms"),
        (7.89e-6, "s", "7.89 µs"),
        (123.4e-6, "s", "123 µs"),
        (5e-10, "s", "0.5 ns"),
        (8_567_000, "B", "8.57 MB"),
        (0, "B", "0 B"),
    ],
)
def test_quantity_has_three_digits_and_a_unit(value, unit, text):
    assert report.quantity(value, unit) == text


def test_table_has_every_row_and_peer():
    lines = report.table(collected(FAST, LONE, BROKEN, LARGE)).splitlines()
    assert lines[0] == "| work | minigrad | PyTorch eager | to PyTorch (of best) | goal | met |"
    assert lines[2] == "| title of fast | 1 ms | 2 ms | 0.50 (0.50) | at most 0.6 × PyTorch | yes |"
    assert lines[3] == "| title of lone | – | 5 ms | – | – | – |"
    assert lines[4] == "| title of broken | failed | 8 µs | – | at most 1 × PyTorch | – |"
    assert lines[5] == "| title of large | 3 MB | 2 MB | 1.50 (1.50) | at most 1 × PyTorch | no |"
    assert "- MyGrad: not installed" in lines
    assert "- broken, minigrad: ValueError: broken" in lines


def test_write_makes_json_of_known_schema(tmp_path):
    report.write(collected(FAST), tmp_path / "new")
    found = json.loads((tmp_path / "new" / "results.json").read_text(encoding="utf-8"))
    assert found["schema"] == report.SCHEMA
    assert set(found["machine"]) == {
        "processor",
        "architecture",
        "cores",
        "memory_bytes",
        "system",
    }
    assert {"python", "numpy", "numba"} <= set(found["versions"])
    assert found["peers"]["pytorch"] == {"status": "measured", "version": "2.0"}
    line = found["rows"][0]
    assert set(line["results"]["minigrad"]) == {"median", "best", "rounds", "steps"}
    assert (tmp_path / "new" / "table.md").read_text(encoding="utf-8").startswith("| work |")


def test_merged_replaces_rows_and_keeps_others():
    old = collected(FAST, LONE)
    new = collected(LONE, BROKEN)
    both = report.merged(old, new)
    assert [line["name"] for line in both["rows"]] == ["fast", "lone", "broken"]
    assert both["rows"][1] is new["rows"][0]


def test_merged_other_machine_keeps_nothing():
    old, new = collected(FAST), collected(LONE)
    old["machine"] = {**old["machine"], "processor": "another"}
    assert report.merged(old, new) is new


def test_update_readme_replaces_only_what_is_between_the_marks(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"# a\n{report.START}\nold\n{report.END}\nz\n", encoding="utf-8")
    for _ in range(2):
        report.update_readme(readme, "new\n")
        expected = f"# a\n{report.START}\nnew\n{report.END}\nz\n"
        assert readme.read_text(encoding="utf-8") == expected


@pytest.mark.parametrize(
    "text", ["", report.START, f"{report.END} {report.START}", report.START * 2 + report.END]
)
def test_update_readme_without_marks_raises_and_writes_nothing(tmp_path, text):
    readme = tmp_path / "README.md"
    readme.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"README\.md"):
        report.update_readme(readme, "new\n")
    assert readme.read_text(encoding="utf-8") == text


def test_bars_writes_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "bars.png"
    assert plot.bars(collected(FAST, LONE, LARGE), path)
    assert path.read_bytes().startswith(b"\x89PNG")
