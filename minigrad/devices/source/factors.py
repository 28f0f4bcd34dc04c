"""Factor matrices and solve with the factors, in float64; the CPU and GPUs share this text.

Matrices lie in C order from element `at` of their array on.
"""

# pyright: reportUndefinedVariable=false


@exact_jit
def reflected(w, at, rows, columns, j, x, x_at, k, c):
    """Apply the reflection stored in column j of w to column c of x (rows, k)."""
    total = x[x_at + j * k + c]
    for i in range(j + 1, rows):
        total += w[at + i * columns + j] * x[x_at + i * k + c]
    total *= w[at + j * columns + j]
    x[x_at + j * k + c] -= total
    for i in range(j + 1, rows):
        x[x_at + i * k + c] -= total * w[at + i * columns + j]


@exact_jit
def triangulate(w, at, rows, columns):
    """Factor the first rows of w (rows + 1, columns), rows >= columns, as Q R by reflections.

    Householder, "Unitary triangularization of a nonsymmetric matrix" (1958). R stands above the
    diagonal and has its own diagonal in the last row. The reflections are 1 - t v v^T with v_j = 1:
    t stands on the diagonal, the rest of v below it.
    """
    for j in range(columns):
        largest = F8(0.0)  # squares must not overflow
        for i in range(j, rows):
            largest = max(largest, abs(w[at + i * columns + j]))
        total, scale = F8(0.0), largest if largest > F8(0.0) else F8(1.0)
        for i in range(j, rows):
            part = w[at + i * columns + j] / scale
            total += part * part
        norm = scale * math.sqrt(total)
        norm = -norm if w[at + j * columns + j] > F8(0.0) else norm
        head = w[at + j * columns + j] - norm
        w[at + rows * columns + j] = norm
        w[at + j * columns + j] = -head / norm if norm != F8(0.0) else F8(0.0)
        for i in range(j + 1, rows):
            w[at + i * columns + j] = w[at + i * columns + j] / head if norm != F8(0.0) else F8(0.0)
        for c in range(j + 1, columns):
            reflected(w, at, rows, columns, j, w, at, columns, c)


@exact_jit
def least_squares(w, at, rest, rest_at, x, x_at, rows, columns, k):
    """Solve R x = Q^T rest for x (columns, k); overwrite rest (rows, k); w is triangulated."""
    for c in range(k):
        for j in range(columns):
            reflected(w, at, rows, columns, j, rest, rest_at, k, c)
        for back in range(columns):
            j = columns - 1 - back
            value = rest[rest_at + j * k + c]
            for i in range(j + 1, columns):
                value -= w[at + j * columns + i] * x[x_at + i * k + c]
            x[x_at + j * k + c] = value / w[at + rows * columns + j]


@exact_jit
def smallest_solution(w, at, b, b_at, x, x_at, rows, columns, k):
    """Set x (rows, k) to Q R^-T b, the shortest x with w^T x = b (columns, k); w triangulated."""
    for c in range(k):
        for j in range(rows):
            x[x_at + j * k + c] = F8(0.0)
        for j in range(columns):
            value = b[b_at + j * k + c]
            for i in range(j):
                value -= w[at + i * columns + j] * x[x_at + i * k + c]
            x[x_at + j * k + c] = value / w[at + rows * columns + j]
        for back in range(columns):
            reflected(w, at, rows, columns, columns - 1 - back, x, x_at, k, c)


@exact_jit
def solve_one(a, b, x, w, rest, batch, m, n, k):
    """Solve for x of matrix `batch`: see `Device.solve`."""
    a_at, b_at, x_at = batch * m * n, batch * m * k, batch * n * k
    rows, columns = max(m, n), min(m, n)
    at = batch * (rows + 1) * columns
    for i in range(m):
        for j in range(n):
            w[at + (i * n + j if m >= n else j * m + i)] = a[a_at + i * n + j]
    triangulate(w, at, rows, columns)
    if m >= n:
        for i in range(m * k):
            rest[b_at + i] = b[b_at + i]
        least_squares(w, at, rest, b_at, x, x_at, rows, columns, k)
    else:
        smallest_solution(w, at, b, b_at, x, x_at, rows, columns, k)


@exact_jit
def cholesky_one(a, out, batch, n):
    """Compute out of matrix `batch`, by rows: see `Device.cholesky`."""
    at = batch * n * n
    for i in range(n):
        for j in range(n):
            value = F8(0.5) * (a[at + i * n + j] + a[at + j * n + i])
            for c in range(min(i, j)):
                value -= out[at + i * n + c] * out[at + j * n + c]
            if j < i:
                out[at + i * n + j] = value / out[at + j * n + j]
            elif j == i:
                out[at + i * n + j] = math.sqrt(value) if value > F8(0.0) else F8(math.nan)
            else:
                out[at + i * n + j] = F8(0.0)
