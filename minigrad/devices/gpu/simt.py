"""Implements the device `simt`: the simulator runs every GPU kernel, over the host's memory."""

import os

from minigrad import simt
from minigrad.array.array import Array
from minigrad.array.dtypes import WORDS
from minigrad.devices import backend
from minigrad.devices.gpu.device import Gpu
from minigrad.memory.host import of_the_host
from minigrad.memory.monitor import register_pool
from minigrad.memory.pool import Pool
from minigrad.simt.machine.addresses import bytes_at


class Simt(Gpu):
    """A simulated GPU: see `minigrad.simt`.

    Attributes:
        watch: whether to watch launches for data races, which takes several times as long. With
            MINIGRAD_SIMT_WATCH=1 it is on from the start.
    """

    name = "simt"

    def __init__(self):
        self.pool = Pool("simt", of_the_host)
        self.watch = os.environ.get("MINIGRAD_SIMT_WATCH", "") not in ("", "0")

    def launch(self, kernel, blocks, threads, operands, shared=0):
        buffers, arguments = {}, []
        for word, x in zip(kernel.signature.split(), operands, strict=True):
            kind = WORDS[word.rstrip("*")]
            if not isinstance(x, Array):
                arguments.append(kind(x))
                continue
            self.check_here(x)
            data = buffers.get(id(x.buffer))
            if data is None:  # bytes beyond the requested ones are out of bounds
                data = buffers[id(x.buffer)] = bytes_at(x.buffer.address, x.buffer.requested)
            arguments.append(simt.Pointer(data, kind, x.offset * x.dtype.itemsize))
        simt.launch(kernel.simulated(), blocks, threads, arguments, shared, self.watch)

    def upload(self, data, buffer):
        bytes_at(buffer.address, data.size)[...] = data

    def download(self, buffer, first, count):
        return bytes_at(buffer.address + first, count).copy()

    def copy_bytes(self, source, target, count):
        bytes_at(target, count)[...] = bytes_at(source, count)


device = Simt()
register_pool(device.pool)
backend.register(device)
