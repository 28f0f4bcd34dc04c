"""Defines the base of all plans: what a step writes, in all or before a check fails."""


class PlanBase:
    """The device-independent part of a plan. Subclasses fill it in."""

    def __init__(self, recording):
        self.recording, self.results = recording, recording.results
        self.items = []  # the instructions after fusion
        self.regions = []  # lists of calls that may run at the same time
        self.checks = []  # instructions that can stop the step; their numbers count from 1
        self.owner = {}  # Value -> the Value whose memory it uses

    @property
    def written(self):
        values = {}
        for item in self.items:
            for r in item.writes:
                if not r.value.is_temporary:
                    values[r.value] = None
        return list(values)

    def written_before(self, check):
        """Return the captured memory and arguments written when check number `check` failed."""
        return [v for v in self._before(check) if not v.is_temporary]

    def results_before(self, check):
        """Return {result written when a check failed: whether the user's program writes it later}.

        Fusion can move such a write before the check.
        """
        written, instructions = self._before(check), self.recording.instructions
        stop = instructions.index(self.checks[check - 1])
        earlier = {r.value for i in instructions[:stop] for r in i.writes}
        return {
            k: r.value not in earlier
            for k, r in enumerate(self.results)
            if self.owner.get(r.value, r.value) in written
        }

    def _before(self, check):
        """Return the Values that may have been written when a check failed."""
        written = {}
        for region in self.regions:
            written |= {r.value: None for call in region for r in call.writes}
            stops = [c.item.instruction for c in region if c.kind == "opaque"]
            if any(i is self.checks[check - 1] for i in stops):
                break
        return written
