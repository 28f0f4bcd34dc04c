"""Systems of linear equations, and Cholesky factors; a thread takes whole matrices. T: float64.

That is slow for one large matrix, and simple: many small ones are what fills a GPU.
"""

# pyright: reportUndefinedVariable=false


@exact_jit
def solve(a, b, x, factors, rest, count, m, n, k):
    """x (count, n, k) of a (count, m, n) and b (count, m, k): see `Device.solve`."""
    for batch in range(cuda.grid(1), count, cuda.gridsize(1)):
        solve_one(a, b, x, factors, rest, batch, m, n, k)


@exact_jit
def cholesky(a, out, count, n):
    """out (count, n, n) of a: see `Device.cholesky`."""
    for batch in range(cuda.grid(1), count, cuda.gridsize(1)):
        cholesky_one(a, out, batch, n)
