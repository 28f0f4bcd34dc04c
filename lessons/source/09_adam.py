# %% [markdown]
# # 09 · Steps that do not ask how large the gradient is
#
# **You need** lesson 08, or to know what momentum is and that an optimizer keeps a state for each
# parameter. **It takes** about 115 minutes. **At the end** you have written Adam, AdamW and a
# schedule, know what each of their small terms is for, and minigrad trains real digits with *your*
# Adam in its engine. Next: lesson 10, the memory in which all this lies.
#
# Your code goes into `exercises/09_adam.py`. All of it is plain NumPy.

# %% tags=["live"]
from minigrad.course import watch

watch("09")  # what you save in exercises/09_adam.py is graded here at once

# %%
import matplotlib.pyplot as plt
import numpy as np

import minigrad as mg
from minigrad.course import check, hint, light, load, needs, predict, scrub

plt.style.use("minigrad.course.house")

# %% [markdown]
# ## 1. One learning rate for two slopes?
#
# Here is a bowl that is 50 times as steep in one direction as in the other: $f(x, y) = \frac{1}{2}
# (x^2 + 50\, y^2)$. Real losses are like that in thousands of directions at once. SGD multiplies
# every slope by the *same* learning rate. A rate that is right for `x` is far too large for `y`.
#
# Three of minigrad's optimizers walk down from the same point.

# %%
STEEP = np.array([1.0, 50.0])


def walk(make, n_steps=60):
    """Walk down the bowl with an optimizer of minigrad; return the places, and the optimizer."""
    p = mg.nn.Parameter(np.array([-4.0, 1.2]))
    optimizer = make([p])
    places = [p.numpy().copy()]
    for _ in range(n_steps):
        loss = (p * p * mg.variable(STEEP)).sum() * 0.5
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        places.append(p.numpy().copy())
    return np.array(places), optimizer


WALKS = {
    "SGD, 0.035": walk(lambda p: mg.optim.SGD(p, learning_rate=0.035))[0],
    "with momentum": walk(lambda p: mg.optim.SGD(p, learning_rate=0.02, momentum=0.8))[0],
    "Adam, 0.3": walk(lambda p: mg.optim.Adam(p, learning_rate=0.3))[0],
}
COLOURS = dict(zip(WALKS, ("C0", "C2", "C3"), strict=True))


def draw_bowl(axis, step):
    """Draw the bowl from above, and the three walks so far."""
    x, y = np.meshgrid(np.linspace(-4.6, 2.2, 80), np.linspace(-1.7, 1.7, 80))
    height = 0.5 * (STEEP[0] * x**2 + STEEP[1] * y**2)
    axis.contour(x, y, height, levels=[0.1, 1, 4, 10, 20, 40, 70], colors="silver", linewidths=0.8)
    for name, places in WALKS.items():
        so_far = places[: step + 1]
        axis.plot(*so_far.T, ".-", color=COLOURS[name], markersize=4, linewidth=1, label=name)
        axis.plot(*so_far[-1], "o", color=COLOURS[name])
    axis.plot(0, 0, "k+", markersize=10)
    axis.set(xlabel="x, the flat direction", ylabel="y, the steep one", ylim=(-1.7, 1.7))
    axis.set_title(f"after step {step}", fontsize=10)
    axis.legend(fontsize=7, loc="lower right")


scrub(draw_bowl, [0, 1, 2, 3, 5, 8, 12, 20, 30, 45, 60], label="step", show=[1, 5, 20])

# %% [markdown]
# **What to see.** SGD (blue) jumps across the valley from wall to wall, and moves slowly along it.
# With a larger rate it would diverge; with a smaller one it would be slower still. Momentum (green)
# helps. Adam's first step (red) goes *the same distance in both directions* (the axes have
# different scales), although one slope is 4 there and the other 60. The size of the gradient does
# not matter to Adam. (Later it overshoots, as momentum does, because it contains momentum; you will
# see where.)
#
# **Predict.** How long is Adam's step, then, if the gradient is tiny?

# %% tags=["prediction"]
tiny = predict("09.tiny", "Gradient 0.000001, learning rate 0.1: how long is the first step?")
tiny

