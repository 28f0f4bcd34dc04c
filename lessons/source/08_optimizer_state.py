# %% [markdown]
# # 08 · Who remembers the last step?
#
# **You need** lesson 04, or to know what `loss.backward()` leaves in `p.grad`. **It takes** about
# 170 minutes; after section 4 is a good place for a break. **At the end** you have written SGD with
# momentum, clipping, and checkpoints that survive a reordered model; you know why a line that only
# clips weights can ruin a training run without an error; and minigrad trains real digits with
# *your* step. Next: lesson 09, Adam.
#
# Your code goes into `exercises/08_optimizer_state.py`. The first time the engine computes
# something on a machine, it compiles its kernels, which takes some seconds, and keeps them.

# %% tags=["live"]
from minigrad.course import watch

watch("08")  # what you save in exercises/08_optimizer_state.py is graded here at once

# %%
import matplotlib.pyplot as plt
import numpy as np

import minigrad as mg
from minigrad.course import check, hint, light, load, needs, predict, scrub
from minigrad.course.l08_optimizer_state.pictures import draw_owners, draw_valley
from minigrad.course.objects import Parameter

plt.style.use("minigrad.course.house")

# %% [markdown]
# ## 1. The same weights, another future
#
# A network is trained for 40 steps and stopped. All its weights are saved, bit for bit, and loaded
# into a new network. Then both train on, with the same batches in the same order and the same
# learning rate. Do both compute the same losses?

# %%
images, labels = mg.data.load_digits()
(x, y), (x_new, y_new) = mg.data.stratified_split(images.reshape(-1, 64) * 2 - 1, labels)
BATCHES = list(mg.data.batches(x, y, batch_size=64, seed=0))


def network():
    """Return a small network, the same one each time."""
    mg.manual_seed(1)
    return mg.nn.Sequential(mg.nn.Linear(64, 32), mg.nn.Tanh(), mg.nn.Linear(32, 10))


def train(model, optimizer, steps, start=0, afterwards=None):
    """Train on the batches from number `start` on; return the losses and the last step's moves."""
    losses, moves = [], {}
    for number in range(start, start + steps):
        rows, targets = BATCHES[number % len(BATCHES)]
        loss = mg.cross_entropy(model(mg.variable(rows)), mg.variable(targets))
        loss.backward()
        before = {name: p.numpy().copy() for name, p in model.named_parameters()}
        optimizer.step()
        optimizer.zero_grad()
        moves = {name: p.numpy() - before[name] for name, p in model.named_parameters()}
        if afterwards is not None:
            afterwards(model)
        losses.append(loss.item())
    return np.array(losses), moves


first = network()
optimizer = mg.optim.SGD(first, learning_rate=0.05, momentum=0.9)
train(first, optimizer, 40)
second = network()
second.load_state_dict(first.state_dict())  # the weights, all of them

went_on, _ = train(first, optimizer, 6, start=40)
resumed, _ = train(second, mg.optim.SGD(second, learning_rate=0.05, momentum=0.9), 6, start=40)
print("went on:", went_on.round(4))
print("resumed:", resumed.round(4))

# %% [markdown]
# The first loss is the same, because the weights are the same. The second is not: the same gradient
# moved the same weights by a different distance. Something took part in that step that is *not in
# the model*.
#
# Whatever an optimizer remembers from one step to the next is its **state**. This lesson is about
# two questions that sound like bookkeeping: what is in the state, and to *which parameter* does
# each piece belong? Many bugs with optimizers are wrong answers to the second question.

# %% [markdown]
# ## 2. What is remembered: momentum
#
# Plain gradient descent remembers nothing. Think of a valley that is steep across and flat along
# its floor. The steps must be short enough for the steep direction, so the way along the flat one
# takes very long. A rolling ball does better: it keeps its **velocity** $v$, and gradients only
# push it:
#
# $$d = g + \lambda\, w \qquad v \leftarrow \mu\, v + d \qquad w \leftarrow w - \eta\, v$$
#
# Here $g$ is the gradient, $\eta$ the learning rate, $\mu$ the momentum and $\lambda$ the weight
# decay, which pulls each weight a little towards 0 in every step. `torch.optim.SGD` and minigrad's
# SGD compute exactly this. (In some books $v$ contains $\eta$ as well, or is an average with a
# factor of $1 - \mu$: other numbers, with which neither of the two could go on.)
#
# **Predict.** The gradient is always 1 and the learning rate 0.1, so a step without momentum has
# the length 0.1. With momentum 0.9, the steps become longer and longer. What length do they
# approach?

# %% tags=["prediction"]
terminal = predict("08.terminal", "How long does a step become? (without momentum: 0.1)")
terminal

