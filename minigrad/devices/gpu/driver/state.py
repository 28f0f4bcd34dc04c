"""Say whether the `cuda` device can be used here; if not, why, and what to do about it.

Asking starts the driver's library but makes no context, so it takes no memory on any GPU.
"""

import importlib
import importlib.metadata
import os
from dataclasses import dataclass

from minigrad.devices.gpu import compiler
from minigrad.errors import MinigradError

OLDEST_GPU = {12: (7, 0), 13: (7, 5)}  # supported by the compiler, by the packages' CUDA
OLDEST_DRIVER = {12: "525", 13: "580"}
SIMULATE = "or use device='simt', which needs no GPU"


@dataclass(frozen=True)
class Hindrance:
    """One reason why there is no cuda device.

    Attributes:
        what: what is missing or wrong.
        remedy: what to do about it.
        has_gpu: whether there seems to be a GPU, so that the remedy is worthwhile.
    """

    what: str
    remedy: str
    has_gpu: bool = False

    def __str__(self):
        return f"{self.what}. Try: {self.remedy}"


def hindrance():
    """Return why CUDA cannot be used, as a Hindrance, or None."""
    absent = compiler.missing()
    if absent is not None:
        return Hindrance(
            f"the package {absent} is not installed", f"{compiler.INSTALL}; {SIMULATE}"
        )
    return _numba() or _driver(importlib.import_module("cuda.bindings.driver"))


def _numba():
    try:
        importlib.import_module("numba")
    except ImportError as error:  # Numba's own check of NumPy, which names both versions
        remedy = 'pip install "numpy<2.5"'
        return Hindrance(f"Numba cannot be imported: {error}", remedy)
    try:
        compiler.names()
    except MinigradError as error:
        return Hindrance(f"{error.wanted}: {error.got}", str(error.fix))
    except Exception as error:  # whatever is wrong with an installation
        versions = ", ".join(f"{name} {version(name)}" for name in ("numba-cuda", "numba", "numpy"))
        return Hindrance(
            f"numba-cuda cannot be imported: {type(error).__name__}: {error} ({versions})",
            f"{compiler.INSTALL}, in a fresh environment if that fails; {SIMULATE}",
        )
    return None


def version(package):
    """Return the version of an installed package, or 'none'."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def packages_cuda():
    """Return the CUDA version that the installed packages are for: 12 or 13."""
    return int(version("cuda-bindings").split(".")[0])


def _driver(driver):
    try:
        status = driver.cuInit(0)[0]
    except Exception as error:  # the driver's library is missing, or does not load
        is_absent = type(error).__name__ == "DynamicLibNotFoundError"
        what = "no NVIDIA driver was found"
        what = what if is_absent else f"the NVIDIA driver cannot be loaded: {error}"
        return Hindrance(what, f"with an NVIDIA GPU, install its driver; {SIMULATE}")
    if status.name == "CUDA_ERROR_NO_DEVICE":
        return _no_device()
    cuda = driver.cuDriverGetVersion()[1]
    wanted = packages_cuda()
    if cuda // 1000 < wanted:
        other = ', or pip install "minigrad[cuda12]"' if cuda // 1000 == 12 else ""
        return Hindrance(
            f"the NVIDIA driver is too old: it speaks CUDA {cuda // 1000}.{cuda % 1000 // 10}, "
            f"and the installed packages are for CUDA {wanted}",
            f"a driver of version {OLDEST_DRIVER.get(wanted, '580')} or newer{other}; {SIMULATE}",
            has_gpu=True,
        )
    if status.name != "CUDA_SUCCESS":
        return Hindrance(
            f"the NVIDIA driver does not start: {status.name}",
            f"see what nvidia-smi says; {SIMULATE}",
            has_gpu=True,
        )
    if not driver.cuDeviceGetCount()[1]:
        return _no_device()
    capability = capability_of(driver)
    oldest = OLDEST_GPU.get(wanted, (7, 5))
    if capability < oldest:
        return Hindrance(
            "the GPU is too old: its compute capability is {}.{}".format(*capability)
            + ", and the installed packages compile for {}.{} and above".format(*oldest),
            f"a newer GPU; {SIMULATE}",
        )
    return None


def _no_device():
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return Hindrance(
            f"the driver shows no GPU; CUDA_VISIBLE_DEVICES={visible!r} may hide it",
            f"unset that variable; {SIMULATE}",
        )
    return Hindrance("the driver is installed, but sees no GPU", f"see nvidia-smi; {SIMULATE}")


def capability_of(driver, device=0):
    """Return a GPU's compute capability (major, minor)."""
    names = driver.CUdevice_attribute
    return tuple(
        driver.cuDeviceGetAttribute(attribute, device)[1]
        for attribute in (
            names.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            names.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        )
    )


def is_available():
    """Return whether device='cuda' works here."""
    return hindrance() is None


def why_not():
    """Return why device='cuda' does not work here, and what to do; None if it does."""
    reason = hindrance()
    return None if reason is None else str(reason)


def gpu_name():
    """Return the GPU's name, capability and driver; only where CUDA is available."""
    driver = importlib.import_module("cuda.bindings.driver")
    name = driver.cuDeviceGetName(128, 0)[1].split(b"\0")[0].decode()
    cuda = driver.cuDriverGetVersion()[1]
    major, minor = capability_of(driver)
    speaks = f"CUDA {cuda // 1000}.{cuda % 1000 // 10}"
    return f"{name}, compute capability {major}.{minor}, driver for {speaks}"