# %% [markdown]
# ## 2. An average that starts at zero
#
# Adam (Kingma and Ba, 2015) remembers two things about each weight: a running average of its
# gradient, the *first moment*, and a running average of the gradient's square, the *second moment*.
# A running average needs no list of old values, only the last average:
#
# $$m \leftarrow \beta\, m + (1 - \beta)\, g$$
#
# With $\beta = 0.9$ it averages over about ten values, with $\beta = 0.999$ over about a thousand.
# But it starts at 0, so the first averages are too small. **Write** `corrected_average`, which
# corrects this.

# %% tags=["exercise"]
check("09.corrected_average")

# %%
needs("09.corrected_average")
mine = load("09")
random = np.random.default_rng(9)
noisy = 1.0 + 0.5 * random.standard_normal(60)
figure, axis = plt.subplots(figsize=(8, 4))
axis.plot(np.arange(1, 61), noisy, ".", color="silver", label="gradients, around 1")
for beta, colour in ((0.9, "C0"), (0.99, "C3")):
    corrected = mine.corrected_average(noisy, beta)
    t = np.arange(1, 61)
    axis.plot(t, corrected, "-", color=colour, label=f"beta = {beta}, corrected: yours")
    axis.plot(t, corrected * (1 - beta**t), "--", color=colour, label=f"beta = {beta}, as it is")
axis.set(xlabel="t, gradients seen so far", ylabel="running average", ylim=(0, 2.6))
axis.set_title("Started at zero, and corrected")
axis.legend(fontsize=8, ncols=2)
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** The dashed averages climb from 0; the red one is still far too small after 60
# gradients. The solid ones have no such climb: they scatter around 1 from the first gradient on,
# less and less. The dashed blue line has reached the solid one after about 30 gradients.
#
# ## 3. Adam
#
# With both moments corrected, Adam's step is a quotient:
#
# $$p \leftarrow p - \eta\, \frac{\hat m}{\sqrt{\hat v} + \epsilon}$$
#
# The numerator is the average gradient, and the denominator is the typical size of a gradient. If
# the loss is multiplied by 1,000, both grow 1,000-fold, and the step stays the same. If the
# gradients agree with each other, the quotient is near 1 or -1, and the step has the length $\eta$.
# If their signs change from step to step, they cancel in the numerator, and the step is short.
#
# **Predict.** Suppose that somebody leaves out the correction and uses both moments as they are,
# with betas 0.9 and 0.999. Is the first step too long or too short, and by which factor? (A factor
# above 1 is too long: 10 means ten times the right step, 0.1 a tenth of it.)

# %% tags=["prediction"]
bias = predict("09.bias", "First step without correction, as a multiple of the right one?")
bias

# %% [markdown]
# **Write** `adam_step`. It takes a parameter, its gradient and its state, and returns the new
# parameter and the new state. It changes nothing in place, so the old state stays as it was; optax,
# for JAX, works like this. PyTorch writes into the same arrays and calls them `exp_avg`,
# `exp_avg_sq` and `step`.

# %% tags=["exercise"]
check("09.adam_step")

# %%
needs("09.adam_step")
mine = load("09")
p, state = mine.adam_step(np.zeros(1), np.array([1e-6]), {}, 0.1)
tiny.reveal(float(abs(p[0])), factor=1.2)

# %% [markdown]
# The step is nearly the whole learning rate. How small may the gradient become before the step
# shrinks? The next cell plots your function's first step over eighteen powers of ten.

# %%
needs("09.adam_step")
sizes = np.logspace(-12, 6, 200)


def first_steps(eps):
    """Return the length of the first step for each size of the gradient, with your adam_step."""
    return np.abs(mine.adam_step(np.zeros_like(sizes), sizes, {}, 0.1, eps=eps)[0])


figure, axis = plt.subplots(figsize=(8, 4))
for eps in (1e-8, 1e-4):
    axis.loglog(sizes, first_steps(eps), label=f"Adam, eps = {eps:g}")
