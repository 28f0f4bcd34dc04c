"""What a call of each public function needs, and what is wrong for each kind of parameter.

Callables and their parameters are found from the modules; this file says what valid arguments look
like, by the name of the parameter or, where names mean several things, by function.
"""

import math
import pathlib
import tempfile

import numpy as np

import minigrad as mg
from minigrad import nn, optim

NAN, HUGE = float("nan"), 10**5000  # no float is as large, and Python does not print it


def used_up():
    """An iterator that gives nothing any more."""
    return iter(())


NONSENSE = [
    object(), "nonsense", b"x", 1j, {"a": 1}, {1, 2}, print, math, [object()], used_up(),
    np.array([1, [2, 3]], object),
]  # fmt: skip
RAGGED = [1, [2, 3]]


WRONG = {
    "operand": [*NONSENSE, ["a"], np.array(["a"]), RAGGED, [2**70], [HUGE], [None], range(2**62)],
    "axis": [*NONSENSE, 1.5, True, (0, 1), [0], np.True_, NAN, RAGGED],
    "axes": [*NONSENSE, 1.5, True, (0, 1.5), (0, True), ("a",), np.True_, -99, 2**70, HUGE, RAGGED],
    "flag": [*NONSENSE, 0, 1, 1.0, "no", "", [True], (), NAN, 2**70, HUGE, RAGGED],
    "int": [*NONSENSE, 1.5, True, "3", [1, 2, 3], (), np.True_, NAN, RAGGED],
    "ints": [*NONSENSE, 1.5, True, "3", (1, 1.5), (1, True), NAN, (NAN,), RAGGED],
    "number": [*NONSENSE, True, NAN, [1.0, 2.0], "0.1", np.True_, RAGGED],
    "any number": [*NONSENSE, [1.0, 2.0], "0.1", HUGE, RAGGED],
    "share": [*NONSENSE, True, NAN, -0.1, 1.5, "0.1", (), float("inf"), -(2**70), HUGE, RAGGED],
    "shape": [
        *NONSENSE, 2.5, (2, 1.5), True, (2, True), (-3,), "23", [[2]], NAN, (NAN,), 2**40, 2**70,
        (HUGE,), (None,), RAGGED, -99,
    ],
    "dtype": [*NONSENSE, 3, 1.5, True, "float8", (), [], NAN, -1, 2**70, HUGE, RAGGED],
    "device": [*NONSENSE, 3, True, (), NAN, -1, HUGE, RAGGED, np.zeros((2, 3))],
    "choice": [*NONSENSE, 3, True, (), NAN, -1, HUGE, RAGGED, np.zeros((2, 3))],
    "function": [
        object(), "nonsense", 1j, {"a": 1}, math, 3, 1.5, True, NAN, HUGE, RAGGED, used_up(),
    ],
    "name": [object(), 1j, {"a": 1}, print, 3, True, (), NAN, HUGE, RAGGED, used_up()],
    "object": [*NONSENSE, 3, 1.5, True, NAN, -1, HUGE, RAGGED],
    "objects": [*NONSENSE, 3, 1.5, True, [3], ["a"], "", NAN, -1, HUGE, RAGGED, range(2**62)],
    "list": [*NONSENSE, 3, 1.5, True, NAN, -1, HUGE, RAGGED],
    "dict": [
        object(), "nonsense", 1j, {1, 2}, print, 3, True, [3], "", NAN, -1, HUGE, RAGGED, used_up(),
    ],
    "anything": [],
}  # fmt: skip
EXTREME = [
    2**70,
    -(2**70),
    HUGE,
    -HUGE,
    2**63,
    -1,
    -99,
    1e300,
    math.inf,
]  # some are right somewhere
NUMERIC = ("axis", "int", "ints", "number", "any number")


def grid(*shape, dtype="float32"):
    size = int(np.prod(shape))
    return mg.variable(np.linspace(0.1, 0.9, size, dtype=dtype).reshape(shape))


def x34():
    return grid(3, 4)


