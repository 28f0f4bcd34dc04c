# %% [markdown]
# # 01 · One rule is enough
#
# **You need** lesson 00, or to know what a derivative is. **It takes** about 75 minutes. **At the
# end** you have written backward functions, know why networks are differentiated from the back, and
# minigrad trains real digits with *your* derivative in its engine. Next: lesson 02, the graph.
#
# Your code goes into `exercises/01_chain_rule.py`. The first time the engine computes something on
# a machine, it compiles its kernels, which takes some seconds, and keeps them.

# %%
import matplotlib.pyplot as plt
import numpy as np

from minigrad.course import check, hint, light, load, needs, predict, scrub
from minigrad.course.pictures import draw_chain

# %% [markdown]
# ## 1. How can one walk back be enough?
#
# In lesson 00, finding how each of thousands of numbers moves the loss took two runs *per number*;
# `backward()` took one walk for all. Is there a trick? There is, and you learned it at school:
#
# $$y = f(g(x)) \quad\Rightarrow\quad \frac{dy}{dx} = f'(g(x)) \cdot g'(x)$$
#
# A change of `x` is stretched by $g'$ on its way through `g`, and what comes out is stretched again
# by $f'$ on its way through `f`. Stretches multiply. That is the **chain rule**, and the only
# mathematics in this lesson.
#
# Here are five operations in a row, with what flows through them. Step the slider: going *forward*,
# values appear above. Then, going *back*, each box takes what arrives at its output, `dy`,
# multiplies it by its own local derivative, and hands it on.

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
# **What to see.** At step 6 the first gradient is 1: by how much does the output change when the
# output changes? Each box then turns the red number at its output into one at its input. The last
# red number, far left, is the slope of the whole. Compare with lesson 00:


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
# So each operation needs to know only *itself*. Its **backward function** gets two things: `dy`,
# the gradient that arrives at its output, and whatever it kept from the forward pass. It returns
# the gradient for each of its inputs. For a product $y = a \cdot b$ with $b$ held still, a nudge
# of $a$ is stretched by $b$; and the other way round.
#
# **Predict.** `y = x * x` at `x = 3`, and `dy = 1`. `mul_backward(1, 3, 3)` returns two numbers.
# What is the gradient of `x`?

# %% tags=["prediction"]
twice = predict("01.square", "What is the gradient of x in y = x * x at x = 3?", ...)
twice

# %% [markdown]
# **Write** `mul_backward`, `tanh_backward` and `pow_backward`. `tanh_backward` is given the
# *output* `y` and not `x`: an engine keeps what is cheapest to keep. `pow_backward` meets zeros
# and negatives; look at what your formula does there.

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
# `x` went into the product by two doors, and what comes back through both is *added*. Lesson 04 is
# about this sum, and about what happens to people who overwrite instead.
#
# A backward function does not compute a derivative: it computes a *product* with what arrives. In
# pictures: the slope of `tanh`, and what `tanh_backward` makes of three different `dy`.

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
# **What to see.** One bell, scaled by `dy`, also to below zero. Where `tanh` is flat, far from 0,
# nothing gets through, whatever arrives.

# %% [markdown]
# > **Real bug: only ones.** At the end of 2025, the test for the backward functions of TinyTorch, a
# > framework for teaching, sent `dy = 1` into each of them, and nothing else. Look at what gets
# > past such a test:


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
# Now the rule for twelve functions in a row, with one catch: *where* is each derivative taken?
#
# **Predict.** Twelve functions, each with a slope of about one half where it is used. How large is
# the slope of the whole?

# %% tags=["prediction"]
vanishing = predict("01.vanishing", "What is the slope of twelve stages of slope 0.5 each?", ...)
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
    axis.semilogy(depths, slopes, "o-", markersize=4, label=f"stages tanh({gain:g} · x)")
axis.set(xlabel="stages in the chain", ylabel="|slope of the whole|")
axis.set_title("Products of many slopes vanish or explode")
axis.legend(fontsize=8)
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** Flat stages lose the slope from the start. Steep ones make it explode, until
# the values saturate; then it dies all the faster. A deep network is a long product, and keeping
# it near 1 is what initialisation, normalisation and residual connections are for.

# %% [markdown]
# ## 4. From which end?
#
# A product of slopes can be computed from either end: $(c \cdot b) \cdot a = c \cdot (b \cdot a)$.
# For numbers it does not matter. For a network each local derivative is a *matrix* (its Jacobian),
# and it matters enormously. Take $y = W_2 \tanh(W_1 x)$:
#
# - **Forward mode** pushes a nudge of *one input* through all stages. A pass gives one column: what
#   this input does to all outputs.
# - **Reverse mode** pulls *one output* back through all stages. A pass gives one row: what all
#   inputs do to this output.
#
# **Predict.** The network of lesson 00 has 9,610 numbers to adjust, and one loss. How many times
# cheaper is reverse mode?

