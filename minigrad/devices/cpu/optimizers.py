"""The machine code of the optimizers' kernels, each compiled when it is first asked for."""

import functools

from minigrad.devices import loader

ROW = 8  # integers of a row: as in source/optimizers.py
PARAMETER, GRADIENT, STATE, SIZE, SLOT, COUNTERS, HYPERPARAMETERS = range(7)


@functools.cache
def kernel(name, dtype_name):
    """kernel(table, rows, pieces, first, last), all addresses and ints; see source/optimizers.py.

    name: sgd, adam, rmsprop; or squares and scale, which take (table, rows, numbers, 0, 0).
    """
    suffix = {"float32": "f4", "float64": "f8"}[dtype_name]
    function = getattr(loader.load_source("optimizers"), f"{name}_{suffix}")
    function.compile("void(i8,i8,i8,i8,i8)")
    return loader.entry(function)
