"""Random programs, in minigrad and in PyTorch: `python -m tests.against_pytorch --programs 20000`.

Prints how many agree, and each that does not, with its seed: `--seed N --programs 1` repeats it.
`--compiled` runs minigrad's side as a compiled step. `--write` writes the programs that the tests
hold without PyTorch (`tests/test_random_programs.py`), with PyTorch's numbers.
"""

import argparse
import collections
import sys
import warnings

from minigrad.errors import InPlaceError, MinigradError, SavedValueModifiedError
from tests.against_pytorch import kept, on_minigrad, on_pytorch
from tests.against_pytorch.compare import difference


def tried(seed, compiled):
    """(what came of one program, a line about it)."""
    program = on_pytorch.draw(seed)
    if program is None or not program.steps:
        return "not drawn", ""
    try:
        wanted = on_pytorch.run(program)
    except RuntimeError as error:
        wanted = error
    try:
        got = on_minigrad.run(program, compiled)
    except MinigradError as error:
        got = error
    if isinstance(wanted, RuntimeError):
        if isinstance(got, MinigradError):
            return "both raise", ""
        if "modified by an inplace" not in str(wanted):
            return "MISMATCH", f"PyTorch: {wanted}"
        try:
            wanted = on_pytorch.run(program, in_place=False)
        except on_pytorch.AliasError:
            return "computed by minigrad alone, unchecked", ""
        found = difference(program.dtype, wanted, got)
        return ("MISMATCH", found) if found else ("equal to out of place, which PyTorch needs", "")
    if isinstance(got, MinigradError):
        is_rule = isinstance(got, (InPlaceError, SavedValueModifiedError))
        return ("minigrad refuses a write" if is_rule else "MISMATCH"), f"minigrad: {got!r}"
    found = difference(program.dtype, wanted, got)
    return ("MISMATCH", found) if found else ("equal", "")


def truth(program):
    """PyTorch's numbers, or None where it has none."""
    try:
        return on_pytorch.run(program, in_place=False)
    except (RuntimeError, on_pytorch.AliasError):
        return None


def main():
    """Tries programs, or writes those that the tests hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--compiled", action="store_true", help="as compiled steps")
    parser.add_argument("--write", action="store_true", help="write what the tests hold")
    options = parser.parse_args()
    warnings.simplefilter("ignore")

    if options.write:
        return kept.write(on_pytorch.draw, truth)
    counts = collections.Counter()
    for seed in range(options.seed, options.seed + options.programs):
        try:
            kind, line = tried(seed, options.compiled)
        except Exception as error:  # neither library's own: always worth a look
            kind, line = "CRASH", f"{type(error).__name__}: {error}"
        counts[kind] += 1
        if kind in ("MISMATCH", "CRASH"):
            print(f"--- {kind}, seed {seed}: {line}\n{on_pytorch.draw(seed).text()}", flush=True)
    total = counts.total() - counts["not drawn"]
    print(f"{total} programs: " + ", ".join(f"{n} {kind}" for kind, n in counts.most_common()))
    return counts["MISMATCH"] + counts["CRASH"]


if __name__ == "__main__":
    sys.exit(min(main() or 0, 100))
