"""Find the syntax tree of a function's source, with the line numbers of its file."""

import ast
import functools
import linecache

from minigrad.errors import NotInCudaError, describe_line
from minigrad.parsing import tree_of
from minigrad.simt.watch.memory import Site


@functools.lru_cache(maxsize=256)
def _definitions(text):
    """Return all functions of a file: {(name, first line, decorators included): tree}."""
    trees = {}
    for node in ast.walk(tree_of(text)):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            trees[node.name, first] = node
    return trees


class Source:
    """The source of one function.

    Attributes:
        function: the function.
        tree: its ast.FunctionDef.
        file: the name of its file, or what the notebook calls the cell.
    """

    def __init__(self, function):
        self.function = function
        code = getattr(function, "__code__", None)
        if code is None:
            raise NotInCudaError(f"{function!r} is no Python function, so it has no source to run")
        self.file, self.name = code.co_filename, code.co_name
        linecache.checkcache(self.file)
        lines = linecache.getlines(self.file, function.__globals__)
        self.lines = lines
        try:
            tree = _definitions("".join(lines)).get((self.name, code.co_firstlineno))
        except SyntaxError:
            tree = None
        if tree is None:
            raise NotInCudaError(
                f"the source of {self.name} was not found",
                got=describe_line(self.file, code.co_firstlineno),
                where="",
                fix="define it with `def` in a file or a notebook's cell, and run it again after"
                " the file has changed; a lambda has no name to be found by",
            )
        self.tree = tree

    def site(self, node):
        """Return the site of a node of the tree."""
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        text = ""
        if line and node.end_lineno == line:  # columns count bytes
            text = self.lines[line - 1].encode()[column : node.end_col_offset].decode()
        elif isinstance(node, ast.expr):
            text = ast.unparse(node)
        return Site(self.file, line, column, text, self.name)

    def refuse(self, node, what, fix=None):
        """Return the error for a construct that Numba, or only the simulator, does not compile."""
        return NotInCudaError(what, where=self.site(node).where, fix=fix)

    def recursion(self, node, function):
        """Return the error for a function that calls itself, directly or through others."""
        what = (
            f"{function.__name__} calls itself, which Numba compiles for CUDA and minigrad does not"
        )
        return self.refuse(node, what, fix="write it as a loop")
