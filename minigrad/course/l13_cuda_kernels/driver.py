"""Runs kernels on the simulated machine, in the learner's process, for the checks of lesson 13.

Returns the machine's report as plain data: the arrays, the counts, or the fault.
"""

import inspect
import os
import re

import numpy as np

from minigrad.errors import MinigradError
from minigrad.simt import launch
from minigrad.simt.counts.counts import Counts
from minigrad.simt.watch.interleaving import run_in_some_order


def kernel_of(mine, name):
    """Return a learner's kernel as a plain function; raise if it is untouched."""
    kernel = getattr(mine, name)
    kernel = inspect.unwrap(getattr(kernel, "py_func", kernel))
    if getattr(getattr(kernel, "__code__", None), "co_names", ()) == ("NotImplementedError",):
        raise NotImplementedError(f"{name} is yours to write")
    return kernel


def told(error, kernel):
    """Return an error as plain data, with line 0 if it names no line of the kernel's file."""
    name = re.escape(os.path.basename(kernel.__code__.co_filename))
    place = re.match(rf"{name}:(\d+)(?:  (.*))?", str(error.where or ""))
    return {
        "raised": type(error).__name__,
        "wanted": str(error.wanted),
        "got": str(error.got or ""),
        "fix": str(error.fix or ""),
        "details": [[str(label), str(text)] for label, text in error.details],
        "line": int(place[1]) if place else 0,
        "text": (place[2] or "") if place else "",
    }


class Written(Counts):
    """Counts that also follow each byte of an argument, and each thread.

    `last[name]` is the line that last wrote each byte, 0 for none; `reads[name]` the number of
    reads of the element that begins there; `writers` and `readers` the grid-wide number of the last
    thread to do so. `of_one`: the most reads of shared memory by one thread; `of_round`: the most
    of these between two barriers; `shared`: the shared arrays of one wave of blocks.
    """

    def __init__(self):
        super().__init__()
        self.last, self.sites, self.reads = {}, {}, {}
        self.writers, self.readers, self.shared = {}, {}, []
        self.of_one, self.of_each = 0, np.zeros(0, int)
        self.of_round, self.since = 0, np.zeros(0, int)

    def wave(self, lanes):
        """Record that blocks begin to run; see Counts."""
        super().wave(lanes)
        self.shared = []
        self.of_each, self.since = np.zeros((2, lanes.count), int)

    def barrier(self, site, active, scope="block"):
        """Record that all of a block or warp have arrived; see Counts."""
        super().barrier(site, active, scope)
        self.since[slice(None) if active is None else active] = 0

    def access(self, kind, region, site, byte, nbytes, active):
        """Record one statement's access; see Counts."""
        super().access(kind, region, site, byte, nbytes, active)
        if kind == "load" and region.space == "shared":
            for reads in (self.of_each, self.since):
                reads += True if active is None else active
            self.of_one = max(self.of_one, int(self.of_each.max()))
            self.of_round = max(self.of_round, int(self.since.max()))
        if region.space == "shared" and region not in self.shared:
            self.shared.append(region)
        if region.space != "global":
            return
        lanes = self.lanes
        byte = np.broadcast_to(byte, lanes.count)
        thread = (lanes.first + lanes.block) * lanes.threads + lanes.thread
        used, thread = (a if active is None else a[active] for a in (byte, thread))
        seen = self.reads if kind == "load" else self.last
        by = self.readers if kind == "load" else self.writers
        if region.name not in seen:
            seen[region.name] = np.zeros(region.data.size, np.int32)
            by[region.name] = np.full(region.data.size, -1)
        by[region.name][used] = thread
        if kind == "load":
            np.add.at(self.reads[region.name], used, 1)
        else:
            self.last[region.name][used[:, None] + np.arange(nbytes)] = site.line
            self.sites[site.line] = site


def line_text(site):
    """Return the source line of a site."""
    return str(site.where).partition("  ")[2].strip() or site.text


def launched(mine, name, blocks, threads, arguments):
    """Launch a kernel; return its arguments afterwards, and the counts.

    "lines" has an entry per argument: the line that last wrote each element, or None. So have
    "reads", the number of reads of each, "writers" and "readers". For the others see Written.
    """
    kernel, counts = kernel_of(mine, name), Written()
    try:
        launch(kernel, blocks, threads, arguments, counts=counts)
    except MinigradError as error:
        return told(error, kernel)
    accesses = []
    for a in counts.accesses:
        costs = a.sectors, a.least, a.turns, a.least_turns
        accesses.append(
            [a.kind, a.space, a.array, a.site.line, line_text(a.site), a.warps, a.lanes, *costs]
        )
    by_element = {
        what: [
            None if (seen := of.get(name)) is None else seen[:: given.itemsize]
            for name, given in zip(inspect.signature(kernel).parameters, arguments, strict=True)
        ]
        for what, of in (
            ("lines", counts.last),
            ("reads", counts.reads),
            ("writers", counts.writers),
            ("readers", counts.readers),
        )
    }
    return {
        **by_element,
        "arguments": list(arguments),
        "of_one": counts.of_one,
        "of_round": counts.of_round,
        "shared": [[region.name, int(np.prod(region.shape))] for region in counts.shared],
        "texts": [[line, line_text(site)] for line, site in counts.sites.items()],
        "accesses": accesses,
        "barriers": [[e.site.line, e.times] for e in counts.barriers],
        "float64": [[e.site.line, e.site.text, e.lanes] for e in counts.float64_operations],
    }


def in_orders(mine, name, blocks, threads, arguments, seeds):
    """Run a kernel once per seed, its warps in an order drawn from it; return all results."""
    kernel, results = kernel_of(mine, name), []
    for seed in seeds:
        given = [np.array(a) if isinstance(a, np.ndarray) else a for a in arguments]
        try:
            run_in_some_order(kernel, blocks, threads, given, seed=seed)
        except MinigradError as error:
            return told(error, kernel)
        results.append(given)
    return {"results": results}
