"""Wrong types for every parameter of every public function: an error of minigrad, never a result.

The functions are found from the modules and their parameters by inspect.signature. What a parameter
takes is said in tests/argument_kinds.py; one that is said nowhere fails here.
"""

import contextlib
import inspect
import operator
import types

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.arguments import shown
from tests import argument_kinds as kinds

OBJECTS = {
    "Variable": (mg.Variable, kinds.x34),
    "Parameter": (nn.Parameter, lambda: nn.Parameter(kinds.x34())),
    "Module": (nn.Module, lambda: nn.Linear(4, 2)),
    "Optimizer": (optim.Optimizer, kinds.adam),
    "Schedule": (optim.Schedule, kinds.decay),
    "Plateau": (optim.ReduceOnPlateau, kinds.plateau),
    "GradScaler": (optim.GradScaler, kinds.scaler),
    "GradManager": (mg.GradManager, mg.GradManager),
    "Generator": (mg.Generator, mg.Generator),
}
OF_GRAPHS = ("backward", "register_hook", "register_post_accumulate_hook")
MODULES = {
    "mg": mg, "nn": nn, "nn.init": nn.init, "optim": optim, "data": mg.data, "debug": mg.debug,
    "memory": mg.memory, "linalg": mg.linalg, "random": mg.random,
}  # fmt: skip
CALLS = {  # layers by what they are called with
    "nn.Linear": (lambda: nn.Linear(4, 2), kinds.x34),
    "nn.Embedding": (lambda: nn.Embedding(4, 2), lambda: mg.variable([0, 1])),
    "nn.Conv2d": (lambda: nn.Conv2d(2, 2, 3), kinds.images),
    "nn.Conv1d": (lambda: nn.Conv1d(2, 2, 3), lambda: kinds.grid(1, 2, 6)),
    "nn.MaxPool2d": (lambda: nn.MaxPool2d(2), kinds.images),
    "nn.AvgPool2d": (lambda: nn.AvgPool2d(2), kinds.images),
    "nn.LayerNorm": (lambda: nn.LayerNorm(4), kinds.x34),
    "nn.RMSNorm": (lambda: nn.RMSNorm(4), kinds.x34),
    "nn.BatchNorm1d": (lambda: nn.BatchNorm1d(4), kinds.x34),
    "nn.BatchNorm2d": (lambda: nn.BatchNorm2d(2), kinds.images),
    "nn.MultiHeadAttention": (lambda: nn.MultiHeadAttention(4, 2), lambda: kinds.grid(1, 3, 4)),
    "nn.TransformerBlock": (lambda: nn.TransformerBlock(4, 2), lambda: kinds.grid(1, 3, 4)),
    "nn.Sequential": (lambda: nn.Sequential(nn.ReLU()), kinds.x34),
}
IMAGE = mg.zeros((1, 1, 4, 4))
NO_LAYERS = {"nn.Module", "nn.ModuleList", "nn.ModuleDict", "nn.Parameter", "nn.Buffer"}


def is_ours(value):
    return callable(value) and not isinstance(value, (types.ModuleType, mg.float32.__class__))


def public():
    """{label: callable, or (maker of an object, name of its method)}."""
    found = {}
    for prefix, module in MODULES.items():
        names = getattr(module, "__all__", None) or dir(module)
        for name in names:
            value = getattr(module, name)
            home = getattr(value, "__module__", "minigrad") or "minigrad"
            if name.startswith("_") or not is_ours(value) or not home.startswith("minigrad"):
                continue
            if inspect.isclass(value) and issubclass(value, BaseException):
                continue
            if prefix == "nn.init" and home != "minigrad.nn.init":
                continue
            if prefix == "memory" and not home.startswith("minigrad.memory"):
                continue
            if prefix == "nn" and not (inspect.isclass(value) and home.startswith("minigrad.nn")):
                continue
            if prefix == "optim" and not home.startswith("minigrad.optim"):
                continue
            found[f"{prefix}.{name}"] = value
    for label, (kind, make) in OBJECTS.items():
        for name in dir(kind):
            value = inspect.getattr_static(kind, name)
            if name.startswith("_") or not isinstance(value, types.FunctionType):
                continue
            if label == "Parameter" and hasattr(mg.Variable, name):
                continue
            if label == "Plateau" and name not in vars(kind):
                continue
            found[f"{label}.{name}"] = (kinds.leaf if name in OF_GRAPHS else make, name)
    return found


