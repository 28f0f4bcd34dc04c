# %% [markdown]
# # 02 · Who goes first?
#
# **You need** lesson 01: a backward function is *local derivative × what arrives*. **It takes**
# about 90 minutes. **At the end** you have written the walk that `backward()` takes through a
# network, know why the engine sorts before it walks, and minigrad trains digits along *your* order.
# Next: lesson 03, cycles in a graph.
#
# Your code goes into `exercises/02_graph.py`.

# %% tags=["live"]
from minigrad.course import watch

watch("02")  # what you save in exercises/02_graph.py is graded here at once

# %%
import matplotlib.pyplot as plt
import numpy as np

import minigrad as mg
from minigrad.course import check, hint, light, load, needs, predict, scrub
from minigrad.course.l02_graph.pictures import draw_arcs, draw_walks

plt.style.use("minigrad.course.house")

# %% [markdown]
# ## 1. A value that is used twice
#
# In lesson 01 the operations were in a row, and the way back was the same row in reverse. Real
# programs are not rows. Here `x` is used twice in one product, and `a` is used in two places:

# %%
x = mg.variable(2.0, requires_grad=True, name="x")
a = x * x
b = 3 * a
c = a * b
mg.viz.graph(c)

# %% [markdown]
# **What to see.** Each blue box is a **node**: one operation, recorded while Python ran. All three
# are products; from top to bottom, they made our `a`, `b` and `c`. (The small `a` and `b` *inside*
# a box are the operation's own names for its first and second factor. If a factor is kept for the
# way back, the box shows its size; if it is a plain number, its value.)
#
# The arrows show where the values went. (`x` has only one arrow, although it is both factors of the
# first product.) The engine stores the opposite direction: each node knows its *inputs*, and no
# node knows its *consumers*, the nodes that use its value. The node of `a` has two consumers, the
# product by 3 and the last product. PyTorch's graph is the same: `c.grad_fn` is the last node, and
# `c.grad_fn.next_functions` are its inputs.
#
# By hand: $c = x^2 \cdot 3x^2 = 3x^4$, so $dc/dx = 12x^3$. At $x = 2$ this is 96, and the engine
# agrees:

# %%
c.backward()
print("by hand:", 12 * 2.0**3, "  by the engine:", x.grad.item())

# %% [markdown]
# Now you are the engine. You begin at `c`, with a gradient of 1. The last product sends something
# to `a` and something to `b`. What next? You could run `a` at once, with what it has. Or you could
# run `b` first.
#
# **Predict.** You are in a hurry: after `c`, you run the node of `a`, then the node of `b`. What
# has arrived at `x` in the end, in place of 96?

# %% tags=["prediction"]
hasty = predict("02.hasty", "What arrives at x, in place of 96, if a runs before b?")
hasty

# %% [markdown]
# Here is the same graph in plain Python. `exercises/02_graph.py` begins with four functions that
# build graphs of `Node`s, the small objects of this course (`op`, `inputs`, `saved`). It also has
# `RULES`: the backward functions of lesson 01, in one line each. They are complete; look at them.
# The slider runs one node after another, on the left in a hurry, on the right with patience.

# %%
mine = load("02")
x = mine.leaf(2.0)
a = mine.mul(x, x)
b = mine.mul(3.0, a)
c = mine.mul(a, b)
print(c)
print("its inputs:", c.inputs)

names = {x: "x", a: "a = x·x", b: "b = 3·a", c: "c = a·b"}
places = {x: (0, 0), a: (1.1, 0), b: (2.2, 1), c: (3.3, 0)}
hurry, patience = [c, a, b, x], [c, b, a, x]
walks = {"in a hurry: c, a, b, x": hurry, "with patience: c, b, a, x": patience}
scrub(
    lambda axis, step: draw_walks(axis, walks, names, places, mine.RULES, step),
    [0, 1, 2, 3, 4],
    label="nodes",
    show=[1, 2, 3],
    columns=1,
    width=9,
    height=2.6,
)

# %%
from minigrad.course.l02_graph.pictures import gradients_along

hurried, patient = (gradients_along(order, mine.RULES, 4)[order[-1]] for order in walks.values())
print(f"in a hurry {hurried}, with patience {patient}")
hasty.reveal(hurried, factor=1.001)

