"""Tables, JSON, README and pictures of the benchmarks, from results that are made up."""

import json
from types import SimpleNamespace

import pytest

from benchmarks import growth, machine, plot, report, tables
from benchmarks.goals import Goal

HARNESS = SimpleNamespace(
    threads=2,
    rounds=5,
    seconds=0.4,
    status={"minigrad": "measured", "pytorch": "measured", "mygrad": "not installed"},
    versions={"minigrad": "0.1", "pytorch": "2.0"},
    rates={"copy": [[1_000_000, 5e10]], "blas": 1e11},
)


def result(median, nbytes=None):
    """What the harness says of one peer in one row."""
    timed = {"median": median, "best": median / 2, "rounds": [median] * 5, "steps": 10}
    return {**timed, "first": 3.0, "bytes": nbytes}


def entry(name, medians, errors=(), goals=(), limit=None):
    """One row as the harness returns it."""
    results = {peer: result(median, 2_000_000) for peer, median in medians.items()}
    return {
        "name": name,
        "title": f"title of {name}",
        "kind": "mlp",
        "settings": {},
        "limit": limit,
        "results": results,
        "errors": dict(errors),
        "numbers": {},
        "goals": [goal.judged(results) for goal in goals],
    }


def collected(*entries):
    """The report of a run with these rows."""
    return report.collected(machine.describe(), HARNESS, list(entries))


EAGER = Goal("minigrad", at_most=0.6, over=("pytorch",))
FASTER = Goal("minigrad", faster=3)
BYTES = Goal("minigrad", at_most=1, over=("pytorch",), figure="bytes")
LIMIT = {"seconds": 2e-4, "by": "bytes", "bytes": 8, "operations": 0}
FAST = entry("fast", {"minigrad": 1e-3, "pytorch": 2e-3}, (), (EAGER, FASTER, BYTES), LIMIT)
LONE = entry("lone", {"pytorch": 5e-3})
BROKEN = entry("broken", {"pytorch": 8e-6}, {"minigrad": "ValueError: broken"}, (EAGER,))


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
    assert tables.quantity(value, unit) == text


def test_quantity_with_others_shares_the_unit():
    assert tables.quantity(1.2e-3, "s", 0.95e-3) == "1.2 (0.95) ms"


def test_times_have_every_row_and_peer():
    lines = tables.text(collected(FAST, LONE, BROKEN)).splitlines()
    assert lines[0] == "| work | minigrad eager | PyTorch eager | limit |"
    assert lines[2] == "| title of fast | 1 (0.5) ms | 2 (1) ms | 200 µs b |"
    assert lines[3] == "| title of lone | – | 5 (2.5) ms | – |"
    assert lines[4] == "| title of broken | failed | 8 (4) µs | – |"
    assert "- MyGrad: not installed" in lines
    assert "- broken, minigrad eager: ValueError: broken" in lines


def test_goals_say_what_was_measured_and_whether_it_is_met():
    lines = tables.goals(collected(FAST, BROKEN))
    assert lines[2:] == [
        "| title of fast | eager | at most 0.6 × the time of PyTorch eager | "
        "0.5 (0.5) × PyTorch eager | yes |",
        "| title of fast | eager | 3 × faster than every peer | 2 (2) × PyTorch eager | no |",
        "| title of fast | eager | at most 1 × the peak bytes of PyTorch eager | "
        "1 (1) × PyTorch eager | yes |",
        "| title of broken | eager | at most 0.6 × the time of PyTorch eager | – | – |",
    ]


def test_costs_show_first_calls_and_bytes():
    lines = tables.costs(collected(FAST))
    assert lines[0].startswith("| work | first calls, minigrad eager | peak bytes, minigrad eager")
    assert lines[2] == "| title of fast | 3 s | 2 MB | 2 MB |"


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
    figures = {"median", "best", "rounds", "steps", "first", "bytes"}
    assert set(line["results"]["minigrad"]) == figures
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
    assert plot.bars(collected(FAST, LONE), path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_growth_writes_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    points = [{"value": v, "results": {"minigrad": result(1e-3 * v)}} for v in (1, 2, 4)]
    found = {
        "peers": {"minigrad": {}, "pytorch": {}},
        "panels": [{"axis": axis, "title": axis, "points": points} for axis in "abcd"],
    }
    growth.picture(found, tmp_path / "growth.png")
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")
