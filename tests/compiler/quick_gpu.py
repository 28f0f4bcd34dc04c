"""A GPU whose kernels are the CPU's functions: programs for GPUs, tested at the CPU's speed.

Its memory is the host's, in a Pool of its own; each function of the device table is one launch. So
whatever the compiler does around the kernels is the real thing: plan, arena, launches written down
and replayed, copies in and out, effects.
"""

import inspect

from minigrad.array.array import Array
from minigrad.devices import backend
from minigrad.devices.cpu.device import cpu
from minigrad.devices.gpu.simt import Simt
from minigrad.memory.pool import Pool


class Kernel:
    """One function of the CPU's table, as a kernel."""

    def __init__(self, name):
        self.name, self.signature, self.text = name, "", f"def {name}(): ...\n"
        self.run = getattr(cpu, name)


def apart(operands):
    """The operands of `rows` with copies of inputs that an output lies over.

    The CPU's kernels keep values where an output goes; a GPU's keep them in registers.
    """
    program, modes, inputs, outputs, shape = operands
    inputs = [
        cpu.convert(x, x.dtype)
        if isinstance(x, Array) and any(x.is_alias_of(out) for out in outputs)
        else x
        for x in inputs
    ]
    return program, modes, inputs, outputs, shape


class QuickGpu(Simt):
    """The device; launches: how many there have been."""

    name = "quick"

    def __init__(self):
        super().__init__()
        self.pool = Pool("quick", self.pool.allocate)
        self.launches = 0

    def launch(self, kernel, blocks, threads, operands, shared=0):
        """Runs a function of the CPU; a kernel of the compiler's own, by the simulator."""
        QUICK.launches += 1
        if isinstance(kernel, Kernel):
            kernel.run(*(apart(operands) if kernel.name == "rows" else operands))
        else:
            super().launch(kernel, blocks, threads, operands, shared)

    def wrap_index(self, index, n, out):
        """As the CPU."""
        return cpu.wrap_index(index, n, out)

    def nonzero(self, x):
        """As the CPU."""
        return self.from_numpy(backend.values(cpu.nonzero(x)), cpu.nonzero(x).dtype)

    def convolves(self, *arguments):
        """No."""
        return False


def _as_launch(name):
    kernel, signature = Kernel(name), inspect.signature(getattr(cpu, name))

    def function(self, *operands, **named):
        if name == "random" and isinstance(operands[2], Array):  # a seed in memory
            Simt.random(self, *operands)
            return
        bound = signature.bind(*operands, **named)
        bound.apply_defaults()
        self.launch(kernel, 1, 1, bound.args)

    return function


for _name in (
    "elementwise", "reduce", "rows", "matmul", "gather", "scatter_add", "put", "cumsum",
    "arg_reduce", "argsort", "solve", "cholesky", "random", "unfold", "fold", "largest",
):  # fmt: skip
    setattr(QuickGpu, _name, _as_launch(_name))

QUICK = QuickGpu()
backend._modules["quick"] = __name__
backend.register(QUICK)
