"""Makes mechanical mutants: solutions that a program breaks, each at one place.

Hand-written mutants are mistakes that somebody thought of. These are mistakes that nobody thought
of: operators on the syntax tree drop an argument, move a bound by one, skip a loop's first round,
leave a `finally` out. Each breaks what the learner writes, nothing else. A check that refuses none
of its many broken solutions tests less than its docstring promises.

Source: DeMillo, Lipton, Sayward: Hints on test data selection, Computer 11(4), 1978.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from minigrad.course.stubs import BEGIN, END, STARTS_AS
from minigrad.grader.fingerprint import names_in

UNWRAPPED = {"abs", "float", "int", "list", "reversed", "set", "sorted", "tuple"}
SYMMETRIC = {"max", "maximum", "min", "minimum", "multiply", "add", "shares_memory", "array_equal"}
COMPARISONS: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.MatMult: ast.Mult,
}


@dataclass(frozen=True)
class Broken:
    """A solution broken at one place.

    Attributes:
        exercise: the broken exercise.
        operator: what was done, in words.
        change: the code before and after, such as `a + b -> a - b`; unique in its exercise.
        source: the whole file.
    """

    exercise: str
    operator: str
    change: str
    source: str


@dataclass(frozen=True)
class Place:
    """What an operator may need to know about the function around a node."""

    defaults: dict[str, ast.expr]
    method: str
    has_numpy: bool


Changes = Iterator[tuple[str, ast.AST | list[ast.stmt]]]


def parsed(text: str) -> ast.expr:
    """Return the syntax tree of an expression."""
    return ast.parse(text, mode="eval").body


def call(function: str, *arguments: ast.expr) -> ast.Call:
    """Return the syntax tree of a call."""
    return ast.Call(parsed(function), list(arguments), [])


def changed(node: ast.AST, **fields: object) -> Any:
    """Return a copy of a node with other fields."""
    new = copy.deepcopy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def without(items: list, index: int) -> list:
    """Return a list without one entry."""
    return items[:index] + items[index + 1 :]


# ---- operators on expressions ---------------------------------------------------------------


def calls(node: ast.AST, place: Place) -> Changes:
    """Drop an argument, swap two, replace the call by its argument."""
    if not isinstance(node, ast.Call):
        return
    arguments, function = node.args, node.func
    name = ast.unparse(function).split(".")[-1]
    for i, keyword in enumerate(node.keywords):
        if keyword.arg not in (None, "strict"):
            yield "drop an argument", changed(node, keywords=without(node.keywords, i))
    if len(arguments) > 1:
        if isinstance(function, ast.Attribute):
            yield "drop an argument", changed(node, args=arguments[:-1])
        if name not in SYMMETRIC:
            yield "swap arguments", changed(node, args=[arguments[1], arguments[0], *arguments[2:]])
    if len(arguments) == 1 and not node.keywords and not isinstance(arguments[0], ast.Starred):
        of_numpy = isinstance(function, ast.Attribute) and ast.unparse(function.value) == "np"
        if of_numpy or (isinstance(function, ast.Name) and function.id in UNWRAPPED):
            yield "drop a call", arguments[0]
        if of_numpy and name.endswith("_like"):
            shape = ast.Attribute(arguments[0], "shape")
            yield "drop a dtype", call(f"np.{name.removesuffix('_like')}", shape)
    if isinstance(function, ast.Attribute) and not arguments and not node.keywords:
        yield "drop a call", function.value
    if isinstance(function, ast.Attribute) and name == "astype":
        yield "drop a dtype", function.value


def comparisons(node: ast.AST, place: Place) -> Changes:
    """Reverse a comparison, move its boundary, confuse a false value with None."""
    if not isinstance(node, ast.Compare) or len(node.ops) > 1:
        return
    for other in COMPARISONS.get(type(node.ops[0]), ()):
        yield "another comparison", changed(node, ops=[other()])
    right = node.comparators[0]
    if isinstance(right, ast.Constant) and right.value is None and place.has_numpy:
        some = call("np.any", node.left)
        is_none = isinstance(node.ops[0], ast.Is)
        yield "zeros for None", ast.UnaryOp(ast.Not(), some) if is_none else some


def arithmetic(node: ast.AST, place: Place) -> Changes:
    """Change the operation, keep one operand alone, drop a sign."""
    if isinstance(node, ast.BinOp):
        if other := ARITHMETIC.get(type(node.op)):
            yield "another operation", changed(node, op=other())
        yield "drop an operand", node.left
        yield "drop an operand", node.right
    if isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "another operation", changed(node, op=other)
        for i in range(len(node.values)):
            rest = without(node.values, i)
            yield (
                "drop an operand",
                rest[0] if len(rest) == 1 else changed(node, values=rest),
            )
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield "drop a sign", node.operand


def values(node: ast.AST, place: Place) -> Changes:
    """Shift a number, negate a bool, replace a parameter by its default."""
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool):
            yield "another constant", ast.Constant(not value)
        elif isinstance(value, int):
            yield "off by one", ast.Constant(value + 1)
            yield "off by one", parsed(str(value - 1))
        elif isinstance(value, float):
            yield "another constant", ast.Constant(2 * value if value else 1.0)
        elif value == "float64":
            yield "another dtype", ast.Constant("float32")
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in place.defaults:
        yield "the default always", place.defaults[node.id]


def parts(node: ast.AST, place: Place) -> Changes:
    """Drop a slice's bound, an entry, a condition; swap two entries, or the branches."""
    if isinstance(node, ast.Slice):
        for name in ("lower", "upper", "step"):
            if getattr(node, name) is not None:
                yield "drop a bound", changed(node, **{name: None})
    if isinstance(node, ast.IfExp):
        yield "swap branches", changed(node, body=node.orelse, orelse=node.body)
        yield "one branch", node.body
        yield "one branch", node.orelse
    if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load) and len(node.elts) == 2:
        yield "swap entries", changed(node, elts=node.elts[::-1])
    if isinstance(node, ast.Dict) and len(node.keys) > 1:
        for i in range(len(node.keys)):
            yield (
                "drop an entry",
                changed(node, keys=without(node.keys, i), values=without(node.values, i)),
            )
    if isinstance(node, ast.comprehension):
        for i in range(len(node.ifs)):
            yield "drop a condition", changed(node, ifs=without(node.ifs, i))
        yield from (
            (what, changed(node, iter=iterator)) for what, iterator in other_rounds(node.iter)
        )


