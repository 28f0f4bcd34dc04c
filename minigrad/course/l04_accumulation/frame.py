"""An engine of your own: NumPy, and nothing else. Lesson 04 puts it together."""

import sys

import numpy as np


class Node:
    """One recorded operation, or a leaf: op, inputs (Nodes, or None), saved, line, shape."""

    def __init__(self, op, inputs=(), saved=(), line="", shape=()):
        self.op, self.inputs, self.saved, self.line, self.shape = op, inputs, saved, line, shape


class Variable:
    """An array that remembers which Node made it."""

    def __init__(self, data, node=None):
        self.data = np.asarray(data, dtype=float)
        self.node = node

    def __add__(self, other):
        a, b = self.data, values(other)
        return record("add", a + b, (self, other), ())

    def __mul__(self, other):
        a, b = self.data, values(other)
        both = np.broadcast_arrays(a, b)
        return record("mul", a * b, (self, other), tuple(both))

    def __matmul__(self, other):
        a, b = self.data, values(other)
        return record("matmul", a @ b, (self, other), (a, b))

    __radd__, __rmul__ = __add__, __mul__


def parameter(data):
    """Return a leaf: a Variable that gets a gradient."""
    data = np.array(data, dtype=float)
    return Variable(data, Node("leaf", shape=data.shape))


def values(x):
    """Return a Variable's array; turn anything else into an array."""
    return x.data if isinstance(x, Variable) else np.asarray(x, dtype=float)


def record(op, data, inputs, saved):
    """Return a result with its Node, or without one if no input has a Node."""
    nodes = tuple(x.node if isinstance(x, Variable) else None for x in inputs)
    if not any(nodes):
        return Variable(data)
    return Variable(data, Node(op, nodes, saved, shape=data.shape))


def tanh(x):
    """Return tanh(x)."""
    y = np.tanh(x.data)
    return record("tanh", y, (x,), (y,))


def cross_entropy(logits, labels):
    """Return the mean of -log softmax(logits) at the labels."""
    shifted = logits.data - logits.data.max(axis=1, keepdims=True)
    probabilities = np.exp(shifted)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    loss = -np.log(probabilities[rows, labels]).mean()
    return record("cross_entropy", loss, (logits,), (probabilities, labels))


def cross_entropy_backward(dy, probabilities, labels):
    """Backward pass of cross_entropy: probabilities minus what they should have been."""
    wanted = np.eye(probabilities.shape[1])[labels]
    return dy * (probabilities - wanted) / len(labels)


# --- 01.mul_backward
def mul_backward(dy, a, b):
    """Backward pass of y = a * b, elementwise."""
    return dy * b, dy * a


# --- 01.tanh_backward
def tanh_backward(dy, y):
    """Backward pass of y = tanh(x), from its output."""
    return dy * (1 - y * y)


# --- 02.topo_order
def topo_order(root):
    """Put the nodes that root depends on into an order, inputs first."""
    order, seen, stack = [], set(), [(root, False)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(source, False) for source in node.inputs if source is not None]
    return order


# --- 03.find_cycle
def find_cycle(root):
    """Return a path of nodes that ends where it begins, None where there is none."""
    path, done, stack = [], set(), [(root, False)]
    while stack:
        node, is_left = stack.pop()
        if is_left:
            done.add(path.pop())
        elif node in path:
            return [*path[path.index(node) :], node]
        elif node not in done:
            path.append(node)
            stack.append((node, True))
            stack += [(source, False) for source in node.inputs if source is not None]
    return None


# --- 04.unbroadcast
def unbroadcast(g, shape):
    """Sum a gradient back into the shape that an operand had before it was broadcast."""
    numbers = np.broadcast_to(np.arange(np.prod(shape, dtype=int)).reshape(shape), g.shape)
    total = np.bincount(numbers.ravel(), g.ravel(), np.prod(shape, dtype=int))
    return total.reshape(shape)


