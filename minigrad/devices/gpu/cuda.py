"""The device `cuda`: importing this module starts the GPU, or raises DeviceError if it cannot."""

from minigrad.devices import backend
from minigrad.devices.gpu.driver import state as cuda_state
from minigrad.devices.gpu.driver.device import Cuda
from minigrad.devices.gpu.driver.driver import Driver
from minigrad.errors import DeviceError, MinigradError


def start():
    """Return the device on the GPU that the driver names first."""
    hindrance = cuda_state.hindrance()
    if hindrance is not None:
        raise DeviceError("there is no device 'cuda' here", hindrance.what, hindrance.remedy)
    try:
        return Cuda(Driver())
    except MinigradError:
        raise
    except Exception as error:  # whatever the driver's packages raise
        what = f"{type(error).__name__}: {error}"
        raise DeviceError("the GPU does not start", what, "see what nvidia-smi says") from error


device = start()
backend.register(device)