# %% [markdown]
# **Write** `sgd_update`: the three formulas, for one parameter. It writes its results *into* the
# arrays that it gets, because minigrad will call it in this form at the end of the lesson.

# %% tags=["exercise"]
check("08.sgd_update")


# %%
def walk(gradient_of, start, steps, rate, momentum):
    """Call your sgd_update `steps` times; return all places, (steps + 1, n)."""
    values = np.array(start, float)
    state = {"momentum": np.zeros_like(values)} if momentum else {}
    numbers = {"learning_rate": rate, "momentum": momentum, "weight_decay": 0.0}
    places = [values.copy()]
    for _ in range(steps):
        mine.sgd_update("SGD", values, gradient_of(values), state, numbers)
        places.append(values.copy())
    return np.array(places)


needs("08.sgd_update")
mine = load("08")
figure, axis = plt.subplots(figsize=(8, 3.6))
for momentum in (0.0, 0.5, 0.8, 0.9):
    places = walk(np.ones_like, [0.0], 45, 0.1, momentum)
    axis.plot(np.abs(np.diff(places[:, 0])), label=f"momentum {momentum:g}")
axis.set(xlabel="step", ylabel="length of the step")
axis.set_title("A gradient of 1, again and again")
axis.legend()
axis.grid(alpha=0.3)
plt.show()
long_run = walk(np.ones_like, [0.0], 300, 0.1, 0.9)
terminal.reveal(float(abs(long_run[-1] - long_run[-2])[0]), factor=1.05)

# %% [markdown]
# **What to see.** In each step, the velocity loses $(1 - \mu) v$, as if by friction, and the
# gradient adds to it. It grows until it gains as much as it loses. So in the end a step is $1 / (1
# - \mu)$ times as long as without momentum. If you raise the momentum from 0.9 to 0.99 and keep the
# learning rate, the steps become ten times as long.
#
# What does momentum do in the valley? Move the slider.

# %%
needs("08.sgd_update")
STEEP = 25.0


def down_the_valley(axis, momentum):
    """Draw forty steps with this momentum."""
    path = walk(lambda w: w * np.array([1.0, STEEP]), [-10.0, 1.5], 40, 0.03, momentum)
    left = np.linalg.norm(path[-1])
    draw_valley(axis, STEEP, path, f"momentum {momentum:g}: still {left:.2f} to go")


scrub(
    down_the_valley,
    [0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95],
    label="momentum",
    show=[0.0, 0.8, 0.95],
    width=3.2,
    height=2.8,
)

# %% [markdown]
# **What to see.** Each walk takes forty steps from the orange dot. Without momentum it creeps along
# the floor of the valley. With momentum 0.8 it arrives. With too much it runs past the goal: there
# the gradient points back, but it must first use up the velocity.

# %% [markdown]
# ## 3. Which parameter does it belong to?
#
# Each weight has a `v` of its own shape. Where should it be stored? Systems differ. PyTorch and
# MegEngine keep it in the optimizer, under the parameter *object*. Burn and minigrad keep it in the
# optimizer, under the parameter's *id*, a number. In JAX, no object keeps it: each step returns it,
# in a tree that is built like the tree of the parameters, and you pass it to the next step. Here is
# the state of the optimizer from section 1, as the engine keeps it:

# %%
names = {p.id: name for name, p in first.named_parameters()}
for number, slots in optimizer.state.items():
    shapes = ", ".join(f"{slot} {value.shape}" for slot, value in slots.items())
    print(f"id {number:>3}, which is {names[number]:<9}  {shapes}")

# %% [markdown]
# The exercises use a plain `Parameter`, with `values`, `grad`, `requires_grad`, and an `id` that no
# other plain Parameter has (they are counted from 1, apart from the engine's). A model is a dict of
# them, like `dict(model.named_parameters())` in PyTorch.
#
# **Write** the method `step` of `SGD`. Three questions decide whether it is right. Under which key
# is state kept? When is it made? What happens to a parameter that got no gradient?

# %%
print(Parameter(np.zeros(2)), Parameter(np.zeros(2)), sep="\n")

# %% tags=["exercise"]
check("08.SGD")

# %% [markdown]
# The third question sounds harmless, and is not. `grad = None` says "nothing arrived", and the
# parameter stays. A gradient of zeros says "something arrived, and it is zero": then momentum still
# moves the parameter, and weight decay still pulls it towards 0.
#
# **Predict.** A parameter has been moving steadily, with momentum 0.9. From some step on, its
# gradient is an array of *zeros*. How far does the parameter still go, as a multiple of its last
# step?

# %% tags=["prediction"]
coasting = predict("08.coasting", "How many times its last step does it still go?")
coasting

# %%
needs("08.SGD", "08.sgd_update")
mine = load("08")
STOP, STEPS = 60, 130


