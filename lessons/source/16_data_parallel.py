# %% [markdown]
# # 16 · Who waits for whom?
#
# **You need** to know what a step of SGD is (lesson 08), and that the gradient of a mean over rows
# is the mean of their gradients (lesson 04). **It takes** about 125 minutes; after section 3 is a
# good place for a break. **At the end** several workers train one model, with a sum over all of
# them that *you* wrote; you can say what each of them sends, who waits for whom, and what happens
# when one dies. Next: a capstone of your own.
#
# Your code goes into `exercises/16_data_parallel.py`. All of it is plain NumPy.

# %% tags=["live"]
from minigrad.course import watch

watch("16")  # what you save in exercises/16_data_parallel.py is graded here at once

# %%
import matplotlib.pyplot as plt
import numpy as np

import minigrad as mg
from minigrad.course import check, hint, light, load, needs, predict, scrub
from minigrad.course.l16_data_parallel.drawing import Rounds, draw_waits
from minigrad.course.l16_data_parallel.driver import run_workers
from minigrad.course.l16_data_parallel.ranks import launch

plt.style.use("minigrad.course.house")
images, labels = mg.data.load_digits()
pixels = images.reshape(-1, 64)

# %% [markdown]
# ## 1. One batch, several workers
#
# A training step takes a batch of rows and computes one gradient. Nothing in it says that one
# machine must do this alone. In **data parallel** training each worker has
#
# - a whole copy of the model, a *replica*, and
# - a part of the rows of each batch, its *shard*.
#
# Each computes the gradient of its own rows. Then the gradients are summed over all workers, and
# each makes the same step. PyTorch's `DistributedDataParallel` does this, Horovod did it for
# TensorFlow and others, and minigrad has `mg.distributed.DataParallel`. A step ends when the
# slowest worker has ended, so the parts should be as equal as possible.
#
# **Write** `shard`.

# %% tags=["exercise"]
check("16.shard")

# %%
needs("16.shard")
mine = load("16")
for k in (2, 4, 7):
    parts = mine.shard(pixels, k)
    print(f"{len(pixels)} digits on {k} workers:", ", ".join(str(len(part)) for part in parts))

# %% [markdown]
# ## 2. A sum that everybody gets
#
# Every worker has an array, and every worker needs the sum of all: that is an **all-reduce**. The
# simplest way is that each sends its whole array to one of them, which adds them up and sends the
# sum back. With 16 workers and 100 MB of gradients that one receives 1,500 MB and sends
# 1,500 MB, while all others wait.
#
# A **ring** shares out the work. Each worker sends to the next one only, and receives from the one
# before. The array is cut into as many chunks as there are workers, and there are two rounds. In
# the first, chunks go around and everybody adds (a *reduce-scatter*): then each worker has the sum
# of one chunk. In the second, these sums go around (an *all-gather*).
#
# **Predict.** 16 workers, 100 MB of gradients each. How many MB does *each* worker send in the two
# rounds together?

# %% tags=["prediction"]
sent = predict("16.sent", "A ring of 16 workers, arrays of 100 MB: how many MB does each send?")
sent

# %% [markdown]
# **Write** `ring_all_reduce`. (It is the longest exercise of the lesson. Take paper, three workers
# and three chunks.) Your workers can send and receive, and nothing else. The check lets one of them
# run at a time, in a fixed order. So each run goes the same way, and when nobody can go on, it says
# at once who waits for whom.

# %% tags=["exercise"]
check("16.ring_all_reduce")

# %%
needs("16.ring_all_reduce")
mine = load("16")
arrays = [(np.random.default_rng(r).normal(size=1600),) for r in range(16)]
sums, _, post = run_workers(mine.ring_all_reduce, arrays)
nbytes = [sum(array.nbytes for _, array in one) for one in post.sent]
sent.reveal(round(max(nbytes) / arrays[0][0].nbytes * 100, 1), factor=1.02)
print(f"each array has {arrays[0][0].nbytes} bytes; each worker sent", *sorted(set(nbytes)))
print("the same bits on all workers:", len({one.tobytes() for one in sums}) == 1)

