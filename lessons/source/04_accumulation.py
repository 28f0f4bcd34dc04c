# %% [markdown]
# # 04 · A gradient is a sum
#
# **You need** lessons 01 and 02: a backward pass walks a graph and multiplies. **It takes** about
# 130 minutes, and 50 more with section 4, which is optional; after section 3 is a good place for a
# break. **At the end** you know who adds up
# gradients, in whose memory, and when they are thrown away; and you have an engine of your own, one
# file without minigrad in it, that reads digits. Next: lesson 05, clone and detach.
#
# Your code goes into `exercises/04_accumulation.py`.

# %% tags=["live"]
from minigrad.course import watch

watch("04")  # what you save in exercises/04_accumulation.py is graded here at once

# %%
import matplotlib.pyplot as plt
import numpy as np

import minigrad as mg
from minigrad.course import check, hint, light, load, needs, predict, scrub
from minigrad.course.l04_accumulation.pictures import draw_arrivals, draw_sum_of_rows

plt.style.use("minigrad.course.house")

# %% [markdown]
# ## 1. One number in many places
#
# In lesson 01, the product `x * x` used `x` twice, and the two gradients that came back were added.
# There it was one line. Here it is the subject, because it happens everywhere:
#
# - a bias is added to *every row* of a batch;
# - a value goes into *several* operations;
# - a parameter is used in *several* batches.
#
# **Predict.** A layer adds its bias to 64 rows, and the loss is the plain sum of the result. So a
# gradient of 1 arrives in each of the 64 rows. What is the gradient of one entry of the bias?

# %% tags=["prediction"]
rows = predict("04.bias", "What is the gradient of a bias that is added to 64 rows?")
rows

# %%
bias = mg.zeros((3,), requires_grad=True)
(mg.ones((64, 3)) + bias).sum().backward()
print(f"bias.grad = {bias.grad.numpy()}")
rows.reveal(float(bias.grad[0].item()), factor=1.001)

# %% [markdown]
# Each use sends a gradient back, and these gradients are added up. The reason is always the same:
# if a number moves a little, *all* its uses move, and each of them changes the loss. The changes
# add up.
#
# The next picture shows gradients that differ from row to row. The numbers are minigrad's own: a
# hook catches the gradient of `y` before its rows are added up.

# %%
mg.manual_seed(3)
values = mg.randn((4, 3))
bias = mg.zeros((3,), requires_grad=True)
caught = []
y = values + bias
y.register_hook(lambda dy: caught.append(dy.numpy().copy()))
(mg.tanh(y) ** 2).sum().backward()

figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
draw_sum_of_rows(axis, caught[0], bias.grad.numpy())
axis.set(xlabel="entry of the bias", ylabel="what arrives")
axis.set_title("Four copies of a bias, and its gradient")
plt.show()

# %% [markdown]
# **What to see.** NumPy *stretches* the bias (the usual word is *broadcasts*): it computes as if
# each row had a copy. On the way back, the gradients of all copies are added up. The result has the
# shape of the bias again, not the shape of the batch.
#
# NumPy can stretch any axis, not only rows. It writes the two shapes below each other, aligned at
# their *right* ends. In front, it adds the axes that are missing. And it copies along each axis of
# length 1 where the other shape is longer. Here `g` is the gradient that comes back:
#
# ```
#            g   (8, 4, 3)
#   an operand      (1, 3)     a new axis of 8, and an axis of 1 copied 4 times
# its gradient      (1, 3)     each entry was copied 32 times: summed over both axes
# ```
#
# **Write** `unbroadcast`, which sums a gradient back into the shape of its operand. PyTorch has it
# as `Tensor.sum_to_size`. Every operation that broadcasts needs it in its backward pass, so an
# engine does it in one place for all of them.

# %% tags=["exercise"]
check("04.unbroadcast")

# %% [markdown]
# Here is a test that needs no second implementation. For any `x` and any `g`, the sum of (stretched
# `x`) * `g` must be the same number as the sum of `x` * (summed `g`). (Stretching is linear, and
# `unbroadcast` is its *transpose*.) Engines test backward functions like this.

