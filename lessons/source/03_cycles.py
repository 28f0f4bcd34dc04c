# %% [markdown]
# # 03 · The graph that bites its own tail
#
# **You need** lesson 02: a graph is walked along an order in which inputs come before their
# consumers. **It takes** about 90 minutes. **At the end** you can say what a cycle is and what is
# not one, find one in a graph of any size, name it so that somebody can fix it, and minigrad checks
# each training step with your search. Next: lesson 04, where gradients are added up.
#
# Your code goes into `exercises/03_cycles.py`.

# %%
import matplotlib.pyplot as plt
import numpy as np

import minigrad as mg
from minigrad.course import check, hint, light, load, needs, predict, scrub
from minigrad.course.l03_cycles.pictures import WHITE, draw_graph, draw_search
from minigrad.course.objects import Node

# %% [markdown]
# ## 1. Is a loop a cycle?
#
# A recurrent network runs the same line again and again: the state `h` goes in, and a new `h` comes
# out. In a drawing of such a network, an arrow leads from `h` back to `h`. And lesson 02 said that
# there is an order only if the graph has no cycle.
#
# **Predict.** Three times `h = tanh(w * h)`. Does the graph that was recorded have a cycle: yes or
# no?

# %% tags=["prediction"]
loop = predict("03.loop", "Does the graph of a recurrent loop have a cycle: 'yes' or 'no'?", ...)
loop

# %%
w = mg.variable(0.9, requires_grad=True, name="w")
h = mg.variable(0.5, requires_grad=True, name="h")
for _ in range(3):
    h = (w * h).tanh()
mg.viz.graph(h)

# %%
found = [h.node]
for node in found:  # grows while we look
    found += [one for one in node.inputs if type(one) is type(node) and one not in found]
edges = [(n, one) for n in found for one in n.inputs if type(one) is type(n)]
newer = sum(one.serial > n.serial for n, one in edges)
print(f"{len(found)} nodes, {len(edges)} edges between them, {newer} of them to a newer node")
h.backward()
print("the gradient of w:", w.grad.item())
loop.reveal("yes" if newer else "no")

# %% [markdown]
# **What to see.** Six nodes one below the other, and no way back up. `h = ...` does not change a
# value: it makes a new one, and gives it an old name. The *program* goes round; the graph is
# **unrolled**. PyTorch unrolls in just the same way. (Nodes are numbered as they are made; the cell
# asked whether any has an input that is newer than itself.)
#
# More than that: while a graph is recorded by running a program, it *cannot* have a cycle. A node
# is made after its inputs, so each edge leads to something older, and nobody comes back to a place
# by walking only into the past. Engines rely on it; most never check.

# %% [markdown]
# ## 2. One line of clever code
#
# It holds as long as each operation makes a new node. An operation that works *in place* replaces a
# value. If its author also re-uses the node, an old node gets a new input, and the past has been
# changed.
#
# > **Real bug: its own ancestor.** The sort in micrograd keeps a set of nodes that it has seen, and
# > assumes that there is no cycle; that nothing checks this has been an open issue since 2024
# > ([karpathy/micrograd#67](https://github.com/karpathy/micrograd/issues/67)). micrograd itself has
# > no operation that could tie one. Here is an engine in its style, with an in-place product such
# > as people add to it.


# %%
class Value:
    """A number with a gradient, in the manner of micrograd."""

    def __init__(self, data):
        self.data, self.grad, self.inputs, self.send = data, 0.0, (), lambda: None

    def mul_(self, other):
        """Multiply in place, and record it, in the very node that is changed."""
        self.data *= other.data
        self.inputs = (self, other)

        def send():
            self.grad += other.data * self.grad
            other.grad += self.data * self.grad

        self.send = send

    def backward(self):
        """Sort with a set of seen nodes, then run each."""
        order, seen = [], set()

        def enter(node):
            if node not in seen:
                seen.add(node)
                for one in node.inputs:
                    enter(one)
                order.append(node)

        enter(self)
        self.grad = 1.0
        for node in reversed(order):
            node.send()


