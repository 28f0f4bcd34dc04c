# %% [markdown]
# # 11 · What does a loop wait for?
#
# **You need** lesson 00, and to know what a matrix product and a softmax are. **It takes** about
# 200 minutes; after section 4 is a good place for a break. **At the end** you have written the
# loops of a sum, a softmax, a fused chain and a blocked matrix product; you can say what each of
# them waits for, on *your* machine; and minigrad trains digits with *your* kernels in its engine.
# Next: lesson 12, where kernels do not compile, or are wrong without an error.
#
# Your code goes into `exercises/11_cpu_kernels.py`. Numba compiles it.

# %% tags=["live"]
from minigrad.course import watch

watch("11")  # what you save in exercises/11_cpu_kernels.py is graded here at once

# %%
import math
import time
from concurrent.futures import ThreadPoolExecutor

import matplotlib.pyplot as plt
import numpy as np
from numba import njit

import minigrad as mg
from minigrad.course import check, hint, light, load, needs, predict, scrub
from minigrad.course.l11_cpu_kernels.drawing import (
    draw_roofline,
    draw_times,
    draw_walk,
    seconds,
    walk,
)
from minigrad.course.l11_cpu_kernels.driver import LINES, temporaries, watched
from minigrad.course.pictures import draw_losses

plt.style.use("minigrad.course.house")
random = np.random.default_rng(11)

# %% [markdown]
# ## 1. The same additions, in another order
#
# Two kernels add up the columns of a matrix. Both read each element once, and both make the same
# additions: only their loops are exchanged.


# %%
@njit
def down(x, out):
    """Sum each column, one column after the other."""
    for j in range(x.shape[1]):
        total = np.float32(0)
        for i in range(x.shape[0]):
            total += x[i, j]
        out[j] = total


@njit
def along(x, out):
    """Sum all columns at once, one row after the other."""
    for j in range(x.shape[1]):
        out[j] = 0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[j] += x[i, j]


x = random.random((2000, 2000), np.float32)
out = np.zeros(2000, np.float32)

# %% [markdown]
# **Predict.** `down` walks down the columns. How many times as long as `along` does it take?
# (`seconds` calls a kernel once, so that it is compiled, then for a while, and gives the least
# time.)

# %% tags=["prediction"]
slower = predict("11.slower", "A sum of columns, down instead of along: how many times as long?")
slower

# %%
slow, fast = seconds(down, x, out), seconds(along, x, out)
print(f"down: {slow * 1e3:.2f} ms, along: {fast * 1e3:.2f} ms")
slower.reveal(slow / fast, factor=3.0)

# %% [markdown]
# A matrix lies in memory as one long row of numbers, row after row. `x.strides` says how far it is,
# in bytes, from one element to the next along each axis:

# %%
print(f"x: {x.strides}, its transpose: {x.T.strides}, reversed: {x[::-1].strides}")

# %% [markdown]
# Memory hands out **lines** of 64 bytes, 16 numbers of float32 in a row, and never less. A line
# that was fetched stays in the *cache* for a while. `walk` runs a kernel as plain Python, notes
# each access, and plays a small cache: here it holds 8 lines, and the one that was used least
# recently goes. (The cache of your machine holds thousands, and your matrices are larger, too.)

# %%
small = np.zeros((16, 16), np.float32)
walks = [walk(kernel, small, np.zeros(16, np.float32), lines=8) for kernel in (down, along)]


def draw_both(axis, step):
    """Draw both walks side by side, in one axis each."""
    axis.set_axis_off()
    for k, (steps, name) in enumerate(zip(walks, ("down", "along"), strict=True)):
        inner = axis.inset_axes([0.53 * k, 0.05, 0.45, 0.85])
        draw_walk(inner, steps, small.shape, step)
        inner.set_title(f"{name}: {inner.get_title()}", fontsize=7)


scrub(draw_both, range(256), label="step", show=[20, 150], columns=2, width=5.4, height=3.0)

