"""Derivatives for users: functional transforms, gradient checks, debugging.

Their public names are `mg.grad` and its like, and `mg.debug`.
"""

import importlib
import importlib.util

from minigrad.hints import missing


def __getattr__(name):
    """Import a module of this package, so that it is there whatever was imported before."""
    if name.startswith("_") or importlib.util.find_spec(f"{__name__}.{name}") is None:
        raise missing("mg.autograd", name, "mg.autograd has no", known=__dir__())
    return importlib.import_module(f"{__name__}.{name}")


def __dir__():
    return ["debug", "functional"]