def saved_file():
    path = pathlib.Path(tempfile.mkdtemp()) / "x.safetensors"
    mg.save(path, x=x34())
    return path


def cube(x):
    return (x * x * x).sum()


# name of a parameter -> (kind, a valid argument for it)
PARAMETERS = {
    **dict.fromkeys(["x", "a", "b", "other", "q", "k", "v", "query"], ("operand", x34)),
    **dict.fromkeys(["target", "t"], ("operand", x34)),
    "weight": ("operand", lambda: grid(4)),
    "bias": ("operand", lambda: grid(4)),
    "axis": ("axes", lambda: 0),
    **dict.fromkeys(["axis1", "start_axis"], ("axis", lambda: 0)),
    **dict.fromkeys(["axis2", "end_axis"], ("axis", lambda: 1)),
    **dict.fromkeys(
        [
            "keepdims",
            "requires_grad",
            "training",
            "is_causal",
            "causal",
            "has_aux",
            "writable",
            "retain_graph",
            "create_graph",
            "equal_nan",
            "error_if_nonfinite",
            "keep_empty_grad",
            "persistent",
            "strict",
            "nesterov",
            "centered",
            "drop_last",
            "mode",
            "is_sample",
            "enabled",
        ],
        ("flag", lambda: False),
    ),
    "shape": ("shape", lambda: (3, 4)),
    "dtype": ("dtype", lambda: "float32"),
    "device": ("device", lambda: "cpu"),
    "name": ("name", lambda: "n"),
    "generator": ("object", lambda: mg.Generator(1)),
    "reduction": ("choice", lambda: "mean"),
    **dict.fromkeys(
        ["eps", "slope", "alpha", "delta", "relative", "absolute"], ("number", lambda: 0.5)
    ),
    **dict.fromkeys(
        ["p", "dropout", "momentum", "label_smoothing", "held_out"], ("share", lambda: 0.5)
    ),
    **dict.fromkeys(
        ["seed", "nodes", "nbytes", "directions", "ddof", "correction"], ("int", lambda: 1)
    ),
    **dict.fromkeys(["diagonal"], ("int", lambda: 0)),
    **dict.fromkeys(
        [
            "count",
            "channels",
            "inputs",
            "outputs",
            "heads",
            "groups",
            "n",
            "classes",
            "batch_size",
            "every",
            "steps",
            "patience",
            "growth_interval",
        ],
        ("int", lambda: 4),
    ),
    "warmup": ("int", lambda: 2),
    "hidden": ("int", lambda: 8),
    "padding_index": ("int", lambda: 1),
    "size": ("int", lambda: 4),
    "kernel": ("ints", lambda: 2),
    **dict.fromkeys(["stride", "dilation"], ("ints", lambda: 1)),
    "padding": ("ints", lambda: 0),
    **dict.fromkeys(["low", "start", "mean", "minimum"], ("number", lambda: 0.0)),
    **dict.fromkeys(
        [
            "high",
            "stop",
            "std",
            "gain",
            "factor",
            "threshold",
            "max_norm",
            "max_value",
            "learning_rate",
            "weight_decay",
            "rate_decay",
            "rtol",
            "atol",
            "step",
            "init_scale",
            "backoff_factor",
            "new_scale",
        ],
        ("number", lambda: 0.5),
    ),
    "growth_factor": ("number", lambda: 2.0),
    "betas": ("list", lambda: (0.9, 0.99)),
    "f": ("function", lambda: cube),
    **dict.fromkeys(["hook", "function", "backward"], ("function", lambda: lambda g: g)),
    "argnums": ("ints", lambda: 0),
    "dy": ("operand", x34),
    "value": ("number", lambda: 0.5),
    "on_orphan": ("choice", lambda: "raise"),
    "parameters": ("objects", lambda: [nn.Parameter([1.0])]),
    "callbacks": ("objects", lambda: ()),
    "optimizer": ("object", lambda: optim.Adam([nn.Parameter([1.0])])),
    "approximate": ("choice", lambda: "tanh"),
    "axes": ("axes", lambda: (1, 0)),
    "data": ("operand", lambda: [1.0, 2.0]),
    "mask": ("operand", lambda: None),
    "nonlinearity": ("choice", lambda: "relu"),
    "modules": ("objects", lambda: nn.ReLU()),
    "values": ("dict", dict),
    "index": ("operand", lambda: [[0, 1, 2, 0]]),
}


