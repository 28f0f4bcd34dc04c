"""A file that Python runs is graded as it is, whatever wrote it; one that Python refuses is not."""

import ast
import codecs
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from minigrad.course.affected import affected
from minigrad.course.merge import merge
from minigrad.course.notebook import load
from minigrad.grader import reading
from minigrad.grader.fingerprint import dumped, fingerprint
from minigrad.grader.folder import load_lesson
from minigrad.grader.reading import (
    ENCODINGS,
    UnreadableError,
    is_definition,
    line_of,
    parse,
    read_source,
)
from minigrad.grader.run import grade
from minigrad.grader.signature import parameters

ROOT = Path(__file__).parents[2]
SOLUTION = (ROOT / "solutions" / "00_start.py").read_text("utf-8")
LESSON = load_lesson("00_start")
SUM = " + ".join(["1.5"] * 1000)
DOCSTRING, _, REST = SOLUTION.partition('"""\n\n')
AFTER_DOCSTRING = f'{DOCSTRING}"""\n{{}}\n{REST}'
ELIFS = "def which(a):\n    if a == 0:\n        return 0\n" + "".join(
    f"    elif a == {n}:\n        return {n}\n" for n in range(1, 600)
)
TABS = SOLUTION.replace("    ", "\t")

RIGHT = {
    "a byte-order mark": b"\xef\xbb\xbf" + SOLUTION.encode(),
    "CRLF": SOLUTION.replace("\n", "\r\n").encode(),
    "CRLF and a byte-order mark": b"\xef\xbb\xbf" + SOLUTION.replace("\n", "\r\n").encode(),
    "CR": SOLUTION.replace("\n", "\r").encode(),
    "tabs": TABS.encode(),
    "no last newline": SOLUTION.rstrip("\n").encode(),
    "many last newlines": (SOLUTION + "\n \n\t\n\n").encode(),
    "form feeds": SOLUTION.replace("\n\n\ndef ", "\n\x0c\n\ndef ").encode(),
    "a vertical tab and separators in a text": (SOLUTION + 'ODD = "\x0b\u2028\x85\x1c"\n').encode(),
    "a cookie": b"# -*- coding: utf-8 -*-\n" + SOLUTION.encode(),
    "a cookie and a byte-order mark": b"\xef\xbb\xbf# coding: utf-8\n" + SOLUTION.encode(),
    "latin-1": b"# coding: latin-1\n# \xe9t\xe9\n" + SOLUTION.encode("latin-1"),
    "cp1252 in the second line": b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n"
    + SOLUTION.encode("cp1252")
    + b"# \x93quoted\x94\n",
    "gbk": b"# coding: gbk\n" + (SOLUTION + "变量 = 1\n").encode("gbk"),
    "Shift JIS": b"# coding: shift_jis\n" + (SOLUTION + "# 変数\n").encode("shift_jis"),
    "from __future__": AFTER_DOCSTRING.format("from __future__ import annotations").encode(),
    "from __future__ and an annotation": AFTER_DOCSTRING.format(
        "from __future__ import annotations\nx: Undefined = 1"
    ).encode(),
    "a long line": (SOLUTION + f"LONG = [{'1, ' * 100_000}]\n").encode(),
    "a long comment": (SOLUTION + f"# {'x' * 300_000}\n").encode(),
    "1,000 terms beside": (SOLUTION + f"TOTAL = {SUM}\n").encode(),
    "1,000 terms inside": SOLUTION.replace(
        "def central_difference(f, x, eps):", f"def central_difference(f, x, eps, more={SUM}):"
    ).encode(),
    "600 branches": (SOLUTION + ELIFS).encode(),
    "other letters": (SOLUTION + 'größe, имя, 变量 = "ß", "я", "量"\n').encode(),
    "lines continued": (SOLUTION + "A = 1 + \\\n    2\n").encode(),
    "what reads itself": (SOLUTION + "open(__file__, encoding='utf-8').read()\n").encode(),
    "compiled code to be kept": (
        SOLUTION + "from numba import njit\n@njit(cache=True)\ndef g(x):\n    return x\n\ng(1)\n"
    ).encode(),
    "a page of comments": (SOLUTION + "# \n" * 5000).encode(),
}
WRONG = {
    "an annotation with an undefined name": (
        "def helper(x: Undefined):\n    return x\n",
        "Name",
    ),
    "an annotated name": ("value: Undefined = 3\n", "NameError"),
    "an undefined result": ("def helper() -> Undefined:\n    pass\n", "NameError"),
    "a decorator that fails": ("@undefined\ndef helper():\n    pass\n", "NameError"),
    "a default that fails": ("def helper(x=1 // 0):\n    pass\n", "ZeroDivisionError"),
    "a class body that fails": ("class Helper:\n    x = undefined\n", "NameError"),
    "an import that fails": ("import numpyy\n", "ModuleNotFoundError"),
    "an import too late": ("from __future__ import annotations\n", "SyntaxError"),
    "tabs and blanks": ("def f():\n\tx = 1\n        return x\n", "TabError"),
    "a null byte at the end": ("\0", "null byte"),
    "5,000 terms": (f"TOTAL = {' + '.join(['1.5'] * 5000)}\n", "RecursionError"),
}
NO_TEXT = {
    "latin-1 without a cookie": (
        b"# \xe9t\xe9\n", "line 1 holds a byte that is not utf-8", ":1\n  # \ufffdt\ufffd"),
    "latin-1 further down": (
        b"# a\r\n# b\r\rx = 1  # \xe9\r\n", "line 4 holds", ":4\n  x = 1  # \ufffd"),
    "an encoding that is none": (b"# coding: klingon\n", "klingon", ""),
    "escapes that make a null": (
        b"# coding: unicode_escape\n\\0", "not an encoding that editors write", ""),
    "UTF-7": (b"# coding: utf-7\n+AAA-", "not an encoding that editors write", ""),
    "an encoding that takes a minute": (
        b"# coding: punycode\n" + b"a" * 200_000 + b"-" + b"z" * 200_000,
        "not an encoding that editors write", ""),
    "two encodings": (b"\xef\xbb\xbf# coding: latin-1\n", "encoding problem", ""),
    "UTF-16": (SOLUTION.encode("utf-16"), "save it as UTF-8", ""),
    "UTF-16 without its mark": (
        "x = 1\n".encode("utf-16-le"), "line 1 holds a null byte", ":1\n  x"),
}  # fmt: skip


