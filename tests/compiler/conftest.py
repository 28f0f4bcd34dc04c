"""Fixtures of the compiler's tests."""

import pytest

from minigrad.compiler import compiled
from tests.compiler.interpreted import InterpretedPlan


@pytest.fixture
def interpreted_plans(monkeypatch):
    """Compiled functions run their programs by the interpreter: nothing is compiled."""
    monkeypatch.setattr(compiled, "build", InterpretedPlan)