# %%
needs("04.unbroadcast")
mine = load("04")
random = np.random.default_rng(0)
for shape, g_shape in [((3,), (4, 3)), ((1, 3), (8, 4, 3)), ((), (2, 5)), ((2, 1), (2, 0))]:
    operand, g = random.standard_normal(shape), random.standard_normal(g_shape)
    forth = np.sum(np.broadcast_to(operand, g_shape) * g)
    back = np.sum(operand * mine.unbroadcast(g, shape))
    print(f"{shape!s:>7} to {g_shape!s:<10} {forth: .12f}   {back: .12f}")

# %% [markdown]
# ## 2. Who adds, and into whose array?
#
# Now a value is used by several operations. Below, `a` is used twice, and so is `x`:

# %%
x = mg.variable([0.8], requires_grad=True, name="x")
a = mg.tanh(x)
b = mg.exp(a)
c = a * b
loss = c + x
mg.viz.graph(loss)

# %% [markdown]
# **What to see.** Two arrows leave `tanh`, and two leave `x`. In the backward pass, a gradient
# comes back along each arrow.
#
# During a backward pass, an engine keeps a table. For each value it holds the sum of the gradients
# that have arrived so far. A value hands its gradient on only when all parts have arrived; the
# order of lesson 02 ensures that. `mg.use` lets us replace the function that keeps this table, and
# so write down every arrival in minigrad's own pass:

# %%
arrivals = []


def watching(grads, key, g):
    """Add, as an engine does, and write down each arrival."""
    arrivals.append((key.op, float(g.sum())))
    grads[key] = g + grads.get(key, 0.0)


with mg.use(accumulate=watching):
    loss.backward()

names = {"mul": "c = a * b", "exp": "b = exp(a)", "tanh": "a = tanh(x)", "leaf": "x"}
seen = [(op, g) for op, g in arrivals if op in names]
scrub(
    lambda axis, step: draw_arrivals(axis, names, seen, step),
    list(range(1, len(seen) + 1)),
    label="arrivals",
    show=[2, 4, 6],
    width=3.2,
    height=2.6,
)

# %% [markdown]
# **What to see.** The orange piece is the latest arrival. `x` gets its first part early, through
# `c + x`, and its second and larger part at the very end, through `tanh`. If the second part
# *replaced* the first, the first would be lost. That is the bug "`=` where `+=` belongs".
#
# **Write** `accumulate`, which handles one arrival at this table. The cell above made a new array
# at each arrival. An engine makes one for each value, and adds all that arrives later *into* it: a
# weight that is used in a hundred places would else cost a hundred arrays. So there is a question
# to ask at the first arrival: *whose array is it*? The backward pass of `a + b` hands the same `dy`
# to both inputs. It makes no copies, because copies cost time. When a gradient arrives at your
# table, others may hold the same array.

# %% tags=["exercise"]
check("04.accumulate")

# %% [markdown]
# > **Real bug: two gradients, one array.** [OneFlow issue
# > 8248](https://github.com/Oneflow-Inc/oneflow/issues/8248) (May 2022) describes this one, for
# > other formulas. Take `w = x * x`, `z = x + y` and `p = w + z`. The way back reaches `z` first.
# > To save memory, the backward pass of the sum gave *the same* array `dz` to `x` and `y`. Then `w`
# > hands `x` its second part, `2 * x * dw`, and the engine added it in place. Ten lines are enough
# > to show it:


# %%
def sharing(grads, key, g):
    """Keep the first gradient as it came, and add later ones in place."""
    if key in grads:
        grads[key] += g
    else:
        grads[key] = g


needs("04.accumulate")
mine = load("04")
x, y, dp = np.array([1.0, 2.0]), np.array([3.0, 2.0]), np.ones(2)
for name, add_up in (("sharing", sharing), ("yours", mine.accumulate)):
    grads, dw, dz = {}, dp.copy(), dp.copy()
    for key, g in (("x", dz), ("y", dz), ("x", 2 * x * dw)):
        add_up(grads, key, g)
    print(f"{name:>8}: dx = {grads['x']}, dy = {grads['y']}")

