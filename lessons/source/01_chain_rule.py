# %% [markdown]
# # 01 · One rule is enough
#
# **You need** lesson 00, or to know what a derivative is. **It takes** about 75 minutes. **At the
# end** you have written backward functions, know why networks are differentiated from the back, and
# minigrad trains real digits with *your* derivative in its engine. Next: lesson 02, the graph.
#
# Your code goes into `exercises/01_chain_rule.py`. The first time the engine computes something on
# a machine, it compiles its kernels and keeps them; this takes some seconds.

# %% tags=["live"]
from minigrad.course import watch

watch("01")  # what you save in exercises/01_chain_rule.py is graded here at once

# %%
import matplotlib.pyplot as plt
import numpy as np

from minigrad.course import check, hint, light, load, needs, predict, scrub
from minigrad.course.pictures import draw_chain, draw_losses

plt.style.use("minigrad.course.house")

# %% [markdown]
# ## 1. Why is one walk back enough?
#
# In lesson 00, you found how each of thousands of numbers changes the loss, with two runs *per
# number*. `backward()` took one walk for all of them. It uses a rule that you learned at school:
#
# $$y = f(g(x)) \quad\Rightarrow\quad \frac{dy}{dx} = f'(g(x)) \cdot g'(x)$$
#
# `g` multiplies a small change of `x` by $g'$, and then `f` multiplies the result by $f'$. So the
# two slopes multiply. That is the **chain rule**, and it is the only mathematics in this lesson.
#
# Here are five operations in a row, with the numbers that pass through them. Move the slider. On
# the way *forward*, values appear above. Then, on the way *back*, each box takes the gradient `dy`
# that arrives at its output, multiplies it by its own local derivative, and hands the result on.

# %%
NAMES = ("exp", "sqrt", "softplus", "square", "log")
FORWARD = {
    "exp": np.exp,
    "sqrt": np.sqrt,
    "softplus": lambda x: np.log1p(np.exp(x)),
    "square": np.square,
    "log": np.log,
}
LOCAL = {
    "exp": np.exp,
    "sqrt": lambda x: 0.5 / np.sqrt(x),
    "softplus": lambda x: 1 / (1 + np.exp(-x)),
    "square": lambda x: 2 * x,
    "log": lambda x: 1 / x,
}
flow = [0.5]
for name in NAMES:
    flow.append(float(FORWARD[name](flow[-1])))
back = [1.0]
for name, value in zip(NAMES[::-1], flow[-2::-1], strict=True):
    back.insert(0, back[0] * float(LOCAL[name](value)))

scrub(
    lambda axis, step: draw_chain(axis, NAMES, flow, back, step),
    list(range(1, 12)),
    label="step",
    show=[3, 6, 11],
    columns=1,
    width=7,
    height=1.7,
)

# %% [markdown]
# **What to see.** At step 6 the first gradient appears. It is 1, because it is the slope of the
# output with respect to itself. Then each box turns the red number at its output into the red
# number at its input. The last red number, at the far left, is the slope of the whole. Compare it
# with the method of lesson 00:


# %%
def whole(x):
    """Return the five operations in a row."""
    for name in NAMES:
        x = FORWARD[name](x)
    return x


print("from the back, one walk:    ", back[0])
print("nudging, two runs:          ", (whole(0.5 + 1e-5) - whole(0.5 - 1e-5)) / 2e-5)

# %% [markdown]
# ## 2. Local derivative times what arrives
#
# So each operation needs to know only *its own* derivative. Its **backward function** gets two
# things: `dy`, the gradient that arrives at its output, and the values that it kept from the
# forward pass. It returns the gradient for each of its inputs. For a product $y = a \cdot b$, the
# slope with respect to $a$ is $b$, and the slope with respect to $b$ is $a$.
#
# **Predict.** `y = x * x` at `x = 3`, and `dy = 1`. Then `mul_backward(dy, a, b)` is
# `mul_backward(1, 3, 3)`, and returns two numbers. What is the gradient of `x`?

# %% tags=["prediction"]
twice = predict("01.square", "What is the gradient of x in y = x * x at x = 3?")
twice

# %% [markdown]
# **Write** `mul_backward`, `tanh_backward` and `pow_backward`. `tanh_backward` gets the *output*
# `y` and not `x`: with it, the derivative is cheaper to compute. `pow_backward` gets zeros and
# negative numbers, too; look at what your formula does there.

