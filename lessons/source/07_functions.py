# %% [markdown]
# # 07 · Operations of your own
#
# **You need** lesson 01, and a look at lesson 04. **It takes** about 155 minutes; after section 4
# is a good place for a break. **At the end** you have written operations that the engine does not
# know, differentiated gradients themselves, and measured how large a learning rate may be before
# training diverges. Next: lesson 08, what an optimizer remembers.
#
# Your code goes into `exercises/07_functions.py`. The first time the engine computes something on a
# machine, it compiles its kernels, which takes some seconds, and keeps them.

# %% tags=["live"]
from minigrad.course import watch

watch("07")  # what you save in exercises/07_functions.py is graded here at once

# %%
import matplotlib.pyplot as plt
import numpy as np

import minigrad as mg
from minigrad.course import check, hint, load, needs, predict, scrub
from minigrad.course.pictures import draw_losses

plt.style.use("minigrad.course.house")

# %% [markdown]
# ## 1. Every part is right, but the whole is wrong
#
# An engine knows some dozens of operations, and everything else is made of them. So why would
# anybody write an operation of their own? Take the softplus, $\log(1 + e^x)$, which is a relu
# without the kink. It is made of three operations, and the engine differentiates each of them
# correctly.


# %%
def composed(x):
    """log(1 + exp(x)), out of three operations."""
    return mg.log(1.0 + mg.exp(x))


def value_and_slope(f, at):
    """Return f and its derivative at a number, in float64."""
    x = mg.variable(np.array([at]), requires_grad=True)
    y = f(x)
    return y.item(), mg.gradients(y.sum(), x).item()


for at in (1.0, 10.0, 100.0, 1000.0):
    print("x = {:4g}: value {:7.6g}, slope {:.6g}".format(at, *value_and_slope(composed, at)))

# %% [markdown]
# At 1000, the true value is 1000 and the true slope is 1. But `exp(1000)` is more than a float64
# can hold, so it is `inf`. Many people fix this with a `where`: if `x` is large, take `x` itself.


# %%
def mended(x):
    """Take x itself where exp would overflow."""
    return mg.where(x > 20.0, x, composed(x))


print("value at 1000:", value_and_slope(mended, 1000.0)[0])

# %% [markdown]
# **Predict.** The value is right now. What is the slope at 1000?

# %% tags=["prediction"]
mended_slope = predict(
    "07.where",
    "What is its slope at 1000?",
    choices=("right", "zero", "not a number"),
)
mended_slope

# %%
slope = value_and_slope(mended, 1000.0)[1]
mended_slope.reveal("not a number" if np.isnan(slope) else "zero" if slope == 0 else "right")

# %% [markdown]
# `where` sends a gradient of zero back into the branch that was not taken. There it is multiplied
# by the slope of `exp`, which is `inf`, and $0 \cdot \infty$ is not a number. PyTorch and JAX do
# the same, for the same reason. The chain rule is not wrong. But the engine does not know that the
# three operations are *one*, with the slope $1/(1 + e^{-x})$, which is never nan.
#
# This is the first of three reasons to write your own operation: you know a better formula. The
# second reason is memory. Here is what the engine has to keep:

# %%
x = mg.variable(np.linspace(-3.0, 3.0, 1000), requires_grad=True, name="x")
mg.viz.graph(mended(x).sum())

# %% [markdown]
# **What to see.** Each box says what it saves for the backward pass. `exp` saves $e^x$, `log` saves
# $1 + e^x$, and `where` saves a mask: much for one smooth bend.