# %% [markdown]
# **Predict.** `x = Value(3.0)`, `factor = Value(2.0)`, `x.mul_(factor)`, `x.backward()`. The
# product changes by 3 when `factor` changes by 1. What does `factor.grad` say?

# %% tags=["prediction"]
own_ancestor = predict("03.own_ancestor", "What does factor.grad say, in place of 3?", ...)
own_ancestor

# %%
x, factor = Value(3.0), Value(2.0)
x.mul_(factor)
x.backward()
print(f"factor.grad = {factor.grad}, where 3 is right; no error, no warning")
own_ancestor.reveal(factor.grad, factor=1.001)

# %% [markdown]
# `x` is its own input. The set of seen nodes makes the walk end, and so the engine answers,
# wrongly: the slope is taken at the new value, times a gradient that was fed back into itself. A
# set of seen nodes is no test for cycles; it only hides them.
#
# How does it go right? minigrad's own in-place operations make a new node, and the Variable moves
# on to it. So do PyTorch's: after `h += 1`, `h.grad_fn` is another object.

# %%
h = mg.variable([0.5], requires_grad=True) * 2.0
before = h.node
h += 1.0
print("before:", before.op, before.serial, "  after:", h.node.op, h.node.serial)
print("the new node has the old one as its input:", before in h.node.inputs)

# %% [markdown]
# ## 3. Three colours
#
# How do you find out whether a graph has a cycle? Walk, as in lesson 02: down to the inputs, and
# back up when nothing is left. When you meet a node a second time, there are two cases, and
# everything depends on telling them apart.
#
# - It is **finished**: everything behind it was searched, and led nowhere. Then two ways lead to
#   it, as in any diamond. No cycle.
# - It is still **open**: it is on the way from the root to where you stand. Then you have gone in a
#   circle.
#
# So a node has one of three colours. The textbooks say white (unseen), grey (open) and black
# (finished). Step the slider:

# %%
from minigrad.course.l03_cycles.pictures import search_moments

leaf, p, s = Node("x"), Node("p"), Node("s")
p.inputs = (leaf,)
r = Node("r", (p, s))
q = Node("q", (r,))
s.inputs = (q,)  # the past is changed: q has s behind it, and now s has q
loss = Node("loss", (p, q))
nodes = (loss, p, leaf, q, r, s)
names = {node: node.op for node in nodes}
places = dict(zip(nodes, [(4, 1), (2.2, 2), (1, 2), (2.8, 0), (1.6, 0.9), (1, 0)], strict=True))
moments = search_moments(loss, names)
scrub(
    lambda axis, step: draw_search(axis, moments[step], names, places),
    list(range(len(moments))),
    label="step",
    show=[2, 4, 7, len(moments) - 1],
    columns=2,
    width=5,
    height=3.2,
)

# %% [markdown]
# **What to see.** An arrow leads from a node to each of its inputs. In the second picture `p` is
# finished: black. In the third the search meets `p` again, from `r`, and passes on: black is
# harmless. In the last it meets `q`, which is grey. The grey nodes *are* the way from the root to
# here, so the cycle can be read off: from `q` on to the end, and back to `q`.
#
# **Write** `find_cycle`. It is your `topo_order` with one more question, and it returns the way
# round, so that a reader can follow it edge by edge, as the check does.

# %% tags=["exercise"]
check("03.find_cycle")

# %%
needs("03.find_cycle")
mine = load("03")
print("in the picture:", " -> ".join(names[node] for node in mine.find_cycle(loss)))

# %% [markdown]
# Is black needed at all? Grey alone is *right*: a search that remembers only the way to where it
# stands finds every cycle, and no false one. Here it is, and what it costs on `y = y + y`, where
# two edges lead from each node to the one before.
#
# **Predict.** Without black, on 16 times `y = y + y`, which has 32 edges: how often is an edge
# looked at?

# %% tags=["prediction"]
looks = predict("03.looks", "How often is an edge looked at, without black, for n = 16?", ...)
looks