def other_rounds(iterator: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield iterables that a loop could run over instead."""
    for what, text in (("skip the first", "[1:]"), ("skip the last", "[:-1]")):
        sliced = parsed(f"a{text}")
        assert isinstance(sliced, ast.Subscript)
        yield what, ast.Subscript(call("list", iterator), sliced.slice)


# ---- operators on statements ----------------------------------------------------------------


def statements(node: ast.AST, place: Place) -> Changes:
    """Drop a statement, or return another value."""
    simple = ast.Assign | ast.AugAssign | ast.Expr | ast.Raise | ast.Delete | ast.Continue
    if isinstance(node, simple):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_text:
            yield "drop a statement", ast.Pass()
    if isinstance(node, ast.Break):
        yield "drop a statement", ast.Pass()
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        yield "another error", changed(node, exc=parsed("Exception('wrong')"))
    if isinstance(node, ast.Return) and node.value is not None:
        yield "a constant", ast.Return(ast.Constant(1.0))
        if place.has_numpy and not isinstance(node.value, ast.Tuple | ast.Constant):
            yield "another dtype", ast.Return(call("np.float32", node.value))


def blocks(node: ast.AST, place: Place) -> Changes:
    """Keep one branch, swap the branches, change a loop's rounds, remove a guard."""
    if isinstance(node, ast.If):
        yield "one branch", node.body
        yield "one branch", node.orelse or [ast.Pass()]
        if node.orelse:
            yield "swap branches", changed(node, body=node.orelse, orelse=node.body)
    if isinstance(node, ast.For):
        for what, iterator in other_rounds(node.iter):
            yield what, changed(node, iter=iterator)
        back = call("reversed", call("list", node.iter))
        yield "another order", changed(node, iter=back)
    if isinstance(node, ast.For | ast.While):
        yield "one round", changed(node, body=[*node.body, ast.Break()])
    if isinstance(node, ast.Try):
        if node.finalbody:
            unguarded = [*node.body, *node.orelse, *node.finalbody]
            yield "drop a finally", unguarded
        if node.handlers:
            yield "drop an except", [*node.body, *node.orelse, *node.finalbody]
    if isinstance(node, ast.With):
        yield "drop a with", node.body


def storage(node: ast.AST, place: Place) -> Changes:
    """Write in place instead of replacing, replace instead of writing, keep state on the class."""
    if isinstance(node, ast.AugAssign):
        left = copy.deepcopy(node.target)
        left.ctx = ast.Load()
        yield (
            "a new one for in place",
            ast.Assign([node.target], ast.BinOp(left, node.op, node.value), lineno=0),
        )
    if not isinstance(node, ast.Assign) or len(node.targets) > 1:
        return
    (target,) = node.targets
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice | ast.Constant):
        whole = isinstance(target.slice, ast.Slice) or target.slice.value is ...
        if whole and isinstance(target.value, ast.Name | ast.Attribute):
            yield (
                "a new one for in place",
                ast.Assign([changed(target.value, ctx=ast.Store())], node.value, lineno=0),
            )
    if isinstance(target, ast.Attribute):
        inside = ast.Subscript(changed(target, ctx=ast.Load()), ast.Constant(...), ast.Store())
        yield "in place for a new one", ast.Assign([inside], node.value, lineno=0)
        if place.method and isinstance(target.value, ast.Name) and target.value.id == "self":
            on_class = changed(target, value=parsed("type(self)"))
            yield "state on the class", ast.Assign([on_class], node.value, lineno=0)
    same = isinstance(node.value, ast.BinOp) and ast.unparse(node.value.left)
    if same and same == ast.unparse(target):
        assert isinstance(node.value, ast.BinOp)
        yield (
            "in place for a new one",
            ast.AugAssign(cast(Any, target), node.value.op, node.value.right),
        )


