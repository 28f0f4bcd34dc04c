"""Random numbers of a program: kernels that find the seed and the counter in memory.

A launch that is written down cannot hold them as numbers: they are others at each call.
"""

from minigrad.devices import loader
from minigrad.devices.gpu.kernel import gpu_kernel
from minigrad.formulas.emitter import TYPE_OF

THREADS = 128
MOST_BLOCKS = 1 << 16


def random_kernel(kind, dtype):
    """(GpuKernel, elements of one block of the generator) for a kind of numbers and a dtype.

    Its arguments: out, [seed, counter] as int64, elements, counters used before; of integers low
    and high, too.
    """
    code = TYPE_OF[dtype.name].lower()
    per = 4 if code == "f4" else 2
    name, more = f"{kind}_block_{code}", ""
    arguments, types = ["out", "state", "n", "counter"], [f"{code}*", "i8*", "i8", "i8"]
    span = ""
    if kind == "integers":
        name, more, span = "integer_block_i8", ", low, span", "    span = U8(high) - U8(low)\n"
        arguments, types = [*arguments, "low", "high"], [*types, "i8", "i8"]
    stores = "".join(
        f"        if i + {k} < n:\n            out[i + {k}] = values[{k}]\n" for k in range(1, per)
    )
    text = f"""def kernel({", ".join(arguments)}):
    key, start = state[0], state[1] + counter
{span}    block = cuda.grid(1)
    while {per} * block < n:
        values = {name}(start + block, key{more})
        i = {per} * block
        out[i] = values[0]
{stores}        block += cuda.gridsize(1)
"""
    return gpu_kernel(text, " ".join(types), loader.RANDOM), per


def launch_random(device, out, kind, state, counter, low, high):
    """Fills a contiguous Array; state: the Array of seed and counter."""
    if not out.size:
        return
    kernel, per = random_kernel(kind, out.dtype)
    blocks = min(-(-out.size // (per * THREADS)), MOST_BLOCKS)
    limits = (low, high) if kind == "integers" else ()
    device.launch(kernel, blocks, THREADS, (out, state, out.size, counter, *limits))
