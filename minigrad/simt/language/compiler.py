"""Compile a kernel's source to closures over lanes, once per function; refuse before it runs.

A compiled function stays valid until the function, or an outer name that it uses, changes.
"""

import ast
import weakref

import numpy as np

from minigrad.errors import NotInCudaError
from minigrad.simt.language.access import Access
from minigrad.simt.language.calls import Calls
from minigrad.simt.language.expressions import Expressions
from minigrad.simt.language.iteration import Iterations
from minigrad.simt.language.loops import Loops
from minigrad.simt.language.names import Scope
from minigrad.simt.language.source import Source
from minigrad.simt.language.statements import Statements
from minigrad.simt.machine.frame import KernelProgram

_programs: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


class Compiler(Statements, Loops, Expressions, Access, Calls, Iterations):
    """Compiles one function; `callers` are the functions whose calls led here."""

    def __init__(self, function, callers=()):
        self.source = Source(function)
        self.callers = (*callers, function)
        self.used = {}
        self.exact = self.spins = False
        tree = self.source.tree
        arguments = tree.args
        if arguments.vararg or arguments.kwarg:
            raise self.source.refuse(
                tree.args.vararg or tree.args.kwarg,
                "a kernel has no `*args` and no `**kwargs` in the simulator",
                fix="name the arguments",
            )
        for node in ast.walk(tree):
            if isinstance(node, ast.Yield | ast.YieldFrom | ast.Await):
                raise self.source.refuse(node, "a kernel cannot be a generator")
        self.scope = Scope(self.source)
        self.parameters = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        self.parameters += [a.arg for a in arguments.kwonlyargs]

    def compile(self):
        """Return the program of the function."""
        body = self.block(self.source.tree.body)
        used = {**self.scope.used, **self.used}
        site = self.source.site(self.source.tree)
        compiled = KernelProgram(
            self.source.name, len(self.scope.slots), body, used, site, self.parameters
        )
        compiled.exact, compiled.spins = self.exact, self.spins
        return compiled

    def program(self, function, node):
        """Return the program of a device function that this one calls."""
        if function in self.callers:
            raise self.source.recursion(node, function)
        callee = program(function, self.callers)
        self.used.update(callee.used)
        self.exact = self.exact or callee.exact
        self.spins = self.spins or callee.spins
        return callee


def program(function, callers=()):
    """Return the program of a function; compile it at first use."""
    compiled = _programs.get(function)
    if compiled is None or any(
        scope.now(name) is not value for scope, name, value in compiled.used.values()
    ):
        with np.errstate(all="ignore"):
            compiled = _programs[function] = Compiler(function, callers).compile()
    return compiled


def check_kernel(function):
    """Raise for an object that cannot be called, so is no kernel."""
    if not callable(function):
        raise NotInCudaError(f"{function!r} is no kernel", fix="launch a function defined with def")
