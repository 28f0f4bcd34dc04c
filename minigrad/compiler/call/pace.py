"""Decides at each call whether a compiled step runs on several threads or on one.

The threads of a step wait for one another. Where other processes want the processors, one of them
is always late, and one thread alone is faster. Its results are the same bits.
"""

LATE = 2.0  # times the calm mean of a call, from which one thread alone is tried
WINDOW, TRIAL = 8, 4  # calls whose mean is looked at: as a rule, and in a trial
FEWEST, MOST = 32, 1024  # calls between two trials: doubled while they tell the same
FORGET = 1.02  # what the calm mean grows by with each window: a machine may change for good


class Pace:
    """Measures calls and chooses. is_alone: whether the next call runs on one thread.

    Several threads are the rule. If their calls become late, one thread is tried. Whichever is
    faster makes the next calls, ever more of them while trials tell the same. So one trial that a
    busy machine disturbed decides for a few calls alone.
    """

    __slots__ = ("calls", "calm", "is_alone", "rest", "spent", "together", "until")

    def __init__(self):
        self.calm = self.together = float("inf")  # mean seconds: the least; when last tried
        self.rest = FEWEST
        self._begin(False, WINDOW)

    def _begin(self, is_alone, until):
        self.is_alone, self.until, self.calls, self.spent = is_alone, until, 0, 0.0

    def note(self, seconds):
        """Take the time of a call, and choose for the next one."""
        self.calls += 1
        self.spent += seconds
        if self.calls >= self.until:  # more, if an exception came between
            (self._after_one if self.is_alone else self._after_several)(self.spent / self.calls)

    def _after_several(self, mean):
        self.together = mean
        if mean > LATE * self.calm:
            self._begin(True, TRIAL)
            return
        self.calm, self.rest = min(mean, FORGET * self.calm), FEWEST
        self._begin(False, WINDOW)

    def _after_one(self, mean):
        if self.until > TRIAL:  # are several faster again?
            self._begin(False, TRIAL)
            return
        self._begin(mean < self.together, self.rest)
        self.rest = min(2 * self.rest, MOST)
