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


def test_a_row_of_large_arrays_has_its_bytes_and_all_dtypes():
    lines = list(half.large(n=1000, turns=1))
    assert [len(line) for line in lines] == [4 + len(half.HALVES)] * 3
    assert [line[1:3] for line in lines] == [["12", "6"], ["12", "6"], ["28", "28"]]
