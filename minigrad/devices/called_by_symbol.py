"""Kernels that other kernels call by symbol, as they call BLAS, and that are compiled once."""

from typing import Any

import llvmlite.binding as llvm
from numba import types
from numba.core.sigutils import normalize_signature

from minigrad.devices.numba_pipelines import kept_jit


class CalledBySymbol:
    """A kernel that is compiled when somebody first needs it, once, apart from its callers.

    Kernels call its machine code by symbol, as they call BLAS. Numba would link its code into each
    caller, where LLVM would optimise it again. wanted: its one signature, all of numbers.
    """

    def __init__(self, function, wanted, **options):
        self.kernel: Any = kept_jit(**options)(function)
        self.wanted = wanted
        self.symbol = f"{function.__module__}.{function.__name__}"
        arguments, result = normalize_signature(wanted)
        assert result is not None, wanted
        self._numba_type = types.ExternalFunction(self.symbol, result(*arguments))
        self._is_linked = False

    def __call__(self, *arguments):
        return self.kernel(*arguments)

    @property
    def overloads(self):
        return self.kernel.overloads

    def compile(self, wanted=None):
        """Compile it, or take it from disk."""
        return self.kernel.compile(wanted or self.wanted)

    def link(self):
        """Tell LLVM the address of its machine code."""
        if self._is_linked:
            return
        self.compile()
        (compiled,) = self.kernel.overloads.values()
        address = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_cfunc_wrapper_name)
        llvm.add_symbol(self.symbol, address)
        self._is_linked = True

    @property
    def _numba_type_(self):
        """What Numba takes it for where a kernel calls it."""
        self.link()
        return self._numba_type
