"""Small programs as people write them, beside PyTorch: `python -m benchmarks.programs`.

Writes results/programs.md. Each program is written once, for both libraries, and has loops,
numbers, slices, masks and indices rather than layers: what one types to try an idea. A figure is
the median time of its loss and of all gradients; turns alternate in one process, on one thread.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import minigrad as mg
from benchmarks.alternate import compared, on_one_thread, options, summary, tell
from benchmarks.machine import describe, in_words
from benchmarks.tables import table

RESULTS = Path(__file__).with_name("results") / "programs.md"
TITLES = ["program", "minigrad, ms", "PyTorch, ms", "ratio"]


def of_minigrad() -> Any:
    """Return what the programs call, as minigrad has it."""
    return SimpleNamespace(
        constant=mg.variable,
        leaf=lambda data: mg.variable(data, requires_grad=True),
        gradients=lambda y, xs, again=False: mg.gradients(y, xs, create_graph=again),
        joined=mg.concatenate,
        **{n: getattr(mg, n) for n in NAMES},
    )


def of_pytorch() -> Any:
    """Return what the programs call, as PyTorch has it."""
    import torch  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    own = {n: getattr(torch, n, None) or getattr(torch.nn.functional, n) for n in NAMES}
    return SimpleNamespace(
        constant=torch.tensor,
        leaf=lambda data: torch.tensor(data, requires_grad=True),
        gradients=lambda y, xs, again=False: torch.autograd.grad(y, xs, create_graph=again),
        joined=torch.cat,
        **own,
    )


NAMES = (
    "cross_entropy", "exp", "log_softmax", "logsumexp", "relu", "sigmoid", "softmax", "sqrt",
    "tanh", "topk", "where", "zeros",
)  # fmt: skip


def drawn(seed: int, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Return float32 arrays of small random numbers."""
    generator = np.random.default_rng(seed)
    return [(0.3 * generator.standard_normal(s)).astype(np.float32) for s in shapes]


def lstm(lib: Any) -> Callable[[], Any]:
    """An LSTM by hand: 20 steps, 16 units, batch 4."""
    x, wx, wh, b = drawn(0, (20, 4, 8), (8, 64), (16, 64), (64,))
    x, weights = lib.constant(x), [lib.leaf(v) for v in (wx, wh, b)]
    start = lib.zeros((4, 16))

    def program():
        wx, wh, b = weights
        h = c = start
        total = 0.0
        for t in range(20):
            z = x[t] @ wx + h @ wh + b
            i, f = lib.sigmoid(z[:, :16]), lib.sigmoid(z[:, 16:32] + 1.0)
            g, o = lib.tanh(z[:, 32:48]), lib.sigmoid(z[:, 48:])
            c = f * c + i * g
            h = o * lib.tanh(c)
            total = total + (h * h).mean()
        return lib.gradients(total, weights)

    return program


def padded_rnn(lib: Any) -> Callable[[], Any]:
    """A recurrent net over sequences of different lengths, by masks: 15 steps, batch 6."""
    x, wx, wh = drawn(1, (15, 6, 8), (8, 12), (12, 12))
    mask = np.arange(15)[:, None] < np.array([15, 12, 9, 7, 4, 2])
    x, mask, weights = lib.constant(x), lib.constant(mask[..., None]), [lib.leaf(wx), lib.leaf(wh)]
    start = lib.zeros((6, 12))

    def program():
        wx, wh = weights
        h = start
        for t in range(15):
            new = lib.tanh(x[t] @ wx + h @ wh)
            h = lib.where(mask[t], new, h)
        return lib.gradients((h**2).sum() / 6, weights)

    return program


def fourier(lib: Any) -> Callable[[], Any]:
    """A signal fitted to a power spectrum, by matrices of cosines and sines: 48 points."""
    (signal,) = drawn(2, (48,))
    angle = 2 * np.pi * np.outer(np.arange(48), np.arange(48)) / 48
    cosines, sines = (lib.constant(f(angle).astype(np.float32)) for f in (np.cos, np.sin))
    wanted = lib.constant(np.float32(1.0) / (1 + np.arange(48, dtype=np.float32)))
    x = lib.leaf(signal)

    def program():
        real, imaginary = cosines @ x, sines @ x
        power = (real * real + imaginary * imaginary) / 48
        short = ((power + 1e-3) ** 0.5 - wanted) ** 2
        return lib.gradients(short.mean() + 0.01 * (x[1:] - x[:-1]).abs().sum(), [x])

    return program


def oscillator(lib: Any) -> Callable[[], Any]:
    """A net that solves u'' = -u on 32 points: gradients of second derivatives."""
    w1, b1, w2, w3 = drawn(3, (1, 16), (16,), (16, 16), (16, 1))
    weights = [lib.leaf(v) for v in (w1, b1, w2, w3)]
    points = np.linspace(0, 3, 32, dtype=np.float32)[:, None]

    def program():
        w1, b1, w2, w3 = weights
        x = lib.leaf(points)
        u = lib.tanh(lib.tanh(x @ w1 + b1) @ w2) @ w3
        (first,) = lib.gradients(u.sum(), [x], True)
        (second,) = lib.gradients(first.sum(), [x], True)
        return lib.gradients(((second + u) ** 2).mean() + (u[0] - 1.0) ** 2, weights)

    return program