axis.loglog(sizes, 0.1 * sizes, "--", color="gray", label="SGD")
axis.loglog(
    sizes, 0.1 * sizes / np.sqrt(sizes**2 + 1e-8), ":", color="C0", label="1e-8 in the root"
)
axis.set(xlabel="|gradient|", ylabel="|first step|", ylim=(1e-9, 1e2))
axis.set_title("Learning rate 0.1: how far does the first step go?")
axis.legend()
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** SGD's step is proportional to the gradient, over all eighteen powers of ten.
# Adam's step is the learning rate, until the gradient is about as small as `eps`. So `eps` says
# *which gradients count as zero*. If `eps` is under the root, 1e-8 has the effect of 1e-4: a
# mistake in one pair of brackets moves the bend by four powers of ten.

# %% [markdown]
# > **Real bug: eps one line too early.** It is tempting to take the root of the *uncorrected*
# > second moment, add `eps`, and correct the quotient afterwards. PyTorch's Adam did that until a
# > pull request of July 2019 ([pytorch#22628](https://github.com/pytorch/pytorch/pull/22628)); the
# > same was found in nanochat in November 2025
# > ([nanochat#304](https://github.com/karpathy/nanochat/issues/304)). Keras does it on purpose: its
# > manual says that its epsilon is the "epsilon hat" of the paper and not that of Algorithm 1. Here
# > is what it does to the first step:


# %%
needs("09.adam_step")
correction = np.sqrt(1 - 0.999)  # the root of the second moment's correction, at t = 1
print(f"eps counts {1 / correction:.1f} times as much at t = 1")
for size in (1e-3, 1e-7, 1e-8):
    right = mine.adam_step(np.zeros(1), np.array([size]), {}, 0.1)[0][0]
    second = 0.001 * size**2
    early = -0.1 * size * correction / (np.sqrt(second) + 1e-8)  # eps joins too early
    print(f"|g| = {size:g}: step {right:.5f}, with eps too early {early:.5f}")

# %% [markdown]
# For ordinary gradients there is hardly a difference; for tiny ones only a small part of the step
# is left. A loss curve does not show this. It was found by people who compared the code with the
# paper.
#
# Now the correction. If the gradient is the same in every step, the length of the right step is
# always the learning rate:

# %%
needs("09.adam_step")


def uncorrected(p, g, state, learning_rate, betas, eps):
    """Step as Adam would without its corrections: your moments, used as they are."""
    _, state = mine.adam_step(p, g, state, learning_rate, betas, eps)
    step = state["first_moment"] / (np.sqrt(state["second_moment"]) + eps)
    return p - learning_rate * step, state


def step_lengths(step, n_steps):
    """Return how far each step goes, in learning rates, while the gradient is 1."""
    p, state, lengths = np.zeros(1), {}, []
    for _ in range(n_steps):
        before = p
        p, state = step(p, np.ones(1), state, 1.0, (0.9, 0.999), 1e-8)
        lengths.append(float(before[0] - p[0]))
    return np.array(lengths)


t = np.arange(1, 3001)
without = step_lengths(uncorrected, 3000)
figure, axis = plt.subplots(figsize=(8, 4))
axis.semilogx(t, step_lengths(mine.adam_step, 3000), label="yours")
axis.semilogx(t, without, label="without correction")
axis.set(xlabel="step", ylabel="length of the step, in learning rates", ylim=(0, 7.5))
axis.set_title("A constant gradient, with and without correction")
axis.legend()
axis.grid(alpha=0.3)
plt.show()
print(f"without correction, step {without.argmax() + 1} is the longest: {without.max():.2f}")
bias.reveal(without[0], factor=1.1)

# %% [markdown]
# **What to see.** Without the correction, the first step is too long, not too short: $0.1 /
# \sqrt{0.001} \approx 3.2$ times the learning rate. The first moment is ten times too small, and
# the second is 1,000 times too small, but the second is in the *divisor*. For a dozen steps the
# error grows, because the first moment recovers much sooner than the second. After thousands of
# steps it no longer matters. So training without the correction often survives, with a jolt in its
# first steps. (The Adam of Apple's MLX had no correction until December 2024. Then a user, whose
# small GPT learned worse than in PyTorch, added it as an option:
# [mlx#1640](https://github.com/ml-explore/mlx/pull/1640).)
#
# ## 4. A t for each parameter
#
# A model has many parameters, and not all of them train from the start: a frozen layer is unfrozen
# for fine-tuning, or a branch is used for some inputs only. So `t` counts the steps *of one
# parameter*, because its moments contain only those. PyTorch keeps a `step` for each parameter, as
# you do here. A parameter without a gradient makes no step:
#
# - gradient `None`: not part of this loss. Nothing moves, nothing is counted.
# - gradient of zeros: the loss is flat in this direction. The moments average these zeros, too.
#
# **Predict.** A parameter has gone downhill for 300 steps of length 1. From now on its gradient is
# exactly 0. How far does Adam still move it (0 if it stops at once)?

