"""What minigrad aims at, and whether a run reached it."""

from dataclasses import dataclass
from typing import Any

from benchmarks.peers import OURS, PEERS

EVERY = ()  # as `over`: every library measured


@dataclass(frozen=True)
class Goal:
    """One figure of minigrad in a row: against peers, or against a number.

    Attributes:
        who: "minigrad" (eager) or "compiled".
        at_most: minigrad's figure divided by the peer's; None if there is no peer in it.
        faster: the same the other way round: the peer's figure divided by minigrad's.
        under: the figure itself, in the row's unit.
        over: names of the peers, the best of whom counts; EVERY means all that were measured.
        figure: "time" or "bytes" (the peak of a step).
    """

    who: str
    at_most: float | None = None
    faster: float | None = None
    under: float | None = None
    over: tuple[str, ...] = EVERY
    figure: str = "time"

    @property
    def text(self) -> str:
        """The goal in words."""
        if self.under is not None:
            return f"under {self.under:g} s"
        titles = " and ".join(PEERS[name].title for name in self.over) or "every peer"
        if self.faster is not None:
            times = "" if self.faster == 1 else f"{self.faster:g} × "
            return f"{times}faster than {titles}"
        what = "the peak bytes of " if self.figure == "bytes" else "the time of "
        return f"at most {self.at_most:g} × {what}{titles}"

    def peers(self, results) -> list[str]:
        """The peers it is judged against, of those with a figure."""
        wanted = self.over or [name for name in PEERS if name not in OURS]
        return [name for name in wanted if _figure(results, name, self.figure) is not None]

    def judged(self, results) -> dict:
        """What the run says: `ratio` as the goal counts it, of medians and of best figures.

        `met` is None where it cannot be said: minigrad or a peer that the goal names is missing.
        """
        told = {"who": self.who, "text": self.text, "ratio": None, "ratio_of_best": None}
        told |= {"against": None, "met": None, "kind": self.kind, "figure": self.figure}
        told |= {"wanted": self.wanted, "over": list(self.over)}
        ours = _figure(results, self.who, self.figure)
        if ours is None:
            return told
        if self.under is not None:
            best = _figure(results, self.who, self.figure, "best")
            return told | {"ratio": ours, "ratio_of_best": best, "met": ours < self.under}
        names = self.peers(results)
        if not names or len(names) < len(self.over):
            return told
        found = {}
        for key, which in (("ratio", "median"), ("ratio_of_best", "best")):
            mine = _figure(results, self.who, self.figure, which)
            theirs, rival = min((_figure(results, n, self.figure, which), n) for n in names)
            found[key] = theirs / mine if self.faster is not None else mine / theirs
            found.setdefault("against", rival)
        if self.faster is not None:
            met = found["ratio"] >= self.faster
        else:
            met = found["ratio"] <= self.at_most
        return told | found | {"met": met}

    @property
    def wanted(self) -> float:
        """The number that `ratio` is compared with."""
        return next(n for n in (self.at_most, self.faster, self.under) if n is not None)

    @property
    def kind(self) -> str:
        """How `ratio` is meant: "faster", "at most" or "under"."""
        if self.faster is not None:
            return "faster"
        return "under" if self.under is not None else "at most"


def _figure(results, name, figure, which="median") -> Any:
    """One figure of a peer, or None."""
    found = results.get(name)
    if found is None:
        return None
    return found.get("bytes") if figure == "bytes" else found[which]