# %%
from minigrad.course.l03_cycles.driver import Counted, build, long_graph


def grey_only(node, path=()):
    """Search for a cycle with no memory of what is finished."""
    if node in path:
        return [*path[path.index(node) :], node]
    for one in node.inputs:
        found = grey_only(one, (*path, node))
        if found is not None:
            return found
    return None


def count_looks(search, n):
    """Return how often a search looks at an edge of n times y = y + y."""
    root = build(*long_graph(n, None), Counted)[-1]
    Counted.looks = 0
    assert search(root) is None
    return Counted.looks


looks.reveal(count_looks(grey_only, 16), factor=2)

# %%
needs("03.find_cycle")
steps = np.arange(1, 17)
figure, axis = plt.subplots(figsize=(8, 4))
for search, label in ((grey_only, "grey only"), (mine.find_cycle, "yours")):
    axis.semilogy(steps, [count_looks(search, n) for n in steps], "o-", markersize=4, label=label)
axis.set(xlabel="n, how often y = y + y", ylabel="looks at an edge")
axis.set_title("What it saves to remember what is finished")
axis.legend()
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** The same doubling as in lesson 02, for the same reason: without black, each way
# to a node is gone to its end. Grey makes the search *right*, black makes it *fast*.

# %% [markdown]
# ## 4. An error that helps
#
# "There is a cycle" helps nobody. Which operations, on which lines? **Write** `explain_cycle`,
# which says it in one line, and `assert_dag`, which raises.

# %% tags=["exercise"]
check("03.explain_cycle")

# %% tags=["exercise"]
check("03.assert_dag")

# %%
needs("03.assert_dag", "03.explain_cycle", "03.find_cycle")
mine = load("03")
try:
    mine.assert_dag(loss)
except mine.GraphCycleError as error:
    print(f"{type(error).__name__}: {error}")

# %% [markdown]
# > **Real bug: an untouched stub passes.** The check insists on `GraphCycleError`, and here is why.
# > In a copy of 2025, the test of a well-known course (ARENA) for this very task called the
# > learner's sort on a graph with a cycle, and took *any* exception for success:


# %%
def test_that_cannot_fail(sort):
    """Return whether this test passes."""
    try:
        sort(loss)
    except BaseException:  # whatever it is
        return True
    return False


def untouched(root):
    """Is as it came."""
    raise NotImplementedError("yours to write")


def endless(root):
    """Walk down, without a memory of anything."""
    for one in root.inputs:
        endless(one)


for function in (untouched, endless):
    print(f"{function.__name__}: passes = {test_that_cannot_fail(function)}")

# %% [markdown]
# ## 5. Your search in the engine
#
# A network that really is recurrent: it reads each digit row by row, 8 rows of 8 pixels, with the
# same two layers for each row. `mg.use(find_cycle=...)` makes the engine ask your function before
# each backward pass.

# %%
images, labels = mg.data.load_digits()
(x_old, y_old), (x_new, y_new) = mg.data.stratified_split(images.reshape(-1, 64) * 3 - 1, labels)


class RowByRow(mg.nn.Module):
    """Reads an image of 8 rows, one after another."""

    def __init__(self, width=32):
        super().__init__()
        self.read = mg.nn.Linear(8, width)
        self.keep = mg.nn.Linear(width, width)
        self.say = mg.nn.Linear(width, 10)

    def forward(self, images):
        h = self.read(images[:, 0:8]).tanh()
        for row in range(1, 8):
            h = (self.read(images[:, 8 * row : 8 * row + 8]) + self.keep(h)).tanh()
        return self.say(h)


def train(epochs=5):
    """Train the recurrent network; return the losses and the held-out accuracy."""
    mg.manual_seed(3)
    model = RowByRow()
    optimizer = mg.optim.Adam(model, learning_rate=1e-2)
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
print(f"without a search: loss {losses[-1]:.4f}, {accuracy:.1%} of unseen digits read right")