# %% [markdown]
# The gradient of `x` is right both times. With `sharing`, the gradient of `y` is wrong, although no
# second gradient arrived for it. There is no error and no warning, and a test that uses each input
# once never sees the bug. Today OneFlow's engine copies the first gradient, and the comment beside
# that line names the issue. PyTorch and minigrad keep the first array only where they know that
# nobody else holds it.
#
# ## 3. Sums over time
#
# The third kind of sum: a parameter is used again in the next step. Its `.grad` *stays*, and the
# next `backward()` adds to it, until somebody clears it. First see what happens if nobody clears
# it. Then see why it is useful.

# %%
images, labels = mg.data.load_digits()
(x_all, y_all), (x_new, y_new) = mg.data.stratified_split(images.reshape(-1, 64) * 2 - 1, labels)


def train(zero=True, gate_first=False, epochs=6):
    """Train a small network with Adam; return the losses and the held-out accuracy."""
    mg.manual_seed(1)
    first, second = mg.nn.Linear(64, 48), mg.nn.Linear(48, 10)
    optimizer = mg.optim.Adam([*first.parameters(), *second.parameters()], learning_rate=5e-3)

    def logits(rows):
        hidden = first(mg.variable(rows))  # used twice from here on
        if gate_first:
            return second(mg.sigmoid(hidden) * mg.tanh(hidden))
        return second(mg.tanh(hidden) * mg.sigmoid(hidden))  # sigmoid(hidden) is the gate

    losses = []
    for epoch in range(epochs):
        for rows, targets in mg.data.batches(x_all, y_all, batch_size=64, seed=epoch):
            loss = mg.cross_entropy(logits(rows), mg.variable(targets))
            loss.backward()
            optimizer.step()
            if zero:
                optimizer.zero_grad()
            losses.append(loss.item())
    with mg.no_grad():
        right = logits(x_new).numpy().argmax(axis=1) == y_new
    return np.array(losses), right.mean()


losses, accuracy = train()
never, never_accuracy = train(zero=False)

figure, axis = plt.subplots(figsize=(8, 3.6), layout="constrained")
axis.semilogy(losses, label=f"cleared after each step: {accuracy:.1%} read correctly")
axis.semilogy(never, label=f"never cleared: {never_accuracy:.1%}")
axis.set(xlabel="training step", ylabel="loss")
axis.set_title("The same training, with and without zero_grad()")
axis.legend()
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** Without clearing, each step follows the sum of *all* gradients since the start,
# like a ball that rolls without friction. The loss overshoots and swings. Yet the network learns
# something, and nothing crashes: without the other curve beside it, one would blame the learning
# rate.
#
# And this is what sums over time are good for. A batch that does not fit in memory can come in
# pieces. Each piece gets its own `backward()`, the gradients add up in `.grad`, and one step
# follows at the end. This needs the memory of only one piece. The engine's own counters say how
# much that is:

# %%
mg.manual_seed(0)
wide = mg.nn.Sequential(mg.nn.Linear(64, 256), mg.nn.Tanh(), mg.nn.Linear(256, 10))
big_x, big_y = x_all[:1200], y_all[:1200]


def in_pieces(k):
    """Return the gradient of the mean loss over all rows, from k pieces, and the peak of memory."""
    wide.zero_grad()
    mg.memory.reset_peak()
    before = mg.memory.stats()["current_bytes"]
    for part_x, part_y in zip(np.split(big_x, k), np.split(big_y, k), strict=True):
        loss = mg.cross_entropy(wide(mg.variable(part_x)), mg.variable(part_y))
        (loss * (len(part_x) / len(big_x))).backward()
    peak = mg.memory.stats()["peak_bytes"] - before
    return np.concatenate([p.grad.numpy().ravel() for p in wide.parameters()]), peak