def square():
    return mg.eye(3) + 0.1


def labels():
    return mg.variable([0, 1, 2])


def images():
    return grid(1, 2, 6, 6)


ATTENTION = {name: ("operand", lambda: grid(1, 3, 4)) for name in "qkv"}
POOL = {"x": ("operand", images)}
POOLING = {"size": ("ints", lambda: 2)}
CONV = {"stride": ("ints", lambda: 1), "size": ("ints", lambda: 2), "groups": ("int", lambda: 2)}
# function -> {parameter: (kind, valid)} where the name alone does not say it
SPECIAL = {
    **{
        f"mg.{name}": {"axis": ("axis", lambda: 0)}
        for name in (
            "softmax",
            "log_softmax",
            "cumsum",
            "gather",
            "scatter_add",
            "concatenate",
            "stack",
            "split",
            "repeat",
            "unsqueeze",
            "argmax",
            "argmin",
        )
    },
    "mg.gather": {"axis": ("axis", lambda: 0)},
    **{
        f"mg.{name}": {"axis": ("axis", lambda: 0), "descending": ("flag", lambda: True)}
        for name in ("sort", "argsort", "cumprod")
    },
    "mg.topk": {
        "k": ("int", lambda: 2),
        "axis": ("axis", lambda: 0),
        "largest": ("flag", lambda: True),
    },
    "mg.roll": {"shift": ("ints", lambda: 1)},
    "mg.normalize": {"axis": ("axes", lambda: 0)},
    "mg.masked_fill": {
        "mask": ("operand", lambda: [True, False, True, False]),
        "value": ("any number", lambda: 0.5),
    },
    "mg.index_add": {
        "axis": ("axis", lambda: 1),
        "index": ("operand", lambda: [0, 3, 3]),
        "source": ("operand", lambda: grid(3, 3)),
    },
    "mg.functional_call": {
        "model": ("object", lambda: nn.Linear(4, 2)),
        "parameters": ("dict", dict),
        "args": ("operand", x34),
        "kwargs": None,
    },
    "random.categorical": {
        "logits": ("operand", x34),
        "axis": ("axis", lambda: 0),
    },
    "linalg.solve": {"a": ("operand", square), "b": ("operand", square)},
    "linalg.lstsq": {"a": ("operand", square), "b": ("operand", square)},
    "linalg.cholesky": {"a": ("operand", square)},
    "mg.scatter_add": {"axis": ("axis", lambda: 0), "source": ("operand", lambda: grid(1, 4))},
    "mg.linear": {"w": ("operand", lambda: grid(2, 4)), "b": ("operand", lambda: grid(2))},
    "mg.matmul": {"b": ("operand", lambda: grid(4, 2))},
    "mg.outer": {"a": ("operand", lambda: grid(3)), "b": ("operand", lambda: grid(3))},
    "mg.conv2d": {
        **POOL,
        "w": ("operand", lambda: grid(2, 2, 3, 3)),
        "b": ("operand", lambda: grid(2)),
        "groups": ("int", lambda: 1),
    },
    "mg.conv1d": {
        "x": ("operand", lambda: grid(1, 2, 6)),
        "groups": ("int", lambda: 1),
        "w": ("operand", lambda: grid(2, 2, 3)),
        "b": ("operand", lambda: grid(2)),
        **dict.fromkeys(("stride", "dilation"), ("int", lambda: 1)),
        "padding": ("int", lambda: 0),
    },
    "mg.max_pool2d": POOL,
    "mg.avg_pool2d": POOL,
    "mg.cross_entropy": {
        "logits": ("operand", x34),
        "labels": ("operand", labels),
        "ignore_index": ("int", lambda: -1),
    },
    "mg.embedding": {"weight": ("operand", x34)},
    "mg.one_hot": {"index": ("operand", labels)},
    "mg.scaled_dot_product_attention": ATTENTION,
    "mg.batch_norm": {
        **dict.fromkeys(("running_mean", "running_var"), ("object", lambda: grid(4)))
    },
    "mg.einsum": {"equation": ("choice", lambda: "ij->i"), "operands": ("operand", x34)},
    "mg.load": {
        "path": ("name", saved_file),
        "parts": None,
        "rng": ("flag", lambda: True),
    },
    "mg.concatenate": {"xs": ("objects", lambda: [x34()]), "axis": ("axis", lambda: 0)},
    "mg.stack": {"xs": ("objects", lambda: [x34()]), "axis": ("axis", lambda: 0)},
    "mg.split": {"sections": ("ints", lambda: 3), "axis": ("axis", lambda: 0)},
    "mg.pad": {"widths": ("ints", lambda: 1), "value": ("any number", lambda: 0.5)},
    "mg.repeat": {"repeats": ("ints", lambda: 2), "axis": ("axis", lambda: 0)},
    "mg.squeeze": {"x": ("operand", lambda: grid(1, 4))},
    "mg.reshape": {"shape": ("shape", lambda: 12)},
    "mg.expand": {"shape": ("shape", lambda: (2, 3, 4))},
    "mg.permute": {"axes": ("axes", lambda: (1, 0))},
    "mg.clip": {"low": ("operand", lambda: 0.0), "high": ("operand", lambda: 1.0)},
    "mg.huber_element": {"delta": ("operand", lambda: 1.0)},
    "mg.where": {"condition": ("operand", x34)},
    "mg.full": {"value": ("any number", lambda: 0.5)},
    "mg.full_like": {"value": ("any number", lambda: 0.5), "x": ("object", x34)},
    "mg.zeros_like": {"x": ("object", x34)},
    "mg.ones_like": {"x": ("object", x34)},
    "mg.randint": {"low": ("int", lambda: 0), "high": ("int", lambda: 3)},
    "mg.linspace": {"count": ("int", lambda: 4)},
    "mg.from_numpy": {"array": ("object", lambda: np.zeros(3))},
    "mg.from_dlpack": {"data": ("object", lambda: np.zeros(3))},
    "mg.autocast": {"dtype": ("dtype", lambda: "float16")},
    "mg.device": {"name": ("device", lambda: "cpu")},
    "mg.compile": {
        "f": ("function", lambda: cube),
        "donate": ("ints", lambda: ()),
        "unknown": None,
    },
    "mg.kernel": {"function": ("function", lambda: None), "shape": None},
    "mg.once_differentiable": {"backward": ("function", lambda: cube)},
    "mg.use": {"parts": None},
    "mg.Function": {},
    "mg.gradients": {
        "outputs": ("objects", lambda: leaf().sum()),
        "inputs": ("objects", None),
        "dy": ("operand", lambda: None),
    },
    "mg.hvp": {"v": ("operand", x34)},
    "mg.jvp": {"inputs": ("operand", x34), "tangents": ("operand", x34)},
    "mg.vjp": {"args": ("operand", x34)},
    "mg.value_and_grad": {"name": ("name", lambda: "n")},
}