# %% tags=["exercise"]
check("01.mul_backward")

# %% tags=["exercise"]
check("01.tanh_backward")

# %% tags=["exercise"]
check("01.pow_backward")

# %%
needs("01.mul_backward")
mine = load("01")
da, db = mine.mul_backward(np.array(1.0), np.array(3.0), np.array(3.0))
print(f"da = {da}, db = {db}: x is both factors, so its gradient is the sum, {da + db}")
twice.reveal(float(da + db), factor=1.001)

# %% [markdown]
# The product uses `x` twice, and the two gradients that come back are *added*. Lesson 04 is about
# this sum, and about the bug of overwriting instead of adding.
#
# A backward function does not return a derivative: it returns the *product* of the derivative and
# what arrives. The picture shows what `tanh_backward` returns for three different `dy`.

# %%
needs("01.tanh_backward")
grid = np.linspace(-3, 3, 200)
figure, axis = plt.subplots(figsize=(8, 4))
for dy in (1.0, 0.5, -1.0):
    axis.plot(grid, mine.tanh_backward(np.full_like(grid, dy), np.tanh(grid)), label=f"dy = {dy}")
axis.set(xlabel="x", ylabel="dx = tanh_backward(dy, tanh(x))")
axis.set_title("What leaves is what arrives, times the local slope")
axis.legend()
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** The curves have one shape, the slope of `tanh`, multiplied by `dy`. Far from 0,
# where `tanh` is flat, hardly anything passes, whatever arrives.

# %% [markdown]
# > **Real bug: only ones.** At the end of 2025, the test for the backward functions of TinyTorch, a
# > framework for teaching, called each of them with `dy = 1`, and never with another `dy`. Such a
# > test cannot see this bug:


# %%
def forgetful(dy, a, b):
    """Answer as your function does, but as if dy were 1 everywhere."""
    return mine.mul_backward(np.ones_like(dy), a, b)


needs("01.mul_backward")
a, b = np.array([2.0, -1.0]), np.array([0.5, 3.0])
for dy in (np.ones(2), np.array([10.0, -0.1])):
    right, wrong = mine.mul_backward(dy, a, b), forgetful(dy, a, b)
    print(f"dy = {dy}: passes = {np.allclose(right, wrong)}")

# %% [markdown]
# That is why every check here sends a *random* `dy`.

# %% [markdown]
# ## 3. A chain of any length
#
# Now apply the rule to twelve functions in a row. Be careful about one thing: *at which value* must
# each derivative be computed?
#
# **Predict.** Twelve functions, each with a slope of about one half where it is used. How large is
# the slope of the whole?

# %% tags=["prediction"]
vanishing = predict("01.vanishing", "What is the slope of twelve stages of slope 0.5 each?")
vanishing

# %% tags=["exercise"]
check("01.chain")

# %%
needs("01.chain")
mine = load("01")
halves = [lambda x: 0.5 * x] * 12
vanishing.reveal(float(mine.chain(halves, [lambda x: 0.5] * 12, 1.0)), factor=2)

# %%
needs("01.chain")
depths = np.arange(1, 13)
figure, axis = plt.subplots(figsize=(8, 4))
for gain in (0.5, 1.0, 2.0, 4.0):
    stage, slope = (
        (lambda x, g=gain: np.tanh(g * x)),
        (lambda x, g=gain: g * (1 - np.tanh(g * x) ** 2)),
    )
    slopes = [abs(mine.chain([stage] * n, [slope] * n, 0.01)) for n in depths]
    axis.semilogy(depths, slopes, marker="o", markersize=4, label=f"stages tanh({gain:g} · x)")
axis.set(xlabel="stages in the chain", ylabel="|slope of the whole|")
axis.set_title("Products of many slopes vanish or explode")
axis.legend(fontsize=8)
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** With flat stages (blue), the slope shrinks from the start. With stages of slope 1
# (orange), it stays near 1. With steeper ones it grows, until the values reach the flat ends of
# `tanh`; from there on it shrinks even faster. The slope of a deep network is a long product.
# Initialisation, normalisation and residual connections help to keep it near 1.