# %% [markdown]
# **What to see.** A row of the drawing is one line. Blue lines are in the cache; the red dot is
# read now. On its way down, `down` fetches a line for *each* element, uses 4 of its 64 bytes, and
# by the time that it needs the line again, the line is gone. `along` fetches a line for 16
# elements. Both compute the same. The loop does not wait for additions: it waits for lines.
#
# **Write** `k_sum_axis`, along both axes, and for matrices that lie in memory in any way.

# %% tags=["exercise"]
check("11.k_sum_axis")

# %%
needs("11.k_sum_axis")
mine = load("11")
for name, matrix in (("x", x), ("x transposed", x.T)):
    for axis in (0, 1):
        yours = seconds(mine.k_sum_axis, matrix, axis, out)
        numpys = seconds(matrix.sum, axis)
        print(f"{name}, axis {axis}: yours {yours * 1e3:.2f} ms, NumPy's {numpys * 1e3:.2f} ms")

# %% [markdown]
# NumPy looks at the strides, too, before it begins. Where all elements of a line go into *one* sum,
# yours may be slower: each addition waits for the one before it. NumPy adds into several sums at
# once, and adds these up at the end. (A compiler may not do so by itself: in another order,
# rounding gives other digits.)
#
# ## 2. Compiled for types
#
# A function with `@njit` is compiled at its first call, for the *types* of its arguments. Another
# call with the same types runs what is there. Other types compile another version:


# %%
@njit
def scaled(x, factor, out):
    """Write factor * x into out."""
    for i in range(x.size):
        out[i] = factor * x[i]


v, w = np.ones(100), np.zeros(100)
for _ in range(3):
    before = time.perf_counter()
    scaled(v, 2.0, w)
    print(f"{(time.perf_counter() - before) * 1e6:12,.1f} µs")

# %% [markdown]
# The first call is as long as thousands of others. Which of the following calls are *first* calls?
#
# **Predict.** Six more calls. For how many versions is `scaled` compiled then, with the one above?
#
# ```python
# scaled(v, 3.0, w)                    # another value
# scaled(v[:50], 2.0, w)               # another length
# scaled(v, 2, w)                      # an int
# scaled(v.astype("float32"), 2.0, w)  # another dtype
# scaled(v[::2], 2.0, w)               # every second element
# scaled(v[::-1], 2.0, w)              # reversed
# ```

# %% tags=["prediction"]
versions = predict("11.versions", "scaled after these six calls: how many compiled versions?")
versions

# %%
for arguments in (
    (v, 3.0, w),
    (v[:50], 2.0, w),
    (v, 2, w),
    (v.astype("float32"), 2.0, w),
    (v[::2], 2.0, w),
    (v[::-1], 2.0, w),
):
    scaled(*arguments)
for types in scaled.signatures:
    print(*types)
versions.reveal(len(scaled.signatures), factor=1.0)

# %% [markdown]
# **What to see.** A type has the dtype, the number of axes, and whether the array lies in one piece
# (`C`, or `F` for a transposed one) or has any strides (`A`). Values and lengths are no part of it.
# An int is another type than a float.
#
# > **Real bug: an hour for a tuple.** For an array the length is no part of the type; for a
# > *tuple* it is, and so is the type of each of its elements. In July 2020 somebody reported to
# > Numba ([numba#5953](https://github.com/numba/numba/issues/5953)) that a function with a nested
# > tuple of 250 elements, four arrays in each, took **one hour** to compile. The function did
# > nothing: `return a`. Their table for tuples of tuples of arrays goes from half a second, for 5
# > elements, to 192 seconds, for 100. The compiler writes code for each element of a tuple. For an
# > array it writes a loop. So data whose length changes belongs in arrays. (The bug hunt of this
# > lesson has a small relative of this.)
#
# The type also decides what is computed. In compiled code `0.5` is a float64, so `0.5 * x[i]` is a
# float64 for an x of float32; it is rounded when it is stored. Compiled code divides like Python:
# where NumPy gives nan for 0 / 0, it raises `ZeroDivisionError`. And it does *not check indices*:
# `out[-1]` is the last element, but `out[out.size]` is somebody else's memory. (Checks run your
# kernels as plain Python first, where an index out of bounds raises.)
#
# ## 3. Arrays that nobody wants
#
# The sigmoid, 1 / (1 + exp(-x)), is a chain of four operations. NumPy runs them one after the
# other, and each writes a whole array:

# %%
SIGMOID = ["-x", "math.exp(x)", "1.0 + x", "1.0 / x"]


def in_numpy(x):
    """Return the sigmoid, by four operations of NumPy."""
    return 1 / (1 + np.exp(-x))


logits = random.standard_normal((1024, 1024)).astype(np.float32)
answers = np.empty_like(logits)
big, target = logits.reshape(-1), answers.reshape(-1)  # the same numbers, in one row

# %% [markdown]
# **Predict.** Each of the four operations reads an array of n numbers, and writes one. One kernel
# for the whole chain would read x and write the result. How many times as many bytes do the four
# operations move?

# %% tags=["prediction"]
more = predict("11.bytes", "Four operations, or one kernel for all: how many times the bytes?")
more

# %%
values = random.standard_normal(1000).astype(np.float32)


@njit
def four_steps(x, out):
    """Compute the sigmoid by four operations on whole arrays."""
    negative = -x
    powers = np.exp(negative)
    sums = np.float32(1) + powers
    np.divide(np.float32(1), sums, out)


@njit
def one_step(x, out):
    """Compute the sigmoid element by element."""
    for i in range(x.size):
        out[i] = 1 / (1 + math.exp(-x[i]))


moved = {}
for kernel in (four_steps, one_step):
    result = np.zeros_like(values)
    made = temporaries(kernel, (values, result))
    counts = watched(kernel, ("x", "out"), (values, result))
    moved[kernel] = 4 * (sum(counts.reads.values()) + sum(counts.writes.values()))
    print(f"{kernel.__name__}: {made} arrays made, {moved[kernel]:,} bytes read or written")
more.reveal(moved[four_steps] / moved[one_step], factor=1.0)

# %% [markdown]
# **What to see.** Numba's allocator says how many arrays a compiled kernel asks for. Fusing does
# not save operations: it saves the way to memory and back.
#
# **Write** `fuse`. It takes a chain of operations as texts and returns one kernel, as minigrad's
# own `emitter` does. (The engine's has types, several inputs and many outputs, but the idea is
# this.) A text becomes a function by `exec(text, names)`: it runs the text, which finds its globals
# in the dict `names`, and leaves there what it defines.

# %% tags=["exercise"]
check("11.fuse")

# %%
needs("11.fuse")
mine = load("11")
sigmoid = mine.fuse(SIGMOID)
print(f"NumPy, four operations: {seconds(in_numpy, big) * 1e3:.2f} ms")
print(f"your kernel:            {seconds(sigmoid, big, target) * 1e3:.2f} ms")
print("largest difference:", float(np.abs(target - in_numpy(big)).max()))

# %% [markdown]
# If yours is not much quicker: an exponential takes longer than its way to memory. NumPy computes
# 8 or 16 of them at once; what Numba makes of `math.exp` computes one after the other. So here the
# loop waits for arithmetic, and not for lines. A chain of cheap operations shows what fusing saves:

# %%
needs("11.fuse")
cheap = mine.fuse(["x * 0.5", "x + 1.0", "x * x", "x - 3.0"])
print(f"NumPy: {seconds(lambda: (big * 0.5 + 1.0) ** 2 - 3.0) * 1e3:.2f} ms")
print(f"yours: {seconds(cheap, big, target) * 1e3:.2f} ms")

# %% [markdown]
# A softmax cannot be one pass: before the first exponential, the largest element of the row must be
# known, and before the first result, the sum. But it needs no array in between.
#
# **Write** `k_softmax_fused`.

# %% tags=["exercise"]
check("11.k_softmax_fused")

# %% [markdown]
# ## 4. Lines that come back
#
# A product of two (n, n) matrices makes n³ multiplications with only 2 n² numbers: each is needed
# n times. If it stayed in the cache from one use to the next, it would be fetched once.


# %%
@njit
def row_by_column(a, b, c):
    """Multiply matrices as on paper."""
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = np.float32(0)
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            c[i, j] = total


