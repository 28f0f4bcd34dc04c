# %% [markdown]
# # 10 · Who gets this memory next?
#
# **You need** lesson 05: whose bytes are these? Lesson 06 helps. **It takes** about 215 minutes;
# after section 3 is a good place for a break. **At the end** you have written a pool that hands out
# memory, counts of owners that say when it comes back, and a plan for memory whose use is known in
# advance; and minigrad trains digits in *your* pool, and compiles a step by *your* plan. Next:
# lesson 11, kernels for the CPU, lesson 13, CUDA kernels, or lesson 14, a compiler.
#
# Your code goes into `exercises/10_allocator.py`. This lesson measures counts and bytes, not
# seconds.

# %% tags=["live"]
from minigrad.course import watch

watch("10")  # what you save in exercises/10_allocator.py is graded here at once

# %%
from collections import Counter

import matplotlib.pyplot as plt
import numpy as np

import minigrad as mg
from minigrad.course import check, hint, light, load, needs, predict, scrub
from minigrad.course.l10_allocator.drawing import (
    Game,
    PlainSystem,
    draw_layout,
    draw_plan,
    recorded,
)
from minigrad.course.l10_allocator.driver import ArrayPool
from minigrad.course.l10_allocator.programs import lives_in, training
from minigrad.course.pictures import draw_losses

plt.style.use("minigrad.course.house")

KIB = 2**10


# %% [markdown]
# ## 1. A step that asks again and again
#
# Every result of an operation needs memory, and most results are dropped soon. Here is a small
# network that learns to read digits, three training steps of it, and everything that takes or
# frees memory.


# %%
images, labels = mg.data.load_digits()
(x, y), (x_new, y_new) = mg.data.stratified_split(images.reshape(-1, 64) * 3 - 1, labels)


