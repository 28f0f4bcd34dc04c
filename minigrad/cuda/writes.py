"""Finds the arguments that a kernel writes to, from its source.

A launch must know them in advance, to increment a Variable's version and unshare its memory before
the write.
"""

import ast
import functools

from minigrad.errors import MinigradError
from minigrad.simt.language.language import Intrinsic
from minigrad.simt.language.names import Scope, device_function
from minigrad.simt.language.source import Source


@functools.lru_cache(maxsize=256)
def written(function, callers=()):
    """Returns the names of the parameters that a kernel or device function writes through."""
    try:
        source = Source(function)
    except MinigradError:  # no source: the launch raises this error
        return frozenset()
    finder = _Finder(source, callers)
    for statement in source.tree.body:
        finder.visit(statement)
    return finder.result()


class _Finder(ast.NodeVisitor):
    """Collects the names that a function writes through, and the aliases of arrays."""

    def __init__(self, source, callers):
        arguments = source.tree.args
        self.parameters = {a.arg for a in (*arguments.posonlyargs, *arguments.args)}
        self.scope, self.callers = Scope(source), (*callers, source.function)
        self.found, self.aliases = set(), []

    def result(self):
        """Returns the parameters that the function writes through, directly or by an alias."""
        before = -1
        while before != len(self.found):
            before = len(self.found)
            self.found |= {whole for name, whole in self.aliases if name in self.found}
        return frozenset(self.found & self.parameters)

    def visit_Subscript(self, node):
        if not isinstance(node.ctx, ast.Load):
            self.found.update(self._roots(node))
        self.generic_visit(node)

    def visit_Assign(self, node):
        for target in node.targets:
            self._named(target, node.value)
        self.generic_visit(node)

    def visit_AnnAssign(self, node):
        if node.value is not None:
            self._named(node.target, node.value)
        self.generic_visit(node)

    def visit_NamedExpr(self, node):
        self._named(node.target, node.value)
        self.generic_visit(node)

    def visit_For(self, node):
        self._named(node.target, node.iter)
        self.generic_visit(node)

    def visit_Call(self, node):
        called = self.scope.static(node.func)
        if isinstance(called, Intrinsic):
            if called.path.startswith(("atomic", "store")) and node.args:
                self.found.update(self._roots(node.args[0]))
        else:
            inner = device_function(called)
            if inner is not None and inner not in self.callers:
                self._passed(node, inner)
        self.generic_visit(node)

    def _named(self, target, value):
        """Notes that a target may be an alias of the arrays in a value."""
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for pair in zip(target.elts, value.elts, strict=False):
                self._named(*pair)
        elif isinstance(target, (ast.Name, ast.Tuple)):
            names = [target] if isinstance(target, ast.Name) else target.elts
            self.aliases += [
                (name.id, root)
                for name in names
                for root in self._roots(value)
                if isinstance(name, ast.Name)
            ]

    def _passed(self, node, inner):
        """Notes the arguments of a call that a device function writes through."""
        code, through = inner.__code__, written(inner, self.callers)
        named = [(k.arg, k.value) for k in node.keywords]
        pairs = [*zip(code.co_varnames[: code.co_argcount], node.args, strict=False), *named]
        for name, part in pairs:
            if name in through:
                self.found.update(self._roots(part))

    def _roots(self, node):
        """Returns the names of arrays that an expression may refer to, in whole or in part."""
        if isinstance(node, ast.Name):
            return [node.id]
        if isinstance(node, (ast.Subscript, ast.Attribute, ast.NamedExpr)):
            inside = [node.value]
        elif isinstance(node, ast.IfExp):
            inside = [node.body, node.orelse]
        elif isinstance(node, ast.Tuple):
            inside = node.elts
        elif not isinstance(node, ast.Call):
            inside = []
        elif device_function(self.scope.static(node.func)) is not None:
            inside = [*node.args, *(k.value for k in node.keywords)]  # it may return one of them
        else:
            inside = [node.func.value] if isinstance(node.func, ast.Attribute) else []  # x.view(t)
        return [root for part in inside for root in self._roots(part)]