SPECIAL |= {
    **{f"mg.{name}": {"+": {"ddof": 0}} for name in ("var", "std")},
    "mg.randperm": {"n": ("int", lambda: 4)},
    "mg.GradManager": {"parameters": ("objects", lambda: [leaf()])},
    "mg.Generator": {},
    "mg.layer_norm": {},
    "mg.bce_with_logits": {},
    "mg.set_default_device": {},
    "mg.get_default_device": {},
    "Variable.register_hook": {},
    "Variable.backward": {"dy": ("object", x34)},
    "Variable.requires_grad_": {"value": ("flag", lambda: True)},
    "Variable.to": {"target": ("dtype", lambda: "float64")},
    "Variable.fill_": {"value": ("operand", lambda: 0.5)},
    "Variable.expand": {"shape": ("shape", lambda: (2, 3, 4))},
    "Variable.reshape": {"shape": ("shape", lambda: 12)},
    "Variable.squeeze": {"axis": ("axes", None)},
    "Parameter.map": {"function": ("function", lambda: lambda v: v)},
    "Parameter.assign": {"value": ("operand", x34)},
    "nn.Parameter": {"data": ("operand", x34)},
    "nn.Conv1d": {
        **CONV,
        "size": ("int", lambda: 2),
        "stride": ("int", lambda: 1),
        "dilation": ("int", lambda: 1),
        "padding": ("int", lambda: 0),
        "bias": ("flag", lambda: True),
    },
    "nn.Conv2d": {**CONV, "bias": ("flag", lambda: True)},
    "nn.Linear": {"bias": ("flag", lambda: True)},
    "nn.MultiHeadAttention": {"bias": ("flag", lambda: True)},
    "nn.Dropout": {},
    "nn.MaxPool2d": POOLING,
    "nn.AvgPool2d": POOLING,
    "nn.LayerNorm": {"size": ("ints", lambda: 4)},
    "nn.Softmax": {"axis": ("axis", lambda: 0)},
    "nn.ModuleDict": {"modules": ("dict", dict), "named": None},
    "nn.Sequential": {"modules": ("object", nn.ReLU)},
    "nn.ModuleList": {"modules": ("object", nn.ReLU)},
    "mg.set_flush_denormal": {"mode": ("flag", lambda: False)},
    "mg.set_rng_state": {"saved": ("ints", lambda: (0, 0))},
    "nn.init.kaiming_uniform_": {"mode": ("choice", lambda: "fan_in")},
    "nn.init.kaiming_normal_": {"mode": ("choice", lambda: "fan_in")},
    "nn.init.default_": {"weight": ("object", x34), "bias": ("object", lambda: grid(3))},
    "Module.load_state_dict": {"values": ("dict", lambda: nn.Linear(4, 2).state_dict())},
    "Module.to": {"target": ("dtype", lambda: "float64")},
    "Module.train": {},
    "Module.requires_grad_": {"value": ("flag", lambda: True)},
    "Module.zero_grad": {"unknown": None},
    "Module.register_buffer": {"name": ("choice", lambda: "b"), "value": ("operand", x34)},
    "Module.register_parameter": {
        "name": ("choice", lambda: "p"),
        "value": ("object", lambda: nn.Parameter([1.0])),
    },
    "Module.register_forward_hook": {},
    "optim.ReduceOnPlateau": {"mode": ("choice", lambda: "min"), "steps": ("int", lambda: 1)},
    "optim.WarmupCosine": {"steps": ("int", lambda: 8)},
    "optim.cosine": {
        "t": ("number", lambda: 1),
        "peak": ("number", lambda: 1.0),
        "steps": ("number", lambda: 8),
    },
    "optim.warmup_cosine": {
        "t": ("number", lambda: 1),
        "peak": ("number", lambda: 1.0),
        "steps": ("number", lambda: 8),
        "warmup": ("number", lambda: 2),
    },
    "optim.Sequence": {"schedules": ("objects", None), "milestones": ("objects", None)},
    "optim.Optimizer": {"args": None, "kwargs": None},
    "optim.Schedule": {"args": None, "kwargs": None},
    **{
        f"optim.{name}": {"parameters": ("objects", lambda: grid_with_gradient())}
        for name in (
            "clip_grad_norm_",
            "clip_grad_norm_per_param_",
            "clip_grad_value_",
            "clip_params_",
        )
    },
    "Optimizer.add": {
        "parameter": ("object", lambda: nn.Parameter([1.0])),
        "group": ("int", lambda: 0),
    },
    "Optimizer.replace": {
        "old": ("object", None),
        "new": ("object", None),
        "state": ("choice", None),
    },
    "Optimizer.load_state_dict": {"saved": ("dict", lambda: adam().state_dict())},
    "Optimizer.zero_grad": {"unknown": None},
    "Optimizer.slots_of": None,
    "Optimizer.check": None,
    "Optimizer.checked": None,
    "Optimizer.update_of": None,
    "Optimizer.state_for": None,
    "Schedule.rate": None,
    "Schedule.load_state_dict": {"saved": ("dict", lambda: decay().state_dict())},
    "Plateau.rate": None,
    "Plateau.step": {"value": ("number", lambda: 1.0)},
    "Plateau.load_state_dict": {"saved": ("dict", lambda: plateau().state_dict())},
    "GradScaler.scale": {"loss": ("object", x34)},
    "GradScaler.unscale_": {"optimizer": ("object", lambda: adam_with_gradient())},
    "GradScaler.step": {"optimizer": ("object", lambda: adam_with_gradient())},
    "GradScaler.load_state_dict": {"saved": ("dict", lambda: scaler().state_dict())},
    "data.batches": {"arrays": ("object", lambda: np.zeros((4, 2)))},
    "data.stratified_split": {
        "inputs": ("object", lambda: np.zeros((4, 2))),
        "labels": ("object", lambda: np.arange(4) % 2),
    },
    "debug.gradcheck": {"inputs": ("objects", lambda: [leaf("float64")])},
    "debug.gradgradcheck": {
        "inputs": ("objects", lambda: [leaf("float64")]),
        "dy": ("operand", lambda: None),
    },
    "debug.Record": None,
    "memory.is_alias": {"a": ("object", x34), "b": ("object", x34)},
    "memory.shares_storage": {"a": ("object", x34), "b": ("object", x34)},
    "memory.set_limit": {"nbytes": ("number", lambda: None)},
    "memory.timeline": {},
    "memory.assert_no_growth": {},
    "GradManager.attach": {"parameters": ("objects", lambda: [leaf()])},
    "GradManager.backward": {"loss": ("object", None), "dy": ("object", None)},
    "Generator.manual_seed": {},
    "Generator.fill": None,
    "Generator.draw": None,
}
for _name in ("max", "min", "sum", "norm"):
    SPECIAL.setdefault(f"Variable.{_name}", {})
