"""benchmarks/half.py: every way trains every model, from the same values."""

import pytest

import minigrad as mg
from benchmarks import half


@pytest.mark.parametrize("way", half.WAYS)
def test_each_way_lowers_the_loss(way):
    shape, make = half.MODELS["MLP"]
    mg.manual_seed(0)
    curve, share, skipped = half.trained(make(), shape, way, epochs=4, count=512)
    assert curve[-1] < 0.8 * curve[0]
    assert share > 0.5
    assert skipped <= 2


def test_the_table_has_a_row_for_each_pair():
    found = [("MLP", "float32", ([2.0, 1.0], 0.5, 0))]
    assert half.table(found).splitlines() == [
        "| model | way | loss, epoch 1 | loss, epoch 2 | new digits read | left out |",
        "|---|---|---:|---:|---:|---:|",
        "| MLP | float32 | 2.0000 | 1.0000 | 50.0 % | 0 |",
    ]
