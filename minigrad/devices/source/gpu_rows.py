"""How the threads of a grid share rows: threadIdx.x and blocks.y along, the others across them."""

# pyright: reportUndefinedVariable=false


@exact_jit
def first_row():
    """Return the first row of this thread."""
    return I8(cuda.blockIdx.x) * cuda.blockDim.y + cuda.threadIdx.y


@exact_jit
def step_of_rows():
    """Return the step from one row of this thread to its next."""
    return I8(cuda.gridDim.x) * cuda.blockDim.y


@exact_jit
def first_along():
    """Return the first element of this thread in each of its rows."""
    return I8(cuda.blockIdx.y) * cuda.blockDim.x + cuda.threadIdx.x


@exact_jit
def step_along():
    """Return the step from one element of this thread to its next."""
    return I8(cuda.gridDim.y) * cuda.blockDim.x
