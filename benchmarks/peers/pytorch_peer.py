"""PyTorch in eager mode, in its best form: fused operations, fused Adam, no denormals."""

import torch
from torch.nn import functional as F

from benchmarks import initial
from benchmarks.case import Case, repeated, training


def prepare(threads):
    """Sets the number of threads, and flushes denormals to zero."""
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)


def version():
    """The version of the library."""
    return torch.__version__


def tensors(arrays):
    """Tensors of the arrays' values, in memory of their own."""
    return {name: torch.tensor(value) for name, value in arrays.items()}


def trained(loss, data, parameters):
    """A step of Adam on `loss(batch, parameters)`: the case, and what holds memory."""
    batch = tensors(data)
    values = {name: p.requires_grad_() for name, p in tensors(parameters).items()}
    start = tensors(parameters)
    optimizer = torch.optim.Adam(values.values(), 1e-3, fused=True)

    def step():
        value = loss(batch, values)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        return value

    def reset():
        with torch.no_grad():
            for name, p in values.items():
                p.copy_(start[name])
        for state in optimizer.state.values():
            for value in state.values():
                value.zero_()

    return training(step, reset, lambda value: value.item()), batch, values, optimizer


def mlp_loss(layers):
    """Linear layers with relu between them, and cross entropy."""

    def loss(batch, p):
        h = batch["x"]
        for k in range(layers):
            h = F.linear(h, p[f"w{k}"], p[f"b{k}"])
            if k < layers - 1:
                h = F.relu(h)
        return F.cross_entropy(h, batch["y"])

    return loss


def cnn_loss(batch, p):
    """Two convolutions, each with relu and max pooling, and a linear layer."""
    h = F.max_pool2d(F.relu(F.conv2d(batch["x"], p["c0"], p["d0"], padding=1)), 2)
    h = F.max_pool2d(F.relu(F.conv2d(h, p["c1"], p["d1"], padding=1)), 2)
    return F.cross_entropy(F.linear(h.flatten(1), p["w"], p["b"]), batch["y"])


