"""docs/generated/autocast.md: what each function does inside `with mg.autocast(...):`."""

from minigrad.ops.autocast import FLOAT32, LOWER, TABLE, WIDEST
from minigrad.ops.table import functions
from tests.pages import NOTE

PARTS = {"copy_of", "huber_element", "root_of_squares"}  # of other functions: no user calls them
PROSE = """# What autocast casts

{note}

Inside `with mg.autocast("float16"):` a function of these lists first casts the floats among its
arguments, then runs as it does outside; what it calls is not cast again. float64, ints and bools
stay as they are; a product with float64 among its operands is left as it is. The lists are `TABLE`
of [ops/autocast.py](../../minigrad/ops/autocast.py). PyTorch keeps one set of lists for each kind
of device. minigrad has one set, chosen for float16, which has the smallest range.

Operators and methods count as the functions that they call: `a @ b` is matmul, `x ** 2` is pow,
`x.sum()` is sum. Layers do so, too: `nn.Linear` calls linear.

| casts to | functions |
|---|---|
{rows}

All other functions compute in the dtype of their arguments; of two float dtypes the wider one is
the result's:

{others}
"""


def text():
    """The page."""
    rows = [f"| {rule} | {_listed(TABLE[rule])} |" for rule in (LOWER, FLOAT32, WIDEST)]
    named = {name for names in TABLE.values() for name in names}
    others = _listed(sorted(functions.keys() - named - PARTS))
    return PROSE.format(note=NOTE, rows="\n".join(rows), others=others)


def _listed(names):
    return ", ".join(f"`{name}`" for name in names)
