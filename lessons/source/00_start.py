# %% [markdown]
# # 00 · What happens when a network learns?
#
# **You need** Python, NumPy and school calculus. **It takes** about 70 minutes. **At the end** you
# have written the slowest way to get a gradient, measured exactly how wrong it is, and know why
# nobody trains with it. Next: lesson 01, the chain rule.
#
# A lesson repeats five things: a question, a guess, a run, a picture, an explanation. Your own code
# goes into a file beside this notebook, here `exercises/00_start.py`. Run a cell with Shift+Enter.
# When minigrad's engine runs for the first time on a machine, it compiles its kernels and keeps
# them; this takes some seconds.

# %% tags=["live"]
from minigrad.course import watch

watch("00")  # what you save in exercises/00_start.py is graded here at once

# %% [markdown]
# ## 1. The finished thing
#
# The twelve lines in the second of these cells learn to read handwritten digits: 1,797 real ones of
# 8 by 8 pixels. A fifth of them is held out for a test. (`* 3 - 1` changes the pixels, which are
# between 0 and 1, to a mean near 0 and a spread near 1.) Run the cells.

# %%
import time

import minigrad as mg

mg.manual_seed(1)
started = time.perf_counter()

# %%
import minigrad as mg

images, labels = mg.data.load_digits()
(x, y), (x_new, y_new) = mg.data.stratified_split(images.reshape(-1, 64) * 3 - 1, labels)
model = mg.nn.Sequential(mg.nn.Linear(64, 128), mg.nn.GELU(), mg.nn.Linear(128, 10))
optimizer = mg.optim.Adam(model, learning_rate=3e-3)
for epoch in range(30):
    for inputs, targets in mg.data.batches(x, y, batch_size=32, seed=epoch):
        loss = mg.cross_entropy(model(mg.variable(inputs)), mg.variable(targets))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
accuracy = (model.valid()(mg.variable(x_new)).numpy().argmax(axis=1) == y_new).mean()

# %%
n_parameters = sum(parameter.size for parameter in model.parameters())
print(f"{accuracy:.1%} of {len(y_new)} digits it has never seen are read correctly")
print(f"{time.perf_counter() - started:.1f} s (a first run compiles kernels, too)")
print(f"{n_parameters:,} numbers were adjusted, {30 * -(-len(x) // 32):,} times")

# %%
import matplotlib.pyplot as plt
import numpy as np

plt.style.use("minigrad.course.house")

answers = model.valid()(mg.variable(x_new)).numpy().argmax(axis=1)
mistakes = np.flatnonzero(answers != y_new)
figure, axes = plt.subplots(1, 8, figsize=(11, 1.9))
for axis, i in zip(axes, [0, 1, 2, 3, *mistakes[:4]], strict=False):
    axis.imshow(x_new[i].reshape(8, 8), cmap="gray_r")
    axis.set_title(f"read {answers[i]}", color="black" if answers[i] == y_new[i] else "C3")
    axis.set(xticks=[], yticks=[], frame_on=False, xlabel=f"is {y_new[i]}")
plt.show()

# %% [markdown]
# **What to see.** These are the first four of the held-out digits, and the first four mistakes, in
# red. Some of them are hard to read for people, too.

# %% [markdown]
# One line of the twelve is the important one: `loss.backward()`. Before it, nobody knows in which
# direction to change the numbers of the network. After it, each of these numbers has a *gradient*,
# a slope: how fast the loss grows when this one number grows. How can one call find thousands of
# slopes?
#
# Here are two pictures of what happens inside. After lesson 02 you will understand every box of the
# first, and after lesson 06 every step of the second.

# %%
loss = mg.cross_entropy(model(mg.variable(x[:32])), mg.variable(y[:32]))
mg.viz.graph(loss)

# %% [markdown]
# **What to see.** While the network computed, minigrad wrote down each operation as a *node*.
# `backward()` walks this graph from the loss back to the parameters.

# %%
del loss
optimizer.zero_grad()
with mg.memory.timeline() as timeline:
    loss = mg.cross_entropy(model(mg.variable(x[:32])), mg.variable(y[:32]))
    loss.backward()
    del loss
mg.viz.memory(timeline)

# %% [markdown]
# **What to see.** The upper part shows the bytes in use during one training step. They grow while
# the network computes, because values are kept for the way back. During `backward()` the total does
# not fall at first: `backward()` frees these values one by one, but at the same time it needs
# memory for gradients. At the end, more memory is in use than before, because the gradients stay:
# one number for each number of the network. In the lower part, each bar is one piece of memory,
# from left (taken) to right (freed).
#
# In this course you write each part of this yourself. The course begins with the slope of one
# function, when all that you can do is call the function.