# %%
needs("03.find_cycle")
mine = load("03")
calls = []


def my_search(root):
    """Note what was found, and let your function answer."""
    calls.append(mine.find_cycle(root))
    return calls[-1]


with mg.use(find_cycle=my_search):
    my_losses, my_accuracy = train()
print(f"with yours:       loss {my_losses[-1]:.4f}, {my_accuracy:.1%} read right")
print(f"your function searched {len(calls)} graphs, and found {len(calls) - calls.count(None)}")
print(light("03.find_cycle", mine=my_losses, reference=losses, calls=len(calls)))

# %%
needs("03.find_cycle")
figure, axis = plt.subplots(figsize=(8, 3.6))
axis.plot(losses, linewidth=4, alpha=0.4, label="without a search")
axis.plot(my_losses, linewidth=1, color="black", label="each step searched by you")
axis.set(xlabel="training step", ylabel="loss", yscale="log")
axis.set_title("A recurrent network has no cycle to be found")
axis.legend()
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** A loop in the program, eight times round for each batch, and nothing to be found
# in the graph. And now tie one, with the engine's own nodes. Nobody should do this; it is what an
# operation with the slip of section 2 would do.

# %%
needs("03.find_cycle")
x = mg.variable([0.5, 1.0], requires_grad=True)
a = x.tanh()
b = a.exp()
a.node.edges = (b.node,)  # the past is changed
with mg.use(find_cycle=mine.find_cycle):
    try:
        b.sum().backward()
    except mg.errors.GraphCycleError as error:
        print(f"{type(error).__name__}: {error}")
print("a gradient was written:", x.grad is not None)
a.node.edges = (x,)  # and put right again

# %% [markdown]
# ## 6. What the others do
#
# > **A story about a check that is none.** A widely copied introduction to OneFlow's autograd asks
# > how it treats cycles, and answers: it *examines the dependencies, and raises an error if it
# > finds one*. OneFlow's source, as we read it, says otherwise. Its engine counts, for each node,
# > the consumers that have yet to send, and runs whatever is ready; when nothing is ready any more,
# > it is done, and reports success. PyTorch's engine counts in the same way; in the end it checks
# > whether a node that received something has never run, and then says *could not compute gradients
# > for some functions*, without saying which. Both build graphs that have no cycle, so neither
# > needs more, until somebody's extension ties one.
#
# Here are these ways of walking, each in a few lines, on the graph of section 3. (Each slope is 1
# here; all that counts is which nodes are reached.)


# %%
def counting(root):
    """Run whatever is ready. Return who has run, and who was sent something in vain."""
    waiting_for, found = {root: 0}, [root]
    for node in found:
        for one in node.inputs:
            if one not in waiting_for:
                waiting_for[one] = 0
                found.append(one)
            waiting_for[one] += 1
    ready, ran, sent_to = [root], [], {root}
    while ready:
        node = ready.pop()
        ran.append(node)
        for one in node.inputs:
            sent_to.add(one)
            waiting_for[one] -= 1
            if waiting_for[one] == 0:
                ready.append(one)
    return ran, [node for node in found if node in sent_to and node not in ran]


def with_a_set(root):
    """Sort with a set of seen nodes. Return each node that comes before an input of its own."""
    order, seen = [], set()

    def enter(node):
        if node not in seen:
            seen.add(node)
            for one in node.inputs:
                enter(one)
            order.append(node)

    enter(root)
    place = {node: k for k, node in enumerate(order)}
    return [(n, i) for n in order for i in n.inputs if place[i] > place[n]]


ran, in_vain = counting(loss)
print("counting, done when nothing is ready:")
print("    no error; has run:", *(names[node] for node in ran), "; without gradient:",
      *(names[node] for node in nodes if node not in ran))  # fmt: skip
print("counting, with a look at what is left:")
print("    an error; it knows that these wait:", *(names[node] for node in in_vain))
print("a set of seen nodes:")
late = ", ".join(
    f"{names[n]} has its place before its input {names[i]}" for n, i in with_a_set(loss)
)
print("    no error; in its order", late)
try:
    endless(loss)
