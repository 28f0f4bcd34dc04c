"""PyTorch in eager mode, in its best form: fused operations and optimizers, no denormals."""

import torch
from torch.nn import functional as F

from benchmarks import initial
from benchmarks.case import repeated
from benchmarks.peers.pytorch_cases import builders, tensors


def prepare(threads):
    """Sets the number of threads, and flushes denormals to zero."""
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)


def version():
    """The version of the library."""
    return torch.__version__


def plain(function):
    """The function itself."""
    return function


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


BUILDERS = {**builders(plain), "chain": chain, "conv2d_backward": conv2d_backward}