@njit
def row_by_row(a, b, c):
    """Multiply matrices, adding rows of b into a row of c."""
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


def lines_of(kernel, n, *more):
    """Return the lines that a product of two (n, n) matrices fetches into the small cache."""
    a, b, c = np.ones((3, n, n))
    names = ("a", "b", "c", "block")[: 3 + len(more)]
    return sum(watched(kernel, names, (a, b, c, *more)).fetched.values())


names = ("a", "b", "c")
for kernel in (row_by_column, row_by_row):
    a, b, c = np.ones((3, 32, 32))
    counted = watched(kernel, names, (a, b, c)).fetched
    print(f"{kernel.__name__:14} {counted}, of {a.nbytes // 64} lines each; the cache has {LINES}")

# %% [markdown]
# **What to see.** Both use all of b for each row of a. Between two uses of a line of b, all other
# lines of b go through the cache; b has 128, the cache holds 64. So each comes 32 times. (The two
# differ in another thing, that real machines care about: the inner loop of `row_by_row` goes along
# lines, so that 8 or 16 products are computed at once.)
#
# A **block** of 8 x 8 float64 numbers has 8 lines. Three of them, one of each matrix, fit easily.
# What can be done with them is done while they are there.
#
# **Predict.** With blocks of 8, how many lines are fetched in all, for the matrices above?

# %% tags=["prediction"]
blocked_lines = predict("11.lines", "(32, 32) matrices in blocks of 8: how many lines in all?")
blocked_lines

# %% tags=["exercise"]
check("11.k_matmul_blocked")

# %%
needs("11.k_matmul_blocked")
mine = load("11")
blocks = [1, 2, 4, 8, 12, 16, 24, 32]
model = [lines_of(mine.k_matmul_blocked, 32, block) for block in blocks]
large = np.ones((512, 512), np.float32)
product = np.empty_like(large)
real_blocks = [4, 8, 16, 32, 64, 128, 256, 512]
times = [seconds(mine.k_matmul_blocked, large, large, product, b, total=0.1) for b in real_blocks]
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
left.plot(blocks, model, "o-")
left.axhline(3 * 128, color="gray", linestyle="--", linewidth=1)
left.set(xlabel="block, for matrices (32, 32)", ylabel="lines fetched (model)", ylim=(0, None))
right.semilogx(real_blocks, [2 * 512**3 / t / 1e9 for t in times], "o-", base=2)
right.set(xlabel="block, for matrices (512, 512)", ylabel="billion operations a second (measured)")
for axis in (left, right):
    axis.grid(alpha=0.3)
plt.show()
blocked_lines.reveal(model[blocks.index(8)], factor=1.2)

# %% [markdown]
# **What to see.** On the left, the model: small blocks make little use of what they fetch, large
# ones do not fit any more. (The dashed line: each line once.) On the right your machine, whose
# caches are larger. Very small blocks lose there, too: their loops end before they have begun. How
# much large blocks lose depends on the cache.
#
# The next cell compares. Is yours ten times as slow as `row_by_row` there? An index may be negative
# in Numba, as in Python. For an index that begins at `left`, compiled code must look at each step
# whether it is; and then it cannot compute 8 or 16 products at once. A loop that begins at 0, over
# a view such as `row = c[i, left : left + block]`, needs no such look. (A view of a row of an array
# in one piece is in one piece itself. A view of a *block* is not: Numba gives it the type for any
# strides.)

# %%
needs("11.k_matmul_blocked")
for name, kernel in (
    ("on paper", row_by_column),
    ("row by row", row_by_row),
    ("your blocks", mine.k_matmul_blocked),
    ("BLAS", np.matmul),
):
    rate = 2 * 512**3 / seconds(kernel, large, large, product, total=0.1) / 1e9
    print(f"{name:12} {rate:7.1f} billion operations a second")

