"""Kernels that are compiled when they are first called: few programs need all of a file."""

# pyright: reportUndefinedVariable=false


def lazy(signature):
    """As `jit`, but compiled by `loader.source_kernel` when it is first wanted."""

    def decorate(function):
        kernel = kept_jit(nogil=True, error_model="numpy", fastmath=FLAGS)(function)
        kernel.wanted = signature
        return general(kernel)

    return decorate
