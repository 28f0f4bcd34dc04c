"""Steps that cannot be compiled for a GPU: they run as usual, and a warning says why."""


class Unfit(Exception):
    """A step that runs eagerly. why: a sentence for people."""

    def __init__(self, why):
        super().__init__(why)
        self.why = why


def check_host_values(values, written, device):
    """Raises Unfit for captured memory on the CPU, except optimizers' numbers that are only read.

    Those have names, set while tracing (see `optim.traced`).
    """
    for v in values:
        if v in written or not v.name:
            does = "writes to" if v in written else "reads"
            what = f"an array {v.dtype}[{v.size}] on the CPU"
            raise Unfit(f"it {does} {what}, and computes on {device}")


def check_arguments(recording, groups, device):
    """Raises Unfit if the program touches an argument on another device. groups: one per Value."""
    touched = {r.value for i in recording.instructions for r in (*i.reads, *i.writes)}
    touched |= {r.value for r in recording.results}
    for value, group in zip(recording.arguments, groups, strict=True):
        where = group.storage.device
        if where != device and value in touched:
            raise Unfit(f"{group.where} lies on {where}, and the step computes on {device}, too")