def values_over_time(rest):
    """Give a parameter the gradient -1 for a while, then `rest`; return its values."""
    p = Parameter(np.zeros(1))
    sgd = mine.SGD([p], learning_rate=0.1, momentum=0.9)
    found = [0.0]
    for step in range(STEPS):
        p.grad = -np.ones(1) if step < STOP else rest
        sgd.step()
        found.append(float(p.values[0]))
    return np.array(found)


by_zeros, by_none = values_over_time(np.zeros(1)), values_over_time(None)
figure, axis = plt.subplots(figsize=(8, 3.6))
axis.plot(by_zeros, label="then grad = zeros")
axis.plot(by_none, "--", label="then grad = None")
axis.axvline(STOP, color="gray", linewidth=0.8)
axis.set(xlabel="step", ylabel="value of the parameter")
axis.set_title(f"No gradient from step {STOP} on, said in two ways")
axis.legend()
axis.grid(alpha=0.3)
plt.show()
last_step = by_zeros[STOP] - by_zeros[STOP - 1]
coasting.reveal(float((by_zeros[-1] - by_zeros[STOP]) / last_step), factor=1.1)

# %% [markdown]
# **What to see.** The two lines are the same up to the grey mark, and part there. With zeros, each
# step is 0.9 times the one before, and 0.9 + 0.81 + 0.729 + … = 0.9 / (1 - 0.9) = 9. In minigrad,
# and in PyTorch since 2.0, `zero_grad()` sets None instead of filling with zeros. As you see, this
# does more than save memory.
#
# How much memory does the state take? The engine's own counters tell it: the bytes that are alive
# after each phase of a first step.


# %%
def bytes_alive(make):
    """Return how many bytes are alive after each phase, with the optimizer that make() builds."""
    start = mg.memory.stats()["current_bytes"]
    found = {}
    model = mg.nn.Linear(512, 512)
    found["weights"] = mg.memory.stats()["current_bytes"] - start
    model(mg.ones((1, 512))).sum().backward()
    found["+ gradients"] = mg.memory.stats()["current_bytes"] - start
    optimizer = make(model)
    optimizer.step()
    found["+ state, after a step"] = mg.memory.stats()["current_bytes"] - start
    return found


alive = {
    "SGD": bytes_alive(lambda model: mg.optim.SGD(model, learning_rate=0.1)),
    "SGD, momentum": bytes_alive(lambda model: mg.optim.SGD(model, 0.1, momentum=0.9)),
    "Adam": bytes_alive(lambda model: mg.optim.Adam(model)),
}
figure, axis = plt.subplots(figsize=(8, 3.4))
for place, (name, found) in enumerate(alive.items()):
    below = 0
    for (phase, total), colour in zip(found.items(), ("C0", "C1", "C2"), strict=True):
        axis.barh(name, (total - below) / 2**20, left=below / 2**20, color=colour,
                  label=phase if place == 0 else None)  # fmt: skip
        below = total
axis.set(xlabel="MiB alive, by the engine's counter", ylabel="optimizer")
axis.set_title("A layer of 512 × 512 weights, and what it takes to train it")
axis.legend(fontsize=8)
plt.show()

# %% [markdown]
# **What to see.** Plain SGD has no third part. Momentum takes as much memory as the weights, and
# Adam takes twice as much, because it remembers two numbers for each weight. With Adam, three
# quarters of these bytes are not the weights.

# %% [markdown]
# ## 4. Clipping gradients: one norm for all
#
# Sometimes a batch gives a gradient that is a hundred times as long as usual, and one step ruins an
# hour of training. The remedy is to make long gradients shorter. If all of them shrink by the
# *same* factor, the step keeps its direction.
#
# (Not every system does so. Burn's `GradientClipping::Norm` takes the norm of *each parameter's*
# gradient by itself; `clip_grad_norm_` in PyTorch and minigrad and `clip_grad_norm` in MegEngine
# take one norm for all. The names are similar, but the steps differ.)
#
# **Predict.** The gradients are `[inf, 1.0, 1.0]`, and someone multiplies them by `max_norm / norm`
# without checking the norm. What does the second one become?

# %% tags=["prediction"]
infinite = predict(
    "08.infinite",
    "[inf, 1, 1], scaled by max_norm / norm: what is the second?",
    choices=("zero", "one", "nan"),
)
infinite

# %%
with np.errstate(invalid="ignore"):
    unseen = np.array([np.inf, 1.0, 1.0])
    unseen *= 1.0 / np.linalg.norm(unseen)
print("the gradients afterwards:", unseen)
infinite.reveal({0.0: "zero", 1.0: "one"}.get(float(unseen[1]), "nan"))