def new_step():
    """Make a network and its optimizer; return a training step, (images, labels) -> loss."""
    mg.manual_seed(1)
    layers = [mg.nn.Linear(64, 128), mg.nn.Tanh(), mg.nn.Linear(128, 96), mg.nn.Tanh()]
    network = mg.nn.Sequential(*layers, mg.nn.Linear(96, 10))
    optimizer = mg.optim.Adam(network, learning_rate=3e-3)

    def step(rows, targets):
        loss = mg.cross_entropy(network(rows), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return step


def train(step, steps=40, batch=64):
    """Take training steps, on the digits in turn; return the losses."""
    losses = []
    for k in range(steps):
        rows = np.arange(k * batch, (k + 1) * batch) % len(x)
        losses.append(step(mg.variable(x[rows]), mg.variable(y[rows])).item())
    return losses


step = new_step()
train(step, 2)  # so that all kernels are there
before = mg.memory.stats()
with mg.memory.timeline() as seen:
    train(step, 3)
after = mg.memory.stats()
mg.viz.memory(seen)

# %% [markdown]
# **What to see.** Three hills, one for each step, and they are the same. Below, each bar is the
# memory of one Array, from the moment when it was taken to the moment when it was freed. The steps
# take the same sizes, in the same order.
#
# Somebody must answer each of these requests. The system could: `malloc` asks it, and `free` gives
# back. But the way to the system is long (on a GPU, `cudaFree` even waits until all kernels have
# run). So engines have a **pool**. It takes large **segments** of memory from the system, and
# answers each request with a **block** that it cuts out of one. What is freed stays in the pool,
# for whoever comes next. What is free between two blocks is a **free piece**.
#
# **Predict.** Of the requests of these three steps, how many went on to the system?

# %% tags=["prediction"]
to_system = predict(
    "10.to_system",
    "Of the requests of three steps: how many reach the system?",
    choices=("none", "about a tenth", "about half", "all"),
)
to_system

# %%
asked = sum(event.kind == "alloc" for event in seen.events)
reached = after["system_allocations"] - before["system_allocations"]
print(f"{asked} requests, {reached} of them to the system")
share = reached / asked
some = "about a tenth" if share < 0.3 else "about half" if share < 0.8 else "all"
to_system.reveal(some if reached else "none")

# %%
sizes = Counter(event.bytes for event in seen.events if event.kind == "alloc")
print(f"{len(sizes)} sizes in {asked} requests; the most frequent, in bytes:")
for nbytes, times in sizes.most_common(5):
    print(f"    {times:3} times {nbytes:,}")

# %% [markdown]
# For a loop that always asks for the same sizes, a drawer for each size would be enough. But not
# all loops do: sentences have many lengths, and the last batch is smaller. With 1,000 sizes there
# are 1,000 drawers, and what lies in the wrong one is of no use. So pools round sizes up, to few
# **classes**. The difference is lost. With the powers of two as classes, it is up to half of a
# block; with eight classes from each power of two to the next, less than a ninth.
#
# **Write** `size_class`.

# %% tags=["exercise"]
check("10.size_class")

# %%
needs("10.size_class")
mine = load("10")
requests = np.arange(1, 4097)
yours = np.array([mine.size_class(int(n)) for n in requests])
powers = 2 ** np.ceil(np.log2(np.maximum(requests, 64)))
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
for blocks, name in ((powers, "powers of two"), (yours, "yours")):
    left.plot(requests, blocks, label=f"{name}: {len(set(blocks))} sizes")
    right.plot(requests, 100 * (blocks - requests) / blocks, label=name)
left.set(xlabel="bytes asked for", ylabel="bytes of the block", title="Sizes of blocks")
right.set(xlabel="bytes asked for", ylabel="% of the block that nobody uses", title="Waste")
right.set(xlim=(256, 4096), ylim=(0, 60))
for axis in (left, right):
    axis.legend()
    axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** On the left, a staircase: requests of one step of the stairs can use each other's
# blocks. On the right, what the stairs cost. With powers of two, nearly half of a block can be
# waste; with yours, always less than a ninth, in blocks of more than 512 bytes.

# %% [markdown]
# ## 2. Pieces that fit nobody
#
# Few sizes are not enough. In a network that reads sentences, a step may free many small blocks and
# then need a large one. There is enough memory; but is it together?
#
# Here is a game. One segment of 2 MiB of minigrad's own pool is full: 16 blocks of 128 KiB. You
# free 8 of them, so that half of the memory is free.
#
# **Predict.** Free every other block. Then ask for 256 KiB, a quarter of what is free. Can the
# segment serve it?

# %% tags=["prediction"]
every_other = predict(
    "10.every_other",
    "Every other block is free, 1 MiB in all. Do 256 KiB fit?",
    choices=("yes", "no"),
)
every_other

# %%
my_order = [3, 12, 5, 10, 7, 8, 1, 14]  # your move: change it. The blocks are 0 to 15
orders = {
    "every other one": range(0, 16, 2),
    "the first half": range(8),
    "my_order": my_order[:8],
}
figure, axes = plt.subplots(len(orders), 1, figsize=(9, 3.6), layout="constrained")
games = {}
for axis, (name, order) in zip(axes, orders.items(), strict=True):
    games[name] = Game().free(order)
    largest = games[name].largest[-1] // KIB
    games[name].draw(axis, f"{name}: the largest free piece has {largest} KiB")
    axis.set(xticks=range(0, 2049, 256), yticks=[], ylabel="", xlabel="")
axes[-1].set_xlabel("KiB from the segment's beginning")
plt.show()
every_other.reveal("yes" if games["every other one"].largest[-1] >= 256 * KIB else "no")

# %% [markdown]
# **What to see.** Blue is in use, white is free. In each row, half is free. But a block must
# lie in *one* free piece, and blocks in use cannot be moved: somebody has their address. This is
# **fragmentation**: much is free, in pieces that are too small.
#
# Order matters even if everything is freed in the end. The next cell frees all 16 blocks, and asks
# after each one how large the largest free piece is.

# %%
random_order = [int(k) for k in np.random.default_rng(3).permutation(16)]
all_orders = {
    "from left to right": list(range(16)),
    "every other one, then the rest": [*range(0, 16, 2), *range(1, 16, 2)],
    "at random": random_order,
    "my_order, then the rest": [*my_order, *(k for k in range(16) if k not in my_order)],
}
figure, axis = plt.subplots(figsize=(8.5, 3.8), layout="constrained")
freed = np.arange(1, 17)
axis.plot(freed, 128 * freed, "-", color="lightgray", linewidth=7, label="all that is free")
for (name, order), style in zip(all_orders.items(), ("o-", "s-", "^-", "x--"), strict=True):
    axis.plot(freed, [n / KIB for n in Game().free(order).largest], style, markersize=4, label=name)
axis.set(xlabel="blocks freed so far", ylabel="largest free piece (KiB)")
axis.set_yticks(range(0, 2049, 256))
axis.legend(fontsize=8)
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** The broad gray line is all that is free; where a line meets it, that is one free
# piece. Freed from left to right, it always is. With every other one, the largest piece stays at
# 128 KiB for eight releases, and then grows fast: each block that goes joins two pieces. No order
# keeps it at 128 KiB for nine: the 16 blocks are eight pairs of neighbours, and of nine blocks, two
# are a pair. How long can you keep it at 256 KiB? Give `my_order` more numbers, and run both cells
# again.
#
# A pool does three things against fragmentation. It cuts a block out of the *smallest* free piece
# that holds it, so that large ones stay large (*best fit*). It joins a block that is freed to the
# free pieces that it touches. And before it takes more from the system, it gives back the segments
# in which nothing is in use.

# %% [markdown]
# ## 3. Your own pool
#
# **Write** `Pool`. Its memory is a row of numbered bytes: `system.take(nbytes)` returns the address
# of a new segment, and `alloc` returns the address where a block begins. No bytes are read or
# written; you only decide who gets which. This is the longest exercise of the lesson. Its checks
# grow: first no two blocks may overlap, then freed memory serves again, then neighbours join.

# %% tags=["exercise"]
check("10.Pool")

# %% [markdown]
# Now it runs under minigrad. Inside the block below, the memory of every new Array comes from your
# pool: weights, activations, gradients, the optimizer's state. Its segments are real memory, and
# the engine checks each address that you give it.

# %%
reference = train(new_step())
print(f"minigrad's own pool: {len(reference)} steps, last loss {reference[-1]:.4f}")

# %%
needs("10.Pool")
mine = load("10")
MyPool, log = recorded(mine.Pool)  # your class, and a list of what it does
with mg.use(pool=MyPool):
    my_losses = train(new_step())
kinds = Counter(what for what, _, _ in log)
print(f"with yours:          {len(my_losses)} steps, last loss {my_losses[-1]:.4f}")
print(f"{kinds['alloc']} blocks, out of {kinds['take']} segments; {kinds['free']} were freed")
print(f"served without the system: {1 - kinds['take'] / kinds['alloc']:.1%}")
print(light("10.Pool", mine=my_losses, reference=reference, calls=kinds["alloc"]))

# %%
needs("10.Pool")
draw_losses(
    {"minigrad's own pool": reference},
    {"yours": my_losses},
    title="The same network, in memory from your pool",
)

# %% [markdown]
# **What to see.** The same losses, to the last digit: where a number lies does not change it. (If
# two Arrays had shared a byte, it would have.) And here is your pool at work, during the first
# steps: move the slider.

# %%
needs("10.Pool")
first_steps = log[: len(log) // 10]
taken = [k for k, (what, _, _) in enumerate(log) if what == "take"]
print(f"the last segment was taken at event {taken[-1]} of {len(log)}")
scrub(
    lambda axis, at: draw_layout(axis, first_steps, at),
    list(range(len(first_steps))),
    label="event",
    show=[taken[len(taken) // 2] + 1, taken[-1] + 1, len(first_steps) - 1],
    columns=3,
    width=3.2,
    height=3.4,
)

# %% [markdown]
# **What to see.** Each row is a segment; what is larger than 64 KiB got one of its own. Blue blocks
# are in use, the orange one is what the event is about. At first, the pool asks the system again
# and again. After a few steps it asks no more: it has met the peak, and cuts and joins what it has.
#
# Does it stay small? Two pools serve a training whose batches have many sizes: yours, and one that
# keeps a drawer for each exact size, and never gives back.

# %%


class ExactSizes:
    """A cache with a drawer for each exact size, without a bound."""

    def __init__(self, system):
        self.system, self.drawers, self.sizes = system, {}, {}

    def alloc(self, nbytes):
        """Return what lies in the drawer, or new memory."""
        drawer = self.drawers.setdefault(nbytes, [])
        address = drawer.pop() if drawer else self.system.take(nbytes)
        self.sizes[address] = nbytes
        return address

    def free(self, address):
        """Put it into its drawer."""
        self.drawers[self.sizes[address]].append(address)


def reserved_while(make_pool, program):
    """Run a program of requests on a pool; return what is reserved after each, in bytes."""
    system = PlainSystem()
    pool, addresses, held = make_pool(system), [], []
    for what, number in program:
        if what == "alloc":
            addresses.append(pool.alloc(number))
        else:
            pool.free(addresses[number])
        held.append(system.reserved)
    return np.array(held)


def in_use_while(program):
    """Return the bytes in use after each request, without any rounding."""
    change, sizes = [], []
    for what, number in program:
        if what == "alloc":
            sizes.append(number)
        change.append(number if what == "alloc" else -sizes[number])
    return np.cumsum(change)


batches = [int(n) for n in np.random.default_rng(0).integers(16, 400, 30)]
program = training((64, 128, 96, 10), batches)
exact = reserved_while(ExactSizes, program)
needed = in_use_while(program)

# %% [markdown]
# **Predict.** The training has 30 steps, with batches of different sizes. The *peak* is the most
# memory that is in use at once. At the end, how many times the peak does the exact cache hold?

# %% tags=["prediction"]
hoarded = predict("10.hoarded", "The exact cache holds how many times the peak?")
hoarded

# %%
figure, axis = plt.subplots(figsize=(8.5, 3.8), layout="constrained")
axis.plot(exact / KIB, label="a drawer for each exact size")
try:
    pooled = reserved_while(load("10").Pool, program)
    axis.plot(pooled / KIB, color="black", label="your pool")
except NotImplementedError:
    print("your Pool is not written yet: its line is missing")
axis.plot(needed / KIB, color="C2", linewidth=0.8, label="in use")
axis.set(xlabel="request (alloc or free)", ylabel="KiB", title="Reserved, over 30 steps")
axis.legend()
axis.grid(alpha=0.3)
plt.show()
hoarded.reveal(float(exact[-1] / needed.max()), factor=2)

# %% [markdown]
# **What to see.** The lowest line is what the training really uses: a small hill for each step. The
# exact cache climbs with every new size, and never comes down, although nothing leaks: nearly all
# of it is free. Your pool stays near the highest hill. It cuts what is free to new sizes; and if
# nothing free is large enough, it gives back empty segments before it takes a new one.
#
# > **Real bug: out of memory, without a leak.** `ExactSizes` is real. IREE, which compiles and runs
# > models, has a cache of this kind: with steps of many sizes, users ran out of memory
# > ([iree#22113](https://github.com/iree-org/iree/issues/22113),
# > [iree#19812](https://github.com/iree-org/iree/issues/19812)), although nothing leaked.
# > Its header warns that it "can easily exceed available memory".
# >
# > You may read that IREE does "buffer pooling, caching, and reference counting". That is how
# > somebody asked about it ([iree#20798](https://github.com/iree-org/iree/issues/20798)); it is not
# > the answer. Every buffer of IREE has a reference count. It keeps freed buffers only if it is
# > told to, by `--device_allocator=caching`: by exact size, and without a bound unless one is set.
# > On CUDA, it leaves pooling to the driver. And as it compiles whole programs, it can *plan*
# > memory before they run, as you do in section 5.
# >
# > PyTorch's pool on GPUs rounds to 512 bytes, cuts and joins inside segments of 2 MiB for small
# > requests, and on "out of memory" gives back what is unused and tries again. Its
# > `memory_reserved()` is what it holds, and `memory_allocated()` what tensors use.
#
# ---
#
# **This is a good place for a break.** You have a pool, and it has trained a network. What follows
# is about *when* memory comes back, and about memory that needs no pool. When you come back, select
# the next cell, and choose *Run > Run All Above Selected Cell* once.
#
# ---

# %% [markdown]
# ## 4. The last one frees
#
# A pool believes whoever calls `free`. But who may? In lesson 05, a view and its base showed the
# same bytes; in lesson 06, a node of the graph held what it saved. If the first of them who is done
# frees the memory, the others read what is no longer theirs. So each buffer counts its owners, and
# the *last* one frees.
#
# An owner too many is a leak: memory never comes back. An owner too few is worse, and quiet: the
# memory still holds the old numbers, until somebody else gets it. To see that at once, engines can
# write **poison** over what is freed, such as bytes of 0xFF, which are nan as a float.
#
# **Write** `Buffer`.

# %% tags=["exercise"]
check("10.Buffer")


# %%
needs("10.Buffer")
mine = load("10")


class Shelf:
    """A pool of two blocks with memory behind them: the one freed last is given first."""

    def __init__(self):
        self.memory, self.ready = np.zeros(128, np.uint8), [64, 0]

    def alloc(self, nbytes):
        """Return one of the two blocks."""
        return self.ready.pop()

    def free(self, address):
        """Take it back."""
        self.ready.append(address)


shelf = Shelf()
saved = mine.Buffer(shelf, 16)
numbers = shelf.memory[saved.address : saved.address + 16].view(np.float32)
numbers[:] = [1.0, 2.0, 3.0, 4.0]
saved.incref()  # a second owner: a node that saves it for backward
print(f"two owners:             {numbers}")
saved.decref()
print(f"one of them is gone:    {numbers}")
saved.decref()
print(f"the other one is, too:  {numbers}")
other = mine.Buffer(shelf, 16)
shelf.memory[other.address : other.address + 16].view(np.float32)[:] = 7.0
print(f"somebody else writes:   {numbers}")

# %% [markdown]
# **What to see.** While somebody owns the buffer, its numbers stay. Then there is nan: whoever
# still reads it knows at once. In the last line, the memory belongs to somebody else, and the old
# name shows *their* numbers. Without poison, this would be the first sign, and a wrong number looks
# like any other.
#
# minigrad can do the same: inside `with mg.memory.poison():`, all memory that is freed is
# overwritten. A correct program does not notice:

# %%
with mg.memory.poison():
    poisoned = train(new_step(), 10)
print("the same losses with poison:", poisoned == reference[:10])

# %% [markdown]
# ## 5. Memory that needs no pool
#
# A pool knows nothing of the future. A compiled step knows all of it: which values there are, how
# large they are, from which moment to which each is needed. So each *temporary*, a value that is
# gone when the step ends, gets a fixed place in one long block, the *arena*, before the step runs
# for the first time. Then there is one request for all of them, instead of one for each.


# %%
def compiled_step():
    """Compile a new step, run it until its program is there, and return it."""
    step = mg.compile(new_step())
    train(step, 3)
    return step


compiled = compiled_step()
mg.viz.memory(compiled)

# %% [markdown]
# **What to see.** A box is a temporary. From left to right goes the step, from bottom to top the
# memory: a box spans the moments at which it is needed, and its bytes in the arena. On the left,
# each has a place of its own. On the right, minigrad's compiler has fused operations; the
# temporaries that are left share the arena, and no two are at one height at the same moment. The
# dashed line is the least that any plan could take: the bytes that are needed at the fullest
# moment.
#
# How good can such a plan be? Here are the temporaries of a training step that is *not* fused, with
# sizes of all kinds. They come from a list of all that the step takes and frees. The line of the
# list is the *moment*: a value lives from the line that takes it to the line that frees it.

# %%
program = training((64, 128, 256, 96, 10), [128])
n_weights = 4  # the first requests
lives = lives_in(program)[n_weights:]  # the weights outlive the step


def rounded(nbytes):
    """Return how much room a value takes."""
    return -(-nbytes // 64) * 64


separate = list(np.cumsum([0, *(rounded(nbytes) for nbytes, _, _ in lives)])[:-1])
total = sum(rounded(nbytes) for nbytes, _, _ in lives)
moments = range(len(program))  # program: a list of ("alloc", bytes) and ("free", which)
least = max(sum(rounded(n) for n, a, b in lives if a <= m <= b) for m in moments)
print(f"{len(lives)} values, {total / KIB:.0f} KiB if each has a place of its own")

# %% [markdown]
# **Predict.** How many KiB does the fullest moment need?

# %% tags=["prediction"]
fullest = predict("10.fullest", "How many KiB are needed at the fullest moment?")
fullest

# %%
fullest.reveal(least / KIB, factor=1.5)

# %% [markdown]
# No plan takes less than that. Many take more: a value keeps its place for its whole life, and when
# others below it go, a gap is left that may fit nobody. No quick way is known that always finds the
# shortest plan (the problem is NP-hard). A simple rule is nearly always close: *the largest first,
# each as low as it fits*. If all sizes are equal, and the earliest goes first, it is even the best.
#
# **Write** `plan_reuse`.

# %% tags=["exercise"]
check("10.plan_reuse")


# %%
def first_come(lives):
    """Give each value the lowest place that is free, in the order in which they are needed."""
    offsets = []
    for k, (nbytes, first, last) in enumerate(lives):
        offset = 0
        for other in sorted(range(k), key=lambda j: offsets[j]):
            size, since, until = lives[other]
            if since <= last and first <= until:
                if offset + rounded(nbytes) <= offsets[other]:
                    break
                offset = max(offset, offsets[other] + rounded(size))
        offsets.append(offset)
    return offsets


plans = {"a place of its own": separate, "first come": first_come(lives)}
try:
    plans["yours"] = load("10").plan_reuse(list(lives))
except NotImplementedError:
    print("your plan_reuse is not written yet: its picture is missing")
figure, axes = plt.subplots(1, len(plans), figsize=(10, 3.8), layout="constrained", sharey=True)
for axis, (name, offsets) in zip(axes, plans.items(), strict=True):
    draw_plan(axis, lives, offsets, name)
    axis.axhline(least / KIB, linestyle="--", color="gray", linewidth=1)
    axis.set(xlabel="moment of the step", ylim=(0, 1.05 * total / KIB))
axes[0].set_ylabel("offset (KiB)")
plt.show()

# %% [markdown]
# **What to see.** From left to right: no reuse, each value at the first place that is free when it
# is needed, and your plan. The dashed line is the fullest moment. Who places in the order of time
# puts small values at the bottom, and the large one that comes later finds no room between them.
#
# Now the compiler uses your plan. Inside the block, the places in the arena are those that your
# function returns; minigrad checks that nothing is mixed up.

# %%
theirs = train(compiled_step())  # the losses with minigrad's own plan

# %%
needs("10.plan_reuse")
mine = load("10")
planned = []


def my_plan(lifetimes):
    """Note the question, and let your function answer it."""
    planned.append(lifetimes)
    return mine.plan_reuse(lifetimes)


with mg.use(plan_reuse=my_plan):
    my_step = compiled_step()
ours = train(my_step)
for name, one in (("minigrad's plan:", compiled), ("yours:", my_step)):
    # before: each temporary has a place of its own; after: they share the arena
    print(f"{name:16} {one.memory_plan().after.total / KIB:.1f} KiB of temporaries")
print(light("10.plan_reuse", mine=ours, reference=theirs, calls=len(planned)))

# %% [markdown]
# ## 6. Bug hunt
#
# At the end of your exercise file, `hand_step` computes two gradients by hand. Its arrays come from
# a pool and go back to it as early as possible. One goes back too early: backward still reads it.
# Here the step runs on three pools of the course's `ArrayPool`: one with much room, which never
# gives the same memory twice; one that gives out again what came back last; and one with much room
# that writes poison over what comes back. Of two networks, the second has as many outputs as hidden
# values, so that more of its arrays fit into each other's memory.

# %%
mine = load("10")
random = np.random.default_rng(5)


def errors_of(n, i, h, o):
    """Return the largest errors of the two gradients, on the three pools."""
    shapes = ((n, i), (n, o), (i, h), (h, o))
    rows, goal, w1, w2 = (random.standard_normal(shape) for shape in shapes)
    hidden = np.tanh(rows @ w1)
    dy = hidden @ w2 - goal
    right = rows.T @ ((dy @ w2.T) * (1 - hidden**2)), hidden.T @ dy
    found = []
    for kind in ("much room", "used again", "poison"):
        got = mine.hand_step(ArrayPool(kind), rows, goal, w1, w2)
        found.append([float(np.abs(a - b).max()) for a, b in zip(got, right, strict=True)])
    return np.array(found)


for shape in ((8, 3, 5, 2), (8, 3, 4, 4)):
    found = errors_of(*shape)
    print(f"rows, inputs, hidden, outputs: {shape}")
    for name, (first, second) in zip(("much room", "used again", "poison"), found, strict=True):
        print(f"    {name:11} error of dw1 {first:<9.2g} error of dw2 {second:.2g}")

# %% [markdown]
# **What to see.** In the step as it came, there is no error where there is much room: nobody else
# gets the memory, so the old numbers are still there. Where memory is used again, both gradients
# are wrong: nothing is raised, and the numbers look like numbers. Poison makes nan of them. That is
# certain only if nobody gets the memory for a while, for a new owner would write over the poison.
# Tools such as AddressSanitizer therefore do both: they mark freed memory, and keep it back. After
# your repair, all errors are below 1e-12.
#
# In an engine, this bug is an owner too few: a node saves an array and does not count as its owner.
#
# Which line gives an array back too early? And which is the first line below it that still reads
# it? Write both into `BUG`, then repair the step. It must still give back each array as early as it
# can, and take no more of them.

# %% tags=["exercise"]
check("10.hand_step")

# %% [markdown]
# ## Where you are
#
# - A pool stands between a program and the system. What is freed stays in the pool, so a loop with
#   fixed sizes asks the system for nothing.
# - Few size classes make blocks fit again; best fit and joined neighbours keep free pieces large.
#   Fragmentation is free memory that fits nobody.
# - "Freed" is not "given back". A cache without a bound grows, without any leak.
# - The last owner frees. Poison shows who reads what is no longer theirs.
# - Who knows the whole program needs no pool: lifetimes become places in one arena.
#
# **Next:** lesson 11: what a loop waits for, on the CPU. Or go on with lesson 13, CUDA
# kernels, or with lesson 14, a compiler for whole training steps, which donates memory as well.

# %%
from minigrad.course.predictions import summary

print(summary("10"))

# %% tags=["exercise"]
check("10")