# %% [markdown]
# ## 4. From which end?
#
# A product of slopes can be computed from either end: $(c \cdot b) \cdot a = c \cdot (b \cdot a)$.
# For numbers, both ways cost the same. In a network, each local derivative is a *matrix* (its
# Jacobian, with a row for each output and a column for each input), and the costs differ
# enormously. Take $y = W_2 \tanh(W_1 x)$:
#
# - **Forward mode** carries a change of *one input* forward through all stages. A pass gives one
#   column: what this input does to all outputs.
# - **Reverse mode** carries the gradient of *one output* back through all stages. A pass gives one
#   row: what all inputs do to this output.
#
# **Predict.** The network of lesson 00 has 9,610 numbers to adjust, and one loss. When it is
# trained, these numbers are the inputs: their slopes are wanted. For a network as above with 9,610
# inputs and one output, how many times cheaper is reverse mode?

# %% tags=["prediction"]
cheaper = predict("01.cheaper", "How many times cheaper is reverse mode for 9,610 and 1?")
cheaper

# %% tags=["exercise"]
check("01.count_mults")

# %%
needs("01.count_mults")
mine = load("01")
n_in = 9610
ratio = mine.count_mults(n_in, 1, "forward") / mine.count_mults(n_in, 1, "reverse")
cheaper.reveal(round(ratio), factor=2)

# %%
needs("01.count_mults")
widths = np.unique(np.logspace(0, 4, 30).astype(int))
figure, axis = plt.subplots(figsize=(8, 4))
for n_out in (1, 10, 1000):
    both = {
        mode: [mine.count_mults(int(n), n_out, mode) for n in widths]
        for mode in ("forward", "reverse")
    }
    line = axis.loglog(widths, both["forward"], "--", label=f"forward, {n_out} outputs")[0]
    axis.loglog(
        widths, both["reverse"], "-", color=line.get_color(), label=f"reverse, {n_out} outputs"
    )
axis.set(xlabel="inputs", ylabel="multiplications for the whole Jacobian", ylim=(2, None))
axis.set_title("Reverse wins where inputs outnumber outputs")
axis.legend(fontsize=8)
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** The two lines of one colour cross where there are as many inputs as outputs.
# Training has one output, the loss, and as many inputs as the network has numbers: that is at the
# far right, on the lowest line. For this reason the engine goes *backward*. (Forward mode is better
# for few inputs and many outputs, and it need not keep any values for a way back.)

# %% [markdown]
# ## 5. Your gradient runs the engine
#
# In the network below, each hidden value is `tanh(h) * sigmoid(h)`. (The sigmoid, a factor between
# 0 and 1, is called a *gate*.) So every training step needs the derivatives of a `tanh` and of a
# product. `mg.use` puts *yours* into minigrad's engine in place of its own; everything else stays.
# Then the network trains on the real digits.

# %%
import minigrad as mg

images, labels = mg.data.load_digits()
(x, y), (x_new, y_new) = mg.data.stratified_split(images.reshape(-1, 64) * 3 - 1, labels)


def train(epochs=12):
    """Train a small gated network; return the losses and the held-out accuracy."""
    mg.manual_seed(1)
    first, second = mg.nn.Linear(64, 48), mg.nn.Linear(48, 10)
    optimizer = mg.optim.Adam([*first.parameters(), *second.parameters()], learning_rate=5e-3)

    def logits(rows):
        hidden = first(mg.variable(rows))
        return second(mg.tanh(hidden) * mg.sigmoid(hidden))  # differentiated by you

    losses = []
    for epoch in range(epochs):
        for rows, targets in mg.data.batches(x, y, batch_size=64, seed=epoch):
            loss = mg.cross_entropy(logits(rows), mg.variable(targets))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    with mg.no_grad():
        right = logits(x_new).numpy().argmax(axis=1) == y_new
    return np.array(losses), right.mean()


losses, accuracy = train()
print(f"minigrad's own: loss {losses[-1]:.4f}, {accuracy:.1%} of unseen digits read correctly")

# %%
needs("01.mul_backward", "01.tanh_backward")
mine = load("01")
calls = {"mul": 0, "tanh": 0}


def my_mul(dy, a, b):
    """Count the call, and let your function answer it."""
    calls["mul"] += 1
    return mine.mul_backward(dy, a, b)


