"""A dtype is one row of `array/dtypes.py`: no other code of the engine lists dtypes."""

import ast
import ctypes
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import minigrad as mg
from minigrad.array.dtypes import DTYPES, WORDS, bool_, float32, float64, int64, real_of
from minigrad.devices import loader

ENGINE = Path(mg.__file__).parent
TABLE = "array/dtypes.py"
OTHER = {  # folders whose lists are about something else
    "course": "lessons",
    "grader": "lessons",
    "cli": "lessons",
    "simt": "the types of NumPy and Numba that kernels of CUDA may use, more than there are dtypes",
    "devices/source": "texts of kernels, held to the rows by a test below",
}
ALLOWED = {  # (file, what it lists) -> why
    ("hints.py", "bfloat16 bool"): "what PyTorch's Tensor has methods of",
    ("__init__.py", "bfloat16 bool float16 float32 float64 int32 int64 uint8"): (
        "what is exported, before NumPy is"
    ),
    ("cuda/compiled.py", "float16 float32"): "what Python has no numbers of, for Numba",
    ("cuda/compiled.py", "float64 int64"): "the types of Python's numbers in Numba",
    ("formulas/codegen.py", "float64 int64"): "the types in which Python passes numbers",
}
SPELLINGS = {"bool_": "bool"} | {
    spelling: d.name for d in reversed(DTYPES) for spelling in (d.name, d.code, d.text)
}
FAULTS = {
    "a dict by name": "{'float32': 1, 'float64': 2}",
    "a dict of dtypes": "{x: float32, y: bool_}",
    "a tuple": "NAMES = 'int32', 'int64'",
    "a set": "x.dtype.name in {'float32', 'float64'}",
    "a list of NumPy's": "[np.float32, np.float64]",
    "made from names": "[np.dtype('int32'), np.dtype('int64')]",
    "codes": "{4: 'f4', 8: 'f8'}",
    "types in texts": "real = 'F8' if is_wide else 'F4'",
    "a choice": "float32 if x else int64",
    "nested choices": "1 if d is float32 else 2 if d is float64 else 3",
    "a condition": "d is float32 or d == 'int64'",
    "an if-chain": "if d is float32:\n    a()\nelif d is float64:\n    b()",
    "a match": "match d:\n    case 'float32': a()\n    case 'float64': b()",
    "words of a string": "'float32 float64'.split()",
}
SOUND = {
    "one dtype": "(x, float32, 3)",
    "one in a condition": "d is float32 or d.kind == 'i'",
    "Python's types": "isinstance(x, (bool, int, float))",
    "a signature": "launch('f4* i8 i4')",
    "one dtype in two spellings": "('i4', 'I4')",
    "ifs apart": "if d is float32:\n    a()\nif d is float64:\n    b()",
}


def spelled(node):
    """The name of the dtype that an expression spells, or None."""
    if isinstance(node, ast.Call) and len(node.args) == 1:
        node = node.args[0]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return SPELLINGS.get(node.value)
    name = getattr(node, "attr", getattr(node, "id", None))
    return None if name == "bool" and isinstance(node, ast.Name) else SPELLINGS.get(name)


def compared(test):
    """What the comparisons in a condition compare."""
    found = [node for node in ast.walk(test) if isinstance(node, ast.Compare)]
    return [part for node in found for part in (node.left, *node.comparators)]


def parts(node):
    """The expressions that a node lists side by side."""
    if isinstance(node, ast.Dict):
        return [*node.keys, *node.values]
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return node.elts
    if isinstance(node, ast.IfExp):
        return [*compared(node.test), node.body, node.orelse, *parts(node.orelse)]
    if isinstance(node, ast.If):
        is_chain = len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If)
        return [*compared(node.test), *(parts(node.orelse[0]) if is_chain else ())]
    if isinstance(node, ast.BoolOp):
        return compared(node)
    if isinstance(node, ast.Match):
        patterns = [x for case in node.cases for x in ast.walk(case.pattern)]
        return [x.value for x in patterns if isinstance(x, ast.MatchValue)]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        words = re.split(r"[\s,]+", node.value)
        return [ast.Constant(w) for w in words] if {*words} <= {d.name for d in DTYPES} else []
    return []


def lists(text):
    """[(line, sorted names of dtypes)] of every list of two or more."""
    found = []
    for node in ast.walk(ast.parse(text)):
        names = {spelled(part) for part in parts(node)} - {None}
        if len(names) > 1:
            found.append((node.lineno, " ".join(sorted(names))))
    return found


@pytest.mark.parametrize("fault", FAULTS)
def test_a_list_of_dtypes_is_seen(fault):
    assert lists(FAULTS[fault])


@pytest.mark.parametrize("text", SOUND)
def test_what_is_no_list_of_dtypes_is_not(text):
    assert not lists(SOUND[text])


def test_no_other_code_lists_dtypes():
    found, used = [], set()
    for path in sorted(ENGINE.rglob("*.py")):
        name = path.relative_to(ENGINE).as_posix()
        if name == TABLE or any(name.startswith(f"{folder}/") for folder in OTHER):
            continue
        for line, names in lists(path.read_text(encoding="utf-8")):
            used.add((name, names))
            if (name, names) not in ALLOWED:
                found.append(f"minigrad/{name}:{line} lists {names}: ask a column of TABLE")
    assert not found, "\n".join(found)
    assert used == {*ALLOWED}, "no longer listed: take it out of ALLOWED"


def test_minigrad_exports_every_dtype():
    assert all(getattr(mg, "bool_" if d is bool_ else d.name) is d for d in DTYPES)


@pytest.mark.parametrize("header", ["header", "gpu_simt", "gpu_cuda"])
def test_headers_of_kernels_name_the_types_of_every_row(header):
    whole = loader.source(header)
    for d in DTYPES:
        text = whole
        if d.is_narrow and header == "header":  # its words have a file of their own
            assert not re.search(rf"\b{d.text}\b", text)
            file = loader.source(loader.APART[d.text])
            assert re.search(rf"^{d.text} = ", file, re.MULTILINE)
            assert re.search(rf"^{d.pointer} = ", file, re.MULTILINE)
            file = loader.source(loader.APART[f"{d.moved}_at"])
            assert re.search(rf"^{d.moved}_at = ", file, re.MULTILINE)
            continue
        assert re.search(rf"\b{d.text}\b.* = .*\bnp\.{d.storage.__name__}\b", text), d
        assert header != "header" or f"{d.pointer}, " in text or f", {d.pointer} = " in text, d
        assert {d.moved, d.arithmetic.code} <= {*WORDS}, d


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_row_agrees_with_numpy_and_c(dtype):
    assert np.dtype(dtype.storage).itemsize == dtype.itemsize
    assert ctypes.sizeof(getattr(ctypes, dtype.c)) == dtype.itemsize
    if dtype.kind != "b":
        finfo = ml_dtypes.finfo if dtype.is_coded else np.finfo
        known = (finfo if dtype.is_float else np.iinfo)(dtype.numpy)
        assert dtype.limits == (known.min, known.max)
    assert [dtype.numpy.type(x) for x in dtype.limits] == [*dtype.limits]


def test_numbers_round_to_infinity_from_overflow_on():
    below = np.nextafter(float32.overflow, 0.0)
    with np.errstate(over="ignore"):
        assert np.float32(float32.overflow) == np.inf
        assert np.float32(below) == float32.limits[1]
    assert float64.overflow == np.inf


def test_kernels_compute_floats_in_the_widest_type_of_their_arrays():
    assert real_of([]) is real_of([int64, bool_]) is real_of([float32, int64]) is float32
    assert real_of([float32, float64]) is float64
