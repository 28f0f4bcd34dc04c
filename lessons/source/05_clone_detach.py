# %% [markdown]
# # 05 · Whose bytes, and whose history?
#
# **You need** lesson 04, or to know what a gradient and a graph are. **It takes** about 165
# minutes; after section 4 is a good place for a break. **At the end** you know what `detach`,
# `clone`, a copy and a view share, you have written a copy-on-write buffer, and it runs under
# minigrad's clones while a network learns digits. Next: lesson 06, why memory grows.
#
# Your code goes into `exercises/05_clone_detach.py`. It works on small objects: a `Box` is like a
# Variable, but has only a `storage` and a `node`.

# %% tags=["live"]
from minigrad.course import watch

watch("05")  # what you save in exercises/05_clone_detach.py is graded here at once

# %%
import matplotlib.pyplot as plt
import numpy as np
from IPython.display import display

import minigrad as mg
from minigrad.course import check, hint, light, load, needs, predict, scrub
from minigrad.course.l05_clone_detach.drawing import draw_bytes, draw_memory, draw_table, look
from minigrad.course.objects import Box, Node, Storage

plt.style.use("minigrad.course.house")

# %% [markdown]
# ## 1. Four ways to say "the same numbers"
#
# You have a Variable `h` somewhere in a network, and you want its numbers for something else: to
# log them, to keep them, or to feed them to another network. You could write `h.detach()`,
# `h.clone()` or `h[:]`, or copy them with NumPy. All four show the same numbers. Does it matter
# which one you take?

# %%
x = mg.variable([1.0, 2.0, 3.0], requires_grad=True, name="x")
h = x * 2
d, c, v = h.detach(), h.clone(), h[:]
for name, variable in {"h": h, "h.detach()": d, "h.clone()": c, "h[:]": v}.items():
    print(f"{name:<12}", variable)

# %% [markdown]
# When they are printed, only the last word differs, and `h.detach()` has none. Now write into one
# of them.
#
# **Predict.** `h` is `[2, 4, 6]`, and `d = h.detach()`. We add 100 to `d`, in place. What is the
# first number of `h` then?

# %% tags=["prediction"]
through = predict("05.through", "100 is added to d = h.detach() in place. What is h[0]?")
through

# %%
h = mg.variable([1.0, 2.0, 3.0], requires_grad=True) * 2
d = h.detach()
d.add_(100.0)
through.reveal(h.tolist()[0], factor=1.001)

# %% [markdown]
# What happens to a clone? The next picture shows where the engine keeps each of them, before and
# after such a write.


# %%
def before_and_after():
    """Write into a detached Variable and into a clone; look at the memory before and after."""
    h = mg.variable([1.0, 2.0, 3.0], requires_grad=True) * 2
    d, c = h.detach(), h.clone()
    seen = [look(h=h, d=d, c=c)]
    d.add_(100.0)
    seen.append(look(h=h, d=d, c=c))
    return seen


figure, axes = plt.subplots(1, 2, figsize=(9, 2.8), layout="constrained")
titles = ("d = h.detach(), c = h.clone()", "after d.add_(100)")
for axis, seen, title in zip(axes, before_and_after(), titles, strict=True):
    draw_memory(axis, seen, title)
    axis.set(xlabel="names, their nodes, their memory (orange: shared)", yticks=[], frame_on=False)
plt.show()

# %% [markdown]
# **What to see.** Before the write, all three names show *one* piece of memory; the clone has
# copied nothing yet. The write goes to the memory that `h` and `d` share, so `h` changes, too. The
# clone must not change, so at this moment it gets memory of its own.
#
# Beside each name is its *node*, the operation that made it. The nodes have nothing to do with the
# arrows: `d` shows the bytes of `h` and has no node; `c` shows other bytes and has one. So there
# are **two questions** to ask about a Variable, and the answer to one says nothing about the other:
#
# - *Whose bytes?* Which memory does it show? That decides who sees a write, and which memory stays
#   alive.
# - *Whose history?* Which node made it? That decides where a gradient goes from here.