# %% tags=["prediction"]
coasting = predict("09.coasting", "How far does Adam go on with gradients of zero?")
coasting

# %% tags=["exercise"]
check("09.step_all")

# %%
needs("09.step_all", "09.adam_step")
mine = load("09")


def drift(gradient, n_before=300, n_after=60):
    """Return where a parameter is in each step after its gradients of 1 have ended."""
    parameters, states, places = {"p": np.zeros(1)}, {}, []
    for i in range(n_before + n_after):
        g = np.ones(1) if i < n_before else gradient
        parameters, states = mine.step_all(parameters, {"p": g}, states, learning_rate=1.0)
        places.append(float(parameters["p"][0]))
    return np.array(places[n_before - 1 :]) - places[n_before - 1]


def late_lengths(t_before, n_steps=40):
    """Return the lengths of a new parameter's steps, if its t goes on from t_before."""
    p, lengths = np.zeros(1), []
    state = {"first_moment": np.zeros(1), "second_moment": np.zeros(1), "step": t_before}
    for _ in range(n_steps):
        before = p
        p, state = mine.adam_step(p, np.ones(1), state, 1.0)
        lengths.append(float(before[0] - p[0]))
    return lengths


zeros, none = drift(np.zeros(1)), drift(None)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(zeros, label="a gradient of zeros")
left.plot(none, label="gradient None")
left.set(xlabel="steps since the gradients ended", ylabel="place, in learning rates")
left.set_title("No gradient, and a gradient of zero")
right.plot(np.arange(1, 41), late_lengths(0), label="its own t, from 1")
right.plot(np.arange(1, 41), late_lengths(300), label="one t for all, from 301")
right.set(xlabel="steps of the new parameter", ylabel="length of the step, in learning rates")
right.set_title("A parameter that joins at step 301")
for axis in (left, right):
    axis.legend()
    axis.grid(alpha=0.3)
plt.show()
coasting.reveal(float(-zeros[-1]), factor=1.3)

# %% [markdown]
# **What to see.** On the left, with zeros, the parameter goes on by about nine learning rates. That
# is the sum $0.9 + 0.9^2 + \dots$, and a little more, because the second moment fades, too. With
# `None` it stops at once. This made a difference in PyTorch: before version 2.0, `zero_grad()` left
# zeros by default, so a layer that took no part in a step moved nevertheless. On the right, with
# one `t` for all parameters, the new parameter's averages count as old. They are corrected far too
# little, and its steps soon become more than three times too long: the jolt of section 3, in the
# middle of a run.

# %% [markdown]
# > **Another real bug: a run that forgot its state.** Burn keeps Adam's moments under the id of
# > each parameter. Checkpoints contained the ids, but loading a model ignored them, and kept the
# > ids of the freshly made model ([burn#5130](https://github.com/tracel-ai/burn/issues/5130),
# > repaired by [#5177](https://github.com/tracel-ai/burn/pull/5177)). So after every restart, no
# > state belonged to any parameter, and Adam began anew, without an error.
# >
# > What does a lost state look like? The next step is a *first* step again: its length is the
# > learning rate, for any gradient. If the state is lost at every step, because a line of code
# > makes a new parameter each time, then *every* step is a first step: only the sign of the
# > gradient is left.


# %%
def lengths(lose_at):
    """Minimise w * w / 2 with minigrad's Adam; lose its state before the steps of `lose_at`."""
    w = mg.nn.Parameter(np.array([3.05]))
    optimizer = mg.optim.Adam([w], learning_rate=0.1)
    found = []
    for t in range(50):
        if t in lose_at:
            optimizer = mg.optim.Adam([w], learning_rate=0.1)
        before = w.item()
        optimizer.zero_grad()
        (w * w * 0.5).sum().backward()
        optimizer.step()
        found.append(abs(w.item() - before))
    return found, int(optimizer.state[w.id]["step"].item())