# %% [markdown]
# ## 5. What your machine can do
#
# A kernel waits for bytes or for arithmetic. Two numbers say what is possible: how many bytes a
# second come from memory, and how many operations a second the processor makes. A kernel that makes
# few operations for each byte cannot be quicker than memory. The drawing of this is called
# **roofline** (S. Williams, A. Waterman and D. Patterson, 2009). Here it is for *your* machine,
# measured now.
#
# **Predict.** An addition of two float32 numbers that come from memory is one operation for 8
# bytes. How many operations must a kernel make for each byte, until arithmetic decides?

# %% tags=["prediction"]
corner = predict("11.corner", "Operations for each byte from which on arithmetic decides?")
corner

# %%
stream = np.ones(1 << 24, np.float32)  # 64 MiB, more than most caches
copy = np.empty_like(stream)
long_rows, sums = stream.reshape(4096, 4096), np.zeros(4096, np.float32)
bandwidth = max(
    2 * stream.nbytes / seconds(np.copyto, copy, stream),
    stream.nbytes / seconds(along, long_rows, sums),
)
squares = [random.random((size, size), np.float32) for size in (512, 1024)]
peak = max(2 * len(a) ** 3 / seconds(np.matmul, a, a) for a in squares)
print(f"{bandwidth / 1e9:.1f} GB/s from memory, {peak / 1e9:.0f} billion operations/s (BLAS)")
corner.reveal(peak / bandwidth, factor=3.0)

# %%
n = 512
a, b = random.random((2, n, n), np.float32)
c = np.empty_like(a)
points = {}


def place(name, operations, nbytes, kernel, *arguments):
    """Measure a kernel, and note its place in the drawing."""
    points[name] = (operations / nbytes, operations / seconds(kernel, *arguments))


place("sum, down", x.size, x.nbytes, down, x, out)
place("sum, along", x.size, x.nbytes, along, x, out)
place("product on paper", 2 * n**3, 3 * a.nbytes, row_by_column, a, b, c)
place("product, BLAS", 2 * n**3, 3 * a.nbytes, np.matmul, a, b, c)
place("chain, NumPy", 4 * big.size, 8 * big.nbytes, lambda: (big * 0.5 + 1.0) ** 2 - 3.0)

needs("11.k_sum_axis", "11.fuse", "11.k_softmax_fused", "11.k_matmul_blocked")
mine = load("11")
cheap = mine.fuse(["x * 0.5", "x + 1.0", "x * x", "x - 3.0"])
place("your k_sum_axis", x.size, x.nbytes, mine.k_sum_axis, x, 0, out)
place("your fused chain", 4 * big.size, 2 * big.nbytes, cheap, big, target)
place("your softmax", 5 * logits.size, 2 * logits.nbytes, mine.k_softmax_fused, logits, answers)
place("your product", 2 * n**3, 3 * a.nbytes, mine.k_matmul_blocked, a, b, c)
figure, axis = plt.subplots(figsize=(9.5, 5), layout="constrained")
draw_roofline(axis, bandwidth, peak, points)
axis.set(
    xlabel="operations for each byte that must move",
    ylabel="billion operations a second",
)
plt.show()

# %% [markdown]
# **What to see.** Under the slope, bytes decide; under the flat part, operations. The corner says
# how many operations a byte must be worth on your machine. The sums and chains stand on the left:
# there is no better arithmetic that could help them, only fewer bytes. The fused chain stands
# further *right* than NumPy's, as it moves fewer. A point may lie above the slope, if its data was
# in the cache. (An exponential counts as one operation here, and is many: so the softmax lies far
# below the roof.) Your product is far above the one on paper, and below BLAS: that one also keeps
# small tiles in registers, uses all cores, and has been tuned for years.
#
# ## 6. Two at a time
#
# With `nogil=True`, a compiled kernel lets other Python threads run. So two threads can do half of
# the work each. But it takes time to give work to a thread, and to wait for it.

# %%
needs("11.fuse")
free = njit(nogil=True)(load("11").fuse(SIGMOID).py_func)  # .py_func: before it was compiled
workers = ThreadPoolExecutor(2)


def alone(x, out):
    """Run the kernel in this thread."""
    free(x, out)


def two_threads(x, out):
    """Run the kernel in two threads, half of the array in each."""
    half = x.size // 2
    parts = [workers.submit(free, x[:half], out[:half]), workers.submit(free, x[half:], out[half:])]
    for part in parts:
        part.result()


