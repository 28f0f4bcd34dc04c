"""The few driver calls that the `cuda` device needs, for one GPU and one stream.

Work is queued on the stream and runs later, in order. To know that it is done, call `synchronize`
or wait for the event that `record` returns.
"""

import contextlib
import importlib
import os
import threading

from minigrad.devices.gpu.driver import errors as cuda_errors
from minigrad.devices.gpu.driver import state as cuda_state
from minigrad.errors import GpuError
from minigrad.simt.machine.addresses import bytes_at

LEGACY_STREAM = 1  # what DLPack and the array interface call the default stream
WITHOUT_ASKING = 48 * 1024  # bytes of shared memory that a block may use by default


class Driver:
    """NVIDIA's packages `cuda.core` and `cuda.bindings`, on one GPU and one stream.

    Attributes:
        capability: (major, minor) of the GPU.
        stream: the cuda.core stream.
    """

    def __init__(self, number=0):
        self.core = importlib.import_module("cuda.core")
        self.api = importlib.import_module("cuda.bindings.driver")
        self.number, self.here = number, threading.local()
        self.is_forked = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)
        self.device = self.core.Device(number)
        self.device.set_current()
        self.here.is_current = True
        self.capability = cuda_state.capability_of(self.api, number)
        self.stream = self.device.create_stream()
        self.waits = os.environ.get("MINIGRAD_CUDA_SYNC") == "1"
        self._configurations = {}

    def _forked(self):
        self.is_forked = True
        self.here = threading.local()

    def ready(self):
        """Make the GPU current in this thread, once: the driver keeps a current GPU per thread."""
        if getattr(self.here, "is_current", False):
            return
        if self.is_forked:
            raise GpuError(
                "CUDA does not survive a fork: this process was forked from one that used it",
                fix="start processes with multiprocessing.get_context('spawn')",
            )
        self.device.set_current()
        self.here.is_current = True

    @contextlib.contextmanager
    def _explaining(self, doing):
        """Convert the libraries' errors to GpuErrors."""
        self.ready()
        with cuda_errors.explaining(doing):
            yield

    def _call(self, doing, function, *arguments):
        self.ready()
        status, *results = function(*arguments)
        if status.value:
            raise cuda_errors.explained(status.name, doing)
        return results[0] if results else None

    # -- memory ----------------------------------------------------------------------------------

    def allocate(self, nbytes):
        """Return (owner, address) of new memory on the GPU, which is freed in stream order.

        Raises:
            MemoryError: if there is not enough.
        """
        try:
            with self._explaining("memory of the GPU"):
                owner = self.device.memory_resource.allocate(nbytes, stream=self.stream)
        except GpuError as error:
            if error.code != cuda_errors.OUT_OF_MEMORY:
                raise
            raise MemoryError from error
        return owner, int(owner.handle)

    def pinned(self, nbytes):
        """Return (owner, address, ndarray of bytes) of pinned host memory, which copies fast."""
        with self._explaining("pinned memory of the host"):
            owner = self.core.LegacyPinnedMemoryResource().allocate(nbytes)
        address = int(owner.handle)
        return owner, address, bytes_at(address, nbytes)

    def to_device(self, target, source, nbytes):
        """Copy from an address on the host, whose bytes must not change until the copy is done."""
        self._call("a copy", self.api.cuMemcpyHtoDAsync, target, source, nbytes, self.stream.handle)

    def to_host(self, target, source, nbytes):
        """Copy to an address on the host."""
        self._call("a copy", self.api.cuMemcpyDtoHAsync, target, source, nbytes, self.stream.handle)

    def between(self, target, source, nbytes):
        """Copy within the GPU."""
        self._call("a copy", self.api.cuMemcpyDtoDAsync, target, source, nbytes, self.stream.handle)

    def fill(self, address, byte, nbytes):
        """Set `nbytes` bytes to one value."""
        self._call("a fill", self.api.cuMemsetD8Async, address, byte, nbytes, self.stream.handle)

    # -- time ------------------------------------------------------------------------------------

    def record(self, is_timed=False):
        """Return an event recorded after all work queued so far: `event.sync()` waits for it."""
        with self._explaining("an event"):
            options = self.core.EventOptions(timing_enabled=True) if is_timed else None
            return self.stream.record(options=options)

    def wait(self, event):
        """Wait for an event."""
        with self._explaining("waiting for the GPU"):
            event.sync()

    def synchronize(self):
        """Wait until all queued work is done."""
        with self._explaining("waiting for the GPU"):
            self.stream.sync()

    # -- kernels ---------------------------------------------------------------------------------

    def load(self, cubin):
        """Load a Cubin and return its kernel, for `launch`; the kernel keeps the code alive."""
        with self._explaining("loading a kernel"):
            return self.core.ObjectCode.from_cubin(cubin.code).get_kernel(cubin.name)

    def launch(self, kernel, blocks, threads, shared, arguments):
        """Queue a kernel on the stream, or add it to the graph this thread writes (`LaunchGraph`).

        arguments: addresses and ints as Python ints (each is passed as 8 bytes, of which a kernel
        reads what it declared), float64 as Python floats, float32 as NumPy floats.
        """
        self.ready()
        key = (blocks, threads, shared)
        configuration = self._configurations.get(key)
        if configuration is None:
            configuration = self._configuration(key)
        if shared > WITHOUT_ASKING:
            self._allow_shared(kernel, shared)
        try:
            stream = getattr(self.here, "builder", None) or self.stream
            self.core.launch(stream, configuration, kernel, *arguments)
            if self.waits:
                self.stream.sync()
        except Exception as error:
            code = cuda_errors.code_of(error)
            if not code:
                raise
            details = [("launch", f"{blocks} blocks of {threads}, {shared} bytes of shared memory")]
            raise cuda_errors.explained(code, "launching a kernel", details) from error

    def _configuration(self, key):
        blocks, threads, shared = key
        made = self.core.LaunchConfig(grid=blocks, block=threads, shmem_size=shared)
        if len(self._configurations) > 4096:  # shapes that change with every call
            self._configurations.clear()
        self._configurations[key] = made
        return made

    def _allow_shared(self, kernel, nbytes):
        attribute = self.api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._call(
            f"{nbytes:,} bytes of shared memory",
            self.api.cuKernelSetAttribute,
            attribute,
            nbytes,
            kernel.handle,
            self.number,
        )

    # -- other libraries -------------------------------------------------------------------------

    def view(self, owner, array):
        """Return cuda.core's view of an Array's memory, for DLPack; it keeps the owner alive."""
        nbytes = array.bytes_shown()[1] - array.address
        address = array.address if array.size else array.buffer.address  # empty: not beyond it
        with self._explaining("memory for another library"):
            buffer = self.core.Buffer.from_handle(address, nbytes, owner=owner)
            kind = self.core.utils.StridedMemoryView
            layout = tuple(array.shape), tuple(array.strides)
            return kind.from_buffer(buffer, *layout, dtype=array.dtype.memory)

    def view_of(self, data):
        """Return cuda.core's view of another library's array; our stream waits for its stream."""
        with self._explaining("memory of another library"):
            handle = int(self.stream.handle)
            return self.core.utils.StridedMemoryView.from_any_interface(data, stream_ptr=handle)

    def wait_for(self, other):
        """Wait for all work queued so far on another stream (an integer handle).

        For the default stream, 1, which always exists, our stream waits. Any other stream may have
        been destroyed by its library since, so the host waits for all work of the GPU.
        """
        with self._explaining("waiting for another library"):
            if other == LEGACY_STREAM:
                self.stream.wait(self.core.LEGACY_DEFAULT_STREAM)
            else:
                self.device.sync()

    def let_wait(self, other):
        """Make another stream (an integer handle) wait for all work queued on this one."""
        event = self.record()  # the name keeps it alive: `event.handle` is a mere number
        self._call("waiting", self.api.cuStreamWaitEvent, other, event.handle, 0)
