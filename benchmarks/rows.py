"""The rows of the benchmark: what is measured, and what minigrad aims at."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        name: for the command line.
        title: for the table.
        kind: which builder of a peer makes it; or "import" or "first", which need no builder.
        settings: the builder's arguments.
        unit: "s" for seconds, "B" for bytes.
        ratio: minigrad's goal as a multiple of PyTorch's figure, or None.
        limit: minigrad's goal in `unit`, or None.
        quick: whether `--quick` runs it.
    """

    name: str
    title: str
    kind: str
    settings: dict = field(default_factory=dict)
    unit: str = "s"
    ratio: float | None = None
    limit: float | None = None
    quick: bool = False

    @property
    def goal(self) -> str:
        """The goal in words, for the table."""
        if self.ratio is not None:
            return f"at most {self.ratio:g} × PyTorch"
        if self.limit is not None:
            return f"under {self.limit:g} {self.unit}"
        return "–"


TRANSFORMER = {"width": 128, "heads": 4, "length": 64, "batch": 8}
CONV2D = {"batch": 32, "channels": 16, "filters": 32, "size": 28}

ROWS = [
    Row(
        "tiny-ops",
        "2,000 ops on one element, forward and backward",
        "chain",
        {"count": 1000},
        ratio=0.8,
        quick=True,
    ),
    Row(
        "mlp-64-32-10",
        "step, MLP 64-32-10, batch 32, Adam",
        "mlp",
        {"sizes": [64, 32, 10], "batch": 32},
        ratio=1.2,
        quick=True,
    ),
    Row(
        "mlp-784-512-512-10",
        "step, MLP 784-512-512-10, batch 128, Adam",
        "mlp",
        {"sizes": [784, 512, 512, 10], "batch": 128},
        ratio=1.2,
    ),
    Row(
        "mlp-4-8096-4",
        "step, MLP 4-8096-4, batch 64, Adam",
        "mlp",
        {"sizes": [4, 8096, 4], "batch": 64},
        ratio=1.2,
    ),
    Row(
        "gelu-chain",
        "GELU as a chain of ops, 1 M floats, forward and backward",
        "gelu",
        {"count": 1_000_000},
        ratio=1.2,
    ),
    Row(
        "transformer-block",
        "transformer block, width 128, 4 heads, 64 tokens, batch 8, forward and backward",
        "block",
        TRANSFORMER,
        ratio=1.2,
    ),
    Row(
        "transformer-step",
        "step, transformer of 2 such blocks, Adam",
        "transformer",
        {**TRANSFORMER, "layers": 2, "vocabulary": 64},
        ratio=1.2,
    ),
    Row(
        "cnn-step",
        "step, CNN 28×28, 8 and 16 channels 3×3, batch 32, Adam",
        "cnn",
        {"batch": 32, "channels": [8, 16], "size": 28},
        ratio=1.2,
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
    Row("import", "import", "import", limit=0.5, quick=True),
    Row("first-gradient", "import and first gradient, disk caches warm", "first"),
    Row(
        "memory-mlp",
        "peak bytes in a step, MLP 784-512-512-10, batch 128",
        "memory_mlp",
        {"sizes": [784, 512, 512, 10], "batch": 128},
        unit="B",
        ratio=1.0,
    ),
    Row(
        "memory-cnn",
        "peak bytes in a step of the CNN",
        "memory_cnn",
        {"batch": 32, "channels": [8, 16], "size": 28},
        unit="B",
        ratio=1.0,
    ),
    Row(
        "memory-transformer",
        "peak bytes in a step of the transformer",
        "memory_transformer",
        {**TRANSFORMER, "layers": 2, "vocabulary": 64},
        unit="B",
        ratio=1.0,
    ),
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
