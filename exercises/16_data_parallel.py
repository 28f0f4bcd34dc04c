"""Lesson 16: several workers train one model.

Each worker has a copy of the model and a part of the rows. After each step
all copies must be the same, to the last bit. A worker knows its `rank`, 0
to size - 1, and `size`, how many workers there are, and has two methods:

    worker.send(to, array)    sends the array, as it is now, to the worker
                              of rank `to`, and goes on at once
    worker.receive(source)    waits for the next array from the worker of
                              rank `source`, and returns it, to keep or to
                              change; raises an error if it will never come

What one worker sends to another arrives in the order of sending. Python and
NumPy are enough.
"""

import numpy as np


def shard(data, k):
    """Cut rows into k parts that are as equal as possible.

    Each part has rows that lie together, the parts are in order, and each
    row is in exactly one of them. If the rows cannot be shared out equally,
    the first parts have one row more than the others. (np.array_split, and
    np.split, which calls it, are closed while this is graded.)

    Args:
        data: array (n, ...); n may be smaller than k, and 0.
        k: int, 1 or more.

    Returns:
        list of k arrays. A part without rows has shape (0, ...).
    """
    raise NotImplementedError("shard is yours to write")


def ring_all_reduce(worker, x):
    """Add up the arrays of all workers; every worker gets the sum.

    All workers call this at the same time, each with its own x. A worker
    sends only to the next one, which is rank + 1, and for the last one 0;
    and receives only from the one before. It cuts its array into as many
    chunks as there are workers, and works in two rounds of size - 1 steps.
    In each step it sends one chunk and receives another one:

        In round 1 what it receives is added to what it has in that chunk.
        Afterwards each worker has the sum of one chunk, each of another.

        In round 2 these sums go around. What it receives takes the place of
        what it has in that chunk.

    With which chunk a worker begins, and which entries are in which, is up
    to you. It sends at most 2 * (size - 1) chunks, each of x's type and of
    at most N / size entries, rounded up, where N is how many x has. If N is
    less than size, some chunks are empty; send these too, or leave it, as
    long as nobody waits for them.

    Args:
        worker: this worker.
        x: array of float64 or float32, of any shape, such as () or (0, 3);
            it has the same shape and type on all workers. Leave it as it
            is.

    Returns:
        A new array of x's shape and type, also with one worker or without
        an entry: the sum, the same bits on all workers. If a worker has
        died, the error that receive raises comes out of this function, on
        all others.
    """
    raise NotImplementedError("ring_all_reduce is yours to write")


def dp_step(all_reduce, gradient, w, x, y, learning_rate):
    """Make one step of SGD together with other workers.

    The step is that of one worker which has the rows of all:

        w = w - learning_rate * gradient of the mean loss over all rows

    Each worker calls this at the same time, with its own rows and its own
    copy of w. All copies are the same before, and must be afterwards, to
    the last bit.

    Args:
        all_reduce: function; all_reduce(a) returns the sum of the a of all
            workers, a new array of a's shape, the same bits on all. All
            workers call it equally often, with arrays of the same shape.
            It raises an error if a worker has died.
        gradient: function; gradient(w, x, y) returns a new array of w's
            shape: the gradient of the *mean* loss over these rows. Of no
            rows there is no mean, and it is nan. (If a worker that has
            rows gets nan, the new weights are nan, as with one worker.)
        w: array of float64, of any shape, such as (). Write the new weights
            *into* it. If all_reduce raises, in whichever call, that error
            comes out of this function, and w is as it was before the step.
        x, y: this worker's rows, arrays with n rows each; leave them as
            they are. n may be another one on each worker, also 0; some
            worker has a row.
        learning_rate: float.

    Returns:
        None: the result is in w.
    """
    raise NotImplementedError("dp_step is yours to write")


# --- Bug hunt -------------------------------------------------------------
# Workers train one linear model, in six stages. They add noise to their
# rows, which makes a model less sensitive, and that must be other noise on
# each worker. The training runs without an error, all gradients are summed
# over all workers, and the loss falls. Only the copies of the model are not
# the same. Each stage does what its docstring says, and in one of them that
# is not enough. Write its place in STAGES (0 to 5) into BUG, then repair
# the training: all workers begin with the weights that worker 0 begins with
# now.

BUG = ("stage", None)


def number(workers):
    """Give each worker its rank, and for its noise a seed of its own."""
    for rank, s in enumerate(workers):
        s["rank"], s["own_seed"] = rank, [s["seed"], rank]


def initialise(workers):
    """Give each worker its weights, random numbers."""
    for s in workers:
        random = np.random.default_rng(s["seed"] + s["rank"])
        s["w"] = random.normal(size=s["rows"].shape[1])


def take(workers):
    """Give each worker its rows of this step, and add its own noise."""
    k = len(workers)
    for s in workers:
        mine = s["batch"][s["rank"] :: k]
        random = np.random.default_rng([*s["own_seed"], s["step"]])
        noise = random.normal(scale=0.1, size=(len(mine), s["w"].size))
        s["x"], s["y"] = s["rows"][mine] + noise, s["targets"][mine]


def differentiate(workers):
    """Compute each worker's gradient: a sum over its rows, of squares."""
    for s in workers:
        s["g"] = 2 * s["x"].T @ (s["x"] @ s["w"] - s["y"])
        s["n"] = len(s["x"])


def reduce(workers):
    """Give each worker the mean gradient over the rows of all."""
    total = sum(s["g"] for s in workers)
    n_rows = sum(s["n"] for s in workers)
    for s in workers:
        s["g"] = total / n_rows


def move(workers):
    """Make each worker's step."""
    for s in workers:
        s["w"] = s["w"] - s["learning_rate"] * s["g"]


STAGES = [number, initialise, take, differentiate, reduce, move]


def train_replicas(rows, targets, k, seed, batches, learning_rate):
    """Train one linear model with k workers.

    A step is that of one worker which has the noisy rows of all.

    Args:
        rows: array (n, m) of float64.
        targets: array (n,) of float64.
        k: int, the number of workers.
        seed: int.
        batches: list, for each step an array of row numbers, at least one.
        learning_rate: float.

    Returns:
        array (steps + 1, k, m): the weights of each worker, at first and
        after each step.
    """
    workers = [
        {"seed": seed, "rows": rows, "targets": targets} for _ in range(k)
    ]
    for stage in STAGES[:2]:
        stage(workers)
    path = [[s["w"].copy() for s in workers]]
    for step, batch in enumerate(batches):
        for s in workers:
            s["batch"], s["step"] = batch, step
            s["learning_rate"] = learning_rate
        for stage in STAGES[2:]:
            stage(workers)
        path.append([s["w"].copy() for s in workers])
    return np.array(path)
