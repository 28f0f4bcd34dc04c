# %% [markdown]
# # 15 · What is lost in half the bits?
#
# **You need** to know what an optimizer's step is, and what it means to clip gradients (lesson 08).
# **It takes** about 145 minutes; after section 3 is a good place for a break. **At the end** you
# can say which numbers of a training get lost in float16, and you have written what saves them: a
# sum with a wider accumulator, a scaler of losses and a master copy of weights; minigrad trains
# real digits in float16 with *your* scaler. Next: lesson 16, several workers.
#
# Your code goes into `exercises/15_mixed_precision.py`. All of it is plain NumPy.

# %% tags=["live"]
from minigrad.course import watch

watch("15")  # what you save in exercises/15_mixed_precision.py is graded here at once

# %%
import matplotlib.pyplot as plt
import numpy as np

import minigrad as mg
from minigrad.course import check, hint, light, load, needs, predict, scrub
from minigrad.course.l15_mixed_precision.drawing import draw_exponents, draw_gaps, draw_scale

plt.style.use("minigrad.course.house")

# %% [markdown]
# ## 1. Two bytes for a number
#
# A number with two bytes takes half the memory of one with four, and half the time to move. The
# matrix units of a GPU also multiply such numbers several times as fast. (A CPU does not: minigrad
# computes in float32 and converts, so nothing here gets faster. But the *numbers* are those that a
# GPU would store, and they are what this lesson is about.)
#
# There are two formats. **float16** spends 5 bits on the exponent and has 11 bits of precision.
# **bfloat16** spends 8 bits on the exponent, as float32 does, and has 8 bits of precision. (With
# the bit of the sign that makes 17, and a number has 16: the first bit of precision is 1 in every
# normal number, so it is not stored.)

# %%
for dtype in ("float32", "float16", "bfloat16"):
    numbers = [mg.variable(x).to(dtype).item() for x in (1 / 3, 2049.0, 70000.0, 1e-8)]
    print(f"{dtype:>8}:", "  ".join(f"{x:<12.8g}" for x in numbers))
figure, axis = plt.subplots(figsize=(8, 4))
draw_gaps(axis)  # xlabel: the size of a number; ylabel: the distance to the next one
plt.show()

# %% [markdown]
# **What to see.** Both axes have powers of two. In every format, the gap between two neighbours
# doubles where the numbers double. bfloat16 (orange) runs 16 powers of two above float32: it is as
# wide, and coarser. float16 (blue) is finer, but it ends: at 65504 on the right, and at $2^{-24}$
# on the left. From $2^{-14}$ down its line is flat. The numbers there are **subnormal**: they have
# fewer bits the smaller they are.
#
# So there are three ways to lose a number in float16: it is too large, it is too small, or it is
# added to one that is much larger. Begin with the last.
#
# **Predict.** Start with 0 and add 1, again and again, 4096 times. Each sum is stored as a float16.
# What is the last one?

# %% tags=["prediction"]
ones = predict("15.ones", "4096 ones, added one by one in float16: what is the sum?")
ones

# %% [markdown]
# **Write** `sum_f16_acc32`. What goes in and what comes out is float16; what adds up is not.

# %% tags=["exercise"]
check("15.sum_f16_acc32")

# %%
needs("15.sum_f16_acc32")
mine = load("15")
one_by_one = [np.float16(0)]
for _ in range(4096):
    one_by_one.append(one_by_one[-1] + np.float16(1))
ones.reveal(int(one_by_one[-1]), factor=1.01)

columns = np.ones((4096, 2), np.float16)  # one sum for each column
lengths = np.arange(0, 4097, 64)
figure, axis = plt.subplots(figsize=(8, 3.6))
axis.plot(lengths, [one_by_one[n] for n in lengths], linewidth=4, alpha=0.4, label="one by one")
numpys = [columns[:n].sum(axis=0)[0] for n in lengths]
axis.plot(lengths, numpys, "--", color="C3", label="x.sum(axis=0)")
yours = [mine.sum_f16_acc32(columns[:n], 0)[0] for n in lengths]
axis.plot(lengths, yours, color="black", linewidth=1, label="yours")
axis.set(xlabel="how many ones", ylabel="their sum", title="Sums of ones in float16")
axis.legend()
plt.show()
print("NumPy, along rows:", float(columns.T.copy().sum(axis=1)[0]))
print("minigrad:         ", mg.variable(columns).sum(axis=0).tolist()[0])

