"""Solve linear equations and compute Cholesky factors; a thread takes whole matrices."""

# pyright: reportUndefinedVariable=false


@lazy("void(i8,i8,i8,i8,i8,i8,i8,i8,i8,i8)")
def solve(a_at, b_at, x_at, factors_at, rest_at, m, n, k, start, stop):
    """Solve for x (batch, n, k) of a (batch, m, n), b (batch, m, k): see `Device.solve`."""
    a, b, x, w, rest = f8_at(a_at), f8_at(b_at), f8_at(x_at), f8_at(factors_at), f8_at(rest_at)
    for batch in range(start, stop):
        solve_one(a, b, x, w, rest, batch, m, n, k)


@lazy("void(i8,i8,i8,i8,i8)")
def cholesky(a_at, out_at, n, start, stop):
    """Compute out (batch, n, n) of a: see `Device.cholesky`."""
    a, out = f8_at(a_at), f8_at(out_at)
    for batch in range(start, stop):
        cholesky_one(a, out, batch, n)
