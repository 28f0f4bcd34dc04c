"""Writes in place whose operand shows their target, with PyTorch: `python tests/golden/aliases.py`.

It needs `torch`, as make.py does, and writes `aliases.json`: per write and alias the value, the
gradient and the second derivative of the same operation out of place, in float64; and whether
PyTorch's own operation in place gives the same or raises.
"""

import json
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).parent
RNG = np.random.default_rng(11)
X, UPSTREAM, ALONG = (np.round(RNG.uniform(0.5, 1.5, (3, 3)) * 64) / 64 for _ in range(3))
COLUMN, PAIR = (slice(None), slice(1, None)), (slice(None), [2, 0])


def placed(index):
    """Out of place: a copy with y at an index."""

    def write(h, y):
        out = h.clone()
        out[index] = y[..., : h[index].shape[-1]]
        return out

    return write


def put(index):
    """In place."""

    def write(h, y):
        h[index] = y[..., : h[index].shape[-1]]
        return h

    return write


WRITES = {  # in place, out of place
    "h += y, h.add_(y)": (lambda h, y: h.add_(y), lambda h, y: h + y),
    "h -= y, h.sub_(y)": (lambda h, y: h.sub_(y), lambda h, y: h - y),
    "h *= y, h.mul_(y)": (lambda h, y: h.mul_(y), lambda h, y: h * y),
    "h /= y, h.div_(y)": (lambda h, y: h.div_(y), lambda h, y: h / y),
    "h.copy_(y)": (lambda h, y: h.copy_(y), lambda h, y: y.expand(3, 3).clone()),
    "h.fill_(y[0])": (
        lambda h, y: h.fill_(y.reshape(-1)[0]),
        lambda h, y: y.reshape(-1)[0].expand(3, 3).clone(),
    ),
    "h[:] = y": (put(slice(None)), placed(slice(None))),
    "h[:, 1:] = y": (put(COLUMN), placed(COLUMN)),
    "h[:, [2, 0]] = y": (put(PAIR), placed(PAIR)),
}
ALIASES = {
    "h": lambda h: h,
    "h.detach()": lambda h: h.detach(),
    "h[:]": lambda h: h[:],
    "h[0]": lambda h: h[0],
    "h[::-1]": lambda h: h.flip(0),  # a copy: PyTorch has no negative strides
    "h.T": lambda h: h.T,
    "h.detach().T": lambda h: h.detach().T,
    "h.clone()": lambda h: h.clone(),
    "h + 1": lambda h: h + 1.0,
    "h * h": lambda h: h * h,
}


def computed(write, alias):
    """[value, first, second] as lists."""
    x = torch.tensor(X, requires_grad=True)
    h = x * x
    h = write(h, alias(h))
    loss = (h * h * torch.tensor(UPSTREAM)).sum() + (x * x * x).sum()
    (first,) = torch.autograd.grad(loss, x, create_graph=True)
    (second,) = torch.autograd.grad((first * torch.tensor(ALONG)).sum(), x)
    return [t.detach().numpy() for t in (h, first, second)]


def main():
    """Writes the file, and says how often PyTorch differs from itself out of place."""
    numbers, pytorch = {}, {}
    for write, (in_place, out_of_place) in WRITES.items():
        for alias, make in ALIASES.items():
            key = f"{write} | {alias}"
            wanted = computed(out_of_place, make)
            numbers[key] = [np.round(value, 13).tolist() for value in wanted]
            try:
                got = computed(in_place, make)
            except RuntimeError:
                pytorch[key] = "raises"
                continue
            same = all(np.allclose(a, b, 1e-12) for a, b in zip(got, wanted, strict=True))
            pytorch[key] = "same" if same else "differs"
    found = {"x": X.tolist(), "upstream": UPSTREAM.tolist(), "along": ALONG.tolist()}
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in found.items()]
    for name, part in (("pytorch", pytorch), ("numbers", numbers)):
        items = ",\n  ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in part.items())
        lines.append(f" {json.dumps(name)}: {{\n  {items}\n }}")
    (HERE / "aliases.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    counts = {k: [*pytorch.values()].count(k) for k in ("same", "raises", "differs")}
    print(f"{len(numbers)} cases, PyTorch in place: {counts}")  # noqa: T201


if __name__ == "__main__":
    main()
