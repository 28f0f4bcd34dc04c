"""Generates the Python code around a GPU program.

Guards and effects match the CPU wrapper's; only memory differs. The program copies arguments,
gradients reached through their leaf and host numbers into memory of its own, and copies its results
into new Arrays.
"""

from minigrad.compiler.call.wrapper import Wrapper


def flat(storage, first, count):
    """Return a flat view of `count` elements of a Storage, starting at element `first`."""
    return storage.view((count,), (1,), first)


class GpuWrapper(Wrapper):
    """The generated `run` function of one trace; see `wrapper.Wrapper`."""

    NO_STORAGE = "type({0}) is not Array"

    def _arguments(self):
        add, plan = self.lines.append, self.plan
        self.scope["flat"] = flat
        taken, written = {v: k for k, v in plan.taken.items()}, self._written()
        sources = {}
        for k, value in enumerate(self.capture.recording.arguments):
            group = self.b.groups[k]
            n = group.number
            if group.is_fixed:
                sources[value] = self._constant(flat(group.storage, 0, value.size))
                continue
            if value in taken:
                add(f"t{n} = claimed(s{n}, copy_buffer, COPIES, {k})")
            elif value in written:
                add(f"if s{n}.buffer.owners > 1: unshare(s{n}, copy_buffer)")
            if value in plan.staged:
                add(f"a{n} = flat(s{n}, x{n}.offset + {group.low}, {value.size})")
                sources[value] = f"a{n}"
        for value, k in self.b.moving.items():
            if value in written:
                add(f"if h{k}.buffer.owners > 1: unshare(h{k}, copy_buffer)")
            sources[value] = f"flat(h{k}, 0, {value.size})"
        for value in plan.staged:
            if value not in sources:
                sources[value] = self._constant(flat(value.storage, 0, value.size))
        add(f"sources = [{', '.join(sources[v] for v in plan.staged)}]")
        add(f"returned = [{', '.join(sources[v] for v in plan.returned)}]")

    def _memory(self):
        add, targets = self.lines.append, []
        empty = self._constant(self.device.empty)
        for k, ref in enumerate(self.plan.results):
            if k in self.plan.taken:
                n = self.b.groups[self.plan.taken[k].index].number
                targets.append(f"flat(s{n} if t{n} is None else t{n}, 0, {ref.size})")
                continue
            shape, dtype = self._constant(ref.shape), self._constant(ref.dtype)
            add(f"r{k} = {empty}({shape}, {dtype})")
            targets.append(f"r{k}")
        add(f"targets = [{', '.join(targets)}]")

    def _rebind(self):
        """Rebind, and compile and record the launches, which takes long and can be interrupted.

        Return the count of `moves`.
        """
        count = super()._rebind()
        self.plan.bind()
        return count

    def _launch(self):
        return [
            "done += map(STEP, (sources,), (returned,), (targets,), "
            "((generator.seed, generator.counter),))",
        ]

    def _number(self, k):
        return f"{self._constant(self.device.item)}(r{k})"