ks = [1, 2, 3, 4, 6, 8, 12]
in_pieces(1)  # makes the arrays in .grad, so that no peak below counts them
whole, _ = in_pieces(1)
measured = [in_pieces(k) for k in ks]
peaks = [peak / 2**20 for _, peak in measured]
apart = max(np.abs(gradient - whole).max() for gradient, _ in measured)

figure, axis = plt.subplots(figsize=(8, 3.6), layout="constrained")
axis.plot(ks, peaks, "o-")
axis.set(xlabel="pieces", ylabel="peak memory of a step, MiB", xticks=ks, ylim=(0, None))
axis.set_title("One step on 1,200 rows, in pieces")
axis.grid(alpha=0.3)
plt.show()
print(f"largest difference between the gradients: {apart:.1e} (float32)")

# %% [markdown]
# **What to see.** Half the rows need about half the memory: most of it holds the values that are
# saved for the backward pass, one set per row. And the gradient is the same, up to rounding.
#
# People often get the factor `len(part_x) / len(big_x)` wrong. The loss of a piece is a *mean* over
# the piece's own rows. The mean over all rows is not the sum of the pieces' means, and not always
# their mean either.
#
# **Predict.** Three rows have the gradients 6, 12 and 36. Their mean is 18. They come as a batch of
# two and a batch of one, and somebody averages the means of the two batches. What is the result?
#
# Then **write** `microbatch_step`: one step along the mean gradient over all rows, from batches
# that may differ in size.

# %% tags=["prediction"]
naive = predict("04.naive", "What is the mean of the batch means of (6, 12) and (36)?")
naive

# %% tags=["exercise"]
check("04.microbatch_step")

# %%
needs("04.microbatch_step")
mine = load("04")
batches = [(np.array([6.0, 12.0]), np.zeros(2)), (np.array([36.0]), np.zeros(1))]
step = mine.microbatch_step(np.zeros(1), batches, lambda w, x, y: np.array([x.mean()]), 1.0)
naive_mean = np.mean([x.mean() for x, _ in batches])
print(f"yours goes along {-step[0]:g}; the mean of the means is {naive_mean:g}")
naive.reveal(float(naive_mean), factor=1.001)

# %% [markdown]
# The last batch of an epoch is usually smaller than the others, so a naive loop makes this mistake
# in every epoch. [Libraries had this bug, too](https://huggingface.co/blog/gradient_accumulation):
# the loss of a text is a mean over its *words*. Where batches differ in length, the mean of `k`
# such losses gives more weight to the words of the short ones.
#
# ## 4. Who coordinates? (optional)
#
# This section and its exercise, the longest of the lesson, are optional: nothing later needs your
# `GradManager`, and you can come back to it at any time. To skip it, go on at *None and
# zeros, under Adam*.
#
# In PyTorch, the tensors themselves say what is differentiated: `requires_grad` marks a leaf,
# recording is on unless you switch it off, and a backward pass writes to every marked leaf that it
# reaches. In another design, *one object* holds the list of parameters to differentiate, and says
# when recording begins and ends. MegEngine has such a class,
# [GradManager](https://github.com/MegEngine/MegEngine/blob/master/imperative/python/megengine/autodiff/grad_manager.py):
# `attach` adds parameters to the list, `record` begins, `backward(y, dy)` computes the gradients
# (yours begins with `dy` = 1) and ends the recording in any case, and `release` frees the *graph*,
# which is everything that was recorded and saved. Every `.grad` stays.
#
# **Write** this class: about thirty lines. A `Box` holds a value. While a manager records, it keeps
# a *tape*, a list of Nodes, and each operation on boxes appends a Node to it. A tape is in the
# order of the computation, so it needs no sorting: the backward pass walks it from its end. Your
# class has one option that MegEngine's does not have: `keep_empty_grad` says what an attached
# parameter gets if the loss does not reach it, None or zeros.

# %% tags=["exercise"]
check("04.GradManager")

