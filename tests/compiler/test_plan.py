"""Fused, planned and generated steps against a plain interpreter of the same recording."""

import numpy as np
from hypothesis import HealthCheck, given, settings

from tests.compiler.interpreter import execute
from tests.compiler.random_recordings import recordings
from tests.compiler.running import Run

QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck)}


def check(recording, data, n_threads=1):
    """The same results and the same captured memory, twice in a row."""
    memory = {v: x.copy() for v, x in data.items()}
    run = Run(recording, n_threads=n_threads, memory={v: x.copy() for v, x in data.items()})
    for _ in range(2):
        with np.errstate(all="ignore"):
            wanted = execute(recording, memory)
        got = run.once()
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_allclose(a, np.asarray(b), rtol=2e-4, atol=2e-4)
        for v in data:
            np.testing.assert_allclose(run.memory[v], memory[v], rtol=2e-4, atol=2e-4)


@settings(max_examples=15, **QUIET)
@given(recordings())
def test_random_recordings_give_what_the_interpreter_gives(made):
    check(*made)
