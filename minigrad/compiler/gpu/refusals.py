"""What a compiled step cannot be on a GPU: it runs as usual, and a warning says why."""

MOST_HOST_NUMBERS = 64  # elements of an array on the CPU that a program on a GPU may read


class Unfit(Exception):
    """A step that runs eagerly. why: a sentence for people."""

    def __init__(self, why):
        super().__init__(why)
        self.why = why


def check_host_values(values, written, device):
    """Raises Unfit for memory on the CPU that is more than numbers which the step reads."""
    for v in values:
        what = f"'{v.name}'" if v.name else f"an array {v.dtype}[{v.size}]"
        if v in written:
            raise Unfit(f"it writes to {what} on the CPU, and computes on {device}")
        if v.size > MOST_HOST_NUMBERS:
            raise Unfit(f"it reads {what} on the CPU, and computes on {device}")