except RecursionError as error:
    print(f"recursion:\n    {type(error).__name__}: {error}")

# %%
figure, axis = plt.subplots(figsize=(6, 3.6))
colours = dict.fromkeys(nodes, WHITE) | dict.fromkeys(in_vain, "orange")
colours |= dict.fromkeys(ran, "lightgreen")
draw_graph(axis, names, places, colours)
axis.set(title="Counting on a graph with a cycle", yticks=[])
axis.set_xlabel(
    "green: has run; orange: was sent something, waits; white: nothing came", fontsize=9
)
plt.show()

# %% [markdown]
# **What to see.** Only the root ever runs. `p` and `x` are no part of the cycle, but `p` waits for
# `r`, and on the cycle each waits for the next: `r` for `q`, `q` for `s`, `s` for `r`. So a whole
# part of a network stands still, and a parameter there has no gradient. In a training script that
# looks like a layer that does not learn.
#
# minigrad sees it at the price of a comparison per edge: an input must have a smaller serial number
# than its consumer. Only if that fails does it start the search that you wrote, and names the path.

# %% [markdown]
# ## 7. The third thing called cycle
#
# This lesson had two: the loop of a program, which is no cycle, and the cycle of a graph, which is
# an error. There is a third, the **reference cycle** of Python: an object that holds itself,
# through others. It gives no wrong gradient. It keeps memory until the garbage collector comes by.

# %%
import gc
import weakref


def drop_a_result(tie):
    """Make a result that a dict holds, and drop both; return a weak reference to its node."""
    w = mg.variable(np.ones(1000), requires_grad=True)
    holder = {"loss": (w * w).sum()}
    if tie:
        holder["self"] = holder
    return weakref.ref(holder["loss"].node)


gc.disable()
untied, tied = drop_a_result(tie=False), drop_a_result(tie=True)
print("dropped, no reference cycle:       the node is alive =", untied() is not None)
print("dropped, in a reference cycle:     the node is alive =", tied() is not None)
gc.enable()
gc.collect()
print("after the garbage collector came:  the node is alive =", tied() is not None)

# %% [markdown]
# minigrad's own graph has none: an output holds its node, a node its inputs, and nothing points the
# other way. Lesson 06 hunts for those that people tie themselves.

# %% [markdown]
# ## 8. Bug hunt
#
# At the end of your file, a class `Number` records what is done to it, and `recurrent` runs
# $h \leftarrow \tanh(w h + x)$ with it, in place, to save memory. The values are right:

# %%
mine = load("03")
h = mine.recurrent(mine.Number(0.5), mine.Number(0.9), mine.Number(0.1), 1)
print(f"recorded: {h.value:.12f}   NumPy: {np.tanh(0.9 * 0.5 + 0.1):.12f}")

# %%
needs("03.explain_cycle", "03.find_cycle")
path = mine.find_cycle(h.node)
print("the cycle:", "none" if path is None else mine.explain_cycle(path))

# %% [markdown]
# If you have not repaired it yet, four operations are named. One of them tied the cycle; the others
# only take part. Which? In a recorded graph an input is older than its consumer, and the line
# numbers tell you who came first. Write its name into `BUG`, then repair its method.

# %% tags=["exercise"]
check("03.recurrent")

# %% [markdown]
# ## Where you are
#
# - A loop in a program is unrolled: no cycle. A cycle is a node that depends on itself, and it
#   takes an operation that re-uses a node to make one.
# - Meeting a node twice proves nothing. Meeting an *open* node does.
# - Engines that count, or keep a set of seen nodes, name no cycle: they leave gradients out, get
#   them wrong, or stop without saying where. A good error names the way round.
#
# **Next:** lesson 04. Where two ways lead to a node, two gradients arrive. They are added, and
# there are more ways than one to get that wrong.

# %%
from minigrad.course.predictions import summary

print(summary("03"))

# %% tags=["exercise"]
check("03")
