"""Writes step.source() of a GPU program: its calls, the kernels they launch, their sources."""

from minigrad.compiler.program.labels import label
from minigrad.compiler.report.listing import PLACE, WIDTH, cut, line_of_call
from minigrad.compiler.report.report import form_of
from minigrad.viz.units import plural


def annotated(plan, names, title):
    """Return the calls of a plan that has run as comments, followed by its kernels' sources."""
    if plan.bound is None:
        return f"# {title}: no kernel has been launched yet\n"
    kernels = kernel_names(plan)
    lines = listing(plan, names, title, kernels)
    texts = [
        f"# {name}: {kernel.signature}\n{kernel.text.replace('def kernel(', f'def {name}(')}"
        for kernel, name in kernels.items()
    ]
    return "\n".join(f"# {x}".rstrip() for x in lines) + "\n\n\n" + "\n\n".join(texts)


def kernel_names(plan):
    """Return {GpuKernel: name}, named after the first call that launches it."""
    names, taken = {}, set()
    for (call,), launches in zip(plan.regions, plan.bound.launches, strict=True):
        for x in launches:
            if x.kernel is None or x.kernel in names:
                continue
            base = plan.kernels[call.kernel.text] if call.kind == "loop" else call.table.name
            name, k = base, 1
            while name in taken:
                name, k = f"{base}_{k + 1}", k + 1
            taken.add(name)
            names[x.kernel] = name
    return names


def listing(plan, names, title, kernels):
    """Return lines: each call with what it reads and writes, its user line, its launches."""
    launches = [x for region in plan.bound.launches for x in region]
    head = f"{title}: {plural(len(plan.regions), 'call')}"
    head += f", {plural(len(launches), 'launch', 'launches')}"
    ends = [str(last) for _, last, checks in plan.segments if checks]
    lines = [f"{head} of {plural(len(kernels), 'kernel')} on {plan.device}"]
    if ends:
        lines.append(f"the host looks at what checks found after {', '.join(ends)}")
    lines.append("call, kernel<<<blocks, threads>>>, line")
    for number, ((call,), launched) in enumerate(
        zip(plan.regions, plan.bound.launches, strict=True), 1
    ):
        begin = f"{number:>4} "
        room = WIDTH - PLACE - len(begin) - 3
        function, what = form_of(call, plan.kernels)[0], label(call.item)
        what = what if what.startswith(function) else f"{function}: {what}"
        text = cut(f"{what}({_operands(call, names)})", room)
        lines.append(f"{begin}{text:<{room}} {line_of_call(call)}")
        lines += [f"       {_launch(x, kernels)}" for x in launched]
    return lines


def _operands(call, names):
    values = dict.fromkeys(r.value for r in (*call.reads, *call.writes))
    return ", ".join(names.numbered(v) for v in values)


def _launch(x, kernels):
    if x.kernel is None:
        return x.name
    shared = f", {x.shared} bytes" if x.shared else ""
    return f"{kernels[x.kernel]}<<<{_size(x.blocks)}, {_size(x.threads)}{shared}>>>"


def _size(n):
    return "x".join(map(str, n)) if isinstance(n, tuple) else str(n)
