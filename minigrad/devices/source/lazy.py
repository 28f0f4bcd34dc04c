"""Compile kernels when they are first called, since few programs need all of a file."""

# pyright: reportUndefinedVariable=false


def lazy(signature):
    """Do the same as `jit`, but let `loader.source_kernel` compile when it first needs it."""

    def decorate(function):
        kernel = kept_jit(nogil=True, error_model="numpy", fastmath=FLAGS)(function)
        kernel.wanted = signature
        return general(kernel)

    return decorate
