"""Names of PyTorch, NumPy and JAX that minigrad lacks, and the lines to write instead."""

_FLOAT8 = "nothing: there is no float8; float16 and bfloat16 are the smallest floats"

LEFT_OUT = {  # {place: {name elsewhere: what to write}}; the places are those of hints.NAMES
    "mg": {
        "Categorical": "mg.random.categorical(logits)",
        "FloatTensor": "mg.variable(data)",
        "LongTensor": "mg.variable(data, 'int64')",
        "acos": "mg.atan2(mg.sqrt(1 - x * x), x)",
        "add_": "x += y, under mg.no_grad() for a leaf",
        "addmm": "c + a @ b",
        "amax": "mg.max(x, axis=axis)",
        "amin": "mg.min(x, axis=axis)",
        "arccos": "mg.atan2(mg.sqrt(1 - x * x), x)",
        "arcsin": "mg.atan2(x, mg.sqrt(1 - x * x))",
        "arctan": "mg.atan2(x, 1.0)",
        "arctan2": "mg.atan2(y, x)",
        "argwhere": "np.argwhere(x.numpy())",
        "asin": "mg.atan2(x, mg.sqrt(1 - x * x))",
        "atan": "mg.atan2(x, 1.0)",
        "amp": "mg.autocast('float16') and mg.optim.GradScaler",
        "baddbmm": "c + a @ b",
        "batches": "mg.data.batches(x, y, batch_size=32)",
        "bernoulli": "mg.rand(p.shape) < p",
        "bf16": "mg.bfloat16",
        "binary_cross_entropy": (
            "mg.bce_with_logits(logits, target), which takes the sigmoid itself"
        ),
        "binary_cross_entropy_with_logits": "mg.bce_with_logits(logits, target)",
        "bincount": "mg.one_hot(index, n).sum(axis=0)",
        "cast": "x.to(dtype)",
        "categorical": "mg.random.categorical(logits)",
        "cdist": "mg.norm(a[:, None] - b[None], axis=-1)",
        "cholesky": "mg.linalg.cholesky(a)",
        "corrcoef": "np.corrcoef(x.numpy())",
        "cosh": "0.5 * (mg.exp(x) + mg.exp(-x))",
        "cosine_similarity": "(mg.normalize(a, axis=-1) * mg.normalize(b, axis=-1)).sum(axis=-1)",
        "cross": "a[..., [1, 2, 0]] * b[..., [2, 0, 1]] - a[..., [2, 0, 1]] * b[..., [1, 2, 0]]",
        "cummax": "np.maximum.accumulate(x.numpy())",
        "det": (
            "mg.prod(mg.diagonal(mg.linalg.cholesky(a), axis1=0, axis2=1)) ** 2 of a positive "
            "definite a"
        ),
        "diag": "mg.diagonal(x, axis1=0, axis2=1) of a matrix, v * mg.eye(len(v)) of a vector",
        "diff": "x[1:] - x[:-1]",
        "divide": "a / b",
        "erfc": "1 - mg.erf(x)",
        "exp2": "2.0 ** x",
        "fft": "nothing: there are no complex numbers; np.fft.fft(x.numpy()) outside the graph",
        "finfo": "x.dtype.limits, the smallest and the largest finite number",
        "float8": _FLOAT8,
        "float8_e4m3fn": _FLOAT8,
        "float8_e5m2": _FLOAT8,
        "fmod": "mg.remainder(a, b), with the sign of b",
        "frac": "x - mg.floor(x)",
        "fp16": "mg.float16",
        "fp32": "mg.float32",
        "from_list": "mg.variable(data)",
        "func": "mg itself that has mg.grad, mg.vjp, mg.jvp, mg.hessian and mg.functional_call",
        "get_autocast_dtype": "block.dtype of block = mg.autocast('float16')",
        "get_default_dtype": "mg.float32, the dtype of Python's floats, always",
        "histc": "np.histogram(x.numpy())",
        "inner": "a @ b",
        "inv": "mg.linalg.solve(a, mg.eye(n))",
        "inverse": "mg.linalg.solve(a, mg.eye(n))",
        "is_autocast_enabled": "the block: block = mg.autocast('float16') has block.enabled",
        "isclose": "abs(a - b) <= 1e-8 + 1e-5 * abs(b)",
        "jacfwd": "mg.jvp(f, x, v), derivatives along v; or mg.jacobian(f)(x)",
        "jacrev": "mg.jacobian(f)(x)",
        "kl_div": "(p * (mg.log(p) - log_q)).sum(axis=-1).mean()",
        "kron": "mg.einsum('ij,kl->ikjl', a, b).reshape((m * k, n * l))",
        "l1_loss": "(x - target).abs().mean()",
        "lerp": "a + t * (b - a)",
        "log10": "mg.log(x) / math.log(10)",
        "logaddexp": "mg.logsumexp(mg.stack([a, b]), axis=0)",
        "logcumsumexp": "m + mg.log(mg.cumsum(mg.exp(x - m), axis)) with m = x.max().detach()",
        "logdet": (
            "2 * mg.log(mg.diagonal(mg.linalg.cholesky(a), axis1=0, axis2=1)).sum() of a positive "
            "definite a"
        ),
        "lstsq": "mg.linalg.lstsq(a, b)",
        "median": "mg.sort(x, axis=axis), and its middle",
        "meshgrid": "x[:, None] and y[None, :], which broadcast",
        "mod": "mg.remainder(a, b), or a % b",
        "moveaxis": "mg.permute(x, axes)",
        "movedim": "mg.permute(x, axes)",
        "multinomial": "mg.random.categorical(mg.log(p), (n,)), with replacement",
        "multiply": "a * b",
        "mv": "a @ v",
        "nan_to_num": "mg.where(mg.isnan(x), 0.0, x)",
        "nanmean": "mg.where(keep, x, 0.0).sum() / keep.sum() with keep = ~mg.isnan(x)",
        "nansum": "mg.where(mg.isnan(x), 0.0, x).sum()",
        "narrow": "x[start : start + length]",
        "negative": "-x",
        "new_tensor": "mg.variable(data)",
        "nll_loss": "mg.cross_entropy(logits, labels), which takes the log softmax itself",
        "nonzero": "np.nonzero(x.numpy())",
        "pinv": "mg.linalg.lstsq(a, mg.eye(m)).solution",
        "qr": "mg.linalg.cholesky of a positive definite matrix, mg.linalg.lstsq for least squares",
        "quantile": "mg.sort(x, axis=axis), and the places that you want",
        "rand_like": "mg.rand(x.shape)",
        "randn_like": "mg.randn(x.shape)",
        "relu6": "mg.clip(x, 0.0, 6.0)",
        "scatter": "y = x.clone(); y[index] = values",
        "searchsorted": "np.searchsorted(a, v)",
        "select": "x[i], or x[:, i]",
        "set_default_dtype": "dtype= in each call, or model.to(dtype)",
        "sinh": "0.5 * (mg.exp(x) - mg.exp(-x))",
        "smooth_l1_loss": "mg.huber(x, target, delta=beta) / beta",
        "solve": "mg.linalg.solve(a, b)",
        "sparse": "nothing: arrays are dense; mg.embedding and mg.index_add reach single rows",
        "subtract": "a - b",
        "svd": (
            "mg.linalg.cholesky of a positive definite matrix, mg.linalg.lstsq for least squares"
        ),
        "swapaxes": "mg.permute(x, axes)",
        "take": "x[index]",
        "tensordot": "mg.einsum",
        "tile": "mg.concatenate([x] * n, axis)",
        "trace": "mg.diagonal(x, axis1=0, axis2=1).sum()",
        "trapz": "((y[1:] + y[:-1]) * (x[1:] - x[:-1])).sum() / 2",
        "true_divide": "a / b",
        "trunc": "mg.sign(x) * mg.floor(mg.abs(x))",
        "unbind": "list(x)",
        "unfold": "mg.nn.Conv2d, or windows by slices: mg.stack([x[i : i + k] for i in range(n)])",
        "unique": "np.unique(x.numpy())",
        "vmap": "a loop: mg.stack([f(row) for row in x]); functions of whole batches are faster",
        "xlogy": "mg.where(x == 0, 0.0, x * mg.log(mg.where(x == 0, 1.0, y)))",
    },
    "Variable": {
        "add": "x + y",
        "addmm": "x + a @ b",
        "amax": "x.max(axis=axis)",
        "amin": "x.min(axis=axis)",
        "atan": "mg.atan2(x, 1.0)",
        "baddbmm": "x + a @ b",
        "bmm": "x @ y",
        "byte": "x.to('uint8')",
        "cat": "mg.concatenate([x, y])",
        "dist": "mg.norm(x - y)",
        "div": "x / y",
        "expand_as": "x.expand(y.shape)",
        "fill": "x.fill_(value)",
        "fill_diagonal_": "mg.where(mg.eye(n) > 0, value, x)",
        "index_add_": "x = mg.index_add(x, index, source, axis)",
        "index_fill_": "x[index] = value",
        "index_select": "x[index], x[:, index]",
        "inverse": "mg.linalg.solve(x, mg.eye(n))",
        "is_cuda": "x.device == 'cuda'",
        "is_floating_point": "x.dtype.is_float",
        "log_": "x = x.log()",
        "masked_fill_": "x = x.masked_fill(mask, value)",
        "masked_select": "x[mask]",
        "mul": "x * y",
        "multinomial": "mg.random.categorical(mg.log(x), (n,)), with replacement",
        "narrow": "x[start : start + length]",
        "new_zeros": "mg.zeros(shape, x.dtype)",
        "nonzero": "np.nonzero(x.numpy())",
        "normal_": "x.copy_(mg.randn(x.shape)), under mg.no_grad()",
        "put_": "x[index] = values",
        "random_": "x.copy_(mg.randint(low, high, x.shape))",
        "rename": "x.name = 'x'",
        "scatter_": "x[index] = values",
        "scatter_add_": "x = mg.scatter_add(x, index, source, axis)",
        "sort": "mg.sort(x, axis=axis), the values alone; x.argsort(axis) are their places",
        "sub": "x - y",
        "tile": "mg.concatenate([x] * n, axis)",
        "tobytes": "x.numpy().tobytes()",
        "trace": "mg.diagonal(x, axis1=0, axis2=1).sum()",
        "type_as": "x.to(y.dtype)",
        "unbind": "list(x)",
        "uniform_": "x.copy_(mg.rand(x.shape)), under mg.no_grad()",
        "unique": "np.unique(x.numpy())",
    },
    "mg.nn": {
        "Bilinear": "mg.einsum('bi,kij,bj->bk', x, weight, y), with an nn.Parameter weight",
        "ConvTranspose2d": "mg.repeat along both axes, then nn.Conv2d",
        "CosineSimilarity": "(mg.normalize(a, axis=-1) * mg.normalize(b, axis=-1)).sum(axis=-1)",
        "EmbeddingBag": "mg.embedding(weight, index).mean(axis=1)",
        "GRU": (
            "a Module whose forward loops over the steps: r, z = "
            "mg.split(self.gates(mg.concatenate([x[:, t], h], 1)).sigmoid(), sections=2, axis=1); "
            "n = mg.tanh(self.linear(mg.concatenate([x[:, t], r * h], 1))); h = z * h + (1 - z) * "
            "n"
        ),
        "GRUCell": (
            "a Module whose forward loops over the steps: r, z = "
            "mg.split(self.gates(mg.concatenate([x[:, t], h], 1)).sigmoid(), sections=2, axis=1); "
            "n = mg.tanh(self.linear(mg.concatenate([x[:, t], r * h], 1))); h = z * h + (1 - z) * "
            "n"
        ),
        "GroupNorm": "mg.layer_norm of x.reshape((n, groups, -1)), reshaped back",
        "Hardtanh": "mg.clip(x, -1.0, 1.0)",
        "InstanceNorm2d": "mg.layer_norm of x.reshape((n, c, -1)), reshaped back",
        "KLDivLoss": "(p * (mg.log(p) - log_q)).sum(axis=-1).mean()",
        "LSTM": (
            "a Module whose forward loops over the steps, with self.linear = mg.nn.Linear(inputs +"
            " size, 4 * size): i, f, g, o = mg.split(self.linear(mg.concatenate([x[:, t], h], 1)),"
            " sections=4, axis=1); c = f.sigmoid() * c + i.sigmoid() * g.tanh(); h = o.sigmoid() *"
            " c.tanh()"
        ),
        "LSTMCell": (
            "a Module whose forward loops over the steps, with self.linear = mg.nn.Linear(inputs +"
            " size, 4 * size): i, f, g, o = mg.split(self.linear(mg.concatenate([x[:, t], h], 1)),"
            " sections=4, axis=1); c = f.sigmoid() * c + i.sigmoid() * g.tanh(); h = o.sigmoid() *"
            " c.tanh()"
        ),
        "PReLU": "mg.where(x > 0.0, x, slope * x), with an nn.Parameter slope",
        "RNN": (
            "a Module whose forward loops over the steps: h = "
            "mg.tanh(self.linear(mg.concatenate([x[:, t], h], 1))) with self.linear = "
            "mg.nn.Linear(inputs + size, size)"
        ),
        "RNNCell": (
            "a Module whose forward loops over the steps: h = "
            "mg.tanh(self.linear(mg.concatenate([x[:, t], h], 1))) with self.linear = "
            "mg.nn.Linear(inputs + size, size)"
        ),
        "ReLU6": "mg.clip(x, 0.0, 6.0)",
        "SyncBatchNorm": ("mg.nn.BatchNorm2d, which takes the statistics of each rank's own batch"),
        "UninitializedParameter": "mg.nn.Parameter(mg.zeros(shape))",
        "Upsample": "mg.repeat(mg.repeat(x, 2, axis=2), 2, axis=3)",
    },
    "mg.optim": {
        "ASGD": (
            "SGD, and an average of the parameters: average.assign(average + (p - average) / t)"
        ),
        "Adadelta": "RMSprop or Adam",
        "Adamax": "Adam",
        "LBFGS": (
            "an Optimizer that steps once a gradient: Adam, or write the update under mg.no_grad()"
        ),
        "NAdam": "Adam, or SGD(model, momentum=0.9, nesterov=True)",
        "RAdam": "Adam with a LinearWarmup",
        "Rprop": (
            "an Optimizer that steps once a gradient: Adam, or write the update under mg.no_grad()"
        ),
        "SparseAdam": "Adam",
        "swa_utils": (
            "average.assign(average + (p - average) / t) for each parameter of a copy, "
            "model.clone()"
        ),
    },
    "mg.random": {
        "PRNGKey": "mg.Generator(seed)",
        "bernoulli": "mg.rand(p.shape) < p",
        "choice": (
            "x[mg.randint(0, len(x), (n,))], or categorical(logits) for unequal probabilities"
        ),
        "default_rng": "mg.Generator(seed)",
        "exponential": "-mg.log(1 - mg.rand(shape))",
        "get_rng_state": "mg.get_rng_state()",
        "get_state": "mg.get_rng_state()",
        "gumbel": "-mg.log(-mg.log(mg.rand(shape)))",
        "integers": "mg.randint(low, high, shape)",
        "key": "mg.Generator(seed)",
        "manual_seed": "mg.manual_seed(seed)",
        "multinomial": "categorical(mg.log(p), (n,)), with replacement",
        "normal": "mean + std * mg.randn(shape)",
        "permutation": "x[mg.randperm(len(x))]",
        "rand": "mg.rand(shape)",
        "randint": "mg.randint(low, high, shape)",
        "randn": "mg.randn(shape)",
        "random": "mg.rand(shape)",
        "seed": "mg.manual_seed(seed)",
        "set_state": "mg.set_rng_state(saved)",
        "shuffle": "x[mg.randperm(len(x))]",
        "standard_normal": "mg.randn(shape)",
        "uniform": "low + (high - low) * mg.rand(shape)",
    },
    "mg.linalg": {
        "cholesky_solve": "mg.linalg.solve(a, b)",
        "cond": "np.linalg.cond(a.numpy())",
        "cross": "a[..., [1, 2, 0]] * b[..., [2, 0, 1]] - a[..., [2, 0, 1]] * b[..., [1, 2, 0]]",
        "det": (
            "mg.prod(mg.diagonal(mg.linalg.cholesky(a), axis1=0, axis2=1)) ** 2 of a positive "
            "definite a"
        ),
        "diagonal": "mg.diagonal(x, axis1=0, axis2=1)",
        "eig": "np.linalg.eig(a.numpy()) outside the graph",
        "eigh": "np.linalg.eigh(a.numpy()) outside the graph",
        "eigvals": "np.linalg.eigvals(a.numpy()) outside the graph",
        "eigvalsh": "np.linalg.eigvalsh(a.numpy()) outside the graph",
        "inv": "mg.linalg.solve(a, mg.eye(n))",
        "matmul": "a @ b",
        "matrix_norm": "mg.norm(x)",
        "matrix_power": "a @ a @ a",
        "matrix_rank": "np.linalg.matrix_rank(a.numpy())",
        "norm": "mg.norm(x)",
        "outer": "mg.outer(a, b)",
        "pinv": "mg.linalg.lstsq(a, mg.eye(m)).solution",
        "qr": "mg.linalg.cholesky of a positive definite matrix, mg.linalg.lstsq for least squares",
        "slogdet": (
            "2 * mg.log(mg.diagonal(mg.linalg.cholesky(a), axis1=0, axis2=1)).sum() of a positive "
            "definite a"
        ),
        "solve_triangular": "mg.linalg.solve(a, b)",
        "svd": (
            "mg.linalg.cholesky of a positive definite matrix, mg.linalg.lstsq for least squares"
        ),
        "vector_norm": "mg.norm(x)",
    },
}
