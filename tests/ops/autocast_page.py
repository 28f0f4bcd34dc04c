"""docs/generated/autocast.md: what each function does inside `with mg.autocast(...):`."""

from minigrad.ops.autocast import FLOAT32, LOWER, TABLE, WIDEST
from minigrad.ops.table import functions
from tests.pages import NOTE

PROSE = """# What autocast casts

{note}

Inside `with mg.autocast("float16"):` a function of these lists first casts the floats among its
arguments, then runs as it does outside; what it calls is not cast again. float64, ints and bools
stay as they are. The lists are `TABLE` of [ops/autocast.py](../../minigrad/ops/autocast.py), after
those of PyTorch, of which it has one for each kind of device; here they are the same everywhere,
and made for the half with the smallest range, float16.

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
    others = _listed(sorted(functions.keys() - named))
    return PROSE.format(note=NOTE, rows="\n".join(rows), others=others)


def _listed(names):
    return ", ".join(f"`{name}`" for name in names)
