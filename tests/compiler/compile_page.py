"""docs/compile.md: prose, and what the compiler prints."""

import functools
import inspect
import pathlib
import re
import textwrap

from minigrad.compiler import passes
from minigrad.compiler.cpu import schedule, step_text
from minigrad.compiler.cpu.cpu_plan import Plan
from minigrad.compiler.fuse import epilogue as attached
from minigrad.compiler.fuse import skinny
from minigrad.compiler.gpu import bundle
from minigrad.compiler.passes.common import share_common
from minigrad.compiler.passes.constants import fold_constants
from minigrad.compiler.passes.copies import without_copies
from minigrad.compiler.passes.dead import eliminate_dead
from minigrad.compiler.passes.localise import localise
from minigrad.compiler.program.printing import show
from minigrad.compiler.program.sketch import Sketch, view
from minigrad.compiler.report.report import ProgramReport
from minigrad.errors import MinigradError
from tests.compiler import page_steps as examples
from tests.pages import NOTE, filled

PROSE = pathlib.Path(__file__).parent / "compile_page.md"
SECONDS = re.compile(r"^compiled in +.*\n(?: {18}.*\n)*", re.MULTILINE)  # they differ by machine


def unread():
    """A value that nobody needs."""
    s = Sketch()
    x = s.argument((4,))
    y = s.exp(x)
    s.log(x)
    return s.recording(y), eliminate_dead


def folded():
    """A gradient that begins as 1."""
    s = Sketch()
    x = s.argument((4,))
    one = s.fill(1.0, (4,))
    return s.recording(s.mul(x, s.add(one, 1.0))), fold_constants


def common():
    """The same, twice."""
    s = Sketch()
    x = s.argument((4,))
    a, b = s.exp(x), s.exp(x)
    return s.recording(s.add(a, b)), share_common


def copies():
    """A copy that is only read."""
    s = Sketch()
    x, w = s.argument((4, 3)), s.captured("w", (3, 2))
    return s.recording(s.matmul(s.copy(x), w)), without_copies


def local():
    """A gradient that is dropped at the end of the step."""
    s = Sketch()
    x, w = s.argument((4,)), s.captured("w", (4,))
    gradients = s.captured("gradients", (16,))
    slot = view(gradients, (4,))
    s.mul(x, 2.0, out=slot)
    s.sub(w, slot, out=w)
    return s.recording(), lambda r: localise(r, [(gradients.value, 0, 4)])


def before_and_after(make):
    """The listing of a recording, and of what a pass makes of it."""
    recording, apply = make()
    return f"{show(recording)}\n\n    becomes\n\n{show(apply(recording))}"


def report():
    """The report of the step, without the seconds."""
    return SECONDS.sub("", str(examples.trained().report()))


def kernel():
    """The kernel of the first layer's bias and relu."""
    step = examples.trained()
    plan = step.traces[0].plan
    for text, name in plan.kernels.items():
        if "> F4(0.0)) |" in text and "exp" not in text:
            return text.replace("{name}", name).rstrip()
    raise AssertionError("no kernel of linear + relu")


def head():
    """The comments before the text of the step."""
    return examples.trained().source().split("\n\n\n")[0]


@functools.cache
def one_thread():
    """The plan of a layer with an epilogue, by one thread."""
    return Plan(examples.wide().traces[0].plan.before, n_threads=1)


def epilogue():
    """The line of its call in the report."""
    trace = examples.wide().traces[0]
    lines = str(ProgramReport(one_thread(), trace, examples.wide().function)).splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("function"))
    return "\n".join(lines[at : at + 2])


def block():
    """The function that multiplies block by block."""
    text = one_thread().text
    return text[text.index("def tile0") :].split("\n\n\n")[0]


def launches():
    """The comments before the kernels of the step on the simulated GPU."""
    return examples.simulated().source().split("\n\n\n")[0]


def numbers():
    """The numbers that the prose names."""
    return {
        "rounds": passes.MOST_ROUNDS,
        "side": skinny.MOST,
        "elements": f"{skinny.WORTH:,}",
        "rows": attached.FEWEST,
        "tile": f"{attached.WORTH:,}",
        "wakes": schedule.SHARED // 1000,
        "written_out": step_text.WRITTEN_OUT,
        "many": bundle.MANY,
        "small": f"{bundle.SMALL:,}",
    }


def memory():
    """The plan of memory, in words."""
    return str(examples.trained().memory_plan())


def error_of(function):
    """A function's text, and the error that it ends with."""
    try:
        function()
    except MinigradError as error:
        said = f"{type(error).__name__}: {error}"
    else:
        raise AssertionError(f"{function.__name__} raised nothing")
    lines = inspect.getsource(function).splitlines()[1:]
    body = textwrap.dedent("\n".join(x for x in lines if '"""' not in x)).strip()
    return f"{body}\n```\n\n```\n{said}"


def text():
    """The whole page: the prose, with what the code prints in the place of its name."""
    names = {
        name: (lambda make=make: before_and_after(make))
        for name, make in (
            ("unread", unread), ("folded", folded), ("common", common), ("copies", copies),
            ("local", local),
        )
    }  # fmt: skip
    makers = (report, kernel, head, memory, epilogue, block, launches)
    names |= {make.__name__: make for make in makers} | numbers()
    names |= {
        f.__name__: (lambda f=f: error_of(f))
        for f in (examples.branch, examples.changed, examples.kept, examples.donated)
    }
    return filled(PROSE.read_text(encoding="utf-8"), note=NOTE, **names)
