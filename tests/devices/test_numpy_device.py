"""The device `numpy`: what it needs, what it shares, and steps on it, eager and compiled.

Each operation on it, in every dtype, is among the cells of `tests/ops/test_devices.py`.
"""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors
from minigrad.devices import numpy_device
from minigrad.formulas.expression import LOGIC, ON_NUMBERS, ROW_REDUCTIONS, Program, call, symbol
from minigrad.formulas.ufuncs import values_of
from tests.compiler import test_equality as cases
from tests.compiler.twins import check
from tests.optim import test_steps
from tests.optim.reference import CASES

MOST_LINES = 150
WITHOUT_NUMBA = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numba", "llvmlite"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
import minigrad as mg

mg.set_default_device("numpy")
mg.manual_seed(0)
model = mg.nn.Sequential(
    mg.nn.Conv2d(1, 4, 3), mg.nn.MaxPool2d(2), mg.nn.ReLU(), mg.nn.Flatten(),
    mg.nn.Linear(36, 16), mg.nn.LayerNorm(16), mg.nn.Dropout(0.1), mg.nn.Linear(16, 3),
)
optimizer = mg.optim.Adam(model.parameters(), learning_rate=0.01)
x, labels = mg.randn((8, 1, 8, 8)), mg.randint(0, 3, (8,))

def step(x, labels):
    optimizer.zero_grad()
    loss = mg.cross_entropy(model(x), labels)
    loss.backward()
    mg.optim.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss

compiled = mg.compile(step)
losses = [(compiled if k % 2 else step)(x, labels).item() for k in range(12)]
assert losses[-1] < 0.5 * losses[0], losses
assert compiled.report().programs[0].device == "numpy"
assert x.numpy().shape == (8, 1, 8, 8) and not {"numba", "llvmlite"} & sys.modules.keys()
"""


def lines_of_code(path):
    """How many lines of a file are no comments, no docstrings and not empty."""
    text = Path(path).read_text(encoding="utf-8")
    prose = set()
    for node in ast.walk(ast.parse(text)):
        kinds = ast.Module, ast.ClassDef, ast.FunctionDef
        if isinstance(node, kinds) and ast.get_docstring(node) is not None:
            prose.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(bool(x.split("#")[0].strip()) and k not in prose for k, x in lines)


def test_it_stays_short():
    assert lines_of_code(numpy_device.__file__) <= MOST_LINES


def test_training_eager_and_compiled_needs_no_numba():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_NUMBA], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row", CASES, ids=str)
def test_optimizers(row, dtype):
    with mg.device("numpy"):
        test_steps.test_steps_equal_the_formula(row, dtype)


@pytest.mark.parametrize("name", cases.CASES)
def test_compiled_training(name):
    with mg.device("numpy"):
        (step,) = check(cases.CASES[name], 9, programs=cases.programs_of(name))
    assert step.traces[0].plan.device == "numpy"
    assert "launches of 0 kernels on numpy" in step.source()


def test_numpy_shares_its_memory():
    x = mg.zeros((2, 3), device="numpy")
    view = x.numpy(writable=True)
    view[1, 2] = 5.0
    assert x.sum().item() == 5.0
    assert x.T.numpy()[2, 1] == 5.0
    assert np.from_dlpack(x).tolist() == x.tolist()
    assert np.asarray(x).device == "cpu"


@mg.cuda.jit
def doubled(x, out):
    i = mg.cuda.grid(1)
    if i < x.size:
        out[i] = 2.0 * x[i]


def test_kernels_of_ones_own_are_refused():
    x, out = mg.ones((4,), device="numpy"), mg.zeros((4,), device="numpy")
    with pytest.raises(errors.DeviceError, match=r"x is on the device numpy[\s\S]*to\('simt'\)"):
        doubled[1, 4](x, out)
    double = mg.kernel(double_all)
    with pytest.raises(errors.DeviceError, match=r"numpy[\s\S]*to\('cpu'\)"):
        double(x)


def double_all(x, out):
    for i in range(x.size):
        out[i] = 2.0 * x[i]


def test_operands_lie_on_one_device():
    x, y = mg.ones((2,), device="numpy"), mg.ones((2,))
    with pytest.raises(errors.DeviceError, match=r"numpy and cpu[\s\S]*x\.to\('numpy'\)"):
        x + y
    assert (x + y.to("numpy")).device == "numpy"


ONE_OPERAND = {
    "neg", "abs", "floor", "ceil", "round", "sqrt", "exp", "expm1", "log", "log1p", "log2", "sin",
    "cos", "tanh", "sigmoid", "erf", "logical_not",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(ON_NUMBERS))
def test_formulas_are_those_on_numbers(name):
    count = {"where": 3}.get(name) or 2 - (name in ONE_OPERAND)
    operands = [0.75, 0.25, 1.5][:count]
    names = list("abc")[:count]
    program = Program(names, [call(name, *map(symbol, names))])
    (found,) = values_of(program, operands, (), np.float64)
    wanted = ON_NUMBERS[name](*operands)
    assert found == pytest.approx(bool(wanted) if name in LOGIC else wanted, rel=1e-14)


@pytest.mark.parametrize("name", sorted(ROW_REDUCTIONS))
def test_rows_of_no_elements_and_of_one_repeated_number(name):
    program = Program(["x"], [call(name, symbol("x"))])
    (found,) = values_of(program, [np.float32(2.0)], (3, 4), np.float32)
    whole = {"row_sum": 8.0, "row_prod": 16.0, "row_any": True, "row_all": True}
    assert found.reshape(-1).tolist() == [whole.get(name, 2.0)]
    (found,) = values_of(program, [np.ones((3, 0), np.float32)], (3, 0), np.float32)
    empty = {
        "row_sum": 0.0, "row_prod": 1.0, "row_max": -np.inf, "row_min": np.inf,
        "row_mean": np.nan, "row_any": False, "row_all": True,
    }  # fmt: skip
    np.testing.assert_array_equal(found, np.full((3, 1), empty[name]))


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_nan_wins_and_of_equals_the_second(name):
    a, b = map(np.ravel, np.meshgrid([0.0, -0.0, 1.0, -np.inf, np.nan], [0.0, -0.0, 2.0, np.nan]))
    with mg.device("numpy"):
        y = getattr(mg, name)(mg.variable(a), mg.variable(b)).numpy()
    on_cpu = getattr(mg, name)(mg.variable(a), mg.variable(b)).numpy()
    np.testing.assert_array_equal(y, on_cpu)
    np.testing.assert_array_equal(np.signbit(y), np.signbit(on_cpu))
