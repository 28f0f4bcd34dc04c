# %% [markdown]
# # 14 · From tape to program
#
# **You need** lesson 05: whose bytes are these? Lessons 04 and 06 help. **It takes** about two
# hours. **At the end** you have written the passes of a small compiler: they record a training
# step, drop what nobody needs, fuse operations into kernels, and let results take memory that is no
# longer needed; and your compiler trains the digits. Next: lesson 15, mixed precision, which is
# planned.
#
# Your code goes into `exercises/14_compile.py`. (Lessons 10 to 12 are not written yet; you need
# none of them, nor lesson 13.)

# %%
import time
from textwrap import shorten

import matplotlib.pyplot as plt
import numpy as np

import minigrad as mg
from minigrad.course import check, load, needs, predict, scrub
from minigrad.course.l14_compile import costs, generate, machine
from minigrad.course.l14_compile.drawing import draw_kernels, draw_plan, table
from minigrad.course.l14_compile.programs import Draft
from minigrad.course.objects import Op, Program

# %% [markdown]
# ## 1. Many small trips to memory
#
# A training step is a few lines of Python and dozens of operations. Each of them is a *kernel*: a
# loop that reads its operands from memory, computes, and writes its result to memory, where the
# next one reads it again. An engine that runs them one by one, as you have built it so far, cannot
# do better: when `tanh` runs, it does not know that a product comes next.
#
# A **compiler** knows. It sees the whole step before it runs any of it. `mg.compile` makes one
# program of such a step: forward, backward and optimizer. (The first time, that takes some seconds;
# what was compiled is kept on disk.)

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
# **Predict.** The step has five matrix products, and each of them stays a call. How many calls of
# kernels are left when it has been compiled, products included?

# %% tags=["prediction"]
left = predict("14.calls", "How many calls are left of these operations?", ...)
left

# %%
left.reveal(report.calls, factor=1.3)

# %%
whole_step.graph()

# %% [markdown]
# **What to see.** (In a narrow window the picture scrolls sideways.) Each blue box is one kernel
# now: the first layer's bias, `tanh`, `sigmoid` and their product; the loss, and the gradient with
# which backward begins; the gradients of those three on the way back. An `SGD` box holds velocity
# and parameter together, and stands where its gradient is ready: an update need not wait for the
# end. The products are purple, alone as before, but for the last: it also updates its weight, while
# its result is in the cache. White labels are values that go through memory from one call to
# another; all other values stay in registers, or, in that last product, in the cache. (Green and
# grey were there before the step, orange will be there after it. The teal box checks that the
# labels are labels.)
#
# And its memory, before and after:

# %%
mg.viz.memory(whole_step.memory_plan())

# %% [markdown]
# **What to see.** Each bar is a temporary value, from the operation that makes it to the last that
# reads it. Before, each has a place of its own. After, there are fewer of them, as many live in
# registers alone; and those that are left share places, one after the other.
#
# This lesson takes such a compiler apart. You write its passes, for a language so small that
# nothing hides, and at the end they compile a training step.
#
# ## 2. Writing it down
#
# How does one get hold of what a function does? By *running it once on impostors*. A `Tracer` looks
# like a matrix. It has a name and a shape, and no numbers; when it is added to another one, it
# writes down "add". After the run, the tape holds the program.
#
# **Write** `trace`. The class is there, with all its operators. Its two important methods are
# yours.

# %% tags=["exercise"]
check("14.trace")


# %%
def small(x, w):
    """Return x @ w through tanh, doubled; and throw something away."""
    y = (x @ w).tanh()
    y.exp()
    return 2.0 * y


needs("14.trace")
mine = load("14")
print(mine.trace(small, {"x": (4, 3), "w": (3, 2)}))

# %% [markdown]
# Each line is an `Op`: which operation, from which values, into which new one. Here is a training
# step of a network for the digits: forward, with ReLU written as a product; backward, with the
# formulas of lessons 01 and 04 written out; and gradient descent with momentum (lesson 08). `good`
# measures how well the answers agree with the targets; somebody wanted to look at it once, and then
# did not return it.

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
# A program can be run again and again: `machine.run` goes down the list with NumPy. But what
# exactly was written down? `rate` is a number that lies outside of the function.
#
# **Predict.** The step was traced with `rate = 0.02`. Now somebody sets `rate = 0.0`, to freeze the
# network, and runs the recorded program. Do the weights move: `"yes"` or `"no"`?