# %% [markdown]
# ## 2. `detach` and `clone`, each in two lines
#
# A `Box` holds these two answers: `box.storage` (its bytes, with a counter of writes) and
# `box.node` (its history; `None` if no gradient flows).

# %%
leaf = Box(Storage(np.array([1.0, 2.0, 3.0])), Node("leaf"))
doubled = Box(Storage(leaf.storage.data * 2), Node("mul", (leaf.node,)))
print(doubled)

# %% [markdown]
# **Write** `detach`: the same bytes, no history. Then **write** `clone`: bytes of its own, and a
# history that leads back to the original. For now let `clone` copy at once; in section 5 you write
# a buffer that copies later.

# %% tags=["exercise"]
check("05.detach")

# %% tags=["exercise"]
check("05.clone")

# %% [markdown]
# What is the history for? `a.detach() * a` and `a.clone() * a` both have the value $a^2$, which is
# 9 at `a = 3`.
#
# **Predict.** What is the gradient of `a` in `a.clone() * a` at `a = 3`?

# %% tags=["prediction"]
product = predict("05.product", "What is the gradient of a in a.clone() * a at a = 3?")
product

# %%
slopes = {}
for name in ("detach", "clone"):
    a = mg.variable(3.0, requires_grad=True, name="a")
    y = getattr(a, name)() * a
    print(f"a.{name}() * a")
    display(mg.viz.graph(y))
    y.backward()
    slopes[name] = a.grad.item()
print(slopes)
product.reveal(slopes["clone"], factor=1.001)

# %% [markdown]
# **What to see.** With `clone` there are two ways from the output back to `a`, and each brings 3.
# With `detach`, one of the two ends in a dashed box: the engine treats that factor as a constant,
# and the gradient is 3. There is no error and no warning, because both are right answers, to
# different questions. (A `detach()` on purpose is a *stop-gradient*: target networks,
# straight-through estimators and contrastive losses need it.)
#
# Now your own two functions, on Boxes. A gradient arrives at the result; where does it go?

# %%
needs("05.detach", "05.clone")
mine = load("05")


def way_back(box):
    """Return the ops on the way from a Box back to its leaf."""
    node, ops = box.node, []
    while node is not None:
        ops.append(node.op)
        node = node.inputs[0] if node.inputs else None
    return " -> ".join(ops) or "nowhere"


for name in ("detach", "clone"):
    made = getattr(mine, name)(doubled)
    same = made.storage is doubled.storage
    print(f"{name + ':':<8} same storage: {same!s:<6} a gradient goes: {way_back(made)}")

# %% [markdown]
# ## 3. The truth table
#
# Here are five ways to get "the same numbers" as `h = x * 2`, and four questions about each:
#
# 1. *before*: does it have a byte in common with `h`, before anybody writes?
# 2. *after*: does it still have one, after a write to it?
# 3. *graph*: was a node recorded for it, so that it is part of the graph?
# 4. *gradient*: does `x` get a gradient from it?
#
# **Predict** all four for each. The letters on a button are the four answers: `ynnn` says yes to
# the first question, and no to the others.

# %% tags=["prediction"]
ASKED = "before, after, graph, gradient?"
ROWS = ("nnnn", "nnyy", "ynnn", "ynyy", "yynn", "yyyy")
detached = predict("05.detach", f"h.detach(): {ASKED}", choices=ROWS)
cloned = predict("05.clone", f"h.clone(): {ASKED}", choices=ROWS)
both = predict("05.both", f"h.detach().clone(): {ASKED}", choices=ROWS)
copied = predict("05.copy", f"mg.variable(h.numpy().copy()): {ASKED}", choices=ROWS)
viewed = predict("05.view", f"h[:]: {ASKED}", choices=ROWS)
display(detached, cloned, both, copied, viewed)

