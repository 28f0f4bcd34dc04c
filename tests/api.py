"""docs/generated/api: signatures and docstrings of everything public, a page a module.

Docstrings are written as Markdown with Google's sections (Args:, Returns:, Raises:, Attributes:).
"""

import functools
import importlib
import inspect
import pathlib
import re
import textwrap
from typing import NamedTuple

import minigrad as mg
from minigrad.array.dtypes import DType
from minigrad.simt.language import language
from tests.pages import NOTE

ROOT = pathlib.Path(__file__).parents[1]
SECTIONS = ("Args:", "Returns:", "Raises:", "Attributes:", "Yields:")
SPECIAL = ("__call__", "__getitem__", "__setitem__", "__iter__", "__len__", "__contains__")
LEFT_OUT = ("extra_repr", "bind", "describe", "formula", "write_check")  # the engine calls them
NOT_CALLED = ("Function", "Kernel", "Picture", "Record", "Report", "Variable")


class Entry(NamedTuple):
    """One public object: how people write it, what it is, and the module that it is from."""

    shown: str
    value: object
    home: str

    @property
    def name(self):
        """The last part of what people write."""
        return self.shown.rpartition(".")[2]


# -- what is public -----------------------------------------------------------------------------


def _home(value, otherwise):
    """The module of an object; of an operation that of its class, of a constant of its type."""
    from minigrad.ops.base import registry

    op = registry.get(getattr(value, "__name__", ""))
    if op is not None and op.__doc__ == value.__doc__:
        return op.__module__
    return getattr(inspect.unwrap(value), "__module__", None) or otherwise


def _of(prefix, module, names=None):
    """Entries of a module: the names given, or all that are not private and not imported."""
    module = importlib.import_module(module) if isinstance(module, str) else module
    home = module.__name__
    if names is None:
        names = getattr(module, "__all__", None) or [
            name
            for name, value in vars(module).items()
            if not name.startswith("_")
            and not inspect.ismodule(value)
            and f"{getattr(value, '__module__', '')}.".startswith(f"{home}.")
        ]
    found = [(name, getattr(module, name)) for name in sorted(names)]
    return [
        Entry(f"{prefix}{name}", value, _home(value, home))
        for name, value in found
        if not inspect.ismodule(value)
    ]


def _minigrad():
    from minigrad.ops.table import functions

    apart = {"Variable", "compile", "use"}
    names = {name for name, home in mg._NAMES.items() if home != "minigrad.autograd.functional"}
    found = _of("mg.", mg, (names | {*functions}) - apart)
    found += _of("", "minigrad.tape.function", ["Context"])
    found += _of("mg.linalg.", mg.linalg) + _of("mg.random.", mg.random)
    return sorted(found, key=lambda entry: entry.home)


def _autograd():
    names = [name for name, home in mg._NAMES.items() if home == "minigrad.autograd.functional"]
    looking = ("detect_anomaly", "gradcheck", "gradgradcheck", "record_grad_function", "Record")
    return _of("mg.", mg, names) + _of("mg.debug.", mg.debug, looking)


def _cuda():
    names = ("jit", "Kernel", "inspect", "Report", "synchronize", "is_available", "why_not")
    return _of("mg.cuda.", mg.cuda, (*names, "matmul_backend"))


def _errors():
    kinds = [
        name
        for name, value in vars(mg.errors).items()
        if inspect.isclass(value) and issubclass(value, Exception)
    ]
    return _of("mg.errors.", mg.errors, ["show_all", *kinds])


REPORTS = ("Report", "ProgramReport", "KernelForm", "Alias", "Refused")

# page: (title, what stands below it, what makes its entries)
OF_ALL_OPERATIONS = """Making Variables, operations, recording, devices.

Operations take Variables, numbers, nested lists and NumPy arrays. `(...)` is any shape; operands
broadcast as NumPy's do. Where a docstring says nothing else:

- **Dtypes.** float32 with float64 gives float64; a number of Python's changes no dtype within its
  kind, and a float with ints gives float32. Quotients and functions such as `exp` of ints are
  float32, comparisons are bool, sums of ints and bools int64. Numbers that a dtype does not hold
  raise.
- **Errors.** `ShapeError`: shapes that do not fit, or no such axis. `DTypeError`: an element type
  that the operation does not take. `DeviceError`: operands on two devices. `ArgumentTypeError` and
  `ArgumentError`: an argument of another type, or a value that makes no sense.
  [errors.md](errors.md) has them all."""