def block_output(x, p, heads, prefix=""):
    """A pre-norm transformer block with causal attention."""

    def get(name):
        return p[prefix + name]

    batch, length, width = x.shape
    h = F.layer_norm(x, (width,), get("norm1"), get("shift1"))
    qkv = F.linear(h, get("qkv"), get("qkv_bias"))
    q, k, v = qkv.view(batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
    h = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    h = h.transpose(1, 2).reshape(batch, length, width)
    x = x + F.linear(h, get("out"), get("out_bias"))
    h = F.layer_norm(x, (width,), get("norm2"), get("shift2"))
    h = F.gelu(F.linear(h, get("up"), get("up_bias")), approximate="tanh")
    return x + F.linear(h, get("down"), get("down_bias"))


def transformer_loss(heads, layers):
    """Embeddings, blocks, a last norm, and cross entropy of the next token."""

    def loss(batch, p):
        h = F.embedding(batch["x"], p["tokens"]) + p["positions"]
        for k in range(layers):
            h = block_output(h, p, heads, f"{k}.")
        h = F.layer_norm(h, (h.shape[-1],), p["norm"], p["shift"])
        logits = F.linear(h, p["head"])
        return F.cross_entropy(logits.flatten(0, 1), batch["y"].flatten())

    return loss


def step_of_mlp(sizes, batch):
    """A training step of a multi-layer perceptron."""
    return trained(mlp_loss(len(sizes) - 1), *initial.mlp(sizes, batch))


def step_of_cnn(batch, channels, size):
    """A training step of a small convolutional network."""
    return trained(cnn_loss, *initial.cnn(batch, channels, size))


def step_of_transformer(width, heads, length, batch, layers, vocabulary):
    """A training step of a small language model."""
    arrays = initial.transformer(width, heads, length, batch, layers, vocabulary)
    return trained(transformer_loss(heads, layers), *arrays)


def differentiated(function, data, parameters):
    """Forward and backward of `function(x, parameters)` with the upstream gradient dy."""
    x, dy = tensors(data).values()
    p = tensors(parameters)
    leaves = [x, *p.values()]
    for leaf in leaves:
        leaf.requires_grad_()

    def step():
        for leaf in leaves:
            leaf.grad = None
        function(x, p).backward(dy)

    return repeated(step, lambda: [leaf.grad for leaf in leaves if leaf.grad is not None])


def chain(count):
    """Repeats v = v * a + a on one element."""
    a = torch.tensor([1.0001], requires_grad=True)

    def step():
        v = a
        for _ in range(count):
            v = v * a + a
        a.grad = None
        v.backward()

    return repeated(step, lambda: [a.grad])


def gelu(count):
    """0.5 x (1 + tanh(0.797885 (x + 0.044715 x^3))), op by op, and the gradient of its sum."""
    x = tensors(initial.vector(count)[0])["x"].requires_grad_()

    def step():
        x.grad = None
        (0.5 * x * (1.0 + torch.tanh(0.797885 * (x + 0.044715 * x * x * x)))).sum().backward()

    return repeated(step, lambda: [x.grad])


def block(width, heads, length, batch):
    """One transformer block, forward and backward."""
    arrays = initial.block(width, heads, length, batch)
    return differentiated(lambda x, p: block_output(x, p, heads), *arrays)


def conv2d_forward(**shape):
    """A convolution without recording."""
    data, parameters = initial.conv2d(**shape)
    x, w, seen = torch.tensor(data["x"]), torch.tensor(parameters["w"]), []

    def step():
        with torch.no_grad():
            seen[:] = [F.conv2d(x, w, padding=1)]

    return repeated(step, lambda: seen)


def conv2d_backward(**shape):
    """The backward pass of a convolution, again and again over one graph."""
    data, parameters = initial.conv2d(**shape)
    x, dy = tensors(data).values()
    x.requires_grad_()
    w = torch.tensor(parameters["w"], requires_grad=True)
    y = F.conv2d(x, w, padding=1)

    def step():
        x.grad = w.grad = None
        y.backward(dy, retain_graph=True)

    return repeated(step, lambda: [x.grad, w.grad])


def softmax(rows, columns):
    """Softmax along rows."""
    data, _ = initial.rows(rows, columns)
    return differentiated(lambda x, p: F.softmax(x, -1), data, {})


def layer_norm(rows, columns):
    """Layer norm along rows."""
    arrays = initial.rows(rows, columns)
    return differentiated(lambda x, p: F.layer_norm(x, (columns,), p["w"], p["b"]), *arrays)


def adam(shapes):
    """Adam alone: gradients stay as they are."""
    gradients, values = initial.adam(shapes)
    parameters = [torch.tensor(v, requires_grad=True) for v in values.values()]
    for p, g in zip(parameters, gradients.values(), strict=True):
        p.grad = torch.tensor(g)
    optimizer = torch.optim.Adam(parameters, 1e-3, fused=True)
    start = [p.detach().clone() for p in parameters]

    def reset():
        with torch.no_grad():
            for p, value in zip(parameters, start, strict=True):
                p.copy_(value)
        for state in optimizer.state.values():
            for value in state.values():
                value.zero_()

    def numbers():
        reset()
        for _ in range(3):
            optimizer.step()
        return [float((p - s).abs().mean()) for p, s in zip(parameters, start, strict=True)][:3]

    return Case(optimizer.step, reset, numbers)


def held_bytes(built):
    """Bytes of activations, gradients and optimizer state in one step.

    Activations are the storages that the graph saves, each once; parameters and the batch,
    which the user holds, are not counted.
    """
    case, batch, parameters, optimizer = built
    for _ in range(3):
        case.step()
    users = {t.untyped_storage().data_ptr() for t in (*batch.values(), *parameters.values())}
    saved = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in users:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        case.step()
    gradients = sum(p.grad.nbytes for p in parameters.values())
    state = sum(v.nbytes for s in optimizer.state.values() for v in s.values())
    return sum(saved.values()) + gradients + state


BUILDERS = {
    "chain": chain,
    "mlp": lambda **s: step_of_mlp(**s)[0],
    "cnn": lambda **s: step_of_cnn(**s)[0],
    "transformer": lambda **s: step_of_transformer(**s)[0],
    "gelu": gelu,
    "block": block,
    "conv2d_forward": conv2d_forward,
    "conv2d_backward": conv2d_backward,
    "softmax": softmax,
    "layer_norm": layer_norm,
    "adam": adam,
    "memory_mlp": lambda **s: held_bytes(step_of_mlp(**s)),
    "memory_cnn": lambda **s: held_bytes(step_of_cnn(**s)),
    "memory_transformer": lambda **s: held_bytes(step_of_transformer(**s)),
}