# %% [markdown]
# ## 2. The contract
#
# A custom operation is a class with two functions. Both get a *context* `ctx`, in which `forward`
# leaves values for `backward`:
#
# ```python
# class Double(mg.Function):
#     @staticmethod
#     def forward(ctx, x):  # Variables in, a Variable out; nothing is recorded
#         return x * 2.0
#
#     @staticmethod
#     def backward(ctx, dy):  # returns one gradient per argument of forward
#         return dy * 2.0
#
# y = Double.apply(x)
# ```
#
# `ctx.save_for_backward(x)` saves Variables, and `ctx.saved` reads them in backward. All names are
# those of PyTorch's `torch.autograd.Function` (`ctx.saved_tensors` works, too). Two more things
# belong to the contract. `ctx.needs_input_grad` says which arguments need a gradient, so backward
# can skip the others. And forward must not write into a value after saving it: the engine watches
# for writes only from the moment when forward returns.
#
# **Write** `Softplus`. Find a formula that is safe for both signs: `exp` of a large number is
# `inf`, but `exp` of a large negative one is a harmless 0.

# %% tags=["exercise"]
check("07.Softplus")

# %%
needs("07.Softplus")
mine = load("07")
for at in (1.0, 100.0, 1000.0, -1000.0):
    both = value_and_slope(mine.Softplus.apply, at)
    print("x = {:5g}: value {:7.6g}, slope {:.6g}".format(at, *both))
x = mg.variable(np.linspace(-3.0, 3.0, 1000), requires_grad=True, name="x")
mg.viz.graph(mine.Softplus.apply(x).sum())

# %% [markdown]
# **What to see.** There is one box now, with the name of your class, and it saves only what *you*
# chose to save. The engine treats your class like one of its own operations.

# %% [markdown]
# ## 3. One gradient for each argument
#
# A generalization of softplus is $\log \sum_i e^{x_i}$, a smooth maximum. It is a part of the cross
# entropy, the usual loss of a classifier. As an operation it has a second argument, the axis. An
# axis has no gradient, but it is an argument, so backward returns *two* things, and the second is
# `None`.
#
# **Write** `LogSumExp`. To avoid overflow, subtract the largest entry first, and add it again at
# the end. The result stays the same, and no exponent is positive any more.

# %% tags=["exercise"]
check("07.LogSumExp")

# %%
needs("07.LogSumExp")
mine = load("07")


def draw_smooth_maximum(axis, sharpness):
    """Draw LogSumExp(t * [x, 0]) / t, which tends to max(x, 0), and its gradient."""
    grid = np.linspace(-3, 3, 121)
    rows = np.stack([grid, np.zeros_like(grid)], axis=1)
    x = mg.variable(rows, requires_grad=True)
    y = mine.LogSumExp.apply(x * sharpness, 1) / sharpness
    slopes = mg.gradients(y.sum(), x).numpy()
    axis.plot(grid, np.maximum(grid, 0), ":", color="gray", label="max(x, 0)")
    axis.plot(grid, y.numpy(), label="smooth maximum")
    axis.plot(grid, slopes[:, 0], label="gradient for x")
    axis.plot(grid, slopes[:, 1], "-.", label="gradient for 0")
    axis.set(xlabel="x", ylabel="value, gradient", ylim=(-0.2, 3.2), title=f"t = {sharpness:g}")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8, loc="upper left", handlelength=1.4)


scrub(
    draw_smooth_maximum,
    [0.5, 1.0, 2.0, 4.0, 10.0, 100.0, 1000.0],
    label="t",
    show=[1.0, 4.0, 1000.0],
)

# %% [markdown]
# **What to see.** The larger `t` is, the sharper the corner. The two gradients always add up to 1:
# they are the shares of the two entries in the maximum, one half each where both are equal. This
# vector of shares is called softmax. At `t = 1000` the entries reach 3000, and nothing overflows.
#
# Now use both on real digits: your `Softplus` between two layers, and your `LogSumExp` in the loss.
# The cross entropy of a row of scores is their log-sum-exp, minus the score of the right class.

# %%
images, labels = mg.data.load_digits()
(pixels, digits), (pixels_new, digits_new) = mg.data.stratified_split(
    images.reshape(-1, 64) * 3 - 1, labels
)


