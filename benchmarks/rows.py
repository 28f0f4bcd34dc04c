"""The rows of the benchmark: what is measured, and what minigrad aims at."""

from dataclasses import dataclass, field

from benchmarks.goals import Goal


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        name: for the command line.
        title: for the table.
        kind: which builder of a peer makes it. Without a builder are the kinds of fresh processes:
            "import", "first" (import and first gradient), "calls" (the first two calls of a step).
        settings: the builder's arguments; for "calls" `kind`, its `settings`, and `cold`.
        goals: what minigrad aims at.
        quick: whether `--quick` runs it.
        rounds: turns of each peer, where the usual number would take too long.
    """

    name: str
    title: str
    kind: str
    settings: dict = field(default_factory=dict)
    goals: tuple[Goal, ...] = ()
    quick: bool = False
    rounds: int | None = None


def eager(at_most):
    """Eager minigrad's time as a multiple of PyTorch eager's."""
    return Goal("minigrad", at_most=at_most, over=("pytorch",))


def compiled(faster, *over):
    """The peers' time as a multiple of compiled minigrad's."""
    return Goal("compiled", faster=faster, over=over)


BYTES = tuple(
    Goal(who, at_most=1, over=("pytorch",), figure="bytes") for who in ("minigrad", "compiled")
)
DIGITS = {"sizes": [64, 32, 10], "batch": 32}
TRANSFORMER = {"width": 128, "heads": 4, "length": 64, "batch": 8}
CONV2D = {"batch": 32, "channels": 16, "filters": 32, "size": 28}

ROWS = [
    Row(
        "tiny-ops",
        "2,000 ops on one element, forward and backward",
        "chain",
        {"count": 1000},
        (eager(0.8),),
        quick=True,
    ),
    Row(
        "mlp-64-32-10",
        "step, MLP 64-32-10, batch 32, Adam",
        "mlp",
        DIGITS,
        (eager(1.2), compiled(18, "pytorch"), compiled(9, "jax"), *BYTES),
        quick=True,
    ),
    Row(
        "mlp-784-512-512-10",
        "step, MLP 784-512-512-10, batch 128, Adam",
        "mlp",
        {"sizes": [784, 512, 512, 10], "batch": 128},
        (eager(1.2), compiled(1), *BYTES),
    ),
    Row(
        "mlp-4-8096-4",
        "step, MLP 4-8096-4, batch 64, Adam",
        "mlp",
        {"sizes": [4, 8096, 4], "batch": 64},
        (eager(1.2), compiled(2.2), *BYTES),
    ),
    Row(
        "gelu-chain",
        "GELU as a chain of ops, 1 M floats, forward and backward",
        "gelu",
        {"count": 1_000_000},
        (eager(1.2), compiled(1, "jax")),
    ),
    Row(
        "transformer-block",
        "transformer block, width 128, 4 heads, 64 tokens, batch 8, forward and backward",
        "block",
        TRANSFORMER,
        (eager(1.2),),
    ),
    Row(
        "transformer-step",
        "step, transformer of 2 such blocks, Adam",
        "transformer",
        {**TRANSFORMER, "layers": 2, "vocabulary": 64},
        (eager(1.2), compiled(1, "pytorch", "inductor"), *BYTES),
    ),
    Row(
        "cnn-step",
        "step, CNN 28×28, 8 and 16 channels 3×3, batch 32, Adam",
        "cnn",
        {"batch": 32, "channels": [8, 16], "size": 28},
        (
            eager(1.2),
            compiled(1, "inductor"),
            Goal("compiled", at_most=1.5, over=("pytorch",)),
            *BYTES,
        ),
    ),
    Row(
        "recurrent-step",
        "step, recurrent loop of 50 steps unrolled, 64 units, batch 32, SGD",
        "recurrent",
        {"steps": 50, "inputs": 16, "units": 64, "batch": 32},
        BYTES,
    ),
    Row(
        "conv2d-forward",
        "conv2d 16 → 32 channels, 3×3, 28×28, batch 32, forward",
        "conv2d_forward",
        CONV2D,
    ),
    Row("conv2d-backward", "the same, backward alone", "conv2d_backward", CONV2D),
    Row(
        "softmax",
        "softmax of 4,096 rows of 256, forward and backward",
        "softmax",
        {"rows": 4096, "columns": 256},
    ),
    Row(
        "layer-norm",
        "layer norm of 4,096 rows of 256, forward and backward",
        "layer_norm",
        {"rows": 4096, "columns": 256},
    ),
    Row(
        "adam-10m",
        "Adam on 10 M parameters",
        "adam",
        {"shapes": [[1000, 1000]] * 10},
    ),
    Row(
        "first-calls-cold",
        "first two calls of the step of MLP 64-32-10, cold caches",
        "calls",
        {"kind": "mlp", "settings": DIGITS, "cold": True},
        (Goal("compiled", under=6.0),),
        rounds=3,
    ),
    Row(
        "first-calls-warm",
        "the same, warm caches",
        "calls",
        {"kind": "mlp", "settings": DIGITS, "cold": False},
        (Goal("compiled", under=1.0),),
    ),
    Row("import", "import", "import", {}, (Goal("minigrad", under=0.5),), quick=True),
    Row("first-gradient", "import and first gradient, caches warm", "first"),
]


def chosen(names, quick) -> list[Row]:
    """The rows named, or all, or the quick ones. Raises SystemExit for a name unknown."""
    if not names:
        return [row for row in ROWS if row.quick or not quick]
    known = {row.name: row for row in ROWS}
    wrong = [name for name in names if name not in known]
    if wrong:
        raise SystemExit(f"no row named {', '.join(wrong)}; there are: {', '.join(known)}")
    return [known[name] for name in names]