# %% [markdown]
# **What to see.** On the left, `a` runs with the 12 that came from `c`, sends 48 to `x`, and is
# done. Then `b` sends `a` another 12, but it is too late: `a` does not run again. There is no
# error, and the gradient is half of what it should be. On the right, `a` waits until both of its
# consumers have sent, and then runs *once*, with 24.
#
# So the rule is: **a node runs when all of its consumers have run.** Its `dy` is complete then. (A
# consumer that does not lead to the result, such as a value that you only print, does not count.)
#
# Watch the engine keep this rule, on its own nodes. Go on with ▶, back with ◀; after a click the
# arrow keys work, too. Point at a box to see its line of code.

# %%
x = mg.variable(2.0, requires_grad=True, name="x")
a = x * x
b = 3 * a
c = a * b
mg.viz.graph(c).play()

# %% [markdown]
# **What to see.** First the values go down, then the gradients come up along the dashed arrows.
# Each way shows its local derivative, as in lesson 01, and below it what was sent. For one step the
# `dy` of `mul #1`, our `a`, is 12, and the node does not run yet: `mul #2` still has to send. Two
# ways lead up to `x`, since it is both factors of the first product, and each brings 48.

# %% [markdown]
# ## 2. An order in which every node is ready
#
# No node has to wait if the engine sorts them all first, so that the next one is always ready. In a
# **topological order**, every node is placed after all of its inputs. If you read the order from
# its end, every node comes after all of its consumers. Such an order exists if the graph has no
# cycle, and usually there are several.
#
# **Write** `topo_order`. All that you need from a node is `node.inputs`. Three things make it
# interesting: many paths may lead to a node, but the list has it once; an input may be None; and a
# graph may be deeper than Python's stack.

# %% tags=["exercise"]
check("02.topo_order")

# %% [markdown]
# An order can be *seen*: put the nodes on a line, and draw an arrow from each input to its
# consumer. The upper picture is the order of the hurry, read from its end; the lower one is yours.

# %%
needs("02.topo_order")
mine = load("02")
figure, axes = plt.subplots(2, 1, figsize=(8, 4.4), layout="constrained")
orders = {"in a hurry": hurry[::-1], "yours": mine.topo_order(hurry[0])}
for axis, (title, order) in zip(axes, orders.items(), strict=True):
    draw_arcs(axis, order, [names[node] for node in order])
    axis.set(title=title, xlabel="place in the list", yticks=[], frame_on=False)
plt.show()

# %% [markdown]
# **What to see.** An order is right if no arrow points to the left. The red arrow is the mistake:
# `b` comes before its input `a`.

# %% [markdown]
# ## 3. Your order runs the engine
#
# Now a real network. Its blocks are *residual*: each adds something to its input, `h = h +
# tanh(block(h))`, so every `h` that enters a block has two consumers. `mg.use` puts your function
# into the engine in place of its own: each `loss.backward()` calls it with the *root* of that
# step's graph, the node of the loss.

# %%
images, labels = mg.data.load_digits()
(x_old, y_old), (x_new, y_new) = mg.data.stratified_split(images.reshape(-1, 64) * 3 - 1, labels)


class Residual(mg.nn.Module):
    """A network of blocks, each of which adds to what comes in."""

    def __init__(self, n_blocks=3, width=32):
        super().__init__()
        self.first = mg.nn.Linear(64, width)
        self.blocks = mg.nn.ModuleList([mg.nn.Linear(width, width) for _ in range(n_blocks)])
        self.last = mg.nn.Linear(width, 10)

    def forward(self, x):
        h = self.first(x).tanh()
        for block in self.blocks:
            h = h + block(h).tanh()
        return self.last(h)


def train(epochs=6):
    """Train the residual network; return the losses and the held-out accuracy."""
    mg.manual_seed(2)
    model = Residual()
    optimizer = mg.optim.Adam(model, learning_rate=5e-3)
    losses = []
    for epoch in range(epochs):
        for rows, targets in mg.data.batches(x_old, y_old, batch_size=64, seed=epoch):
            loss = mg.cross_entropy(model(mg.variable(rows)), mg.variable(targets))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    right = model.valid()(mg.variable(x_new)).numpy().argmax(axis=1) == y_new
    return np.array(losses), right.mean()


losses, accuracy = train()
print(f"minigrad's own order: loss {losses[-1]:.4f}, {accuracy:.1%} of unseen digits read right")

# %%
needs("02.topo_order")
mine = load("02")
asked, latest = [], []


def my_order(root):
    """Remember the last answer, and let your function give it."""
    latest[:] = mine.topo_order(root)
    asked.append(len(latest))
    return latest


with mg.use(topological_order=my_order):
    my_losses, my_accuracy = train()