# %% [markdown]
# Each worker sends $2(k-1)$ chunks of $N/k$ bytes, together $2\frac{k-1}{k}N$: less than twice its
# array, *however many workers there are*. (What grows is the number of steps, and each step costs
# the time that a message needs to get through. This is why NVIDIA's library NCCL, which sums for
# PyTorch on GPUs, also has trees: on many machines they need fewer steps.)
#
# Here is your ring with four workers. Each cell is a chunk, and its text says whose numbers are in
# it.

# %%
needs("16.ring_all_reduce")
mine = load("16")
rounds = Rounds(mine.ring_all_reduce, 4)
steps = [*range(len(rounds.held))]
scrub(rounds.draw, steps, label="step", show=[0, 1, 2, 3, 4, 6], height=2.6)

# %% [markdown]
# **What to see.** An orange frame marks the chunk that a worker sends in this step, a blue one what
# the next worker makes of it. In the first three steps the texts in the frames get longer. After
# step 3 each worker has one green chunk, a complete sum, and each a different one. In the last
# three steps the green chunks go around, and replace what was there.
#
# Why must the bits be the same? Look at who adds: each chunk is added up *once*, on its way around,
# in one order. Then its sum is copied. If each worker added up all four arrays by itself, in an
# order of its own, the sums would differ in the last bits:

# %%
x = [np.float32(one) for one in (1e8, 1.0, -1e8, 1.0)]
print("0 1 2 3:", ((x[0] + x[1]) + x[2]) + x[3], " 3 0 1 2:", ((x[3] + x[0]) + x[1]) + x[2])

# %% [markdown]
# ## 3. Real processes
#
# So far the workers were played by one process. Now three processes train on digits, and your
# function sums their gradients: `mg.use(all_reduce=...)` puts it into `mg.distributed`, where
# `send` and `receive` are messages of MPI. The processes are started by `minigrad run`, as in a
# terminal. (Without MPI, a card below says what to install, and the three are threads.)
#
# The script notes when each rank waits in `receive`, and for whom. Rank 1 is slow: it sleeps for 30
# milliseconds where the sum of the gradients begins. (Why there, and not in the forward pass?
# Before each sum minigrad compares what the ranks ask for, and all of them would wait there for the
# slow one: outside of your function, where the script notes nothing.)

# %%
TRAIN = """
import time

import minigrad as mg
from minigrad import distributed as d
from minigrad.course import load
from minigrad.course.l16_data_parallel.ranks import die, report, timed

d.init()
SLOW, DIES = SLOW_RANK, DEAD_RANK
images, labels = mg.data.load_digits()
pixels = images.reshape(-1, 64).astype("float32")
events, losses, starts = [], [], []
timed_ring = timed(load("16").ring_all_reduce, events)


def my_sum(worker, x):
    if worker.rank == SLOW and x.size > 1:
        time.sleep(0.03)
    return timed_ring(worker, x)


def new_model():
    mg.manual_seed(3)
    return mg.nn.Sequential(mg.nn.Linear(64, 32), mg.nn.ReLU(), mg.nn.Linear(32, 10))


with mg.use(all_reduce=my_sum):
    model = new_model()
    for p in model.parameters():  # the same on all ranks, whatever their seeds were
        p.assign(d.broadcast(p.detach()))
    replica = d.DataParallel(model)
    optimizer = mg.optim.SGD(model, learning_rate=0.1, momentum=0.9)
    ((x, y),) = d.batches(pixels[:512], labels[:512], batch_size=512)  # this rank's rows
    for step in range(20):
        starts.append(time.time())
        if d.rank() == DIES and step == 5:
            die()
        loss = mg.cross_entropy(model(mg.variable(x)), mg.variable(y))
        replica.backward(loss, weight=len(x))
        optimizer.step()
        optimizer.zero_grad()
        losses.append(d.all_reduce(loss.detach(), "weighted", weight=len(x)).item())
    replica.check()  # an error, if the replicas differ in a single bit

report(losses=losses, events=events, starts=starts, rows=len(x))
"""


def script(slow=1, dies=None):
    """Return the script, with the rank that is slow, and the one that dies."""
    return TRAIN.replace("SLOW_RANK", repr(slow)).replace("DEAD_RANK", repr(dies))


# %%
needs("16.ring_all_reduce")
three = launch(script(), ranks=3)
three

# %% [markdown]
# The same training in one process, with all rows, for comparison:


# %%
def train_alone():
    """Train on the same 512 digits in this process; return the losses."""
    mg.manual_seed(3)
    model = mg.nn.Sequential(mg.nn.Linear(64, 32), mg.nn.ReLU(), mg.nn.Linear(32, 10))
    optimizer = mg.optim.SGD(model, learning_rate=0.1, momentum=0.9)
    x, y = mg.variable(pixels[:512].astype("float32")), mg.variable(labels[:512])
    losses = []
    for _ in range(20):
        loss = mg.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


alone = train_alone()

# %%
needs("16.ring_all_reduce")
reports = three.needed()
first = reports[0]
print("rows:", [one["rows"] for one in reports])
figure, (left, right) = plt.subplots(
    1, 2, figsize=(9.8, 3.8), layout="constrained", width_ratios=(1, 1.7)
)
left.plot(alone, linewidth=4, alpha=0.4, label="one process")
left.plot(first["losses"], color="black", linewidth=1, label="three, with your sum")
left.set(xlabel="training step", ylabel="loss", title="The same training")
left.legend()
begin = max(one["starts"][10] for one in reports)
end = max(one["starts"][13] for one in reports)
events, starts = ([one[key] for one in reports] for key in ("events", "starts"))
draw_waits(right, events, starts, begin, end - begin)
right.set_title("Three steps: who waits for whom")
plt.show()

# %%
needs("16.ring_all_reduce")
first = three.needed()[0]
n_sent = sum("to" in one for one in first["events"])
n_sums = n_sent // 4  # 2 * (3 - 1) messages each
print(light("16.ring_all_reduce", mine=first["losses"], reference=alone, calls=n_sums))

# %% [markdown]
# **What to see.** On the left, the black line lies in the middle of the wide one: three processes
# with a third of the rows each make the steps of one. On the right each step has two sums, first of
# the gradients, then of the loss. In the first one rank 2 waits for rank 1, from which it receives.
# Rank 0 waits for rank 2, which is not slow at all: it has nothing to send, because it waits
# itself. Rank 1 waits least; it is the slow one. In a ring, one slow worker makes all others slow,
# and they do not all see who it is. (Where it is grey, a rank computes, sleeps, or waits for the
# others before a sum begins. On a busy machine all bars are longer, and less regular.)

# %% [markdown]
# **Predict.** Now rank 1 is killed in its sixth step, as if its machine had lost power. What do
# ranks 0 and 2 do?

# %% tags=["prediction"]
killed = predict(
    "16.killed",
    "Rank 1 of 3 is killed in the middle of a training. And the others?",
    choices=("wait for ever", "go on without it", "end with an error"),
)
killed

# %%
needs("16.ring_all_reduce")
dead = launch(script(slow=None, dies=1), ranks=3)
came_to_end = [one is not None for one in dead.reports]
ended = "wait for ever" if "did not end" in dead.error else "end with an error"
killed.reveal("go on without it" if came_to_end[0] else ended)
dead

# %% [markdown]
# That is what minigrad does, and it takes an effort. Someone who waits in `receive` hears nothing,
# and that is how long it waits. So each rank of `minigrad run` has a supervisor beside it, which
# notes how the rank ended, and whoever waits looks for such notes. There is a time limit, too, for
# ranks that are alive and do not come. With plain MPI it is the launcher that notices the death of
# a process, and it kills the others; PyTorch's `torchrun` does so, too. With MPI an *exception* in
# one rank is worse: before its process can end, it waits in `MPI_Finalize` for the others, which
# wait for it. `python -m mpi4py train.py` ends all of them instead.
#
# Nobody can go on without rank 1, since nobody else has its rows. A training of many days saves a
# checkpoint now and then, and starts from the last one.

# %% [markdown]
# ## 4. A worker with one row
#
# **Predict.** Two workers. One has one row, and the gradient there is 8. The other has three rows,
# with gradients 0. Each computes the mean over its rows, and then they take the mean of both. What
# is that, where one worker with all four rows would get 2?

# %% tags=["prediction"]
means = predict("16.means", "Gradients 8 on one worker, 0, 0, 0 on the other: the mean of means?")
means