def train(activation, loss_of, epochs=8):
    """Train a small network on the digits; return the losses and the held-out accuracy."""
    mg.manual_seed(1)
    first, second = mg.nn.Linear(64, 48), mg.nn.Linear(48, 10)
    optimizer = mg.optim.Adam([*first.parameters(), *second.parameters()], learning_rate=5e-3)
    losses = []
    for epoch in range(epochs):
        for rows, targets in mg.data.batches(pixels, digits, batch_size=64, seed=epoch):
            loss = loss_of(second(activation(first(mg.variable(rows)))), mg.variable(targets))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    with mg.no_grad():
        scores = second(activation(first(mg.variable(pixels_new))))
    return np.array(losses), np.mean(scores.numpy().argmax(axis=1) == digits_new)


losses, accuracy = train(mg.softplus, mg.cross_entropy)
print(f"minigrad's own: loss {losses[-1]:.4f}, {accuracy:.1%} of unseen digits read correctly")

# %%
needs("07.Softplus", "07.LogSumExp")
mine = load("07")


def my_cross_entropy(scores, targets):
    """The mean of: LogSumExp of all scores, minus the score of the right class."""
    of_the_right_class = (scores * mg.one_hot(targets, 10)).sum(axis=1)
    return (mine.LogSumExp.apply(scores, 1) - of_the_right_class).mean()


my_losses, my_accuracy = train(mine.Softplus.apply, my_cross_entropy)
print(f"with yours:     loss {my_losses[-1]:.4f}, {my_accuracy:.1%} read correctly")

draw_losses(
    {"minigrad's softplus and cross entropy": losses},
    {"your Softplus and LogSumExp": my_losses},
    title="Two operations that the engine did not know before",
)

# %% [markdown]
# **What to see.** The two lines are the same, although the activation, the loss and all their
# derivatives are yours. If the lines differ, a check has missed something: tell us.

# %% [markdown]
# ## 4. Gradients are Variables
#
# A gradient is the result of a computation. So it can itself be differentiated, if somebody records
# how it was computed. In minigrad as in PyTorch, `create_graph=True` says: record the backward
# pass, too.

# %%
needs("07.Softplus")
mine = load("07")
x = mg.variable(np.array([0.5, 1.0, 2.0]), requires_grad=True, name="x")
y = mine.Softplus.apply(x).sum()
g = mg.gradients(y, x, create_graph=True)
print("g =", g)
mg.viz.graph(g)

# %% [markdown]
# **What to see.** This is the graph of a *gradient*. Its boxes are the operations of your
# `backward`. To get the second derivative, the engine walks back through this graph; you need not
# write a formula for it.
#
# So the engine differentiates the code of `backward`, and that can go wrong. Below is $\sin^2 x$,
# with the derivative $2 \sin x \cos x$. Forward has already computed the sine, so somebody keeps
# it, as plain numbers, to save time in backward. (`mg.hvp`, the Hessian-vector product of section
# 6, gives the second derivative here.)


# %%
class KeptSine(mg.Function):
    """sin(x)**2, whose backward uses the sine that forward had computed."""

    @staticmethod
    def forward(ctx, x):
        s = mg.sin(x)
        ctx.sine = s.tolist()
        ctx.save_for_backward(x)
        return s * s

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved
        return dy * 2.0 * mg.variable(ctx.sine, dtype=x.dtype) * mg.cos(x)


def first_and_second(function, at):
    """Return the first and the second derivative of a Function at a number."""
    x = mg.variable(np.array([at]), requires_grad=True)
    v = mg.variable(np.array([1.0]))
    slope = mg.gradients(function.apply(x).sum(), x).item()
    return slope, mg.hvp(lambda x: function.apply(x).sum(), x, v).item()


# %% [markdown]
# **Predict.** Its first derivative is right. Its true second derivative is $2 \cos 2x$. What does
# the engine compute?

# %% tags=["prediction"]
kept = predict(
    "07.kept",
    "What does the second derivative come out as?",
    choices=("right", "zero", "something else"),
)
kept