# %% [markdown]
# The engine has the answers: `mg.memory.is_alias(h, r)` compares addresses, `r.node` is the node,
# and `backward()` computes the gradient.

# %%
WAYS = {
    "h.detach()": lambda h: h.detach(),
    "h.clone()": lambda h: h.clone(),
    "h.detach().clone()": lambda h: h.detach().clone(),
    "copy by NumPy": lambda h: mg.variable(h.numpy().copy()),
    "view, h[:]": lambda h: h[:],
}


def measure(way):
    """Return the four answers for one way to get the same numbers."""
    x = mg.variable([1.0, 2.0, 3.0], requires_grad=True)
    h = x * 2
    result = way(h)
    before = mg.memory.is_alias(h, result)
    node = result.node.op if result.node is not None else ""
    if result.requires_grad:
        result.sum().backward()
    gradient = x.grad is not None
    with mg.no_grad():
        result.add_(100.0)
    return before, mg.memory.is_alias(h, result), node, gradient


truth = {name: measure(way) for name, way in WAYS.items()}
figure, axis = plt.subplots(figsize=(9, 3.4), layout="constrained")
draw_table(axis, ("same bytes before", "same bytes after", "node", "gradient to x"), truth)
axis.set(xlabel="measured just now")
axis.set_ylabel("how it was made")
plt.show()

# %%
answers = ["".join("ny"[bool(answer)] for answer in row) for row in truth.values()]
detached.reveal(answers[0])
cloned.reveal(answers[1])
both.reveal(answers[2])
copied.reveal(answers[3])
viewed.reveal(answers[4])
display(detached, cloned, both, copied, viewed)

# %% [markdown]
# **What to see.** `detach` and a view both share bytes for ever, but only the view leads back to
# `x`. `clone()` and `detach().clone()` both share bytes until somebody writes, but only `clone()`
# leads back to `x`. So the left half of the table does not determine the right half: they are two
# questions.
#
# Other systems answer these questions as follows:
#
# | | PyTorch | Burn |
# |---|---|---|
# | `detach`: bytes | shared, and the counter of writes too | shared |
# | `detach`: history | none, and wants no gradient | none, but a leaf **wants one again** |
# | `clone`: bytes before a write | its own: copied at once | shared, one reference more |
# | `clone`: bytes after a write | its own | its own |
# | `clone`: history | a node of its own, `CloneBackward0` | **the very same node** |
# | gradient that arrives at a clone | goes on to the source | is the source's |
# | a view: bytes | shared, and the counter of writes too | nobody can tell |
#
# Nobody can tell, because Burn has no operation that writes in place. If an operation's input has
# no other owner, its output may reuse the input's memory; otherwise it takes new memory. So in Burn
# "after a write" means "after an operation that made something new". In PyTorch a clone's own
# `.grad` stays `None`, because a clone is not a leaf: the gradient only passes through it.

# %% [markdown]
# > **The same two words.** The two rows with bold text surprise people who come from PyTorch: in
# > Burn, a detached leaf wants a gradient again, and a clone is the same node
# > ([burn#2628](https://github.com/tracel-ai/burn/issues/2628)). In PyTorch and here, a copy that
# > is independent in both ways is `detach().clone()`.
#
# Here are Burn's two rules on Boxes, next to yours:


# %%
def burn_detach(box):
    """Detach as Burn does: what was a leaf becomes a leaf of its own."""
    was_leaf = box.node is not None and box.node.op == "leaf"
    return Box(box.storage, Node("leaf") if was_leaf else None)


def burn_clone(box):
    """Clone as Burn does, history only: the very same node."""
    return Box(box.storage, box.node)


needs("05.clone", "05.detach")
mine = load("05")
for name, box in {"a leaf": leaf, "x * 2": doubled}.items():
    yours, burns = mine.detach(box), burn_detach(box)
    print(f"detach of {name}: wants a gradient?  yours {yours.node is not None},", end=" ")
    print(f"Burn's {burns.node is not None}")
