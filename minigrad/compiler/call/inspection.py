"""What a compiled function says of its programs: source, report, picture, memory plan."""

from typing import Any

from minigrad.compiler.gpu.listing import annotated as annotated_for_gpu
from minigrad.compiler.program.labels import ValueNames
from minigrad.compiler.report.listing import annotated
from minigrad.compiler.report.memory_plan import MemoryPlan
from minigrad.compiler.report.picture import picture_of
from minigrad.compiler.report.report import ProgramReport, Report
from minigrad.errors import ArgumentError


class Inspection:
    """The methods of `compiled.Compiled` that look at its programs, without side effects."""

    name: str
    mode: str
    function: Any
    traces: list

    def _traced(self):
        """Return the most recently used program."""
        if self.mode == "0":
            raise ArgumentError(
                f"'{self.name}' has no program: MINIGRAD_COMPILE is 0, so that it runs as usual",
                fix="leave MINIGRAD_COMPILE out of the environment",
            )
        if not self.traces:
            raise ArgumentError(
                f"'{self.name}' has no program yet",
                "no call that was traced to its end",
                "call it first",
            )
        return self.traces[0]

    def source(self):
        """Return the source of the most recently used program: Python that Numba compiles.

        On a GPU, return its calls, the CUDA kernels they launch, and the kernels' sources.

        Comments at the top, absent from the compiled file, list its kernels and calls: operations,
        values and the user's lines.
        """
        trace = self._traced()
        write = annotated if trace.plan.device == "cpu" else annotated_for_gpu
        return write(trace.plan, self._names(trace), self._title)

    def report(self):
        """Return what its programs do and save: a `Report`, which prints as text.

        If results carry a graph, each program is followed by its backward program, once used.

        It shows instructions before and after the passes, kernels and calls, bytes read and
        written, peak memory, in-place writes, and which donations are used or why not. Its
        attributes hold the same as numbers: see `report.ProgramReport`.
        """
        self._traced()
        bindings = []
        for trace in list(self.traces):
            link = trace.capture.link
            made = link.pullbacks.values() if link is not None else ()
            bindings += [trace, *(p for p in made if p.wrapper is not None)]
        return Report(self._title, [ProgramReport(b.plan, b, self.function) for b in bindings])

    def graph(self, before=False):
        """Draw the most recently used program: JupyterLab shows it, `print` writes it as text.

        Each call is a box with the operations fused into it. Its external inputs stand above it,
        values and their sizes between boxes; in-place writes are marked. If there are more than 60
        calls, calls of the same form share a box.

        Args:
            before: whether to show the instructions before fusion, each with its kernel.
        """
        trace = self._traced()
        return picture_of(trace.plan, self._names(trace), self._title, before)

    def memory_plan(self):
        """Return the memory plan of the most recently used program; `mg.viz.memory` draws it.

        `before` and `after` have rows (name, offset, size, first, last, sharing), one for each
        temporary. Before, each has a place of its own; after, they share the arena.
        """
        trace = self._traced()
        return MemoryPlan(trace.plan, self._names(trace), self._title)

    @property
    def _title(self):
        return self.name.rpartition("<locals>.")[2]

    def _names(self, trace):
        before, after = trace.plan.before, trace.plan.recording
        return ValueNames([*before.instructions, *after.instructions], trace, self.function)
