"""Keep the machine code of kernels on disk, in files that Numba's dispatchers ask for.

There is one file per function and signature. Numba's own cache fails for good on a damaged file and
on a full disk, and runs code with a flipped bit; this one replaces it in Numba's dispatchers. Only
kernel files import this module, since it imports Numba.
"""

import hashlib
import pathlib
import pickle
import sys

from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
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
            called, *parts = pickle.loads(data)  # symbols of kernels that it calls by symbol, first
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
