"""What one can ask a compiled step: its report, its text, its picture, its plan of memory."""

from typing import Any

from minigrad.compiler.gpu.listing import annotated as annotated_for_gpu
from minigrad.compiler.program.labels import ValueNames
from minigrad.compiler.report.listing import annotated
from minigrad.compiler.report.memory_plan import MemoryPlan
from minigrad.compiler.report.picture import picture_of
from minigrad.compiler.report.report import ProgramReport, Report
from minigrad.errors import ArgumentError


class Inspection:
    """The part of `Compiled` that looks and changes nothing."""

    traces: list
    name: str
    mode: str
    function: Any

    def _traced(self):
        """The program used last."""
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
        """The text of the program that was used last: Python that Numba compiles.

        On a GPU: its calls, the CUDA kernels that they launch, and the texts of those.

        Before it, as comments, its kernels and calls: operations, values and lines of the person's
        program, which the compiled file itself does not hold.
        """
        trace = self._traced()
        write = annotated if trace.plan.device == "cpu" else annotated_for_gpu
        return write(trace.plan, self._names(trace), self._title)

    def report(self):
        """What its programs do and save: a `Report`, which prints as text.

        The backward program of results that carry a graph, once it was used, follows its program.

        Instructions before and after the passes, kernels and calls, bytes read and written, the
        peak of memory, what is written in place, what takes over memory and what does not, and
        why. Its attributes hold the same as numbers: see `report.ProgramReport`.
        """
        self._traced()
        bindings = []
        for trace in list(self.traces):
            link = trace.capture.link
            made = link.pullbacks.values() if link is not None else ()
            bindings += [trace, *(p for p in made if p.wrapper is not None)]
        return Report(self._title, [ProgramReport(b.plan, b, self.function) for b in bindings])

    def graph(self, before=False):
        """The program used last as a picture: JupyterLab shows it, `print` writes it as text.

        A box for each call, with the operations that were fused in it; what it reads from outside
        above it, values with their sizes between; what is written in place is marked. Of more than
        60 calls, those of one form share a box.

        Args:
            before: whether to show the instructions before they were fused, each with the kernel
                that it went to.
        """
        trace = self._traced()
        return picture_of(trace.plan, self._names(trace), self._title, before)

    def memory_plan(self):
        """Where the temporaries of the program used last lie, and when: `mg.viz.memory` draws it.

        Its `before` and `after` have rows (name, offset, size, first, last, sharing): before, each
        temporary of the recording has a place of its own; after, they share the arena.
        """
        trace = self._traced()
        return MemoryPlan(trace.plan, self._names(trace), self._title)

    @property
    def _title(self):
        return self.name.rpartition("<locals>.")[2]

    def _names(self, trace):
        before, after = trace.plan.before, trace.plan.recording
        return ValueNames([*before.instructions, *after.instructions], trace, self.function)
