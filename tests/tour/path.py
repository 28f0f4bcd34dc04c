"""The reading path: the files of minigrad/ that tell the whole story, in the order to read them."""

import pathlib

ROOT = pathlib.Path(__file__).parents[2]
MOST_LINES = 5_000  # of all of them together
FILES = (
    "errors.py",
    "memory/buffer.py",
    "memory/pool.py",
    "array/array.py",
    "array/layout.py",
    "formulas/expression.py",
    "formulas/emitter.py",
    "tape/variable.py",
    "tape/node.py",
    "tape/backward.py",
    "tape/function.py",
    "ops/base.py",
    "ops/gradient_plan.py",
    "ops/unary.py",
    "ops/binary.py",
    "ops/rows.py",
    "ops/reduction.py",
    "ops/linear.py",
    "nn/module.py",
    "nn/linear.py",
    "optim/rules.py",
    "optim/optimizer.py",
)


def lines_of(file):
    """How many lines a file of the path has."""
    return len((ROOT / "minigrad" / file).read_text(encoding="utf-8").splitlines())
