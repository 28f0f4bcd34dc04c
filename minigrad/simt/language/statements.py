"""Statements -> closures (frame, mask) -> the mask of the lanes that go on."""

import ast

from minigrad.errors import MinigradError, SimulationError
from minigrad.simt.language.part import LanguagePart
from minigrad.simt.machine.faults import explained, fault, offender
from minigrad.simt.machine.frame import decide
from minigrad.simt.machine.masks import DEAD, Misuse, describe, split, union
from minigrad.simt.machine.promotion import truth


class Statements(LanguagePart):
    """The part of the compiler that handles statements."""

    def block(self, nodes):
        """Compile several statements, to run one after the other."""
        pairs = [(self.statement(node), self.source.site(_head(node))) for node in nodes]

        def run(f, m):
            site = None
            try:
                for step, site in pairs:  # noqa: B007 - the site is for the except
                    m = step(f, m)
                    if m is DEAD:
                        return DEAD
            except MinigradError:
                raise
            except KeyboardInterrupt as error:
                if site is not None and not hasattr(error, "__notes__"):  # the innermost line
                    error.add_note(f"in the kernel {site.function}, at {site.where}")
                raise
            except Misuse as error:
                raise explained(error, site) from None
            except Exception as error:
                raise explained(error, site) from error
            return m

        return run

    def statement(self, node):
        """Compile one statement."""
        method = getattr(self, f"do_{type(node).__name__}", None)
        if method is None:
            kind = type(node).__name__
            where = "the simulator" if kind in ("FunctionDef", "Match") else "a CUDA kernel"
            raise self.source.refuse(
                node,
                f"`{_KEYWORDS.get(kind, kind.lower())}` cannot be used in {where}",
                fix="kernels have assignments, if, while, for, break, continue, return and calls",
            )
        return method(node)

    def do_Pass(self, node):
        return lambda f, m: m

    def do_Expr(self, node):
        if isinstance(node.value, ast.Constant):
            return lambda f, m: m
        if isinstance(node.value, ast.Call):
            run = self.call(node.value, wanted=False)
        else:
            run = self.expression(node.value)

        def step(f, m):
            run(f, m)
            return m

        return step

    def do_Assign(self, node):
        value = self.expression(node.value)
        targets = [self.target(target) for target in node.targets]
        if len(targets) == 1:
            (only,) = targets

            def step(f, m):
                only(f, m, value(f, m))
                return m

            return step

        def step_all(f, m):
            v = value(f, m)
            for put in targets:
                put(f, m, v)
            return m

        return step_all

    def do_AnnAssign(self, node):
        if node.value is None:
            return lambda f, m: m
        return self.do_Assign(ast.Assign([node.target], node.value))

    def target(self, node):
        """Compile the target of `=` to a closure (frame, mask, value)."""
        if isinstance(node, ast.Name):
            slot = self.scope.slots[node.id]
            return lambda f, m, v: f.assign(slot, v, m)
        if isinstance(node, ast.Tuple | ast.List):
            parts = [self.target(part) for part in node.elts]
            return lambda f, m, v: _unpack(parts, f, m, v)
        if isinstance(node, ast.Subscript):
            base, index = self.expression(node.value), self.index(node.slice)
            site, name = self.source.site(node), ast.unparse(node.value)

            def put(f, m, v):
                _writable(base(f, m), name).store(index(f, m), v, f.wave.lanes, m, site)

            return put
        raise self.source.refuse(node, ASSIGNED)

    def do_AugAssign(self, node):
        value, operate = self.expression(node.value), self.operation(node.op, node)
        if isinstance(node.target, ast.Name):
            read = self.expression(ast.copy_location(ast.Name(node.target.id, ast.Load()), node))
            slot = self.scope.slots[node.target.id]

            def step(f, m):
                old = read(f, m)
                f.assign(slot, operate(f, m, old, value(f, m)), m)
                return m

            return step
        if not isinstance(node.target, ast.Subscript):
            raise self.source.refuse(node, ASSIGNED)
        base, index = self.expression(node.target.value), self.index(node.target.slice)
        site, name = self.source.site(node.target), ast.unparse(node.target.value)

        def step_element(f, m):
            array, at = _writable(base(f, m), name), index(f, m)
            old = array.load(at, f.wave.lanes, m, site)
            if any(type(i) is slice for i in at):
                array.store(at, old, f.wave.lanes, m, site)  # raises, and says why
            array.store(at, operate(f, m, old, value(f, m)), f.wave.lanes, m, site)
            return m

        return step_element

    def do_If(self, node):
        test, body = self.expression(node.test), self.block(node.body)
        orelse = self.block(node.orelse) if node.orelse else None
        site = self.source.site(node.test)

        def step(f, m):
            before = f.returned
            yes, no = decide(f, m, test, site)
            if no is DEAD:
                return body(f, yes)
            if yes is DEAD:
                return no if orelse is None else orelse(f, no)
            wave = f.wave
            wave.trail.append((site, m, yes))
            left = body(f, yes)
            wave.trail[-1] = (site, m, no)
            right = no if orelse is None else orelse(f, no)
            wave.trail.pop()
            if left is yes and right is no:
                return m
            after = union(left, right, m)
            if f.returned is not before:
                f.settle(after)
            return after

        return step

    def do_Assert(self, node):
        """Compile an assert, which on a GPU fails only in debug mode."""
        test, site = self.expression(node.test), self.source.site(node)
        said = None if node.msg is None else _text(node.msg)

        def step(f, m):
            _, failed = split(m, truth(test(f, m)))
            if failed is not DEAD:
                lanes = f.wave.lanes
                lane = offender(lanes, failed, True)
                raise fault(
                    SimulationError, "this thread's assert fails", site, lanes, lane, got=said
                )
            return m

        return step

    def do_Raise(self, node):
        site = self.source.site(node)
        said = None if node.exc is None else ast.unparse(node.exc)

        def step(f, m):
            lane = offender(f.wave.lanes, m, True)
            raise fault(
                SimulationError,
                "this thread raises an exception, which a GPU does not report",
                site,
                f.wave.lanes,
                lane,
                got=said,
                fix="write a mark into an array instead, and look at it after the launch",
            )

        return step

    def do_Return(self, node):
        value = self.expression(node.value) if node.value is not None else lambda f, m: None
        site = self.source.site(node)

        def step(f, m):
            f.leave(value(f, m), m, site)
            return DEAD

        return step


ASSIGNED = (
    "only variables and elements of arrays can be assigned to, and no fields of records in the"
    " simulator"
)
_KEYWORDS = {  # of the classes of ast that have other names than their keywords
    "ClassDef": "class", "FunctionDef": "def", "Delete": "del", "ImportFrom": "import",
}  # fmt: skip


def _head(node):
    """Return the part of a statement that its errors name, such as the condition of an `if`."""
    for part in ("test", "iter"):
        if hasattr(node, part):
            return getattr(node, part)
    return node


def _text(node):
    """Return the message of an assert: its text, or the source of the expression."""
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return node.value if is_text else ast.unparse(node)


def _writable(value, name):
    """Return the array or pointer whose element is assigned to; raise if it is neither."""
    if not hasattr(value, "store"):
        raise Misuse(
            f"{name} is {describe(value)}, which cannot be written to",
            "results go into the elements of an array that is an argument",
        )
    return value


def _unpack(parts, f, m, value):
    if not isinstance(value, tuple):
        raise Misuse("only a tuple can be unpacked")
    if len(value) != len(parts):
        raise Misuse(f"{len(parts)} names for {len(value)} values")
    for put, part in zip(parts, value, strict=True):
        put(f, m, part)
