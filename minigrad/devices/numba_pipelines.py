"""Compile kernels with the passes of Numba that they need, and no others.

What LLVM gets of a function depends on who calls it: Python (`OfKernels`), kernels alone
(`OfParts`, and `OfBodies` for a function of its own inside its kernel), or kernels by symbol (see
`called_by_symbol.py`). Only kernel files import this module, since it imports Numba.
"""

import contextlib
import operator
from typing import Any

from numba import njit, types
from numba.core import typed_passes, typeinfer, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import PassManager

from minigrad.devices.machine_code_cache import MachineCode


class Part(JITCodeLibrary):
    """What LLVM knows of a function that only kernels call: it becomes part of theirs.

    Numba would also generate machine code for it, which nobody calls.
    """

    def finalize(self):
        self._link()
        self._optimize_final_module()
        self._finalize_dynamic_globals()
        self._finalized = True

    def _link(self):
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)

    def get_pointer_to_function(self, name):
        self._ensure_finalized()
        return 0  # Numba's value for "no wrapper"

    @property
    def codegen(self):
        return self  # asked only for `set_env`

    def set_env(self, name, environment):
        """Do nothing: without machine code, nothing holds the environment."""


class Body(Part):
    """A Part that stays a function of its own, and is optimised only as part of its kernel."""

    def finalize(self):
        for function in self._final_module.functions:
            if not function.is_declaration:
                function.add_function_attribute("noinline")
        self._link()
        self._finalize_dynamic_globals()
        self._finalized = True


NEEDLESS = {  # passes for Python that kernels have none of: closures, array expressions, `with`
    untyped_passes.WithLifting,
    untyped_passes.InlineClosureLikes,
    untyped_passes.RewriteDynamicRaises,
    untyped_passes.MakeFunctionToJitFunction,
    untyped_passes.FindLiterallyCalls,
    untyped_passes.LiteralUnroll,
    untyped_passes.LiteralPropagationSubPipelinePass,
    typed_passes.NopythonRewrites,
    typed_passes.DumpParforDiagnostics,
}

OPERATORS = frozenset(one for one in vars(operator).values() if callable(one))
NUMBERS = types.Number, types.Boolean
_resolved = {}  # (operator, types of its operands) -> signature


@contextlib.contextmanager
def _remembering(context):
    """Resolve an operator of numbers once for all kernels: Numba asks dozens of templates."""
    if "resolve_function_type" in vars(context):  # a function that a kernel calls
        yield
        return
    resolve = context.resolve_function_type

    def resolve_function_type(func, args, kws):
        if kws or func not in OPERATORS or not all(isinstance(x, NUMBERS) for x in args):
            return resolve(func, args, kws)
        key = func, args
        if key not in _resolved:
            _resolved[key] = resolve(func, args, kws)
        return _resolved[key]

    context.resolve_function_type = resolve_function_type
    try:
        yield
    finally:
        del context.resolve_function_type


class OfKernels(Compiler):
    """Compiles kernels, without Numba's passes that they do not need."""

    library = JITCodeLibrary

    def define_pipelines(self):
        (whole,) = super().define_pipelines()
        passes = PassManager("kernel")
        passes.passes = [one for one in whole.passes if one[0] not in NEEDLESS]
        passes.finalize()
        return [passes]

    def compile_extra(self, func):
        self.state.library = self.library(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        with _remembering(self.state.typingctx):
            return super().compile_extra(func)


class OfParts(OfKernels):
    """Compiles functions that only kernels call."""

    library = Part


class OfBodies(OfKernels):
    """Compiles bodies of kernels.

    It promises LLVM that no two pointers among a function's arguments overlap (`noalias`).
    """

    library = Body

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.state.flags.noalias = True


def kept_jit(signature=None, **options):
    """Return Numba's njit with this cache; with a signature it compiles at once."""

    def decorate(function):
        kernel: Any = njit(pipeline_class=OfKernels, **options)(function)
        kernel._cache = MachineCode(function)
        if signature is not None:
            with typeinfer.register_dispatcher(kernel):
                kernel.compile(signature)
                kernel.disable_compile()
        return kernel

    return decorate