API = {
    "minigrad": ("mg", OF_ALL_OPERATIONS, _minigrad),
    "variable": (
        "mg.Variable",
        "Values and the graph behind them.",
        lambda: [
            *_of("mg.", mg, ["Variable"]),
            *_of("", "minigrad.tape.node", ["Node"]),
            *_of("", "minigrad.tape.hooks", ["Handle"]),
        ],
    ),
    "autograd": ("Derivatives", "Of functions, and looking into backward passes.", _autograd),
    "nn": (
        "mg.nn",
        "Parameters, modules and layers.",
        lambda: _of("mg.nn.", mg.nn) + _of("mg.nn.init.", mg.nn.init),
    ),
    "optim": ("mg.optim", "Optimizers, schedules, clipping.", lambda: _of("mg.optim.", mg.optim)),
    "compile": (
        "mg.compile",
        "A whole step as one program; [compile.md](../../compile.md) explains it.",
        lambda: [
            *_of("mg.", mg, ["compile"]),
            *_of("", "minigrad.compiler.call.compiled", ["Compiled"]),
            *_of("", "minigrad.compiler.report.report", REPORTS),
            *_of("", "minigrad.compiler.report.memory_plan", ["MemoryPlan"]),
        ],
    ),
    "memory": (
        "mg.memory",
        "The pools of the devices, and what can be seen of them.",
        lambda: _of("mg.memory.", mg.memory),
    ),
    "cuda": ("mg.cuda", "CUDA kernels; [simt.md](../../simt.md) explains the simulator.", _cuda),
    "simt": (
        "minigrad.simt",
        "The simulator below `mg.cuda`.",
        lambda: _of("minigrad.simt.", "minigrad.simt"),
    ),
    "viz": ("mg.viz", "Pictures.", lambda: _of("mg.viz.", mg.viz)),
    "distributed": (
        "mg.distributed",
        "Several ranks that train one model.",
        lambda: _of("mg.distributed.", mg.distributed),
    ),
    "data": ("mg.data", "Data that ships with minigrad.", lambda: _of("mg.data.", mg.data)),
    "errors": ("mg.errors", "Every error that a person can meet.", _errors),
    "course": (
        "minigrad.course",
        "What lessons use; [course.md](../../course.md) is their contract.",
        lambda: (
            _of("mg.", mg, ["use"])
            + _of("", "minigrad.course", importlib.import_module("minigrad.course").HOMES)
        ),
    ),
}


@functools.cache
def entries(page):
    """The entries of a page, those of one module together."""
    found = API[page][2]()
    order = list(dict.fromkeys(entry.home for entry in found))
    return sorted(found, key=lambda entry: order.index(entry.home))


@functools.cache
def places():
    """Class or function -> (its page, its name), for all that is public."""
    return {
        entry.value: (page, entry.name)
        for page in API
        for entry in entries(page)
        if callable(entry.value) and not isinstance(entry.value, DType)
    }


# -- Markdown -----------------------------------------------------------------------------------


def signature(value, name, is_method=False):
    """How something is called: names and defaults, without types, which docstrings say."""
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return name
    parameters = [p.replace(annotation=p.empty) for p in parameters[is_method:]]
    parameters = [p for p in parameters if (p.kind, p.name) != (p.VAR_KEYWORD, "unknown")]
    return f"{name}{inspect.Signature(parameters)}"


def markdown(doc):
    """A docstring as Markdown."""
    lines, out, section = inspect.cleandoc(doc or "").splitlines(), [], None
    while lines:
        line = lines.pop(0)
        is_code = line.startswith("    ") and section is None and not "".join(out[-1:])
        if line.startswith(">>> ") or is_code:
            block = [line]
            while lines and (lines[0].startswith("    ") if is_code else lines[0].strip()):
                block.append(lines.pop(0))
            out += ["", "```python", textwrap.dedent("\n".join(block)), "```", ""]
        elif line in SECTIONS:
            section = line
            out += ["", f"**{line}**", ""]
        elif section and line.startswith("    "):
            item = re.match(r"    ([*\w]+(?:, [*\w]+)*): (.*)", line)
            if item and section != "Returns:":
                out.append(f"- `{item[1]}`: {_plain(item[2])}")
            else:
                out.append(("  " if section != "Returns:" else "") + _plain(line.strip()))
        else:
            section = section if not line.strip() else None
            out.append(_plain(line))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip()


def _plain(line):
    """A line of prose in which `<` begins no tag."""
    parts = line.split("`")
    parts[::2] = [re.sub(r"<(?=\S)", r"\\<", part) for part in parts[::2]]
    return "`".join(parts)