# whole callables that are not tried, and why
REASONS = {
    "mg.Function": "an abstract class: its own methods take what a person's subclass says",
    "mg.save": "takes parts by name: tests/test_checkpoint.py",
    "mg.kernel": "a decorator of Numba's functions: tests/ops/test_custom_kernel.py",
    "mg.Variable": "made by functions, from an Array: what it takes else is not looked at",
    "Parameter.owned_by": "for modules",
    "Parameter.released_by": "for modules",
    "mg.use": "the seams of the course: tests/test_seams.py",
    "mg.copy_of": "an operation of the table behind copy_",
    "mg.huber_element": "an operation of the table behind huber",
    "Variable.bind": "the interception point of formulas, not for people",
    "Variable.write_check": "asked by operations that write, not for people",
    "Variable.describe": "takes nothing",
    "Variable.item": "takes nothing",
    "debug.Record": "a tuple that records are given as",
    "Optimizer.slots_of": "for subclasses",
    "Optimizer.check": "for subclasses",
    "Optimizer.checked": "for subclasses",
    "Optimizer.update_of": "for subclasses",
    "Optimizer.state_for": "for subclasses",
    "Optimizer.replace": "both parameters must be the optimizer's: tests/optim/test_tracking.py",
    "Schedule.rate": "for subclasses",
    "Plateau.rate": "for subclasses",
    "Generator.fill": "fills Arrays, for devices",
    "Generator.draw": "counts, for devices",
    "GradManager.backward": "needs a span: tests/autograd/test_manager.py",
    "optim.Sequence": "needs schedules of one optimizer: tests/optim/test_chained_schedules.py",
    "mg.gradients": "needs a graph: tests/autograd/test_functional.py",
    "Module.forward": "abstract",
}
MORE = {  # beside what is said above; "+": given in every call
    "mg.batch_norm": {"+": {"training": True, "running_mean": grid(4), "running_var": grid(4)}},
    "mg.var": {"+": {"ddof": 0}, "correction": ("int", None)},
    "mg.std": {"+": {"ddof": 0}, "correction": ("int", None)},
    "mg.cross_entropy": {"ignore_index": ("int", lambda: -1), "axis": ("axis", lambda: -1)},
    "mg.clip": {"+": {"low": 0.0}},
    "mg.split": {"+": {"sections": 3}, "sizes": ("ints", None)},
    "mg.where": {"c": ("operand", x34)},
    "debug.gradcheck": {"eps": ("number", lambda: 1e-6)},
    "debug.gradgradcheck": {"eps": ("number", lambda: 1e-6)},
    "mg.compile": {"+": {"f": cube}},
    "mg.value_and_grad": {"name": None},
    "Variable.backward": {"+": {"dy": x34()}},
    "Variable.to": {"+": {"target": "float64"}, "device": ("device", None),
                    "dtype": ("dtype", None)},
    "Module.to": {"+": {"target": "float64"}, "device": ("device", None),
                  "dtype": ("dtype", None)},
    "Parameter.assign_": {"value": ("operand", x34)},
}  # fmt: skip
for _label, _said in MORE.items():
    SPECIAL[_label] = {**(SPECIAL.get(_label) or {}), **_said}