PUBLIC = public()


ALTERNATIVES = {  # arguments in whose place they stand
    "correction": ("ddof",), "sizes": ("sections",), "high": ("low",), "device": ("target",),
    "dtype": ("target",),
}  # fmt: skip


def special_of(label):
    """What argument_kinds says of a function; methods of Variables are as the functions."""
    own = kinds.SPECIAL.get(label) or {}
    if label.startswith("Variable."):
        return {**(kinds.SPECIAL.get(f"mg.{label.partition('.')[2]}") or {}), **own}
    return own


def described(label, name):
    """(kind, maker of a valid argument) of a parameter; None: not tried."""
    found = special_of(label)
    if name in found:
        return found[name]
    assert name in kinds.PARAMETERS, f"say in tests/argument_kinds.py what {label}'s {name} takes"
    return kinds.PARAMETERS[name]


def function_of(label):
    target = PUBLIC[label]
    return target if not isinstance(target, tuple) else getattr(target[0](), target[1])


def parameters_of(label):
    """Parameters of a call, self left out."""
    target = PUBLIC[label]
    function = target[0]() if isinstance(target, tuple) else target
    function = getattr(function, target[1]) if isinstance(target, tuple) else function
    found = inspect.signature(function).parameters
    if isinstance(function, type) and {"args", "kwargs"} == {*found}:
        found = inspect.signature(function.__init__).parameters  # Python 3.11.3 shows __new__'s
    return [p for p in found.values() if p.name != "self"]


def call(label, changed=None):
    """Calls with valid arguments for what is required. changed: (name, value) of another one."""
    args, keywords, parameters = [], {}, parameters_of(label)
    special = special_of(label)
    extra = dict(special.get("+", {}))
    for p in parameters:
        is_required = p.default is p.empty and p.kind is not p.VAR_KEYWORD
        is_changed = changed is not None and changed[0] == p.name
        if not is_required and not is_changed:
            continue
        value = changed[1] if is_changed else described(label, p.name)[1]()
        if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL):
            args.append(value)
        else:
            keywords[p.name] = value
    if changed is not None:
        extra.pop(changed[0], None)
        if changed[0] in ALTERNATIVES:
            extra = {k: v for k, v in extra.items() if k not in ALTERNATIVES[changed[0]]}
    names = {p.name for p in parameters}
    keywords |= {k: v for k, v in extra.items() if k in names}
    order = [p.name for p in parameters]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):  # what stands before it has no name
        first = [k for k in order if k in keywords and not _is_after(parameters, k)]
        args = [keywords.pop(k) for k in first] + args
    return function_of(label)(*args, **keywords)


def _is_after(parameters, name):
    kind = next(p.kind for p in parameters if p.name == name)
    return kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)


def wrong_values(label, p):
    kind, valid = described(label, p.name)
    values = list(kinds.WRONG[kind])
    if kind not in ("anything", "dtype") and p.default is not None:
        values.append(None)  # of a dtype it is the default
    allowed = kinds.TAKEN.get((label, p.name), ())
    if valid is not None and valid() is None:
        allowed = [*allowed, None]
    return [
        v
        for v in values
        if not any(v is a or (type(v) is type(a) is list and v == a) for a in allowed)
    ]


CASES = [
    (label, p.name)
    for label in PUBLIC
    if label not in kinds.REASONS
    for p in parameters_of(label)
    if special_of(label).get(p.name, 0) is not None
]


@pytest.mark.parametrize("label", [label for label in PUBLIC if label not in kinds.REASONS])
def test_the_valid_call_of_the_table_works(label):
    if label in ("optim.Optimizer", "optim.Schedule"):
        pytest.skip("made by its subclasses")
    call(label)
    for p in parameters_of(label):
        is_said = special_of(label).get(p.name, 0) is not None and p.default is not p.empty
        if is_said and described(label, p.name)[1] is not None:
            call(label, (p.name, described(label, p.name)[1]()))


def answers(label, name, values):
    """What came of calls with these values of a parameter, but for errors of minigrad."""
    found = []
    for value in values:
        try:
            call(label, (name, value))
        except mg.errors.MinigradError:
            continue
        except Exception as error:
            found.append(f"{shown(value)} gave {type(error).__name__}: {error!s:.100}")
        else:
            found.append(f"{shown(value)} was taken")
    return found


