"""Loops -> closures: each round runs the lanes still in the loop, until there are none."""

import ast
import os
import time

import numpy as np

from minigrad.errors import ArgumentError, EndlessLoopError
from minigrad.simt.language.part import LanguagePart
from minigrad.simt.machine.faults import fault
from minigrad.simt.machine.frame import decide, taken
from minigrad.simt.machine.masks import DEAD, union

LOOP_LIMIT = 5_000  # a `while` counts as endless after both this many rounds
LOOP_SECONDS = 20.0  # and this many seconds, as a round may take 1 us or 1 ms
PATIENCE = "MINIGRAD_SIMT_LOOP_SECONDS"  # environment variable that overrides LOOP_SECONDS
SPIN_LIMIT = 20_000  # rounds in which an atomic operation lets no lane through
_SPIN = {"cas", "exch", "compare_and_swap"}


class Loops(LanguagePart):
    """The part of the compiler that handles loops."""

    def do_While(self, node):
        test, body = self.expression(node.test), self.block(node.body)
        orelse = self.block(node.orelse) if node.orelse else None
        site = self.source.site(node.test)
        spins = any(isinstance(n, ast.Attribute) and n.attr in _SPIN for n in ast.walk(node))
        self.spins = self.spins or spins
        names = [n.id for n in ast.walk(node.test) if isinstance(n, ast.Name)]
        names = [name for name in dict.fromkeys(names) if name in self.scope.slots]

        def step(f, m):
            before, outer, trail = f.returned, f.loop, f.wave.trail
            depth = len(trail)
            loop = f.loop = [DEAD, DEAD]
            live, ended, rounds, last = m, DEAD, 0, None
            began = time.monotonic()
            while live is not DEAD:
                live, no = decide(f, live, test, site)
                ended = union(ended, no)
                if live is DEAD:
                    break
                if live is not m:
                    trail[depth:] = [(site, m, live)]
                loop[1] = DEAD
                live = union(body(f, live), loop[1], live)
                rounds += 1
                stuck = spins and rounds > SPIN_LIMIT and live is last
                if stuck or (rounds >= LOOP_LIMIT and _is_over(time.monotonic() - began)):
                    seconds = time.monotonic() - began
                    raise _endless(f, live, site, rounds, seconds, names, stuck)
                if rounds % SPIN_LIMIT == 0:
                    last = live
            del trail[depth:]
            f.loop = outer
            return _after(f, m, ended, orelse, loop[0], before)

        return step

    def do_For(self, node):
        put, body = self.target(node.target), self.block(node.body)
        orelse = self.block(node.orelse) if node.orelse else None
        values = self.iteration(node.iter)
        site = self.source.site(node.iter)

        def step(f, m):
            before, outer, trail, counts = f.returned, f.loop, f.wave.trail, f.wave.counts
            depth = len(trail)
            loop = f.loop = [DEAD, DEAD]
            ended, live = DEAD, m
            steps = values(f, m)
            while live is not DEAD:
                was = live
                live, no, value = steps(live)
                if counts is not None:
                    counts.branch(site, was, taken(live))
                ended = union(ended, no)
                if live is DEAD:
                    break
                if live is not m:
                    trail[depth:] = [(site, m, live)]
                put(f, live, value)
                loop[1] = DEAD
                live = union(body(f, live), loop[1], live)
            del trail[depth:]
            f.loop = outer
            return _after(f, m, ended, orelse, loop[0], before)

        return step

    def do_Break(self, node):
        def step(f, m):
            f.loop[0] = union(f.loop[0], m)
            return DEAD

        return step

    def do_Continue(self, node):
        def step(f, m):
            f.loop[1] = union(f.loop[1], m)
            return DEAD

        return step


def _after(f, m, ended, orelse, broken, before):
    """End a loop: run its `else` for the lanes that ended it; return the lanes that go on."""
    if orelse is not None and ended is not DEAD:
        ended = orelse(f, ended)
    out = union(ended, broken, m)
    if f.returned is not before:
        f.settle(out)
    return out


def _is_over(seconds):
    """Return whether a loop has used up its time."""
    if seconds < LOOP_SECONDS and PATIENCE not in os.environ:
        return False
    given = os.environ.get(PATIENCE, LOOP_SECONDS)
    try:
        return seconds >= float(given)
    except ValueError:
        raise ArgumentError(f"{PATIENCE}: wanted a number of seconds", f"{given!r}") from None


def _endless(f, live, site, rounds, seconds, names, stuck):
    lane = 0 if live is None else int(np.flatnonzero(live)[0])
    changes = (
        f"does {' or '.join(names)} change in every round"
        if names
        else "does something in the loop end it"
    )
    advice = [
        f"{changes}, as in `i += cuda.gridsize(1)`?",
        "The threads of a block run in lock-step here, as those of a warp do on a GPU: one that"
        " waits for another waits forever, so release a lock inside of the branch that took it.",
        f"A loop that does end gets more time by {PATIENCE}=600",
    ]
    return fault(
        EndlessLoopError,
        f"this loop has run {rounds:,} times, for {seconds:.1f} seconds, and does not end",
        site,
        f.wave.lanes,
        lane,
        fix=advice[1][:-1] if stuck else " ".join(advice),
    )
