"""Random numbers on a GPU: those of the CPU, element for element."""

from minigrad.array.array import Array
from minigrad.devices import loader
from minigrad.devices.gpu.entries import CODE, blocks_of, entry
from minigrad.devices.gpu.table import GpuTable

THREADS = 256


class Random(GpuTable):
    """random of the device table (see `table.Device`)."""

    def random(self, array, kind, seed, counter, low=0, high=0):
        """seed may be an Array of (seed, number to add to counter): see gpu_random.py."""
        if not array.size:
            return
        code, is_recorded = CODE[array.dtype.name], isinstance(seed, Array)
        more = (low, high) if kind == "integers" else (int(array.address % 16 == 0),)
        form = " ".join(["T*", *["i8"] * (1 + len(more)), "i8*" if is_recorded else "i8", "i8"])
        name = f"{kind}_later" if is_recorded else kind
        kernel = entry("gpu_random", name, code, form, loader.RANDOM)
        blocks = blocks_of(array.size, THREADS * (16 // array.dtype.itemsize))
        self.launch(kernel, blocks, THREADS, (array, array.size, *more, seed, counter))
