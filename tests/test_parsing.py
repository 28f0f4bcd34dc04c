"""A cell that parses while the lesson's card does: `minigrad.parsing`."""

import ast
import concurrent.futures
import gc
import inspect
import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest

from minigrad.parsing import tree_of

ROOT = Path(__file__).resolve().parents[1]
# Run by developers, in one thread.
TOOLS = {"course/mechanical.py", "course/mutants.py"}


LARGE = "\n".join(f"x{i} = [a + b * {i} for a in c]" for i in range(200))


@pytest.fixture
def collections():
    """Functions that are called when the garbage collector starts."""
    before, thresholds = gc.callbacks[:], gc.get_threshold()
    found = []
    gc.callbacks[:] = [lambda phase, info: [f() for f in found if phase == "start"]]
    gc.set_threshold(100)
    yield found
    gc.set_threshold(*thresholds)
    gc.callbacks[:] = before


def test_no_other_thread_gets_its_turn_in_the_middle_of_a_tree(collections):
    stacks = []
    collections.append(lambda: stacks.append({f.function for f in inspect.stack(0)}))
    ast.parse(LARGE)
    assert any("parse" in functions for functions in stacks)
    stacks.clear()
    tree_of(LARGE)
    assert not any("parse" in functions for functions in stacks)
    assert gc.isenabled()


def test_a_tree_that_another_thread_makes_is_waited_for(collections):
    inside, begun = threading.Event(), threading.Event()
    main = threading.get_ident()

    def let_the_other_begin():
        if threading.get_ident() == main and not inside.is_set():
            inside.set()
            begun.wait()
            time.sleep(0.05)  # enough for a tree that does not wait

    def other():
        inside.wait()
        begun.set()
        trees.append(tree_of(LARGE))

    trees = []
    thread = threading.Thread(target=other)
    thread.start()
    collections.append(let_the_other_begin)
    trees.append(ast.parse(LARGE))  # as IPython's own: SystemError, if nobody waits for it
    thread.join()
    assert inside.is_set()
    assert ast.dump(trees[0]) == ast.dump(trees[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_parses():
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        others = pool.map(tree_of, [LARGE] * 8)
        for _ in range(5):
            child = os.fork()
            if child == 0:
                signal.alarm(30)  # seconds, in which it ends a child that waits for ever
                code = 1
                try:
                    code = len(tree_of("x = 1").body) - 1
                finally:
                    os._exit(code)
            assert os.waitpid(child, 0)[1] == 0
        assert len(list(others)) == 8


def test_what_cannot_be_parsed_stays_a_syntax_error():
    with pytest.raises(SyntaxError, match="invalid syntax"):
        tree_of("x = = 1")


def test_a_learners_process_parses_by_tree_of_alone():
    package = ROOT / "minigrad"
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"\bast\.parse\(", path.read_text(encoding="utf-8"))
    }
    assert found == {"parsing.py"} | TOOLS