# %%
one, three_rows = np.array([8.0]), np.array([0.0, 0.0, 0.0])
means.reveal(float((one.mean() + three_rows.mean()) / 2), factor=1.01)
print("mean of all rows:", np.concatenate([one, three_rows]).mean())

# %% [markdown]
# The mean of means counts a row more, the fewer others it has beside it. PyTorch's
# `DistributedDataParallel` averages over workers, whatever their number of rows, and leaves it to
# you that they have equally many, or that the loss is weighted
# ([pytorch#37359](https://github.com/pytorch/pytorch/issues/37359), 2020). (Its
# `DistributedSampler` gives some rows twice, so that all workers get as many.) minigrad asks for
# the number: that is the `weight=len(x)` above.
#
# **Write** `dp_step`. Its `all_reduce` is not your ring but a function that you get, so you can
# write it first.

# %% tags=["exercise"]
check("16.dp_step")

# %% [markdown]
# Here it trains a line through points, with three workers that have very different parts. The sum
# is your ring.

# %%
random = np.random.default_rng(0)
points = np.stack([random.uniform(-1, 1, 60), np.ones(60)], axis=1)
heights = points @ np.array([1.5, -0.5]) + random.normal(scale=0.2, size=60)
cuts = [slice(0, 3), slice(3, 3), slice(3, 60)]  # 3 rows, none, 57


def gradient(w, x, y):
    """Return the gradient of the mean of the squared distances."""
    with np.errstate(all="ignore"):
        return 2 * x.T @ (x @ w - y) / np.float64(len(x))


# %%
needs("16.dp_step", "16.ring_all_reduce")
mine = load("16")


def train(worker, rows, weighted):
    """Make 20 steps; return the weights after each."""
    w, path = np.zeros(2), []
    x, y = points[rows], heights[rows]

    def all_reduce(a):
        return mine.ring_all_reduce(worker, np.asarray(a, float))

    for _ in range(20):
        if weighted:
            mine.dp_step(all_reduce, gradient, w, x, y, 0.3)
        else:
            g = gradient(w, x, y) if len(x) else np.zeros(2)
            w -= 0.3 * all_reduce(g) / worker.size
        path.append(w.copy())
    return np.array(path)


yours, *_ = run_workers(train, [(rows, True) for rows in cuts])
naive, *_ = run_workers(train, [(rows, False) for rows in cuts])
w, whole = np.zeros(2), []
for _ in range(20):
    w = w - 0.3 * gradient(w, points, heights)
    whole.append(w)
whole = np.array(whole)
figure, axis = plt.subplots(figsize=(8, 3.6))
axis.plot(whole[:, 0], linewidth=5, alpha=0.4, label="one worker, all rows")
axis.plot(yours[0][:, 0], color="black", linewidth=1, label="three workers, dp_step")
axis.plot(naive[0][:, 0], "--", color="C3", label="three workers, mean of means")
axis.set(xlabel="step", ylabel="slope of the line", title="3, 0 and 57 rows")
axis.set_xticks(range(0, 20, 5))
axis.legend()
plt.show()
print("the same bits on all three:", len({path[-1].tobytes() for path in yours}) == 1)
print("largest difference from one worker:", f"{np.abs(yours[0] - whole).max():.1e}")

# %% [markdown]
# **What to see.** The black line lies on that of one worker with all rows. The red one goes another
# way: the three rows of the first worker count as much as the 57 of the last, and the worker
# without rows slows everything down.

# %% [markdown]
# ## 5. Bug hunt
#
# **Predict.** Two workers train one model. Their gradients are summed and their steps are the same,
# but they began with different weights. What becomes of the difference?

# %% tags=["prediction"]
apart = predict(
    "16.apart",
    "Different weights at first, the same summed gradients: the difference of the weights …",
    choices=("goes away", "stays as it is", "grows"),
)
apart

# %% [markdown]
# At the end of your exercise file is `train_replicas`: data parallel training in six stages, all
# workers in one process. Here is *your* file with three workers, on the points from above.

# %%
mine = load("16")
batches = [np.arange(60)] * 25
weights = mine.train_replicas(points, heights, 3, 7, batches, 0.1)
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
for rank, style in enumerate(("-", "--", ":")):
    left.plot(weights[:, rank, 0], style, label=f"worker {rank}")
    error = [np.mean((points @ w - heights) ** 2) for w in weights[:, rank]]
    right.plot(error, style, label=f"worker {rank}")
