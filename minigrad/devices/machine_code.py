"""Compile kernels with the passes of Numba that they need, and keep their machine code on disk.

There is one file per function and signature. Numba's own cache fails for good on a damaged file and
on a full disk, and runs code with a flipped bit; this one replaces it in Numba's dispatchers. What
LLVM gets of a function depends on who calls it: Python (`OfKernels`), kernels alone (`OfParts`, and
`OfBodies` for a function of its own inside its kernel), or kernels by symbol (`Apart`). Only kernel
files import this module, since it imports Numba.
"""

import contextlib
import hashlib
import operator
import pathlib
import pickle
import sys
from typing import Any

import llvmlite.binding as llvm
from numba import njit, types
from numba.core import typed_passes, typeinfer, untyped_passes
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult
from numba.core.compiler_machinery import PassManager
from numba.core.serialize import dumps
from numba.core.sigutils import normalize_signature

from minigrad.devices import cache_files

VERSION = 3  # of a file's content


class MachineCode(NullCache):
    """The cache that a dispatcher asks for machine code before it compiles.

    A file's name is the hash of all that decides its meaning: the name of the kernel's file, which
    covers its text, flags and all versions; function, signature and processor.
    """

    def __init__(self, function):
        code = function.__code__
        self.file = pathlib.Path(code.co_filename)
        self.known_as = f"{self.file.stem}.{function.__qualname__}".replace("<locals>.", "")
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        self.meaning = VERSION, code.co_firstlineno, code.co_code, dumps(cells) if cells else b""

    @property
    def cache_path(self):
        return str(self.file.parent)

    def _path(self, signature, processor):
        types, _ = normalize_signature(signature)  # a text, or the types of a call: one file
        whole = repr((*self.meaning, types, processor.magic_tuple()))
        digest = hashlib.sha256(whole.encode()).hexdigest()[:16]
        return self.file.with_name(f"{self.known_as}.{digest}.code")

    def load_overload(self, sig, target_context):
        target_context.refresh()
        data = cache_files.read(self._path(sig, target_context.codegen()))
        if data is None:
            return None
        try:
            called, *parts = pickle.loads(data)  # symbols of kernels that are Apart, first
            for symbol in called:
                module, _, name = symbol.partition(".")
                getattr(sys.modules[module], name).link()
            return CompileResult._rebuild(target_context, *parts)
        except Exception:  # it needs what this process lacks: compile
            return None

    def save_overload(self, sig, data):
        if data.library.has_dynamic_globals or any(not one.can_cache for one in data.lifted):
            return
        called = [
            one.name
            for one in data.library._final_module.functions
            if one.is_declaration and one.name.startswith("minigrad_kernel_")
        ]
        cache_files.write(self._path(sig, data.codegen), dumps((called, *data._reduce())))


class Part(JITCodeLibrary):
    """What LLVM knows of a function that only kernels call: it becomes part of theirs.

    Numba would make machine code of it too, which nobody calls.
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
        return 0  # what Numba says where there is no wrapper

    @property
    def codegen(self):
        return self  # asked for `set_env` alone

    def set_env(self, name, environment):
        """Do nothing: without machine code there is no place that holds the environment."""


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


class Apart:
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
        (found,) = self.kernel.overloads.values()
        address = found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name)
        llvm.add_symbol(self.symbol, address)
        self._is_linked = True

    @property
    def _numba_type_(self):
        """What Numba takes it for where a kernel calls it."""
        self.link()
        return self._numba_type