def messages(lib: Any) -> Callable[[], Any]:
    """Three rounds of messages on a graph of 20 nodes and 60 edges."""
    x, w1, w2 = drawn(4, (20, 8), (16, 8), (8, 8))
    generator = np.random.default_rng(4)
    source, target = (generator.integers(0, 20, 60) for _ in range(2))
    arrives = lib.constant((target[None] == np.arange(20)[:, None]).astype(np.float32))
    source, target = lib.constant(source), lib.constant(target)
    x, weights = lib.constant(x), [lib.leaf(w1), lib.leaf(w2)]

    def program():
        w1, w2 = weights
        h = x
        for _ in range(3):
            sent = lib.relu(lib.joined([h[source], h[target]], 1) @ w1)
            h = h + lib.tanh(arrives @ sent) @ w2
        return lib.gradients(h.mean(0).sum(), weights)

    return program


def routing(lib: Any) -> Callable[[], Any]:
    """Each of 12 rows goes to the two best of four experts."""
    x, gate, experts = drawn(5, (12, 8), (8, 4), (4, 8, 8))
    x, gate = lib.constant(x), lib.leaf(gate)
    experts = [lib.leaf(e) for e in experts]

    def program():
        scores = lib.softmax(x @ gate, -1)
        best, which = lib.topk(scores, 2)
        best = best / best.sum(-1)[:, None]
        total = lib.zeros((12, 8))
        for k, expert in enumerate(experts):
            share = lib.where(which == k, best, 0.0).sum(-1)
            total = total + lib.relu(x @ expert) * share[:, None]
        return lib.gradients((total**2).sum(), [gate, *experts])

    return program


def attention(lib: Any) -> Callable[[], Any]:
    """Causal attention by hand, two heads of width 8 over 10 places, with a layer norm by hand."""
    x, wq, wk, wv, wo = drawn(6, (10, 16), *[(16, 16)] * 4)
    labels = lib.constant(np.arange(10) % 16)
    mask = lib.constant(np.tril(np.ones((10, 10), bool)))
    x, weights = lib.leaf(x), [lib.leaf(w) for w in (wq, wk, wv, wo)]

    def program():
        wq, wk, wv, wo = weights
        centred = x - x.mean(-1)[:, None]
        normed = centred / lib.sqrt((centred * centred).mean(-1)[:, None] + 1e-5)
        q, k, v = normed @ wq, normed @ wk, normed @ wv
        heads = []
        for a in (0, 8):
            scores = q[:, a : a + 8] @ k[:, a : a + 8].T / math.sqrt(8)
            heads.append(lib.softmax(lib.where(mask, scores, -1e9), -1) @ v[:, a : a + 8])
        y = x + lib.joined(heads, 1) @ wo
        return lib.gradients(lib.cross_entropy(y, labels), [x, *weights])

    return program


def springs(lib: Any) -> Callable[[], Any]:
    """Five masses on springs, 40 steps of time; the gradient of where they end."""
    place, speed = drawn(7, (5,), (5,))
    place, speed, stiffness = lib.leaf(place), lib.leaf(speed), lib.leaf(np.float32(2.0))

    def program():
        x, v = place, speed
        for _ in range(40):
            force = -stiffness * x - 0.1 * v
            v = v + 0.05 * force
            x = x + 0.05 * v
        return lib.gradients((x * x).sum() + 0.5 * (v * v).sum(), [place, speed, stiffness])

    return program


def mixture(lib: Any) -> Callable[[], Any]:
    """The likelihood of 30 points under a mixture of three Gaussians."""
    points, means, widths, weights = drawn(8, (30, 2), (3, 2), (3, 2), (3,))
    points, leaves = lib.constant(points), [lib.leaf(v) for v in (means, widths, weights)]

    def program():
        means, widths, weights = leaves
        z = (points[:, None] - means) / lib.exp(widths)
        each = -0.5 * (z**2).sum(-1) - widths.sum(-1) + lib.log_softmax(weights, 0)
        return lib.gradients(-lib.logsumexp(each, 1).mean(), leaves)

    return program


def inner_step(lib: Any) -> Callable[[], Any]:
    """A weight from which one step of gradient descent leads far: gradients through a step."""
    x, y, w, b = drawn(9, (10, 4), (10, 1), (4, 1), (1,))
    x, y, w, b = lib.constant(x), lib.constant(y), lib.leaf(w), lib.leaf(b)

    def program():
        loss = ((x @ w + b - y) ** 2).mean()
        dw, db = lib.gradients(loss, [w, b], True)
        after = ((lib.tanh(x @ (w - 0.1 * dw) + b - 0.1 * db) - y) ** 2).mean()
        return lib.gradients(after, [w, b])

    return program


PROGRAMS: dict[str, Callable[[Any], Callable[[], Any]]] = {
    f.__name__.replace("_", " "): f
    for f in (
        lstm, padded_rnn, fourier, oscillator, messages, routing, attention, springs, mixture,
        inner_step,
    )
}  # fmt: skip


def agreeing(make: Callable[[Any], Callable[[], Any]], libraries: list[Any]) -> list[Any]:
    """Return a program in each library, after a look that their gradients agree."""
    programs = [make(lib) for lib in libraries]
    for ours, theirs in zip(*(program() for program in programs), strict=True):
        np.testing.assert_allclose(ours.tolist(), theirs.tolist(), rtol=1e-3, atol=1e-5)
    return programs


def main() -> int:
    """Measure, write the table, print it."""
    given = options("benchmarks.programs", __doc__, 15, "NAME")
    if (status := on_one_thread("benchmarks.programs")) is not None:
        return status
    machine = describe()
    libraries = [of_minigrad(), of_pytorch()]
    chosen = [name for name in PROGRAMS if given.only in (None, name)]
    functions = ((name, agreeing(PROGRAMS[name], libraries)) for name in chosen)
    lines, ratios = compared(functions, 1e3, given.turns)
    note = f"{in_words(machine)}. {summary(machine, ratios)} `python -m benchmarks.programs`."
    tell(RESULTS, table(TITLES, lines), note, given.only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
