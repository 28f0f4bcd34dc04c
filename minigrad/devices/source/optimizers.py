"""Optimizer steps: one pass over all parameters, by a table of addresses.

A row of the table has ROW integers: addresses of parameter, gradient (0: leave this one out) and
state, elements, elements from one slot of the state to the next, address of the counters (float64:
steps taken, then factors that hold for one step), address of the group's hyperparameters (float64,
the learning rate first). A piece is (row, first element, elements): big parameters are cut, so that
threads share the work. A kernel counts a step for the first `rows` rows, then updates its pieces.

Formulas and defaults are PyTorch's. SGD with momentum: Sutskever et al. 2013; Adam: Kingma, Ba
2015;
AdamW: Loshchilov, Hutter 2019; RMSprop: Tieleman, Hinton 2012, centred: Graves 2013.
"""

# pyright: reportUndefinedVariable=false

ROW = 8
# Compiled when an optimizer first needs them.
lazy_jit = kept_jit(nogil=True, error_model="numpy", fastmath=FLAGS)


@inline_jit
def sgd_range(p, g, b, n, rate, momentum, nesterov, decay):
    """b = momentum b + g; p -= rate b, or rate (g + momentum b) with Nesterov's momentum."""
    if momentum == 0:
        for i in range(n):
            p[i] = p[i] - rate * (g[i] + decay * p[i])
    elif nesterov:
        for i in range(n):
            x = p[i]
            d = g[i] + decay * x
            speed = momentum * b[i] + d
            b[i] = speed
            p[i] = x - rate * (d + momentum * speed)
    else:
        for i in range(n):
            x = p[i]
            speed = momentum * b[i] + (g[i] + decay * x)
            b[i] = speed
            p[i] = x - rate * speed


@lazy_jit
def sgd_f4(table_at, rows, pieces_at, first, last):
    """Hyperparameters: rate, momentum, Nesterov (1 or 0), decay. State: momentum, unless 0."""
    table, pieces = i8_at(table_at), i8_at(pieces_at)
    for k in range(first, last):
        row, at, n = pieces[3 * k] * ROW, 4 * pieces[3 * k + 1], pieces[3 * k + 2]
        if table[row + 1] != 0:
            h = f8_at(table[row + 6])
            sgd_range(
                f4_at(table[row] + at), f4_at(table[row + 1] + at), f4_at(table[row + 2] + at), n,
                F4(h[0]), F4(h[1]), h[2] != 0, F4(h[3]),
            )  # fmt: skip


@lazy_jit
def sgd_f8(table_at, rows, pieces_at, first, last):
    """As sgd_f4, in float64."""
    table, pieces = i8_at(table_at), i8_at(pieces_at)
    for k in range(first, last):
        row, at, n = pieces[3 * k] * ROW, 8 * pieces[3 * k + 1], pieces[3 * k + 2]
        if table[row + 1] != 0:
            h = f8_at(table[row + 6])
            sgd_range(
                f8_at(table[row] + at), f8_at(table[row + 1] + at), f8_at(table[row + 2] + at), n,
                h[0], h[1], h[2] != 0, h[3],
            )  # fmt: skip


@inline_jit
def adam_factors(table, rows):
    """Counts a step of each row that takes part; keeps its step size and bias correction."""
    for r in range(rows):
        row = r * ROW
        if table[row + 1] != 0:
            c, h = f8_at(table[row + 5]), f8_at(table[row + 6])
            t = c[0] + 1.0
            c[0] = t
            c[1] = h[0] / (1.0 - h[1] ** t)
            c[2] = 1.0 / math.sqrt(1.0 - h[2] ** t)


@inline_jit
def adam_range(p, g, m, v, n, beta1, rest1, beta2, rest2, rate, correction, eps, keep, decay):
    """Moving averages m of the gradient and v of its square; p -= rate m / (sqrt(v) corr. + eps).

    keep: 1 - learning rate * decay of AdamW, else 1; decay: of Adam, else 0.
    """
    for i in range(n):
        x = p[i]
        d = g[i] + decay * x
        first = beta1 * m[i] + rest1 * d
        second = beta2 * v[i] + rest2 * d * d
        m[i] = first
        v[i] = second
        p[i] = keep * x - rate * first / (math.sqrt(second) * correction + eps)


@lazy_jit
def adam_f4(table_at, rows, pieces_at, first, last):
    """Hyperparameters: rate, beta1, beta2, eps, decay, decoupled (1 or 0). State: m, v."""
    table, pieces = i8_at(table_at), i8_at(pieces_at)
    adam_factors(table, rows)
    for k in range(first, last):
        row, at, n = pieces[3 * k] * ROW, 4 * pieces[3 * k + 1], pieces[3 * k + 2]
        if table[row + 1] != 0:
            c, h = f8_at(table[row + 5]), f8_at(table[row + 6])
            m = table[row + 2] + at
            adam_range(
                f4_at(table[row] + at), f4_at(table[row + 1] + at), f4_at(m),
                f4_at(m + 4 * table[row + 4]), n, F4(h[1]), F4(1.0 - h[1]), F4(h[2]),
                F4(1.0 - h[2]), F4(c[1]), F4(c[2]), F4(h[3]), F4(1.0 - h[5] * h[0] * h[4]),
                F4((1.0 - h[5]) * h[4]),
            )  # fmt: skip


