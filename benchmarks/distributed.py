"""Training by several ranks, sums over them, and their faults: `python -m benchmarks.distributed`.

Writes results/distributed.json, distributed.md and distributed.png. `--faults N` measures the
faults instead, N rounds of each, in one to three minutes a round. It needs the extras `distributed`
and `bench`. Every turn starts its ranks anew, by `minigrad run` or by torchrun.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks import fault_rounds
from benchmarks.collective_costs import fitted, picture, size_name
from benchmarks.machine import describe, in_words
from benchmarks.process import ROOT, PeerError, last_line
from benchmarks.ranks.work import WARM_UP, WORKS
from benchmarks.report import write_json
from benchmarks.tables import digits, quantity, table

HERE = Path(__file__).parent
SCRIPTS = ROOT / "benchmarks" / "ranks"
PROCESSES = [(1, 2), (1, 1), (2, 1), (4, 1)]  # (ranks, threads of each)
SUMMED = (1, 2, 4)  # ranks
TITLES = {
    "minigrad": "minigrad eager",
    "compiled": "minigrad, compiled loss",
    "pytorch": "PyTorch DDP, gloo",
}
TRAINERS = ("minigrad_train", "pytorch_train")


def launch(script: str, ranks: int, threads: int, *arguments: str) -> Any:
    """Run a script by several ranks; return what rank 0 prints, or raise PeerError."""
    minigrad = ["-m", "minigrad.cli.main", "run", "-n", f"{ranks}"]
    torch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", f"{ranks}"]
    words = torch if script.startswith("pytorch") else minigrad
    path = f"{SCRIPTS / script}.py"
    return json.loads(last_line([*words, path, *arguments], threads))


def train(turns: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Return what the trainers say in each of their turns, and which turns failed, how."""
    found, failed = [], []
    for turn in range(turns):
        for ranks, threads in PROCESSES:
            for script in TRAINERS[:: 1 if turn % 2 else -1]:
                title = f"{script}, {named(ranks, threads)}, turn {turn + 1}"
                say(title)
                try:
                    told = launch(script, ranks, threads)
                except PeerError as error:
                    failed.append(f"{title}: {error}")
                    say(f"  {error}")
                else:
                    found.append({"ranks": ranks, "threads": threads, "found": told})
    return found, failed