left.set(xlabel="step", ylabel="first weight", title="Three copies of one model")
right.set(xlabel="step", ylabel="loss on all rows", title="Their losses")
left.legend()
right.legend()
plt.show()


def between(seed):
    """Return how far apart two workers are at first and at the end, if they begin apart."""
    starts = [np.random.default_rng(seed + r).normal(size=2) for r in (0, 1)]
    distance = starts[1] - starts[0]
    for _ in range(100):
        g = sum(gradient(w, points, heights) for w in starts) / 2
        starts = [w - 0.1 * g for w in starts]
    return np.linalg.norm(distance), np.linalg.norm(starts[1] - starts[0])


first, last = between(7)
same = "stays as it is" if abs(last / first - 1) < 1e-6 else "grows"
apart.reveal("goes away" if last < 0.5 * first else same)
print(f"two workers, begun apart: distance {first:.4f} at first, {last:.4f} after 100 steps")

# %% [markdown]
# **What to see.** All copies are to be one, so there should be one line on the left. If there are
# three, they run side by side: each step moves all of them alike, and the distances stay. The
# losses fall, and not to the same value. Somebody who looks at the loss of one worker sees nothing
# odd. In which stage do the workers become different, where they should not? Write its place into
# `BUG`, then repair the training. (Other noise on each worker is right, and stays.)

# %% tags=["exercise"]
check("16.train_replicas")

# %% [markdown]
# This is why `DistributedDataParallel` sends the parameters and buffers of rank 0 to all others
# when it is made, and so does minigrad's. With `broadcast=False` minigrad compares them, bit by
# bit, and says who differs:

# %%


def different_seeds():
    """Make a model, on rank 2 with another seed, and no broadcast."""
    model = mg.nn.Linear(2, 1)
    seed = 1 if mg.distributed.rank() == 2 else 0
    values = np.random.default_rng(seed).normal(size=(1, 2))
    model.weight.assign(mg.variable(values.astype("float32").reshape(model.weight.shape)))
    model.bias.assign(mg.zeros(model.bias.shape))
    mg.distributed.DataParallel(model, broadcast=False)


try:
    mg.distributed.run(different_seeds, 3)
except mg.errors.DistributedError as error:
    print(error)

# %% [markdown]
# > **Real bug: a broadcast that found nothing.** With Horovod, a program itself calls
# > `broadcast_parameters`. One with MXNet did so, and its workers began with different weights all
# > the same ([horovod#895](https://github.com/horovod/horovod/issues/895), 2019). MXNet's layers
# > may leave their shapes open until they see the first batch. So the parameters were made after
# > the broadcast, each worker's from its own seed. In a few lines, with your ring (worker 0's
# > numbers, plus zeros from the others, is a broadcast):


# %%
def begin(worker, batch):
    """Broadcast all parameters, then look at the first batch; return the weights."""
    random, parameters = np.random.default_rng(worker.rank), {}  # no shape is known yet
    for name, p in parameters.items():
        part = p if worker.rank == 0 else np.zeros_like(p)
        parameters[name] = mine.ring_all_reduce(worker, part)
    parameters["weight"] = random.normal(size=batch.shape[1])
    return parameters["weight"].round(3)


needs("16.ring_all_reduce")
weights_at_first, *_ = run_workers(begin, [(points,)] * 3)
for rank, w in enumerate(weights_at_first):
    print(f"worker {rank} begins with {w}")

# %% [markdown]
# ## Where you are
#
# - Each worker has a copy of the model and a part of the rows; gradients are summed, steps are the
#   same, and so the copies stay the same to the last bit.
# - A ring sends less than two arrays per worker, however many there are; each chunk is added up in
#   one place.
# - Everybody waits for the slowest. Whoever waits for a dead one needs to be told.
# - What is added up must be a sum over rows, and the number of rows.
# - Equal steps keep a difference alive for ever: begin with the same weights.
#
# **Next:** train something of your own with all your parts in the engine. `minigrad status` shows
# which of them are lit.

# %%
from minigrad.course.predictions import summary

print(summary("16"))

# %% tags=["exercise"]
check("16")