measured = {"alone": [], "two threads": []}
for n in (256, 1024, 4096, 16384, 65536, 262144, 1048576):
    for name, run in (("alone", alone), ("two threads", two_threads)):
        measured[name].append((n, seconds(run, big[:n], target[:n], total=0.05)))

# %% [markdown]
# **Predict.** From about how many elements on are two threads quicker?

# %% tags=["prediction"]
crossing = predict("11.crossing", "From how many elements on are two threads quicker than one?")
crossing

# %% [markdown]
# **Write** `pick_kernel`: which of some kernels is quickest for n elements, by what was measured?

# %% tags=["exercise"]
check("11.pick_kernel")

# %%
needs("11.pick_kernel", "11.fuse")
mine = load("11")
figure, axis = plt.subplots(figsize=(9, 3.6), layout="constrained")
for name, points_of in measured.items():
    axis.loglog(*zip(*points_of, strict=True), "o-", label=name)
sizes = np.unique(np.geomspace(128, 1 << 20, 120).astype(int))
picked = [mine.pick_kernel(int(n), measured) for n in sizes]
changes = [sizes[k] for k in range(1, len(sizes)) if picked[k] != picked[k - 1]]
for n in changes:
    axis.axvline(n, color="gray", linestyle="--", linewidth=1)
axis.set(xlabel="elements", ylabel="seconds", title="a fused sigmoid")
axis.legend()
axis.grid(alpha=0.3)
plt.show()
print("pick_kernel changes its mind at:", *(f"{n:,}" for n in changes))
if changes:
    crossing.reveal(int(changes[-1]), factor=2.0)

# %% [markdown]
# **What to see.** Alone, the time goes down with the size. Two threads have a least time, the way
# to the threads and back, however little there is to do. The dashed line is where your function
# changes its mind. (With one core, or when others compute at the same time, the lines may never
# cross.) The engine has such thresholds, too: its kernels run in threads only above a size that was
# measured.
#
# ## 7. Your kernels in the engine
#
# `mg.use(kernels={...})` puts your kernels in the place of the engine's. Products come with any
# strides: the backward pass multiplies by transposed matrices, and those are views.

# %%
images, labels = mg.data.load_digits()
rows = (images.reshape(-1, 64).astype(np.float32) - 0.5)[:512]
one_hot = np.eye(10, dtype=np.float32)[labels[:512]]


def train(steps=30):
    """Train a small network on the digits; return its losses."""
    start = np.random.default_rng(1)
    weights = [
        mg.variable(start.normal(0, 0.3, shape).astype(np.float32), requires_grad=True)
        for shape in ((64, 32), (32, 10))
    ]
    losses = []
    for step in range(steps):
        now = slice(step * 64 % 512, step * 64 % 512 + 64)
        inputs, targets = mg.variable(rows[now]), mg.variable(one_hot[now])
        outputs = mg.softmax(mg.sigmoid(inputs @ weights[0]) @ weights[1])
        loss = -(mg.log(outputs) * targets).sum() / 64
        gradients = mg.gradients([loss], weights)
        with mg.no_grad():
            weights = [
                (w - g * 1.0).detach().requires_grad_()
                for w, g in zip(weights, gradients, strict=True)
            ]
        losses.append(loss.item())
    return losses


reference = train()

# %%
needs("11.k_softmax_fused", "11.fuse", "11.k_matmul_blocked")
mine = load("11")
my_kernels = {
    "softmax": mine.k_softmax_fused,
    "sigmoid": mine.fuse(SIGMOID),
    "matmul": mine.k_matmul_blocked,
}
with mg.use(kernels=my_kernels) as used:
    ours = train()
draw_losses({"minigrad's kernels": reference}, {"your kernels": ours}, title="Digits")
for name, part in (
    ("softmax", "11.k_softmax_fused"),
    ("sigmoid", "11.fuse"),
    ("matmul", "11.k_matmul_blocked"),
):
    # light lights the part's tile in `minigrad status` if the losses agree
    print(light(part, mine=ours, reference=reference, calls=used.launches[name]))