# %% [markdown]
# The first gradient is nan, so its weight will be nan, too. All other gradients are lost, and there
# is no error. PyTorch's `clip_grad_norm_` does the same unless you pass `error_if_nonfinite=True`.
#
# **Write** `clip_grad_norm_`: one norm, one factor, in place. If the norm is infinite or nan, your
# function must raise an error before it writes anything.

# %% tags=["exercise"]
check("08.clip_grad_norm_")

# %%
needs("08.clip_grad_norm_")
mine = load("08")
gradients = [np.array([3.0]), np.array([0.8])]
together = [g.copy() for g in gradients]
mine.clip_grad_norm_(together, 1.0)
alone = [g.copy() for g in gradients]
for g in alone:
    mine.clip_grad_norm_([g], 1.0)  # each by itself

figure, axis = plt.subplots(figsize=(8, 3.2))
for pair, name, colour in (
    (gradients, "as it came", "gray"),
    (together, "clipped together", "C0"),
    (alone, "each by itself", "C3"),
):
    end = (float(pair[0][0]), float(pair[1][0]))
    axis.annotate("", end, (0, 0), arrowprops={"arrowstyle": "->", "color": colour, "lw": 2})
    axis.plot(*end, "o", color=colour, label=f"{name}: {np.degrees(np.arctan2(*end[::-1])):.0f}°")
circle = np.linspace(0, np.pi / 2, 60)
axis.plot(np.cos(circle), np.sin(circle), ":", color="gray", label="norm 1")
axis.set(xlabel="gradient of the first parameter", ylabel="of the second", xlim=(0, 3.3))
axis.set(ylim=(0, 1.1), aspect="equal")
axis.set_title("Which way will the step go?")
axis.legend(fontsize=8)
plt.show()

# %% [markdown]
# **What to see.** The blue arrow is shorter than the grey one and has the same direction. The red
# arrow points elsewhere: the large gradient was cut and the small one was not, so the small one now
# counts for more than it should.

# %% [markdown]
# ## 5. Clipping weights
#
# Some models need *weights* in a certain range: the critic of the first Wasserstein GAN, or a model
# of human memory, in which a stability below zero makes no sense. So their weights are cut after
# each step. In Rust, with Burn, someone wrote
# ([burn#2428](https://github.com/tracel-ai/burn/issues/2428), October 2024)
#
# ```rust
# model = optim.step(lr, model, grads);
# model.w = Param::from_tensor(parameter_clipper(model.w.val()));
# ```
#
# and the training got worse, without an error. The function `new_parameter` below does the same in
# minigrad. minigrad's Adam normally raises an error when a Parameter is replaced;
# `on_orphan="ignore"` switches that off, to show what happens in other systems.

# %%
LOW, HIGH = -0.25, 0.25


def same_parameter(model):
    """Cut the values; the Parameters stay."""
    for p in model.parameters():
        p.map(lambda value: value.clip(LOW, HIGH))


def new_parameter(model):
    """Put the cut values into new Parameters: `model.w = Parameter(clip(model.w))`."""
    for layer in (model[0], model[2]):
        for name in ("weight", "bias"):
            cut = getattr(layer, name).detach().clip(LOW, HIGH)
            setattr(layer, name, mg.nn.Parameter(cut))


def clipped_training(clip, by_object, steps=80):
    """Train with Adam, and clip after each step."""
    model = network()
    known = model.parameters() if by_object else model
    adam = mg.optim.Adam(known, learning_rate=0.01, on_orphan="ignore")
    return train(model, adam, steps, afterwards=clip)


def typical_move(run):
    """Return the median of how far the weights have moved in the last step of a run."""
    return float(np.median(np.abs(np.concatenate([move.ravel() for move in run[1].values()]))))


runs = {"same Parameters": clipped_training(same_parameter, by_object=False)}
print(
    f"same Parameters: the typical move in step 80 is {typical_move(runs['same Parameters']):.5f}"
)

# %% [markdown]
# For the same weights, `same_parameter` and `new_parameter` leave the same numbers in the model.
# They differ only in the *objects* that hold these numbers.
#
# **Predict.** The learning rate is 0.01. With the same Parameters, the typical weight moves in step
# 80 by the distance printed above. In the next run, the Parameters are new after each step, and
# state is kept by id. How far does the typical weight move there?

# %% tags=["prediction"]
typical = predict("08.typical", "How far does the typical weight move in step 80?")
typical

# %%
BY_ID, BY_OBJECT = "new ones, state by id (as in Burn)", "new ones, by object (as in PyTorch)"
runs[BY_ID] = clipped_training(new_parameter, by_object=False)
runs[BY_OBJECT] = clipped_training(new_parameter, by_object=True)
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
for name, (losses, moves) in runs.items():
    sizes = np.abs(np.concatenate([move.ravel() for move in moves.values()]))
    line = left.plot(losses, label=name)[0]
    right.hist(sizes, bins=np.linspace(0, 0.011, 45), alpha=0.6, color=line.get_color(), label=name)
    at_rate = np.mean(np.abs(sizes - 0.01) < 1e-5)
    print(f"{name:<36} loss {losses[-1]:.3f}; {at_rate:.1%} of the weights moved by 0.01")
