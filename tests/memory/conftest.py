"""Tests that count bytes, nodes and events begin without what other tests left behind."""

import gc

import pytest


@pytest.fixture(autouse=True)
def nothing_is_left():
    """What only the collector frees goes now: in the middle of a test it would be counted."""
    gc.collect()