# %%
slope, curvature = first_and_second(KeptSine, 0.5)
print(f"first derivative at 0.5:  {slope:.4f}, truly {np.sin(1.0):.4f}")
print(f"second derivative at 0.5: {curvature:.4f}, truly {2 * np.cos(1.0):.4f}")
truth = 2 * np.cos(1.0)
kept.reveal(
    "right" if np.isclose(curvature, truth) else "zero" if curvature == 0 else "something else"
)

# %% [markdown]
# The result is not zero, and there is no error; it is something *else*, with the wrong sign. In
# backward, `ctx.sine` is a constant, like the number 2. The engine sees that what backward returns
# depends on `x` through the cosine, but it cannot see that it depends on `x` through the sine, too.
#
# > **Real bug: the intermediate kept for backward.** If forward keeps a tensor that it computes on
# > its way, second derivatives are silently wrong. First derivatives are right, so training and
# > `gradcheck` see nothing. Maintainers of PyTorch described this in 2021
# > ([pytorch#58509](https://github.com/pytorch/pytorch/issues/58509)) and in 2022
# > ([pytorch#76185](https://github.com/pytorch/pytorch/issues/76185), still open when this was
# > written).
#
# Here are three other ways to write this backward, which makes four with `KeptSine`:


# %%
class Recomputed(KeptSine):
    """Right: from what was saved, backward computes the sine again."""

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved
        return dy * 2.0 * mg.sin(x) * mg.cos(x)


class SavedSine(mg.Function):
    """The sine goes through save_for_backward."""

    @staticmethod
    def forward(ctx, x):
        s = mg.sin(x)
        ctx.save_for_backward(x, s)
        return s * s

    @staticmethod
    def backward(ctx, dy):
        x, s = ctx.saved
        return dy * 2.0 * s * mg.cos(x)


class Unrecorded(Recomputed):
    """Right first derivatives, but backward is not recorded."""

    @staticmethod
    def backward(ctx, dy):
        with mg.no_grad():
            return Recomputed.backward(ctx, dy)


FOUR = (Recomputed, KeptSine, SavedSine, Unrecorded)
for function in FOUR:
    try:
        result = "{:7.4f}, then {:7.4f}".format(*first_and_second(function, 0.5))
    except mg.errors.MinigradError as error:
        result = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    print(f"{function.__name__:<11} {result}")

# %% [markdown]
# Two of the four return wrong second derivatives without an error, and one of these, -0.4597, looks
# plausible. minigrad raises an error where it can: it watches what goes through
# `save_for_backward`, and arrays that stay on `ctx`. It cannot see where plain numbers come from,
# or what happens under `no_grad`. In PyTorch, `SavedSine` gives the same number as `KeptSine`.

# %%
points = np.linspace(-1.5, 1.5, 61)
figure, axis = plt.subplots(figsize=(8, 4))
for function, style in ((Recomputed, "-"), (KeptSine, "--"), (Unrecorded, ":")):
    curve = [first_and_second(function, float(at))[1] for at in points]
    axis.plot(points, curve, style, linewidth=2, label=function.__name__)
axis.set(xlabel="x", ylabel="second derivative of sin²(x), as computed")
axis.set_title("Three backward functions with the same first derivative")
axis.legend()
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** There are three different curves for one function. Some methods use second
# derivatives: a Newton step divides the gradient by them, and gradient penalties (section 7) and
# meta-learning differentiate gradients. With the dashed curve, whose sign is wrong near 0, such a
# method can go uphill where it should go down.
#
# How do you test your own functions? `gradcheck` compares a gradient with differences of values.
# `gradgradcheck` compares the gradient *of the gradient* with differences of gradients:

# %%
at = mg.variable(np.array([0.3, 0.5, -1.1]), requires_grad=True)
for function in FOUR:
    verdicts = []
    for checker in (mg.debug.gradcheck, mg.debug.gradgradcheck):
        try:
            checker(function.apply, [at])
            verdicts.append("passes")
        except mg.errors.MinigradError:
            verdicts.append("fails")
    print(f"{function.__name__:<11} gradcheck {verdicts[0]}, gradgradcheck {verdicts[1]}")

