"""Optimizer steps on a GPU: parts of an update that the blocks of one parameter share.

Formulas and the order of their operations are those of optimizers.py. `block` of `blocks` blocks
works on this parameter of n elements; T is its type. Numbers are those of the hyperparameters.
"""

# pyright: reportUndefinedVariable=false


@exact_jit
def sgd(p, g, n, block, blocks, rate, decay):
    """p -= rate (g + decay p)."""
    for i in range(block * cuda.blockDim.x + cuda.threadIdx.x, n, blocks * cuda.blockDim.x):
        p[i] = p[i] - rate * (g[i] + decay * p[i])


@exact_jit
def momentum(p, g, b, n, block, blocks, rate, decay, keep, is_nesterov):
    """b = keep b + g; p -= rate b, or rate (g + keep b) with Nesterov's momentum."""
    for i in range(block * cuda.blockDim.x + cuda.threadIdx.x, n, blocks * cuda.blockDim.x):
        x = p[i]
        d = g[i] + decay * x
        speed = keep * b[i] + d
        b[i] = speed
        p[i] = x - rate * ((d + keep * speed) if is_nesterov != 0 else speed)


@exact_jit
def adam(p, g, m, v, n, block, blocks, factors, k, beta1, rest1, beta2, rest2, eps, keep, decay):
    """Moving averages m of the gradient and v of its square; p -= rate m / (sqrt(v) corr. + eps).

    factors[2 k] and the next: rate and correction of this parameter, as count_step writes them.
    """
    rate, correction = factors[2 * k], factors[2 * k + 1]
    for i in range(block * cuda.blockDim.x + cuda.threadIdx.x, n, blocks * cuda.blockDim.x):
        x = p[i]
        d = g[i] + decay * x
        first = beta1 * m[i] + rest1 * d
        second = beta2 * v[i] + rest2 * d * d
        m[i] = first
        v[i] = second
        p[i] = keep * x - rate * first / (T(math.sqrt(second)) * correction + eps)


@exact_jit
def count_step(steps, factors, k, rate, beta1, beta2):
    """Counts a step in steps[0]; writes Adam's factors of parameter k.

    In float64, as on the CPU.
    """
    t = steps[0] + F8(1.0)
    steps[0] = t
    factors[2 * k] = T(rate / (F8(1.0) - beta1**t))
    factors[2 * k + 1] = T(F8(1.0) / math.sqrt(F8(1.0) - beta2**t))


@exact_jit
def rmsprop(
    p, g, s, b, a, n, block, blocks, rate, alpha, rest, eps, decay, keep, has_momentum, is_centred
):
    """Moving averages s of the squared gradient and a of the gradient (centred); momentum b."""
    for i in range(block * cuda.blockDim.x + cuda.threadIdx.x, n, blocks * cuda.blockDim.x):
        x = p[i]
        d = g[i] + decay * x
        square = alpha * s[i] + rest * d * d
        s[i] = square
        if is_centred != 0:
            average = alpha * a[i] + rest * d
            a[i] = average
            square = square - average * average
            square = square if square > T(0) else T(0)  # rounding can push it below
        d = d / (T(math.sqrt(square)) + eps)
        if has_momentum != 0:
            d = keep * b[i] + d
            b[i] = d
        p[i] = x - rate * d


@exact_jit
def squares(x, n, block, blocks, sums):
    """sums[blockIdx.x] = the sum of squares of this block's elements."""
    warps = cuda.shared.array(8, T)
    total = T(0)
    for i in range(block * cuda.blockDim.x + cuda.threadIdx.x, n, blocks * cuda.blockDim.x):
        total += x[i] * x[i]
    step = I4(16)
    while step > 0:
        total += cuda.shfl_down_sync(0xFFFFFFFF, total, step)
        step = I4(step // 2)
    if cuda.threadIdx.x & 31 == 0:
        warps[cuda.threadIdx.x >> 5] = total
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        for k in range(1, 8):
            total += warps[k]
        sums[cuda.blockIdx.x] = total


@exact_jit
def scale(x, n, block, blocks, factor):
    """x *= factor."""
    for i in range(block * cuda.blockDim.x + cuda.threadIdx.x, n, blocks * cuda.blockDim.x):
        x[i] *= factor