left.set(xlabel="step", ylabel="loss", title="The loss")
right.set(xlabel="how far a weight moves in step 80", ylabel="number of weights", yscale="log")
right.set(title="The last step")
left.legend(fontsize=8)
left.grid(alpha=0.3)
plt.show()
typical.reveal(typical_move(runs[BY_ID]), factor=1.2)

# %% [markdown]
# **What to see.** The same line of code fails in two ways. *By id* (orange), each step meets ids
# that it has never seen, so Adam starts anew in every step. In its first step, Adam divides each
# gradient by its own size, so only the sign is left, times the learning rate. **Practically every
# weight moves by 0.01**, up or down: each step is a step of sign-SGD. The loss still falls, here
# almost as far, so nobody looks for a bug: it takes the right picture to see it. *By object*
# (green), the optimizer still holds the old Parameters. After the first step the model no longer
# uses them, so no gradient reaches them: nothing moves, nothing is learned (the loss differs only
# as the batches do), and there is no error.
#
# The next picture shows which ids a model and its optimizer hold. Adam counts the steps of each
# Parameter, `t`; this count is a part of the state.


# %%
class One(mg.nn.Module):
    """A model with one weight."""

    def __init__(self):
        self.w = mg.nn.Parameter([2.0])

    def forward(self, value):
        """Return the square of the distance of w * value from 1."""
        return ((self.w * value - 1.0) ** 2).sum()


def who_knows_whom(by_object):
    """Return what is known at four moments: at first, a step, w replaced, another step."""
    model = One()
    known = model.parameters() if by_object else model
    adam = mg.optim.Adam(known, learning_rate=0.1, on_orphan="ignore")
    found = []

    def note(moment):
        used = {name: p.id for name, p in model.named_parameters()}
        steps = {n: f"t = {int(s['step'].item())}" for n, s in adam.state.items()}
        found.append((moment, used, [p.id for p in adam.parameters], steps))

    note("at first")
    for moment in ("one step", "another step"):
        model(mg.variable(3.0)).backward()
        adam.step()
        adam.zero_grad()
        note(moment)
        if moment == "one step":
            model.w = mg.nn.Parameter(model.w.detach().clip(-1.0, 1.0))
            note("w is replaced")
    return found


moments = [
    (way, *moment)
    for way, by_object in (("by id", False), ("by object", True))
    for moment in who_knows_whom(by_object)
]


def draw_moment(axis, number):
    """Draw one of the moments."""
    way, moment, used, moved, state = moments[number]
    draw_owners(axis, used, moved, state, f"{way}: {moment}")


scrub(
    draw_moment,
    list(range(len(moments))),
    label="moment",
    show=[1, 2, 3, 5, 6, 7],
    width=3.2,
    height=2.1,
)

# %% [markdown]
# **What to see.** Each row of boxes is one id. In the left pictures, all is well: the model uses
# the Parameter, `step()` updates it, and there is state for it. In the middle pictures, `w` has
# been replaced. The right pictures show one more step. *By id*, `step()` finds the new Parameter
# but no state for it, so `t` is 1 again. *By object*, `step()` is there for one Parameter, the
# model uses another, and this never ends.

# %% [markdown]
# > **What helps in Burn** is `param.map(f)`, which keeps the id. Burn also used to lose all state
# > whenever training resumed from a checkpoint, because the parameters got new ids
# > ([burn#5130](https://github.com/tracel-ai/burn/issues/5130), fixed since).
#
# minigrad keys state by id, like Burn. But it knows when a Parameter is no longer part of its
# model, and then it raises an error:

# %%
model = One()
adam = mg.optim.Adam(model, learning_rate=0.1)
model(mg.variable(3.0)).backward()
adam.step()
model.w = mg.nn.Parameter(model.w.detach().clip(-1.0, 1.0))
try:
    adam.step()
except mg.errors.OrphanParameterError as error:
    print(type(error).__name__, error, sep="\n")

# %% [markdown]
# **Write** `clip_weights_` so that no state is lost: the objects, ids and arrays stay the same, and
# only the numbers change. (In PyTorch: `with torch.no_grad(): p.clamp_(low, high)`.)

# %% tags=["exercise"]
check("08.clip_weights_")

# %% [markdown]
# ## 6. Checkpoints: by name, not by place
#
# A training run is saved today and goes on tomorrow, in another process. Weights alone are not
# enough: the momentum belongs to the run, too. Under what should it be saved? Tomorrow's parameters
# have other ids, and after a change of the model's code they may stand at other places. Their names
# stay.
#
# **Write** `state_dict` and `load_state_dict`, by name. A checkpoint is a copy: later steps must
# not change it, neither after saving nor after loading.

