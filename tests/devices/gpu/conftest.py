"""The cuda device over a double of its driver, for the tests that ask for `cuda`."""

import pytest

from tests.devices.gpu.doubles import doubled


@pytest.fixture
def cuda():
    with doubled() as device:
        yield device
