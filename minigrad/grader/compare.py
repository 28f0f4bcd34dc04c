"""Compares an answer with the right value; nothing else does.

`if abs(got - expected) > tolerance: fail` lets nan pass, and sometimes inf, since every comparison
with nan is False. `agree` asks the opposite question: it is True only if the values are close.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.grader.wire import NUMERIC_KINDS, Other

HUGE = 2**1000  # larger ints may not fit in a float, and NumPy would raise


def agree(got: Any, expected: Any, *, rtol: float = 1e-6, atol: float = 1e-9) -> bool:
    """Return whether `got` is `expected` within `atol + rtol * |expected|`, in every entry.

    Shapes must be equal and kinds must fit: True does not agree with 1, nor 1 + 0j with 1.0. An
    entry that is nan or inf agrees only with the same; 0.0 agrees with -0.0. Values that are not
    numbers agree with nothing. The difference of two Python integers is exact.

    >>> agree(float("nan"), 1.0), agree(1.0 + 1e-9, 1.0), agree([1.0], 1.0)
    (False, True, False)
    """
    if type(got) is int and type(expected) is int:
        return abs(got - expected) <= atol + rtol * min(abs(expected), HUGE)
    if (pair := _arrays(got, expected)) is None:
        return False
    return not _disagree(*pair, rtol, atol).any()


def disagreements(got: Any, expected: Any, *, rtol: float = 1e-6, atol: float = 1e-9) -> np.ndarray:
    """Return a mask of the entries that do not agree; all True if the shapes differ."""
    pair = _arrays(got, expected)
    return np.ones(np.shape(expected), bool) if pair is None else _disagree(*pair, rtol, atol)


def _arrays(got: Any, expected: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Return both as arrays; None if their shapes differ or their kinds do not fit."""
    try:
        got, expected = (np.asarray(float(x) if _is_long(x) else x) for x in (got, expected))
    except (ValueError, TypeError, OverflowError):  # such as lists of different lengths
        return None
    kinds = got.dtype.kind, expected.dtype.kind
    if got.shape != expected.shape or not set("".join(kinds)) <= set(NUMERIC_KINDS):
        return None
    odd = "b" in kinds or (kinds[0] == "c")
    return None if odd and kinds[0] != kinds[1] else (got, expected)


def _is_long(value: Any) -> bool:
    return type(value) is int and abs(value) >= 2**63


def _disagree(got: np.ndarray, expected: np.ndarray, rtol: float, atol: float) -> np.ndarray:
    if got.dtype.kind in "biu" and expected.dtype.kind in "biu" and not rtol and atol < 1:
        return np.asarray(got != expected)
    with np.errstate(all="ignore"):
        return ~np.asarray(np.isclose(got, expected, rtol=rtol, atol=atol, equal_nan=True))


def type_name(value: Any) -> str:
    """Return the name of a value's type; for an `Other`, that of the type it stands for."""
    return value.type_name if isinstance(value, Other) else type(value).__name__


def first(mask: np.ndarray) -> str:
    """Return the index of the first True, as text."""
    return str([int(i) for i in np.argwhere(mask)[0]])


def worst(got: Any, expected: Any, rtol: float, atol: float) -> str:
    """Return a table of the first wrong entries; empty for numbers."""
    got, expected = np.asarray(got), np.asarray(expected)
    if got.ndim == 0:
        return ""
    wrong = np.argwhere(disagreements(got, expected, rtol=rtol, atol=atol)).tolist()
    rows = "; ".join(
        f"{at}: {_apart(got[tuple(at)].item(), expected[tuple(at)].item())}" for at in wrong[:3]
    )
    return f"\n{len(wrong)} of {got.size} entries differ: {rows}"


def _apart(got: complex, expected: complex) -> str:
    """Return `got for expected` with enough digits to tell the two apart."""
    texts = (f"{got:.{digits}g} for {expected:.{digits}g}" for digits in (4, 8, 12))
    apart = (text for text in texts if len({*text.split(" for ")}) == 2)
    return next(apart, f"{got!r} for {expected!r}")


def comparable(value: Any) -> Any:
    """Return a value that `==` can compare: arrays and huge integers are replaced by `Other`."""
    if isinstance(value, np.ndarray | np.generic):
        return Other(type(value).__name__, "")
    if type(value) is int and abs(value) >= HUGE:
        return Other("int", "a huge integer")
    if isinstance(value, list | tuple):
        return type(value)(comparable(item) for item in value)
    if isinstance(value, dict):
        return {comparable(key): comparable(item) for key, item in value.items()}
    return value
