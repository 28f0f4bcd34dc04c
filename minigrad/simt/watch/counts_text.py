"""The counts of a launch as text: a table of accesses, then remarks."""

from minigrad.simt.machine.lanes import WARP


def text(counts, title):
    """Return the whole report, for a terminal."""
    lines = [f"{title}: {size(counts)}"]
    lines += _table(counts.accesses)
    lines += remarks(counts)
    return "\n".join(lines)


def size(counts):
    """Return the size of what ran: `4 blocks, 128 threads`."""
    blocks, threads = counts.blocks, counts.threads
    return f"{blocks:,} {_noun(blocks, 'block')}, {threads:,} {_noun(threads, 'thread')}"


def _table(accesses):
    if not accesses:
        return ["no access to memory"]
    head = ("line", "access", "warps", "lanes", "bytes", "cost / fewest", "")
    rows: list[tuple[str, ...]] = [head]
    for a in accesses:
        rows.append(
            (
                str(a.site.line),
                f"{a.kind} {_short(a.site.text)}",
                f"{a.warps:,}",
                f"{a.lanes / (WARP * a.warps):.0%}" if a.warps else "",
                f"{a.moved:,}",
                *cost(a),
            )
        )
    widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
    left = (False, True, False, False, False, True, True)
    return [
        "  ".join(
            cell.ljust(w) if at_left else cell.rjust(w)
            for cell, w, at_left in zip(row, widths, left, strict=True)
        ).rstrip()
        for row in rows
    ]


def cost(access):
    """Return the cost of an access: (`16 / 4 sectors`, what that means)."""
    if access.space == "shared":
        ratio = f"{access.turns:,} / {access.least_turns:,} passes"
        worst = access.worst.cost if access.worst else 1
        means = "no bank conflicts"
        if access.turns > access.least_turns:
            means = f"bank conflicts: up to {worst} passes for one warp"
    else:
        ratio = f"{access.sectors:,} / {access.least:,} sectors"
        means = "coalesced"
        if access.sectors > access.least:
            means = f"{access.efficiency:.0%} of the bytes moved are used"
    if access.kind == "atomic" and access.meetings > 1:
        means = f"up to {access.meetings} lanes of a warp take turns at one element"
    return ratio, means


def remarks(counts):
    """Return lines about branches, barriers, shuffles and operations in float64."""
    out = []
    for branch in counts.branches:
        if branch.split:
            share = f"{branch.split:,} {_noun(branch.split, 'time')}"
            out.append(f"line {branch.site.line}: a warp splits at `{branch.site.text}`, {share}")
    for events, what, each in (
        (counts.barriers, "barrier", "block"),
        (counts.warp_barriers, "syncwarp", "warp"),
        (counts.exchanges, "shuffle or vote", "warp"),
        (counts.matrices, "product of a tensor core", "warp"),
    ):
        for event in events:
            times = "once" if event.times == 1 else f"{event.times:,} times, each time"
            out.append(f"line {event.site.line}: {what}, passed {times} by one {each}")
    for event in counts.float64_operations:
        out.append(
            f"line {event.site.line}: {event.lanes:,} {_noun(event.lanes, 'operation')} in float64 "
            f"at `{_short(event.site.text)}`"
        )
    return out


def _noun(count, word):
    return word if count == 1 else word + "s"


def _short(text, most=44):
    return text if len(text) <= most else text[: most - 1] + "\u2026"
