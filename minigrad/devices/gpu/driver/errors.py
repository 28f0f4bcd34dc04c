"""Explain the driver's errors, which come late and without a line."""

import contextlib
import re

from minigrad.errors import GpuError

LATE = (
    "kernels run after their launch has returned, so the fault may be before this line; with "
    "MINIGRAD_CUDA_SYNC=1 every launch waits for its kernel"
)
LOST = "; this process cannot use the GPU any more: start Python again"

# name -> (what went wrong, what to do, whether it may come late)
EXPLAINED = {
    "CUDA_ERROR_ILLEGAL_ADDRESS": (
        "a kernel read or wrote outside its memory",
        "run the same on device='simt', which names the kernel, its line and the thread" + LOST,
        True,
    ),
    "CUDA_ERROR_MISALIGNED_ADDRESS": (
        "a kernel's wide load or store was not aligned to its size",
        "run the same on device='simt', which names the kernel and its line" + LOST,
        True,
    ),
    "CUDA_ERROR_LAUNCH_FAILED": (
        "a kernel failed while it ran, usually by an access outside its memory",
        "run the same on device='simt', which names the kernel, its line and the thread" + LOST,
        True,
    ),
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": (
        "a kernel has an instruction that this GPU lacks",
        "please report this, with what `minigrad doctor` prints" + LOST,
        True,
    ),
    "CUDA_ERROR_LAUNCH_TIMEOUT": (
        "a kernel ran too long for a GPU that also draws the screen",
        "look for a loop without end on device='simt', or work on less data" + LOST,
        True,
    ),
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": (
        "a block needs more registers or shared memory than a multiprocessor has",
        "fewer threads per block, less shared memory, or fewer variables alive at once",
        False,
    ),
    "CUDA_ERROR_INVALID_VALUE": (
        "the driver refuses these arguments of a launch or a copy",
        "a block has 1 to 1024 threads, a grid at least one block and at most 65,535 in y and z",
        False,
    ),
    "CUDA_ERROR_NO_BINARY_FOR_GPU": (
        "the compiled kernel is for another kind of GPU",
        "delete the folder of compiled kernels that `minigrad doctor` names",
        False,
    ),
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": (
        "the driver is older than the compiler's output",
        'a newer driver, or pip install "minigrad[cuda12]"',
        False,
    ),
    "CUDA_ERROR_NOT_INITIALIZED": (
        "CUDA was not started in this process, or it is a fork of one that uses CUDA",
        "start processes with multiprocessing.get_context('spawn')",
        False,
    ),
    "CUDA_ERROR_ECC_UNCORRECTABLE": (
        "the GPU's memory has a fault that it cannot correct",
        "see nvidia-smi -q -d ECC; the GPU may have to be reset or exchanged" + LOST,
        True,
    ),
}
OUT_OF_MEMORY = "CUDA_ERROR_OUT_OF_MEMORY"


def code_of(error):
    """Return the driver's name in a library's error, such as CUDA_ERROR_INVALID_VALUE, or ''."""
    match = re.search(r"CUDA_ERROR_\w+", str(error))
    return match.group(0) if match else ""


def explained(code, doing, details=()):
    """Return the GpuError for the driver's name of an error; doing: the action in a few words."""
    if code == OUT_OF_MEMORY:
        what, fix, is_late = "the GPU's memory is used up", "free some, or work on less data", False
    else:
        what, fix, is_late = EXPLAINED.get(
            code, ("the GPU or its driver failed", "see what nvidia-smi and dmesg say", True)
        )
    rows = [*details, *([("note", LATE)] if is_late else [])]
    out = GpuError(f"{doing}: {what}", code or "no name for it", fix, details=rows)
    out.code = code
    return out


@contextlib.contextmanager
def explaining(doing):
    """Turn errors of the driver's libraries in the block into GpuErrors."""
    try:
        yield
    except GpuError:
        raise
    except Exception as error:
        code = code_of(error)
        if not code:
            raise
        raise explained(code, doing) from error