# %% [markdown]
# **What to see.** Beyond 2048, float16 has only even numbers. 2048 + 1 lies halfway between two of
# them and is rounded to the even one: back to 2048. There the sum stays for ever. NumPy's own sum
# along the first axis is stuck as well. Along the last axis it is not, because there NumPy adds in
# float32 before it stores. Yours and minigrad always add in float32 and round once, and so, as a
# rule, do the matrix units of GPUs: this is called a *float32 accumulator*. It is also why
# `autocast`, which you meet in the next section, keeps some functions in float32: `sum`, `mean`,
# `softmax` and losses.

# %% [markdown]
# ## 2. A loss that stops
#
# Now for numbers that are too small. Here is an autoencoder: it squeezes a digit through 32 numbers
# and restores it. Such a loss is often the second one of a model, and gets a small weight. Adam
# does not mind, since it divides by the size of the gradients (lesson 09).
#
# `mg.autocast` works as in PyTorch. Inside the block, matrix products compute in float16; what
# needs range or digits stays in float32, and so do the parameters and their gradients.

# %%
images, labels = mg.data.load_digits()
pixels = images.reshape(-1, 64)


def new_autoencoder():
    """Return a small autoencoder for digits."""
    mg.manual_seed(1)
    return mg.nn.Sequential(mg.nn.Linear(64, 32), mg.nn.Tanh(), mg.nn.Linear(32, 64))


def train(dtype, weight, steps=80, scaled=False):
    """Train with products in this dtype and the loss times a weight; return the losses."""
    model, data, losses = new_autoencoder(), mg.variable(pixels[:1024]), []
    scaler = mg.optim.GradScaler(enabled=scaled)  # not enabled, it does nothing
    optimizer = mg.optim.Adam(model, learning_rate=3e-3)
    for _ in range(steps):
        with mg.autocast("float16" if dtype == "float32" else dtype, enabled=dtype != "float32"):
            loss = mg.mse(model(data), data)
        scaler.scale(loss * weight).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


# %% [markdown]
# **Predict.** The weight is 0.001. In float32 the training goes on as without the weight. And in
# float16?

# %% tags=["prediction"]
stops = predict(
    "15.stops",
    "Loss times 0.001, products in float16: what does the loss do?",
    choices=("falls as in float32", "stops halfway", "becomes nan"),
)
stops

# %%
runs = {
    "float32, weight 0.001": train("float32", 1e-3),
    "float16, weight 1": train("float16", 1.0),
    "float16, weight 0.001": train("float16", 1e-3),
    "bfloat16, weight 0.001": train("bfloat16", 1e-3),
}
figure, axis = plt.subplots(figsize=(8, 4))
for (name, losses), style in zip(runs.items(), ("-", "--", "-", ":"), strict=True):
    wide = name == "float32, weight 0.001"
    axis.plot(losses, style, linewidth=5 if wide else 1.8, alpha=0.4 if wide else 1, label=name)
axis.set(xlabel="training step", ylabel="loss, without its weight", ylim=(0, 0.3))
axis.set_title("The same autoencoder, four times")
axis.legend()
plt.show()
with_weight, in_float32 = runs["float16, weight 0.001"][-1], runs["float32, weight 0.001"][-1]
is_alike = with_weight < 1.2 * in_float32
stopped = "stops halfway" if np.isfinite(with_weight) else "becomes nan"
stops.reveal("falls as in float32" if is_alike else stopped)
print(f"losses at the end: {in_float32:.4f} in float32, {with_weight:.4f} in float16")

