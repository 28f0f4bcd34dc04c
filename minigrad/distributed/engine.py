"""What moves data between ranks: the interface of engines, and the engine of a single rank."""

from typing import Any, NamedTuple

from minigrad.errors import DistributedError

WAITS_LONGER = (
    "is it at work on something that the others do not do, or compiles for longer? "
    "init(timeout=...) and run(timeout=...) wait longer"
)


class Head(NamedTuple):
    """What a rank says of a call before any data moves: all ranks get the heads of all.

    number: of the call, from 1 on. what: the call, with dtype and shape; it must be the same on all
    ranks. line: the user's line. note: what may differ, such as a weight.
    """

    number: int
    what: str
    line: str
    note: Any = None

    def __str__(self):
        return f"{self.what}, {self.line}" if self.line else self.what


class Engine:
    """Moves data between the ranks of a group. This one has a single rank.

    `send`, `receive` and `leave` are one rank's own. All ranks call the other methods, in the same
    order. Arrays are contiguous ndarrays of the same shape and dtype on all ranks. An engine raises
    DistributedError when a rank does not come within `timeout` seconds, has failed, or has ended.
    """

    name = "alone"
    rank, size = 0, 1

    def exchange(self, head: Head) -> list[Head]:
        """Return the heads of all ranks, by rank."""
        return [head]

    def sum(self, data, head):
        """Replace data by its sum over the ranks, the same bits on all of them."""
        self.finish_sum(self.start_sum(data), head)

    def start_sum(self, data) -> Any:
        """Begin a sum without waiting; data must stay as it is until `finish_sum`.

        Several may be under way. All ranks begin and finish them in the same order.
        """

    def advance(self):
        """Move data of the sums that are under way, without waiting."""

    def finish_sum(self, started, head):
        """Wait for a sum: its data is then the sum."""

    def broadcast(self, data, root, head):
        """Replace data by that of the rank `root`."""

    def gather(self, data, head) -> list:
        """Return the data of all ranks, by rank."""
        return [data]

    def send(self, message, rank):
        """Send an object to a rank, as it is now, without waiting for it."""

    def receive(self, rank, head) -> Any:
        """Return the next object that a rank has sent to this one."""

    def leave(self, reason):
        """Tell the other ranks why this one takes part in no further call."""


def named(ranks):
    """Return the ranks in words: `rank 2`, `ranks 0, 1 and 3`."""
    *most, last = map(str, ranks)
    return f"ranks {', '.join(most)} and {last}" if most else f"rank {last}"


def absent(head, ranks, text, fix=None):
    """Return the error for a call to which ranks do not come; text: why, after their numbers."""
    return DistributedError(
        f"call {head.number} of mg.distributed, {head.what}: {named(ranks)} {text}",
        fix=fix,
        ranks=ranks,
        call=head.what,
    )