@pytest.mark.parametrize(("label", "name"), CASES)
def test_wrong_types_raise_an_error_of_minigrad(label, name):
    p = next(p for p in parameters_of(label) if p.name == name)
    silent = answers(label, name, wrong_values(label, p))
    assert not silent, "\n".join([f"{label}({name}=...):", *silent])


@pytest.mark.parametrize(
    ("label", "name"), [case for case in CASES if described(*case)[0] in kinds.NUMERIC]
)
def test_extreme_numbers_are_taken_or_an_error_of_minigrad(label, name):
    bare = [text for text in answers(label, name, kinds.EXTREME) if not text.endswith("was taken")]
    assert not bare, "\n".join([f"{label}({name}=...):", *bare])


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x[:: kinds.HUGE] + x[:: -(2**62)],
        lambda x: x[kinds.HUGE :],
        lambda x: x[kinds.HUGE],
        lambda x: x[[2**70]],
        lambda x: x[kinds.RAGGED],
        lambda x: x[iter(())],
        lambda x: x[kinds.NAN],
        lambda x: operator.setitem(x, 0, kinds.RAGGED),
        lambda x: operator.setitem(x, kinds.HUGE, 1.0),
        lambda x: operator.setitem(x, slice(None, None, kinds.HUGE), 1.0),
        lambda x: mg.set_rng_state((0, 2**70)),
        lambda x: mg.set_rng_state((0, -1)),
        lambda x: nn.ModuleList(iter(())),
        lambda x: nn.ModuleDict(iter(())),
        lambda x: nn.ModuleList(""),
        lambda x: mg.GradManager(callbacks=np.zeros(2)),
        lambda x: mg.debug.gradcheck(mg.exp, [x], directions=2**40),
        *(
            lambda x, use=use, n=n: use(x, n)
            for n in (2**70, kinds.HUGE, -kinds.HUGE)
            for use in (
                operator.add, operator.mod, operator.lt, operator.eq, operator.matmul,
                lambda x, n: n - x, lambda x, n: n // x, lambda x, n: x.to("int64") + n,
                mg.full_like, lambda x, n: mg.full_like(mg.zeros(2, dtype="int32"), n),
                lambda x, n: x.fill_(n), lambda x, n: mg.pad(x, 1, n),
                lambda x, n: mg.where(x > 0, n, x),
                lambda x, n: x.clone().add_(n), lambda x, n: nn.Conv2d(1, 1, 2, padding=n)(IMAGE),
                lambda x, n: nn.MaxPool2d(2, stride=n)(IMAGE), lambda x, n: nn.Softmax(n)(x),
            )
        ),
    ],
)  # fmt: skip
def test_extremes_in_operators_and_layers_are_taken_or_an_error_of_minigrad(use):
    with contextlib.suppress(mg.errors.MinigradError):
        use(mg.variable([1.0, 2.0, 3.0]))


def test_every_exception_names_something_public():
    for label in kinds.REASONS:
        assert label in PUBLIC, label
    assert kinds.TAKEN.keys() == kinds.ALLOWED.keys()
    for label, name in kinds.ALLOWED:
        assert any(p.name == name for p in parameters_of(label)), (label, name)


@pytest.mark.parametrize("label", CALLS)
def test_layers_refuse_what_is_no_variable(label):
    make, valid = CALLS[label]
    make()(valid())
    for value in (object(), "nonsense", 1j, {"a": 1}, None, print):
        with pytest.raises(mg.errors.MinigradError):
            make()(value)
    with pytest.raises(mg.errors.ArgumentTypeError, match="wanted"):
        make()(valid(), nonsense=1)
    with pytest.raises(mg.errors.MinigradError):
        make()()


def test_numbers_of_numpy_are_numbers():
    x = kinds.x34()
    assert x.sum(np.int64(1), np.bool_(True)).shape == (3, 1)
    assert nn.Linear(np.int32(3), np.int64(2)).weight.shape == (2, 3)
    assert optim.SGD([nn.Parameter([1.0])], np.float32(0.5)).learning_rate == 0.5
    assert optim.SGD([nn.Parameter([1.0])], mg.variable(0.5)).learning_rate == 0.5