# %% tags=["exercise"]
check("08.state_dict")

# %%
needs("08.state_dict")
mine = load("08")
model = {"w": Parameter(np.ones(2)), "b": Parameter(np.zeros(2))}
sgd = mine.SGD(list(model.values()), learning_rate=0.1, momentum=0.9)
sgd.state = {model["w"].id: {"momentum": np.array([0.5, -0.5])}}
print("in the optimizer:", sgd.state)
print("in a checkpoint: ", mine.state_dict(model, sgd))

# %% tags=["exercise"]
check("08.load_state_dict")

# %% [markdown]
# Now for a whole training run. In this section and the next, the engine only computes gradients.
# Everything after `backward()` is yours: plain Parameters and your SGD. This is a model of that
# kind, and its training loop:


# %%
def layers(order):
    """Return a model of plain Parameters, declared in this order; the values go by name."""
    random, values = np.random.default_rng(3), {}
    for name, n_in, n_out in (("first", 64, 24), ("second", 24, 24), ("third", 24, 24)):
        values[name] = random.normal(size=(n_in, n_out)) / np.sqrt(n_in)
    values["head"] = random.normal(size=(24, 10)) / np.sqrt(24)
    return {f"{name}.weight": Parameter(values[name]) for name in order}


def backward(model, targets):
    """Let the engine compute the gradients of a plain model; return the loss."""
    known = {name: mg.variable(p.values, requires_grad=True) for name, p in model.items()}
    h = mg.variable(x[:256].astype(np.float64))
    for name in ("first", "second", "third"):
        h = mg.tanh(h @ known[f"{name}.weight"])
    loss = mg.cross_entropy(h @ known["head.weight"], mg.variable(targets))
    loss.backward()
    for name, p in model.items():
        p.grad = known[name].grad.numpy().copy()
    return loss.item()


def train_plain(model, sgd, steps, targets=y[:256]):
    """Train a plain model with your SGD; return the losses."""
    losses = []
    for _ in range(steps):
        losses.append(backward(model, targets))
        sgd.step()
    return np.array(losses)


ORDER = ("first", "second", "third", "head")
REORDERED = ("first", "third", "second", "head")

# %% [markdown]
# The run is saved after 15 steps. Then somebody tidies up the model's code: two lines of `__init__`
# change places, and nothing else changes. The weights are loaded by name, as in PyTorch and
# minigrad. The momentum is loaded *by place*: the second saved array goes to the second parameter.
#
# **Predict.** Do the next steps raise an error, or go on in silence?

# %% tags=["prediction"]
by_place = predict(
    "08.places",
    "State loaded by place into a reordered model: what happens?",
    choices=("error", "silence"),
)
by_place

# %%
needs("08.load_state_dict", "08.state_dict", "08.SGD", "08.sgd_update")
mine = load("08")
numbers = {"learning_rate": 0.1, "momentum": 0.9}


def resume(how):
    """Train, save, load into the reordered model, and go on; return the losses afterwards."""
    model = layers(ORDER)
    sgd = mine.SGD(list(model.values()), **numbers)
    train_plain(model, sgd, 15)
    if how == "went on":
        return train_plain(model, sgd, 30)
    saved = mine.state_dict(model, sgd)
    fresh = layers(REORDERED)
    for name, p in fresh.items():
        p.values[...] = model[name].values
    if how == "by place":  # what was saved second goes to the second
        saved = dict(zip(fresh, saved.values(), strict=True))
    fresh_sgd = mine.SGD(list(fresh.values()), **numbers)
    if how != "without state":
        mine.load_state_dict(fresh, fresh_sgd, saved)
    return train_plain(fresh, fresh_sgd, 30)


resumed = {how: resume(how) for how in ("went on", "by name", "by place", "without state")}
figure, axis = plt.subplots(figsize=(8, 4))
axis.plot(resumed["went on"], linewidth=5, alpha=0.35, label="never stopped")
axis.plot(resumed["by name"], color="black", linewidth=1, label="resumed, state by name")
axis.plot(resumed["by place"], color="C3", label="resumed, state by place")
axis.plot(resumed["without state"], "--", color="C1", label="resumed, no state")
axis.set(xlabel="steps after the checkpoint", ylabel="loss", yscale="log")
axis.set_title("The same weights, four futures")
axis.legend()
axis.grid(alpha=0.3)
plt.show()
same = resumed["by name"].tobytes() == resumed["went on"].tobytes()
print("by name: all 30 losses as if it had never stopped, bit for bit:", same)
by_place.reveal("silence" if np.isfinite(resumed["by place"]).all() else "error")

