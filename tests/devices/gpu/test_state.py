"""Why there is no CUDA, in words: each way in which it can be missing."""

import importlib
import sys
from types import SimpleNamespace

import pytest

import minigrad as mg
from minigrad.devices import backend
from minigrad.devices.gpu import compiler
from minigrad.devices.gpu.driver import state as cuda_state


class Driver:
    """cuda.bindings.driver of a machine, as far as it is asked."""

    class CUdevice_attribute:
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 0
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 1

    def __init__(self, status="CUDA_SUCCESS", version=13010, count=1, capability=(9, 0)):
        self.status, self.version, self.count = status, version, count
        self.capability = capability

    def cuInit(self, flags):
        if isinstance(self.status, Exception):
            raise self.status
        return (SimpleNamespace(name=self.status),)

    def cuDriverGetVersion(self):
        return None, self.version

    def cuDeviceGetCount(self):
        return None, self.count

    def cuDeviceGetAttribute(self, attribute, device):
        return None, self.capability[attribute]

    def cuDeviceGetName(self, length, device):
        return None, b"NVIDIA Thing\0\0"


class DynamicLibNotFoundError(RuntimeError):
    """As the driver's bindings raise it."""


@pytest.fixture
def machine(monkeypatch):
    """A function that makes this a machine with packages and a given driver."""

    def become(packages="13.1.0", **facts):
        driver = Driver(**facts)
        monkeypatch.setattr(compiler, "missing", lambda: None)
        monkeypatch.setattr(compiler, "names", dict)
        monkeypatch.setattr(cuda_state, "version", lambda package: packages)
        true_import = importlib.import_module
        monkeypatch.setattr(
            cuda_state.importlib,
            "import_module",
            lambda name: driver if name == "cuda.bindings.driver" else true_import(name),
        )
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    return become


def test_nothing_hinders(machine):
    machine()
    assert mg.cuda.is_available()
    assert mg.cuda.why_not() is None
    name = "NVIDIA Thing, compute capability 9.0, driver for CUDA 13.1"
    assert cuda_state.gpu_name() == name


@pytest.mark.parametrize(
    ("facts", "what", "remedy", "has_gpu"),
    [
        ({"status": DynamicLibNotFoundError("x")}, "no NVIDIA driver was found", "driver", False),
        ({"status": OSError("broken")}, "cannot be loaded: broken", "install its driver", False),
        ({"status": "CUDA_ERROR_NO_DEVICE"}, "sees no GPU", "nvidia-smi", False),
        ({"count": 0}, "sees no GPU", "nvidia-smi", False),
        ({"status": "CUDA_ERROR_SYSTEM_NOT_READY"}, "does not start: CUDA_ERROR_SYSTEM_NOT_READY",
         "nvidia-smi", True),
        ({"version": 12040}, "speaks CUDA 12.4, and the installed packages are for CUDA 13",
         "580 or newer, or pip install \"minigrad[cuda12]\"", True),
        ({"version": 11080}, "speaks CUDA 11.8", "580 or newer; or use", True),
        ({"packages": "12.9.1", "version": 11080}, "packages are for CUDA 12", "525", True),
        ({"capability": (6, 1)}, "compute capability is 6.1", "newer GPU", False),
        ({"capability": (7, 0)}, "compile for 7.5 and above", "newer GPU", False),
    ],
)  # fmt: skip
def test_each_hindrance_is_named_with_its_remedy(machine, facts, what, remedy, has_gpu):
    machine(**facts)
    found = cuda_state.hindrance()
    assert found is not None
    assert what in found.what
    assert remedy in found.remedy
    assert "device='simt'" in found.remedy
    assert found.has_gpu is has_gpu
    assert not mg.cuda.is_available()
    assert what in mg.cuda.why_not()


def test_older_packages_take_older_drivers_and_gpus(machine):
    machine(packages="12.9.1", version=12040, capability=(7, 0))
    assert cuda_state.hindrance() is None


def test_hidden_gpus_are_suspected(machine, monkeypatch):
    machine(count=0)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "CUDA_VISIBLE_DEVICES=''" in cuda_state.hindrance().what


def test_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(compiler, "missing", lambda: "numba-cuda")
    found = cuda_state.hindrance()
    assert found.what == "the package numba-cuda is not installed"
    assert 'pip install "minigrad[cuda]"' in found.remedy


def test_numpy_that_numba_refuses_is_named(monkeypatch):
    monkeypatch.setattr(compiler, "missing", lambda: None)
    said = "Numba needs NumPy 2.4 or less. Got NumPy 2.6."

    def refuse(name):
        raise ImportError(said)

    monkeypatch.setattr(cuda_state.importlib, "import_module", refuse)
    found = cuda_state._numba()
    assert said in found.what
    assert "numpy<2.5" in found.remedy


def test_compiler_that_does_not_import_is_named(monkeypatch):
    def broken():
        raise AttributeError("module 'numpy' has no attribute 'row_stack'")

    monkeypatch.setattr(compiler, "names", broken)
    found = cuda_state._numba()
    assert "row_stack" in found.what
    assert f"numpy {cuda_state.version('numpy')}" in found.what


def test_device_that_is_not_here_says_why(monkeypatch):
    hindrance = cuda_state.Hindrance("a part is missing", "get it")
    monkeypatch.setattr(cuda_state, "hindrance", lambda: hindrance)
    monkeypatch.setattr(
        backend, "_devices", {k: v for k, v in backend._devices.items() if k != "cuda"}
    )
    for _ in range(2):
        with pytest.raises(mg.errors.DeviceError, match="a part is missing") as caught:
            mg.ones((2,), device="cuda")
        assert "try: get it" in str(caught.value)
        assert "test_state.py" in caught.value.where
    assert "minigrad.devices.gpu.cuda" not in sys.modules
