"""Golden values at special values: `python tests/golden/special.py` writes special.json beside it.

It needs `torch`, which the test does not. Per case: PyTorch's value, its gradient with the upstream
gradient 1.25, and the gradient of the sum of half of that, in float64. A case is an operation of
minigrad with what `special_cases.py` says, and PyTorch's formula here.
"""

import json
from pathlib import Path

import numpy as np
import special_cases
import torch
from torch.nn import functional

LABELS = torch.arange(len(special_cases.ROWS)) % 3
ROW = {
    "softmax": lambda x: torch.softmax(x, 1),
    "log_softmax": lambda x: torch.log_softmax(x, 1),
    "logsumexp": lambda x: torch.logsumexp(x, 1),
    "sum": lambda x: x.sum(1),
    "mean": lambda x: x.mean(1),
    "prod": lambda x: x.prod(1),
    "max": lambda x: torch.amax(x, 1),
    "min": lambda x: torch.amin(x, 1),
    "var": lambda x: x.var(1, correction=0),
    "std": lambda x: x.std(1, correction=0),
    "norm": lambda x: torch.linalg.vector_norm(x, dim=1),
    "cumsum": lambda x: torch.cumsum(x, 1),
    "cumprod": lambda x: torch.cumprod(x, 1),
    "sort": lambda x: torch.sort(x, dim=1, stable=True)[0],
    "cross_entropy": lambda x: functional.cross_entropy(x, LABELS, reduction="none"),
    "cross_entropy_smooth": lambda x: functional.cross_entropy(
        x, LABELS, reduction="none", label_smoothing=0.1
    ),
    "layer_norm": lambda x: functional.layer_norm(x, (3,)),
    "rms_norm": lambda x: functional.rms_norm(x, (3,), eps=1e-5),
}
OTHERS = {
    "floor_divide": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "leaky_relu": functional.leaky_relu,
    "elu": functional.elu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "softplus": functional.softplus,
    "clip": lambda x: x.clamp(-1.0, 0.5),
    "bce_with_logits": lambda x, t: functional.binary_cross_entropy_with_logits(
        x, t, reduction="none"
    ),
    "huber": lambda x, t: functional.huber_loss(x, t, reduction="none"),
    "masked_sqrt": lambda x: torch.where(x > 0, torch.sqrt(x), 0.0),
    **{f"power {b}": lambda x, b=b: x**b for b in special_cases.EXPONENTS},
    **{f"base {a}": lambda x, a=a: a**x for a in special_cases.BASES},
}


def reference(name):
    """PyTorch's function of a case."""
    return ROW.get(name) or OTHERS.get(name) or getattr(torch, name)


def numbers(tensors, inputs):
    """Lists of numbers; what does not depend on an input has zeros as its gradient."""
    pairs = zip(tensors, inputs, strict=True)
    return [np.zeros(x.shape).tolist() if t is None else (t + 0.0).tolist() for t, x in pairs]


def compute(name, columns):
    """{order: numbers}."""
    function = reference(name)
    inputs = [torch.tensor(c, dtype=torch.float64, requires_grad=True) for c in columns]
    y = function(*inputs)
    found = {"value": y.tolist()}
    first = torch.autograd.grad(
        y, inputs, torch.full_like(y, 1.25), create_graph=True, allow_unused=True
    )
    found["gradient"] = numbers(first, inputs)
    outs = [g for g in first if g is not None and g.requires_grad]
    if outs:
        halves = [torch.full_like(g, 0.5) for g in outs]
        found["second"] = numbers(
            torch.autograd.grad(outs, inputs, halves, allow_unused=True), inputs
        )
    return found


if __name__ == "__main__":
    table = {name: compute(name, columns) for name, (columns, _) in special_cases.CASES.items()}
    lines = [f'"{name}": {json.dumps(found)}' for name, found in table.items()]
    path = Path(__file__).parent / "special.json"
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
