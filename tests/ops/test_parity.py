"""The committed table of cells is the one that the tests run."""

from tests.ops.cells import Cell, cells
from tests.ops.parity import PATH, text


def test_committed_parity_table_is_fresh():
    assert PATH.read_text(encoding="utf-8") == text(), (
        "docs/parity.md is stale: python -m tests.ops.parity --write"
    )


def test_every_cell_is_run_or_has_a_reason():
    found = dict(cells())
    assert len(found) > 900
    assert all(why is None or why.strip() for why in found.values())
    assert found[Cell("add", "uint8", "contiguous")] is None
    assert sum(why is not None for why in found.values()) < len(found) / 4
