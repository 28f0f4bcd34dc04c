"""Machine code whose addresses LLVM has kept whole.

Kernels get addresses as ints. LLVM 22 may rebuild such an address, while it unrolls a loop, as an
offset from a null pointer, and every access through it is undefined (llvmlite's notes on pointer
provenance; numba#10695). So the optimised code of the kernels of a training is searched for it.
"""

import pathlib
import re
import subprocess
import sys

import numpy as np

import minigrad as mg
from minigrad import nn

ROOT = pathlib.Path(__file__).parents[2]
FROM_NULL = re.compile(
    r"^.*(?:getelementptr [^,]+|load [^,]+|store .+), ptr null\b.*$"
    r"|^.*@llvm.mem\w+.*\(ptr.* null,.*$",
    re.MULTILINE,
)


def train():
    """Run one step of a network with most kinds of kernels, eagerly and compiled."""
    random = np.random.default_rng(0)
    layers = nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(108, 8)
    model = nn.Sequential(*layers, nn.LayerNorm(8))
    optimizer = mg.optim.Adam(model)
    x = mg.variable(random.standard_normal((4, 1, 6, 6)).astype("f4"))
    t = mg.variable(random.integers(0, 8, 4))

    def step(x, t):
        with mg.GradManager(model.parameters()) as gm:
            loss = mg.cross_entropy(model(x), t)
            gm.backward(loss)
        optimizer.step()
        return loss

    step(x, t)
    mg.compile(step)(x, t)
    table = mg.variable(random.standard_normal((9, 5)))
    rows = table[mg.variable(random.integers(0, 9, 6))]
    (mg.softmax(rows, -1).cumsum(0) @ table.T).max(axis=1).sum()
    mg.sort(rows, axis=0)
    mg.randn(7)


def test_the_pattern_is_recognised():
    assert FROM_NULL.search("  %4 = getelementptr i8, ptr null, i64 %3\n  ret void")
    assert FROM_NULL.search("  %5 = load float, ptr null, align 4")
    assert FROM_NULL.search("  store float %5, ptr null, align 4")
    assert not FROM_NULL.search("  store ptr null, ptr %5\n  %6 = load float, ptr %4, align 4")


def kernels():
    """Yield (name, optimised code) of all kernels that this process has loaded."""
    for name, module in list(sys.modules.items()):
        if name.startswith("minigrad_kernel_"):
            for label, function in vars(module).items():
                if isinstance(found := getattr(function, "overloads", None), dict):
                    for one in found.values():
                        code = one.library._get_module_for_linking()  # also of what was kept
                        yield f"{name}.{label}", str(code)


def test_no_kernel_computes_an_address_from_null():
    """In a process of its own: others may have loaded thousands of kernels."""
    done = subprocess.run(
        [sys.executable, "-m", __name__], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    train()
    texts = dict(kernels())
    wrong = {name: lines[:3] for name, text in texts.items() if (lines := FROM_NULL.findall(text))}
    assert not wrong, wrong
    assert "".join(texts.values()).count("inttoptr") > 100, "no kernel was looked through"