# %% [markdown]
# **What to see.** Three curves are one. The fourth begins like them and then stops, with no error
# and no nan. float16 alone does no harm, and neither does the weight; both together do. bfloat16
# lives.
#
# Where do the gradients get lost? The backward pass gives, for each output of a layer, the gradient
# of the loss there. Under `autocast` these are float16. The next cell computes them in float32, to
# see what they would have been.


# %%
def gradients_at_outputs(model, weight):
    """Return the gradient of the weighted loss at each layer's output, in float32."""
    h = data = mg.variable(pixels[:1024])
    added = {}
    for name, layer in zip(("first layer", "tanh", "last layer"), model, strict=True):
        h = layer(h)
        added[name] = mg.zeros(h.shape, requires_grad=True)  # its gradient is that of h
        h = h + added[name]
    (mg.mse(h, data) * weight).backward()
    return {name: x.grad.numpy().copy() for name, x in added.items()}


gradients = gradients_at_outputs(new_autoencoder(), 1e-3)
scales = [2.0**k for k in range(0, 53, 2)]


def draw(axis, scale):
    """Draw the exponents of these gradients, times a scale."""
    draw_exponents(axis, gradients, scale)


scrub(draw, scales, label="scale", show=[1.0, 2.0**16, 2.0**42])

# %% [markdown]
# **What to see.** A bar counts the gradients with that exponent, and its colour says what float16
# makes of them. On the left, with scale 1, nearly all are red: they are smaller than half of
# $2^{-24}$, and become 0. The orange bar beside them is below $2^{-24}$ too, but above half of it:
# these are rounded up, to $2^{-24}$ itself. A factor on all of them moves the whole hill to the
# right, and does not change its shape. At 65536 nearly all of it is blue: there are all 11 bits.
# With $2^{42}$ it leaves float16 at the other end. bfloat16 has no such ends in this picture: all
# bars would be blue, but with 8 bits.
#
# **Write** `find_underflow`, which counts this. Do not ask for limits; let NumPy round, and look.

# %% tags=["exercise"]
check("15.find_underflow")

# %%
needs("15.find_underflow")
mine = load("15")


def table(scale):
    """Print your counts as shares, for each layer."""
    with np.errstate(over="ignore"):
        counts = mine.find_underflow(gradients, scale)
    for name, count in counts.items():
        shares = ", ".join(f"{n / gradients[name].size:6.1%} {kind}" for kind, n in count.items())
        print(f"scale 2**{int(np.log2(scale)):<3} {name:>11}: {shares}")


for scale in (1.0, 2.0**8, 2.0**16, 2.0**42):
    table(scale)

# %% [markdown]
# With scale 1, more than nine of ten gradients are lost, in each layer. With $2^8$ most are there,
# but have only some of their bits, and with $2^{16}$ nearly all are whole.
#
# ## 3. A factor that looks after itself
#
# The cure follows from the chain rule. If the loss is multiplied by a number, *every* gradient is,
# on the whole way back. So multiply the loss by a **scale**, let the backward pass compute in
# float16, and divide the gradients of the parameters (which are float32) by the scale. With a power
# of two, neither step rounds anything. This is how it was done from the beginning: Micikevicius and
# others (2018) found that a detection network needed a factor of only 8 to train as in float32.
#
# But a scale can be too large, and gradients change during a training.
#
# **Predict.** The scale goes up in powers of two. At which one does the first of the gradients that
# you just saw become infinite? (16 means $2^{16} = 65536$.)

# %% tags=["prediction"]
first_inf = predict("15.first_inf", "2 to which power: the first scale that is too large?")
first_inf

# %%
needs("15.find_underflow")
mine = load("15")


def has_inf(scale):
    """Return whether a scaled gradient is infinite in float16, by your counts."""
    with np.errstate(over="ignore"):
        return any(count["inf"] for count in mine.find_underflow(gradients, scale).values())


first_inf.reveal(next(k for k in range(60) if has_inf(2.0**k)), factor=1.2)