# %% [markdown]
# The checks of your own two functions have already tested their second derivatives. `gradcheck`
# also fails in three cases in which the gradient is right. minigrad names the reason; elsewhere you
# often learn only that the numbers differ.

# %%
mg.manual_seed(0)
FALSE_ALARMS = {
    "float32": (mg.tanh, np.array([0.5], dtype=np.float32)),
    "a kink": (mg.relu, np.array([0.0, 1.0])),
    "dropout": (lambda x: mg.dropout(x, 0.5), np.ones(8)),
}
for name, (f, values) in FALSE_ALARMS.items():
    try:
        mg.debug.gradcheck(f, [mg.variable(values, requires_grad=True)])
    except mg.errors.MinigradError as error:
        print(f"{name:<8} {str(error).splitlines()[0]}")

# %% [markdown]
# ## 5. A gradient that is made up
#
# This is the third reason to write an operation: it has no useful derivative, and you want one
# anyway. Suppose that only +1 or -1 may pass between the layers of a network, which is cheap in
# hardware. Then each number goes through a step function, and the true slope of a step is 0, except
# at the jump. So no gradient arrives at the first layer, and its weights stay random.
#
# **Predict.** With the true slope, only the second layer learns. Its inputs are the answers to 48
# random yes-no questions about the image. What share of unseen digits does the network read, in
# percent? (Guessing reads 10 %. What the network of section 3 reads is printed there.)

# %% tags=["prediction"]
random_layer = predict("07.random_layer", "How many percent does it read?")
random_layer

# %% [markdown]
# A made-up gradient helps: forward computes the step, and backward computes as if the step had been
# the identity near 0. Hinton proposed it in a lecture in 2012, and Bengio and others named it the
# **straight-through estimator** in 2013. Networks of one bit are trained with it, and so are
# networks whose training already rounds their numbers to a few bits.
#
# **Write** `StraightThrough`, and let it *say* that its gradient is made up:
# `pseudo_gradient = True`.

# %% tags=["exercise"]
check("07.StraightThrough")

# %%
needs("07.StraightThrough")
mine = load("07")


def true_step(x):
    """The same step with its true slope, 0."""
    return mine.StraightThrough.apply(x.detach())


flat_losses, flat_accuracy = train(true_step, mg.cross_entropy)
step_losses, step_accuracy = train(mine.StraightThrough.apply, mg.cross_entropy)
tanh_losses, tanh_accuracy = train(mg.tanh, mg.cross_entropy)
random_layer.reveal(round(100 * float(flat_accuracy)), factor=1.06)

# %%
needs("07.StraightThrough")
figure, axis = plt.subplots(figsize=(8, 4))
for name, curve, share in (
    ("step, true slope", flat_losses, flat_accuracy),
    ("step, straight through", step_losses, step_accuracy),
    ("tanh", tanh_losses, tanh_accuracy),
):
    axis.plot(curve, label=f"{name}: {share:.1%} read correctly")
axis.set(xlabel="training step", ylabel="loss", yscale="log", ylim=(None, 8))
axis.set_title("One bit between two layers, with and without a made-up gradient")
axis.legend()
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** With the true slope, the random first layer still allows about 82 %, but no more.
# With the made-up gradient, a network of single bits learns nearly as well as one with `tanh`.
#
# Such a function *must* fail `gradcheck`. So its test expects the failure. If the check passes one
# day, because somebody "repaired" the gradient, the test fails:


# %%
def is_honest(function, values):
    """Whether gradcheck passes, or fails for a Function that says that it will."""
    declared = getattr(function, "pseudo_gradient", False)
    try:
        mg.debug.gradcheck(function.apply, [mg.variable(values, requires_grad=True)])
    except mg.errors.GradcheckError:
        return declared
    return not declared


needs("07.Softplus", "07.StraightThrough")
mine = load("07")
for function in (mine.Softplus, mine.StraightThrough, KeptSine):
    print(f"{function.__name__:<16} honest: {is_honest(function, np.array([0.4, -0.7, 1.6]))}")

