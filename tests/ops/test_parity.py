"""Which cells of operations, dtypes and layouts are run."""

from tests.ops.cells import RANDOM, Cell, cells, public_ops


def test_every_cell_is_run_or_has_a_reason():
    found = dict(cells())
    assert len(found) > 900
    assert all(why is None or why.strip() for why in found.values())
    assert found[Cell("add", "uint8", "contiguous")] is None
    assert sum(why is not None for why in found.values()) < len(found) / 4
    assert set(public_ops()) >= RANDOM
