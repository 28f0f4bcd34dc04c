# %% [markdown]
# # 14 · From tape to program
#
# **You need** lesson 05: whose bytes are these? Lessons 04 and 06 help. **It takes** about 165
# minutes; after section 4 is a good place for a break. **At the end** you have written the passes
# of a small compiler: they record a training step, drop what nobody needs, fuse operations into
# kernels, and let results take memory that is no longer needed; and your compiler trains the
# digits. Next: lesson 15, numbers of half the bits.
#
# Your code goes into `exercises/14_compile.py`. (You need none of lessons 10 to 13.)

# %% tags=["live"]
from minigrad.course import watch

watch("14")  # what you save in exercises/14_compile.py is graded here at once

# %%
import time
from textwrap import shorten

import matplotlib.pyplot as plt
import numpy as np

import minigrad as mg
from minigrad.course import check, hint, load, needs, predict, scrub
from minigrad.course.l14_compile import costs, generate, machine
from minigrad.course.l14_compile.drawing import draw_kernels, draw_plan, table
from minigrad.course.l14_compile.programs import Draft
from minigrad.course.objects import Op, Program
from minigrad.course.pictures import draw_losses

plt.style.use("minigrad.course.house")

# %% [markdown]
# ## 1. Many small trips to memory
#
# A training step is a few lines of Python and dozens of operations. Each operation is a *kernel*: a
# loop that reads its operands from memory, computes, and writes its result to memory. Then the next
# kernel reads that result from memory again. An engine that runs one operation at a time, such as
# the one that you have built so far, cannot do better: when `tanh` runs, the engine does not know
# that a product comes next.
#
# A **compiler** knows it, because it sees the whole step before it runs any of it. `mg.compile`
# makes one program of such a step: forward, backward and optimizer. (The first time, this takes
# some seconds; the compiled program is kept on disk.)

# %%
images, labels = mg.data.load_digits()
mg.manual_seed(0)
first, second = mg.nn.Linear(64, 256), mg.nn.Linear(256, 10)
parameters = [*first.parameters(), *second.parameters()]
optimizer = mg.optim.SGD(parameters, learning_rate=0.1, momentum=0.9)


@mg.compile
def whole_step(rows, targets):
    """Take a training step; return the loss."""
    hidden = first(rows)
    loss = mg.cross_entropy(second(mg.tanh(hidden) * mg.sigmoid(hidden)), targets)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


rows, targets = mg.variable(images.reshape(-1, 64)[:32]), mg.variable(labels[:32])
print("three steps, three losses:", [round(whole_step(rows, targets).item(), 4) for _ in range(3)])
report = whole_step.report()
print(f"operations, one by one: {report.instructions_before}")

# %% [markdown]
# **Predict.** The step has five matrix products, and no two of them share a call. How many calls
# are left after compiling, products included?

# %% tags=["prediction"]
left = predict("14.calls", "How many calls are left of these operations?")
left

# %%
left.reveal(report.calls, factor=1.3)

# %% [markdown]
# Half of the operations have disappeared into others. This lesson shows how. You write the passes
# of a compiler, for a small language in which you can see everything, and they compile a training
# step. At the end, section 6 shows this program again, as a picture.
#
# ## 2. Writing it down
#
# How can a compiler learn what a function does? It *runs the function once on stand-ins*. A
# `Tracer` looks like a matrix, but it has only a name and a shape, and no numbers. When it is added
# to another one, it writes "add" on a tape. After the run, the tape holds the program.
#
# **Write** `trace`. The class is there, with all its operators. You write its two important
# methods.

# %% tags=["exercise"]
check("14.trace")


# %%
def small(x, w):
    """Return 2 tanh(x @ w); one result is not used."""
    y = (x @ w).tanh()
    y.exp()
    return 2.0 * y


needs("14.trace")
mine = load("14")
print(mine.trace(small, {"x": (4, 3), "w": (3, 2)}))

# %% [markdown]
# Each line is an `Op`: a new value, the operation that makes it, and the values that the operation
# reads. Here is a training step of a network for the digits: forward, with ReLU written as a
# product; backward, with the formulas of lessons 01 and 04; and gradient descent with momentum
# (lesson 08). `good` measures how well the answers agree with the targets, but the function does
# not return it.

