"""minigrad: learn how automatic differentiation really works, on an engine that is real.

    import minigrad as mg

Each part is imported at its first use, Numba at the first kernel.
"""

import importlib

__version__ = "0.1.0"

_MODULES = {
    name: f"minigrad.{name}"
    for name in (
        "memory", "nn", "optim", "errors", "data", "viz", "course", "cuda", "distributed",
        "autograd",
    )
}  # fmt: skip
_MODULES |= {"debug": "minigrad.autograd.debug", "functional": "minigrad.autograd.functional"}
_MODULES |= {"random": "minigrad.ops.random", "linalg": "minigrad.ops.linalg"}
_NAMES = {
    "Variable": "minigrad.tape.variable",
    "Function": "minigrad.tape.function",
    "kernel": "minigrad.ops.custom",
    "once_differentiable": "minigrad.tape.function",
    "no_grad": "minigrad.tape.modes",
    "enable_grad": "minigrad.tape.modes",
    "inference": "minigrad.tape.modes",
    "is_recording": "minigrad.tape.modes",
    "GradManager": "minigrad.tape.manager",
    "functional_call": "minigrad.nn.calling",
    "use": "minigrad.course.seams",
    "compile": "minigrad.compiler.call.compiled",
    "save": "minigrad.checkpoint",
    "load": "minigrad.checkpoint",
}
for _name in ("float32", "float64", "int32", "int64", "uint8", "bool_", "float16", "bfloat16"):
    _NAMES[_name] = "minigrad.array.dtypes"
for _name in (
    "grad", "value_and_grad", "vjp", "jvp", "hvp", "jacobian", "hessian", "gradients",
):  # fmt: skip
    _NAMES[_name] = "minigrad.autograd.functional"
for _name in (
    "variable", "from_numpy", "from_dlpack", "zeros", "ones", "full", "rand", "randn", "randint",
    "randperm", "manual_seed", "get_rng_state", "set_rng_state", "zeros_like", "ones_like",
    "full_like", "Generator", "arange", "linspace", "eye",
):  # fmt: skip
    _NAMES[_name] = "minigrad.ops.creation"
for _name in ("device", "set_default_device", "get_default_device"):
    _NAMES[_name] = "minigrad.ops.devices"
_NAMES["autocast"] = "minigrad.ops.autocast"
_NAMES["set_flush_denormal"] = "minigrad.devices.denormals"


def __getattr__(name):
    if name in _MODULES:
        if name == "memory":  # it reports on the graph, so the graph must be loaded
            importlib.import_module("minigrad.ops.table")
        value = importlib.import_module(_MODULES[name])
    elif name in _NAMES:
        importlib.import_module("minigrad.ops.table")  # operators first: Variables need them
        value = getattr(importlib.import_module(_NAMES[name]), name)
    else:
        is_public = not name.startswith("_")
        functions = importlib.import_module("minigrad.ops.table").functions if is_public else {}
        if name not in functions:
            hints = importlib.import_module("minigrad.hints")
            text = "module 'minigrad' has no attribute"
            raise hints.missing("mg", name, text, known=__dir__() if is_public else ())
        value = functions[name]
    globals()[name] = value
    return value


def __dir__():
    functions = importlib.import_module("minigrad.ops.table").functions
    return sorted({*globals(), *_MODULES, *_NAMES, *functions})