# (callable, parameter): wrong values of its kind that are right there, and why
ALLOWED = {
    ("mg.normalize", "axis"): "None is for all axes",
    ("mg.stack", "xs"): "a list of numbers is a list of constants",
    ("nn.ModuleList", "modules"): "a network may have no such layers: its depth is 0",
    ("nn.ModuleDict", "modules"): "a network may have no such layers: its depth is 0",
    ("mg.compile", "donate"): "positions may come from an iterator, and there may be none",
    ("data.batches", "arrays"): "an array of objects has rows, too",
    ("mg.GradManager", "callbacks"): "print can be called",
    ("GradManager.attach", "callbacks"): "print can be called",
    ("Module.register_buffer", "name"): "a name",
    ("Module.register_parameter", "name"): "a name",
    ("Module.register_parameter", "value"): "None is a parameter that is left out",
    ("optim.SGD", "momentum"): "1.5 is a momentum, as in PyTorch",
    ("optim.RMSprop", "momentum"): "1.5 is a momentum, as in PyTorch",
    ("optim.clip_params_", "low"): "None is an open side",
    ("optim.clip_params_", "high"): "None is an open side",
}
TAKEN = {  # which wrong values these are
    ("mg.stack", "xs"): [[3]],
    ("mg.compile", "donate"): [v for v in NONSENSE if hasattr(v, "__next__")],
    ("nn.ModuleList", "modules"): [v for v in WRONG["object"] if hasattr(v, "__next__")],
    ("nn.ModuleDict", "modules"): [v for v in WRONG["dict"] if hasattr(v, "__next__")],
    ("data.batches", "arrays"): [v for v in NONSENSE if isinstance(v, np.ndarray)],
    **{key: [print] for key in ALLOWED if key[1] == "callbacks"},
    **{key: ["nonsense"] for key in ALLOWED if key[1] == "name"},
    **{key: [1.5] for key in ALLOWED if key[1] == "momentum"},
    **{key: [None] for key in ALLOWED if key[1] in ("axis", "low", "high", "value")},
}


def adam():
    return optim.Adam([nn.Parameter([1.0])])


def adam_with_gradient():
    w = nn.Parameter([1.0])
    w.grad = mg.variable([1.0])
    return optim.Adam([w])


def scaler():
    made, w = optim.GradScaler(), nn.Parameter([1.0])
    made.scale(w.sum()).backward()
    made.unscale_(optim.SGD([w]))
    return made


def decay():
    return optim.StepDecay(adam(), 2)


def plateau():
    return optim.ReduceOnPlateau(adam())


def grid_with_gradient():
    p = nn.Parameter([1.0])
    p.grad = mg.variable([2.0])
    return [p]


def leaf(dtype="float32"):
    x = grid(3, 4, dtype=dtype)
    x.requires_grad = True
    return x
