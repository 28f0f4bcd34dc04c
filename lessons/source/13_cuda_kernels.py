# %% [markdown]
# # 13 · A function that thousands of threads run
#
# **You need** lesson 00, for how exercises are checked, and to know what a softmax is. No GPU.
# **It takes** about 150 minutes; after section 5 is a good place for a break. **At the end** you
# have written the kernels of which most others are made: a map, a sum, a softmax, a matrix product
# and a transpose; you can say what threads share, who must wait for whom, and which bytes a kernel
# moves; and minigrad trains digits with *your* softmax, on a GPU, simulated or real. Next: lesson
# 14, where a compiler combines kernels.
#
# Your code goes into `exercises/13_cuda_kernels.py`. (You need neither lesson 11 nor lesson 12.)

# %% tags=["live"]
from minigrad.course import watch

watch("13")  # what you save in exercises/13_cuda_kernels.py is graded here at once

# %%
import time
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np

import minigrad as mg
from minigrad import cuda
from minigrad.course import check, hint, light, load, needs, predict, scrub
from minigrad.course.l13_cuda_kernels.drawing import draw_grid, draw_moment, draw_orders, one_order
from minigrad.course.pictures import draw_losses
from minigrad.simt.watch.interleaving import run_in_some_order

plt.style.use("minigrad.course.house")

# %% [markdown]
# ## 1. Say what one thread does
#
# A large GPU of today keeps more than two hundred thousand threads in flight at once. (An H100 SXM
# has 132 processors with room for 2,048 threads each.) Nobody writes a program for each of them.
# You write *one* function, a **kernel**, that says what one thread does, and all threads run it.
#
# Here is a kernel that makes each pixel of a digit half as bright.


# %%
@cuda.jit
def darker(image, out):
    """Halve one pixel: that of this thread."""
    row = cuda.blockIdx.x
    column = cuda.threadIdx.x
    out[row, column] = image[row, column] * np.float32(0.5)


images, labels = mg.data.load_digits()
image = images[0].reshape(8, 8).astype(np.float32)
out = np.zeros_like(image)
darker[8, 8](image, out)  # 8 blocks of 8 threads
print("largest pixel before and after:", image.max(), out.max())

# %% [markdown]
# The kernel has no loop over pixels. `darker[8, 8]` launches 8 *blocks* of 8 *threads*. Each thread
# asks in which block it is, and which thread of the block it is, with `cuda.blockIdx` and
# `cuda.threadIdx`. Then it computes its pixel. A GPU promises no order: any thread may be the
# first, and any the last.
#
# This has not run on a GPU. With NumPy arrays, a kernel runs on minigrad's own **machine**, a
# simulated GPU. The machine runs the source of a kernel statement by statement, each statement for
# all threads together (in *lock-step*), and it watches each access to memory. It is slow, and it
# cannot tell you how fast a kernel is. But it sees mistakes that a GPU does not report, and names
# their lines. With values on a GPU, Numba compiles the same kernel, and it runs there (section 8).
#
# ## 2. Threads without work
#
# Threads come in whole blocks, usually of a few hundred threads each. The number of elements is
# seldom a multiple of that.

# %%
figure, axis = plt.subplots(figsize=(9.5, 1.9), layout="constrained")
draw_grid(axis, n=20, threads=8)
axis.set(xlabel="cuda.grid(1), the number of the thread in the grid", ylabel="")
plt.show()

# %% [markdown]
# **What to see.** For 20 elements with blocks of 8 threads, it takes 3 blocks, so 24 threads. The
# numbers in the boxes are `cuda.threadIdx.x`, which begins anew in each block; `cuda.grid(1)`, on
# the axis, is `blockIdx.x * blockDim.x + threadIdx.x`. The grey threads run the kernel like all
# others, but there is no element for them.
#
# **Predict.** 1,000 elements, blocks of 128 threads. How many threads have nothing to do?

# %% tags=["prediction"]
idle = predict("13.idle", "1,000 elements, blocks of 128: threads without an element?")
idle


# %%
@cuda.jit
def double(x, out, n):
    """Write 2 * x into out, one element a thread."""
    i = cuda.grid(1)
    if i < n:
        out[i] = x[i] + x[i]


