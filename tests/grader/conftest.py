"""Servers that start workers, for the tests of the grader."""

import pytest

from minigrad.grader.launcher import Server


@pytest.fixture(scope="module")
def server():
    """One for all tests of a file."""
    with Server() as server:
        yield server


@pytest.fixture(params=[True, False], ids=["forked", "spawned"])
def either_server(request):
    """As it is where processes fork, and where they do not."""
    with Server(fork=request.param and None) as server:
        yield server