def my_tanh(dy, y):
    """Count the call, and let your function answer it."""
    calls["tanh"] += 1
    return mine.tanh_backward(dy, y)


with mg.use(gradients={"mul": my_mul, "tanh": my_tanh}):
    my_losses, my_accuracy = train()
print(f"with yours:     loss {my_losses[-1]:.4f}, {my_accuracy:.1%} read correctly")
print(f"your functions were called {calls['mul']} and {calls['tanh']} times")

# %%
needs("01.mul_backward", "01.tanh_backward")
draw_losses(
    {"minigrad's own derivatives": losses},
    {"yours": my_losses},
    title="The same engine, with your derivatives inside",
)

# %% [markdown]
# **What to see.** The two lines are the same. (If they differ, the checks have missed something:
# tell us.) When they agree, two tiles light up in `minigrad status`: these parts of the engine are
# yours.

# %%
needs("01.mul_backward", "01.tanh_backward")
for op, n_calls in calls.items():
    print(light(f"01.{op}_backward", mine=my_losses, reference=losses, calls=n_calls))

# %% [markdown]
# What happens if a backward function is wrong, for example because it ignores the `dy` that
# arrives? There is no error and no warning, but the loss shows it:

# %%
needs("01.mul_backward")
with mg.use(gradients={"mul": forgetful}):
    wrong_losses, wrong_accuracy = train()

figure, axis = plt.subplots(figsize=(8, 4))
axis.plot(losses, label=f"right: {accuracy:.1%} read correctly")
axis.plot(wrong_losses, label=f"dy ignored: {wrong_accuracy:.1%}")
axis.set(xlabel="training step", ylabel="loss", yscale="log")
axis.set_title("A backward function that ignores dy")
axis.legend()
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** One factor is missing in one backward function, and the network learns nothing.
# Without `dy`, the training no longer makes the loss smaller; it makes the product smaller. Every
# hidden value moves to the lowest point of the curve `tanh(h) * sigmoid(h)`, for every image, so
# the second layer cannot tell the digits apart.

# %% [markdown]
# ## 6. Bug hunt
#
# At the end of your exercise file are the five operations of the first picture, in a row. Each
# seems right alone, but the gradient of the whole is wrong. `pipeline` records a `Node` for each
# operation, with the values that the backward pass will need:

# %%
mine = load("01")
_, nodes = mine.pipeline(np.array([0.5]))
for place, node in enumerate(nodes):
    print(place, node)
print("gradient of the whole:", mine.pipeline_gradient(np.array([0.5]), np.array([1.0])))
print("by differences:       ", (whole(0.5 + 1e-5) - whole(0.5 - 1e-5)) / 2e-5)

# %% [markdown]
# Which node is it? Write its place into `BUG`, then repair its function.

# %% tags=["exercise"]
check("01.pipeline_gradient")

# %% [markdown]
# > **Two sums that look alike.** A sum over the *inputs* of a function says how its value changes:
# > $\sum_i (\partial y/\partial x_i)\, dx_i$. That is forward mode. On the way back, an engine
# > computes a sum over the *outputs*, for each input on its own:
# > $$dx_j = \sum_i dy_i \, \frac{\partial y_i}{\partial x_j}$$
# > It is what arrives, times the local derivative: a vector times a Jacobian. Here are the two on
# > one matrix:

# %%
random = np.random.default_rng(0)
jacobian = random.standard_normal((2, 3))  # two outputs, three inputs
nudge, dy = np.array([1.0, 0.0, 0.0]), np.array([1.0, 0.0])
print("forward, J @ nudge: what one input does to all outputs", (jacobian @ nudge).round(3))
print("reverse, dy @ J:    what all inputs do to one output  ", (dy @ jacobian).round(3))

# %% [markdown]
# ## Where you are
#
# - A backward function returns *local derivative × what arrives*, for each input.
# - Each local derivative depends on the *input* that its operation had, so the forward pass must
#   keep that input, or the output where that is enough, as for `tanh`.
# - Reverse mode costs one pass for each output, and a loss is one output. So one pass gives all
#   slopes.
#
# **Next:** lesson 02. Real networks are not chains: values are used twice, and paths split and meet
# again. In which order must an engine walk back then?

# %%
from minigrad.course.predictions import summary

print(summary("01"))

# %% tags=["exercise"]
check("01")
