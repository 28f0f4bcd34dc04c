"""Analyse what the passes of a row kernel read, and what to keep in registers between them."""

from typing import NamedTuple

from minigrad.formulas.kinds import OWN
from minigrad.formulas.row_loops import elements, reductions


class RowPass(NamedTuple):
    """One pass over a row.

    Attributes:
        reductions: its row reductions; none in the last pass, which writes the outputs.
        inputs: names of the inputs whose elements it reads.
        first_kept: values that it is the first to compute, for later passes.
    """

    reductions: list
    inputs: list
    first_kept: list


def analysed(emitter, results, keeps):
    """Return (RowPasses of formulas, names of the inputs that several of them read).

    Args:
        emitter: the kernel's emitter.
        results: (formula, operand, mode) per output.
        keeps: whether values may be kept.
    """
    depth = max((e.depth for e, _, _ in results), default=0)
    levels = [reductions([e for e, _, _ in results], level) for level in range(1, depth + 1)]
    roots = [[e.args[0] for e in level] for level in levels]
    roots.append([e for e, _, mode in results if mode != "row"])
    costly = _costly(emitter, roots) if keeps else []
    passes, known = [], []
    for k, wanted in enumerate(roots):
        first = [e for e in costly if e not in known and e in elements(wanted, known)]
        inputs = {
            p.args[0]
            for p in elements(wanted, known)
            if p.op == "symbol" and emitter.varies(p) and p not in known
        }
        passes.append(RowPass(levels[k] if k < depth else [], sorted(inputs), first))
        known += first
    seen = [name for used in passes for name in used.inputs]
    return passes, sorted({n for n in seen if seen.count(n) > 1}) if keeps else []


def _costly(emitter, roots):
    """Return the outermost costly values that several passes need, in order of appearance."""
    counts = {}
    for wanted in roots:
        for p in elements(wanted):
            if p.op in OWN and emitter.varies(p):
                counts[p] = counts.get(p, 0) + 1
    several = [p for p, count in counts.items() if count > 1]
    inside = {q for p in several for q in elements([p]) if q is not p}
    return [p for p in several if p not in inside]


def words_kept(emitter, results):
    """Count the 32-bit registers that a thread needs for each element of a row it keeps."""
    passes, kept_inputs = analysed(emitter, results, True)
    real = 2 if emitter.real == "F8" else 1
    words = sum(max(1, emitter.operands[n].kind.itemsize // 4) for n in kept_inputs)
    words += real * sum(len(used.first_kept) for used in passes)
    return words + real * sum(mode == "columns" for _, _, mode in results)
