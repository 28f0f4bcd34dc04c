"""Fit the polynomials of minigrad/devices/source/mathematics.py; print their coefficients.

    python tools/fit_polynomials.py            all of them (about a minute)
    python tools/fit_polynomials.py erf        those whose name contains "erf"

Every fit is a minimax fit: it makes the largest error on an interval as small as possible, by the
exchange algorithm of Remez, in decimal arithmetic of 60 digits. Coefficients are then rounded to
the kernel's dtype one after the other, the most important first, and the rest is fitted again, so
that the error of rounding one coefficient is repaired by the others.

The error printed is the fit's own, in units of 2^-24 (float32) or 2^-53 (float64), that is in
halves of a last place. ``tools/measure_numerics.py`` measures what the compiled functions do.
"""

import sys
from collections.abc import Callable
from decimal import Decimal as D
from decimal import getcontext
from typing import NamedTuple

import numpy as np

getcontext().prec = 60
GRID_POINTS = 600

# ---- reference functions, by their series --------------------------------------------------------


def arctan_of_inverse(n: int) -> D:
    """arctan(1/n) for an integer n > 1."""
    total, power, k = D(0), D(1) / n, 0
    while abs(power) > D(10) ** -58:
        total += power / (2 * k + 1) * (-1) ** k
        power, k = power / (n * n), k + 1
    return total


PI = 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))  # Machin, 1706
LN2 = D(2).ln()


def sine_series(x: D, first: int, skip: int) -> D:
    """The Taylor series of cos (first = 0) or sin (first = 1) without its first ``skip`` terms."""
    term, total, n = x**first, D(0), first
    while n < first + 2 * skip or abs(term) > D(10) ** -58 * abs(total):
        if n >= first + 2 * skip:
            total += term
        term, n = -term * x * x / ((n + 1) * (n + 2)), n + 2
    return total


def arctan(x: D) -> D:
    """The Taylor series, for |x| well below 1."""
    power, total, k = x, D(0), 0
    while abs(power) > D(10) ** -58 * abs(x):
        total += power / (2 * k + 1)
        power, k = -power * x * x, k + 1
    return total


def erf(x: D) -> D:
    """Sum 2/sqrt(pi) exp(-x^2) 2^k x^(2k+1) / (2k+1)!! over k; every term is positive."""
    term, total, k = x, D(0), 0
    while term > D(10) ** -58 * total:
        total += term
        k += 1
        term = term * 2 * x * x / (2 * k + 1)
    return 2 / PI.sqrt() * (-x * x).exp() * total


# ---- the exchange algorithm ----------------------------------------------------------------------