@lazy_jit
def adam_f8(table_at, rows, pieces_at, first, last):
    """As adam_f4, in float64."""
    table, pieces = i8_at(table_at), i8_at(pieces_at)
    adam_factors(table, rows)
    for k in range(first, last):
        row, at, n = pieces[3 * k] * ROW, 8 * pieces[3 * k + 1], pieces[3 * k + 2]
        if table[row + 1] != 0:
            c, h = f8_at(table[row + 5]), f8_at(table[row + 6])
            m = table[row + 2] + at
            adam_range(
                f8_at(table[row] + at), f8_at(table[row + 1] + at), f8_at(m),
                f8_at(m + 8 * table[row + 4]), n, h[1], 1.0 - h[1], h[2], 1.0 - h[2], c[1], c[2],
                h[3], 1.0 - h[5] * h[0] * h[4], (1.0 - h[5]) * h[4],
            )  # fmt: skip


@inline_jit
def rmsprop_range(p, g, s, b, a, n, rate, alpha, rest, eps, decay, momentum, centred, zero):
    """Moving averages s of the squared gradient and a of the gradient (centred); momentum b."""
    for i in range(n):
        x = p[i]
        d = g[i] + decay * x
        square = alpha * s[i] + rest * d * d
        s[i] = square
        if centred:
            average = alpha * a[i] + rest * d
            a[i] = average
            square = square - average * average
            square = square if square > zero else zero  # rounding can push it below
        d = d / (math.sqrt(square) + eps)
        if momentum != 0:
            d = momentum * b[i] + d
            b[i] = d
        p[i] = x - rate * d


@lazy_jit
def rmsprop_f4(table_at, rows, pieces_at, first, last):
    """Hyperparameters: rate, alpha, eps, decay, momentum, centred (1 or 0).

    State: average of squares, then momentum if it is not 0, then average of gradients if centred.
    """
    table, pieces = i8_at(table_at), i8_at(pieces_at)
    for k in range(first, last):
        row, at, n = pieces[3 * k] * ROW, 4 * pieces[3 * k + 1], pieces[3 * k + 2]
        if table[row + 1] != 0:
            h = f8_at(table[row + 6])
            s, slot = table[row + 2] + at, 4 * table[row + 4]
            b = s + slot if h[4] != 0 else s
            rmsprop_range(
                f4_at(table[row] + at), f4_at(table[row + 1] + at), f4_at(s), f4_at(b),
                f4_at(b + slot), n, F4(h[0]), F4(h[1]), F4(1.0 - h[1]), F4(h[2]), F4(h[3]),
                F4(h[4]), h[5] != 0, F4(0),
            )  # fmt: skip


@lazy_jit
def rmsprop_f8(table_at, rows, pieces_at, first, last):
    """As rmsprop_f4, in float64."""
    table, pieces = i8_at(table_at), i8_at(pieces_at)
    for k in range(first, last):
        row, at, n = pieces[3 * k] * ROW, 8 * pieces[3 * k + 1], pieces[3 * k + 2]
        if table[row + 1] != 0:
            h = f8_at(table[row + 6])
            s, slot = table[row + 2] + at, 8 * table[row + 4]
            b = s + slot if h[4] != 0 else s
            rmsprop_range(
                f8_at(table[row] + at), f8_at(table[row + 1] + at), f8_at(s), f8_at(b),
                f8_at(b + slot), n, h[0], h[1], 1.0 - h[1], h[2], h[3], h[4], h[5] != 0, F8(0),
            )  # fmt: skip


@inline_jit
def squares_range(x, n):
    """The sum of squares, in float64."""
    total = F8(0)
    for i in range(n):
        total = plus(total, F8(x[i]) * F8(x[i]))
    return total


@lazy_jit
def squares_f4(table_at, rows, sums_at, first, last):
    """sums[r] = sum of squares of array r. Rows of the table: (address, elements)."""
    table, sums = i8_at(table_at), f8_at(sums_at)
    for r in range(rows):
        sums[r] = squares_range(f4_at(table[2 * r]), table[2 * r + 1])


@lazy_jit
def squares_f8(table_at, rows, sums_at, first, last):
    """As squares_f4, for float64."""
    table, sums = i8_at(table_at), f8_at(sums_at)
    for r in range(rows):
        sums[r] = squares_range(f8_at(table[2 * r]), table[2 * r + 1])


@lazy_jit
def scale_f4(table_at, rows, factors_at, first, last):
    """Multiplies array r by factors[r]. Rows of the table: (address, elements)."""
    table, factors = i8_at(table_at), f8_at(factors_at)
    for r in range(rows):
        x, factor = f4_at(table[2 * r]), F4(factors[r])
        for i in range(table[2 * r + 1]):
            x[i] *= factor


@lazy_jit
def scale_f8(table_at, rows, factors_at, first, last):
    """As scale_f4, for float64."""
    table, factors = i8_at(table_at), f8_at(factors_at)
    for r in range(rows):
        x, factor = f8_at(table[2 * r]), factors[r]
        for i in range(table[2 * r + 1]):
            x[i] *= factor