# %% tags=["prediction"]
frozen = predict("14.frozen", 'rate = 0.0 after tracing: do the weights move, "yes" or "no"?', ...)
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
# Python ran *once*. Numbers that it met were written into the program, `print` would have printed
# once, and of an `if` only one side is in it; that is why yours must not silently ignore an `if`.
# All compilers of this kind have the problem, and deal with it in three ways: they refuse what they
# see (yours, and JAX, whose error is a `TracerBoolConversionError`); they watch, and trace again
# when something has changed (PyTorch's guards); and for the rest they ask you to pass as an
# argument what may change.
#
# minigrad's own compiler watches what it can, and looks again now and then: calls 3, 5, 9, 17 and
# so on of a compiled function are traced once more and compared with the program.

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
# In between, the old number would have been used, without a word. `mg.variable(factor)` as an
# argument is the cure, here as everywhere.
#
# ## 3. What nobody needs
#
# **Write** `eliminate_dead`.

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
# It finds the whole chain behind `good`, and not only its end. Nobody writes dead code on purpose.
# It arises by itself: a backward pass computes gradients for inputs that nobody asked for, a layer
# returns more than is used.
#
# (In this language, an operation can do nothing but make a value. As soon as there are others, that
# print, write in place or draw random numbers, "nobody reads it" is not enough. minigrad's own
# compiler keeps what writes to memory that exists outside of the step, and what checks its inputs.)
#
# ## 4. One loop instead of many
#
# What is left computes what was asked for, in the most roundabout way: `z = x @ w1 + b1`,
# `on = z > 0` and `on * z` are four kernels. The second reads what the first has just written, all
# of it, adds `b1`, and writes all of it again for the third. An addition takes a fraction of a
# nanosecond, the trip to memory much longer. *Fusing* them means: one loop that does all to an
# entry while it is in a register. What only this loop needs is never in memory.
#
# When is that possible? Each turn of the loop computes *one entry* of each operation. So an
# operation can join the loop if this one entry of its inputs is all that it needs.
#
# **Predict.** `e = exp(x)`, `s = sum(e)`, `p = e / s`: a softmax over one row. How many loops does
# it need at least?

# %% tags=["prediction"]
softmax = predict("14.softmax", "exp, sum, div: how many loops at least?", ...)
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
# This is Python text, made from your groups: one function per group, with a loop in it. What
# another kernel reads is an argument `to_…`; everything else is a local variable. The `exp` goes to
# memory, since the second loop reads it again. (One could compute it twice instead. FlashAttention
# does such things, and needs less memory traffic for more arithmetic.)
#
# And somebody who overlooks the sum? The loop divides each entry by what has been added up *so
# far*:

# %%
x = np.array([[0.0, 1.0, 2.0, 3.0, 2.0, 1.0]])
for name, some in (("two loops", [[*row.ops[:2]], [row.ops[2]]]), ("one loop", [[*row.ops]])):
    [p] = machine.run_groups(row, some, {"x": x})
    print(f"{name}: {p[0].round(3)}, together {p.sum():.3f}")

# %% [markdown]
# The first entry of every wrong softmax of this kind is 1: something to look for. Now your groups
# for the training step:

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
# **What to see.** The blue ones stand alone, as before. Between them are towers: bias and ReLU in
# one loop, the loss in another, together with what backward begins with. (The `div` beside it is
# the end of the loss: it needs all of the sum.) The four towers on the right are the optimizer's,
# velocity and weight in one loop. Here is the first:

# %%
needs("14.fuse", "14.eliminate_dead", "14.trace")
update = groups[-4]
print(generate.source(alive, update, len(groups) - 4))