# %% [markdown]
# ## 2. The run loop: write, check, read, repair
#
# Open `exercises/00_start.py` (`minigrad lab` shows it beside this notebook). Its first function,
# `hello`, is already written, with a small mistake in it. Check it **before** you repair it, to see
# what a failing check says:

# %% tags=["exercise"]
from minigrad.course import check, hint, load, needs, predict

check("00.hello")

# %% [markdown]
# Each failing check of this course says five things:
#
# | part | what it says |
# |---|---|
# | **Given** | the call, with its inputs; random, but `--seed N` brings the same back |
# | **Expected** | what a right answer is |
# | **Got** | what yours was |
# | **Where** | the line of your file: the one that raised, or the function's first |
# | **Try** | one thing to look at; never the answer |
#
# Now repair `hello`, **save the file**, and run the cell again. `check("00.hello")` grades the
# saved file in a process of its own, so nothing that you write can hang or break this notebook. In
# a terminal, `minigrad check 00.hello` does the same; `pytest exercises` grades all exercises. If
# you are stuck, `hint("00.hello")` gives the next of three hints. Hints cost nothing.

# %% [markdown]
# ## 3. A slope from two values
#
# Take `tanh`, a function in many networks, and ask for its slope at 0.7. Calculus gives the answer:
# $1 - \tanh^2(0.7)$. But suppose that all you can do is *call* the function. Then you can *nudge*
# its input, a little to each side, and see how its value changes:
#
# $$f'(x) \approx \frac{f(x + \varepsilon) - f(x - \varepsilon)}{2\varepsilon}$$
#
# This is the **central difference**. Drag the slider: the red line goes through the two points. As
# `eps` shrinks, it becomes the tangent.

# %%
from minigrad.course import scrub
from minigrad.course.pictures import draw_secant

scrub(
    lambda axis, eps: draw_secant(axis, np.tanh, 1 - np.tanh(0.7) ** 2, 0.7, eps),
    [1.5, 1.0, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05],
    label="eps",
    show=[1.5, 0.5, 0.1],
)

# %% [markdown]
# **What to see.** At `eps` = 1.5 the line is far from the tangent; at 0.1 you cannot tell the two
# apart.
#
# **Write it.** `central_difference(f, x, eps)` in `exercises/00_start.py`. One line is enough.

# %% tags=["exercise"]
check("00.central_difference")

# %% [markdown]
# While you try things out, you can also load your file into this notebook, as `mine` in the next
# cell. Then `check(mine.central_difference)` runs the same checks on the function that is loaded
# *here*: you see what it prints, and a debugger can stop inside it. Such a check earns no points.

# %%
needs("00.central_difference")  # says in one line what to solve, if you have skipped it
mine = load("00")  # your file, read afresh

f, df = np.tanh, lambda x: 1 - np.tanh(x) ** 2
print("two values:", mine.central_difference(f, 0.7, 1e-3))
print("calculus:  ", df(0.7))

# %% [markdown]
# ## 4. How small should the nudge be?
#
# In the picture, a smaller `eps` was better. So why not take `eps = 1e-15`?
#
# **Predict first.** Which `eps` gives the smallest error if all numbers are float64 (16 digits)?
# And if they are float32 (7 digits), the type in which this network was trained? Run each cell and
# type a number such as `1e-8`. Nobody grades a prediction; you learn most from a wrong one. The
# verdict stays hidden until you have answered.

# %% tags=["prediction"]
best64 = predict("00.best_eps_float64", "Which eps is best in float64?")
best64

# %% tags=["prediction"]
best32 = predict("00.best_eps_float32", "Which eps is best in float32?")
best32

# %% [markdown]
# Now measure the error of your own function, for many values of `eps` from 1 down to 1e-15.

# %%
needs("00.central_difference")
epsilons = np.logspace(0, -15, 61)
points = np.linspace(0.2, 1.2, 21)  # the median over some x, so that no single one decides


def errors(dtype):
    """Return the median error of central_difference for each eps, computed in this dtype."""
    x = points.astype(dtype)
    with np.errstate(all="ignore"):
        estimates = [mine.central_difference(f, x, dtype(eps)) for eps in epsilons]
    return np.array([np.median(np.abs(e.astype(np.float64) - df(points))) for e in estimates])


errors64, errors32 = errors(np.float64), errors(np.float32)

