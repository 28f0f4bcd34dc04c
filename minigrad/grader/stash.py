"""Where pytest's config keeps the session that grades: absent in every run that grades nothing."""

from typing import Any

import pytest

GRADED: pytest.StashKey[Any] = pytest.StashKey()  # of the run's collect.GradingSession