print("clone has a node of its own?  yours", mine.clone(doubled).node is not doubled.node, end=", ")
print("Burn's", burn_clone(doubled).node is not doubled.node)

# %% [markdown]
# ## 4. Do these two share a byte?
#
# Everything so far depended on `is_alias`. How can it know whether two arrays share memory? The
# obvious way is to compare where they begin and end.
#
# **Predict.** `x` has twelve numbers. Do `x[::2]` and `x[1::2]` have a byte in common?

# %% tags=["prediction"]
interleaved = predict(
    "05.interleaved",
    "Do x[::2] and x[1::2] have a byte in common?",
    choices=("yes", "no"),
)
interleaved

# %%
whole = np.arange(12.0)
views = {"x[::2]": whole[::2], "x[1::2]": whole[1::2], "x[::3]": whole[::3], "x[7:]": whole[7:]}
figure, axis = plt.subplots(figsize=(9, 2.8), layout="constrained")
draw_bytes(axis, whole, views)
axis.set(xlabel="byte of x", ylabel="view")
axis.set_title("Which bytes a view shows, and the range that it spans", fontsize=10)
plt.show()

# %% [markdown]
# **What to see.** The grey line of a view goes from its first byte to its last. The lines of the
# first two views overlap almost entirely, but their coloured pieces overlap nowhere. `x[::3]` has
# bytes in common with both of them. An engine that compared ranges would make copies without need,
# or would forbid harmless writes.
#
# **Write** `is_alias`, exact for any strides. Element `[i, j]` begins at the start of the array
# plus `i` strides of the first axis plus `j` strides of the second.

# %% tags=["exercise"]
check("05.is_alias")

# %%
needs("05.is_alias")
mine = load("05")
odd_even = mine.is_alias(whole[::2], whole[1::2])
interleaved.reveal("yes" if odd_even else "no")

# %% [markdown]
# The next cell compares your function with the engine's on pairs of random slices. The engine's
# `mg.memory.is_alias` is exact up to two axes. Beyond that it sometimes says yes when the answer is
# no: an exact answer for many axes is a hard problem, and an engine, which asks before every write,
# has no time for it.

# %%
needs("05.is_alias")
random = np.random.default_rng(5)
agreed = met = ranges_met = 0
for _ in range(300):
    parts = []
    for _ in range(2):
        start, step = random.integers(0, 12), random.integers(1, 5)
        parts.append(slice(int(start), int(random.integers(start, 25)), int(step)))
    numbers = mg.zeros((24,))
    one, other = (numbers[part] for part in parts)
    plain = np.zeros(24)
    yours = mine.is_alias(*(plain[part] for part in parts))
    agreed += yours == mg.memory.is_alias(one, other)
    met += yours
    spans = [range(24)[part] for part in parts]
    ranges_met += all(spans) and spans[0][0] <= spans[1][-1] and spans[1][0] <= spans[0][-1]
print(f"{agreed} of 300 answers agree with the engine's")
print(f"{ranges_met} pairs have ranges that overlap, {met} have a byte in common")

# %% [markdown]
# ## 5. Copy later, perhaps never
#
# `clone` promises bytes of its own. But as long as nobody writes, nobody can see a difference. So
# minigrad, like Burn, only counts: a clone raises the number of owners of a buffer, and a write to
# a buffer with several owners copies it first. This is **copy-on-write**. PyTorch's `clone` copies
# at once; its lazy clone is a private function, `torch._lazy_clone`.
#
# **Predict.** `b = a.clone()` and `c = b.clone()`. Then somebody writes to `b`, `a` and `c`, in
# this order, twice to each. How many copies are made?

# %% tags=["prediction"]
n_copies = predict("05.copies", "Three owners, each writes twice: how many copies?")
n_copies

# %% [markdown]
# Move the slider through these steps. It shows where the engine keeps the three at each step.


