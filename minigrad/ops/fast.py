"""Fast paths: the Python functions behind `apply`, operators and names such as `mg.exp`.

They are generated for each kind of operation, and try two paths before the slow one:

1. If the operands of an elementwise operation are flat and have one shape and one dtype, or one is
   flat and the other a number, one kernel serves any size.
2. If an earlier call has made a route for the operands' layouts (`ops.routes`), one look-up finds
   it.

Small eager operations spend their time here, so the code for memory, kernel and node is inline. To
see it, call `print(inspect.getsource(minigrad.ops.unary.Exp.apply))`.
"""

import functools
import itertools
import linecache
import os
import sys
from textwrap import indent
from typing import Any

from minigrad.array.dtypes import bool_
from minigrad.devices.backend import like
from minigrad.devices.cpu import routes
from minigrad.devices.cpu.own_matmul import state as own_matmul
from minigrad.devices.threads import SPLIT, work_of
from minigrad.memory.interrupts import ALONE
from minigrad.ops.operands import InferenceVariable
from minigrad.tape.modes import INFERENCE, NO_GRAD, RECORD, SLOW, SPAN, note, state
from minigrad.tape.node import OURS, Node, next_serial
from minigrad.tape.saved import protected
from minigrad.tape.variable import Variable

EXACT = 2**53  # float64 holds all ints of at most this size
MISSING: Any = object()  # the default of operands, to explain calls without one
FILE = os.path.join(os.path.dirname(__file__), "<fast path {}>")  # tracebacks of users hide it


class _Usable(dict):
    """{type: the first mode, a number, in which the fast paths take its objects}."""

    def __missing__(self, kind):
        first = INFERENCE if issubclass(kind, InferenceVariable) else RECORD
        self[kind] = first if issubclass(kind, Variable) else INFERENCE + 1
        return self[kind]


USABLE = _Usable()
SCOPE = {
    **routes.SCOPE, "bool_": bool_, "USABLE": USABLE, "InferenceVariable": InferenceVariable,
    "MISSING": MISSING, "Node": Node, "OURS": OURS,
    "Variable": Variable, ALONE: True, "getframe": sys._getframe, "like": like,
    "next_serial": next_serial, "note": note, "own_matmul": own_matmul, "protected": protected,
    "state": state,
}  # fmt: skip


@functools.lru_cache(4096)
def maker(constants, signature, body, name) -> Any:
    """Returns a function of constants that makes functions with this body.

    Ctrl-C waits while the lines of the body run, but not inside the functions that they call.
    """
    head = f"def make({', '.join(constants)}):\n    def {name}({signature}):\n"
    text = f"{head}{indent(body, ' ' * 8)}    return {name}\n"
    scope, file = dict(SCOPE), FILE.format(next(_count))
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    exec(compile(text, file, "exec"), scope)
    return scope["make"]


_count = itertools.count(1)


def names(letter, kinds):
    """Returns the names of operands: x0, x1, ..."""
    return [f"{letter}{k}" for k in range(len(kinds))]


NODE = """\
plan, wanted, save = {records}[mask]
node = new(Node)
node.plan, node.wanted, node.attributes, node.hooks = plan, {wanted}, {attributes}, None
node.kept, node.versions = ((), ()) if save is None else save({operands}, out)
node.edges = edges
{dated}node.serial = next_serial()
frame = getframe({depth})
while OURS[frame.f_code.co_filename] and frame.f_back is not None:
    frame = frame.f_back
node.code, node.instruction = frame.f_code, frame.f_lasti
y._requires_grad, y.node = True, node
if path == {span}:
    note(node)
return y
"""
SHOWN = """\
try:
    y.shows = out.base.views
except AttributeError:
    out.shown_by(y)
"""
WITHOUT_NODE = "y._requires_grad, y.node = False, None\nreturn y\n"


def _edges(kinds):
    """Returns the text that finds `mask` and `edges` by asking each operand once."""
    edges = names("e", kinds)
    lines = f"{' = '.join(edges)} = None\nmask = 0\n"
    for k, kind in enumerate(kinds):
        if kind == "x":
            lines += f"if a{k}._requires_grad:\n"
            lines += f"    mask, e{k} = mask | {1 << k}, a{k}.node or a{k}\n"
    none = f"if not mask:\n{indent(WITHOUT_NODE, '    ')}"
    return f"{lines}{none}edges = ({', '.join(edges)},)\n"


def ending(kinds, is_recorded, depth, is_view=False, **known):
    """Returns the text that makes a Variable of `out`, and a node if gradients are required.

    kinds: "x" for each Variable, "n" for each number. depth: the depth of the caller's frame.
    known: the texts of `records` and `attributes`, and of `wanted` if it differs from the record's.
    """
    shown = SHOWN if is_view else ""
    kind = f"Variable if path != {INFERENCE} else InferenceVariable"
    lines = f"y = new({kind})\ny.array = out\n{shown}"
    if not is_recorded:
        return lines + WITHOUT_NODE
    node = NODE.format(
        operands=", ".join(names("x", kinds)),
        dated="out.made_at = out.base.version\n" if is_view else "",
        depth=depth,
        span=SPAN,
        **{"wanted": "wanted", **known},
    )
    is_unrecorded = f"path == {NO_GRAD} or path == {INFERENCE}"
    return f"{lines}if {is_unrecorded}:\n{indent(WITHOUT_NODE, '    ')}{_edges(kinds)}{node}"