def solve(matrix: list[list[D]], right: list[D]) -> list[D]:
    """Solve a linear system by elimination with row exchanges."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    n = len(rows)
    for i in range(n):
        best = max(range(i, n), key=lambda j: abs(rows[j][i]))
        rows[i], rows[best] = rows[best], rows[i]
        for j in range(i + 1, n):
            factor = rows[j][i] / rows[i][i]
            rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i], strict=True)]
    solution = [D(0)] * n
    for i in reversed(range(n)):
        known = sum((rows[i][j] * solution[j] for j in range(i + 1, n)), D(0))
        solution[i] = (rows[i][n] - known) / rows[i][i]
    return solution


def extrema(errors: list[D], count: int) -> list[int]:
    """Grid indices of ``count`` neighbouring extrema of alternating sign, the largest included."""
    peaks: list[int] = []
    for i, error in enumerate(errors):
        if peaks and (error > 0) == (errors[peaks[-1]] > 0):
            if abs(error) > abs(errors[peaks[-1]]):
                peaks[-1] = i
        else:
            peaks.append(i)
    while len(peaks) > count:
        peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
    return peaks


def minimax(basis: list[list[D]], target: list[D], weight: list[D]) -> tuple[list[D], D]:
    """Coefficients c that minimise max |weight (sum_k c_k basis_k - target)| on the grid, and it.

    Rows of ``basis`` are basis functions, columns are grid points.
    """
    n, points = len(basis), len(target)
    nodes = [round((points - 1) * (1 - np.cos(np.pi * k / n)) / 2) for k in range(n + 1)]
    best: tuple[list[D], D] = ([], D("Infinity"))
    for _ in range(40):
        matrix = [[*(b[i] for b in basis), (-1) ** k / weight[i]] for k, i in enumerate(nodes)]
        *coefficients, level = solve(matrix, [target[i] for i in nodes])
        errors = [
            w * (sum((c * b[i] for c, b in zip(coefficients, basis, strict=True)), D(0)) - t)
            for i, (t, w) in enumerate(zip(target, weight, strict=True))
        ]
        largest = max(abs(e) for e in errors)
        best = min(best, (coefficients, largest), key=lambda fit: fit[1])
        found = extrema(errors, n + 1)
        if largest <= abs(level) * D("1.001") or len(found) < n + 1:
            break
        nodes = found
    return best


# ---- the fits of mathematics.py ------------------------------------------------------------------


class Fit(NamedTuple):
    """A function ``target`` of x and the polynomial in ``variable(x)`` that stands for it.

    ``weight`` turns an error of the polynomial into an error relative to the final result.
    """

    name: str
    dtype: type
    degree: int
    low: D
    high: D
    target: Callable[[D], D]
    variable: Callable[[D], D]
    weight: Callable[[D], D]


def square(x: D) -> D:
    """x^2."""
    return x * x


def log_argument(f: D) -> D:
    """s^2 where s = f / (2 + f)."""
    return (f / (2 + f)) ** 2


def log_target(f: D) -> D:
    """The z of ln(1 + f) = f - f^2/2 + s (f^2/2 + s^2 z), s = f / (2 + f)."""
    return (((1 + f).ln() - f + f * f / 2) * (2 + f) / f - f * f / 2) / log_argument(f)


def log_fit(dtype: type, degree: int) -> Fit:
    """Between sqrt(1/2) and sqrt(2), which mirror each other in s."""
    return Fit(
        "LOG", dtype, degree, TINY, D(2).sqrt() - 1, log_target, log_argument,
        lambda f: (f / (2 + f)) ** 3 / (1 + f).ln(),
    )  # fmt: skip


def exp_fit(dtype: type, degree: int) -> Fit:
    """Fit e^r = 1 + r + r^2 p(r) for |r| up to half of ln 2."""
    return Fit(
        "EXP", dtype, degree, -HALF_LN2, HALF_LN2,
        lambda r: (r.exp() - 1 - r) / r**2, lambda r: r, lambda r: r**2 / r.exp(),
    )  # fmt: skip


def sin_fit(dtype: type, degree: int) -> Fit:
    """Fit sin r = r + r^3 p(r^2) for |r| up to an eighth of a turn."""
    return Fit(
        "SIN", dtype, degree, TINY, EIGHTH_TURN,
        lambda r: sine_series(r, 1, 1) / r**3, square, lambda r: r**3 / sine_series(r, 1, 0),
    )  # fmt: skip


def cos_fit(dtype: type, degree: int) -> Fit:
    """Fit cos r = 1 - r^2/2 + r^4 p(r^2) for |r| up to an eighth of a turn."""
    return Fit(
        "COS", dtype, degree, TINY, EIGHTH_TURN,
        lambda r: sine_series(r, 0, 2) / r**4, square, lambda r: r**4 / sine_series(r, 0, 0),
    )  # fmt: skip


def erf_near_fit(dtype: type, degree: int) -> Fit:
    """Fit erf x = x + x p(x^2) up to 1."""
    return Fit(
        "ERF_NEAR", dtype, degree, TINY, D(1),
        lambda x: erf(x) / x - 1, square, lambda x: x / erf(x),
    )  # fmt: skip


def erf_far_fit(dtype: type, degree: int, end: str) -> Fit:
    """Fit erf x = 1 - e^p(x-1) from 1 to where the dtype rounds it to 1."""
    return Fit(
        "ERF_FAR", dtype, degree, D(1), D(end),
        lambda x: (1 - erf(x)).ln(), lambda x: x - 1, lambda x: (1 - erf(x)) / erf(x),
    )  # fmt: skip


def atan_fit(dtype: type, degree: int) -> Fit:
    """Fit arctan x = x + x^3 p(x^2) for |x| up to the tangent of a sixteenth of a turn."""
    return Fit(
        "ATAN", dtype, degree, TINY, D(2).sqrt() - D("0.9999"),
        lambda x: (arctan(x) - x) / x**3, square, lambda x: x**3 / arctan(x),
    )  # fmt: skip


EIGHTH_TURN = PI / 4 * D("1.05")  # the number of quarter turns is rounded from an inexact product
HALF_LN2 = LN2 / 2 * D("1.0005")
TINY = D(10) ** -9
FITS = [
    exp_fit(np.float32, 4),
    exp_fit(np.float64, 9),
    log_fit(np.float32, 2),
    log_fit(np.float64, 6),
    sin_fit(np.float32, 2),
    sin_fit(np.float64, 5),
    cos_fit(np.float32, 2),
    cos_fit(np.float64, 5),
    erf_near_fit(np.float32, 6),
    erf_near_fit(np.float64, 11),
    erf_far_fit(np.float32, 6, "4.1"),
    erf_far_fit(np.float64, 17, "6.0"),
    atan_fit(np.float32, 3),
    atan_fit(np.float64, 10),
]


def coefficients_of(fit: Fit) -> tuple[list[D], D]:
    """Coefficients rounded to the dtype, the constant first, and the largest weighted error."""
    middle, half = (fit.low + fit.high) / 2, (fit.high - fit.low) / 2
    cosines = [D(float(np.cos(np.pi * (i + 0.5) / GRID_POINTS))) for i in range(GRID_POINTS)]
    points = [middle - half * c for c in cosines]
    t = [fit.variable(x) for x in points]
    rest = [fit.target(x) for x in points]
    weight = [fit.weight(x) for x in points]
    powers = [[v**k for v in t] for k in range(fit.degree + 1)]
    coefficients: list[D] = []
    while len(coefficients) <= fit.degree:
        k = len(coefficients)
        found, _ = minimax(powers[k:], rest, weight)
        coefficients.append(D(float(fit.dtype(float(found[0])))))
        rest = [r - coefficients[k] * power for r, power in zip(rest, powers[k], strict=True)]
    return coefficients, max(abs(w * r) for w, r in zip(weight, rest, strict=True))


def main() -> None:
    """Print every fit chosen: its error, then its coefficients, the constant first."""
    chosen = sys.argv[1].upper() if len(sys.argv) > 1 else ""
    for fit in FITS:
        if chosen not in fit.name:
            continue
        coefficients, error = coefficients_of(fit)
        bits = np.finfo(fit.dtype).nmant + 1
        print(f"{fit.name} {fit.dtype.__name__}: error {float(error * 2**bits):.3f} x 2^-{bits}")
        for k, c in enumerate(coefficients):
            print(f"    {k:2} {fit.dtype(float(c))!s}")


if __name__ == "__main__":
    main()
