"""Explains Numba's errors in a user's kernel: one sentence, with the kernel's line."""

import re

from minigrad.errors import KernelError, describe_line

NOISE = ("Failed in", "During", "File", "def ", "<source", "^", "- ", "[")


def explained(error, function, arguments, fix, target=""):
    """Return the KernelError for Numba's error; its `full` is Numba's whole text.

    Args:
        function: the kernel.
        arguments: the type of each of its arguments, as text.
        fix: what compiles and what does not.
        target: what it was compiled for, such as " for a GPU".
    """
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    plain = [line for line in lines if not line.startswith(NOISE) and "step:" not in line] or lines
    rejected = [line for line in plain if line.startswith("NumbaTypeError: ")]
    sentence = rejected[0].partition(": ")[2] if rejected else plain[0]
    code = function.__code__
    places = re.findall(r'File "([^"]+)", line (\d+)', text)
    mine = [int(number) for name, number in places if name in code.co_filename]
    names = code.co_varnames
    out = KernelError(
        f"kernel {function.__name__}: Numba cannot compile it{target}: {sentence}",
        ", ".join(f"{name}: {kind}" for name, kind in zip(names, arguments, strict=False)),
        f"{fix}. The whole text of Numba is in .full of this error",
        where=describe_line(code.co_filename, mine[0] if mine else code.co_firstlineno),
    )
    out.full = text
    return out