# %% [markdown]
# There is much room. So nobody computes the best scale. A **GradScaler** begins with a large one
# and watches for gradients that are not finite:
#
# - An inf or a nan: this step is left out (the weights would become nan), and the scale is halved.
# - Many good steps in a row: the scale is doubled. If that was too much, the next inf halves it
#   again, and one step is lost.
#
# PyTorch's `torch.amp.GradScaler` does exactly this, with 65536 at first, factors 2 and 0.5, and
# 2,000 good steps. minigrad's has the same methods and defaults, and so has yours. **Write** the
# four methods of `GradScaler`. (It is the longest exercise of the lesson. Begin with one optimizer
# and finite gradients.)

# %% tags=["exercise"]
check("15.GradScaler")

# %% [markdown]
# Now your scaler runs the engine: `mg.use(grad_scaler=...)` lets it decide for every
# `mg.optim.GradScaler`. First the loss that stopped, in float16, its weight still 0.001:

# %%
needs("15.GradScaler")
mine = load("15")
with mg.use(grad_scaler=mine.GradScaler):
    rescued = train("float16", 1e-3, scaled=True)
figure, axis = plt.subplots(figsize=(8, 3.6))
axis.plot(runs["float32, weight 0.001"], linewidth=5, alpha=0.4, label="float32")
axis.plot(runs["float16, weight 0.001"], color="C3", label="float16")
axis.plot(rescued, color="black", linewidth=1, label="float16 with your scaler")
axis.set(xlabel="training step", ylabel="loss, without its weight", ylim=(0, 0.3))
axis.set_title("The autoencoder, and its loss times 0.001")
axis.legend()
plt.show()

# %% [markdown]
# **What to see.** With your scaler the loss falls as in float32.
#
# The scale was 65536 all the time: 80 good steps are fewer than 2,000. To see it move, a network
# reads digits, with its products in float16. Its scale starts far too large, at $2^{26}$, and grows
# after every 15 good steps.

# %%
(x, y), (x_new, y_new) = mg.data.stratified_split(pixels * 2 - 1, labels, seed=1)


def train_digits(epochs=5):
    """Train on digits in float16, with a GradScaler; return losses, scales, and what is right."""
    mg.manual_seed(2)
    model = mg.nn.Sequential(mg.nn.Linear(64, 64), mg.nn.ReLU(), mg.nn.Linear(64, 10))
    optimizer = mg.optim.Adam(model, learning_rate=3e-3)
    scaler = mg.optim.GradScaler(2.0**26, growth_interval=15)
    losses, scales = [], []
    for epoch in range(epochs):
        for rows, targets in mg.data.batches(x, y, batch_size=64, seed=epoch):
            with mg.autocast("float16"):
                loss = mg.cross_entropy(model(mg.variable(rows)), mg.variable(targets))
            scales.append(scaler.get_scale())
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            losses.append(loss.item())
    with mg.no_grad():
        right = model(mg.variable(x_new)).numpy().argmax(axis=1) == y_new
    return losses, scales, scaler.skipped_steps, right.mean()


losses, scales, skipped, accuracy = train_digits()
print(f"minigrad's own: loss {losses[-1]:.4f}, {accuracy:.1%} read correctly, {skipped} left out")

# %%
needs("15.GradScaler")
mine = load("15")
calls = 0


class Counted(mine.GradScaler):
    """Your GradScaler, which counts its iterations."""

    def update(self):
        """Count the call, and let your method answer it."""
        global calls
        calls += 1
        return super().update()


with mg.use(grad_scaler=Counted):
    my_losses, my_scales, my_skipped, my_accuracy = train_digits()
print(f"with yours:     loss {my_losses[-1]:.4f}, {my_accuracy:.1%} read correctly", end="")
print(f", {my_skipped} left out")

# %%
needs("15.GradScaler")
fell = [k for k in range(len(my_scales) - 1) if my_scales[k + 1] < my_scales[k]]
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
draw_scale(left, my_scales, fell, "your scale")
left.set_title("The scale finds its height")
right.plot(losses, linewidth=4, alpha=0.4, label="minigrad's own scaler")
right.plot(my_losses, color="black", linewidth=1, label="yours")
right.set(xlabel="training step", ylabel="loss", title="The loss")
right.legend()
plt.show()