print(f"your order:           loss {my_losses[-1]:.4f}, {my_accuracy:.1%} read right")
print(f"the engine asked {len(asked)} times, about graphs of {asked[-1]} nodes")

# %%
needs("02.topo_order")
figure, axes = plt.subplots(2, 1, figsize=(9, 6.5), height_ratios=(2, 3), layout="constrained")
draw_arcs(axes[0], latest, [node.op for node in latest])
axes[0].set(xlabel="place in your list", title="The graph of the last training step, in your order")
axes[1].plot(losses, linewidth=4, alpha=0.4, label="minigrad's own order")
axes[1].plot(my_losses, linewidth=1, color="black", label="yours")
axes[1].set(xlabel="training step", ylabel="loss", yscale="log")
axes[1].set_title("Training with both")
axes[1].legend()
axes[1].grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** The upper picture shows the engine's own nodes, in the list that your function
# returned: all arrows point to the right. Two arrows lead to each `add`: a short one from the
# block, and a long one that jumps over the block. In the lower picture the two loss curves are the
# same. Every right order gives the same result, up to rounding, because every node gets the same
# sum.

# %%
needs("02.topo_order")
light("02.topo_order", mine=my_losses, reference=losses, calls=len(asked))

# %% [markdown]
# ## 4. The backward pass
#
# With an order, the backward pass is short. Give the root 1.0. Go through the list from its end.
# For each node, call its rule once; the rule says what to send to each input. Each input adds this
# to what it has.
#
# **Write** `backward`, for the small graphs of this lesson.

# %% tags=["exercise"]
check("02.backward")

# %%
needs("02.backward", "02.topo_order")
mine = load("02")
x = mine.leaf(2.0)
a = mine.mul(x, x)
grads = mine.backward(mine.mul(a, mine.mul(3.0, a)))
print("yours, at x:", grads[x], "  by hand:", 12 * 2.0**3)

start = np.random.default_rng(4).uniform(0.3, 0.9, 3)
leaves = [mine.leaf(float(number)) for number in start]
engine_leaves = [mg.variable(float(n), dtype=mg.float64, requires_grad=True) for n in start]


def tangle(p, q, r, add, mul, tanh):
    """Return something that uses everything more than once."""
    for _ in range(4):
        p, q, r = tanh(mul(p, q)), add(q, mul(r, p)), mul(add(p, r), tanh(q))
    return add(mul(p, q), r)


ours = mine.backward(tangle(*leaves, mine.add, mine.mul, mine.tanh))
tangle(*engine_leaves, mg.add, mg.mul, mg.tanh).backward()
for mine_leaf, its_leaf in zip(leaves, engine_leaves, strict=True):
    print(f"yours {ours[mine_leaf]:.12f}   the engine's {its_leaf.grad.item():.12f}")

# %% [markdown]
# > **Real bug: no order at all.** In March 2024, a pull request to micrograd, the small engine from
# > which many people learned all this, proposed to leave out the sort
# > ([karpathy/micrograd#64](https://github.com/karpathy/micrograd/pull/64)): run a node, then
# > recurse into each of its inputs. On trees this is right, and its author had tried trees. In the
# > discussion, somebody gave a counterexample: `a = 1; b = a + a; c = b + b`. Here it is:


# %%
def run_and_recurse(node, grads, seen):
    """Send to the inputs what this node has, then recurse into each of them: without an order."""
    seen.append(node)
    if node.inputs:
        for one, dy in zip(node.inputs, mine.RULES[node.op](grads[node]), strict=True):
            grads[one] = grads.get(one, 0.0) + dy
        for one in node.inputs:
            run_and_recurse(one, grads, seen)


a = mine.leaf(1.0)
b = mine.add(a, a)
c = mine.add(b, b)
wrong, seen = {c: 1.0}, []
run_and_recurse(c, wrong, seen)
print("the walk:", *({a: "a", b: "b", c: "c"}[node] for node in seen))
print(f"c = 4a, but this walk gives a the gradient {wrong[a]}")

# %% [markdown]
# `b` runs twice, and the second time it sends again what it had already sent. (The discussion lists
# the same walk.) To be right *without* an order, a node would have to pass on each share alone, as
# it arrives. That works, but it is expensive, as the next section shows.

# %% [markdown]
# ## 5. How many ways lead to a leaf?
#
# Suppose that each share is passed on alone. Then the walk goes down *every path* from the root; it
# is called *naive* below. In a chain there is one path. In `y = y + y`, done n times, every step
# doubles the number of paths.
#
# **Predict.** `y = y + y`, thirty times. How many visits, of all nodes together, does such a walk
# make? (A sorted walk makes 31.)

