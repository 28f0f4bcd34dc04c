"""The command: `python -m benchmarks --help`."""

import argparse
import json
import sys
from pathlib import Path

from benchmarks import machine, plot, report, rows, tables
from benchmarks.harness import Harness
from benchmarks.peers import PEERS
from benchmarks.process import last_line

HERE = Path(__file__).resolve().parent


def parser():
    """The command line."""
    p = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    p.add_argument("--only", nargs="+", metavar="ROW", help="only these rows; others are kept")
    p.add_argument("--peers", nargs="+", metavar="PEER", choices=list(PEERS), help="only these")
    p.add_argument("--rounds", type=int, default=5, help="turns of each peer per row (5)")
    p.add_argument("--seconds", type=float, default=0.3, help="length of a turn (0.3)")
    p.add_argument("--threads", type=int, default=2, help="threads of each peer (2)")
    p.add_argument("--quick", action="store_true", help="few rows, short rounds")
    p.add_argument("--list", action="store_true", help="lists the rows and stops")
    p.add_argument("--update-readme", action="store_true", help="puts five rows into README.md")
    p.add_argument("--output", type=Path, default=HERE / "results", help="folder of the results")
    return p


def order(names):
    """PyTorch first: its numbers are what others are compared with."""
    return sorted(names or PEERS, key=lambda name: name != "pytorch")


def save(harness, described, selected, arguments):
    """Runs rows; writes results.json, table.md and results.png, and the README if asked."""
    results = harness.run_all(selected)
    found = report.collected(described, harness, results)
    old = arguments.output / "results.json"
    if arguments.only and old.exists():
        found = report.merged(json.loads(old.read_text(encoding="utf-8")), found)
    report.write(found, arguments.output)
    text = tables.text(found)
    print("\n" + text)
    try:
        plot.bars(found, arguments.output / "results.png")
    except ImportError:
        print("no plot: matplotlib is not installed")
    if arguments.update_readme:
        report.update_readme(HERE.parent / "README.md", tables.brief(found))
    return any(entry["errors"] for entry in results)


def main(argv=None):
    """Runs what was asked for; 1 if a peer failed, or computed something else."""
    arguments = parser().parse_args(argv)
    if arguments.list:
        for row in rows.ROWS:
            goals = "; ".join(f"{goal.who}: {goal.text}" for goal in row.goals) or "no goal"
            print(f"{row.name:20} {row.title}\n{'':20} {goals}")
        return 0
    selected = rows.chosen(arguments.only, arguments.quick)
    if arguments.quick:
        arguments.rounds, arguments.seconds = min(arguments.rounds, 3), 0.1
    described = machine.describe()
    # Before the peers start, so that the machine does nothing else.
    threads = arguments.threads
    rates = json.loads(last_line(["-m", "benchmarks.rates", str(threads)], threads))
    names = order(arguments.peers)
    with Harness(names, arguments.rounds, arguments.seconds, threads, rates=rates) as harness:
        harness.status = {name: harness.status[name] for name in PEERS if name in harness.status}
        failed = save(harness, described, selected, arguments)
        as_should_be = ("measured", "not installed")
        return int(failed or any(state not in as_should_be for state in harness.status.values()))


if __name__ == "__main__":
    sys.exit(main())
