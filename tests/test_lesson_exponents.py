"""Lesson 15's picture of exponents says of every number what NumPy's float16 makes of it."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from minigrad.course.l15_mixed_precision.drawing import draw_exponents

mpl.use("Agg")
AT_THE_ENDS = {
    "rounded to 0": (2.0**-26, "becomes 0"),
    "a tie, rounded to the even 0": (2.0**-25, "becomes 0"),
    "rounded up to the smallest": (np.nextafter(np.float32(2**-25), 1), "becomes subnormal"),
    "just below the smallest": (np.nextafter(np.float32(2**-24), 0), "becomes subnormal"),
    "the smallest": (2.0**-24, "becomes subnormal"),
    "the largest subnormal": (2.0**-14 - 2.0**-24, "becomes subnormal"),
    "rounded up to a normal one": (2.0**-14 - 2.0**-26, "all bits"),
    "the smallest normal one": (2.0**-14, "all bits"),
    "the largest": (65504.0, "all bits"),
    "rounded down to the largest": (np.nextafter(np.float32(65520), 0), "all bits"),
    "a tie, rounded to infinity": (65520.0, "becomes infinite"),
    "the first power that is too large": (65536.0, "becomes infinite"),
}


def drawn(numbers, scale=1.0):
    """Return the picture as a dict: label -> {exponent: how many}, without empty bars."""
    figure, axis = plt.subplots()
    draw_exponents(axis, {"g": np.array(numbers)}, scale)
    plt.close(figure)
    bars = {}
    for container in axis.containers:
        counts = {round(bar.get_x() + 0.5): int(bar.get_height()) for bar in container}
        bars[container.get_label()] = {e: n for e, n in counts.items() if n}
    return bars


@pytest.mark.parametrize("case", AT_THE_ENDS)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_number_at_an_end_of_float16_has_the_colour_of_what_becomes_of_it(case, sign):
    number, label = AT_THE_ENDS[case]
    bars = drawn(np.array([sign * number], np.float32))
    exponent = next(k for k in range(-60, 60) if 2.0**k <= number < 2.0 ** (k + 1))
    assert bars.pop(label) == {exponent: 1}
    assert not any(bars.values())


@pytest.mark.parametrize("power", range(0, 53, 4))
def test_the_counts_are_those_of_numpys_casts_at_every_scale(power):
    rng = np.random.default_rng(power)
    numbers = (rng.normal(size=4000) * 2.0 ** rng.integers(-40, -10, 4000)).astype(np.float32)
    scale = 2.0**power
    with np.errstate(over="ignore"):
        half = np.abs((numbers * np.float32(scale)).astype(np.float16))
    expected = {
        "becomes 0": (half == 0).sum(),
        "becomes subnormal": ((half > 0) & (half < 2.0**-14)).sum(),
        "all bits": ((half >= 2.0**-14) & np.isfinite(half)).sum(),
        "becomes infinite": np.isinf(half).sum(),
    }
    assert {k: sum(bars.values()) for k, bars in drawn(numbers, scale).items()} == expected


def test_bars_of_one_exponent_stand_on_each_other():
    figure, axis = plt.subplots()
    draw_exponents(axis, {"g": np.array([40000.0, 50000.0, 65530.0])}, 1.0)
    plt.close(figure)
    fine, infinite = axis.containers[2], axis.containers[3]
    place = 15 + 46
    assert (fine[place].get_height(), infinite[place].get_y()) == (2, 2)
    assert infinite[place].get_height() == 1


def test_a_zero_has_no_exponent_and_is_not_drawn():
    assert not any(drawn([0.0, -0.0]).values())
