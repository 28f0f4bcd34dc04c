"""Random numbers on a GPU: those of the CPU, element for element."""

from minigrad.devices import loader
from minigrad.devices.gpu.entries import CODE, blocks_of, entry
from minigrad.devices.gpu.table import GpuTable

THREADS = 256


class Random(GpuTable):
    """random of the device table (see `table.Device`)."""

    def random(self, array, kind, seed, counter, low=0, high=0):
        """Fills a contiguous Array: 'uniform' [0, 1), 'normal', or 'integers' low to high - 1."""
        if not array.size:
            return
        code = CODE[array.dtype.name]
        if kind == "integers":
            more = (low, high)
        else:
            more = (int(array.address % 16 == 0),) if code == "f4" else ()
        form = " ".join(["T*", "i8", *["i8"] * len(more), "i8", "i8"])
        kernel = entry("gpu_random", f"{kind}_{code}", code, form, loader.RANDOM)
        blocks = blocks_of(array.size, THREADS * (4 if code == "f4" else 2))
        self.launch(kernel, blocks, THREADS, (array, array.size, *more, seed, counter))
