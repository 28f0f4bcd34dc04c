"""Operations along rows: softmax, normalizations, cross entropy. Being formulas, they fuse."""

from minigrad.formulas import expression as e
from minigrad.formulas.expression import where
from minigrad.ops.base import RowWise

INFINITY = float("inf")
ROWS = [((3, 4),), ((2, 3, 5),), ((6,),), ((2, 1),)]


class SoftmaxRow(RowWise):
    """exp(x) / sum exp(x) along the last axis, without overflow.  (..., n) -> (..., n)."""

    samples = ROWS

    def formula(x):
        exponential = e.exp(x - e.row_max(x))
        return exponential * (1.0 / e.row_sum(exponential))

    def gradient(dy, y):
        return y * (dy - e.row_sum(dy * y))


class LogSoftmaxRow(RowWise):
    """x - log sum exp(x) along the last axis.  (..., n) -> (..., n)."""

    samples = ROWS

    def formula(x):
        centred = x - e.row_max(x)
        return centred - e.log(e.row_sum(e.exp(centred)))

    def gradient(dy, y):
        return dy - e.exp(y) * e.row_sum(dy)


class LogSumExpRow(RowWise):
    """log sum exp along the last axis, without overflow.  (..., n) -> (..., 1).

    The gradients are 0 for a row that is all -inf, and for finite elements beside inf.
    """

    samples = [((3, 4),), ((2, 3, 4),), ((5,),), ((2, 1),)]
    keeps_row = False
    of_empty_row = -INFINITY

    def formula(x):
        m = e.row_max(x)
        safe = where(e.equal(m - m, 0.0), m, 0.0)  # inf - inf would be NaN
        return safe + e.log(e.row_sum(e.exp(x - safe)))

    def gradient(dy, x):  # exp(x - y) would inherit the rounding error of y
        m = e.row_max(x)
        exponential = e.exp(x - where(e.equal(m, -INFINITY), 0.0, m))  # beside inf: exp(-inf) = 0
        total = where(e.equal(m - m, 0.0), e.row_sum(exponential), 1.0)
        return dy * exponential * (1.0 / total)


class CrossEntropyRow(RowWise):
    """-log softmax(x)[label] per row; label smoothing spreads `smoothing` over all classes.

    (n, k), (n, 1) labels, number -> (n, 1).  Rows with a negative label affect no gradients.
    """

    samples = [((3, 4), (3, 1))]
    keeps_row = False
    integer_inputs = {1: 4}
    numbers = (0.1,)

    def formula(x, label, smoothing):
        centred = x - e.row_max(x)  # first, so that a large offset of the row costs no precision
        log_sum = e.log(e.row_sum(e.exp(centred)))
        chosen = e.row_sum(where(e.equal(e.column_of(x), label), centred, 0.0))
        mean = e.row_mean(centred)
        spread = where(e.equal(smoothing, 0.0), 0.0, smoothing * mean)  # not 0 * infinity
        return log_sum - (1.0 - smoothing) * chosen - spread

    def gradient(dy, x, label, smoothing):
        x = where(label < 0, 0.0, x)  # 0 * NaN is NaN
        exponential = e.exp(x - e.row_max(x))
        soft = exponential * (1.0 / e.row_sum(exponential))
        # numbers stand beside operands of x's dtype, because alone they would be float32
        rest = where(e.equal(e.column_of(x), label), soft - (1.0 - smoothing), soft)
        classes = e.row_sum(where(e.column_of(x) >= 0, 1.0, x))
        spread = where(e.equal(smoothing, 0.0), 0.0, smoothing / classes)
        return dy * (rest - spread)


class LayerNormRow(RowWise):
    """(x - mean) / sqrt(var + eps) * w + b along the last axis (Ba et al. 2016).

    (..., n), (n,), (n,), number -> (..., n).
    """

    samples = [((3, 4), (4,), (4,)), ((2, 3, 5), (5,), (5,))]
    numbers = (1e-5,)

    def formula(x, w, b, eps):
        centred = x - e.row_mean(x)  # (..., n)
        scale = 1.0 / e.sqrt(e.row_mean(centred * centred) + eps)  # (..., 1)
        return centred * scale * w + b

    def gradient(dy, x, w, eps):
        centred = x - e.row_mean(x)
        scale = 1.0 / e.sqrt(e.row_mean(centred * centred) + eps)
        normal = centred * scale  # (..., n), of mean 0 and variance 1
        g = dy * w
        dx = scale * (g - e.row_mean(g) - normal * e.row_mean(g * normal))
        return dx, dy * normal, dy


class RmsNormRow(RowWise):
    """x / sqrt(mean(x^2) + eps) * w along the last axis (Zhang, Sennrich 2019).

    (..., n), (n,), number -> (..., n).
    """

    samples = [((3, 4), (4,)), ((2, 3, 5), (5,))]
    numbers = (1e-5,)

    def formula(x, w, eps):
        return x * (1.0 / e.sqrt(e.row_mean(x * x) + eps)) * w

    def gradient(dy, x, w, eps):
        scale = 1.0 / e.sqrt(e.row_mean(x * x) + eps)  # (..., 1)
        normal = x * scale  # (..., n)
        g = dy * w
        return scale * (g - normal * e.row_mean(g * normal)), dy * normal
