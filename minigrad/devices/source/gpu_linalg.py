"""Solve linear equations and compute Cholesky factors; a thread takes whole matrices. T: float64.

This is simple, but slow for one large matrix: many small ones fill a GPU.
"""

# pyright: reportUndefinedVariable=false


@exact_jit
def solve(a, b, x, factors, rest, count, m, n, k):
    """Solve for x (count, n, k) of a (count, m, n), b (count, m, k): see `Device.solve`."""
    for batch in range(cuda.grid(1), count, cuda.gridsize(1)):
        solve_one(a, b, x, factors, rest, batch, m, n, k)


@exact_jit
def cholesky(a, out, count, n):
    """Compute out (count, n, n) of a: see `Device.cholesky`."""
    for batch in range(cuda.grid(1), count, cuda.gridsize(1)):
        cholesky_one(a, out, batch, n)
