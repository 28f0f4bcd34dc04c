"""`python -m benchmarks.gpu --check --bench`: correct on this GPU, and how fast, in 10 minutes."""

import argparse
import sys
import time

from benchmarks.gpu import ahead, bandwidth, check, launches, products, report, sanitizer, steps
from minigrad.devices import backend
from minigrad.devices.gpu.driver import state as cuda_state

SECTIONS = {
    "Bandwidth": bandwidth.rows,
    "Matrix products, float32": products.rows,
    "Launches, as Python sees them": launches.rows,
    "Training steps": steps.rows,
}
SECONDS = 540  # no section begins later: the command ends within 10 minutes


def main(arguments=None):
    """Runs what was asked for; the exit status is 0 if nothing failed."""
    options = parsed(arguments)
    started = time.perf_counter()
    if not options.dry_run and (reason := cuda_state.why_not()) is not None:
        print(f"Nothing was run, and nothing is recorded: {reason}")
        print("The checks alone, on the simulator: python -m benchmarks.gpu --check --dry-run")
        return 2
    place = "simt" if options.dry_run else "cuda"
    if options.check and not options.dry_run and not options.quick:
        ahead.compile_all(place, options.ops)
        print(f"Kernels compiled in {time.perf_counter() - started:.0f} s", flush=True)
    checks = list(run_checks(place, options)) if options.check else []
    memory, is_clean = None, True
    if options.check and not options.dry_run and not options.quick:
        left = SECONDS - (time.perf_counter() - started)
        memory, is_clean = sanitizer.run(min(sanitizer.SECONDS, max(left, 0)))
        print(memory, flush=True)
    if options.check:
        record(options, checks, memory, {})  # it stays, whatever happens to the measurements
    sections = run_bench(backend.device_named(place), started) if options.bench else {}
    is_right = is_clean and not any(c.failures for c in checks)
    is_whole = not any(stopped for _, stopped in sections.values())
    if options.bench:
        record(options, checks, memory, sections)
    print(f"{'Correct' if is_right else 'WRONG'}; {time.perf_counter() - started:.0f} s")
    return 0 if is_right and is_whole else 1


def record(options, checks, memory, sections):
    """Writes the page, where everything was checked, or measured, on a GPU."""
    if not options.dry_run and not options.quick and options.ops is None:
        options.out.parent.mkdir(exist_ok=True, parents=True)
        options.out.write_text(report.text(checks, memory, sections), encoding="utf-8")
        print(f"Recorded in {options.out}", flush=True)


def parsed(arguments):
    """The options; a combination that makes no sense ends the program."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare everything with the CPU")
    parser.add_argument("--bench", action="store_true", help="measure; needs a GPU")
    parser.add_argument("--dry-run", action="store_true", help="check on the simulator instead")
    parser.add_argument("--quick", action="store_true", help="fewer checks; records nothing")
    parser.add_argument("--ops", nargs="*", help="check these operations only; records nothing")
    parser.add_argument("--out", type=type(report.RESULTS), default=report.RESULTS)
    options = parser.parse_args(arguments)
    if not (options.check or options.bench):
        parser.error("say --check, --bench or both")
    if options.bench and options.dry_run:
        parser.error("the simulator's times say nothing about a GPU: --dry-run goes with --check")
    unknown = sorted({*(options.ops or ())} - {*check.checked_ops()})
    if unknown:
        parser.error(f"--ops: no such operations: {', '.join(unknown)}")
    return options


def run_checks(place, options):
    """The Checkeds, each printed when it is done."""
    for found in check.all_checks(place, options.ops, options.quick):
        state = "ok" if not found.failures else f"{len(found.failures)} FAILED"
        print(f"{found.name}: {found.count} comparisons, {state}", flush=True)
        for line in found.failures:
            print(f"  {line}", flush=True)
        yield found


def run_bench(device, started):
    """title -> (Rows, what stopped it): a section that fails leaves the others."""
    sections = {}
    for title, rows_of in SECTIONS.items():
        rows, stopped = [], None
        print(f"\n{title}", flush=True)
        try:
            if time.perf_counter() - started > SECONDS:
                raise TimeoutError("the 10 minutes are over")
            for row in rows_of(device):
                rows.append(row)
                met = {True: "met", False: "MISSED", None: ""}[row.is_met()]
                share = "" if row.share is None else f"{row.share:.0%}"
                print(f"  {row.what}: {row.value:.4g} {row.unit} {share} {met}", flush=True)
        except Exception as error:  # the others are measured all the same
            stopped = f"{type(error).__name__}: {error}"
            print(f"  stopped by {stopped}", flush=True)
        sections[title] = rows, stopped
    return sections


if __name__ == "__main__":
    sys.exit(main())
