"""A kernel with a fault planted, beside its clean twin: how both are launched, what they owe.

Lines marked `# fault` are those that the error may point at; of a race, both lines are marked.
"""

import dataclasses
import inspect
import re
from collections.abc import Callable
from unittest import mock

import numpy as np

from minigrad import simt
from minigrad.errors import SimulationError

f4 = np.float32
N = 128
FAULTS: list["Fault"] = []


@dataclasses.dataclass
class Fault:
    """A planted fault.

    Attributes:
        what: the fault, in a few words.
        error: the class of the error that it must raise.
        kernel, clean: the kernel with the fault, and without.
        blocks, threads, shared: how it is launched.
        arguments: makes the arguments.
        expected: what the clean twin must leave in the last argument, or None.
    """

    what: str
    error: type[SimulationError]
    kernel: Callable
    clean: Callable
    blocks: object
    threads: object
    arguments: Callable
    expected: Callable | None = None
    shared: int = 0


def fault(what, error, blocks, threads, arguments, expected=None, shared=0):
    """Adds a pair of kernels, given as a function that returns (kernel, clean)."""

    def add(pair):
        kernel, clean = pair()
        FAULTS.append(
            Fault(what, error, kernel, clean, blocks, threads, arguments, expected, shared)
        )
        return pair

    return add


def x_and_out(n, m=None, seed=0):
    """Makes (random floats, zeros)."""

    def make():
        x = np.random.default_rng(seed).integers(-8, 8, n).astype(f4)
        return x, np.zeros(n if m is None else m, f4)

    return make


def found(case):
    """The error of a planted fault, or None. Endless loops are given up early."""
    limits = {"LOOP_LIMIT": 2000, "LOOP_SECONDS": 0.0, "SPIN_LIMIT": 200}
    with mock.patch.multiple("minigrad.simt.language.loops", **limits):
        try:
            simt.launch(case.kernel, case.blocks, case.threads, case.arguments(), case.shared)
        except SimulationError as error:
            return error
    return None


def marked(case):
    """The lines that the error may point at: {number: text}."""
    lines, first = inspect.getsourcelines(case.kernel)
    return {first + k: line for k, line in enumerate(lines) if "# fault" in line}


def line_of(error):
    """The number of the line that an error names."""
    return int(re.match(r"[^:]+:(\d+)  ", error.where).group(1))


def runs_clean(case):
    """Runs the clean twin; whether what it leaves is right."""
    arguments = case.arguments()
    first = arguments[0].copy()
    simt.launch(case.clean, case.blocks, case.threads, arguments, case.shared)
    return case.expected is None or np.allclose(arguments[-1], np.ravel(case.expected(first)))
