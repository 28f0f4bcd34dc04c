"""Training steps beside PyTorch on the same GPU, where it is installed."""

import importlib.util

import minigrad as mg
from benchmarks.case import measure
from benchmarks.gpu.timing import Row
from benchmarks.peers import minigrad_cases

STEPS = {  # name -> (kind, settings)
    "digits MLP 64-32-10, batch 64": ("mlp", ([64, 32, 10], 64)),
    "MLP 784-512-512-10, batch 128": ("mlp", ([784, 512, 512, 10], 128)),
    "transformer of 2 blocks, width 128, batch 8": ("transformer", (128, 4, 64, 8, 2, 100)),
}
SECONDS = 1.0


def rows(device):
    """Milliseconds a step: minigrad eager and compiled, PyTorch eager."""
    for name, (kind, settings) in STEPS.items():
        for how, wrap in (("eager", lambda f: f), ("mg.compile", mg.compile)):
            with mg.device("cuda"):
                case = getattr(minigrad_cases, kind)(wrap, *settings)
                case.finish = device.synchronize
                yield _row(f"{name}, minigrad {how}", case)
        if importlib.util.find_spec("torch"):
            yield _row(f"{name}, PyTorch", _by_pytorch(kind, settings))


def _by_pytorch(kind, settings):
    import torch

    from benchmarks.peers import pytorch_cases

    torch.set_default_device("cuda")
    case = getattr(pytorch_cases, kind)(lambda f: f, *settings)
    case.finish = torch.cuda.synchronize
    return case


def _row(what, case):
    found = measure(case, SECONDS)
    waited = found.get("waited")
    note = "" if waited is None else f"waited for one by one {1e3 * waited:.3g} ms"
    return Row(what, 1e3 * found["median"], "ms", note=note)