# %% tags=["prediction"]
visits = predict("02.visits", "How many visits does the naive walk make for n = 30?")
visits

# %% [markdown]
# **Write** `count_visits`. It must compute the number without that walk; nobody has time for 2²⁰⁰
# visits. There is a short way, and you have just written something like it.

# %% tags=["exercise"]
check("02.count_visits")


# %%
def ladder(n):
    """Return y after n times y = y + y."""
    y = mine.leaf(1.0)
    for _ in range(n):
        y = mine.add(y, y)
    return y


needs("02.count_visits", "02.topo_order")
mine = load("02")
visits.reveal(sum(mine.count_visits(ladder(30), "naive").values()), factor=2)

# %% [markdown]
# Are there such graphs in practice? The next cell counts in the engine's graph of the residual
# network, with 1 to 16 blocks.

# %%
needs("02.count_visits", "02.topo_order")


def plain_root(loss):
    """Return the root of the engine's graph as a plain Node: what it hands to your topo_order."""
    roots = []

    def keep(root):
        roots.append(root)
        return mine.topo_order(root)

    with mg.use(topological_order=keep):
        loss.backward()
    return roots[0]


def residual_root(n_blocks):
    """Return the root of the graph of a training step."""
    out = Residual(n_blocks)(mg.variable(x_old[:8]))
    return plain_root(mg.cross_entropy(out, mg.variable(y_old[:8])))


roots = {
    "y = y + y": {n: ladder(n) for n in range(1, 41)},
    "residual network": {n: residual_root(n) for n in range(1, 17)},
}
figure, axis = plt.subplots(figsize=(8, 4.5))
for (title, graphs), marker in zip(roots.items(), "o^", strict=True):
    for algorithm, style in (("naive", "-"), ("sorted", ":")):
        totals = [sum(mine.count_visits(root, algorithm).values()) for root in graphs.values()]
        axis.semilogy(
            [*graphs], totals, marker + style, markersize=4, label=f"{title}, {algorithm}"
        )
axis.set(xlabel="steps, or blocks", ylabel="visits of all nodes together")
axis.set_title("Paths double, nodes do not")
axis.legend(fontsize=8)
axis.grid(alpha=0.3)
plt.show()
years = sum(mine.count_visits(ladder(60), "naive").values()) / 1e9 / 3600 / 24 / 365
once = sum(mine.count_visits(ladder(60), "sorted").values())
print(f"60 steps, at a billion visits a second: {years:.0f} years. Sorted: {once} visits.")

# %% [markdown]
# **What to see.** Straight lines on a logarithmic axis: the naive walk doubles with each step. A
# residual block doubles the paths as `y + y` does, because the gradient can pass through it or
# around it. The dotted lines are the walks along an order: each step adds the same few nodes.
# Without such an order, nobody could train a deep residual network.
#
# The number of paths is itself a *gradient*: a backward pass in which each slope is 1 counts the
# paths. `count_visits` and `backward` are one algorithm.
#
# > **Not only in lessons.** At the end of 2025 the backward pass of TinyTorch, a teaching
# > framework, went down every path: on `y = y + y` every two further steps took four times as long.
# > It got an iterative topological sort in 2026.

# %% [markdown]
# ## 6. How deep is a graph?
#
# The shortest topological sort is recursive: first the inputs, then the node itself. Its result is
# right, but it fails on a deep graph:


# %%
def recursive_order(node, order, seen):
    """Append the inputs, then the node. micrograd's sort has this form."""
    if node not in seen:
        seen.add(node)
        for one in node.inputs:
            recursive_order(one, order, seen)
        order.append(node)
    return order


for n in (100, 10_000):
    try:
        print(f"{n:>6} operations: {len(recursive_order(ladder(n), [], set()))} nodes in order")
    except RecursionError as error:
        print(f"{n:>6} operations: RecursionError: {error}")

deep = mg.variable(1.0, requires_grad=True)
y = deep
for _ in range(10_000):
    y = y * 1.0001
y.backward()
print(f"the engine, 10,000 operations deep: gradient {deep.grad.item():.4f}, e is {np.e:.4f}")

# %% [markdown]
# The graph of a recurrent network over a long text, or of a simulation with many time steps, is
# easily that deep. So your `topo_order` had to keep a stack of its own.
#
# > **Real bug: a test that cannot fail.** A test of an order has to be written with care, too. In a
# > 2025 copy of a well-known course (ARENA), a test compares the learner's order with the expected
# > one, node by node, as follows. (The check of your function compares the *lengths* first.)


