"""Operations and optimizers against values that PyTorch computed (see `golden/make.py`)."""

import json
import operator
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg

HERE = Path(__file__).parent / "golden"
MANIFEST = json.loads((HERE / "manifest.json").read_text(encoding="utf-8"))
CASES = {case["name"]: case for case in MANIFEST["cases"]}
TOLERANCES = {"float64": {"rtol": 1e-10, "atol": 1e-12}, "float32": {"rtol": 2e-4, "atol": 2e-5}}
SCHEDULES = {  # PyTorch's names of classes and arguments, and minigrad's
    "StepLR": ("StepDecay", {"step_size": "every", "gamma": "factor"}),
    "ExponentialLR": ("ExponentialDecay", {"gamma": "factor"}),
    "CosineAnnealingLR": ("CosineDecay", {"T_max": "steps", "eta_min": "minimum"}),
}


def read_values():
    """The arrays by key: the file holds one flat array per dtype, the manifest their shapes."""
    with np.load(HERE / "values.npz") as file:
        flat = dict(file)
    used = dict.fromkeys(flat, 0)
    values = {}
    for key, (dtype, *shape) in MANIFEST["arrays"].items():
        start = used[dtype]
        used[dtype] += int(np.prod(shape))
        values[key] = flat[dtype][start : used[dtype]].reshape(shape)
    assert used == {dtype: array.size for dtype, array in flat.items()}
    return values


VALUES = read_values()


def group(prefix):
    """The arrays whose key starts so, by the rest of their key."""
    return {k.removeprefix(prefix): v for k, v in VALUES.items() if k.startswith(prefix)}


def cast(value, dtype):
    """Floating-point values in the dtype under test; integers and booleans as they are."""
    return value.astype(dtype) if value.dtype.kind == "f" else value


def decoded(argument, inputs):
    """An argument of the manifest as a Python value."""
    if isinstance(argument, list):
        return tuple(decoded(item, inputs) for item in argument)
    if isinstance(argument, dict):
        return slice(*argument["slice"])
    if isinstance(argument, str) and argument.startswith("$"):
        return inputs[argument[1:]]
    return Ellipsis if argument == "..." else argument


def call(case, inputs):
    """The outputs of minigrad's operation."""
    name = case["op"]
    home, name = (operator, name[9:]) if name.startswith("operator.") else (mg, name)
    function = operator.attrgetter(name)(home)
    arguments = [decoded(argument, inputs) for argument in case["arguments"]]
    keywords = {key: decoded(value, inputs) for key, value in case["keywords"].items()}
    which = keywords.pop("which", None)
    outputs = function(*arguments, **keywords)
    outputs = outputs if which is None else outputs[which]
    return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", CASES)
def test_operation_value_and_gradients_equal_golden(name, dtype):
    golden = group(name + "/")
    grads = {k[5:]: v for k, v in golden.items() if k.startswith("grad/")}
    inputs = {
        key[3:]: mg.variable(cast(value, dtype), requires_grad=key[3:] in grads)
        for key, value in golden.items()
        if key.startswith("in/")
    }
    outputs = call(CASES[name], inputs)
    expected = [v for k, v in golden.items() if k.startswith("out/")]
    assert len(outputs) == len(expected)
    tolerance = TOLERANCES[dtype]
    for k, (output, value) in enumerate(zip(outputs, expected, strict=True)):
        assert output.shape == value.shape
        if value.dtype.kind == "f":
            assert output.numpy().dtype == dtype
        np.testing.assert_allclose(
            output.numpy(), value, **tolerance, err_msg=f"output {k}", strict=False
        )
    if not grads:
        assert not any(output.requires_grad for output in outputs)
        return
    dys = [mg.variable(cast(v, dtype)) for k, v in golden.items() if k.startswith("dy/")]
    if len(outputs) == 1:
        outputs[0].backward(dys[0])
    else:
        terms = [mg.sum(y * dy) for y, dy in zip(outputs, dys, strict=True)]
        mg.sum(mg.stack(terms)).backward()
    for key, expected_grad in grads.items():
        grad = inputs[key].grad
        if grad is None:  # an operation that is constant almost everywhere records nothing
            grad = np.zeros(expected_grad.shape, dtype)
        else:
            grad = grad.numpy()
            assert grad.dtype == dtype
        assert grad.shape == expected_grad.shape
        np.testing.assert_allclose(grad, expected_grad, **tolerance, err_msg=f"gradient of {key}")