# %% [markdown]
# (The third passes `gradcheck`, because only its second derivative is wrong.)

# %% [markdown]
# ## 6. How bent is the loss?
#
# The second derivatives of a loss with respect to its $n$ numbers form a table of $n \times n$, the
# **Hessian** $H$. It says how the gradient changes when the numbers change. For a small network of
# 9,610 numbers, it has 92 million entries, so nobody computes it. What people need is its product
# with a direction, $H v$ (the *Hessian-vector product*, `hvp`): how does the gradient change along
# $v$?
#
# $$H v = \frac{\partial}{\partial x} \sum_i g_i \, v_i \qquad \text{with } g = \nabla f(x)$$
#
# This takes one more backward pass, from a single number.
#
# **Predict.** Computing all of $H$, row by row, takes one pass for `g` and one more for each row.
# For 9,610 numbers, all of $H$ takes how many times as many passes as one product?
#
# Then **write** `hvp`, by the formula above.

# %% tags=["prediction"]
passes = predict("07.passes", "How many times more passes?")
passes

# %% tags=["exercise"]
check("07.hvp")

# %%
n = 9610
passes.reveal(round((1 + n) / 2), factor=2.1)

# %% [markdown]
# All of $H$ takes $1 + n$ passes. One product takes 2, for any $n$.
#
# What is it good for? It can tell how large a learning rate may be. Take a very simple model: one
# layer that says whether an image is a 3, with the mean square as its loss. Its Hessian is the same
# everywhere. If you replace $v$ by $H v$ again and again, $v$ turns into the direction in which the
# loss is bent most. The factor by which it grows each time is the curvature $\lambda$ in that
# direction.

# %%
needs("07.hvp")
mine = load("07")
rows = mg.variable(pixels_new.astype("float64"))
is_three = mg.variable((digits_new == 3).astype("float64"))


def square_loss(w):
    """The mean square of what the layer gets wrong."""
    return ((rows @ w - is_three) ** 2.0).mean()


mg.manual_seed(0)
w, v = mg.zeros(64, dtype="float64"), mg.randn(64, dtype="float64")
for _ in range(30):
    bent = mine.hvp(square_loss, w, v)
    sharpest = mg.norm(bent).item()
    v = bent / sharpest
print(f"largest curvature {sharpest:.4f}; no learning rate above 2 / {sharpest:.2f} ="
      f" {2 / sharpest:.4f} should converge")  # fmt: skip

# %%
needs("07.hvp")
figure, axis = plt.subplots(figsize=(8, 4))
gradient_of = mg.grad(square_loss)
for factor in (1.0, 1.9, 1.99, 2.01, 2.05):
    w, curve = mg.zeros(64, dtype="float64"), []
    for _ in range(300):
        curve.append(square_loss(w).item())
        w = w - (factor / sharpest) * gradient_of(w)
    axis.plot(curve, label=f"learning rate {factor:g} / curvature")
axis.set(xlabel="step of plain gradient descent", ylabel="loss", yscale="log", ylim=(1e-2, 1e4))
axis.set_title("The edge of stability, computed before the first step")
axis.legend(fontsize=8)
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** Up to $1.99/\lambda$ every loss falls; from $2.01/\lambda$ on it grows without
# end. A step multiplies the error in the sharpest direction by $1 - \text{rate} \cdot \lambda$, and
# beyond $2/\lambda$ this factor is less than -1. You computed this border with thirty products,
# before the first step.
#
# $H$ is symmetric: $u \cdot H v = v \cdot H u$. This gives a test that needs no known result, and
# the check of your `hvp` used it:

# %%
needs("07.hvp")
u, v = mg.randn(64, dtype="float64"), mg.randn(64, dtype="float64")
left, right = (u * mine.hvp(square_loss, w, v)).sum(), (v * mine.hvp(square_loss, w, u)).sum()
print(f"u · Hv = {left.item():.12f}\nv · Hu = {right.item():.12f}")

