"""When the results of two libraries count as equal."""

import numpy as np

TOLERANCE = {"float64": 1e-9, "float32": 2e-3}


def difference(dtype, wanted, got):
    """What differs, or an empty string. A gradient that is None equals one of zeros.

    An error counts against the largest number of its array: sums of terms that cancel err by as
    much as the terms do.
    """
    if len(wanted) != len(got):
        return f"{len(got)} results for {len(wanted)}"
    for k, (a, b) in enumerate(zip(wanted, got, strict=True)):
        if a is None or b is None:
            rest = b if a is None else a
            if rest is not None and np.any(rest != 0):
                return f"result {k}: {rest} where the other has none"
            continue
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"result {k}: {b.dtype}{list(b.shape)} for {a.dtype}{list(a.shape)}"
        scale = max(1.0, float(np.max(np.abs(a), initial=0.0, where=np.isfinite(a))))
        if not np.allclose(a, b, rtol=0, atol=TOLERANCE[dtype] * scale, equal_nan=True):
            return f"result {k}: wanted {a.ravel()[:6]}, got {b.ravel()[:6]}"
    return ""