# %%
rate = 0.02
N, HIDDEN = 32, 128  # rows of a batch, hidden units
SHAPES = {
    "x": (N, 64), "t": (N, 10),
    "w1": (64, HIDDEN), "b1": (1, HIDDEN), "w2": (HIDDEN, 10), "b2": (1, 10),
    "v1": (64, HIDDEN), "c1": (1, HIDDEN), "v2": (HIDDEN, 10), "c2": (1, 10),
}  # fmt: skip
STATE = ["w1", "b1", "w2", "b2", "v1", "c1", "v2", "c2"]


def train_step(x, t, w1, b1, w2, b2, v1, c1, v2, c2):
    """Return the loss of a batch, and the weights and velocities after a step."""
    z = x @ w1 + b1
    on = z > 0  # 1 or 0: no `if` in it
    h = on * z
    y = h @ w2 + b2
    d = y - t
    loss = (d * d).sum() / N
    good = y * t
    (good * good).sum()

    dy = d * (2 / N)
    dw2, db2 = h.T @ dy, dy.sum_rows()
    dz = (dy @ w2.T) * on
    dw1, db1 = x.T @ dz, dz.sum_rows()

    v1, c1, v2, c2 = 0.9 * v1 + dw1, 0.9 * c1 + db1, 0.9 * v2 + dw2, 0.9 * c2 + db2
    w1, b1, w2, b2 = w1 - rate * v1, b1 - rate * c1, w2 - rate * v2, b2 - rate * c2
    return loss, w1, b1, w2, b2, v1, c1, v2, c2


needs("14.trace")
recorded = mine.trace(train_step, SHAPES)
print(f"{len(recorded.ops)} operations; the first and the last three:")
print(*map(str, [*recorded.ops[:3], "…", *recorded.ops[-3:]]), sep="\n")

# %% [markdown]
# A program can be run again and again: `machine.run` goes through the list with NumPy. But what
# exactly does the list contain? `rate` is a number from outside the function.
#
# **Predict.** The step was traced with `rate = 0.02`. Now somebody sets `rate = 0.0`, to freeze the
# network, and runs the recorded program. Do the weights move?

# %% tags=["prediction"]
frozen = predict(
    "14.frozen",
    "rate = 0.0 after tracing: do the weights move?",
    choices=("yes", "no"),
)
frozen

# %%
(x_all, y_all), (x_new, y_new) = mg.data.stratified_split(
    images.reshape(-1, 64).astype(float) - 0.5, labels
)
one_hot = np.eye(10)
random = np.random.default_rng(0)


def start():
    """Return weights to begin with, and velocities of zero."""
    state = {name: np.zeros(SHAPES[name]) for name in STATE}
    random = np.random.default_rng(1)
    state["w1"] += random.standard_normal(SHAPES["w1"]) / 8
    state["w2"] += random.standard_normal(SHAPES["w2"]) / 16
    return state


def a_batch(rows):
    """Return images and targets of some rows."""
    return {"x": x_all[rows], "t": one_hot[y_all[rows]]}


needs("14.trace")
state = start()
rate = 0.0
_, new_w1, *_ = machine.run(recorded, a_batch(slice(0, N)) | state)
rate = 0.02
moved = np.abs(new_w1 - state["w1"]).max()
print(f"largest change of a weight: {moved:.4f}")
frozen.reveal("yes" if moved > 0 else "no")

# %% [markdown]
# Python ran the function *once*. The numbers that it met were written into the program. A `print`
# would have printed once. Only one side of an `if` would have been recorded; that is why your
# Tracer must raise an error at an `if`. All compilers that trace have this problem, and there are
# three ways to deal with it. They refuse what they notice (yours, and JAX, whose error is a
# `TracerBoolConversionError`). They watch outside values, and trace again when one has changed
# (PyTorch's guards). For the rest, they ask you to pass everything that may change as an argument.
#
# minigrad's own compiler watches what it can. It also traces some later calls of a compiled
# function again (calls 3, 5, 9, 17 and so on), and compares the result with the program.

# %%
factor = 2.0


@mg.compile
def scaled(x):
    """Return the sum of x, times a number from outside."""
    return (x * factor).sum()


