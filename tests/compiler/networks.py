"""Small models of every layer, for steps that are run eagerly and compiled."""

import minigrad as mg
from minigrad import nn


def mlp():
    """(n, 8) -> (n, 4)."""
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))


def normed():
    """Batch statistics and dropout.  (n, 8) -> (n, 4)."""
    return nn.Sequential(
        nn.Linear(8, 16), nn.BatchNorm1d(16), nn.GELU(), nn.Dropout(0.3), nn.Linear(16, 4)
    )


def cnn():
    """Both poolings.  (n, 1, 8, 8) -> (n, 4)."""
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.LeakyReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(6, 4),
    )  # fmt: skip


class Residual(nn.Module):
    """Normalised blocks around which the input flows.  (n, 8) -> (n, 4)."""

    def __init__(self):
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 8)),
            nn.Sequential(nn.RMSNorm(8), nn.Linear(8, 16), nn.ELU(), nn.Linear(16, 8)),
        )
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


class Recurrent(nn.Module):
    """Unrolled; characters are read and written by the same table.  (n, t) -> (n, t, 11)."""

    def __init__(self):
        self.table, self.hidden = nn.Embedding(11, 8), nn.Linear(8, 8)

    def forward(self, x):
        inputs, h, found = self.table(x), mg.zeros((x.shape[0], 8)), []
        for t in range(x.shape[1]):
            h = mg.tanh(inputs[:, t] + self.hidden(h))
            found.append(h)
        return mg.stack(found, axis=1) @ self.table.weight.T


class Attention(nn.Module):
    """Causal self-attention, then attention with a mask.  (n, 6) -> (n, 4)."""

    def __init__(self):
        self.table, self.norm, self.head = nn.Embedding(11, 16), nn.RMSNorm(16), nn.Linear(16, 4)
        self.causal, self.masked = (
            nn.MultiHeadAttention(16, 4, causal=True), nn.MultiHeadAttention(16, 2)
        )  # fmt: skip
        self.mask = nn.Buffer([[(i + j) % 3 != 0 for j in range(6)] for i in range(6)])

    def forward(self, x):
        h = self.table(x)
        h = h + self.causal(self.norm(h))
        return self.head(self.masked(h, mask=self.mask).mean(axis=1))


def rows(n=12, calls=3):
    """Arguments of some calls: (n, 8) floats and (n,) labels."""
    return [(mg.randn((n, 8)), mg.randint(0, 4, (n,))) for _ in range(calls)]


def images():
    """Arguments of three calls: (5, 1, 8, 8) floats and (5,) labels."""
    return [(mg.randn((5, 1, 8, 8)), mg.randint(0, 4, (5,))) for _ in range(3)]


def words(labels=(3,)):
    """Arguments of three calls: (3, 6) characters and labels."""
    return [(mg.randint(0, 11, (3, 6)), mg.randint(0, 4, labels)) for _ in range(3)]
