"""Machine code whose addresses LLVM has kept whole.

Kernels get addresses as ints. LLVM 22 may rebuild such an address, while it unrolls a loop, as an
offset from a null pointer, and every access through it is undefined (llvmlite's notes on pointer
provenance; numba#10695). So the optimised code of the kernels of a training is searched for it.
"""

import re
import sys

import numpy as np

import minigrad as mg
from minigrad import nn

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


def test_no_kernel_computes_an_address_from_null():
    train()
    texts = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("minigrad_kernel_"):
            for function in vars(module).values():
                for found in getattr(function, "overloads", {}).values():
                    module = found.library._get_module_for_linking()  # optimised, also from disk
                    texts[f"{name}.{function.__name__}"] = str(module)
    assert "".join(texts.values()).count("inttoptr") > 100, "no kernel was looked through"
    wrong = {name: lines[:3] for name, text in texts.items() if (lines := FROM_NULL.findall(text))}
    assert not wrong, wrong