x = mg.variable([1.0, 2.0])
print("calls 1 and 2:", scaled(x).item(), scaled(x).item())
factor = 3.0
try:
    scaled(x)
except mg.errors.TraceError as error:
    print(error)

# %% [markdown]
# Between these calls, the compiled function would use the old number without an error. The cure,
# here as in other compilers, is to pass the number as an argument: `mg.variable(factor)`.
#
# ## 3. Operations that nobody needs
#
# An operation is *dead* if no output depends on it. **Write** `eliminate_dead`, which leaves out
# all of them.

# %% tags=["exercise"]
check("14.eliminate_dead")

# %%
needs("14.eliminate_dead", "14.trace")
mine = load("14")
alive = mine.eliminate_dead(recorded)
gone = [str(op) for op in recorded.ops if op not in alive.ops]
print(f"{len(recorded.ops)} operations, {len(alive.ops)} left. Gone:")
print(*gone, sep="\n")

# %% [markdown]
# It finds the whole chain behind `good`, not only its end. Nobody writes dead code on purpose, but
# it arises often: a backward pass computes gradients that nobody asked for, or a layer returns more
# than its caller uses.
#
# (In this language, an operation can only make a value. Other languages have operations that print,
# write in place or draw random numbers; these are needed even if nobody reads their result.
# minigrad's own compiler keeps operations that write to memory from outside the step, and
# operations that check its inputs.)
#
# ## 4. One loop instead of many
#
# The remaining operations are all needed, but they use memory in a wasteful way. `z = x @ w1 + b1`,
# `on = z > 0` and `on * z` are four kernels. The second reads everything that the first has just
# written, adds `b1`, and writes all of it again for the third. An addition takes a fraction of a
# nanosecond, and a trip to memory takes much longer. To *fuse* kernels means to do all their work
# on an entry in one loop, while the entry is in a register. A value that only this loop needs is
# never written to memory.
#
# When is that possible? Each turn of the loop computes *one entry* of each operation. So an
# operation can join the loop if it needs only this one entry of its inputs.
#
# **Predict.** `e = exp(x)`, `s = sum(e)`, `p = e / s`: a softmax over one row. How many loops does
# it need at least?

# %% tags=["prediction"]
softmax = predict("14.softmax", "exp, sum, div: how many loops at least?", choices=(1, 2, 3))
softmax

# %% tags=["exercise"]
check("14.fuse")

# %%
draft = Draft(x=(1, 6))
e = draft.op("exp", "x")
s = draft.op("sum", e)
row = draft.returns(draft.op("div", e, s))

needs("14.fuse")
mine = load("14")
groups = mine.fuse(row)
for number, group in enumerate(groups):
    print(generate.source(row, group, number))
softmax.reveal(len(groups))

# %% [markdown]
# This is Python text, made from your groups: one function per group, with a loop in it. A value
# that another kernel reads, or that the program returns, is written to an argument `to_…`; every
# other value is a local variable. The `exp` goes to memory, because the second loop reads it again.
# (A compiler could compute it twice instead. FlashAttention does such things: more arithmetic for
# less memory traffic.)
#
# What happens if somebody overlooks the sum, and puts all three into one loop? Then the loop
# divides each entry by the sum *so far*:

# %%
x = np.array([[0.0, 1.0, 2.0, 3.0, 2.0, 1.0]])
for name, some in (("two loops", [[*row.ops[:2]], [row.ops[2]]]), ("one loop", [[*row.ops]])):
    [p] = machine.run_groups(row, some, {"x": x})
    print(f"{name}: {p[0].round(3)}, together {p.sum():.3f}")

# %% [markdown]
# The first entry of such a wrong softmax is always 1, which is a good way to recognize it. Now your
# groups for the training step:

# %%
needs("14.fuse", "14.eliminate_dead", "14.trace")
groups = mine.fuse(alive)
figure, axes = plt.subplots(2, 1, figsize=(9.5, 5.2), height_ratios=[1, 4], layout="constrained")
draw_kernels(axes[0], costs.op_by_op(recorded), f"as recorded: {len(recorded.ops)} kernels")
draw_kernels(axes[1], groups, f"after your passes: {len(groups)} kernels")
for axis in axes:
    axis.set(xlabel="kernel, in the order in which they run", ylabel="operations in it")
