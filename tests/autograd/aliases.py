"""docs/generated/aliases.md: writes in place whose operand shows the bytes they overwrite.

The numbers are PyTorch's (`tests/golden/aliases.py` makes them).
"""

import functools
import json
import pathlib

import numpy as np

import minigrad as mg
from minigrad import errors
from tests.pages import NOTE, filled

ROOT = pathlib.Path(__file__).parents[2]
GOLDEN = json.loads((ROOT / "tests/golden/aliases.json").read_text(encoding="utf-8"))
X, UPSTREAM, ALONG = (np.asarray(GOLDEN[name]) for name in ("x", "upstream", "along"))


def _set(index):
    def write(h, y):
        h[index] = y()[..., : h[index].shape[-1]]

    return write


# per column of the page writes that are the same one; y is a function that makes the operand, so
# that nobody but the write holds it
WRITES = {
    "h += y, h.add_(y)": (lambda h, y: h.__iadd__(y()), lambda h, y: h.add_(y())),
    "h -= y, h.sub_(y)": (lambda h, y: h.__isub__(y()), lambda h, y: h.sub_(y())),
    "h *= y, h.mul_(y)": (lambda h, y: h.__imul__(y()), lambda h, y: h.mul_(y())),
    "h /= y, h.div_(y)": (lambda h, y: h.__itruediv__(y()), lambda h, y: h.div_(y())),
    "h.copy_(y)": (lambda h, y: h.copy_(y()),),
    "h.fill_(y[0])": (lambda h, y: h.fill_(y().reshape(-1)[0]),),
    "h[:] = y": (_set(slice(None)),),
    "h[:, 1:] = y": (_set((slice(None), slice(1, None))),),
    "h[:, [2, 0]] = y": (_set((slice(None), [2, 0])),),
}
ALIASES = {
    "h": lambda h: h,
    "h.detach()": lambda h: h.detach(),
    "h[:]": lambda h: h[:],
    "h[0]": lambda h: h[0],
    "h[::-1]": lambda h: h[::-1],
    "h.T": lambda h: h.T,
    "h.detach().T": lambda h: h.detach().T,
    "h.clone()": lambda h: h.clone(),
    "h + 1": lambda h: h + 1.0,
    "h * h": lambda h: h * h,
}


def computed(write, alias, x):
    """[the value of h after the write, its first, its second derivatives], as Variables."""
    h = x * x
    write(h, lambda: ALIASES[alias](h))
    loss = (h * h * mg.variable(UPSTREAM)).sum() + (x * x * x).sum()
    (first,) = mg.gradients([loss], [x], create_graph=True)
    (second,) = mg.gradients([(first * mg.variable(ALONG)).sum()], [x])
    return [h.detach(), first.detach(), second]


def compare(found, column, alias):
    """Holds what `computed` gave against PyTorch's numbers."""
    key = f"{column} | {alias}"
    for got, wanted in zip(found, GOLDEN["numbers"][key], strict=True):
        np.testing.assert_allclose(got.numpy(), np.asarray(wanted), 1e-12, 1e-12, err_msg=key)


def leaf():
    """x of the golden numbers."""
    return mg.variable(X, requires_grad=True)


def outcome(column, alias):
    """What stands in a cell of the table."""
    marks = set()
    for write in WRITES[column]:
        try:
            compare(computed(write, alias, leaf()), column, alias)
        except errors.SavedValueModifiedError:
            marks.add("raises")
        else:
            pytorch = GOLDEN["pytorch"][f"{column} | {alias}"]
            marks.add({"same": "✓", "raises": "✓ ¹", "differs": "✓ ²"}[pytorch])
    (mark,) = marks
    return mark


PROSE = """# Writes whose operand is their target

{note}

An operand of a write in place may show the bytes that are overwritten: `h *= h`. minigrad reads all
operands before it writes, and saves for backward what they were: an operand that backward needs and
that shares its Storage with the target is copied first. So every cell is what the same operation
out of place gives, `h = h * y`: its value, its gradient and its second derivative, in float64, held
against PyTorch's. Elsewhere nothing is copied.

{table}

✓: the numbers of the operation out of place. ¹: PyTorch raises, in backward (what it saved was
overwritten) or at the write (memory that overlaps). ²: PyTorch gives other numbers, unsaid. raises:
`SavedValueModifiedError` in backward, since an earlier operation saved h; PyTorch raises as well.

- **A view that somebody else holds** (`v = h[0]; h *= w`): a recorded write raises `InPlaceError`,
  since v would not know. A view that is the operand itself is fine, and raises if it is used
  afterwards.
- **`Function` with `mark_dirty`.** What forward saved and then wrote to raises in backward, as does
  an argument that shows the bytes of a dirty one and was saved after the write. A dirty argument
  that is saved after the write counts as the output.
- **`@mg.kernel`.** Kernels read their inputs only; one that writes to them raises `KernelError`.
"""


def table():
    """One row an alias, one column a write."""
    lines = ["| y | " + " | ".join(f"`{name}`" for name in WRITES) + " |"]
    lines.append("|---" * (len(WRITES) + 1) + "|")
    for alias in ALIASES:
        cells = [outcome(column, alias) for column in WRITES]
        lines.append(f"| `{alias}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


@functools.cache
def text():
    """The whole page."""
    return filled(PROSE, note=NOTE, table=table)