def test_batch_norm_running_statistics_equal_golden():
    golden = group("running/")
    mean, var = mg.variable(golden["mean"]), mg.variable(golden["var"])
    weight, bias = mg.ones((3,), dtype="float64"), mg.zeros((3,), dtype="float64")
    x = mg.variable(golden["x"])
    mg.batch_norm(
        x,
        weight=weight,
        bias=bias,
        running_mean=mean,
        running_var=var,
        training=True,
        momentum=0.25,
    )
    np.testing.assert_allclose(mean.numpy(), golden["mean_after"], rtol=1e-12)
    np.testing.assert_allclose(var.numpy(), golden["var_after"], rtol=1e-12)


@pytest.mark.parametrize("name", MANIFEST["optimizers"])
def test_optimizer_trajectory_equals_golden(name):
    kind, keywords = MANIFEST["optimizers"][name]
    start = {key: mg.variable(value) for key, value in group("optimizer/start/").items()}
    w = mg.nn.Parameter(start["w"])
    b = mg.nn.Parameter(start["b"])
    keywords = {k: tuple(v) if isinstance(v, list) else v for k, v in keywords.items()}
    optimizer = getattr(mg.optim, kind)([w, b], **keywords)
    seen = {"w": [w.numpy().copy()], "b": [b.numpy().copy()]}
    for step in range(1, MANIFEST["steps"] + 1):
        optimizer.zero_grad()
        squares = mg.sum(start["w_scale"] * w * w) + mg.sum(start["b_scale"] * b * b)
        loss = squares * 0.5 + mg.sum(mg.sin(w)) + mg.sum(mg.sin(b))
        loss.backward()
        optimizer.step()
        if step % MANIFEST["every"] == 0:
            seen["w"].append(w.numpy().copy())
            seen["b"].append(b.numpy().copy())
    for key, expected in group(f"optimizer/{name}/").items():
        np.testing.assert_allclose(np.stack(seen[key]), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", MANIFEST["schedules"])
def test_schedule_learning_rates_equal_golden(name):
    kind, keywords = MANIFEST["schedules"][name]
    ours, names = SCHEDULES[kind]
    optimizer = mg.optim.SGD([mg.nn.Parameter(mg.zeros((1,)))], learning_rate=0.1)
    schedule = getattr(mg.optim, ours)(optimizer, **{names[k]: v for k, v in keywords.items()})
    seen = []
    for _ in VALUES[f"schedule/{name}"]:
        seen.append(float(optimizer.learning_rate))
        schedule.step()
    np.testing.assert_allclose(seen, VALUES[f"schedule/{name}"], rtol=1e-6)


@pytest.mark.parametrize("name", ["active", "inactive"])
def test_clip_grad_norm_equals_golden(name):
    golden = group(f"clip/{name}/")
    parameters = []
    for k in (0, 1):
        parameters.append(mg.nn.Parameter(mg.zeros(golden[str(k)].shape, dtype="float64")))
        parameters[k].grad = mg.variable(golden[str(k)])
    norm = mg.optim.clip_grad_norm_(parameters, float(golden["bound"]))
    np.testing.assert_allclose(float(norm), golden["norm"], rtol=1e-12)
    for k, parameter in enumerate(parameters):
        assert parameter.grad is not None
        # PyTorch divides by norm + 1e-6, which changes the seventh digit
        np.testing.assert_allclose(parameter.grad.numpy(), golden[f"clipped{k}"], rtol=1e-6)
