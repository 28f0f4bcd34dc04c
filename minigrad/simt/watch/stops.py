"""Rewrite a kernel as a generator that stops before every statement, for `interleaving`."""

import ast
import inspect
import textwrap
from types import FunctionType

from minigrad.errors import KernelError, describe_line
from minigrad.parsing import tree_of

BARRIERS = {"syncthreads": "block", "syncwarp": "warp"}


class _Stops(ast.NodeTransformer):
    """Inserts `yield line, wait` before every statement, and between a value and its store."""

    def __init__(self):
        self.names = 0

    def stop(self, node, wait=""):
        line = ast.Constant(node.lineno)
        return ast.Expr(ast.Yield(ast.Tuple([line, ast.Constant(wait)], ast.Load())))

    def body(self, statements) -> list[ast.stmt]:
        return [new for statement in statements for new in self.statement(statement)]

    def statement(self, node):
        """Return the statements that replace one."""
        if isinstance(node, (ast.If, ast.While, ast.For)):
            node.body, node.orelse = self.body(node.body), self.body(node.orelse)
            return [self.stop(node), node]
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            name = getattr(node.value.func, "attr", "")
            if name in BARRIERS:
                return [self.stop(node, BARRIERS[name])]
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript):
            old = ast.Subscript(node.target.value, node.target.slice, ast.Load())
            return self.stored(node, [node.target], ast.BinOp(old, node.op, node.value))
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            return self.stored(node, node.targets, node.value)
        return [self.stop(node), node]

    def stored(self, node, targets, value):
        self.names += 1
        name = f"_value_{self.names}"
        kept: list[ast.expr] = [ast.Name(name, ast.Store())]
        store = ast.Assign(targets, ast.Name(name, ast.Load()))
        return [self.stop(node), ast.Assign(kept, value), self.stop(node), store]


class _Calls(ast.NodeTransformer):
    """Makes a call of a device function stop where its statements stop."""

    def __init__(self, function, names, language, made):
        self.local, self.names = function.__code__.co_varnames, names
        self.language, self.made = language, made

    def visit_Call(self, node):
        self.generic_visit(node)
        name = getattr(node.func, "id", None)
        called = None if name in self.local else self.names.get(name)
        called = getattr(called, "py_func", called)
        if not isinstance(called, FunctionType) or called.__name__ == "<lambda>":
            return node
        if called not in self.made:
            self.made[called] = None  # to detect a function that calls itself
            self.made[called] = generator_function(called, self.language, self.made)
        if self.made[called] is None:
            raise KernelError(
                "device functions that do not call themselves",
                f"{name} does",
                "use a loop",
                describe_line(called.__code__.co_filename, called.__code__.co_firstlineno),
            )
        alias = f"_made_of_{name}"
        self.names[alias] = self.made[called]
        node.func = ast.Name(alias, ast.Load())
        return ast.YieldFrom(node)


def generator_function(function, language, made):
    """Return a kernel or device function as a generator that stops before each statement.

    Args:
        function: a Python function, or Numba's dispatcher of it.
        language: what replaces its global `cuda`.
        made: {device function: its generator function}; new ones are added.

    Returns:
        A generator function of the same arguments. It yields `line, wait`: the line of the
        next statement, and "block" or "warp" if that is a barrier, "" otherwise.
    """
    function = inspect.unwrap(getattr(function, "py_func", function))
    lines, first = inspect.getsourcelines(function)
    [tree] = tree_of(textwrap.dedent("".join(lines))).body
    assert isinstance(tree, ast.FunctionDef)
    ast.increment_lineno(tree, first - 1)
    tree.decorator_list = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            _known(node, language, function)
    names = {**function.__globals__, "cuda": language}
    calls = _Calls(function, names, language, made)
    body = tree.body if ast.get_docstring(tree) is None else tree.body[1:]  # no docstring
    tree.body = [*map(calls.visit, _Stops().body(body)), ast.Return(None)]
    tree.body.append(_Stops().stop(ast.Pass(lineno=first)))  # a generator, also when it is empty
    module = ast.fix_missing_locations(ast.Module([tree], []))
    exec(compile(module, function.__code__.co_filename, "exec"), names)
    return names[tree.name]


def _known(node, language, function):
    """Raise for a `cuda.name` or `cuda.atomic.name` that is not supported here."""
    path = ast.unparse(node).split(".")
    if path[0] != "cuda" or path[-1] in BARRIERS:
        return
    here = language
    for name in path[1:3]:
        here = getattr(here, name, None)
        if here is None:
            raise KernelError(
                "orders are drawn for kernels with the plain names of cuda alone, without shuffles",
                ast.unparse(node),
                "wait with cuda.syncthreads() or cuda.syncwarp(), add with cuda.atomic.add",
                describe_line(function.__code__.co_filename, node.lineno),
            )
