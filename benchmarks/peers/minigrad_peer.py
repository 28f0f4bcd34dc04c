"""minigrad in eager mode."""

from importlib import metadata

import minigrad as mg
from benchmarks import initial
from benchmarks.case import repeated
from benchmarks.peers.minigrad_cases import builders


def prepare(threads):
    """Nothing: the number of threads is set by the environment."""


def version():
    """The version of the library."""
    return metadata.version("minigrad")


def plain(function):
    """The function itself."""
    return function


def chain(count):
    """Repeats v = v * a + a on one element."""
    a = mg.variable([1.0001], requires_grad=True)

    def step():
        v = a
        for _ in range(count):
            v = v * a + a
        a.grad = None
        v.backward()

    return repeated(step, lambda: [a.grad.numpy()])


def conv2d_backward(**shape):
    """The backward pass of a convolution, again and again over one graph."""
    data, parameters = initial.conv2d(**shape)
    x, dy = mg.variable(data["x"], requires_grad=True), mg.variable(data["dy"])
    w = mg.variable(parameters["w"], requires_grad=True)
    y = mg.conv2d(x, w, padding=1)

    def step():
        x.grad = w.grad = None
        y.backward(dy, retain_graph=True)

    return repeated(step, lambda: [x.grad.numpy(), w.grad.numpy()])


BUILDERS = {**builders(plain), "chain": chain, "conv2d_backward": conv2d_backward}