plt.show()

# %% [markdown]
# **What to see.** Each column is a kernel. The blue ones, products and transposes, still stand
# alone. Between them are taller columns: bias and ReLU in one loop, and the loss in another,
# together with the first operations of the backward pass. (The `div` beside it is the end of the
# loss; it needs the complete sum.) The four columns on the right are the optimizer's, with velocity
# and weight in one loop. Here is the first of them:

# %%
needs("14.fuse", "14.eliminate_dead", "14.trace")
update = groups[-4]
print(generate.source(alive, update, len(groups) - 4))

# %% [markdown]
# ## 5. Whose memory is it?
#
# The step gets weights, and returns new ones. While it runs, both are in memory. But a training
# loop says `w = step(w)`, and never uses the old weights again. To *donate* an argument means to
# tell the compiler: "you may use its memory; I do not need it any more". Then the new weights can
# be written over the old ones, if nothing in the step still reads those.
#
# > **Real bug: `x += x.T`.** In [NumPy issue 1683](https://github.com/numpy/numpy/issues/1683),
# > somebody adds the transpose of a matrix to the matrix itself, in place. The transpose is a view:
# > the same bytes, read in another order. Ten lines are enough to show it:


# %%
def add_in_place(x, y):
    """Add y to x, as a kernel does: entry by entry, each written as soon as it is computed."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = x[i, j] + y[i, j]


a = np.array([[1, 2], [3, 4]])
add_in_place(a, a.T)
b = np.array([[1, 2], [3, 4]])
b += b.T
print("entry by entry:", a.tolist(), "  NumPy today:", b.tolist())

# %% [markdown]
# The left result is the one in the issue. Since version 1.13 (2017), NumPy checks whether memory
# overlaps, and makes a copy where it might matter. Yet such bugs return: in April 2026,
# `np.matvec(A, b, out=b)` returned zeros, because two new functions had been left out of that check
# ([numpy#31150](https://github.com/numpy/numpy/pull/31150)).
#
# **Predict.** How many of these four may write their result, entry by entry, into the memory of
# `a`: `tanh(a)`, `a * a`, `a @ b`, `a.T`? All matrices are square.

# %% tags=["prediction"]
inside = predict(
    "14.in_place",
    "Of tanh(a), a * a, a @ b and a.T: how many in place?",
    choices=range(5),
)
inside

# %% tags=["exercise"]
check("14.may_alias")

# %%
needs("14.may_alias")
mine = load("14")
square = {"a": (3, 3), "b": (3, 3)}
operands = {"tanh": ("a",), "mul": ("a", "a"), "matmul": ("a", "b"), "transpose": ("a",)}
values = {name: np.round(random.uniform(-1, 1, (3, 3)), 1) for name in square}
allowed = 0
for name, inputs in operands.items():
    one = Program((Op(name, inputs, "y"),), ("a", "b"), ("y",), square | {"y": (3, 3)})
    [right], [found] = machine.run(one, values), machine.run_in_place(one, values, {"y": "a"})
    says = mine.may_alias(one, "a", "y")
    allowed += says
    error = np.abs(found - right).max()
    print(f"{name:<10} may_alias: {says!s:<6} run in place, the largest error is {error:.2f}")
inside.reveal(int(allowed))

# %% [markdown]
# The right-hand column is measured: there the program really ran in the memory of `a`.
#
# **Write** `donate`, which decides for all donated inputs at once. If it cannot use an input, it
# says why. (JAX has a warning for this, "Some donated buffers were not usable", without a reason;
# [jax#9675](https://github.com/jax-ml/jax/issues/9675) asks for an error that one can switch on.
# When a donated array was passed a second time in the same call, JAX used to hang on TPU and GPU,
# without any message: [jax#9635](https://github.com/jax-ml/jax/issues/9635). Today this is an
# error.)

# %% tags=["exercise"]
check("14.donate")

# %%
needs("14.donate", "14.may_alias", "14.eliminate_dead", "14.trace")
mine = load("14")
taken, refused = mine.donate(alive, [*STATE, "x"])
for o, i in taken.items():
    print(f"{o:>4} takes the memory of {i}")
for i, why in refused.items():
    print(f"{i:>4} is refused: {why}")

# %% [markdown]
# With a donation, the caller promises not to use the old values. Suppose somebody keeps `best = w`
# in a loop, to come back to it later, and donates `w`. Then the memory of `best` holds other
# numbers, or none. minigrad raises an error when somebody reads it:


# %%
@mg.compile(donate=("w",))
def update(w, dw):
    """Return the weights after a step; their old memory may be used."""
    return w - 0.1 * dw


w, dw = mg.ones((2, 2)), mg.ones((2, 2))
for _ in range(3):
    best, w = w, update(w, dw)
print(f"the new weights are {w.numpy()[0, 0]:.2f} now")
try:
    best.numpy()
except mg.errors.DonatedError as error:
    print(error)

# %% [markdown]
# > **Who proves that it is safe?** In minigrad the compiler does. In IREE the user does: the
# > annotation `iree.abi.output` is a *hint*, with "no guarantee that the storage will alias", and
# > it switches the compiler's own analysis off. When donations from JAX were handed down to IREE in
# > 2023, the results were still copied from extra temporaries "in most cases"
# > ([iree#13678](https://github.com/iree-org/iree/pull/13678)).
#
# ## 6. Your compiler trains the digits
#
# One question is left: *in which order* do the passes run? Fusing moves operations: one that joins
# an earlier loop runs earlier than before. So a value that was read *before* its memory was
# overwritten may now be read *after* that. Here is the smallest case:

# %%
needs("14.donate", "14.may_alias", "14.fuse")
mine = load("14")
draft = Draft(w=(3, 3), g=(3, 3))
step = draft.op("neg", "g")
old = draft.op("matmul", "w", "w")
new_w = draft.op("add", "w", step)
little = draft.returns(old, new_w)
fused = machine.in_order_of(mine.fuse(little), little)
values = {name: np.round(random.uniform(-1, 1, (3, 3)), 1) for name in ("w", "g")}
right = machine.run(little, values)
print("as written:", "; ".join(map(str, little.ops)))
print("as fused:  ", "; ".join(map(str, fused.ops)))
for name, asked in (("donate, then fuse", little), ("fuse, then donate", fused)):
    taken, refused = mine.donate(asked, ["w"])
    found = machine.run_in_place(fused, values, taken)
    wrong = max(np.abs(f - r).max() for f, r in zip(found, right, strict=True))
    print(f"{name}: {taken or refused}, largest error {wrong:.2f}")

# %% [markdown]
# `add` joins the loop of `neg`, so it now runs before the product, which still needs the old `w`.
# Your `donate` notices this if it gets the program in the order in which it will run. So fuse
# first, then donate.
#
# Here are all passes together, on the training step:

# %%
needs("14.donate", "14.may_alias", "14.fuse", "14.eliminate_dead", "14.trace")
recorded = mine.trace(train_step, SHAPES)
alive = mine.eliminate_dead(recorded)
groups = mine.fuse(alive)
fused = machine.in_order_of(groups, alive)
taken, refused = mine.donate(fused, STATE)
stages = {
    "recorded": (recorded, costs.op_by_op(recorded), {}),
    "alive": (alive, costs.op_by_op(alive), {}),
    "fused": (fused, groups, {}),
    "donated": (fused, groups, taken),
}
print(table([(name, *stage) for name, stage in stages.items()]))

# %% [markdown]
# *Moved* counts the bytes that all kernels together read from memory and write to it; *peak* is the
# memory that the step needs to hold all its values. Fusing saves trips to memory, but hardly any
# memory at the peak, because the values that it keeps in registers lived only for a moment anyway.
# Donating saves memory at the peak, but no trips.
#
# The next picture shows where each value is in memory, and when. The slider goes through the
# passes.

# %%
needs("14.donate", "14.may_alias", "14.fuse", "14.eliminate_dead", "14.trace")
highest = max(costs.peak_bytes(costs.plan(*stage)) for stage in stages.values())
scrub(
    lambda axis, name: draw_plan(axis, *stages[name], name, top=highest),
    list(stages),
    label="after",
    show=["recorded", "fused", "donated"],
    columns=3,
    width=3.3,
    height=3.2,
)

# %% [markdown]
# **What to see.** Time goes to the right, kernel by kernel; each bar is a piece of memory. Grey is
# what the caller passes: images, weights and velocities. Orange values live from the kernel that
# makes them to the last one that reads them. On the left and in the middle, the results (blue) need
# memory of their own at the end, beside the old weights. On the right, they are written over the
# donated values (hatched), and the dashed line, the peak, is lower.
#
# Now run it. `generate.Compiled` compiles your groups with Numba, one function each; NumPy still
# computes the products. The next cell runs the same step on the same batches twice, operation by
# operation and compiled:

# %%
needs("14.donate", "14.may_alias", "14.fuse", "14.eliminate_dead", "14.trace")
compiled = generate.Compiled(fused, groups, taken)


def train(step, epochs=15):
    """Train with step(images, targets, *state); return losses, the state, and microseconds."""
    state, losses, seconds = start(), [], []
    random = np.random.default_rng(2)
    for _ in range(epochs):
        order = random.permutation(len(x_all))
        for first in range(0, len(order) - N + 1, N):
            given = a_batch(order[first : first + N]) | state
            before = time.perf_counter()
            loss, *new = step(given)
            seconds.append(time.perf_counter() - before)
            state = dict(zip(STATE, new, strict=True))
            losses.append(float(loss[0, 0]))
    return np.array(losses), state, 1e6 * np.median(seconds)


one_by_one, _, slow = train(lambda given: machine.run(recorded, given))
yours, trained, fast = train(lambda given: compiled(*given.values()))
hidden = np.maximum(x_new @ trained["w1"] + trained["b1"], 0)
accuracy = ((hidden @ trained["w2"] + trained["b2"]).argmax(axis=1) == y_new).mean()

draw_losses(
    {"operation by operation": one_by_one},
    {"compiled by your passes": yours},
    title="The digits, twice",
)
print(f"{accuracy:.1%} of unseen digits read correctly")
print(f"largest difference of the losses: {np.abs(one_by_one - yours).max():.1e}")
print(f"a step, median: {slow:.0f} µs operation by operation, {fast:.0f} µs compiled")

# %% [markdown]
# **What to see.** The two lines are the same: the same numbers, with fewer kernels and less memory.
# (The compiled step is faster, but not by as much as the number of kernels suggests. These arrays
# are small and stay in the cache, where a trip is short, and Python still calls each kernel. On a
# GPU, each kernel has to be launched, and the number of kernels matters more.)
#
# What does minigrad's own compiler do? Here is its report on the step of section 1, in short.
# (`whole_step.report()` prints all of it.)

# %%
print(f"{report.instructions_before} operations, {report.calls} calls:")
for form in report.forms:
    print(f"  {form.calls} × {form.function:<24} {shorten(form.what, 60, placeholder=' …')}")
print(f"\nwritten in place: {len(report.aliases)} arrays, weights and velocities")
for value, place in report.taken_over:
    print(f"  {value.partition(' (')[0]} takes the place of {place.partition(' (')[0]}")

# %% [markdown]
# Each line is a kernel, and says how often it is called. Three lines are new: labels are checked
# before anything is written; a number that all updates need is computed once (`SGD, single
# numbers`); and the last product includes the update of its weight, as its *epilogue*: the product
# is computed in blocks of rows, and each block is used for the update while it is in the cache.
# Your rules leave a product alone, so they could not do that. Nobody donated the weights here: the
# step itself writes to them, as optimizers do, and the compiler must prove for them what your
# `may_alias` proves. The last lines name temporaries that take the place of others, each while the
# old one is read for the last time.
#
# The same program as a picture:

# %%
whole_step.graph()

# %% [markdown]
# **What to see.** (In a narrow window the picture scrolls sideways.) Each purple box is a product,
# and each blue box is a kernel of several operations. Follow the arrows from `rows`: a product, and
# then one kernel for the first layer's bias, `tanh`, `sigmoid` and their product. Then come the
# second product, and one kernel for the loss and the first gradients. An `SGD` box updates velocity
# and parameter together, as soon as their gradient is ready. White labels are values that go
# through memory from one call to another; all other intermediate values stay in registers or in the
# cache. Grey and green values existed before the step, and orange ones exist after it. The teal box
# checks the labels.
#
# Here are its temporary values in memory, before and after compiling:

# %%
mg.viz.memory(whole_step.memory_plan())

# %% [markdown]
# **What to see.** Each bar is a temporary value, from the operation that makes it to the last one
# that reads it. On the left, without the compiler, each has a place of its own. On the right there
# are fewer, because many live in registers only, and the others share places, one after the other.
#
# ## 7. Bug hunt
#
# Before there was a compiler, somebody wrote such a step by hand, and let results overwrite values
# that are no longer needed. It is at the end of your exercise file, 16 lines from A to P. The
# author says that it trains, "but not with every learning rate". The left plot below shows the
# loss. The right plot is a stricter test: it compares the gradient of `w1` that the step has used
# with central differences (lesson 00).

# %%
mine = load("14")


def loss_at(x, t, w1, w2):
    """Return the loss that the docstring of step_in_place states."""
    d = np.tanh(x @ w1) @ w2 - t
    return (d * d).sum() / len(x)


def gradient_error(rate):
    """Return how far the gradient of w1 in a step is from the slope along a random direction."""
    random = np.random.default_rng(3)
    x, t = x_all[:N], one_hot[y_all[:N]]
    w1, w2 = random.standard_normal((64, 16)) / 8, random.standard_normal((16, 10)) / 4
    along = random.standard_normal(w1.shape)
    slope = (loss_at(x, t, w1 + 1e-6 * along, w2) - loss_at(x, t, w1 - 1e-6 * along, w2)) / 2e-6
    _, _, v1, _, _ = mine.step_in_place(x, t, w1, w2, np.zeros((64, 16)), np.zeros((16, 10)), rate)
    return abs((v1 * along).sum() - slope)


def losses_by_hand(rate, steps=150):
    """Train a small network with step_in_place; return its losses."""
    random = np.random.default_rng(4)
    w1, w2 = random.standard_normal((64, 16)) / 8, random.standard_normal((16, 10)) / 4
    v1, v2, found = np.zeros((64, 16)), np.zeros((16, 10)), []
    for _ in range(steps):
        rows = random.integers(0, len(x_all), N)
        w1, w2, v1, v2, loss = mine.step_in_place(
            x_all[rows], one_hot[y_all[rows]], w1, w2, v1, v2, rate
        )
        found.append(loss)
    return found


rates = [0.001, 0.01, 0.03, 0.1, 0.3]
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.4), layout="constrained")
for rate_by_hand in (0.02, 0.1):
    left.plot(losses_by_hand(rate_by_hand), label=f"learning rate {rate_by_hand}")
left.set(xlabel="training step", ylabel="loss", title="Training by hand", ylim=(0, None))
left.legend()
right.loglog(rates, [max(gradient_error(r), 1e-12) for r in rates], "o-")
right.set(xlabel="learning rate", ylabel="error", title="Gradient of w1, against differences")
right.set_ylim(1e-12, 10)
for axis in (left, right):
    axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** The step as it came learns with the small learning rate, but not with the large
# one (left). It would be easy to blame the learning rate. The right side shows the reason: the
# *gradient* has an error that grows with the learning rate. In a correct step, this error is seven
# to ten powers of ten smaller, it is the same for each learning rate, and both losses go down. Why
# does the learning rate change a gradient?
#
# Which donated value is read too late? Which line overwrites it, and which line reads it
# afterwards? Write your answers into `BUG`, then fix the step. Nothing needs to be copied.

# %% tags=["exercise"]
check("14.step_in_place")

# %% [markdown]
# ## Where you are
#
# - Tracing runs Python once, on stand-ins. Numbers from outside are frozen into the program, and an
#   `if` must raise an error.
# - Dead code is found from the end: an operation is needed if an output needs it.
# - An operation can join a loop if it needs only one entry of its inputs per turn. A sum is ready
#   only at the end of its loop.
# - A result may take an input's memory if nobody reads the input after it is overwritten: no later
#   operation, not the same operation at another entry, and not the caller.
# - The order of passes matters: what holds for a program before a pass need not hold after it.
#
# **Next:** lesson 15, where numbers have half the bits. To practise, trace a network of your own
# with three layers, and see how much of its memory your `donate` can use.

# %%
from minigrad.course.predictions import summary

print(summary("14"))

# %% tags=["exercise"]
check("14")