# %% [markdown]
# ## 7. A loss made of slopes
#
# A loss can also *contain* a gradient. A Wasserstein GAN has a critic, a network that gives high
# scores to real examples and low scores to fakes. Without a limit, the critic makes its slope as
# steep as it can, and its scores become useless. So the loss has a *penalty* for every slope that
# is not 1. To train with this penalty, the engine must differentiate through the slope.
#
# **Write** `gradient_penalty`. There is a norm for each *row*. Two widely copied programs took the
# norm along the wrong axis of an image (wgan-gp, issues
# [27](https://github.com/caogang/wgan-gp/issues/27) and
# [56](https://github.com/caogang/wgan-gp/issues/56); [pytorch-wgan, issue
# 40](https://github.com/Zeleni9/pytorch-wgan/issues/40)). There was no error, and the penalty
# limited something else.

# %% tags=["exercise"]
check("07.gradient_penalty")

# %%
needs("07.gradient_penalty")
mine = load("07")
random = np.random.default_rng(0)
real = random.normal((1.2, 0.0), 0.4, (64, 2))
fake = random.normal((-1.2, 0.5), 0.4, (64, 2))


def train_critic(weight, steps=150):
    """Train a critic to tell real from fake, with this weight of the penalty."""
    mg.manual_seed(0)
    first, second = mg.nn.Linear(2, 32).to("float64"), mg.nn.Linear(32, 1).to("float64")
    optimizer = mg.optim.Adam([*first.parameters(), *second.parameters()], learning_rate=2e-2)

    def critic(points):
        return second(mg.tanh(first(points))).squeeze(1)

    for _ in range(steps):
        share = random.uniform(size=(64, 1))
        between = mg.variable(share * real + (1 - share) * fake)
        loss = critic(mg.variable(fake)).mean() - critic(mg.variable(real)).mean()
        loss = loss + weight * mine.gradient_penalty(critic, between)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return critic


side = np.linspace(-2.5, 2.5, 60)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
for axis, weight in zip(axes, (0.0, 10.0), strict=True):
    critic = train_critic(weight)
    points = mg.variable(grid, requires_grad=True)
    scores = critic(points)
    steep = np.linalg.norm(mg.gradients(scores.sum(), points).numpy(), axis=1)
    picture = axis.contourf(side, side, scores.numpy().reshape(60, 60), 16, cmap="viridis")
    figure.colorbar(picture, ax=axis, label="score")
    axis.plot(*real.T, "o", color="white", markeredgecolor="black", markersize=4, label="real")
    axis.plot(*fake.T, "x", color="C1", markersize=4, label="fake")
    axis.set(xlabel="first coordinate", ylabel="second coordinate")
    slopes = f"mean slope {steep.mean():.1f}, steepest {steep.max():.1f}"
    axis.set_title(f"penalty × {weight:g}: {slopes}", fontsize=10)
axes[0].legend(loc="lower right", fontsize=8)
plt.show()

# %% [markdown]
# **What to see.** Without the penalty, the critic is a cliff between two plains. On the plains its
# slope is 0, so the network that makes the fakes does not learn in which direction to improve them.
# With the penalty, the critic is an even ramp, with a slope of about 1 from the fakes to the real
# examples. Compare the two colour bars, too.
#
# > **Real bug: a norm of 0.** The example of a Wasserstein GAN in the documentation of Keras took
# > the norm as `sqrt(sum(g * g))`
# > ([keras-io#910](https://github.com/keras-team/keras-io/issues/910), June 2022; fixed in May 2026
# > by [#2364](https://github.com/keras-team/keras-io/pull/2364)). If the gradient of a row is
# > exactly 0, the root has an infinite slope; infinity times 0 is nan, and all weights become nan.
# > With `relu` in the critic, this happens as soon as all units are off for one example:

