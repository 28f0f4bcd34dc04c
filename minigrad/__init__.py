"""minigrad: learn how automatic differentiation really works, on an engine that is real.

    import minigrad as mg

Its parts are loaded when they are first used, Numba with the first kernel.
"""

import importlib

__version__ = "0.1.0"

_MODULES = {
    name: f"minigrad.{name}"
    for name in ("memory", "nn", "optim", "errors", "data", "viz", "course", "cuda")
}
_MODULES |= {"debug": "minigrad.autograd.debug", "functional": "minigrad.autograd.functional"}
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
    "use": "minigrad.course.seams",
    "compile": "minigrad.compiler.call.compiled",
}
for _name in ("float32", "float64", "int32", "int64", "uint8", "bool_"):
    _NAMES[_name] = "minigrad.array.dtypes"
for _name in (
    "grad", "value_and_grad", "vjp", "jvp", "hvp", "jacobian", "hessian", "gradients",
):  # fmt: skip
    _NAMES[_name] = "minigrad.autograd.functional"
for _name in (
    "variable", "from_numpy", "from_dlpack", "zeros", "ones", "full", "rand", "randn", "randint",
    "randperm", "manual_seed", "get_rng_state", "set_rng_state", "zeros_like", "ones_like",
    "full_like", "Generator",
):  # fmt: skip
    _NAMES[_name] = "minigrad.ops.creation"
for _name in ("device", "set_default_device", "get_default_device"):
    _NAMES[_name] = "minigrad.ops.devices"
_NAMES["set_flush_denormal"] = "minigrad.devices.denormals"
for _name in ("arange", "linspace", "eye"):
    _NAMES[_name] = "minigrad.ops.ranges"
_KNOWN_AS = {  # what people who come from PyTorch and NumPy try first
    "Parameter": "mg.nn.Parameter", "Tensor": "mg.variable(data)",
    "as_tensor": "mg.variable(data)", "asarray": "mg.variable(data)", "bool": "mg.bool_",
    "bmm": "mg.matmul(a, b)", "cat": "mg.concatenate([a, b])", "chunk": "mg.split(x, sections=n)",
    "clamp": "mg.clip(x, low, high)", "concat": "mg.concatenate([a, b])", "dot": "a @ b",
    "empty": "mg.zeros(shape)", "empty_like": "mg.zeros_like(x)", "float": "mg.float32",
    "from_array": "mg.from_numpy(array)", "index_select": "x[index]",
    "inference_mode": "mg.inference()", "int": "mg.int64", "is_grad_enabled": "mg.is_recording()",
    "is_tensor": "isinstance(x, mg.Variable)", "load": "np.load, and model.load_state_dict(state)",
    "long": "mg.int64", "mm": "mg.matmul(a, b)", "mse_loss": "mg.mse(x, target)",
    "numel": "x.size", "random": "mg.rand(shape)", "save": "np.savez, with model.state_dict()",
    "seed": "mg.manual_seed(seed)", "set_grad_enabled": "mg.no_grad() and mg.enable_grad()",
    "take_along_axis": "mg.gather(x, index, axis)", "tensor": "mg.variable(data)",
    "view": "mg.reshape(x, shape)", "vstack": "mg.concatenate(xs, 0)",
    "hstack": "mg.concatenate(xs, 1)", "uniform": "mg.rand(shape)", "normal": "mg.randn(shape)",
}  # fmt: skip


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
            hint = f"; here it is called {_KNOWN_AS[name]}" if name in _KNOWN_AS else ""
            raise AttributeError(f"module 'minigrad' has no attribute '{name}'{hint}")
        value = functions[name]
    globals()[name] = value
    return value


def __dir__():
    functions = importlib.import_module("minigrad.ops.table").functions
    return sorted({*globals(), *_MODULES, *_NAMES, *functions})
