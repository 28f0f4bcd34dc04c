"""Random training steps, at the level of Variables, for Hypothesis.

A program is a list of choices; `Program.make` is what `twins.check` wants. All values have one of a
few shapes, so that kernels repeat and every operation finds something to act on.
"""

from hypothesis import strategies as st

import minigrad as mg
from minigrad import nn, optim

ROWS, COLUMNS = 6, 8  # every value is (6, 8) between two operations

UNARY = {
    "tanh": mg.tanh,
    "gelu": mg.gelu,
    "sigmoid": mg.sigmoid,
    "relu": lambda x: mg.relu(x) + x * 0.1,
    "softmax": lambda x: mg.softmax(x) * 4.0,
    "softmax of columns": lambda x: mg.log_softmax(x, axis=0) * 0.5,
    "mirrored": lambda x: x[::-1, ::-1],
    "rolled": lambda x: mg.concatenate([x[2:], x[:2]], axis=0),
    "split": lambda x: mg.concatenate(mg.split(x, sections=2, axis=1)[::-1], axis=1),
    "transposed": lambda x: (x.T * 1.5).T,
    "reshaped": lambda x: (x.reshape(COLUMNS, ROWS) - 0.25).reshape(ROWS, COLUMNS),
    "permuted": lambda x: x.reshape(2, 3, COLUMNS).permute(1, 0, 2).reshape(ROWS, COLUMNS),
    "centred": lambda x: x - x.mean(axis=0, keepdims=True),
    "scaled": lambda x: x / (1.0 + abs(x).sum(axis=1, keepdims=True)) * 8.0,
    "largest": lambda x: x - x.max(axis=1, keepdims=True) * 0.5,
    "spread": lambda x: x / (x.var(axis=1, ddof=0, keepdims=True) + 0.5).sqrt(),
    "of everything": lambda x: x - x.mean() + 0.1 * mg.logsumexp(x),
    "rows chosen": lambda x: x[[5, 0, 0, 3, 2, 1]],
    "middle": lambda x: x * 0.5 + x[1:2, 2:3],
    "where": lambda x: mg.where(x > 0.2, x, x * 0.3),
    "clipped": lambda x: x.clip(-1.5, 1.5),
    "running": lambda x: mg.cumsum(x, axis=1) * 0.25,
    "cast": lambda x: x.to("float64").square().to("float32") * 0.2,
    "column": lambda x: x + x[:, 3].unsqueeze(1),
    "gathered": lambda x: mg.gather(x, x.detach().argmax(axis=1, keepdims=True), 1) + x,
    "padded by writes": lambda x: with_writes(x),
}
BINARY = {
    "sum": lambda a, b: a + b,
    "product": lambda a, b: a * mg.tanh(b),
    "quotient": lambda a, b: a / (1.5 + mg.sin(b)),
    "matmul": lambda a, b: mg.softmax(a @ b.T) @ b,
    "outer": lambda a, b: a - (b.T @ a).mean(axis=0) * 0.1,
    "chosen": lambda a, b: mg.where(a > b, a, b * 0.5),
    "largest": lambda a, b: mg.maximum(a, b),
    "halves": lambda a, b: mg.concatenate([a[:, :5], b[:, 5:]], axis=1),
    "stacked": lambda a, b: mg.stack([a, b], axis=0).mean(axis=0),
    "column by row": lambda a, b: a[:, 2:3] * b[1:2] + a,
}
LAYERS = {
    "linear": lambda: nn.Linear(COLUMNS, COLUMNS),
    "layer norm": lambda: nn.LayerNorm(COLUMNS),
    "rms norm": lambda: nn.RMSNorm(COLUMNS),
    "batch norm": lambda: nn.BatchNorm1d(COLUMNS),
    "dropout": lambda: nn.Dropout(0.25),
}
STATE = {
    "moving": lambda s, x: s.mul_(0.75).add_(x.detach() * 0.25),
    "copied": lambda s, x: s.copy_(x.detach()),
    "one row": lambda s, x: s.__setitem__(1, x[2].detach()),
    "a strip": lambda s, x: s[:, 2:5].add_(mg.tanh(x.detach()[:, :3])),
    "itself": lambda s, x: s.copy_(s[::-1] * 0.5),
}
OPTIMIZERS = {
    "SGD": lambda ps: optim.SGD(ps, 0.02),
    "Nesterov": lambda ps: optim.SGD(ps, 0.02, momentum=0.9, nesterov=True),
    "Adam": lambda ps: optim.Adam(ps, 0.005, eps=1e-2),
    "RMSprop": lambda ps: optim.RMSprop(ps, 0.005, eps=1e-2, momentum=0.5),
}
LOSSES = {
    "squares": lambda x, y: (x - mg.arange(COLUMNS).to("float32") * 0.1).square().mean(),
    "cross entropy": mg.cross_entropy,
    "rows": lambda x, y: mg.logsumexp(x, axis=1).sum() - x[:, 0].sum(),
}