# %%
needs("15.GradScaler")
print(light("15.GradScaler", mine=my_losses, reference=losses, calls=calls))

# %% [markdown]
# **What to see.** On the left, the scale falls until the gradients fit; each cross is a step that
# was left out. Then it is doubled after every 15 good steps, and mostly the next inf halves it at
# once: it *probes* where float16 ends for these gradients. (With PyTorch's 2,000 good steps, a
# probe costs one step in 2,000.) On the right, the loss begins with a flat piece: the steps that
# were left out. After that, nobody could tell that a scaler was at work.
#
# A scale that falls and falls says something else: gradients that are infinite at *every* scale.
# The people who trained OPT-175B (Zhang and others, 2022) wrote that when their loss diverged, the
# loss scale crashed to 0 with it. A plot of the scale shows this early.

# %% [markdown]
# ## 4. A copy that remembers
#
# There is a third place to lose numbers: the step. `autocast` leaves the parameters in float32.
# But a model may also be stored in float16 itself, which halves it in memory.
#
# **Predict.** A weight in float16 is 1.0. A thousand steps each take 0.0002 from it: `w = w -
# np.float16(0.0002)`. What is it afterwards?

# %% tags=["prediction"]
stuck = predict("15.stuck", "1.0 minus 0.0002, a thousand times, in float16: what is left?")
stuck

# %% [markdown]
# **Write** `master_step`. It keeps a float32 copy of the weights, the **master copy**, in the
# optimizer's state. minigrad's optimizers do so for every parameter in half precision. PyTorch's
# own do not: after `model.half()` their steps are rounded to float16, so there one leaves the
# parameters in float32.

# %% tags=["exercise"]
check("15.master_step")

# %%
needs("15.master_step")
mine = load("15")
plain, with_master, state = np.ones(1, np.float16), np.ones(1, np.float16), {}
down, path = np.ones(1, np.float32), []
for _ in range(1000):
    plain -= np.float16(0.0002) * down.astype(np.float16)
    mine.master_step(with_master, down, state, 0.0002)
    path.append((plain.item(), with_master.item(), state["master"].item()))
stuck.reveal(plain.item(), factor=1.01)

first = np.array(path)[:40]
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
for axis, rows in ((left, np.array(path)), (right, first)):
    axis.plot(rows[:, 0], "--", color="C3", label="float16 alone")
    axis.step(range(len(rows)), rows[:, 1], where="post", color="C0", label="float16, with master")
    axis.plot(rows[:, 2], color="black", linewidth=0.8, label="its master, float32")
    axis.set(xlabel="step", ylabel="weight")
left.set_title("A thousand steps of 0.0002")
right.set_title("The first 40 of them")
left.legend(fontsize=8)
plt.show()

p = mg.nn.Parameter(mg.ones(1, dtype="float16"))  # the same in minigrad
optimizer = mg.optim.SGD([p], learning_rate=0.0002)
for _ in range(1000):
    p.grad = mg.ones(1, dtype="float16")
    optimizer.step()
print("minigrad: parameter", p.tolist(), "master", optimizer.state[p.id]["master"].tolist())

# %% [markdown]
# **What to see.** Just below 1.0, float16 has a number every 0.0005. A step of 0.0002 is less than
# half of that, so it is rounded away, a thousand times. With the master copy (black) the steps add
# up where there is room, and the parameter (blue) follows in stairs: it jumps whenever the copy has
# come far enough.
#
# A copy costs 4 bytes a weight. Together with the weight itself and Adam's two moments that makes
# 14 bytes in float16, and 12 in float32; with the gradient it is 16 in both. Half precision saves
# memory in *activations*, not here.

# %% [markdown]
# > **Real bug: the copy that came too early.** NVIDIA's apex cloned its master weights from the
# > model *before* an example script loaded the checkpoint
# > ([apex#42](https://github.com/NVIDIA/apex/pull/42), 2018). The model had the loaded weights, its
# > master had random ones, and the first step copied these over the loaded ones. Your `master_step`
# > looks at what is in the parameter:

# %%
needs("15.master_step")
model, state = np.array([0.5, -0.5], np.float16), {}  # random weights
mine.master_step(model, np.zeros(2, np.float32), state, 0.1)
model[...] = [3.0, 4.0]  # somebody loads a checkpoint
naive = state["master"].astype(np.float16)
mine.master_step(model, np.zeros(2, np.float32), state, 0.1)
print("after the next step, from the old copy:", naive, " yours:", model)

# %% [markdown]
# ## 5. Bug hunt
#
# At the end of your exercise file is `train_clipped`: a training step in float16 in six stages. It
# scales, clips, checks for inf, and it runs without an error. But it learns very slowly. Here are
# its first steps on a bowl, with the stages of *your* file, for three scales.

# %%
mine = load("15")


def walk(scale, steps=60):
    """Return the weights of steps down a bowl that has its bottom at (3, -2)."""
    w, path = np.zeros(2, np.float32), []
    for _ in range(steps):
        slope = (w - np.array([3.0, -2.0], np.float32)).astype(np.float32)
        w = mine.train_clipped(w, slope[None], scale, 1.0, 0.1)[-1]
        path.append(w)
    return np.array(path)


figure, axis = plt.subplots(figsize=(8, 3.8))
for scale, style in ((1.0, "-"), (16.0, "--"), (512.0, ":")):
    far = np.linalg.norm(walk(scale) - [3.0, -2.0], axis=1)
    axis.plot(far, style, linewidth=2.2, label=f"scale {scale:g}")
axis.set(xlabel="step", ylabel="distance from the bottom", ylim=(0, 4))
axis.set_title("Learning rate 0.1, gradients clipped to the norm 1")
axis.legend()
plt.show()
lengths = {scale: np.linalg.norm(walk(scale, 1)[0]) for scale in (1.0, 16.0, 512.0)}
print("first step:", ", ".join(f"{length:.6f} at scale {s:g}" for s, length in lengths.items()))

# %% [markdown]
# **What to see.** The scale is a trick of arithmetic: it is multiplied in and divided out, so it
# must not show in the result, and all three curves should be one. If yours are not, the larger
# scale learns more slowly. Compare the lengths of the first steps with the scales. Which stage is
# called too early? Write its place into `BUG`, then repair the training.

# %% tags=["exercise"]
check("15.train_clipped")

# %% [markdown]
# > **Also a real bug.** PyTorch Lightning did this in 2021
# > ([lightning#9599](https://github.com/Lightning-AI/pytorch-lightning/issues/9599); somebody had
# > noticed that a large model converged very slowly), and apex's distributed Adam in 2022
# > ([apex#1512](https://github.com/NVIDIA/apex/pull/1512)). It is easy to write: in PyTorch the
# > line `scaler.unscale_(optimizer)` before `clip_grad_norm_` is yours to add, and without it
# > nothing warns you. minigrad marks the gradients of a scaled loss, and refuses:

# %%
p = mg.nn.Parameter([1.0, 2.0])
scaler, sgd = mg.optim.GradScaler(), mg.optim.SGD([p], learning_rate=0.1)
scaler.scale((p * p).sum()).backward()
try:
    mg.optim.clip_grad_norm_([p], 1.0)
except mg.errors.StateError as error:
    print(str(error).splitlines()[0][:120])

# %% [markdown]
# ## Where you are
#
# - float16 has 11 bits, and a range from $2^{-24}$ to 65504. bfloat16 has 8 bits, and the range of
#   float32: it needs no scaler, which is why most large models are trained in it today.
# - Add in float32, round once.
# - A scale on the loss moves all gradients to where float16 has its bits. It is found by trying: a
#   step with an inf is left out.
# - Unscale before you clip, or look at a norm, or do anything else with gradients.
# - A step is smaller than what it changes: keep a copy with more bits for the sum of all steps.
#
# **Next:** lesson 16, where several workers train one model. To practise, train something of your
# own with all your parts in the engine, in float16; `minigrad status` shows which of them are lit.

# %%
from minigrad.course.predictions import summary

print(summary("15"))

# %% tags=["exercise"]
check("15")
