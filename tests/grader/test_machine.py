"""Plain exercises about kernels: the machine that runs them is there, and the engine is not."""

import pytest

from minigrad.course.mutants import message_key
from minigrad.grader.spec import Lesson
from tests.grader.test_drivers import exercise_of, graded

DRIVER = """
import numpy as np
from minigrad.simt import launch


def launched(mine, n):
    out = np.zeros(n, np.float32)
    launch(getattr(mine.k, "py_func", mine.k), 2, 32, [out])
    return out
"""
KERNEL = """
{imports}

def k(out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = i
"""


@pytest.fixture
def exercise(tmp_path, monkeypatch):
    folder = tmp_path / "l90_test"
    folder.mkdir()
    (folder / "driver.py").write_text(DRIVER)
    monkeypatch.setattr("minigrad.grader.folder.CHECKS_FOLDER", tmp_path)
    return exercise_of(Lesson("90_test", "Kernels"), "k", asks_for_numbers)


def asks_for_numbers(t):
    """Each thread writes its number."""
    out = t.drive("launched", 50, given="k[2, 32](out)")
    t.close(out, list(range(50)), attempt="Which thread is this?")


def test_kernel_runs_on_the_machine_in_a_plain_exercise(exercise, either_server):
    plain = KERNEL.format(imports="from minigrad import cuda")
    assert graded(either_server, exercise, plain).passed
    decorated = plain.replace("def k(", "@cuda.jit\ndef k(")
    assert graded(either_server, exercise, decorated).passed
    assert graded(either_server, exercise, decorated.replace("@cuda.jit", "@cuda.jit()")).passed


def test_kernel_calls_a_device_function_in_a_plain_exercise(exercise, server):
    source = KERNEL.format(
        imports="from minigrad import cuda\n\n\n@cuda.jit(device=True)\ndef own(i):\n    return i\n"
    ).replace("out[i] = i", "out[i] = own(i)")
    assert graded(server, exercise, source).passed
    unmarked = source.replace("(device=True)", "")
    assert "is a plain Python function" in graded(server, exercise, unmarked).checks[0].message.got


@pytest.mark.parametrize(
    "line",
    [
        "import minigrad.devices",
        "import minigrad.devices.gpu.elementwise.programs",
        "from minigrad.cuda.inspection import inspect",
        "import minigrad.simt.nothing",
        "import minigrad.course.l13_cuda_kernels",
    ],
)
def test_nothing_else_of_minigrad_is_there(exercise, server, line):
    source = KERNEL.format(imports=f"from minigrad import cuda\n{line}")
    assert message_key(graded(server, exercise, source)) == "imports_minigrad"


def test_sources_of_the_engines_kernels_cannot_be_opened(exercise, server):
    reads = (
        "from minigrad import cuda\nimport minigrad.simt as simt\n"
        "path = simt.__file__.replace('simt/__init__', 'devices/gpu/kernel')\nopen(path).read()"
    )
    assert message_key(graded(server, exercise, KERNEL.format(imports=reads))) == "closed"