# %% [markdown]
# **What to see.** The thin line lies inside the broad one: with its state loaded by name, the
# training goes on as if it had never stopped. Orange lost its momentum and has to build it up
# again. In red, the momentum of two layers is swapped, and that of the other two is right, so red
# is worse than the thin line but still better than orange. The shapes fit, so there is no error,
# and it is easy to blame bad luck for a loss that is a little worse after a restart.

# %% [markdown]
# > **Real bug: open since 2017.** `torch.optim` saves state under *places* in the list of
# > parameters. [PyTorch issue 1489](https://github.com/pytorch/pytorch/issues/1489) (May 2017, open
# > when this was written) reports what you have just seen: if the order of the layers in a model's
# > `__init__` changes, the state goes to the wrong layers. If shapes differ, `step()` fails later,
# > far from the cause. If they do not, the training goes on. Here is the bug in a few lines:

# %%
old_order, new_order = ["a", "b"], ["b", "a"]
velocity = {"a": np.array([1.0, 1.0]), "b": np.array([-5.0, -5.0])}
saved_by_place = dict(enumerate(velocity[name] for name in old_order))
loaded = {name: saved_by_place[place] for place, name in enumerate(new_order)}
for name in new_order:
    print(f"{name}: momentum was {velocity[name]}, is {loaded[name]} after loading")

# %% [markdown]
# There is no error, because both arrays have the shape (2,). Your function goes by name, and so
# does `optimizer.load_state_dict` in minigrad. If something does not fit, the error says which
# name.

# %% [markdown]
# ## 7. Replacing a parameter on purpose
#
# Sometimes you want a new Parameter: a head for other classes, a layer that grew, weights in
# another precision. Then somebody has to decide about the old state. *Keep* it if the new values
# continue the old ones. *Drop* it if they do not: the old momentum would push the new weights in a
# direction that has nothing to do with them. minigrad asks you to say which:
# `optimizer.replace(old, new, state="keep")` or `"drop"`.
#
# **Write** `replace_parameter`. Three places hold the old one: the model, the optimizer's list and
# its state.

# %% tags=["exercise"]
check("08.replace_parameter")

# %%
needs("08.replace_parameter", "08.SGD", "08.sgd_update")
mine = load("08")


def replaced(new_task, keep_state):
    """Train, replace the head, and go on; return the losses afterwards."""
    model = layers(ORDER)
    sgd = mine.SGD(list(model.values()), learning_rate=0.1, momentum=0.95)
    train_plain(model, sgd, 25)
    values, targets = model["head.weight"].values.copy(), y[:256]
    if new_task:  # the images stay, the labels are others: the head begins anew
        values = np.random.default_rng(5).normal(size=values.shape) / np.sqrt(24)
        targets = (targets + 3) % 10
    mine.replace_parameter(model, sgd, "head.weight", values, keep_state)
    return train_plain(model, sgd, 16, targets)


figure, axes = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
titles = ("the same values, in another array", "new values, for other labels")
for axis, new_task, title in zip(axes, (False, True), titles, strict=True):
    axis.plot(replaced(new_task, True), "o-", markersize=4, label="state kept")
    axis.plot(replaced(new_task, False), "s--", markersize=4, label="state dropped")
    axis.set(xlabel="step after the replacement", ylabel="loss", title=f"A new head: {title}")
    axis.legend()
    axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** On the left, the new Parameter continues the old one, and the old momentum helps:
# blue is ahead. On the right, the head's old momentum pushes the new weights towards the old
# labels: orange is ahead until that momentum has faded. Neither answer is always right; that is why
# minigrad asks.

# %% [markdown]
# ## 8. Your step runs the engine
#
# `mg.use` puts your `sgd_update` and your `clip_grad_norm_` into minigrad, in place of its fused
# kernels. The optimizer still finds the parameters and keeps the state.


# %%
def train_clipped(epochs=5):
    """Train with momentum, weight decay and clipped gradients; return losses, norms, accuracy."""
    model = network()
    sgd = mg.optim.SGD(model, learning_rate=0.1, momentum=0.9, weight_decay=1e-3)
    losses, norms = [], []
    for epoch in range(epochs):
        for rows, targets in mg.data.batches(x, y, batch_size=64, seed=epoch):
            loss = mg.cross_entropy(model(mg.variable(rows)), mg.variable(targets))
            loss.backward()
            norms.append(mg.optim.clip_grad_norm_(model.parameters(), 0.5))
            sgd.step()
            sgd.zero_grad()
            losses.append(loss.item())
    with mg.no_grad():
        right = model(mg.variable(x_new)).numpy().argmax(axis=1) == y_new
    return np.array(losses), np.array(norms), right.mean()