# %% tags=["prediction"]
cheaper = predict("01.cheaper", "How many times cheaper is reverse mode for 9,610 and 1?", ...)
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
    axis.loglog(widths, both["reverse"], color=line.get_color(), label=f"reverse, {n_out} outputs")
axis.set(xlabel="inputs", ylabel="multiplications for the whole Jacobian", ylim=(2, None))
axis.set_title("Reverse wins where inputs outnumber outputs")
axis.legend(fontsize=8)
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** Pairs of one colour cross where there are as many inputs as outputs. Training has
# one output, the loss, and as many inputs as the network has numbers: far right, lowest line. This
# is the whole reason why the engine goes *backward*. (Forward mode has its place: few inputs, many
# outputs, and no need to keep any values for a way back.)

# %% [markdown]
# ## 5. Your gradient runs the engine
#
# Enough paper. In the network below each hidden value passes `tanh` and is multiplied by a gate,
# `tanh(h) * sigmoid(h)`, so every step needs the derivatives of a `tanh` and of a product. `mg.use`
# puts *yours* into minigrad's engine in place of its own; everything else stays. Then it trains on
# the real digits.

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
figure, axis = plt.subplots(figsize=(8, 4))
axis.plot(losses, linewidth=4, alpha=0.4, label="minigrad's own derivatives")
axis.plot(my_losses, linewidth=1, color="black", label="yours")
axis.set(xlabel="training step", ylabel="loss", yscale="log")
axis.set_title("The same engine, with your derivatives inside")
axis.legend()
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** One line on top of the other. If they part, the checks have missed something:
# tell us. If they agree, two tiles light up in `minigrad status`, and they say: these parts of the
# engine are yours.

# %%
needs("01.mul_backward", "01.tanh_backward")
for op, n_calls in calls.items():
    print(light(f"01.{op}_backward", mine=my_losses, reference=losses, calls=n_calls))

# %% [markdown]
# And if your derivative were wrong, say, with the upstream gradient dropped? Look at it: this is
# what such a bug looks like from the outside. No error, no warning.

# %%
needs("01.mul_backward")
with mg.use(gradients={"mul": forgetful}):
    wrong_losses, wrong_accuracy = train()

figure, axis = plt.subplots(figsize=(8, 4))
axis.plot(losses, label=f"right: {accuracy:.1%} read correctly")
axis.plot(wrong_losses, label=f"upstream dropped: {wrong_accuracy:.1%}")
axis.set(xlabel="training step", ylabel="loss", yscale="log")
axis.set_title("A dropped upstream gradient, seen from the outside")
axis.legend()
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** One missing factor in one backward function, and nothing is learned. Without
# `dy`, what descends is no longer the loss but the product itself: every hidden value slides to
# the lowest point of the curve `tanh(h) * sigmoid(h)`, the same one for every image, and the
# second layer cannot tell the digits apart any more.

# %% [markdown]
# ## 6. Bug hunt
#
# At the end of your exercise file, five operations stand in a row, those of the picture above. Each
# passes alone; the gradient of the whole is wrong. `pipeline` records a `Node` for each operation,
# with what the backward pass will need:

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
# > **A story about a formula.** A widely copied introduction to OneFlow's autograd states the
# > chain rule as $\nabla f(x) = \sum (\partial f/\partial x_i) \cdot \nabla x_i$. It looks right
# > and is something else: a sum over the *inputs* of one function is its differential, what
# > forward mode pushes. What an engine computes on the way back is a sum over *outputs*, for each
# > input on its own:
# > $$dx_j = \sum_i dy_i \, \frac{\partial y_i}{\partial x_j}$$
# > what arrives, times the local derivative: a vector times a Jacobian. The documentation of
# > MegEngine's `GradManager` states it in this form. These are the two modes of section 4, and here
# > they are on one matrix:

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
# - Each local derivative is taken at what went *into* its operation; so something must be kept.
# - Reverse mode costs a pass for each output. A loss is one output. That is the whole secret.
#
# **Next:** lesson 02. Real networks are no chains: values are used twice, paths split and meet
# again. In which order must an engine walk back then?

# %%
from minigrad.course.predictions import summary

print(summary("01"))

# %% tags=["exercise"]
check("01")
