"""Functions that nobody thought about: bodies for the exercises' functions, all of them wrong."""

from __future__ import annotations

import ast
import linecache
from typing import Any

from minigrad.grader.live import try_function
from minigrad.grader.spec import Exercise

# Statements in terms of `args`, a tuple of a function's arguments, without self.
BODIES = {
    "pass": "pass",
    "0": "return 0",
    "1": "return 1",
    "-1": "return -1",
    "0.0": "return 0.0",
    "1.0": "return 1.0",
    "nan": "return float('nan')",
    "inf": "return float('inf')",
    "True": "return True",
    "False": "return False",
    "an empty text": "return ''",
    "an empty list": "return []",
    "an empty tuple": "return ()",
    "an empty dict": "return {}",
    "the first argument": "return args[0]",
    "the second argument": "return args[1]",
    "the last argument": "return args[-1]",
    "a list of the arguments": "return list(args)",
    "the arguments": "return args",
    "the first argument, times 0": "return args[0] * 0",
    "the first argument, twice": "return args[0] + args[0]",
    "the sum of the arguments": "return sum(args[1:], args[0])",
    "zeros": "return __import__('numpy').zeros_like(args[0])",
    "zeros for each": "return tuple(__import__('numpy').zeros_like(a) for a in args)",
    "an array of nan": "return __import__('numpy').full_like(args[0], float('nan'))",
    "a copy": "return __import__('copy').copy(args[0])",
    "a deep copy": "return __import__('copy').deepcopy(args[0])",
    "itself": "return self",
    "an object": "return __import__('types').SimpleNamespace()",
    "ValueError": "raise ValueError('no')",
    "TypeError": "raise TypeError('no')",
    "KeyError": "raise KeyError('no')",
    "RuntimeError": "raise RuntimeError('no')",
    "NotImplementedError": "raise NotImplementedError('no')",
    "ZeroDivisionError": "return 1 // 0",
    "SystemExit": "raise SystemExit(0)",
    # The clock of a worker ends what is endless; here it ends by itself.
    "an endless generator": "yield from range(10_000)\nraise RuntimeError('no end')",
}
# The same for kernels, which return nothing: `first` and `last` are arguments.
KERNELS = {
    "pass": "pass",
    "return": "return",
    "0 at one place": "last[0] = 0",
    "0 everywhere": "last[cuda.grid(1)] = 0",
    "a copy": "last[cuda.threadIdx.x] = first[cuda.threadIdx.x]",
    "a sum, one after the other": "last[0] += first[0]",
    "an error": "raise ValueError('no')",
    "a barrier": "cuda.syncthreads()",
    "a constant": "return 1.0",
}


def with_bodies(source: str, names: set[str], body: str, *, kernels: bool = False) -> str:
    """Return a file's text with the body of some functions, and of their classes' methods, changed.

    Exceptions that the file defines are raised by the body `raise NAME`.
    """
    tree = ast.parse(source)
    for node in tree.body:
        parts = node.body if isinstance(node, ast.ClassDef) else [node]
        for part in parts:
            is_function = isinstance(part, ast.FunctionDef) and part.name != "__init__"
            if is_function and getattr(node, "name", "") in names:
                _change(part, body, is_method=part is not node, is_kernel=kernels)
    return ast.unparse(ast.fix_missing_locations(tree))


def _change(node: ast.FunctionDef, body: str, *, is_method: bool, is_kernel: bool) -> None:
    names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)][is_method:]
    if is_kernel:
        arrays = [name for name in names if len(name) > 1 or name in "xabc"]
        body = body.replace("first", names[0]).replace("last", arrays[-1])
    else:
        each = [*names, *([f"*{node.args.vararg.arg}"] if node.args.vararg else [])]
        each += [a.arg for a in node.args.kwonlyargs]
        body = f"args = ({''.join(f'{one}, ' for one in each)})\n{body}"
    node.body = ast.parse(body).body
    node.decorator_list = []


def own_errors(source: str) -> list[str]:
    """Return the names of the exceptions that a file defines."""
    classes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    return [c.name for c in classes if any("Error" in ast.unparse(base) for base in c.bases)]


def load(text: str, path: str) -> dict[str, Any]:
    """Run a file's text; return its names. The machine of kernels finds their source, too."""
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    names: dict[str, Any] = {"__name__": "silly", "__file__": path}
    exec(compile(text, path, "exec"), names)
    return names


def earned(exercise: Exercise, names: dict[str, Any], seed: int) -> dict[str, int]:
    """Return what the checks give to a function of a file, those that give nothing left out."""
    result = try_function(exercise, names[exercise.name], seed)
    return {check.name: check.points for check in result.checks if check.points}
