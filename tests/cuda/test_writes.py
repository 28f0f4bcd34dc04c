"""Which arguments a kernel writes to, read from its source."""

import numpy as np
import pytest

import minigrad as mg
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


def by_a_name_of_a_name(x, out):
    a = out
    b = a
    b[0] = x[0]


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


@cuda.jit(device=True)
def itself(array):
    return array


def by_what_a_function_gives_back(x, out):
    target = itself(out)
    target[0] = x[0]


def by_a_choice_without_a_name(a, b, x):
    (a if x[0] > f4(0) else b)[0] = x[1]


def by_a_name_with_a_type(x, out):
    target: object = out
    target[0] = x[0]


def by_a_name_within(x, out):
    (target := out)[0] = x[0]
    target[1] = x[1]


def by_a_loop_over_arrays(a, b, x):
    for target in (a, b):
        target[0] = x[0]


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (plain, {"out"}), (augmented, {"out"}), (by_atomic, {"out"}), (by_view, {"out"}),
        (by_choice, {"a", "b"}), (by_two_names, {"out"}), (by_a_name_of_a_name, {"out"}),
        (by_wide, {"q"}),
        (through_helper, {"out"}), (through_names, {"out"}),
        (by_what_a_function_gives_back, {"out"}), (by_a_choice_without_a_name, {"a", "b"}),
        (by_a_name_with_a_type, {"out"}), (by_a_name_within, {"out"}),
        (by_a_loop_over_arrays, {"a", "b"}),
    ],
)  # fmt: skip
def test_what_a_kernel_writes_is_known_before(function, names):
    assert written(function) == names


def test_a_clone_keeps_its_values_whatever_name_the_kernel_writes_by():
    for kernel in (by_what_a_function_gives_back, by_a_name_with_a_type, by_a_name_within):
        x, out = mg.ones(4, device="simt"), mg.zeros(4, device="simt")
        kept = out.clone()
        cuda.jit(kernel)[1, 1](x, out)
        assert kept.tolist() == [0.0] * 4
        assert (x.version, out.version, out.tolist()[0]) == (0, 1, 1.0)