figure, axis = plt.subplots(figsize=(8, 4))
for name, lose_at, style in (
    ("state kept", (), "-"),
    ("lost once, at a restart", (25,), "--"),
    ("lost at every step", range(50), ":"),
):
    found, count = lengths(lose_at)
    label = f"{name}: 'step' says {count} at the end"
    axis.plot(np.arange(1, 51), found, style, linewidth=2, label=label)
axis.set(xlabel="step", ylabel="|change of w|", ylim=(0, 0.14))
axis.set_title("Adam with a learning rate of 0.1, and how well it remembers")
axis.legend(fontsize=8)
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** With its state, Adam slows down as the slope gets gentler. After the restart, it
# jumps back to the full learning rate. If it loses its state at every step, it stays there and
# never settles (dotted). If your loss has a bump at every restart, look at the count `step` in the
# optimizer's state.

# %% [markdown]
# ## 5. Decay that is not divided away
#
# Weight decay pulls each weight a little towards 0 in every step. The old way adds $\lambda\, p$ to
# the gradient (the L2 penalty). For plain SGD, this shrinks each weight by the same share. For Adam
# it does not: the decay goes through the quotient together with the gradient, so it is divided by
# the *gradient's* size. Weights with large gradients then hardly decay at all. Loshchilov and
# Hutter (2019) took the decay out of the gradient: shrink `p` first, then make a step of Adam. That
# is AdamW.
#
# In PyTorch and minigrad, `Adam(weight_decay=...)` is the old way and `AdamW` the new one. In both,
# AdamW takes away a share of each weight: the learning rate times $\lambda$. So will yours. (In the
# paper, the decay has a factor of its own.) **Write** `adamw_step`.

# %% tags=["exercise"]
check("09.adamw_step")

# %%
needs("09.adamw_step", "09.adam_step")
mine = load("09")
noise = np.random.default_rng(2).standard_normal((600, 2)) * [0.01, 10.0]


def decayed(coupled):
    """Return two weights over time, whose gradients are noise of very different sizes."""
    p, state, places = np.array([1.0, 1.0]), {}, []
    for g in noise:
        if coupled:
            p, state = mine.adam_step(p, g + 0.5 * p, state, 0.005)
        else:
            p, state = mine.adamw_step(p, g, state, 0.005, weight_decay=0.5)
        places.append(p)
    return np.array(places)


figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for axis, coupled in zip(axes, (True, False), strict=True):
    for path, size in zip(decayed(coupled).T, ("0.01", "10"), strict=True):
        axis.plot(path, label=f"gradients of about {size}")
    axis.set(xlabel="step", ylabel="weight")
    axis.set_title("in the gradient (L2)" if coupled else "decoupled: yours")
    axis.legend(fontsize=8)
    axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** The gradients of both weights are only noise, so only the decay should act. On
# the left, the decay is much larger than the small gradients, so Adam takes that weight to 0 at
# full speed; among the large gradients, the decay has hardly any effect. On the right, both weights
# shrink by the same share in each step, with some noise on top. There the decay does not depend on
# the gradients.
#
# ## 6. When to make large steps
#
# If each step has the length of the learning rate, this one number decides how far the training
# goes. Usually it follows a schedule. It is small at first, while the moments rest on few
# gradients; then it is large; then it falls to almost nothing, so that the training can settle. The
# usual shape is a straight line up and half a cosine down (the cosine is from Loshchilov and
# Hutter, 2017). **Write** `warmup_cosine`.

# %% tags=["exercise"]
check("09.warmup_cosine")

# %%
needs("09.warmup_cosine")
mine = load("09")
rates, n_warmup, n_all = [], 20, 200
schedule_optimizer = mg.optim.Adam([mg.nn.Parameter([0.0])], learning_rate=0.01)
schedule = mg.optim.WarmupCosine(schedule_optimizer, warmup=n_warmup, steps=n_all, minimum=0.001)
for _ in range(n_all + 30):
    rates.append(schedule_optimizer.learning_rate)
    schedule.step()
