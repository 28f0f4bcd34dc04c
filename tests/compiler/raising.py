"""Calls that are expected to raise."""

import pytest

from minigrad.errors import TraceError


def until_error(step, *args, calls=6):
    """The TraceError that one of the next calls raises."""
    for _ in range(calls):
        try:
            step(*args)
        except TraceError as error:
            return str(error)
    pytest.fail("no call raised")
