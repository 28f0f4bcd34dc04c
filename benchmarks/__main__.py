"""The command: `python -m benchmarks --help`."""

import argparse
import json
import sys
from pathlib import Path

from benchmarks import machine, plot, report, rows, sweep
from benchmarks.harness import Harness
from benchmarks.peers import PEERS

HERE = Path(__file__).resolve().parent


def parser():
    """The command line."""
    p = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    p.add_argument("--rows", nargs="+", metavar="NAME", help="only these rows")
    p.add_argument("--peers", nargs="+", metavar="PEER", choices=list(PEERS), help="only these")
    p.add_argument("--rounds", type=int, default=5, help="turns of each peer per row (5)")
    p.add_argument("--seconds", type=float, default=0.4, help="length of a turn (0.4)")
    p.add_argument("--threads", type=int, default=2, help="threads of each peer (2)")
    p.add_argument("--quick", action="store_true", help="few rows, short rounds")
    p.add_argument("--sweep", action="store_true", help="times over width, depth and batch")
    p.add_argument("--list", action="store_true", help="lists the rows and stops")
    p.add_argument("--update-readme", action="store_true", help="puts the table into README.md")
    p.add_argument("--output", type=Path, default=HERE / "results", help="folder of the results")
    return p


def save_sweep(harness, described, arguments):
    """Runs the sweeps; writes sweep.json and sweep.png."""
    found = report.collected(described, harness, [])
    del found["rows"]
    found["sweeps"] = sweep.run(harness, arguments.quick)
    text = json.dumps(found, indent=1, ensure_ascii=False)
    (arguments.output / "sweep.json").write_text(text + "\n", encoding="utf-8")
    plot.sweep(found, arguments.output / "sweep.png")
    return any(point["errors"] for panel in found["sweeps"] for point in panel["points"])


def save_rows(harness, described, selected, arguments):
    """Runs rows; writes results.json, table.md and results.png, and the README if asked."""
    results = harness.run_all(selected)
    found = report.collected(described, harness, results)
    old = arguments.output / "results.json"
    if arguments.rows and old.exists():
        found = report.merged(json.loads(old.read_text(encoding="utf-8")), found)
    report.write(found, arguments.output)
    text = report.table(found)
    print("\n" + text)
    try:
        plot.bars(found, arguments.output / "results.png")
    except ImportError:
        print("no plot: matplotlib is not installed")
    if arguments.update_readme:
        report.update_readme(HERE.parent / "README.md", text)
    return any(entry["errors"] for entry in results)


def main(argv=None):
    """Runs what was asked for; 1 if a peer failed, or computed something else."""
    arguments = parser().parse_args(argv)
    if arguments.list:
        for row in rows.ROWS:
            print(f"{row.name:20} {row.title}; goal: {row.goal}")
        return 0
    selected = rows.chosen(arguments.rows, arguments.quick)
    if arguments.quick:
        arguments.rounds, arguments.seconds = min(arguments.rounds, 3), 0.1
    # PyTorch goes first: its numbers are what others are compared with.
    names = arguments.peers or list(PEERS)
    order = sorted(names, key=lambda name: name != "pytorch")
    arguments.output.mkdir(parents=True, exist_ok=True)
    described = machine.describe()
    with Harness(order, arguments.rounds, arguments.seconds, arguments.threads) as harness:
        harness.status = {name: harness.status[name] for name in PEERS if name in names}
        if arguments.sweep:
            failed = save_sweep(harness, described, arguments)
        else:
            failed = save_rows(harness, described, selected, arguments)
        as_should_be = ("measured", "not installed")
        return int(failed or any(state not in as_should_be for state in harness.status.values()))


if __name__ == "__main__":
    sys.exit(main())