n, threads = 1000, 128
blocks = -(-n // threads)  # rounded up
x, out = np.ones(n, np.float32), np.zeros(n, np.float32)
report = mg.cuda.inspect(double[blocks, threads], x, out, n)
stores = sum(access.lanes for access in report.counts.accesses if access.kind == "store")
print(f"{blocks} blocks, {report.counts.threads} threads, {stores} elements written")
idle.reveal(report.counts.threads - stores, factor=1.0)

# %% [markdown]
# The line `if i < n:` is called the **guard**. Without it, the last threads write beyond the end.
# On a GPU this may become an error, which comes later and names no line; or the threads overwrite
# other values, without any error. The machine reports it at once:


# %%
@cuda.jit
def unguarded(x, out):
    """Forget the guard."""
    i = cuda.grid(1)
    out[i] = x[i] + x[i]


try:
    unguarded[blocks, threads](x, out)
except mg.errors.OutOfBoundsError as error:
    print(error)

# %% [markdown]
# A kernel must also use the right types. If `x` is float32, what is the type of `x[i] * 0.5`? In
# NumPy it is float32. For Numba's compiler, the literal `0.5` is a float64, so the product is a
# float64, too, and only the store makes it a float32 again. On many GPUs that is slow: those made
# for games compute float64 at 1/32 or 1/64 of the speed of float32. The machine gives values the
# types that Numba would give them, and counts operations in float64.


# %%
@cuda.jit
def halve(x, out):
    """Halve with a Python constant."""
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] * 0.5


report = mg.cuda.inspect(halve[blocks, threads], x, out)
for operation in report.counts.float64_operations:
    print(f"{operation.lanes} operations in float64 at: {operation.site.text}")

# %% [markdown]
# **Write** `k_map_guarded`, with a guard, and with all arithmetic in float32.

# %% tags=["exercise"]
check("13.k_map_guarded")

# %% [markdown]
# ## 3. Threads that wait for each other
#
# So far, no thread needed another one. A sum is different: 128 threads have one number each, and
# together they compute one result. Two things make this possible, both for the threads *of one
# block*:
#
# - **Shared memory**: `s = cuda.shared.array(128, np.float32)` is *one* small array for the whole
#   block, near its processor and fast. At the beginning its values are undefined.
# - **A barrier**: `cuda.syncthreads()`. A thread waits there until all threads of the block have
#   reached it.
#
# The threads add up in rounds. In the first round, each thread t < 64 adds `s[t + 64]` to its own
# `s[t]`. In the second, each thread t < 32 adds `s[t + 32]`. After seven rounds the sum is in
# `s[0]`. In the kernel below, one barrier is missing: the first one, between writing `s[t]` and the
# first round.

# %%
THREADS = 128


