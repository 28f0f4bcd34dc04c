"""step.source(): the generated source, preceded by a list of its calls in words.

The file that Numba compiles contains no names or lines of the user's program, so that equal steps
share it. A long step is a loop over numbers; the list says what they mean.
"""

from minigrad.compiler.cpu.invocation import Address, Writer
from minigrad.compiler.program.labels import label, place_of
from minigrad.viz.units import plural

WIDTH = 100
PLACE = 26  # columns for the user's line


def annotated(plan, names, title):
    """Return the calls of a plan as comments, followed by its source."""
    lines = listing(plan, names, title)
    return "\n".join(f"# {line}".rstrip() for line in lines) + "\n\n\n" + plan.text


def listing(plan, names, title):
    """Return lines: what each kernel runs, and each call with its values and user line."""
    calls, kernels = [], {}
    writer = Writer(plan.threads, plan.owner)
    for number, region in enumerate(plan.regions, 1):
        for call in region:
            for x in writer.of(call):
                function = x.template.removeprefix("if ").split("(")[0]
                if call.kind == "finish":
                    function = "the parts summed"
                elif function in plan.kernels.values() or function.startswith("tile"):
                    kernels.setdefault(function, {})[label(call.item)] = None
                arguments = [names_of(a, names) for a in x.arguments]
                arguments = [a for a in arguments if a]
                who = "all" if call.is_cut else call.owner
                calls.append(
                    (number, who, f"{function}({', '.join(arguments)})", line_of_call(call))
                )
    threads = plural(plan.threads, "thread")
    head = f"{title}: {plural(len(calls), 'call')} in {plural(len(plan.regions), 'region')}"
    lines = [f"{head}, {threads}"]
    lines += [f"{name}: {cut('; '.join(what), WIDTH - 12)}" for name, what in kernels.items()]
    if len(plan.code):
        lines.append("the calls below are numbers in `code` for step(); kernels are functions")
    lines.append("region, call, line" if plan.threads == 1 else "region, thread, call, line")
    for number, who, text, line in calls:
        begin = f"{number:>4} " if plan.threads == 1 else f"{number:>4} {who!s:>3} "
        room = WIDTH - PLACE - len(begin) - 3
        lines.append(f"{begin}{cut(text, room):<{room}} {line}")
    return lines


def names_of(argument, names):
    """Return the name of an Address with its byte offset; an empty string for a number."""
    if not isinstance(argument, Address):
        return ""
    value, place = argument
    name = value.name if value.name in ("scratch", "partial") else names.numbered(value)
    return f"{name} + {place}" if place else name


def line_of_call(call):
    """Return the user's line of a call, cut to PLACE columns."""
    line = next((i.line for i in call.item.instructions if i.line), "")
    return cut(place_of(line), PLACE)


def cut(text, most):
    """Shorten a text to at most `most` columns."""
    return text if len(text) <= most else text[: most - 1] + "\u2026"
