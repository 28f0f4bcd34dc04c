"""Copies by way of two pinned buffers, over a driver that is a double."""

import numpy as np
import pytest

from minigrad.devices.gpu.driver.transfer import Transfer
from minigrad.errors import GpuError
from tests.devices.gpu.doubles import DoubleDriver


@pytest.mark.parametrize("nbytes", [0, 1, 63, 64, 65, 128, 1000])
def test_transfers_of_every_size_come_back(nbytes):
    driver = DoubleDriver()
    transfer = Transfer(driver, half=64)
    data = np.random.default_rng(0).integers(0, 256, nbytes, np.uint8)
    _owner, address = driver.allocate(max(nbytes, 1))
    before = data.copy()
    transfer.upload(data, address)
    data[:] = 0  # the caller may do what it likes at once
    assert np.array_equal(transfer.download(address, nbytes), before)


def test_pinned_buffer_is_not_written_before_the_gpu_has_read_it():
    driver = DoubleDriver()
    transfer = Transfer(driver, half=8)
    _owner, address = driver.allocate(24)
    transfer.upload(np.arange(24, dtype=np.uint8), address)
    assert driver.done < len(driver.queue), "uploads return before they are done"
    assert transfer.download(address, 24).tolist() == list(range(24))


def test_wait_of_the_transfer_matters(monkeypatch):
    driver = DoubleDriver()
    monkeypatch.setattr(driver, "wait", lambda event: None)  # who does not wait reads too early
    transfer = Transfer(driver, half=8)
    _owner, address = driver.allocate(24)
    transfer.upload(np.arange(24, dtype=np.uint8), address)
    driver.synchronize()
    assert driver.blocks[address][:8].tolist() != list(range(8))


@pytest.mark.parametrize(
    ("name", "move"),
    [
        ("to_host", lambda transfer, address: transfer.download(address, 8)),
        (
            "to_device",
            lambda transfer, address: transfer.upload(np.zeros(8, np.uint8), address + 8),
        ),
    ],
)
def test_copy_that_ctrl_c_leaves_behind_does_no_harm_to_the_next(monkeypatch, name, move):
    driver = DoubleDriver()
    transfer = Transfer(driver, half=8)
    _owner, address = driver.allocate(24)
    transfer.upload(np.arange(24, dtype=np.uint8), address)
    driver.synchronize()

    ask = getattr(driver, name)

    def asked_and_interrupted(*copy):
        ask(*copy)
        raise KeyboardInterrupt

    monkeypatch.setattr(driver, name, asked_and_interrupted)
    with pytest.raises(KeyboardInterrupt):
        move(transfer, address)
    monkeypatch.undo()
    for k in range(2):  # each of the buffers
        transfer.upload(np.full(8, 50 + k, np.uint8), address + 8 + 8 * k)
    assert transfer.download(address, 24).tolist() == [*range(8), *[50] * 8, *[51] * 8]


def test_forked_child_is_told_so_before_it_waits_for_a_lock():
    class Forked(DoubleDriver):
        def ready(self):
            raise GpuError("a fork")

    class Held:
        """A lock that another thread held, which the child does not have."""

        def __enter__(self):
            pytest.fail("waits for ever")

    transfer = Transfer(Forked())
    transfer.lock = Held()
    with pytest.raises(GpuError, match="a fork"):
        transfer.upload(np.zeros(1, np.uint8), 0)
    with pytest.raises(GpuError, match="a fork"):
        transfer.download(0, 1)
