# %% [markdown]
# # 06 · Who is holding on to this graph?
#
# **You need** lesson 05: what a Storage, a view and `detach()` are. **It takes** about 200 minutes,
# in two sittings: sections 1 to 3, then 4 to 6. **At the end** you can say of any growing loop what
# grows, and who holds it; you have written `no_grad`, a copy of a model for evaluation, and the
# check that no saved value was overwritten; and minigrad trains digits with *your* check. Next:
# lesson 07, functions of your own.
#
# Your code goes into `exercises/06_memory_growth.py`. This lesson measures counts of nodes and
# bytes, not seconds.

# %% tags=["live"]
from minigrad.course import watch

watch("06")  # what you save in exercises/06_memory_growth.py is graded here at once

# %%
import gc

import matplotlib.pyplot as plt
import numpy as np

import minigrad as mg
from minigrad.course import check, hint, light, load, needs, predict, scrub
from minigrad.course.l06_memory_growth.drawing import bytes_in_use, draw_alive
from minigrad.course.pictures import draw_losses

plt.style.use("minigrad.course.house")

MIB = 2**20


def counts():
    """Return how many graph nodes are alive, and how many bytes they have saved."""
    found = mg.memory.stats()
    return np.array([found["live_nodes"], found["saved_bytes"]])


# %% [markdown]
# ## 1. A loop that only looks
#
# Somebody writes a first agent for deep Q-learning. The networks are far too wide, 4 → 8096 → 4, so
# that any problem with memory shows. The loop does not learn yet: it only runs the network on its
# own output, again and again. There is no `backward()` and no optimizer.

# %%
mg.manual_seed(0)
network = mg.nn.Sequential(mg.nn.Linear(4, 8096), mg.nn.ReLU(), mg.nn.Linear(8096, 4))
start = mg.variable(np.ones((32, 4), np.float32))
network(start)  # once, so that all kernels are there
gc.collect()
gc.freeze()  # counting nodes visits Python's objects: from here on, only new ones


def watch(advance, steps=20):
    """Run h = advance(h); return by how much live nodes and saved bytes have grown, per step."""
    h, before = start, counts()
    seen = [np.zeros(2)]
    for _ in range(steps):
        h = advance(h)
        seen.append(counts() - before)
    return np.array(seen)


# %% [markdown]
# In each step, 32 rows go through a hidden layer, and each row becomes 8096 float32 numbers. All
# rows together take close to one MiB.
#
# **Predict.** After 20 steps of `h = network(h)`: how many MiB have the nodes of the graph saved?
# `relu` needs to know where its output is positive, and the second `Linear` needs its input, which
# is the same array.

# %% tags=["prediction"]
chained = predict("06.chained", "How many MiB do 20 chained passes keep?")
chained

# %% [markdown]
# **Predict.** Now each step starts from the same `start`, and its output is dropped without a
# `backward()`. Are the nodes of the 20 passes kept?

# %% tags=["prediction"]
dropped = predict(
    "06.dropped",
    "Passes whose outputs are dropped: what becomes of their nodes?",
    choices=("kept", "freed"),
)
dropped


# %%
def drop(h):
    """Run the network, and drop its output."""
    network(h)
    return h


