# %% [markdown]
# # 03 · Cycles
#
# **You need** lesson 02: a graph is walked along an order in which inputs come before their
# consumers. **It takes** about 90 minutes. **At the end** you can say what a cycle is and what is
# not one, find one in a graph of any size, name it so that somebody can fix it, and minigrad checks
# each training step with your search. Next: lesson 04, where gradients are added up.
#
# Your code goes into `exercises/03_cycles.py`.

# %% tags=["live"]
from minigrad.course import watch

watch("03")  # what you save in exercises/03_cycles.py is graded here at once

# %%
import matplotlib.pyplot as plt
import numpy as np

import minigrad as mg
from minigrad.course import check, hint, light, load, needs, predict, scrub
from minigrad.course.l03_cycles.pictures import WHITE, draw_graph, draw_search
from minigrad.course.objects import Node
from minigrad.course.pictures import draw_losses

plt.style.use("minigrad.course.house")

# %% [markdown]
# ## 1. Is a loop a cycle?
#
# A recurrent network runs the same line again and again: the state `h` goes in, and a new `h` comes
# out. In a drawing of such a network, an arrow leads from `h` back to `h`. But lesson 02 said that
# there is an order only if the graph has no cycle.
#
# **Predict.** `h = tanh(w * h)` runs three times. Does the recorded graph have a cycle?

# %% tags=["prediction"]
loop = predict(
    "03.loop",
    "Does the graph of a recurrent loop have a cycle?",
    choices=("yes", "no"),
)
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
# **What to see.** There are six nodes in a row, and no arrow leads back to the beginning. `h = ...`
# does not change a value: it makes a new value and gives it an old name. The *program* repeats a
# line; the graph is **unrolled**. PyTorch unrolls in the same way. (Nodes are numbered as they are
# made; the cell counted edges that lead to a newer node.)
#
# If each operation makes a new node, the recorded graph *cannot* have a cycle. A node is made after
# its inputs. An edge goes from a node to an input, so it leads to an older node, and a path to ever
# older nodes never returns to where it began. Engines rely on this; most never check it.

# %% [markdown]
# ## 2. One line of clever code
#
# There can be no cycle as long as each operation makes a new node. An operation that works *in
# place* replaces a value. If its author also reuses the node, an old node gets a new input, and
# that can make a cycle.
#
# > **Real bug: its own ancestor.** The sort in micrograd keeps a set of nodes that it has seen, and
# > assumes that there is no cycle. Nothing checks this, and an issue about it has been open since
# > 2024 ([karpathy/micrograd#67](https://github.com/karpathy/micrograd/issues/67)). micrograd
# > itself has no operation that makes a cycle. But people add in-place operations to it. Here is an
# > engine in its style, with such an in-place product.


# %%
class Value:
    """A number with a gradient, as in micrograd."""

    def __init__(self, data):
        self.data, self.grad, self.inputs, self.send = data, 0.0, (), lambda: None

    def mul_(self, other):
        """Multiply in place, and record that in the node itself: the bug."""
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
# product changes by 3 when `factor` changes by 1, so 3 is the right gradient. What is
# `factor.grad`?

# %% tags=["prediction"]
own_ancestor = predict("03.own_ancestor", "What does factor.grad say, in place of 3?")
own_ancestor

# %%
x, factor = Value(3.0), Value(2.0)
x.mul_(factor)
x.backward()
print(f"factor.grad = {factor.grad}, where 3 is right; no error, no warning")
own_ancestor.reveal(factor.grad, factor=1.001)

# %% [markdown]
# `x` is its own input. The set of seen nodes ends the walk, so the engine gives an answer, but a
# wrong one: it uses the new value of `x` and not the old one, and `x` sends a gradient to itself. A
# set of seen nodes is no test for cycles; it only hides them.
#
# How is it done right? minigrad's own in-place operations make a new node, and the Variable takes
# this node. PyTorch's do the same: after `h += 1`, `h.grad_fn` is another object.

# %%
h = mg.variable([0.5], requires_grad=True) * 2.0
before = h.node
h += 1.0
print("before:", before.op, before.serial, "  after:", h.node.op, h.node.serial)
print("the new node has the old one as its input:", before in h.node.inputs)

