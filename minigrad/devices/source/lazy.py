"""Compile kernels when they are first called, since few programs need all of a file."""

# pyright: reportUndefinedVariable=false


def lazy(signature):
    """Do the same as `jit`, but compile when `loader.source_kernel` or a caller first needs it."""

    def decorate(function):
        options = {"nogil": True, "error_model": "numpy", "fastmath": FLAGS}
        return CalledBySymbol(function, signature, **options)

    return decorate