# %%
needs("04.GradManager", "04.accumulate")
mine = load("04")
u, v = mine.Box([1.0, 2.0]), mine.Box([3.0, 5.0])
manager = mine.GradManager()
manager.attach([u])
with manager:
    w = mine.add(mine.mul(u, v), u)
    loss = mine.total(w)
    print("on the tape:", [node.op for node in manager.tape])
    manager.backward(loss)
print("u.grad =", u.grad, " v.grad =", v.grad, " saved by mul:", w.node.inputs[0].saved)

# %% [markdown]
# Does `keep_empty_grad=False` save memory? Measure it with eight parameters of 256 times 256
# numbers each, of which the loss uses one. Your class comes first, then minigrad's own.

# %%
needs("04.GradManager", "04.accumulate")


def weigh_yours(keep):
    """Return the MiB of the gradients that your manager leaves (float64)."""
    boxes = [mine.Box(np.zeros((256, 256))) for _ in range(8)]
    manager = mine.GradManager(keep_empty_grad=keep)
    manager.attach(boxes)
    with manager:
        manager.backward(mine.total(mine.mul(boxes[0], boxes[0])))
    return sum(box.grad.nbytes for box in boxes if box.grad is not None) / 2**20


def weigh_minigrad(keep):
    """Return by how many MiB minigrad's pool grows, and how many .grad are None (float32)."""
    weights = [mg.zeros((256, 256)) for _ in range(8)]
    start = mg.memory.stats()["current_bytes"]
    manager = mg.GradManager(weights, keep_empty_grad=keep)
    attached = mg.memory.stats()["current_bytes"] - start
    with manager:
        manager.backward((weights[0] * weights[0]).sum())
    after = mg.memory.stats()["current_bytes"] - start
    return attached / 2**20, after / 2**20, sum(weight.grad is None for weight in weights)


for keep in (False, True):
    attached, after, n_none = weigh_minigrad(keep)
    print(f"keep_empty_grad={keep}:")
    print(f"    yours:    {weigh_yours(keep):.1f} MiB")
    print(f"    minigrad: {attached:.1f} MiB once attached, {after:.1f} MiB after backward;")
    print(f"              .grad is None for {n_none} of 8")

# %% [markdown]
# In your class it does: a parameter that is not reached has no gradient array. In minigrad's it
# does not, on purpose: minigrad makes *one* flat buffer for all attached gradients, so that
# clipping and optimizers go over memory once. So the option saves memory only if each gradient has
# memory of its own. But it always changes what the *optimizer* does next.
#
# ### None and zeros, under Adam
#
# **Predict.** Adam has moved a parameter for 10 steps. Then the loss no longer reaches it, and from
# now on its gradient is an array of zeros. Does Adam still move it?

# %% tags=["prediction"]
coasting = predict(
    "04.coasting",
    "Does Adam move a parameter whose gradient is zeros?",
    choices=("yes", "no"),
)
coasting


# %%
def under_adam(afterwards, steps=40):
    """Return the path of a number with slope -1 for 10 steps, then with this gradient."""
    number = mg.nn.Parameter(mg.zeros((1,)))
    optimizer = mg.optim.Adam([number], learning_rate=0.1)
    path = [number.item()]
    for step in range(steps):
        optimizer.zero_grad()
        if step < 10:
            number.grad = mg.variable([-1.0])
        elif afterwards is not None:
            number.grad = mg.variable([afterwards])
        optimizer.step()
        path.append(number.item())
    return path


with_none, with_zeros = under_adam(None), under_adam(0.0)
figure, axis = plt.subplots(figsize=(8, 3.6), layout="constrained")
axis.axvline(10, color="gray", linestyle=":", label="the loss no longer reaches it")
axis.plot(with_zeros, label="zeros from then on")
axis.plot(with_none, label="None from then on")
axis.set(xlabel="step of the optimizer", ylabel="value of the parameter")
axis.set_title("Adam: a gradient of zeros, and no gradient")
axis.legend()
axis.grid(alpha=0.3)
plt.show()
coasting.reveal("yes" if with_zeros[-1] != with_zeros[10] else "no")