loops = {
    "h = network(h)": watch(network),
    "network(h), output dropped": watch(drop),
    "h = network(h).detach()": watch(lambda h: network(h).detach()),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for (name, seen), style in zip(loops.items(), ("o-", "s-", "x--"), strict=True):
    left.plot(seen[:, 0], style, markersize=4, label=name)
    right.plot(seen[:, 1] / MIB, style, markersize=4, label=name)
left.set(xlabel="step", ylabel="live nodes", title="nodes")
right.set(xlabel="step", ylabel="saved MiB", title="what the nodes have saved")
left.legend(fontsize=8)
for axis in (left, right):
    axis.set_xticks(range(0, 21, 5))
    axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** One loop grows by three nodes and about one MiB per step. The other two stay at
# zero, although nobody has called `backward()`.

# %%
chained.reveal(float(loops["h = network(h)"][-1, 1] / MIB), factor=1.3)

# %%
dropped.reveal("kept" if loops["network(h), output dropped"][-1, 0] else "freed")

# %% [markdown]
# Why? Here is the graph behind `h` after three steps.

# %%
h = start
for _ in range(3):
    h = network(h)
mg.viz.graph(h)

# %% [markdown]
# **What to see.** One chain: `h` holds its node, the node holds the nodes of its inputs, and so on
# back to the first step. A `backward()` from this `h` *would* need all of it. Nobody intends to
# call it; but the engine cannot know that, as long as somebody holds `h`. This is the whole rule:
#
# > **Outputs own the graph.** A Variable holds its node; a node holds its inputs' nodes and what it
# > saved. When the last output is dropped, the graph behind it is freed at once.
#
# `detach()` gives the same numbers without a node, so the chain ends there. PyTorch follows the
# same rule.
#
# > **The story of this loop.** It is real. In January 2025 a user of Burn, a framework in Rust,
# > reported it with these very sizes: memory "raised very quickly", on three backends
# > ([burn#2743](https://github.com/tracel-ai/burn/issues/2743)). Is that a leak?
# >
# > A **chain** must grow, in every framework and on every device. But look at the second line of
# > the plot. In Burn the graph does not belong to the outputs: it lives in one place for the whole
# > process, which is swept *only inside* `backward()`. There the second loop grows, too, until some
# > backward comes. And Burn had real leaks besides: before
# > [#3957](https://github.com/tracel-ai/burn/pull/3957), a simple regression left some 343,000 tiny
# > graphs behind; since then, it leaves 8. Other leaks were found later
# > ([#4039](https://github.com/tracel-ai/burn/pull/4039));
# > [#4970](https://github.com/tracel-ai/burn/issues/4970) was open when this was written.
# >
# > So in Burn it takes a `backward()` to free a graph that was dropped. Here and in PyTorch,
# > dropping the output is enough, and a `backward()` that is called only to free memory adds to
# > every `.grad`.
# >
# > Do not argue whether something is a leak. **Count.**

# %% [markdown]
# ## 2. What one step keeps, and for how long
#
# Here is a normal training step of a network with four hidden layers. `mg.memory.timeline()` writes
# down whenever memory is taken or given back, and for which operation.

# %%
del h  # and with it the chain
images, labels = mg.data.load_digits()
(x, y), (x_new, y_new) = mg.data.stratified_split(images.reshape(-1, 64) * 3 - 1, labels)
mg.manual_seed(1)
layers = [mg.nn.Linear(64, 256), mg.nn.Tanh()]
for _ in range(3):
    layers += [mg.nn.Linear(256, 256), mg.nn.Tanh()]
deep = mg.nn.Sequential(*layers, mg.nn.Linear(256, 10))
rows, targets = mg.variable(x[:512]), mg.variable(y[:512])

mg.cross_entropy(deep(rows), targets).backward()  # once, so that all kernels are there
deep.zero_grad()
with mg.memory.timeline() as step:
    loss = mg.cross_entropy(deep(rows), targets)
    loss.backward()
mg.viz.memory(step)

# %% [markdown]
# **What to see.** In the upper part, forward is a staircase with one step for each layer. Backward
# begins higher still: it needs memory for its own gradients while all saved values are there, so
# the peak lies in it. Then memory falls slowly, as each node frees what it saved. It does not
# return to where it began, because the gradients of the weights stay. In the lower part, each bar
# is a buffer from its allocation to its release. The output of each `tanh` is kept until the
# backward of that `tanh`, so the first one lives longest. The outputs of `linear` are freed at
# once, because no derivative needs them.

# %%
scrub(
    lambda axis, at: draw_alive(axis, step.events, at),
    list(range(len(step.events))),
    label="event",
    show=[12, 26, len(step.events) - 1],
    columns=3,
    width=3.2,
    height=3.2,
)

# %% [markdown]
# **What to see.** Blue buffers were made by the forward pass, orange ones by the backward pass. On
# the left, at the end of forward, everything is blue. The middle is half-way through backward. On
# the right, after backward, only gradients are left, and one number, the loss. So a graph that has
# been through `backward()` needs little memory. But its nodes still exist:

# %%
print("saved bytes after backward:", int(mg.memory.stats()["saved_bytes"]))
print("the loss still has a node: ", loss.node is not None, "->", loss.node.op)

# %% [markdown]
# > **Real bug: `total += loss`.** PyTorch's FAQ has warned of it since 2018: to sum up losses for
# > the log, add `float(loss)`. A draft of the page said that `total_loss` "is holding on to history
# > across all of the training"; a reviewer asked whether `backward()` had not freed that history
# > ([pytorch#5251](https://github.com/pytorch/pytorch/pull/5251)).
#
# **Predict.** Which of the two is right? Each step below calls `backward()` and then
# `total = total + loss`. What grows from step to step: the number of nodes, the bytes that they
# have saved, both, or nothing?

# %% tags=["prediction"]
summed = predict(
    "06.total",
    "total = total + loss: what grows?",
    choices=("nodes", "bytes", "both", "nothing"),
)
summed


# %%
def log(add, steps=20):
    """Train for some steps and sum up the losses with `add`; return how nodes and bytes grew."""
    gc.freeze()
    total, before, seen = 0.0, counts(), [np.zeros(2)]
    images, answers = mg.variable(x[:32]), mg.variable(y[:32])
    for _ in range(steps):
        loss = mg.cross_entropy(deep(images), answers)
        loss.backward()
        deep.zero_grad()
        total = add(total, loss)
        del loss
        seen.append(counts() - before)
    return np.array(seen)


careless = log(lambda total, loss: total + loss)
careful = log(lambda total, loss: total + float(loss))
figure, axis = plt.subplots(figsize=(8, 3.4))
axis.plot(careless[:, 0], "o-", markersize=4, label="total = total + loss")
axis.plot(careful[:, 0], "s-", markersize=4, label="total = total + float(loss)")
axis.set(xlabel="training step", ylabel="live nodes", title="A sum that remembers every step")
axis.set_xticks(range(0, 21, 5))
axis.legend()
axis.grid(alpha=0.3)
plt.show()
print("saved bytes at the end:", int(careless[-1, 1]))
grown = careless[-1] > 0
summed.reveal({(1, 0): "nodes", (0, 1): "bytes", (1, 1): "both"}.get(tuple(grown), "nothing"))

# %% [markdown]
# **What to see.** Both were right. The saved values are freed, but the *nodes* are not: each step
# leaves its nodes behind, chained to the next step's by one `add`. Such a leak is slow, and shows
# after days. (In a loop without `backward()`, such as one that only measures the loss on held-out
# data, the saved values stay as well, and the leak is fast.)
#
# A program can hold on to a graph in three ways: by a chain, a list or a cycle of objects. The
# small loop below calls `backward()` properly, and then keeps its loss in one of the three ways, or
# (for comparison) not at all:


# %%
class Report:
    """A step's report that puts its own method into an attribute, as callbacks often are."""

    def __init__(self, loss):
        self.loss = loss
        self.show = self.as_text  # self.show holds the method, and a method holds self

    def as_text(self):
        """Return the loss as a text."""
        return f"{float(self.loss):.3f}"


def hold(how, steps=300):
    """Keep the loss of every step: as a chain, in a list, or in a cycle. Return the live nodes."""
    gc.collect()  # what earlier loops left
    gc.freeze()
    weight = mg.variable(np.ones((4, 4), np.float32), requires_grad=True)
    average, history, before, seen = 0.0, [], counts()[0], []
    for _ in range(steps):
        loss = (weight @ weight).sum()
        loss.backward()
        if how == "chain":
            average = 0.9 * average + 0.1 * loss
        elif how == "list":
            history.append(loss)
        elif how == "cycle":
            Report(loss)  # nobody keeps it, but it holds itself
        seen.append(counts()[0] - before)
    return seen


figure, axis = plt.subplots(figsize=(9, 4))
for how, style in (("chain", "-"), ("list", "--"), ("cycle", "-"), ("nothing", ":")):
    axis.plot(hold(how), style, linewidth=1.6, label=how)
axis.set(xlabel="step", ylabel="live nodes", title="Three ways to hold on to a graph")
axis.legend()
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** *Chain* and *list* climb for ever. *Cycle* is a sawtooth. Its objects hold each
# other, so their reference counts never reach zero, and Python's garbage collector must find them.
# When it runs depends on how much else the program allocates. Between two collections, memory can
# climb to any height, and a full GPU does not make Python start one. That is why the exercises here
# ask for a loop that is flat *without* `gc.collect()`.
#
# There is one more list to know of: a notebook keeps in `Out` whatever the last line of a cell
# shows. If a cell ends with a bare `loss`, the graph of that loss lives as long as the notebook's
# kernel.
#
# Finding leaks by hand is tedious. `assert_no_growth` compares before and after, and names the
# operations and lines of the nodes that survived:

# %%
history = []
try:
    with mg.memory.assert_no_growth():
        for _ in range(3):
            history.append(deep(rows))
except AssertionError as error:
    print(error)
history.clear()

# %% [markdown]
# ## 3. Saved values that somebody overwrites
#
# Saved values have a second price: they must not change before backward. The nodes do not keep
# copies; they keep the Storages themselves. What if somebody writes into one before backward?
#
# **Predict.** Three operations use the same `a`. Then, before `backward()`, `a` is overwritten in
# place. `a * a` saved both inputs, `exp(a)` saved its *output*, and `a + a` saved nothing. For how
# many of the three would the gradient be wrong?

# %% tags=["prediction"]
danger = predict(
    "06.overwrite",
    "Of a * a, exp(a), a + a: how many mind that a changes?",
    choices=range(4),
)
danger

# %%
operations = {
    "a * a": lambda a: a * a,
    "exp(a)": lambda a: mg.exp(a),
    "a + a": lambda a: a + a,
}
refused = {}
for name, operation in operations.items():
    a = mg.variable([1.0, 2.0], requires_grad=True)
    result = operation(a).sum()
    with mg.no_grad():
        a.mul_(10.0)  # in place, as an optimizer does
    try:
        result.backward()
        print(f"{name:7} gives {a.grad.numpy().round(2)}, as if nothing had happened")
    except mg.errors.SavedValueModifiedError as error:
        refused[name] = error
        print(f"{name:7} raises {type(error).__name__}")
danger.reveal(len(refused))

# %%
print(*refused.values())

# %% [markdown]
# `exp(a)` is safe: it saved its output, which is another array, and nobody wrote to that. `a + a`
# is safe, too: its slope is 2 whatever `a` is.
#
# How does the engine notice the write? Comparing bytes would need a copy of them. The engine counts
# instead: each Storage has a **version**, every in-place write adds one to it, and a node notes the
# version of each value that it saves. In backward the engine compares two integers. PyTorch does
# the same (its counter is `x._version`, and its error speaks of "an inplace operation"). Views
# share their Storage, so they share its version:

# %%
a = mg.variable(np.arange(6.0))
view = a[2:4]
print("before:", a.version, view.version)
view.add_(1.0)
print("after: ", a.version, view.version, "- written through the view, seen by both")

# %% [markdown]
# **Write** `bump_version` and `check_saved` for plain objects: a `Storage` with `data` and
# `version`, a `View` that shows part of one, and a `Ctx` that holds what an operation saved.

# %% tags=["exercise"]
check("06.bump_version")

# %% tags=["exercise"]
check("06.check_saved")

# %% [markdown]
# Now put your check into the engine. In the network below, `tanh`, `sigmoid`, their product and two
# `Linear` save what they need. After each backward, the optimizer writes into the weights in place,
# so the weights' versions change throughout the training. The engine calls your `check_saved`
# before each node's backward.


# %%
def train(epochs=8):
    """Train a small gated network on the digits; return the losses."""
    mg.manual_seed(1)
    first, second = mg.nn.Linear(64, 48), mg.nn.Linear(48, 10)
    optimizer = mg.optim.Adam([*first.parameters(), *second.parameters()], learning_rate=5e-3)
    losses = []
    for epoch in range(epochs):
        for images, answers in mg.data.batches(x, y, batch_size=64, seed=epoch):
            hidden = first(mg.variable(images))
            logits = second(mg.tanh(hidden) * mg.sigmoid(hidden))
            loss = mg.cross_entropy(logits, mg.variable(answers))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    return np.array(losses)


reference = train()
print(f"minigrad's own check: {len(reference)} steps, last loss {reference[-1]:.4f}")

# %%
needs("06.check_saved")
mine = load("06")
calls = {"nodes": 0, "values": 0}


def my_check(ctx):
    """Count the call, and let your function answer it."""
    calls["nodes"] += 1
    calls["values"] += len(ctx.saved)
    return mine.check_saved(ctx)


with mg.use(check_saved=my_check):
    my_losses = train()
print(f"with yours:           {len(my_losses)} steps, last loss {my_losses[-1]:.4f}")
print(f"it looked at {calls['nodes']} nodes and {calls['values']} saved values: no false alarm")

# %%
needs("06.check_saved")
draw_losses(
    {"minigrad's own check": reference},
    {"yours": my_losses},
    title="The same engine, with your check before every node",
)

# %% [markdown]
# **What to see.** The two lines are the same: your check never raised, and it should not have. Now
# a case where it should: somebody writes into a hidden value between forward and backward, and the
# engine raises *your* error, in your words:

# %%
needs("06.check_saved")
with mg.use(check_saved=mine.check_saved):
    weight = mg.variable([1.0, 2.0, 3.0], requires_grad=True)
    hidden = weight.tanh()
    result = (hidden * hidden).sum()
    with mg.no_grad():
        hidden[0] = 0.0
    try:
        result.backward()
    except mine.SavedValueModifiedError as error:
        print(f"{type(error).__name__}: {error}")
print(light("06.check_saved", mine=my_losses, reference=reference, calls=calls["nodes"]))

# %% [markdown]
# A version does not count writes that bypass the engine. In PyTorch, `x.data.zero_()` is such a
# write: the gradient is wrong, without an error. For this reason `x.numpy()` is read-only here, and
# `x.numpy(writable=True)` adds one to the version.
#
# ---
#
# **This is the end of the first sitting.** You know who holds a graph, and what guards its saved
# values. The second sitting is about keeping less: not recording, batches that fit, and a bug hunt.
# When you come back, select the next cell, and choose *Run > Run All Above Selected Cell* once.
#
# ---

# %% [markdown]
# ## 4. Not recording at all
#
# The best way not to keep a graph is not to make one. `no_grad` does this: operations look at a
# flag of their thread, and do not record while it is off. To change a flag for a while sounds like
# two lines. It takes more, because blocks nest and exceptions end them, and because `no_grad` also
# decorates functions and *generators*, such as a loop over data that yields one batch at a time.
#
# **Write** `no_grad` for the plain object `mode` of your file. Its last two checks, about
# generators, are the hard ones.

# %% tags=["exercise"]
check("06.no_grad")

# %% [markdown]
# Why are generators hard? The body of a generator and its caller take turns. The next cell watches
# the flag on both sides, for your class and for a wrong decorator, which puts the whole generator
# into one block:

# %%
needs("06.no_grad")
mine = load("06")


def wrapped(function):
    """Decorate a generator function the wrong way: one block around all of it."""

    def generator(*args):
        with mine.no_grad():
            yield from function(*args)

    return generator


def turns(decorate):
    """Return the flag as the generator's body and its caller see it, in the order of time."""
    seen = []

    @decorate
    def batches(n):
        for k in range(n):
            seen.append(mine.mode.recording)
            yield k
        seen.append(mine.mode.recording)

    seen.append(mine.mode.recording)
    for _ in batches(3):
        seen.append(mine.mode.recording)
    return [*seen, mine.mode.recording]


figure, axis = plt.subplots(figsize=(9, 2.6), layout="constrained")
for decorate, name, style in ((mine.no_grad(), "yours", "-"), (wrapped, "one block", "--")):
    flags = turns(decorate)
    axis.step(range(len(flags)), flags, style, where="mid", linewidth=2, label=name)
who = ["caller", *["body", "caller"] * 3, "body", "caller"]
axis.set_xticks(range(len(who)), who, fontsize=8)
axis.set(xlabel="whose turn it is", ylabel="mode.recording", yticks=[0, 1], ylim=(-0.2, 1.6))
axis.legend(loc="upper center", ncols=2)
plt.show()

# %% [markdown]
# **What to see.** With one block around the generator, the *caller* does not record either. If the
# caller trains between two batches, it learns nothing. The `no_grad` of minigrad and of PyTorch
# switch at every turn, as yours does.
#
# Now three things that people confuse: `eval()`, `no_grad` and `valid()`. Count the nodes that one
# pass records:

# %%
network.train()
for name, run in {
    "model(x)": lambda: network(start),
    "model.eval()(x)": lambda: network.eval()(start),
    "model(x) in no_grad": mg.no_grad()(lambda: network(start)),
    "model.valid()(x)": lambda: network.valid()(start),
}.items():
    before = counts()
    out = run()
    n_nodes, n_bytes = counts() - before
    print(f"{name:20} {int(n_nodes)} nodes, {n_bytes / MIB:.2f} MiB saved")
    del out
network = network.train()

# %% [markdown]
# `eval()` changes what layers like Dropout *do*, but it does not stop the recording. `no_grad`
# stops the recording, but Dropout still drops. An evaluation needs both, and afterwards the model
# must be as it was: frozen layers frozen, and each module in the mode that it had. `model.valid()`
# does all of this: it returns a second model for evaluation, which shares the parameters of the
# first. Its name is from Burn. (PyTorch has no such method: people write `model.eval()`, `with
# torch.no_grad():`, `model.train()`. The last of these also puts layers into training mode that
# were in evaluation mode before.)
#
# **Write** `valid_copy` for minigrad's own Modules.

# %% tags=["exercise"]
check("06.valid_copy")

# %%
needs("06.valid_copy")
mine = load("06")
shown = mine.valid_copy(deep)
shown(rows)  # once, so that all kernels are there
figure, axis = plt.subplots(figsize=(8, 3.6))
for name, run in (("deep(rows)", deep), ("valid_copy(deep)(rows)", shown)):
    with mg.memory.timeline() as passes:
        out = run(rows)
    axis.step(range(len(passes.events) + 1), bytes_in_use(passes.events), where="post", label=name)
    del out
axis.set(xlabel="event (alloc or free)", ylabel="MiB in use", title="One forward pass")
axis.set_xticks(range(0, 18, 2))
axis.legend()
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** In the recorded pass, memory grows with each layer. Your copy never holds more
# than the outputs of two neighbouring layers, however deep the network is.

# %%
needs("06.valid_copy")
pairs = list(zip(deep.parameters(), shown.parameters(), strict=True))
same = [theirs.data_ptr() == ours.data_ptr() for theirs, ours in pairs]
accuracy = (shown(x_new).numpy().argmax(axis=1) == y_new).mean()
print(f"{sum(same)} of {len(same)} parameters lie at the same address: nothing was copied")
print(f"and the network, which has not learned anything yet, reads {accuracy:.0%} of the digits")

# %% [markdown]
# ## 5. How large may the batch be?
#
# Weights, gradients and the optimizer's state take the same memory for every batch size. The values
# saved for backward grow with each sample. So the peak of a training step is a straight line over
# the batch size, and two points determine a line. **Write** `max_batch`.

# %% tags=["exercise"]
check("06.max_batch")

# %% [markdown]
# Is that true of a real step? `mg.memory` knows the peak. The next cell counts in blocks of 64
# samples.

# %%
optimizer = mg.optim.Adam(deep)


def measure(blocks):
    """Run a training step on 64 * blocks samples; return its peak memory in bytes."""
    n = 64 * blocks
    images, answers = mg.variable(np.resize(x, (n, 64))), mg.variable(np.resize(y, n))
    mg.memory.reset_peak()
    mg.cross_entropy(deep(images), answers).backward()
    optimizer.step()
    optimizer.zero_grad()
    return mg.memory.stats()["peak_bytes"]


measure(1)  # once, so that the optimizer has its state
sizes = np.array([1, 2, 3, 4, 5, 6, 8, 10, 12, 14])
peaks = np.array([measure(int(blocks)) for blocks in sizes])
figure, axis = plt.subplots(figsize=(8, 3.8))
for ends, style in (((0, 1), "--"), ((-3, -1), "-")):
    per_block = np.diff(peaks[list(ends)])[0] / np.diff(sizes[list(ends)])[0]
    line = peaks[ends[0]] + per_block * (np.arange(15) - sizes[ends[0]])
    name = f"line through {64 * sizes[ends[0]]} and {64 * sizes[ends[1]]}"
    axis.plot(64 * np.arange(15), line / MIB, style, label=name)
axis.plot(64 * sizes, peaks / MIB, "o", color="black", label="measured")
axis.set(xlabel="batch", ylabel="peak of a training step (MiB)", ylim=(0, None))
axis.legend()
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** The points lie on *two* lines, with a knee. The peak is the highest of many
# moments, and each moment has a line of its own. With a small batch, the peak is at the *end* of
# backward, when all the gradients are there and few activations (the saved outputs of layers). With
# a large batch, it is at the *beginning* of backward, when all activations are there and hardly any
# gradient. Two measurements on the wrong side of the knee promise far too much:

# %%
needs("06.max_batch")
mine = load("06")
limit = 12 * MIB
print(f"there are {limit / MIB:.0f} MiB")
for block in (1, 8):
    most = mine.max_batch(lambda blocks, block=block: measure(block * blocks), limit)
    peak, beyond = measure(block * most) / MIB, measure(block * (most + 1)) / MIB
    print(f"in blocks of {64 * block}: {most} blocks, {64 * block * most} samples")
    print(f"    measured: {peak:.1f} MiB, and {beyond:.1f} MiB with one block more")

# %% [markdown]
# The function is right, but its premise, one straight line, does not hold across the knee. Measure
# at batch sizes near the one that you want to use. (On a GPU, people often look for this number by
# trying 32, 64, 128, …, until the program crashes.)
#
# One question is left: who gets memory that is *freed*? Here are training steps of many sizes, one
# after another, as with sentences of different lengths. `in use` is what Variables and graphs hold;
# `reserved` is what the process holds.

# %%
mg.memory.empty_cache()
held = []
for blocks in (2, 10, 4, 30, 1, 20, 60, 5, 40, 15, 2, 50):
    measure(blocks)
    found = mg.memory.stats()
    held.append((found["peak_bytes"], found["current_bytes"], found["reserved_bytes"]))
mg.memory.empty_cache()
returned = mg.memory.stats()["reserved_bytes"]
held = np.array(held) / MIB
figure, axis = plt.subplots(figsize=(8, 3.4))
for column, (name, style) in enumerate(
    (("at the peak of the step", "o-"), ("in use after it", "s-"), ("reserved after it", "^--"))
):
    axis.plot(np.arange(1, len(held) + 1), held[:, column], style, markersize=5, label=name)
axis.set(xlabel="training step, each of another size", ylabel="MiB", ylim=(0, None))
axis.legend(loc="upper left")
axis.grid(alpha=0.3)
plt.show()
print(f"reserved: {held[-1, 2]:.1f} MiB, after mg.memory.empty_cache() {returned / MIB:.1f} MiB")

# %% [markdown]
# **What to see.** After each step, the same few MiB are in use, for weights and the optimizer's
# state: nothing leaks. Yet the process keeps what its largest step needed. The pool does not give
# freed memory back to the system; it keeps it for the next step. `empty_cache()` gives back the
# segments in which no byte is in use, and only those. PyTorch's caching allocator does the same,
# which is why `nvidia-smi` shows memory that no tensor uses.
#
# > **No leak, and still out of memory.** IREE, a compiler and runtime for machine learning, has an
# > optional cache that keeps freed memory by its *exact* size, without a bound. With steps of many
# > sizes it ran out of memory, although nothing leaked
# > ([iree#22113](https://github.com/iree-org/iree/issues/22113),
# > [iree#19812](https://github.com/iree-org/iree/issues/19812)). minigrad's pool splits and merges
# > blocks, so a freed block also serves other sizes, as the dashed line shows.
#
# ## 6. Bug hunt
#
# Back to the agent, which learns now. At the end of your exercise file, `fix_dqn_loop` is a whole
# loop of deep Q-learning, with the networks of section 1. It calls `backward()` in every step. Six
# of its lines, A to F, keep something beyond their step. Three of the six keep a graph: one by a
# **chain**, one by a **list** and one by a **cycle**.

# %%
from minigrad.course.l06_memory_growth.engine_driver import DQNLoop
from minigrad.course.l06_memory_growth.original import loop_as_it_came

random = np.random.default_rng(0)
states = random.standard_normal((201, 16, 4)).astype(np.float32)
rewards = random.uniform(-1, 1, (200, 16, 4)).astype(np.float32)


def live_nodes_in(loop_function):
    """Run a loop for 200 steps without the garbage collector; return the live nodes of each."""
    gc.collect()
    gc.freeze()
    gc.disable()
    before, seen = counts()[0], []
    loop = DQNLoop(8096, states, rewards, lambda report: seen.append(counts()[0] - before))
    try:
        loop_function(loop)
    finally:
        gc.enable()
    return seen


def with_a_hook(loop):
    """Run your loop while a hook collects what the network gives, "to look at it later"."""
    activations = []
    loop.online.register_forward_hook(lambda module, inputs, output: activations.append(output))
    load("06").fix_dqn_loop(loop)


loops = [("as it came", live_nodes_in(loop_as_it_came()))]

# %%
mine = load("06")
name = f"yours, attempt {len(loops)}"
loops.append((name, live_nodes_in(mine.fix_dqn_loop)))  # run this cell again after each change
hooked = [("yours, and a hook that collects", live_nodes_in(with_a_hook))]
figure, axis = plt.subplots(figsize=(9, 4))
for name, live in loops + hooked:
    slope = np.polyfit(np.arange(len(live)), live, 1)[0]
    style = {"as it came": "C3-", hooked[0][0]: "k:"}.get(name, "-")
    width = 5 if name == "as it came" else 1.8
    alpha = 0.35 if name == "as it came" else 1
    label = f"{name}: {abs(slope):.2f} nodes a step"
    axis.plot(live, style, linewidth=width, alpha=alpha, label=label)
axis.set(xlabel="step", ylabel="live nodes", title="One loop, before and after")
axis.legend()
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** The broad red line is the loop as it came: it climbs without end. Your line lies
# on it until you change something. When the loop is fixed, your line is flat: no nodes per step.
# The dotted line is your loop with a leak added on purpose: a forward hook that collects outputs,
# and that nobody removes. That is a list, too. (As long as your loop has its chain, the hook adds
# nothing, because the chain holds the same nodes.)
#
# The three leaks behave in the same way: two of them may hold the same nodes, and then removing
# only *one* of the two changes nothing. So go the other way. Remove all six suspects, save, and run
# the cell above again: the new line in the picture should be flat. Then put back one suspect at a
# time, without the others, and run the cell each time: each run adds a line to the picture. Write
# the letters into `BUG`, then fix the loop. It must compute what it did before.

# %% tags=["exercise"]
check("06.fix_dqn_loop")

# %% [markdown]
# ## Where you are
#
# - Outputs own the graph. Whatever holds an output holds everything behind it: a value carried from
#   step to step, a container, a cycle of objects.
# - `backward()` frees the saved values; the nodes go when the output goes. Keep `float(loss)`.
# - Saved values are not copied. A version that counts the writes guards them.
# - `eval()` is not `no_grad`; `valid()` does both, and leaves the model as it was.
# - Peak memory is a straight line over the batch size, once activations dominate. Count before you
#   argue.
#
# **Next:** lesson 07. So far every operation came with its backward. Now you write your own
# operations, let the engine save values for them, and differentiate gradients once more.

# %%
from minigrad.course.predictions import summary

print(summary("06"))

# %% tags=["exercise"]
check("06")