# --- 04.accumulate
def accumulate(grads, key, g):
    """Add a gradient that has just arrived to the sum in grads[key]."""
    grads[key] = grads[key] + g if key in grads else np.array(g)


# --- 04.microbatch_step
def microbatch_step(w, batches, mean_gradient, learning_rate):
    """Take one step of gradient descent on data that comes in pieces."""
    weights = np.array([len(x) for x, _ in batches]) / sum(len(x) for x, _ in batches)
    slopes = [mean_gradient(w, x, y) for x, y in batches]
    return w - learning_rate * np.tensordot(weights, slopes, axes=1)


# --- the engine
RULES = {
    "add": lambda dy: (dy, dy),
    "mul": mul_backward,
    "matmul": lambda dy, a, b: (dy @ b.T, a.T @ dy),
    "tanh": lambda dy, y: (tanh_backward(dy, y),),
    "cross_entropy": lambda dy, p, labels: (cross_entropy_backward(dy, p, labels),),
}


def backward(loss):
    """Return the gradients of a loss, a dict from Node to array."""
    cycle = find_cycle(loss.node)
    if cycle is not None:
        raise ValueError("a cycle: " + " -> ".join(node.op for node in cycle))
    grads = {}
    accumulate(grads, loss.node, np.ones(()))
    for node in reversed(topo_order(loss.node)):
        if node.op == "leaf":
            continue
        found = RULES[node.op](grads.pop(node), *node.saved)
        node.saved = ()  # used for the last time
        for source, g in zip(node.inputs, found, strict=True):
            if source is not None:
                accumulate(grads, source, unbroadcast(np.asarray(g), source.shape))
    return grads


SHAPES = [(64, 48), (48,), (48, 10), (10,)]


def cut(flat):
    """Return the four parameters as views of one flat array."""
    ends = np.cumsum([np.prod(shape) for shape in SHAPES])[:-1]
    return [part.reshape(shape) for part, shape in zip(np.split(flat, ends), SHAPES, strict=True)]


def network(x, w1, b1, w2, b2):
    """Return the logits; tanh(h) times a gate from 0 to 1, so h is used twice."""
    h = x @ w1 + b1
    gate = 0.5 * tanh(0.5 * h) + 0.5
    return (tanh(h) * gate) @ w2 + b2


def mean_gradient(flat, x, y):
    """Return the gradient of the mean loss over some rows, flat like the parameters."""
    leaves = [parameter(part) for part in cut(flat)]
    loss = cross_entropy(network(Variable(x), *leaves), y)
    LOSSES.append((len(x), float(loss.data)))
    grads = backward(loss)
    return np.concatenate([grads[leaf.node].ravel() for leaf in leaves])


LOSSES = []  # per batch its rows and its loss


def train(flat, x, y, order, learning_rate=0.5, batch=64, piece=40):
    """Take a step per batch of rows, each in pieces; return the parameters and the losses."""
    LOSSES.clear()
    means = []
    for rows in order:
        for start in range(0, len(rows), batch):
            chosen = rows[start : start + batch]
            pieces = [chosen[i : i + piece] for i in range(0, len(chosen), piece)]
            flat = microbatch_step(
                flat, [(x[p], y[p]) for p in pieces], mean_gradient, learning_rate
            )
            done = LOSSES[-len(pieces) :]
            means.append(sum(n * loss for n, loss in done) / len(chosen))
    return flat, np.array(means)


def accuracy(flat, x, y):
    """Return the share of rows that are read correctly."""
    logits = network(Variable(x), *map(Variable, cut(flat)))
    return float((logits.data.argmax(axis=1) == y).mean())


if __name__ == "__main__":
    with np.load(sys.argv[1]) as data:
        trained, _ = train(data["flat"], data["x"], data["y"], data["order"])
        sys.stdout.write(f"{accuracy(trained, data['x_new'], data['y_new']):.4f}\n")
