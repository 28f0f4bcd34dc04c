"""Functions of people's own, for tests of what the engine does with them."""

import minigrad as mg


class Two(mg.Function):
    """x -> (2x, 3x)."""

    @staticmethod
    def forward(ctx, x):
        return x * 2.0, x * 3.0

    @staticmethod
    def backward(ctx, da, db):
        return da * 2.0 + db * 3.0