def graded(server, folder, content):
    path = folder / "exercises" / "00_start.py"
    path.parent.mkdir()
    path.write_bytes(content)
    return path, grade(server, LESSON, path, seed=3)


def python_runs(path):
    """Whether Python alone runs the file."""
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, path], capture_output=True, env=environment, timeout=60)
    return done.returncode == 0


@pytest.mark.parametrize("what", RIGHT)
def test_right_files_get_full_points(what, server, tmp_path):
    path, result = graded(server, tmp_path, RIGHT[what])
    assert result.passed, result.exercises[0].first_failure
    assert len({exercise.fingerprint for exercise in result.exercises}) == len(LESSON.exercises)
    source = read_source(path)
    lines = path.read_bytes().replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    line = line_of(source, "central_difference")
    assert lines[line - 1].removeprefix(b"\xef\xbb\xbf").startswith(b"def central_difference(")


def test_line_of_a_method_is_its_own_and_else_its_class():
    source = "class A:\n    x = 1\n\n    @staticmethod\n    def f():\n        pass\n"
    assert [line_of(source, name) for name in ("A", "A.f", "A.g", "B.f")] == [1, 5, 1, 0]


@pytest.mark.parametrize("what", ["latin-1", "1,000 terms inside", "form feeds", "CR"])
def test_python_alone_agrees_that_they_run(what, tmp_path):
    (path := tmp_path / "mine.py").write_bytes(RIGHT[what])
    assert python_runs(path)


@pytest.mark.parametrize("what", WRONG)
def test_what_python_alone_refuses_gets_nothing_and_the_error(what, server, tmp_path):
    text, error = WRONG[what]
    path, result = graded(server, tmp_path, (SOLUTION + text).encode())
    assert not python_runs(path)
    assert result.points == 0
    for exercise in result.exercises:
        message = exercise.first_failure.message
        assert error in message.got
        assert message.where.startswith("exercises/00_start.py")


@pytest.mark.parametrize("what", NO_TEXT)
def test_what_is_no_text_gets_nothing_and_the_reason(what, server, tmp_path):
    content, why, where = NO_TEXT[what]
    path, result = graded(server, tmp_path, content)
    assert not python_runs(path)
    assert result.points == 0
    message = result.exercises[0].first_failure.message
    assert why in message.got
    assert message.where.startswith("exercises/00_start.py" + where)
    assert "raise" not in message.where
    assert "Save the file as UTF-8" in message.attempt
    assert not result.exercises[0].loaded
    with pytest.raises(UnreadableError, match="Python cannot read this file"):
        read_source(path)


def test_an_error_in_an_odd_file_names_its_line(server, tmp_path):
    text = 'ODD = "\x0b\u2028\x85\x1c"\n\x0c\n' + SOLUTION + "\n\nundefined  # here\n"
    _, result = graded(server, tmp_path, text.encode())
    line = text.count("\n")
    where = result.exercises[0].first_failure.message.where
    assert where == f"exercises/00_start.py:{line}\n  undefined  # here"