# %% [markdown]
# **What to see.** Adam keeps an average of past gradients. None means "nothing to do": the
# parameter stays, and so does its average. Zeros mean "the slope is 0": the average fades, and
# until it has faded, the parameter coasts on. With weight decay it would even shrink for ever. So a
# `zero_grad()` that fills with zeros and one that sets None can train different models. PyTorch
# changed its default to None in version 2.0; minigrad always sets None.
#
# ## 5. Your sums run the engine
#
# Now put your two functions into minigrad, in place of its own, and train the digits again.
# `accumulate` gets every gradient of every pass; `unbroadcast` gets those of the biases.

# %%
needs("04.unbroadcast", "04.accumulate")
mine = load("04")
calls = {"unbroadcast": 0, "accumulate": 0}


def my_unbroadcast(g, shape):
    """Count the call, and let your function answer it."""
    calls["unbroadcast"] += 1
    return mine.unbroadcast(g, shape)


def my_accumulate(grads, key, g):
    """Count the call, and let your function answer it."""
    calls["accumulate"] += 1
    return mine.accumulate(grads, key, g)


with mg.use(unbroadcast=my_unbroadcast, accumulate=my_accumulate):
    my_losses, my_accuracy = train()
print(f"minigrad's own: loss {losses[-1]:.4f}, {accuracy:.1%} of unseen digits read correctly")
print(f"with yours:     loss {my_losses[-1]:.4f}, {my_accuracy:.1%} read correctly")
for name, n_calls in calls.items():
    print(light(f"04.{name}", mine=my_losses, reference=losses, calls=n_calls))

# %% [markdown]
# What happens with `=` in place of `+=`? This network uses `hidden` twice, in `tanh(hidden) *
# sigmoid(hidden)`. (A factor between 0 and 1, like this sigmoid, is called a *gate*.) One of the
# two gradients of `hidden` gets lost in every step.
#
# **Predict.** What percentage of the unseen digits does such a network read correctly? With the
# correct engine, it is the percentage that the last cell printed.

# %% tags=["prediction"]
lossy = predict("04.lossy", "What percentage is read if one of two gradients gets lost?")
lossy


# %%
def overwriting(grads, key, g):
    """Keep only what arrived last."""
    grads[key] = g.copy()


right, right_accuracy = train(gate_first=True)
with mg.use(accumulate=overwriting):
    wrong, wrong_accuracy = train()
    turned, turned_accuracy = train(gate_first=True)

figure, axes = plt.subplots(1, 2, figsize=(10, 3.4), sharey=True, layout="constrained")
axes[0].semilogy(losses, linewidth=4, alpha=0.4, label=f"+=: {accuracy:.1%}")
axes[0].semilogy(wrong, linewidth=1, color="C3", label=f"=: {wrong_accuracy:.1%}")
axes[0].set(title="tanh(hidden) * sigmoid(hidden)", ylabel="loss")
axes[1].semilogy(right, linewidth=4, alpha=0.4, label=f"+=: {right_accuracy:.1%}")
axes[1].semilogy(turned, linewidth=1, color="C3", label=f"=: {turned_accuracy:.1%}")
axes[1].set(title="sigmoid(hidden) * tanh(hidden)")
for axis in axes:
    axis.set(xlabel="training step")
    axis.legend()
    axis.grid(alpha=0.3)
plt.show()
lossy.reveal(float(100 * wrong_accuracy), factor=1.05)

# %% [markdown]
# **What to see.** On the left, the broken engine trains as well as the correct one. On the right,
# the two factors of the same network are swapped: that makes no difference to the correct engine,
# but the broken one ends at a higher loss, and reads fewer digits. Only the gradient that arrives
# *last* survives, and the way back takes the newest operation first. On the left, `tanh` was
# computed first, so its gradient comes last. On the right it is that of the gate, which is small:
# where `hidden` is near 0, the slope of the gate is multiplied by a `tanh` near 0. A loss curve is
# no test of a gradient.
#
# ## 6. Bug hunt
#
# A critic and an actor learn together, each with a loss of its own, as in a GAN or in an
# actor-critic method. The actor's backward pass goes through the critic. The loop and the formulas
# of both gradients stand at the end of your exercise file. The log shows the gradient by which each
# of the two moved:

# %%
mine = load("04")
log = mine.train_both(
    1.0, 0.5, np.array([1.0, 2.0, 1.0, 2.0]), np.array([2.0, 4.0, 2.0, 4.0]), 0.05
)
print("round   critic moved by   actor moved by")
for number, (by_critic, by_actor) in enumerate(log):
    print(f"{number:>5}   {by_critic:>15.4f}   {by_actor:>14.4f}")

# %% [markdown]
# One of the two moves by a gradient that is not the gradient of its loss. Which one, and in which
# round first? Work out the two gradients by hand, write your diagnosis into `BUG`, then repair
# `train_both`.

# %% tags=["exercise"]
check("04.train_both")

# %% [markdown]
# In PyTorch this bug is `critic_optimizer.zero_grad()` at the wrong place in the loop. There are
# three cures: clear *before* each backward pass; freeze the critic while the actor's loss passes
# through it; or give each of the two a GradManager (section 4), which writes to no other
# parameters.
#
# ## 7. An engine of your own
#
# You have a rule for products and one for `tanh` (01), an order (02), a guard against cycles (03,
# if you have been there), and sums over copies, uses and batches (04). What does an engine need
# besides? Very little: a class that records, a rule for the matrix product and one for the loss.
# The next cell puts all of it into one file. It checks each of your functions in the four exercise
# files, and takes those that pass. For a function that does not pass yet, it takes a given one, and
# the file says so. Run the cell again later, and the file has yours.

# %%
needs("04.unbroadcast", "04.accumulate", "04.microbatch_step")
from minigrad.course.l04_accumulation.assemble import assemble, lines_of_code

path, parts = assemble("my_engine.py")
for part in parts:
    print(f"{part.exercise:<20} {'yours' if part.is_mine else 'given':<6} {part.lines:>3} lines")
text = path.read_text(encoding="utf-8")
print(f"{path.name}: {lines_of_code(text)} lines of code")

# %% [markdown]
# The file is in the folder of the course. Open it and read it; it is short. This is its centre, and
# by now you could have written every line of it:

# %%
needs("04.unbroadcast", "04.accumulate", "04.microbatch_step")
print(text[text.index("def backward") : text.index("SHAPES = ")].rstrip())

# %% [markdown]
# Now train it on the digits. The network is that of section 3, with its sigmoid written as a
# `tanh`. It learns by plain gradient descent, with your `microbatch_step`: each full batch comes in
# two pieces, of 40 rows and of 24. For comparison, minigrad trains the same network from the same
# numbers, with whole batches.

# %%
needs("04.unbroadcast", "04.accumulate", "04.microbatch_step")
own = {"__name__": "my_engine"}
exec(compile(text, str(path), "exec"), own)

random = np.random.default_rng(4)
start = np.concatenate(
    [
        random.standard_normal(64 * 48) / 8,
        np.zeros(48),
        random.standard_normal(480) / 7,
        np.zeros(10),
    ]
)
data = {
    "flat": start,
    "x": x_all.astype(float),
    "y": y_all,
    "x_new": x_new.astype(float),
    "y_new": y_new,
    "order": np.array([random.permutation(len(x_all)) for _ in range(20)]),
}
trained, own_losses = own["train"](data["flat"], data["x"], data["y"], data["order"])
own_accuracy = own["accuracy"](trained, data["x_new"], data["y_new"])