# %% [markdown]
# ## 5. Whose memory is it?
#
# The step gets weights, and gives new ones. While it runs, both are there. But whoever trains says
# `w = step(w)`, and never looks at the old ones again. To *donate* an argument is to say so: "take
# its memory, I do not need it". Then the new weights can be written over the old ones. May they?
#
# > **Real bug: `x += x.T`.** In NumPy's issue 1683, somebody adds a matrix to its own
# > transpose, in place. The transpose is a view: the same bytes, read in another order. Ten lines
# > are enough:


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
# The left one is what the issue shows, number by number. Since version 1.13 (2017), NumPy checks
# whether memory overlaps, and makes a copy where it might matter. That is not over: in April 2026,
# `np.matvec(A, b, out=b)` still returned zeros, since two new functions had been left out of that
# check ([numpy#31150](https://github.com/numpy/numpy/pull/31150)).
#
# **Predict.** Which of these may be computed straight into the memory of `a`, entry by entry:
# `tanh(a)`, `a * a`, `a @ b`, `a.T`? All matrices are square. How many of the four?

# %% tags=["prediction"]
inside = predict("14.in_place", "Of tanh(a), a * a, a @ b and a.T: how many in place?", ...)
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
# The right-hand column is no opinion: there the program has run in the memory of `a`.
#
# **Write** `donate`, which decides for all donated inputs at once. Where it cannot use one, it says
# why. (JAX has a warning for this, "Some donated buffers were not usable", without a why;
# [jax#9675](https://github.com/jax-ml/jax/issues/9675) asks for an error that one can switch on.
# And when a donated array was passed a second time in the same call, JAX hung, on TPU and GPU,
# without any message: [jax#9635](https://github.com/jax-ml/jax/issues/9635). Today it is an error.)

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
# Donating is a promise of the caller's, too. Somebody keeps `best = w` in a loop, to come back to
# it later, and donates `w`. In `best` there are other numbers now, or none. minigrad refuses to
# look:


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
# > **A story about a word.** The Chinese introduction to IREE that lesson 06 quotes is about just
# > this. It goes back to a question in IREE's tracker
# > ([iree#20798](https://github.com/iree-org/iree/issues/20798), May 2025). Somebody trains with
# > PyTorch in front and IREE behind. Forward and backward are *two programs*; what forward saves
# > are inputs of backward; and these stayed in memory. PyTorch's own compiler, they write, has
# > `del arg0` in the code that it makes. What does one do here?
# >
# > IREE keeps nothing that is not needed, says the answer; and to re-use an argument's storage for
# > an output, there is `iree.abi.output`. The introduction makes of this that the annotation
# > "allows the memory of input arguments to be re-used directly as output storage". Look at what it
# > turns into, `hal.tensor.alias`, and read its documentation. It is a *hint*. There is "no
# > guarantee that the storage will alias", only that the contents are written there "as if a copy
# > had occurred". And it switches the checking off: explicit aliasing "side-steps any analysis that
# > may be performed by the compiler", and users must guarantee that it is safe. It is your
# > `may_alias`, answered by the user.
# >
# > Is the memory saved? When JAX's donation was handed down to this annotation in 2023, the results
# > did land in the donated arrays; but for the time being "in most cases" the program kept the
# > extra temporaries, and copied from them
# > ([iree#13678](https://github.com/iree-org/iree/pull/13678)). For programs that come from
# > PyTorch the annotation is not the way at all, it is another operation,
# > `torch.overwrite.tensor.contents` ([iree#20811](https://github.com/iree-org/iree/issues/20811)).
# > And in iree-turbine, a forward pass that saves one of its own *inputs* for backward must take
# > care not to copy it
# > ([iree-turbine#1035](https://github.com/iree-org/iree-turbine/issues/1035)). The two last were
# > open when this was written.
# >
# > The moral: *re-used* can mean that a compiler has proved it, that it will try, or that you have
# > promised. Ask which one is meant, and who finds out if it is not so.
#
# ## 6. Your compiler trains the digits
#
# One thing is left, and it is the classical one: *in which order?* Fusing moves operations. An
# operation that joins an earlier loop runs earlier than before. So what was read *before* the
# memory was taken over may now be read *after* it. Here is the smallest case:

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
# `add` joins the loop of `neg`, and so overtakes the product, which still wants the old `w`. Asked
# about the order as it will run, your `donate` sees it. So: fuse first, then donate.
#
# All together, on the training step:

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
# *Moved* counts what the kernels together read from memory and write to it, *peak* how much memory
# the plan needs. Each pass has its own column: fusing saves trips, and hardly any memory, since
# what it keeps in registers lived only for a moment anyway. Donating saves memory, and no trips.
#
# Here is where each value lies, and when. The slider goes through the passes.

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
# what the caller gives: images, weights and velocities. Orange lives from its maker to its last
# reader. On the left and in the middle, the results, blue, need memory of their own at the
# end, beside the old weights. On the right, they are written over the donated ones, hatched: and
# the dashed line, the peak, comes down.
#
# Now run it. `generate.Compiled` gives your groups to Numba, one function each; products stay with
# NumPy. The same step, operation by operation and compiled, on the same batches:

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

