"""minigrad: learn how automatic differentiation really works, on an engine that is real.

    import minigrad as mg

Its parts are loaded when they are first used, Numba with the first kernel.
"""

import importlib

__version__ = "0.1.0"

_MODULES = {
    name: f"minigrad.{name}"
    for name in ("memory", "nn", "optim", "errors", "data", "viz", "course", "kernels", "graph")
}
_MODULES |= {"debug": "minigrad.autograd.debug", "functional": "minigrad.autograd.functional"}
_NAMES = {
    "Variable": "minigrad.graph.variable",
    "Function": "minigrad.graph.function",
    "kernel": "minigrad.ops.custom",
    "once_differentiable": "minigrad.graph.function",
    "no_grad": "minigrad.graph.modes",
    "enable_grad": "minigrad.graph.modes",
    "inference": "minigrad.graph.modes",
    "is_recording": "minigrad.graph.modes",
    "GradManager": "minigrad.autograd.manager",
    "use": "minigrad.course.seams",
}
for _name in ("float32", "float64", "int32", "int64", "uint8", "bool_"):
    _NAMES[_name] = "minigrad.array.dtypes"
for _name in (
    "grad", "value_and_grad", "vjp", "jvp", "hvp", "jacobian", "hessian", "gradients",
):  # fmt: skip
    _NAMES[_name] = "minigrad.autograd.functional"
for _name in (
    "variable", "from_numpy", "from_dlpack", "zeros", "ones", "full", "arange", "linspace", "eye",
    "rand", "randn", "randint", "randperm", "manual_seed", "zeros_like", "ones_like", "Generator",
):  # fmt: skip
    _NAMES[_name] = "minigrad.ops.creation"


def __getattr__(name):
    if name in _MODULES:
        if name == "memory":  # the graph that it looks at must be there
            importlib.import_module("minigrad.ops.table")
        value = importlib.import_module(_MODULES[name])
    elif name in _NAMES:
        importlib.import_module("minigrad.ops.table")  # operators first: Variables need them
        value = getattr(importlib.import_module(_NAMES[name]), name)
    else:
        if name.startswith("_"):
            raise AttributeError(f"module 'minigrad' has no attribute '{name}'")
        functions = importlib.import_module("minigrad.ops.table").functions
        if name not in functions:
            raise AttributeError(f"module 'minigrad' has no attribute '{name}'")
        value = functions[name]
    globals()[name] = value
    return value


def __dir__():
    functions = importlib.import_module("minigrad.ops.table").functions
    return sorted({*globals(), *_MODULES, *_NAMES, *functions})