# %%
def looks_right(order, expected):
    """Compare two lists entry by entry."""
    return all(found is wanted for found, wanted in zip(order, expected, strict=False))


chain = [mine.leaf(1.0)]
for _ in range(5):
    chain.append(mine.tanh(chain[-1]))
print("the right order passes:", looks_right(chain, chain))
print("an empty list passes:  ", looks_right([], chain))

# %% [markdown]
# `zip` stops at the end of the shorter list, unless it gets `strict=True`, and `all` of nothing is
# True. Do not trust a test that you have never seen fail.

# %% [markdown]
# ## 7. Bug hunt
#
# `hasty_order`, at the end of your file, should list the nodes with the root first. It walks from
# the root, and appends each node when it first meets it. Here is a tree, and its order read from
# the end:

# %%
mine = load("02")
p, q = mine.leaf(2.0), mine.leaf(3.0)
s = mine.tanh(p)
u = mine.mul(s, q)
known = {p: "p", q: "q", s: "s = tanh(p)", u: "u = s·q"}  # others are shown by their op

order = mine.hasty_order(u)[::-1]
figure, axis = plt.subplots(figsize=(8, 2.4), layout="constrained")
draw_arcs(axis, order, [known.get(node, node.op) for node in order])
axis.set(title="hasty_order of a tree", xlabel="place, from the end", yticks=[], frame_on=False)
plt.show()

# %% [markdown]
# **What to see.** No arrow points to the left, and this holds for every tree. Change the graph in
# the cell above until an arrow that does not begin at a leaf turns red. (A leaf passes nothing on,
# so it may come early.) That graph is a counterexample; there is one in this lesson. Write it into
# `counterexample`, then repair `hasty_order`.

# %% tags=["exercise"]
check("02.hasty_order")

# %% [markdown]
# ## 8. Three ways to sort
#
# Every engine runs each node once, when its gradient is complete. There are different ways to find
# such an order. OneFlow and PyTorch first *count*, for each node, how many consumers have yet to
# send; a node is ready when its count is zero (this is Kahn's algorithm, of 1962). minigrad gives
# each node a serial number when the node is made. An input is always older than its consumer, so
# sorting by number is enough. Your `topo_order` probably searches depth first ("in depth" below).


# %%
def by_counting(root):
    """Kahn's algorithm, consumers first: a node is ready when all of its consumers were taken."""
    waiting_for, found = {root: 0}, [root]
    for node in found:  # grows while we look
        for one in (i for i in node.inputs if i is not None):
            if one not in waiting_for:
                waiting_for[one] = 0
                found.append(one)
            waiting_for[one] += 1
    order, ready = [], [root]
    while ready:
        order.append(ready.pop())
        for one in (i for i in order[-1].inputs if i is not None):
            waiting_for[one] -= 1
            if waiting_for[one] == 0:
                ready.append(one)
    return order


def arrows_back(order):
    """Return how many inputs stand before their consumer, in an order with the root first."""
    place = {node: k for k, node in enumerate(order)}
    return sum(place[i] < place[n] for n in order for i in n.inputs if i is not None)


needs("02.count_visits", "02.topo_order")
root = residual_root(3)
for title, order in (
    ("by counting", by_counting(root)),
    ("in depth", mine.topo_order(root)[::-1]),
):
    print(f"{title + ':':<12} {len(order)} nodes, {arrows_back(order)} arrows that point back")

# %% [markdown]
# And by number, on the engine's own nodes:

# %%
x = mg.variable(2.0, requires_grad=True)
a = x * x
b = 3 * a
c = a * b
named = {"a": a.node, "b": b.node, "c": c.node}
for name in sorted(named, key=lambda name: -named[name].serial):
    inputs = [other for other in named if named[other] in named[name].inputs]
    print(f"{name} is number {named[name].serial}, its inputs: {', '.join(inputs) or 'the leaf'}")

# %% [markdown]
# ## Where you are
#
# - A node runs when all of its consumers have sent: then its gradient is complete.
# - A topological order makes every node run once. Without it a walk is wrong, or takes a time that
#   doubles with each block.
# - An input is older than its consumer. So a graph that is recorded while a program runs has no
#   cycle. Is that always true?
#
# **Next:** lesson 03. It is true until somebody writes one line of clever in-place code.

# %%
from minigrad.course.predictions import summary

print(summary("02"))

# %% tags=["exercise"]
check("02")