# %%
def story():
    """Run forks and writes in the engine; return titles and what the memory looked like."""
    a = mg.variable([1.0, 2.0, 3.0])
    people, titles, states = {"a": a}, ["a = mg.variable([1, 2, 3])"], []

    def remember(title):
        titles.append(title)
        states.append(look(**people))

    states.append(look(**people))
    people["b"] = a.clone()
    remember("b = a.clone()")
    people["c"] = people["b"].clone()
    remember("c = b.clone()")
    for name, number in (("b", 10), ("b", 10), ("a", 30), ("a", 30), ("c", 70), ("c", 70)):
        people[name].add_(float(number))
        remember(f"{name}.add_({number})")
    return titles, states


titles, states = story()
places = list(dict.fromkeys(address for state in states for address, _, _ in state.values()))


def draw_step(axis, step):
    """Draw the memory after a step."""
    n = len({address for state in states[: step + 1] for address, _, _ in state.values()}) - 1
    title = f"{titles[step]}     copies so far: {n}"
    draw_memory(axis, states[step], title, places, nodes=False)


scrub(
    draw_step,
    list(range(len(states))),
    label="step",
    show=[2, 3, 5, 7],
    columns=2,
    width=4.4,
    height=2.4,
)

# %% [markdown]
# **What to see.** The two clones make no copy. The first write to `b` makes one, so that `b` has
# memory of its own; the second write to `b` makes none. Then the first write to `a` makes a copy.
# After that, only `c` shows the first memory, which was made for `a`. Nobody else would see a write
# to it, so `c` needs no copy.

# %%
n_copies.reveal(len(places) - 1, factor=1.001)

# %% [markdown]
# What is copy-on-write good for? The next cell makes four clones of one megabyte, and writes to two
# of them. The plot shows the bytes that the engine has in use after each line, with `clone` and
# with copies made at once.


# %%
def bytes_by_line(copy):
    """Return what is in use after each line, in MB."""
    start, used = mg.memory.stats()["current_bytes"], []
    all_of_them = [mg.zeros((250_000,))]
    used.append(mg.memory.stats()["current_bytes"] - start)
    for _ in range(4):
        all_of_them.append(copy(all_of_them[0]))
        used.append(mg.memory.stats()["current_bytes"] - start)
    for written in all_of_them[1:3]:
        written.add_(1.0)
        used.append(mg.memory.stats()["current_bytes"] - start)
    return np.array(used) / 1e6


lines = ["zeros", "copy 1", "copy 2", "copy 3", "copy 4", "write to 1", "write to 2"]
ways = {
    "clone(), on write": lambda x: x.clone(),
    "by NumPy, at once": lambda x: mg.variable(x.numpy().copy()),
}
figure, axis = plt.subplots(figsize=(8, 3.2), layout="constrained")
for k, (name, way) in enumerate(ways.items()):
    axis.bar(np.arange(7) + 0.4 * k - 0.2, bytes_by_line(way), width=0.38, label=name)