# %% [markdown]
# ## 3. Three colours
#
# How do you find out whether a graph has a cycle? Walk as in lesson 02: from a node to its inputs,
# and back when there are no more inputs. When you meet a node a second time, there are two cases,
# and the search must tell them apart.
#
# - It is **finished**: everything behind it has been searched. Then two paths lead to it, and there
#   is no cycle here.
# - It is still **open**: it is on the path from the root to the present node. Then you have found a
#   cycle.
#
# So a node has one of three colours. Textbooks say white (unseen), grey (open) and black
# (finished). Move the slider:

# %%
from minigrad.course.l03_cycles.pictures import search_moments

leaf, p, s = Node("x"), Node("p"), Node("s")
p.inputs = (leaf,)
r = Node("r", (p, s))
q = Node("q", (r,))
s.inputs = (q,)  # an old node gets a new input: q depends on s, and now s depends on q
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
# finished: it is black. In the third the search meets `p` again, from `r`, and goes on, because
# black is harmless. In the last it meets `q`, which is grey. The grey nodes *are* the path from the
# root to here, so they give the cycle: from `q` to the end of the path, and back to `q`. (On a dark
# page, black and white change places.)
#
# **Write** `find_cycle`. It is your `topo_order` with one more question. It returns the cycle as a
# path, so that a reader can follow it edge by edge, as the check does.

# %% tags=["exercise"]
check("03.find_cycle")

# %%
needs("03.find_cycle")
mine = load("03")
print("in the picture:", " -> ".join(names[node] for node in mine.find_cycle(loss)))

# %% [markdown]
# Is black needed at all? Grey alone gives the *right* answer: a search that remembers only the
# current path finds a cycle whenever there is one, and never a false one. The next cell measures
# what such a search costs on `y = y + y`, where two edges lead from each node to the one before.
#
# **Predict.** `y = y + y`, 16 times, has 32 edges. How often does the search look at an edge,
# without black?

# %% tags=["prediction"]
looks = predict("03.looks", "How often is an edge looked at, without black, for n = 16?")
looks

# %%
from minigrad.course.l03_cycles.common import long_web
from minigrad.course.l03_cycles.driver import Counted, build


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
    graph = long_web(n, None)
    root = build(graph.ops, graph.inputs, Counted)[-1]
    Counted.looks = 0
    assert search(root) is None
    return Counted.looks


looks.reveal(count_looks(grey_only, 16), factor=2)

# %%
needs("03.find_cycle")
steps = np.arange(1, 17)
figure, axis = plt.subplots(figsize=(8, 4))
for search, label in ((grey_only, "grey only"), (mine.find_cycle, "yours")):
    axis.semilogy(
        steps, [count_looks(search, n) for n in steps], marker="o", markersize=4, label=label
    )
axis.set(xlabel="n, how often y = y + y", ylabel="looks at an edge")
axis.set_title("What it saves to remember what is finished")
axis.legend()
axis.grid(alpha=0.3)
plt.show()

# %% [markdown]
# **What to see.** With grey only, the cost doubles with each step, as in lesson 02, and for the
# same reason: without black, the search follows every path to its end. Grey makes the search
# *right*, black makes it *fast*.

# %% [markdown]
# ## 4. An error that helps
#
# "There is a cycle" does not help. Which operations are in it, and on which lines? **Write**
# `explain_cycle`, which says this in one line, and `assert_dag`, which raises an error.

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
# > **Real bug: an untouched stub passes.** The check of this lesson accepts only a
# > `GraphCycleError`. A well-known course, ARENA, has a test for the same task. In a copy from
# > 2025, it called the learner's sort on a graph with a cycle, and accepted *any* exception:


# %%
def test_that_cannot_fail(sort):
    """Return whether this test passes."""
    try:
        sort(loss)
    except BaseException:  # whatever it is
        return True
    return False


def untouched(root):
    """Raise, as a stub does that nobody has changed."""
    raise NotImplementedError("yours to write")


def endless(root):
    """Walk to the inputs for ever, without a memory of what was seen."""
    for one in root.inputs:
        endless(one)


for function in (untouched, endless):
    print(f"{function.__name__}: passes = {test_that_cannot_fail(function)}")