class Records(dict):
    """{bit mask of operands that require gradients: (plan, wanted, save) for a Node}.

    save(*operands, out) -> (saved values, versions), or None if nothing is saved.

    Args:
        op: the operation.
        kinds: as for `ending`.
        outline: (shape, dtype) of each operand (None for a number) and of the output. None if they
            are flat, of any shape.
    """

    def __init__(self, op, kinds, outline=None):
        super().__init__()
        self.op, self.kinds, self.outline = op, kinds, outline

    def __missing__(self, mask):
        wanted, op, outline = None, self.op, self.outline
        if outline is None:
            plan = op.number_plan(mask) if "n" in self.kinds else op.plan(mask)
        else:
            count = (len(self.kinds),) if op.takes_list else ()
            plan = op.plan(mask, *count).of_route()
            is_uniform = op.takes_numbers and len({*outline}) == 1
            wanted = None if is_uniform else outline[:-1]
        save = _saver(self.kinds, plan.saved_index, outline is None)
        entry = self[mask] = plan, wanted, save
        return entry


@functools.lru_cache(1024)
def _saver(kinds, index, are_flat):
    """Makes save(*operands, out) for one choice of values. Foreign memory is never flat."""
    if not index:
        return None
    operands = names("x", kinds)
    chosen = [("out", "x") if k < 0 else (operands[k], kinds[k]) for k in index]
    safe = "{0} = {0} if not {0}.buffer.is_foreign else protected({0})\n"
    arrays = [n for n, kind in dict.fromkeys(chosen) if kind == "x" and not are_flat]
    kept = "".join(f"{n}, " for n, _ in chosen)
    versions = "".join(f"{n}.version, " if kind == "x" else "None, " for n, kind in chosen)
    body = f"{''.join(map(safe.format, arrays))}return ({kept}), ({versions})\n"
    return maker((), ", ".join([*operands, "out"]), body, "save")()


def call_of_route(lines, kinds, is_view, is_recorded, has_product, known, given=None):
    """Makes the function (path, *operands) that a look-up finds.

    lines: the statements to run (`devices.cpu.routes.Lines`). known: (records, the other arguments
    of the call, the slow path). given: the names of what it is called with, if not a0, a1, ...
    """
    operands = ", ".join(names("a", kinds))
    body = f"if own_matmul.is_used:\n    return slow({operands}, *others)\n" * has_product
    body += "".join(
        f"x{k} = a{k}.array\n" if kind == "x" else f"x{k} = a{k}\n" for k, kind in enumerate(kinds)
    )
    body += "".join(f"{line}\n" for line in (*lines.lines, f"out = {lines.result}"))
    body += ending(kinds, is_recorded, 2, is_view, records="records", attributes="others")
    constants = ["records", "others", "slow", *(f"c{k}" for k in range(len(lines.constants)))]
    make = maker(
        tuple(constants), ", ".join(["path", *(given or names("a", kinds)), "*_"]), body, "route"
    )
    return make(*known, *lines.constants)


IS_USABLE = "(type({0}) is Variable or USABLE[type({0})] <= path)"
# an argument in a key, with what tells it from equal ones (`routes.kind_of`)
MARKED = "{0}, type({0}) if type({0}) is not float else repr({0})"
IS_NUMBER = f"(type({{0}}) is float or (type({{0}}) is int and {-EXACT} <= {{0}} <= {EXACT}))"


def _uniform(kinds, is_recorded, gives_bools):
    """Returns the text of the first path for operands of `kinds`; kernels take numbers second."""
    arrays = [f"x{k}" for k, kind in enumerate(kinds) if kind == "x"]
    first, is_numbered = arrays[0], "n" in kinds
    tests = [f"{x}.is_flat" for x in arrays]
    tests += [f"{first}.dtype is {x}.dtype and {first}.shape == {x}.shape" for x in arrays[1:]]
    layout = [f"{first}.{part}" for part in ("shape", "strides", "dtype", "size")]
    addresses = ["source.address", *(f"{x}.buffer.address" for x in arrays[1:])]
    addresses += [f"float(x{kinds.index('n')})"] if is_numbered else []
    of_array = f"({first}.shape, {first}.dtype)"
    wanted = ", ".join(of_array if kind == "x" else "None" for kind in kinds)
    memory = "source.home", "source.requested", f"like({first})"
    if gives_bools:
        layout[2] = "bool_"
        memory = f"pool.homes.get({first}.size)", f"{first}.size", f"empty({first}.shape, bool_)"
    run = [
        f"source = {first}.buffer",
        f"home = {memory[0]}",
        *routes.taken("out", "buffer", "home", memory[1], layout, memory[2]),
        f"entry({', '.join([*addresses, 'buffer.address'])}, {first}.size)",
        *ending(
            kinds,
            is_recorded,
            1,
            records=f"records_{kinds}",
            attributes="()",
            wanted=f"({wanted})" if is_numbered else "None",
        ).splitlines(),
    ]
    known = f"{'numbered' if is_numbered else 'entries'}[{first}.dtype.index]"
    return (
        f"if {' and '.join(tests)} and {first}.size < alone:\n    entry = {known}\n"
        "    if entry is not None:\n" + indent("\n".join(run), " " * 8) + "\n"
    )


