"""The steps that docs/compile.md shows: its listings name the lines of this file."""

import functools

import minigrad as mg


def training(sizes, make_optimizer, calls, x, y):
    """A training step of an MLP over three sizes, called so often.  make_optimizer(model)."""
    inputs, hidden, classes = sizes
    mg.manual_seed(0)
    model = mg.nn.Sequential(
        mg.nn.Linear(inputs, hidden), mg.nn.ReLU(), mg.nn.Linear(hidden, classes)
    )
    optimizer = make_optimizer(model)
    gm = mg.GradManager(model.parameters())

    @mg.compile
    def step(x, y):
        with gm:
            loss = mg.cross_entropy(model(x), y)
            gm.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    for _ in range(calls):
        step(x, y)
    return step


def adam(model):
    """What trains the digits."""
    return mg.optim.Adam(model, learning_rate=1e-3)


@functools.cache
def trained():
    """A training step of the digits, called twice."""
    images, labels = mg.data.load_digits()
    x = mg.variable(images[:32].reshape(32, 64), dtype="float32")
    return training((64, 32, 10), adam, 2, x, mg.variable(labels[:32]))


@functools.cache
def wide():
    """A layer whose product is large, called twice."""
    layer = mg.nn.Linear(512, 512)

    @mg.compile
    @mg.no_grad()
    def forward(x):
        return mg.relu(layer(x))

    for _ in range(2):
        forward(mg.zeros((256, 512)))
    return forward


def branch():
    """A branch on a value."""

    @mg.compile
    def step(x):
        return x * 2 if x.sum() > 0 else x

    step(mg.ones((3,)))
    step(mg.ones((3,)))


def changed():
    """A number that was frozen."""
    scale = [1.0]

    @mg.compile
    def step(x):
        return x * sum(scale)

    for k in range(4):
        scale[0] = 1.0 + k
        step(mg.ones((3,)))


def kept():
    """A value that is kept."""
    history = []

    @mg.compile
    def step(x):
        y = x.exp()
        history.append(y)
        return y.sum()

    step(mg.ones((3,)))
    step(mg.ones((3,)))


def donated():
    """A use of donated memory."""

    @mg.compile(donate="x")
    def shift(x, by):
        return x + by

    x, by = mg.zeros((3,)), mg.ones((3,))
    for _ in range(3):
        y = shift(x, by)
        x, old = y, x
    old.sum()


@functools.cache
def simulated():
    """The training step of the digits on the simulated GPU, called twice."""
    with mg.device("simt"):
        x, y = mg.zeros((32, 64)), mg.zeros((32,), "int64")
        return training((64, 32, 10), adam, 2, x, y)
