"""Functions of kernels that have one code, whatever constants their callers pass."""

from numba import types

from minigrad.devices import loader

TEXT = """
@general
@njit
def plus(x, y):
    return x + y


@jit("i8(i8)")
def kernel(x):
    return plus(plus(x, 2), y=3)
"""


def test_a_general_function_is_compiled_once_for_all_constants(tmp_path, monkeypatch):
    monkeypatch.setattr(loader, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(loader, "_modules", {})
    monkeypatch.setattr(loader, "loaded", [])
    module = loader.load(TEXT)
    assert module.kernel(10) == 15
    assert module.plus.signatures == [(types.int64, types.int64)]