figure, axis = plt.subplots(figsize=(8, 3.6), layout="constrained")
axis.semilogy(one_by_one, linewidth=4, alpha=0.4, label="operation by operation")
axis.semilogy(yours, linewidth=1, color="black", label="compiled by your passes")
axis.set(xlabel="training step", ylabel="loss", title="The digits, twice")
axis.legend()
axis.grid(alpha=0.3)
plt.show()
print(f"{accuracy:.1%} of unseen digits read correctly")
print(f"largest difference of the losses: {np.abs(one_by_one - yours).max():.1e}")
print(f"a step, median: {slow:.0f} µs operation by operation, {fast:.0f} µs compiled")

# %% [markdown]
# **What to see.** One line on top of the other: the same numbers, in fewer kernels and less memory.
# (Expect no wonders of the times: products take most of them, and these are the same ones. On a
# GPU, where each kernel has to be launched, the number of kernels weighs more.)
#
# And minigrad's own compiler? Here is what it says of the step of section 1. (`whole_step.report()`
# says more.)

# %%
print(f"{report.instructions_before} operations, {report.calls} calls:")
for form in report.forms:
    print(f"  {form.calls} × {form.function:<24} {shorten(form.what, 60, placeholder=' …')}")
print(f"\nwritten in place: {len(report.aliases)} arrays, weights and velocities")
for value, place in report.taken_over:
    print(f"  {value.partition(' (')[0]} takes the place of {place.partition(' (')[0]}")

# %% [markdown]
# Most of that you have written yourself by now. Three lines are different: labels are checked
# before anything is written; a number that all updates need is made ready once (`SGD, single
# numbers`); and the last product includes the update of its weight, as its *epilogue*: computed
# block of rows by block of rows, and each block updated while it is in the cache. Your rules could
# not do that, since they leave a product alone. Nobody donated the weights here: the step itself
# writes to them, as optimizers do, and for that the compiler must prove the same as your
# `may_alias`. The last lines are temporaries in the place of others, which were read for the last
# time, at the same entry.
#
# ## 7. Bug hunt
#
# Before there was a compiler, somebody wrote the step by hand, as your compiler plans it: results
# overwrite what is no longer needed. It is at the end of your exercise file, 16 lines from A to P.
# It trains, they say, "but not with every learning rate". Let us look at the loss, and then at
# something stricter: the gradient of `w1`, as the step must have used it, against central
# differences (lesson 00).

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
# **What to see.** On the left, the step as it came learns with the small learning rate, and not
# with the large one. One would blame the learning rate, and go on with the small one. On the right
# is the reason: an error of the *gradient* that grows with the learning rate. Fixed, it lies seven
# to ten powers of ten lower, the same for each, and both curves go down. What has the learning rate
# to do with a gradient?
#
# Which donated value is read too late, which line has overwritten it, which line reads it? Write it
# into `BUG`, then fix the step. Nothing needs to be copied.

# %% tags=["exercise"]
check("14.step_in_place")

# %% [markdown]
# ## Where you are
#
# - Tracing runs Python once, on impostors. What it cannot see is frozen, so it must refuse.
# - Dead code is found from the end: needed is what an output needs.
# - A loop can take in an operation that needs one entry of its inputs. Sums are ready at its end.
# - A result may lie in an input's memory if nobody reads the input once it is overwritten: nobody
#   later, nobody elsewhere at the same time, and not the caller.
# - Passes have an order. A proof about one program says nothing of the next one.
#
# **Next:** lesson 15, mixed precision, is planned. Until then: trace a network of your own, with
# three layers, and see which of its memory your `donate` can use.

# %%
from minigrad.course.predictions import summary

print(summary("14"))

# %% tags=["exercise"]
check("14")