yours = [mine.warmup_cosine(t, n_warmup, n_all, 0.01, 0.001) for t in range(n_all + 30)]
figure, axis = plt.subplots(figsize=(8, 3.5))
axis.plot(rates, linewidth=5, alpha=0.35, label="minigrad's WarmupCosine")
axis.plot(yours, "k", linewidth=1, label="yours")
axis.axvline(n_warmup, color="gray", linewidth=0.6, linestyle=":")
axis.axvline(n_all, color="gray", linewidth=0.6, linestyle=":")
axis.set(xlabel="step", ylabel="learning rate", ylim=(0, None))
axis.set_title("Warm-up and half a cosine")
axis.legend()
axis.grid(alpha=0.3)
plt.show()
print("largest difference:", max(abs(a - b) for a, b in zip(rates, yours, strict=True)))

# %% [markdown]
# **What to see.** Your line lies on minigrad's. The first rate is not 0 but a twentieth of the
# peak, because a step of length 0 would waste a batch. The cosine is flat at the top and at the
# end, and steepest in between.
#
# ## 7. Your Adam runs the engine
#
# In minigrad, one compiled loop updates all parameters. `mg.use(update=...)` puts a function in its
# place. The engine calls it for each parameter, with flat copies of the parameter, its gradient and
# its state; the function writes its results into them. Your `adam_step` returns new arrays instead,
# so `as_update` below translates between the two. The engine has already counted the step when it
# calls: in the first call, `state["step"]` is 1.

# %%
images, labels = mg.data.load_digits()
(x, y), (x_new, y_new) = mg.data.stratified_split(images.reshape(-1, 64), labels)


def train(algorithm="Adam", n_epochs=8, **settings):
    """Train a small network on digits; return losses, held-out accuracy, model and optimizer."""
    mg.manual_seed(4)
    model = mg.nn.Sequential(mg.nn.Linear(64, 32), mg.nn.Tanh(), mg.nn.Linear(32, 10))
    optimizer = getattr(mg.optim, algorithm)(model, **{"learning_rate": 0.01, **settings})
    losses = []
    for epoch in range(n_epochs):
        for rows, targets in mg.data.batches(x, y, batch_size=64, seed=epoch):
            loss = mg.cross_entropy(model(mg.variable(rows)), mg.variable(targets))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    with mg.no_grad():
        accuracy = (model(mg.variable(x_new)).numpy().argmax(axis=1) == y_new).mean()
    return np.array(losses), accuracy, model, optimizer


calls = {"adam_step": 0, "adamw_step": 0}


def as_update(step, *more):
    """Return a step of yours in the form in which the engine calls it."""

    def update(algorithm, values, gradient, state, hyper):
        before = {} if state["step"] == 1 else {**state, "step": state["step"] - 1}
        numbers = [hyper[name] for name in ("learning_rate", "betas", "eps", *more)]
        values[:], after = step(values.copy(), gradient, before, *numbers)
        state["first_moment"][:] = after["first_moment"]
        state["second_moment"][:] = after["second_moment"]
        if step.__name__ in calls:
            calls[step.__name__] += 1

    return update


losses, accuracy, model, optimizer = train()
print(f"minigrad's own: loss {losses[-1]:.4f}, {accuracy:.1%} of unseen digits read correctly")

# %%
needs("09.adam_step")
mine = load("09")
with mg.use(update=as_update(mine.adam_step)):
    my_losses, my_accuracy, *_ = train()
print(f"with yours:     loss {my_losses[-1]:.4f}, {my_accuracy:.1%} read correctly")
print(light("09.adam_step", mine=my_losses, reference=losses, calls=calls["adam_step"]))

# %%
needs("09.adamw_step", "09.adam_step")
decay = {"weight_decay": 0.3}
w_losses, *_ = train("AdamW", **decay)
with mg.use(update=as_update(mine.adamw_step, "weight_decay")):
    my_w_losses, *_ = train("AdamW", **decay)
print(light("09.adamw_step", mine=my_w_losses, reference=w_losses, calls=calls["adamw_step"]))

# %% [markdown]
# What does a missing correction look like in a whole training run? Here are two learning rates:

# %%
needs("09.adam_step")
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for axis, rate in zip(axes, (0.01, 0.05), strict=True):
    with mg.use(update=as_update(uncorrected)):
        jolted = train(learning_rate=rate, n_epochs=5)[0]
    with mg.use(update=as_update(mine.adam_step)):
        steady = train(learning_rate=rate, n_epochs=5)[0]
    axis.plot(train(learning_rate=rate, n_epochs=5)[0], linewidth=5, alpha=0.4, label="minigrad's")
    axis.plot(steady, color="black", linewidth=1, label="yours")
    axis.plot(jolted, color="C3", linewidth=1, label="without correction")
    axis.set(xlabel="training step", ylabel="loss", yscale="log")
    axis.set_title(f"learning rate {rate}")
    axis.legend(fontsize=8)
    axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** Your line lies on the engine's. The red line shows the effect of a missing
# correction: a larger learning rate at the start. On the left, where the rate is small, it even
# helps, so nobody looks for a bug. On the right, where the rate is near the largest that works, the
# first dozen steps move the network far off. A bug that helps in some settings is the hardest to
# find.
#
# Do the gradients of a real network really differ so much in size? The optimizer has measured it.
# This is its state after training:

# %%
figure, axis = plt.subplots(figsize=(8, 4))
bins = np.linspace(-9, 0, 46)
n_numbers = n_state = 0
for name, p in model.named_parameters():
    kept = optimizer.state[p.id]
    size = np.sqrt(kept["second_moment"].numpy().ravel())
    axis.hist(np.log10(size + 1e-9), bins, histtype="step", linewidth=2, label=name)
    n_numbers += p.size
    n_state += kept["first_moment"].size + kept["second_moment"].size
axis.set(xlabel="log10 of the root of the second moment", ylabel="numbers of the network")
axis.set_title("How large gradients are, by Adam's own account")
axis.set_yscale("log")
axis.legend()
axis.grid(alpha=0.3)
plt.show()
print(f"{n_numbers} numbers in the network, {n_state} in Adam's moments: {n_state / n_numbers:g}")

# %% [markdown]
# **What to see.** Within one layer, the gradients differ by several powers of ten. The bar at the
# far left, drawn at -9, holds the weights of pixels that are empty in every image: their gradient
# is always 0, and `eps` prevents 0/0. No single learning rate suits all these weights, and Adam
# divides each gradient by its own size. The price is printed under the picture: two more numbers
# for each number of the network. So with Adam, a network needs three times its own memory, not
# counting gradients.

# %% [markdown]
# ## 8. Bug hunt
#
# To save memory, people write their Adam in place. At the end of your exercise file is such an
# Adam, in five stages. Its author compared only the first step with the formula. Compare four:

# %%
needs("09.adam_step")
mine = load("09")
gradients = np.array([[0.5], [0.5], [0.5], [0.5]])
lean = mine.lean_adam(np.zeros(1), gradients)
p, state = np.zeros(1), {}
for number, g in enumerate(gradients):
    p, state = mine.adam_step(p, g, state, 0.1)
    print(f"after step {number + 1}: adam_step {p[0]:.5f}, lean_adam {lean[number, 0]:.5f}")
print("stages:", [stage.__name__ for stage in mine.STAGES])

# %% [markdown]
# Which stage is wrong? Write its place into `BUG`, then repair its function. (A library had this
# bug in 2019. When you have found yours, read [Holocron issue
# 1](https://github.com/frgfm/Holocron/issues/1).)

# %% tags=["exercise"]
check("09.lean_adam")

# %% [markdown]
# ## Where you are
#
# - Adam's step is an average gradient divided by its typical size: about the learning rate, for
#   gradients of any scale. `eps` says which gradients count as zero.
# - Both averages start at 0. Without correction the first steps are too *long*.
# - Each parameter has a state of its own: two moments and a `t`. If the state is lost at every
#   step, Adam uses only the sign of the gradient. `None` is not zero.
# - Decay belongs outside the quotient. The learning rate follows a schedule.
#
# **Next:** lesson 10. Weights, gradients, moments: who hands out all this memory, and when does it
# come back? Or go on with lesson 13, CUDA kernels.

# %%
from minigrad.course.predictions import summary

print(summary("09"))

# %% tags=["exercise"]
check("09")