# %% [markdown]
# ## 5. Your search in the engine
#
# Now a recurrent network. It reads each digit row by row, 8 rows of 8 pixels, with the same two
# layers for each row. `mg.use(find_cycle=...)` makes the engine call your function before each
# backward pass.

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
draw_losses(
    {"without a search": losses},
    {"each step searched by you": my_losses},
    title="A recurrent network has no cycle to be found",
)

# %% [markdown]
# **What to see.** For each batch, the program loops over the 8 rows of the images, and your search
# finds no cycle. Now make a cycle, with the engine's own nodes. Nobody should do this; it is what
# an operation with the bug of section 2 would do.

# %%
needs("03.find_cycle")
x = mg.variable([0.5, 1.0], requires_grad=True)
a = x.tanh()
b = a.exp()
a.node.edges = (b.node,)  # an old node gets a new input
with mg.use(find_cycle=mine.find_cycle):
    try:
        b.sum().backward()
    except mg.errors.GraphCycleError as error:
        print(f"{type(error).__name__}: {error}")
print("a gradient was written:", x.grad is not None)
a.node.edges = (x,)  # as it was before

# %% [markdown]
# ## 6. What other engines do
#
# > OneFlow's engine counts, for each node, the consumers that have yet to send, and runs every node
# > that is ready. When no node is ready any more, it ends and reports success (as we read its
# > source). PyTorch's engine counts in the same way. At the end it checks whether some node
# > received a gradient but never ran; then it says *could not compute gradients for some
# > functions*, without saying which. Both build graphs without cycles, so they need no more, until
# > somebody's extension makes a cycle.
#
# The next cell tries both ways on the graph of section 3, and beside them a set of seen nodes
# (section 2) and `endless` (section 4). No gradients are computed.


# %%
def counting(root):
    """Run each node that is ready. Return which ran, and which got something but never ran."""
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
print("counting, and a check of what is left:")
print("    an error; it knows that these wait:", *(names[node] for node in in_vain))
print("a set of seen nodes:")
late = ", ".join(f"{names[n]} comes before its input {names[i]}" for n, i in with_a_set(loss))
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
axis.set(title="Counting on a graph with a cycle", yticks=[], frame_on=False)
axis.set_xlabel("green: has run; orange: got something, waits; white: got nothing", fontsize=9)
plt.show()

# %% [markdown]
# **What to see.** Only the root ever runs. `p` and `x` are not in the cycle, but `p` waits for `r`,
# and the nodes of the cycle wait for each other: `r` for `q`, `q` for `s`, `s` for `r`. So a whole
# part of a network never runs, and its parameters get no gradient. In a training script, this looks
# like a layer that does not learn.
#
# minigrad notices a cycle with one comparison per edge: an input must have a smaller serial number
# than its consumer. If that fails, it starts a search like yours, and names the path.

# %% [markdown]
# ## 7. A third meaning of "cycle"
#
# So far the word has had two meanings here: the loop of a program, which is no cycle in the graph,
# and the cycle of a graph, which is an error. There is a third, the **reference cycle** of Python:
# an object that holds itself, through other objects. It makes no gradient wrong, but it keeps
# memory until the garbage collector runs.

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
print("after the garbage collector ran:   the node is alive =", tied() is not None)

# %% [markdown]
# minigrad's own graph has no reference cycles: an output holds its node, a node holds its inputs,
# and nothing points the other way. In lesson 06 you look for those that people make in their own
# code.

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
# If you have not repaired it yet, the last line names four operations. One of them made the cycle;
# the others are only part of it. In a right graph, an input is older than its consumer, and the
# line numbers tell you which operation came first. Which one made the cycle? Write its name into
# `BUG`, then repair its method.

# %% tags=["exercise"]
check("03.recurrent")

# %% [markdown]
# ## Where you are
#
# - A loop in a program is unrolled: no cycle. In a cycle, a node depends on itself; only an
#   operation that reuses a node can make a cycle.
# - Meeting a node twice proves nothing. Meeting an *open* node does.
# - Engines that count, or keep a set of seen nodes, name no cycle: they leave gradients out,
#   compute wrong ones, or stop without saying where. A good error names the path.
#
# **Next:** lesson 04. If two paths lead to a node, two gradients arrive, and they are added. There
# are several ways to get this wrong.

# %%
from minigrad.course.predictions import summary

print(summary("03"))

# %% tags=["exercise"]
check("03")