def _link(module):
    """A link to the source of a module."""
    source = pathlib.Path(importlib.import_module(module).__file__)
    path = source.resolve().relative_to(ROOT).as_posix()
    return f"[{path}](../../../{path})"


def _bullet(head, doc):
    """A member of a class: its first words beside it, the rest below."""
    return textwrap.indent(f"`{head}`: {markdown(doc)}", "  ").replace("  ", "- ", 1)


def members(cls):
    """(name, member) of a class's own, and of the classes below it that are not public.

    A method that overrides a documented one and says nothing itself is left out.
    """
    found = {}
    for k, base in enumerate(cls.__mro__):
        if not base.__module__.startswith("minigrad") or (base is not cls and base in places()):
            break
        for name, member in vars(base).items():
            is_own = not name.startswith("_") or (name in SPECIAL and member.__doc__)
            if is_own and name not in LEFT_OUT and _is_member(member):
                above = [vars(other)[name] for other in cls.__mro__[k + 1 :] if name in vars(other)]
                if member.__doc__ or not any(other.__doc__ for other in above):
                    found.setdefault(name, member)
    return found


def _is_member(member):
    return callable(member) or isinstance(member, (property, staticmethod, classmethod))


def _members_text(cls):
    own, shared = [], []
    for name, member in members(cls).items():
        place = places().get(getattr(mg, name, None)) if cls is mg.Variable else None
        if place and getattr(mg, name).__doc__ == member.__doc__:
            shared.append(f"[{name}]({place[0]}.md#{name})")
        elif isinstance(member, property):
            own.append(_bullet(name, member.__doc__))
        else:
            function = getattr(member, "__func__", member)
            head = signature(function, name, is_method=not isinstance(member, staticmethod))
            own.append(_bullet(head, function.__doc__))
    bases = [base for base in cls.__mro__[1:] if base in places()]
    text = "\n".join(["**Members:**\n", *own]) if own else ""
    if shared:
        text += f"\n\nMethods, too, with x as the first operand: {', '.join(sorted(shared))}."
    if bases and not issubclass(cls, Exception):
        page, name = places()[bases[0]]
        text += f"\n\nAnd what every [{name}]({page}.md#{name.lower()}) has."
    return text.strip()


def entry_text(entry, said):
    """The part of a page about one entry; said: the docstring of the entry before."""
    value = entry.value
    if inspect.isclass(value) and issubclass(value, Exception):
        bases = ", ".join(base.__name__ for base in value.__bases__)
        head, after = f"class {entry.name}({bases})", ""
    elif inspect.isclass(value) and ("." not in entry.shown or entry.name in NOT_CALLED):
        head, after = f"class {entry.name}", _members_text(value)
    elif inspect.isclass(value):
        head, after = signature(value, entry.shown), _members_text(value)
    elif callable(value) and not isinstance(value, DType):
        head, after = signature(value, entry.shown), ""
    else:
        head, after = f"{entry.shown}  # {value}, a {type(value).__name__}", ""
    doc = inspect.getdoc(value)
    parts = [f"### {entry.name}", f"```python\n{head}\n```", doc != said and markdown(doc), after]
    return "\n\n".join(part for part in parts if part)


def page_text(page):
    """A page of the reference."""
    title, about, _ = API[page]
    parts = [f"# {title}", NOTE, about]
    if page == "cuda":
        words = ",\n".join(f"`{path}`" for path in language.PATHS)
        parts += [markdown(mg.cuda.__doc__), f"Kernels may use\n{words}."]
    home = said = None
    for entry in entries(page):
        if entry.home != home:
            home = entry.home
            first = (importlib.import_module(home).__doc__ or "").strip().split("\n\n")[0]
            parts += [f"## {home}", f"{_plain(' '.join(first.split()))} Source: {_link(home)}."]
        parts.append(entry_text(entry, said))
        said = inspect.getdoc(entry.value)
    return "\n\n".join(parts) + "\n"


def index_text():
    """The index: all pages, and the names on each."""
    parts = ["# API reference", NOTE]
    for page, (title, about, _) in API.items():
        named = sorted((entry.name for entry in entries(page)), key=str.lower)
        names = [f"[{name}]({page}.md#{name.lower()})" for name in named]
        parts += [
            f"## [{title}]({page}.md)",
            about.partition("\n\n")[0],
            ",\n".join(names),  # a line each, so that a new one changes no other
        ]
    return "\n\n".join(parts) + "\n"


def text(page):
    """The text of a page, `README` for the index."""
    return index_text() if page == "README" else page_text(page)