OPERATORS: tuple[Callable[[ast.AST, Place], Changes], ...] = (
    calls, comparisons, arithmetic, values, parts, statements, blocks, storage,
)  # fmt: skip


# ---- a file, broken ------------------------------------------------------------------------


def written_lines(source: str) -> set[int]:
    """Return the line numbers of what the learner writes."""
    numbers, inside = set(), False
    for number, line in enumerate(source.splitlines(), 1):
        mark = line.strip()
        inside = mark == BEGIN or (inside and mark not in (STARTS_AS, END))
        if inside:
            numbers.add(number)
    return numbers


def owner(name: str, definitions: dict[str, ast.stmt], exercises: list[str]) -> str | None:
    """Return the exercise that a definition belongs to: itself, one that uses it, or the next."""
    if name in exercises:
        return name
    for user in exercises:
        if user in definitions and name in names_in(definitions[user]):
            return user
    order = list(definitions)
    later = order[order.index(name) :]
    return next((one for one in later if one in exercises), None)


def broken(source: str, exercises: list[str]) -> Iterator[Broken]:
    """Yield the solution with each single change that an operator makes.

    Args:
        source: a solution, with its marks.
        exercises: the names of the lesson's exercises.
    """
    tree, lines = ast.parse(source), written_lines(source)
    definitions = [n for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    by_name: dict[str, ast.stmt] = {node.name: node for node in definitions}
    has_numpy = "import numpy as np" in source
    for definition in definitions:
        exercise = owner(definition.name, by_name, exercises)
        if exercise is None or not lines & set(range(definition.lineno, _end(definition) + 1)):
            continue
        seen = {ast.unparse(tree)}
        times: Counter[str] = Counter()
        for operator, before, after in changes(definition, lines, has_numpy):
            text = ast.unparse(tree)  # of the tree while `changes` has changed it
            if text in seen:
                continue
            seen.add(text)
            change = f"{_short(before)} -> {_short(after)}"
            times[change] += 1
            again = f" ({times[change]})" if times[change] > 1 else ""
            yield Broken(exercise, operator, f"{change}{again}", text)


def changes(
    definition: ast.FunctionDef | ast.ClassDef, lines: set[int], has_numpy: bool
) -> Iterator[tuple[str, ast.AST, ast.AST | list[ast.stmt]]]:
    """Change the tree in place, yield (operator, before, after), and change it back."""
    places: dict[ast.AST, Place] = {}
    for function in ast.walk(definition):
        if isinstance(function, ast.FunctionDef):
            place = Place(_defaults(function), function.name, has_numpy)
            places |= dict.fromkeys(ast.walk(function), place)
    outside = Place({}, "", has_numpy)
    for parent in list(ast.walk(definition)):
        for name, value in ast.iter_fields(parent):
            for index, node in enumerate(value if isinstance(value, list) else [value]):
                if not isinstance(node, ast.AST) or not _inside(node, lines):
                    continue
                if isinstance(parent, ast.keyword) and parent.arg == "strict":
                    continue
                for find in OPERATORS:
                    for what, new in find(node, places.get(node, outside)):
                        if isinstance(value, list):
                            value[index : index + 1] = new if isinstance(new, list) else [new]
                            yield what, node, new
                            value[index : index + (len(new) if isinstance(new, list) else 1)] = [
                                node
                            ]
                        else:
                            setattr(parent, name, new)
                            yield what, node, new
                            setattr(parent, name, node)


def _inside(node: ast.AST, lines: set[int]) -> bool:
    if isinstance(node, ast.comprehension):
        return _inside(node.target, lines)
    return getattr(node, "lineno", 0) in lines


def _end(definition: ast.stmt) -> int:
    return definition.end_lineno or definition.lineno


def _defaults(function: ast.FunctionDef) -> dict[str, ast.expr]:
    given = function.args
    last = given.args[len(given.args) - len(given.defaults) :]
    defaults = {one.arg: value for one, value in zip(last, given.defaults, strict=True)}
    more = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    return defaults | {one.arg: value for one, value in more if value is not None}


def _short(node: ast.AST | list[ast.stmt], limit: int = 70) -> str:
    if isinstance(node, list):
        return _short(node[0])
    if isinstance(node, ast.comprehension):
        return ast.unparse(ast.Expr(ast.ListComp(ast.Name("..."), [node])))[4:-1]
    text = ast.unparse(node).partition("\n")[0]
    return text if len(text) <= limit else text[: limit - 2] + " …"
