"""Fixtures of the compiler's tests."""

import pytest

import minigrad as mg
from minigrad.compiler.call import tracing
from tests.compiler.interpreted import InterpretedPlan
from tests.compiler.quick_gpu import QUICK


@pytest.fixture
def interpreted_plans(monkeypatch):
    """Compiled functions run their programs by the interpreter: nothing is compiled."""
    monkeypatch.setattr(tracing, "Plan", InterpretedPlan)


@pytest.fixture
def on_quick():
    """New arrays are on the device `quick`."""
    with mg.device(QUICK.name):
        yield