def test_what_a_deep_tree_depends_on_is_seen():
    names = list(LESSON.exercises)
    deep = RIGHT["1,000 terms inside"].decode()
    now = fingerprint(deep, "central_difference", names)
    assert now != fingerprint(deep.replace("1.5", "2.5", 1), "central_difference", names)
    assert now == fingerprint(deep + "# a comment\n", "central_difference", names)
    other = deep.replace("def hello():", "def hello():\n    0")
    assert now == fingerprint(other, "central_difference", names)


def test_shapes_of_deep_trees_are_told_apart():
    few = [ast.parse(text) for text in ("f(a, [b], c)", "f(a, [b, c])", "f([a, b], c)", "f(a)(b)")]
    assert len({dumped(tree) for tree in few}) == 4
    deep = [f"x = [{tail}, {SUM}]" for tail in ("f(a, [b], c)", "f(a, [b, c])", "f(a)([b, c])")]
    assert len({dumped(ast.parse(text)) for text in deep}) == 3


@pytest.mark.parametrize("what", ["1,000 terms inside", "1,000 terms beside", "600 branches"])
def test_deep_files_are_merged_and_watched(what):
    mine = RIGHT[what].decode()
    assert merge(SOLUTION, mine, SOLUTION).text == mine
    assert affected(list(LESSON.exercises), SOLUTION, mine, SOLUTION)


def test_notebooks_load_what_python_loads(tmp_path, monkeypatch):
    (tmp_path / "exercises").mkdir()
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "exercises" / "00_start.py"
    path.write_bytes(RIGHT["CRLF and a byte-order mark"])
    assert load("00").hello() == "hello, gradients"
    path.write_bytes(RIGHT["latin-1"])
    assert load("00").hello() == "hello, gradients"
    path.write_text(SOLUTION + WRONG["an annotated name"][0], encoding="utf-8")
    with pytest.raises(NameError, match="Undefined"):
        load("00")


@pytest.mark.parametrize("encoding", sorted(ENCODINGS))
def test_an_encoding_that_is_read_has_one_byte_for_null(encoding):
    """A null byte is looked for among bytes, after one was found in the text."""
    assert codecs.lookup(encoding).name == encoding
    assert bytes(range(128)).decode(encoding) == "".join(map(chr, range(128)))
    pairs = (bytes((one, two)) for one in range(128, 256) for two in range(1, 256))
    assert not any("\0" in pair.decode(encoding, "ignore") for pair in pairs)


@pytest.mark.parametrize(
    ("ask", "answer"), [(line_of, 1), (is_definition, False), (parameters, "")]
)
def test_a_file_too_long_to_parse_is_not_parsed(ask, answer, monkeypatch):
    """A megabyte of small statements takes seconds to parse."""
    source = "def f():\n    pass\n" + "x = 1\n" * 40_000
    monkeypatch.setattr(reading, "tree_of", lambda _: pytest.fail("it was parsed"))
    assert ask(source, "f") == answer


@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="no /proc here")
def test_a_link_to_a_file_of_the_system_is_not_shown(server, tmp_path):
    path = tmp_path / "exercises" / "00_start.py"
    path.parent.mkdir()
    path.symlink_to("/proc/self/environ")
    message = grade(server, LESSON, path, seed=3).exercises[0].first_failure.message
    assert "a file of the system" in message.got
    assert message.where == "exercises/00_start.py"
    assert "Put a file" in message.attempt


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "00_start.py")
    with pytest.raises(UnreadableError, match="a pipe"):
        read_source(tmp_path / "00_start.py")


def test_a_link_to_a_file_elsewhere_is_read_if_it_may_lie_there(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "other.py").write_text("x = 1\n")
    (tmp_path / "mine" / "00_start.py").symlink_to(tmp_path / "other.py")
    assert read_source(tmp_path / "mine" / "00_start.py") == "x = 1\n"
    with pytest.raises(UnreadableError, match="leads out of the submission"):
        read_source(tmp_path / "mine" / "00_start.py", (tmp_path / "mine").resolve())


def test_two_threads_parse_at_a_time():
    """A card that watches a file does so beside the cells of its notebook."""
    source = "\n".join(f"def f{i}(x):\n    return [x, (x + {i}) * (x - {i})]" for i in range(400))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            trees = list(pool.map(parse, [source] * 16))
    finally:
        sys.setswitchinterval(interval)
    assert all(tree is not None and len(tree.body) == 400 for tree in trees)