losses, norms, accuracy = train_clipped()
print(f"minigrad's own: loss {losses[-1]:.4f}, {accuracy:.1%} of unseen digits read correctly")

# %%
needs("08.sgd_update", "08.clip_grad_norm_")
mine = load("08")
calls = {"sgd_update": 0, "clip_grad_norm_": 0}


def my_update(*arguments):
    """Count the call, and let your function answer it."""
    calls["sgd_update"] += 1
    return mine.sgd_update(*arguments)


def my_clip(gradients, max_norm):
    """Count the call, and let your function answer it."""
    calls["clip_grad_norm_"] += 1
    return mine.clip_grad_norm_(gradients, max_norm)


with mg.use(update=my_update, clip_grad_norm_=my_clip):
    my_losses, my_norms, my_accuracy = train_clipped()
print(f"with yours:     loss {my_losses[-1]:.4f}, {my_accuracy:.1%} read correctly")
print(f"your functions were called {calls['sgd_update']} and {calls['clip_grad_norm_']} times")

# %%
needs("08.sgd_update", "08.clip_grad_norm_")
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
for axis, reference, own, what in (
    (left, losses, my_losses, "loss"),
    (right, norms, my_norms, "norm of all gradients before clipping"),
):
    axis.plot(reference, linewidth=4, alpha=0.4, label="minigrad's own step")
    axis.plot(own, linewidth=1, color="black", label="yours")
    axis.set(xlabel="training step", ylabel=what)
    axis.legend()
    axis.grid(alpha=0.3)
right.axhline(0.5, color="C3", linewidth=1)
plt.show()

# %% [markdown]
# **What to see.** On both sides the two lines are the same. The right side shows what
# `clip_grad_norm_` returned: wherever the norm is above the red line, the gradients were made
# shorter. Plot this first when a training run becomes unstable. To make this plot possible, the
# function returns the norm *before* clipping.

# %%
needs("08.sgd_update", "08.clip_grad_norm_")
for name, n_calls in calls.items():
    print(light(f"08.{name}", mine=my_losses, reference=losses, calls=n_calls))

# %% [markdown]
# ## 9. Bug hunt
#
# At the end of your exercise file are four small functions and `fine_tune`, which uses them. A
# model is trained; then its body is frozen, and only the head is tuned further. Here are the
# weights of the body over time, with the functions of *your* file:

# %%
mine = load("08")
FREEZE, N = 15, 60
random = np.random.default_rng(2)
gradients = [
    {"body.w": np.array([-1.0, 1.0]) + random.normal(size=2) / 3, "head.w": random.normal(size=2)}
    for _ in range(N)
]
body = []
for n in range(N + 1):
    model = mine.tiny_model()
    mine.fine_tune(model, gradients[:n], "body", FREEZE)
    body.append(model["body.w"].values.copy())
figure, axis = plt.subplots(figsize=(8, 3.6))
axis.plot(body, label=["body.w[0]", "body.w[1]"])
axis.axvline(FREEZE, color="gray", linewidth=0.8)
axis.set(xlabel="step", ylabel="weight of the body")
axis.set_title(f"The body is frozen from step {FREEZE} on")
axis.legend()
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** To the right of the grey mark, both lines should be flat. If yours are not, they
# first go on in their old direction, and later they drift back towards 0. You know these two
# effects from section 3. Which of the four functions causes them? Write its name into `BUG`, then
# repair it.

# %% tags=["exercise"]
check("08.fine_tune")

# %% [markdown]
# > **Also a real bug.** OCANNL, a framework in OCaml, had it in 2026
# > ([ocannl#673](https://github.com/ahrefs/ocannl/issues/673)): its step updated all parameters of
# > the loss, frozen ones included, and `g + weight_decay * w` with `g = 0` made frozen weights
# > decay at every step. You can reproduce it in PyTorch: freeze a layer in mid-training by
# > `requires_grad_(False)`, and go on with `zero_grad(set_to_none=False)`. PyTorch's optimizers
# > look at whether `p.grad` is None, not at `requires_grad`.

# %% [markdown]
# ## Where you are
#
# - With momentum or Adam, an optimizer's state is as large as the model or larger; a checkpoint
#   without it is incomplete.
# - State needs a key. An object as the key fails when it is replaced, an id when the parameter gets
#   a new one, a place when two lines change places. None of these is an error unless the optimizer
#   checks.
# - Change *values*, keep *Parameters*. If you do replace a Parameter, say what happens to its
#   state.
# - No gradient and a gradient of zeros are two things.
#
# **Next:** lesson 09. Adam keeps two numbers for each weight, and counts its steps. What is the
# count for, and why is Adam's first step nothing but a sign?

# %%
from minigrad.course.predictions import summary

print(summary("08"))

# %% tags=["exercise"]
check("08")
