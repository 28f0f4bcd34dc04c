"""Which arguments a kernel writes to, read from its source."""

import numpy as np
import pytest

from minigrad import cuda
from minigrad.cuda.writes import written

f4 = np.float32


def plain(x, out, n):
    k = n
    for i in range(n):
        out[i] = x[i] + k


def augmented(x, out):
    out[0] += x[0]


def by_atomic(x, out, n):
    cuda.atomic.add(out, n, x[n])


def by_view(x, out):
    row = out[1]
    row[0] = x[0, 0]


def by_choice(a, b, x):
    target = a if x[0] > f4(0) else b
    target[0] = x[1]


def by_two_names(x, out):
    a, b = x, out
    b[0] = a[0]


def by_wide(p, q):
    a, b, c, d = cuda.load4(p, 0)
    cuda.store4(q, 0, a, b, c, d)


@cuda.jit(device=True)
def helper(source, target, i):
    target[i] = source[i]


def through_helper(x, out):
    helper(x, out, 0)


def through_names(x, out):
    helper(target=out, source=x, i=0)


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (plain, {"out"}), (augmented, {"out"}), (by_atomic, {"out"}), (by_view, {"out"}),
        (by_choice, {"a", "b"}), (by_two_names, {"out"}), (by_wide, {"q"}),
        (through_helper, {"out"}), (through_names, {"out"}),
    ],
)  # fmt: skip
def test_what_a_kernel_writes_is_known_before(function, names):
    assert written(function) == names