def with_writes(x):
    """Written into a fresh array, and into a part of it again."""
    out = mg.zeros((ROWS, COLUMNS))
    out[:, 1:] = x[:, :-1].detach()
    out[2] = 0.5
    return out + x * 0.5


@st.composite
def programs(draw):
    """A Program of three to nine operations."""
    steps = []
    for k in range(draw(st.integers(3, 9))):
        table = draw(st.sampled_from(["unary", "unary", "binary", "layer", "state", "read"]))
        names = {"unary": UNARY, "binary": BINARY, "layer": LAYERS, "state": STATE, "read": [""]}
        before = st.integers(0, k)
        steps.append((table, draw(st.sampled_from(list(names[table]))), draw(before), draw(before)))
    return Program(
        steps,
        draw(st.sampled_from(list(LOSSES))),
        draw(st.sampled_from(list(OPTIMIZERS))),
        draw(st.sampled_from(["first", "last", "never"])),
    )


class Program:
    """steps: (table, name, number of one operand, of the other); operand 0 is the input."""

    def __init__(self, steps, loss, optimizer, zero):
        self.steps, self.loss, self.optimizer, self.zero = steps, loss, optimizer, zero

    def __repr__(self):
        return f"Program({self.steps}, {self.loss!r}, {self.optimizer!r}, {self.zero!r})"

    def make(self, wrap):
        """What `twins.check` takes."""
        layers = nn.ModuleList(LAYERS[n]() for table, n, *_ in self.steps if table == "layer")
        first, state = nn.Linear(COLUMNS, COLUMNS), mg.randn((ROWS, COLUMNS))
        model = nn.ModuleList([first, *layers])
        parameters = list(model.parameters())
        optimizer, manager = OPTIMIZERS[self.optimizer](parameters), mg.GradManager(parameters)

        @wrap
        def step(x, labels):
            if self.zero == "first":
                optimizer.zero_grad()
            with manager:
                found = self.forward(first(x) + x, iter(layers), state)
                loss = LOSSES[self.loss](found[-1], labels)
                manager.backward(loss)
            optimizer.step()
            if self.zero == "last":
                optimizer.zero_grad()
            return loss, found[len(found) // 2].detach(), found[-1].detach()

        x = [mg.randn((ROWS, COLUMNS)) for _ in range(2)]
        calls = [(x[0], mg.randint(0, COLUMNS, (ROWS,))), (x[1], mg.randint(0, COLUMNS, (ROWS,)))]
        return step, [model, optimizer, state], calls

    def forward(self, x, layers, state):
        """The values of all steps."""
        found = [x]
        for table, name, i, j in self.steps:
            a, b = found[-1 - min(i, 2)], found[j]
            if table == "unary":
                found.append(UNARY[name](a))
            elif table == "binary":
                found.append(BINARY[name](a, b))
            elif table == "layer":
                found.append(next(layers)(a))
            elif table == "state":
                with mg.no_grad():
                    STATE[name](state, a)
                found.append(a)
            else:  # a copy: the state may be written while the graph lives
                found.append(a * 0.5 + state.clone())
        return found