def in_minigrad(learning_rate=0.5, batch=64):
    """Train the same network from the same numbers on minigrad; return losses and accuracy."""
    w1, b1, w2, b2 = leaves = [mg.nn.Parameter(mg.variable(p.copy())) for p in own["cut"](start)]

    def logits(rows):
        h = mg.variable(rows) @ w1 + b1
        return (mg.tanh(h) * (0.5 * mg.tanh(0.5 * h) + 0.5)) @ w2 + b2

    optimizer = mg.optim.SGD(leaves, learning_rate=learning_rate)
    found = []
    for rows in data["order"]:
        for begin in range(0, len(rows), batch):
            chosen = rows[begin : begin + batch]
            loss = mg.cross_entropy(logits(data["x"][chosen]), mg.variable(data["y"][chosen]))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            found.append(loss.item())
    with mg.no_grad():
        right = logits(data["x_new"]).numpy().argmax(axis=1) == data["y_new"]
    return np.array(found), right.mean()


reference, reference_accuracy = in_minigrad()
print(f"your engine: {own_accuracy:.1%} of unseen digits read correctly")
print(f"minigrad:    {reference_accuracy:.1%} of unseen digits read correctly")
print(f"largest difference of the losses: {np.abs(own_losses - reference).max():.1e}")

# %%
needs("04.unbroadcast", "04.accumulate", "04.microbatch_step")
guesses = own["network"](own["Variable"](data["x_new"]), *map(own["Variable"], own["cut"](trained)))
wrong = np.flatnonzero(guesses.data.argmax(axis=1) != y_new)[:5]

figure, axes = plt.subplots(
    1, 6, figsize=(9.5, 2.7), width_ratios=[4.2, 1, 1, 1, 1, 1], layout="constrained"
)
axes[0].semilogy(reference, linewidth=4, alpha=0.4, label="minigrad")
axes[0].semilogy(own_losses, linewidth=1, color="black", label="your engine")
axes[0].set(xlabel="training step", ylabel="loss")
axes[0].legend()
axes[0].grid(alpha=0.3)
for axis, place in zip(axes[1:], wrong, strict=False):
    axis.imshow(x_new[place].reshape(8, 8), cmap="gray_r")
    axis.set_title(f"a {y_new[place]}, read\nas {guesses.data[place].argmax()}", fontsize=9)
    axis.set(xticks=[], yticks=[], frame_on=False)
plt.show()

# %% [markdown]
# **What to see.** The two engines draw the same line. On the right are digits that yours misread;
# people would misread some of them, too.
#
# Is there really no minigrad inside? The next cell starts a fresh Python, gives it the file and the
# numbers, and asks it afterwards what it has imported:

# %%
import subprocess
import sys
import tempfile
from pathlib import Path

needs("04.unbroadcast", "04.accumulate", "04.microbatch_step")
ASK = """
import runpy, sys
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
print("minigrad" in sys.modules, "numpy" in sys.modules)
"""
with tempfile.TemporaryDirectory() as folder:
    numbers = Path(folder) / "digits.npz"
    np.savez(numbers, **data)
    command = [sys.executable, "-c", ASK, str(path), str(numbers)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
print(f"accuracy {float(said[0]):.1%}; minigrad imported: {said[1]}; NumPy imported: {said[2]}")

# %% [markdown]
# minigrad has much that your file has not: memory that is shared and given back, writes that are
# noticed, second derivatives, optimizers that save their state, kernels that fuse. The next lessons
# are about these. But the *idea* is all in your file.
#
# ## Where you are
#
# - A value that is used in several places gets the *sum* of their gradients: over copies
#   (`unbroadcast`), over uses (`accumulate`), over batches (`.grad`).
# - The first gradient that arrives may belong to others, too. Copy it, then add in place.
# - Means do not add up to means: weigh each piece by its rows.
# - A gradient of None and a gradient of zeros are different, and optimizers treat them differently.
#
# **Next:** lesson 05. If two Variables hold the same array, one of them can write to it, and the
# other sees the change. When do two Variables share their memory, and when their graph? What do
# `clone` and `detach` do about either?

# %%
from minigrad.course.predictions import summary

print(summary("04"))

# %% tags=["exercise"]
check("04")