# %%
weights = np.array([[0.5, 1.0], [1.0, 0.5]])
examples = mg.variable(np.array([[1.0, 1.0], [-1.0, -1.0]]), requires_grad=True)
for name, norm in (("sqrt(sum(g * g))", lambda g: mg.sqrt((g * g).sum(axis=1))),
                   ("mg.norm(g, axis=1)", lambda g: mg.norm(g, axis=1))):  # fmt: skip
    inner = mg.variable(weights, requires_grad=True)
    score = mg.relu(examples @ inner).sum()
    g = mg.gradients(score, examples, create_graph=True)
    ((norm(g) - 1.0) ** 2).mean().backward()
    print(f"{name:<19} gradient of the weights: {inner.grad.numpy().round(3).tolist()}")

# %% [markdown]
# A norm has a kink at 0, as `relu` has. The engine's `norm` takes the slope 0 there.

# %% [markdown]
# ## 8. Bug hunt
#
# At the end of your exercise file, `deep` runs five Functions in a row. The author of each tested
# it near 0. But when they run in a row, hardly any gradient arrives at `x`: one of the five loses
# it. You could read all five. In a network of five hundred you would *measure*:

# %%
mine = load("07")
random = np.random.default_rng(5)
signs, sizes = random.choice([-1.0, 1.0], (4, 6)), random.uniform(0.3, 1.5, (4, 6))
start, dy = mg.variable(signs * sizes), mg.variable(random.standard_normal((4, 6)))
with mg.debug.record_grad_function() as log:
    mine.deep_gradient(start, dy)
for record in log:
    out = record.outgoing_norms[0]
    print(f"{record.op:<8} gradient in {record.incoming_norm:10.4g}, out {out:10.4g}")

# %%
figure, axis = plt.subplots(figsize=(8, 4))
norms = [log.records[0].incoming_norm] + [record.outgoing_norms[0] for record in log]
names = ["dy", *(f"after {record.op}" for record in log)]
axis.semilogy(names, norms, "o-")
axis.set(xlabel="the way back", ylabel="norm of the gradient")
axis.set_title("What is left of the gradient")
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** For each operation, the plot shows how large the gradient is after it. A drop
# alone is no bug: an operation that divides its values by 40 rightly divides its gradient by 40,
# too. So compare both directions, and read in `deep` what each forward does to its values: which
# operation shrinks the gradient by *far* more than its values? Write its name into `BUG`, repair
# it, and run the two cells again.

# %% tags=["exercise"]
check("07.deep_gradient")

# %% [markdown]
# > **Real bug: a context that holds itself.** In OneFlow, a program that called `save_for_backward`
# > in a loop lost a gigabyte every ten rounds: the context in Python and its twin in C++ kept each
# > other alive ([oneflow#9248](https://github.com/Oneflow-Inc/oneflow/issues/9248), October 2022;
# > fixed by [#9249](https://github.com/Oneflow-Inc/oneflow/pull/9249)). minigrad's context refuses
# > to hold its own output:


# %%
class Keeps(mg.Function):
    """Keeps its output on ctx; but the output holds its node, and the node holds ctx."""

    @staticmethod
    def forward(ctx, x):
        ctx.y = mg.exp(x)
        return ctx.y


try:
    Keeps()(mg.variable([1.0], requires_grad=True))
except mg.errors.ArgumentTypeError as error:
    print(error)

# %% [markdown]
# ## Where you are
#
# - Write an operation of your own to use a better formula, to save memory, or to give it a slope
#   that mathematics does not.
# - `backward` returns one gradient for each argument, and is itself differentiated: compute it with
#   operations of the engine, from inputs and outputs. `gradgradcheck` finds errors that `gradcheck`
#   cannot find.
# - $Hv$ costs two backward passes. A loss may contain a gradient.
# - A made-up gradient is fine if the class says so, and if its test expects it.
#
# **Next:** lesson 08. You can compute any gradient now. Then an optimizer uses it. An optimizer has
# a memory, and can lose it in surprising ways.

# %%
from minigrad.course.predictions import summary

print(summary("07"))

# %% tags=["exercise"]
check("07")