figure, axis = plt.subplots(figsize=(9, 5))
axis.loglog(epsilons, errors64, "o-", markersize=3, label="measured in float64")
axis.loglog(epsilons, errors32, "s-", markersize=3, label="measured in float32")
bend = np.median(np.abs(2 * df(points) * (1 - 3 * f(points) ** 2)))  # |f'''| of tanh
axis.loglog(epsilons, bend * epsilons**2 / 6, ":", color="gray", label="it bends: eps² |f'''| / 6")
for dtype, colour in ((np.float64, "C0"), (np.float32, "C1")):
    axis.loglog(
        epsilons,
        np.finfo(dtype).eps / (2 * epsilons),
        "--",
        color=colour,
        alpha=0.5,
        label=f"{np.dtype(dtype).name} rounds: u / (2 · eps)",
    )
axis.set(xlabel="eps, the length of the nudge", ylabel="error of the slope", ylim=(1e-13, 10))
axis.set_title("The error of a central difference is U-shaped")
axis.invert_xaxis()
axis.legend(fontsize=8)
axis.grid(alpha=0.3)
plt.show()

# %%
needs("00.central_difference")
best64.reveal(float(epsilons[np.nanargmin(errors64)]), factor=10)

# %%
needs("00.central_difference")
best32.reveal(float(epsilons[np.nanargmin(errors32)]), factor=10)

# %% [markdown]
# **What to see.** To the right, where `eps` is smaller, both curves fall along the dotted line, and
# then *rise* again. There are two errors, and one grows when the other shrinks:
#
# - **Truncation.** The function is not a straight line. By its Taylor series, this makes an error
#   of about $\varepsilon^2 |f'''| / 6$: with a ten times smaller `eps`, it is a hundred times
#   smaller.
# - **Rounding.** $f(x+\varepsilon)$ and $f(x-\varepsilon)$ agree in nearly all their digits, and
#   the subtraction removes these. The difference has an error of at most about $u$, the gap between
#   neighbouring floats near 1, and this error is then divided by $2\varepsilon$. The dashed lines
#   are this bound; most errors are some times smaller.
#
# (At the far right, the orange curve is flat: there `x + eps` *is* `x`, so the computed slope is
# 0.)
#
# The best `eps` balances the two errors; it is near $u^{1/3}$. In float64, ten digits or more are
# right then. In float32, about five are, and no choice of `eps` gives more. So when a gradient is
# *checked* against differences, it has to be done in float64.

# %%
for dtype in (np.float32, np.float64):
    u = np.finfo(dtype).eps
    print(
        f"{np.dtype(dtype).name}: u = {u:.1e}, so the best eps is near {u ** (1 / 3):.0e} "
        f"and the error there is at most about {u ** (2 / 3):.0e}"
    )

# %% [markdown]
# > **A real system.** PyTorch's `torch.autograd.gradcheck` compares gradients with differences,
# > with `eps = 1e-6` by default. Its documentation warns that the defaults are meant for double
# > precision, and that with float32 the check is likely to fail *although the gradient is right*.
# > The orange curve at 1e-6 shows why. minigrad's `mg.debug.gradcheck` computes in float64 for the
# > same reason.

# %% [markdown]
# ## 5. Why nobody trains like this
#
# With `central_difference` you could train the network of section 1: nudge one number, look at the
# loss, put the number back, and go on to the next. The slopes would be right, to the digits that
# float32 allows. Here are the slopes of five of the network's weights, by nudges and by
# `backward()`:

# %%
batch, targets = mg.variable(x[:32]), mg.variable(y[:32])
weight = next(iter(model.parameters()))
values = weight.numpy().copy()

optimizer.zero_grad()
mg.cross_entropy(model(batch), targets).backward()
gradient = weight.grad.numpy().copy()
optimizer.zero_grad()

# %%
needs("00.central_difference")
places = np.argsort(-np.abs(gradient), axis=None)[:2000:400]  # from steep to flat
print(f"{'weight':>10} {'nudged':>12} {'backward()':>12}")
for place in places:
    where = np.unravel_index(place, values.shape)

    def loss_at(value, where=where):
        """Return the loss with one weight set to another value."""
        changed = values.copy()
        changed[where] = value
        with mg.no_grad():
            weight.copy_(mg.variable(changed))
            return mg.cross_entropy(model(batch), targets).numpy()

    # above the best eps of the plot: a loss rounds more than one tanh, and bends less in one weight
    nudged = mine.central_difference(loss_at, values[where], np.float32(0.02))
    print(f"{tuple(map(int, where))!s:>10} {float(nudged):>12.6f} {gradient[where]:>12.6f}")