KEY = """\
if type(x{0}) is View:
    b{0} = x{0}.base
    if x{0}.made_at is not None and x{0}.made_at != b{0}.version and a{0}.node is not None:
        return otherwise({all})
    b{0} = b{0}.buffer
else:
    b{0} = x{0}.buffer
k{0} = x{0}.shape, x{0}.strides, x{0}.dtype, b{0}.pool, b{0}.is_foreign
"""


def _branch(kinds, forms, is_recorded, gives_bools, all_arguments):
    """Returns the text for operands of `kinds`: the first path, if there is one, and keys."""
    tests, lines, keys = [], [], []
    for k, kind in enumerate(kinds):
        is_array = kind == "x"
        tests.append((IS_USABLE if is_array else IS_NUMBER).format(f"a{k}"))
        lines.append(f"x{k} = a{k}.array" if is_array else f"x{k} = a{k}")
        keys.append(KEY.format(k, all=all_arguments) if is_array else f"k{k} = type(a{k})\n")
    body = "\n".join(lines) + "\n"
    if kinds in forms:
        body += _uniform(kinds, is_recorded, gives_bools)
    return f"if {' and '.join(tests)}:\n" + indent(body + "".join(keys), "    ")


@functools.lru_cache(256)
def _fast(taken, attributes, defaults, forms, is_recorded, gives_bools, signature):
    """Returns the maker of fast paths for operations of one structure.

    taken: for each operand, the kinds that it may be.
    """
    operands, others = names("a", taken), [f"t{k}" for k in range(attributes)]
    optional = others[attributes - defaults :]
    given = ", ".join([*operands, *others])
    if signature == "function":
        given = f"*[a for a in ({given},) if a is not MISSING], *more, **named"
    kinds = [k for k in itertools.product(*taken) if "x" in k]
    look = "el".join(_branch("".join(k), forms, is_recorded, gives_bools, given) for k in kinds)
    key = ", ".join([*names("k", taken), *map(MARKED.format, others)])
    body = f"path = state.path\nif path != {SLOW}:\n"
    body += indent(
        f"{look}else:\n    return otherwise({given})\n"
        f"try:\n    call = calls.get(({key},))\nexcept TypeError:\n    call = None\n"
        f"if call is not None:\n    return call({', '.join(['path', *operands])})\n",
        "    ",
    )
    head = {
        "plain": ", ".join(
            [*operands, *(f"{t}=default_{t}" if t in optional else t for t in others)]
        ),
        "reflected": ", ".join(reversed(operands)),
        "function": f"{', '.join(f'{a}=MISSING' for a in operands)}, /, *more, **named",
    }[signature]
    if signature == "function":
        body = f"if more or named:\n    return otherwise({given})\n{body}"
    constants = [
        "calls",
        "alone",
        "entries",
        "numbered",
        "otherwise",
        *(f"default_{t}" for t in optional),
    ]
    constants += [f"records_{form}" for form in forms]
    return maker(tuple(constants), head, f"{body}return otherwise({given})\n", "fast")


def fast_path(op, otherwise, signature="plain"):
    """Makes the fast path of an operation, which calls `otherwise` if it has no faster way.

    signature: "plain", that of `apply`; "reflected", with two operands in the other order;
    "function", which takes whatever a user passes, even nothing.
    """
    count, forms, gives_bools = len(op.inputs), (), False
    if op.is_plain and count <= 2:
        gives_bools = op.result == "bool"
        forms = ("xx", "xn", "nx")[: 1 if gives_bools else 3 if op.commutes else 2]
        forms = ("x",) if count == 1 else forms
    taken = op.kinds or ("x",) * count
    sizes = len(op.attributes), len(op.defaults)
    make = _fast(taken, *sizes, forms, op.has_gradients, gives_bools, signature)
    records = [Records(op, form) for form in forms]
    known = (op.program.entry, op.program.entry_number) if forms else (None, None)
    known = (op.program.entry_bool, None) if gives_bools else known
    alone = SPLIT // work_of(op.program) if forms else None  # elements that no threads share
    return make(op.calls, alone, *known, otherwise, *op.defaults, *records)