# %% [markdown]
# **What to see.** The two lines are the same. All products, of the backward pass, too, all
# softmaxes and sigmoids went through your loops. And how long do they take, beside the engine's
# own?

# %%
needs("11.k_softmax_fused", "11.fuse", "11.k_matmul_blocked")
many, some = logits[:512, :512].copy(), np.empty((512, 512), np.float32)
flat, into = many.reshape(-1), some.reshape(-1)
v_many, v_flat, v_a, v_b = (mg.variable(one) for one in (many, flat, a, b))


def numpy_softmax(x):
    """Return the softmax of rows, by NumPy."""
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


compared = {
    "softmax (512, 512)": {
        "yours": seconds(mine.k_softmax_fused, many, some),
        "engine": seconds(mg.softmax, v_many),
        "NumPy": seconds(numpy_softmax, many),
    },
    "sigmoid (262,144)": {
        "yours": seconds(mine.fuse(SIGMOID), flat, into),
        "engine": seconds(mg.sigmoid, v_flat),
        "NumPy": seconds(in_numpy, flat),
    },
    "product (512, 512)": {
        "yours": seconds(mine.k_matmul_blocked, a, b, c),
        "engine": seconds(mg.matmul, v_a, v_b),
        "NumPy": seconds(np.matmul, a, b, c),
    },
}
figure, axis = plt.subplots(figsize=(9, 3.8), layout="constrained")
draw_times(axis, compared)
axis.set(xlabel="work", ylabel="microseconds, logarithmic")
plt.show()

# %% [markdown]
# **What to see.** The axis is logarithmic: each line up is ten times as long. NumPy's product is
# that of a BLAS, written for processors like yours; the engine calls it, too, and nobody's loops in
# Numba come near. For softmax and sigmoid the engine's kernels are loops like yours. Where they are
# quicker, it is for their exponential: a polynomial of additions and multiplications, of which the
# compiler does 8 or 16 at once, and for two threads.
#
# ## 8. Bug hunt
#
# At the end of your exercise file, `smooth_all` smooths signals. Its results are right. Here are
# its times for some signals, each with weights of its own:

# %%
mine = load("11")
signals = [random.standard_normal(200) for _ in range(8)]
lengths = [3, 3, 5, 3, 8, 5, 9, 3]
took = []
for signal, length in zip(signals, lengths, strict=True):
    before = time.perf_counter()
    mine.smooth_all([signal], [[1.0 / (k + 1) for k in range(length)]])
    took.append((time.perf_counter() - before) * 1e3)
figure, axis = plt.subplots(figsize=(9, 2.8), layout="constrained")
axis.bar(range(len(took)), took)
axis.set_yscale("log")
axis.set(xlabel="call", ylabel="milliseconds")
axis.grid(axis="y", alpha=0.3)
plt.show()
for types in mine.k_smooth.signatures:
    print(*types)

# %% [markdown]
# **What to see.** Some calls take a thousand times as long as others, and below the drawing is for
# what the kernel was compiled. In the function as it came, that list grows. (After your repair the
# first call alone is long.)
#
# Which line makes the argument whose type changes? And what in it makes the type another one? Write
# both into `BUG`, then repair `smooth_all`.

# %% tags=["exercise"]
check("11.smooth_all")

# %% [markdown]
# ## Where you are
#
# - Memory hands out lines. A loop that walks across them fetches much more than it uses; strides
#   say which way is along.
# - A kernel is compiled for types. Dtype, number of axes and layout are part of an array's type,
#   its length is not; for a tuple, it is.
# - Fusing saves arrays, not operations. Where bytes decide, that is what counts.
# - Blocks use what was fetched before it goes.
# - A roofline says what a kernel waits for: bytes or arithmetic. Threads help if there is enough to
#   do. Where that begins, you measure.
#
# **Next:** lesson 12, in which kernels do not compile. Or go on with lesson 13: there thousands of
# threads run one kernel, and lines are called sectors.

# %%
from minigrad.course.predictions import summary

print(summary("11"))

# %% tags=["exercise"]
check("11")