with mg.no_grad():
    weight.copy_(mg.variable(values))

# %% [markdown]
# The slopes agree, to the few digits that float32 leaves to a difference. Now the price.
#
# **Predict.** A central difference costs two runs of the network *for each number*. `backward()`
# costs one run and one walk back, for *all* of them. How many times longer does it take to nudge
# all numbers of this network: 10? 100? 1,000? 10,000?

# %% tags=["prediction"]
price = predict("00.price", "How many times longer do nudges take than backward()?")
price


# %%
def seconds(function, rounds=200):
    """Return the median time of a call."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return float(np.median(times))


def run_only():
    """Run the network forward, recording nothing."""
    with mg.no_grad():
        mg.cross_entropy(model(batch), targets)


def run_and_back():
    """Run the network forward and backward."""
    optimizer.zero_grad()
    mg.cross_entropy(model(batch), targets).backward()


forward, both = seconds(run_only), seconds(run_and_back)
nudges = 2 * n_parameters * forward
print(f"one run {1e6 * forward:.0f} µs; one run with backward() {1e6 * both:.0f} µs")
print(f"all {n_parameters:,} slopes: {nudges:.2f} s by nudges, {both:.6f} s by backward()")
optimizer.zero_grad()

# %%
price.reveal(round(nudges / both), factor=3)

# %%
sizes = np.logspace(1, 9, 50)
figure, axis = plt.subplots(figsize=(8, 4))
axis.loglog(sizes, 2 * sizes, label="nudging every number")
axis.loglog(sizes, np.full_like(sizes, both / forward), label="backward(), as measured above")
axis.axvline(n_parameters, color="gray", linestyle=":", label="the network of this lesson")
axis.set(xlabel="numbers in the network", ylabel="cost, in runs of the network")
axis.set_title("What one gradient costs")
axis.legend()
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** Counted in runs, the cost of nudging grows with the network. The cost of
# `backward()` stays at a few runs, however many numbers there are. (It was measured for this
# network only; the flat line continues it to other sizes.) Deep learning depends on this, and the
# rest of this course shows how it is possible. Nudging still has one important use: it *checks*
# gradients.

# %% [markdown]
# ## 6. Bug hunt
#
# `slope(f, x)` in your exercise file chooses its step itself. Its author tried it for some x, and
# it was right each time:

# %%
planted_eps = 1e-6
for at in (0.0, 0.5, 3.0, 100.0):
    estimate = ((at + planted_eps) ** 2 - (at - planted_eps) ** 2) / (2 * planted_eps)
    print(f"x = {at:>6}: {estimate:.6f}, should be {2 * at}")

# %% [markdown]
# For some other x it is badly wrong, by more than 10 %. Find such an x, write it into `BUG`, then
# repair `slope`. The check asks for both, the diagnosis and the repair.

# %% tags=["exercise"]
check("00.slope")

# %% [markdown]
# > **Real bug: a check that cannot fail.** In a 2025 copy of a well-known course's exercises on
# > backpropagation, a test used `assert_allclose(x, y, 0, e)` to compare the learner's gradient
# > with the right one. The third and fourth arguments are *tolerances*, relative and absolute, and
# > `e` was no small number there: it was 2.7, the base of the logarithm. With that as the absolute
# > tolerance, a gradient of all zeros passes if the right one is small:

# %%
gradient_of_exp = np.exp(np.array([-1.0, 0.0, 0.9]))
np.testing.assert_allclose(np.zeros(3), gradient_of_exp, 0, np.e)
print("all zeros pass for", gradient_of_exp.round(2))

# %% [markdown]
# So the checks of *this* course are tested themselves: for each function there are several wrong
# versions that people really write, and each must fail with the message that is meant for it. In a
# clone of minigrad's repository, `python -m minigrad.course.prove` shows the result.

# %% [markdown]
# ## Where you are
#
# - Two calls of a function give its derivative, with an error that cannot be made as small as you
#   like: truncation against rounding.
# - A gradient by nudging costs two runs for each number. `backward()` costs a few runs for all of
#   them.
# - A gradient that matters is *checked* by differences, in float64.
#
# **Next:** lesson 01, `minigrad lab 01`. `backward()` needs only one rule, which you learned at
# school.

# %%
from minigrad.course.predictions import summary

print(summary("00"))

# %% tags=["exercise"]
check("00")