def summarize(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return an entry for each work and way.

    `seconds`: the least of the turns' medians, by number of processes; `apart`: the largest
    difference of a loss from that of one process, relative to it; `curve`: the losses of one.
    """
    entries = []
    for name in WORKS:
        for way in TITLES:
            mine = [
                (t["ranks"], t["threads"], t["found"][way][name])
                for t in turns
                if way in t["found"]
            ]
            alone = next((one["losses"] for ranks, _, one in mine if ranks == 1), None)
            if alone is None:
                continue
            times = [
                min((m["seconds"] for *key, m in mine if (*key,) == one), default=None)
                for one in PROCESSES
            ]
            apart = max(apart_by(m["losses"], alone) for *_, m in mine)
            entries.append(
                {"work": name, "way": way, "seconds": times, "apart": apart, "curve": alone}
                | {"bytes": mine[0][2]["bytes"]}
            )
    return entries


def apart_by(losses: list[float], others: list[float]) -> float:
    """Return the largest relative difference of two curves of the same length."""
    return max(abs(a - b) / abs(b) for a, b in zip(losses, others, strict=True))


def measure_steps(turns: int) -> dict[str, Any]:
    """Measure training."""
    described = describe()
    told, failed = train(turns)
    return {"machine": described, "turns": turns, "entries": summarize(told), "failed": failed}


def measure_sums(turns: int) -> dict[str, Any]:
    """Measure sums: they are short, so there are five times as many turns."""
    found = {"machine": describe(), "turns": 5 * turns, "ranks": {}}
    for ranks in SUMMED:
        say(f"sums, {counted(ranks)}")
        found["ranks"][f"{ranks}"] = launch("sums", ranks, 1, f"{found['turns']}")
    return found


def step_lines(part: dict[str, Any]) -> list[str]:
    """The section on training."""
    titles = ["training", "by", *(named(*one) for one in PROCESSES), "gradients", "loss differs by"]
    rows = [
        [
            WORKS[e["work"]].title,
            TITLES[e["way"]],
            *("–" if s is None else quantity(s, "s") for s in e["seconds"]),
            quantity(e["bytes"], "B"),
            f"{e['apart']:.0e}",
        ]
        for e in part["entries"]
    ]
    cores = part["machine"]["machine"]["cores"]
    return [
        "## Steps",
        "",
        *table(titles, rows),
        "",
        "Time of a step, from the batch to the loss as a number, forward, backward, reduction and "
        f"Adam: the least of {part['turns']} turns, each the median of its steps without the first "
        f"{WARM_UP}. "
        "Trainers take turns, each in fresh processes. All train on the same batches, of all ranks "
        "together, from the same values, with Adam. PyTorch's settings are its defaults but for "
        "the fused Adam. The last column: how far, relative to it, the loss of any step with any "
        f"number of processes is from that of one process. Both libraries: {between(part)}.",
        "",
        f"What {cores} cores can show: no more than {cores} processes compute at a time. To use "
        f"{cores} cores there are two ways, one process of several threads, and several processes; "
        f"{cores} processes take at best 1/{cores} of the time of one that has one thread. More "
        f"processes than cores (4 of them here) wait for each other's turns: they show that the "
        "losses stay the same, and what that costs, but no speedup. Nothing here says how training "
        "scales over machines.",
        *(f"\nFailed: {text}." for text in part["failed"]),
        "",
        made(part),
    ]  # fmt: skip


def between(part: dict[str, Any]) -> str:
    """Say how far the losses of minigrad and PyTorch are apart."""
    texts = []
    for name in WORKS:
        curves = {e["way"]: e["curve"] for e in part["entries"] if e["work"] == name}
        if {"minigrad", "pytorch"} <= curves.keys():
            texts.append(f"{apart_by(curves['minigrad'], curves['pytorch']):.0e} ({name})")
    return f"losses apart by at most {', '.join(texts)}" if texts else "PyTorch was not measured"


def sum_lines(part: dict[str, Any]) -> list[str]:
    """The sections on sums, and on the model."""
    titles = ["float32"]
    for ranks in SUMMED:
        titles += [f"`all_reduce`, {counted(ranks)}", f"mpi4py, {counted(ranks)}"]
    rows = [
        [size_name(lines[0][0]), *(quantity(s, "s") for _, *pair in lines for s in pair)]
        for lines in zip(*(part["ranks"][f"{n}"]["sums"] for n in SUMMED), strict=True)
    ]
    barriers = [
        f"{quantity(part['ranks'][f'{n}']['barrier'], 's')} with {counted(n)}" for n in SUMMED
    ]
    link, call = fitted(*sums_of(part))
    return [
        "## Sums",
        "",
        *table(titles, rows),
        "",
        f"Time of a call: the least of {part['turns']} turns, which alternate in one run; the "
        "ranks have one thread each. mpi4py: `Allreduce` into an array that is there already. "
        "`all_reduce` compares the calls of all ranks first, "
        f"by {part['ranks']['2']['told']} bytes to each other rank, copies its operand, and "
        "makes a Variable of the result. A "
        f"`barrier`, which only compares: {', '.join(barriers)}. Of 4 ranks on "
        f"{part['machine']['machine']['cores']} cores the times are the scheduler's, too.",
        "",
        "## More ranks: a model",
        "",
        "![all-reduce measured over bytes; modelled over ranks](distributed.png)",
        "",
        "The two costs of a message are fitted to mpi4py's times with 2 ranks, on one machine: a "
        f"latency of {quantity(link.latency, 's')}, and a bandwidth of {bandwidth(link.per_byte)}. "
        "For S bytes a ring of n ranks takes 2 (n − 1) (latency + S / n / bandwidth), a tree "
        "2 log₂ n (latency + S / bandwidth). `all_reduce` is the ring and what it adds: by its "
        f"times with 1 rank {quantity(call.own, 's')}, and copies at {bandwidth(call.per_byte)}; "
        f"by the barriers {quantity(call.message, 's')} for each of the n − 1 ranks that it tells "
        "what it calls. So its line for 2 ranks, on the left, was not fitted to the points there. "
        "Points of 4 ranks above the lines have shared cores: the model gives each rank one. A "
        "network has other costs, and ranks that come late: its two figures, put into "
        "`benchmarks/collective_costs.py`, give an estimate for it. All ranks tell all others what "
        "they call: the dotted lines show from how many ranks on that counts.",
        "",
        made(part, part["ranks"]["1"]["mpi"]),
    ]  # fmt: skip


def sums_of(part: dict[str, Any]) -> tuple[dict[int, Any], dict[int, float]]:
    """Return sums and barriers as `fitted` takes them, by ranks; JSON's keys are texts."""
    ranks = {int(n): found for n, found in part["ranks"].items()}
    sums = {n: found["sums"] for n, found in ranks.items()}
    return sums, {n: found["barrier"] for n, found in ranks.items()}


def bandwidth(per_byte: float) -> str:
    """Say how many bytes move in a second."""
    return f"{digits(1e-9 / per_byte)} GB/s" if per_byte else "no limit that was measured"


def made(part: dict[str, Any], *libraries: str) -> str:
    """Say when and on what a part was measured."""
    versions = [f"{name} {number}" for name, number in part["machine"]["versions"].items()]
    is_busy = (part["machine"]["load_at_start"] or 0) >= 1
    return (
        f"{in_words(part['machine'])}; {', '.join([*versions, *libraries])}. "
        f"{'Other programs ran at the same time, which makes times longer. ' if is_busy else ''}"
        "`python -m benchmarks.distributed`."
    )


def write(found: dict[str, Any], folder: Path) -> None:
    """Write the results, {part: what was measured}, of as many parts as there are."""
    write_json(found, folder / "distributed.json")
    lines = ["# Several ranks", ""]
    for name, make in LINES.items():
        if name in found:
            lines += [*make(found[name]), ""]
    (folder / "distributed.md").write_text("\n".join(lines), encoding="utf-8")
    if "sums" in found:
        try:
            picture(*sums_of(found["sums"]), folder / "distributed.png")
        except ImportError:
            say("no plot: matplotlib is not installed")


MEASURES = {"steps": measure_steps, "sums": measure_sums}
LINES = {"steps": step_lines, "sums": sum_lines, "faults": fault_rounds.lines}


def named(ranks: int, threads: int) -> str:
    """Return `2 processes`, with the threads where they have several."""
    text = counted(ranks, "process", "processes")
    return f"{text} of {threads} threads" if threads > 1 else text


def counted(n: int, one: str = "rank", several: str = "ranks") -> str:
    """Return `1 rank`, `2 ranks`."""
    return f"{n} {one if n == 1 else several}"


def say(text: str) -> None:
    """Print a line of progress."""
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """Measure; write, draw and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.distributed", description=__doc__)
    parser.add_argument("--turns", type=int, default=3, help="of each trainer (3)")
    about = "steps, sums (both); without a name nothing is measured, and all is written again"
    parser.add_argument("--only", nargs="*", choices=MEASURES, default=[*MEASURES], help=about)
    parser.add_argument("--faults", type=int, metavar="N", help="measure faults, N rounds of each")
    parser.add_argument("--output", type=Path, default=HERE / "results", help="folder of results")
    options = parser.parse_args()
    path = options.output / "distributed.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    try:
        if options.faults:
            found["faults"] = fault_rounds.measure(options.faults, say)
        else:
            found |= {name: MEASURES[name](options.turns) for name in options.only}
    except PeerError as error:
        say(f"{error}. pip install -e '.[bench,distributed]' -c constraints.txt")
        return 1
    write(found, options.output)
    print((options.output / "distributed.md").read_text(encoding="utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