axis.set_xticks(range(7), lines)
axis.set(xlabel="after this line", ylabel="MB in use")
axis.legend()
axis.grid(axis="y", alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** Until somebody writes, the five Variables take one megabyte. Each of the two
# writes adds one more. Clones that nobody writes to take no memory. Copies made at once take all of
# it from the start.
#
# **Write** `CowBuffer`. Its central question is *who else shows this array?* The answer changes
# without a call to this buffer: when others fork, write, or are dropped.

# %% tags=["exercise"]
check("05.CowBuffer")

# %% [markdown]
# Here are the forks, and one write to each of the three, with your class. The picture is drawn from
# the arrays that your `read()` returns:

# %%
needs("05.CowBuffer")
mine = load("05")
a = mine.CowBuffer(np.array([1.0, 2.0, 3.0]))
b = a.fork()
c = b.fork()
pictures = {"two forks": look(a=a, b=b, c=c)}
for title, buffer, number in (("b has written", b, 10), ("a too", a, 30), ("c too", c, 70)):
    buffer.write()[:] += number
    pictures[title] = look(a=a, b=b, c=c)
rows = [address for seen in pictures.values() for address, _, _ in seen.values()]

figure, axes = plt.subplots(2, 2, figsize=(9, 4.4), layout="constrained")
for axis, (title, seen) in zip(axes.flat, pictures.items(), strict=True):
    draw_memory(axis, seen, title, list(dict.fromkeys(rows)), nodes=False)
    axis.set(xlabel="names and their memory", yticks=[], frame_on=False)
plt.show()

# %% [markdown]
# **What to see.** Each of the first two writes adds a row of memory. The third adds none: the arrow
# of `c` stays on the first row.

# %% [markdown]
# ## 6. The target network
#
# When do you need a copy that does not move? In Q-learning, a network is trained towards a value
# that it computes *itself*: the reward, plus its own value of the next state. If the goal moves
# with every step, the training can become unstable. So there is a second, frozen network, the
# **target**, and the values of the trained network are copied into it only now and then.
#
# **Write** `target_sync`: it copies the values, and the target's memory stays where it is.

# %% tags=["exercise"]
check("05.target_sync")

# %% [markdown]
# The example has five states in a row. Each step goes to the left or to the right, by chance, and
# the right end pays 1. The value of a state is the average payment from there; for the middle state
# it is 1/2. The trained network, called *online*, learns from the target, and is copied into it
# every 500 steps. In one run each of the two has its own memory. In the other, the target was set
# up by `target["v"] = online["v"]`.

# %%
needs("05.target_sync")
mine = load("05")


def learn(target, online, steps=5000):
    """Learn the values of a random walk; return both networks' value of the middle, by step."""
    random, seen = np.random.default_rng(3), []
    for step in range(steps):
        if step % 500 == 0:
            mine.target_sync(online, target)
        state = int(random.integers(5))
        after = state + int(random.choice([-1, 1]))
        inside = 0 <= after < 5
        wanted = target["v"].storage.data[after] if inside else float(after == 5)
        online["v"].storage.data[state] += 0.05 * (wanted - online["v"].storage.data[state])
        seen.append((online["v"].storage.data[2], target["v"].storage.data[2]))
    return np.array(seen)


def network():
    """Return a network that knows nothing yet."""
    return {"v": Box(Storage(np.zeros(5)))}


apart = learn(network(), network())
online = network()
aliased = learn({"v": online["v"]}, online)

figure, axes = plt.subplots(1, 2, figsize=(10, 3.4), sharey=True, layout="constrained")
for axis, seen, title in zip(axes, (apart, aliased), ("memory of its own", "aliased"), strict=True):
    axis.plot(seen[:, 0], label="online", linewidth=3, alpha=0.4)
    axis.plot(seen[:, 1], label="target", color="black", linewidth=1)
    axis.set(xlabel="step", ylabel="value of the middle state", title=f"target: {title}")
    axis.legend()
    axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** On the left the target is a staircase: it is flat for 500 steps, then it jumps to
# the online value. On the right the two lines are the same: there is no target network, although
# there are two dicts, two names, and a call of `target_sync` every 500 steps. Nothing raises an
# error, and this small problem is even learned sooner. So such a bug can live long.

# %% [markdown]
# > **Real bug: half a target network.** In July 2020, the deep Q-network of Stable-Baselines3 was
# > found to share a part with its own target ([pull request
# > 132](https://github.com/DLR-RM/stable-baselines3/pull/132)). Both networks used one object for
# > the layers that read the observation, the *feature extractor*. Only the layers after it were
# > separate. Here it is in ten lines:

# %%
mg.manual_seed(0)
extractor = mg.nn.Linear(4, 8)
online = mg.nn.Sequential(extractor, mg.nn.Tanh(), mg.nn.Linear(8, 2))
target = mg.nn.Sequential(extractor, mg.nn.Tanh(), mg.nn.Linear(8, 2))
target.load_state_dict(online.state_dict())
optimizer = mg.optim.SGD(online, learning_rate=0.5)
states_seen = mg.randn((16, 4))
promised = target(states_seen).numpy().copy()
online(states_seen).square().mean().backward()
optimizer.step()
moved = np.abs(target(states_seen).numpy() - promised).max()
print(f"one step of online, and the target's output moved by {moved:.3f}")
for (name, p), q in zip(online.named_parameters(), target.parameters(), strict=True):
    print(f"  {name:<9} same storage: {mg.memory.shares_storage(p, q)}")

# %% [markdown]
# The cure was to build an extractor for each network. In minigrad, `online.clone()` makes a frozen
# copy of the whole network, by copy-on-write. A similar bug is even more common, when a program
# means to *keep the best weights*. In PyTorch, `state_dict()` does not copy: it returns tensors
# that share the bytes of the parameters, so "the best" weights silently become the last. (One of
# many repairs is in the code of SHOT, a method for domain adaptation: `best = netF.state_dict()`
# became a `deepcopy`.) The next cell shows this bug, written with `detach`, beside minigrad's own
# `state_dict()`, which clones:

# %%
model = mg.nn.Linear(2, 1)
best_detached = {name: p.detach() for name, p in model.named_parameters()}
best = model.state_dict()
first = model.weight.tolist()
with mg.no_grad():
    model.weight.add_(100.0)  # training goes on
print("the best weights were  ", first)
print("kept by detach         ", best_detached["weight"].tolist())
print("kept by state_dict()   ", best["weight"].tolist())

# %% [markdown]
# ## 7. Your buffer runs the engine
#
# Now train on digits. The first layer is frozen, with random weights; the second is trained; and
# every 20 steps the target becomes `online.clone()`. `mg.use(storage=CowBuffer)` puts your class
# under the engine's clones: `clone()` calls your `fork()`, and before the engine writes to memory
# that was forked, it asks your `write()` for the array to write to.

# %%
images, labels = mg.data.load_digits()
(x, y), (x_new, y_new) = mg.data.stratified_split(images.reshape(-1, 64) * 3 - 1, labels)


def new_network():
    """Return a network whose first layer is frozen."""
    mg.manual_seed(1)
    online = mg.nn.Sequential(mg.nn.Linear(64, 128), mg.nn.Tanh(), mg.nn.Linear(128, 10))
    online[0].requires_grad_(False)
    return online


def train(online, epochs=3):
    """Train; return the losses, and by step how both networks do on unseen digits."""
    optimizer = mg.optim.Adam(online, learning_rate=5e-3)
    losses, unseen = [], []
    for epoch in range(epochs):
        for rows, answers in mg.data.batches(x, y, batch_size=64, seed=epoch):
            if len(losses) % 20 == 0:
                target = online.clone()
            loss = mg.cross_entropy(online(mg.variable(rows)), mg.variable(answers))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
            with mg.no_grad():
                both = [mg.cross_entropy(net(x_new), y_new).item() for net in (online, target)]
            unseen.append(both)
    return np.array(losses), np.array(unseen)


online = new_network()
losses, unseen = train(online)
with mg.no_grad():
    right = (online(x_new).numpy().argmax(axis=1) == y_new).mean()
print(f"minigrad's own: last loss {losses[-1]:.4f}, {right:.1%} of unseen digits read correctly")

# %%
needs("05.CowBuffer")
mine = load("05")
calls = {"fork": 0, "write": 0}
n_bytes = {"forked": 0, "copied": 0}


def counted_fork(buffer, fork=mine.CowBuffer.fork):
    """Count the call and the bytes, and let your fork answer it."""
    calls["fork"] += 1
    n_bytes["forked"] += buffer.read().nbytes
    return fork(buffer)


def counted_write(buffer, write=mine.CowBuffer.write):
    """Count the call, and the bytes if it copied, and let your write answer it."""
    calls["write"] += 1
    before = buffer.read().ctypes.data
    array = write(buffer)
    n_bytes["copied"] += array.nbytes * (array.ctypes.data != before)
    return array


mine.CowBuffer.fork, mine.CowBuffer.write = counted_fork, counted_write
online = new_network()
with mg.use(storage=mine.CowBuffer):
    my_losses, my_unseen = train(online)
print(f"with yours:     last loss {my_losses[-1]:.4f}")
print(f"your fork was called {calls['fork']} times, your write {calls['write']} times")
print(f"cloning at once would have copied {n_bytes['forked']:,} bytes; yours copied", end=" ")
print(f"{n_bytes['copied']:,}, {n_bytes['copied'] / n_bytes['forked']:.0%} of it")

# %%
needs("05.CowBuffer")
figure, axis = plt.subplots(figsize=(8, 4))
for k, name in enumerate(("online", "target")):
    axis.plot(unseen[:, k], "-", linewidth=4, alpha=0.4, label=f"{name}, minigrad's own clones")
    axis.plot(my_unseen[:, k], linewidth=1, color="black", label="both, yours" if k else None)
axis.set(xlabel="training step", ylabel="loss on unseen digits", yscale="log")
axis.set_title("A target network on your copy-on-write buffer")
axis.legend()
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** The target is a staircase again, now with real weights: each step down is one
# `clone()`. The thin lines are the run with your class; they lie on the engine's own. If a buffer
# did not copy before a write, there would be no staircase: the target would follow the online line.
# The cell above counted the bytes: the frozen layer is cloned each time and never written, so it is
# never copied.

# %%
needs("05.CowBuffer")
light("05.CowBuffer", mine=my_losses, reference=losses, calls=calls["write"])

# %% [markdown]
# ## 8. Bug hunt
#
# At the end of your exercise file, `make_target` sets up a target network of five arrays, which we
# call layers here, and copies each in a different way. Its author tested all five ways, and all of
# them made copies. Yet:

# %%
mine = load("05")
random = np.random.default_rng(0)
shapes = {"embed": (3, 2), "w1": (2, 4), "b1": (4,), "w2": (4, 2), "b2": (2,)}
online = {n: Box(Storage(random.standard_normal(s)), Node("leaf")) for n, s in shapes.items()}
target = mine.make_target(online)


def total(network):
    """Return the sum of all numbers in a network."""
    return sum(float(box.storage.data.sum()) for box in network.values())


promised = total(target)
for box in online.values():
    box.storage.data += 1.0  # online trains
print(f"the sum of the target's numbers has changed by {total(target) - promised:g}, wanted: 0")

# %% [markdown]
# Which layer is it? Your `mine.is_alias` can find it. Write the layer's name into `BUG`, then
# repair its line. The author tested with transposed arrays: why did that test pass?

# %% tags=["exercise"]
check("05.make_target")

# %% [markdown]
# PyTorch has the same trap under other names: `x.contiguous()`, `x.float()`, `x.to(device)` and
# `x.reshape(...)` return the same bytes if no copy is needed, and otherwise a copy. `clone()`
# always copies. If you need a copy, call a function that always makes one.

# %% [markdown]
# ## Where you are
#
# - Two questions: *whose bytes?* and *whose history?* `detach` cuts the history and keeps the
#   bytes; `clone` keeps the history and gives bytes of its own.
# - A clone may share bytes until somebody writes. The writer must know who else shows these bytes.
# - Two arrays share memory if they have a byte in common, not if their ranges overlap.
# - If a "copy" shares its bytes, there is no error. Test it: write to one, and look at the other,
#   with arrays like those that you really use.
#
# **Next:** lesson 06. Bytes live as long as somebody holds them, and a graph holds many. What keeps
# a graph alive, and why do some training loops need more memory with every step?

# %%
from minigrad.course.predictions import summary

print(summary("05"))

# %% tags=["exercise"]
check("05")
