"""Random training steps: what 50 compiled calls leave behind is what 50 eager ones do."""

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from minigrad.compiler.cpu import schedule
from minigrad.devices.threads import threads as pool
from tests.compiler.random_programs import programs
from tests.compiler.twins import check

PHASES = (Phase.explicit, Phase.generate)  # to make a failure smaller takes minutes


@pytest.mark.parametrize("threads", [1, 2])
def test_random_programs(threads, monkeypatch):
    monkeypatch.setattr(schedule, "SHARED", 0)
    monkeypatch.setattr(schedule, "WORTH", 0)
    monkeypatch.setattr(pool, "count", threads)

    @seed(threads)  # the same programs in every run, other ones for each number of threads
    @settings(
        max_examples=15,
        deadline=None,
        database=None,
        phases=PHASES,
        suppress_health_check=list(HealthCheck),
    )
    @given(programs())
    def agree(program):
        programs_made = 2 if program.zero == "never" else 1
        (step,) = check(program.make, 50, 2e-4, None)
        assert len(step.traces) <= programs_made
        assert step.traces[0].plan.threads == threads

    agree()
