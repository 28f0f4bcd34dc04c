"""Which arguments a kernel writes to, read from its source.

Known before the launch, since a Variable's version is counted and its memory un-shared before it
is written.
"""

import ast
import functools

from minigrad.errors import MinigradError
from minigrad.simt.language import Intrinsic
from minigrad.simt.names import MISSING, Scope, device_function
from minigrad.simt.source import Source


@functools.lru_cache(maxsize=256)
def written(function, callers=()):
    """Names of the parameters that a kernel or device function writes through."""
    try:
        source = Source(function)
    except MinigradError:  # no source: the launch will say so
        return frozenset()
    finder = _Finder(source, callers)
    for statement in source.tree.body:
        finder.visit(statement)
    return finder.result()


def _root(node):
    """The name of the array that an expression is, or is a part of; None if it is no array."""
    while True:
        if isinstance(node, (ast.Subscript, ast.Attribute)):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value  # x.view(dtype)
        else:
            return node.id if isinstance(node, ast.Name) else None


class _Finder(ast.NodeVisitor):
    """Collects the names that are stored through, and the other names that arrays get."""

    def __init__(self, source, callers):
        arguments = source.tree.args
        self.parameters = {a.arg for a in (*arguments.posonlyargs, *arguments.args)}
        self.scope, self.callers = Scope(source), (*callers, source.function)
        self.found, self.aliases = set(), []

    def result(self):
        """The parameters among them, also by other names."""
        before = -1
        while before != len(self.found):
            before = len(self.found)
            self.found |= {whole for name, whole in self.aliases if name in self.found}
        return frozenset(self.found & self.parameters)

    def visit_Subscript(self, node):
        if not isinstance(node.ctx, ast.Load):
            self.found.add(_root(node))
        self.generic_visit(node)

    def visit_Assign(self, node):
        for target in node.targets:
            self._named(target, node.value)
        self.generic_visit(node)

    def _named(self, target, value):
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for pair in zip(target.elts, value.elts, strict=False):
                self._named(*pair)
        elif isinstance(target, (ast.Name, ast.Tuple)):
            names = [target] if isinstance(target, ast.Name) else target.elts
            parts = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
            parts = [q for p in parts for q in (p.elts if isinstance(p, ast.Tuple) else [p])]
            self.aliases += [
                (name.id, _root(part))
                for name in names
                for part in parts
                if isinstance(name, ast.Name)
            ]

    def visit_Call(self, node):
        called = self.scope.static(node.func)
        if isinstance(called, Intrinsic):
            if called.path.startswith(("atomic", "store")) and node.args:
                self.found.add(_root(node.args[0]))
        elif called is not MISSING:
            inner = device_function(called)
            if inner is not None and inner not in self.callers:
                self._passed(node, inner)
        self.generic_visit(node)

    def _passed(self, node, inner):
        """Arguments of a device function that it writes through."""
        code, through = inner.__code__, written(inner, self.callers)
        named = [(k.arg, k.value) for k in node.keywords]
        pairs = [*zip(code.co_varnames[: code.co_argcount], node.args, strict=False), *named]
        for name, part in pairs:
            if name in through:
                parts = part.elts if isinstance(part, ast.Tuple) else [part]
                self.found |= {_root(p) for p in parts}
