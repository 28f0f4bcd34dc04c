"""Where a compiled step's time goes: every call of the program is in the table, once."""

import pytest

from benchmarks import anatomy
from benchmarks.rows import Row


def test_anatomy_of_a_small_step(monkeypatch):
    for name, value in (("WARM", 4), ("ROUNDS", 3), ("SHORTEST", 1e-6), ("SHOWN", 99)):
        monkeypatch.setattr(anatomy, name, value)
    found = {}

    class Seen(anatomy.Program):
        def kernels(self):
            found["plan"], found["kernels"] = self.plan, super().kernels()
            return found["kernels"]

    monkeypatch.setattr(anatomy, "Program", Seen)
    row = Row("small", "a small step", "mlp", {"sizes": [12, 11, 9], "batch": 10})
    lines = anatomy.anatomy(row)
    cells = [line.split(" | ") for line in lines if line.startswith("| ")][1:]
    assert [name.removeprefix("| ") for name, *_ in cells] == sorted(
        found["kernels"], key=lambda name: -found["kernels"][name][1]
    )
    assert sum(int(calls) for _, calls, *_ in cells) == sum(map(len, found["plan"].regions))
    assert "linear: 10 × 12 × 11" in found["kernels"]
    products = [flops for _, _, flops in found["kernels"].values()]
    assert sum(products) == 2 * 10 * (2 * 12 * 11 + 3 * 11 * 9)  # no gradient of the data
    shares = [float(cell[3].removesuffix(" %")) for cell in cells]
    assert sum(shares) == pytest.approx(100, abs=len(shares))


def test_anatomy_without_products():
    assert anatomy.rate_of({"exp": [1, 2.0, 0]}) == "0 % of it"
