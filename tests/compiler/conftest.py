"""Fixtures of the compiler's tests."""

import pytest

from minigrad.compiler import tracing
from tests.compiler.interpreted import InterpretedPlan


@pytest.fixture
def interpreted_plans(monkeypatch):
    """Compiled functions run their programs by the interpreter: nothing is compiled."""
    monkeypatch.setattr(tracing, "build", InterpretedPlan)