def forgetful(x, out):
    """Sum the elements of a block, without a barrier before the first round."""
    s = cuda.shared.array(THREADS, np.float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    half = THREADS // 2
    while half > 0:
        if t < half:
            s[t] += s[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        out[0] = s[0]


x = np.ones(THREADS, np.float32)

# %% [markdown]
# A GPU runs threads in groups of 32, called **warps**: the threads of a warp share the hardware
# that fetches instructions. A block of 128 threads is 4 warps: threads 0 to 31, 32 to 63, and so
# on. In every cycle the GPU chooses the warp that goes on next, among those that have the data they
# need. You cannot know its choice. `run_in_some_order` imitates this: it runs one statement of one
# warp at a time, and chooses the warp at random.
#
# **Predict.** In how many of 100 such orders does `forgetful` give the right sum?

# %% tags=["prediction"]
luck = predict("13.luck", "A forgotten barrier: right in how many of 100 orders?")
luck


# %%
def sums_of(kernel, threads, orders, together=32):
    """Run a kernel in so many orders, `together` threads in lock-step; return its sums."""
    results = []
    for seed in range(orders):
        out = np.zeros(1, np.float32)
        run_in_some_order(kernel, 1, threads, (x, out), seed=seed, together=together)
        results.append(float(out[0]))
    return results


without_barrier = sums_of(forgetful, THREADS, orders=100)
figure, axis = plt.subplots(figsize=(9.5, 2.8), layout="constrained")
draw_orders(axis, without_barrier, x.sum(), "a barrier is missing")
axis.set(xlabel="order in which the warps went (seed)", ylabel="result of the kernel")
plt.show()
luck.reveal(sum(result == x.sum() for result in without_barrier), factor=1.5)

# %% [markdown]
# **What to see.** Each mark is one run of the *same* kernel on the *same* data. Crosses are wrong
# sums: a warp has added elements that another warp had not written yet. Dots are right sums, by
# luck. On a real GPU the kernel is right more often, because the warps stay closer together than in
# a random order. So it may pass all your tests, and fail now and then on another GPU.
#
# A test that passes does not prove that every barrier is there. A tool can do better: the machine
# notes for each element which threads have used it since the last barrier. If two threads have used
# it, and at least one of them wrote, then nothing says which of them comes first. This is a **data
# race**, even if the result of this run is right. (The machine checks the accesses of this run
# only: not a branch that no thread took.)

# %%
try:
    cuda.jit(forgetful)[1, THREADS](x, np.zeros(1, np.float32))
except mg.errors.DataRaceError as error:
    print(error)

# %% [markdown]
# The message names the two threads, their lines, and the element that both use. The machine runs
# all threads in lock-step, so in this run the sum would have been right. It has not seen a wrong
# order, but it has found that there can be one.
#
# Now see how barriers work. Here is the right kernel, in one random order:


# %%
def patient(x, out):
    """Sum the elements of a block."""
    s = cuda.shared.array(THREADS, np.float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            s[t] += s[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        out[0] = s[0]


moments = one_order(patient, THREADS, (x, np.zeros(1, np.float32)), seed=13)
scrub(
    lambda axis, step: draw_moment(axis, patient, moments, step),
    range(len(moments)),
    label="step",
    show=[2, 7, 16],
    columns=3,
    width=3.3,
    height=3.4,
)

# %% [markdown]
# **What to see.** Each colour is a warp, drawn at the line that it runs next. On the left, two
# warps are still at the first line. In the middle, two others have reached the barrier and wait
# there: they are drawn pale. On the right, all four have reached it, so the barrier is open, and
# one of them has gone on. Move the slider: the warps get far apart between two barriers, but no
# warp leaves a barrier before all have reached it. (In the `while`, some warps have nothing to add.
# They still go to the barrier.)
#
# **Write** `k_block_sum`. Do not forget the threads that have no element.

# %% tags=["exercise"]
check("13.k_block_sum")

# %% [markdown]
# > **Real bug: a barrier inside an `if`.** A barrier opens when *all* threads of the block have
# > reached it. In July 2020, somebody fixed kernels of a program for particle physics
# > ([acts#307](https://github.com/acts-project/acts/pull/307)): they had `__syncthreads` in a
# > conditional "that depends on the threadID". CUDA does not define what happens then: the block
# > may wait forever, or go on with wrong values. These kernels had seemed to work: "this wasn't
# > apparent on older versions of the NVidia drivers, but is now". Ten lines show the bug:


# %%
@cuda.jit
def some_wait(x, out):
    """Let only half of the threads come to the barrier."""
    s = cuda.shared.array(THREADS, np.float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    if t < THREADS // 2:
        cuda.syncthreads()
        out[t] = s[t + THREADS // 2]


try:
    some_wait[1, THREADS](x, np.zeros(THREADS, np.float32))
except mg.errors.DivergentBarrierError as error:
    print(error)

# %% [markdown]
# Numba has a simulator, too (`NUMBA_ENABLE_CUDASIM=1`), in which each CUDA thread is a Python
# thread. It runs this kernel without an error. It has no warps, and so no shuffles (section 4). It
# does not follow the compiler's types, so `x * 0.5` stays a float32 in it. And two shared arrays
# that are made on *one line* are the same array there. (Tried with Numba 0.68.) No simulator sees
# everything. Ours does not know how long anything takes, nor what a compiler makes of your kernel.
#
# ## 4. Inside a warp
#
# In the last rounds of the sum, all threads that add are in one warp. For ten years, the hardware
# ran the threads of a warp in lock-step, and people relied on it. In lock-step, no thread of a warp
# needs to wait for another one. So many reductions left out the barrier in these rounds, and so did
# NVIDIA's own examples.


# %%
def trusting(x, out):
    """Sum 32 elements in one warp, which "runs in lock-step anyway"."""
    s = cuda.shared.array(32, np.float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    half = 16
    while half > 0:
        if t < half:
            s[t] += s[t + half]
        half //= 2
    if t == 0:
        out[0] = s[0]


figure, axes = plt.subplots(1, 2, figsize=(9.5, 2.6), layout="constrained", sharey=True)
for axis, together in zip(axes, (32, 1), strict=True):
    what = "warps in lock-step" if together == 32 else "every thread on its own"
    draw_orders(axis, sums_of(trusting, 32, 40, together), x[:32].sum(), what)
    axis.set(xlabel="order of the threads (seed)", ylabel="result")
plt.show()

# %% [markdown]
# **What to see.** Dots are right sums, crosses wrong ones. On the left the 32 threads run in
# lock-step, and the sum is always correct. In the right-hand plot each thread runs on its own, and
# the sum is never correct. A GPU made since 2017 may do either. Most often it does what the left
# picture shows, so the bug stays hidden.
#
# > **A story from Numba itself.** In 2017 NVIDIA brought out the Volta architecture, in which
# > threads of a warp are scheduled *independently*: each has a program counter of its own. In the
# > same year CUDA 9 gave the warp a barrier, `__syncwarp`, and new shuffles, which name the lanes
# > that take part.
# >
# > Numba's library has a function `cuda.reduce`, written in CUDA Python. At the two places that
# > matter, it had a comment: `# XXX expect warp synchronization`. So its author knew what the code
# > relies on. In 2015 an issue asked whether a memory fence was needed there
# > ([numba#1410](https://github.com/numba/numba/issues/1410)). In November 2017 another one named
# > the problem: warp-synchronous code "has been discouraged for several CUDA releases", and now
# > threads in a warp "are no longer guaranteed to execute together"
# > ([numba#2589](https://github.com/numba/numba/issues/2589)). The repair came in autumn 2020
# > ([numba#6127](https://github.com/numba/numba/pull/6127)): `syncwarp()` at the places of the
# > comment. For three years, such a sum on a Volta was right only by luck.
# >
# > Could a test have found it? In 2019 the author of GPUMD, a program that simulates molecules,
# > tried such sums on a GPU of the generation after Volta: they gave "correct results". The author
# > changed the code nevertheless ([GPUMD#36](https://github.com/brucefan1983/GPUMD/issues/36)). In
# > another program of this kind, a test passed with optimisation and failed in debug mode, until
# > the missing `__syncwarp`s were added
# > ([timemachine#344](https://github.com/proteneer/timemachine/issues/344)).
#
# Our machine runs in lock-step, so `trusting` would give the right sum on it. The machine raises an
# error nevertheless:

# %%
try:
    cuda.jit(trusting)[1, 32](x, np.zeros(1, np.float32))
except mg.errors.DataRaceError as error:
    print(error)

# %% [markdown]
# There are two ways to fix it. One is `cuda.syncwarp()`, a barrier for one warp, which costs less
# than a barrier for the block. The other is a **shuffle**, which needs no shared memory at all. A
# thread's place in its warp, 0 to 31, is called its *lane*. With
# `cuda.shfl_down_sync(mask, value, 16)`, each lane gets the `value` of the lane 16 places further
# up, directly from that lane's register. (A lane gets its own value if there is no lane so far up.)
# No memory is written, so there can be no race, and the call itself waits for all lanes that its
# mask names.
#
# **Write** `k_warp_sum`: one row per warp, five shuffles, no shared memory.

# %% tags=["exercise"]
check("13.k_warp_sum")

# %% [markdown]
# ## 5. A softmax, and it trains
#
# A softmax needs two reductions over a row: the largest element, then the sum of the exponentials.
# Your kernel uses *one* shared array for both. So, before each write to that array, ask: does
# another thread still have to read the old value?
#
# **Write** `k_softmax_row`.

# %% tags=["exercise"]
check("13.k_softmax_row")

# %% [markdown]
# The device `"simt"` is minigrad's simulated GPU: there the engine computes everything with kernels
# on the machine. `mg.use(kernels={"softmax": f})` launches *your* kernel in place of the engine's.
# Here is a network that reads digits, trained once with each of the two:

# %%
x_all = (images.reshape(-1, 64).astype(np.float32) - 0.5)[:256]
one_hot = np.eye(10, dtype=np.float32)[labels[:256]]


def train(steps=24):
    """Train a small network on the simulated GPU; return its losses."""
    mg.manual_seed(0)
    start = np.random.default_rng(1)
    w1 = mg.variable(start.normal(0, 0.3, (64, 32)).astype(np.float32)).to("simt")
    w2 = mg.variable(start.normal(0, 0.3, (32, 10)).astype(np.float32)).to("simt")
    weights = [w.detach().requires_grad_() for w in (w1, w2)]
    losses = []
    for step in range(steps):
        rows = slice(step * 32 % 256, step * 32 % 256 + 32)
        images, targets = (mg.variable(part[rows]).to("simt") for part in (x_all, one_hot))
        answers = mg.softmax(mg.tanh(images @ weights[0]) @ weights[1])
        loss = -(mg.log(answers) * targets).sum() / 32
        gradients = mg.gradients([loss], weights)
        with mg.no_grad():
            weights = [
                (w - g * 0.5).detach().requires_grad_()
                for w, g in zip(weights, gradients, strict=True)
            ]
        losses.append(loss.item())
    return losses


needs("13.k_softmax_row")
mine = load("13")
reference = train()
with mg.use(kernels={"softmax": mine.k_softmax_row}) as used:
    ours = train()

draw_losses(
    {"minigrad's softmax": reference},
    {"your softmax": ours},
    title="Digits, on the simulated GPU",
)
light("13.k_softmax_row", mine=ours, reference=reference, calls=used.launches["softmax"])

# %% [markdown]
# **What to see.** The two lines are the same. Your kernel ran once in each step, with one block per
# row. All other kernels were the engine's own. (If you have a GPU, write "cuda" for "simt" in this
# cell: it runs the same kernel.)
#
# ## 6. Numbers that are read too often
#
# A product of two (n, n) matrices multiplies n³ pairs, but there are only 2 n² numbers. In the
# obvious kernel, one thread computes one element of the product, and each thread reads a row and a
# column by itself. Blocks and the grid have two dimensions here, and `cuda.grid(2)` gives the
# number of the thread along x and along y. Neighbouring threads of a warp differ in x, so x is used
# for the column.


# %%
@cuda.jit
def naive(a, b, c):
    """Multiply matrices, one element of c a thread."""
    column, row = cuda.grid(2)
    if row < c.shape[0] and column < c.shape[1]:
        total = np.float32(0)
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, column]
        c[row, column] = total


def reads_of(kernel, n):
    """Return how many elements a kernel reads from global memory for matrices of size n."""
    a, b = np.ones((n, n), np.float32), np.ones((n, n), np.float32)
    tiles = -(-n // 16)
    report = mg.cuda.inspect(kernel[(tiles, tiles), (16, 16)], a, b, np.zeros_like(a))
    return sum(
        access.lanes
        for access in report.counts.accesses
        if access.kind == "load" and access.space == "global"
    )


n = 64
print(f"{reads_of(naive, n):,} reads of {2 * n * n:,} numbers: each {n} times")

# %% [markdown]
# A block of 16 x 16 threads needs 16 rows of `a` and 16 columns of `b`, and each of these numbers
# is needed by 16 of its threads. So the threads fetch the numbers *together*. They load a tile of
# each matrix into shared memory, each thread one number of each. After a barrier, each thread
# computes 16 products from shared memory. After another barrier (why?), they load the next tiles.
#
# **Predict.** With such tiles and n = 64, how often is each number of `a` and `b` read from global
# memory?

# %% tags=["prediction"]
times = predict("13.reads", "Tiles of 16 x 16, n = 64: each number is read how often?")
times

# %% tags=["exercise"]
check("13.k_matmul_tiled")


# %%
def as_kernel(function):
    """Return a function of yours as a kernel, whether you put @cuda.jit above it or not."""
    return function if isinstance(function, cuda.Kernel) else cuda.jit(function)


needs("13.k_matmul_tiled")
tiled = as_kernel(load("13").k_matmul_tiled)
sizes = [16, 32, 48, 64, 96]
figure, axis = plt.subplots(figsize=(8, 3.4), layout="constrained")
for kernel, label in ((naive, "one thread, one row, one column"), (tiled, "tiles")):
    axis.loglog(sizes, [reads_of(kernel, n) for n in sizes], marker="o", label=label)
axis.loglog(sizes, [2 * n * n for n in sizes], "k--", label="each number once")
axis.set(xlabel="n, for matrices (n, n)", ylabel="elements read from global memory")
axis.set_xticks(sizes, map(str, sizes))
axis.minorticks_off()
axis.legend(fontsize=8)
axis.grid(alpha=0.3)
plt.show()
times.reveal(reads_of(tiled, 64) / (2 * 64 * 64), factor=1.0)

# %% [markdown]
# **What to see.** The two lines are parallel, a factor of 16 apart. The dashed line is the least
# that any kernel must read. Tiles of 32 would halve the reads, and need four times the shared
# memory. (Real libraries do more: each thread keeps a small tile of `c` in registers, so that
# shared memory is read less often, too. minigrad's own product does that.)
#
# ## 7. Thirty-two addresses at once
#
# It matters how many numbers are read, and also which of them are read *together*. The 32 threads
# of a warp access memory at the same time, and memory does not transfer single numbers: it
# transfers **sectors** of 32 bytes, which are 8 neighbouring float32. Here is the obvious
# transpose, in blocks of 32 x 32 threads. A warp is 32 threads with the same y, and with x from 0
# to 31.


# %%
@cuda.jit
def straight(x, out):
    """Transpose, one element a thread."""
    j, i = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        out[j, i] = x[i, j]


x = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
out = np.zeros_like(x)

# %% [markdown]
# It reads each number once and writes each number once. It cannot read or write fewer numbers.
#
# **Predict.** A warp writes 32 numbers, which are 128 bytes. They would fit into 4 sectors. How
# many sectors does the store in *this* kernel touch, for each warp?

# %% tags=["prediction"]
sectors = predict("13.sectors", "A warp stores down a column: how many sectors?")
sectors

# %%
before = mg.cuda.inspect(straight[(2, 2), (32, 32)], x, out)
store = next(access for access in before.counts.accesses if access.kind == "store")
sectors.reveal(store.sectors / store.warps, factor=1.0)
before

# %% [markdown]
# **What to see.** The pictures show, for each access, which lane of a warp goes to which address.
# The read goes along a row: neighbouring lanes read neighbouring numbers, so it takes only 4
# sectors. The write goes down a column: 32 threads touch 32 sectors, and use only 4 of the 32 bytes
# of each.
#
# In one step, either the read or the write must go down a column. So do it in two steps: read along
# a row of `x` into a tile of shared memory; then write from the tile, with rows and columns
# swapped, along a row of `out`. Shared memory has no sectors. It has 32 **banks**, each 4 bytes
# wide: number k of an array of float32 is in bank k % 32. If the 32 threads of a warp use 32
# different banks, the access takes one **pass**. If two threads need different numbers of one bank,
# it takes two passes, and so on.
#
# Here are 32 threads that use one column of a tile of 32 x 32:


# %%
@cuda.jit
def down_a_column(out):
    """Write a column of a tile, and read it again."""
    tile = cuda.shared.array((32, 32), np.float32)
    t = cuda.threadIdx.x
    tile[t, 0] = np.float32(1)
    out[t] = tile[t, 0]


report = mg.cuda.inspect(down_a_column[1, 32], np.zeros(32, np.float32))
report.pictures[0]

# %% [markdown]
# **What to see.** Element (t, 0) is number 32 t of the tile, so all these elements are in bank 0.
# The access takes 32 passes, and the other 31 banks have nothing to do.
#
# **Write** `k_transpose`: whole sectors in both accesses to global memory, and one pass for each
# access to the tile.

# %% tags=["exercise"]
check("13.k_transpose")

# %%
needs("13.k_transpose")
mg.cuda.inspect(as_kernel(load("13").k_transpose)[(2, 2), (32, 32)], x, np.zeros_like(x))

# %% [markdown]
# **What to see.** Global memory is read and written in whole sectors, and each access to the tile
# takes a single pass. For example, if your tile has 33 columns, the first column has the numbers 0,
# 33, 66 and so on, in banks 0, 1, 2 and so on. With 32 columns they were 32 apart, so all were in
# *one* bank.
#
# ## 8. On a GPU
#
# If this computer has an NVIDIA GPU, and `minigrad[cuda]` is installed, the same functions are
# compiled for it. If not, the next cell says why.

# %%
if mg.cuda.is_available():
    needs("13.k_transpose")
    big = mg.variable(np.random.default_rng(0).random((4096, 4096), np.float32)).to("cuda")
    for kernel in (straight, as_kernel(load("13").k_transpose)):
        target = mg.variable(np.zeros((4096, 4096), np.float32)).to("cuda")
        kernel[(128, 128), (32, 32)](big, target)  # compiled here
        mg.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(20):
            kernel[(128, 128), (32, 32)](big, target)
        mg.cuda.synchronize()
        print(f"{kernel.__name__}: {(time.perf_counter() - started) / 20 * 1e6:.0f} µs")
else:
    print(fill(mg.cuda.why_not(), 90))

# %% [markdown]
# ## 9. Bug hunt
#
# At the end of your exercise file is `k_histogram`, which counts how often each grey value occurs.
# Each block counts in shared memory, which is fast, and at the end adds its counts to the total.
# The kernel has passed its tests. In lock-step it gives the right counts, too. The next cell runs
# it in random orders of its warps:

# %%
mine = load("13")
pixels = (images[:2] * 16).reshape(-1).astype(np.int32)
totals = []
for seed in range(100):
    counts = np.zeros(mine.GREYS, np.int32)
    run_in_some_order(mine.k_histogram, 1, 64, (pixels, counts), seed=seed)
    totals.append(float(counts.sum()))
figure, axis = plt.subplots(figsize=(9.5, 2.8), layout="constrained")
draw_orders(axis, totals, len(pixels), "pixels counted")
axis.set(xlabel="order in which the warps went (seed)", ylabel="pixels counted")
plt.show()

# %% [markdown]
# **What to see.** The dashed line is the number of pixels, all of which should be counted. The
# kernel as it came counts all of them in most orders; in some, counts are missing. With blocks of
# 32 threads, as in its tests, no order loses a count. (Why?) When you have fixed the kernel, run
# the cell again.
#
# What is missing: a barrier, an atomic operation, or a guard? Which line writes a value, and which
# other line uses this value too early? Write your answers into `BUG`, then fix the kernel. Try it
# first without a launch on the machine, which would name the two lines.

# %% tags=["exercise"]
check("13.k_histogram")

# %% [markdown]
# ## Where you are
#
# - A kernel says what one thread does. Threads come in whole blocks, and the guard stops the
#   threads without an element.
# - The threads of a block share memory and barriers. Between a write and a read by another thread
#   there must be a barrier; between a read and the next write, too. All threads of the block must
#   reach it, or none.
# - Tests that pass do not prove that every barrier is there. A tool that knows which accesses are
#   ordered can show it, for the run that it watches: our machine, or NVIDIA's `compute-sanitizer
#   --tool racecheck` on a GPU (for shared memory).
# - The threads of a warp need not run in lock-step. They exchange values by shuffles, which wait
#   for the lanes that take part.
# - The cost of most kernels depends on the bytes that they move: how many, and how many at once.
#
# **Next:** lesson 14, where a compiler decides which operations become one kernel. To practise
# more, write a kernel for layer normalization, which also needs two reductions over a row.

# %%
from minigrad.course.predictions import summary

print(summary("13"))

# %% tags=["exercise"]
check("13")
